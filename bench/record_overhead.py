#!/usr/bin/env python3
"""What `halfpower record` costs the recorded program: fio reads with and without it, in turn.

    sudo bench/record_overhead.py [--halfpower target/release/halfpower] [--pairs 10]
    sudo bench/record_overhead.py --direct --directory /mnt/on-a-device
    sudo bench/record_overhead.py --others

The second also counts what reaches a device: each read is a request there, with events of its own.
The third compares with the kernel's two trace points of each read alone, which nobody reads, and with
`perf record` of the same two. Prints the added time per request with its 95 % interval, and the share
of the rate that this is for a program with 100,000 requests per second.
"""

import argparse
import contextlib
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

# Two-sided 95 % quantiles of Student's t for 1 to 20 degrees of freedom.
T = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23,
     2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09]


TRACEFS = pathlib.Path("/sys/kernel/tracing/instances")
EVENTS = [f"syscalls/sys_{part}_pread64" for part in ("enter", "exit")]


@contextlib.contextmanager
def trace_points():
    """Enables the events of all programs in a buffer that nobody reads."""
    instance = TRACEFS / "record-overhead"
    instance.mkdir()
    try:
        (instance / "trace_clock").write_text("x86-tsc" if "tsc" in (instance / "trace_clock").read_text() else "mono")
        (instance / "buffer_size_kb").write_text("16384")
        for event in EVENTS:
            (instance / "events" / event / "enable").write_text("1")
        yield
    finally:
        (instance / "events/enable").write_text("0")
        instance.rmdir()


def seconds_per_request(fio, prefix):
    subprocess.run(prefix + fio, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    report = json.loads(pathlib.Path(fio[-1].split("=", 1)[1]).read_text())
    return 1 / report["jobs"][0]["read"]["iops"]


def show(name, added):
    mean = statistics.mean(added)
    half = T[len(added) - 2] * statistics.stdev(added) / math.sqrt(len(added))
    # A program with one request every 10 us.
    share, share_half = (part / 1e-5 * 100 for part in (mean, half))
    print(f"{name}: {mean * 1e9:.0f} ns (± {half * 1e9:.0f} ns) per request, {share:.1f} % (± {share_half:.1f} %) at 100,000 requests/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--halfpower", default="target/release/halfpower")
    parser.add_argument("--pairs", type=int, default=10, choices=range(2, 22))
    parser.add_argument("--directory", default="/dev/shm")
    parser.add_argument("--direct", action="store_true", help="read with O_DIRECT")
    parser.add_argument("--others", action="store_true", help="also the trace points alone, and perf record")
    options = parser.parse_args()
    memory = tempfile.TemporaryDirectory(dir="/dev/shm")
    with tempfile.TemporaryDirectory(dir=options.directory) as here, memory as traces:
        fio = ["fio", "--name=j", f"--filename={here}/data", "--size=32m", "--bs=4k", "--rw=randread",
               "--ioengine=psync", f"--direct={int(options.direct)}", "--runtime=2", "--time_based",
               "--output-format=json", f"--output={here}/report"]
        record = [options.halfpower, "record", "--force", "-o", f"{traces}/t.hptrace", "--"]
        arms = {"halfpower record": (contextlib.nullcontext, record)}
        if options.others:
            events = ",".join(event.replace("/", ":") for event in EVENTS)
            arms["the trace points alone"] = (trace_points, [])
            arms["perf record"] = (contextlib.nullcontext, ["perf", "record", "-q", "-e", events, "-o", f"{traces}/perf", "--"])
        added = {name: [] for name in arms}
        for _ in range(options.pairs):
            without = seconds_per_request(fio, [])
            line = f"{without * 1e9:8.0f} ns without"
            for name, (while_, prefix) in arms.items():
                with while_():
                    recorded = seconds_per_request(fio, prefix)
                added[name].append(recorded - without)
                line += f", {recorded * 1e9:8.0f} ns with {name}"
            print(line, flush=True)
    for name, times in added.items():
        show(name, times)


if __name__ == "__main__":
    main()
