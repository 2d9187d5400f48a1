//! What the authors of the 1997 study concluded, concluded by a study of the simulated machine of theirs.

use machine::{Buffering, Engine, ResourceKind, TargetSpec};
use results::{Bottleneck, LimitOf, Program, Results};
use study::{Effort, Plan};
use twin::Twin;
use workload::{OpKind, Pattern};

const FAST: &str = "drive=st15150w";
const ULTRA: &str = "drive=st34371w";
const MIB: f64 = 1024.0 * 1024.0;

fn study(settings: &str, only: &[&str]) -> Results {
    let twin = Twin::from_name(&format!("gateway-1997,{settings}")).expect("a machine");
    let only = only.iter().map(ToString::to_string).collect();
    let plan = Plan { budget_ns: 60_000_000_000, effort: Effort::Normal, only, seed: 7 };
    let program = Program { name: "test".into(), version: "0".into(), arguments: Vec::new() };
    study::study(&twin, &TargetSpec::default(), &plan, program, &mut |_| {}).expect("a study")
}

fn peak(results: &Results, op: OpKind) -> f64 {
    let peaks = &results.answer.as_ref().expect("an answer").peaks;
    peaks.iter().find(|peak| peak.op == op).expect("a peak").throughput_bytes_per_s
}

fn limit(results: &Results, op: OpKind) -> Bottleneck {
    let limits = &results.answer.as_ref().expect("an answer").limits;
    limits.iter().find(|limit| limit.of == LimitOf::Peak && limit.op == op).expect("a limit").what
}

/// MiB/s of sequential requests of the whole file, written beforehand.
fn rate(results: &Results, op: OpKind, buffering: Buffering, kib: u32, depth: u32) -> f64 {
    let found = results.points.iter().find(|point| {
        let one = &point.workload.workload;
        let plain = one.pattern == Pattern::Seq && one.offset_bytes == 0 && one.region_start_bytes == 0;
        let plain = plain && one.threads == 1 && one.allocation == machine::Allocation::Written;
        let same = one.buffering == buffering && one.request_bytes == kib << 10 && one.depth == depth;
        plain && same && point.workload.op == op && one.engine != Engine::Threads
    });
    let point = found.unwrap_or_else(|| panic!("no {op} of {kib} KiB, {depth} deep, {buffering:?}"));
    point.rate().expect("a rate") / MIB
}

fn direct(results: &Results, op: OpKind, kib: u32, depth: u32) -> f64 {
    rate(results, op, Buffering::Direct, kib, depth)
}

fn sentence<'a>(results: &'a Results, experiment: &str) -> &'a str {
    &results.experiments.iter().find(|one| one.id == experiment).expect("an experiment").sentence
}

/// What the study advises, and how often as fast that is.
fn gain(results: &Results, words: &str) -> Option<f64> {
    let findings = &results.answer.as_ref().expect("an answer").findings;
    findings.iter().find(|one| one.title.contains(words)).map(|one| one.gain)
}

#[test]
fn three_disks_fill_a_bus_and_then_the_bus_is_the_limit_and_not_the_disk() {
    let of = |disks: u32| study(&format!("{FAST},disks={disks}"), &["depth"]);
    let (one, three, four) = (of(1), of(3), of(4));
    assert_eq!(limit(&one, OpKind::Read), Bottleneck::Media);
    assert_eq!(limit(&three, OpKind::Read), Bottleneck::Bus);
    assert_eq!(limit(&four, OpKind::Read), Bottleneck::Bus);
    let [one, three, four] = [one, three, four].map(|results| peak(&results, OpKind::Read));
    assert!(three > 2.2 * one && four < 1.05 * three, "{one} {three} {four}");
}

#[test]
fn the_phases_of_the_bus_stand_with_the_peak() {
    let results = study(&format!("{ULTRA},disks=3"), &["depth"]);
    let peak = results.answer.as_ref().unwrap().peaks.iter().find(|peak| peak.op == OpKind::Read).unwrap();
    let resources = &results.points[peak.point].numbers.as_ref().unwrap().achieved.resources;
    let bus = resources.iter().find(|one| one.kind == ResourceKind::Bus).unwrap();
    let data = bus.phases.iter().find(|phase| phase.name == "Data In").unwrap().percent;
    // Table 4: 80.4 % of the time in which the bus of three disks was not free.
    assert!((data - 80.4).abs() < 12.0 && bus.busy_percent > 95.0, "{data} {}", bus.busy_percent);
}

#[test]
fn pci_is_the_limit_of_nine_disks_and_a_fourth_adapter_adds_nothing() {
    let (three, four) = (
        study(&format!("{ULTRA},disks=9,buses=3"), &["depth"]),
        study(&format!("{ULTRA},disks=12,buses=4"), &["depth"]),
    );
    assert_eq!((limit(&three, OpKind::Read), limit(&four, OpKind::Read)), (Bottleneck::Pci, Bottleneck::Pci));
    let ratio = peak(&four, OpKind::Read) / peak(&three, OpKind::Read);
    assert!((ratio - 1.0).abs() < 0.04, "{ratio}");
}

#[test]
fn write_cache_or_three_requests_hide_the_revolution() {
    let of = |wce: &str| study(&format!("{ULTRA},wce={wce}"), &["buffered", "unbuffered", "depth"]);
    let (off, on) = (of("off"), of("on"));
    // Three requests outstanding gain without the cache, and are not worth a word with it.
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
fn buffering_helps_small_requests_and_costs_the_processor_for_large_ones() {
    let results = study(ULTRA, &["buffered", "unbuffered", "cost"]);
    let costs = &results.answer.as_ref().unwrap().costs;
    let of = |mode: &str| costs.iter().find(|cost| cost.mode.name() == mode).unwrap_or_else(|| panic!("{costs:?}"));
    // Nanoseconds a request, and a byte.
    let ns = |mode: &str, bytes: f64| of(mode).ns_per_request + of(mode).ns_per_byte * bytes;
    let at_64 = ns("buffered read", 65_536.0) / ns("direct read", 65_536.0);
    assert!((6.0..=10.0).contains(&at_64), "{at_64}: {}", sentence(&results, "cost"));
    assert!(ns("buffered read", 2048.0) < ns("direct read", 2048.0), "{}", sentence(&results, "cost"));
    assert!(
        sentence(&results, "unbuffered").contains("Single direct reads reach"),
        "{}",
        sentence(&results, "unbuffered")
    );
}

#[test]
fn a_file_that_grows_is_written_one_request_at_a_time() {
    let results = study(ULTRA, &["allocation", "depth"]);
    let gain = gain(&results, "do not extend it as you write").expect("an advice");
    // Figure 12: 8.87 MB/s with 64 KB eight deep, 4.06 extending.
    assert!((gain / (8.87 / 4.06) - 1.0).abs() < 0.1, "{gain}: {}", sentence(&results, "allocation"));
    assert!(
        sentence(&results, "allocation").contains("extending the file costs"),
        "{}",
        sentence(&results, "allocation")
    );
}

#[test]
fn half_of_the_peak_takes_what_the_abstract_says() {
    let results = study(FAST, &["unbuffered", "depth"]);
    let half = &results.answer.as_ref().unwrap().half_power;
    let smallest = |op: OpKind, at: &str| {
        let one = half.iter().find(|one| one.op == op && one.at == at).unwrap_or_else(|| panic!("no {op} {at}"));
        one.smallest.unwrap_or(f64::INFINITY) / 1024.0
    };
    // Synchronous writes need 128 KB, writes three deep 16 KB and eight deep 8 KB; reads are at it with 4 KB.
    assert_eq!(smallest(OpKind::Write, "depth 1"), 128.0);
    assert_eq!(smallest(OpKind::Write, "depth 3"), 16.0);
    assert!(smallest(OpKind::Write, "depth 8") <= 8.0);
    assert!(smallest(OpKind::Read, "depth 1") <= 4.0);
}
