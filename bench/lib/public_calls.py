"""Public fio jobs, call by call: offsets in order, syncs by file, times, and the reported against the counted requests."""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

from . import calls, public_jobs
from .machine import MIB, need
from .page import table
from .programs import fio_version

# This comparison keeps the options that the comparison of work drops.
KEPT = {"ramp_time", "write_bw_log", "write_lat_log", "write_iops_log", "startdelay", "start_delay"}
TIMED = {"ramp_time": "1", "startdelay": "0", "start_delay": "0"}
# Engines whose requests strace does not see, and one that makes the same.
SEEN = {"io_uring": "libaio", "posixaio": "psync"}
# Engines that make no system calls for their requests.
UNSEEN = frozenset({"mmap", "null"})
MARKS = re.compile(r"\.state$|^\..*\.halfpower$|\.hdr_fail$")
TIMEOUT_S = 90
# A clock that a run must keep, and what tracing may add.
TIME_SHARE, TIME_MS = 0.02, 400
RATE_SHARE = 0.02


def prepared(entry):
    """Sections of a run that can be traced, and the files that exist before it."""
    sections, premade, why = public_jobs.prepared(entry, dropped=public_jobs.DROPPED - KEPT)
    if why:
        return None, None, why

    def one(option):
        name, _, value = option.partition("=")
        if name in TIMED:
            return f"{name}={TIMED[name]}"
        return f"ioengine={SEEN.get(value.strip(), value)}" if name == "ioengine" else option

    sections = [(name, [one(option) for option in options]) for name, options in sections]
    if not values(sections, "time_based"):
        # A shortened job would end within its ramp.
        sections = [(name, [option for option in options if not option.startswith("ramp_time=")]) for name, options in sections]
    return sections, premade, None


def run(program, text, premade):
    """The report, the calls by thread, and the files left; or why there is no report."""
    with tempfile.TemporaryDirectory(prefix="peers-") as directory:
        with open(f"{directory}/jobs.fio", "w", encoding="utf8") as file:
            file.write(text)
        for name in premade:
            with open(f"{directory}/{name}", "wb") as file:
                file.write(os.urandom(MIB) * (public_jobs.FILE // MIB))
        more = [f"--destroy-data={name}" for name in premade] if os.path.basename(program[0]) != "fio" else []
        for given in ([], more):
            command = [*program, *given, "--output-format=json", "jobs.fio"]
            try:
                # The first run lays out the files, which is not the work of the jobs.
                subprocess.run(command, cwd=directory, capture_output=True, timeout=TIMEOUT_S, check=False)
                done, threads = calls.traced(command, directory, TIMEOUT_S)
            except subprocess.TimeoutExpired:
                return None, f"not finished after {TIMEOUT_S} s"
            output = done.stdout.decode("utf8", "replace")
            if done.returncode == 0 and "{\n" in output:
                # halfpower marks files that it laid out; fio dumps blocks that differ.
                left = sorted(name for name in os.listdir(directory) if not MARKS.search(name))
                return (json.loads(output[output.index("{\n"):]), threads, left), None
            more = re.findall(r"--destroy-data=\S+", done.stderr.decode("utf8", "replace")) or more
        return None, (done.stderr.decode("utf8", "replace").strip().splitlines() or ["no report"])[-1]


def values(sections, *names):
    return [option.partition("=")[2] or "1" for _, options in sections for option in options if option.split("=")[0] in names]


def files_of(threads):
    """Reads, writes and syncs by file."""
    count = collections.Counter()
    for thread in threads:
        count.update((name, does) for name, does, _, _ in thread.requests)
        count.update({(name, "sync"): number for name, number in thread.syncs.items()})
    return count


def totals_of(threads):
    """Reads, writes and syncs of all files."""
    count = collections.Counter()
    for (_, does), number in files_of(threads).items():
        count[does] += number
    return count


def reported(document):
    """Requests of all jobs, and their rates and times by direction."""
    each_side = [side for job in document["jobs"] for side in public_jobs.sides(job)]
    total = sum(side["total_ios"] for side in each_side)
    each = [(side["iops"], side["runtime"]) for side in each_side]
    return total, each


def differs(sections, ours, theirs):
    """How the calls of equal jobs differ; None if they do not, or are not determined."""
    (ours, our_threads, our_files), (theirs, their_threads, their_files) = ours, theirs
    if our_files != their_files:
        return f"files left: {' '.join(our_files)[:70]}, and fio's {' '.join(their_files)[:70]}"
    logs = set(values(sections, "write_iolog"))
    for thread in [*our_threads, *their_threads]:
        thread.requests = [request for request in thread.requests if request[0] not in logs]
    if any(re.search("left out|was stopped for|do not trust it", warning) for warning in ours["halfpower"]["warnings"]):
        # Under a loaded computer the run was interrupted: the calls are those of several runs.
        return None
    pairs = [(name, document, threads) for name, document, threads in (("halfpower", ours, our_threads), ("fio", theirs, their_threads))]
    grouped = bool(values(sections, "ramp_time", "verify", "loops", "pre_read", "latency_target", "continue_on_error"))
    for name, document, threads in pairs:
        counted, (total, _) = sum(len(thread.requests) for thread in threads), reported(document)
        if not grouped and counted and abs(total - counted) > RATE_SHARE * counted + 1:
            return f"{name} reports {total} requests and makes {counted}"
    timed = values(sections, "time_based")
    ends = values(sections, *public_jobs.ENDS - {"rate", "rate_iops", "time_based", "runtime", "timeout"})
    paced = values(sections, "rate", "rate_iops", "thinktime")
    (_, own), (_, other) = reported(ours), reported(theirs)
    if (timed or paced) and not ends:
        for (rate, ms), (fio_rate, fio_ms) in zip(own, other):
            if timed and abs(ms - fio_ms) > TIME_SHARE * fio_ms + TIME_MS:
                return f"runs {ms} ms, and fio {fio_ms} ms"
            # Under strace a fast rate is not reached.
            if paced and not values(sections, "rate_process") and fio_rate < 200 and abs(rate - fio_rate) > RATE_SHARE * fio_rate + 1:
                return f"{rate:.2f} requests per second, and fio {fio_rate:.2f}"
        return None
    if ends or timed or values(sections, "runtime", "timeout"):
        return None
    random = any("rand" in mode for mode in values(sections, "rw", "readwrite"))
    mixed = any(mode.split(":")[0] in ("rw", "readwrite", "randrw") for mode in values(sections, "rw", "readwrite"))
    sizes = values(sections, "bssplit", "bsrange", "blocksize_range")
    if random or mixed or sizes or grouped or values(sections, "read_iolog", "file_service_type", "exitall"):
        # The places are random, but not the numbers of requests and syncs.
        totals = [totals_of(threads) for threads in (our_threads, their_threads)]
        if mixed or sizes or grouped or totals[0] == totals[1]:
            return None
        return f"calls: {sorted(totals[0].items())} and fio's {sorted(totals[1].items())}"
    if len(our_threads) == len(their_threads):
        # The threads of both programs, whatever their order.
        in_order = [sorted((thread.requests, sorted(thread.syncs.items())) for thread in threads) for threads in (our_threads, their_threads)]
        if in_order[0] != in_order[1]:
            first = next(
                (f"request {place}: {one} and fio's {two}" for a, b in zip(*in_order) for place, (one, two) in enumerate(zip(a[0], b[0])) if one != two),
                f"syncs or number of requests: {[(len(a), b) for a, b in in_order[0]]} and fio's {[(len(a), b) for a, b in in_order[1]]}",
            )
            return first[:200]
    elif files_of(our_threads) != files_of(their_threads):
        return f"calls by file: {sorted(files_of(our_threads).items())[:4]} and fio's {sorted(files_of(their_threads).items())[:4]}"
    return None


WAY = public_jobs.Way(prepared, run, differs, "other calls", UNSEEN)

KINDS = ["same", "other calls", "refused", "not traced", "foreign engine", "fio fails", "left out"]


def public_calls(options):
    """Runs the jobs of `jobs` under strace in both programs. Compares what each thread asks of which file in which order (if the job
    determines it), the syncs of each file, the files that are left, the time of a run by the clock, paced rates, and the reported requests
    with those that the kernel got."""
    need("fio", "strace")
    entries, found = public_jobs.outcomes(options, WAY)
    count = collections.Counter(kind for kind, _ in found)
    other = public_jobs.differing(entries, found, WAY)
    for name, why in other:
        print(f"{name}: {why}", file=sys.stderr)
    lines = [
        "# Public fio jobs, call by call\n",
        f"Made by `bench/peers.py calls`: {len(entries)} jobs, each traced in {fio_version()} and in halfpower.\n",
        *table(["", "jobs"], [[kind, count[kind]] for kind in KINDS]),
        *(["\n## Other calls\n", *table(["job", "difference"], other)] if other else []),
    ]
    print("\n".join(lines))
    return lines, not other
