#!/usr/bin/env python3
"""Whether a study's answer holds.

    bench/answers.py verdicts [WORD ...]       does a study name the limit that was made? Loop devices, throttles, file systems, slow volumes
    bench/answers.py advice [TARGET ...]       the command of every recommendation, run again
    bench/answers.py page                      make the tables of docs/answers.md again from bench/results

Needs root, except for advice on directories and simulated machines.
"""

import contextlib
import json
import shlex
import subprocess
import sys
import tempfile

from lib import places
from lib.arrangements import ARRANGEMENTS, Verdicts
from lib.machine import MIB, die, machine
from lib.page import row, table
from lib.programs import points
from lib.runner import Measurement, main
from lib.stats import mean_gain

# ---- verdicts


def verdicts(options):
    """Arrangements with one binding limit each, and the verdict of a study that does not know it. With words, only arrangements whose
    names have one of them. Fails if a verdict names another limit."""
    bench = Verdicts(options.halfpower)
    for name, make in ARRANGEMENTS:
        if not options.word or any(word in name for word in options.word):
            bench.name = name
            make(bench)
    right = sum(one[0] for one in bench.rows)
    lines = [
        "# Does the study name the limit that was made?\n",
        f"Made by `bench/answers.py verdicts`. {machine()}. Each arrangement has one binding limit; a study takes 15 to 40 s.",
        "The rate of a run is right if it is within 10 %.\n",
        *table(
            ["arrangement", "of", "op", "the limit that was made", "the verdict", ""],
            [[name, of, op, truth, what, "" if good else "wrong"] for good, name, of, op, truth, what in bench.rows],
        ),
        f"\n{right} of {len(bench.rows)} name the limit that was made. {len(bench.broken)} of {bench.studies} documents break a rule of `halfpower report --check`.",
    ]
    print(lines[-1].strip())
    return lines, right == len(bench.rows) and not bench.broken


def verdicts_summary(tables):
    kinds = {}
    for name, of, _, truth, _, wrong in tables[0][2]:
        kind = "simulated machines" if name.startswith("twin:") else "rates by disks and buses" if of == "run" else truth
        # Disks and buses of loop devices are throttles.
        kind = "throttle" if "throttle" in kind else kind
        kinds.setdefault(kind, []).append((name, not wrong))
    rows = []
    for kind, each in kinds.items():
        names = list(dict.fromkeys(name.removeprefix("twin:") for name, _ in each))
        rows.append([kind, f"{sum(good for _, good in each)} of {len(each)}", "; ".join(names)])
    return table(["the limit that was made", "named", "arrangements"], rows)


# ---- advice

# A simulated gain may differ by this share: the study's run and the command's do not end with the same request.
EXACT = 0.05
LOOP_MIB = 512
SLOW_BYTES_PER_S = 60_000_000


@contextlib.contextmanager
def target_words(target):
    """The words of a target on the command line."""
    if target not in ("loop", "slow"):
        yield [target]
        return
    with places.memory_loop(LOOP_MIB) as device, contextlib.ExitStack() as stack:
        if target == "slow":
            stack.enter_context(places.throttled(device, read_bps=SLOW_BYTES_PER_S, write_bps=SLOW_BYTES_PER_S))
        yield [device, "--destroy-data", device]


def rate(point):
    """Bytes per second, with the flush at the end if there is one."""
    return point["achieved"].get("synced_bytes_per_s") or point["throughput_bytes_per_s"]


class Advice:
    def __init__(self, options):
        self.options = options
        self.kept = self.all = self.different = self.wrong = 0

    def halfpower(self, words):
        done = subprocess.run([self.options.halfpower, *words, "--json"], capture_output=True, text=True)
        if done.returncode:
            die(f"halfpower {shlex.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def gains(self, finding, study):
        """The gains that the command of a finding shows, one for each repeat."""
        pairs = []
        for _ in range(self.options.repeats):
            commands = [shlex.split(command)[1:] for command in finding["check"].split("; ")]
            rates = [rate(point) for words in commands for point in points(self.halfpower(words), words)]
            if len(rates) != 2:
                die(f"{len(rates)} rates: {finding['check']}")
            pairs.append(rates)
        reported = [rate(study["points"][at]) for at in finding["points"]]
        shown = ["/".join(f"{one / MIB:.0f}" for one in rates) for rates in (reported, *pairs)]
        print(f"{finding['title']}: MiB/s reported {shown[0]}, again {', '.join(shown[1:])}", file=sys.stderr, flush=True)
        return [after / before for before, after in pairs]

    def compare(self, what, reported, interval, gains, simulated):
        low, high = interval or (reported, reported)
        again, lower, upper = mean_gain(gains)
        if simulated:
            low, high = min(low, reported) * (1 - EXACT), max(high, reported) * (1 + EXACT)
        kept, different = low <= again <= high, upper < low or lower > high
        self.all, self.kept, self.different = self.all + 1, self.kept + kept, self.different + different
        self.wrong += simulated and not kept
        span = f"{interval[0]:.3g} to {interval[1]:.3g}" if interval else ""
        verdict = "yes" if kept else "no, intervals apart" if different else "no, intervals overlap"
        line = row([what, f"{reported:.3g}", span, f"{again:.3g}", f"{lower:.3g} to {upper:.3g}", verdict])
        print(line, flush=True)
        return line

    def check(self, target):
        simulated = target.startswith("twin:")
        lines = [f"\n## {target}\n", *table(["advice", "gain", "interval", "again", "interval", "within the first"], [])]
        with target_words(target) as words, tempfile.TemporaryDirectory() as out:
            study = json.loads(self.halfpower(["study", *words, *shlex.split(self.options.study_options), "--output", out]))
            checked = subprocess.run([self.options.halfpower, "report", "--check", f"{out}/results.json"], capture_output=True, text=True)
            if checked.returncode:
                die(f"the study of {target} contradicts itself: {checked.stdout.strip()}")
            answer = study["answer"]
            for finding in answer["findings"]:
                lines.append(self.compare(finding["title"], finding["gain"], finding["gain_interval_95"], self.gains(finding, study), simulated))
            for one in answer.get("predictions", []):
                again = json.loads(self.halfpower(shlex.split(one["check"])[1:]))["comparisons"][0]["gain"]
                lines.append(self.compare(f"{one['op']}s with {one['change']} (predicted)", one["gain"], None, [again], True))
        lines.append(f"\n{len(answer.get('unproven', []))} gains are listed as unproven.")
        return lines


def advice(options):
    """Studies each target, then runs the command of each finding and prediction and compares the gain with the reported one; both have
    95 % intervals. A target is anything that `halfpower study` takes, or loop (a loop device over memory), or slow (the same, throttled to
    60 MB/s). Fails if a simulated gain differs, because simulated runs repeat exactly."""
    bench = Advice(options)
    lines = [
        "# Every recommendation, run again\n",
        f"Made by `bench/answers.py advice`. {machine()}. The command of each finding of a study ({options.study_options}), run {options.repeats} times.",
        "Gains are ratios of rates, intervals 95 %.",
    ]
    for target in options.target or ["/var/tmp", "loop", "twin:nas", "twin:sata-ssd"]:
        lines += bench.check(target)
    lines.append(f"\n{bench.kept} of {bench.all} gains are within the reported interval; for {bench.different} the intervals do not overlap.")
    print(lines[-1].strip())
    return lines, not bench.wrong


def advice_summary(tables):
    rows = []
    for target, _, cells in tables:
        within = [one[5] for one in cells]
        rows.append([target, len(cells), within.count("yes"), within.count("no, intervals overlap"), within.count("no, intervals apart")])
    return table(["target", "gains", "within the reported interval", "outside, intervals overlap", "intervals apart"], rows)


MEASUREMENTS = {
    "verdicts": Measurement("does a study name the limit that was made?", verdicts, {
        "word": {"nargs": "*", "help": "only arrangements whose names have one of these words"},
    }, verdicts_summary),
    "advice": Measurement("the command of every recommendation, run again", advice, {
        "target": {"nargs": "*", "help": "directories, twin:NAME, loop or slow [default: /var/tmp loop twin:nas twin:sata-ssd]"},
        "--repeats": {"type": int, "default": 5},
        "--study-options": {"default": "--quick"},
    }, advice_summary),
}

if __name__ == "__main__":
    main(__doc__, "answers.md", MEASUREMENTS)
