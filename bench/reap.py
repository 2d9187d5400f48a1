#!/usr/bin/env python3
"""What waiting for several completions, or polling for them, gains: the same requests, only the way to wait differs.

    bench/reap.py [--rounds 20] [--seconds 0.5] [--devices loop,zram] [--arms "fio 8,halfpower auto"]
                  [--depth 32] [--halfpower target/release/halfpower] [--output FILE]

Needs root and fio. All arms of a row run in turn, in an order drawn anew for each round; a ratio is the median over the rounds of an arm's rate over
that of fio's default in the same round, with the 95 % interval of the median by order statistics. Beside it stand the sleeps a request (fio: its
voluntary context switches) and the 99th percentile of the latency. Prints Markdown.
"""

import argparse
import atexit
import json
import math
import os
import random
import statistics
import subprocess
import sys

import driver

ARMS = ["fio 1", "fio 4", "fio 8", "fio 16", "halfpower 1", "halfpower 4", "halfpower 8", "halfpower 16", "halfpower poll", "halfpower auto"]
REFERENCE = ARMS[0]


class Reap(driver.Bench):
    def __init__(self, options):
        super().__init__(options)
        self.depth = options.depth
        self.arms = [arm for arm in ARMS if arm == REFERENCE or arm in options.arms]
        self.devices = {"loop": self.device}
        if "zram" in options.devices:
            if not os.path.exists("/sys/class/zram-control"):
                driver.output("modprobe", "zram")
            self.devices["zram"] = driver.output("zramctl", "--find", "--size", str(driver.DEVICE_BYTES)).strip()
            atexit.register(subprocess.run, ["zramctl", "--reset", self.devices["zram"]])
            subprocess.run(["dd", f"if={self.file}", f"of={self.devices['zram']}", "bs=1M", "oflag=direct", "status=none"], check=True)
        self.devices = {name: self.devices[name] for name in options.devices}

    def arm(self, name, device, op, engine):
        """Requests a second, sleeps a request, p99 in us."""
        program, reap = name.split()
        if program == "fio":
            words = ["fio", "--name=x", f"--filename={device}", f"--size={driver.DEVICE_BYTES}", "--thread", "--output-format=json", "--direct=1"]
            words += [f"--rw=rand{op}", "--norandommap", "--bs=4k", f"--iodepth={self.depth}", f"--ioengine={engine}", f"--runtime={self.seconds}"]
            words += ["--time_based", f"--iodepth_batch_complete_min={reap}"] + ["--fixedbufs", "--registerfiles"] * (engine == "io_uring")
            text, *_ = driver.spent(words)
            job = json.loads(text[text.index("{") :])["jobs"][0]
            side = job[op]
            return side["iops"], job["ctx"] / side["total_ios"], side["clat_ns"]["percentile"]["99.000000"] / 1e3
        words = [self.halfpower, "run", device, "--op", op, "--pattern", "random", "--request", "4k", "--depth", str(self.depth), "--direct"]
        words += ["--engine", engine, "--reap", reap, "--runtime", f"{self.seconds}s", "--repeats", "1", "--max-repeats", "1", "--json"]
        text, *_ = driver.spent(words + (["--destroy-data", device] if op == "write" else []))
        point = json.loads(text)["points"][0]
        return point["iops"], point["achieved"]["waits_per_request"], point["latency_ns"]["p99"] / 1e3

    def row(self, device, op, engine):
        runs = {arm: [] for arm in self.arms}
        for round in range(self.rounds):
            for arm in random.sample(self.arms, len(self.arms)):
                print(f"\r{device} {op} {engine}: round {round + 1} of {self.rounds}, {arm}\033[K", end="", file=sys.stderr, flush=True)
                runs[arm].append(self.arm(arm, self.devices[device], op, engine))
        print("\r\033[K", end="", file=sys.stderr)
        return runs


def of_median(values):
    """Median and its 95 % interval by order statistics."""
    values, n = sorted(values), len(values)
    rank = max(0, math.floor((n - 1.96 * math.sqrt(n)) / 2))
    return statistics.median(values), values[rank], values[n - 1 - rank]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--devices", type=lambda text: text.split(","), default=["loop", "zram"])
    parser.add_argument("--engines", type=lambda text: text.split(","), default=["io_uring", "libaio"])
    parser.add_argument("--ops", type=lambda text: text.split(","), default=["read", "write"])
    parser.add_argument("--arms", type=lambda text: text.split(","), default=ARMS)
    parser.add_argument("--depth", type=int, default=32)
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
        f"4 KiB random requests, direct, depth {options.depth}, one thread, {options.rounds} rounds of {options.seconds} s, {driver.machine()}",
        "",
        f"| device | op | engine | arm | rate / {REFERENCE} | 95 % | sleeps/request | p99 us |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for device in bench.devices:
        for op in options.ops:
            for engine in options.engines:
                runs = bench.row(device, op, engine)
                for arm in bench.arms:
                    middle, low, high = of_median([one[0] / base[0] for one, base in zip(runs[arm], runs[REFERENCE])])
                    sleeps, p99 = (statistics.median(one[index] for one in runs[arm]) for index in (1, 2))
                    lines.append(f"| {device} | {op} | {engine} | {arm} | {middle:.2f} | {low:.2f} to {high:.2f} | {sleeps:.3f} | {p99:.0f} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output:
        with open(options.output, "w") as page:
            page.write(text)


if __name__ == "__main__":
    main()
