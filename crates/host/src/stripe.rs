//! RAID 0 over several open files, on any asynchronous session.

use crate::raid5::{BusyRows, Layout};
use crate::session::{Session, Wait};
use machine::{Completion, Raid5, Request, Stability};
use std::io;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub(crate) struct StripeSet {
    pub(crate) members: u32,
    pub(crate) chunk: u64,
    pub(crate) parity: Option<(Raid5, Arc<BusyRows>)>,
}

impl StripeSet {
    pub(crate) fn layout(&self) -> Layout {
        Layout { members: self.members, chunk: self.chunk }
    }

    pub(crate) fn max_pieces(&self, max: u32) -> u64 {
        match self.parity {
            None => u64::from(max).div_ceil(self.chunk) + 1,
            Some(_) => self.layout().max_pieces(max),
        }
    }

    pub(crate) fn scratch_bytes(&self, max: u32) -> u64 {
        if self.parity.is_some() { self.layout().scratch_bytes(max) } else { 0 }
    }

    /// In a rebuild, only the rebuilt member counts.
    fn data_members(&self) -> u64 {
        match &self.parity {
            None => u64::from(self.members),
            Some((how, _)) if how.rebuild => 1,
            Some(_) => u64::from(self.members) - 1,
        }
    }

    pub(crate) fn bytes(&self, smallest: u64) -> u64 {
        smallest / self.chunk * self.chunk * self.data_members()
    }

    pub(crate) fn member_region(&self, (start, len): (u64, u64)) -> (u64, u64) {
        let members = self.data_members();
        let first = (start / members).saturating_sub(self.chunk);
        (first, (start + len).div_ceil(members) + self.chunk - first)
    }
}

#[derive(Clone, Copy, Default)]
struct Pieces {
    left: u32,
    done: i32,
}

pub(crate) struct Striped<S> {
    inner: S,
    members: u64,
    chunk: u64,
    pieces: Box<[Pieces]>,
}

impl<S: Session> Striped<S> {
    pub(crate) fn new(inner: S, members: u32, chunk: u64, depth: u32) -> Striped<S> {
        Striped {
            inner,
            members: u64::from(members),
            chunk,
            pieces: vec![Pieces::default(); depth as usize].into_boxed_slice(),
        }
    }
}

pub(crate) fn member_offset(offset: u64, chunk: u64, members: u64) -> (u32, u64) {
    let (row, within) = (offset / chunk, offset % chunk);
    ((row % members) as u32, row / members * chunk + within)
}

impl<S: Session> Session for Striped<S> {
    fn issue(&mut self, _file: u32, request: &Request, at: *mut u8) {
        self.pieces[request.slot as usize] = Pieces::default();
        let mut done = 0u32;
        while done < request.len {
            let offset = request.offset + u64::from(done);
            let len = (self.chunk - offset % self.chunk).min(u64::from(request.len - done)) as u32;
            let (member, offset) = member_offset(offset, self.chunk, self.members);
            self.pieces[request.slot as usize].left += 1;
            // SAFETY: `done` is below the request's length, which is the length of the data at
            // `at`.
            self.inner.issue(member, &Request { offset, len, ..*request }, unsafe {
                at.add(done as usize)
            });
            done += len;
        }
    }

    fn set_priority(&mut self, bits: u16) {
        self.inner.set_priority(bits);
    }

    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        self.inner.submit(wait)
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.inner.hand_over()
    }

    fn discard(&mut self, _request: &Request) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a stripe's blocks are not discarded"))
    }

    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        let pieces = &mut self.pieces;
        self.inner.reap(|piece| {
            let whole = &mut pieces[piece.slot as usize];
            whole.left -= 1;
            // The first error is the result of the whole request.
            if piece.result < 0 {
                whole.done = if whole.done < 0 { whole.done } else { piece.result };
            } else if whole.done >= 0 {
                whole.done += piece.result;
            }
            if whole.left == 0 {
                take(Completion { slot: piece.slot, result: whole.done });
            }
        });
    }

    /// Returns all or none: which have a piece at the kernel is unknown.
    fn queued(&mut self) -> u32 {
        let pieces: u32 = self.pieces.iter().map(|pieces| pieces.left).sum();
        if self.inner.queued() >= pieces { u32::MAX } else { 0 }
    }

    fn sync(&mut self, what: Stability, _target: Option<u32>) -> io::Result<()> {
        // The members are one target.
        self.inner.sync(what, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_are_a_bijection(chunk in 1u64..40, members in 1u64..7, rows in 1u64..5) {
            let size = chunk * members * rows;
            let mut seen = std::collections::HashSet::new();
            for offset in 0..size {
                let (member, inside) = member_offset(offset, chunk, members);
                prop_assert!(u64::from(member) < members && inside < chunk * rows);
                prop_assert!(seen.insert((member, inside)));
            }
        }
    }
}
