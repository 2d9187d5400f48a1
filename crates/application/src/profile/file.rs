//! Figures of one file.

use super::flow::{BLOCK_BYTES, Flow, FlowProfile, Latency};
use super::role::{Role, Shape};
use crate::stack_distance::StackDistances;
use apptrace::{Access, Interface, Kind, Request, TracedFile};
use machine::Nanos;
use measure::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Accesses to blocks whose reuse is followed in one file; later ones are not.
const MAX_REUSES: u64 = 1 << 20;

/// A pause of this many seconds ends a burst.
const PAUSE_S: u64 = 3;

/// Requests under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Concurrency {
    /// Mean while there is any.
    pub mean: f64,
    pub max: u64,
    /// Time with at least one.
    pub busy_ns: Nanos,
}

/// Repeated reads of blocks of 4 KiB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Locality {
    /// Different blocks that were read.
    pub working_set_bytes: u64,
    /// Share of the blocks read that had been read before.
    pub reused: f64,
    /// The smallest cache that would serve 90 % of the reuses.
    pub cache_bytes: u64,
}

/// Calls that make data durable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncProfile {
    pub calls: u64,
    /// Share of the calls that need not write all metadata (fdatasync).
    pub data_only: f64,
    pub latency: Option<Latency>,
    pub waited_ns: Nanos,
    /// Writes to the file per call.
    pub writes_per_call: f64,
    /// From the start of one to the start of the next.
    pub interval: Option<Latency>,
}

/// Seconds with writes, and the pauses between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bursts {
    pub count: u64,
    pub mean_s: f64,
    /// Writes of the busiest second, against the mean of the whole recording.
    pub peak_over_mean: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileProfile {
    pub name: String,
    pub kind: Kind,
    pub size_bytes: Option<u64>,
    pub role: Role,
    pub reads: Option<FlowProfile>,
    pub writes: Option<FlowProfile>,
    /// Pages that faults of a memory mapping brought in.
    pub mapped_reads: u64,
    pub syncs: Option<SyncProfile>,
    pub concurrency: Option<Concurrency>,
    pub locality: Option<Locality>,
    pub bursts: Option<Bursts>,
    /// Time of threads in requests of this file.
    pub waited_ns: Nanos,
    /// Of all waiting of the program.
    pub waited_share: f64,
}

/// Collects a [`FileProfile`].
pub(super) struct File {
    pub(super) file: TracedFile,
    reads: Flow,
    writes: Flow,
    mapped_reads: u64,
    syncs: Syncs,
    ends: BinaryHeap<Reverse<Nanos>>,
    busy_until: Nanos,
    busy_ns: Nanos,
    spent_ns: Nanos,
    max_outstanding: u64,
    reuse: Option<Box<StackDistances>>,
    reuses: u64,
    /// Writes by second.
    seconds: BTreeMap<u64, u64>,
    pub(super) waited_ns: Nanos,
}

#[derive(Default)]
struct Syncs {
    calls: u64,
    data_only: u64,
    latency: Histogram,
    waited_ns: Nanos,
    interval: Histogram,
    last: Option<Nanos>,
}

impl File {
    pub(super) fn new(file: TracedFile) -> File {
        File {
            file,
            reads: Flow::default(),
            writes: Flow::default(),
            mapped_reads: 0,
            syncs: Syncs::default(),
            ends: BinaryHeap::new(),
            busy_until: 0,
            busy_ns: 0,
            spent_ns: 0,
            max_outstanding: 0,
            reuse: None,
            reuses: 0,
            seconds: BTreeMap::new(),
            waited_ns: 0,
        }
    }

    pub(super) fn add(&mut self, request: &Request) {
        match (request.access, request.interface) {
            (Access::Read, Interface::Mapping) => self.mapped_reads += 1,
            (Access::Read, _) => {
                self.reads.add(request);
                self.reuse(request);
            }
            (Access::Write, _) => {
                self.writes.add(request);
                *self.seconds.entry(request.at_ns / 1_000_000_000).or_default() += 1;
            }
            (Access::SyncFile | Access::SyncData | Access::SyncSystem, _) => self.sync(request),
            _ => {}
        }
        if matches!(request.access, Access::Read | Access::Write) {
            self.outstanding(request);
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
        }
        if let Some(last) = syncs.last {
            syncs.interval.record(request.at_ns.saturating_sub(last));
        }
        syncs.last = Some(request.at_ns);
    }

    fn outstanding(&mut self, request: &Request) {
        let Some(duration) = request.duration_ns else { return };
        let (start, end) = (request.at_ns, request.at_ns.saturating_add(duration));
        while self.ends.peek().is_some_and(|&Reverse(end)| end <= start) {
            self.ends.pop();
        }
        self.ends.push(Reverse(end));
        self.max_outstanding = self.max_outstanding.max(self.ends.len() as u64);
        self.spent_ns += duration;
        self.busy_ns += end.saturating_sub(start.max(self.busy_until));
        self.busy_until = self.busy_until.max(end);
    }

    fn reuse(&mut self, request: &Request) {
        let Some(offset) = request.offset else { return };
        let done = request.result.map_or(request.bytes, |done| u64::try_from(done).unwrap_or(0));
        if done == 0 {
            return;
        }
        let blocks = offset / BLOCK_BYTES..=offset.saturating_add(done - 1) / BLOCK_BYTES;
        let reuse = self.reuse.get_or_insert_with(|| Box::new(StackDistances::exact()));
        for block in blocks {
            if self.reuses == MAX_REUSES {
                return;
            }
            self.reuses += 1;
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

    fn bursts(&self, elapsed_ns: Nanos) -> Option<Bursts> {
        let (&first, _) = self.seconds.first_key_value()?;
        let (mut count, mut active, mut start, mut last) = (1, 0, first, first);
        for &second in self.seconds.keys().skip(1) {
            if second > last + PAUSE_S {
                count += 1;
                active += last + 1 - start;
                start = second;
            }
            last = second;
        }
        active += last + 1 - start;
        let peak = self.seconds.values().copied().max().unwrap_or(0);
        let mean = self.writes.requests as f64 / (elapsed_ns as f64 / 1e9).max(1.0);
        Some(Bursts {
            count,
            mean_s: active as f64 / count as f64,
            peak_over_mean: peak as f64 / mean,
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
            bursts: self.bursts(1).map_or(0, |bursts| bursts.count),
        })
    }

    pub(super) fn profile(&self, elapsed_ns: Nanos, all_waited_ns: Nanos) -> FileProfile {
        let locality = self.locality();
        let bursts = self.bursts(elapsed_ns);
        let calls = self.syncs.calls;
        let syncs = (calls > 0).then(|| SyncProfile {
            calls,
            data_only: self.syncs.data_only as f64 / calls as f64,
            latency: Latency::of(&self.syncs.latency),
            waited_ns: self.syncs.waited_ns,
            writes_per_call: self.writes.requests as f64 / calls as f64,
            interval: Latency::of(&self.syncs.interval),
        });
        FileProfile {
            name: self.file.name.clone(),
            kind: self.file.kind,
            size_bytes: self.file.size_bytes,
            role: self.role(),
            reads: self.reads.profile(),
            writes: self.writes.profile(),
            mapped_reads: self.mapped_reads,
            syncs,
            concurrency: (self.busy_ns > 0).then(|| Concurrency {
                mean: self.spent_ns as f64 / self.busy_ns as f64,
                max: self.max_outstanding,
                busy_ns: self.busy_ns,
            }),
            locality,
            bursts,
            waited_ns: self.waited_ns,
            waited_share: self.waited_ns as f64 / all_waited_ns.max(1) as f64,
        }
    }
}
