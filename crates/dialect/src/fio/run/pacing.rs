//! Features that hold or end a stream.

use super::core::{Core, Issue};
use super::filter::{Filter, ignores};
use super::steady::Watch;
use super::stream_stats::Done;
use crate::fio::options::criterion::STEP_NS;
use crate::fio::options::job_options::Options;
use crate::fio::plan::jobs::Job;
use machine::{Nanos, Next};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
    ns: Nanos,
    /// Between pauses, whichever is over first; 0: time does not count.
    blocks: Option<u64>,
    io_ns: Nanos,
    at_issue: bool,
    /// Since the last pause.
    issued: u64,
    completed: u64,
    /// Completions that earlier pauses used, and those until the last pause.
    used: u64,
    rested: u64,
    is_due: bool,
    side: usize,
    until: Nanos,
    /// `rate_ignore_thinktime`.
    ignored: bool,
}

impl Pauses {
    pub(crate) fn of(options: &Options) -> Pauses {
        let (blocks, io_ns) = (options.pauses_after(), options.think_io_ns);
        Pauses {
            ns: options.think_ns,
            blocks,
            io_ns,
            at_issue: options.think_at_issue,
            issued: 0,
            completed: 0,
            used: 0,
            rested: 0,
            is_due: false,
            side: 0,
            until: 0,
            ignored: options.ignores_pauses,
        }
    }

    /// As in fio, the requests in flight at a pause count for the next one, which follows at least
    /// one more request.
    fn has_all(&self, blocks: u64) -> bool {
        if self.at_issue {
            self.issued >= blocks
        } else {
            self.issued > 0 && self.completed - self.used >= blocks
        }
    }
}

impl Filter for Pauses {
    fn begin(&mut self, core: &Core) {
        self.until = core.measured_from - core.ramp;
    }

    fn before(&mut self, core: &mut Core, now: Nanos) -> Option<Next> {
        if core.ended {
            return None;
        }
        if now < self.until {
            return Some(Next::WaitUntil(self.until));
        }
        // As in fio, the job lasts until the end of its last pause, even beyond its runtime.
        core.lasts_until(self.until);
        let late = self.io_ns > 0 && now - self.until >= self.io_ns && !core.is_over(now);
        if !self.is_due {
            if !late && self.blocks.is_none_or(|blocks| !self.has_all(blocks)) {
                return None;
            }
            self.is_due = true;
            // As in fio, which takes completions one by one, others are in flight until then.
            let used = self.blocks.map(|blocks| self.used.saturating_add(blocks));
            self.used =
                used.map_or(self.completed, |used| used.min(self.completed)).max(self.rested);
        }
        // As in fio, requests in flight finish first.
        if core.in_flight > 0 {
            return Some(Next::WaitForCompletion);
        }
        (self.is_due, self.issued, self.until) = (false, 0, now + self.ns);
        self.rested = self.completed;
        if self.ignored {
            core.skip(self.ns, self.side);
        }
        Some(Next::WaitUntil(self.until))
    }

    fn issued(&mut self, _core: &mut Core, issue: &Issue) {
        self.issued += 1;
        self.side = issue.side;
    }

    fn completed(&mut self, _core: &mut Core, _slot: u32, whole: bool, _done: Option<&Done>) {
        self.completed += u64::from(whole);
    }

    ignores!(idle synced owes left fails read_back fill check finish);
}

#[derive(Debug, Clone)]
pub(crate) struct Exit {
    pub(crate) ends_if: [Arc<AtomicBool>; 2],
    pub(crate) sets: Option<Arc<AtomicBool>>,
    pub(crate) sets_on_error: Option<Arc<AtomicBool>>,
}

impl Filter for Exit {
    fn before(&mut self, core: &mut Core, _now: Nanos) -> Option<Next> {
        self.ends_if.iter().any(|flag| flag.load(Ordering::Relaxed)).then(|| core.over())
    }

    fn left(&mut self, done: bool) {
        self.sets.iter().filter(|_| done).for_each(|flag| flag.store(true, Ordering::Relaxed));
    }

    fn fails(&mut self) {
        self.sets_on_error.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
    }

    ignores!(begin issued idle completed synced owes read_back fill check finish);
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Batching {
    submit: u32,
    /// Completions before replacing any.
    complete: u32,
    filling: bool,
    row: u32,
    done: u32,
}

impl Batching {
    /// `None`: free slots are filled at once.
    pub(crate) fn of(job: &Job, depth: u32) -> Option<Batching> {
        let options = &job.options;
        // In fio 0 means all.
        let all = |count: u32| if count == 0 { depth } else { count.min(depth) };
        // After this many completions a full queue is down to its low mark.
        let down = options.low.map_or(1, |low| depth.saturating_sub(low));
        let (submit, complete) =
            (options.batch.map_or(1, all), options.batch_complete.max(down).clamp(1, depth));
        let asked = options.batch.is_some() || complete > 1;
        (asked && depth > 1).then_some(Batching {
            submit,
            complete,
            filling: true,
            row: 0,
            done: 0,
        })
    }
}

impl Filter for Batching {
    fn before(&mut self, core: &mut Core, now: Nanos) -> Option<Next> {
        if core.ended {
            return None;
        }
        let (in_flight, free) = (core.in_flight, core.depth() - core.in_flight);
        if !self.filling {
            let enough =
                self.done >= self.complete.min(self.done + in_flight) && free >= self.submit;
            if !enough && in_flight > 0 {
                return Some(Next::WaitForCompletion);
            }
            (self.filling, self.done, self.row) = (true, 0, 0);
        }
        if self.row == self.submit {
            self.row = 0;
            self.filling = free >= self.submit;
            // No time passes: the machine submits what was issued.
            return Some(if self.filling { Next::WaitUntil(now) } else { Next::WaitForCompletion });
        }
        None
    }

    fn issued(&mut self, _core: &mut Core, _issue: &Issue) {
        self.row += 1;
    }

    fn idle(&mut self, next: Next) {
        if matches!(next, Next::WaitForCompletion | Next::Done) {
            self.filling = false;
        }
    }

    fn completed(&mut self, _core: &mut Core, _slot: u32, _whole: bool, _done: Option<&Done>) {
        self.done += 1;
    }

    ignores!(begin synced owes left fails read_back fill check finish);
}

pub(crate) struct Watched {
    watch: Arc<Watch>,
    end: Nanos,
    second: u64,
    sums: [u64; 2],
    left: bool,
}

impl Watched {
    pub(crate) fn new(watch: Arc<Watch>, after: Nanos) -> Watched {
        Watched { watch, end: after + STEP_NS, second: 0, sums: [0; 2], left: false }
    }

    #[inline]
    fn report_until(&mut self, now: Nanos) {
        while now >= self.end {
            self.watch.add_second(self.second, std::mem::take(&mut self.sums));
            self.second += 1;
            self.end += STEP_NS;
        }
    }
}

impl Filter for Watched {
    fn begin(&mut self, core: &Core) {
        self.end += core.measured_from;
    }

    fn before(&mut self, core: &mut Core, now: Nanos) -> Option<Next> {
        self.report_until(now);
        self.watch.is_steady().then(|| core.over())
    }

    fn completed(&mut self, _core: &mut Core, _slot: u32, _whole: bool, done: Option<&Done>) {
        let Some(done) = done else { return };
        self.report_until(done.at);
        if done.at + STEP_NS >= self.end {
            self.sums[0] += 1;
            self.sums[1] += u64::from(done.bytes);
        }
    }

    fn left(&mut self, done: bool) {
        if done && !std::mem::replace(&mut self.left, true) {
            self.watch.leave();
        }
    }

    ignores!(issued idle synced owes fails read_back fill check finish);
}
