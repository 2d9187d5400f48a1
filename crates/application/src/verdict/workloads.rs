//! Workloads to measure for a verdict.

use super::MIN_WAITED;
use super::advice::GROUP;
use super::demand::{Demand, demands};
use crate::profile::Profile;
use machine::{Allocation, Buffering, CacheState, Engine, Nanos, TargetFacts, TargetKind};
use workload::{OpKind, Pattern, Stop, Workload};

const MAX_FLOWS: usize = 4;
const DEPTHS: [u32; 3] = [4, 16, 64];
const SIZES: [u32; 2] = [128 << 10, 1 << 20];
const MAX_BYTES: u32 = 1 << 24;

/// Each flow as it is, and with changes that a verdict may advise; writes only if the target is
/// writable.
pub fn workloads(
    profile: &Profile,
    facts: &TargetFacts,
    engines: &[Engine],
    run_ns: Nanos,
) -> Vec<Workload> {
    let mut demands = demands(profile);
    demands.retain(|demand| {
        demand.waited_share >= MIN_WAITED && (demand.op == OpKind::Read || facts.writable)
    });
    demands.sort_by(|a, b| b.waited_share.total_cmp(&a.waited_share));
    let mut all: Vec<Workload> = Vec::new();
    for demand in demands.iter().take(MAX_FLOWS) {
        for workload in of_flow(demand, facts, engines) {
            let workload = Workload { stop: Stop::AfterNs(run_ns), ..workload };
            if !all.contains(&workload) {
                all.push(workload);
            }
        }
    }
    all
}

fn of_flow(demand: &Demand, facts: &TargetFacts, engines: &[Engine]) -> Vec<Workload> {
    let shape = demand.shape;
    let block = facts.direct_align_bytes.max(512);
    let whole = |bytes: f64| {
        (bytes.round().clamp(1.0, f64::from(MAX_BYTES)) as u32).next_multiple_of(block)
    };
    let size = whole(shape.request_bytes);
    let reads = demand.op == OpKind::Read;
    let depth = (shape.outstanding.round() as u32).clamp(1, 256);
    // A cached read is measured past the cache: what the volume gives without it.
    let direct = facts.direct && (shape.direct || reads && !shape.sequential);
    let buffering = match (direct, shape.durable) {
        (true, true) => Buffering::DirectDsync,
        (true, false) => Buffering::Direct,
        (false, true) => Buffering::BufferedDsync,
        (false, false) => Buffering::Buffered,
    };
    let base = Workload {
        read_percent: if reads { 100 } else { 0 },
        pattern: if shape.sequential { Pattern::Seq } else { Pattern::Random },
        request_bytes: size,
        buffering,
        cache: if reads && !direct { CacheState::Cold } else { CacheState::AsIs },
        sync_at_end: !reads && buffering == Buffering::Buffered,
        ..Workload::default()
    };
    // Calls that wait have a thread each; direct requests have a queue.
    let with = |depth: u32| match buffering.is_direct() && !shape.durable {
        true => Workload { depth, engine: Engine::for_depth(depth, engines), ..base.clone() },
        false => Workload { threads: depth, ..base.clone() },
    };
    let mut all = vec![with(depth)];
    if shape.durable {
        let group = whole(f64::from(size) * f64::from(GROUP));
        all.push(Workload { request_bytes: group, ..with(depth) });
        // Only files that are made for it can grow.
        if shape.extends && matches!(facts.kind, TargetKind::TestFile | TargetKind::Simulated) {
            all.push(Workload { allocation: Allocation::Extend, ..with(depth) });
        }
        return all;
    }
    if direct {
        all.extend(DEPTHS.into_iter().filter(|deep| *deep >= depth * 2).map(with));
    }
    if shape.sequential {
        let larger = SIZES.into_iter().filter(|larger| *larger > size);
        all.extend(larger.map(|request_bytes| Workload { request_bytes, ..with(depth) }));
        if reads && facts.direct {
            let stream = Workload {
                request_bytes: SIZES[1],
                depth: 4,
                engine: Engine::for_depth(4, engines),
                buffering: Buffering::Direct,
                cache: CacheState::AsIs,
                ..base.clone()
            };
            all.push(stream);
        }
    }
    if demand.unaligned >= 0.5 && shape.direct && block < crate::profile::BLOCK_BYTES as u32 {
        all.push(Workload { offset_bytes: u64::from(block), ..with(depth) });
    }
    all
}
