"""Public command lines of diskspd and IOzone, shortened and run by halfpower: which are accepted, and why the others are refused."""

import json
import os
import re
import subprocess
import tempfile

from .machine import KIB, MIB
from .page import ROOT, table

LINES = ROOT / "bench" / "peers" / "lines.json"
TIMEOUT_S = 60
# The largest value of each option in bytes. IOzone counts in KiB by default.
DISKSPD = {"d": 1, "W": 0, "C": 0, "c": 4 * MIB, "f": 2 * MIB, "B": MIB, "t": 4, "F": 4, "o": 8, "Z": MIB, "b": MIB}
IOZONE = {"s": MIB, "r": 256 * KIB, "n": 64 * KIB, "g": 128 * KIB, "y": 4 * KIB, "q": 64 * KIB}
UNITS = {"": 1, "k": KIB, "m": MIB, "g": 1 << 30}


def size(text, plain):
    match = re.fullmatch(r"(\d+)([kmg]?)b?", text.lower())
    return int(match[1]) * (UNITS[match[2]] if match[2] else plain) if match else None


def diskspd(words):
    out = []
    for word in words:
        match = re.fullmatch(r"-([a-zA-Z])(\d+[kKmMgG]?)(.*)", word)
        most = DISKSPD.get(match[1]) if match else None
        value = size(match[2], 1) if most is not None else None
        out.append(word if value is None or value <= most else f"-{match[1]}{most}{match[3]}")
    made = ["-c4M"] if not any(re.match(r"-c\d", word) for word in out) else []
    times = [option for option, short in (("-d1", "-d"), ("-W0", "-W")) if not any(re.match(short + r"\d", word) for word in out)]
    return made + times + out


def iozone(words):
    out, rest = ["--repeats", "1"], list(words)
    while rest:
        word = rest.pop(0)
        match = re.fullmatch(r"-([srngyq])(\d\w*)?", word)
        if not match:
            out.append(word)
            continue
        value = match[2] or rest.pop(0)
        count = size(value, KIB)
        most = IOZONE[match[1]]
        out += [f"-{match[1]}", value if count is None or count <= most else f"{most // KIB}k"]
    automatic = any(re.fullmatch(r"-[A-Za-z]*[aA][A-Za-z]*", word) for word in words)
    if automatic and not {"-s", "-g"} & set(out):
        out = ["-g", f"{IOZONE['g'] // KIB}k", *out]
    return out


def run(halfpower, entry):
    """Why a line is refused; None if it is accepted."""
    words = (diskspd if entry["tool"] == "diskspd" else iozone)(entry["words"])
    with tempfile.TemporaryDirectory(prefix="lines-") as directory:
        with open(f"{directory}/CLIENTS", "w", encoding="utf8") as file:
            file.write(f"localhost {directory} iozone\n" * 4)
        environment = {**os.environ, "HALFPOWER_HISTORY": "none"}
        try:
            done = subprocess.run([halfpower, entry["tool"], *words], cwd=directory, env=environment, capture_output=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return f"not finished after {TIMEOUT_S} s"
    return None if done.returncode == 0 else done.stderr.decode("utf8", "replace").strip().splitlines()[-1]


def lines(options):
    """Command lines from public repositories, shortened: a second, files of a few MiB, a few threads. The originals are not run: IOzone's
    licence forbids much of what Debian does to a program, and diskspd runs on Windows. Fails if fewer than 90 % are accepted."""
    entries = json.loads(options.lines.read_text(encoding="utf8"))
    entries = [entry for entry in entries if not options.only or options.only in f"{entry['tool']} {entry['source']}"]
    outcomes = [run(options.halfpower, entry) for entry in entries]
    counts, refused = [], []
    for tool in ("diskspd", "iozone"):
        of = [why for entry, why in zip(entries, outcomes) if entry["tool"] == tool]
        counts.append([tool, len(of), of.count(None), len(of) - of.count(None)])
    for entry, why in zip(entries, outcomes):
        if why:
            original = f" (the original {entry['original']})" if "original" in entry else ""
            refused.append([f"{entry['tool']} `{' '.join(entry['words'])}`", f"{why.removeprefix('halfpower: ').replace('|', '/')}{original}"])
    page = [
        "# Public command lines of diskspd and IOzone\n",
        "Made by `bench/peers.py lines`: shortened, and run by halfpower only.\n",
        *table(["tool", "lines", "accepted", "refused"], counts),
        "\n## Refused\n",
        *table(["line", "reason"], refused),
    ]
    print("\n".join(page))
    return page, outcomes.count(None) >= 0.9 * max(len(outcomes), 1)


def lines_summary(tables):
    return table(*tables[0][1:])
