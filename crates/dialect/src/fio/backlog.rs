//! Reading back what was written while the writing goes on: fio's `verify_backlog`, and what it does after each pass of `loops`.

use super::result::Recorded;
use super::verify::VerifyStats;
use machine::{Completion, Nanos, Next, Op, Request};
use measure::histogram::Histogram;
use std::sync::Arc;

/// The writes of a stream that are still to be read back, and the reading.
pub(crate) struct Backlog {
    stats: Arc<VerifyStats>,
    /// Requests after which the writes among them are read back.
    every: u64,
    /// Reads count among these, as they do in a pass.
    of_passes: bool,
    /// Requests counted since the last reading.
    counted: u64,
    /// Writes may come to a place again: each is read once.
    repeats: bool,
    written: Vec<Request>,
    /// The next of them to be read; `None`: the stream writes.
    next: Option<usize>,
    free: Vec<u32>,
    issued: Box<[(u64, Nanos)]>,
    latency: Histogram,
    bytes: u64,
    span: Option<(Nanos, Nanos)>,
}

impl Backlog {
    /// For a stream of this depth, whose writes may come to a place again.
    pub(crate) fn new((every, of_passes): (u64, bool), depth: u32, repeats: bool, stats: Arc<VerifyStats>) -> Backlog {
        Backlog {
            stats,
            every,
            of_passes,
            counted: 0,
            repeats,
            written: Vec::with_capacity(every.min(1 << 16) as usize),
            next: None,
            free: (0..depth).collect(),
            issued: vec![(0, 0); depth as usize].into_boxed_slice(),
            latency: Histogram::new(),
            bytes: 0,
            span: None,
        }
    }

    /// What the stream issued.
    pub(crate) fn issued(&mut self, request: Request) {
        self.counted += u64::from(self.of_passes || request.op == Op::Write);
        if request.op == Op::Write {
            self.written.push(request);
        }
    }

    /// Whether what completes is a read of the backlog.
    pub(crate) fn is_reading(&self) -> bool {
        self.next.is_some()
    }

    /// What to do instead of asking the stream, which has so many requests in flight and may be over; `None`: ask it.
    pub(crate) fn before(&mut self, now: Nanos, in_flight: u32, over: bool) -> Option<Next> {
        if self.next.is_none() {
            if self.counted < self.every && !over {
                return None;
            }
            if self.written.is_empty() {
                self.counted = 0;
                return None;
            }
            if in_flight > 0 {
                return Some(Next::WaitForCompletion);
            }
            if self.repeats {
                self.written.sort_by_key(|request| (request.target, request.offset));
                self.written.dedup_by_key(|request| (request.target, request.offset));
            }
            self.next = Some(0);
        }
        let at = self.next.unwrap_or(0);
        if let Some(written) = self.written.get(at) {
            let Some(slot) = self.free.pop() else { return Some(Next::WaitForCompletion) };
            self.next = Some(at + 1);
            self.issued[slot as usize] = (written.offset, now);
            self.span.get_or_insert((now, now));
            return Some(Next::Issue(Request { op: Op::Read, slot, ..*written }));
        }
        if self.free.len() < self.issued.len() {
            return Some(Next::WaitForCompletion);
        }
        (self.next, self.span) = (None, self.span.map(|(began, _)| (began, now)));
        self.written.clear();
        self.counted = 0;
        None
    }

    /// A read of the backlog is done.
    pub(crate) fn complete(&mut self, completion: Completion, now: Nanos) {
        self.free.push(completion.slot);
        self.latency.record(now - self.issued[completion.slot as usize].1);
        self.bytes += u64::from(completion.result.unsigned_abs());
    }

    /// Checks what was read.
    pub(crate) fn check(&self, slot: u32, data: &[u8]) {
        self.stats.check(self.issued[slot as usize].0, data);
    }

    /// What the reading took.
    pub(crate) fn recorded(self) -> Recorded {
        let runtime_ns = self.span.map_or(0, |(began, ended)| ended.saturating_sub(began));
        Recorded::of_reads(self.latency, self.bytes, runtime_ns)
    }
}
