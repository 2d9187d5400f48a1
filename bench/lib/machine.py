"""This machine, and the commands that run on it."""

import os
import platform
import re
import shutil
import signal
import subprocess
import sys

KIB, MIB = 1 << 10, 1 << 20

# Benchmark runs stay out of the user's history.
os.environ["HALFPOWER_HISTORY"] = "none"


def die(why):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {why}")


def exit_on_sigterm():
    """Turns SIGTERM into an exception, so that devices and files are removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))


def output(*command):
    """Standard output of a command that must succeed."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def progress(text):
    print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


def need_program(path):
    """Absolute path of the halfpower program."""
    if not os.access(path, os.X_OK):
        die(f"{path} does not exist or is not executable: run cargo build --release, or name another with --halfpower")
    return os.path.abspath(path)


def need(*tools, root=False):
    for tool in tools:
        if not shutil.which(tool):
            die(f"{tool} is not installed")
    if root and os.geteuid():
        die("this needs root, for loop devices")


def cpu_model():
    return next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())


def machine():
    memory = int(re.search(r"MemTotal: +(\d+)", open("/proc/meminfo").read()).group(1)) / MIB
    virtual = ""
    if shutil.which("systemd-detect-virt"):
        virtual = subprocess.run(["systemd-detect-virt"], capture_output=True, text=True).stdout.strip()
    guest = f", a guest of {virtual}" if virtual not in ("", "none") else ""
    return f"{os.cpu_count()} processors ({cpu_model()}), {memory:.0f} GiB, Linux {platform.release()}{guest}"
