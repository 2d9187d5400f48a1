//! What holds a stream beside its own workload: pauses, batches, the end of other jobs, a steady rate.

use super::plan::Job;
use super::steady::{STEP_NS, Watch};
use machine::{Nanos, Next};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pauses after every few requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
    pub(super) ns: Nanos,
    pub(super) blocks: u64,
    /// Requests since the last pause.
    pub(super) issued: u64,
    pub(super) until: Nanos,
}

impl Pauses {
    /// What to do instead of asking the stream; `None`: ask it. As in fio what is under way is waited for first.
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

/// The end of the jobs that `exitall` ends together.
#[derive(Debug, Clone)]
pub(crate) struct Exit {
    /// Where one of these is set, this stream ends.
    pub(crate) heeds: [Arc<AtomicBool>; 2],
    /// What this stream sets when it is done.
    pub(crate) sets: Option<Arc<AtomicBool>>,
    /// What it sets when it fails.
    pub(crate) sets_on_error: Option<Arc<AtomicBool>>,
}

impl Exit {
    pub(crate) fn is_due(&self) -> bool {
        self.heeds.iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Requests submitted and replaced in groups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batching {
    /// Submitted together.
    pub(super) submit: u32,
    /// Completions that are waited for before any is replaced.
    pub(super) complete: u32,
    /// Free slots are being filled.
    pub(super) filling: bool,
    /// Issued since the last submission.
    pub(super) row: u32,
    /// Completed since the last filling.
    pub(super) done: u32,
}

impl Batching {
    /// Of a job's options on a stream that keeps `depth` requests; `None`: what is free is filled at once.
    pub(crate) fn of(job: &Job, depth: u32) -> Option<Batching> {
        let options = &job.options;
        // 0 is fio's word for all.
        let all = |count: u32| if count == 0 { depth } else { count.min(depth) };
        // A full queue is down to its low mark after the completions between them.
        let down = options.low.map_or(1, |low| depth.saturating_sub(low));
        let (submit, complete) = (options.batch.map_or(1, all), options.batch_complete.max(down).clamp(1, depth));
        let asked = options.batch.is_some() || complete > 1;
        (asked && depth > 1).then_some(Batching { submit, complete, filling: true, row: 0, done: 0 })
    }

    /// What to do instead of asking the stream; `None`: ask it.
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
            // No time passes: what was issued goes to the kernel.
            return Some(if self.filling { Next::WaitUntil(now) } else { Next::WaitForCompletion });
        }
        None
    }

    /// After what the stream said.
    pub(crate) fn after(&mut self, next: Next) {
        match next {
            Next::Issue(_) | Next::Discard(_) => self.row += 1,
            Next::WaitForCompletion | Next::Done => self.filling = false,
            Next::WaitUntil(_) => {}
        }
    }
}

/// A stream's part in watching for a steady rate.
pub(crate) struct Watched {
    pub(super) watch: Arc<Watch>,
    /// End of the current second, and its number.
    pub(super) end: Nanos,
    pub(super) second: u64,
    pub(super) sums: [u64; 2],
    pub(super) left: bool,
}

impl Watched {
    /// Tells the seconds that are over.
    #[inline]
    pub(crate) fn pass_to(&mut self, now: Nanos) {
        while now >= self.end {
            self.watch.tell(self.second, std::mem::take(&mut self.sums));
            self.second += 1;
            self.end += STEP_NS;
        }
    }
}
