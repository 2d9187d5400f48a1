#!/usr/bin/env python3
"""What `halfpower record` costs the recorded program: fio reads with and without it, in turn.

    sudo bench/record_overhead.py [--halfpower target/release/halfpower] [--pairs 10]
    sudo bench/record_overhead.py --direct --directory /mnt/on-a-device

The second also counts what reaches a device: each read is a request there, with events of its own.
Prints the added time per request with its 95 % interval, and the share of the rate that this is for
a program with 100,000 requests per second.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

# Two-sided 95 % quantiles of Student's t for 1 to 20 degrees of freedom.
T = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23,
     2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09]


def seconds_per_request(fio, prefix):
    subprocess.run(prefix + fio, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    report = json.loads(pathlib.Path(fio[-1].split("=", 1)[1]).read_text())
    return 1 / report["jobs"][0]["read"]["iops"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--halfpower", default="target/release/halfpower")
    parser.add_argument("--pairs", type=int, default=10, choices=range(2, 22))
    parser.add_argument("--directory", default="/dev/shm")
    parser.add_argument("--direct", action="store_true", help="read with O_DIRECT")
    options = parser.parse_args()
    memory = tempfile.TemporaryDirectory(dir="/dev/shm")
    with tempfile.TemporaryDirectory(dir=options.directory) as here, memory as traces:
        fio = ["fio", "--name=j", f"--filename={here}/data", "--size=32m", "--bs=4k", "--rw=randread",
               "--ioengine=psync", f"--direct={int(options.direct)}", "--runtime=2", "--time_based",
               "--output-format=json",
               f"--output={here}/report"]
        record = [options.halfpower, "record", "--force", "-o", f"{traces}/t.hptrace", "--"]
        added = []
        for _ in range(options.pairs):
            without = seconds_per_request(fio, [])
            recorded = seconds_per_request(fio, record)
            added.append(recorded - without)
            print(f"{without * 1e9:8.0f} ns without, {recorded * 1e9:8.0f} ns with", flush=True)
    mean = statistics.mean(added)
    half = T[len(added) - 2] * statistics.stdev(added) / math.sqrt(len(added))
    print(f"added per request: {mean * 1e9:.0f} ns (± {half * 1e9:.0f} ns)")
    # A program with one request every 10 us.
    print(f"at 100,000 requests/s: {mean / 1e-5 * 100:.1f} % (± {half / 1e-5 * 100:.1f} %) of its rate")


if __name__ == "__main__":
    main()
