use super::contested::Contest;
use super::pending_verify::{Piece, Read};
use super::result::CloneStats;
use super::verify::CloneVerify;
use crate::fio::plan::turns::FileTurns;
use machine::{Completion, Nanos, Next, Op, Request, RequestSource};
use measure::histogram::Histogram;
use std::collections::HashSet;
use workload::Sequence;

pub(crate) enum Written {
    Walk(Box<Walk>),
    /// Recorded offsets.
    Pieces(std::vec::IntoIter<Piece>),
}

pub(crate) struct Walk {
    sequence: Sequence,
    turns: FileTurns,
    left: u64,
    left_bytes: u64,
    /// Offsets already read, if writes may repeat them: as in fio, each is read once.
    seen: Option<HashSet<(u32, u64)>>,
}

impl Walk {
    /// Walks the first `requests` of a sequence, up to `bytes` if given. With `repeats` offsets may
    /// repeat.
    pub(crate) fn new(
        sequence: Sequence,
        turns: FileTurns,
        requests: u64,
        bytes: Option<u64>,
        repeats: bool,
    ) -> Walk {
        let seen = repeats.then(HashSet::new);
        Walk { sequence, turns, left: requests, left_bytes: bytes.unwrap_or(u64::MAX), seen }
    }

    fn next(&mut self) -> Option<Piece> {
        while self.left > 0 {
            self.left -= 1;
            let (op, offset, len) = self.sequence.next();
            let len = u64::from(len).min(self.left_bytes) as u32;
            self.left_bytes -= u64::from(len);
            let mut request = Request { op, target: 0, offset, len, slot: 0 };
            let placed = self.turns.place(&mut request);
            let Request { target, offset, len, .. } = request;
            if op == Op::Write
                && placed
                && self.seen.as_mut().is_none_or(|seen| seen.insert((target, offset)))
            {
                return Some(Piece { target, offset, len });
            }
        }
        None
    }
}

pub(crate) struct Reader {
    written: Written,
    max_request: u32,
    free: Vec<u32>,
    issued: Box<[Read]>,
    stats: CloneVerify,
    contest: Option<Contest>,
    latency: Histogram,
    bytes: u64,
    span: (Nanos, Nanos),
}

impl Reader {
    pub(crate) fn new(
        written: Written,
        depth: u32,
        max_request: u32,
        stats: CloneVerify,
        contest: Option<Contest>,
    ) -> Self {
        Reader {
            written,
            max_request,
            free: (0..depth).collect(),
            issued: vec![Read::default(); depth as usize].into_boxed_slice(),
            stats,
            contest,
            latency: Histogram::new(),
            bytes: 0,
            span: (0, 0),
        }
    }

    pub(crate) fn recorded(self) -> CloneStats {
        CloneStats::of_reads(self.latency, self.bytes, self.span.1.saturating_sub(self.span.0))
    }
}

impl RequestSource for Reader {
    fn depth(&self) -> u32 {
        self.issued.len() as u32
    }

    fn max_request(&self) -> u32 {
        self.max_request
    }

    fn writes(&self) -> bool {
        false
    }

    fn begin(&mut self, now: Nanos) {
        self.span = (now, now);
    }

    fn next(&mut self, now: Nanos) -> Next {
        let Some(&slot) = self.free.last() else { return Next::WaitForCompletion };
        let piece = match &mut self.written {
            Written::Walk(walk) => walk.next(),
            Written::Pieces(pieces) => pieces.next(),
        };
        match piece {
            Some(piece) => {
                self.free.pop();
                self.issued[slot as usize] = Read::of(piece, now, self.contest.as_ref());
                Next::Issue(piece.reading(slot))
            }
            None if self.free.len() == self.issued.len() => Next::Done,
            None => Next::WaitForCompletion,
        }
    }

    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.free.push(completion.slot);
        self.latency.record(now - self.issued[completion.slot as usize].since);
        self.bytes += u64::from(completion.result.unsigned_abs());
        self.span.1 = now;
    }

    fn fill(&mut self, _request: &Request, _buffer: &mut [u8]) {}

    fn checks(&self) -> bool {
        true
    }

    fn check(&mut self, slot: u32, data: &[u8]) {
        self.issued[slot as usize].check(&self.stats, self.contest.as_ref(), data);
    }
}
