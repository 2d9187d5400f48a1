"""System calls of a program on the files of a run, by strace: offsets in order, syncs by file, bytes and times."""

import collections
import os
import pathlib
import re
import subprocess
import tempfile
from dataclasses import dataclass, field

READS = {"read", "pread64", "readv", "preadv", "preadv2"}
WRITES = {"write", "pwrite64", "writev", "pwritev", "pwritev2"}
SYNCS = {"fsync", "fdatasync", "sync_file_range"}
TRACED = ",".join(sorted(READS | WRITES | SYNCS | {"lseek", "io_submit"}))
CALL = re.compile(r"^(\d+\.\d+) (\w+)\((.*)\)\s+= (-?\d+)")
FILE = re.compile(r"^(\d+)<([^>]*)>(?:\(deleted\))?(?:, )?(.*)$", re.DOTALL)
QUEUED = re.compile(r"aio_lio_opcode=IOCB_CMD_(P?READV?|P?WRITEV?)\b.*?aio_fildes=\d+<([^>]*)>.*?aio_nbytes=(\d+), aio_offset=(\d+)")
VECTOR = re.compile(r"iov_len=(\d+)")


@dataclass
class Calls:
    """The calls of one thread."""

    # (file, "r" or "w", offset, bytes) in order.
    requests: list = field(default_factory=list)
    # Syncs of each file.
    syncs: collections.Counter = field(default_factory=collections.Counter)
    # Seconds of the first and the last call.
    span: list = field(default_factory=list)

    def add(self, at, name, does, offset, length):
        self.requests.append((name, does, offset, length))
        self.touch(at)

    def touch(self, at):
        self.span = [self.span[0] if self.span else at, at]


def parse(text, directory, names):
    """The calls in one thread's trace on files within a directory."""
    calls, positions = Calls(), {}
    for line in text.splitlines():
        match = CALL.match(line)
        if not match:
            continue
        at, name, arguments, result = float(match[1]), match[2], match[3], int(match[4])
        if name == "io_submit":
            for does, path, length, offset in QUEUED.findall(arguments):
                if inside(path, directory):
                    calls.add(at, name_of(path, names), "r" if "READ" in does else "w", int(offset), int(length))
            continue
        file = FILE.match(arguments)
        if not file or not inside(file[2], directory):
            continue
        number, path, rest = file[1], name_of(file[2], names), file[3]
        if name == "lseek":
            positions[number] = result
        elif name in SYNCS:
            calls.syncs[path] += 1
            calls.touch(at)
        elif result > 0:
            if name.startswith(("pread", "pwrite")):
                # The offset follows the length, or the number of vectors.
                words = rest.rsplit(", ", 2)
                offset = int(words[-2] if name.endswith("v2") else words[-1])
            else:
                offset = positions.get(number, 0)
                positions[number] = offset + result
            calls.add(at, path, "r" if name in READS else "w", offset, result)
    return calls


def name_of(path, names):
    """The name of a file; one that had none when it was opened is shown by its number."""
    name = os.path.basename(path)
    return names.get(name, name)


def inside(path, directory):
    """Whether a path is a file of a job, not one that describes it."""
    return os.path.dirname(path) == directory and not path.endswith((".fio", ".log", ".state"))


def traced(command, directory, timeout_s):
    """Runs a command in a directory; its completed process, and the calls of each thread but the first, which lays out files."""
    with tempfile.TemporaryDirectory(prefix="calls-") as where:
        # The limit of strings is that of lists, too: a call may queue as many requests.
        strace = ["strace", "-ff", "-ttt", "-y", "-s600", "-o", f"{where}/thread", "-e", f"trace={TRACED}"]
        done = subprocess.run([*strace, *command], cwd=directory, capture_output=True, timeout=timeout_s, check=False)
        threads = sorted(pathlib.Path(where).iterdir(), key=lambda path: int(path.suffix[1:]))
        inner = os.path.realpath(directory)
        names = {f"#{entry.inode()}": entry.name for entry in os.scandir(directory)}
        all_calls = [parse(path.read_text(encoding="utf8", errors="replace"), inner, names) for path in threads[1:]]
        return done, [calls for calls in all_calls if calls.requests or calls.syncs]
