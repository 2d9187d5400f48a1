//! The layers under a target, from the file system down to the device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The kind of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// A mounted file system.
    FileSystem,
    /// A mapping of several devices into one: device mapper, md, a file system's own RAID.
    Volume,
    /// A partition.
    Partition,
    /// A block device with a request queue.
    Disk,
    /// A loop device over a file.
    Loop,
    /// A link between two ends, or a controller.
    Link,
    /// An adapter between disk buses and the I/O bus.
    Adapter,
    /// A disk bus that several drives share.
    Bus,
    /// The I/O bus between adapters and memory.
    Pci,
    /// A network to where the data are.
    Network,
    /// A limit set from outside (a control-group throttle).
    Throttle,
}

/// One layer under a target, from the top down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    /// Its kind.
    pub kind: LayerKind,
    /// Its name (`ext4 on /`, `vda`, `PCIe 4.0 x4`).
    pub name: String,
    /// The rate it advertises, if known: peak advertised performance in the 1997 study's words.
    pub advertised_bytes_per_s: Option<f64>,
    /// The formula or the source of that rate (`8 GT/s x 4 lanes x 128/130`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertised_formula: Option<String>,
    /// Requests per second that it admits, if limited.
    pub advertised_iops: Option<f64>,
    /// Facts that decisions depend on.
    #[serde(default, skip_serializing_if = "LayerFacts::is_empty")]
    pub facts: LayerFacts,
    /// Its settings by the system's names (`scheduler`, `mount`, ...), for display only.
    pub settings: BTreeMap<String, String>,
    /// How much of the target's bytes passes through it.
    #[serde(default, skip_serializing_if = "Share::is_all")]
    pub share: Share,
}

/// Facts about a layer that decisions depend on; a fact that could not be read is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LayerFacts {
    /// Whether a disk rotates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// Whether a device has a volatile write cache in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<bool>,
    /// How far the system reads ahead of sequential reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead_bytes: Option<u64>,
    /// Reads further ahead if the program announces sequential access.
    #[serde(skip_serializing_if = "is_false")]
    pub follows_hints: bool,
    /// Requests that a device's queue holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_limit: Option<u32>,
    /// The request size that suits a device best, a full stripe for example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimal_io_bytes: Option<u64>,
    /// Where a partition begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionFacts>,
    /// How an array spreads data over its members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayFacts>,
    /// Written data stays in a cache device until it is copied to the volume.
    #[serde(skip_serializing_if = "is_false")]
    pub writeback_device: bool,
    /// How a file system treats writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystemFacts>,
    /// Limits of a throttle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle: Option<ThrottleFacts>,
    /// The address or port of a link, as warnings name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_address: Option<String>,
    /// The file under a loop device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backing_file: Option<PathBuf>,
}

impl LayerFacts {
    /// Nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == LayerFacts::default()
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Where a partition begins, against the sizes that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PartitionFacts {
    /// First byte on the disk.
    pub start_bytes: u64,
    /// The disk's physical block, if known.
    pub physical_block_bytes: Option<u64>,
    /// The stripe of the array below, if it has one.
    pub stripe_bytes: Option<u64>,
}

impl PartitionFacts {
    /// Whether it begins at a multiple of 4 KiB and of the physical block.
    pub fn is_block_aligned(&self) -> bool {
        self.start_bytes.is_multiple_of(4096)
            && self.physical_block_bytes.is_none_or(|block| self.start_bytes.is_multiple_of(block))
    }

    /// Whether it begins at a multiple of the stripe below.
    pub fn is_stripe_aligned(&self) -> bool {
        self.stripe_bytes.is_none_or(|stripe| self.start_bytes.is_multiple_of(stripe))
    }
}

/// How an array spreads data over its members.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ArrayFacts {
    /// Members whose chunks hold data in a row, if the layout has rows of chunks.
    pub data_members: Option<u64>,
    /// Bytes of a chunk.
    pub chunk_bytes: Option<u64>,
    /// Members that are missing.
    pub missing: u64,
}

/// How a file system treats writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FileSystemFacts {
    /// Data go through the journal too.
    pub journals_data: bool,
    /// Each write waits for stable storage.
    pub synchronous: bool,
    /// A flush does not reach the devices' write caches.
    pub no_barriers: bool,
}

/// Limits of a throttle that differ for writes, or hold for a kind of requests only.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThrottleFacts {
    /// Bytes per second of writes.
    pub write_bytes_per_s: Option<f64>,
    /// Writes per second.
    pub write_iops: Option<f64>,
    /// The limits of requests per second come from a model of requests in random order.
    pub random_only: bool,
}

/// Bytes that pass through a layer for each byte of the target: 1 where all do, 0.5 for a disk of two in a stripe. A layer that several
/// members share has the sum of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// For each byte read.
    pub reads: f64,
    /// For each byte written; mirrors take each byte once more.
    pub writes: f64,
}

impl Default for Share {
    fn default() -> Share {
        Share::ALL
    }
}

impl Share {
    /// Every byte, once.
    pub const ALL: Share = Share { reads: 1.0, writes: 1.0 };

    /// The share of an operation.
    pub fn of(self, writes: bool) -> f64 {
        if writes { self.writes } else { self.reads }
    }

    /// Every byte, once.
    pub fn is_all(&self) -> bool {
        [self.reads, self.writes].iter().all(|share| (share - 1.0).abs() < 1e-9)
    }

    /// This share of another share.
    pub fn times(self, other: Share) -> Share {
        Share { reads: self.reads * other.reads, writes: self.writes * other.writes }
    }

    /// This share, or the other where that is more.
    pub fn at_least(self, other: Share) -> Share {
        Share { reads: self.reads.max(other.reads), writes: self.writes.max(other.writes) }
    }

    /// What two ways to the same layer bring it.
    pub fn plus(self, other: Share) -> Share {
        Share { reads: self.reads + other.reads, writes: self.writes + other.writes }
    }
}

impl Layer {
    /// A layer of which only this is known.
    pub fn new(kind: LayerKind, name: impl Into<String>) -> Layer {
        Layer {
            kind,
            name: name.into(),
            advertised_bytes_per_s: None,
            advertised_formula: None,
            advertised_iops: None,
            facts: LayerFacts::default(),
            settings: BTreeMap::new(),
            share: Share::ALL,
        }
    }

    /// Whether it is a disk that rotates.
    pub fn is_rotational(&self) -> bool {
        self.facts.rotational == Some(true)
    }

    /// The rate that it advertises for reads or for writes, in bytes per second.
    pub fn advertised_rate(&self, writes: bool) -> Option<f64> {
        self.limit(writes, self.advertised_bytes_per_s, |throttle| throttle.write_bytes_per_s)
    }

    /// Requests per second that it admits, reads or writes.
    pub fn admitted_iops(&self, writes: bool) -> Option<f64> {
        self.limit(writes, self.advertised_iops, |throttle| throttle.write_iops)
    }

    /// The rate of the whole target at which this layer reaches its advertised rate, in bytes per second.
    pub fn target_rate(&self, writes: bool) -> Option<f64> {
        self.advertised_rate(writes).map(|rate| rate / self.share.of(writes)).filter(|rate| rate.is_finite())
    }

    /// The same for requests per second.
    pub fn target_iops(&self, writes: bool) -> Option<f64> {
        self.admitted_iops(writes).map(|iops| iops / self.share.of(writes)).filter(|iops| iops.is_finite())
    }

    /// The same layer, met on another way through the target.
    pub fn is_same(&self, other: &Layer) -> bool {
        self.kind == other.kind && self.name == other.name && self.settings == other.settings
    }

    /// A throttle has limits of its own for writes.
    fn limit(
        &self,
        writes: bool,
        advertised: Option<f64>,
        of_writes: impl Fn(&ThrottleFacts) -> Option<f64>,
    ) -> Option<f64> {
        if self.kind == LayerKind::Throttle && writes {
            return self.facts.throttle.as_ref().and_then(of_writes);
        }
        advertised
    }
}
