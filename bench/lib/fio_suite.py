"""fio's own tests, with halfpower in fio's place."""

import pathlib
import re
import subprocess
import sys
import tempfile

from .machine import cpu_model, die
from .page import table

# t0032 has a job but no test.
JOB_TESTS = [number for number in range(1, 39) if number != 32]
# Test programs, and the option that names fio.
SCRIPTS = {
    "latency_percentiles": "-f",
    "random_seed": "-f",
    "readonly": "-f",
    "steadystate_tests": None,
    "strided": "--fio",
    "verify": "-f",
    "verify_state_save": "-f",
}
# A line for each case, as the scripts print it.
VERDICT = re.compile(r"^(?:Test (?P<id>\S+) (?P<is>PASSED|FAILED)|\*+Test (?P<id2>\d+) (?P<is2>PASSED|FAILED)\*+|(?P<is3>PASSED|FAILED) )(?P<more>.*)$", re.M)


def sentence(path):
    """halfpower's message in this file, without the line number."""
    lines = path.read_text(errors="replace").splitlines()
    return re.sub(r"^.*?(line \d+|command line): ", "", lines[0]) if lines else ""


def reason_of(directory):
    """The first message of a failed run in this directory."""
    return next((message for message in map(sentence, sorted(directory.glob("*.stderr"))) if message), "")


def run_jobs(options, directory, fio):
    """Runs the job tests; returns those that pass, and their number."""
    runner = options.source.resolve() / "t/run-fio-tests.py"
    command = [sys.executable, runner, "-r", options.source.resolve(), "-f", fio, "-a", directory / "artifacts", "-k", "-o"]
    done = subprocess.run([*command, *map(str, options.only or JOB_TESTS)], cwd=directory, capture_output=True, text=True)
    verdicts = re.findall(r"^Test (\d+) (PASSED|FAILED)(.*)$", done.stdout + done.stderr, re.M)
    if not verdicts:
        die(f"no test was run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    for number, verdict, more in sorted(verdicts, key=lambda one: int(one[0])):
        why = (reason_of(directory / "artifacts" / f"{int(number):04}") or more.strip(" :")) if verdict == "FAILED" else ""
        print(f"t{int(number):04} {verdict.lower()}  {why}"[:160])
    passed = sum(verdict == "PASSED" for _, verdict, _ in verdicts)
    print(f"{passed} of {len(verdicts)} pass")
    return passed, len(verdicts)


def run_script(options, name, directory, fio):
    """Runs one script; returns its passed cases and all its cases."""
    root = directory / name
    root.mkdir()
    flag = SCRIPTS[name]
    extra = [word for one in options.passed if one.startswith(f"{name}:") for word in one.split(":", 1)[1].split()]
    command = [sys.executable, options.source.resolve() / "t" / f"{name}.py", *([flag] if flag else []), fio, *extra]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    cases = list(VERDICT.finditer(done.stdout))
    if not cases:
        print(f"{name}: no case was run:\n{done.stdout[-2000:]}")
        return 0, 0
    passed = sum("PASSED" in (case["is"] or case["is2"] or case["is3"]) for case in cases)
    # The number of cases that each message keeps from passing.
    reasons = {}
    for path in root.rglob("*.stderr"):
        message = re.sub(r"\d+", "N", re.sub(r"'[^']*'|/\S+", "...", sentence(path)))
        if message:
            reasons[message] = reasons.get(message, 0) + 1
    print(f"{name}: {passed} of {len(cases)} pass")
    for message, count in sorted(reasons.items(), key=lambda one: -one[1])[: options.reasons]:
        print(f"    {count:4}  {message}"[:200])
    if options.cases:
        for case in cases:
            if "FAILED" in case[0]:
                print(f"      {case[0][:200]}")
    return passed, len(cases)


def fio_tests(options):
    """SOURCE is a checkout of fio's repository (github.com/axboe/fio). Its tests run unchanged, in a directory that is removed afterwards:
    the job tests t0001 to t0038 of t/run-fio-tests.py, and the programs t/NAME.py. They need Python's statsmodels and scipy.
    Laid out files stay, as with fio, because tests read files of earlier ones. The count is the result: the command succeeds if tests fail."""
    if not (options.source / "t/run-fio-tests.py").exists():
        die(f"{options.source}: not a checkout of fio (no t/run-fio-tests.py)")
    scripts = sorted(SCRIPTS) if options.scripts == [] or (options.scripts is None and not options.only) else options.scripts or []
    rows = []
    with tempfile.TemporaryDirectory(prefix="fio-tests-") as made:
        directory = pathlib.Path(made)
        # A program that is called like fio, with the options first.
        fio = directory / "fio"
        fio.write_text(f'#!/bin/sh\nHALFPOWER_HISTORY=none exec {options.halfpower} fio "$@"\n')
        fio.chmod(0o755)
        if options.scripts is None:
            rows.append(["job tests of t/run-fio-tests.py", *run_jobs(options, directory, fio)])
        rows += [[f"t/{name}.py", *run_script(options, name, directory, fio)] for name in scripts]
    version = subprocess.run(["git", "-C", options.source, "describe", "--tags"], capture_output=True, text=True).stdout.strip() or "unknown version"
    page = [
        "# fio's own tests with halfpower in fio's place\n",
        f"Made by `bench/peers.py fio-tests` on {cpu_model()}, with the tests of {version}. Tests that need more processors or other systems are skipped.\n",
        *table(["tests", "pass", "of"], rows),
    ]
    print("\n".join(page))
    return page, True


def fio_tests_summary(tables):
    return table(["tests", "pass", "of"], tables[0][2])


OPTIONS = {
    "source": {"type": pathlib.Path},
    "--only": {"nargs": "+", "type": int, "help": "only these job tests"},
    "--scripts": {"nargs": "*", "choices": sorted(SCRIPTS), "help": "only these scripts (none: all), and no job tests"},
    "--pass": {"dest": "passed", "action": "append", "default": [], "metavar": "NAME:ARGUMENTS", "help": "arguments for a script"},
    "--cases": {"action": "store_true", "help": "list the cases of a script that fail"},
    "--reasons": {"type": int, "default": 8, "help": "list this many messages of failed runs"},
}
