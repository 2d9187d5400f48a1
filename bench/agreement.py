#!/usr/bin/env python3
"""halfpower's figures beside fio's on devices whose limits are known: rates and latency percentiles of some two dozen workloads.

    bench/agreement.py [--rounds 3] [--seconds 2] [--halfpower target/release/halfpower] [--output docs/agreement.md]

Needs root (for a throttled loop device), fio, and blkio control groups. Each workload is run by both programs in turn, round after round; the medians
are compared. They agree where the rates are within 3 % and p50, p99 and p99.9 within 5 %, or within two of fio's histogram
buckets (1/64 of a power of two each). Exits 1 where a workload disagrees.
"""

import argparse
import atexit
import json
import os
import shutil
import statistics
import sys
import tempfile

from driver import MIB, clean_up_when_told_to_end, die, machine, output

SIZE = 512 * MIB
LIMITS = {"read_bps": 80_000_000, "write_bps": 40_000_000, "read_iops": 8000, "write_iops": 4000}
BLKIO = "/sys/fs/cgroup/blkio"

# op, pattern, request, depth, engine, buffering
WORKLOADS = [
    ("read", "seq", "512", 1, "sync", "direct"),
    ("read", "seq", "4k", 1, "sync", "direct"),
    ("read", "seq", "16k", 4, "libaio", "direct"),
    ("read", "seq", "64k", 8, "io_uring", "direct"),
    ("read", "seq", "1m", 4, "io_uring", "direct"),
    ("read", "seq", "4m", 1, "sync", "direct"),
    ("read", "random", "512", 16, "io_uring", "direct"),
    ("read", "random", "4k", 1, "sync", "direct"),
    ("read", "random", "4k", 8, "libaio", "direct"),
    ("read", "random", "4k", 32, "io_uring", "direct"),
    ("read", "random", "4k", 128, "io_uring", "direct"),
    ("read", "random", "8k", 128, "libaio", "direct"),
    ("read", "random", "64k", 16, "io_uring", "direct"),
    ("read", "zipf:1.1", "4k", 1, "sync", "direct"),
    ("read", "zipf:1.1", "4k", 16, "io_uring", "direct"),
    ("read", "seq", "64k", 1, "sync", "buffered"),
    ("read", "seq", "64k", 1, "mmap", "buffered"),
    ("write", "seq", "4k", 1, "sync", "direct"),
    ("write", "seq", "64k", 8, "libaio", "direct"),
    ("write", "seq", "1m", 2, "io_uring", "direct"),
    ("write", "random", "4k", 32, "io_uring", "direct"),
    ("write", "random", "8k", 16, "libaio", "direct"),
    ("write", "random", "4k", 1, "sync", "direct_dsync"),
    ("write", "seq", "64k", 1, "sync", "direct_dsync"),
    ("write", "random", "4k", 1, "sync", "buffered_dsync"),
    ("write", "zipf:1.1", "4k", 16, "libaio", "direct"),
    ("mix", "random", "4k", 32, "io_uring", "direct"),
    ("mix", "random", "16k", 8, "libaio", "direct"),
    ("mix", "seq", "4k", 1, "sync", "direct"),
]


def ours(options, device, workload):
    op, pattern, request, depth, engine, buffering = workload
    words = [options.halfpower, "run", device, "--destroy-data", device, "--op", op, "--pattern", pattern, "--request", request]
    words += ["--depth", str(depth), "--engine", engine, "--seconds", str(options.seconds), "--repeats", "1", "--most-repeats", "1", "--json"]
    words += ["--buffered" if "buffered" in buffering else "--direct"] + (["--dsync"] if "dsync" in buffering else [])
    words += ["--cache", "cold"] if buffering == "buffered" else []
    point = json.loads(output(*words))["points"][0]
    if "error" in point:
        die(f"{' '.join(words)}: {point['error']}")
    latency = point["latency_ns"]
    return point["iops"], latency["p50"], latency["p99"], latency["p999"]


def theirs(options, device, workload):
    op, pattern, request, depth, engine, buffering = workload
    words = ["fio", "--name=x", f"--filename={device}", f"--size={SIZE}", f"--bs={request}", f"--iodepth={depth}", "--thread"]
    words += [f"--ioengine={'psync' if engine == 'sync' else engine}", f"--runtime={options.seconds}", "--output-format=json"]
    way = {"read": "read", "write": "write", "mix": "rw"}[op]
    words += [f"--rw={way}" if pattern == "seq" else f"--rw=rand{way}", "--norandommap", "--rwmixread=70"]
    words += [f"--random_distribution={pattern}"] if pattern.startswith("zipf") else []
    words += ["--direct=0" if "buffered" in buffering else "--direct=1"] + (["--sync=dsync"] if "dsync" in buffering else [])
    # A cold cache is cold for one pass.
    words += [] if buffering == "buffered" else ["--time_based"]
    words += ["--lat_percentiles=1", "--clat_percentiles=0", "--percentile_list=50:99:99.9", "--unified_rw_reporting=1"]
    text = output(*words)
    job = json.loads(text[text.index("{") :])["jobs"][0]["mixed"]
    at = job["lat_ns"]["percentile"]
    return job["iops"], at["50.000000"], at["99.000000"], at["99.900000"]


def throttle(device):
    """Sets the limits for this process's control group until the end."""
    group = next((line.split(":", 2)[2].strip() for line in open("/proc/self/cgroup") if ":blkio:" in line), None)
    if group is None:
        die("the kernel has no blkio control groups of version 1")
    number = open(f"/sys/class/block/{os.path.basename(device)}/dev").read().strip()
    for name, limit in LIMITS.items():
        file = f"{BLKIO}{group.rstrip('/')}/blkio.throttle.{name}_device"

        def put(value, file=file):
            with open(file, "w") as limits:
                limits.write(f"{number} {value}")

        put(limit)
        atexit.register(put, 0)


def place(options):
    directory = tempfile.mkdtemp(prefix="halfpower-bench-", dir="/dev/shm")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    file = os.path.join(directory, "data")
    with open(file, "wb") as data:
        for _ in range(SIZE // MIB):
            data.write(os.urandom(MIB))
    device = output("losetup", "--find", "--show", file).strip()
    atexit.register(os.system, f"losetup --detach {device}")
    throttle(device)
    return device


def agreement(a, b):
    """Whether two lists of rate, p50, p99 and p99.9 agree, and their ratios."""
    ratios = [x / y for x, y in zip(a, b)]
    bucket = 2 / 64
    good = abs(ratios[0] - 1) <= 0.03 and all(abs(ratio - 1) <= max(0.05, bucket) for ratio in ratios[1:])
    return good, ratios


def main():
    clean_up_when_told_to_end()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--halfpower", default="target/release/halfpower")
    parser.add_argument("--output", default="docs/agreement.md")
    options = parser.parse_args()
    device = place(options)
    limits = ", ".join(f"{name} {limit}" for name, limit in LIMITS.items())
    lines = [
        "# halfpower's figures beside fio's\n",
        f"Machine: {machine()}. {output('fio', '--version').strip()}. A loop device in memory under blkio throttles: {limits}.",
        f"{options.rounds} rounds of {options.seconds} s, the programs in turn; medians. Made by `bench/agreement.py`.\n",
        "| workload | requests/s | fio | ratio | p50 ratio | p99 ratio | p99.9 ratio | |\n|---|---|---|---|---|---|---|---|",
    ]
    agreeing = 0
    for number, workload in enumerate(WORKLOADS):
        pairs = []
        for round in range(options.rounds):
            name = " ".join(map(str, workload))
            print(f"\r{number + 1} of {len(WORKLOADS)}: {name}, round {round + 1}\033[K", end="", file=sys.stderr, flush=True)
            programs = (ours, theirs) if round % 2 == 0 else (theirs, ours)
            pairs.append({program: program(options, device, workload) for program in programs})
        a, b = ([statistics.median(pair[program][i] for pair in pairs) for i in range(4)] for program in (ours, theirs))
        good, ratios = agreement(a, b)
        agreeing += good
        cells = " | ".join(f"{ratio:.3f}" for ratio in ratios)
        lines.append(f"| {name} | {a[0]:,.0f} | {b[0]:,.0f} | {cells} | {'' if good else 'disagrees'} |")
        print(f"\r\033[K{lines[-1]}", flush=True)
    lines.append(f"\n{agreeing} of {len(WORKLOADS)} agree: rates within 3 %, percentiles within 5 %.\n")
    with open(options.output, "w") as page:
        page.write("\n".join(lines))
    print(lines[-1].strip())
    sys.exit(agreeing != len(WORKLOADS))


if __name__ == "__main__":
    main()
