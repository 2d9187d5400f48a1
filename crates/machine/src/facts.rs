//! Properties of a machine and of a target.

use crate::{Layer, LayerKind, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    pub engines: Vec<crate::Engine>,
    /// Runs of the same workload differ, so repeats are useful.
    pub noisy: bool,
    pub counts_instructions: bool,
    /// Requests can be traced in the block layer.
    pub traces_requests: bool,
}

/// Properties of a machine, as read; a field is absent if it could not be read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// The host's name, or the simulated machine's.
    pub name: String,
    pub simulated: bool,
    /// Operating system and kernel release.
    pub system: String,
    pub processor: String,
    /// Processors online.
    pub processors: u32,
    pub memory_bytes: u64,
    /// The hypervisor or container, if detected.
    pub virtualization: Option<String>,
    /// The quota in processors, if this process has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_quota: Option<f64>,
    /// Settings that affect storage results, by name (`vm.dirty_ratio`, `cpufreq.governor`, ...),
    /// for display.
    pub settings: BTreeMap<String, String>,
}

/// The kind of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A file created by halfpower.
    TestFile,
    /// An existing file.
    File,
    /// One or more directories in which files are created and deleted.
    Directory,
    Device,
    /// Several of the above as RAID 0 or, with parity, as RAID 5.
    Stripe,
    Simulated,
}

/// Linux admits throttled requests in bursts at this interval; make runs a whole multiple of it.
pub const THROTTLE_SLICE_NS: Nanos = 100_000_000;

/// Idle time that surely closes the throttle's last slice: a slice ends at a multiple of its
/// length, and the clock tick may be 10 ms (block/blk-throttle.c). Measured with 75 runs of 0.2 s
/// each: 140 to 160 ms after the last request 34 were off by 1 to 53 %; after 210 to 270 ms none.
pub const THROTTLE_REST_NS: Nanos = 2 * THROTTLE_SLICE_NS + 10_000_000;

/// A RAID 5 set of several devices or files: chunks round robin, with a parity chunk per row,
/// left-symmetric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Raid5 {
    /// The failed member, counted from 0: it is neither read nor written, and its data are computed
    /// from the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// The target is the failed member's replacement: each write computes the missing data from the
    /// other members and writes them.
    #[serde(default)]
    pub rebuild: bool,
}

/// Properties of an opened target and of the layers under it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFacts {
    /// Name given by the user.
    pub name: String,
    pub kind: TargetKind,
    /// Bytes that a workload may use.
    pub size_bytes: u64,
    pub writable: bool,
    /// Whether direct I/O works.
    pub direct: bool,
    /// Why direct I/O does not work.
    pub direct_refused: Option<String>,
    /// Alignment of offset and length for direct I/O.
    pub direct_align_bytes: u32,
    pub physical_block_bytes: u32,
    /// The file system's block; without a file system, the device's physical sector.
    pub block_bytes: u32,
    /// Number of members of a stripe.
    pub members: u32,
    /// Chunk size of a halfpower stripe.
    pub chunk_bytes: Option<u64>,
    /// The layout of a halfpower RAID 5 set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid5: Option<Raid5>,
    /// The file system keeps its data in memory, so buffered I/O reaches nothing below (tmpfs,
    /// ramfs).
    pub in_memory: bool,
    /// Names of the lowest block devices.
    pub devices: Vec<String>,
    /// The layers, from the top down.
    pub layers: Vec<Layer>,
    /// Reasons not to trust numbers from this target (compression, a sparse file, ...).
    pub warnings: Vec<String>,
}

impl TargetFacts {
    /// A configured limit throttles a layer.
    pub fn is_throttled(&self) -> bool {
        self.layers.iter().any(|layer| layer.kind == LayerKind::Throttle)
    }
}
