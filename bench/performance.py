#!/usr/bin/env python3
"""halfpower's speed and cost next to fio's, on devices and files in memory.

    bench/performance.py driver       cost of a request: rates, processor time, instructions, memory
    bench/performance.py reap         ways to wait for completions
    bench/performance.py cache        the page cache, by request size
    bench/performance.py stripes      RAID 0 and RAID 5 next to btrfs
    bench/performance.py postmark     transactions per second next to Debian's postmark
    bench/performance.py cpu-time     halfpower's own processor time next to the kernel's count
    bench/performance.py page         make the tables of docs/performance.md again from bench/results

Each arm runs once a round; a ratio is the median over the rounds of the two programs' ratio in the same round, with its 95 % interval by
order statistics. Most measurements need root (loop devices) and fio.
"""

import contextlib
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

from lib import places
from lib.driver import DEVICE_MIB, RANDOM_4K, REGISTERED, driver, driver_summary, fio_words, memory_places
from lib.machine import MIB, die, machine, need, output
from lib.page import row, table
from lib.programs import ONCE, fio_job, measured, point
from lib.runner import Measurement, interleave, main, words
from lib.stats import median_interval, ratios, spread

# ---- reap

ARMS = ["fio 1", "fio 4", "fio 8", "fio 16", "halfpower 1", "halfpower 4", "halfpower 8", "halfpower 16", "halfpower poll", "halfpower auto"]
REFERENCE = ARMS[0]
# One request outstanding leaves one way to wait. `halfpower fio`, like fio, does not fill a device before it writes; `halfpower run` does.
SYNCHRONOUS = [REFERENCE, "halfpower 1", "halfpower fio"]
# The page cache completes requests at once: nothing to wait for.
AT_ONCE = [REFERENCE, "halfpower poll"]
DEVICES = ["loop", "zram"]
WORKERS = "/sys/devices/virtual/workqueue/cpumask"


def idle_ticks():
    """Idle time of all processors since the system started."""
    with open("/proc/stat") as page:
        return int(page.readline().split()[4])


class Reap:
    def __init__(self, options, at):
        self.options, self.at = options, at
        self.pin = [] if options.pinned_to is None else ["taskset", "--cpu-list", str(options.pinned_to)]

    def arms(self, place, engine):
        if engine == "sync":
            return SYNCHRONOUS
        return [arm for arm in ARMS if arm == REFERENCE or arm in self.options.arms] if place in DEVICES else AT_ONCE

    def fio(self, place, op, engine, reap, program=("fio",)):
        """Requests per second, sleeps per request, p99 in us."""
        command = [*self.pin, *program, *fio_words(self.at[place], self.options.seconds), *RANDOM_4K.format(op).split()]
        command += ["--direct=1"] if place in DEVICES else ["--invalidate=0"]
        if engine == "sync":
            command += ["--ioengine=psync"]
        else:
            command += [f"--ioengine={engine}", f"--iodepth={self.options.depth}", f"--iodepth_batch_complete_min={reap}"]
        command += [f"--destroy-data={self.at[place]}"] if program[0] != "fio" and op == "write" else []
        command += REGISTERED.split() * (engine == "io_uring")
        job = fio_job(measured(command)[0])
        side = job[op]
        return side["iops"], job["ctx"] / side["total_ios"], side["clat_ns"]["percentile"]["99.000000"] / 1e3

    def ours(self, place, op, engine, reap):
        if reap == "fio":
            return self.fio(place, op, engine, reap, (self.options.halfpower, "fio"))
        command = [*self.pin, self.options.halfpower, "run", self.at[place], "--op", op, "--pattern", "random", "--request", "4k", "--engine", engine]
        command += ["--direct"] if place in DEVICES else ["--buffered", "--cache", "warm"]
        command += [] if engine == "sync" else ["--depth", str(self.options.depth), "--reap", reap]
        command += ["--destroy-data", self.at[place]] if op == "write" else []
        found = point(*command, "--runtime", f"{self.options.seconds}s", *ONCE)
        # A synchronous call is itself the wait.
        return found["iops"], found["achieved"].get("waits_per_request", math.nan), found["latency_ns"]["p99"] / 1e3

    def run(self, place, op, engine, arm):
        program, reap = arm.split()
        ticks, began = idle_ticks(), time.monotonic()
        found = (self.fio if program == "fio" else self.ours)(place, op, engine, reap)
        return *found, (idle_ticks() - ticks) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)


def reap(options):
    """Only the way to wait differs: for a minimum number of completions (fio's iodepth_batch_complete_min, --reap N), by polling
    (--reap poll), or as learned during the warm-up (--reap auto). Also shown: sleeps per request (fio: voluntary context switches), p99, and
    how many processors were idle; if none is, no other way to wait can gain."""
    lines = [
        "# Ways to wait for completions\n",
        f"Made by `bench/performance.py reap`. {machine()}. 4 KiB random requests, depth {options.depth}, one thread,",
        f"{options.rounds} rounds of {options.seconds} s. loop and zram: direct; tmpfs and cache: from the page cache. sync: one request outstanding.",
    ]
    if options.workers_on is not None:
        lines.append(f"The kernel's unbound workers run on processor {options.workers_on}.")
    if options.pinned_to is not None:
        lines.append(f"The programs run on processor {options.pinned_to}.")
    lines += ["", *table(["place", "op", "engine", "arm", f"rate / {REFERENCE}", "95 %", "sleeps/request", "p99 us", "processors idle"], [])]
    with contextlib.ExitStack() as stack:
        at = stack.enter_context(memory_places(options))
        if options.workers_on is not None:
            (mask,) = stack.enter_context(places.kept(WORKERS))
            mask.write_text(f"{1 << options.workers_on:x}")
        if "zram" in options.places:
            at["zram"] = stack.enter_context(places.zram(DEVICE_MIB))
            output("dd", f"if={at['tmpfs']}", f"of={at['zram']}", "bs=1M", "oflag=direct", "status=none")
        bench = Reap(options, at)
        rows = [(place, op, engine) for place in options.places for op in options.ops for engine in options.engines]
        # Writes to the cache of a disk would measure the disk.
        for place, op, engine in (one for one in rows if one[:2] != ("cache", "write")):
            measure = lambda arm: bench.run(place, op, engine, arm)
            runs = interleave(bench.arms(place, engine), options.rounds, measure, f"{place} {op} {engine}", shuffle=True)
            rates = {arm: [one[0] for one in found] for arm, found in runs.items()}
            for arm, found in runs.items():
                middle, low, high = median_interval(ratios(rates[arm], rates[REFERENCE]))
                sleeps, p99, idle = (statistics.median(one[index] for one in found) for index in (1, 2, 3))
                sleeps = "" if math.isnan(sleeps) else f"{sleeps:.3f}"
                lines.append(row([place, op, engine, arm, f"{middle:.2f}", f"{low:.2f} to {high:.2f}", sleeps, f"{p99:.0f}", f"{idle:.2f}"]))
                print(lines[-1], flush=True)
    return lines, True


def reap_summary(tables):
    found = {}
    for _, _, rows in tables:
        for place, op, engine, arm, rate, interval, *_ in rows:
            found.setdefault((place, op, engine), {})[arm] = (rate, interval)
    rows = []
    for key, arms in found.items():
        batch = max((arm for arm in arms if arm.startswith("fio") and arm != REFERENCE), key=lambda arm: float(arms[arm][0]), default=None)
        cells = [f"{arms[batch][0]} ({arms[batch][1]})" if batch else ""]
        for names in (("halfpower poll", "halfpower fio"), ("halfpower auto", "halfpower 1")):
            arm = next((name for name in names if name in arms), None)
            cells.append("{} ({})".format(*arms[arm]) if arm else "")
        rows.append([*key, *cells])
    return table(["place", "op", "engine", "fio, best batch", "`halfpower fio`", "`halfpower run`"], rows)


# ---- cache

CACHED_MIB = 128
SIZES = ["4k", "16k", "64k", "256k", "1m"]
FIO, ALIGNED, OURS = "fio", "fio, buffers at a cache line", "halfpower"


def cache(options):
    """One thread reads or overwrites a cached file from start to end. All arms use the same file, because the size of its folios changes
    a rate up to four times. One arm is fio with buffers that begin at a cache line, which malloc's do not."""
    need("fio")
    arms = {FIO: ["fio"], ALIGNED: ["fio", "--iomem_align=64"], OURS: [options.halfpower, "fio"]}
    lines = [
        "# The page cache, by request size\n",
        f"Made by `bench/performance.py cache`. {machine()}. One thread, a cached file of {CACHED_MIB} MiB, {options.rounds} rounds of {options.seconds} s.",
        "Ratios to fio's default in the same round, with the 95 % interval of the median.\n",
        *table(["place", "op", "request", FIO, ALIGNED, OURS], []),
    ]
    for place in options.places:
        with places.directory(places.MEMORY if place == "tmpfs" else options.directory) as root:
            path = os.path.join(root, "data")
            places.write_random(path, CACHED_MIB)
            for op, size in ((op, size) for op in ("read", "write") for size in SIZES):
                job = [
                    *("--name=cached", f"--filename={path}", f"--size={CACHED_MIB * MIB}", f"--rw={op}", f"--bs={size}", "--ioengine=psync"),
                    *("--invalidate=0", "--overwrite=1", "--time_based", f"--runtime={round(options.seconds * 1000)}ms", "--thread"),
                    "--output-format=json",
                ]
                allow = lambda arm: [f"--destroy-data={path}"] if arm == OURS else []
                rate = lambda arm: fio_job(output(*arms[arm], *job, *allow(arm)))[op]["iops"]
                found = interleave(arms, options.rounds, rate, f"{place} {op} {size}")
                cells = ["{:.2f} ({:.2f} to {:.2f})".format(*median_interval(ratios(found[arm], found[FIO]))) for arm in (ALIGNED, OURS)]
                lines.append(row([place, op, size, f"{median_interval(found[FIO])[0] / 1e3:,.1f} k/s", *cells]))
                print(lines[-1], flush=True)
    return lines, True


def cache_summary(tables):
    rows = {}
    for place, op, size, _, _, ours in tables[0][2]:
        rows.setdefault((place, op), {})[size] = ours
    return table(["place", "op", *SIZES], [[*key, *(cells.get(size, "") for size in SIZES)] for key, cells in rows.items()])


# ---- stripes

MEMBERS = 4
STRIPE_MIB = 192
# btrfs has chunks of 64 KiB.
CHUNK = "64k"
# raid1 is not a stripe; it shows the cost of a mirror.
SETS = ["halfpower RAID 0", "btrfs raid0", "halfpower RAID 5", "btrfs raid5", "btrfs raid1", "btrfs raid10"]
STRIPED = {
    "write, sequential, 768 KiB x 8": "--op write --request 768k --depth 8",
    "write, sequential, 64 KiB x 8": "--op write --request 64k --depth 8",
    "write, random, 4 KiB x 8": "--op write --pattern random --request 4k --depth 8",
    "read, sequential, 768 KiB x 8": "--op read --request 768k --depth 8",
    "read, random, 4 KiB x 8": "--op read --pattern random --request 4k --depth 8",
}


def stripe_set(options, devices, name):
    """Results of every workload on a set: MiB/s, processor ms per MiB of the whole machine, ms per MiB of parity."""

    def run(workload, *where):
        found = point(options.halfpower, "run", *where, *workload.split(), "--runtime", f"{options.seconds}s", *ONCE)
        per_mib = MIB / found["workload"]["request_bytes"] / 1e6
        parity = found["achieved"].get("parity_ns_per_mib")
        return found["throughput_bytes_per_s"] / MIB, found["cpu_ns_per_request"]["machine"] * per_mib, parity and parity / 1e6

    program, kind = name.split(" ", 1)
    if program == "halfpower":
        # Every set holds the same number of bytes.
        size = STRIPE_MIB if kind == "RAID 0" else STRIPE_MIB * MEMBERS // (MEMBERS - 1)
        allow = [word for device in devices for word in ("--destroy-data", device)]
        # The signature is btrfs's, from the set before.
        where = [*devices, "--raid", kind[-1], "--chunk", CHUNK, "--size", f"{size}m", *allow, "--destroy-signature"]
        return [run(workload, *where) for workload in STRIPED.values()]
    # Checksums and copy on write are not part of a stripe.
    with places.btrfs(kind, devices, "-o", "nodatasum,nodatacow", discard=True) as mounted:
        return [run(workload, mounted, "--size", f"{STRIPE_MIB}m") for workload in STRIPED.values()]


def parity():
    """Rows of the parity benchmark for the widest vectors, which it prints first."""
    printed = output("cargo", "bench", "--quiet", "-p", "halfpower-host", "--bench", "parity").splitlines()
    cells = [one for one in (re.split(r"\s{2,}", line.strip()) for line in printed) if len(one) == 6 and one[1].isdigit()]
    widest = {(one[0], one[1]): one for one in reversed(cells)}
    return list(reversed(widest.values()))


def stripes(options):
    """halfpower's RAID 0 and RAID 5 and btrfs's profiles on the same loop devices over memory. Each set is made before its turn and
    removed after it. Processor time is the whole machine's, because kernel threads compute the parity of btrfs."""
    need("mkfs.btrfs", root=True)
    shown = lambda values, digits: spread(values, lambda v: f"{v:.{digits}f}")
    with contextlib.ExitStack() as stack:
        devices = [stack.enter_context(places.memory_loop(options.member_mib)) for _ in range(MEMBERS)]
        found = interleave(SETS, options.rounds, lambda name: stripe_set(options, devices, name), "stripes", shuffle=True)
    lines = [
        "# Stripes next to btrfs\n",
        f"Made by `bench/performance.py stripes`. {machine()}; load average at the end {os.getloadavg()[0]:.1f}.",
        f"{MEMBERS} loop devices of {options.member_mib} MiB in memory, chunks of 64 KiB, direct I/O through io_uring; {options.rounds} rounds of {options.seconds} s,",
        "medians (min-max). btrfs without checksums and copy on write. Processor time is the whole machine's.\n",
    ]
    for number, title in enumerate(STRIPED):
        rows = []
        for name in SETS:
            cells = [one[number] for one in found[name]]
            of_parity = [one[2] for one in cells if one[2] is not None]
            kernel = "in the kernel" if name == "btrfs raid5" and "write" in title else ""
            rows.append([name, shown([one[0] for one in cells], 0), shown([one[1] for one in cells], 2), shown(of_parity, 3) if of_parity else kernel])
        lines += [f"## {title[0].upper()}{title[1:]}\n", *table(["set", "MiB/s", "processor ms per MiB", "parity ms per MiB"], rows), ""]
    lines += [
        "## Cost of parity\n",
        "`cargo bench -p halfpower-host --bench parity`: XOR and `memcpy`, both as bytes read and written per second. One source is a copy.\n",
        *table(["piece", "sources", "vectors", "parity", "memcpy", "parity / memcpy"], parity()),
    ]
    print("\n".join(lines))
    return lines, True


def stripes_summary(tables):
    rows = {}
    for _, header, cells in tables:
        for name, rate, processor, *_ in cells if header[0] == "set" else []:
            rows.setdefault(name, []).append(f"{rate.split(' (')[0]}, {processor.split(' (')[0]}")
    titles = [title for title, header, _ in tables if header[0] == "set"]
    return table(["MiB/s, processor ms per MiB", *titles], [[name, *cells] for name, cells in rows.items()])


# ---- postmark


@contextlib.contextmanager
def postmark_place(where):
    """The directory, or a new file system of fresh:TYPE on a loop device over memory."""
    if not where.startswith("fresh:"):
        yield where
        return
    with places.directory() as root:
        disk = os.path.join(root, "disk")
        output("truncate", "-s", "1G", disk)
        output(f"mkfs.{where[6:]}", "-q", "-E", "lazy_itable_init=0", disk)
        with places.mount("-o", "loop", disk) as mounted:
            yield mounted


def postmark(options):
    """The same commands by `halfpower postmark` and by Debian's postmark, in the same directory. ext4 does not reuse an inode for some
    minutes after its deletion, so a run slows down the next run of either program; fresh:ext4 gives each run a new file system in memory (as
    root). Fails if the median ratio of the rates is below 1."""
    original = shutil.which("postmark") or shutil.which("/usr/games/postmark") or die("postmark is not installed")
    programs = {"halfpower": [options.halfpower, *options.command.split()], "postmark": [original]}
    good = True
    for buffering in ("true", "false"):
        with tempfile.NamedTemporaryFile("w", prefix=places.PREFIX) as script:
            script.write(f"set transactions {options.transactions}\nset number 1000\nset buffering {buffering}\nset report terse\nrun\nquit\n")
            script.flush()

            def run(name):
                """Transactions per second by the clock (the original counts whole seconds), and processor time of one in us."""
                with postmark_place(options.directory) as place:
                    before, began = os.times(), time.monotonic()
                    subprocess.run([*programs[name], script.name], cwd=place, stdin=subprocess.DEVNULL, capture_output=True, check=True)
                    took, after = time.monotonic() - began, os.times()
                spent = after.children_user + after.children_system - before.children_user - before.children_system
                return options.transactions / took, spent / options.transactions * 1e6

            found = interleave(programs, options.rounds, run, f"postmark, buffering {buffering}")
        pairs = list(zip(found["halfpower"], found["postmark"]))
        rows = [[number + 1, f"{a[0]:.0f}", f"{b[0]:.0f}", f"{a[0] / b[0]:.3f}", f"{a[1]:.2f}", f"{b[1]:.2f}", f"{a[1] / b[1]:.3f}"] for number, (a, b) in enumerate(pairs)]
        middle, cost = (statistics.median(a[index] / b[index] for a, b in pairs) for index in (0, 1))
        rows.append(["median", *(f"{statistics.median(one[0] for one in found[name]):.0f}" for name in programs), f"{middle:.3f}", "", "", f"{cost:.3f}"])
        print(f"buffering {buffering}: 1000 files of 500 to 10000 bytes, {options.transactions} transactions, {options.directory}")
        print("\n".join(table(["round", "halfpower/s", "postmark/s", "ratio", "halfpower us", "postmark us", "ratio"], rows)), flush=True)
        good &= middle >= 1
    return [], good


# ---- cpu-time


def cpu_time(options):
    """The processor time that a run reports and perf's count of the whole process. Fails if they differ by more than starting up explains."""
    need("perf")
    run = f"--size 64m --buffered --request 64k --runtime {options.seconds}s".split()
    with places.directory() as directory:
        command = ["perf", "stat", "-x,", "-e", "task-clock", options.halfpower, "run", directory, *run, *ONCE]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)["points"][0]
    requests, times = found["achieved"]["requests"], found["cpu_ns_per_request"]
    counted = float(next(line for line in done.stderr.splitlines() if "task-clock" in line).split(",")[0])
    own, whole = (time * requests / 1e6 for time in (times["user"] + times["system"], times["machine"]))
    print(f"perf counts {counted:.0f} ms of the process; the run reports {own:.0f} ms, and {whole:.0f} ms of the whole machine")
    # The process also makes the file, reads facts and measures its ceiling.
    return [], counted * 0.93 <= own <= counted * 1.01 and whole >= own * 0.95


def rounds(count, seconds):
    return {"--rounds": {"type": int, "default": count}, "--seconds": {"type": float, "default": seconds}}


DIRECTORY = {"--directory": {"default": "/var/tmp", "help": "a directory on a disk, for the cached file [default: %(default)s]"}}

MEASUREMENTS = {
    "driver": Measurement("cost of a request", driver, {
        **rounds(20, 1), **DIRECTORY,
        "--io-uring": {"metavar": "PATH", "help": "fio's t/io_uring, to compare with as well"},
        "--no-instructions": {"action": "store_true", "help": "do not count instructions; callgrind takes minutes"},
    }, driver_summary),
    "reap": Measurement("ways to wait for completions", reap, {
        **rounds(20, 0.5), **DIRECTORY,
        "--places": {"type": words, "default": "loop,zram,tmpfs,cache"},
        "--engines": {"type": words, "default": "io_uring,libaio,sync"},
        "--ops": {"type": words, "default": "read,write"},
        "--arms": {"type": words, "default": ",".join(ARMS)},
        "--depth": {"type": int, "default": 32},
        "--workers-on": {"type": int, "help": "run the kernel's unbound workers, such as a loop device's, on this processor"},
        "--pinned-to": {"type": int, "help": "run the programs on this processor (a program with one processor does not poll)"},
    }, reap_summary),
    "cache": Measurement("the page cache, by request size", cache, {
        **rounds(12, 0.3), **DIRECTORY, "--places": {"type": words, "default": "disk,tmpfs"},
    }, cache_summary),
    "stripes": Measurement("RAID 0 and RAID 5 next to btrfs", stripes, {
        **rounds(5, 0.5), "--member-mib": {"type": int, "default": 256},
    }, stripes_summary),
    "postmark": Measurement("transactions per second next to Debian's postmark", postmark, {
        "--rounds": {"type": int, "default": 9}, "--transactions": {"type": int, "default": 200_000},
        "--directory": {"default": ".", "help": "a directory, or fresh:ext4 for a new file system in memory for every run [default: %(default)s]"},
        "--command": {"default": "postmark", "help": "the subcommand of halfpower [default: %(default)s]"},
    }),
    "cpu-time": Measurement("halfpower's own processor time next to the kernel's count", cpu_time, {"--seconds": {"type": float, "default": 3}}),
}

if __name__ == "__main__":
    main(__doc__, "performance.md", MEASUREMENTS)
