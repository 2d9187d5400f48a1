#!/usr/bin/env python3
"""halfpower's driver beside fio's: the same workloads on the same memory-backed device, run in turn.

    bench/driver.py [--rounds 20] [--seconds 1] [--no-instructions] [--directory /var/tmp]
                    [--halfpower target/release/halfpower] [--output docs/performance.md]

Needs root (for a loop device over a file in memory) and fio. Prints the table and writes it with the machine's description to the
output. Processor time is that of the whole process, as the kernel accounts it (wait4), the same for both programs. Instructions are
counted by perf stat where the processor's counters are readable, otherwise by valgrind's callgrind as the difference of two run lengths, so that
starting up counts for neither; where neither is there the row is left out and said so.
"""

import argparse
import atexit
import contextlib
import json
import math
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

# What is measured to compare programs is no part of the history of who runs this.
os.environ["HALFPOWER_HISTORY"] = "none"

MIB = 1 << 20
DEVICE_BYTES = 256 * MIB
WARM = "tmpfs"
CACHED = "a file of the disk, cached"
DEVICE = "the loop device"


@dataclass
class Case:
    """One workload in both languages."""

    name: str
    place: str
    request: int
    ours: str
    # fio's settings, by the name of the engine: its best is what counts.
    fio: dict
    # Count instructions of this one.
    counted: bool = False


CASES = [
    Case(
        "4 KiB random reads, direct, depth 32, io_uring",
        DEVICE,
        4096,
        "--op read --pattern random --request 4k --depth 32 --engine io_uring --direct",
        {"io_uring": "--rw=randread --norandommap --bs=4k --iodepth=32 --ioengine=io_uring --fixedbufs --registerfiles --direct=1"},
        counted=True,
    ),
    Case(
        "4 KiB random writes, direct, depth 32, io_uring",
        DEVICE,
        4096,
        "--op write --pattern random --request 4k --depth 32 --engine io_uring --direct",
        {"io_uring": "--rw=randwrite --norandommap --bs=4k --iodepth=32 --ioengine=io_uring --fixedbufs --registerfiles --direct=1"},
    ),
    Case(
        "4 KiB random reads, direct, depth 1, synchronous",
        DEVICE,
        4096,
        "--op read --pattern random --request 4k --engine sync --direct",
        {"psync": "--rw=randread --norandommap --bs=4k --ioengine=psync --direct=1"},
    ),
    Case(
        "1 MiB sequential reads, direct, depth 8",
        DEVICE,
        MIB,
        "--op read --pattern seq --request 1m --depth 8 --engine io_uring --direct",
        {
            "io_uring": "--rw=read --bs=1m --iodepth=8 --ioengine=io_uring --fixedbufs --registerfiles --direct=1",
            "libaio": "--rw=read --bs=1m --iodepth=8 --ioengine=libaio --direct=1",
            "psync": "--rw=read --bs=1m --ioengine=psync --direct=1",
        },
    ),
    Case(
        "4 KiB random reads of a file in ext4's page cache, depth 32, io_uring",
        CACHED,
        4096,
        "--op read --pattern random --request 4k --depth 32 --engine io_uring --buffered --cache warm",
        {"io_uring": "--rw=randread --norandommap --bs=4k --iodepth=32 --ioengine=io_uring --fixedbufs --registerfiles --invalidate=0"},
        counted=True,
    ),
    Case(
        "4 KiB sequential reads of the page cache, synchronous",
        WARM,
        4096,
        "--op read --pattern seq --request 4k --engine sync --buffered --cache warm",
        {"psync": "--rw=read --bs=4k --ioengine=psync --invalidate=0"},
        counted=True,
    ),
    Case(
        "4 KiB random reads of the page cache, synchronous",
        WARM,
        4096,
        "--op read --pattern random --request 4k --engine sync --buffered --cache warm",
        {"psync": "--rw=randread --norandommap --bs=4k --ioengine=psync --invalidate=0"},
        counted=True,
    ),
]


@dataclass
class Run:
    iops: float
    user_ns: float
    system_ns: float
    resident: int


@dataclass
class Column:
    runs: list = field(default_factory=list)

    def of(self, what):
        return [getattr(run, what) for run in self.runs]


def die(why):
    sys.exit(f"driver.py: {why}")


def clean_up_when_told_to_end():
    """Ends by an exit, so that devices and files go also when the script is terminated."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def spent(command):
    """Runs a command; its standard output, what the kernel says it used, and its greatest resident memory in bytes."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(command, stdout=out, stderr=err)
        resident = 0
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            # ru_maxrss would count this interpreter before exec.
            with contextlib.suppress(OSError), open(f"/proc/{child.pid}/status") as page:
                found = re.search(r"VmHWM:\s+(\d+)", page.read())
                resident = int(found.group(1)) * 1024 if found else resident
            time.sleep(0.1)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        if child.returncode:
            die(f"{' '.join(command)} failed: {err.read().decode()}")
        return out.read().decode(), usage, resident


def run_of(requests, seconds, usage, resident):
    return Run(requests / seconds, usage.ru_utime * 1e9 / requests, usage.ru_stime * 1e9 / requests, resident)


class Bench:
    def __init__(self, options):
        self.halfpower = os.path.abspath(options.halfpower)
        self.seconds = options.seconds
        self.directory_kind = output("stat", "-f", "-c", "%T", options.directory).strip()
        self.rounds = options.rounds
        self.instructions_wanted = not options.no_instructions
        if not os.access(self.halfpower, os.X_OK):
            die(f"no program {options.halfpower}: cargo build --release, or name it with --halfpower")
        if not shutil.which("fio"):
            die("fio is not installed: apt-get install fio")
        if os.geteuid():
            die("a loop device needs root")
        self.directory = tempfile.mkdtemp(prefix="halfpower-bench-", dir="/dev/shm")
        atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        self.file = os.path.join(self.directory, "data")
        with open(self.file, "wb") as data:
            for _ in range(DEVICE_BYTES // MIB):
                data.write(os.urandom(MIB))
        # On tmpfs io_uring hands reads to worker threads; on a disk's file system it serves them from the cache at once.
        self.cached = os.path.join(tempfile.mkdtemp(prefix="halfpower-bench-", dir=options.directory), "data")
        atexit.register(shutil.rmtree, os.path.dirname(self.cached), ignore_errors=True)
        shutil.copyfile(self.file, self.cached)
        self.device = output("losetup", "--find", "--show", self.file).strip()
        atexit.register(subprocess.run, ["losetup", "--detach", self.device])

    def place(self, case):
        return {DEVICE: self.device, WARM: self.file, CACHED: self.cached}[case.place]

    def ours(self, case, length):
        words = [self.halfpower, "run", self.place(case), *case.ours.split(), *length, "--json"]
        return words + ["--repeats", "1", "--max-repeats", "1", "--destroy-data", self.place(case)] if "write" in case.ours else words + [
            "--repeats", "1", "--max-repeats", "1"]

    def fio(self, case, engine, length):
        common = ["fio", "--name=x", f"--filename={self.place(case)}", f"--size={DEVICE_BYTES}", "--thread", "--output-format=json"]
        return common + case.fio[engine].split() + length

    def run_ours(self, case):
        # As `halfpower fio` does; fio's own work between completions keeps it from sleeping, too.
        poll = ["--reap", "poll"] if "--depth" in case.ours else []
        text, *used = spent(self.ours(case, ["--runtime", str(self.seconds), *poll]))
        numbers = json.loads(text)["points"][0]
        achieved = numbers["achieved"]
        return run_of(achieved["requests"], achieved["measured_ns"] / 1e9, *used)

    def run_fio(self, case, engine):
        text, *used = spent(self.fio(case, engine, [f"--runtime={self.seconds}", "--time_based"]))
        job = json.loads(text[text.index("{") :])["jobs"][0]
        sides = [job[side] for side in ("read", "write") if job[side]["total_ios"]]
        return run_of(sides[0]["total_ios"], sides[0]["runtime"] / 1e3, *used)

    def interleaved(self, case):
        """One column for halfpower and one for each of fio's engines; who comes first changes from round to round."""
        columns = {"halfpower": Column(), **{engine: Column() for engine in case.fio}}
        order = list(columns)
        for round in range(self.rounds):
            for name in order if round % 2 == 0 else reversed(order):
                print(f"\r{case.name}: round {round + 1} of {self.rounds}, {name}\033[K", end="", file=sys.stderr, flush=True)
                columns[name].runs.append(self.run_ours(case) if name == "halfpower" else self.run_fio(case, name))
        print("\r\033[K", end="", file=sys.stderr)
        return columns

    def instructions(self, case, counter):
        """User-space instructions a request: halfpower's and fio's."""
        engine = next(iter(case.fio))
        ours = lambda n: self.ours(case, ["--bytes", str(n * case.request)])
        fio = lambda n: self.fio(case, engine, [f"--io_size={n * case.request}"])
        # halfpower measures its own ceiling for a time, not for a count: the longer the runs differ, the less that is of the difference.
        lengths = [(ours, 100_000, 1_600_000), (fio, 100_000, 300_000)]
        return [(counter(of(many)) - counter(of(few))) / (many - few) for of, few, many in lengths]

    def start_ms(self):
        """From the process's start to its first request to the device, median; none without perf's trace points."""
        if not shutil.which("perf"):
            return None
        data = os.path.join(self.directory, "perf.data")
        command = [self.halfpower, "run", self.device, *CASES[0].ours.split(), "--bytes", "1m", "--repeats", "1", "--max-repeats", "1"]
        events = ["-e", "sched:sched_process_exec", "-e", "syscalls:sys_enter_io_uring_enter", "--filter", "to_submit>0"]
        times = []
        for _ in range(self.rounds):
            with contextlib.suppress(FileNotFoundError):
                os.remove(data)
            if subprocess.run(["perf", "record", "-o", data, *events, "--", *command], capture_output=True).returncode:
                return None
            lines = output("perf", "script", "-i", data, "-F", "time,event").splitlines()
            at = [float(line.split(":")[0]) for line in lines[:2]]
            if len(at) < 2:
                return None
            times.append((at[1] - at[0]) * 1e3)
        return statistics.median(times)


def by_perf(command):
    done = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", *command], check=True, capture_output=True, text=True)
    return int(next(line for line in done.stderr.splitlines() if "instructions" in line).split(",")[0])


def by_callgrind(command):
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    while True:
        done = subprocess.run(valgrind, check=True, capture_output=True, text=True)
        # A run that the program left out is in the count, and not in the requests.
        if not re.search("left out|was stopped for", done.stdout):
            return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def counter():
    """What counts instructions here, and its name."""
    if shutil.which("perf"):
        tried = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True)
        if re.match(r"\d", tried.stderr):
            return by_perf, "perf stat"
    if shutil.which("valgrind"):
        return by_callgrind, "callgrind (this machine's perf has no instruction counter)"
    return None, "neither perf's counters nor valgrind are to be had here"


def spread(values, show):
    return f"{show(statistics.median(values))} ({show(min(values))}-{show(max(values))})"


def of_median(values):
    """Median and its 95 % interval by order statistics."""
    values, n = sorted(values), len(values)
    rank = max(0, math.floor((n - 1.96 * math.sqrt(n)) / 2))
    return statistics.median(values), values[rank], values[n - 1 - rank]


def best(columns):
    """fio's engine with the highest median rate."""
    return max((name for name in columns if name != "halfpower"), key=lambda name: statistics.median(columns[name].of("iops")))


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    memory = int(re.search(r"MemTotal: +(\d+)", open("/proc/meminfo").read()).group(1)) / MIB
    virtual = subprocess.run(["systemd-detect-virt"], capture_output=True, text=True).stdout.strip() if shutil.which("systemd-detect-virt") else ""
    guest = f", a guest of {virtual}" if virtual not in ("", "none") else ""
    return f"{os.cpu_count()} processors ({model}), {memory:.0f} GiB, Linux {platform.release()}{guest}"


def rates(case, columns):
    """The rows of one workload."""
    engine = best(columns)
    ours, theirs = columns["halfpower"], columns[engine]
    mib = case.request >= MIB
    rate = (lambda v: f"{v * case.request / MIB:,.0f} MiB/s") if mib else (lambda v: f"{v / 1e3:,.0f} k/s")
    per = (lambda v: f"{v / 1e3:,.1f} us") if mib else (lambda v: f"{v:,.0f} ns")
    rows = []
    for what, show in (("iops", rate), ("user_ns", per), ("system_ns", per)):
        a, b = ours.of(what), theirs.of(what)
        ratios = [x / y if y else float("nan") for x, y in zip(a, b)]
        label = {"iops": "rate", "user_ns": "user time a request", "system_ns": "system time a request"}[what]
        middle, low, high = of_median(ratios)
        rows.append(f"| {label} | {spread(a, show)} | {spread(b, show)} | {middle:.2f} (95 %: {low:.2f}-{high:.2f}) |")
    busy = lambda column: [run.iops * (run.user_ns + run.system_ns) / 1e9 for run in column.runs]
    rows.append(f"| processors it keeps busy | {' | '.join(spread(busy(column), lambda v: f'{v:.2f}') for column in (ours, theirs))} | |")
    return engine, rows


def report(bench):
    lines = []
    say = lines.append
    say("# halfpower's driver beside fio's\n")
    say(f"Machine: {machine()}. {output('fio', '--version').strip()}, {output(bench.halfpower, '--version').strip()}.")
    say(f"Places: a loop device over {DEVICE_BYTES // MIB} MiB in memory; a file of as many bytes in tmpfs and one in {bench.directory_kind}.")
    say(f"{bench.rounds} rounds of {bench.seconds} s, the programs in turn. Medians (least-greatest); a ratio is the median over the")
    say("rounds of the two programs' in the same round, with its 95 % interval by order statistics.")
    say("Processor time is that of the whole process with its start. A program that keeps less than one processor busy waits for the kernel: a loop")
    say("device has one worker, and where that one is the limit no generator is faster than another. With one request outstanding, on which processor that")
    say("worker runs decides by a factor of five, and the scheduler decides on that: [held in place](slower.md) the programs are alike.\n")
    say("Where several requests are outstanding, halfpower polls for completions before it sleeps (`--reap poll`), as `halfpower fio` does:")
    say("each sleep is a wake that the device's side pays (`bench/reap.py` changes that alone). Instructions are counted without polling.\n")
    say("Made by `bench/driver.py`; run it again to see it here.\n")
    count, how = counter() if bench.instructions_wanted else (None, "not counted (--no-instructions)")
    for case in CASES:
        columns = bench.interleaved(case)
        engine, rows = rates(case, columns)
        say(f"## {case.name}\n")
        say(f"| {case.place} | halfpower | fio, {engine} | halfpower / fio |\n|---|---|---|---|")
        lines.extend(rows)
        if case.counted and count:
            ours, theirs = bench.instructions(case, count)
            say(f"| user instructions a request | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} |")
        ours, theirs = columns["halfpower"].of("resident"), columns[engine].of("resident")
        size = lambda v: f"{v / MIB:.1f} MiB"
        say(f"| greatest resident memory | {spread(ours, size)} | {spread(theirs, size)} | |\n")
        print("\n".join(lines[-8:]), flush=True)
    say(f"Instructions: {how}.\n")
    start = bench.start_ms()
    if start is not None:
        say(f"From the start of the process to its first request to {DEVICE}: {start:.1f} ms (median, by trace points).\n")
    return "\n".join(lines)


def main():
    clean_up_when_told_to_end()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--halfpower", default="target/release/halfpower")
    parser.add_argument("--directory", default="/var/tmp", help="of a file system on a disk, for a file that is read from the page cache")
    parser.add_argument("--no-instructions", action="store_true", help="counting takes minutes where it is callgrind that counts")
    parser.add_argument("--output", default="docs/performance.md")
    options = parser.parse_args()
    text = report(Bench(options))
    with open(options.output, "w") as page:
        page.write(text)
    print(f"\nwritten to {options.output}")


if __name__ == "__main__":
    main()
