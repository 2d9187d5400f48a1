//! `verify_backlog`, and verification after each pass of `loops`.

use super::contested::Contest;
use super::pending_verify::{PendingVerify, Piece, Read};
use super::result::CloneStats;
use super::verify::CloneVerify;
use machine::{Completion, Nanos, Next, Op, Request};
use measure::histogram::Histogram;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BacklogInterval {
    Writes(u64),
    /// Bytes of a pass.
    Bytes(u64),
}

pub(crate) struct Backlog {
    stats: CloneVerify,
    /// Set if writes of this or other streams may overlap.
    contest: Option<Contest>,
    every: BacklogInterval,
    /// Writes read back before the next one; 0: all. As in fio, a batch beyond the interval
    /// continues with later writes.
    batch: u64,
    batch_left: u64,
    /// Since the last reading.
    counted: u64,
    written: PendingVerify,
    reading: Vec<Piece>,
    /// `None`: the stream is writing.
    next: Option<usize>,
    free: Vec<u32>,
    issued: Box<[Read]>,
    latency: Histogram,
    bytes: u64,
    span: Option<(Nanos, Nanos)>,
    reading_since: Nanos,
    /// Without the current reading.
    reading_ns: Nanos,
    /// Readings before the last own request.
    between_ns: Nanos,
}

impl Backlog {
    pub(crate) fn new(
        (every, batch): (BacklogInterval, u64),
        depth: u32,
        repeats: bool,
        stats: CloneVerify,
        contest: Option<Contest>,
    ) -> Backlog {
        Backlog {
            stats,
            contest,
            every,
            batch,
            batch_left: 0,
            counted: 0,
            written: PendingVerify::new(repeats),
            reading: Vec::new(),
            next: None,
            free: (0..depth).collect(),
            issued: vec![Read::default(); depth as usize].into_boxed_slice(),
            latency: Histogram::new(),
            bytes: 0,
            span: None,
            reading_since: 0,
            reading_ns: 0,
            between_ns: 0,
        }
    }

    pub(crate) fn issued(&mut self, request: Request) {
        self.between_ns = self.reading_ns;
        self.counted += match self.every {
            BacklogInterval::Writes(_) => u64::from(request.op == Op::Write),
            BacklogInterval::Bytes(_) => u64::from(request.len),
        };
        if request.op == Op::Write {
            self.written.add(&request);
        }
    }

    /// The excess over the pass; the next pass has its full length again.
    pub(crate) fn beyond(&self) -> u64 {
        match self.every {
            BacklogInterval::Bytes(pass) => self.counted.saturating_sub(pass),
            BacklogInterval::Writes(_) => 0,
        }
    }

    pub(crate) fn is_reading(&self) -> bool {
        self.next.is_some()
    }

    /// `None`: ask the stream. `late`: its time is over.
    pub(crate) fn before(
        &mut self,
        now: Nanos,
        in_flight: u32,
        over: bool,
        late: bool,
    ) -> Option<Next> {
        // As in fio, reading back after a pass ends with the time of the job.
        let stops = late && matches!(self.every, BacklogInterval::Bytes(_));
        if self.next.is_none() {
            if stops || !(over || self.is_due()) {
                return None;
            }
            if self.written.is_empty() {
                self.counted = 0;
                return None;
            }
            if in_flight > 0 {
                return Some(Next::WaitForCompletion);
            }
            let count = if over || self.batch == 0 { u64::MAX } else { self.batch_left };
            (self.reading, self.next) = (self.written.take(count), Some(0));
            self.batch_left = self.batch_left.saturating_sub(self.reading.len() as u64);
            self.reading_since = now;
        }
        let at = self.next.unwrap_or(0);
        if let Some(piece) = self.reading.get(at).filter(|_| !stops) {
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
        self.reading_ns += now - self.reading_since;
        self.reading.clear();
        self.counted = 0;
        None
    }

    fn is_due(&mut self) -> bool {
        let (BacklogInterval::Writes(every) | BacklogInterval::Bytes(every)) = self.every;
        if self.batch == 0 {
            return self.counted >= every;
        }
        if self.batch_left == 0 && self.written.len() as u64 >= every {
            self.batch_left = self.batch;
        }
        self.batch_left > 0
    }

    pub(crate) fn complete(&mut self, completion: Completion, now: Nanos) {
        self.free.push(completion.slot);
        self.latency.record(now - self.issued[completion.slot as usize].since);
        self.bytes += u64::from(completion.result.unsigned_abs());
    }

    pub(crate) fn check(&self, slot: u32, data: &[u8]) {
        self.issued[slot as usize].check(&self.stats, self.contest.as_ref(), data);
    }

    /// As in fio, only readings after each pass are not the stream's time.
    pub(crate) fn apart_ns(&self) -> Nanos {
        match self.every {
            BacklogInterval::Bytes(_) => self.between_ns,
            BacklogInterval::Writes(_) => 0,
        }
    }

    pub(crate) fn recorded(self) -> CloneStats {
        let span_ns = self.span.map_or(0, |(began, ended)| ended.saturating_sub(began));
        let runtime_ns = match self.every {
            BacklogInterval::Bytes(_) => self.reading_ns.min(span_ns),
            BacklogInterval::Writes(_) => span_ns,
        };
        CloneStats::of_reads(self.latency, self.bytes, runtime_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::super::verify::{Check, VerifyStats};
    use super::*;
    use crate::fio::options::job_options::Options;
    use std::sync::Arc;

    fn order(batch: u64) -> String {
        let mut options = Options::default();
        options.set("verify", Some("crc32c")).unwrap();
        let stats = Arc::new(VerifyStats::new(Check::of(&options).unwrap()));
        let stats = CloneVerify::new(&stats, &[0]);
        let mut backlog = Backlog::new((BacklogInterval::Writes(16), batch), 1, false, stats, None);
        let (mut written, mut calls) = (0, Vec::new());
        loop {
            match backlog.before(0, 0, written == 60, false) {
                Some(Next::Issue(request)) => {
                    calls.push('r');
                    backlog.complete(Completion { slot: request.slot, result: 4096 }, 0);
                }
                Some(other) => panic!("{other:?}"),
                None if written == 60 => break,
                None => {
                    calls.push('w');
                    let (op, offset) = (Op::Write, written * 4096);
                    backlog.issued(Request { op, target: 0, offset, len: 4096, slot: 0 });
                    written += 1;
                }
            }
        }
        let runs = calls.chunk_by(|a, b| a == b).map(|run| format!("{}{}", run[0], run.len()));
        runs.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_batch_is_read_before_the_next_write() {
        // The calls of fio 3.33, by strace.
        assert_eq!(order(0), "w16 r16 w16 r16 w16 r16 w12 r12");
        assert_eq!(order(16), order(0));
        assert_eq!(order(5), "w16 r5 w5 r5 w5 r5 w5 r5 w5 r5 w5 r5 w5 r5 w5 r5 w5 r5 w4 r15");
        let one_by_one = |count| vec!["w1 r1"; count].join(" ");
        let expected = format!("w16 r16 {} w16 r16 {}", one_by_one(16), one_by_one(12));
        assert_eq!(order(32), expected);
    }
}
