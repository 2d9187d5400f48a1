#!/usr/bin/env python3
"""Public fio jobs, run by fio and by halfpower: what halfpower takes, and whether it does the same work.

    bench/peers.py [--halfpower target/release/halfpower] [--jobs bench/peers/jobs.json] [--only TEXT] [--output docs/peers.md]

jobs.json holds the options of job files and command lines by repository and path; nothing else of them is kept. Each is shortened (a few MiB, a
second, at most four clones, files in a directory of its own) in the same way for both programs. Work is fixed where no time, rate or criterion
ends a job: then requests and bytes of every job must be equal. Exits 1 where halfpower takes less than 90 % of the jobs that fio runs without a
foreign engine, or does other work.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

import peers_lines

# What is measured to compare programs is no part of the history of who runs this.
os.environ["HALFPOWER_HISTORY"] = "none"

ENGINES = {"sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio", "mmap", "null"}
MIB = 1 << 20
FILE = 8 * MIB
MOST = {"size": 4 * MIB, "io_size": 4 * MIB, "io_limit": 4 * MIB, "filesize": 2 * MIB, "offset": MIB, "offset_increment": MIB, "bs": MIB, "blocksize": MIB}
COUNTS = {"numjobs": 4, "nrfiles": 8, "nr_files": 8, "loops": 2, "number_ios": 1000, "thinktime": 1000, "openfiles": 8}
# A place for what the environment or a script would put in.
DEFAULTS = {
    "size": "4m", "filesize": "2m", "numjobs": "2", "iodepth": "4", "bs": "4k", "blocksize": "4k", "rw": "randread", "readwrite": "randread", "runtime": "1",
    "nrfiles": "2", "ioengine": "psync", "direct": "0", "rwmixread": "70", "name": "job", "offset": "0", "loops": "1", "rate_iops": "500",
}
# Options that only say where something else is to be written, or when to begin.
DROPPED = {"output", "write_bw_log", "write_lat_log", "write_iops_log", "startdelay", "start_delay", "ramp_time", "output-format", "eta", "eta-newline", "minimal",
           "status-interval", "terse-version", "idle-prof", "client", "bandwidth-log", "numa_cpu_nodes", "numa_mem_policy", "append-terse"}
# What ends a job by time or by others, so that its work is not fixed.
ENDS = {"runtime", "timeout", "time_based", "rate", "rate_iops", "steadystate", "ss", "exitall", "latency_target", "flow", "rate_min"}
TIMEOUT_S = 60
# What this version of fio does wrong, as a later one's own test says.
FAULTS_OF_FIO = {"t/jobs/t0029.fio": "loops of a job that reads to verify: fio 3.33 makes one pass, later ones as many as were asked"}


def die(text):
    sys.exit(f"peers.py: {text}")


def size(text):
    match = re.fullmatch(r"(\d+)([kmgtp]?)(i?b)?", text.strip().lower())
    return int(match[1]) << (10 * " kmgtp".index(match[2] or " ")) if match else None


def place(value, premade):
    """A path within the directory of the run: what was a device is a file that is there before."""
    def one(path):
        path = re.sub(r"\$\{?\w+\}?", "var", path)
        if path in ("/dev/null", "/dev/zero"):
            return path
        name = re.sub(r"[^\w.-]+", "_", path.strip("/")) or "file"
        if path.startswith("/dev/") or path.startswith("\\\\"):
            premade.add(name)
        return name
    return ":".join(one(path) for path in re.split(r"(?<!\\):", value) if path)


def shortened(option, premade):
    """An option for a small run; None: without it."""
    name, _, value = option.partition("=")
    name = name.strip()
    value = value.strip()
    if name in DROPPED:
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
    """Options of a command line as in a job file, and what is not one; fio takes --name=value and --name value."""
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


def prepared(entry):
    """Sections of a small run, the files that are there before it, and what cannot be prepared."""
    premade = set()
    if "sections" in entry:
        sections = [(one["name"], one["options"]) for one in entry["sections"]]
    else:
        options, others = split_arguments(entry["arguments"])
        if others:
            return None, None, "names a job file that is not here"
        first = [option for option in options]
        names = [index for index, option in enumerate(first) if option.startswith("name=")]
        if not names:
            return None, None, "has no --name"
        sections = [("global", first[: names[0]])]
        for begin, end in zip(names, names[1:] + [len(first)]):
            sections.append((first[begin][5:] or "job", first[begin + 1 : end]))
    out = []
    for name, options in sections:
        kept = [shortened(option, premade) for option in options]
        out.append((re.sub(r"[$\[\]{}]", "_", name), [option for option in kept if option]))
    if not any(option.split("=")[0] in ("size", "filesize", "io_size", "io_limit") for _, options in out for option in options) and not premade:
        out.insert(0, ("global", ["size=4m"]))
    if any(option.startswith(("nrfiles=", "nr_files=")) for _, options in out for option in options):
        # Each file has a request at least.
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
                return None, f"not done in {TIMEOUT_S} s"
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


def differs(sections, ours, theirs):
    """How the work of equal jobs differs; None: it does not, or is not fixed."""
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
            pair = [[one[side][field] for side in ("read", "write")] for one in (job, other)]
            # Which requests of a mix read is drawn. What is read back to be verified counts as read, and makes up for what was not.
            same = pair[0] == pair[1]
            if all(pair[1]):
                same |= pair[0][0] == pair[1][0] if verified else sum(pair[0]) == sum(pair[1])
            if mixed and in_order and all(pair[1]) and not verified:
                # A sequential mix of several sizes ends with a whole request, whose size is drawn.
                same |= abs(sum(pair[1]) - sum(pair[0])) <= MOST["bs"]
            if mixed and unmapped:
                # Of several sizes without a map the last request of each clone goes past the end of what was asked, by what is drawn.
                same |= abs(sum(pair[1]) - sum(pair[0])) <= 4 * MOST["bs"]
            if not same:
                return f"{job['jobname']}: {field} {pair[0]} and fio's {pair[1]}"
    return None


def compare(entry, halfpower):
    sections, premade, why = prepared(entry)
    if why:
        return "left out", why
    foreign = engine_of(sections) - ENGINES
    if foreign:
        return "foreign engine", ", ".join(sorted(foreign))
    text = "".join(f"[{name}]\n" + "".join(f"{option}\n" for option in options) for name, options in sections)
    theirs, why = run(["fio"], text, premade)
    if theirs is None:
        return "fio fails", why
    ours, why = run([halfpower, "fio"], text, premade)
    if ours is None:
        return "refused", re.sub(r"^.*?jobs\.fio line \d+: ", "", why)
    why = None if entry["path"] in FAULTS_OF_FIO else differs(sections, ours, theirs)
    return ("other work", why) if why else ("same", None)


def reason(why):
    """A refusal without the values of its job."""
    return re.sub(r"job '[^']*'", "job", re.sub(r"\d+", "N", why))[:150]


def page(entries, outcomes, version):
    count = collections.Counter(kind for kind, _ in outcomes)
    run_by_fio = count["same"] + count["other work"] + count["refused"]
    taken = count["same"] + count["other work"]
    repositories = len({entry["repository"] for entry in entries})
    lines = [
        "# Public fio jobs, run by both programs",
        "",
        f"{len(entries)} job files and command lines from {repositories} public repositories, shortened, each run by {version} and by halfpower. Made by `bench/peers.py`.",
        "",
        "| | jobs |",
        "|---|---|",
        f"| run by fio, no foreign engine | {run_by_fio} |",
        f"| taken by halfpower | {taken} ({100 * taken / max(run_by_fio, 1):.0f} %) |",
        f"| the same work, where the work is fixed | {count['same']} |",
        f"| other work | {count['other work']} |",
        f"| refused | {count['refused']} |",
        f"| foreign engine (network, GPU, vendors' libraries), not run | {count['foreign engine']} |",
        f"| fio itself fails on this machine | {count['fio fails']} |",
        f"| left out: parts of them are not in the repository | {count['left out']} |",
        "",
        "## Why jobs are refused",
        "",
        "| jobs | reason |",
        "|---|---|",
    ]
    refused = collections.Counter(reason(why) for kind, why in outcomes if kind == "refused")
    lines += [f"| {n} | {why.replace('|', '/')} |" for why, n in refused.most_common()]
    other = [(entry, why) for entry, (kind, why) in zip(entries, outcomes) if kind == "other work"]
    if other:
        lines += ["", "## Other work", "", "| job | difference |", "|---|---|"]
        lines += [f"| {entry['repository']} {entry['path']} | {why.replace('|', '/')} |" for entry, why in other]
    each = collections.defaultdict(collections.Counter)
    for entry, (kind, _) in zip(entries, outcomes):
        each[entry["repository"]][kind] += 1
    kinds = ["same", "other work", "refused", "foreign engine", "fio fails", "left out"]
    lines += ["", "## By repository", "", "| repository | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(str(of[kind] or "") for kind in kinds) + " |" for name, of in sorted(each.items())]
    return "\n".join(lines) + "\n", taken / max(run_by_fio, 1), count["other work"]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--halfpower", default="target/release/halfpower")
    parser.add_argument("--jobs", default=f"{here}/peers/jobs.json")
    parser.add_argument("--only", help="those whose repository or path holds this")
    parser.add_argument("--output", help="write the page there")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    halfpower = os.path.abspath(arguments.halfpower)
    if not os.access(halfpower, os.X_OK):
        die(f"{halfpower} is not there: build it, or name it with --halfpower")
    with open(arguments.jobs, encoding="utf8") as file:
        entries = json.load(file)
    if arguments.only:
        entries = [entry for entry in entries if arguments.only in entry["repository"] + "/" + entry["path"]]
    version = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    with concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
        outcomes = list(pool.map(lambda entry: compare(entry, halfpower), entries))
    for entry, (kind, why) in zip(entries, outcomes):
        if kind in ("refused", "other work", "fio fails", "left out"):
            print(f"{kind}: {entry['repository']} {entry['path']}: {why}", file=sys.stderr)
    text, taken, other = page(entries, outcomes, version)
    if not arguments.only:
        text += "\n" + peers_lines.section(halfpower, peers_lines.read(f"{here}/peers/lines.json"))[0]
    if arguments.output:
        with open(arguments.output, "w", encoding="utf8") as file:
            file.write(text)
    print(text)
    sys.exit(0 if taken >= 0.9 and other == 0 else 1)


if __name__ == "__main__":
    main()
