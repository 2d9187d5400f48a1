//! Writes that are to be read back.

use super::verify::VerifyStats;
use machine::{Nanos, Op, Request};
use std::collections::BTreeMap;

/// Bytes that were written at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) target: u32,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// It was under way together with an older one that it overlaps: which of the two came last nobody knows.
    pub(crate) unsure: bool,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    fn overlaps(&self, other: &Piece) -> bool {
        self.target == other.target && self.offset < other.end() && other.offset < self.end()
    }

    /// The request that reads it.
    pub(crate) fn reading(&self, slot: u32) -> Request {
        Request { op: Op::Read, target: self.target, offset: self.offset, len: self.len, slot }
    }
}

/// A piece that is being read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Read {
    pub(crate) piece: Option<Piece>,
    pub(crate) since: Nanos,
}

impl Read {
    /// Checks what was read.
    pub(crate) fn check(&self, stats: &VerifyStats, data: &[u8]) {
        if let Some(piece) = self.piece.filter(|piece| !piece.unsure) {
            stats.check(piece.offset, data);
        }
    }
}

/// The pieces that a stream wrote and nobody has read back yet.
#[derive(Debug)]
pub(crate) enum Pieces {
    /// None overlaps another: all of them, in order.
    Apart(Vec<Piece>),
    /// As in fio: one that a newer overlaps is forgotten as a whole, and the others are read in the order of their places.
    Newest { by_place: BTreeMap<(u32, u64), Piece>, under_way: Box<[Option<Piece>]> },
}

impl Pieces {
    /// Of a stream of this depth, whose writes may overlap.
    pub(crate) fn new(overlap: bool, depth: u32) -> Pieces {
        if overlap {
            Pieces::Newest { by_place: BTreeMap::new(), under_way: vec![None; depth as usize].into_boxed_slice() }
        } else {
            Pieces::Apart(Vec::new())
        }
    }

    /// A write is issued.
    pub(crate) fn add(&mut self, request: &Request) {
        let Request { target, offset, len, slot, .. } = *request;
        let mut piece = Piece { target, offset, len, unsure: false };
        match self {
            Pieces::Apart(pieces) => pieces.push(piece),
            Pieces::Newest { by_place, under_way } => {
                piece.unsure = under_way.iter().flatten().any(|other| other.overlaps(&piece));
                // Those that are known lie apart: the last that begins before its end is the only candidate.
                while let Some((&place, _)) =
                    by_place.range(..(target, piece.end())).next_back().filter(|(_, other)| other.overlaps(&piece))
                {
                    by_place.remove(&place);
                }
                under_way[slot as usize] = Some(piece);
                by_place.insert((target, offset), piece);
            }
        }
    }

    /// The write in this slot is done.
    pub(crate) fn done(&mut self, slot: u32) {
        if let Pieces::Newest { under_way, .. } = self {
            under_way[slot as usize] = None;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Pieces::Apart(pieces) => pieces.is_empty(),
            Pieces::Newest { by_place, .. } => by_place.is_empty(),
        }
    }

    /// All of them, to be read in this order; none is left.
    pub(crate) fn drain(&mut self) -> Vec<Piece> {
        match self {
            Pieces::Apart(pieces) => std::mem::take(pieces),
            Pieces::Newest { by_place, .. } => std::mem::take(by_place).into_values().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(slot: u32, target: u32, offset: u64, len: u32) -> Request {
        Request { op: Op::Write, target, offset, len, slot }
    }

    #[test]
    fn what_was_under_way_together_is_not_sure() {
        let mut pieces = Pieces::new(true, 2);
        pieces.add(&write(0, 0, 0, 8));
        pieces.add(&write(1, 0, 4, 8));
        assert!(matches!(pieces.drain()[..], [Piece { offset: 4, unsure: true, .. }]));
        pieces.done(0);
        pieces.done(1);
        pieces.add(&write(0, 0, 2, 4));
        pieces.add(&write(1, 1, 2, 4));
        assert!(pieces.drain().iter().all(|piece| !piece.unsure), "another file is another place");
    }

    proptest! {
        #[test]
        fn what_is_left_is_what_was_written_last(writes in prop::collection::vec((0u32..2, 0u64..60, 1u32..12), 0..40)) {
            let mut pieces = Pieces::new(true, 1);
            let mut kept: Vec<(u32, u64, u32)> = Vec::new();
            for &(target, offset, len) in &writes {
                pieces.add(&write(0, target, offset, len));
                pieces.done(0);
                kept.retain(|&(other, at, long)| {
                    other != target || at + u64::from(long) <= offset || offset + u64::from(len) <= at
                });
                kept.push((target, offset, len));
            }
            kept.sort_unstable();
            let read: Vec<(u32, u64, u32)> = pieces.drain().iter().map(|one| (one.target, one.offset, one.len)).collect();
            prop_assert_eq!(read, kept);
            prop_assert!(pieces.is_empty());
        }
    }
}
