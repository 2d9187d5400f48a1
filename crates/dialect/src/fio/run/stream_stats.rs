use super::failures::Failures;
use super::histogram_log::HistogramLog;
use super::min_rate::StopReason;
use super::result::CloneStats;
use crate::fio::options::kinds::SPREAD_NS;
use crate::fio::options::trace::Entry;
use crate::fio::plan::jobs::Job;
use machine::{Nanos, Op};
use measure::histogram::Histogram;

const WINDOWS: usize = 4096;
pub(crate) const LINES: usize = 1 << 16;

/// Reads, writes, trims.
pub const SIDES: usize = 3;
/// Reads and writes are as in [`Op`].
pub(crate) const TRIM: usize = 2;
const _: () = assert!(Op::Read as usize == 0 && Op::Write as usize == 1);

/// Of reads, writes and trims.
pub type BySide = [Histogram; SIDES];

pub(crate) fn by_side() -> BySide {
    std::array::from_fn(|_| Histogram::new())
}

pub(crate) fn merged(latency: &BySide) -> Histogram {
    let mut all = Histogram::new();
    latency.iter().for_each(|side| all.merge(side));
    all
}

/// Requests' times in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    pub sum_ns: u64,
    pub max_ns: u64,
}

impl Times {
    fn add(&mut self, other: Times) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    fn of(ns: Nanos) -> Times {
        Times { sum_ns: ns, max_ns: ns }
    }
}

/// One direction in one window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub requests: u64,
    pub bytes: u64,
    /// From issue to completion.
    pub latency: Times,
    /// Of the submission, if measured.
    pub submission: Times,
    /// The rest.
    pub completion: Times,
}

impl Sum {
    pub fn add(&mut self, other: Sum) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latency.add(other.latency);
        self.submission.add(other.submission);
        self.completion.add(other.completion);
    }

    fn of(done: &Done) -> Sum {
        Sum {
            requests: 1,
            bytes: u64::from(done.bytes),
            latency: Times::of(done.latency_ns),
            submission: Times::of(done.submission_ns.unwrap_or(0)),
            completion: Times::of(done.completion_ns()),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub(crate) at: Nanos,
    pub(crate) side: usize,
    pub(crate) bytes: u32,
    pub(crate) offset: u64,
    pub(crate) latency_ns: Nanos,
    /// `None`: not measured.
    pub(crate) submission_ns: Option<Nanos>,
    /// The kernel's value; 0: none of its own.
    pub(crate) priority: u16,
}

impl Done {
    fn completion_ns(&self) -> Nanos {
        self.latency_ns - self.submission_ns.unwrap_or(0)
    }
}

/// Sums by window and direction.
#[derive(Debug, Clone)]
pub struct Windows {
    pub width_ns: Nanos,
    end: Nanos,
    open: [Sum; SIDES],
    pub closed: Vec<[Sum; SIDES]>,
}

impl Windows {
    pub(crate) fn new(width_ns: Nanos) -> Windows {
        Windows {
            width_ns,
            end: Nanos::MAX,
            open: [Sum::default(); SIDES],
            closed: Vec::with_capacity(WINDOWS),
        }
    }

    pub(crate) fn begin(&mut self, now: Nanos) {
        self.end = now.saturating_add(self.width_ns);
    }

    #[inline(always)]
    fn add(&mut self, done: &Done) {
        while done.at >= self.end {
            self.closed.push(std::mem::take(&mut self.open));
            self.end += self.width_ns;
        }
        self.open[done.side].add(Sum::of(done));
    }

    /// Finished windows, or the open one.
    pub fn whole(&self) -> Vec<[Sum; SIDES]> {
        if self.closed.is_empty() { vec![self.open] } else { self.closed.clone() }
    }
}

/// A request in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// End, since the start of the measured part.
    pub at_ns: Nanos,
    pub latency_ns: Nanos,
    /// `None`: not measured.
    pub submission_ns: Option<Nanos>,
    /// 0: read, 1: write, 2: trim.
    pub side: u8,
    pub bytes: u32,
    pub offset: u64,
    /// The kernel's value.
    pub priority: u16,
}

#[derive(Debug, Clone)]
pub(crate) struct ByPriority {
    whole: bool,
    pub(crate) all: Vec<(u16, BySide)>,
}

impl ByPriority {
    fn new(whole: bool) -> ByPriority {
        ByPriority { whole, all: Vec::new() }
    }

    fn add(&mut self, done: &Done) {
        let ns = if self.whole { done.latency_ns } else { done.completion_ns() };
        let place =
            self.all.iter().position(|(bits, _)| *bits == done.priority).unwrap_or_else(|| {
                self.all.push((done.priority, by_side()));
                self.all.len() - 1
            });
        self.all[place].1[done.side].record(ns);
    }
}

/// fio's power-of-two classes: 0, 1..=4, ..=8, ..=16, ..=32, ..=64, more.
pub type Batches = [u64; 7];

pub(crate) fn batch(count: u32) -> usize {
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

#[derive(Debug, Clone)]
pub struct StreamStats {
    /// From issue, if different from the stream's.
    pub from_issue: Option<BySide>,
    /// Submission and completion; `None`: not measured.
    pub phases: Option<[BySide; 2]>,
    pub requests: [u64; SIDES],
    pub bytes: [u64; SIDES],
    pub spread: Windows,
    pub log: Option<Windows>,
    pub lines: Option<Vec<Line>>,
    pub histograms: Option<HistogramLog>,
    pub syncs: Histogram,
    pub full_syncs: u64,
    pub depths: Batches,
    pub submitted: Batches,
    pub completed: Batches,
    /// Start of the measured part, and its last completion.
    pub span: (Nanos, Nanos),
    pub read_back: Option<CloneStats>,
    /// Of the span, for reading back.
    pub apart_ns: Nanos,
    pub(crate) trace: Option<Vec<Entry>>,
    pub(crate) progress: Option<u64>,
    pub(crate) failures: Failures,
    pub(crate) priorities: Option<ByPriority>,
    pub(crate) depth_found: u32,
    pub(crate) end_sync: Option<(Nanos, Nanos)>,
    pub(crate) gave_up: Option<StopReason>,
}

impl StreamStats {
    pub(crate) fn new(job: &Job) -> StreamStats {
        let logs = &job.options.logs;
        let average = logs.any().then_some(logs.average_ms);
        let own_latency = job.is_rated() || job.trims();
        StreamStats {
            from_issue: own_latency.then(by_side),
            phases: job.times_submission().then(|| [by_side(), by_side()]),
            requests: [0; SIDES],
            bytes: [0; SIDES],
            spread: Windows::new(SPREAD_NS),
            log: average.filter(|&ms| ms > 0).map(|ms| Windows::new(ms * 1_000_000)),
            lines: average.filter(|&ms| ms == 0).map(|_| Vec::with_capacity(LINES)),
            histograms: HistogramLog::of(logs),
            syncs: Histogram::new(),
            full_syncs: 0,
            depths: [0; 7],
            submitted: [0; 7],
            completed: [0; 7],
            span: (0, 0),
            read_back: None,
            apart_ns: 0,
            trace: None,
            progress: None,
            failures: Failures::default(),
            priorities: job
                .options
                .cmdprio
                .is_on()
                .then(|| ByPriority::new(job.options.lat_percentiles)),
            depth_found: 0,
            end_sync: None,
            gave_up: None,
        }
    }

    pub(crate) fn begin(&mut self, at: Nanos) {
        self.span = (at, at);
        self.spread.begin(at);
        if let Some(log) = &mut self.log {
            log.begin(at);
        }
        if let Some(histograms) = &mut self.histograms {
            histograms.begin(at);
        }
    }

    /// As in fio, a failure counts as a request without data.
    pub(crate) fn add_failed(&mut self, at: Nanos, side: usize) {
        self.requests[side] += 1;
        self.span.1 = at;
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, done: &Done) {
        self.requests[done.side] += 1;
        self.bytes[done.side] += u64::from(done.bytes);
        self.span.1 = done.at;
        if let Some(from_issue) = &mut self.from_issue {
            from_issue[done.side].record(done.latency_ns);
        }
        if let Some([submission, completion]) = &mut self.phases {
            if let Some(ns) = done.submission_ns {
                submission[done.side].record(ns);
            }
            completion[done.side].record(done.completion_ns());
        }
        if let Some(priorities) = &mut self.priorities {
            priorities.add(done);
        }
        self.spread.add(done);
        if let Some(log) = &mut self.log {
            log.add(done);
        }
        if let Some(histograms) = &mut self.histograms {
            histograms.add(done.at, done.side, done.bytes, done.completion_ns());
        }
        if let Some(lines) = &mut self.lines {
            lines.push(Line {
                at_ns: done.at - self.span.0,
                latency_ns: done.latency_ns,
                submission_ns: done.submission_ns,
                side: done.side as u8,
                bytes: done.bytes,
                offset: done.offset,
                priority: done.priority,
            });
        }
    }
}
