#!/usr/bin/env python3
"""halfpower's own RAID 0 and RAID 5 beside those of btrfs, on the same loop devices over memory.

    bench/stripes.py [--halfpower target/release/halfpower] [--member-mib 256] [--rounds 5] [--seconds 0.5] [--output docs/stripes.md]

Needs root, mkfs.btrfs and memory for four members. In every round all sets run in an order drawn anew; each is made before its turn and removed after
it, for they share the devices. A cell is the median over the rounds, with the least and the greatest. The processor's time is that of the whole machine
(kernel threads compute the parity of btrfs), for each MiB. Prints Markdown.
"""

import argparse
import datetime
import json
import os
import platform
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile

# What is measured to compare is no part of the history of who runs this.
os.environ["HALFPOWER_HISTORY"] = "none"

MEMBERS = 4
SIZE_MIB = 192
CHUNK = "64k"
# btrfs has chunks of 64 KiB. A mirror is no stripe; it stands here for what it costs.
SETS = ["halfpower RAID 0", "btrfs raid0", "halfpower RAID 5", "btrfs raid5", "btrfs raid1", "btrfs raid10"]
WORKLOADS = [
    ("write, sequential, 768 KiB x 8", "--op write --request 768k --depth 8"),
    ("write, sequential, 64 KiB x 8", "--op write --request 64k --depth 8"),
    ("write, random, 4 KiB x 8", "--op write --pattern random --request 4k --depth 8"),
    ("read, sequential, 768 KiB x 8", "--op read --request 768k --depth 8"),
    ("read, random, 4 KiB x 8", "--op read --pattern random --request 4k --depth 8"),
]


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


class Bench:
    def __init__(self, options, memory):
        self.options, self.memory, self.devices = options, memory, []
        self.mount = os.path.join(memory, "mount")
        os.mkdir(self.mount)
        for number in range(MEMBERS):
            file = os.path.join(memory, f"member{number}")
            with open(file, "wb") as member:
                # Every page is there: no run pays for the first touch of one.
                for _ in range(options.member_mib):
                    member.write(os.urandom(1 << 20))
            self.devices.append(output("losetup", "--find", "--show", file))

    def close(self):
        for device in self.devices:
            subprocess.run(["losetup", "--detach", device], check=False)

    def run(self, words, where):
        """Rate in MiB/s, processor ms a MiB of the whole machine, the share of parity in the process's time."""
        command = [self.options.halfpower, "run", *where, *words.split(), "--runtime", f"{self.options.seconds}s", "--repeats", "1"]
        done = subprocess.run([*command, "--max-repeats", "1", "--json"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        point = json.loads(done.stdout)["points"][0]
        a_mib = (1 << 20) / point["workload"]["request_bytes"] / 1e6
        parity = point["achieved"].get("parity_ns_per_mib")
        return point["throughput_bytes_per_s"] / (1 << 20), point["cpu_ns_per_request"]["machine"] * a_mib, parity and parity / 1e6

    def all_of(self, name):
        """What each workload gives on a set."""
        program, kind = name.split(" ", 1)
        if program == "halfpower":
            # Of each member a part, so that all sets use as many bytes.
            size = SIZE_MIB if kind == "RAID 0" else SIZE_MIB * MEMBERS // (MEMBERS - 1)
            where = [*self.devices, "--raid", kind[-1], "--chunk", CHUNK, "--size", f"{size}m"]
            for device in self.devices:
                where += ["--destroy-data", device]
            # What btrfs left has a signature.
            return [self.run(words, [*where, "--destroy-signature"]) for _, words in WORKLOADS]
        output("mkfs.btrfs", "--force", "--data", kind, "--metadata", "raid1", *self.devices)
        # Checksums are no part of a stripe.
        output("mount", "-o", "nodatasum,nodatacow", self.devices[0], self.mount)
        try:
            return [self.run(words, [self.mount, "--size", f"{SIZE_MIB}m"]) for _, words in WORKLOADS]
        finally:
            output("umount", self.mount)
            subprocess.run(["btrfs", "device", "scan", "--forget"], capture_output=True, check=False)

    def rounds(self):
        found = {name: [[] for _ in WORKLOADS] for name in SETS}
        for round in range(self.options.rounds):
            for name in random.sample(SETS, len(SETS)):
                print(f"\rround {round + 1} of {self.options.rounds}: {name}\033[K", end="", file=sys.stderr, flush=True)
                for cell, value in zip(found[name], self.all_of(name)):
                    cell.append(value)
        print("\r\033[K", end="", file=sys.stderr)
        return found


def shown(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def parity():
    """The rows of the bench of parity, of the widest vectors, which come first."""
    printed = output("cargo", "bench", "--quiet", "-p", "halfpower-host", "--bench", "parity").splitlines()
    cells = [row for row in (re.split(r"\s{2,}", line.strip()) for line in printed) if len(row) == 6 and row[1].isdigit()]
    widest = {(row[0], row[1]): row for row in reversed(cells)}
    return [f"| {' | '.join(row)} |" for row in reversed(widest.values())]


def page(options, found):
    processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    lines = [
        "# Stripes beside those of btrfs",
        "",
        f"halfpower's own RAID 0 and RAID 5 ({CHUNK.replace('k', ' KiB')} chunks) and btrfs's profiles (no checksums, no copy on write) over the same {MEMBERS} loop",
        f"devices of {options.member_mib} MiB in memory: medians of {options.rounds} rounds, least and greatest beside them. Direct I/O through io_uring,",
        f"{options.seconds} s each. Processor time is the whole machine's, for each MiB. There is no medium: what differs is the work of the",
        f"processor. Made by `bench/stripes.py` on {datetime.date.today()}: {processor}, {os.cpu_count()} processors, Linux {platform.release()};",
        f"load average at the end {os.getloadavg()[0]:.1f}; program `{options.halfpower}`.",
        "",
    ]
    for number, (title, _) in enumerate(WORKLOADS):
        lines += [f"## {title[0].upper()}{title[1:]}", "", "| set | MiB/s | processor ms a MiB | of it parity |", "|---|---|---|---|"]
        for name in SETS:
            cells = found[name][number]
            of_parity = [value[2] for value in cells if value[2] is not None]
            told = shown(of_parity, 3) if of_parity else ("in the kernel" if name == "btrfs raid5" and "write" in title else "")
            lines.append(f"| {name} | {shown([value[0] for value in cells], 0)} | {shown([value[1] for value in cells], 2)} | {told} |")
        lines.append("")
    lines += [
        "## What parity itself costs",
        "",
        "`cargo bench -p halfpower-host --bench parity`: the XOR beside `memcpy`, both as bytes read and written per second, by the widest vectors here,",
        "by the size of a piece and the number of sources. One source is a copy by the same vectors: out of the second cache memcpy may be faster than any,",
        "where the processor's own string copy does not read what it overwrites.",
        "",
        "| piece | sources | vectors | parity | memcpy | parity / memcpy |",
        "|---|---|---|---|---|---|",
        *parity(),
        "",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--halfpower", default="target/release/halfpower")
    parser.add_argument("--member-mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--output")
    options = parser.parse_args()
    # Devices and mounts go, however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="halfpower-stripes-") as memory:
        bench = Bench(options, memory)
        try:
            text = page(options, bench.rounds())
        finally:
            bench.close()
    if options.output:
        with open(options.output, "w") as file:
            file.write(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
