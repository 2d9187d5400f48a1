"""IOR and mdtest side by side with halfpower's, on the same hosts and the same throttled file system."""

import json
import re
import statistics
import subprocess

from .machine import MIB, cpu_model, die, need, progress
from .page import table
from .places import attached, ext4, own_group, memory_file, throttled
from .ranks import hosts, sectors
from .runner import interleave
from .stats import ratios

HOSTS = 3
RATE = 20 * MIB
# Direct I/O: the throttle decides, not the page cache.
IOR = {
    "a file of each task": "-w -r -C --posix.odirect -t 256k -b 16m -F -e",
    "one file": "-w -r -C --posix.odirect -t 256k -b 16m -e",
    "one file, segments": "-w -r -C --posix.odirect -t 48k -b 48k -s 300 -e",
    "one file, random": "-w -r -z --posix.odirect -t 64k -b 12m -e",
}
# The sync of each phase is in its time.
MDTEST = {"files of 64 KiB": "-n 450 -F -w 65536 -Y -u -d t"}


def keys(value, path=""):
    """Names of all fields, with those around them."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{path}.{name}"
            yield from keys(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, path)


def run(command, mounted, device):
    before = sectors(device)
    done = subprocess.run(command, cwd=mounted, capture_output=True, text=True, check=False)
    if done.returncode:
        die(f"{' '.join(command)}: {done.stderr or done.stdout}")
    subprocess.run(["sync", "-f", mounted], check=True)
    read, written = (now - was for now, was in zip(sectors(device), before))
    return done.stdout, read, written


def of_ior(text):
    document = json.loads(text[text.index("{"):])
    return {one["operation"]: one["bwMeanMIB"] for one in document["summary"]}, set(keys(document))


def of_mdtest(text):
    found = re.findall(r"^ +(File creation|File removal) +([\d.]+)", text, re.M)
    return {name: float(rate) for name, rate in found if name == "File creation"}, set()


def ior(options):
    """IOR and mdtest in three network namespaces, each program in turn, on an ext4 of 20 MiB/s. Fails if a rate differs by more than
    5 %, the bytes at the device by more than 2 %, or a field of IOR's JSON is missing."""
    need("mpirun", "ip", "losetup", "mkfs.ext4", root=True)
    cases = [("ior", name, words, of_ior) for name, words in IOR.items()]
    cases += [("mdtest", name, words, of_mdtest) for name, words in MDTEST.items()]
    rows, good, missing = [], True, set()
    with hosts(HOSTS) as launch, memory_file(512) as file, attached(file) as device, ext4(device) as mounted:
        with throttled(device, own_group(), read_bps=RATE, write_bps=RATE):
            for tool, name, words, parse in cases:
                extra = ["-O", "summaryFormat=JSON", "-o", "f"] if tool == "ior" else []
                programs = {"original": [str(getattr(options, tool))], "halfpower": [options.halfpower, tool]}

                def measure(arm):
                    text, read, written = run([*launch, *programs[arm], *words.split(), *extra], mounted, device)
                    return (*parse(text), read, written)

                found = interleave(programs, options.rounds, measure, name)
                missing |= found["original"][0][1] - found["halfpower"][0][1]
                for rate in found["original"][0][0]:
                    own, theirs = ([one[0][rate] for one in found[arm]] for arm in ("halfpower", "original"))
                    place = 2 if rate == "read" else 3
                    moved = statistics.median(ratios(*([one[place] for one in found[arm]] for arm in ("halfpower", "original"))))
                    ratio = statistics.median(own) / statistics.median(theirs)
                    good &= abs(ratio - 1) <= 0.05 and abs(moved - 1) <= 0.02
                    rows.append([tool, name, f"`{words}`", rate, f"{statistics.median(theirs):.1f}", f"{statistics.median(own):.1f}", f"{ratio:.3f}", f"{moved:.3f}"])
    progress("")
    page = [
        "# IOR and mdtest side by side\n",
        f"Made by `bench/peers.py ior` on {cpu_model()}: {HOSTS} hosts as network namespaces, an ext4 of {RATE // MIB} MiB/s that all see, medians of "
        f"{options.rounds} rounds in turn. Rates in MiB/s, of mdtest in files a second; bytes at the device.\n",
        *table(["tool", "case", "options", "what", "original", "halfpower", "rate, ratio", "bytes, ratio"], rows),
        f"\nFields of the original's JSON that are missing: {', '.join(sorted(missing)) or 'none'}.",
    ]
    print("\n".join(page))
    return page, good and not missing


def ior_summary(tables):
    rows = tables[0][2]
    return table(["tool", "case", "what", "original", "halfpower", "rate, ratio", "bytes, ratio"], [row[:2] + row[3:] for row in rows])
