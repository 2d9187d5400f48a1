//! A rotating disk: mechanics, on-board cache, and the drive's own processor.
//!
//! The disk itself schedules nothing. It answers when: when a block can be sent, when a write ends on the platter, when the
//! processor can take a command. [`crate::world`] turns the answers into events.

pub mod geometry;
pub mod read_cache;
pub mod seek;

use crate::description::{DiskDrive, Firmware};
use geometry::{Geometry, SECTOR};
use machine::Nanos;
use read_cache::ReadCache;
use seek::Seek;
use std::collections::VecDeque;

/// Commands among which a drive chooses its next: more would take its processor longer than the arm gains. It is more than the drives of
/// the 1997 study could hold.
const CHOICE: usize = 1024;

/// Nanoseconds from microseconds of a description.
pub(crate) fn us(value: f64) -> Nanos {
    (value * 1e3).round() as Nanos
}

/// Nanoseconds from milliseconds of a description.
pub(crate) fn ms(value: f64) -> Nanos {
    (value * 1e6).round() as Nanos
}

/// The times of [`Firmware`] in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct FirmwareTimes {
    pub read: Nanos,
    pub read_floor: Nanos,
    pub read_recover: Nanos,
    pub select_wait: Nanos,
    pub reread: Nanos,
    pub write: Nanos,
    pub write_recover: Nanos,
    pub half_turnaround: Nanos,
    pub attention: Nanos,
    pub queue: Nanos,
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
            queue: us(f.queue_us),
        }
    }
}

/// Work for the platter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaWork {
    /// First block.
    pub lba: u64,
    /// Block after the last.
    pub end: u64,
    /// Writes; else it reads.
    pub write: bool,
    /// The command that waits for it; a cached write has none any more.
    pub command: Option<u32>,
    /// When it became ready.
    pub since: Nanos,
}

/// What the head does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// Nothing that anyone waits for (it may prefetch).
    Free,
    /// This work, until then.
    Busy(MediaWork, Nanos),
    /// Still kept by data on its way into the cache that a command waits for, or by the rest of a track; an event will come.
    Held,
}

/// A piece of work of the drive's processor on a write that waits for the platter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chore {
    /// The command.
    pub command: u32,
    /// Its data is on the platter; else it is on its way there.
    pub written: bool,
    /// Work left.
    pub left: Nanos,
}

/// One disk.
pub struct Disk {
    pub geometry: Geometry,
    seek: Seek,
    pub firmware: FirmwareTimes,
    pub cache: ReadCache,
    /// Which bus it is on.
    pub bus: u32,
    /// Its write cache is on.
    pub wce: bool,
    /// Commands that it takes at a time.
    pub queue_limit: u32,
    /// Commands at the adapter, not yet sent.
    pub to_send: VecDeque<u32>,
    /// The adapter has asked for the bus, or will at a time that is scheduled.
    pub sending: bool,
    /// Commands in the drive.
    pub inside: u32,
    /// When the processor looks at the next command.
    pub free_at: Nanos,
    /// Work of the processor.
    pub chores: VecDeque<Chore>,
    /// The first chore is being done.
    pub working: bool,
    /// What the head does.
    pub media: Media,
    /// Work waiting for the head.
    pub pending: Vec<MediaWork>,
    /// Where the head is.
    head_lba: u64,
    write_limit: u64,
    write_used: u64,
    /// Writes that the head does one after the other before it loses a revolution.
    chain_limit: (u64, u32),
    /// Bytes and commands of the writes done so without a pause.
    chain: (u64, u32),
    /// When the head ended its last work.
    media_end: Nanos,
    /// Time with the head under work that someone waited for.
    pub media_busy: Nanos,
}

impl Disk {
    /// A disk at rest: which of its volume's members it is, and on which bus.
    pub fn new(drive: &DiskDrive, number: u32, bus: u32, wce: bool) -> Self {
        let zones = drive.zone_law.map_or_else(|| drive.stretched_zones(), |law| law.zones());
        let revolution = (60e9 / drive.rpm).round() as Nanos;
        let geometry = Geometry::new(revolution, drive.heads, ms(drive.track_skew_ms), ms(drive.cylinder_skew_ms), &zones);
        // Golden sections of a revolution: no two of a few spindles stand alike.
        let geometry = geometry.turned((u64::from(number) * revolution / 1000) * 618);
        let points = drive.seek.iter().map(|&(cylinders, time)| (cylinders, ms(time))).collect();
        Disk {
            geometry,
            seek: Seek::new(points, ms(drive.write_settle_ms), ms(drive.head_switch_ms), ms(drive.write_head_switch_ms)),
            firmware: FirmwareTimes::from(&drive.firmware),
            cache: ReadCache::new(&drive.cache),
            bus,
            wce,
            queue_limit: drive.queue,
            to_send: VecDeque::new(),
            sending: false,
            inside: 0,
            free_at: 0,
            chores: VecDeque::new(),
            working: false,
            media: Media::Free,
            pending: Vec::new(),
            head_lba: 0,
            write_limit: drive.cache.write_bytes,
            write_used: 0,
            chain_limit: (drive.cache.chain_bytes, drive.cache.chain_commands),
            chain: (0, 0),
            media_end: 0,
            media_busy: 0,
        }
    }

    /// Back to rest: nothing queued, nothing cached, the clock at zero.
    pub fn rest(&mut self) {
        self.cache.clear();
        self.to_send.clear();
        self.chores.clear();
        self.pending.clear();
        self.media = Media::Free;
        (self.sending, self.working) = (false, false);
        (self.inside, self.free_at, self.head_lba, self.write_used, self.media_busy) = (0, 0, 0, 0, 0);
        (self.chain, self.media_end) = ((0, 0), 0);
    }

    /// Whether the write buffer has room for `bytes` more.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.write_used == 0 || self.write_used + bytes <= self.write_limit
    }

    /// Takes room in the write buffer.
    pub fn take_room(&mut self, bytes: u64) {
        self.write_used += bytes;
    }

    /// Gives room back.
    pub fn give_room(&mut self, bytes: u64) {
        self.write_used -= bytes;
    }

    /// Writes are in the buffer that the platter does not have.
    pub fn dirty(&self) -> bool {
        self.write_used > 0
    }

    /// From `now`, when the head could begin with a block: the arm, then the platter.
    fn reach(&self, lba: u64, write: bool, now: Nanos) -> Nanos {
        let arrived = now + self.seek.time(self.geometry.place(self.head_lba), self.geometry.place(lba), write);
        arrived + self.geometry.rotation_to(lba, arrived)
    }

    /// Takes the work with which the head can begin soonest; what waits gains on it, so that nothing waits for ever.
    pub fn pick(&mut self, now: Nanos) -> Option<MediaWork> {
        let cost = |work: &MediaWork| {
            // What follows on the block just done is met without leaving the track, whatever else is nearer after a skew.
            let follows = work.lba == self.head_lba + 1 && self.media_end == now;
            let wait = if follows { 0 } else { self.reach(work.lba, work.write, now) - now };
            wait.saturating_sub((now - work.since) / 8)
        };
        // Work whose data is still on the bus is not there yet.
        let ready = |index: &usize| self.pending[*index].since <= now;
        let best = match self.pending.len() {
            1 => Some(0).filter(ready),
            n => (0..n.min(CHOICE)).filter(ready).min_by_key(|&index| (cost(&self.pending[index]), self.pending[index].lba)),
        }?;
        Some(self.pending.remove(best))
    }

    /// Sends the head to a write: when its last block is on the platter.
    pub fn begin_write(&mut self, work: &MediaWork, now: Nanos) -> Nanos {
        self.cache.stop_prefetch(&self.geometry, now);
        self.cache.forget(work.lba, work.end);
        if self.media_end != now {
            self.chain = (0, 0);
        }
        let (bytes, commands) = self.chain_limit;
        let broken = (bytes > 0 && self.chain.0 >= bytes) || (commands > 0 && self.chain.1 >= commands);
        // A new list of work is made while the platter turns on.
        let from = if broken { now + self.firmware.half_turnaround } else { now };
        if broken {
            self.chain = (0, 0);
        }
        let start = self.reach(work.lba, true, from);
        self.head_lba = work.end - 1;
        self.chain = (self.chain.0 + (work.end - work.lba) * SECTOR, self.chain.1 + 1);
        self.media_end = start + self.geometry.end(work.end) - self.geometry.start(work.lba);
        self.media_end
    }

    /// Sends the head to a read that the cache does not hold: when its last block is in the cache. It reads on from there.
    pub fn begin_read(&mut self, work: &MediaWork, now: Nanos) -> Nanos {
        self.cache.stop_prefetch(&self.geometry, now);
        let start = self.reach(work.lba, false, now);
        self.head_lba = work.end - 1;
        self.cache.begin(&self.geometry, work.lba, work.end, start);
        self.media_end = start + self.geometry.end(work.end) - self.geometry.start(work.lba);
        self.media_end
    }

    /// Until when the head must stay with its prefetch.
    pub fn prefetch_holds_until(&mut self, now: Nanos) -> Nanos {
        let until = self.cache.end_prefetch(&self.geometry, now);
        if let Some(head) = self.cache.head(&self.geometry, until) {
            self.head_lba = head;
        }
        until
    }

    /// Rate of the outermost track under the head, as a data sheet gives it.
    pub fn outer_bytes_per_s(&self) -> f64 {
        self.geometry.track_sectors(0) as f64 * SECTOR as f64 / (self.geometry.revolution() as f64 * 1e-9)
    }
}
