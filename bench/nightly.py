#!/usr/bin/env python3
"""A month of nightly checks on a device whose every regression is known.

    bench/nightly.py month         30 nights of `halfpower check` on a throttled loop device in memory (root, blkio)

The throttle is the device: its rates drift over the month, vary from night to night, and fall by 5 % for three nights at a time. One night
comes with another scheduler, as after an update. Every day somebody measures something else on the busy device. Exits with 1 if a
regression is not found within two nights, if more than one other night raises an alarm, or if the other scheduler is not reported.
"""

import contextlib
import json
import math
import os
import random
import subprocess
import tempfile
import time

from lib import places
from lib.machine import die, machine, need, progress
from lib.page import table
from lib.runner import Measurement, main

# The rates of the device on the first night.
RATES = {"read_bps": 80_000_000, "write_bps": 60_000_000}
# Share by which the rates change over the month, and the standard deviation from night to night. With 2 % from night to night the rate itself
# falls by 3 % in one night of ten: a perfect measurement against a fixed baseline would raise 1.6 false alarms a month and miss one regression in
# 25 (1,000 simulated months; with 1 %: 0.16, and one in 125).
DRIFT, NOISE = 0.01, 0.01
# What a regression takes away, how many nights it stays, and in how many of them it must be found.
LOSS, LASTS, WITHIN = 0.05, 3, 2
ALLOWED_FALSE_ALARMS = 1
# What the rates fall to while somebody uses the device by day.
BY_DAY = 0.4
SLOWER = 3
DOES_FAIL = 3
KINDS = {"reads": ["read_bps"], "writes": ["write_bps"], "both": list(RATES)}


def regressions(nights, chance):
    """The first night of each regression and its kind; there are nights without one between them."""
    found, night = {}, chance.randint(3, 5)
    kinds = list(KINDS)
    while night + LASTS <= nights:
        found[night] = kinds[len(found) % len(kinds)]
        night += LASTS + chance.randint(2, 4)
    return found


def limits(rates, share=1):
    return {name: round(rate * share) for name, rate in rates.items()}


def measured(options, history, *words, good=(0,)):
    # Other programs on this machine are no part of the month.
    command = ["chrt", "--fifo", "50", options.halfpower, *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HALFPOWER_HISTORY": history})
    if done.returncode not in good:
        die(f"{' '.join(command)}: {done.stderr}")
    return done


def month(options):
    """Nightly checks with drift, noise, another scheduler, ad-hoc runs, and regressions of 5 %."""
    need("chrt", "losetup", root=True)
    chance = random.Random(options.seed)
    broken_at = regressions(options.nights, chance)
    updated = next(night for night in range(options.nights // 3, options.nights) if all(night not in range(at, at + LASTS) for at in broken_at))
    rows, caught, false_alarms, reported = [], {}, [], False
    with places.memory_loop(64) as device, tempfile.TemporaryDirectory() as kept:
        history = os.path.join(kept, "history")
        scheduler = places.queue_setting(device, "scheduler")
        scheduler.write_text("none")
        with places.throttled(device, **RATES):
            words = ["--op", "read,write", "--request", "32k", "--depth", "4", "--runtime", "1s", "--repeats", "5", "--max-repeats", "10"]
            measured(options, history, "sweep", device, *words, "--destroy-data", device)
        for night in range(options.nights):
            progress(f"night {night + 1} of {options.nights}")
            if night == updated:
                scheduler.write_text("mq-deadline")
            factor = 1 + DRIFT * math.sin(2 * math.pi * night / options.nights) + chance.gauss(0, NOISE)
            rates = {name: rate * factor for name, rate in RATES.items()}
            at = next((first for first in broken_at if first <= night < first + LASTS), None)
            with places.throttled(device, **limits(rates, BY_DAY)):
                words = ["--op", "read", "--request", chance.choice(["4k", "64k", "1m"]), "--depth", str(chance.choice([1, 8])), "--runtime", "300ms"]
                measured(options, history, "run", device, *words)
            if at is not None:
                for name in KINDS[broken_at[at]]:
                    rates[name] *= 1 - LOSS
            began = time.monotonic()
            with places.throttled(device, **limits(rates)):
                words = ["--slower", f"{SLOWER}%", "--budget", options.budget, "--destroy-data", device, "--json"]
                done = measured(options, history, "check", device, *words, good=(0, DOES_FAIL))
            seconds = time.monotonic() - began
            alarm, found = done.returncode == DOES_FAIL, json.loads(done.stdout)
            changed = any("scheduler" in sentence for sentence in found["sentences"])
            reported |= night == updated and changed
            if alarm and at is None:
                false_alarms.append(night)
            if alarm and at is not None and night - at < WITHIN:
                caught.setdefault(at, night)
            changes = [one for one in found["differences"] if one["measure"] == "throughput"]
            shown = "; ".join(f"{one['change_percent']:+.1f} %" for one in changes)
            truth = f"-5 %: {broken_at[at]}" if at is not None else "another scheduler" if night == updated else ""
            rows.append([night + 1, truth, shown, "slower" if alarm else "", f"{seconds:.0f} s"])
            print("\r" + " | ".join(map(str, rows[-1])), flush=True)
    good = len(caught) == len(broken_at) and len(false_alarms) <= ALLOWED_FALSE_ALARMS and reported
    late = sum(night != at for at, night in caught.items())
    summary = [len(rows), f"{len(caught)} of {len(broken_at)}", late, len(false_alarms), "yes" if reported else "no"]
    lines = [
        "# A month of nightly checks\n",
        f"Made by `bench/nightly.py month --nights {options.nights} --seed {options.seed} --budget {options.budget}`. {machine()}.",
        f"`halfpower check --slower {SLOWER}%` on a throttled loop device: {DRIFT:.0%} of drift over the month, {NOISE:.1%} of noise from",
        "night to night (standard deviation), and a run of something else every day.\n",
        *table(["nights", "regressions of 5 % found within two nights", "of them in the second", "false alarms", "other scheduler reported"], [summary]),
        "",
        *table(["night", "what changed", "reads and writes against the baseline", "alarm", "time"], rows),
    ]
    print("\n".join(lines))
    return lines, good


MEASUREMENTS = {
    "month": Measurement("does a nightly check find every regression of 5 %, and nothing else?", month, {
        "--nights": {"type": int, "default": 30},
        "--seed": {"type": int, "default": 1},
        "--budget": {"default": "12s", "help": "time of a check [default: %(default)s]"},
    }),
}

if __name__ == "__main__":
    main(__doc__, None, MEASUREMENTS)
