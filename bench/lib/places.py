"""Places to measure: files in memory, loop devices, throttles, mounts. Each is a context manager and removes what it made."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from .machine import MIB, die, output

PREFIX = "halfpower-bench-"
MEMORY = "/dev/shm"
GROUPS = pathlib.Path("/sys/fs/cgroup")
THROTTLES = ("read_bps", "write_bps", "read_iops", "write_iops")


def directory(root=MEMORY):
    return tempfile.TemporaryDirectory(dir=root, prefix=PREFIX)


def write_random(path, mib):
    """Fills a file, so that no run pays for the first use of a page."""
    with open(path, "wb") as file:
        for _ in range(mib):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())


@contextlib.contextmanager
def memory_file(mib):
    with directory() as root:
        path = os.path.join(root, "data")
        write_random(path, mib)
        yield path


@contextlib.contextmanager
def attached(file, *options):
    """A loop device over a file or another device."""
    device = output("losetup", "--find", "--show", *options, file)
    try:
        yield device
    finally:
        output("losetup", "--detach", device)


@contextlib.contextmanager
def memory_loop(mib):
    with memory_file(mib) as file, attached(file) as device:
        yield device


def device_number(device):
    return pathlib.Path("/sys/class/block", os.path.basename(device), "dev").read_text().strip()


def queue_setting(device, name):
    return pathlib.Path("/sys/class/block", os.path.basename(device), "queue", name)


def own_group():
    """The blkio control group of this process."""
    found = next((line.split(":", 2)[2].strip() for line in open("/proc/self/cgroup") if ":blkio:" in line), None)
    if found is None:
        die("the kernel has no blkio control groups of version 1")
    return found.strip("/")


def set_throttle(device, limits, group=""):
    """Sets the limits of a device for a blkio control group and lifts those not named."""
    for name in THROTTLES:
        file = GROUPS / "blkio" / group / f"blkio.throttle.{name}_device"
        file.write_text(f"{device_number(device)} {limits.get(name, 0)}")


@contextlib.contextmanager
def throttled(device, group="", **limits):
    try:
        set_throttle(device, limits, group)
        yield
    finally:
        set_throttle(device, {}, group)


@contextlib.contextmanager
def control_group(kind, **values):
    """A control group with these settings; yields the words that start a command in it."""
    group = GROUPS / kind / "halfpower-bench"
    group.mkdir(exist_ok=True)
    try:
        for name, value in values.items():
            (group / name.replace("__", ".")).write_text(str(value))
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    finally:
        group.rmdir()


def unmount(mounted):
    """The kernel closes the files of an io_uring a moment after its program has ended."""
    for _ in range(100):
        ended = subprocess.run(["umount", mounted], capture_output=True, text=True)
        if ended.returncode == 0:
            return
        time.sleep(0.1)
    raise RuntimeError(ended.stderr)


@contextlib.contextmanager
def mount(*words):
    """Mounts something on a new directory."""
    with directory(None) as mounted:
        output("mount", *words, mounted)
        try:
            yield mounted
        finally:
            unmount(mounted)


@contextlib.contextmanager
def ext4(device, *options):
    output("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", device)
    with mount(*options, device) as mounted:
        yield mounted


@contextlib.contextmanager
def btrfs(profile, devices, *options, discard=False):
    """A btrfs with this profile of data over several devices."""
    output("mkfs.btrfs", "-q", "-f", *([] if discard else ["-K"]), "-d", profile, "-m", "raid1", *devices)
    try:
        with mount("-t", "btrfs", *options, devices[0]) as mounted:
            yield mounted
    finally:
        subprocess.run(["btrfs", "device", "scan", "--forget"], capture_output=True, check=False)


@contextlib.contextmanager
def slow_volume(microseconds, kind=None, size_mib=128):
    """A FUSE file system whose requests all take this long; its directory holds a file `disk`."""
    with directory(None) as mounted:
        script = pathlib.Path(__file__).with_name("slow_volume.py")
        words = [sys.executable, script, mounted, str(size_mib), str(microseconds), *([kind] if kind else [])]
        with subprocess.Popen(words) as server:
            while not os.path.ismount(mounted):
                if server.poll() is not None:
                    raise RuntimeError("the slow volume was not mounted")
                time.sleep(0.01)
            try:
                yield mounted
            finally:
                unmount(mounted)


@contextlib.contextmanager
def kept(*files):
    """Restores kernel settings. Of a pair that excludes each other (bytes and ratio), the inactive one reads 0 and is left out."""
    files = [pathlib.Path(file) for file in files]
    before = [file.read_text().strip() for file in files]
    try:
        yield files
    finally:
        for file, value in zip(files, before):
            if value != "0" or len(files) == 1:
                file.write_text(value)


@contextlib.contextmanager
def dirty_bytes(limit):
    """Limits the dirty bytes of the page cache."""
    names = ["dirty_ratio", "dirty_background_ratio", "dirty_bytes", "dirty_background_bytes"]
    with kept(*(f"/proc/sys/vm/{name}" for name in names)) as files:
        files[2].write_text(str(limit))
        files[3].write_text(str(limit // 2))
        yield


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
    """A compressed disk in memory."""
    if not os.path.exists("/sys/class/zram-control"):
        output("modprobe", "zram")
    number = pathlib.Path("/sys/class/zram-control/hot_add").read_text().strip()
    sysfs = pathlib.Path(f"/sys/block/zram{number}")
    try:
        (sysfs / "disksize").write_text(str(size_mib << 20))
        yield f"/dev/zram{number}"
    finally:
        (sysfs / "reset").write_text("1")
        pathlib.Path("/sys/class/zram-control/hot_remove").write_text(number)
