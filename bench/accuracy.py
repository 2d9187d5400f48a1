#!/usr/bin/env python3
"""Whether halfpower measures the same as fio, on devices whose limits are known.

    bench/accuracy.py agreement     rates and latency percentiles of some 30 workloads
    bench/accuracy.py same-job      one fio command line by fio and by `halfpower fio`, on devices of known rate
    bench/accuracy.py sessions      fio jobs as processes and as threads on a busy machine
    bench/accuracy.py page          make the tables of docs/accuracy.md again from bench/results

Needs root (for throttled loop devices), fio, and blkio control groups of version 1. Several workloads run side by side, each on its own
device: all by one program, then all by the other, round after round. Exits 1 if a result differs by more than allowed.
"""

import concurrent.futures
import contextlib
import os
import statistics

from lib import places
from lib.machine import MIB, machine, need, output
from lib.page import row, table
from lib.programs import ONCE, fio_job, fio_version, point
from lib.runner import Measurement, interleave, main
from lib.sessions import sessions, sessions_summary
from lib.stats import median_interval, ratios

SIZE_MIB = 512
DEVICES = 8


@contextlib.contextmanager
def devices(count=DEVICES):
    """Loop devices over sparse files in memory, whose content does not matter, without read-ahead."""
    need("fio", root=True)
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(places.directory())
        found = []
        for number in range(count):
            # halfpower refuses devices that share a file with one in use.
            file = os.path.join(root, f"disk{number}")
            output("truncate", "-s", f"{SIZE_MIB}M", file)
            device = stack.enter_context(places.attached(file))
            stack.enter_context(places.throttled(device, places.own_group()))
            places.queue_setting(device, "read_ahead_kb").write_text("0")
            found.append(device)
        yield found


def side_by_side(options, workloads, limit, programs):
    """For each workload its results by program, in round order. `programs` maps names to functions of a device and a workload."""
    found = {}
    with devices() as at, concurrent.futures.ThreadPoolExecutor(len(at)) as pool:
        for first in range(0, len(workloads), len(at)):
            some = workloads[first : first + len(at)]
            for device, workload in zip(at, some):
                places.set_throttle(device, limit(workload), places.own_group())
            measure = lambda name: list(pool.map(programs[name], at, some))
            label = f"workloads {first + 1} to {first + len(some)} of {len(workloads)}"
            runs = interleave(programs, options.rounds, measure, label)
            for index, workload in enumerate(some):
                found[workload] = {name: [one[index] for one in each] for name, each in runs.items()}
    return found


# ---- agreement

SLICES_PER_S = 10
# Larger requests are limited by bytes, because the kernel may split them.
LARGE = MIB
# With exactly the bytes of a slice, rounding lets either one or two requests pass.
SLICE_SHARE = 0.9
HUGE_PAGES = 64

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


def by_halfpower(options, device, workload):
    """Requests per second, p50, p99 and p99.9 in ns."""
    op, pattern, request, depth, engine, buffering = workload
    command = [options.halfpower, "run", device, "--destroy-data", device, "--op", op, "--pattern", pattern, "--request", request]
    command += ["--depth", str(depth), "--engine", engine, "--runtime", str(options.seconds), *ONCE]
    command += ["--buffered" if "buffered" in buffering else "--direct"] + (["--dsync"] if "dsync" in buffering else [])
    command += ["--cache", "cold"] if buffering == "buffered" else []
    found = point(*command)
    latency = found["latency_ns"]
    return found["iops"], latency["p50"], latency["p99"], latency["p999"]


def by_fio(options, device, workload):
    op, pattern, request, depth, engine, buffering = workload
    command = ["fio", "--name=x", f"--filename={device}", f"--size={SIZE_MIB * MIB}", f"--bs={request}", f"--iodepth={depth}", "--thread"]
    command += [f"--ioengine={'psync' if engine == 'sync' else engine}", f"--runtime={options.seconds}", "--time_based", "--output-format=json"]
    way = {"read": "read", "write": "write", "mix": "rw"}[op]
    command += [f"--rw={way}" if pattern == "seq" else f"--rw=rand{way}", "--norandommap", "--rwmixread=70"]
    command += [f"--random_distribution={pattern}"] if pattern.startswith("zipf") else []
    command += ["--direct=0" if "buffered" in buffering else "--direct=1"] + (["--sync=dsync"] if "dsync" in buffering else [])
    # The kernel splits requests of scattered pages, and its throttle counts some parts twice.
    command += ["--iomem=mmaphuge"] if bytes_of(request) >= LARGE else []
    command += ["--lat_percentiles=1", "--clat_percentiles=0", "--percentile_list=50:99:99.9", "--unified_rw_reporting=1"]
    job = fio_job(output(*command))["mixed"]
    at = job["lat_ns"]["percentile"]
    return job["iops"], at["50.000000"], at["99.000000"], at["99.900000"]


def slice_limit(workload):
    """The limit that lets a workload's outstanding requests pass in a slice. Reads limit a mix."""
    op, _, request, depth, _, _ = workload
    size, side = bytes_of(request), "write" if op == "write" else "read"
    if size >= LARGE:
        return {f"{side}_bps": int(SLICE_SHARE * depth * size * SLICES_PER_S)}
    return {f"{side}_iops": depth * SLICES_PER_S}


def agreement(options):
    """The kernel throttles in slices of 100 ms. A device's limit lets the workload's outstanding requests pass in one slice, so that every
    request waits for a slice; with a looser limit the percentiles would depend on which requests pass at once. Rates must agree within
    3 %, p50, p99 and p99.9 within 5 %."""
    lines = [
        "# halfpower's figures next to fio's\n",
        f"Made by `bench/accuracy.py agreement`. {machine()}. {fio_version()}. Loop devices in memory; blkio throttles let a workload's",
        f"outstanding requests pass every 100 ms. {options.rounds} rounds of {options.seconds} s, the programs in turn; medians.\n",
        *table(["workload", "limit", "requests/s", "fio", "ratio", "p50", "fio", "ratio", "p99 ratio", "p99.9 ratio", ""], []),
    ]
    programs = {"halfpower": lambda *what: by_halfpower(options, *what), "fio": lambda *what: by_fio(options, *what)}
    agreeing = 0
    # Huge pages for fio's buffers.
    with places.kept("/proc/sys/vm/nr_hugepages") as (pages,):
        pages.write_text(str(int(pages.read_text()) + HUGE_PAGES))
        found = side_by_side(options, WORKLOADS, slice_limit, programs)
    for workload, runs in found.items():
        a, b = ([statistics.median(run[index] for run in runs[name]) for index in range(4)] for name in programs)
        each = ratios(a, b)
        good = abs(each[0] - 1) <= 0.03 and all(abs(ratio - 1) <= 0.05 for ratio in each[1:])
        agreeing += good
        limit = " ".join(f"{name} {value:,}" for name, value in slice_limit(workload).items())
        cells = [" ".join(map(str, workload)), limit, f"{a[0]:,.1f}", f"{b[0]:,.1f}", f"{each[0]:.3f}"]
        cells += [f"{a[1] / 1e6:.1f} ms", f"{b[1] / 1e6:.1f} ms", *(f"{ratio:.3f}" for ratio in each[1:]), "" if good else "disagrees"]
        lines.append(row(cells))
        print(lines[-1], flush=True)
    lines.append(f"\n{agreeing} of {len(WORKLOADS)} agree: rates within 3 %, percentiles within 5 %.")
    print(lines[-1].strip())
    return lines, agreeing == len(WORKLOADS)


def agreement_summary(tables):
    groups = {}
    for cells in tables[0][2]:
        op, *_, buffering = cells[0].split()
        groups.setdefault(f"{op}, {buffering.replace('_', ', ')}", []).append([float(cells[index]) for index in (4, 7, 8, 9)])
    span = lambda values: f"{min(values):.3f} to {max(values):.3f}"
    rows = [[name, len(each), *(span(column) for column in zip(*each))] for name, each in groups.items()]
    return table(["halfpower / fio", "workloads", "rate", "p50", "p99", "p99.9"], rows)


# ---- same-job

IOPS = 1000
BYTES_PER_S = 40 * MIB
# Larger requests are split depending on how contiguous their buffers' pages are, and a throttle counts the parts.
LARGE_JOB = 256 << 10
WITHIN = (0.97, 1.03)
# Engine and depth.
ENGINES = [("psync", 1), ("libaio", 16), ("io_uring", 16)]
JOBS = [(engine, depth, request, direct) for engine, depth in ENGINES for request in ("4k", "256k") for direct in (1, 0)]


def job_limit(job):
    return {"read_iops": IOPS} if job[2] == "4k" else {"read_bps": BYTES_PER_S}


def same_job(options):
    """Reads by three engines, 4 KiB random and 256 KiB sequential, direct and through an empty page cache. No block is read twice, so the
    throttle sets the rate. Fails if the interval of a ratio is not within 0.97 to 1.03."""
    lines = [
        "# The same job by fio and by halfpower\n",
        f"Made by `bench/accuracy.py same-job`. {machine()}. {fio_version()}. Loop devices in memory, throttled to {IOPS} requests/s (4 KiB) or",
        f"{BYTES_PER_S // MIB} MiB/s (256 KiB). {options.rounds} rounds of {options.seconds} s, the programs in turn.\n",
        *table(["engine", "depth", "request", "buffering", "true requests/s", "halfpower / true", "fio / true", "halfpower / fio", "95 %", ""], []),
    ]

    def rate(program, device, job):
        engine, depth, request, direct = job
        order = "randread" if request == "4k" else "read"
        words = [f"--filename={device}", f"--rw={order}", f"--bs={request}", f"--ioengine={engine}", f"--iodepth={depth}", f"--direct={direct}"]
        text = output(*program, "--name=same", *words, f"--runtime={options.seconds}", "--thread", "--output-format=json")
        return fio_job(text)["read"]["iops"]

    programs = {"halfpower": lambda *what: rate([options.halfpower, "fio"], *what), "fio": lambda *what: rate(["fio"], *what)}
    same = 0
    for job, runs in side_by_side(options, JOBS, job_limit, programs).items():
        engine, depth, request, direct = job
        true = IOPS if request == "4k" else BYTES_PER_S / LARGE_JOB
        middle, low, high = median_interval(ratios(runs["halfpower"], runs["fio"]))
        good = WITHIN[0] <= low and high <= WITHIN[1]
        same += good
        ours, theirs = (statistics.median(runs[name]) / true for name in programs)
        cells = [engine, depth, request, "direct" if direct else "buffered", f"{true:,.0f}", f"{ours:.3f}", f"{theirs:.3f}"]
        lines.append(row([*cells, f"{middle:.3f}", f"{low:.3f} to {high:.3f}", "" if good else "not within 3 %"]))
        print(lines[-1], flush=True)
    lines.append(f"\n{same} of {len(JOBS)} have their interval within {WITHIN[0]} to {WITHIN[1]}.")
    print(lines[-1].strip())
    return lines, same == len(JOBS)


def same_job_summary(tables):
    rows = [[f"{cells[0]} x {cells[1]}, {cells[2]}, {cells[3]}", cells[5], cells[6], f"{cells[7]} ({cells[8]})"] for cells in tables[0][2]]
    return table(["job", "halfpower / true", "fio / true", "halfpower / fio (95 %)"], rows)


def rounds(count, seconds):
    return {"--rounds": {"type": int, "default": count}, "--seconds": {"type": int, "default": seconds}}


MEASUREMENTS = {
    "agreement": Measurement("rates and latency percentiles of some 30 workloads", agreement, rounds(3, 10), agreement_summary),
    "same-job": Measurement("one fio command line on devices of known rate", same_job, rounds(12, 5), same_job_summary),
    "sessions": Measurement("fio jobs as processes and as threads on a busy machine", sessions, {
        "--rounds": {"type": int, "default": 9},
        "--loops": {"type": int, "default": 4, "help": "busy loops next to the jobs [default: 4]"},
    }, sessions_summary),
}

if __name__ == "__main__":
    main(__doc__, "accuracy.md", MEASUREMENTS)
