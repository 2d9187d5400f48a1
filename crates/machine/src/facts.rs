//! What a machine and a target are.

use crate::{Layer, LayerKind, Nanos};
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
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
    /// Processors' worth of time that this process may use, if it has a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_quota: Option<f64>,
    /// Settings that change storage results, by name (`vm.dirty_ratio`, `cpufreq.governor`, ...), for display.
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
