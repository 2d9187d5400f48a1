"""Jobs as processes and as threads on a busy machine: who gets which share of the processors."""

import contextlib
import os
import pathlib
import statistics
import subprocess
import tempfile

from .machine import MIB, machine, need
from .page import table
from .programs import fio_job, fio_version
from .runner import interleave
from .stats import spread

JOBS = 4
FILE_MIB, LOOPS = 64, 8
# Overwrites of files in the page cache: only processors and memory matter.
JOB = [
    "--name=w", f"--size={FILE_MIB}m", "--bs=1m", "--rw=write", "--ioengine=psync", f"--loops={LOOPS}", "--overwrite=1", "--fallocate=none",
    "--invalidate=0", "--group_reporting", "--output-format=json",
]
# A session at this nice value weighs about as much as JOBS sessions at 0.
NICE = -6


@contextlib.contextmanager
def competitors(count):
    """Busy loops in a session of their own."""
    loops = " & ".join(["while :; do :; done"] * count)
    loop = subprocess.Popen(["sh", "-c", f"{loops} & wait"], start_new_session=True) if count else None
    try:
        yield
    finally:
        if loop:
            os.killpg(loop.pid, 9)
            loop.wait()


def together(program, directory, nice=None):
    """Bytes per second of all jobs of one command."""
    def weigh():
        if nice is not None:
            pathlib.Path("/proc/self/autogroup").write_text(str(nice), encoding="ascii")

    command = [*program, *JOB, f"--directory={directory}", f"--numjobs={JOBS}"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, start_new_session=True, preexec_fn=weigh).stdout
    return fio_job(text)["write"]["bw_bytes"]


def apart(program, directory):
    """The same jobs as one command each, in sessions of their own."""
    commands = []
    for number in range(JOBS):
        os.makedirs(f"{directory}/{number}", exist_ok=True)
        commands.append([*program, *JOB, f"--directory={directory}/{number}", "--numjobs=1"])
    runs = [subprocess.Popen(one, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True) for one in commands]
    longest_ms = max(fio_job(run.communicate()[0])["write"]["runtime"] for run in runs)
    return JOBS * FILE_MIB * MIB * LOOPS * 1e3 / longest_ms


def sessions(options):
    """Four jobs overwrite cached files, as processes and as threads, in one session and in four, next to busy loops in another session. Linux
    divides the processors among sessions first (autogroup), and each of fio's processes begins one. Needs root for the last arm."""
    need("fio")
    autogroup = pathlib.Path("/proc/sys/kernel/sched_autogroup_enabled").read_text(encoding="ascii").strip() == "1"
    ours, thread = [options.halfpower, "fio"], ["fio", "--thread"]
    arms = {
        "fio, processes (a session each)": lambda at: together(["fio"], at),
        "fio --thread (one session)": lambda at: together(thread, at),
        "4 x fio --thread (a session each)": lambda at: apart(thread, at),
        f"fio --thread (one session, autogroup at nice {NICE})": lambda at: together(thread, at, NICE),
        "halfpower fio (one session)": lambda at: together(ours, at),
        "4 x halfpower fio (a session each)": lambda at: apart(ours, at),
        f"halfpower fio (one session, autogroup at nice {NICE})": lambda at: together(ours, at, NICE),
    }
    with tempfile.TemporaryDirectory(prefix="sessions-") as directory:
        for number in range(len(arms)):
            os.mkdir(f"{directory}/{number}")
        places = {arm: f"{directory}/{number}" for number, arm in enumerate(arms)}
        for arm, run in arms.items():
            # Lays out the files.
            run(places[arm])
        with competitors(options.loops):
            found = interleave(arms, options.rounds, lambda arm: arms[arm](places[arm]))
    first = statistics.median(found[next(iter(found))])
    rows = [[arm, spread([one / MIB for one in rates], lambda one: f"{one:,.0f}"), f"{statistics.median(rates) / first:.2f}"] for arm, rates in found.items()]
    lines = [
        "# Jobs as processes and as threads on a busy machine\n",
        f"Made by `bench/accuracy.py sessions`. {machine()}. {fio_version()}. Four jobs overwrite files in the page cache, next to {options.loops}",
        f"busy loops in another session. Autogroup is {'on' if autogroup else 'off'}. {options.rounds} rounds.\n",
        *table(["jobs", "MiB/s, median (range)", "of fio's processes"], rows),
    ]
    print("\n".join(lines))
    return lines, autogroup


def sessions_summary(tables):
    return table(["jobs", "MiB/s, median (range)", "of fio's processes"], tables[0][2])
