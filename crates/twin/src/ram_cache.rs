//! A cache in memory in front of a volume, with lazy writes or write-through.

use crate::file_cache::FileCache;
use crate::world::{Event, Owner, Transfer, World};
use machine::{Nanos, Op};

/// How a RAM cache treats writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WritePolicy {
    /// A write is done when it is in the cache.
    Back,
    /// A write is done when it is on the volume.
    Through,
}

/// Blocks of a volume in memory.
pub struct RamCache {
    blocks: FileCache,
    policy: WritePolicy,
    /// Picoseconds to move a byte.
    copy_ps: u64,
    limit: u64,
    cleaning: u32,
    /// Everything is to be written.
    pub flushing: bool,
    waiting: Vec<u32>,
    /// Bytes asked for, and found.
    pub asked: u64,
    /// Bytes of reads found, and of writes taken.
    pub found: u64,
}

const BLOCK: u64 = 65536;
const PAGE: u64 = 4096;
const CLEANERS: u32 = 8;

impl RamCache {
    /// An empty cache of `bytes` that moves `bytes_per_s`.
    pub fn new(bytes: u64, policy: WritePolicy, bytes_per_s: f64) -> Self {
        RamCache {
            blocks: FileCache::new(BLOCK, PAGE, bytes),
            policy,
            copy_ps: (1e12 / bytes_per_s).round() as u64,
            // Room must stay for reads.
            limit: bytes / 10 * 9,
            cleaning: 0,
            flushing: false,
            waiting: Vec::new(),
            asked: 0,
            found: 0,
        }
    }

    /// All writes have reached the volume.
    pub fn settle(&mut self) {
        self.blocks.settle();
        self.cleaning = 0;
        self.flushing = false;
        self.waiting.clear();
        (self.asked, self.found) = (0, 0);
    }

    /// Writes are under way or still to be made.
    pub fn busy(&self) -> bool {
        self.blocks.dirty_bytes > 0 || self.cleaning > 0
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
            } else {
                self.blocks.entry(block).valid |= pages;
            }
        }
    }

    fn copy_time(&self, bytes: u64) -> Nanos {
        bytes * self.copy_ps / 1000
    }
}

/// The next run of dirty pages to be written: first byte and bytes.
fn next_dirty(cache: &mut RamCache) -> Option<(u64, u64)> {
    let block = cache.blocks.dirty_queue.pop_front()?;
    let unit = cache.blocks.entry(block);
    unit.queued = false;
    let first = u64::from(unit.dirty.trailing_zeros());
    let run = u64::from((unit.dirty >> first).trailing_ones());
    let mask = (u64::MAX >> (64 - run)) << first;
    unit.dirty &= !mask;
    if unit.dirty != 0 {
        unit.queued = true;
        cache.blocks.dirty_queue.push_front(block);
    }
    Some((block * BLOCK + first * PAGE, run * PAGE))
}

impl World {
    /// Lets a transfer meet the cache. True where it is served there or has to wait; false where it goes to the volume.
    pub(crate) fn through_ram_cache(&mut self, number: u32) -> bool {
        let Transfer { owner, op, offset, bytes, durable, combined, second, copied, .. } = self.transfers[number];
        if copied {
            self.end_transfer(number);
            return true;
        }
        let Some(cache) = self.ram_cache.as_mut() else { return false };
        // A transfer comes by again when parity is ready and for its second half.
        if combined || second || owner == Owner::Behind {
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
            }
            Op::Write => {
                cache.keep(offset, bytes, false);
                return false;
            }
        }
        let time = cache.copy_time(bytes);
        let done = self.cpu.work(self.kernel.now(), time);
        self.transfers[number].copied = true;
        self.kernel.at(done, Event::Launch(number));
        self.ram_cache_clean();
        true
    }

    /// Writes dirty blocks in the background.
    pub(crate) fn ram_cache_clean(&mut self) {
        loop {
            let Some(cache) = self.ram_cache.as_mut() else { return };
            let wanted = cache.flushing || !cache.waiting.is_empty() || cache.blocks.dirty_bytes > 0;
            if !wanted || cache.cleaning >= CLEANERS {
                return;
            }
            let Some((offset, bytes)) = next_dirty(cache) else { return };
            cache.cleaning += 1;
            let bytes = bytes.min(self.layout.end(offset) - offset);
            self.transfer(self.kernel.now(), Owner::Behind, Op::Write, offset, bytes, false);
        }
    }

    /// A background write has ended.
    pub(crate) fn ram_cache_cleaned(&mut self, bytes: u64) {
        let Some(cache) = self.ram_cache.as_mut() else { return };
        cache.cleaning -= 1;
        cache.blocks.dirty_bytes = cache.blocks.dirty_bytes.saturating_sub(bytes);
        for number in std::mem::take(&mut cache.waiting) {
            self.kernel.at(self.kernel.now(), Event::Launch(number));
        }
        self.ram_cache_clean();
    }
}
