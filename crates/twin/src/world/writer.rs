//! Write-back, and throttled writers.

use super::files::{Barrier, Files};
use super::{LogOwner, Owner, Request, World};
use crate::cpu::Work;
use crate::event::Event;
use crate::ram_cache::RamCache;
use crate::units::ms;
use machine::{Hint, Nanos, Op};

/// A pass writes one part in this many of the dirty pages: R. Nagar, Windows NT File System
/// Internals, 1997.
const PASS: u64 = 8;
/// A mapped view of the cache, from the same book. A write-back never crosses it.
const VIEW_BYTES: u64 = 256 << 10;

impl World {
    pub(super) fn dirtied(&mut self, request: &Request) {
        self.writer.hinted = self.accesses[request.part as usize].hint == Hint::Sequential;
        if !self.writer.scan_scheduled {
            self.writer.scan_scheduled = true;
            self.kernel.at(self.now() + ms(self.fs.writeback_first_ms), Event::LazyScan);
        }
        self.write_back();
    }

    pub(super) fn throttle(&mut self, number: u32) {
        self.writer.throttled.push_back(number);
        self.write_back();
    }

    pub(super) fn lazy_scan(&mut self) {
        self.writer.scan_scheduled = self.cache.dirty_bytes > 0;
        self.writer.active = self.writer.scan_scheduled;
        if self.writer.active {
            self.writer.quota = (self.cache.dirty_bytes / PASS).max(self.fs.unit_bytes);
            self.kernel.at(self.now() + ms(self.fs.writeback_period_ms), Event::LazyScan);
            self.log_growth();
            self.write_back();
        }
    }

    fn log_growth(&mut self) {
        if !self.fs.passes_log_growth {
            return;
        }
        let now = self.now();
        let grown = self.files.all().filter(|file| file.stored > file.recorded);
        let grown: Vec<u64> = grown
            .map(|file| {
                file.recorded = file.stored;
                file.start
            })
            .collect();
        for start in grown {
            self.writer.outstanding += 1;
            self.log(now, LogOwner::Growth, start, 1);
        }
    }

    pub(super) fn growth_logged(&mut self, log: u64) {
        let after = self.costs.transfer(u64::from(self.fs.block_bytes)).1;
        let at = self.cpu.work(Work::System, self.now(), after);
        self.write_growth(at, self.files.of(log).start, false);
    }

    pub(super) fn growth_written(&mut self, offset: u64, bytes: u64, last: bool) {
        let at = self.cpu.work(Work::System, self.now(), self.costs.transfer(bytes).1);
        if last {
            self.writer.outstanding -= 1;
            self.write_back();
        } else {
            self.write_growth(at, offset + bytes, true);
        }
    }

    fn write_growth(&mut self, at: Nanos, offset: u64, last: bool) {
        let bytes = u64::from(self.fs.block_bytes);
        let at = self.cpu.work(Work::System, at, self.costs.transfer(bytes).0);
        self.transfer(at, Owner::Growth { last }, Op::Write, offset, bytes, false);
    }

    fn may_write(&self) -> bool {
        let w = &self.writer;
        let much = self.cache.dirty_bytes > self.fs.background_bytes;
        let flushing = |&unit: &u64| self.files.of(unit * self.fs.unit_bytes).flushing;
        (!w.throttled.is_empty() && (w.active || much || !self.fs.writers_wait_for_pass))
            || (!self.temporary
                && (w.quota > 0 || much || self.cache.dirty_queue.front().is_some_and(flushing)))
    }

    pub(crate) fn write_back(&mut self) {
        while self.writer.outstanding < self.fs.writeback_depth && self.may_write() {
            let Some(number) = self.cache.dirty_queue.pop_front() else { return };
            let (page, split) = (self.cache.page_bytes(), self.split(number));
            let entry = self.cache.entry(number);
            entry.queued = false;
            if entry.dirty == 0 {
                // The files are gone.
                continue;
            }
            let first = u64::from(entry.dirty.trailing_zeros());
            let run = u64::from((entry.dirty >> first).trailing_ones());
            let pages = if let Some(quarter) = split.filter(|_| run * page == self.fs.unit_bytes) {
                run * quarter / 4
            } else {
                run
            };
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
            self.writer.quota = self.writer.quota.saturating_sub(bytes);
            let cost = self.costs.paging(bytes).0 + bytes * self.costs.writeback_fs / super::FS;
            let at = self.cpu.work(Work::System, self.now(), cost);
            let file = self.files.of_mut(offset);
            file.outstanding += 1;
            let bytes = bytes.min(file.end() - offset);
            self.transfer(at, Owner::WriteBack { unit: number }, Op::Write, offset, bytes, false);
        }
    }

    /// In quarters. Without the sequential hint, write-backs (the study saw 16 to 64 KB) start
    /// anywhere in a view, so its first unit goes in two pieces.
    fn split(&self, unit: u64) -> Option<u64> {
        let offset = unit * self.fs.unit_bytes;
        let (first, view) = (offset.is_multiple_of(VIEW_BYTES), offset / VIEW_BYTES);
        (self.fs.writeback_by_views && !self.writer.hinted && first).then_some(1 + view % 3)
    }

    pub(super) fn written_back(&mut self, unit: u64, offset: u64, bytes: u64) {
        let pages = bytes.next_multiple_of(self.cache.page_bytes());
        self.cache.dirty_bytes = self.cache.dirty_bytes.saturating_sub(pages);
        self.files.wrote(offset, pages);
        let file = self.files.of_mut(offset);
        file.stored = file.stored.max(offset + bytes);
        let entry = self.cache.entry(unit);
        entry.writing = false;
        let after = self.costs.paging(bytes).1;
        let at = self.cpu.work(Work::System, self.now(), after);
        self.kernel.at(at, Event::WriterBack(Files::number_of(offset)));
        while let Some(number) = self.writer.throttled.pop_front() {
            self.kernel.at(at, Event::Step(number));
            // One unit makes room for one writer's unit; the writer queues again if it needs more.
            if self.cache.dirty_bytes + self.fs.unit_bytes > self.fs.dirty_bytes {
                break;
            }
        }
    }

    pub(super) fn writer_back(&mut self, file: u32) {
        self.writer.outstanding -= 1;
        self.files[file].outstanding -= 1;
        self.write_back();
    }

    /// Writes these files back first. The barrier excludes later writes and other files.
    pub fn flush(&mut self, files: &[u32]) -> Barrier {
        files.iter().for_each(|&file| self.files[file].flushing = true);
        let (files_of, unit_bytes) = (&self.files, self.fs.unit_bytes);
        self.cache
            .dirty_queue
            .make_contiguous()
            .sort_by_key(|unit| !files_of.of(unit * unit_bytes).flushing);
        if self.fs.sync_flushes_drives
            && let Some(cache) = &mut self.ram_cache
        {
            cache.flushing = true;
        }
        let files = files
            .iter()
            .map(|&number| (number, self.files[number].written + self.files[number].dirty))
            .collect();
        self.ram_cache_clean();
        self.write_back();
        Barrier { files, sent: None }
    }

    pub fn passed(&self, barrier: &mut Barrier) -> bool {
        let written = |&(number, bytes): &(u32, u64)| {
            let file = &self.files[number];
            let settled = file.outstanding == 0 && (self.temporary || file.dirty == 0);
            settled || (file.dirty > 0 && file.written >= bytes)
        };
        if barrier.sent.is_none() {
            if !barrier.files.iter().all(written) {
                return false;
            }
            barrier.sent =
                Some((self.now(), self.ram_cache.as_ref().map_or(0, RamCache::written_when_clean)));
        }
        let Some((sent, bytes)) = barrier.sent.filter(|_| self.fs.sync_flushes_drives) else {
            return true;
        };
        let members = barrier.files.iter().flat_map(|&(number, _)| &self.files[number].members);
        self.ram_cache.as_ref().is_none_or(|cache| cache.written >= bytes)
            && !members.into_iter().any(|&member| self.members[member as usize].device.dirty(sent))
    }

    pub fn flushed(&mut self) {
        self.files.all().for_each(|file| file.flushing = false);
        if let Some(cache) = &mut self.ram_cache {
            cache.flushing = false;
        }
    }

    /// Called when all data have been sent. Returns when the caches are flushed. A flush outside a
    /// journal write has to pass the volume's limits.
    pub fn flush_devices(&mut self, files: &[u32], alone: bool) -> Nanos {
        let now = self.now();
        if !self.fs.sync_flushes_drives {
            return now;
        }
        let mut done = now;
        for number in self.files.members(files) {
            let member = &mut self.members[number as usize];
            member.usage.flushes += 1;
            let start = if alone { member.device.admit_flush(now) } else { now };
            done = done.max(member.device.flush(start));
        }
        done
    }
}
