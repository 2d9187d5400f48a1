use crate::units::{show_rate, show_span, significant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    FileSystem,
    /// Several devices mapped into one: device mapper, md, a file system's own RAID.
    Volume,
    Partition,
    /// A block device with a request queue.
    Disk,
    Loop,
    /// A link between two ends, or a controller.
    Link,
    /// An adapter between disk buses and the I/O bus.
    Adapter,
    /// A disk bus that several drives share.
    Bus,
    /// The I/O bus between adapters and memory.
    Pci,
    /// The bus between memory and processors.
    MemoryBus,
    /// The network to the data.
    Network,
    /// A throttle of a control group.
    Throttle,
}

/// One layer under a target, from the top down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    pub kind: LayerKind,
    /// Name of the layer, such as `ext4 on /`, `vda` or `PCIe 4.0 x4`.
    pub name: String,
    /// Peak advertised performance in the terms of the 1997 study.
    pub advertised_bytes_per_s: Option<f64>,
    /// Formula or source of the advertised rate, such as `8 GT/s x 4 lanes x 128/130`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertised_formula: Option<String>,
    /// A limit in requests per second that the layer advertises.
    pub advertised_iops: Option<f64>,
    #[serde(default, skip_serializing_if = "LayerFacts::is_empty")]
    pub facts: LayerFacts,
    /// Settings by the system's names (`scheduler`, `mount`, ...), for display only.
    pub settings: BTreeMap<String, String>,
    /// Share of the target's bytes that passes through this layer.
    #[serde(default, skip_serializing_if = "Share::is_all")]
    pub share: Share,
}

/// Facts that decisions depend on; one that could not be read is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LayerFacts {
    /// The layer is a rotating disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// The layer has a write cache that is active and volatile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<bool>,
    /// Size of the read-ahead for sequential reads, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead_bytes: Option<u64>,
    /// The layer reads further ahead if the program announces sequential access.
    #[serde(skip_serializing_if = "is_false")]
    pub follows_hints: bool,
    /// Maximum number of requests in the device's queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_limit: Option<u32>,
    /// Request size that the device prefers, in bytes, such as a full stripe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimal_io_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayFacts>,
    /// Written data stays in a cache device until it is copied to the volume.
    #[serde(skip_serializing_if = "is_false")]
    pub writeback_device: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystemFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle: Option<ThrottleFacts>,
    /// Rates above the sustained ones, until a credit is used up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bursts: Vec<BurstFacts>,
    /// A hypervisor serves the disk behind this link: what the disk reports about itself is not
    /// what it is.
    #[serde(skip_serializing_if = "is_false")]
    pub paravirtual: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backing_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl LayerFacts {
    pub fn is_empty(&self) -> bool {
        *self == LayerFacts::default()
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The start of a partition, and the sizes it should be aligned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PartitionFacts {
    /// Offset of the partition's first byte on the disk.
    pub start_bytes: u64,
    /// Physical block size of the disk in bytes, if known.
    pub physical_block_bytes: Option<u64>,
    /// Stripe size of the array below in bytes, if there is one.
    pub stripe_bytes: Option<u64>,
}

impl PartitionFacts {
    /// Checks the start against 4 KiB and the physical block.
    pub fn is_block_aligned(&self) -> bool {
        self.start_bytes.is_multiple_of(4096)
            && self.physical_block_bytes.is_none_or(|block| self.start_bytes.is_multiple_of(block))
    }

    pub fn is_stripe_aligned(&self) -> bool {
        self.stripe_bytes.is_none_or(|stripe| self.start_bytes.is_multiple_of(stripe))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ArrayFacts {
    /// Number of members with data chunks per row, if the layout has rows of chunks.
    pub data_members: Option<u64>,
    pub chunk_bytes: Option<u64>,
    /// Number of missing members.
    pub missing: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FileSystemFacts {
    /// Type of the file system, as the system names it: `ext4`.
    #[serde(default)]
    pub fs_type: String,
    /// The journal holds data as well as metadata.
    pub journals_data: bool,
    /// Each write waits for stable storage.
    pub synchronous: bool,
    /// A flush does not reach the devices' write caches.
    pub no_barriers: bool,
}

/// A rate above the sustained one, until a credit is used up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstFacts {
    /// The rates are in requests per second; otherwise in bytes per second.
    pub in_requests: bool,
    /// Rate while the credit lasts.
    pub burst_per_s: f64,
    /// Rate after the credit is used up.
    pub sustained_per_s: f64,
    /// Time for which a full credit lasts at the burst rate, in seconds.
    pub lasts_s: f64,
}

impl BurstFacts {
    pub fn sentence(&self, layer: &str) -> String {
        let rate = |per_s: f64| match self.in_requests {
            true => format!("{} requests/s", significant(per_s, 3)),
            false => show_rate(per_s),
        };
        format!(
            "{layer} sustains only {}: it bursts to {} for {}; shorter runs measure the burst",
            rate(self.sustained_per_s),
            rate(self.burst_per_s),
            show_span(self.lasts_s)
        )
    }

    pub fn sustained_bytes_per_s(&self, request_bytes: u32) -> f64 {
        let of_each = if self.in_requests { f64::from(request_bytes) } else { 1.0 };
        self.sustained_per_s * of_each
    }
}

/// Limits of a throttle for writes, or only for some requests.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThrottleFacts {
    pub write_bytes_per_s: Option<f64>,
    pub write_iops: Option<f64>,
    /// The limits in requests per second come from a model of random requests.
    pub random_only: bool,
}

/// Bytes that pass through a layer per byte of the target: 1 for all, 0.5 for one of two disks in a
/// stripe. If several members share a layer, their shares add up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Bytes that pass through the layer per byte read.
    pub reads: f64,
    /// Bytes that pass through the layer per byte written; each mirror adds one.
    pub writes: f64,
}

impl Default for Share {
    fn default() -> Share {
        Share::ALL
    }
}

impl Share {
    pub const ALL: Share = Share { reads: 1.0, writes: 1.0 };

    pub fn of(self, writes: bool) -> f64 {
        if writes { self.writes } else { self.reads }
    }

    pub fn is_all(&self) -> bool {
        [self.reads, self.writes].iter().all(|share| (share - 1.0).abs() < 1e-9)
    }

    pub fn times(self, other: Share) -> Share {
        Share { reads: self.reads * other.reads, writes: self.writes * other.writes }
    }

    /// Takes the larger share of each.
    pub fn at_least(self, other: Share) -> Share {
        Share { reads: self.reads.max(other.reads), writes: self.writes.max(other.writes) }
    }

    pub fn plus(self, other: Share) -> Share {
        Share { reads: self.reads + other.reads, writes: self.writes + other.writes }
    }
}

impl Layer {
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

    pub fn is_rotational(&self) -> bool {
        self.facts.rotational == Some(true)
    }

    pub fn advertised_rate(&self, writes: bool) -> Option<f64> {
        self.limit(writes, self.advertised_bytes_per_s, |throttle| throttle.write_bytes_per_s)
    }

    pub fn admitted_iops(&self, writes: bool) -> Option<f64> {
        self.limit(writes, self.advertised_iops, |throttle| throttle.write_iops)
    }

    /// Returns the target's bytes per second when this layer reaches its advertised rate.
    ///
    /// ```
    /// use machine::{Layer, LayerKind, Share};
    ///
    /// let half = Share { reads: 0.5, writes: 0.5 };
    /// let disk = Layer { advertised_bytes_per_s: Some(250e6), share: half, ..Layer::new(LayerKind::Disk, "sda") };
    /// assert_eq!(disk.target_rate(false), Some(500e6));
    /// ```
    pub fn target_rate(&self, writes: bool) -> Option<f64> {
        self.advertised_rate(writes)
            .map(|rate| rate / self.share.of(writes))
            .filter(|rate| rate.is_finite())
    }

    /// As [`Layer::target_rate`], in requests per second.
    pub fn target_iops(&self, writes: bool) -> Option<f64> {
        self.admitted_iops(writes)
            .map(|iops| iops / self.share.of(writes))
            .filter(|iops| iops.is_finite())
    }

    /// Returns whether both are one layer on different paths.
    pub fn is_same(&self, other: &Layer) -> bool {
        self.kind == other.kind && self.name == other.name && self.settings == other.settings
    }

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
