#!/usr/bin/env python3
"""Does every advice keep its word? Studies a target, takes the command of each finding and each prediction, runs it, and compares the gain with
the one that was told and its interval.

    bench/advice.py [--halfpower target/release/halfpower] [--repeats 3] [--study-options='--quick'] TARGET...

TARGET is anything that `halfpower study` takes: a directory, twin:NAME, or one of loop (a loop device over memory) and slow (the same, throttled to
60 MB/s), which need root. Prints Markdown. Ends with 1 if a simulated gain is another one than told: there every run repeats exactly.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

# What is measured to check the program is no part of the history of who runs this.
os.environ["HALFPOWER_HISTORY"] = "none"

# A simulated gain may differ by as much: the study's runs and the command's do not end with the same request.
EXACT = 0.05


def tool(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def loop(limit=None):
    """A loop device over 512 MiB of memory, throttled to so many bytes per second each way."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="halfpower-advice-") as directory:
        backing = os.path.join(directory, "disk")
        with open(backing, "wb") as file:
            for _ in range(512):
                file.write(os.urandom(1 << 20))
        device = tool("losetup", "--find", "--show", backing)
        number = pathlib.Path(f"/sys/block/{os.path.basename(device)}/dev").read_text().strip()
        throttles = [pathlib.Path(f"/sys/fs/cgroup/blkio/blkio.throttle.{way}_bps_device") for way in ("read", "write")]
        try:
            for throttle in throttles if limit else []:
                throttle.write_text(f"{number} {limit}")
            yield device
        finally:
            for throttle in throttles if limit else []:
                throttle.write_text(f"{number} 0")
            tool("losetup", "--detach", device)


@contextlib.contextmanager
def named(target):
    """The words of a target on the command line."""
    if target in ("loop", "slow"):
        with loop(60_000_000 if target == "slow" else None) as device:
            yield [device, "--destroy-data", device]
    else:
        yield [target]


class Advice:
    def __init__(self, options):
        self.program, self.repeats = options.halfpower, options.repeats
        self.study_options = shlex.split(options.study_options)
        self.wrong = self.kept = self.all = 0

    def halfpower(self, words):
        ended = subprocess.run([self.program, *words, "--json"], check=True, capture_output=True, text=True)
        return json.loads(ended.stdout)

    def study(self, target):
        with tempfile.TemporaryDirectory() as out:
            return self.halfpower(["study", *target, *self.study_options, "--output", out])

    def rates(self, command):
        """Bytes per second of what the words of a command measure; a flush at the end counts."""
        words = shlex.split(command)[1:]
        points = self.halfpower(words)["points"]
        if any("throughput_bytes_per_s" not in point for point in points):
            raise SystemExit(f"a point failed: {command}")
        return [one["achieved"].get("synced_bytes_per_s") or one["throughput_bytes_per_s"] for one in points]

    def gain(self, finding):
        """The gain that the command of a finding shows: the median of several turns. A flush counts where the advice is for a plain program."""
        gains = []
        for _ in range(self.repeats):
            rates = [rate for command in finding["check"].split("; ") for rate in self.rates(command)]
            assert len(rates) == 2, f"{len(rates)} rates: {finding['check']}"
            gains.append(rates[1] / rates[0])
        return statistics.median(gains)

    def predicted(self, prediction):
        """The gain that the command of a prediction shows."""
        return self.halfpower(shlex.split(prediction["check"])[1:])["comparisons"][0]["gain"]

    def row(self, what, told, interval, again, simulated):
        low, high = interval or (told, told)
        if simulated:
            low, high = min(low, told) * (1 - EXACT), max(high, told) * (1 + EXACT)
        kept = low <= again <= high
        self.all, self.kept = self.all + 1, self.kept + kept
        self.wrong += simulated and not kept
        span = f"{interval[0]:.3g} to {interval[1]:.3g}" if interval else ""
        print(f"| {what} | {told:.3g} | {span} | {again:.3g} | {'yes' if kept else 'NO'} |", flush=True)

    def check(self, target, words):
        simulated = target.startswith("twin:")
        answer = self.study(words)["answer"]
        print(f"\n{target}\n\n| advice | gain | interval | again | within |\n|---|---|---|---|---|")
        for finding in answer["findings"]:
            self.row(finding["title"], finding["gain"], finding["gain_interval_95"], self.gain(finding), simulated)
        unproven = len(answer.get("unproven", []))
        for one in answer.get("predictions", []):
            again = self.predicted(one)
            self.row(f"{one['op']}s with {one['change']} (predicted)", one["gain"], None, again, True)
        print(f"\n{unproven} gains are listed as unproven.", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--halfpower", default="target/release/halfpower")
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--study-options", default="--quick")
    arguments.add_argument("target", nargs="+")
    options = arguments.parse_args()
    advice = Advice(options)
    for target in options.target:
        with named(target) as words:
            advice.check(target, words)
    print(f"\n{advice.kept} of {advice.all} gains are within the interval that was told.")
    return 1 if advice.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
