"""Public fio jobs, shortened and run by fio and by halfpower: which are accepted, and whether both do the same work."""

import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from typing import Callable

from .machine import MIB, need
from .page import ROOT, table
from .programs import fio_version

JOBS = ROOT / "bench" / "peers" / "jobs.json"
ENGINES = {"sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio", "mmap", "null"}
FILE = 8 * MIB
MOST = {"size": 4 * MIB, "io_size": 4 * MIB, "io_limit": 4 * MIB, "filesize": 2 * MIB, "offset": MIB, "offset_increment": MIB, "bs": MIB, "blocksize": MIB}
COUNTS = {"numjobs": 4, "nrfiles": 8, "nr_files": 8, "loops": 2, "number_ios": 1000, "thinktime": 1000, "openfiles": 8}
# Values that the environment or a script would supply.
DEFAULTS = {
    "size": "4m", "filesize": "2m", "numjobs": "2", "iodepth": "4", "bs": "4k", "blocksize": "4k", "rw": "randread", "readwrite": "randread", "runtime": "1",
    "nrfiles": "2", "ioengine": "psync", "direct": "0", "rwmixread": "70", "name": "job", "offset": "0", "loops": "1", "rate_iops": "500",
}
# Options that only name other output files, or when to begin.
DROPPED = {"output", "write_bw_log", "write_lat_log", "write_iops_log", "startdelay", "start_delay", "ramp_time", "output-format", "eta", "eta-newline", "minimal",
           "status-interval", "terse-version", "idle-prof", "client", "bandwidth-log", "numa_cpu_nodes", "numa_mem_policy", "append-terse"}
# Options that end a job by time or with other jobs: its work is not fixed.
ENDS = {"runtime", "timeout", "time_based", "rate", "rate_iops", "steadystate", "ss", "exitall", "latency_target", "flow", "rate_min"}
TIMEOUT_S = 60
NOTHING = {"io_bytes": 0, "total_ios": 0, "iops": 0, "runtime": 0}
# Faults of this version of fio, by the tests of a later one.
FAULTS_OF_FIO = {"t/jobs/t0029.fio": "loops of a job that reads to verify: fio 3.33 makes one pass, later versions as many as requested"}


def size(text):
    match = re.fullmatch(r"(\d+)([kmgtp]?)(i?b?)", text.strip().lower())
    return int(match[1]) << (10 * " kmgtp".index(match[2] or " ")) if match else None


def place(value, premade):
    """A path within the directory of the run; a device becomes a file that exists before the run."""
    def one(path):
        is_device = path.startswith(("/dev/", "\\\\")) or re.fullmatch(r"\$\{?\w*(DEV|DISK)\w*\}?", path)
        path = re.sub(r"\$\{?\w+\}?", "var", path)
        if path in ("/dev/null", "/dev/zero"):
            return path
        name = re.sub(r"[^\w.-]+", "_", path.strip("/")) or "file"
        if is_device:
            premade.add(name)
        return name
    return ":".join(one(path) for path in re.split(r"(?<!\\):", value) if path)


def shortened(option, premade, dropped):
    """An option for a small run; None to leave it out."""
    name, _, value = option.partition("=")
    name = name.strip()
    value = value.strip()
    if name in dropped:
        return None
    if "$" in value and name not in ("filename", "directory", "filename_format"):
        value = DEFAULTS.get(name)
        if value is None:
            return None
    if name == "filename":
        return f"filename={place(value, premade)}"
    if name == "directory":
        return None
    if name in ("runtime", "timeout"):
        return f"{name}=1"
    if name in ("steadystate_duration", "ss_dur"):
        return f"{name}=2"
    if name in ("steadystate_ramp_time", "ss_ramp"):
        return f"{name}=0"
    if name in COUNTS and value.isdigit():
        return f"{name}={min(int(value), COUNTS[name])}"
    if name in MOST:
        parts = [(part, size(part)) for part in re.split(r"[,-]", value)]
        if all(bytes is not None for _, bytes in parts) and any(bytes > MOST[name] for _, bytes in parts):
            return f"{name}={MOST[name]}"
    if name == "cpus_allowed":
        return "cpus_allowed=0-1"
    if name == "cpumask":
        return "cpumask=3"
    return option if "=" not in option else f"{name}={value}"


def split_arguments(words):
    """Options of a command line as in a job file, and the other words; fio takes --name=value and --name value."""
    options, others, rest = [], [], list(words)
    flags = {"time_based", "group_reporting", "stonewall", "thread", "norandommap", "new_group", "exitall", "refill_buffers", "zero_buffers", "minimal", "readonly", "warnings-fatal"}
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            others.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not equals and name not in flags and rest and not rest[0].startswith("-"):
            value, equals = rest.pop(0), "="
        options.append(f"{name}={value}" if equals else name)
    return options, others


def prepared(entry, dropped=frozenset(DROPPED)):
    """Sections of a small run, the files that exist before it, and why it cannot be prepared."""
    premade = set()
    if "sections" in entry:
        sections = [(one["name"], one["options"]) for one in entry["sections"]]
    else:
        options, others = split_arguments(entry["arguments"])
        if others:
            return None, None, "names a job file that is not stored"
        first = [option for option in options]
        names = [index for index, option in enumerate(first) if option.startswith("name=")]
        if not names:
            return None, None, "has no --name"
        sections = [("global", first[: names[0]])]
        for begin, end in zip(names, names[1:] + [len(first)]):
            sections.append((first[begin][5:] or "job", first[begin + 1 : end]))
    out = []
    for name, options in sections:
        kept = [shortened(option, premade, dropped) for option in options]
        out.append((re.sub(r"[$\[\]{}]", "_", name), [option for option in kept if option]))
    if not any(option.split("=")[0] in ("size", "filesize", "io_size", "io_limit") for _, options in out for option in options) and not premade:
        out.insert(0, ("global", ["size=4m"]))
    if any(option.startswith(("nrfiles=", "nr_files=")) for _, options in out for option in options):
        # Each file has at least one request.
        out = [(name, ["size=8m" if option == f"size={4 * MIB}" else option for option in options]) for name, options in out]
    every = [option.split("=")[0] for _, options in out for option in options]
    if any(name in ("rate", "rate_iops", "thinktime") for name in every) and "runtime" not in every:
        out.insert(0, ("global", ["runtime=2"]))
    return out, premade, None


def engine_of(sections):
    return {option.partition("=")[2].strip() for _, options in sections for option in options if option.split("=")[0] == "ioengine"}


def run(program, text, premade):
    with tempfile.TemporaryDirectory(prefix="peers-") as directory:
        with open(f"{directory}/jobs.fio", "w", encoding="utf8") as file:
            file.write(text)
        for name in premade:
            with open(f"{directory}/{name}", "wb") as file:
                file.write(os.urandom(MIB) * (FILE // MIB))
        more = []
        for _ in range(len(premade) + 2):
            try:
                done = subprocess.run([*program, *more, "--output-format=json", "jobs.fio"], cwd=directory, capture_output=True, timeout=TIMEOUT_S, check=False)
            except subprocess.TimeoutExpired:
                return None, f"not finished after {TIMEOUT_S} s"
            errors = done.stderr.decode("utf8", "replace").strip()
            named = re.search(r"(--destroy-data=\S+)$", errors)
            if done.returncode == 0 or not named or named[1] in more:
                break
            more.append(named[1])
        output = done.stdout.decode("utf8", "replace")
        try:
            document = json.loads(output[output.index("{\n"):])
        except ValueError:
            document = None
        if document is None or (done.returncode and not document.get("jobs")):
            return None, (errors.splitlines() or ["no report"])[0 if "fio" == os.path.basename(program[0]) else -1]
        if done.returncode:
            return None, (errors.splitlines() or ["a job failed"])[-1]
        return document, None


def sides(job):
    """What a job read and wrote; with unified_rw_reporting all of it counts as read."""
    return job.get("read") or job["mixed"], job.get("write") or NOTHING


def differs(sections, ours, theirs):
    """How the work of equal jobs differs; None if it does not, or is not fixed."""
    names = [[job["jobname"] for job in document["jobs"]] for document in (ours, theirs)]
    if names[0] != names[1]:
        return f"jobs {names[0]} and {names[1]}"[:160]
    if any(option.split("=")[0] in ENDS for _, options in sections for option in options):
        return None
    verified = any(option.split("=")[0] == "verify" for _, options in sections for option in options)
    verified &= not any(option == "do_verify=0" for _, options in sections for option in options)
    mixed = {"bssplit", "bsrange", "blocksize_range"} & {option.split("=")[0] for _, options in sections for option in options}
    in_order = any(option in ("rw=rw", "rw=readwrite", "readwrite=rw", "readwrite=readwrite") for _, options in sections for option in options)
    unmapped = any(option.split("=")[0] == "norandommap" for _, options in sections for option in options)
    for job, other in zip(ours["jobs"], theirs["jobs"]):
        for field in ["io_bytes"] if mixed else ["io_bytes", "total_ios"]:
            pair = [[side[field] for side in sides(one)] for one in (job, other)]
            # The reads of a mix are random. Data read back for verification counts as read.
            same = pair[0] == pair[1]
            if all(pair[1]):
                same |= pair[0][0] == pair[1][0] if verified else sum(pair[0]) == sum(pair[1])
            if mixed and in_order and all(pair[1]) and not verified:
                # A sequential mix of several sizes ends with a whole request of random size.
                same |= abs(sum(pair[1]) - sum(pair[0])) <= MOST["bs"]
            if mixed and unmapped:
                # With several sizes and no map the last request of each clone exceeds the requested total by a random amount.
                same |= abs(sum(pair[1]) - sum(pair[0])) <= 4 * MOST["bs"]
            if not same:
                return f"{job['jobname']}: {field} {pair[0]} and fio's {pair[1]}"
    return None


@dataclass(frozen=True)
class Way:
    """How a job runs in both programs, and what is compared."""

    # From an entry: its sections, the files that exist before the run, and the reason to leave it out.
    prepared: Callable
    # From a program, a job file and the files that exist before: the result, or None and the error.
    run: Callable
    # From the sections and both results: the first difference, or None.
    differs: Callable
    # The kind of a job with a difference.
    other: str
    # Engines whose requests the comparison cannot see.
    unseen: frozenset = frozenset()


def compare(entry, halfpower, way):
    """The kind of a public job, and the reason for it."""
    sections, premade, why = way.prepared(entry)
    if why:
        return "left out", why
    engines = engine_of(sections)
    for kind, which in [("foreign engine", engines - ENGINES), ("not traced", engines & way.unseen)]:
        if which:
            return kind, ", ".join(sorted(which))
    text = "".join(f"[{name}]\n" + "".join(f"{option}\n" for option in options) for name, options in sections)
    theirs, why = way.run(["fio"], text, premade)
    if theirs is None:
        return "fio fails", why
    ours, why = way.run([halfpower, "fio"], text, premade)
    if ours is None:
        return "refused", re.sub(r"^.*?jobs\.fio line \d+: ", "", why)
    why = None if entry["path"] in FAULTS_OF_FIO else way.differs(sections, ours, theirs)
    return (way.other, why) if why else ("same", None)


class Kept:
    """Outcomes in a file, a line each, so that an interrupted comparison goes on where it ended."""

    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        lines = path.read_text(encoding="utf8").splitlines() if path and path.exists() else []
        self.known = {key: tuple(found) for key, found in map(json.loads, lines)}

    def add(self, key, found):
        if self.path:
            with self.lock, open(self.path, "a", encoding="utf8") as file:
                file.write(json.dumps([key, found]) + "\n")
        return found


def outcomes(options, way):
    """The entries chosen by the options, and the kind and reason of each."""
    halfpower = os.path.abspath(options.halfpower)
    entries = json.loads(options.jobs.read_text(encoding="utf8"))
    entries = [entry for entry in entries if not options.only or options.only in f"{entry['repository']}/{entry['path']}"]
    kept = Kept(options.keep)

    def outcome(entry):
        key = json.dumps([way.other, entry], sort_keys=True)
        return kept.known.get(key) or kept.add(key, compare(entry, halfpower, way))

    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        return entries, list(pool.map(outcome, entries))


def differing(entries, found, way):
    """Rows of the jobs with a difference: name and difference."""
    return [[f"{entry['repository']} {entry['path']}", why.replace("|", "/")] for entry, (kind, why) in zip(entries, found) if kind == way.other]


WAY = Way(prepared, run, differs, "other work")


def reason(why):
    """A refusal without the values of the job."""
    return re.sub(r"job '[^']*'", "job", re.sub(r"\d+", "N", why))[:150]


KINDS = ["same", "other work", "refused", "foreign engine", "fio fails", "left out"]


def jobs(options):
    """Job files and command lines from public repositories, each shortened in the same way for both programs (a few MiB, one second, at
    most four clones). If no time, rate or criterion ends a job, requests and bytes of every job must be equal. Fails if halfpower accepts
    less than 90 % of the jobs that fio runs without a foreign engine, or does other work."""
    need("fio")
    entries, found = outcomes(options, WAY)
    for entry, (kind, why) in zip(entries, found):
        if kind in ("refused", "other work", "fio fails", "left out"):
            print(f"{kind}: {entry['repository']} {entry['path']}: {why}", file=sys.stderr)
    count = collections.Counter(kind for kind, _ in found)
    taken = count["same"] + count["other work"]
    run_by_fio = max(taken + count["refused"], 1)
    refused = collections.Counter(reason(why) for kind, why in found if kind == "refused")
    other = differing(entries, found, WAY)
    each = collections.defaultdict(collections.Counter)
    for entry, (kind, _) in zip(entries, found):
        each[entry["repository"]][kind] += 1
    lines = [
        "# Public fio jobs, run by both programs\n",
        f"Made by `bench/peers.py jobs`. {len(entries)} job files and command lines from {len(each)} public repositories, shortened, each run by {fio_version()}",
        "and by halfpower.\n",
        *table(["", "jobs"], [
            ["run by fio, no foreign engine", taken + count["refused"]],
            ["accepted by halfpower", f"{taken} ({100 * taken / run_by_fio:.0f} %)"],
            ["the same work, if the work is fixed", count["same"]],
            ["other work", count["other work"]],
            ["refused", count["refused"]],
            ["foreign engine (network, GPU, vendors' libraries), not run", count["foreign engine"]],
            ["fio itself fails on this machine", count["fio fails"]],
            ["left out: parts of them are not in the repository", count["left out"]],
        ]),
        "\n## Why jobs are refused\n",
        *table(["jobs", "reason"], [[n, why.replace("|", "/")] for why, n in refused.most_common()]),
        *(["\n## Other work\n", *table(["job", "difference"], other)] if other else []),
        "\n## By repository\n",
        *table(["repository", *KINDS], [[name, *(of[kind] or "" for kind in KINDS)] for name, of in sorted(each.items())]),
    ]
    print("\n".join(lines))
    return lines, taken >= 0.9 * run_by_fio and not other


def jobs_summary(tables):
    return table(*tables[0][1:])
