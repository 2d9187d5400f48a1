//! The I/O buffers of one session: one mapping, page aligned, filled once, never moved.

use std::io;
use std::ptr::NonNull;

/// Writes walk through a slot's share of this many bytes, so that a compressor or a deduplicator below does not meet the same data in the next request.
const WALK_BYTES: usize = 4 << 20;

/// Page-aligned buffers for `slots` requests.
pub(crate) struct Arena {
    base: NonNull<u8>,
    len: usize,
    stride: usize,
    request: usize,
    /// Next place in each slot's share for a write.
    places: Box<[u32]>,
}

// SAFETY: the mapping belongs to this arena alone.
unsafe impl Send for Arena {}

impl Arena {
    /// Buffers for `slots` requests of up to `request` bytes. Those of writers have room to walk in.
    pub(crate) fn new(slots: u32, request: u32, writes: bool) -> io::Result<Arena> {
        let page = 4096usize;
        let request = (request as usize).next_multiple_of(page);
        let room = if writes { (WALK_BYTES / slots as usize).min(1 << 20) / request * request } else { 0 };
        let stride = room.max(request);
        let len = stride.checked_mul(slots as usize).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // SAFETY: an anonymous private mapping of our own.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or_else(io::Error::last_os_error)?;
        let mut arena = Arena { base, len, stride, request, places: vec![0; slots as usize].into_boxed_slice() };
        // Touch every page now: a page fault belongs to no request.
        for page in arena.bytes().chunks_mut(page) {
            page[0] = 1;
        }
        Ok(arena)
    }

    /// All buffers as one piece.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is `len` bytes long and lives as long as the arena.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// Where a read into `slot` goes.
    #[inline(always)]
    pub(crate) fn read_place(&self, slot: u32) -> *mut u8 {
        debug_assert!((slot as usize) < self.places.len());
        // SAFETY: slots are below the number the arena was made for.
        unsafe { self.base.as_ptr().add(slot as usize * self.stride) }
    }

    /// Where the next write from `slot` comes from.
    #[inline(always)]
    pub(crate) fn write_place(&mut self, slot: u32) -> *mut u8 {
        let place = self.places[slot as usize];
        let next = place as usize + self.request;
        self.places[slot as usize] = if next + self.request <= self.stride { next as u32 } else { 0 };
        // SAFETY: `place + request` is within the slot's stride.
        unsafe { self.read_place(slot).add(place as usize) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped, once.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_walk_within_their_slot_and_reads_stay() {
        let mut arena = Arena::new(4, 5000, true).unwrap();
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
