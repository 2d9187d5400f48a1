#!/usr/bin/env python3
"""Whether compare finds what is there and nothing else on real devices, and how fast the history answers.

    bench/compare.py same [--series 40] [--place ~]        A/A on a file in a directory: the root disk unless told otherwise
    bench/compare.py throttled [--series 40] [--percent 5]  A/A, and B faster by so much, on throttled loop devices in memory (root, blkio)
    bench/compare.py history [--entries 2000]              list, trend and the look-up of check in a history of so many results

`same` and `throttled` exit with 1 where fewer than 94 % of the equal arms show no difference, or fewer than 90 % of the unequal ones theirs;
`history` where an answer takes 100 ms or more. Every series has a seed of its own.
"""

import argparse
import atexit
import concurrent.futures
import json
import os
import resource
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time

from agreement import places, throttle
from driver import clean_up_when_told_to_end, die, machine, output

# Of the equal arms so many show no difference; of the unequal ones so many show theirs.
RIGHT = {"same": 0.94, "faster": 0.90}
IOPS = 1000
LIMIT_S = 0.1
RUNS = 11


def verdict(options, seed, a, b, more):
    """What compare says of the rate, its change with the interval, and how long it took."""
    words = [options.halfpower, "--no-history", "compare", "--a", a, "--b", b, "--op", "read", "--pattern", "random", "--request", "4k"]
    began = time.monotonic()
    document = json.loads(output(*words, "--seed", str(seed), "--json", *more))
    rate = next(one for one in document["differences"] if one["measure"] == "throughput")
    return rate["verdict"], rate["change_percent"], rate.get("interval_95_percent"), time.monotonic() - began


def told(name, found, right, least):
    """A line of what was found; whether it is enough."""
    count = sum(one[0] == right for one in found)
    changes = sorted(one[1] for one in found)
    seconds = statistics.median(one[3] for one in found)
    half = statistics.median((one[2][1] - one[2][0]) / 2 for one in found if one[2])
    print(
        f"{name}: {count} of {len(found)} say '{right}' ({count / len(found):.0%}, wanted {least:.0%}); changes {changes[0]:+.1f} to {changes[-1]:+.1f} %, "
        f"half interval {half:.1f} %, {seconds:.0f} s each (medians)",
        flush=True,
    )
    return count >= least * len(found)


def same(options):
    place = os.path.expanduser(options.place)
    arm = f"'{place}'"
    more = ["--size", "64m", "--runtime", "200ms", "--budget", options.budget]
    found = [verdict(options, seed, arm, arm, more) for seed in range(options.series)]
    return told(f"A/A on {place}", found, "no_difference", RIGHT["same"])


def throttled(options):
    devices = places()
    pairs = list(zip(devices[::2], devices[1::2]))
    good = True
    for name, factor, right, least in (
        ("A/A on throttled loop devices", 1.0, "no_difference", RIGHT["same"]),
        (f"B faster by {options.percent} %", 1 + options.percent / 100, "better", RIGHT["faster"]),
    ):
        for a, b in pairs:
            throttle(a, {"read_iops": IOPS})
            throttle(b, {"read_iops": round(IOPS * factor)})

        def series(seed):
            a, b = pairs[seed % len(pairs)]
            return verdict(options, seed, a, b, ["--depth", "100", "--runtime", "500ms", "--budget", options.budget])

        # A pair of devices serves one comparison at a time.
        def of_pair(first):
            return [series(seed) for seed in range(first, options.series, len(pairs))]

        with concurrent.futures.ThreadPoolExecutor(len(pairs)) as pool:
            found = sum(pool.map(of_pair, range(len(pairs))), [])
        good &= told(name, found, right, least)
    return good


def spent():
    """Processor time of the programs that ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def history(options):
    """Results of ten targets over the nights, made of one that was measured."""
    directory = tempfile.mkdtemp(prefix="halfpower-bench-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    file = os.path.join(directory, "history.sqlite")
    ours = [options.halfpower, "--history", file]
    output(*ours, "sweep", "twin:nvme", "--op", "read,write", "--pattern", "seq,random", "--request", "4k,64k,1m", "--depth", "1,8")
    with sqlite3.connect(file) as data:
        entry = list(data.execute("SELECT began_unix_s, kind, machine, fingerprint, version, command, readings, facts, document FROM entries").fetchone())
        readings = data.execute("SELECT question, label, measure, value, low, high FROM readings").fetchall()
        for number in range(1, options.entries):
            target = "twin:nvme" if number % 10 == 0 else f"/srv/{number % 10}"
            row = (entry[0] - 86400 * (options.entries - number), entry[1], target, *entry[2:])
            id = data.execute(
                "INSERT INTO entries (began_unix_s, kind, target, machine, fingerprint, version, command, readings, facts, document) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row
            ).lastrowid
            wave = 1 + 0.02 * ((number * 7919 % 101) / 50 - 1)
            scaled = [(id, *one[:3], *(value and value * wave for value in one[3:])) for one in readings]
            data.executemany("INSERT INTO readings (entry, question, label, measure, value, low, high) VALUES (?, ?, ?, ?, ?, ?, ?)", scaled)
    print(f"{options.entries} results of {len(readings) // 5} points, {os.path.getsize(file) / 2**20:.0f} MiB. {machine()}")
    good = True
    for name, words in (
        ("list", ["history"]),
        ("list of all", ["history", "--json", "--most", str(options.entries)]),
        ("trend", ["history", "trend", "twin:nvme"]),
        ("look-up of check: the target's entries", ["history", "--target", "twin:nvme", "--json", "--most", str(options.entries)]),
        ("look-up of check: its newest document", ["history", "show", "1", "--json"]),
    ):
        times = []
        before = spent()
        for _ in range(RUNS):
            began = time.monotonic()
            output(*ours, *words)
            times.append(time.monotonic() - began)
        processor = (spent() - before) / RUNS
        median = statistics.median(times)
        good &= median < LIMIT_S
        print(f"{name}: {median * 1e3:.0f} ms ({min(times) * 1e3:.0f} to {max(times) * 1e3:.0f} ms of {RUNS}), {processor * 1e3:.0f} ms of processor time; the whole program", flush=True)
    return good


def main():
    clean_up_when_told_to_end()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("same", "throttled", "history"))
    parser.add_argument("--series", type=int, default=40)
    parser.add_argument("--budget", default="1m", help="length of a comparison [default: compare's own]")
    parser.add_argument("--place", default="~")
    parser.add_argument("--percent", type=float, default=5)
    parser.add_argument("--entries", type=int, default=2000)
    parser.add_argument("--halfpower", default="target/release/halfpower")
    options = parser.parse_args()
    if not os.path.exists(options.halfpower):
        die(f"{options.halfpower}: not there; build it, or name another with --halfpower")
    sys.exit(not {"same": same, "throttled": throttled, "history": history}[options.what](options))


if __name__ == "__main__":
    main()
