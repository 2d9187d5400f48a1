//! What fio's reports need of each request, recorded around a stream.

use super::plan::Job;
use machine::{Asker, Completion, Nanos, Next, Op, Request, Stability};
use measure::Stream;
use measure::histogram::Histogram;

/// Time over which fio averages rates for their spread.
pub(crate) const SPREAD_NS: Nanos = 500_000_000;
/// Windows for which there is room from the beginning.
const WINDOWS: usize = 4096;
/// Lines of a log without averages for which there is room from the beginning.
const LINES: usize = 1 << 16;

/// Requests of one direction in one window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// Requests.
    pub requests: u64,
    /// Sum of their latencies.
    pub latency_ns: u64,
}

/// Sums in equal windows of time, by direction.
#[derive(Debug, Clone)]
pub struct Windows {
    /// Width of a window.
    pub width_ns: Nanos,
    end: Nanos,
    open: [Sum; 2],
    /// The windows that are over.
    pub closed: Vec<[Sum; 2]>,
}

impl Windows {
    fn new(width_ns: Nanos) -> Windows {
        Windows { width_ns, end: Nanos::MAX, open: [Sum::default(); 2], closed: Vec::with_capacity(WINDOWS) }
    }

    fn begin(&mut self, now: Nanos) {
        self.end = now.saturating_add(self.width_ns);
    }

    #[inline(always)]
    fn add(&mut self, now: Nanos, op: Op, latency: Nanos) {
        while now >= self.end {
            self.closed.push(std::mem::take(&mut self.open));
            self.end += self.width_ns;
        }
        let sum = &mut self.open[op as usize];
        sum.requests += 1;
        sum.latency_ns = sum.latency_ns.saturating_add(latency);
    }

    /// The windows that are over, or the open one where there is no other.
    pub fn whole(&self) -> Vec<[Sum; 2]> {
        if self.closed.is_empty() { vec![self.open] } else { self.closed.clone() }
    }

    /// All windows, the last of them shorter than the others.
    pub fn with_open(&self) -> Vec<[Sum; 2]> {
        let mut all = self.closed.clone();
        all.push(self.open);
        all
    }
}

/// One request in a log without averages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// When it ended, from the beginning of what is measured.
    pub at_ns: Nanos,
    /// Its latency.
    pub latency_ns: Nanos,
    /// What it did.
    pub op: Op,
}

/// Counts by power of two, as fio's report has them: 0, 1..=4, ..=8, ..=16, ..=32, ..=64, more.
pub type Batches = [u64; 7];

fn batch(count: u32) -> usize {
    match count {
        0 => 0,
        1..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        17..=32 => 4,
        33..=64 => 5,
        _ => 6,
    }
}

/// What one stream recorded.
#[derive(Debug, Clone)]
pub struct Record {
    /// Latencies from issue to completion of reads and of writes, where they are not those of the stream.
    pub from_issue: Option<[Histogram; 2]>,
    /// Requests by direction.
    pub requests: [u64; 2],
    /// Rates for their spread.
    pub spread: Windows,
    /// The averaged log.
    pub log: Option<Windows>,
    /// The log without averages.
    pub lines: Option<Vec<Line>>,
    /// Times of syncs between requests.
    pub syncs: Histogram,
    /// Requests by those outstanding with them: 1, 2, 4, ..., 64 and more.
    pub depths: Batches,
    /// Submissions by their requests.
    pub submitted: Batches,
    /// Takings of completions by their requests.
    pub completed: Batches,
    /// When what is measured began and last ended something.
    pub span: (Nanos, Nanos),
}

/// A stream with what is recorded of it.
pub(crate) struct Recorder {
    stream: Stream,
    record: Record,
    member: Option<u32>,
    delay: Nanos,
    ramp: Nanos,
    starts: Nanos,
    measured_from: Nanos,
    begun: bool,
    issued: Box<[(Nanos, Op)]>,
    in_flight: u32,
    issued_in_row: u32,
    completed_in_row: u32,
    sync_every: u64,
    sync_what: Stability,
    unsynced: u64,
}

impl Recorder {
    /// Around a stream of a job, on the target's `member`.
    pub(crate) fn new(stream: Stream, job: &Job, member: Option<u32>) -> Recorder {
        let options = &job.options;
        let depth = stream.depth() as usize;
        let average = options.logs.any().then_some(options.logs.average_ms);
        let sync_every = options.fsync.max(options.fdatasync);
        Recorder {
            record: Record {
                from_issue: job.rate_iops().map(|_| [Histogram::new(), Histogram::new()]),
                requests: [0; 2],
                spread: Windows::new(SPREAD_NS),
                log: average.filter(|&ms| ms > 0).map(|ms| Windows::new(ms * 1_000_000)),
                lines: average.filter(|&ms| ms == 0).map(|_| Vec::with_capacity(LINES)),
                syncs: Histogram::new(),
                depths: [0; 7],
                submitted: [0; 7],
                completed: [0; 7],
                span: (0, 0),
            },
            member,
            delay: options.start_delay_ns,
            ramp: options.ramp_ns,
            starts: 0,
            measured_from: 0,
            begun: false,
            issued: vec![(0, Op::Read); depth].into_boxed_slice(),
            in_flight: 0,
            issued_in_row: 0,
            completed_in_row: 0,
            sync_every,
            sync_what: if options.fsync > 0 { Stability::File } else { Stability::Data },
            unsynced: 0,
            stream,
        }
    }

    /// The stream and its record, after the run.
    pub(crate) fn into_parts(self) -> (Stream, Record) {
        (self.stream, self.record)
    }

    #[cold]
    fn start(&mut self, now: Nanos) {
        self.begun = true;
        self.stream.begin(now);
        self.measured_from = now + self.ramp;
        self.record.span = (self.measured_from, self.measured_from);
        self.record.spread.begin(self.measured_from);
        if let Some(log) = &mut self.record.log {
            log.begin(self.measured_from);
        }
    }

    /// Counts the requests issued in a row.
    #[inline(always)]
    fn end_of_row(&mut self) {
        if self.issued_in_row > 0 {
            self.record.submitted[batch(self.issued_in_row)] += 1;
            self.issued_in_row = 0;
        }
    }
}

impl Asker for Recorder {
    fn depth(&self) -> u32 {
        self.stream.depth()
    }

    fn max_request(&self) -> u32 {
        self.stream.max_request()
    }

    fn writes(&self) -> bool {
        self.stream.writes()
    }

    fn member(&self) -> Option<u32> {
        self.member
    }

    #[inline(always)]
    fn sync_due(&self) -> Option<Stability> {
        (self.sync_every > 0 && self.unsynced >= self.sync_every).then_some(self.sync_what)
    }

    fn synced(&mut self, began: Nanos, ended: Nanos) {
        self.unsynced = 0;
        if began >= self.measured_from {
            self.record.syncs.record(ended.saturating_sub(began));
        }
    }

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        self.stream.fill_buffers(buffers);
    }

    fn begin(&mut self, now: Nanos) {
        self.starts = now + self.delay;
        if self.delay == 0 {
            self.start(now);
        }
    }

    #[inline(always)]
    fn next(&mut self, now: Nanos) -> Next {
        if self.completed_in_row > 0 {
            self.record.completed[batch(self.completed_in_row)] += 1;
            self.completed_in_row = 0;
        }
        if !self.begun {
            if now < self.starts {
                return Next::WaitUntil(self.starts);
            }
            self.start(now);
        }
        let next = self.stream.next(now);
        if let Next::Issue(request) = next {
            self.issued[request.slot as usize] = (now, request.op);
            self.in_flight += 1;
            self.issued_in_row += 1;
            self.record.depths[(self.in_flight.ilog2() as usize).min(6)] += 1;
        } else {
            self.end_of_row();
        }
        next
    }

    #[inline(always)]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        // An engine that serves where it is asked completes without asking again.
        self.end_of_row();
        self.stream.complete(completion, now);
        self.in_flight -= 1;
        self.completed_in_row += 1;
        let (issued, op) = self.issued[completion.slot as usize];
        self.unsynced += u64::from(op == Op::Write);
        if now < self.measured_from {
            return;
        }
        let latency = now - issued;
        let record = &mut self.record;
        record.requests[op as usize] += 1;
        record.span.1 = now;
        if let Some(from_issue) = &mut record.from_issue {
            from_issue[op as usize].record(latency);
        }
        record.spread.add(now, op, latency);
        if let Some(log) = &mut record.log {
            log.add(now, op, latency);
        }
        if let Some(lines) = &mut record.lines {
            lines.push(Line { at_ns: now - self.measured_from, latency_ns: latency, op });
        }
    }

    #[inline(always)]
    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        self.stream.fill(request, buffer);
    }
}
