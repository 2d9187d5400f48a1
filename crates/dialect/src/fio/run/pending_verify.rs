use super::contested::Contest;
use super::verify::CloneVerify;
use machine::{Nanos, Op, Request};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) target: u32,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

impl From<&Request> for Piece {
    fn from(request: &Request) -> Piece {
        Piece { target: request.target, offset: request.offset, len: request.len }
    }
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    fn overlaps(&self, other: &Piece) -> bool {
        self.target == other.target && self.offset < other.end() && other.offset < self.end()
    }

    pub(crate) fn reading(&self, slot: u32) -> Request {
        Request { op: Op::Read, target: self.target, offset: self.offset, len: self.len, slot }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Read {
    piece: Option<Piece>,
    pub(crate) since: Nanos,
    write: Option<u64>,
}

/// 0 if no other write can overlap.
fn write_of(contest: Option<&Contest>, piece: &Piece) -> Option<u64> {
    contest.map_or(Some(0), |contest| contest.known(piece))
}

impl Read {
    pub(crate) fn of(piece: Piece, since: Nanos, contest: Option<&Contest>) -> Read {
        Read { piece: Some(piece), since, write: write_of(contest, &piece) }
    }

    /// Skips data that overlapping writes may have changed.
    pub(crate) fn check(&self, stats: &CloneVerify, contest: Option<&Contest>, data: &[u8]) {
        let Some(piece) = self.piece else { return };
        if self.write.is_some() && write_of(contest, &piece) == self.write {
            stats.check_block(piece.target, piece.offset, data);
        } else {
            stats.leave(data.len());
        }
    }
}

#[derive(Debug)]
pub(crate) enum PendingVerify {
    /// In order, without overlaps.
    Apart(Vec<Piece>),
    /// As in fio, a write removes older ones that it overlaps; reading is in offset order.
    Newest(BTreeMap<(u32, u64), Piece>),
}

impl PendingVerify {
    pub(crate) fn new(overlap: bool) -> PendingVerify {
        if overlap {
            PendingVerify::Newest(BTreeMap::new())
        } else {
            PendingVerify::Apart(Vec::new())
        }
    }

    pub(crate) fn add(&mut self, request: &Request) {
        let piece = Piece::from(request);
        let Piece { target, offset, .. } = piece;
        match self {
            PendingVerify::Apart(pieces) => pieces.push(piece),
            PendingVerify::Newest(by_place) => {
                // Known pieces do not overlap, so only the last one that begins before the end can
                // overlap this write.
                while let Some((&place, _)) = by_place
                    .range(..(target, piece.end()))
                    .next_back()
                    .filter(|(_, other)| other.overlaps(&piece))
                {
                    by_place.remove(&place);
                }
                by_place.insert((target, offset), piece);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            PendingVerify::Apart(pieces) => pieces.len(),
            PendingVerify::Newest(by_place) => by_place.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn take(&mut self, count: u64) -> Vec<Piece> {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(self.len());
        match self {
            _ if count == self.len() => self.drain(),
            PendingVerify::Apart(pieces) => pieces.drain(..count).collect(),
            PendingVerify::Newest(by_place) => {
                (0..count).filter_map(|_| by_place.pop_first()).map(|(_, piece)| piece).collect()
            }
        }
    }

    pub(crate) fn drain(&mut self) -> Vec<Piece> {
        match self {
            PendingVerify::Apart(pieces) => std::mem::take(pieces),
            PendingVerify::Newest(by_place) => std::mem::take(by_place).into_values().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn only_the_newest_overlapping_writes_remain(writes in prop::collection::vec((0u32..2, 0u64..60, 1u32..12), 0..40)) {
            let mut pieces = PendingVerify::new(true);
            let mut kept: Vec<(u32, u64, u32)> = Vec::new();
            for &(target, offset, len) in &writes {
                pieces.add(&Request { op: Op::Write, target, offset, len, slot: 0 });
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
