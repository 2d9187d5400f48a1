#!/usr/bin/env python3
"""Whether compare finds real differences and nothing else on real devices, and how fast the history answers.

    bench/compare.py same          A/A on a file in a directory
    bench/compare.py throttled     A/A, and B faster by some percent, on throttled loop devices in memory (root, blkio)
    bench/compare.py history       list, trend and the look-up of check in a large history

`same` and `throttled` exit with 1 if fewer than 94 % of the equal arms show no difference, or fewer than 90 % of the unequal ones show
theirs; `history` if an answer takes 100 ms or more. Every series has its own seed.
"""

import concurrent.futures
import json
import os
import resource
import sqlite3
import statistics
import time

from accuracy import devices
from lib import places
from lib.machine import machine, output
from lib.runner import Measurement, main

# Required shares of series with the right verdict, for equal and for unequal arms.
RIGHT = {"same": 0.94, "faster": 0.90}
IOPS = 1000
LIMIT_S = 0.1
RUNS = 11


def verdict(options, seed, a, b, more):
    """compare's verdict on the rate, its change with the interval, and how long it took."""
    words = [options.halfpower, "--no-history", "compare", "--a", a, "--b", b, "--op", "read", "--pattern", "random", "--request", "4k"]
    began = time.monotonic()
    document = json.loads(output(*words, "--seed", str(seed), "--json", *more))
    rate = next(one for one in document["differences"] if one["measure"] == "throughput")
    return rate["verdict"], rate["change_percent"], rate.get("interval_95_percent"), time.monotonic() - began


def enough(name, found, right, share):
    """Prints the verdicts of a series; whether enough are right."""
    count = sum(one[0] == right for one in found)
    changes = sorted(one[1] for one in found)
    seconds = statistics.median(one[3] for one in found)
    half = statistics.median((one[2][1] - one[2][0]) / 2 for one in found if one[2])
    print(
        f"{name}: {count} of {len(found)} report '{right}' ({count / len(found):.0%}, required {share:.0%}); changes {changes[0]:+.1f} to "
        f"{changes[-1]:+.1f} %, half interval {half:.1f} %, {seconds:.0f} s each (medians)",
        flush=True,
    )
    return count >= share * len(found)


def same(options):
    """Compares a directory with itself."""
    place = os.path.expanduser(options.place)
    arm = f"'{place}'"
    more = ["--size", "64m", "--runtime", "200ms", "--budget", options.budget]
    found = [verdict(options, seed, arm, arm, more) for seed in range(options.series)]
    return [], enough(f"A/A on {place}", found, "no_difference", RIGHT["same"])


def throttled(options):
    """Compares pairs of throttled loop devices: equal ones, then ones whose second device is faster."""
    good = True
    with devices() as at:
        pairs = list(zip(at[::2], at[1::2]))
        for name, factor, right, share in (
            ("A/A on throttled loop devices", 1.0, "no_difference", RIGHT["same"]),
            (f"B faster by {options.percent} %", 1 + options.percent / 100, "better", RIGHT["faster"]),
        ):
            for a, b in pairs:
                places.set_throttle(a, {"read_iops": IOPS}, places.own_group())
                places.set_throttle(b, {"read_iops": round(IOPS * factor)}, places.own_group())

            def of_pair(first):
                """A pair of devices serves one comparison at a time."""
                a, b = pairs[first]
                more = ["--depth", "100", "--runtime", "500ms", "--budget", options.budget]
                return [verdict(options, seed, a, b, more) for seed in range(first, options.series, len(pairs))]

            with concurrent.futures.ThreadPoolExecutor(len(pairs)) as pool:
                found = sum(pool.map(of_pair, range(len(pairs))), [])
            good &= enough(name, found, right, share)
    return [], good


def child_time():
    """Processor time of the programs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def fill_history(file, entries):
    """Copies a measured result to ten targets and many nights; returns the readings of one."""
    with sqlite3.connect(file) as data:
        columns = "began_unix_s, kind, machine, fingerprint, version, command, readings, facts, document"
        entry = list(data.execute(f"SELECT {columns} FROM entries").fetchone())
        readings = data.execute("SELECT question, label, measure, value, low, high FROM readings").fetchall()
        for number in range(1, entries):
            target = "twin:nvme" if number % 10 == 0 else f"/srv/{number % 10}"
            values = (entry[0] - 86400 * (entries - number), target, *entry[1:])
            insert = f"INSERT INTO entries ({columns.replace(', kind', ', target, kind')}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            id = data.execute(insert, values).lastrowid
            wave = 1 + 0.02 * ((number * 7919 % 101) / 50 - 1)
            scaled = [(id, *one[:3], *(value and value * wave for value in one[3:])) for one in readings]
            data.executemany("INSERT INTO readings (entry, question, label, measure, value, low, high) VALUES (?, ?, ?, ?, ?, ?, ?)", scaled)
    return readings


def history(options):
    """Times of the whole program in a history made from one measured result."""
    with places.directory(None) as root:
        file = os.path.join(root, "history.sqlite")
        ours = [options.halfpower, "--history", file]
        output(*ours, "sweep", "twin:nvme", "--op", "read,write", "--pattern", "seq,random", "--request", "4k,64k,1m", "--depth", "1,8")
        readings = fill_history(file, options.entries)
        print(f"{options.entries} results of {len(readings) // 5} points, {os.path.getsize(file) / 2**20:.0f} MiB. {machine()}")
        good = True
        for name, words in (
            ("list", ["history"]),
            ("list of all", ["history", "--json", "--max", str(options.entries)]),
            ("trend", ["history", "trend", "twin:nvme"]),
            ("look-up of check: the target's entries", ["history", "--target", "twin:nvme", "--json", "--max", str(options.entries)]),
            ("look-up of check: its newest document", ["history", "show", "1", "--json"]),
        ):
            times = []
            before = child_time()
            for _ in range(RUNS):
                began = time.monotonic()
                output(*ours, *words)
                times.append((time.monotonic() - began) * 1e3)
            processor = (child_time() - before) / RUNS * 1e3
            median = statistics.median(times)
            good &= median < LIMIT_S * 1e3
            print(f"{name}: {median:.0f} ms ({min(times):.0f} to {max(times):.0f} ms of {RUNS}), {processor:.0f} ms of processor time", flush=True)
    return [], good


SERIES = {"--series": {"type": int, "default": 40}, "--budget": {"default": "1m", "help": "length of a comparison [default: %(default)s]"}}

MEASUREMENTS = {
    "same": Measurement("A/A on a file in a directory", same, {**SERIES, "--place": {"default": "~"}}),
    "throttled": Measurement("A/A, and B faster, on throttled loop devices", throttled, {**SERIES, "--percent": {"type": float, "default": 5}}),
    "history": Measurement("how fast the history answers", history, {"--entries": {"type": int, "default": 2000}}),
}

if __name__ == "__main__":
    main(__doc__, None, MEASUREMENTS)
