//! RAID 0 over several open files, above any asynchronous session.

use crate::session::{Session, Wait};
use machine::{Completion, Request, Stability};
use std::io;

/// What is left of a request that was split over members.
#[derive(Clone, Copy, Default)]
struct Pieces {
    left: u32,
    done: i32,
}

/// A session that splits each request at the chunk boundaries and is done when every piece is.
pub(crate) struct Striped<S> {
    inner: S,
    members: u64,
    chunk: u64,
    pieces: Box<[Pieces]>,
}

impl<S: Session> Striped<S> {
    /// Stripes over the `members` files of `inner` in chunks of `chunk` bytes, for `depth` requests.
    pub(crate) fn new(inner: S, members: u32, chunk: u64, depth: u32) -> Striped<S> {
        Striped {
            inner,
            members: u64::from(members),
            chunk,
            pieces: vec![Pieces::default(); depth as usize].into_boxed_slice(),
        }
    }
}

/// The member and the offset in it of a byte of the stripe.
pub(crate) fn member_offset(offset: u64, chunk: u64, members: u64) -> (u32, u64) {
    let (row, within) = (offset / chunk, offset % chunk);
    ((row % members) as u32, row / members * chunk + within)
}

/// The most pieces that a request of `len` bytes can have.
pub(crate) fn most_pieces(len: u32, chunk: u64) -> u64 {
    u64::from(len).div_ceil(chunk) + 1
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
            // SAFETY: `done` is below the request's length, which is the length of the data at `at`.
            self.inner.issue(member, &Request { offset, len, ..*request }, unsafe { at.add(done as usize) });
            done += len;
        }
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
            // The first error stands for the whole request.
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

    /// All or none: nobody can tell how many requests have a piece at the kernel, but whether any has.
    fn queued(&mut self) -> u32 {
        let pieces: u32 = self.pieces.iter().map(|pieces| pieces.left).sum();
        if self.inner.queued() >= pieces { u32::MAX } else { 0 }
    }

    fn sync(&mut self, what: Stability) -> io::Result<()> {
        self.inner.sync(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every byte of the stripe has a place of its own, and the members fill evenly.
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
