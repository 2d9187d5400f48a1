#!/usr/bin/env python3
"""Does every advice keep its word? Studies a target, takes the command of each finding and each prediction, runs it, and compares the gain with
the one that was told and its interval.

    bench/advice.py [--halfpower target/release/halfpower] [--repeats 5] [--study-options='--quick'] [--output docs/advice.md] TARGET...

TARGET is anything that `halfpower study` takes: a directory, twin:NAME, or one of loop (a loop device over memory) and slow (the same, throttled to
60 MB/s), which need root. Prints Markdown: the gain as told and as it was again, each with its 95 % interval, for what is run again is as uncertain as
the study. A gain is surely another one where the two intervals have nothing in common. Ends with 1 if a simulated gain is another one than told: there
every run repeats exactly.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

from driver import MIB, machine

# What is measured to check the program is no part of the history of who runs this.
os.environ["HALFPOWER_HISTORY"] = "none"

# Student's t at 97.5 %, by degrees of freedom from 1.
T = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]

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
        self.wrong = self.kept = self.all = self.other = 0
        self.lines = []

    def say(self, line):
        self.lines.append(line)
        print(line, flush=True)

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

    def gain(self, finding, points):
        """The gains that the command of a finding shows, one a turn. A flush counts where the advice is for a plain program."""
        turns = []
        for _ in range(self.repeats):
            rates = [rate for command in finding["check"].split("; ") for rate in self.rates(command)]
            assert len(rates) == 2, f"{len(rates)} rates: {finding['check']}"
            turns.append(rates)
        told = [one["achieved"].get("synced_bytes_per_s") or one["throughput_bytes_per_s"] for one in (points[at] for at in finding["points"])]
        shown = ["/".join(f"{rate / MIB:.0f}" for rate in rates) for rates in [told, *turns]]
        print(f"{finding['title']}: MiB/s told {shown[0]}, again {', '.join(shown[1:])}", file=sys.stderr, flush=True)
        return [after / before for before, after in turns]

    def predicted(self, prediction):
        """The gain that the command of a prediction shows."""
        return [self.halfpower(shlex.split(prediction["check"])[1:])["comparisons"][0]["gain"]]

    def row(self, what, told, interval, gains, simulated):
        low, high = interval or (told, told)
        logs = [math.log(gain) for gain in gains]
        again, half = statistics.fmean(logs), 0.0
        if len(logs) > 1:
            half = T[min(len(logs) - 1, len(T)) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
        again, least, most = (math.exp(log) for log in (again, again - half, again + half))
        if simulated:
            low, high = min(low, told) * (1 - EXACT), max(high, told) * (1 + EXACT)
        kept = low <= again <= high
        other = most < low or least > high
        self.all, self.kept, self.other = self.all + 1, self.kept + kept, self.other + other
        self.wrong += simulated and not kept
        span = f"{interval[0]:.3g} to {interval[1]:.3g}" if interval else ""
        verdict = "yes" if kept else "surely another" if other else "no, by chance or not"
        self.say(f"| {what} | {told:.3g} | {span} | {again:.3g} | {least:.3g} to {most:.3g} | {verdict} |")

    def check(self, target, words):
        simulated = target.startswith("twin:")
        study = self.study(words)
        answer = study["answer"]
        self.say(f"\n## {target}\n\n| advice | gain | interval | again | interval | within the first |\n|---|---|---|---|---|---|")
        for finding in answer["findings"]:
            self.row(finding["title"], finding["gain"], finding["gain_interval_95"], self.gain(finding, study["points"]), simulated)
        unproven = len(answer.get("unproven", []))
        for one in answer.get("predictions", []):
            again = self.predicted(one)
            self.row(f"{one['op']}s with {one['change']} (predicted)", one["gain"], None, again, True)
        self.say(f"\n{unproven} gains are listed as unproven.")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--halfpower", default="target/release/halfpower")
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--study-options", default="--quick")
    arguments.add_argument("--output")
    arguments.add_argument("target", nargs="+")
    options = arguments.parse_args()
    advice = Advice(options)
    advice.say("# Every advice, run again\n")
    advice.say(f"Machine: {machine()}. The command of each finding of a study ({options.study_options}), run {options.repeats} times. Gains are ratios of rates,")
    advice.say("intervals 95 %. Made by `bench/advice.py`.")
    for target in options.target:
        with named(target) as words:
            advice.check(target, words)
    advice.say(f"\n{advice.kept} of {advice.all} gains are within the interval that was told, {advice.other} surely are another.")
    if options.output:
        pathlib.Path(options.output).write_text("\n".join(advice.lines) + "\n")
    return 1 if advice.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
