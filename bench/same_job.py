#!/usr/bin/env python3
"""One job by two programs: the same fio command line run by fio and by `halfpower fio`, on devices whose rate is known.

    bench/same_job.py [--rounds 12] [--seconds 5] [--halfpower target/release/halfpower] [--output docs/same-job.md]

Twelve reads: three engines, 4 KiB at random places and 256 KiB one after the other, direct and through a page cache that is empty at the start. Needs
root (for throttled loop devices), fio, and blkio control groups. No block is read twice, so what passes is what the throttle lets pass. Workloads run
side by side, each on a device of its own, all by one program and then all by the other, in turn. A ratio is the median over the rounds of halfpower's
rate over fio's in the same round, with the 95 % interval of the median by order statistics. Exits 1 where an interval is not within 0.97 to 1.03.
"""

import argparse
import concurrent.futures
import json
import os
import statistics
import sys

from agreement import places, throttle
from driver import MIB, clean_up_when_told_to_end, machine, of_median, output

os.environ["HALFPOWER_HISTORY"] = "none"

IOPS = 1000
BYTES_PER_S = 40 * MIB
# Larger ones are split by how contiguous the pages of their buffers happen to be, and a throttle counts the parts.
LARGE = 256 << 10
WITHIN = (0.97, 1.03)
# Engine and depth.
ENGINES = [("psync", 1), ("libaio", 16), ("io_uring", 16)]
WORKLOADS = [(engine, depth, request, direct) for engine, depth in ENGINES for request in ("4k", "256k") for direct in (1, 0)]


def limit(workload):
    """What the device is held to, and the requests per second that are then true."""
    if workload[2] == "4k":
        return {"read_iops": IOPS}, IOPS
    return {"read_bps": BYTES_PER_S}, BYTES_PER_S / LARGE


def words(options, device, workload):
    engine, depth, request, direct = workload
    order = "randread" if request == "4k" else "read"
    return [
        *("--name=same", f"--filename={device}", f"--rw={order}", f"--bs={request}", f"--ioengine={engine}", f"--iodepth={depth}", f"--direct={direct}"),
        *(f"--runtime={options.seconds}", "--thread", "--output-format=json"),
    ]


def rate(program, options, device, workload):
    text = output(*program, *words(options, device, workload))
    return json.loads(text[text.index("{") :])["jobs"][0]["read"]["iops"]


def together(options, devices, workloads):
    """For each workload its rounds' pairs of halfpower's and fio's rates."""
    for device, workload in zip(devices, workloads):
        throttle(device, limit(workload)[0])
    programs = {"halfpower": [options.halfpower, "fio"], "fio": ["fio"]}
    pairs = [[] for _ in workloads]
    with concurrent.futures.ThreadPoolExecutor(len(workloads)) as pool:
        for number in range(options.rounds):
            found = {}
            for name in sorted(programs, reverse=number % 2 == 1):
                print(f"\r{len(workloads)} workloads, round {number + 1} of {options.rounds}, {name}\033[K", end="", file=sys.stderr, flush=True)
                each = [[programs[name]] * len(workloads), [options] * len(workloads), devices, workloads]
                found[name] = list(pool.map(rate, *each))
            for index, of_one in enumerate(pairs):
                of_one.append((found["halfpower"][index], found["fio"][index]))
    print("\r\033[K", end="", file=sys.stderr)
    return pairs


def main():
    clean_up_when_told_to_end()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--halfpower", default="target/release/halfpower")
    parser.add_argument("--output")
    options = parser.parse_args()
    devices = places()
    lines = [
        "# The same job by fio and by halfpower\n",
        f"Machine: {machine()}. {output('fio', '--version').strip()}. Loop devices in memory, held to {IOPS} requests/s (4 KiB) or {BYTES_PER_S // MIB} MiB/s",
        f"(256 KiB) by blkio throttles. {options.rounds} rounds of {options.seconds} s, the programs in turn. Made by `bench/same_job.py`.\n",
        "| engine | depth | request | buffering | true requests/s | halfpower / true | fio / true | halfpower / fio | 95 % | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    same = 0
    for first in range(0, len(WORKLOADS), len(devices)):
        workloads = WORKLOADS[first : first + len(devices)]
        for workload, pairs in zip(workloads, together(options, devices, workloads)):
            engine, depth, request, direct = workload
            _, true = limit(workload)
            middle, low, high = of_median([a / b for a, b in pairs])
            good = WITHIN[0] <= low and high <= WITHIN[1]
            same += good
            ours, theirs = (statistics.median(pair[side] for pair in pairs) / true for side in (0, 1))
            cells = [engine, str(depth), request, "direct" if direct else "buffered", f"{true:,.0f}", f"{ours:.3f}", f"{theirs:.3f}"]
            cells += [f"{middle:.3f}", f"{low:.3f} to {high:.3f}", "" if good else "not within 3 %"]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    lines.append(f"\n{same} of {len(WORKLOADS)} have their interval within {WITHIN[0]} to {WITHIN[1]}.\n")
    print(lines[-1].strip())
    if options.output:
        with open(options.output, "w") as page:
            page.write("\n".join(lines))
    sys.exit(same != len(WORKLOADS))


if __name__ == "__main__":
    main()
