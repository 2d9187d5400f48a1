"""The command line of a benchmark script, and the order in which its programs run."""

import argparse
import pathlib
import random
import sys
from dataclasses import dataclass
from typing import Callable, Optional

from . import page
from .machine import exit_on_sigterm, need_program, progress


@dataclass
class Measurement:
    """A subcommand."""

    help: str
    # Options to lines of Markdown, and whether the result is as it should be.
    measure: Callable
    # Option names with their keywords for argparse.
    options: dict
    # Tables of the results file to lines for the docs page; without it the measurement is only printed.
    summary: Optional[Callable] = None


def words(text):
    """The type of an option that takes a list with commas."""
    return text.split(",")


def interleave(arms, rounds, measure, label="", shuffle=False):
    """Measures every arm once a round, so that drift affects all of them; the order reverses, or is random, from round to round."""
    found = {arm: [] for arm in arms}
    for number in range(rounds):
        order = random.sample(list(arms), len(arms)) if shuffle else list(arms)[:: -1 if number % 2 else 1]
        for arm in order:
            progress(f"{label}: round {number + 1} of {rounds}, {arm}")
            found[arm].append(measure(arm))
    progress("")
    return found


def make_page(docs, measurements, only=None):
    """Writes the short tables of a page in docs from the results on file."""
    for name, one in measurements.items():
        path = page.RESULTS / f"{name}.md"
        if one.summary and path.exists() and only in (None, name):
            page.fill(docs, name, one.summary(page.read_tables(path)))


def main(doc, docs, measurements):
    docs = page.ROOT / "docs" / docs if docs else None
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="name", required=True, metavar="MEASUREMENT")
    for name, one in measurements.items():
        command = commands.add_parser(name, help=one.help, description=one.measure.__doc__ or one.help)
        command.add_argument("--halfpower", default="target/release/halfpower", help="the program [default: %(default)s]")
        if one.summary:
            command.add_argument("--output", type=pathlib.Path, metavar="FILE", help="write the raw tables there")
            command.add_argument("--publish", action="store_true", help=f"write bench/results/{name}.md and the table in docs/{docs.name}")
        for option, keywords in one.options.items():
            shown = {"help": "[default: %(default)s]"} if "default" in keywords and "help" not in keywords else {}
            command.add_argument(option, **keywords, **shown)
    if docs:
        commands.add_parser("page", help=f"make the tables of docs/{docs.name} again from bench/results")
    options = parser.parse_args()
    if options.name == "page":
        make_page(docs, measurements)
        return
    exit_on_sigterm()
    options.halfpower = need_program(options.halfpower)
    one = measurements[options.name]
    lines, good = one.measure(options)
    if one.summary:
        text = "\n".join(lines).rstrip() + "\n"
        if options.output:
            options.output.write_text(text)
        if options.publish:
            (page.RESULTS / f"{options.name}.md").write_text(text)
            make_page(docs, measurements, options.name)
    sys.exit(not good)
