"""Arrangements with one known binding limit each, and the verdict that a study of them should reach."""

import contextlib
import json
import os
import subprocess
import tempfile

from .machine import die
from .places import attached, btrfs, busy_loop, control_group, device_number, dirty_bytes, directory, ext4, memory_file, mount, queue_setting
from .places import slow_volume, throttled, zram

ARRANGEMENTS = []


def arrangement(name):
    """Registers a function that makes one binding limit and checks the verdict."""

    def add(make):
        ARRANGEMENTS.append((name, make))
        return make

    return add


@contextlib.contextmanager
def loop(size_mib=256, under=None):
    """A loop device over a file in memory, or over another device."""
    with contextlib.ExitStack() as stack:
        backing = under or stack.enter_context(memory_file(size_mib))
        device = stack.enter_context(attached(backing, "--direct-io=on" if under else "--direct-io=off"))
        # A device keeps its queue's settings over a detach, and may admit more requests than it has tags until nr_requests changes.
        for name, value in [("scheduler", "none"), ("nr_requests", "64"), ("nr_requests", "128"), ("read_ahead_kb", "128")]:
            queue_setting(device, name).write_text(value)
        yield device


class Verdicts:
    """Studies of arrangements, and whether their verdicts are right."""

    def __init__(self, program):
        self.program, self.name, self.rows = program, "", []
        self.studies, self.broken = 0, []

    def report(self, *words):
        ended = subprocess.run(words, capture_output=True, text=True)
        if ended.returncode:
            die(f"{self.name}: {' '.join(words)}: {ended.stderr.strip()}")
        return json.loads(ended.stdout)

    def study(self, target, *options, only="depth,buffered,random", before=(), budget="15s"):
        with tempfile.TemporaryDirectory() as out:
            words = [*before, self.program, "study", *target, "--quick", "--budget", budget, "--json", "--output", out]
            limits = self.report(*words, "--only", only, *options)["answer"]["limits"]
            self.sound(f"{out}/results.json")
            return limits

    def sound(self, document):
        """Keeps what a study contradicts."""
        ended = subprocess.run([self.program, "report", "--check", document], capture_output=True, text=True)
        self.studies += 1
        if ended.returncode:
            self.broken.append(f"{self.name}: {ended.stdout.strip()}")
            print(f"! {self.broken[-1]}", flush=True)

    def written(self, device, **how):
        """A study that also writes the device."""
        return self.study([device, "--destroy-data", device], **{"budget": "40s", **how})

    def rate(self, targets):
        """Bytes per second of large direct reads at depth 16 of a stripe over these targets."""
        return self.report(self.program, "run", *targets, "--request", "256k", "--depth", "16", "--runtime", "3s", "--json")["points"][0]["throughput_bytes_per_s"]

    def expect(self, limits, of, op, *truth, says=""):
        """Checks that the first verdict on a rate is one of these, and that its sentence says this."""
        found = next((one for one in limits if one["of"] == of and one["op"] == op), None)
        what = found["what"] if found else "nothing"
        good = what in truth and says in found["sentence"]
        self.note(good, of, op, " or ".join(truth), what)
        if found and not good:
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
        with mount("-t", "overlay", "-o", options, "overlay") as mounted:
            limits = bench.study([mounted, "--size", "32m"])
            bench.expect(limits, "peak", "read", "throttle")
            bench.expect(limits, "plain", "write", "throttle")


@arrangement("btrfs raid0 on two throttled loops")
def striped_by_btrfs(bench):
    with contextlib.ExitStack() as stack:
        devices = [stack.enter_context(loop()) for _ in range(2)]
        mounted = stack.enter_context(btrfs("raid0", devices))
        for device in devices:
            stack.enter_context(throttled(device, read_bps=20_000_000, write_bps=20_000_000))
        bench.expect(bench.study([mounted, "--size", "32m"]), "peak", "read", "throttle")


@arrangement("btrfs raid1 on two loops that write 10 MB/s")
def mirrored_by_btrfs(bench):
    with contextlib.ExitStack() as stack:
        devices = [stack.enter_context(loop()) for _ in range(2)]
        mounted = stack.enter_context(btrfs("raid1", devices))
        for device in devices:
            stack.enter_context(throttled(device, write_bps=10_000_000))
        bench.expect(bench.study([mounted, "--size", "32m"]), "peak", "write", "throttle")


@arrangement("bfq above a throttled loop")
def bfq(bench):
    with loop() as device, throttled(device, read_iops=400):
        queue_setting(device, "scheduler").write_text("bfq")
        bench.expect(bench.study([device]), "random", "read", "throttle")


@arrangement("read-ahead of 4 KiB")
def read_ahead(bench):
    with loop() as device:
        queue_setting(device, "read_ahead_kb").write_text("4")
        bench.expect(bench.study([device]), "plain", "read", "read_ahead")


@arrangement("a queue of 4 above a volume of 2 ms")
def short_queue(bench):
    with slow_volume(2000) as mounted, loop(under=os.path.join(mounted, "disk")) as device:
        queue_setting(device, "nr_requests").write_text("4")
        bench.expect(bench.study([device]), "random", "read", "throttle", says="nr_requests 4")


@arrangement("a volume of 5 ms, one thread at a time")
def far_volume(bench):
    with slow_volume(5000) as mounted, loop(under=os.path.join(mounted, "disk")) as device:
        bench.expect(bench.study([device]), "plain", "read", "read_ahead", "latency")


@arrangement("a file system in user space")
def user_space(bench):
    with slow_volume(500) as mounted:
        bench.expect(bench.study([mounted, "--size", "32m"]), "random", "read", "file_system", "processor")


@arrangement("a network volume (as sshfs)")
def network_volume(bench):
    with slow_volume(500, "sshfs") as mounted:
        bench.expect(bench.study([mounted, "--size", "32m"]), "random", "read", "network", "latency", "processor")


@arrangement("few dirty pages above a slow volume")
def dirty_pages(bench):
    with slow_volume(20_000) as mounted, loop(under=os.path.join(mounted, "disk")) as device, dirty_bytes(1 << 20):
        limits = bench.written(device, only="depth,buffered")
        bench.expect(limits, "plain", "write", "device", says="write-back of dirty pages")


@arrangement("few dirty pages above 10 MB/s")
def dirty_pages_above_throttle(bench):
    with loop() as device, throttled(device, write_bps=10_000_000), dirty_bytes(1 << 20):
        limits = bench.written(device, only="depth,buffered")
        bench.expect(limits, "plain", "write", "throttle", says="write-back of dirty pages")


@arrangement("a flush after plain writes to a slow volume")
def flush(bench):
    with slow_volume(5000) as mounted, loop(under=os.path.join(mounted, "disk")) as device:
        limits = bench.written(device, only="depth,buffered")
        bench.expect(limits, "plain", "write", "flush", "device", says="longer writes are held to")


@arrangement("ext4 that syncs each write")
def synchronous(bench):
    with slow_volume(2000) as mounted, loop(under=os.path.join(mounted, "disk")) as device:
        with ext4(device, "-o", "sync") as mounted:
            bench.expect(bench.study([mounted, "--size", "16m"]), "plain", "write", "flush")


@arrangement("ext4 with its data in the journal")
def journal(bench):
    with loop() as device, ext4(device, "-o", "data=journal") as mounted:
        bench.expect(bench.study([mounted, "--size", "64m"]), "plain", "write", "file_system")


@arrangement("a compressed disk in memory")
def compressed(bench):
    with zram() as device:
        bench.expect(bench.written(device), "plain", "write", "processor", "thread")


@arrangement("a file in memory")
def memory(bench):
    with directory() as memory:
        bench.expect(bench.study([memory], only="depth"), "peak", "read", "memory")


@arrangement("a fifth of a processor")
def quota(bench):
    with loop() as device, control_group("cpu", cpu__cfs_period_us=20000, cpu__cfs_quota_us=4000) as inside:
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
        disks = []
        for bus in buses:
            stack.enter_context(throttled(bus, read_bps=BUS))
            for half in range(2):
                part = ["--offset", str(half * 64 << 20), "--sizelimit", str(64 << 20)]
                disk = stack.enter_context(attached(bus, "--direct-io=on", *part))
                stack.enter_context(throttled(disk, read_bps=DISK))
                disks.append(disk)
        narrow = {"bus": buses, "disk": disks}
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
            named = any(f" on {device_number(device)}:" in peak["sentence"] for device in narrow[narrowest])
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
