//! A machine as data. Field names carry units; `[sources]` gives a number's origin by path,
//! `fitted` if calibrated.

use crate::bus::BusKind;
use crate::device::{Model, Tunable};
use crate::volume::Kind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use crate::bus::Adapter;
pub use crate::device::cached_flash::{CachedFlashDrive, Heat};
pub use crate::device::cloud::CloudVolume;
pub use crate::device::disk::drive::{DiskCache, DiskDrive, Firmware, ZoneLaw};
pub use crate::device::flash::FlashDrive;
pub use crate::device::network::NetworkVolume;
pub use crate::device::virtio::VirtioDisk;
pub use crate::memory::{Memory, MemoryLines, MemoryRate};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    pub name: String,
    pub about: String,
    pub system: String,
    pub processor: Processor,
    pub file_system: FileSystem,
    pub memory: Memory,
    pub volume: Volume,
    /// All adapters together.
    #[serde(default)]
    pub pci_bytes_per_s: Option<f64>,
    #[serde(default)]
    pub pci_advertised_bytes_per_s: Option<f64>,
    #[serde(default)]
    pub adapter: Option<Adapter>,
    #[serde(default)]
    pub buses: BTreeMap<String, BusKind>,
    pub drives: BTreeMap<String, Drive>,
    /// By path of a number or a table.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

/// Costs cover one request from call to completion unless noted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    pub name: String,
    pub cores: u32,
    pub request_us: f64,
    /// Extra for uncached requests.
    pub request_ns_per_byte: f64,
    /// A system call to learn of a completion; see [`crate::Shape`].
    #[serde(default)]
    pub call_us: f64,
    /// Per page fault, read-ahead or write-back.
    pub paging_us: f64,
    /// The share before the request reaches the adapter; the rest follows the interrupt.
    pub before_percent: f64,
    pub buffered_read_us: f64,
    pub buffered_read_ns_per_byte: f64,
    /// More for the first copy of a page that was read in, which maps it.
    #[serde(default)]
    pub first_read_ns_per_byte: f64,
    /// Extra for reads of a cache unit or more, whose buffer exceeds the CPU cache.
    pub large_read_ns_per_byte: f64,
    pub buffered_write_us: f64,
    pub buffered_write_ns_per_byte: f64,
    /// Extra beyond the first cache unit.
    pub large_write_ns_per_byte: f64,
    pub writeback_ns_per_byte: f64,
    /// The part charged to no program.
    pub buffered_uncharged_us: f64,
    /// Per byte read to compute parity.
    pub parity_ns_per_byte: f64,
    /// The part per byte of new data in the writer's thread, charged to the program. A system
    /// thread does the rest once the old data are read.
    pub parity_charged_ns_per_byte: f64,
}

/// The file system, its cache, and the layers that split requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    pub name: String,
    pub block_bytes: u32,
    pub command_bytes: u64,
    /// Of read-ahead and write-back.
    pub unit_bytes: u64,
    pub cache_bytes: u64,
    /// Writers block above it.
    pub dirty_bytes: u64,
    pub sequential_requests: u32,
    pub read_ahead_units: u32,
    /// Multiplies read-ahead after a sequential hint; 1: no effect.
    #[serde(default = "one")]
    pub sequential_hint_factor: u32,
    pub writeback_depth: u32,
    /// Above it, write-back does not wait for the lazy writer.
    pub background_bytes: u64,
    /// Write-backs stay within a mapped view of the cache, and start anywhere in it without a
    /// sequential hint.
    pub writeback_by_views: bool,
    /// From the first dirty page to the first lazy-writer pass.
    pub writeback_first_ms: f64,
    pub writeback_period_ms: f64,
    /// A writer at the dirty limit waits for a scheduled first pass instead of starting it:
    /// ReactOS, `CcDeferWrite` and `CcScheduleLazyWriteScan`.
    #[serde(default)]
    pub writers_wait_for_pass: bool,
    /// Each lazy-writer pass logs how far files have grown, then writes their records and the map
    /// of free space.
    #[serde(default)]
    pub passes_log_growth: bool,
    pub extend_one_at_a_time: bool,
    pub write_through_logs: bool,
    pub sync_flushes_drives: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    pub drive: String,
    #[serde(default)]
    pub kind: Kind,
    pub disks: u32,
    /// Filled in disk order.
    pub buses: u32,
    /// Disks on one bus before the next is used.
    #[serde(default = "one")]
    pub bus_disks: u32,
    pub stripe_bytes: u64,
    /// Write caches are enabled.
    pub wce: bool,
}

fn one() -> u32 {
    1
}

impl Processor {
    pub(crate) fn speed_up(&mut self, by: f64) {
        let requests = [
            &mut self.request_us,
            &mut self.request_ns_per_byte,
            &mut self.call_us,
            &mut self.paging_us,
        ];
        let reads = [
            &mut self.buffered_read_us,
            &mut self.buffered_read_ns_per_byte,
            &mut self.first_read_ns_per_byte,
            &mut self.large_read_ns_per_byte,
        ];
        let writes = [
            &mut self.buffered_write_us,
            &mut self.buffered_write_ns_per_byte,
            &mut self.large_write_ns_per_byte,
        ];
        let own = [&mut self.writeback_ns_per_byte, &mut self.buffered_uncharged_us];
        let parity = [&mut self.parity_ns_per_byte, &mut self.parity_charged_ns_per_byte];
        for cost in requests.into_iter().chain(reads).chain(writes).chain(own).chain(parity) {
            *cost /= by;
        }
    }
}

macro_rules! drives {
    ($($(#[$about:meta])* $name:ident($model:ty),)*) => {
        /// A drive, or what replaces one.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Drive {
            $($(#[$about])* $name(Box<$model>),)*
        }

        impl Drive {
            pub(crate) fn model(&self) -> &dyn Model {
                match self {
                    $(Drive::$name(drive) => &**drive,)*
                }
            }

            pub(crate) fn model_mut(&mut self) -> &mut dyn Model {
                match self {
                    $(Drive::$name(drive) => &mut **drive,)*
                }
            }
        }
    };
}

drives! {
    Disk(DiskDrive),
    Flash(FlashDrive),
    CachedFlash(CachedFlashDrive),
    Cloud(CloudVolume),
    Virtio(VirtioDisk),
    Network(NetworkVolume),
}

impl Drive {
    pub fn tunable(&mut self) -> Vec<Tunable<'_>> {
        self.model_mut().tunable()
    }
}
