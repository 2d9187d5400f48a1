#!/usr/bin/env python3
"""halfpower's figures beside fio's on devices whose limits are known: rates and latency percentiles of some two dozen workloads.

    bench/agreement.py [--rounds 3] [--seconds 10] [--halfpower target/release/halfpower] [--output docs/agreement.md]

Needs root (for throttled loop devices), fio, and blkio control groups. The kernel throttles in slices of 100 ms; each workload has a device
that lets as many requests pass in a slice as it keeps outstanding (of large requests nearly as many bytes), so that every request waits for a slice:
a looser limit would let some pass at once, and the percentiles would tell where those lie and not how long requests take. Devices so slow do not
disturb one another, so several workloads run side by side: all by one program, then all by the other, round after round. The medians of the rounds
agree where the rates are within 3 % and p50, p99 and p99.9 within 5 %. Exits 1 where a workload disagrees.
"""

import argparse
import atexit
import concurrent.futures
import json
import os
import shutil
import statistics
import sys
import tempfile

from driver import MIB, clean_up_when_told_to_end, die, machine, output

# What is measured to compare programs is no part of the history of who runs this.
os.environ["HALFPOWER_HISTORY"] = "none"

SIZE = 512 * MIB
DEVICES = 8
SLICES_PER_S = 10
# From here on requests are limited by bytes: the kernel may cut them into several.
LARGE = MIB
# Of exactly the bytes of a slice now one request passes and now two, by how the kernel rounds.
LESS = 0.9
HUGE_PAGES = 64
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
    ("read", "random", "4k", 1, "sync", "buffered"),
    ("read", "random", "4k", 1, "mmap", "buffered"),
    ("write", "seq", "4k", 1, "sync", "direct"),
    ("write", "seq", "64k", 8, "libaio", "direct"),
    ("write", "seq", "1m", 2, "io_uring", "direct"),
    ("write", "random", "4k", 32, "io_uring", "direct"),
    ("write", "random", "8k", 16, "libaio", "direct"),
    ("write", "random", "4k", 1, "sync", "direct_dsync"),
    ("write", "seq", "64k", 1, "sync", "direct_dsync"),
    ("write", "random", "4k", 1, "sync", "buffered_dsync"),
    ("write", "zipf:1.1", "4k", 16, "libaio", "direct"),
    ("mix", "random", "4k", 128, "io_uring", "direct"),
    ("mix", "random", "16k", 64, "libaio", "direct"),
    ("mix", "seq", "4k", 64, "libaio", "direct"),
]


def bytes_of(request):
    return int(request.rstrip("km")) * {"k": 1024, "m": MIB}.get(request[-1], 1)


def ours(options, device, workload):
    op, pattern, request, depth, engine, buffering = workload
    words = [options.halfpower, "run", device, "--destroy-data", device, "--op", op, "--pattern", pattern, "--request", request]
    words += ["--depth", str(depth), "--engine", engine, "--runtime", str(options.seconds), "--repeats", "1", "--max-repeats", "1", "--json"]
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
    words += ["--time_based"]
    # Of scattered pages the kernel makes several requests, and its throttle counts some of them twice.
    words += ["--iomem=mmaphuge"] if bytes_of(request) >= LARGE else []
    words += ["--lat_percentiles=1", "--clat_percentiles=0", "--percentile_list=50:99:99.9", "--unified_rw_reporting=1"]
    text = output(*words)
    job = json.loads(text[text.index("{") :])["jobs"][0]["mixed"]
    at = job["lat_ns"]["percentile"]
    return job["iops"], at["50.000000"], at["99.000000"], at["99.900000"]


def limits(workload):
    """What lets the workload's outstanding requests pass in a slice. A mix is held up by its reads."""
    op, _, request, depth, _, _ = workload
    size = bytes_of(request)
    side, large = ("write" if op == "write" else "read"), size >= LARGE
    return {f"{side}_bps": int(LESS * depth * size * SLICES_PER_S)} if large else {f"{side}_iops": depth * SLICES_PER_S}


def throttle(device, wanted):
    """Sets the limits of a device for this process's control group; those not named are lifted."""
    group = next((line.split(":", 2)[2].strip() for line in open("/proc/self/cgroup") if ":blkio:" in line), None)
    if group is None:
        die("the kernel has no blkio control groups of version 1")
    number = open(f"/sys/class/block/{os.path.basename(device)}/dev").read().strip()
    for name in ("read_bps", "write_bps", "read_iops", "write_iops"):
        with open(f"{BLKIO}{group.rstrip('/')}/blkio.throttle.{name}_device", "w") as file:
            file.write(f"{number} {wanted.get(name, 0)}")


def huge_pages():
    """Sets some aside for fio's buffers, until the end."""
    file = "/proc/sys/vm/nr_hugepages"

    def put(count):
        with open(file, "w") as pages:
            pages.write(str(count))

    before = int(open(file).read())
    atexit.register(put, before)
    put(before + HUGE_PAGES)


def places():
    """Loop devices over one file in memory: what lies on them is read by nobody."""
    directory = tempfile.mkdtemp(prefix="halfpower-bench-", dir="/dev/shm")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    file = os.path.join(directory, "data")
    with open(file, "wb") as data:
        for _ in range(SIZE // MIB):
            data.write(os.urandom(MIB))
    devices = []
    for _ in range(DEVICES):
        device = output("losetup", "--find", "--show", file).strip()
        atexit.register(os.system, f"losetup --detach {device}")
        atexit.register(throttle, device, {})
        # A fault or a read is to ask for what it needs alone.
        with open(f"/sys/class/block/{os.path.basename(device)}/queue/read_ahead_kb", "w") as ahead:
            ahead.write("0")
        devices.append(device)
    return devices


def agreement(a, b):
    """Whether two lists of rate, p50, p99 and p99.9 agree, and their ratios."""
    ratios = [x / y for x, y in zip(a, b)]
    return abs(ratios[0] - 1) <= 0.03 and all(abs(ratio - 1) <= 0.05 for ratio in ratios[1:]), ratios


def together(options, devices, workloads):
    """Runs workloads side by side, both programs in turn; for each its rounds' pairs."""
    for device, workload in zip(devices, workloads):
        throttle(device, limits(workload))
    pairs = [[] for _ in workloads]
    with concurrent.futures.ThreadPoolExecutor(len(workloads)) as pool:
        for round in range(options.rounds):
            results = {}
            for program in (ours, theirs) if round % 2 == 0 else (theirs, ours):
                print(f"\r{workloads[0]} and {len(workloads) - 1} more, round {round + 1}\033[K", end="", file=sys.stderr, flush=True)
                results[program] = list(pool.map(program, [options] * len(workloads), devices, workloads))
            for index, of_one in enumerate(pairs):
                of_one.append({program: found[index] for program, found in results.items()})
    print("\r\033[K", end="", file=sys.stderr)
    return pairs


def main():
    clean_up_when_told_to_end()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--halfpower", default="target/release/halfpower")
    parser.add_argument("--output", default="docs/agreement.md")
    options = parser.parse_args()
    devices = places()
    huge_pages()
    lines = [
        "# halfpower's figures beside fio's\n",
        f"Machine: {machine()}. {output('fio', '--version').strip()}. Loop devices in memory under blkio throttles that let a workload's outstanding",
        f"requests pass every 100 ms. {options.rounds} rounds of {options.seconds} s, the programs in turn; medians. Made by `bench/agreement.py`.\n",
        "| workload | limit | requests/s | fio | ratio | p50 | fio | ratio | p99 ratio | p99.9 ratio | |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    agreeing = 0
    for first in range(0, len(WORKLOADS), len(devices)):
        workloads = WORKLOADS[first : first + len(devices)]
        for workload, pairs in zip(workloads, together(options, devices, workloads)):
            a, b = ([statistics.median(pair[program][i] for pair in pairs) for i in range(4)] for program in (ours, theirs))
            good, ratios = agreement(a, b)
            agreeing += good
            limit = " ".join(f"{name} {value:,}" for name, value in limits(workload).items())
            cells = [" ".join(map(str, workload)), limit, f"{a[0]:,.1f}", f"{b[0]:,.1f}", f"{ratios[0]:.3f}"]
            cells += [f"{a[1] / 1e6:.1f} ms", f"{b[1] / 1e6:.1f} ms", *(f"{ratio:.3f}" for ratio in ratios[1:]), "" if good else "disagrees"]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    lines.append(f"\n{agreeing} of {len(WORKLOADS)} agree: rates within 3 %, percentiles within 5 %.\n")
    with open(options.output, "w") as page:
        page.write("\n".join(lines))
    print(lines[-1].strip())
    sys.exit(agreeing != len(WORKLOADS))


if __name__ == "__main__":
    main()
