#!/usr/bin/env python3
"""fio's own tests, with halfpower in fio's place.

    bench/fio_tests.py SOURCE [--halfpower target/release/halfpower] [--only 1 2 3]
    bench/fio_tests.py SOURCE --scripts [NAME ...] [--pass "verify:--csum md5"]

SOURCE is a checkout of fio's repository (github.com/axboe/fio), whose tests are run as they are, in a directory that is removed afterwards. Without
--scripts: t/run-fio-tests.py with its job tests t0001 to t0038. With it: the programs t/NAME.py, all that are listed below where no NAME is given, and
how many of their cases pass. Needs Python's statsmodels and scipy (run it with the Python that has them). As with fio, files that are laid out stay
(--keep): tests read what an earlier one wrote. Prints each test, and for those that fail halfpower's own sentence.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# t0032 has a job but no test.
JOB_TESTS = [number for number in range(1, 39) if number != 32]
# Programs of their own, and how each is told where fio is.
SCRIPTS = {
    "latency_percentiles": "-f",
    "random_seed": "-f",
    "readonly": "-f",
    "steadystate_tests": None,
    "strided": "--fio",
    "verify": "-f",
    "verify_state_save": "-f",
}
# A line for each case, in the words of the script.
VERDICT = re.compile(r"^(?:Test (?P<id>\S+) (?P<is>PASSED|FAILED)|\*+Test (?P<id2>\d+) (?P<is2>PASSED|FAILED)\*+|(?P<is3>PASSED|FAILED) )(?P<more>.*)$", re.M)


def sentence(path):
    """What halfpower said in this file, without the place."""
    lines = path.read_text(errors="replace").splitlines()
    return re.sub(r"^.*?(line \d+|command line): ", "", lines[0]) if lines else ""


def reason_of(directory):
    """The first sentence of a run that failed here."""
    return next((said for said in map(sentence, sorted(directory.glob("*.stderr"))) if said), "")


def run_jobs(arguments, place, fio):
    runner = arguments.source.resolve() / "t/run-fio-tests.py"
    command = [sys.executable, runner, "-r", arguments.source.resolve(), "-f", fio, "-a", place / "artifacts", "-k", "-o"]
    done = subprocess.run([*command, *map(str, arguments.only)], cwd=place, capture_output=True, text=True)
    verdicts = re.findall(r"^Test (\d+) (PASSED|FAILED)(.*)$", done.stdout + done.stderr, re.M)
    if not verdicts:
        sys.exit(f"fio_tests.py: no test was run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    for number, verdict, more in sorted(verdicts, key=lambda one: int(one[0])):
        why = (reason_of(place / "artifacts" / f"{int(number):04}") or more.strip(" :")) if verdict == "FAILED" else ""
        print(f"t{int(number):04} {verdict.lower()}  {why}"[:160])
    print(f"{sum(verdict == 'PASSED' for _, verdict, _ in verdicts)} of {len(verdicts)} pass")


def run_script(arguments, name, place, fio):
    """Runs one script; its passed and all of its cases."""
    root = place / name
    root.mkdir()
    flag = SCRIPTS[name]
    extra = [word for told in arguments.passed if told.startswith(f"{name}:") for word in told.split(":", 1)[1].split()]
    command = [sys.executable, arguments.source.resolve() / "t" / f"{name}.py", *([flag] if flag else []), fio, *extra]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    cases = list(VERDICT.finditer(done.stdout))
    if not cases:
        print(f"{name}: no case was run:\n{done.stdout[-2000:]}")
        return 0, 0
    passed = sum("PASSED" in (case["is"] or case["is2"] or case["is3"]) for case in cases)
    # Which sentences keep how many cases from passing.
    reasons = {}
    for path in root.rglob("*.stderr"):
        said = re.sub(r"\d+", "N", re.sub(r"'[^']*'|/\S+", "...", sentence(path)))
        if said:
            reasons[said] = reasons.get(said, 0) + 1
    print(f"{name}: {passed} of {len(cases)} pass")
    for said, count in sorted(reasons.items(), key=lambda one: -one[1])[: arguments.reasons]:
        print(f"    {count:4}  {said}"[:200])
    if arguments.cases:
        for case in cases:
            if "FAILED" in case[0]:
                print(f"      {case[0][:200]}")
    return passed, len(cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--halfpower", default="target/release/halfpower", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", type=int, default=sorted(JOB_TESTS), help="these job tests")
    parser.add_argument("--scripts", nargs="*", choices=sorted(SCRIPTS), help="these scripts (none: all) in place of the job tests")
    parser.add_argument("--pass", dest="passed", action="append", default=[], metavar="NAME:ARGUMENTS", help="arguments for a script of its own")
    parser.add_argument("--cases", action="store_true", help="list the cases of a script that fail")
    parser.add_argument("--reasons", type=int, default=8, help="list so many sentences of runs that said something")
    arguments = parser.parse_args()
    for path in (arguments.source / "t/run-fio-tests.py", arguments.halfpower):
        if not path.exists():
            sys.exit(f"fio_tests.py: {path} is not there")
    with tempfile.TemporaryDirectory(prefix="fio-tests-") as directory:
        place = pathlib.Path(directory)
        # fio without a word before its options.
        fio = place / "fio"
        fio.write_text(f'#!/bin/sh\nHALFPOWER_HISTORY=none exec {arguments.halfpower.resolve()} fio --keep "$@"\n')
        fio.chmod(0o755)
        if arguments.scripts is None:
            run_jobs(arguments, place, fio)
            return
        sums = [run_script(arguments, name, place, fio) for name in arguments.scripts or sorted(SCRIPTS)]
        passed, cases = map(sum, zip(*sums))
        print(f"scripts: {passed} of {cases} cases pass ({100 * passed / max(cases, 1):.0f} %)")


if __name__ == "__main__":
    main()
