//! Figures of one file.

use super::bursts::{BurstCounter, Bursts};
use super::flow::{BLOCK_BYTES, Flow, FlowProfile, Times};
use super::occupancy::{Concurrency, Occupancy};
use super::role::{Role, Shape};
use super::timeline::{Heat, HeatMap};
use crate::Latency;
use crate::stack_distance::StackDistances;
use apptrace::{Access, Interface, Kind, Request, TracedFile};
use machine::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MAX_REUSES: u64 = 1 << 20;

const MAX_REUSES_OF_ALL: u64 = 1 << 23;

pub(super) struct ReuseBudget(u64);

impl Default for ReuseBudget {
    fn default() -> Self {
        ReuseBudget(MAX_REUSES_OF_ALL)
    }
}

/// Repeated reads of blocks of 4 KiB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Locality {
    /// Different blocks that were read.
    pub working_set_bytes: u64,
    /// Share of the blocks read that had been read before.
    pub reused: f64,
    /// The smallest cache that would serve 90 % of the reuses.
    pub cache_bytes: u64,
}

/// Calls that make data durable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SyncProfile {
    pub calls: u64,
    /// Share of the calls that need not write all metadata (fdatasync).
    pub data_only: f64,
    pub latency: Option<Latency>,
    pub waited_ns: Nanos,
    /// Writes to the file per call.
    pub writes_per_call: f64,
    /// Time from the start of one call to the start of the next.
    pub interval: Option<Latency>,
    /// Calls under way at once.
    pub concurrency: Option<Concurrency>,
}

/// Requests that reached devices during the calls of one file, by the thread that made the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeviceWork {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileProfile {
    pub name: String,
    pub kind: Kind,
    /// Size of the file when the recording first saw it, in bytes.
    pub size_bytes: Option<u64>,
    /// The highest end of a write, in bytes; absent if that is not beyond the size.
    pub grown_to_bytes: Option<u64>,
    pub role: Role,
    pub reads: Option<FlowProfile>,
    pub writes: Option<FlowProfile>,
    /// Pages that faults of a memory mapping brought in.
    pub mapped_reads: u64,
    /// Calls that read into the page cache without waiting: posix_fadvise, readahead.
    #[serde(default)]
    pub prefetches: u64,
    /// Calls that start to write dirty pages without waiting: sync_file_range.
    #[serde(default)]
    pub write_outs: u64,
    pub syncs: Option<SyncProfile>,
    pub concurrency: Option<Concurrency>,
    pub locality: Option<Locality>,
    pub bursts: Option<Bursts>,
    /// A name of the file was removed.
    pub deleted: bool,
    /// Requests that reached devices during its calls; `None` if the recording shows none of any
    /// device, or the calls were not system calls.
    pub device: Option<DeviceWork>,
    /// Requests by time and offset.
    pub heat: Option<HeatMap>,
    /// Time of threads in requests of this file.
    pub waited_ns: Nanos,
    /// Share of the program's waiting that is for this file, 0 to 1.
    pub waited_share: f64,
}

pub(super) struct File {
    pub(super) file: TracedFile,
    reads: Flow,
    writes: Flow,
    mapped_reads: u64,
    prefetches: u64,
    write_outs: u64,
    syncs: Syncs,
    occupancy: Occupancy,
    write_end: u64,
    queued: bool,
    pub(super) deleted: bool,
    pub(super) device: DeviceWork,
    heat: Option<Box<Heat>>,
    reuse: Option<Box<StackDistances>>,
    reuses: u64,
    bursts: BurstCounter,
    pub(super) waited_ns: Nanos,
}

#[derive(Default)]
struct Syncs {
    calls: u64,
    data_only: u64,
    latency: Times,
    waited_ns: Nanos,
    interval: Times,
    last: Option<Nanos>,
    occupancy: Occupancy,
}

impl File {
    pub(super) fn new(file: TracedFile) -> File {
        File {
            file,
            reads: Flow::default(),
            writes: Flow::default(),
            mapped_reads: 0,
            prefetches: 0,
            write_outs: 0,
            syncs: Syncs::default(),
            occupancy: Occupancy::default(),
            write_end: 0,
            queued: false,
            deleted: false,
            device: DeviceWork::default(),
            heat: None,
            reuse: None,
            reuses: 0,
            bursts: BurstCounter::default(),
            waited_ns: 0,
        }
    }

    pub(super) fn add(&mut self, request: &Request, budget: &mut ReuseBudget) {
        match (request.access, request.interface) {
            (Access::Read, Interface::Mapping) => self.mapped_reads += 1,
            (Access::Read, _) => {
                self.reads.add(request);
                self.reuse(request, budget);
            }
            (Access::Write, _) => {
                self.writes.add(request);
                self.bursts.add(request.at_ns);
                let end = request.offset.unwrap_or(0).saturating_add(request.bytes);
                self.write_end = self.write_end.max(end);
            }
            (Access::SyncFile | Access::SyncData | Access::SyncSystem, _) => self.sync(request),
            (Access::Prefetch, _) => self.prefetches += 1,
            (Access::WriteOut, _) => self.write_outs += 1,
            _ => {}
        }
        if matches!(request.access, Access::Read | Access::Write) {
            if let Some(duration) = request.duration_ns {
                self.occupancy.add(request.at_ns, duration);
            }
            self.queued |= matches!(request.interface, Interface::IoUring | Interface::Libaio);
            self.heat.get_or_insert_default().add(request);
        }
        self.waited_ns += request.duration_ns.unwrap_or(0);
    }

    fn sync(&mut self, request: &Request) {
        let syncs = &mut self.syncs;
        syncs.calls += 1;
        syncs.data_only += u64::from(request.access == Access::SyncData);
        if let Some(duration) = request.duration_ns {
            syncs.latency.record(duration);
            syncs.waited_ns += duration;
            syncs.occupancy.add(request.at_ns, duration);
        }
        if let Some(last) = syncs.last {
            syncs.interval.record(request.at_ns.saturating_sub(last));
        }
        syncs.last = Some(request.at_ns);
    }

    fn reuse(&mut self, request: &Request, budget: &mut ReuseBudget) {
        let Some(offset) = request.offset else { return };
        let done = request.result.map_or(request.bytes, |done| u64::try_from(done).unwrap_or(0));
        if done == 0 {
            return;
        }
        let blocks = offset / BLOCK_BYTES..=offset.saturating_add(done - 1) / BLOCK_BYTES;
        let reuse = self.reuse.get_or_insert_with(|| Box::new(StackDistances::exact()));
        for block in blocks {
            if self.reuses == MAX_REUSES || budget.0 == 0 {
                return;
            }
            self.reuses += 1;
            budget.0 -= 1;
            reuse.access(block);
        }
    }

    fn locality(&self) -> Option<Locality> {
        let reuse = self.reuse.as_ref()?;
        let blocks = reuse.blocks() as u64;
        let missed = |cache: u64| reuse.miss_ratio(cache);
        let best = missed(blocks);
        let enough = best + (1.0 - best) * 0.1;
        // Miss ratios fall with the size.
        let (mut low, mut high) = (0, blocks);
        while low < high {
            let middle = low + (high - low) / 2;
            if missed(middle) <= enough {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(Locality {
            working_set_bytes: blocks * BLOCK_BYTES,
            reused: 1.0 - best,
            cache_bytes: high * BLOCK_BYTES,
        })
    }

    pub(super) fn role(&self) -> Role {
        Role::of(&Shape {
            reads: self.reads.requests,
            writes: self.writes.requests,
            syncs: self.syncs.calls,
            durable_writes: self.writes.durable,
            sequential_reads: self.reads.sequential(),
            appended_writes: self.writes.appended(),
            reused: self.locality().map_or(0.0, |locality| locality.reused),
            bursts: self.bursts.count(),
        })
    }

    pub(super) fn profile(
        &self,
        elapsed_ns: Nanos,
        all_waited_ns: Nanos,
        sees_devices: bool,
    ) -> FileProfile {
        let locality = self.locality();
        let bursts = self.bursts.bursts(elapsed_ns);
        let calls = self.syncs.calls;
        let syncs = (calls > 0).then(|| SyncProfile {
            calls,
            data_only: self.syncs.data_only as f64 / calls as f64,
            latency: self.syncs.latency.latency(),
            waited_ns: self.syncs.waited_ns,
            writes_per_call: self.writes.requests as f64 / calls as f64,
            interval: self.syncs.interval.latency(),
            concurrency: self.syncs.occupancy.concurrency(),
        });
        FileProfile {
            name: self.file.name.clone(),
            kind: self.file.kind,
            size_bytes: self.file.size_bytes,
            grown_to_bytes: Some(self.write_end)
                .filter(|end| *end > self.file.size_bytes.unwrap_or(0)),
            role: self.role(),
            reads: self.reads.profile(),
            writes: self.writes.profile(),
            mapped_reads: self.mapped_reads,
            prefetches: self.prefetches,
            write_outs: self.write_outs,
            syncs,
            concurrency: self.occupancy.concurrency(),
            locality,
            bursts,
            deleted: self.deleted,
            device: (sees_devices && !self.queued).then_some(self.device),
            heat: self.heat.as_ref().and_then(|heat| heat.map()),
            waited_ns: self.waited_ns,
            waited_share: self.waited_ns as f64 / all_waited_ns.max(1) as f64,
        }
    }
}
