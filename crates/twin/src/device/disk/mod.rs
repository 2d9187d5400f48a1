//! A rotating disk: mechanics, on-board cache, and the drive's own processor.
//!
//! What is here schedules nothing. It answers when: when a block can be sent, when a write ends on the platter, when the
//! processor can take a command. [`scsi`] turns the answers into events.

pub mod drive;
pub mod geometry;
mod read_cache;
mod scsi;
mod seek;

use crate::device::{Slot, ms, us};
use drive::{DiskDrive, Firmware, spread};
use geometry::Geometry;
use machine::Nanos;
use read_cache::ReadCache;
use seek::Seek;
use std::collections::VecDeque;

/// Commands among which a drive chooses its next: more would take its processor longer than the arm gains. It is more than the drives of
/// the 1997 study could hold.
const CHOICE: usize = 1024;

/// Work that has waited so many times as long as its way to the head takes more comes first: it is done before a second revolution passes it by.
const AGEING: Nanos = 8;

/// The times of [`Firmware`] in nanoseconds.
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
            queued_cycle: us(f.queued_cycle_us),
        }
    }
}

/// Work for the platter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MediaWork {
    /// First block.
    lba: u64,
    /// Block after the last.
    end: u64,
    /// Writes; else it reads.
    write: bool,
    /// The command that waits for it; a cached write has none any more.
    command: Option<u32>,
    /// When it became ready.
    since: Nanos,
}

/// What the head does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    /// Nothing that anyone waits for (it may prefetch).
    Free,
    /// This work, until then.
    Busy(MediaWork, Nanos),
    /// Still kept by data on its way into the cache that a command waits for, or by the rest of a track; an event will come.
    Held,
}

/// A piece of work of the drive's processor on a write that waits for the platter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chore {
    /// The command.
    command: u32,
    /// Its data is on the platter; else it is on its way there.
    written: bool,
    /// Work left.
    left: Nanos,
}

/// From `now`, when a head on block `head` could begin with block `lba`: the arm, then the platter.
fn reach(seek: &Seek, geometry: &Geometry, head: u64, lba: u64, write: bool, now: Nanos) -> Nanos {
    let arrived = now + seek.time(geometry.place(head), geometry.place(lba), write);
    arrived + geometry.rotation_to(lba, arrived)
}

/// One disk.
struct Disk {
    geometry: Geometry,
    seek: Seek,
    firmware: FirmwareTimes,
    cache: ReadCache,
    /// Which bus it is on.
    bus: u32,
    /// Its write cache is on.
    wce: bool,
    /// Commands that it takes at a time.
    queue_limit: u32,
    /// The commands with which the adapter has asked for the bus, or will at a time that is scheduled.
    selecting: VecDeque<u32>,
    /// When the processor looks at the next command.
    free_at: Nanos,
    /// When its last connection ends, or ended.
    left_bus: Nanos,
    /// Work of the processor.
    chores: VecDeque<Chore>,
    /// The first chore is being done.
    working: bool,
    /// What the head does.
    media: Media,
    /// Work waiting for the head.
    pending: Vec<MediaWork>,
    /// Where the head is.
    head_lba: u64,
    write_limit: u64,
    write_used: u64,
    /// Writes that the head does one after the other before it loses a revolution.
    list_limit: u32,
    /// Writes done so without a pause.
    list: u32,
    /// When the head ended its last work.
    media_end: Nanos,
    /// Time with the head under work that someone waited for.
    media_busy: Nanos,
}

impl Disk {
    /// A disk at rest.
    fn new(drive: &DiskDrive, slot: Slot) -> Self {
        let (zones, revolution) = (drive.all_zones(), drive.revolution_of(slot.number));
        let geometry =
            Geometry::new(revolution, drive.heads, ms(drive.track_skew_ms), ms(drive.cylinder_skew_ms), &zones);
        // Spindles are not synchronised.
        let geometry = geometry.turned((spread(slot.number) * revolution as f64) as Nanos);
        let points = drive.seek.iter().map(|&(cylinders, time)| (cylinders, ms(time))).collect();
        let settle = ms(drive.write_settle_ms);
        let seek = Seek::new(points, settle, ms(drive.head_switch_ms), ms(drive.write_head_switch_ms));
        Disk {
            geometry,
            seek,
            firmware: FirmwareTimes::from(&drive.firmware),
            cache: ReadCache::new(&drive.cache),
            bus: slot.bus,
            wce: slot.wce,
            queue_limit: drive.queue,
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

    /// Whether the write buffer has room for `bytes` more.
    fn has_room(&self, bytes: u64) -> bool {
        self.write_used == 0 || self.write_used + bytes <= self.write_limit
    }

    /// Takes room in the write buffer.
    fn take_room(&mut self, bytes: u64) {
        self.write_used += bytes;
    }

    /// Gives room back.
    fn give_room(&mut self, bytes: u64) {
        self.write_used -= bytes;
    }

    /// From `now`, when the head could begin with a block.
    fn reach(&self, lba: u64, write: bool, now: Nanos) -> Nanos {
        reach(&self.seek, &self.geometry, self.head_lba, lba, write, now)
    }

    /// Takes the work with which the head can begin soonest; what waits gains on it, so that nothing waits for ever.
    fn pick(&mut self, now: Nanos) -> Option<MediaWork> {
        let cost = |work: &MediaWork| {
            // What follows on the block just done is met without leaving the track, whatever else is nearer after a skew.
            let follows = work.lba == self.head_lba + 1 && self.media_end == now;
            let wait = if follows { 0 } else { self.reach(work.lba, work.write, now) - now };
            wait.saturating_sub((now - work.since) / AGEING)
        };
        // Work whose data is still on the bus is not there yet.
        let ready = |index: &usize| self.pending[*index].since <= now;
        let best = match self.pending.len() {
            1 => Some(0).filter(ready),
            n => (0..n.min(CHOICE))
                .filter(ready)
                .min_by_key(|&index| (cost(&self.pending[index]), self.pending[index].lba)),
        }?;
        Some(self.pending.remove(best))
    }

    /// Sends the head to a write: when its last block is on the platter.
    fn begin_write(&mut self, work: &MediaWork, now: Nanos) -> Nanos {
        self.cache.stop_prefetch(&self.geometry, now);
        self.cache.forget(work.lba, work.end);
        if self.media_end != now {
            self.list = 0;
        }
        // A new list of work is made while the platter turns on.
        let full = self.list_limit > 0 && self.list >= self.list_limit;
        let from = if full { now + self.firmware.half_turnaround } else { now };
        let start = self.reach(work.lba, true, from);
        self.head_lba = work.end - 1;
        self.list = if full { 1 } else { self.list + 1 };
        self.media_end = start + self.geometry.end(work.end) - self.geometry.start(work.lba);
        self.media_end
    }

    /// Sends the head to a read that the cache does not hold: when its last block is in the cache. It reads on from there.
    fn begin_read(&mut self, work: &MediaWork, now: Nanos) -> Nanos {
        self.cache.stop_prefetch(&self.geometry, now);
        let start = self.reach(work.lba, false, now);
        self.head_lba = work.end - 1;
        self.cache.begin(&self.geometry, work.lba, work.end, start);
        self.media_end = start + self.geometry.end(work.end) - self.geometry.start(work.lba);
        self.media_end
    }

    /// Until when the head must stay with its prefetch.
    fn prefetch_holds_until(&mut self, now: Nanos) -> Nanos {
        let until = self.cache.end_prefetch(&self.geometry, now);
        if let Some(head) = self.cache.head(&self.geometry, until) {
            self.head_lba = head;
        }
        until
    }
}
