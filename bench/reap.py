#!/usr/bin/env python3
"""What waiting for several completions, or polling for them, gains: the same requests, only the way to wait differs.

    bench/reap.py [--rounds 20] [--seconds 0.5] [--places loop,zram,tmpfs,cache] [--engines io_uring,libaio,sync] [--ops read,write]
                  [--arms "fio 8,halfpower auto"] [--depth 32] [--workers-on 0] [--pinned-to 1] [--halfpower target/release/halfpower] [--output FILE]

Places are a loop device over memory and a zram device, direct; a file in tmpfs, and one of a disk's file system in the page cache, read only. The
synchronous engine has one request outstanding, so nothing to wait for differently. Needs root and fio. All arms of a row run in turn, in an order drawn anew for each round; a ratio is the median over the rounds of an arm's rate over
that of fio's default in the same round, with the 95 % interval of the median by order statistics. Beside it stand the sleeps a request (fio: its
voluntary context switches), the 99th percentile of the latency, and how many of the computer's processors were idle while the program ran, its start
and its warm-up included: where none is, no other way to wait gains anything. With --workers-on the kernel's unbound workers, a loop device's among
them, run on that processor alone, and with --pinned-to the programs do on that one: which processors they are on is then no chance (a program with one
processor does not poll). Prints Markdown.
"""

import argparse
import atexit
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

import driver
from driver import of_median

ARMS = ["fio 1", "fio 4", "fio 8", "fio 16", "halfpower 1", "halfpower 4", "halfpower 8", "halfpower 16", "halfpower poll", "halfpower auto"]
REFERENCE = ARMS[0]
# With one request outstanding there is one way to wait. `halfpower fio`, as fio, does not fill a device before it writes to it; `halfpower run` does.
SYNCHRONOUS = [REFERENCE, "halfpower 1", "halfpower fio"]
# What a cache serves at once is not waited for.
AT_ONCE = [REFERENCE, "halfpower poll"]
PLACES = ["loop", "zram", "tmpfs", "cache"]
DEVICES = ["loop", "zram"]
# Where the kernel's unbound workers may run.
WORKERS = "/sys/devices/virtual/workqueue/cpumask"


def idle_ticks():
    """Of all processors together, since the system's start."""
    with open("/proc/stat") as page:
        return int(page.readline().split()[4])


def with_idle(measure, *what):
    """What a measurement gives, and how many processors were idle meanwhile."""
    ticks, began = idle_ticks(), time.monotonic()
    found = measure(*what)
    return *found, (idle_ticks() - ticks) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)


def keep_workers_on(processor):
    """Until the end of this program."""
    with open(WORKERS) as page:
        before = page.read()

    def write(mask):
        with open(WORKERS, "w") as page:
            page.write(mask)

    atexit.register(write, before)
    write(f"{1 << processor:x}")


class Reap(driver.Bench):
    def __init__(self, options):
        super().__init__(options)
        self.pin = [] if options.pinned_to is None else ["taskset", "--cpu-list", str(options.pinned_to)]
        if options.workers_on is not None:
            keep_workers_on(options.workers_on)
        self.depth = options.depth
        self.arms = [arm for arm in ARMS if arm == REFERENCE or arm in options.arms]
        # The loop device's own file is not to be written.
        other = os.path.join(self.directory, "other")
        shutil.copyfile(self.file, other)
        self.places = {"loop": self.device, "tmpfs": other, "cache": self.cached}
        if "zram" in options.places:
            if not os.path.exists("/sys/class/zram-control"):
                driver.output("modprobe", "zram")
            self.places["zram"] = driver.output("zramctl", "--find", "--size", str(driver.DEVICE_BYTES)).strip()
            atexit.register(subprocess.run, ["zramctl", "--reset", self.places["zram"]])
            subprocess.run(["dd", f"if={self.file}", f"of={self.places['zram']}", "bs=1M", "oflag=direct", "status=none"], check=True)

    def arms_of(self, place, engine):
        if engine == "sync":
            return SYNCHRONOUS
        return self.arms if place in DEVICES else AT_ONCE

    def fio(self, place, op, engine, reap, program=("fio",)):
        """Requests a second, sleeps a request, p99 in us."""
        words = [*program, "--name=x", f"--filename={self.places[place]}", f"--size={driver.DEVICE_BYTES}", "--thread", "--output-format=json"]
        words += [f"--rw=rand{op}", "--norandommap", "--bs=4k", f"--runtime={round(self.seconds * 1000)}ms", "--time_based"]
        words += ["--direct=1"] if place in DEVICES else ["--invalidate=0"]
        if engine == "sync":
            words += ["--ioengine=psync"]
        else:
            words += [f"--ioengine={engine}", f"--iodepth={self.depth}", f"--iodepth_batch_complete_min={reap}"]
        words += [f"--destroy-data={self.places[place]}"] if program[0] != "fio" and op == "write" else []
        words += ["--fixedbufs", "--registerfiles"] * (engine == "io_uring")
        text, *_ = driver.spent(self.pin + words)
        job = json.loads(text[text.index("{") :])["jobs"][0]
        side = job[op]
        return side["iops"], job["ctx"] / side["total_ios"], side["clat_ns"]["percentile"]["99.000000"] / 1e3

    def ours(self, place, op, engine, reap):
        """The same of halfpower."""
        if reap == "fio":
            return self.fio(place, op, engine, reap, (self.halfpower, "fio"))
        words = [*self.pin, self.halfpower, "run", self.places[place], "--op", op, "--pattern", "random", "--request", "4k", "--engine", engine]
        words += ["--direct"] if place in DEVICES else ["--buffered", "--cache", "warm"]
        words += [] if engine == "sync" else ["--depth", str(self.depth), "--reap", reap]
        words += ["--runtime", f"{self.seconds}s", "--repeats", "1", "--max-repeats", "1", "--json"]
        text, *_ = driver.spent(words + (["--destroy-data", self.places[place]] if op == "write" else []))
        point = json.loads(text)["points"][0]
        # A synchronous call is itself the wait.
        return point["iops"], point["achieved"].get("waits_per_request", math.nan), point["latency_ns"]["p99"] / 1e3

    def row(self, place, op, engine):
        arms = self.arms_of(place, engine)
        runs = {arm: [] for arm in arms}
        for round in range(self.rounds):
            for arm in random.sample(arms, len(arms)):
                print(f"\r{place} {op} {engine}: round {round + 1} of {self.rounds}, {arm}\033[K", end="", file=sys.stderr, flush=True)
                program, reap = arm.split()
                runs[arm].append(with_idle(self.fio if program == "fio" else self.ours, place, op, engine, reap))
        print("\r\033[K", end="", file=sys.stderr)
        return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--places", type=lambda text: text.split(","), default=PLACES)
    parser.add_argument("--engines", type=lambda text: text.split(","), default=["io_uring", "libaio", "sync"])
    parser.add_argument("--ops", type=lambda text: text.split(","), default=["read", "write"])
    parser.add_argument("--arms", type=lambda text: text.split(","), default=ARMS)
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument("--workers-on", type=int)
    parser.add_argument("--pinned-to", type=int)
    parser.add_argument("--directory", default="/var/tmp")
    parser.add_argument("--halfpower", default="target/release/halfpower")
    parser.add_argument("--output")
    options = parser.parse_args()
    options.no_instructions = True
    driver.clean_up_when_told_to_end()
    bench = Reap(options)
    lines = [
        "# Ways to wait for completions",
        "",
        "The same requests by fio and by halfpower; only the way to wait differs: for so many completions at least (fio's `iodepth_batch_complete_min`,",
        "`--reap N`), polling before it sleeps (`--reap poll`, what `halfpower fio` does), or what was learnt while warming up (`--reap auto`).",
        f"A ratio is to {REFERENCE}, fio's default, in the same round. Made by `bench/reap.py`.",
        "",
        "loop and zram: direct, loop over a file in memory; tmpfs and cache: from the page cache, cache of a disk's file system. sync: one outstanding.",
        "",
        *([f"The kernel's unbound workers run on processor {options.workers_on}."] if options.workers_on is not None else []),
        *([f"The programs run on processor {options.pinned_to}."] if options.pinned_to is not None else []),
        f"4 KiB random requests, depth {options.depth}, one thread, {options.rounds} rounds of {options.seconds} s, {driver.machine()}",
        "",
        f"| place | op | engine | arm | rate / {REFERENCE} | 95 % | sleeps/request | p99 us | processors idle |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows = [(place, op, engine) for place in options.places for op in options.ops for engine in options.engines]
    # What is written to a disk's file is the disk's matter.
    for place, op, engine in (row for row in rows if row[:2] != ("cache", "write")):
        runs = bench.row(place, op, engine)
        for arm, found in runs.items():
            middle, low, high = of_median([one[0] / base[0] for one, base in zip(found, runs[REFERENCE])])
            sleeps, p99, idle = (statistics.median(one[index] for one in found) for index in (1, 2, 3))
            sleeps = "" if math.isnan(sleeps) else f"{sleeps:.3f}"
            lines.append(f"| {place} | {op} | {engine} | {arm} | {middle:.2f} | {low:.2f} to {high:.2f} | {sleeps} | {p99:.0f} | {idle:.2f} |")
            print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    if options.output:
        with open(options.output, "w") as page:
            page.write(text)


if __name__ == "__main__":
    main()
