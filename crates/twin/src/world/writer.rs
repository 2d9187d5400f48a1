//! The write-back worker, the lazy writer's period, and writers that must wait.

use super::buffered::Reader;
use super::{Device, Event, Owner, World};
use crate::disk::{ms, us};
use crate::volume::Layout;
use machine::{Hint, Nanos, Op};
use std::collections::VecDeque;

/// State of the cache's workers.
#[derive(Default)]
pub(crate) struct Writer {
    /// Write-backs under way, and workers between two of them.
    outstanding: u32,
    /// Requests that wait for dirty data to be written back.
    throttled: VecDeque<u32>,
    /// Bytes that the lazy writer may still write in this period.
    quota: u64,
    /// Everything is to be written.
    pub flushing: bool,
    scan_scheduled: bool,
    started: u64,
    /// When the worker may begin its next write.
    pace: Nanos,
    request_bytes: u64,
    pub(super) readers: Vec<Reader>,
    pub(super) ahead: VecDeque<u64>,
    pub(super) reading_ahead: u32,
}

impl World {
    /// There is more dirty data.
    pub(super) fn dirtied(&mut self, request_bytes: u64) {
        self.writer.request_bytes = request_bytes;
        if !self.writer.scan_scheduled {
            self.writer.scan_scheduled = true;
            self.kernel.at(self.now() + ms(self.fs.writeback_period_ms), Event::LazyScan);
        }
        self.write_back();
    }

    pub(super) fn throttle(&mut self, number: u32) {
        self.writer.throttled.push_back(number);
        self.write_back();
    }

    /// Once a period the lazy writer writes an eighth of what is dirty.
    pub(super) fn lazy_scan(&mut self) {
        self.writer.scan_scheduled = false;
        if self.cache.dirty_bytes == 0 {
            return;
        }
        self.writer.quota = (self.cache.dirty_bytes / 8).max(self.fs.unit_bytes);
        self.writer.scan_scheduled = true;
        self.kernel.at(self.now() + ms(self.fs.writeback_period_ms), Event::LazyScan);
        self.write_back();
    }

    fn may_write(&self) -> bool {
        let w = &self.writer;
        let lazily = w.quota > 0 || self.cache.dirty_bytes > self.fs.dirty_bytes / 2;
        !w.throttled.is_empty() || (!self.temporary && (w.flushing || lazily))
    }

    pub(crate) fn write_back(&mut self) {
        while self.writer.outstanding < self.fs.writeback_depth && self.may_write() {
            let Some(number) = self.cache.dirty_queue.pop_front() else { return };
            let (page, split) = (self.cache.page_bytes(), self.splits());
            let entry = self.cache.entry(number);
            entry.queued = false;
            let first = u64::from(entry.dirty.trailing_zeros());
            let run = u64::from((entry.dirty >> first).trailing_ones());
            let pages = if let Some(quarter) = split.filter(|_| run >= 4) { run * quarter / 4 } else { run };
            let mask = (u64::MAX >> (64 - pages)) << first;
            entry.dirty &= !mask;
            entry.writing = true;
            if entry.dirty != 0 {
                // The rest of the unit comes next.
                entry.queued = true;
                self.cache.dirty_queue.push_front(number);
            }
            let (offset, bytes) = (number * self.fs.unit_bytes + first * page, pages * page);
            self.writer.outstanding += 1;
            self.writer.pace = self.now() + us(self.fs.writeback_pace_us) * bytes / self.fs.unit_bytes;
            self.writer.quota = self.writer.quota.saturating_sub(bytes);
            let cost = self.costs.paging(bytes).0 + bytes * self.costs.writeback_fs / super::FS;
            let at = self.cpu.work(self.now(), cost);
            let bytes = bytes.min(self.layout.end(offset) - offset);
            self.transfer(at, Owner::WriteBack { unit: number }, Op::Write, offset, bytes, false);
        }
    }

    /// Without the sequential hint some units go in two pieces: how many quarters the first has.
    fn splits(&mut self) -> Option<u64> {
        let hinted = self.access.as_ref().is_some_and(|access| access.hint == Hint::Sequential);
        let one_in = u64::from(self.fs.writeback_split_one_in);
        if hinted || one_in == 0 || self.writer.request_bytes >= self.fs.unit_bytes {
            return None;
        }
        self.writer.started += 1;
        let turn = self.writer.started;
        turn.is_multiple_of(one_in).then(|| 1 + turn / one_in % 3)
    }

    pub(super) fn written_back(&mut self, unit: u64, bytes: u64) {
        let page = self.cache.page_bytes();
        self.cache.dirty_bytes = self.cache.dirty_bytes.saturating_sub(bytes.div_ceil(page) * page);
        let entry = self.cache.entry(unit);
        entry.writing = false;
        let after = self.costs.paging(bytes).1;
        let at = self.cpu.work(self.now(), after);
        self.kernel.at(at.max(self.writer.pace), Event::WriterBack);
        while let Some(number) = self.writer.throttled.pop_front() {
            self.kernel.at(at, Event::Step(number));
            // One unit makes room for one writer's unit; it will queue again if that is not enough.
            if self.cache.dirty_bytes + self.fs.unit_bytes > self.fs.dirty_bytes {
                break;
            }
        }
    }

    pub(super) fn writer_back(&mut self) {
        self.writer.outstanding -= 1;
        self.write_back();
    }

    /// Whether everything written is where the system would leave it.
    pub fn clean(&self) -> bool {
        (self.temporary || self.cache.dirty_bytes == 0)
            && self.writer.outstanding == 0
            && (!self.fs.sync_flushes_drives || !self.drives_dirty())
    }

    fn drives_dirty(&self) -> bool {
        let dirty = |member: &super::Member| matches!(&member.device, Device::Disk(disk) if disk.dirty());
        self.ram_cache.as_ref().is_some_and(crate::ram_cache::RamCache::busy) || self.members.iter().any(dirty)
    }

    /// Begins to write everything back.
    pub fn flush(&mut self) {
        self.writer.flushing = true;
        if self.fs.sync_flushes_drives
            && let Some(cache) = &mut self.ram_cache
        {
            cache.flushing = true;
        }
        self.ram_cache_clean();
        self.write_back();
    }

    /// Writes back lazily again.
    pub fn flushed(&mut self) {
        self.writer.flushing = false;
        if let Some(cache) = &mut self.ram_cache {
            cache.flushing = false;
        }
    }

    /// When the devices have emptied their own caches, once all data has been sent.
    pub fn flush_devices(&mut self) -> Nanos {
        let now = self.now();
        if !self.fs.sync_flushes_drives {
            return now;
        }
        self.device.flushes += self.members.len() as u64;
        let done = self.members.iter_mut().map(|member| match &mut member.device {
            Device::Disk(_) => now,
            Device::Flash(flash) => flash.flush(now),
            Device::Cloud(_) => now,
            Device::Virtio(virtio) => virtio.flush(now),
        });
        done.max().unwrap_or(now)
    }

    /// How the members form the volume.
    pub fn layout(&self) -> Layout {
        self.layout
    }
}
