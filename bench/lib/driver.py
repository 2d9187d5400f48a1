"""Cost of a request: rates, processor time, instructions and memory of halfpower and fio."""

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
from dataclasses import dataclass

from . import places
from .machine import KIB, MIB, machine, need, output
from .page import table
from .programs import ONCE, fio_job, fio_version, instruction_counter, measured
from .runner import interleave
from .stats import median_interval, ratios, spread

DEVICE_MIB = 256
RANDOM_4K = "--rw=rand{} --norandommap --bs=4k"
REGISTERED = "--fixedbufs --registerfiles"


@contextlib.contextmanager
def memory_places(options):
    """A loop device over memory, a file in tmpfs, and a file in the page cache of a disk's file system."""
    need("fio", root=True)
    with places.directory() as memory, places.directory(options.directory) as disk:
        file, other, cached = (os.path.join(root, name) for root, name in ((memory, "data"), (memory, "other"), (disk, "data")))
        places.write_random(file, DEVICE_MIB)
        # The file of the loop device is not measured itself. io_uring hands reads of tmpfs to worker threads, not those of a disk's cache.
        for copy in (other, cached):
            shutil.copyfile(file, copy)
        with places.attached(file) as device:
            yield {"loop": device, "tmpfs": other, "cache": cached}


def fio_words(place, seconds=None):
    timed = [f"--runtime={round(seconds * 1000)}ms", "--time_based"] if seconds else []
    return ["--name=x", f"--filename={place}", f"--size={DEVICE_MIB * MIB}", "--thread", "--output-format=json", *timed]


@dataclass(frozen=True)
class Case:
    """One workload in both languages."""

    name: str
    place: str
    request: int
    ours: str
    # fio's settings, by the name of the engine; the fastest engine is compared.
    fio: dict
    count_instructions: bool = False
    # Options of fio's t/io_uring, which keeps no latencies and checks nothing.
    bare: str = ""


def case(name, place, request, ours, count_instructions=False, bare="", **fio):
    return Case(name, place, request, ours, fio, count_instructions, bare)


# Registered buffers and files, requests submitted and completed one by one.
BARE = "-d32 -s1 -c1 -p0 -B1 -F1 -R1 -b4096"
BARE_ARM = "t/io_uring"


CASES = [
    case("4 KiB random reads, direct, depth 32, io_uring", "loop", 4 * KIB,
         "--op read --pattern random --request 4k --depth 32 --engine io_uring --direct", True,
         bare=f"{BARE} -O1",
         io_uring=f"{RANDOM_4K.format('read')} --iodepth=32 --ioengine=io_uring {REGISTERED} --direct=1"),
    case("4 KiB random writes, direct, depth 32, io_uring", "loop", 4 * KIB,
         "--op write --pattern random --request 4k --depth 32 --engine io_uring --direct",
         io_uring=f"{RANDOM_4K.format('write')} --iodepth=32 --ioengine=io_uring {REGISTERED} --direct=1"),
    case("4 KiB random reads, direct, depth 1, synchronous", "loop", 4 * KIB,
         "--op read --pattern random --request 4k --engine sync --direct",
         psync=f"{RANDOM_4K.format('read')} --ioengine=psync --direct=1"),
    case("1 MiB sequential reads, direct, depth 8", "loop", MIB,
         "--op read --pattern seq --request 1m --depth 8 --engine io_uring --direct",
         io_uring=f"--rw=read --bs=1m --iodepth=8 --ioengine=io_uring {REGISTERED} --direct=1",
         libaio="--rw=read --bs=1m --iodepth=8 --ioengine=libaio --direct=1",
         psync="--rw=read --bs=1m --ioengine=psync --direct=1"),
    case("4 KiB random reads of the page cache of a disk, depth 32, io_uring", "cache", 4 * KIB,
         "--op read --pattern random --request 4k --depth 32 --engine io_uring --buffered --cache warm", True,
         bare=f"{BARE} -O0",
         io_uring=f"{RANDOM_4K.format('read')} --iodepth=32 --ioengine=io_uring {REGISTERED} --invalidate=0"),
    case("4 KiB sequential reads of tmpfs, synchronous", "tmpfs", 4 * KIB,
         "--op read --pattern seq --request 4k --engine sync --buffered --cache warm", True,
         psync="--rw=read --bs=4k --ioengine=psync --invalidate=0"),
    case("4 KiB random reads of tmpfs, synchronous", "tmpfs", 4 * KIB,
         "--op read --pattern random --request 4k --engine sync --buffered --cache warm", True,
         psync=f"{RANDOM_4K.format('read')} --ioengine=psync --invalidate=0"),
]


@dataclass
class Run:
    iops: float
    user_ns: float
    system_ns: float
    resident: int

    @classmethod
    def of(cls, requests, seconds, usage, resident):
        return cls(requests / seconds, usage.ru_utime * 1e9 / requests, usage.ru_stime * 1e9 / requests, resident)


class Driver:
    def __init__(self, options, at):
        self.options, self.at = options, at

    def ours(self, one, *length):
        place = self.at[one.place]
        allow = ["--destroy-data", place] if "write" in one.ours else []
        return [self.options.halfpower, "run", place, *one.ours.split(), *length, *ONCE, *allow]

    def fio(self, one, engine, seconds=None):
        return ["fio", *fio_words(self.at[one.place], seconds), *one.fio[engine].split()]

    def arms(self, one):
        """Halfpower, fio's engines, and t/io_uring if its path is given."""
        return ["halfpower", *one.fio, *([BARE_ARM] if one.bare and self.options.io_uring else [])]

    def bare(self, one):
        # It prints the rate of each second that is over.
        text = output(self.options.io_uring, f"-r{self.options.seconds + 1}", *one.bare.split(), self.at[one.place])
        rates = [float(rate) * {"": 1, "K": 1e3, "M": 1e6}[unit] for rate, unit in re.findall(r"^IOPS=([\d.]+)([KM]?),", text, re.M)]
        return statistics.mean(rates)

    def run(self, one, arm):
        if arm == BARE_ARM:
            return self.bare(one)
        if arm != "halfpower":
            text, *used = measured(self.fio(one, arm, self.options.seconds))
            job = fio_job(text)
            side = next(job[side] for side in ("read", "write") if job[side]["total_ios"])
            return Run.of(side["total_ios"], side["runtime"] / 1e3, *used)
        # As `halfpower fio` does; fio's own work between completions keeps it from sleeping as well.
        poll = ["--reap", "poll"] if "--depth" in one.ours else []
        text, *used = measured(self.ours(one, "--runtime", f"{self.options.seconds}s", *poll))
        achieved = json.loads(text)["points"][0]["achieved"]
        return Run.of(achieved["requests"], achieved["measured_ns"] / 1e9, *used)

    def instructions(self, one, counter):
        """User-space instructions per request of both programs, as the difference of two run lengths: starting up is not counted."""
        engine = next(iter(one.fio))
        ours = lambda n: self.ours(one, "--bytes", str(n * one.request))
        fio = lambda n: [*self.fio(one, engine), f"--io_size={n * one.request}"]
        # halfpower measures its ceiling for a fixed time; the more the runs differ, the smaller its part in the difference.
        lengths = [(ours, 100_000, 1_600_000), (fio, 100_000, 300_000)]
        return [(counter(of(many)) - counter(of(few))) / (many - few) for of, few, many in lengths]

    def start_ms(self):
        """Time from exec to the first request at the device, median; None without perf's trace points."""
        if not shutil.which("perf"):
            return None
        command = [self.options.halfpower, "run", self.at["loop"], *CASES[0].ours.split(), "--bytes", "1m", "--repeats", "1", "--max-repeats", "1"]
        events = ["-e", "sched:sched_process_exec", "-e", "syscalls:sys_enter_io_uring_enter", "--filter", "to_submit>0"]
        times = []
        with places.directory() as root:
            for number in range(self.options.rounds):
                data = os.path.join(root, f"perf.data{number}")
                if subprocess.run(["perf", "record", "-o", data, *events, "--", *command], capture_output=True).returncode:
                    return None
                lines = output("perf", "script", "-i", data, "-F", "time,event").splitlines()
                at = [float(line.split(":")[0]) for line in lines[:2]]
                if len(at) < 2:
                    return None
                times.append((at[1] - at[0]) * 1e3)
        return statistics.median(times)


def driver_rows(one, ours, theirs):
    large = one.request >= MIB
    rate = (lambda v: f"{v * one.request / MIB:,.0f} MiB/s") if large else (lambda v: f"{v / 1e3:,.0f} k/s")
    per = (lambda v: f"{v / 1e3:,.1f} us") if large else (lambda v: f"{v:,.0f} ns")
    rows = []
    for label, field, show in (("rate", "iops", rate), ("user time per request", "user_ns", per), ("system time per request", "system_ns", per)):
        a, b = ([getattr(run, field) for run in runs] for runs in (ours, theirs))
        middle, low, high = median_interval(ratios(a, b))
        rows.append([label, spread(a, show), spread(b, show), f"{middle:.2f} (95 %: {low:.2f}-{high:.2f})"])
    busy = lambda runs: spread([run.iops * (run.user_ns + run.system_ns) / 1e9 for run in runs], lambda v: f"{v:.2f}")
    rows.append(["processors kept busy", busy(ours), busy(theirs), ""])
    resident = lambda runs: spread([run.resident for run in runs], lambda v: f"{v / MIB:.1f} MiB")
    rows.append(["maximum resident memory", resident(ours), resident(theirs), ""])
    return rows


def driver(options):
    """Cost of a request. Processor time is that of the whole process (wait4). Instructions are counted by perf stat, or else by
    valgrind's callgrind."""
    with memory_places(options) as at:
        bench = Driver(options, at)
        count, how = (None, "not counted (--no-instructions)") if options.no_instructions else instruction_counter()
        kind = output("stat", "-f", "-c", "%T", options.directory)
        lines = [
            "# Cost of a request\n",
            f"Made by `bench/performance.py driver`. {machine()}. {fio_version()}, {output(options.halfpower, '--version')}.",
            f"loop: a loop device over {DEVICE_MIB} MiB in memory; tmpfs and cache: files of that size in tmpfs and in {kind}.",
            f"{options.rounds} rounds of {options.seconds} s, medians (min-max). Processor time is that of the whole process.",
            f"With several requests outstanding halfpower polls (`--reap poll`), except while instructions are counted. Instructions: {how}.\n",
        ]
        for one in CASES:
            columns = interleave(bench.arms(one), options.rounds, lambda arm: bench.run(one, arm), one.name)
            ours, bare = columns.pop("halfpower"), columns.pop(BARE_ARM, None)
            engine = max(columns, key=lambda name: statistics.median(run.iops for run in columns[name]))
            rows = driver_rows(one, ours, columns[engine])
            if one.count_instructions and count:
                a, b = bench.instructions(one, count)
                rows.append(["user instructions per request", f"{a:,.0f}", f"{b:,.0f}", f"{a / b:.2f}"])
            part = [f"## {one.name}\n", *table([one.place, "halfpower", f"fio, {engine}", "halfpower / fio"], rows), ""]
            if bare:
                middle, low, high = median_interval(ratios([run.iops for run in ours], bare))
                rate = f"{statistics.median(bare) / 1e3:,.0f} k/s; halfpower / {BARE_ARM}: {middle:.2f} (95 %: {low:.2f}-{high:.2f})"
                part += [f"fio's {BARE_ARM} ({one.bare}): {rate}.", ""]
            print("\n".join(part), flush=True)
            lines += part
        start = bench.start_ms()
        if start is not None:
            lines.append(f"From the start of the process to its first request to the loop device: {start:.1f} ms (median, by trace points).")
    return lines, True


def driver_summary(tables):
    def cell(rows, label, column, whole=False):
        found = next((cells[column] for cells in rows if cells[0] == label), "")
        return found if whole else found.split(" (")[0]

    rows = []
    for title, _, cells in tables:
        instructions = [cell(cells, "user instructions per request", column) for column in (1, 2)]
        rows.append([
            title, cell(cells, "rate", 1), cell(cells, "rate", 2), cell(cells, "rate", 3, True).replace("95 %: ", "").replace("-", " to "),
            cell(cells, "user time per request", 3), cell(cells, "system time per request", 3), " / ".join(filter(None, instructions)),
        ])
    return table(["workload", "halfpower", "fio", "rate, halfpower / fio (95 %)", "user time", "system time", "user instructions"], rows)
