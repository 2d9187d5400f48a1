//! One mapping, faulted in once, never moved; in huge pages, as scattered ones split a request into
//! more segments than a device accepts.

use crate::system::Mapping;
use machine::Memory;
use std::io;
use std::mem;
use std::ptr::NonNull;

/// Writes repeat after this: more than compression and deduplication see (btrfs(5): 128 KiB; LZ4:
/// 64 KiB), but within a CPU cache.
pub(crate) const WALK_BYTES: u64 = 256 << 10;

/// On ZFS, which compresses records of 1 MiB and more as a unit (zfsprops(7), recordsize).
pub(crate) const LONG_WALK_BYTES: u64 = 4 << 20;

const PAGE: usize = 4096;

const HUGE: usize = 2 << 20;

/// Where glibc's malloc starts in a page: page cache copies differ by up to 20 %
/// (docs/performance.md).
pub(crate) const MALLOC_START: usize = 0xd90;

/// Below this, clearing a huge page costs more than it gains.
const HUGE_FROM: usize = 256 << 10;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extra {
    pub(crate) scratch: u64,
    pub(crate) start: usize,
}

pub(crate) struct Arena {
    base: NonNull<u8>,
    len: usize,
    mapping: Option<Mapping>,
    stride: usize,
    scratch: usize,
    request: usize,
    places: Box<[u32]>,
}

// SAFETY: the arena owns its mapping.
unsafe impl Send for Arena {}

impl Arena {
    /// `walk`: cycle length of writes, 0 for readers.
    pub(crate) fn new(slots: u32, request: u32, walk: u64, memory: Memory) -> io::Result<Arena> {
        Arena::with(slots, request, walk, memory, Extra::default())
    }

    pub(crate) fn with(
        slots: u32,
        request: u32,
        walk: u64,
        memory: Memory,
        extra: Extra,
    ) -> io::Result<Arena> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let buffers =
            Arena::bytes_for(slots, request, walk).and_then(|len| usize::try_from(len).ok());
        let buffers = buffers.ok_or_else(too_large)?;
        let scratch =
            extra.scratch.checked_mul(u64::from(slots)).and_then(|len| usize::try_from(len).ok());
        let len = scratch.and_then(|scratch| buffers.checked_add(scratch)).ok_or_else(too_large)?;
        let room = len.checked_add(extra.start.next_multiple_of(PAGE)).ok_or_else(too_large)?;
        let (mapping, first) = mapped(room, memory)?;
        // SAFETY: the mapping has room for whole pages around the start.
        let base = unsafe { first.add(extra.start) };
        let mut arena = Arena {
            base,
            len,
            mapping: Some(mapping),
            stride: buffers / slots as usize,
            scratch: buffers,
            request: (request as usize).next_multiple_of(PAGE),
            places: vec![0; slots as usize].into_boxed_slice(),
        };
        // Touch every page now, so that no request takes the page fault.
        for page in arena.bytes().chunks_mut(PAGE) {
            page[0] = 1;
        }
        Ok(arena)
    }

    pub(crate) fn bytes_for(slots: u32, request: u32, walk: u64) -> Option<u64> {
        let request = u64::from(request).next_multiple_of(PAGE as u64);
        let each = walk / u64::from(slots) / request * request;
        each.max(request).checked_mul(u64::from(slots))
    }

    /// The kernel still uses the buffers.
    pub(crate) fn leak(&mut self) {
        mem::forget(self.mapping.take());
    }

    pub(crate) fn scratch(&self) -> *mut u8 {
        // SAFETY: it is at most the end of the mapping.
        unsafe { self.base.as_ptr().add(self.scratch) }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `len` bytes long and outlives the slice.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    #[inline(always)]
    pub(crate) fn read_place(&self, slot: u32) -> *mut u8 {
        debug_assert!((slot as usize) < self.places.len());
        // SAFETY: `slot` is below the number of slots.
        unsafe { self.base.as_ptr().add(slot as usize * self.stride) }
    }

    #[inline(always)]
    pub(crate) fn write_place(&mut self, slot: u32) -> *mut u8 {
        let place = self.places[slot as usize];
        let next = place as usize + self.request;
        self.places[slot as usize] =
            if next + self.request <= self.stride { next as u32 } else { 0 };
        // SAFETY: `place + request` is within the slot's stride.
        unsafe { self.read_place(slot).add(place as usize) }
    }
}

fn mapped(len: usize, memory: Memory) -> io::Result<(Mapping, NonNull<u8>)> {
    if memory != Memory::Huge || len < HUGE_FROM {
        let mapping = Mapping::new(len)?;
        let start = mapping.start();
        return Ok((mapping, start));
    }
    let whole = len.checked_next_multiple_of(HUGE).and_then(|whole| whole.checked_add(HUGE));
    let mapping = Mapping::new(whole.ok_or(io::ErrorKind::OutOfMemory)?)?;
    let skipped = mapping.start().as_ptr().align_offset(HUGE);
    mapping.prefer_huge_pages(skipped);
    // SAFETY: the mapping is one huge page longer than its bytes, so the aligned beginning and all
    // of them are inside.
    let base = unsafe { mapping.start().add(skipped) };
    Ok((mapping, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_begin_where_a_huge_page_can_and_small_ones_are_not_longer_than_asked() {
        let mut large = Arena::new(1, 1 << 20, 0, machine::Memory::Huge).unwrap();
        assert!((large.read_place(0) as usize).is_multiple_of(HUGE));
        large.bytes().fill(7);
        let plain = Arena::new(1, 1 << 20, 0, machine::Memory::Pages).unwrap();
        assert_eq!(plain.mapping.unwrap().len(), 1 << 20, "no room for a huge page to begin in");
        for memory in machine::Memory::ALL {
            let extra = Extra { start: MALLOC_START, ..Extra::default() };
            let mut like_malloc = Arena::with(2, 1 << 20, 0, memory, extra).unwrap();
            assert_eq!(like_malloc.read_place(1) as usize % PAGE, MALLOC_START);
            like_malloc.bytes().fill(7);
        }
        let small = Arena::new(1, 4096, 0, machine::Memory::Huge).unwrap();
        let mapping = small.mapping.unwrap();
        assert_eq!((mapping.start(), mapping.len()), (small.base, 4096));
    }

    #[test]
    fn writes_walk_within_their_slot_and_reads_stay() {
        let mut arena = Arena::new(4, 5000, LONG_WALK_BYTES, machine::Memory::Huge).unwrap();
        let start = arena.read_place(1) as usize;
        let end = arena.read_place(2) as usize;
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let place = arena.write_place(1) as usize;
            assert!(place >= start && place + 5000 <= end && place.is_multiple_of(4096));
            seen.insert(place);
        }
        assert!(seen.len() > 50, "the walk covers the slot: {}", seen.len());
        assert_eq!(arena.read_place(1) as usize, start);
    }
}
