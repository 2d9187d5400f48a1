//! Workloads as data.

use crate::load_step::LoadStep;
use machine::{
    Access, Allocation, Buffering, Buffers, CacheState, Engine, Hint, Memory, Nanos, Reap,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The order in which a workload visits its region, in blocks of the request size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Sequential; each of several streams has a part of the region.
    Seq,
    /// Sequential; all streams share one position.
    Together,
    /// Every block once, then again in another order.
    Random,
    /// Random blocks, which may repeat.
    Uniform,
    /// Sequential, from the end of the region to its start.
    Backward,
    /// Forward by this many bytes per request; at the end, again through the skipped blocks.
    Stride(u64),
    /// A table with rows of this many blocks, column by column; several streams divide the columns
    /// among them.
    Columns(u32),
    /// Zipf's distribution with this exponent; popular blocks are scattered over the region.
    Zipf(f64),
    /// `access_percent` of the requests go to the first `hot_percent` of the region.
    HotCold {
        /// Percentage of the region that is hot.
        hot_percent: u8,
        /// Percentage of the requests that go to the hot part.
        access_percent: u8,
    },
    /// Self-similar: a share of `1 - h` of the requests goes to the most popular share `h` of the
    /// blocks, recursively, scattered over the region. 0.2 is the 80/20 rule.
    Pareto(f64),
    /// Normal distribution; draws outside the region are repeated.
    Normal {
        /// Standard deviation in percent of the region.
        deviation_percent: f64,
        /// Mean in percent of the region.
        center_percent: f64,
        /// Blocks are scattered over the region.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        scattered: bool,
    },
}

/// What ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The run ends after this much time on the machine's clock.
    AfterNs(Nanos),
    /// The run ends after this many bytes over all streams.
    AfterBytes(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeShare {
    pub bytes: u32,
    /// Percentage of the requests with this size.
    pub percent: u8,
}

/// Request sizes of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SizeMix {
    /// Every multiple of the minimum up to the maximum, equally often.
    Range {
        /// The minimum size in bytes; all sizes are multiples of it, unless they are unaligned.
        #[serde(rename = "least_bytes")]
        min_bytes: u32,
        #[serde(rename = "most_bytes")]
        max_bytes: u32,
        /// Whether a size is any number of bytes. The sizes below the maximum then come equally
        /// often, and the maximum in minimum/maximum of all requests, as in fio.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unaligned: bool,
    },
    /// Several sizes with their percentages, which add up to 100 %.
    Shares(Vec<SizeShare>),
}

impl SizeMix {
    pub fn one(bytes: u32) -> SizeMix {
        SizeMix::Shares(vec![SizeShare { bytes, percent: 100 }])
    }

    /// Multiples of `min_bytes` or, if `unaligned`, any number of bytes.
    pub fn range(min_bytes: u32, max_bytes: u32, unaligned: bool) -> SizeMix {
        // Sizes beyond the last multiple are never used.
        let max_bytes =
            if unaligned { max_bytes } else { max_bytes / min_bytes.max(1) * min_bytes };
        if min_bytes == max_bytes {
            return SizeMix::one(min_bytes);
        }
        SizeMix::Range { min_bytes, max_bytes, unaligned }
    }

    /// `None` without sizes.
    pub fn bounds(&self) -> Option<(u32, u32)> {
        match self {
            SizeMix::Range { min_bytes, max_bytes, .. } => Some((*min_bytes, *max_bytes)),
            SizeMix::Shares(shares) => {
                let sizes =
                    || shares.iter().filter(|share| share.percent > 0).map(|share| share.bytes);
                sizes().min().zip(sizes().max())
            }
        }
    }

    /// In bytes.
    pub fn mean(&self) -> f64 {
        match self {
            SizeMix::Range { min_bytes, max_bytes, unaligned: false } => {
                let min = (*min_bytes).max(1);
                f64::from(min) * (1.0 + f64::from(max_bytes / min)) / 2.0
            }
            SizeMix::Range { min_bytes, max_bytes, unaligned: true } => {
                let [min, max] = [*min_bytes, *max_bytes].map(f64::from);
                // The maximum comes with probability min/max, the others are even below it.
                (1.0 - min / max.max(1.0)) * (min + max) / 2.0 + min
            }
            SizeMix::Shares(shares) => shares
                .iter()
                .map(|share| f64::from(share.bytes) * f64::from(share.percent) / 100.0)
                .sum(),
        }
    }
}

/// Request sizes of reads and of writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sizes {
    pub read: SizeMix,
    pub write: SizeMix,
}

/// The contents of written data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Data {
    /// Percentage of each block that compresses away.
    pub compressible_percent: u8,
    /// Percentage of the blocks that repeat an earlier block.
    pub duplicate_percent: u8,
    /// Number of distinct blocks that are repeated, equally often; 0 means 16.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated_blocks: u64,
    /// Seed of the repeated blocks, if several workloads repeat the same ones; otherwise it comes
    /// from the workload's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated_seed: Option<u64>,
    /// Blocks hold their offset, generation, seed and checksum, and reads check them.
    pub verify: bool,
}

/// The files of several clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientFiles {
    /// Each client has a file of its own.
    #[default]
    Own,
    /// All clients use one file, each a part of it.
    Segments,
    /// All clients use one file and take turns request by request.
    Interleaved,
}

impl ClientFiles {
    pub fn is_one(self) -> bool {
        self != ClientFiles::Own
    }
}

/// The requests to a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Percentage of the requests that read; the rest write.
    pub read_percent: u8,
    pub pattern: Pattern,
    /// Request size in bytes; the maximum, if sizes differ.
    pub request_bytes: u32,
    /// Request sizes, if they differ. Sequential requests leave no gaps, and the last one before
    /// the region's end is cut to fit; others start at multiples of the minimum size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// Alignment of requests that are not sequential, if it differs from their size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align_bytes: Option<u32>,
    /// Requests outstanding per stream.
    pub depth: u32,
    /// Number of threads, one per stream.
    pub threads: u32,
    /// Number of clients that do this at the same time, each with this depth and these streams;
    /// absent: all that the machine has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// The files that these clients use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub client_files: ClientFiles,
    pub engine: Engine,
    /// Use of the page cache, and durability of writes.
    pub buffering: Buffering,
    /// Hint for the page cache.
    pub hint: Hint,
    /// The kind of buffer memory.
    #[serde(default)]
    pub memory: Memory,
    /// State of the file's space before the run.
    pub allocation: Allocation,
    /// State of the cache before the run.
    pub cache: CacheState,
    /// Bytes added to the offset of every request.
    pub offset_bytes: u64,
    /// Offset of the first byte of the region.
    pub region_start_bytes: u64,
    /// Length of the region in bytes; `None`: to the end of the target.
    pub region_bytes: Option<u64>,
    pub stop: Stop,
    /// Maximum number of bytes over all streams, even if time is left.
    #[serde(default)]
    pub limit_bytes: Option<u64>,
    /// Requests per second over all streams, issued on schedule and not by completions (an open
    /// loop).
    pub rate_iops: Option<f64>,
    /// The steps of an open loop whose rate changes over time; empty if it does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<LoadStep>,
    /// Width of the windows whose latencies are kept apart, if any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_window_ns: Option<Nanos>,
    /// Completions awaited before a stream issues the next requests.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reap: Reap,
    /// Pause between a completion and the request that replaces it.
    pub think_ns: Nanos,
    /// Include a final sync to stable storage in the measured time.
    pub sync_at_end: bool,
    /// The data of writes.
    pub data: Data,
    /// Random seed; the same one gives the same requests on every machine.
    pub seed: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The operations of a workload.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OpKind {
    Read,
    Write,
    Mix,
}

impl OpKind {
    pub fn name(self) -> &'static str {
        match self {
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::Mix => "mix",
        }
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Default for Workload {
    /// Sequential, direct, synchronous reads of 64 KiB, for one second.
    fn default() -> Self {
        Workload {
            read_percent: 100,
            pattern: Pattern::Seq,
            request_bytes: 64 << 10,
            sizes: None,
            align_bytes: None,
            depth: 1,
            threads: 1,
            clients: None,
            client_files: ClientFiles::Own,
            engine: Engine::Sync,
            buffering: Buffering::Direct,
            hint: Hint::None,
            memory: Memory::Huge,
            allocation: Allocation::Written,
            cache: CacheState::AsIs,
            offset_bytes: 0,
            region_start_bytes: 0,
            region_bytes: None,
            stop: Stop::AfterNs(1_000_000_000),
            limit_bytes: None,
            rate_iops: None,
            load: Vec::new(),
            latency_window_ns: None,
            reap: Reap::default(),
            think_ns: 0,
            sync_at_end: false,
            data: Data::default(),
            seed: 1,
        }
    }
}

impl Workload {
    pub fn op(&self) -> OpKind {
        match self.read_percent {
            100 => OpKind::Read,
            0 => OpKind::Write,
            _ => OpKind::Mix,
        }
    }

    pub fn run_ns(&self) -> Option<Nanos> {
        match self.stop {
            Stop::AfterNs(ns) => Some(ns),
            Stop::AfterBytes(_) => None,
        }
    }

    pub fn writes(&self) -> bool {
        self.read_percent < 100
    }

    /// Over all streams.
    pub fn outstanding(&self) -> u32 {
        self.depth.saturating_mul(self.threads)
    }

    /// A region grows to at least one request of each stream.
    pub fn of_clients(&self, clients: u32) -> Workload {
        let all = u64::from(clients);
        let times = |bytes: u64| bytes.saturating_mul(all);
        let threads = self.threads.saturating_mul(clients);
        let room = u64::from(self.request_bytes).saturating_mul(threads.into());
        Workload {
            threads,
            clients: None,
            client_files: ClientFiles::Own,
            region_bytes: self.region_bytes.map(|own| own.max(room)),
            stop: match self.stop {
                Stop::AfterBytes(bytes) => Stop::AfterBytes(times(bytes)),
                timed @ Stop::AfterNs(_) => timed,
            },
            limit_bytes: self.limit_bytes.map(times),
            rate_iops: self.rate_iops.map(|rate| rate * f64::from(clients)),
            ..self.clone()
        }
    }

    pub fn buffers(&self) -> Buffers {
        let alone = self.engine.has_workers();
        Buffers {
            streams: if alone { self.outstanding() } else { self.threads },
            depth: if alone { 1 } else { self.depth },
            request_bytes: self.request_bytes,
            writes: self.writes(),
        }
    }

    /// First byte and length.
    pub fn region(&self, size_bytes: u64) -> (u64, u64) {
        let start = self.region_start_bytes.min(size_bytes);
        (start, self.region_bytes.unwrap_or(u64::MAX).min(size_bytes - start))
    }

    pub fn access(&self, size_bytes: u64) -> Access {
        Access {
            engine: self.engine,
            buffering: self.buffering,
            metadata_sync: false,
            hint: self.hint,
            memory: self.memory,
            allocation: self.allocation,
            cache: self.cache,
            reap: self.reap,
            kernel_polls: false,
            sync_at_end: self.sync_at_end,
            region: self.region(size_bytes),
        }
    }
}
