#!/usr/bin/env python3
"""Seeded runs with --verify on sound storage: none may find a fault, and each damage made afterwards must be found.

Each run draws engine, depth, threads, pattern, request size, offset, mix, target and file system from its seed, on a region so small that
requests overlap all the time. Some runs are killed in the middle. Then `halfpower verify` reads the target back by the log: first it must find
nothing, then one block is damaged (a bit, zeros, a torn sector, an older copy of the block, another block's data), and it must find that.

    cargo build --release && sudo bench/verify_alarms.py --runs 2000 > verify_alarms.txt

As root: tmpfs, ext4, xfs and btrfs on loop devices over memory, and a loop device itself; as another user: a directory in /dev/shm."""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

KIB, MIB = 1 << 10, 1 << 20
UNIT = 512
# The log: header, records of block and kind, generation, checksum.
HEADER, RECORD = 56, struct.Struct("<QII")
PATTERNS = ["seq", "random", "uniform", "backward", "zipf:1.1", "zipf:0.8", "pareto:0.2", "hotcold:10:90", "normal:20"]
FILE_SYSTEMS = {"ext4": ["mkfs.ext4", "-q"], "xfs": ["mkfs.xfs", "-q"], "btrfs": ["mkfs.btrfs", "-q"]}


def tool(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


class Places:
    """Directories on file systems, and a loop device; all goes at the end."""

    def __init__(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="verify-alarms-", dir="/dev/shm"))
        self.mounts, self.loops, self.directories, self.device = [], [], {"tmpfs": self.top / "tmpfs"}, None
        self.directories["tmpfs"].mkdir()

    def fill(self):
        for name, make in FILE_SYSTEMS.items():
            if not shutil.which(make[0]):
                print(f"skipped: {make[0]} is missing")
                continue
            device, at = self.loop(name, 320 * MIB), self.top / name
            at.mkdir()
            tool(*make, device)
            tool("mount", device, str(at))
            self.mounts.append(at)
            self.directories[name] = at
        self.device = self.loop("disk", 8 * MIB)

    def loop(self, name, size):
        image = self.top / f"{name}.img"
        with open(image, "wb") as file:
            file.truncate(size)
        self.loops.append(tool("losetup", "--find", "--show", "--direct-io=off", str(image)))
        return self.loops[-1]

    def close(self):
        for at in reversed(self.mounts):
            # The requests of a killed run keep a file system busy for a moment.
            for _ in range(50):
                if subprocess.run(["umount", str(at)], check=False, capture_output=True).returncode == 0:
                    break
                time.sleep(0.1)
            else:
                subprocess.run(["umount", "--lazy", str(at)], check=False)
        for device in self.loops:
            subprocess.run(["losetup", "--detach", device], check=False)
        shutil.rmtree(self.top, ignore_errors=True)


class Case:
    """One run, drawn from its seed."""

    def __init__(self, seed, places, log):
        draw = self.draw = random.Random(seed)
        kind = draw.choice(["file"] * 5 + ["device", "stripe", "raid5"])
        kind = "file" if kind == "device" and not places.device else kind
        self.system = draw.choice(sorted(places.directories)) if kind != "device" else "loop"
        self.engine = draw.choice(["io_uring", "libaio"] + ([] if kind in ("stripe", "raid5") else ["sync", "threads", "mmap"]))
        direct = self.engine != "mmap" and self.system != "tmpfs" and draw.random() < 0.5
        step = 4 * KIB if direct or kind == "raid5" else UNIT
        request = draw.choice([1, 1, 1, 2, 3, 4, 8, 16]) * draw.choice([step, 4 * KIB])
        blocks = draw.choice([1, 2, 5, 16, 64])
        start, offset = draw.choice([0, 0, 4 * KIB]), draw.choice([0, 0, 1, 3]) * step
        region = max(request * blocks, 64 * KIB)
        threads = draw.choice([1, 1, 2, 4])
        region = max(region, request * threads)
        if kind in ("stripe", "raid5"):
            # Whole rows of either chunk over all members.
            region = -(-(start + offset + region) // (96 * KIB)) * 96 * KIB - start - offset
        depth = 1 if self.engine in ("sync", "mmap") else draw.choice([1, 2, 4, 16])
        pattern = draw.choice(PATTERNS)
        self.kind, self.log, self.killed = kind, log, draw.random() < 0.15
        count = 3 if kind in ("stripe", "raid5") else 1
        self.targets = [places.device] if kind == "device" else [str(places.directories[self.system] / f"file{i}") for i in range(count)]
        size = (start + offset + region) // (64 * KIB) * 64 * KIB + 128 * KIB
        if kind != "device":
            for target in self.targets:
                with open(target, "wb") as file:
                    file.write(os.urandom(size))
        total = draw.choice([1, 2, 4]) * MIB
        self.words = ["run", *self.targets, *[word for target in self.targets for word in ("--destroy-data", target)]]
        self.words += {"stripe": ["--chunk", draw.choice(["4k", "16k"])], "raid5": ["--raid", "5", "--chunk", draw.choice(["4k", "16k"]), "--size", str(3 * (start + offset + region) // 2)]}.get(kind, [])
        self.words += ["--op", "mix", "--read-percent", str(draw.choice([20, 50, 80]))] if draw.random() < 0.9 else ["--op", "write"]
        self.words += ["--pattern", pattern, "--request", str(request), "--engine", self.engine, "--depth", str(depth), "--threads", str(threads)]
        self.words += ["--region-start", str(start), "--region", str(offset + region), "--offset", str(offset)]
        self.words += ["--direct" if direct else "--buffered"]
        self.words += ["--memory", "pages"] if draw.random() < 0.5 else []
        self.words += ["--dsync"] if draw.random() < 0.1 and self.engine != "mmap" else []
        self.words += ["--reap", "poll"] if self.engine in ("io_uring", "libaio") and draw.random() < 0.2 else []
        self.words += (
            ["--runtime", "30"] if self.killed else draw.choice([["--runtime", "200ms"], ["--bytes", str(max(total, 4 * request * threads * depth))]])
        )
        self.words += ["--repeats", "1", "--max-repeats", "1", "--seed", str(seed), "--verify", "--verify-log", str(log), "--json"]

    def reading(self):
        layout = []
        for name in ("--chunk", "--raid", "--size"):
            if name in self.words:
                layout += [name, self.words[self.words.index(name) + 1]]
        return ["verify", str(self.log), *self.targets, *layout, "--json"]

    def done_blocks(self):
        """Offset and length of a block whose last write is done and overlapped no other: all of it must be there."""
        data = self.log.read_bytes()
        request, first = struct.unpack_from("<I", data, 12)[0], struct.unpack_from("<Q", data, 24)[0]
        under_way, certain = collections.Counter(), {}
        for block_kind, generation, _ in RECORD.iter_unpack(data[HEADER : HEADER + (len(data) - HEADER) // 16 * 16]):
            block, kind = block_kind >> 2, block_kind & 3
            if kind == 1:
                under_way[block] += 1
                certain[block] = None if under_way[block] > 1 else generation
            else:
                under_way[block] -= 1
                if kind == 3:
                    certain[block] = None
        sound = [block for block, generation in certain.items() if generation and not under_way[block]]
        return [(first + block * request, request) for block in sound]

    def damage(self, older):
        """Damages a block; the name of the damage, or none if no block is certain or where it is is not known."""
        blocks = self.done_blocks()
        if self.kind in ("stripe", "raid5") or not blocks:
            return None
        draw = self.draw
        offset, length = draw.choice(blocks)
        name = draw.choice(["flip", "zeros", "torn", "older", "elsewhere"])
        with open(self.targets[0], "r+b", buffering=0) as file:
            sound = os.pread(file.fileno(), length, offset)
            if name == "flip":
                at = draw.randrange(length)
                wrong = sound[:at] + bytes([sound[at] ^ 1 << draw.randrange(8)]) + sound[at + 1 :]
            elif name == "torn":
                at = draw.randrange(64, length - 63)
                wrong = sound[:at] + draw.randbytes(length - at)
            elif name == "older":
                wrong = older[offset : offset + length]
            elif name == "elsewhere":
                other = draw.choice(blocks)[0]
                wrong = os.pread(file.fileno(), length, other)
            else:
                wrong = bytes(length)
            if wrong == sound or len(wrong) != length:
                return None
            os.pwrite(file.fileno(), wrong, offset)
            os.fsync(file.fileno())
        return name


def halfpower(program, words, kill_after=None):
    child = subprocess.Popen([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "HALFPOWER_HISTORY": "none"})
    if kill_after is not None:
        log, least, until = kill_after
        while child.poll() is None and time.time() < until and not (log.exists() and log.stat().st_size > least):
            time.sleep(0.002)
        child.send_signal(signal.SIGKILL)
    out, err = child.communicate()
    return child.returncode, out, err


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--seed", type=int, default=1, help="of the first run; the others count on")
    options.add_argument("--program", default=str(pathlib.Path(__file__).resolve().parent.parent / "target/release/halfpower"))
    options = options.parse_args()
    places = Places()
    counts, kinds, found = collections.Counter(), collections.Counter(), collections.Counter()
    checked = unjudged = 0
    failures = []
    try:
        if os.geteuid() == 0:
            places.fill()
        for seed in range(options.seed, options.seed + options.runs):
            log = places.top / "log"
            log.unlink(missing_ok=True)
            case = Case(seed, places, log)
            before = pathlib.Path(case.targets[0]).read_bytes() if case.kind != "device" else None
            if case.kind == "device":
                with open(case.targets[0], "rb") as file:
                    before = file.read()
            until = (log, case.draw.choice([1_000, 20_000, 100_000]), time.time() + 20) if case.killed else None
            code, out, err = halfpower(options.program, case.words, until)
            counts["runs"] += 1
            counts["killed"] += case.killed
            kinds[f"{case.engine} {case.kind} {case.system}"] += 1
            shown = f"seed {seed}: halfpower {' '.join(case.words)}"
            if not case.killed:
                document = json.loads(out) if out else {}
                verification = (document.get("points") or [{}])[0].get("verification") or {}
                checked += verification.get("checked_bytes", 0)
                unjudged += verification.get("unjudged_bytes", 0)
                if code != 0:
                    alarm = bool(verification.get("faults"))
                    counts["alarms" if alarm else "refused or failed"] += 1
                    failures.append(f"{shown}\n  exit code {code}: {verification.get('first_faults', [])[:2]} {err.strip()}")
                    continue
            elif not log.exists() or log.stat().st_size < HEADER:
                counts["killed before anything was written"] += 1
                continue
            # The kernel may still complete requests of the killed process.
            code, out, err = halfpower(options.program, case.reading())
            if code != 0:
                alarm = bool(out)
                counts["alarms by the log" if alarm else "refused or failed"] += 1
                failures.append(f"{shown}\n  {' '.join(case.reading())}: exit code {code}: {json.loads(out)['first_faults'][:2] if out else ''} {err.strip()}")
                continue
            damage = case.damage(before)
            if damage is None:
                counts["not damaged"] += 1
                continue
            code, out, err = halfpower(options.program, case.reading())
            if code == 1 and out and json.loads(out)["faults"]:
                found[damage] += 1
            else:
                counts["MISSED"] += 1
                failures.append(f"{shown}\n  {damage} was not found: {case.reading()} exit code {code} {out} {err}")
            if sys.stderr.isatty():
                print(f"\r{counts['runs']} of {options.runs}", end="", file=sys.stderr)
    finally:
        places.close()
    print(f"{counts['runs']} runs from seed {options.seed}, {counts['killed']} of them killed: {counts['alarms']} alarms, {counts['alarms by the log']} by the log")
    print(f"{sum(found.values())} of {sum(found.values()) + counts['MISSED']} damages found: " + ", ".join(f"{n} {name}" for name, n in sorted(found.items())))
    print(f"{checked / MIB:.0f} MiB judged, {unjudged / MIB:.0f} MiB not, since the run had not written them")
    print("others: " + (", ".join(f"{n} {name}" for name, n in counts.items() if n and name not in ("runs", "killed")) or "none"))
    for index in (0, 1, 2):
        by = collections.Counter()
        for name, n in kinds.items():
            by[name.split()[index]] += n
        print("  " + ", ".join(f"{n} {name}" for name, n in sorted(by.items())))
    for failure in failures:
        print(failure)
    bad = counts["alarms"] + counts["alarms by the log"] + counts["MISSED"] + counts["refused or failed"]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
