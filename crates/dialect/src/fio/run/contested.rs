//! Tracks which bytes certainly come from one write.

use super::pending_verify::Piece;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Left by an earlier job.
const UNWRITTEN: u64 = 0;

#[derive(Debug, Clone, Copy)]
struct Write {
    number: u64,
    offset: u64,
    end: u64,
    /// Index of its blocks' settings; `None`: not verified.
    maker: Option<usize>,
    /// In flight with an overlapping write: either may have won.
    overlapped: bool,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    /// The last write by file and first byte, up to an end.
    last: BTreeMap<(usize, u64), (u64, Write)>,
    under_way: Vec<(usize, Write)>,
}

impl State {
    fn begin(&mut self, file: usize, offset: u64, len: u32, maker: Option<usize>) -> u64 {
        self.count += 1;
        let end = offset + u64::from(len);
        let overlapped = self
            .under_way
            .iter()
            .any(|(other, write)| *other == file && write.offset < end && offset < write.end);
        let write = Write { number: self.count, offset, end, maker, overlapped };
        // The new write replaces the parts that it covers; older writes keep the rest.
        while let Some((&(_, start), &(until, older))) = self
            .last
            .range((file, 0)..(file, end))
            .next_back()
            .filter(|(_, (until, _))| *until > offset)
        {
            self.last.remove(&(file, start));
            if until > end {
                self.last.insert((file, end), (until, older));
            }
            if start < offset {
                self.last.insert((file, start), (offset, older));
            }
        }
        self.last.insert((file, offset), (end, write));
        self.under_way.push((file, write));
        write.number
    }

    /// The ended write of `maker` that alone left these bytes.
    fn known(&self, file: usize, offset: u64, len: u32, maker: usize) -> Option<u64> {
        let end = offset + u64::from(len);
        let Some((&(_, start), &(until, write))) = self
            .last
            .range((file, 0)..(file, end))
            .next_back()
            .filter(|(_, (until, _))| *until > offset)
        else {
            return Some(UNWRITTEN);
        };
        let whole = (start, until) == (offset, end) && (write.offset, write.end) == (offset, end);
        let done = !self.under_way.iter().any(|(_, other)| other.number == write.number);
        (whole && done && !write.overlapped && write.maker == Some(maker)).then_some(write.number)
    }
}

/// All writes to files in which requests may overlap.
#[derive(Debug, Default)]
pub(crate) struct Contested(Mutex<State>);

impl Contested {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Contest {
    all: Arc<Contested>,
    files: Arc<[usize]>,
    /// `None`: the stream does not verify.
    maker: Option<usize>,
}

impl Contest {
    pub(crate) fn new(all: Arc<Contested>, files: &[usize], maker: Option<usize>) -> Contest {
        Contest { all, files: files.into(), maker }
    }

    pub(crate) fn begin(&self, piece: &Piece, stamped: bool) -> u64 {
        let maker = self.maker.filter(|_| stamped);
        self.all.with(|state| {
            state.begin(self.files[piece.target as usize], piece.offset, piece.len, maker)
        })
    }

    pub(crate) fn end(&self, number: u64) {
        self.all.with(|state| state.under_way.retain(|(_, write)| write.number != number));
    }

    /// `None`: others may have left the bytes.
    pub(crate) fn known(&self, piece: &Piece) -> Option<u64> {
        let file = self.files[piece.target as usize];
        self.all.with(|state| state.known(file, piece.offset, piece.len, self.maker?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: u64 = 40;

    proptest! {
        #[test]
        fn known_data_matches_the_last_write_of_each_byte(
            steps in prop::collection::vec((0u8..4, 0usize..2, 0..BYTES, 1u32..12, 0usize..2), 0..80)
        ) {
            let mut state = State::default();
            // Of each byte: the number of its last write.
            let mut bytes = vec![vec![UNWRITTEN; BYTES as usize + 12]; 2];
            let mut writes: Vec<(usize, u64, u32, usize, bool)> = Vec::new();
            let mut under_way: Vec<u64> = Vec::new();
            for (what, file, offset, len, maker) in steps {
                match what {
                    0 | 1 => {
                        let meets = |&number: &u64| {
                            let (other, at, long, ..) = writes[number as usize - 1];
                            other == file && at < offset + u64::from(len) && offset < at + u64::from(long)
                        };
                        let overlapped = under_way.iter().any(meets);
                        let number = state.begin(file, offset, len, Some(maker));
                        writes.push((file, offset, len, maker, overlapped));
                        prop_assert_eq!(number, writes.len() as u64);
                        under_way.push(number);
                        bytes[file][offset as usize..][..len as usize].fill(number);
                    }
                    2 if !under_way.is_empty() => {
                        let number = under_way.swap_remove(offset as usize % under_way.len());
                        state.under_way.retain(|(_, write)| write.number != number);
                    }
                    _ => {}
                }
                let there = &bytes[file][offset as usize..][..len as usize];
                let first = there[0];
                let same = there.iter().all(|number| *number == first);
                let wanted = if first == UNWRITTEN {
                    same.then_some(UNWRITTEN)
                } else {
                    let (_, at, long, by, overlapped) = writes[first as usize - 1];
                    let whole = same && (at, long) == (offset, len);
                    (whole && by == maker && !overlapped && !under_way.contains(&first)).then_some(first)
                };
                prop_assert_eq!(state.known(file, offset, len, maker), wanted);
            }
        }
    }
}
