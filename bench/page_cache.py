#!/usr/bin/env python3
"""The page cache by two programs: the same fio job by fio and by `halfpower fio`, over the sizes of requests.

    bench/page_cache.py [--rounds 12] [--seconds 0.3] [--places disk,tmpfs] [--directory /var/tmp] [--halfpower target/release/halfpower]
                        [--output docs/page-cache.md]

One thread reads or overwrites a file in the page cache, one request after the other from its start to its end. All arms have the same file: how large
its folios are, which its first writer or reader decides, changes a rate up to four times. A third arm is fio with buffers that begin at a cache line:
malloc's do not. A ratio is to fio's default in the same round, with the 95 % interval of the median by order statistics. Needs fio.
"""

import argparse
import json
import os
import tempfile

from driver import MIB, clean_up_when_told_to_end, machine, of_median, output

FILE_BYTES = 128 * MIB
SIZES = ["4k", "16k", "64k", "256k", "1m"]
FIO = "fio"
# fio's own option; nothing else differs.
LINE = "fio, buffers at a cache line"
OURS = "halfpower"


def rate(program, path, op, size, seconds):
    job = [
        *("--name=cached", f"--filename={path}", f"--size={FILE_BYTES}", f"--rw={op}", f"--bs={size}", "--ioengine=psync", "--invalidate=0"),
        *("--overwrite=1", "--time_based", f"--runtime={round(seconds * 1000)}ms", "--thread", "--output-format=json"),
    ]
    text = output(*program, *job, *([] if program[0] == FIO else [f"--destroy-data={path}"]))
    return json.loads(text[text.index("{") :])["jobs"][0][op]["iops"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--places", type=lambda text: text.split(","), default=["disk", "tmpfs"])
    parser.add_argument("--directory", default="/var/tmp", help="where the file of the place `disk` is made")
    parser.add_argument("--halfpower", default="target/release/halfpower")
    parser.add_argument("--output")
    options = parser.parse_args()
    clean_up_when_told_to_end()
    arms = {FIO: ["fio"], LINE: ["fio", "--iomem_align=64"], OURS: [options.halfpower, "fio"]}
    lines = [
        "# The page cache, by the size of requests",
        "",
        "One thread reads or overwrites a cached file of 128 MiB, one request after the other. The same job on the same file by fio and by `halfpower fio`; a",
        "ratio is to fio's default in the same round, with the 95 % interval of its median. Made by `bench/page_cache.py`.",
        "",
        f"{options.rounds} rounds of {options.seconds} s, {machine()}",
        "",
        f"| place | op | request | fio | {LINE} | {OURS} |",
        "|---|---|---|---|---|---|",
    ]
    for place in options.places:
        root = "/dev/shm" if place == "tmpfs" else options.directory
        with tempfile.NamedTemporaryFile(dir=root, prefix="page-cache-") as file:
            for _ in range(FILE_BYTES // MIB):
                file.write(os.urandom(MIB))
            os.fsync(file.fileno())
            for op, size in ((op, size) for op in ("read", "write") for size in SIZES):
                found = {arm: [] for arm in arms}
                for number in range(options.rounds):
                    for arm in list(arms)[:: 1 if number % 2 else -1]:
                        found[arm].append(rate(arms[arm], file.name, op, size, options.seconds))
                cells = ["{:.2f} ({:.2f} to {:.2f})".format(*of_median([a / b for a, b in zip(found[arm], found[FIO])])) for arm in (LINE, OURS)]
                lines.append(f"| {place} | {op} | {size} | {of_median(found[FIO])[0] / 1e3:,.1f} k/s | {cells[0]} | {cells[1]} |")
                print(lines[-1], flush=True)
    if options.output:
        with open(options.output, "w") as page:
            page.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
