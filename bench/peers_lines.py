#!/usr/bin/env python3
"""Public command lines of diskspd and IOzone, run by halfpower: which are taken, and why the others are refused.

    bench/peers_lines.py [--halfpower target/release/halfpower] [--lines bench/peers/lines.json] [--only TEXT]

lines.json holds options alone, by repository and path (or the number of a stored file), and what the original does with a line that is a slip. Each is shortened: a second, files of a few MiB, a few
threads. The originals are not run: IOzone's licence forbids much that Debian does to a program, and diskspd is Windows'. Prints the section
that bench/peers.py adds to docs/peers.md; exits 1 where fewer than 90 % are taken.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

KIB, MIB = 1 << 10, 1 << 20
TIMEOUT_S = 60
# The largest value of each option; sizes in bytes, and of IOzone in KiB where they have no unit.
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
    """Why a line is not taken; None: it is."""
    words = (diskspd if entry["tool"] == "diskspd" else iozone)(entry["words"])
    with tempfile.TemporaryDirectory(prefix="lines-") as directory:
        with open(f"{directory}/CLIENTS", "w", encoding="utf8") as file:
            file.write(f"localhost {directory} iozone\n" * 4)
        environment = {**os.environ, "HALFPOWER_HISTORY": "none"}
        try:
            done = subprocess.run([halfpower, entry["tool"], *words], cwd=directory, env=environment, capture_output=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return f"not done in {TIMEOUT_S} s"
    return None if done.returncode == 0 else done.stderr.decode("utf8", "replace").strip().splitlines()[-1]


def section(halfpower, entries):
    """The section of the page, and the share of lines that are taken."""
    outcomes = [run(halfpower, entry) for entry in entries]
    lines = ["## Public command lines of diskspd and IOzone", "", "Shortened and run by halfpower alone (`bench/peers_lines.py`).", ""]
    lines += ["| tool | lines | taken | refused |", "|---|---|---|---|"]
    for tool in ("diskspd", "iozone"):
        of = [why for entry, why in zip(entries, outcomes) if entry["tool"] == tool]
        lines.append(f"| {tool} | {len(of)} | {of.count(None)} | {len(of) - of.count(None)} |")
    lines += ["", "| line | refused because |", "|---|---|"]
    for entry, why in zip(entries, outcomes):
        if why:
            original = f" (the original {entry['original']})" if "original" in entry else ""
            lines.append(f"| {entry['tool']} `{' '.join(entry['words'])}` | {why.removeprefix('halfpower: ').replace('|', '/')}{original} |")
    return "\n".join(lines) + "\n", outcomes.count(None) / max(len(outcomes), 1)


def read(path, only=None):
    with open(path, encoding="utf8") as file:
        entries = json.load(file)
    return [entry for entry in entries if not only or only in entry["tool"] + " " + entry["source"]]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--halfpower", default="target/release/halfpower")
    parser.add_argument("--lines", default=f"{here}/peers/lines.json")
    parser.add_argument("--only", help="those whose tool or source holds this")
    arguments = parser.parse_args()
    halfpower = os.path.abspath(arguments.halfpower)
    if not os.access(halfpower, os.X_OK):
        sys.exit(f"peers_lines.py: {halfpower} is not there: build it, or name it with --halfpower")
    text, taken = section(halfpower, read(arguments.lines, arguments.only))
    print(text)
    sys.exit(0 if taken >= 0.9 else 1)


if __name__ == "__main__":
    main()
