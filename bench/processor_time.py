#!/usr/bin/env python3
"""Whether halfpower's processor time is the kernel's: a run's own beside what perf counts of the whole process.

    cargo build --release && bench/processor_time.py

Needs perf (Debian: linux-perf). Exit code 1 where the two differ by more than the start of the process explains.
"""

import json
import os
import subprocess
import sys
import tempfile

# What is measured to compare programs is no part of the history of who runs this.
os.environ["HALFPOWER_HISTORY"] = "none"

HALFPOWER = "target/release/halfpower"
RUN = "--size 64m --buffered --request 64k --runtime 3 --repeats 1 --max-repeats 1 --json"


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        command = ["perf", "stat", "-x,", "-e", "task-clock", HALFPOWER, "run", directory, *RUN.split()]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    point = json.loads(done.stdout)["points"][0]
    requests, times = point["achieved"]["requests"], point["cpu_ns_per_request"]
    counted = float(next(line for line in done.stderr.splitlines() if "task-clock" in line).split(",")[0])
    own = (times["user"] + times["system"]) * requests / 1e6
    machine = times["machine"] * requests / 1e6
    print(f"perf counts {counted:.0f} ms of the process; the run says {own:.0f} ms, and {machine:.0f} ms of the whole machine")
    # The whole process makes the file, reads facts and measures the ceiling beside three seconds of requests.
    sys.exit(0 if counted * 0.93 <= own <= counted * 1.01 and machine >= own * 0.95 else 1)


if __name__ == "__main__":
    main()
