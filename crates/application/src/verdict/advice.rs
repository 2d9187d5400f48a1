//! Changes to a program, with predicted gains.

use super::demand::Demand;
use super::reference::{GOOD, References};
use super::{Advice, Change, Share};
use results::Bottleneck;
use workload::{OpKind, Workload};

const MIN_GAIN: f64 = 1.1;
/// Writes or transactions that share a flush.
pub(super) const GROUP: u32 = 8;
/// Larger requests gain little.
const MAX_LARGER: u32 = 1 << 20;

/// The most useful first.
pub(super) fn advice(
    demand: &Demand,
    references: &References<'_>,
    what: Bottleneck,
) -> Vec<Advice> {
    if matches!(what, Bottleneck::Program | Bottleneck::Memory) {
        return Vec::new();
    }
    let sources = [group_commit, preallocate, deeper, larger, align, read_ahead];
    let mut all: Vec<Advice> = sources
        .into_iter()
        .filter_map(|source| source(demand, references))
        .chain(cache(demand).filter(|_| what == Bottleneck::CacheSize))
        .filter(|one| {
            let proven = one.gain.interval_95.is_none_or(|[low, _]| low > 1.0);
            one.gain.ratio >= MIN_GAIN && proven
        })
        .collect();
    all.sort_by(|a, b| b.program_gain.ratio.total_cmp(&a.program_gain.ratio));
    all
}

fn of(demand: &Demand, change: Change, gain: Share, points: Vec<usize>) -> Advice {
    let busy = demand.busy_share;
    let program = |gain: f64| 1.0 / (1.0 - busy + busy / gain.max(f64::MIN_POSITIVE));
    let program_gain = Share {
        ratio: program(gain.ratio),
        interval_95: gain.interval_95.map(|ends| ends.map(program)),
    };
    Advice { change, gain, program_gain, points }
}

fn group_commit(demand: &Demand, references: &References<'_>) -> Option<Advice> {
    let before = references.same().filter(|_| demand.shape.durable)?;
    let after = references.at(demand.shape.request_bytes * f64::from(GROUP))?;
    let gain = before.gain_of(&after, f64::from(GROUP));
    let points = [before.points, after.points].concat();
    Some(of(demand, Change::GroupCommit { times: GROUP }, gain, points))
}

fn preallocate(demand: &Demand, references: &References<'_>) -> Option<Advice> {
    use machine::Allocation as A;
    if !demand.shape.extends || demand.op != OpKind::Write {
        return None;
    }
    let durable = demand.shape.durable;
    let extends = |workload: &Workload| {
        workload.allocation == A::Extend && workload.buffering.is_dsync() == durable
    };
    let written = |workload: &Workload| workload.allocation == A::Written;
    let same = |a: &Workload, b: &Workload| {
        Workload { allocation: A::Written, region_bytes: b.region_bytes, ..a.clone() } == *b
    };
    let (before, after) = references.pair(extends, written, same)?;
    let gain = before.gain_of(&after, 1.0);
    Some(of(demand, Change::Preallocate, gain, [before.points, after.points].concat()))
}

fn deeper(demand: &Demand, references: &References<'_>) -> Option<Advice> {
    let before = references.same().filter(|_| !demand.shape.durable)?;
    let after = references.enough().filter(|one| one.outstanding > before.outstanding)?;
    let gain = before.gain_of(&after, 1.0);
    let change = Change::Deeper { outstanding: after.outstanding };
    Some(of(demand, change, gain, [before.points, after.points].concat()))
}

fn larger(demand: &Demand, references: &References<'_>) -> Option<Advice> {
    let shape = demand.shape;
    let before = references.same().filter(|_| shape.sequential && !shape.durable)?;
    let sizes = references.sizes().into_iter();
    let larger = sizes
        .filter(|size| f64::from(*size) > shape.request_bytes && *size <= MAX_LARGER)
        .filter_map(|size| references.at(f64::from(size)))
        .map(|one| (one.iops * one.request_bytes, one))
        .collect::<Vec<_>>();
    let best = larger.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
    let (_, after) = larger.into_iter().find(|(rate, _)| *rate >= GOOD * best)?;
    let gain = before.gain_of(&after, after.request_bytes / before.request_bytes);
    let change = Change::Larger { request_bytes: after.request_bytes as u64 };
    Some(of(demand, change, gain, [before.points, after.points].concat()))
}

fn align(demand: &Demand, references: &References<'_>) -> Option<Advice> {
    const BLOCK: u32 = crate::profile::BLOCK_BYTES as u32;
    if demand.unaligned < 0.5 {
        return None;
    }
    let off = |workload: &Workload| !workload.offset_bytes.is_multiple_of(u64::from(BLOCK));
    let on = |workload: &Workload| workload.offset_bytes == 0;
    let same = |a: &Workload, b: &Workload| Workload { offset_bytes: 0, ..a.clone() } == *b;
    let (before, after) = references.pair(off, on, same)?;
    let gain = before.gain_of(&after, 1.0);
    let change = Change::Align { block_bytes: BLOCK };
    Some(of(demand, change, gain, [before.points, after.points].concat()))
}

fn read_ahead(demand: &Demand, references: &References<'_>) -> Option<Advice> {
    let shape = demand.shape;
    let reads = demand.op == OpKind::Read && shape.sequential && !shape.direct;
    let before = references.same().filter(|_| reads)?;
    let after = references.streaming()?;
    let gain = before.gain_of(&after, 1.0);
    let size = references.size_of(&after)?;
    let bytes = (u64::from(size) * u64::from(after.outstanding)).next_power_of_two();
    Some(of(demand, Change::ReadAhead { bytes }, gain, [before.points, after.points].concat()))
}

/// The suggested cache serves at least 90 % of the repeated reads, and none of the first.
fn cache(demand: &Demand) -> Option<Advice> {
    let again = demand.read_again()?;
    let gain = |served: f64| 1.0 / (1.0 - again * served).max(1e-3);
    let (least, most) = (gain(0.9), gain(1.0));
    let gain = Share { ratio: gain(0.95), interval_95: Some([least, most]) };
    Some(of(demand, Change::Cache { bytes: demand.cache_bytes }, gain, Vec::new()))
}
