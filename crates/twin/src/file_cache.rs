//! The file-system cache by unit; clean least recently used ones go first.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// Hashes are the same on every run.
#[derive(Default)]
pub struct UnitHasher(u64);

impl Hasher for UnitHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

pub type UnitMap<T> = HashMap<u64, T, BuildHasherDefault<UnitHasher>>;

const NONE: u32 = u32::MAX;

/// Pages are bits.
#[derive(Debug, Default)]
pub struct Unit {
    number: u64,
    pub valid: u64,
    pub dirty: u64,
    pub reading: u64,
    /// Read in and not copied since.
    pub fresh: u64,
    pub writing: bool,
    pub queued: bool,
    pub waiters: Vec<u32>,
    newer: u32,
    older: u32,
}

impl Unit {
    fn busy(&self) -> bool {
        self.dirty != 0 || self.reading != 0 || self.writing || !self.waiters.is_empty()
    }
}

pub struct FileCache {
    unit_bytes: u64,
    page_bytes: u64,
    limit: usize,
    index: UnitMap<u32>,
    units: Vec<Unit>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    /// Oldest first.
    pub dirty_queue: VecDeque<u64>,
    pub dirty_bytes: u64,
}

impl FileCache {
    /// At most 64 pages per unit.
    pub fn new(unit_bytes: u64, page_bytes: u64, bytes: u64) -> Self {
        FileCache {
            unit_bytes,
            page_bytes,
            limit: (bytes / unit_bytes).max(4) as usize,
            index: UnitMap::default(),
            units: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            dirty_queue: VecDeque::new(),
            dirty_bytes: 0,
        }
    }

    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    pub fn pages(&self, unit: u64, offset: u64, end: u64) -> u64 {
        let start = unit * self.unit_bytes;
        let first = (offset.max(start) - start) / self.page_bytes;
        let last = (end.min(start + self.unit_bytes) - start).div_ceil(self.page_bytes);
        if last <= first { 0 } else { (u64::MAX >> (64 - (last - first))) << first }
    }

    pub fn get(&self, number: u64) -> Option<&Unit> {
        self.index.get(&number).map(|&slot| &self.units[slot as usize])
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Unit> {
        let slot = *self.index.get(&number)?;
        Some(&mut self.units[slot as usize])
    }

    /// Creates a missing unit; marks it most recently used.
    pub fn entry(&mut self, number: u64) -> &mut Unit {
        if let Some(&slot) = self.index.get(&number) {
            self.unlink(slot);
            self.link(slot);
            return &mut self.units[slot as usize];
        }
        self.make_room();
        let unit = Unit { number, newer: NONE, older: NONE, ..Unit::default() };
        let slot = if let Some(slot) = self.free.pop() {
            self.units[slot as usize] = unit;
            slot
        } else {
            self.units.push(unit);
            (self.units.len() - 1) as u32
        };
        self.index.insert(number, slot);
        self.link(slot);
        &mut self.units[slot as usize]
    }

    fn make_room(&mut self) {
        // Busy units cannot be evicted. After 64 tries the cache grows beyond its limit; it shrinks
        // again when they are done.
        let mut looks = 64;
        while self.index.len() >= self.limit && looks > 0 {
            looks -= 1;
            let slot = self.oldest;
            self.unlink(slot);
            if self.units[slot as usize].busy() {
                self.link(slot);
            } else {
                self.index.remove(&self.units[slot as usize].number);
                self.free.push(slot);
            }
        }
    }

    fn link(&mut self, slot: u32) {
        let newest = self.newest;
        let unit = &mut self.units[slot as usize];
        (unit.newer, unit.older) = (NONE, newest);
        if newest == NONE {
            self.oldest = slot;
        } else {
            self.units[newest as usize].newer = slot;
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let (newer, older) = (self.units[slot as usize].newer, self.units[slot as usize].older);
        match newer {
            NONE => self.newest = older,
            newer => self.units[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.units[older as usize].newer = newer,
        }
    }

    pub fn dirty(&mut self, number: u64, pages: u64) {
        let page_bytes = self.page_bytes;
        let unit = self.entry(number);
        let fresh = (pages & !unit.dirty).count_ones();
        unit.valid |= pages;
        unit.dirty |= pages;
        let queue = !unit.queued;
        unit.queued = true;
        self.dirty_bytes += u64::from(fresh) * page_bytes;
        if queue {
            self.dirty_queue.push_back(number);
        }
    }

    /// For a deleted file; returns the dirty bytes.
    pub fn purge(&mut self, number: u64, pages: u64) -> u64 {
        let page_bytes = self.page_bytes;
        let Some(unit) = self.get_mut(number) else { return 0 };
        let bytes = u64::from((unit.dirty & pages).count_ones()) * page_bytes;
        unit.dirty &= !pages;
        unit.valid &= !pages;
        self.dirty_bytes -= bytes;
        bytes
    }

    /// Called when all I/O has ended.
    pub fn settle(&mut self) {
        for unit in &mut self.units {
            unit.dirty = 0;
            unit.valid |= unit.reading;
            unit.reading = 0;
            (unit.writing, unit.queued) = (false, false);
            unit.waiters.clear();
        }
        self.dirty_queue.clear();
        self.dirty_bytes = 0;
    }

    pub fn drop_clean(&mut self) {
        self.units.iter_mut().filter(|unit| !unit.busy()).for_each(|unit| unit.valid = 0);
    }

    /// The range may have no I/O in flight.
    pub fn forget(&mut self, addresses: Range<u64>) {
        let units = addresses.start / self.unit_bytes..addresses.end.div_ceil(self.unit_bytes);
        let mut index = std::mem::take(&mut self.index);
        index.retain(|number, slot| {
            let kept = !units.contains(number);
            if !kept {
                self.unlink(*slot);
                self.free.push(*slot);
            }
            kept
        });
        self.index = index;
    }

    pub fn warm(&mut self, start: u64, bytes: u64) {
        let first = start / self.unit_bytes;
        let last = (start + bytes).div_ceil(self.unit_bytes).min(first + self.limit as u64);
        for number in first..last {
            let pages = self.pages(number, start, start + bytes);
            self.entry(number).valid |= pages;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pages_of_a_range() {
        let cache = FileCache::new(65536, 4096, 1 << 20);
        assert_eq!(cache.pages(0, 0, 65536), 0xffff);
        assert_eq!(cache.pages(0, 2048, 4096), 1);
        assert_eq!(cache.pages(1, 0, 65536 + 4097), 3);
        assert_eq!(cache.pages(1, 0, 65536), 0);
    }

    proptest! {
        #[test]
        fn the_least_recently_used_clean_units_go(touches in proptest::collection::vec(0u64..30, 1..200)) {
            let mut cache = FileCache::new(65536, 4096, 8 * 65536);
            let mut order: Vec<u64> = Vec::new();
            for unit in touches {
                cache.entry(unit).valid = 1;
                order.retain(|&other| other != unit);
                order.push(unit);
                if order.len() > 8 {
                    order.remove(0);
                }
                for other in 0..30 {
                    prop_assert_eq!(cache.get(other).is_some(), order.contains(&other));
                }
            }
        }
    }
}
