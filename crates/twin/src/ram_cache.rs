//! A RAM cache in front of a volume.

use crate::cpu::Work;
use crate::event::Event;
use crate::file_cache::FileCache;
use crate::world::{Owner, Transfer, World};
use machine::{Nanos, Op};
use std::collections::BTreeSet;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WritePolicy {
    /// Done when in the cache.
    Back,
    /// Done when on the volume.
    Through,
}

/// Once a second a burst takes what is dirty then to the volume in address order: adjacent blocks
/// are merged, and a block rewritten before the burst reaches it is written once.
pub struct RamCache {
    blocks: FileCache,
    dirty: BTreeSet<u64>,
    hand: u64,
    policy: WritePolicy,
    /// Per byte.
    copy_ps: u64,
    limit: u64,
    scheduled: bool,
    /// Bytes left in the current burst.
    burst: u64,
    cleaning: u32,
    pub flushing: bool,
    waiting: Vec<u32>,
    /// Bytes since the run began.
    pub written: u64,
    /// Bytes requested, hits and misses.
    pub asked: u64,
    /// Bytes of read hits and absorbed writes.
    pub found: u64,
}

pub const BLOCK: u64 = 65536;
const PAGE: u64 = 4096;
/// One thread writes.
const CLEANERS: u32 = 1;
/// SuperSpeed, SuperCache FAQ: "bursts of data to disk once a second".
const BURST_PERIOD: Nanos = 1_000_000_000;
const MAX_WRITE: u64 = 256 << 10;

impl RamCache {
    pub fn new(bytes: u64, policy: WritePolicy, bytes_per_s: f64) -> Self {
        RamCache {
            blocks: FileCache::new(BLOCK, PAGE, bytes),
            dirty: BTreeSet::new(),
            hand: 0,
            policy,
            copy_ps: (1e12 / bytes_per_s).round() as u64,
            limit: bytes,
            scheduled: false,
            burst: 0,
            cleaning: 0,
            flushing: false,
            waiting: Vec::new(),
            written: 0,
            asked: 0,
            found: 0,
        }
    }

    pub fn settle(&mut self) {
        self.blocks.settle();
        self.dirty.clear();
        (self.hand, self.cleaning) = (0, 0);
        (self.scheduled, self.burst) = (false, 0);
        self.flushing = false;
        self.waiting.clear();
        (self.written, self.asked, self.found) = (0, 0, 0);
    }

    pub fn written_when_clean(&self) -> u64 {
        self.written + self.blocks.dirty_bytes
    }

    pub fn forget(&mut self, addresses: Range<u64>) {
        self.blocks.forget(addresses);
    }

    fn blocks_of(offset: u64, bytes: u64) -> std::ops::RangeInclusive<u64> {
        offset / BLOCK..=(offset + bytes.max(1) - 1) / BLOCK
    }

    fn holds(&self, offset: u64, bytes: u64) -> bool {
        Self::blocks_of(offset, bytes).all(|block| {
            let pages = self.blocks.pages(block, offset, offset + bytes);
            self.blocks.get(block).is_some_and(|unit| unit.valid & pages == pages)
        })
    }

    fn keep(&mut self, offset: u64, bytes: u64, dirty: bool) {
        for block in Self::blocks_of(offset, bytes) {
            let pages = self.blocks.pages(block, offset, offset + bytes);
            if dirty {
                self.blocks.dirty(block, pages);
                // The sweep sets the write order, not the queue.
                self.blocks.dirty_queue.clear();
                self.dirty.insert(block);
            } else {
                self.blocks.entry(block).valid |= pages;
            }
        }
    }

    fn copy_time(&self, bytes: u64) -> Nanos {
        bytes * self.copy_ps / 1000
    }

    fn cleaners(&self) -> u32 {
        if self.flushing || self.burst > 0 || !self.waiting.is_empty() { CLEANERS } else { 0 }
    }

    /// Marks the next adjacent dirty pages clean; returns first byte and length.
    fn next_run(&mut self) -> Option<(u64, u64)> {
        let first = self.dirty.range(self.hand..).next().or_else(|| self.dirty.first()).copied()?;
        let (mut start, mut bytes, mut block) = (None, 0, first);
        while bytes < MAX_WRITE && self.dirty.contains(&block) {
            // Dirty units are never evicted.
            let unit = self.blocks.get_mut(block)?;
            let page = u64::from(unit.dirty.trailing_zeros());
            // A run from the previous block continues only at this block's first page.
            if start.is_some() && page > 0 {
                break;
            }
            let run = u64::from((unit.dirty >> page).trailing_ones());
            unit.dirty &= !((u64::MAX >> (64 - run)) << page);
            if unit.dirty == 0 {
                self.dirty.remove(&block);
            }
            start = start.or(Some(block * BLOCK + page * PAGE));
            bytes += run * PAGE;
            if (page + run) * PAGE < BLOCK {
                break;
            }
            block += 1;
        }
        self.hand = block;
        start.map(|start| (start, bytes))
    }
}

impl World {
    /// `true`: the transfer is served or must wait; `false`: it goes to the volume.
    pub(crate) fn through_ram_cache(&mut self, number: u32) -> bool {
        let transfer = &self.transfers[number];
        let again = transfer.combined
            || transfer.second
            || transfer.crossed.is_some()
            || transfer.rows.is_some();
        let Transfer { owner, op, offset, bytes, durable, copied, .. } = *transfer;
        if copied {
            self.end_transfer(number);
            return true;
        }
        let Some(cache) = self.ram_cache.as_mut() else { return false };
        // A transfer returns here after it gets its rows, when parity is ready, and for its second
        // half.
        if again || matches!(owner, Owner::Behind | Owner::Rebuild) {
            return false;
        }
        match op {
            Op::Read => {
                cache.asked += bytes;
                let found = cache.holds(offset, bytes);
                cache.keep(offset, bytes, false);
                if !found {
                    return false;
                }
                cache.found += bytes;
            }
            Op::Write if cache.policy == WritePolicy::Back && !durable => {
                if cache.blocks.dirty_bytes + bytes > cache.limit {
                    cache.waiting.push(number);
                    self.ram_cache_clean();
                    return true;
                }
                cache.asked += bytes;
                cache.found += bytes;
                cache.keep(offset, bytes, true);
                if !std::mem::replace(&mut cache.scheduled, true) {
                    self.kernel.at(self.kernel.now() + BURST_PERIOD, Event::RamCacheBurst);
                }
            }
            Op::Write => {
                cache.keep(offset, bytes, false);
                return false;
            }
        }
        let time = cache.copy_time(bytes);
        let done = self.cpu.work(Work::System, self.kernel.now(), time);
        self.transfers[number].copied = true;
        self.kernel.at(done, Event::Launch(number));
        self.ram_cache_clean();
        true
    }

    pub(crate) fn ram_cache_burst(&mut self) {
        let Some(cache) = self.ram_cache.as_mut() else { return };
        cache.burst = cache.blocks.dirty_bytes;
        cache.scheduled = cache.burst > 0;
        if cache.scheduled {
            self.kernel.at(self.kernel.now() + BURST_PERIOD, Event::RamCacheBurst);
            self.ram_cache_clean();
        }
    }

    pub(crate) fn ram_cache_clean(&mut self) {
        loop {
            let Some(cache) = self.ram_cache.as_mut() else { return };
            if cache.cleaning >= cache.cleaners() {
                return;
            }
            let Some((offset, bytes)) = cache.next_run() else { return };
            cache.cleaning += 1;
            cache.burst = cache.burst.saturating_sub(bytes);
            let bytes = bytes.min(self.files.of(offset).end() - offset);
            self.transfer(self.kernel.now(), Owner::Behind, Op::Write, offset, bytes, false);
        }
    }

    pub(crate) fn ram_cache_cleaned(&mut self, bytes: u64) {
        let Some(cache) = self.ram_cache.as_mut() else { return };
        cache.cleaning -= 1;
        let pages = bytes.next_multiple_of(PAGE);
        cache.written += pages;
        cache.blocks.dirty_bytes = cache.blocks.dirty_bytes.saturating_sub(pages);
        for number in std::mem::take(&mut cache.waiting) {
            self.kernel.at(self.kernel.now(), Event::Launch(number));
        }
        self.ram_cache_clean();
    }
}
