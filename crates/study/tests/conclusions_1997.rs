//! The conclusions of the 1997 study, found by a study of its simulated machine.

mod sound;

use machine::{Buffering, Engine, ResourceKind, TargetSpec};
use results::{Bottleneck, LimitOf, Program, Results, StageKind};
use study::{Effort, Plan};
use twin::Twin;
use workload::{OpKind, Pattern};

const FAST: &str = "drive=st15150w";
const ULTRA: &str = "drive=st34371w";
const MIB: f64 = 1024.0 * 1024.0;

fn study(settings: &str, effort: Effort, only: &[&str]) -> Results {
    let twin = Twin::from_name(&format!("gateway-1997,{settings}")).expect("a machine");
    let only = only.iter().map(ToString::to_string).collect();
    let plan = Plan { budget_ns: 60_000_000_000, effort, only, seed: 7 };
    let program = Program { name: "test".into(), version: "0".into(), arguments: Vec::new() };
    let results = study::study(&twin, &TargetSpec::default(), &plan, program, &mut |_| {});
    sound::sound(results.expect("a study"))
}

fn peak(results: &Results, op: OpKind) -> f64 {
    let peaks = &results.answer.as_ref().expect("an answer").peaks;
    peaks.iter().find(|peak| peak.op == op).expect("a peak").throughput_bytes_per_s
}

fn limit(results: &Results, op: OpKind) -> Bottleneck {
    let limits = &results.answer.as_ref().expect("an answer").limits;
    limits.iter().find(|limit| limit.of == LimitOf::Peak && limit.op == op).expect("a limit").what
}

fn place(results: &Results, op: OpKind, buffering: Buffering, kib: u32, depth: u32) -> usize {
    let found = results.points.iter().position(|point| {
        let one = &point.workload.workload;
        let plain =
            one.pattern == Pattern::Seq && one.offset_bytes == 0 && one.region_start_bytes == 0;
        let plain = plain && one.threads == 1 && one.allocation == machine::Allocation::Written;
        let same =
            one.buffering == buffering && one.request_bytes == kib << 10 && one.depth == depth;
        plain && same && point.workload.op == op && one.engine != Engine::Threads
    });
    found.unwrap_or_else(|| panic!("no {op} of {kib} KiB, {depth} deep, {buffering:?}"))
}

/// Returns the rate in MiB/s.
fn direct(results: &Results, op: OpKind, kib: u32, depth: u32) -> f64 {
    results.points[place(results, op, Buffering::Direct, kib, depth)].rate().expect("a rate") / MIB
}

fn sentence<'a>(results: &'a Results, experiment: &str) -> &'a str {
    &results.experiments.iter().find(|one| one.id == experiment).expect("an experiment").sentence
}

fn gain(results: &Results, words: &str) -> Option<f64> {
    let findings = &results.answer.as_ref().expect("an answer").findings;
    findings.iter().find(|one| one.title.contains(words)).map(|one| one.gain)
}

#[test]
fn three_disks_fill_a_bus_and_then_the_bus_is_the_limit_and_not_the_disk() {
    let of = |disks: u32| study(&format!("{FAST},disks={disks}"), Effort::Quick, &["depth"]);
    let (one, three, four) = (of(1), of(3), of(4));
    assert_eq!(limit(&one, OpKind::Read), Bottleneck::Media);
    assert_eq!(limit(&three, OpKind::Read), Bottleneck::Bus);
    assert_eq!(limit(&four, OpKind::Read), Bottleneck::Bus);
    let [one, three, four] = [one, three, four].map(|results| peak(&results, OpKind::Read));
    assert!(three > 2.2 * one && four < 1.05 * three, "{one} {three} {four}");
}

#[test]
fn every_point_has_its_bus_phases() {
    let results = study(&format!("{ULTRA},disks=3,start=12k"), Effort::Normal, &["depth"]);
    let data_in = |point: usize| {
        let resources =
            &results.points[point].numbers.as_ref().expect("numbers").achieved.resources;
        let bus = resources.iter().find(|one| one.kind == ResourceKind::Bus).expect("a bus");
        let all: f64 = bus.phases.iter().map(|phase| phase.percent).sum();
        assert!((all - 100.0).abs() < 0.5, "{all}");
        bus.phases.iter().find(|phase| phase.name == "Data In").expect("the phase").percent
    };
    // Table 4: 80.4 % of the busy time of a bus with three disks.
    let measured = data_in(place(&results, OpKind::Read, Buffering::Direct, 64, 3));
    assert!((measured - 80.4).abs() < 8.0, "{measured}");
    let peak = results
        .answer
        .as_ref()
        .unwrap()
        .peaks
        .iter()
        .find(|peak| peak.op == OpKind::Read)
        .expect("a peak");
    assert!(data_in(peak.point) > 80.0);
}

#[test]
fn alignment_on_stripes_is_worth_6_to_20_percent() {
    let of = |start: &str| {
        study(&format!("{ULTRA},disks=4,wce=on,start={start}"), Effort::Normal, &["depth"])
    };
    let (aligned, off) = (of("0"), of("12k"));
    for op in [OpKind::Read, OpKind::Write] {
        let loss = 1.0 - direct(&off, op, 64, 3) / direct(&aligned, op, 64, 3);
        // The report: reads lose up to 20 %, writes 15.
        assert!((0.06..0.2).contains(&loss), "{op}: {loss}");
    }
}

#[test]
fn a_target_off_its_chunk_is_found_whatever_its_start() {
    let of = |start: &str| {
        study(&format!("{ULTRA},disks=4,wce=on,start={start}"), Effort::Quick, &["alignment"])
    };
    for start in ["12k", "31.5k"] {
        let results = of(start);
        let said = sentence(&results, "alignment");
        assert!(
            said.contains("does not start on a boundary of its 64 KiB chunks"),
            "{start}: {said}"
        );
    }
    let results = of("0");
    let said = sentence(&results, "alignment");
    assert!(!said.contains("does not start") && said.contains("off the chunk"), "{said}");
    let by_size = |figure: &&results::Figure| figure.id == "alignment_by_size";
    let figures = &results.experiments.iter().find(|one| one.id == "alignment").unwrap().figures;
    assert_eq!(figures.iter().find(by_size).expect("the published figure").series.len(), 6);
}

#[test]
fn pci_is_the_limit_of_nine_disks_and_a_fourth_adapter_adds_nothing() {
    let (three, four) = (
        study(&format!("{ULTRA},disks=9,buses=3"), Effort::Quick, &["depth"]),
        study(&format!("{ULTRA},disks=12,buses=4"), Effort::Quick, &["depth"]),
    );
    assert_eq!(
        (limit(&three, OpKind::Read), limit(&four, OpKind::Read)),
        (Bottleneck::Pci, Bottleneck::Pci)
    );
    let ratio = peak(&four, OpKind::Read) / peak(&three, OpKind::Read);
    assert!((ratio - 1.0).abs() < 0.04, "{ratio}");
}

#[test]
fn write_cache_or_three_requests_hide_the_revolution() {
    let of = |wce: &str| {
        study(&format!("{ULTRA},wce={wce}"), Effort::Normal, &["buffered", "unbuffered", "depth"])
    };
    let (off, on) = (of("off"), of("on"));
    // Depth 3 gains without the write cache, and is not reported with it.
    let advice = "sequential writes of 64 KiB outstanding, not one";
    assert!(gain(&off, advice).is_some_and(|gain| gain > 2.0), "{:?}", gain(&off, advice));
    assert!(gain(&on, advice).is_none_or(|gain| gain < 1.1), "{:?}", gain(&on, advice));
    for kib in [4, 16, 64] {
        let [without, with] = [&off, &on].map(|results| direct(results, OpKind::Write, kib, 1));
        assert!(with > 1.8 * without, "{kib} KB: {without} {with}");
        if kib >= 16 {
            let deep = direct(&off, OpKind::Write, kib, 3);
            assert!((deep / with - 1.0).abs() < 0.1, "{kib} KB: {deep} three deep, {with} cached");
        }
    }
}

#[test]
fn request_cost_depends_on_the_completion_method() {
    let of = |shape: &str| study(&format!("{ULTRA},shape={shape}"), Effort::Normal, &["depth"]);
    let (routines, port) = (of("routines"), of("port"));
    let cost = |results: &Results| {
        let cpu = &results.points[place(results, OpKind::Read, Buffering::Direct, 8, 3)]
            .numbers
            .as_ref()
            .expect("numbers");
        cpu.cpu_ns_per_request.user + cpu.cpu_ns_per_request.system
    };
    let call = cost(&routines) - cost(&port);
    assert!(
        (4_000.0..5_500.0).contains(&call),
        "a routine takes a system call more than a port: {call} ns"
    );
}

#[test]
fn buffering_helps_small_requests_and_costs_the_processor_for_large_ones() {
    let results = study(ULTRA, Effort::Normal, &["buffered", "unbuffered", "cost"]);
    let costs = &results.answer.as_ref().unwrap().costs;
    let of = |mode: &str| {
        costs.iter().find(|cost| cost.mode.name() == mode).unwrap_or_else(|| panic!("{costs:?}"))
    };
    // Nanoseconds per request, and per byte, of a file in the cache.
    let ns = |mode: &str, bytes: f64| of(mode).ns_per_request + of(mode).ns_per_byte * bytes;
    let at_64 = ns("buffered read", 65_536.0) / ns("direct read", 65_536.0);
    assert!((2.0..=4.0).contains(&at_64), "{at_64}: {}", sentence(&results, "cost"));
    // Pages that are read in also have to be mapped.
    let cpu = |buffering: Buffering| {
        results.points[place(&results, OpKind::Read, buffering, 64, 1)].cpu_ns_per_mib().unwrap()
    };
    let cold = cpu(Buffering::Buffered) / cpu(Buffering::Direct);
    assert!((6.0..=10.0).contains(&cold), "{cold}: {}", sentence(&results, "buffered"));
    assert!(
        ns("buffered read", 2048.0) < ns("direct read", 2048.0),
        "{}",
        sentence(&results, "cost")
    );
    assert!(
        sentence(&results, "unbuffered").contains("Single direct reads reach"),
        "{}",
        sentence(&results, "unbuffered")
    );
}

#[test]
fn a_file_that_grows_is_written_one_request_at_a_time() {
    let results = study(ULTRA, Effort::Normal, &["allocation", "depth"]);
    let gain = gain(&results, "do not extend it as you write").expect("an advice");
    // Figure 12: 8.87 MB/s with 64 KB at depth 8, 4.06 extending.
    assert!(
        (gain / (8.87 / 4.06) - 1.0).abs() < 0.1,
        "{gain}: {}",
        sentence(&results, "allocation")
    );
    assert!(
        sentence(&results, "allocation").contains("Extending the file costs"),
        "{}",
        sentence(&results, "allocation")
    );
    // Up to 20 % through the page cache.
    let said = sentence(&results, "allocation");
    assert!(said.contains("Through the page cache extending the file costs 4 %"), "{said}");
}

#[test]
fn half_power_matches_the_abstract() {
    let results = study(FAST, Effort::Normal, &["unbuffered", "depth"]);
    let half = &results.answer.as_ref().unwrap().half_power;
    let smallest = |op: OpKind, at: &str| {
        let one = half
            .iter()
            .find(|one| one.op == op && one.at == at)
            .unwrap_or_else(|| panic!("no {op} {at}"));
        one.smallest.unwrap_or(f64::INFINITY) / 1024.0
    };
    // A synchronous write needs 128 KB for half of 7.68 MB/s, the study's best rate of this drive.
    let half = 7.68 / 2.0;
    let write = |kib: u32| direct(&results, OpKind::Write, kib, 1);
    assert!(write(64) < half && write(128) > half, "{} {}", write(64), write(128));
    // 16 KB at depth 3 and 8 KB at depth 8 reach half of the write peak; reads peak at 4 KB.
    let (three, eight) = (smallest(OpKind::Write, "depth 3"), smallest(OpKind::Write, "depth 8"));
    assert!(three > 8.0 && three <= 16.0 && eight > 4.0 && eight <= 8.0, "{three} {eight}");
    assert!(smallest(OpKind::Read, "depth 1") <= 4.0);
}

fn value(results: &Results, figure: &str, series: &str, x: f64) -> f64 {
    let mut figures = results.experiments.iter().flat_map(|one| &one.figures);
    let figure = figures.find(|one| one.id == figure).expect("the figure");
    let of = figure.series.iter().find(|one| one.name == series);
    let of = of.unwrap_or_else(|| panic!("{series} of {:?}", figure.id));
    of.values.iter().find(|one| one.x == x).and_then(|one| one.y).expect("a value")
}

#[test]
fn program_shapes_differ_in_processor_time_and_events_leave_disks_idle() {
    let results = study(&format!("{ULTRA},disks=4"), Effort::Normal, &["depth"]);
    let cost = |engine: &str| value(&results, "mechanism_cost", engine, 8.0);
    let [threads, events, port, routines] = ["threads", "events", "port", "routines"].map(cost);
    // One system call more than a waiting thread, or two: 4.75 us each.
    for (one, calls) in [(events, 1.0), (port, 1.0), (routines, 2.0)] {
        let more = one - threads;
        assert!((more - calls * 4750.0).abs() < 500.0, "{more} ns for {calls} calls");
    }
    let rate = |engine: &str| value(&results, "mechanism", engine, 8.0);
    assert!(rate("events") < 0.95 * rate("port"), "{} {}", rate("events"), rate("port"));
    let said = sentence(&results, "depth");
    for engine in ["threads", "events", "port", "routines"] {
        assert!(said.contains(&format!("with {engine}")), "{said}");
    }
    assert!(!said.contains("io_uring"), "{said}");
}

#[test]
fn the_hint_helps_buffered_writes_and_write_through_costs_most_of_the_rate() {
    let of = |wce: &str| study(&format!("{ULTRA},wce={wce}"), Effort::Normal, &["buffered"]);
    let (off, on) = (of("off"), of("on"));
    let mib = |results: &Results, series: &str, kib: f64| {
        value(results, "buffered", series, kib * 1024.0) / MIB
    };
    // The report: about 10 % for writes, nothing for reads.
    let hint = mib(&off, "write, to stable storage, sequential hint", 64.0)
        / mib(&off, "write, to stable storage", 64.0);
    assert!((1.06..1.16).contains(&hint), "{hint}");
    let said = sentence(&off, "buffered");
    assert!(said.contains("For writes the hint gains 1"), "{said}");
    assert!(said.contains("The sequential hint changes nothing"), "{said}");
    // The report: write-through costs nearly ten times, and less than 1 MB/s below 64 KB.
    let through = |kib: f64| mib(&on, "write-through, each on stable storage", kib);
    assert!(through(4.0) < 1.0, "{}", through(4.0));
    assert!(mib(&on, "write, to stable storage", 4.0) > 8.0 * through(4.0));
    let said = sentence(&on, "buffered");
    for words in ["Write-through reaches", "A temporary file", "of the processor"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // The page cache is as fast as a file that stays in it; a longer file waits for the disk.
    let stages = &on.ladder.as_ref().expect("a ladder").stages;
    let cache = stages.iter().find(|one| one.kind == StageKind::PageCache).expect("a stage");
    let writes = cache.rates.iter().find(|rate| rate.op == OpKind::Write).expect("a rate");
    let reached = writes.achieved.as_ref().expect("reached").throughput_bytes_per_s;
    assert_eq!(reached, value(&on, "buffered", "write, warm", 65_536.0));
    assert!(mib(&on, "write, to the last return", 64.0) * 5.0 < reached / MIB);
    let cpu = value(&on, "buffered_cost", "read, cold", 65_536.0) / 1e6;
    // Figure 2: 17 to 18 ms a MB with 64 KB.
    assert!((15.0..20.0).contains(&cpu), "{cpu} ms a MiB");
}

#[test]
fn the_memory_bus_and_the_data_sheet_of_a_drive_are_rungs() {
    let results = study(ULTRA, Effort::Quick, &["depth", "memory"]);
    let ladder = results.ladder.as_ref().expect("a ladder");
    let advertised = |name: &str| {
        let stage = ladder.stages.iter().find(|one| one.name == name).expect("a stage");
        let rate = stage.rates[0].advertised.as_ref().expect("advertised");
        rate.throughput_bytes_per_s
    };
    assert_eq!((advertised("memory bus"), advertised("st34371w")), (422e6, 15e6));
    assert_eq!(limit(&results, OpKind::Read), Bottleneck::Media);
}
