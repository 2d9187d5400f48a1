//! Predicts a machine with one more or a faster part, enough requests outstanding, or no write
//! caches.

use crate::whatif::{predict, what_if};
use machine::Op;
use machine::units::KIB;
use results::{Bottleneck, Limit, LimitOf, Point, Predicted, Results};
use twin::Setup;
use workload::{OpKind, Pattern};

/// Smaller gains are not worth a part.
const MIN_GAIN: f64 = 1.05;

/// This share of the best is good enough.
const GOOD_ENOUGH: f64 = 0.9;

const REQUEST: u32 = 64 * KIB as u32;

const MAX_DRIVES: u32 = 8;

const MAX_DEPTH_PER_DRIVE: u32 = 4;

const WITHOUT_RISK: &str = ", which do what the write cache does, without its risk";

/// Adds the effect of duplicating the part that limits a peak, and the outstanding requests that
/// the machine needs. Skips changes that it refuses.
pub fn add(setup: &Setup, results: &mut Results) {
    let Some(answer) = &mut results.answer else { return };
    let limits = answer.limits.iter().filter(|limit| limit.of == LimitOf::Peak);
    let mut all: Vec<Predicted> =
        limits.filter_map(|limit| one_more(setup, limit, &results.points)).collect();
    let reads_and_writes = answer.peaks.iter().map(|peak| peak.op);
    all.extend(reads_and_writes.filter_map(|op| outstanding(setup, op)));
    let instead = answer
        .peaks
        .iter()
        .any(|peak| peak.op == OpKind::Write)
        .then(|| instead_of_write_cache(setup));
    if let Some(instead) = instead.flatten() {
        match all.iter_mut().find(|one| one.op == OpKind::Write && one.settings == instead.settings)
        {
            Some(same) => same.change += WITHOUT_RISK,
            None => all.push(instead),
        }
    }
    answer.predictions = all;
}

fn one_more(setup: &Setup, limit: &Limit, points: &[Point]) -> Option<Predicted> {
    let (words, change) = match limit.what {
        Bottleneck::Bus => enough_buses(setup, limit.op)
            .unwrap_or_else(|| ("one more bus".into(), format!("buses={}", setup.buses + 1))),
        Bottleneck::Adapter => {
            let buses = setup.description.adapter.as_ref()?.buses;
            ("one more adapter".into(), format!("buses={}", (setup.buses + buses).min(setup.disks)))
        }
        Bottleneck::Pci => ("an I/O bus twice as fast".into(), "pci=200".into()),
        Bottleneck::Processor => ("a processor twice as fast".into(), "processor=200".into()),
        Bottleneck::Network => ("a network link twice as fast".into(), "link=200".into()),
        Bottleneck::Media | Bottleneck::Device | Bottleneck::Link | Bottleneck::Throttle => {
            ("one more drive".into(), format!("disks={}", setup.disks + 1))
        }
        Bottleneck::Latency if limit.op == OpKind::Write && !setup.wce => {
            ("the drives' write caches".into(), "wce=on".into())
        }
        _ => return None,
    };
    let workload = &points.get(limit.point?)?.workload.workload;
    let (request, depth) = match workload.pattern {
        Pattern::Seq => (workload.request_bytes, workload.outstanding()),
        _ => (REQUEST, setup.disks * MAX_DEPTH_PER_DRIVE),
    };
    predicted(setup, limit.op, (request, depth), words, change, MIN_GAIN)
}

/// `None` if one bus suffices.
fn enough_buses(setup: &Setup, op: OpKind) -> Option<(String, String)> {
    let rate = |disks: u32| {
        rate_of(setup, &format!("disks={disks},buses=1"), op, disks * MAX_DEPTH_PER_DRIVE)
    };
    let max = rate(MAX_DRIVES)?;
    let fills =
        (1..MAX_DRIVES).find(|&disks| rate(disks).is_some_and(|rate| rate >= GOOD_ENOUGH * max))?;
    let buses = setup.disks.div_ceil(fills);
    let drives = if fills == 1 { "drive".to_owned() } else { format!("{fills} drives") };
    (buses > setup.buses)
        .then(|| (format!("an adapter for each {drives}"), format!("buses={buses}")))
}

fn outstanding(setup: &Setup, op: OpKind) -> Option<Predicted> {
    if setup.disks < 2 {
        return None;
    }
    let rate = |depth: u32| rate_of(setup, "", op, depth);
    let max = rate(setup.disks * MAX_DEPTH_PER_DRIVE)?;
    let suffice = (1..=setup.disks * MAX_DEPTH_PER_DRIVE)
        .find(|&depth| rate(depth).is_some_and(|rate| rate >= GOOD_ENOUGH * max))?;
    let formula = match suffice.checked_sub(setup.disks) {
        Some(0) => " (N for N drives)".to_owned(),
        Some(more) => format!(" (N + {more} for N drives)"),
        None => String::new(),
    };
    let words = format!("{suffice} outstanding{formula}");
    predicted(setup, op, (REQUEST, 1), words, format!("depth={suffice}"), MIN_GAIN)
}

fn instead_of_write_cache(setup: &Setup) -> Option<Predicted> {
    let rate = |wce: &str, depth: u32| rate_of(setup, wce, OpKind::Write, depth);
    let (cached, alone) = (rate("wce=on", 1)?, rate("wce=off", 1)?);
    if cached < alone * MIN_GAIN {
        return None;
    }
    let depth = (2..=setup.disks * MAX_DEPTH_PER_DRIVE)
        .find(|&depth| rate("wce=off", depth).is_some_and(|rate| rate >= GOOD_ENOUGH * cached))?;
    let words = format!("{depth} outstanding{WITHOUT_RISK}");
    let change =
        if setup.wce { format!("wce=off,depth={depth}") } else { format!("depth={depth}") };
    predicted(setup, OpKind::Write, (REQUEST, 1), words, change, 0.0)
}

/// For sequential 64 KiB requests; `None` if the machine refuses the change.
fn rate_of(setup: &Setup, change: &str, op: OpKind, depth: u32) -> Option<f64> {
    let mut setup = setup.clone();
    setup.apply(change).ok()?;
    Some(predict(&setup, &crate::workload(kind(op), REQUEST, depth)).ok()?.throughput_bytes_per_s)
}

fn kind(op: OpKind) -> Op {
    if op == OpKind::Write { Op::Write } else { Op::Read }
}

/// `shape`: request size and depth.
fn predicted(
    setup: &Setup,
    op: OpKind,
    shape: (u32, u32),
    words: String,
    change: String,
    min: f64,
) -> Option<Predicted> {
    let (request, depth) = shape;
    let workload = crate::workload(kind(op), request, depth);
    let found = what_if(setup, &change, &[(workload.short(), workload)]).ok()?;
    let one = found.comparisons.first().filter(|one| one.gain >= min)?;
    Some(Predicted {
        change: words,
        settings: change.clone(),
        op,
        throughput_bytes_per_s: one.after.throughput_bytes_per_s,
        gain: one.gain,
        then: one.after.bottleneck.clone(),
        check: format!(
            "halfpower twin whatif {} --op {op} --pattern seq --request {}k --depth {depth} --bytes 100m --set {change}",
            setup.name,
            u64::from(request) / KIB
        ),
    })
}
