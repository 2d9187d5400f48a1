"""halfpower and fio: how they are run, and how their reports are read."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from .machine import die, output

# One run per command: the scripts repeat and interleave the runs themselves.
ONCE = ["--repeats", "1", "--max-repeats", "1", "--json"]


def measured(command):
    """Standard output of a command, its resource usage, and its maximum resident memory in bytes."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(command, stdout=out, stderr=err)
        resident = 0
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            # ru_maxrss would count this interpreter before exec.
            with contextlib.suppress(OSError), open(f"/proc/{child.pid}/status") as page:
                found = re.search(r"VmHWM:\s+(\d+)", page.read())
                resident = int(found.group(1)) * 1024 if found else resident
            time.sleep(0.1)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        if child.returncode:
            die(f"{' '.join(command)} failed: {err.read().decode()}")
        return out.read().decode(), usage, resident


def fio_job(text):
    """The first job of fio's JSON report; fio may print warnings before it."""
    return json.loads(text[text.index("{") :])["jobs"][0]


def points(text, command):
    """The points of a halfpower report. A failed point ends the script."""
    found = json.loads(text)["points"]
    for point in found:
        if "error" in point:
            die(f"{' '.join(map(str, command))}: {point['error']}")
    return found


def point(*command):
    """The point that one `halfpower run` measures."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        die(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return points(done.stdout, command)[0]


def by_perf(command):
    done = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", *command], check=True, capture_output=True, text=True)
    return int(next(line for line in done.stderr.splitlines() if "instructions" in line).split(",")[0])


def by_callgrind(command):
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    while True:
        done = subprocess.run(valgrind, check=True, capture_output=True, text=True)
        # The count includes a run that the program left out; the number of requests does not.
        if not re.search(r"left out|was stopped for|in each of \d+ before", done.stdout):
            return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def instruction_counter():
    """A function that counts a command's user instructions, and the counter's name."""
    if shutil.which("perf"):
        tried = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True)
        if re.match(r"\d", tried.stderr):
            return by_perf, "perf stat"
    if shutil.which("valgrind"):
        return by_callgrind, "callgrind (this machine's perf has no instruction counter)"
    return None, "not counted: neither perf's counters nor valgrind are available"


def fio_version():
    return output("fio", "--version")
