//! Reading back what was written while the writing goes on: fio's `verify_backlog`, and what it does after each pass of `loops`.

use super::contested::Contest;
use super::pieces::{Piece, Pieces, Read};
use super::result::Recorded;
use super::verify::VerifyStats;
use machine::{Completion, Nanos, Next, Op, Request};
use measure::histogram::Histogram;
use std::sync::Arc;

/// After how much a stream's writes are read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Every {
    /// So many writes.
    Writes(u64),
    /// So many bytes: a pass.
    Bytes(u64),
}

/// The writes of a stream that are still to be read back, and the reading.
pub(crate) struct Backlog {
    stats: Arc<VerifyStats>,
    /// Set if other streams may write the same places, or its own writes overlap.
    contest: Option<Contest>,
    every: Every,
    /// What of it there was since the last reading.
    counted: u64,
    written: Pieces,
    /// What is being read.
    reading: Vec<Piece>,
    /// The next of them to be read; `None`: the stream writes.
    next: Option<usize>,
    free: Vec<u32>,
    issued: Box<[Read]>,
    latency: Histogram,
    bytes: u64,
    span: Option<(Nanos, Nanos)>,
}

impl Backlog {
    /// For a stream of this depth, whose writes may come to a place again.
    pub(crate) fn new(
        every: Every,
        depth: u32,
        repeats: bool,
        stats: Arc<VerifyStats>,
        contest: Option<Contest>,
    ) -> Backlog {
        Backlog {
            stats,
            contest,
            every,
            counted: 0,
            written: Pieces::new(repeats),
            reading: Vec::new(),
            next: None,
            free: (0..depth).collect(),
            issued: vec![Read::default(); depth as usize].into_boxed_slice(),
            latency: Histogram::new(),
            bytes: 0,
            span: None,
        }
    }

    /// What the stream issued.
    pub(crate) fn issued(&mut self, request: Request) {
        self.counted += match self.every {
            Every::Writes(_) => u64::from(request.op == Op::Write),
            Every::Bytes(_) => u64::from(request.len),
        };
        if request.op == Op::Write {
            self.written.add(&request);
        }
    }

    /// Bytes by which the last request of a pass went beyond it: the next one is as long as all.
    pub(crate) fn beyond(&self) -> u64 {
        match self.every {
            Every::Bytes(pass) => self.counted.saturating_sub(pass),
            Every::Writes(_) => 0,
        }
    }

    /// Whether what completes is a read of the backlog.
    pub(crate) fn is_reading(&self) -> bool {
        self.next.is_some()
    }

    /// What to do instead of asking the stream, which has so many requests in flight and may be over; `None`: ask it.
    pub(crate) fn before(&mut self, now: Nanos, in_flight: u32, over: bool) -> Option<Next> {
        if self.next.is_none() {
            let (Every::Writes(every) | Every::Bytes(every)) = self.every;
            if self.counted < every && !over {
                return None;
            }
            if self.written.is_empty() {
                self.counted = 0;
                return None;
            }
            if in_flight > 0 {
                return Some(Next::WaitForCompletion);
            }
            (self.reading, self.next) = (self.written.drain(), Some(0));
        }
        let at = self.next.unwrap_or(0);
        if let Some(piece) = self.reading.get(at) {
            let Some(slot) = self.free.pop() else { return Some(Next::WaitForCompletion) };
            self.next = Some(at + 1);
            self.issued[slot as usize] = Read::of(*piece, now, self.contest.as_ref());
            self.span.get_or_insert((now, now));
            return Some(Next::Issue(piece.reading(slot)));
        }
        if self.free.len() < self.issued.len() {
            return Some(Next::WaitForCompletion);
        }
        (self.next, self.span) = (None, self.span.map(|(began, _)| (began, now)));
        self.reading.clear();
        self.counted = 0;
        None
    }

    /// A read of the backlog is done.
    pub(crate) fn complete(&mut self, completion: Completion, now: Nanos) {
        self.free.push(completion.slot);
        self.latency.record(now - self.issued[completion.slot as usize].since);
        self.bytes += u64::from(completion.result.unsigned_abs());
    }

    /// Checks what was read.
    pub(crate) fn check(&self, slot: u32, data: &[u8]) {
        self.issued[slot as usize].check(&self.stats, self.contest.as_ref(), data);
    }

    /// What the reading took.
    pub(crate) fn recorded(self) -> Recorded {
        let runtime_ns = self.span.map_or(0, |(began, ended)| ended.saturating_sub(began));
        Recorded::of_reads(self.latency, self.bytes, runtime_ns)
    }
}
