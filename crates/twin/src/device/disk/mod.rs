//! A rotating disk: this module computes times, [`scsi`] makes events of them.

pub mod drive;
pub mod geometry;
mod read_cache;
mod scsi;
mod seek;

use crate::device::Slot;
use crate::units::{ms, us};
use drive::{DiskDrive, Firmware, spread};
use geometry::Geometry;
use machine::Nanos;
use read_cache::ReadCache;
use seek::Seek;
use std::collections::VecDeque;

/// Choosing among more takes longer than the seek time it saves; the 1997 study's drives queue
/// fewer.
const CHOICE: usize = 1024;

/// Work that waited this many times its positioning time gains priority.
const AGEING: Nanos = 8;

#[derive(Debug, Clone, Copy)]
struct FirmwareTimes {
    read: Nanos,
    read_floor: Nanos,
    read_recover: Nanos,
    select_wait: Nanos,
    reread: Nanos,
    write: Nanos,
    write_recover: Nanos,
    half_turnaround: Nanos,
    attention: Nanos,
    read_cycle: Nanos,
    queued_write: Nanos,
    write_rest: Nanos,
    queued_cycle: Nanos,
}

impl From<&Firmware> for FirmwareTimes {
    fn from(f: &Firmware) -> Self {
        FirmwareTimes {
            read: us(f.read_us),
            read_floor: us(f.read_floor_us),
            read_recover: us(f.read_recover_us),
            select_wait: us(f.select_wait_us),
            reread: us(f.reread_us),
            write: us(f.write_us),
            write_recover: us(f.write_recover_us),
            half_turnaround: us(f.turnaround_us / 2.0),
            attention: us(f.attention_us),
            read_cycle: us(f.read_cycle_us),
            queued_write: us(f.queued_write_us),
            write_rest: us(f.write_rest_us),
            queued_cycle: us(f.queued_cycle_us),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MediaWork {
    lba: u64,
    end: u64,
    write: bool,
    /// `None` for a cached write.
    command: Option<u32>,
    since: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    Free,
    Busy(MediaWork, Nanos),
    /// By data that a command waits for, or by the rest of a track.
    Held,
}

/// The controller's work on a write that waits for the platter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chore {
    command: u32,
    written: bool,
    left: Nanos,
}

fn reach(seek: &Seek, geometry: &Geometry, head: u64, lba: u64, write: bool, now: Nanos) -> Nanos {
    let arrived = now + seek.time(geometry.place(head), geometry.place(lba), write);
    arrived + geometry.rotation_to(lba, arrived)
}

struct Disk {
    geometry: Geometry,
    seek: Seek,
    firmware: FirmwareTimes,
    cache: ReadCache,
    prefetches_on_idle_hits: bool,
    answers_during_writes: bool,
    writes_on_arrival: bool,
    bus: u32,
    wce: bool,
    queue_limit: u32,
    reads_limit: u32,
    reads: u32,
    selecting: VecDeque<u32>,
    free_at: Nanos,
    left_bus: Nanos,
    chores: VecDeque<Chore>,
    working: bool,
    media: Media,
    pending: Vec<MediaWork>,
    head_lba: u64,
    write_limit: u64,
    write_used: u64,
    list_limit: u32,
    list: u32,
    media_end: Nanos,
    media_busy: Nanos,
}

impl Disk {
    fn new(drive: &DiskDrive, slot: Slot) -> Self {
        let (zones, revolution) = (drive.all_zones(), drive.revolution_of(slot.number));
        let geometry = Geometry::new(
            revolution,
            drive.heads,
            ms(drive.track_skew_ms),
            ms(drive.cylinder_skew_ms),
            &zones,
        );
        // Spindles are not synchronised.
        let geometry = geometry.turned((spread(slot.number) * revolution as f64) as Nanos);
        let points = drive.seek.iter().map(|&(cylinders, time)| (cylinders, ms(time))).collect();
        let settle = ms(drive.write_settle_ms);
        let seek =
            Seek::new(points, settle, ms(drive.head_switch_ms), ms(drive.write_head_switch_ms));
        Disk {
            geometry,
            seek,
            firmware: FirmwareTimes::from(&drive.firmware),
            cache: ReadCache::new(&drive.cache),
            prefetches_on_idle_hits: drive.cache.prefetches_on_idle_hits,
            answers_during_writes: drive.cache.answers_during_writes,
            writes_on_arrival: drive.cache.writes_on_arrival,
            bus: slot.bus,
            wce: slot.wce,
            queue_limit: drive.queue,
            reads_limit: drive.queue_reads.unwrap_or(drive.queue),
            reads: 0,
            selecting: VecDeque::new(),
            free_at: 0,
            left_bus: 0,
            chores: VecDeque::new(),
            working: false,
            media: Media::Free,
            pending: Vec::new(),
            head_lba: 0,
            write_limit: drive.cache.write_bytes,
            write_used: 0,
            list_limit: drive.cache.write_list,
            list: 0,
            media_end: 0,
            media_busy: 0,
        }
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.write_used == 0 || self.write_used + bytes <= self.write_limit
    }

    fn take_room(&mut self, bytes: u64) {
        self.write_used += bytes;
    }

    fn give_room(&mut self, bytes: u64) {
        self.write_used -= bytes;
    }

    fn reach(&self, lba: u64, write: bool, now: Nanos) -> Nanos {
        reach(&self.seek, &self.geometry, self.head_lba, lba, write, now)
    }

    /// Takes what the head can start soonest; waiting raises priority, so nothing starves.
    fn pick(&mut self, now: Nanos) -> Option<MediaWork> {
        let cost = |work: &MediaWork| {
            // A sequential successor needs no track change, so it comes first even if another block
            // is nearer after a skew.
            let follows = work.lba == self.head_lba + 1 && self.media_end == now;
            let wait = if follows { 0 } else { self.reach(work.lba, work.write, now) - now };
            wait.saturating_sub((now - work.since) / AGEING)
        };
        // Work whose data are still on the bus is not ready.
        let ready = |index: &usize| self.pending[*index].since <= now;
        let best = match self.pending.len() {
            1 => Some(0).filter(ready),
            n => (0..n.min(CHOICE))
                .filter(ready)
                .min_by_key(|&index| (cost(&self.pending[index]), self.pending[index].lba)),
        }?;
        Some(self.pending.remove(best))
    }

    fn begin_write(&mut self, work: &MediaWork, now: Nanos) -> Nanos {
        self.cache.stop_prefetch(&self.geometry, now);
        self.cache.forget(work.lba, work.end);
        if self.media_end != now {
            self.list = 0;
        }
        // Building a new work list costs a revolution.
        let full = self.list_limit > 0 && self.list >= self.list_limit;
        let from = if full { now + self.firmware.half_turnaround } else { now };
        let start = self.reach(work.lba, true, from);
        self.head_lba = work.end - 1;
        self.list = if full { 1 } else { self.list + 1 };
        self.media_end = start + self.geometry.end(work.end) - self.geometry.start(work.lba);
        self.media_end
    }

    fn begin_read(&mut self, work: &MediaWork, now: Nanos) -> Nanos {
        self.cache.stop_prefetch(&self.geometry, now);
        let start = self.reach(work.lba, false, now);
        self.head_lba = work.end - 1;
        self.cache.begin(&self.geometry, work.lba, work.end, start);
        self.media_end = start + self.geometry.end(work.end) - self.geometry.start(work.lba);
        self.media_end
    }

    fn prefetch_holds_until(&mut self, now: Nanos) -> Nanos {
        let until = self.cache.end_prefetch(&self.geometry, now);
        if let Some(head) = self.cache.head(&self.geometry, until) {
            self.head_lba = head;
        }
        until
    }
}
