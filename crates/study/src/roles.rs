use crate::context::StudyContext;
use crate::sampler::Entry;
use machine::{Allocation, Buffering, CacheState};
use workload::{OpKind, Workload};

pub(crate) const PLAIN_BYTES: [u32; 2] = [65_536, 4096];

pub(crate) fn is_plain(entry: &Entry, op: OpKind, bytes: u32, setting: &StudyContext) -> bool {
    let workload = &entry.workload;
    let cache = match op {
        OpKind::Write => workload.sync_at_end,
        _ if setting.facts.in_memory => workload.cache != CacheState::Cold,
        _ => workload.cache == CacheState::Cold,
    };
    let usual = Workload {
        request_bytes: bytes,
        read_percent: workload.read_percent,
        buffering: Buffering::Buffered,
        cache: workload.cache,
        sync_at_end: workload.sync_at_end,
        region_bytes: workload.region_bytes,
        limit_bytes: workload.limit_bytes,
        stop: workload.stop,
        seed: workload.seed,
        ..Workload::default()
    };
    workload.op() == op && cache && *workload == usual && entry.shape.is_none()
}

/// The rate is the target's, not a cache's.
pub(crate) fn stands_for(entry: &Entry, op: OpKind, setting: &StudyContext, bursty: bool) -> bool {
    let workload = &entry.workload;
    let whole =
        entry.shape.as_ref().is_none_or(|shape| shape.members.len() as u32 == setting.members);
    let plain = workload.op() == op
        && workload.allocation == Allocation::Written
        && workload.region_bytes.is_none()
        && workload.limit_bytes.is_none();
    // A page-cache rate is not the target's rate, unless the target is in memory.
    let from_cache =
        !setting.facts.in_memory && (workload.cache != CacheState::Cold || op == OpKind::Write);
    let cached = !workload.buffering.is_direct() && (setting.direct() || from_cache);
    // If requests are admitted in bursts, only runs of whole bursts give a rate.
    let of_bursts = !bursty || entry.in_bursts || setting.facts.in_memory;
    whole && plain && !cached && of_bursts
}
