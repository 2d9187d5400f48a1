//! A machine as data: what a TOML description may say.
//!
//! Every time is in the unit of its name. Where each number comes from stands in the table `[sources]`, by path; the
//! word `fitted` there marks a number that was calibrated.

use crate::bus::BusKind;
use crate::device::{Model, Tunable};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use crate::bus::Adapter;
pub use crate::device::cloud::CloudVolume;
pub use crate::device::disk::drive::{DiskCache, DiskDrive, Firmware, ZoneLaw};
pub use crate::device::flash::FlashDrive;
pub use crate::device::network::NetworkVolume;
pub use crate::device::virtio::VirtioDisk;
pub use crate::memory::{Memory, MemoryLines, MemoryRate};

/// A whole machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// The operating system.
    pub system: String,
    /// The processor and what requests cost it.
    pub processor: Processor,
    /// The file system and its cache.
    pub file_system: FileSystem,
    /// Main memory.
    pub memory: Memory,
    /// What a target is made of where the settings do not say.
    pub volume: Volume,
    /// What all adapters together move over the I/O bus.
    #[serde(default)]
    pub pci_bytes_per_s: Option<f64>,
    /// What the I/O bus advertises.
    #[serde(default)]
    pub pci_advertised_bytes_per_s: Option<f64>,
    /// The adapters between the disk buses and the I/O bus; without them the buses end there.
    #[serde(default)]
    pub adapter: Option<Adapter>,
    /// Kinds of disk bus by name.
    #[serde(default)]
    pub buses: BTreeMap<String, BusKind>,
    /// Drives by name.
    pub drives: BTreeMap<String, Drive>,
    /// Path of a number or of a table of numbers, and where it comes from.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

/// The processor. Costs are of one request from the call to the end, except where they say otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Its name.
    pub name: String,
    /// How many cores.
    pub cores: u32,
    /// A request past the file-system cache.
    pub request_us: f64,
    /// Its cost for each byte.
    pub request_ns_per_byte: f64,
    /// A system call that a program makes for a request beyond the one that asks for it, to learn of its end; see [`crate::Shape`].
    #[serde(default)]
    pub call_us: f64,
    /// A transfer that the cache makes for itself: a page fault, read-ahead, write-back.
    pub paging_us: f64,
    /// Percent of a request's cost that is spent before it reaches the adapter; the rest is spent after the interrupt.
    pub before_percent: f64,
    /// A buffered read.
    pub buffered_read_us: f64,
    /// Each byte copied out of the file-system cache.
    pub buffered_read_ns_per_byte: f64,
    /// What each byte costs on top in a read as long as a cache unit or longer, whose buffer the processor's own cache no longer holds.
    pub large_read_ns_per_byte: f64,
    /// A buffered write.
    pub buffered_write_us: f64,
    /// Each byte copied into the file-system cache.
    pub buffered_write_ns_per_byte: f64,
    /// What each byte beyond a cache unit costs on top in one write.
    pub large_write_ns_per_byte: f64,
    /// Each byte that the lazy writer writes back.
    pub writeback_ns_per_byte: f64,
    /// What a buffered request costs that the system charges to no program.
    pub buffered_uncharged_us: f64,
    /// Each byte that the processor reads to compute parity.
    pub parity_ns_per_byte: f64,
    /// The part of that for each byte of new data, which a writer's own thread reads into the parity and the system charges to the program. The
    /// rest is done by a thread of the system when the old data are there.
    pub parity_charged_ns_per_byte: f64,
}

/// The file system, its cache, and the layers that cut requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// Its name.
    pub name: String,
    /// Its block.
    pub block_bytes: u32,
    /// The longest command sent to a drive; longer requests are cut.
    pub command_bytes: u64,
    /// The unit of read-ahead and write-back.
    pub unit_bytes: u64,
    /// Memory for file data.
    pub cache_bytes: u64,
    /// Dirty data beyond which writers wait.
    pub dirty_bytes: u64,
    /// Sequential requests before read-ahead begins.
    pub sequential_requests: u32,
    /// Units read ahead of the reader.
    pub read_ahead_units: u32,
    /// So many times those where the program says that it reads in order; 1 where that changes nothing.
    #[serde(default = "one")]
    pub sequential_hint_factor: u32,
    /// Write-backs outstanding at a time.
    pub writeback_depth: u32,
    /// Dirty data beyond which it is written back without waiting for the lazy writer.
    pub background_bytes: u64,
    /// Write-backs keep to the views that the cache maps, and begin anywhere in one unless a writer is known to go in order.
    pub writeback_by_views: bool,
    /// From the first dirty page to the first pass of the lazy writer.
    pub writeback_first_ms: f64,
    /// From one pass to the next.
    pub writeback_period_ms: f64,
    /// A write beyond the end of the data waits for the one before it.
    pub extend_one_at_a_time: bool,
    /// A write-through also writes the file system's log.
    pub write_through_logs: bool,
    /// Synchronisation empties the drives' caches too.
    pub sync_flushes_drives: bool,
}

/// What a target is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// Which drive.
    pub drive: String,
    /// How many.
    pub disks: u32,
    /// On how many buses; they are filled in the order of the disks.
    pub buses: u32,
    /// Disks that a bus gets before the next one gets any.
    #[serde(default = "one")]
    pub bus_disks: u32,
    /// Chunk of the stripe over them.
    pub stripe_bytes: u64,
    /// The drives' write caches are on.
    pub wce: bool,
}

fn one() -> u32 {
    1
}

impl Processor {
    /// Divides every cost: the same processor, so many times as fast.
    pub(crate) fn speed_up(&mut self, by: f64) {
        let requests = [&mut self.request_us, &mut self.request_ns_per_byte, &mut self.call_us, &mut self.paging_us];
        let reads = [&mut self.buffered_read_us, &mut self.buffered_read_ns_per_byte, &mut self.large_read_ns_per_byte];
        let writes =
            [&mut self.buffered_write_us, &mut self.buffered_write_ns_per_byte, &mut self.large_write_ns_per_byte];
        let own = [&mut self.writeback_ns_per_byte, &mut self.buffered_uncharged_us];
        let parity = [&mut self.parity_ns_per_byte, &mut self.parity_charged_ns_per_byte];
        for cost in requests.into_iter().chain(reads).chain(writes).chain(own).chain(parity) {
            *cost /= by;
        }
    }
}

/// Kinds of drive: a line each.
macro_rules! drives {
    ($($(#[$about:meta])* $name:ident($model:ty),)*) => {
        /// A drive or what takes its place.
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
    /// A rotating disk on a shared bus.
    Disk(DiskDrive),
    /// A solid-state drive.
    Flash(FlashDrive),
    /// A volume of a cloud, limited by quotas.
    Cloud(CloudVolume),
    /// A disk that a hypervisor serves.
    Virtio(VirtioDisk),
    /// A volume behind a network.
    Network(NetworkVolume),
}

impl Drive {
    /// The numbers that calibration may move.
    pub fn tunable(&mut self) -> Vec<Tunable<'_>> {
        self.model_mut().tunable()
    }
}
