//! Holds or ends a stream for reasons other than its workload: pauses, batches, the end of other
//! jobs, a steady rate.

use super::steady::Watch;
use crate::fio::options::criterion::STEP_NS;
use crate::fio::plan::jobs::Job;
use machine::{Nanos, Next};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
    pub(crate) ns: Nanos,
    pub(crate) blocks: u64,
    pub(crate) issued: u64,
    pub(crate) until: Nanos,
}

impl Pauses {
    /// Returns a step that comes before the stream's own; `None`: ask the stream. As in fio,
    /// requests in flight finish first.
    pub(crate) fn before(&mut self, now: Nanos, in_flight: u32) -> Option<Next> {
        if self.issued < self.blocks {
            return (now < self.until).then_some(Next::WaitUntil(self.until));
        }
        if in_flight > 0 {
            return Some(Next::WaitForCompletion);
        }
        (self.issued, self.until) = (0, now + self.ns);
        Some(Next::WaitUntil(self.until))
    }
}

/// The common end of jobs with `exitall`.
#[derive(Debug, Clone)]
pub(crate) struct Exit {
    /// This stream ends when one of these is set.
    pub(crate) ends_if: [Arc<AtomicBool>; 2],
    /// Set when this stream is done.
    pub(crate) sets: Option<Arc<AtomicBool>>,
    /// Set when it fails.
    pub(crate) sets_on_error: Option<Arc<AtomicBool>>,
}

impl Exit {
    pub(crate) fn is_due(&self) -> bool {
        self.ends_if.iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Submits and replaces requests in groups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batching {
    pub(crate) submit: u32,
    /// Completions to wait for before replacing any.
    pub(crate) complete: u32,
    pub(crate) filling: bool,
    /// Issued since the last submission.
    pub(crate) row: u32,
    /// Completed since the last filling.
    pub(crate) done: u32,
}

impl Batching {
    /// Batching for a stream with queue depth `depth`; `None`: free slots are filled at once.
    pub(crate) fn of(job: &Job, depth: u32) -> Option<Batching> {
        let options = &job.options;
        // In fio 0 means all.
        let all = |count: u32| if count == 0 { depth } else { count.min(depth) };
        // After this many completions a full queue is down to its low mark.
        let down = options.low.map_or(1, |low| depth.saturating_sub(low));
        let (submit, complete) = (options.batch.map_or(1, all), options.batch_complete.max(down).clamp(1, depth));
        let asked = options.batch.is_some() || complete > 1;
        (asked && depth > 1).then_some(Batching { submit, complete, filling: true, row: 0, done: 0 })
    }

    /// Returns a step that comes before the stream's own; `None`: ask the stream.
    pub(crate) fn before(&mut self, now: Nanos, in_flight: u32, depth: u32) -> Option<Next> {
        if !self.filling {
            let enough = self.done >= self.complete.min(self.done + in_flight) && depth - in_flight >= self.submit;
            if !enough && in_flight > 0 {
                return Some(Next::WaitForCompletion);
            }
            (self.filling, self.done, self.row) = (true, 0, 0);
        }
        if self.row == self.submit {
            self.row = 0;
            self.filling = depth - in_flight >= self.submit;
            // No time passes: the machine submits what was issued.
            return Some(if self.filling { Next::WaitUntil(now) } else { Next::WaitForCompletion });
        }
        None
    }

    /// Counts the step that the stream returned.
    pub(crate) fn after(&mut self, next: Next) {
        match next {
            Next::Issue(_) | Next::Discard(_) => self.row += 1,
            Next::WaitForCompletion | Next::Done => self.filling = false,
            Next::WaitUntil(_) => {}
        }
    }
}

pub(crate) struct Watched {
    pub(crate) watch: Arc<Watch>,
    /// End of the current second, and its number.
    pub(crate) end: Nanos,
    pub(crate) second: u64,
    pub(crate) sums: [u64; 2],
    pub(crate) left: bool,
}

impl Watched {
    /// Reports the seconds that have passed.
    #[inline]
    pub(crate) fn report_until(&mut self, now: Nanos) {
        while now >= self.end {
            self.watch.add_second(self.second, std::mem::take(&mut self.sums));
            self.second += 1;
            self.end += STEP_NS;
        }
    }
}
