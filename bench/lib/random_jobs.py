"""Random fio jobs, run by fio and by halfpower: a job is drawn from a table of options, compared, and reduced to the options that matter."""

import collections
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import tempfile
import time
import zlib
from dataclasses import dataclass

from .machine import need, output, progress

TIMEOUT_S = 20
# Runs of each program, with other seeds, before a difference counts: a random amount differs from run to run.
SAMPLES = (1, 2, 6)
FEWER_SAMPLES = (1, 4)
# Tolerance of times.
TIME_SHARE, TIME_MS = 0.1, 200
# Tolerance of amounts, if a job ends by a clock.
PACED_SHARE, PACED_REQUESTS = 0.12, 20
MARKS = re.compile(r"^jobs\.fio$|^\..*\.halfpower$|\.hdr_fail$|\.received$|\.expected$|^log\.")
PACED = {"rate", "rate_iops", "thinktime"}
AGAIN = re.compile("left out|was stopped for|do not trust it")


@dataclass(frozen=True)
class Option:
    """An option of fio, and the values that a job may give it."""

    name: str
    # The share of jobs that have it.
    chance: float
    values: tuple
    # Only in jobs that have one of these.
    needs: tuple = ()


def option(name, chance, values, needs=""):
    return Option(name, chance, tuple(values.split()), tuple(needs.split()))


MODES = "read write randread randwrite rw randrw read write randread randwrite rw randrw readwrite trim randtrim trimwrite"
HOLES = "read:4k write:4k read:-8k write:-4k rw:8k read:1k write:64k read:-64k"
RUNS = "randread:2 randread:8 randwrite:4 randrw:3 randwrite:16 read:4 write:8 rw:4"
OPTIONS = [
    option("rw", 1, f"{MODES} {MODES} {HOLES} {RUNS}"),
    option("rw_sequencer", 0.1, "sequential identical"),
    option("bs", 0.7, "512 1k 4k 4k 8k 16k 64k 256k 3k 5000 4k,8k 8k,,4k 4k,8k,16k 16k,1k 1MiB 6kb"),
    option("bsrange", 0.06, "4k-16k 1k-8k 512-4k 4k-8k,8k-32k 8k-8k 3k-9k"),
    option("bssplit", 0.06, "4k/50:8k/50 4k:16k 1k/10:4k/90 4k/20:64k/:32k/ 8k/60:4k/40,16k/100 512/1:4k/99"),
    option("blockalign", 0.06, "512 4k 8k 64k 4k,16k 1000"),
    option("bs_unaligned", 0.03, "1"),
    option("size", 0.9, "64k 256k 512k 1m 1m 2m 2m 4m 8m 1000k 300001 1MB 1.5m 0x80000 3MiB 777777 100%"),
    option("io_size", 0.15, "100k 256k 1m 3m 8m 10m 50% 100% 1% 12345"),
    option("filesize", 0.12, "64k 256k 1m 64k-256k 16k-1m 100000 4k-8k 512k-2m"),
    option("offset", 0.12, "4k 64k 1m 1000 10% 50% 90% 256k"),
    option("offset_increment", 0.05, "64k 256k 10% 1m 1000"),
    option("offset_align", 0.03, "4k 64k 1000"),
    option("file_append", 0.02, "1"),
    option("nrfiles", 0.15, "2 3 4 7 10"),
    option("openfiles", 0.05, "1 2 3", "nrfiles"),
    option("file_service_type", 0.12, "random roundrobin sequential random:4 roundrobin:8 sequential:2 zipf:1.2 pareto:0.3 normal:50 gauss:20:2", "nrfiles filename"),
    option("numjobs", 0.15, "2 3"),
    option("thread", 0.08, "1"),
    option("group_reporting", 0.06, "1"),
    option("filename", 0.1, "data data a:b a:b:c"),
    option("filename_format", 0.03, "f.$jobnum.$filenum f.$filenum $jobname.f"),
    option("ioengine", 0.7, "psync psync sync libaio libaio io_uring io_uring mmap pvsync pvsync2 vsync posixaio null"),
    option("iodepth", 0.3, "1 2 4 8 16 32"),
    option("iodepth_batch", 0.06, "1 4 8", "iodepth"),
    option("iodepth_batch_complete_min", 0.05, "0 1 4", "iodepth"),
    option("iodepth_batch_complete_max", 0.03, "4 16", "iodepth"),
    option("iodepth_low", 0.05, "1 2 4", "iodepth"),
    option("io_submit_mode", 0.03, "offload inline"),
    option("serialize_overlap", 0.03, "1"),
    option("direct", 0.2, "1 1 0"),
    option("norandommap", 0.12, "1"),
    option("softrandommap", 0.03, "1"),
    option("random_generator", 0.1, "lfsr tausworthe64 tausworthe"),
    option("random_distribution", 0.12, "zipf:1.1 zipf:0.8 pareto:0.2 pareto:0.7 normal:30 normal:5 zoned:50/5:30/15:20/80 zoned:90/10:10/90 zoned_abs:60/64k:40/1m random zipf:1.2:0.5"),
    option("percentage_random", 0.08, "0 10 50 100 20,80"),
    option("rwmixread", 0.12, "0 10 30 70 90 100"),
    option("rwmixwrite", 0.04, "5 40 80"),
    option("loops", 0.12, "2 3"),
    option("number_ios", 0.1, "1 10 100 500"),
    option("rate", 0.05, "2m 1m,2m 4m 8m,1m 512k"),
    option("rate_iops", 0.05, "200 1000 500,100 300"),
    option("rate_process", 0.3, "linear poisson", "rate rate_iops"),
    option("rate_min", 0.1, "1k", "rate"),
    option("rate_ignore_thinktime", 0.1, "1", "rate rate_iops"),
    option("thinktime", 0.06, "100 1000 5000 20ms"),
    option("thinktime_blocks", 0.5, "2 8 32", "thinktime"),
    option("thinktime_blocks_type", 0.2, "complete issue", "thinktime"),
    option("thinktime_spin", 0.2, "50 500", "thinktime"),
    option("thinktime_iotime", 0.1, "10ms", "thinktime"),
    option("runtime", 0.6, "1 500ms 2", "rate rate_iops thinktime"),
    option("time_based", 0.3, "1", "runtime"),
    option("verify", 0.25, "crc32c md5 crc32 crc16 crc7 xxhash sha1 sha256 sha512 crc64 crc32c-intel meta pattern null sha3-256"),
    option("verify_pattern", 0.3, "0xdeadbeef 0x5a \"abcd\" %o 0xff%o\"x\"", "verify"),
    option("verify_interval", 0.15, "512 1k 4k", "verify"),
    option("verify_offset", 0.05, "64 512", "verify"),
    option("verify_backlog", 0.2, "1 16 64 1000", "verify"),
    option("verify_backlog_batch", 0.3, "8 32", "verify_backlog"),
    option("verify_async", 0.05, "1 2", "verify"),
    option("verify_fatal", 0.2, "1", "verify"),
    option("verify_only", 0.04, "1", "verify"),
    option("verify_state_save", 0.1, "0 1", "verify"),
    option("do_verify", 0.15, "0 1", "verify"),
    option("verifysort", 0.08, "0 1", "verify"),
    option("experimental_verify", 0.04, "1", "verify"),
    option("trim_percentage", 0.03, "20", "verify"),
    option("fsync", 0.05, "1 8 32 100"),
    option("fdatasync", 0.05, "8 32"),
    option("sync_file_range", 0.04, "write:8 wait_before,write:16 write,wait_after:32"),
    option("end_fsync", 0.05, "1"),
    option("fsync_on_close", 0.03, "1"),
    option("sync", 0.04, "1 dsync sync none"),
    option("zonemode", 0.1, "strided"),
    option("zonesize", 0.9, "64k 256k 100k 16k", "zonemode"),
    option("zonerange", 0.7, "128k 256k 512k 300k", "zonemode"),
    option("zoneskip", 0.5, "0 64k 4k 1m", "zonemode"),
    option("randseed", 0.08, "1 42 123456789"),
    option("allrandrepeat", 0.04, "1 0"),
    option("randrepeat", 0.05, "0 1"),
    option("overwrite", 0.08, "1"),
    option("create_on_open", 0.04, "1"),
    option("create_serialize", 0.03, "0"),
    option("create_fsync", 0.02, "0"),
    option("create_only", 0.02, "1"),
    option("fallocate", 0.08, "none native keep posix truncate"),
    option("pre_read", 0.04, "1"),
    option("invalidate", 0.04, "0 1"),
    option("fadvise_hint", 0.03, "0 random sequential"),
    option("unlink", 0.03, "1"),
    option("unlink_each_loop", 0.05, "1", "loops"),
    option("lockfile", 0.03, "exclusive readwrite none"),
    option("mem", 0.04, "mmap shm malloc"),
    option("refill_buffers", 0.03, "1"),
    option("zero_buffers", 0.03, "1"),
    option("buffer_pattern", 0.03, "0xabcd"),
    option("buffer_compress_percentage", 0.03, "50"),
    option("dedupe_percentage", 0.03, "30"),
    option("unified_rw_reporting", 0.03, "1 2 mixed both"),
    option("gtod_reduce", 0.02, "1"),
    option("continue_on_error", 0.03, "all verify none"),
    option("exitall", 0.02, "1"),
    option("startdelay", 0.01, "1 500ms"),
    option("ramp_time", 0.3, "500ms", "time_based"),
    option("write_iolog", 0.5, "log.first"),
]
# Options whose value rarely makes the difference.
WEAK = {"size", "filesize", "bs", "io_size", "iodepth", "numjobs", "nrfiles", "loops", "write_iolog"}
# A second job in the file: it follows, or runs at the same time.
SECOND = 0.15


def draw(chosen, draws, without=()):
    """The options of one job, in random order, as in a file that somebody wrote."""
    found = {}
    for one in OPTIONS:
        if one.name in without or (one.needs and not any(name in found for name in one.needs)):
            continue
        if draws.random() < one.chance * chosen:
            found[one.name] = draws.choice(one.values)
    found.setdefault("rw", draws.choice(OPTIONS[0].values))
    for name, value in list(found.items()):
        if f"{name}={value}" in without:
            del found[name]
    if "filesize" not in found:
        found.setdefault("size", "1m")
    if "numjobs" in found:
        found.pop("write_iolog", None)
    options = [f"{name}={value}" for name, value in found.items()]
    draws.shuffle(options)
    return options


def job(seed, number, without=()):
    """The sections of a job file; the same seed and number give the same file."""
    draws = random.Random(f"{seed} {number}")
    first = draw(draws.choice((0.5, 1, 1, 1.5)), draws, without)
    sections = [("first", first)]
    if draws.random() < SECOND:
        second = [option for option in draw(0.6, draws, without) if not option.startswith(("write_iolog=", "filename="))]
        if draws.random() < 0.6:
            second.append("stonewall")
        if draws.random() < 0.5:
            # The second job uses the file of the first, and perhaps verifies it.
            first[:] = [option for option in first if not option.startswith("filename=")] + ["filename=data"]
            second.append("filename=data")
            second += [option for option in first if option.startswith(("verify=", "bs=", "size="))] if draws.random() < 0.5 else []
        sections.append(("second", second))
    return sections


def text_of(sections, seed=None):
    """A job file; with a seed, every job has other random numbers. fio 3.33 takes other places only if nothing may repeat."""
    more = [] if seed is None else ["allrandrepeat=0", "randrepeat=0", f"randseed={seed}"]
    return "".join(f"[{name}]\n" + "".join(f"{option}\n" for option in [*options, *more]) for name, options in sections)


def sections_of(text):
    """The sections of a job file."""
    found = []
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            found.append((line.strip("[]"), []))
        elif line and not line.startswith(("#", ";")):
            found[-1][1].append(line)
    return found


def names_of(sections):
    return {option.split("=")[0] for _, options in sections for option in options}


@dataclass
class Outcome:
    """The outcome of a job file with one program."""

    # "ran", "failed" (in a run), "refused" or "slow".
    kind: str
    # Its last words on standard error.
    why: str = ""
    # Names to numbers, whose ranges are compared, or to other values, which must be equal.
    facts: dict = None


def requests_of(path):
    """The requests in an I/O log of version 2 or 3."""
    lines = path.read_text(errors="replace").splitlines()
    found = [re.search(r"(\S+) (read|write|trim) (\d+) (\d+)$", line) for line in lines]
    return [(match[1], match[2], int(match[3]), int(match[4])) for match in found if match]


def facts_of_log(name, requests):
    """Where the requests are: the exact list, and numbers that a random order keeps."""
    first = " ".join(f"{does[0]}{offset}+{length}" for _, does, offset, length in requests[:6])
    facts = {f"{name}: all requests": f"{zlib.crc32(repr(requests).encode()):08x} ({first} ...)"}
    for does in sorted({request[1] for request in requests}):
        places = [(file, offset, length) for file, action, offset, length in requests if action == does]
        following = sum(a[0] == b[0] and a[1] + a[2] == b[1] for a, b in zip(places, places[1:]))
        facts |= {
            f"{name}: {does}s": len(places),
            f"{name}: places of {does}s": len({place[:2] for place in places}),
            f"{name}: first offset of {does}s": min(place[1] for place in places),
            f"{name}: end of {does}s": max(place[1] + place[2] for place in places),
            f"{name}: files of {does}s": len({place[0] for place in places}),
            f"{name}: {does}s that follow the previous": following,
            f"{name}: shortest of {does}s": min(place[2] for place in places),
            f"{name}: longest of {does}s": max(place[2] for place in places),
        }
    return facts


def facts_of(document, directory, sections):
    """Returns the facts of a run, by name."""
    names = names_of(sections)
    timed, paced = "time_based" in names, bool(PACED & names)
    # An unpaced job that ends by the clock has no fixed amount.
    fixed = not timed and "exitall" not in names
    jobs = [one for one in document["jobs"] if "jobname" in one]
    facts = {"jobs": str([one["jobname"] for one in jobs])}
    for number, one in enumerate(jobs):
        sides = {side: one[side] for side in ("read", "write", "trim", "mixed") if side in one}
        facts[f"job {number}: directions"] = str(sorted(sides))
        facts[f"job {number}: error"] = one["error"]
        if paced or timed:
            facts[f"job {number}: ms"] = max(side["runtime"] for side in sides.values())
        if fixed or (paced and "exitall" not in names):
            for name, side in sides.items():
                facts[f"job {number}: {name} bytes"] = side["io_bytes"]
                facts[f"job {number}: {name} requests"] = side["total_ios"]
            facts[f"job {number}: all bytes"] = sum(side["io_bytes"] for name, side in sides.items())
            facts[f"job {number}: all requests"] = sum(side["total_ios"] for name, side in sides.items())
            if "sync" in one:
                facts[f"job {number}: syncs"] = one["sync"].get("total_ios", 0)
    kept = sorted(path for path in directory.rglob("*") if not MARKS.search(path.name) and path.is_file())
    facts["files"] = " ".join(str(path.relative_to(directory)) for path in kept)
    if fixed:
        facts |= {f"length of {path.relative_to(directory)}": path.stat().st_size for path in kept if not path.name.endswith(".state")}
        for path in sorted(directory.glob("log.*")):
            # The reads of a job that only writes are those of its verification.
            logged = dict(option.partition("=")[::2] for _, found in sections if f"write_iolog={path.name}" in found for option in found)
            verifying = "verify" in logged and logged.get("rw", "read").split(":")[0] in ("write", "randwrite")
            requests = requests_of(path)
            reads = [request for request in requests if request[1] == "read"] if verifying else []
            facts |= facts_of_log(path.name, [request for request in requests if request not in reads])
            if verifying:
                facts[f"{path.name}: verifying reads"] = len(reads)
    return facts


def end_all_in(directory):
    """Ends the processes that work in a directory: each of fio's jobs has a session of its own, and keeps the pipes open."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == directory:
                os.kill(int(process.name), signal.SIGKILL)


def run(program, text, sections, root):
    """Runs a job file in a fresh directory."""
    with tempfile.TemporaryDirectory(dir=root, prefix="random-") as made:
        directory = pathlib.Path(made)
        (directory / "jobs.fio").write_text(text)
        with subprocess.Popen([*program, "--output-format=json", "jobs.fio"], cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              start_new_session=True) as child:
            try:
                out, errors = child.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                # fio ends its processes only if it may end itself.
                child.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.communicate(timeout=10)
                end_all_in(directory)
                child.communicate()
                return Outcome("slow", f"not finished after {TIMEOUT_S} s")
        out, errors = out.decode("utf8", "replace"), errors.decode("utf8", "replace").strip().splitlines()
        why = next((line for line in errors if "error" in line or "fail" in line), errors[-1] if errors else "")
        try:
            document = json.loads(out[out.index("{\n"):])
        except ValueError:
            document = {}
        if not document.get("jobs") or child.returncode < 0:
            return Outcome("refused", why or (out.strip().splitlines() or [f"exit status {child.returncode}"])[0])
        if child.returncode:
            return Outcome("failed", why or f"errors {[one['error'] for one in document['jobs']]}")
        if any(AGAIN.search(warning) for warning in document.get("halfpower", {}).get("warnings", [])):
            return Outcome("again")
        return Outcome("ran", "", facts_of(document, directory, sections))


class Pair:
    """The outcomes of both programs for one job file, in runs with different seeds."""

    def __init__(self, sections, options):
        self.sections, self.options = sections, options
        self.theirs, self.ours = [], []
        names = names_of(sections)
        # Direct requests need a file system on a disk.
        self.root = options.disk if "direct=1" in {option for _, found in sections for option in found} else options.memory
        self.clocked = bool(PACED & names) and "runtime" in names

    def add(self, to, program, seed):
        for _ in range(3):
            found = run(program, text_of(self.sections, seed), self.sections, self.root)
            if found.kind != "again":
                break
        to.append(found)
        return found

    def more(self, number):
        """Runs both programs until each has this many outcomes; the first runs are of the file as it is."""
        while len(self.theirs) < number:
            count = len(self.theirs)
            seed = None if count == 0 else 1000 + 77 * count
            self.add(self.theirs, [self.options.fio], seed)
            if self.theirs[-1].kind in ("refused", "slow"):
                return
            self.add(self.ours, [self.options.halfpower, "fio"], seed)

    def differences(self):
        """Names to what fio and halfpower have, without the kinds that the options ignore."""
        found = self.outcomes_differ() or self.facts_differ()
        return {name: both for name, both in found.items() if not any(part in kind_of(name) for part in self.options.ignore)}

    def outcomes_differ(self):
        theirs, ours = ({one.kind for one in found} for found in (self.theirs, self.ours))
        both = self.words(self.theirs), self.words(self.ours)
        if "failed" in theirs:
            # A refusal before the run is as good as a failure in it.
            return {} if ours & {"failed", "refused"} else {"outcome": both}
        if "refused" in ours:
            return {f"refused: {reason(self.ours[-1].why)}": both}
        return {"outcome": both} if ours & {"failed", "slow"} else {}

    def facts_differ(self):
        theirs, ours = ([one.facts for one in found if one.kind == "ran"] for found in (self.theirs, self.ours))
        if not theirs or not ours:
            return {}
        found = {}
        for name in dict.fromkeys(name for facts in (theirs[0], ours[0]) for name in facts):
            pair = [[facts[name] for facts in side if name in facts] for side in (theirs, ours)]
            if self.differs(name, *pair):
                found[name] = tuple(shown(values) for values in pair)
        return found

    def words(self, found):
        counts = collections.Counter((one.kind, one.why) for one in found)
        return "; ".join(": ".join(part for part in kind if part) for kind in counts)

    def differs(self, name, theirs, ours):
        """Whether what one program does is outside of what the other does in several runs."""
        if name.startswith("log.") and not len(theirs) == len(ours) == len(self.theirs):
            # Only some runs have such requests, or one program has none at all.
            return not self.clocked and len(self.theirs) in (len(theirs), len(ours)) and not (theirs and ours)
        if not theirs or not ours:
            # The name of a missing file is compared.
            return False
        if isinstance(theirs[0], str):
            # A fact that differs between runs of fio is not determined.
            return not self.clocked and len(set(theirs)) == 1 and not set(theirs) & set(ours) or name == "jobs" and set(theirs) != set(ours)
        gap = max(min(ours) - max(theirs), min(theirs) - max(ours), 0)
        if name.endswith(" ms"):
            return gap > TIME_SHARE * max(theirs) + TIME_MS
        if self.clocked:
            if name.startswith(("log.", "length")):
                return False
            return gap > PACED_SHARE * max(*theirs, *ours) + (PACED_REQUESTS if "bytes" not in name else PACED_REQUESTS * 65536)
        return gap > 0


def reason(why):
    """A refusal without its place and numbers."""
    return re.sub(r"\d+", "N", re.sub(r"^.*?(line \d+|command line): |job '\w+': ", "", why))[:150]


def shown(values):
    """The values of several runs, in short."""
    if all(isinstance(value, (int, float)) for value in values):
        return "none" if not values else f"{min(values)}" if min(values) == max(values) else f"{min(values)} to {max(values)}"
    return " / ".join(sorted(set(map(str, values))))


def kind_of(name):
    """The kind of a difference, without numbers and names of files."""
    return re.sub(r"length of .*", "length of a file", re.sub(r"^(job \d+|log\.\w+): ", lambda match: "logged " if match[1].startswith("log") else "", name))


def judged(sections, options, samples=SAMPLES):
    """Runs a job file often enough; returns the kind of the outcome, the differences and the pair."""
    pair = Pair(sections, options)
    for number in samples:
        pair.more(number)
        if pair.theirs[-1].kind in ("refused", "slow") and len(pair.theirs) == 1:
            return "skipped", {}, pair
        found = pair.differences()
        if not found:
            return "same", {}, pair
        if pair.ours[-1].kind == "refused":
            break
    return "refused" if pair.ours[0].kind == "refused" else "other", found, pair


def reduced(sections, kinds, options):
    """The job with as few options as still show one of these kinds of difference: it removes sections, then ever fewer options at once."""
    def still(tried):
        if not tried or not any(found for _, found in tried):
            return False
        return bool({kind_of(name) for name in judged(tried, options, FEWER_SAMPLES)[1]} & kinds)

    for name, _ in list(sections):
        rest = [one for one in sections if one[0] != name]
        if len(sections) > 1 and still(rest):
            sections = rest
    step = max(sum(len(found) for _, found in sections) // 2, 1)
    while True:
        places = [(section, place) for section, (_, found) in enumerate(sections) for place in range(len(found))]
        at, removed = 0, False
        while at < len(places):
            gone = set(places[at : at + step])
            tried = [(name, [option for place, option in enumerate(found) if (section, place) not in gone]) for section, (name, found) in enumerate(sections)]
            if still(tried):
                sections, removed = tried, True
                places = [(section, place) for section, (_, found) in enumerate(sections) for place in range(len(found))]
            else:
                at += step
        if step == 1 and not removed:
            return sections
        step = max(step // 2, 1)


def explains(cause, sections):
    """Whether a job has all options of a smaller one; of some the value does not matter."""
    have = {option for _, found in sections for option in found}
    names = {option.split("=")[0] for option in have}
    wanted = {option for _, found in cause for option in found}
    return len(cause) <= len(sections) and all(option in have or option.split("=")[0] in WEAK & names for option in wanted)


def with_values(cause, sections):
    """A smaller job with the values that a job has."""
    values = dict(option.split("=", 1) for _, found in sections for option in found if "=" in option)
    return [(name, [f"{key}={values.get(key, value)}" if equals else key for key, equals, value in (option.partition("=") for option in found)]) for name, found in cause]


def described(found):
    return [f"    {name}: fio {theirs[:300]}, halfpower {ours[:300]}" for name, (theirs, ours) in list(found.items())[:14]]


def replay(options):
    """Runs one job file with both programs, and prints all that is compared."""
    sections = sections_of(options.replay.read_text())
    kind, found, pair = judged(sections, options)
    for name, side in (("fio", pair.theirs), ("halfpower", pair.ours)):
        print(f"{name}: {pair.words(side)}")
    if any(one.facts for one in pair.theirs) and any(one.facts for one in pair.ours):
        theirs, ours = ([one.facts for one in side if one.facts] for side in (pair.theirs, pair.ours))
        for name in dict.fromkeys(name for facts in (theirs[0], ours[0]) for name in facts):
            values = [shown([facts[name] for facts in side if name in facts]) for side in (theirs, ours)]
            print(f"{'*' if name in found else ' '}   {name}: fio {values[0]}, halfpower {values[1]}")
    print(f"{kind}, after {len(pair.theirs)} runs of fio and {len(pair.ours)} of halfpower (* differs)")
    return [], kind in ("same", "skipped")


def random_jobs(options):
    """Draws jobs from a table of options (bench/lib/random_jobs.py), and runs each with fio and halfpower in fresh directories. Compares exit
    status, bytes, requests, syncs, logged places, files, and the time of paced jobs. If something differs, both run again with other seeds, and
    only what differs in all runs counts. Each difference is then reduced to the options that it needs. The same seed draws the same jobs.
    Fails if a job differs or is refused."""
    need(options.fio)
    if options.replay:
        return replay(options)
    begin = time.monotonic()
    known = []
    count, kinds, refusals, skips = collections.Counter(), collections.defaultdict(list), collections.Counter(), collections.Counter()
    for number in range(options.first, options.first + options.count):
        if options.minutes and time.monotonic() - begin > 60 * options.minutes:
            break
        progress(f"seed {options.seed}, job {number}: {dict(count)}")
        sections = job(options.seed, number, options.without)
        kind, found, pair = judged(sections, options)
        count[kind] += 1
        if kind == "skipped":
            skips[pair.theirs[0].kind + ": " + re.sub(r"\d+", "N", pair.theirs[0].why)[:100]] += 1
        if kind not in ("other", "refused"):
            continue
        if kind == "refused":
            refusals[reason(pair.ours[0].why)] += 1
        progress("")
        print(f"\n## {kind}: seed {options.seed}, job {number}\n\n{text_of(sections)}\n" + "\n".join(described(found)), flush=True)
        cause = next((one for one in known if explains(one, sections)), None)
        if cause and kind == "other" and not {kind_of(name) for name in found} - {kind_of(name) for name in judged(with_values(cause, sections), options, FEWER_SAMPLES)[1]}:
            print(f"\nAs {text_of(cause)!r}")
            continue
        if options.whole or refusals[reason(pair.ours[0].why)] > 1:
            continue
        small = reduced(sections, {kind_of(name) for name in found}, options)
        found = judged(small, options, FEWER_SAMPLES)[1]
        print("\nThe smallest job:\n\n" + text_of(small) + "\n" + "\n".join(described(found)), flush=True)
        key = "; ".join(sorted({kind_of(name) for name in found})) or "only by chance"
        if found:
            known.append(small)
        kinds[key].append(text_of(small).replace("\n", " "))
    progress("")
    print(f"\n{sum(count.values())} jobs of seed {options.seed}, by {output(options.fio, '--version')} and halfpower: " + ", ".join(f"{count[kind]} {kind}" for kind in ("same", "other", "refused", "skipped")))
    for key, jobs in sorted(kinds.items(), key=lambda one: -len(one[1])):
        print(f"\n{len(jobs)} x {key}")
        for one in jobs:
            print(f"    {one}")
    for title, found in (("refused by halfpower", refusals), ("skipped because of fio", skips)):
        if found:
            print(f"\n{title}:")
        for why, number in found.most_common(20):
            print(f"    {number} x {why[:200]}")
    return [], not count["other"] and not count["refused"]


COMMAND = {
    "--fio": {"default": "fio", "help": "the original program [default: %(default)s]"},
    "--seed": {"type": int, "default": 1},
    "--count": {"type": int, "default": 100, "help": "number of jobs [default: %(default)s]"},
    "--first": {"type": int, "default": 0, "help": "number of the first job [default: %(default)s]"},
    "--without": {"nargs": "+", "default": [], "metavar": "NAME[=VALUE]", "help": "draw none of these options"},
    "--ignore": {"nargs": "+", "default": [], "metavar": "TEXT", "help": "leave out kinds of differences that contain this"},
    "--minutes": {"type": float, "help": "draw no more jobs after this time"},
    "--whole": {"action": "store_true", "help": "do not reduce the jobs that differ"},
    "--replay": {"type": pathlib.Path, "metavar": "FILE", "help": "run only this job file, and show both sides"},
    "--disk": {"default": tempfile.gettempdir(), "help": "directory for direct requests [default: %(default)s]"},
    "--memory": {"default": "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir(), "help": "directory for the other jobs [default: %(default)s]"},
}
