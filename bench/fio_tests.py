#!/usr/bin/env python3
"""fio's own job tests, with halfpower in fio's place.

    bench/fio_tests.py SOURCE [--halfpower target/release/halfpower] [--only 1 2 3]

SOURCE is a checkout of fio's repository (github.com/axboe/fio), whose t/run-fio-tests.py is run as it is: its job tests t0001 to t0038, each with
its own checks, in a directory that is removed afterwards. Needs Python's statsmodels. Prints each test, and for those that fail halfpower's own
sentence.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# The scripts, which have numbers from 1000, are programs of their own.
JOB_TESTS = [number for number in range(1, 39) if number != 32]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--halfpower", default="target/release/halfpower", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", type=int, default=sorted(JOB_TESTS))
    arguments = parser.parse_args()
    runner = arguments.source / "t/run-fio-tests.py"
    for path in (runner, arguments.halfpower):
        if not path.exists():
            sys.exit(f"fio_tests.py: {path} is not there")
    with tempfile.TemporaryDirectory(prefix="fio-tests-") as directory:
        place = pathlib.Path(directory)
        # fio without a word before its options.
        fio = place / "fio"
        fio.write_text(f'#!/bin/sh\nHALFPOWER_HISTORY=none exec {arguments.halfpower.resolve()} fio "$@"\n')
        fio.chmod(0o755)
        command = [sys.executable, runner.resolve(), "-r", arguments.source.resolve(), "-f", fio, "-a", place / "artifacts", "-k", "-o"]
        done = subprocess.run([*command, *map(str, arguments.only)], cwd=place, capture_output=True, text=True)
        verdicts = re.findall(r"^Test (\d+) (PASSED|FAILED)(.*)$", done.stdout + done.stderr, re.M)
        if not verdicts:
            sys.exit(f"fio_tests.py: no test was run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        for number, verdict, more in sorted(verdicts, key=lambda one: int(one[0])):
            why = ""
            if verdict == "FAILED":
                said = [line for path in sorted((place / "artifacts" / f"{int(number):04}").glob("*.stderr")) for line in path.read_text().splitlines()]
                why = re.sub(r"^.*?line \d+: ", "", said[0]) if said else more.strip(" :")
            print(f"t{int(number):04} {verdict.lower()}  {why}"[:160])
        passed = sum(verdict == "PASSED" for _, verdict, _ in verdicts)
        print(f"{passed} of {len(verdicts)} pass")


if __name__ == "__main__":
    main()
