//! `record` of fio and halfpower workloads: counts, bytes, sizes, order, depth, syncs and rates
//! against the program's report, `/proc/PID/io` and the device's counters. As root, with trace
//! points.

mod common;

use apptrace::{Access, Event, Interface, Request, TraceReader};
use common::places::Mount;
use common::{HALFPOWER, alone, can_record, command, finish, number};
use serde_json::Value;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

const DATA: &str = "data";
const DATA_BYTES: u64 = 4 << 20;

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Sequential,
    Random,
    /// Not shown, or a mix.
    Any,
}

struct Case {
    /// Options of fio, or of `halfpower run` if they begin with `run`.
    options: &'static str,
    /// The size of every request in bytes; 0: several sizes.
    bytes: u64,
    order: Order,
    /// The requests of a file at once: minimum and maximum.
    depth: (f64, f64),
    /// The shares of requests with O_DIRECT and with O_DSYNC.
    how: (f64, f64),
    /// Requests per second.
    rate: Option<f64>,
}

const fn case(options: &'static str, bytes: u64, order: Order, depth: (f64, f64)) -> Case {
    Case { options, bytes, order, depth, how: (0.0, 0.0), rate: None }
}

const fn direct(case: Case) -> Case {
    Case { how: (1.0, case.how.1), ..case }
}

const fn dsync(case: Case) -> Case {
    Case { how: (case.how.0, 1.0), ..case }
}

const fn at_rate(case: Case, rate: f64) -> Case {
    Case { rate: Some(rate), ..case }
}

const ONE: (f64, f64) = (1.0, 1.0);

fn cases() -> Vec<Case> {
    use Order::{Any, Random, Sequential};
    vec![
        case("--ioengine=psync --rw=read --bs=4k", 4096, Sequential, ONE),
        case("--ioengine=psync --rw=randread --bs=8k", 8192, Random, ONE),
        case("--ioengine=psync --rw=write --bs=4k --fdatasync=1 --size=1m", 4096, Sequential, ONE),
        case("--ioengine=psync --rw=randwrite --bs=16k --fsync=4", 16384, Random, ONE),
        case(
            "--ioengine=psync --rw=randrw --rwmixread=70 --bs=8k --fdatasync=8",
            8192,
            Random,
            ONE,
        ),
        case("--ioengine=psync --rw=rw --bs=32k", 32768, Any, ONE),
        case("--ioengine=sync --rw=randread --bs=4k", 4096, Random, ONE),
        case("--ioengine=sync --rw=write --bs=64k --end_fsync=1", 65536, Sequential, ONE),
        case("--ioengine=sync --rw=randrw --bs=4k", 4096, Random, ONE),
        case("--ioengine=vsync --rw=read --bs=4k --iodepth=1", 4096, Sequential, ONE),
        case("--ioengine=pvsync --rw=randread --bs=4k", 4096, Random, ONE),
        case("--ioengine=pvsync2 --rw=randwrite --bs=4k", 4096, Random, ONE),
        case("--ioengine=pvsync2 --rw=read --bs=128k", 131_072, Sequential, ONE),
        dsync(case(
            "--ioengine=psync --rw=randwrite --bs=4k --sync=dsync --size=1m",
            4096,
            Random,
            ONE,
        )),
        direct(case("--ioengine=psync --rw=randread --bs=4k --direct=1", 4096, Random, ONE)),
        direct(case("--ioengine=psync --rw=write --bs=128k --direct=1", 131_072, Sequential, ONE)),
        direct(dsync(case(
            "--ioengine=psync --rw=write --bs=8k --direct=1 --sync=dsync --size=512k",
            8192,
            Sequential,
            ONE,
        ))),
        case("--ioengine=psync --rw=randread --bssplit=4k/50:64k/50", 0, Any, ONE),
        case("--ioengine=psync --rw=randwrite --bs=6k", 6144, Random, ONE),
        case(
            "--ioengine=psync --rw=randread --bs=16k --numjobs=4 --thread",
            16384,
            Random,
            (1.0, 4.0),
        ),
        case("--ioengine=psync --rw=randread --bs=16k --numjobs=4", 16384, Random, (1.0, 4.0)),
        case(
            "--ioengine=psync --rw=randwrite --bs=16k --numjobs=2 --fdatasync=4",
            16384,
            Random,
            (1.0, 2.0),
        ),
        at_rate(
            case(
                "--ioengine=psync --rw=write --bs=4k --rate_iops=200 --fdatasync=1 --size=2m",
                4096,
                Sequential,
                ONE,
            ),
            200.0,
        ),
        at_rate(
            case(
                "--ioengine=psync --rw=randread --bs=4k --rate_iops=1000 --direct=0 --size=4m",
                4096,
                Random,
                ONE,
            ),
            1000.0,
        ),
        direct(case(
            "--ioengine=io_uring --rw=randread --bs=4k --iodepth=8 --direct=1",
            4096,
            Any,
            (2.0, 8.0),
        )),
        case("--ioengine=io_uring --rw=write --bs=16k --iodepth=1", 16384, Any, ONE),
        case(
            "--ioengine=io_uring --rw=randwrite --bs=4k --iodepth=4 --fdatasync=16 --size=1m",
            4096,
            Any,
            (1.0, 4.0),
        ),
        case(
            "--ioengine=psync --rw=randread --bs=4k --random_distribution=zipf:1.2",
            4096,
            Any,
            ONE,
        ),
        case(
            "run --op read --pattern random --request 8k --engine sync --buffered",
            8192,
            Random,
            ONE,
        ),
        direct(case(
            "run --op read --pattern random --request 4k --engine sync --direct --threads 2",
            4096,
            Random,
            (1.0, 2.0),
        )),
        dsync(case(
            "run --op write --pattern random --request 16k --engine sync --buffered --dsync --destroy-data data",
            16384,
            Random,
            ONE,
        )),
        direct(case(
            "run --op read --pattern random --request 64k --engine threads --depth 4 --direct",
            65536,
            Random,
            (2.0, 4.0),
        )),
    ]
}

struct Recording {
    profile: Value,
    requests: Vec<Request>,
    file: u32,
    report: Value,
    /// `rchar` and `wchar` of the job with its children.
    io: [f64; 2],
}

impl Recording {
    fn of_job(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|one| one.file == self.file)
    }
}

fn job(options: &str) -> String {
    match options.strip_prefix("run ") {
        Some(options) => format!(
            "'{HALFPOWER}' run {DATA} --no-history {options} --bytes 1m --max-repeats 3 --json > report"
        ),
        None => format!(
            "fio --name=j --filename={DATA} --size={DATA_BYTES} --randrepeat=1 --invalidate=1 --output=report --output-format=json {options}"
        ),
    }
}

fn recorded(here: &Path, options: &str) -> Recording {
    let trace = here.join("t.hptrace");
    let trace_name = trace.to_str().unwrap();
    let script = format!("cat /proc/$$/io > before; {}; cat /proc/$$/io > after", job(options));
    let words = ["record", "--force", "-o", trace_name, "--", "sh", "-ec", &script];
    let mut record = command(HALFPOWER, words);
    record.current_dir(here);
    let done = finish(record);
    assert_eq!(done.code, Some(0), "{options}: {}", done.stderr);
    assert!(!done.stderr.contains("lost"), "{options}: {}", done.stderr);
    let mut reader = TraceReader::new(BufReader::new(File::open(&trace).unwrap())).unwrap();
    let (mut requests, mut names) = (Vec::new(), Vec::new());
    for event in reader.by_ref() {
        match event.unwrap() {
            Event::File(file) => names.push(file.name),
            Event::Request(request) => requests.push(request),
            _ => {}
        }
    }
    let own = here.join(DATA);
    let file = names.iter().position(|name| Path::new(name) == own);
    let file = file.unwrap_or_else(|| panic!("{options}: no {DATA} in {names:?}")) as u32;
    let io = |name: &str| {
        let text = |file: &str| fs::read_to_string(here.join(file)).unwrap();
        let of = |text: String| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
            line.unwrap().trim_start_matches(':').trim().parse().unwrap()
        };
        of(text("after")) - of(text("before"))
    };
    let report = fs::read_to_string(here.join("report")).unwrap();
    Recording {
        profile: finish(command(HALFPOWER, ["profile", trace_name, "--json"])).good_json(),
        requests,
        file,
        report: serde_json::from_str(&report).unwrap_or_else(|why| panic!("{options}: {why}")),
        io: [io("rchar"), io("wchar")],
    }
}

fn close(found: f64, truth: f64, share: f64) -> bool {
    (found - truth).abs() <= truth.abs() * share
}

fn sum(report: &Value, pointer: &str) -> f64 {
    report["jobs"].as_array().unwrap().iter().map(|job| number(job, pointer)).sum()
}

fn faults(case: &Case, recording: &Recording) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |what: &str, found: f64, truth: f64, is_so: bool| {
        if !is_so {
            faults.push(format!("{what}: {found}, not {truth}"));
        }
    };
    let files = recording.profile["files"].as_array().unwrap();
    let of_job = |file: &&Value| file["name"].as_str().unwrap().ends_with(&format!("/{DATA}"));
    let Some(file) = files.iter().find(of_job) else { return vec!["the file is missing".into()] };
    let is_fio = !case.options.starts_with("run");
    let is_asked = |side: &&str| is_fio || case.options.contains(&format!("--op {side}"));
    for side in ["read", "write"].into_iter().filter(is_asked) {
        let flow = &file[&format!("{side}s")];
        let figure = |pointer: &str| flow.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
        let (requests, bytes) = (figure("/requests"), figure("/bytes"));
        if is_fio {
            let truth = sum(&recording.report, &format!("/{side}/total_ios"));
            check(&format!("{side}s"), requests, truth, requests == truth);
            let truth = sum(&recording.report, &format!("/{side}/io_bytes"));
            check(&format!("bytes of {side}s"), bytes, truth, bytes == truth);
        } else if requests > 0.0 {
            // Each run has its bytes, and nothing else asks for this size.
            let point = &recording.report["points"][0];
            let runs = number(point, "/repeats");
            let truth = runs * f64::from(1 << 20);
            let sizes = flow["sizes"].as_array().unwrap().iter();
            let own = sizes.filter(|size| size["bytes"] == case.bytes);
            let asked: f64 = own.map(|size| number(size, "/requests")).sum();
            let bytes = asked * case.bytes as f64;
            // Its warm-up comes before the bytes that count.
            check(
                &format!("bytes of {side}s"),
                bytes,
                truth,
                bytes >= truth && bytes <= 4.0 * truth,
            );
        }
        if requests == 0.0 {
            continue;
        }
        if case.bytes > 0 && is_fio {
            let size = figure("/sizes/0/bytes");
            check("size", size, case.bytes as f64, flow["sizes"].as_array().unwrap().len() == 1);
            check("size", size, case.bytes as f64, size == case.bytes as f64);
        }
        let sequential = figure("/sequential");
        match case.order {
            Order::Sequential => check("sequential", sequential, 1.0, sequential > 0.98),
            Order::Random => check("sequential", sequential, 0.0, sequential < 0.1),
            Order::Any => {}
        }
        let is_queued = flow["sequential"].is_null();
        let (direct, durable) = (figure("/direct"), figure("/durable"));
        // halfpower also looks at the file before it begins.
        check(
            "direct",
            direct,
            case.how.0,
            is_queued || close(direct, case.how.0, 0.05) || !is_fio,
        );
        check(
            "durable",
            durable,
            case.how.1,
            is_queued || close(durable, case.how.1, 0.0) || !is_fio,
        );
    }
    if is_fio {
        let truth: f64 = recording.report["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|job| job.pointer("/sync/lat_ns/N")?.as_f64())
            .sum();
        let syncs = file.pointer("/syncs/calls").and_then(Value::as_f64).unwrap_or(0.0);
        // fio does not count the one at a job's end.
        let jobs = recording.report["jobs"].as_array().unwrap().len() as f64;
        check("syncs", syncs, truth, (0.0..=jobs).contains(&(syncs - truth)));
    }
    let depth = file.pointer("/concurrency/max").and_then(Value::as_f64).unwrap_or(0.0);
    check("depth", depth, case.depth.1, (case.depth.0..=case.depth.1).contains(&depth));
    if let Some(wanted) = case.rate {
        // On a busy machine fio itself may be late.
        let rate = ["/read/iops", "/write/iops"].map(|side| sum(&recording.report, side));
        let rate = rate[0] + rate[1];
        check("fio's rate", rate, wanted, rate <= wanted * 1.01);
        let is_move = |one: &&Request| matches!(one.access, Access::Read | Access::Write);
        let starts: Vec<u64> = recording.of_job().filter(is_move).map(|one| one.at_ns).collect();
        let seconds = (starts[starts.len() - 1] - starts[0]) as f64 * 1e-9;
        let found = (starts.len() - 1) as f64 / seconds;
        check("requests per second", found, rate, close(found, rate, 0.02));
    }
    // What the kernel counts of system calls: all files, pipes and sockets of the job.
    if !case.options.contains("io_uring") {
        for (access, truth) in [(Access::Read, recording.io[0]), (Access::Write, recording.io[1])] {
            let own = recording
                .requests
                .iter()
                .filter(|one| one.access == access && one.interface == Interface::SystemCall);
            let bytes: f64 = own
                .filter_map(|one| one.result)
                .filter(|done| *done > 0)
                .map(|done| done as f64)
                .sum();
            // The shell's own reads before and after are not the job's.
            let slack = truth * 0.02 + 16384.0;
            check(
                &format!("{access:?} bytes of /proc/PID/io"),
                bytes,
                truth,
                (bytes - truth).abs() <= slack,
            );
        }
    }
    faults
}

#[test]
fn recordings_agree_with_what_programs_report() {
    if !can_record() || !common::fio::fio_is_here() {
        return;
    }
    let _alone = alone();
    let volume = or_skip!(Mount::on_loop("ext4", 128 << 20));
    let mut all = Vec::new();
    for case in cases() {
        fs::write(volume.at.join(DATA), vec![7; DATA_BYTES as usize]).unwrap();
        let recording = recorded(&volume.at, case.options);
        all.extend(
            faults(&case, &recording).into_iter().map(|fault| format!("{}: {fault}", case.options)),
        );
    }
    assert!(all.is_empty(), "{} of {}:\n{}", all.len(), cases().len(), all.join("\n"));
}

fn sectors(volume: &Mount) -> [f64; 2] {
    let name = volume.device().device.trim_start_matches("/dev/").to_owned();
    let text = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    [numbers[2] * 512.0, numbers[6] * 512.0]
}

#[test]
fn what_reaches_the_device_is_what_its_counters_say() {
    if !can_record() || !common::fio::fio_is_here() {
        return;
    }
    let _alone = alone();
    let volume = or_skip!(Mount::on_loop("ext4", 128 << 20));
    let mut all = Vec::new();
    for (options, doubt) in [
        ("--ioengine=psync --rw=randread --bs=4k --direct=1", None),
        ("--ioengine=psync --rw=read --bs=64k", None),
        ("--ioengine=libaio --rw=randread --bs=4k --iodepth=8 --direct=1", Some("io_submit")),
        ("--ioengine=libaio --rw=write --bs=64k --iodepth=4 --direct=1", Some("io_submit")),
        ("--ioengine=io_uring --rw=randread --bs=16k --iodepth=4 --direct=1", None),
        ("--ioengine=psync --rw=write --bs=64k --direct=1", None),
        ("--ioengine=psync --rw=write --bs=16k --end_fsync=1", None),
        ("--ioengine=mmap --rw=randread --bs=4k", None),
        (
            "--ioengine=mmap --rw=randwrite --bs=4k --fdatasync=64 --end_fsync=1",
            Some("memory mapping"),
        ),
        ("--ioengine=splice --rw=read --bs=32k", None),
    ] {
        fs::write(volume.at.join(DATA), vec![7; DATA_BYTES as usize]).unwrap();
        common::places::tool("sync", &[]).unwrap();
        fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
        let before = sectors(&volume);
        let recording = recorded(&volume.at, options);
        let after = sectors(&volume);
        let devices = recording.profile["devices"].as_array().unwrap();
        let name = &volume.device().device;
        let Some(device) = devices.iter().find(|one| one["name"] == name.as_str()) else {
            all.push(format!("{options}: no {name}"));
            continue;
        };
        for (place, side) in [(0, "/reads/bytes"), (1, "/writes/bytes")] {
            let truth = after[place] - before[place];
            let found = device.pointer(side).and_then(Value::as_f64).unwrap_or(0.0);
            let slack = truth * 0.02 + 131_072.0;
            // The file system also writes before and after the recording: its journal, and the rest
            // of its tables.
            let written = sum(&recording.report, "/write/io_bytes");
            let is_so = match place {
                0 => (found - truth).abs() <= slack,
                _ => (written..=truth + slack).contains(&found),
            };
            if !is_so {
                all.push(format!("{options}: {side} {found}, the device counts {truth}"));
            }
        }
        let doubts = recording.profile["doubts"].to_string();
        if !doubt.map_or(doubts == "[]", |word| doubts.contains(word)) {
            all.push(format!("{options}: {doubts}"));
        }
        if options.contains("mmap --rw=randread") {
            let files = recording.profile["files"].as_array().unwrap();
            let own = files.iter().find(|file| file["name"].as_str().unwrap().ends_with("/data"));
            let faults = own.map_or(0.0, |file| number(file, "/mapped_reads"));
            if !(1.0..=1024.0).contains(&faults) {
                all.push(format!("{options}: {faults} faults"));
            }
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}
