"""Markdown: the raw tables in bench/results, and the short tables in docs, which are made from them."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"


def table(header, rows):
    """Lines of a table."""
    return [row(header), "|---" * len(header) + "|", *map(row, rows)]


def row(cells):
    return f"| {' | '.join(map(str, cells))} |"


def read_tables(path):
    """The tables of a page: section title, header and rows of each."""
    title, found, cells = "", [], []
    for line in [*path.read_text().splitlines(), ""]:
        if line.startswith("#"):
            title = line.lstrip("# ")
        elif line.startswith("|"):
            cells.append([cell.strip() for cell in line.strip()[1:-1].split("|")])
        elif cells:
            found.append((title, cells[0], cells[2:]))
            cells = []
    return found


def fill(page, name, lines):
    """Replaces the lines between the two markers of a block on a page in docs."""
    begin, end = f"<!-- {name}: made from bench/results -->", f"<!-- end of {name} -->"
    text = page.read_text()
    pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.S)
    if not pattern.search(text):
        raise SystemExit(f"{page}: no block {begin}")
    page.write_text(pattern.sub(lambda _: "\n".join([begin, "", *lines, "", end]), text))
