#!/usr/bin/env python3
"""Does the study name the limit that was made? Arrangements with one known binding limit each, on loop devices, control groups,
memory and simulated machines; the verdict of each beside the truth. Run as root: bench/verdicts.py target/release/halfpower"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

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
def mounted(device, *options):
    """An ext4 file system on a device, mounted."""
    tool("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", device)
    with tempfile.TemporaryDirectory(prefix="halfpower-verdict-") as directory:
        tool("mount", *options, device, directory)
        try:
            yield directory
        finally:
            tool("umount", directory)


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


class Bench:
    def __init__(self, program):
        self.program, self.right, self.all = program, 0, 0

    def study(self, target, *options, before=()):
        with tempfile.TemporaryDirectory() as out:
            words = [*before, self.program, "study", *target, "--quick", "--budget", "15s", "--json", "--output", out]
            ended = subprocess.run([*words, *options], check=True, capture_output=True, text=True)
        return json.loads(ended.stdout)["answer"]["limits"]

    def rate(self, targets):
        """Bytes per second of large direct reads, many outstanding, of a stripe over these targets."""
        words = [self.program, "run", *targets, "--request", "256k", "--depth", "16", "--runtime", "3s", "--json"]
        ended = subprocess.run(words, check=True, capture_output=True, text=True)
        return json.loads(ended.stdout)["points"][0]["throughput_bytes_per_s"]

    def expect(self, name, limits, of, op, *truth):
        """Whether the first verdict on a rate is the truth, or one of two words for it."""
        found = next((one for one in limits if one["of"] == of and one["op"] == op), None)
        what = found["what"] if found else "nothing"
        good = what in truth
        self.right, self.all = self.right + good, self.all + 1
        print(f"{'  ' if good else '! '}{name:44} {of:6} {op:5} {' or '.join(truth):20} {what}")
        if not good and found:
            print(f"      {found['sentence']}")


def on_loops(bench):
    only = ["--only", "depth,buffered,random"]
    with loop() as device, throttled(device, read_bps=20_000_000):
        limits = bench.study([device], *only)
        for of in ["peak", "plain"]:
            bench.expect("20 MB/s by a control group", limits, of, "read", "throttle")
    with loop() as device, throttled(device, read_iops=400):
        limits = bench.study([device], *only)
        for of in ["peak", "random"]:
            bench.expect("400 requests/s by a control group", limits, of, "read", "throttle")
    with loop() as device, throttled(device, write_bps=10_000_000):
        limits = bench.study([device, "--destroy-data", device], *only)
        for of in ["peak", "plain"]:
            bench.expect("writes of 10 MB/s by a control group", limits, of, "write", "throttle")
    with loop() as lower, throttled(lower, read_bps=20_000_000), loop(under=lower) as device:
        bench.expect("a loop over a throttled loop", bench.study([device], *only), "peak", "read", "throttle")
    with loop() as device:
        setting(device, "read_ahead_kb").write_text("4")
        limits = bench.study([device], *only)
        bench.expect("read-ahead of 4 KiB", limits, "plain", "read", "read_ahead")


def on_layers(bench):
    only = ["--only", "depth,buffered,random"]
    with loop() as device, mounted(device, "-o", "data=journal") as directory:
        limits = bench.study([directory, "--size", "64m"], *only)
        bench.expect("ext4 with its data in the journal", limits, "plain", "write", "file_system")
    with zram() as device:
        limits = bench.study([device, "--destroy-data", device], *only)
        bench.expect("a compressed disk in memory", limits, "plain", "write", "processor", "thread")


BUS, DISK = 30_000_000, 20_000_000


def on_buses(bench):
    """Throttled loops on throttled loops: rates by disks and buses, as in the saturation figure of 1997."""
    with contextlib.ExitStack() as stack:
        buses = [stack.enter_context(loop(128)) for _ in range(2)]
        disks = []
        for bus in buses:
            stack.enter_context(throttled(bus, read_bps=BUS))
            for half in range(2):
                part = ["--offset", str(half * 64 << 20), "--sizelimit", str(64 << 20)]
                disk = tool("losetup", "--find", "--show", "--direct-io=on", *part, bus)
                stack.callback(tool, "losetup", "--detach", disk)
                stack.enter_context(throttled(disk, read_bps=DISK))
                disks.append(disk)
        for used, shown, truth in [
            ([0], "1 disk on 1 bus", DISK),
            ([0, 1], "2 disks on 1 bus: the knee", BUS),
            ([0, 2], "2 disks on 2 buses", 2 * DISK),
            ([0, 1, 2, 3], "4 disks on 2 buses: the knee of each", 2 * BUS),
        ]:
            rate = bench.rate([disks[number] for number in used])
            good = abs(rate / truth - 1) < 0.1
            bench.right, bench.all = bench.right + good, bench.all + 1
            print(f"{'  ' if good else '! '}{shown:44} {'run':6} {'read':5} {truth / 1e6:.0f} MB/s{'':13} {rate / 1e6:.1f} MB/s")


def on_processors(bench):
    only = ["--only", "depth,random"]
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="halfpower-verdict-") as memory:
        bench.expect("a file in memory", bench.study([memory], "--only", "depth"), "peak", "read", "memory")
    with loop() as device, group("cpu", cpu__cfs_period_us=20000, cpu__cfs_quota_us=4000) as inside:
        limits = bench.study([device], *only, before=inside)
        bench.expect("a fifth of a processor", limits, "random", "read", "processor", "thread")
    with loop() as device:
        busy = subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", "while True: pass"])
        try:
            limits = bench.study([device], *only, before=["taskset", "-c", "0"])
            bench.expect("one processor beside a busy program", limits, "random", "read", "processor", "thread")
        finally:
            busy.kill()
            busy.wait()


def on_simulated_machines(bench):
    gateway = "twin:gateway-1997"
    for target, of, op, truth in [
        (f"{gateway}", "peak", "read", "media"),
        (f"{gateway},disks=2,buses=2", "peak", "read", "media"),
        (f"{gateway},disks=3", "peak", "read", "bus"),
        (f"{gateway},disks=4", "peak", "read", "bus"),
        (f"{gateway},disks=4", "peak", "write", "bus"),
        (f"{gateway},disks=4", "plain", "read", "bus"),
        (f"{gateway},disks=4", "random", "read", "media"),
        (f"{gateway},disks=6,buses=2", "peak", "read", "bus"),
        ("twin:cloud", "peak", "read", "throttle"),
        ("twin:cloud", "random", "read", "throttle"),
        ("twin:sata-ssd", "peak", "read", "link"),
        ("twin:hdd-20tb", "peak", "read", "media"),
        ("twin:hdd-20tb", "random", "read", "media"),
    ]:
        bench.expect(target, bench.study([target], "--only", "depth,buffered,random"), of, op, truth)


def main():
    bench = Bench(os.path.abspath(sys.argv[1]))
    on_simulated_machines(bench)
    on_loops(bench)
    on_layers(bench)
    on_buses(bench)
    on_processors(bench)
    print(f"{bench.right} of {bench.all} verdicts name the limit that was made")
    sys.exit(bench.right != bench.all)


if __name__ == "__main__":
    main()
