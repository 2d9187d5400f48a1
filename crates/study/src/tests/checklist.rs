//! The published rules, judged from synthetic points.

use super::{entry, facts};
use crate::checklist::checklist;
use crate::context::StudyContext;
use crate::found::{Found, PeakRates};
use crate::sampler::Entry;
use machine::{Allocation, Buffering, CacheState};
use results::{Point, RuleState};
use workload::Workload;

fn judged(rule: &str, entries: &[Entry]) -> (RuleState, String) {
    let points: Vec<Point> = entries.iter().map(|entry| entry.point().clone()).collect();
    let setting = StudyContext { facts: facts(), members: 1, ..super::setting() };
    let memory = Ok(Vec::new());
    let found = Found {
        setting: &setting,
        grids: Vec::new(),
        entries,
        points: &points,
        measured: PeakRates::default(),
        advertised: PeakRates::default(),
        memory: &memory,
        long_writes: crate::long_writes::NOT_YET,
    };
    let all = checklist(&found, &[]);
    assert!(all.len() >= 10);
    let one = all.into_iter().find(|one| one.rule.starts_with(rule)).expect("a rule");
    (one.state, one.evidence)
}

fn write(bytes: u32) -> Workload {
    Workload { read_percent: 0, request_bytes: bytes, ..Workload::default() }
}

fn buffered(bytes: u32) -> Workload {
    Workload {
        buffering: Buffering::Buffered,
        cache: CacheState::Cold,
        sync_at_end: true,
        ..write(bytes)
    }
}

#[test]
fn small_writes_count_for_buffering_too() {
    let entries = [
        entry(write(4096), &[100.0, 101.0, 99.0]),
        // A second of writing and a second of flushing: 640 a second.
        entry(buffered(4096), &[1280.0, 1281.0, 1279.0]),
        entry(write(1 << 20), &[50.0, 50.5, 49.5]),
        entry(buffered(1 << 20), &[80.0, 80.5, 79.5]),
    ];
    let (state, evidence) = judged("buffer small", &entries);
    assert_eq!(state, RuleState::Held, "{evidence}");
    assert!(evidence.contains("6.4 times at 4 KiB (writes)"), "{evidence}");
    assert_eq!(judged("buffer small", &entries[..2]).0, RuleState::NotApplicable);
}

#[test]
fn a_difference_within_the_noise_judges_nothing() {
    let of = |grown: &[f64], written: &[f64]| {
        let grows = Workload { allocation: Allocation::Extend, ..write(65_536) };
        judged("preallocate", &[entry(grows, grown), entry(write(65_536), written)])
    };
    let (state, evidence) = of(&[290.0, 360.0, 334.0], &[370.0, 300.0, 344.0]);
    assert_eq!(state, RuleState::Undecided, "{evidence}");
    assert_eq!(of(&[328.0, 329.0, 328.5], &[337.0, 338.0, 337.5]).0, RuleState::Broken);
    assert_eq!(of(&[328.0, 329.0, 328.5], &[656.0, 658.0, 657.0]).0, RuleState::Held);
}

#[test]
fn rewrites_of_part_of_a_block_show_the_read() {
    let of = |part: f64| {
        let part = entry(buffered(2048), &[part, part * 1.001, part * 0.999]);
        judged("rewrite", &[entry(buffered(4096), &[1000.0, 1001.0, 999.0]), part])
    };
    let (state, evidence) = of(300.0);
    assert_eq!(state, RuleState::Held, "{evidence}");
    assert!(evidence.contains("with 4 KiB") && evidence.contains("with 2 KiB"), "{evidence}");
    assert_eq!(of(1000.0).0, RuleState::Broken, "half the bytes at the same number of requests");
    let (state, evidence) = judged("rewrite", &[]);
    assert_eq!(state, RuleState::NotApplicable);
    assert!(evidence.starts_with("not measured: "), "{evidence}");
}
