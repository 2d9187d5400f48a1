//! What a machine and a target are.

use crate::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a machine can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Engines that work here.
    pub engines: Vec<crate::Engine>,
    /// Two runs of the same workload differ: repeats say something.
    pub noisy: bool,
    /// The run's processor counters can be read.
    pub counts_instructions: bool,
    /// It can be seen when the block layer has each request.
    pub traces_requests: bool,
}

/// What a machine is. Every field is a fact as read; absent where it could not be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// Name of the machine (the host's name, or the twin's).
    pub name: String,
    /// True for a simulated machine.
    pub simulated: bool,
    /// Operating system and kernel release.
    pub system: String,
    /// Processor model.
    pub processor: String,
    /// Processors online.
    pub processors: u32,
    /// Main memory.
    pub memory_bytes: u64,
    /// A hypervisor or container, where seen.
    pub virtualization: Option<String>,
    /// Settings that change storage results, by name (`vm.dirty_ratio`, `cpufreq.governor`, ...).
    pub settings: BTreeMap<String, String>,
}

/// What kind of place a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A file that halfpower made.
    TestFile,
    /// A file that was there.
    File,
    /// A directory (or several) in which files are made and deleted.
    Directory,
    /// A block device.
    Device,
    /// Several of the above as RAID 0 or, with parity, as RAID 5.
    Stripe,
    /// A simulated volume.
    Simulated,
}

/// What kind of layer lies under a target.
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
    /// What it is.
    pub kind: LayerKind,
    /// Its name (`ext4 on /`, `vda`, `PCIe 4.0 x4`).
    pub name: String,
    /// The rate it advertises, where one is known. Peak advertised performance in the 1997 study's words.
    pub advertised_bytes_per_s: Option<f64>,
    /// Where that rate is from: the formula that computes it, or who tells it (`8 GT/s x 4 lanes x 128/130`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advertised_formula: Option<String>,
    /// Requests per second that it admits, where a limit is known.
    pub advertised_iops: Option<f64>,
    /// Its settings by name (`read_ahead_kb`, `scheduler`, `write_cache`, `mount`, ...).
    pub settings: BTreeMap<String, String>,
    /// How much of the target's bytes passes through it.
    #[serde(default, skip_serializing_if = "Share::is_all")]
    pub share: Share,
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
    /// A disk that rotates.
    pub fn is_rotational(&self) -> bool {
        self.settings.get("rotational").is_some_and(|value| value == "1")
    }

    /// The rate in bytes per second that it advertises for reads or for writes.
    pub fn advertised_rate(&self, writes: bool) -> Option<f64> {
        self.limit(writes, self.advertised_bytes_per_s, "write_bytes_per_s")
    }

    /// Requests per second that it admits, reads or writes.
    pub fn admitted_iops(&self, writes: bool) -> Option<f64> {
        self.limit(writes, self.advertised_iops, "write_iops")
    }

    /// The rate of the whole target in bytes per second at which this layer gives what it advertises.
    pub fn target_rate(&self, writes: bool) -> Option<f64> {
        self.advertised_rate(writes).map(|rate| rate / self.share.of(writes)).filter(|rate| rate.is_finite())
    }

    /// The same of requests per second.
    pub fn target_iops(&self, writes: bool) -> Option<f64> {
        self.admitted_iops(writes).map(|iops| iops / self.share.of(writes)).filter(|iops| iops.is_finite())
    }

    /// The same layer, met on another way through the target.
    pub fn is_same(&self, other: &Layer) -> bool {
        self.kind == other.kind && self.name == other.name && self.settings == other.settings
    }

    /// A throttle has limits of its own for writes.
    fn limit(&self, writes: bool, advertised: Option<f64>, of_writes: &str) -> Option<f64> {
        if self.kind == LayerKind::Throttle && writes {
            return self.settings.get(of_writes).and_then(|text| text.parse().ok());
        }
        advertised
    }
}

/// Linux admits throttled requests in bursts this far apart; a run of whole ones holds as many as it should.
pub const THROTTLE_SLICE_NS: Nanos = 100_000_000;

/// How long a target must have had no request of a kind before the throttle forgets its last slice of it: the kernel ends a slice at the next
/// multiple of its length after the last request's own slice, and its clock's tick may be 10 ms (block/blk-throttle.c). Measured: runs of 0.2 s
/// that begin 140 to 160 ms after the last request are off by up to 53 %, 34 of 75 by more than 1 %; after 210 to 270 ms none of 75.
pub const THROTTLE_REST_NS: Nanos = 2 * THROTTLE_SLICE_NS + 10_000_000;

/// How several places form a RAID 5 set: chunks round robin, with parity in a chunk of each row, left-symmetric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Raid5 {
    /// The member that has failed, counted from 0: it is neither read nor written, and its data are computed from the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// The target is the failed member's replacement: each write computes what belongs there from the other members and writes that.
    #[serde(default)]
    pub rebuild: bool,
}

/// What an opened target is, and what lies under it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFacts {
    /// As the user named it.
    pub name: String,
    /// What it is.
    pub kind: TargetKind,
    /// Bytes that a workload may use.
    pub size_bytes: u64,
    /// May be written.
    pub writable: bool,
    /// Takes requests past the file-system cache.
    pub direct: bool,
    /// Why not, where it does not.
    pub direct_refused: Option<String>,
    /// The smallest multiple in bytes of offset and length that direct I/O takes.
    pub direct_align_bytes: u32,
    /// The device's physical sector.
    pub physical_block_bytes: u32,
    /// The file system's block; the device's physical sector without one.
    pub block_bytes: u32,
    /// Several places: their number.
    pub members: u32,
    /// Bytes of a stripe chunk, where halfpower stripes.
    pub chunk_bytes: Option<u64>,
    /// How halfpower keeps parity, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid5: Option<Raid5>,
    /// A cache holds the target entirely: nothing below is reached by buffered I/O once warm (tmpfs, ramfs).
    pub in_memory: bool,
    /// Names of the block devices at the bottom.
    pub devices: Vec<String>,
    /// The layers, from the top down.
    pub layers: Vec<Layer>,
    /// What makes a number from this target less than trustworthy (compression under it, a sparse file, ...).
    pub warnings: Vec<String>,
}

impl TargetFacts {
    /// Whether a layer admits only so much of what comes, by rule and not by its nature.
    pub fn is_throttled(&self) -> bool {
        self.layers.iter().any(|layer| layer.kind == LayerKind::Throttle)
    }
}
