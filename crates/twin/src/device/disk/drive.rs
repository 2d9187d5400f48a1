use super::Disk;
use super::geometry::SECTOR;
use crate::bus::BusKind;
use crate::device::{Device, Drives, Model, Slot, Tunable};
use machine::{Layer, LayerKind, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskDrive {
    pub about: String,
    pub bus: String,
    /// The data sheet's highest rate, if not that of the zones.
    #[serde(default)]
    pub advertised_bytes_per_s: Option<f64>,
    pub rpm: f64,
    /// A spindle's maximum deviation.
    pub rpm_tolerance_percent: f64,
    pub heads: u64,
    /// From the outside in: cylinders and sectors per track.
    #[serde(default)]
    pub zones: Vec<(u64, u64)>,
    /// Multiplies each zone's cylinders; the total is fixed, so the innermost zones shrink.
    #[serde(default)]
    pub zone_stretch: Option<f64>,
    /// Replaces a table of zones.
    #[serde(default)]
    pub zone_law: Option<ZoneLaw>,
    pub track_skew_ms: f64,
    pub cylinder_skew_ms: f64,
    pub head_switch_ms: f64,
    pub write_head_switch_ms: f64,
    /// Milliseconds by distance in cylinders.
    pub seek: Vec<(u64, f64)>,
    /// Extra for a write after a seek.
    pub write_settle_ms: f64,
    pub cache: DiskCache,
    pub firmware: Firmware,
    pub queue: u32,
    /// Reads sent at a time, if fewer than `queue`: the next one selects the drive when one ends,
    /// while its firmware recovers.
    #[serde(default)]
    pub queue_reads: Option<u32>,
}

impl DiskDrive {
    pub(super) fn revolution(&self) -> Nanos {
        (60e9 / self.rpm).round() as Nanos
    }

    pub(super) fn revolution_of(&self, number: u32) -> Nanos {
        let differs = if number == 0 { 0.0 } else { 2.0 * spread(number) - 1.0 };
        (60e9 / (self.rpm * (1.0 + differs * self.rpm_tolerance_percent / 100.0))).round() as Nanos
    }

    pub(super) fn all_zones(&self) -> Vec<(u64, u64)> {
        self.zone_law.map_or_else(|| self.stretched_zones(), |law| law.zones())
    }

    fn stretched_zones(&self) -> Vec<(u64, u64)> {
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

/// A golden-ratio sequence in 0..1: its first values are well separated.
pub(super) fn spread(number: u32) -> f64 {
    (f64::from(number) * 0.618_033_988_749_895).fract()
}

/// Sectors per track fall linearly with the radius (constant linear density), except on the
/// outermost tracks, which the electronics limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneLaw {
    pub cylinders: u64,
    pub outer_sectors: u64,
    pub inner_sectors: u64,
    /// Cylinders in the outermost zone.
    pub outer_percent: f64,
    pub inner_zones: u64,
}

impl ZoneLaw {
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskCache {
    pub segments: u32,
    pub segment_bytes: u64,
    /// The part of a segment that is filled again once it was sent whole; none: each block.
    #[serde(default)]
    pub freed_bytes: Option<u64>,
    pub keeps_sent_data: bool,
    /// A prefetch ends its track before the drive serves anything else.
    pub prefetches_whole_tracks: bool,
    /// A hit restarts a prefetch that stopped with its segment full.
    #[serde(default = "yes")]
    pub prefetches_on_idle_hits: bool,
    /// Reads of what the cache holds do not wait for the head's writes.
    #[serde(default = "yes")]
    pub answers_during_writes: bool,
    /// The head does not wait for the last data of a write: the bus is faster.
    #[serde(default = "yes")]
    pub writes_on_arrival: bool,
    pub write_bytes: u64,
    /// Back-to-back writes before the drive builds a new list and loses a revolution (0: no limit).
    pub write_list: u32,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Firmware {
    /// With the bus held, beyond the wire phases.
    pub read_us: f64,
    /// Minimum from selection to the end of a read.
    pub read_floor_us: f64,
    /// After a read, before the next command is examined.
    pub read_recover_us: f64,
    /// Minimum from one read's selection to the next command's: processing overlaps the transfer.
    pub read_cycle_us: f64,
    /// The last part of recovery: the drive answers a selection late and so holds the bus. The
    /// adapter serves such drives in the order in which it received their commands.
    pub select_wait_us: f64,
    /// Extra for data already sent.
    pub reread_us: f64,
    /// With the bus held.
    pub write_us: f64,
    /// After a write, before the next command is examined.
    pub write_recover_us: f64,
    /// The extra time, off the bus, of a cached write while the drive writes nothing.
    #[serde(default)]
    pub write_rest_us: f64,
    /// The extra time, with the bus held, of a write right behind another command of the drive.
    pub queued_write_us: f64,
    /// Minimum from such a command's selection to the next; for a write, after the extra time.
    #[serde(default)]
    pub queued_cycle_us: f64,
    /// Of a write that waits for the platter: half before, half after, off the bus.
    pub turnaround_us: f64,
    /// The controller does nothing else for this time before the end of each such write.
    pub attention_us: f64,
}

impl Model for DiskDrive {
    fn build(&self, slot: Slot) -> Box<dyn Device> {
        Box::new(Disk::new(self, slot))
    }

    fn bus(&self) -> Option<&str> {
        Some(&self.bus)
    }

    fn layers(&self, drives: &Drives<'_>) -> Vec<Layer> {
        let buses = drives.buses.min(drives.count);
        let rate = drives.bus_kinds[&self.bus].advertised_bytes_per_s * f64::from(buses);
        // Without a data sheet: the media rate of the outermost track.
        let outer = self.advertised_bytes_per_s.or_else(|| {
            let &(_, sectors) = self.all_zones().first()?;
            Some(sectors as f64 * SECTOR as f64 / (self.revolution() as f64 * 1e-9))
        });
        let mut disks = drives.disks(outer);
        disks.settings.insert("write_cache".into(), if drives.wce { "on" } else { "off" }.into());
        disks.settings.insert("rotational".into(), "1".into());
        (disks.facts.rotational, disks.facts.write_cache) = (Some(true), Some(drives.wce));
        vec![drives.layer(LayerKind::Bus, buses, &self.bus, Some(rate)), disks]
    }

    fn scale_latency(&mut self, by: f64) {
        let f = &mut self.firmware;
        let reads =
            [&mut f.read_us, &mut f.read_floor_us, &mut f.read_recover_us, &mut f.select_wait_us];
        let waits = [&mut f.queued_write_us, &mut f.queued_cycle_us, &mut f.attention_us];
        let writes =
            [&mut f.write_us, &mut f.write_rest_us, &mut f.write_recover_us, &mut f.turnaround_us]
                .into_iter()
                .chain(waits);
        for time in reads.into_iter().chain(writes).chain([&mut f.reread_us, &mut f.read_cycle_us])
        {
            *time *= by;
        }
    }

    fn tunable(&mut self) -> Vec<Tunable<'_>> {
        let mut numbers = vec![
            Tunable::new("rpm", &mut self.rpm),
            Tunable::new("track_skew_ms", &mut self.track_skew_ms),
            Tunable::new("firmware.read_us", &mut self.firmware.read_us),
            Tunable::new("firmware.write_us", &mut self.firmware.write_us),
        ];
        numbers.extend(self.seek.last_mut().map(|last| Tunable::new("seek", &mut last.1)));
        numbers
    }

    fn contradiction(&self, buses: &BTreeMap<String, BusKind>) -> Option<(&'static str, String)> {
        let problem = |key: &'static str, reason: &str| Some((key, reason.to_owned()));
        if !buses.contains_key(&self.bus) {
            return Some(("bus", format!("unknown bus '{}'; name one of [buses]", self.bus)));
        }
        if self.zone_law.is_some() != self.zones.is_empty() {
            return problem("zones", "give either zones or zone_law");
        }
        if self.zones.iter().any(|&(cylinders, sectors)| cylinders == 0 || sectors == 0) {
            return problem("zones", "a zone has no cylinders or no sectors");
        }
        if self
            .zone_law
            .is_some_and(|law| law.inner_sectors > law.outer_sectors || law.inner_zones == 0)
        {
            return problem(
                "zone_law",
                "inner_sectors must not exceed outer_sectors, and there must be inner zones",
            );
        }
        if self.seek.is_empty()
            || self.seek.windows(2).any(|pair| pair[0].0 >= pair[1].0 || pair[0].1 > pair[1].1)
        {
            return problem("seek", "distances and times must ascend, and there must be one");
        }
        if self.head_switch_ms > self.track_skew_ms
            || self.write_head_switch_ms > self.track_skew_ms
        {
            return problem(
                "track_skew_ms",
                "a head switch takes longer than the skew that hides it",
            );
        }
        if self.track_skew_ms * 1e-3 >= 60.0 / self.rpm {
            return problem("track_skew_ms", "is more than a revolution");
        }
        if self.firmware.select_wait_us > self.firmware.read_recover_us {
            return problem(
                "firmware.select_wait_us",
                "is more than read_recover_us, of which it is a part",
            );
        }
        None
    }
}
