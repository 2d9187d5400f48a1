//! Slots of existing files.

use super::Mt19937;
use machine::files::FileId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub file: FileId,
    pub bytes: u32,
}

/// Twice the base number of files; unused slots take no memory.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    slots: Vec<Option<Slot>>,
    capacity: u32,
    live: u32,
    next: u32,
    /// All holes below `slots.len()`, and some former holes.
    holes: BinaryHeap<Reverse<u32>>,
}

impl Pool {
    pub fn new(capacity: u32) -> Self {
        Pool { slots: Vec::new(), capacity, live: 0, next: 0, holes: BinaryHeap::new() }
    }

    pub fn live(&self) -> u32 {
        self.live
    }

    /// The slot after the last allocated if free, otherwise the first hole.
    pub fn free_slot(&mut self) -> Option<u32> {
        if self.live >= self.capacity {
            return None;
        }
        if self.next < self.capacity && !self.is_used(self.next) {
            return Some(self.next);
        }
        while let Some(&Reverse(hole)) = self.holes.peek() {
            if !self.is_used(hole) {
                return Some(hole);
            }
            self.holes.pop();
        }
        Some(self.slots.len() as u32)
    }

    fn is_used(&self, index: u32) -> bool {
        matches!(self.slots.get(index as usize), Some(Some(_)))
    }

    pub fn put(&mut self, index: u32, slot: Slot) {
        if index as usize == self.slots.len() {
            self.slots.push(None);
        }
        let place = &mut self.slots[index as usize];
        debug_assert!(place.is_none(), "a used slot is never given out");
        *place = Some(slot);
        self.next = index + 1;
        self.live += 1;
    }

    /// Draws over the whole capacity until a used slot is hit.
    pub fn pick(&self, rng: &mut Mt19937) -> Option<u32> {
        if self.live == 0 {
            return None;
        }
        loop {
            let index = rng.below(self.capacity);
            if self.is_used(index) {
                return Some(index);
            }
        }
    }

    pub fn get_mut(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    pub fn take(&mut self, index: u32) -> Option<Slot> {
        let slot = self.slots.get_mut(index as usize)?.take()?;
        self.live -= 1;
        self.holes.push(Reverse(index));
        Some(slot)
    }

    pub fn used_from(&self, index: u32) -> Option<u32> {
        (index as usize..self.slots.len()).find(|&i| self.slots[i].is_some()).map(|i| i as u32)
    }
}
