//! A workload as data: what is asked, and how it reaches the target.

use machine::{Access, Allocation, Buffering, Buffers, CacheState, Engine, Hint, Memory, Nanos, Reap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The order in which a workload visits its region, in blocks of the request size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// From start to end; each of several streams has its own part of the region.
    Seq,
    /// Every block once in a random order, then again in another: uniform, without repetition.
    Random,
    /// Every request goes to any block, drawn anew: uniform, with repetition.
    Uniform,
    /// From end to start.
    Backward,
    /// Forward by this many bytes from one request to the next; at the end, again through the blocks left out.
    Stride(u64),
    /// The region as a table of rows of this many blocks, visited column by column; several streams divide the columns among them.
    Columns(u32),
    /// Zipf-distributed with this exponent; popular blocks are scattered over the region.
    Zipf(f64),
    /// `access_percent` of the requests go to the first `hot_percent` of the region.
    HotCold {
        /// Percent of the region that is hot.
        hot_percent: u8,
        /// Percent of the requests that go there.
        access_percent: u8,
    },
    /// Self-similar: a share of `1 - h` of the requests goes to the most popular share `h` of the blocks, and so on within it; the
    /// popular ones scattered over the region. 0.2 is the rule of 80 to 20.
    Pareto(f64),
    /// Normally distributed over the region; draws outside it are repeated.
    Normal {
        /// Standard deviation in percent of the region.
        deviation_percent: f64,
        /// Mean, in percent of the region.
        center_percent: f64,
        /// The blocks so drawn are scattered over the region.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        scattered: bool,
    },
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this much time on the machine's clock.
    AfterNs(Nanos),
    /// After this many bytes, over all streams together.
    AfterBytes(u64),
}

/// A request size and its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeShare {
    /// Bytes of a request.
    pub bytes: u32,
    /// Percent of the requests.
    pub percent: u8,
}

/// How the sizes of requests of one operation are distributed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SizeMix {
    /// Every multiple of the least size up to the greatest, equally often.
    Range {
        /// Least size, of which all are multiples.
        least_bytes: u32,
        /// Greatest size.
        most_bytes: u32,
    },
    /// Each size with its share; all shares together are 100 %.
    Shares(Vec<SizeShare>),
}

impl SizeMix {
    /// One size for all.
    pub fn one(bytes: u32) -> SizeMix {
        SizeMix::Shares(vec![SizeShare { bytes, percent: 100 }])
    }

    /// Least and greatest size in bytes; none where there are no sizes.
    pub fn bounds(&self) -> Option<(u32, u32)> {
        match self {
            SizeMix::Range { least_bytes, most_bytes } => Some((*least_bytes, *most_bytes)),
            SizeMix::Shares(shares) => {
                let sizes = || shares.iter().filter(|share| share.percent > 0).map(|share| share.bytes);
                sizes().min().zip(sizes().max())
            }
        }
    }

    /// Mean size in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            SizeMix::Range { least_bytes, most_bytes } => {
                let least = (*least_bytes).max(1);
                f64::from(least) * (1.0 + f64::from(most_bytes / least)) / 2.0
            }
            SizeMix::Shares(shares) => {
                shares.iter().map(|share| f64::from(share.bytes) * f64::from(share.percent) / 100.0).sum()
            }
        }
    }
}

/// Different request sizes for reads and writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sizes {
    /// Of reads.
    pub read: SizeMix,
    /// Of writes.
    pub write: SizeMix,
}

/// The contents of written data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Data {
    /// Percent of each block that compresses away.
    pub compressible_percent: u8,
    /// Percent of the blocks that repeat an earlier block.
    pub duplicate_percent: u8,
    /// Blocks hold their offset, generation, seed and checksum, and reads check them.
    pub verify: bool,
}

/// A workload: what is asked of a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Percent of the requests that read; the rest write.
    pub read_percent: u8,
    /// The order in which the region is visited.
    pub pattern: Pattern,
    /// Request size; the greatest, if they differ.
    pub request_bytes: u32,
    /// The distribution of request sizes, if they differ. Sequential requests leave no gaps, and the last before the region's end is
    /// cut to fit; others start at multiples of the least size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// Requests that are not sequential start at multiples of this instead of their size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align_bytes: Option<u32>,
    /// Requests that each stream keeps outstanding.
    pub depth: u32,
    /// Streams, each on its own thread.
    pub threads: u32,
    /// The mechanism.
    pub engine: Engine,
    /// Cache and durability.
    pub buffering: Buffering,
    /// Access advice for the cache.
    pub hint: Hint,
    /// What the buffers are made of.
    #[serde(default)]
    pub memory: Memory,
    /// State of the file's space before the run.
    pub allocation: Allocation,
    /// State of the cache before the run.
    pub cache: CacheState,
    /// Bytes added to the offset of every request.
    pub offset_bytes: u64,
    /// First byte of the region.
    pub region_start_bytes: u64,
    /// Length of the region; `None`: to the end of the target.
    pub region_bytes: Option<u64>,
    /// When a run ends.
    pub stop: Stop,
    /// Most bytes to transfer over all streams, even if time is left.
    #[serde(default)]
    pub limit_bytes: Option<u64>,
    /// Requests per second over all streams, issued on schedule and not by completions (an open loop).
    pub rate_iops: Option<f64>,
    /// For how many completions each stream waits before it issues the next requests.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reap: Reap,
    /// Pause between a completion and the request that replaces it.
    pub think_ns: Nanos,
    /// Include a final sync to stable storage in the measured time.
    pub sync_at_end: bool,
    /// The data of writes.
    pub data: Data,
    /// Seed of everything random: the same seed gives the same sequence of requests on every machine.
    pub seed: u64,
}

fn is_default(reap: &Reap) -> bool {
    *reap == Reap::default()
}

/// What the requests of a workload do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpKind {
    /// All read.
    Read,
    /// All write.
    Write,
    /// Some read, some write.
    Mix,
}

impl OpKind {
    /// The name on the command line and in JSON.
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
    /// Sequential direct synchronous reads of 64 KiB for a second.
    fn default() -> Self {
        Workload {
            read_percent: 100,
            pattern: Pattern::Seq,
            request_bytes: 64 << 10,
            sizes: None,
            align_bytes: None,
            depth: 1,
            threads: 1,
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
            reap: Reap::default(),
            think_ns: 0,
            sync_at_end: false,
            data: Data::default(),
            seed: 1,
        }
    }
}

impl Workload {
    /// What its requests do.
    pub fn op(&self) -> OpKind {
        match self.read_percent {
            100 => OpKind::Read,
            0 => OpKind::Write,
            _ => OpKind::Mix,
        }
    }

    /// Mean size of a request in bytes, as asked.
    pub fn mean_request_bytes(&self) -> f64 {
        let Some(sizes) = &self.sizes else { return f64::from(self.request_bytes) };
        let reads = f64::from(self.read_percent) / 100.0;
        sizes.read.mean() * reads + sizes.write.mean() * (1.0 - reads)
    }

    /// Whether any request writes.
    pub fn writes(&self) -> bool {
        self.read_percent < 100
    }

    /// Requests outstanding over all streams.
    pub fn outstanding(&self) -> u32 {
        self.depth.saturating_mul(self.threads)
    }

    /// The buffers of its streams.
    pub fn buffers(&self) -> Buffers {
        let alone = self.engine.has_workers();
        Buffers {
            streams: if alone { self.outstanding() } else { self.threads },
            depth: if alone { 1 } else { self.depth },
            request_bytes: self.request_bytes,
            writes: self.writes(),
        }
    }

    /// First byte and length of the region in a target of `size_bytes`, the shift included.
    pub fn region(&self, size_bytes: u64) -> (u64, u64) {
        let start = self.region_start_bytes.min(size_bytes);
        (start, self.region_bytes.unwrap_or(u64::MAX).min(size_bytes - start))
    }

    /// How a machine is to reach a target of `size_bytes` for this workload.
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
            sync_at_end: self.sync_at_end,
            region: self.region(size_bytes),
        }
    }
}
