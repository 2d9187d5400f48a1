//! A machine as data: what a TOML description may say.
//!
//! Every time is in the unit of its name. Where each number comes from stands in the table `[sources]`, by path; the
//! word `fitted` there marks a number that was calibrated.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// Each byte of parity computed on the processor.
    pub parity_ns_per_byte: f64,
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
    /// Write-backs outstanding at a time.
    pub writeback_depth: u32,
    /// The least time from the start of one unit's write-back to the next of the same worker.
    pub writeback_pace_us: f64,
    /// Without the sequential hint, one unit in so many is written in two pieces by requests shorter than a unit (0: none).
    pub writeback_split_one_in: u32,
    /// Period of the lazy writer.
    pub writeback_period_ms: f64,
    /// A write beyond the end of the data waits for the one before it.
    pub extend_one_at_a_time: bool,
    /// A write-through also writes the file system's log.
    pub write_through_logs: bool,
    /// Synchronisation empties the drives' caches too.
    pub sync_flushes_drives: bool,
}

/// Main memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Its size.
    pub bytes: u64,
    /// Ways of moving it and their rates.
    pub rates: Vec<MemoryRate>,
}

/// One way of moving memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryRate {
    /// `read`, `write`, `copy`, or a finer name.
    pub kind: String,
    /// Its rate.
    pub bytes_per_s: f64,
}

/// What a target is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// Which drive.
    pub drive: String,
    /// How many.
    pub disks: u32,
    /// On how many buses, dealt out in turn.
    pub buses: u32,
    /// Chunk of the stripe over them.
    pub stripe_bytes: u64,
    /// The drives' write caches are on.
    pub wce: bool,
}

/// A kind of bus that several drives share. Times of phases are those that one connection spends in them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusKind {
    /// What it advertises.
    pub advertised_bytes_per_s: f64,
    /// Rate of a data phase toward the host.
    pub in_bytes_per_s: f64,
    /// Rate of a data phase toward the drive.
    pub out_bytes_per_s: f64,
    /// Arbitration.
    pub arbitrate_us: f64,
    /// The winner takes the bus.
    pub arbitrate_win_us: f64,
    /// The adapter selects a drive.
    pub select_us: f64,
    /// A drive selects the adapter.
    pub reselect_us: f64,
    /// End of either.
    pub select_end_us: f64,
    /// The adapter's messages: identification and queue tag.
    pub message_out_us: f64,
    /// The command itself.
    pub command_us: f64,
    /// The drive's messages around a disconnection.
    pub disconnect_us: f64,
    /// The drive's identification after reselection.
    pub identify_us: f64,
    /// End of a data phase.
    pub data_end_us: f64,
    /// Status.
    pub status_us: f64,
    /// Command complete, bus free.
    pub complete_us: f64,
}

/// A drive or what takes its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Drive {
    /// A rotating disk on a shared bus.
    Disk(Box<DiskDrive>),
    /// A solid-state drive.
    Flash(crate::flash::FlashDrive),
    /// A volume of a cloud, limited by quotas.
    Cloud(crate::cloud::CloudVolume),
    /// A disk that a hypervisor serves.
    Virtio(crate::virtio::VirtioDisk),
}

/// A rotating disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskDrive {
    /// What it is.
    pub about: String,
    /// The bus it is made for.
    pub bus: String,
    /// Spindle speed.
    pub rpm: f64,
    /// Surfaces with data.
    pub heads: u64,
    /// Zones from the outside in: cylinders and sectors per track.
    #[serde(default)]
    pub zones: Vec<(u64, u64)>,
    /// Factor on the cylinders of each zone of the table; the cylinders in all stay as they are, so the innermost zones lose what the others gain.
    #[serde(default)]
    pub zone_stretch: Option<f64>,
    /// Zones by a law, instead of a table.
    #[serde(default)]
    pub zone_law: Option<ZoneLaw>,
    /// Skew of a head change.
    pub track_skew_ms: f64,
    /// Skew of a cylinder change.
    pub cylinder_skew_ms: f64,
    /// Change of surface in a read.
    pub head_switch_ms: f64,
    /// Change of surface in a write.
    pub write_head_switch_ms: f64,
    /// Seek time in ms by distance in cylinders.
    pub seek: Vec<(u64, f64)>,
    /// What a write adds to a seek.
    pub write_settle_ms: f64,
    /// On-board cache.
    pub cache: DiskCache,
    /// The drive's own processor.
    pub firmware: Firmware,
    /// Commands that it takes at a time.
    pub queue: u32,
}

impl DiskDrive {
    /// The table of zones, stretched.
    pub fn stretched_zones(&self) -> Vec<(u64, u64)> {
        let mut left: u64 = self.zones.iter().map(|&(cylinders, _)| cylinders).sum();
        let stretch = self.zone_stretch.unwrap_or(1.0);
        let mut zones = Vec::with_capacity(self.zones.len());
        for &(cylinders, sectors) in &self.zones {
            let cylinders = ((cylinders as f64 * stretch).round() as u64).min(left);
            if cylinders > 0 {
                left -= cylinders;
                zones.push((cylinders, sectors));
            }
        }
        if let Some(last) = zones.last_mut() {
            last.0 += left;
        }
        zones
    }
}

/// Zones by a law: recording density is even, so sectors per track fall evenly with the radius once the electronics' top rate no longer
/// limits the outermost tracks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneLaw {
    /// Cylinders in all.
    pub cylinders: u64,
    /// Sectors per track of the outermost zone.
    pub outer_sectors: u64,
    /// Sectors per track at the innermost cylinder.
    pub inner_sectors: u64,
    /// Percent of the cylinders that the outermost zone takes.
    pub outer_percent: f64,
    /// Zones within it.
    pub inner_zones: u64,
}

impl ZoneLaw {
    /// The zones as a table.
    pub fn zones(&self) -> Vec<(u64, u64)> {
        let outer = (self.cylinders as f64 * self.outer_percent / 100.0).round() as u64;
        let (rest, n) = (self.cylinders - outer, self.inner_zones);
        let mut zones = vec![(outer, self.outer_sectors)];
        let fall = (self.outer_sectors - self.inner_sectors) as f64;
        zones.extend((0..n).map(|i| {
            let sectors = self.outer_sectors as f64 - fall * (i as f64 + 0.5) / n as f64;
            (rest * (i + 1) / n - rest * i / n, sectors as u64)
        }));
        zones
    }
}

/// The cache on a drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskCache {
    /// Read segments.
    pub segments: u32,
    /// Bytes of one.
    pub segment_bytes: u64,
    /// Data that was sent may be sent again.
    pub keeps_sent_data: bool,
    /// A prefetch goes on to the end of its track before anything else is served.
    pub prefetches_whole_tracks: bool,
    /// Bytes of writes that it takes.
    pub write_bytes: u64,
    /// Writes that the head does one after the other before the drive makes a new list and loses a revolution (0: any number).
    pub chain_commands: u32,
    /// Bytes of such writes (0: any number).
    pub chain_bytes: u64,
}

/// Times of the drive's own processor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Firmware {
    /// Work on a read with the bus held, beyond the wire's phases.
    pub read_us: f64,
    /// The least time from selection to the end of a read.
    pub read_floor_us: f64,
    /// Work after a read before the next command is looked at.
    pub read_recover_us: f64,
    /// The part of a recovery in which a selection is answered late and so holds the bus.
    pub select_wait_us: f64,
    /// What a read costs more of data that was sent before.
    pub reread_us: f64,
    /// Work on a write with the bus held.
    pub write_us: f64,
    /// Work after a write before the next command is looked at.
    pub write_recover_us: f64,
    /// Work on a write that waits for the platter, half before and half after, off the bus.
    pub turnaround_us: f64,
    /// Before the end of each such write on the platter, the time in which the processor does nothing else.
    pub attention_us: f64,
    /// What each other command that waits in the drive's queue adds to a read.
    pub queue_us: f64,
}
