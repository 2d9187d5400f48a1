#!/usr/bin/env python3
"""Does the study name the limit that was made? Arrangements with one known binding limit each, on loop devices, control groups, file
systems, a slow volume in user space, memory and simulated machines; the verdict of each beside the truth.

    bench/verdicts.py [--halfpower target/release/halfpower] [--output docs/verdicts.md] [WORD ...]

Needs root. With words, only arrangements whose names have one of them are made. Ends with 1 if a verdict names another limit than the one that was
made."""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from driver import machine

# What is measured to compare programs is no part of the history of who runs this.
os.environ["HALFPOWER_HISTORY"] = "none"

GROUPS = pathlib.Path("/sys/fs/cgroup")


def tool(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def loop(size_mib=256, under=None):
    """A loop device over a file in memory, or over another device."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="halfpower-verdict-") as directory:
        backing = under or os.path.join(directory, "disk")
        if under is None:
            with open(backing, "wb") as file:
                file.write(os.urandom(1 << 20) * size_mib)
        device = tool("losetup", "--find", "--show", "--direct-io=on" if under else "--direct-io=off", backing)
        # A device keeps its queue's settings over a detach, and may tell more requests than it has tags until the number changes.
        for name, value in [("scheduler", "none"), ("nr_requests", "64"), ("nr_requests", "128"), ("read_ahead_kb", "128")]:
            setting(device, name).write_text(value)
        try:
            yield device
        finally:
            tool("losetup", "--detach", device)


def setting(device, name):
    return pathlib.Path("/sys/block") / os.path.basename(device) / "queue" / name


@contextlib.contextmanager
def throttled(device, **limits):
    """Limits of the root group on a device, lifted at the end."""
    number = (pathlib.Path("/sys/block") / os.path.basename(device) / "dev").read_text().strip()
    files = {GROUPS / "blkio" / f"blkio.throttle.{name}_device": value for name, value in limits.items()}
    try:
        for file, value in files.items():
            file.write_text(f"{number} {value}")
        yield
    finally:
        for file in files:
            file.write_text(f"{number} 0")


@contextlib.contextmanager
def group(kind, **values):
    """A control group with these settings; yields how a command is started in it."""
    directory = GROUPS / kind / "halfpower-verdict"
    directory.mkdir(exist_ok=True)
    try:
        for name, value in values.items():
            (directory / name.replace("__", ".")).write_text(str(value))
        yield ["sh", "-c", f'echo $$ > {directory}/cgroup.procs; exec "$@"', "sh"]
    finally:
        directory.rmdir()


@contextlib.contextmanager
def mount(*words):
    """Something mounted on a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="halfpower-verdict-") as directory:
        tool("mount", *words, directory)
        try:
            yield directory
        finally:
            unmount(directory)


def unmount(directory):
    """The kernel closes the files of an io_uring a moment after its program has ended."""
    for attempt in range(100):
        ended = subprocess.run(["umount", directory], capture_output=True, text=True)
        if ended.returncode == 0:
            return
        time.sleep(0.1)
    raise RuntimeError(ended.stderr)


@contextlib.contextmanager
def ext4(device, *options):
    """An ext4 file system on a device, mounted."""
    tool("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", device)
    with mount(*options, device) as directory:
        yield directory


@contextlib.contextmanager
def btrfs(profile, devices):
    """A btrfs of this profile of data over several devices, mounted."""
    tool("mkfs.btrfs", "-q", "-f", "-K", "-d", profile, "-m", "raid1", *devices)
    with mount("-t", "btrfs", devices[0]) as directory:
        yield directory


@contextlib.contextmanager
def slow_volume(microseconds, kind=None, size_mib=128):
    """A file system in user space whose every request takes this long; yields its directory, in which there is a file `disk`."""
    with tempfile.TemporaryDirectory(prefix="halfpower-verdict-") as directory:
        script = pathlib.Path(__file__).with_name("slow_volume.py")
        words = [sys.executable, script, directory, str(size_mib), str(microseconds), *([kind] if kind else [])]
        with subprocess.Popen(words) as served:
            while not os.path.ismount(directory):
                if served.poll() is not None:
                    raise RuntimeError("the slow volume was not mounted")
                time.sleep(0.01)
            try:
                yield directory
            finally:
                unmount(directory)


@contextlib.contextmanager
def dirty_bytes(limit):
    """The page cache holds writers from so many dirty bytes on."""
    names = ["dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes"]
    files = [pathlib.Path("/proc/sys/vm") / name for name in names]
    before = [file.read_text().strip() for file in files]
    try:
        files[2].write_text(str(limit))
        files[3].write_text(str(limit // 2))
        yield
    finally:
        # Bytes and ratios exclude each other: the one of a pair that was in force is not 0.
        for file, value in zip(files, before):
            if value != "0":
                file.write_text(value)


@contextlib.contextmanager
def busy_loop(*before):
    """A program that only computes."""
    with subprocess.Popen([*before, sys.executable, "-c", "while True: pass"]) as busy:
        try:
            yield
        finally:
            busy.kill()


@contextlib.contextmanager
def zram(size_mib=256):
    """A compressed disk in memory of its own."""
    number = pathlib.Path("/sys/class/zram-control/hot_add").read_text().strip()
    try:
        (pathlib.Path("/sys/block") / f"zram{number}" / "disksize").write_text(str(size_mib << 20))
        yield f"/dev/zram{number}"
    finally:
        (pathlib.Path("/sys/block") / f"zram{number}" / "reset").write_text("1")
        pathlib.Path("/sys/class/zram-control/hot_remove").write_text(number)


ARRANGEMENTS = []


def arrangement(name):
    """Adds a function that makes one binding limit and says what the verdict should be."""

    def add(make):
        ARRANGEMENTS.append((name, make))
        return make

    return add


class Bench:
    def __init__(self, program):
        self.program, self.name, self.rows = program, "", []

    def study(self, target, *options, only="depth,buffered,random", before=(), budget="15s"):
        with tempfile.TemporaryDirectory() as out:
            words = [*before, self.program, "study", *target, "--quick", "--budget", budget, "--json", "--output", out]
            ended = subprocess.run([*words, "--only", only, *options], check=True, capture_output=True, text=True)
        return json.loads(ended.stdout)["answer"]["limits"]

    def written(self, device, **how):
        """A study that writes the device, too."""
        return self.study([device, "--destroy-data", device], **{"budget": "40s", **how})

    def rate(self, targets):
        """Bytes per second of large direct reads, many outstanding, of a stripe over these targets."""
        words = [self.program, "run", *targets, "--request", "256k", "--depth", "16", "--runtime", "3s", "--json"]
        ended = subprocess.run(words, check=True, capture_output=True, text=True)
        return json.loads(ended.stdout)["points"][0]["throughput_bytes_per_s"]

    def expect(self, limits, of, op, *truth, says=""):
        """Whether the first verdict on a rate is the truth, or one of two words for it, and says this."""
        found = next((one for one in limits if one["of"] == of and one["op"] == op), None)
        what = found["what"] if found else "nothing"
        self.note(what in truth and says in found["sentence"], of, op, " or ".join(truth), what)
        if found and (what not in truth or says not in found["sentence"]):
            print(f"      {found['sentence']}")

    def note(self, good, of, op, truth, what):
        self.rows.append((good, self.name, of, op, truth, what))
        print(f"{'  ' if good else '! '}{self.name:44} {of:6} {op:5} {truth:24} {what}", flush=True)


@arrangement("20 MB/s read by a control group")
def read_bytes(bench):
    with loop() as device, throttled(device, read_bps=20_000_000):
        limits = bench.study([device])
        bench.expect(limits, "peak", "read", "throttle")
        bench.expect(limits, "plain", "read", "throttle")


@arrangement("400 reads/s by a control group")
def read_requests(bench):
    with loop() as device, throttled(device, read_iops=400):
        limits = bench.study([device])
        bench.expect(limits, "peak", "read", "throttle")
        bench.expect(limits, "random", "read", "throttle")


@arrangement("10 MB/s written by a control group")
def write_bytes(bench):
    with loop() as device, throttled(device, write_bps=10_000_000):
        limits = bench.written(device)
        bench.expect(limits, "peak", "write", "throttle")
        bench.expect(limits, "plain", "write", "throttle")


@arrangement("300 writes/s by a control group")
def write_requests(bench):
    with loop() as device, throttled(device, write_iops=300):
        limits = bench.written(device)
        for of in ["peak", "plain", "random"]:
            bench.expect(limits, of, "write", "throttle")


@arrangement("a loop over a throttled loop")
def loop_over_throttled(bench):
    with loop() as lower, throttled(lower, read_bps=20_000_000), loop(under=lower) as device:
        bench.expect(bench.study([device]), "peak", "read", "throttle")


@arrangement("ext4 on a throttled loop, below an overlay")
def overlay(bench):
    with loop() as device, ext4(device) as lower, throttled(device, read_bps=20_000_000, write_bps=20_000_000):
        for name in ["upper", "work", "lower"]:
            os.mkdir(os.path.join(lower, name))
        options = f"lowerdir={lower}/lower,upperdir={lower}/upper,workdir={lower}/work"
        with mount("-t", "overlay", "-o", options, "overlay") as directory:
            limits = bench.study([directory, "--size", "32m"])
            bench.expect(limits, "peak", "read", "throttle")
            bench.expect(limits, "plain", "write", "throttle")


@arrangement("btrfs raid0 on two throttled loops")
def striped_by_btrfs(bench):
    with contextlib.ExitStack() as stack:
        devices = [stack.enter_context(loop()) for _ in range(2)]
        directory = stack.enter_context(btrfs("raid0", devices))
        for device in devices:
            stack.enter_context(throttled(device, read_bps=20_000_000, write_bps=20_000_000))
        bench.expect(bench.study([directory, "--size", "32m"]), "peak", "read", "throttle")


@arrangement("btrfs raid1 on two loops that write 10 MB/s")
def mirrored_by_btrfs(bench):
    with contextlib.ExitStack() as stack:
        devices = [stack.enter_context(loop()) for _ in range(2)]
        directory = stack.enter_context(btrfs("raid1", devices))
        for device in devices:
            stack.enter_context(throttled(device, write_bps=10_000_000))
        bench.expect(bench.study([directory, "--size", "32m"]), "peak", "write", "throttle")


@arrangement("bfq above a throttled loop")
def bfq(bench):
    with loop() as device, throttled(device, read_iops=400):
        setting(device, "scheduler").write_text("bfq")
        bench.expect(bench.study([device]), "random", "read", "throttle")


@arrangement("read-ahead of 4 KiB")
def read_ahead(bench):
    with loop() as device:
        setting(device, "read_ahead_kb").write_text("4")
        bench.expect(bench.study([device]), "plain", "read", "read_ahead")


@arrangement("a queue of 4 above a volume of 2 ms")
def short_queue(bench):
    with slow_volume(2000) as directory, loop(under=os.path.join(directory, "disk")) as device:
        setting(device, "nr_requests").write_text("4")
        bench.expect(bench.study([device]), "random", "read", "throttle", says="nr_requests 4")


@arrangement("a volume of 5 ms, one thread at a time")
def far_volume(bench):
    with slow_volume(5000) as directory, loop(under=os.path.join(directory, "disk")) as device:
        bench.expect(bench.study([device]), "plain", "read", "read_ahead", "latency")


@arrangement("a file system in user space")
def user_space(bench):
    with slow_volume(500) as directory:
        bench.expect(bench.study([directory, "--size", "32m"]), "random", "read", "file_system", "processor")


@arrangement("a network volume (as sshfs)")
def network_volume(bench):
    with slow_volume(500, "sshfs") as directory:
        bench.expect(bench.study([directory, "--size", "32m"]), "random", "read", "network", "latency", "processor")


@arrangement("few dirty pages above a slow volume")
def dirty_pages(bench):
    with slow_volume(20_000) as directory, loop(under=os.path.join(directory, "disk")) as device, dirty_bytes(1 << 20):
        limits = bench.written(device, only="depth,buffered")
        bench.expect(limits, "plain", "write", "device", says="write-back of dirty pages")


@arrangement("few dirty pages above 10 MB/s")
def dirty_pages_above_throttle(bench):
    with loop() as device, throttled(device, write_bps=10_000_000), dirty_bytes(1 << 20):
        limits = bench.written(device, only="depth,buffered")
        bench.expect(limits, "plain", "write", "throttle", says="write-back of dirty pages")


@arrangement("a flush after plain writes to a slow volume")
def flush(bench):
    with slow_volume(5000) as directory, loop(under=os.path.join(directory, "disk")) as device:
        limits = bench.written(device, only="depth,buffered")
        bench.expect(limits, "plain", "write", "flush", "device", says="longer writes are held to")


@arrangement("ext4 that syncs each write")
def synchronous(bench):
    with slow_volume(2000) as directory, loop(under=os.path.join(directory, "disk")) as device:
        with ext4(device, "-o", "sync") as mounted:
            bench.expect(bench.study([mounted, "--size", "16m"]), "plain", "write", "flush")


@arrangement("ext4 with its data in the journal")
def journal(bench):
    with loop() as device, ext4(device, "-o", "data=journal") as directory:
        bench.expect(bench.study([directory, "--size", "64m"]), "plain", "write", "file_system")


@arrangement("a compressed disk in memory")
def compressed(bench):
    with zram() as device:
        bench.expect(bench.written(device), "plain", "write", "processor", "thread")


@arrangement("a file in memory")
def memory(bench):
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="halfpower-verdict-") as directory:
        bench.expect(bench.study([directory], only="depth"), "peak", "read", "memory")


@arrangement("a fifth of a processor")
def quota(bench):
    with loop() as device, group("cpu", cpu__cfs_period_us=20000, cpu__cfs_quota_us=4000) as inside:
        limits = bench.study([device], only="depth,random", before=inside)
        bench.expect(limits, "random", "read", "processor", "thread")


@arrangement("a tenth of one processor beside a busy program")
def pinned(bench):
    with loop() as device, busy_loop("taskset", "-c", "0"):
        limits = bench.study([device], only="depth,random", before=["taskset", "-c", "0", "nice", "-n", "10"])
        bench.expect(limits, "random", "read", "processor", "thread")


@arrangement("a nice program beside busy ones")
def nice(bench):
    with loop() as device, busy_loop(), busy_loop():
        limits = bench.study([device], only="depth,random", before=["nice", "-n", "10"])
        bench.expect(limits, "random", "read", "processor", "thread")


# The rates of the saturation figure: a disk's and a bus'.
DISK, BUS = 20_000_000, 30_000_000


@arrangement("disks on buses")
def buses(bench):
    """Throttled loops on throttled loops: rates by disks and buses, as in the saturation figure of 1997, and the knee by name."""
    with contextlib.ExitStack() as stack:
        buses = [stack.enter_context(loop(128)) for _ in range(2)]
        disks, numbers = [], []
        for bus in buses:
            stack.enter_context(throttled(bus, read_bps=BUS))
            for half in range(2):
                part = ["--offset", str(half * 64 << 20), "--sizelimit", str(64 << 20)]
                disk = tool("losetup", "--find", "--show", "--direct-io=on", *part, bus)
                stack.callback(tool, "losetup", "--detach", disk)
                stack.enter_context(throttled(disk, read_bps=DISK))
                disks.append(disk)
        numbers = {kind: [os.path.basename(one) for one in some] for kind, some in [("bus", buses), ("disk", disks)]}
        for used, shown, truth, narrowest in [
            ([0], "1 disk, 1 bus", DISK, "disk"),
            ([0, 1], "2 disks, 1 bus", BUS, "bus"),
            ([0, 2], "2 disks, 2 buses", 2 * DISK, "disk"),
            ([0, 1, 2, 3], "4 disks, 2 buses", 2 * BUS, "bus"),
        ]:
            rate = bench.rate([disks[number] for number in used])
            bench.note(abs(rate / truth - 1) < 0.1, "run", "read", f"{shown}: {truth / 1e6:.0f} MB/s", f"{rate / 1e6:.1f} MB/s")
            limits = bench.study([disks[number] for number in used], only="depth", budget="30s")
            peak = next(one for one in limits if one["of"] == "peak")
            # The throttle's name ends with its device's number.
            devices = [(pathlib.Path("/sys/block") / name / "dev").read_text().strip() for name in numbers[narrowest]]
            named = any(f" on {device}:" in peak["sentence"] for device in devices)
            bench.note(peak["what"] == "throttle" and named, "peak", "read", f"the {narrowest}'s throttle", peak["what"])
            if not named:
                print(f"      {peak['sentence']}")


GATEWAY = "twin:gateway-1997"
SIMULATED = [
    (GATEWAY, "peak", "read", "media"),
    (f"{GATEWAY},disks=2,buses=2", "peak", "read", "media"),
    (f"{GATEWAY},disks=3", "peak", "read", "bus"),
    (f"{GATEWAY},disks=4", "peak", "read", "bus"),
    (f"{GATEWAY},disks=4", "peak", "write", "bus"),
    (f"{GATEWAY},disks=4", "plain", "read", "bus"),
    (f"{GATEWAY},disks=4", "random", "read", "media"),
    (f"{GATEWAY},disks=6,buses=2", "peak", "read", "bus"),
    ("twin:cloud", "peak", "read", "throttle"),
    ("twin:cloud", "random", "read", "throttle"),
    ("twin:sata-ssd", "peak", "read", "link"),
    ("twin:hdd-20tb", "peak", "read", "media"),
    ("twin:hdd-20tb", "random", "read", "media"),
    ("twin:nas", "peak", "read", "network"),
    ("twin:nas", "plain", "write", "flush"),
    ("twin:nvme", "peak", "read", "link"),
    ("twin:virtio", "peak", "read", "device"),
]


@arrangement("simulated machines")
def simulated(bench):
    studied = {}
    for target, of, op, truth in SIMULATED:
        if target not in studied:
            studied[target] = bench.study([target])
        bench.name = target
        bench.expect(studied[target], of, op, truth)


def page(rows):
    """The verdicts as Markdown."""
    right = sum(row[0] for row in rows)
    lines = ["# Does the study name the limit that was made?", ""]
    lines += [f"Machine: {machine()}. Made by `bench/verdicts.py`: each arrangement has one binding limit, and a study of 15 to 40 s does not know it."]
    lines += ["A run's rate is right within 10 %.", "", "| arrangement | of | op | the limit that was made | the verdict | |", "|---|---|---|---|---|---|"]
    lines += [f"| {name} | {of} | {op} | {truth} | {what} | {'' if good else 'wrong'} |" for good, name, of, op, truth, what in rows]
    return "\n".join([*lines, "", f"{right} of {len(rows)} name the limit that was made.", ""])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--halfpower", default="target/release/halfpower")
    arguments.add_argument("--output")
    arguments.add_argument("word", nargs="*")
    options = arguments.parse_args()
    bench = Bench(os.path.abspath(options.halfpower))
    for name, make in ARRANGEMENTS:
        if not options.word or any(word in name for word in options.word):
            bench.name = name
            make(bench)
    right = sum(row[0] for row in bench.rows)
    print(f"{right} of {len(bench.rows)} verdicts name the limit that was made")
    if options.output:
        pathlib.Path(options.output).write_text(page(bench.rows))
    sys.exit(right != len(bench.rows))


if __name__ == "__main__":
    main()
