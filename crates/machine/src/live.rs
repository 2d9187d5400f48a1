//! The process's current work, for a display in another thread; no result depends on it.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests completed since the process started.
#[derive(Debug)]
pub struct Meter {
    requests: AtomicU64,
    bytes: AtomicU64,
    latency_ns: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    pub requests: u64,
    pub bytes: u64,
    /// Summed over the requests.
    pub latency_ns: u64,
}

impl Meter {
    const fn new() -> Meter {
        Meter {
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            latency_ns: AtomicU64::new(0),
        }
    }

    pub fn add(&self, more: Reading) {
        self.requests.fetch_add(more.requests, Relaxed);
        self.bytes.fetch_add(more.bytes, Relaxed);
        self.latency_ns.fetch_add(more.latency_ns, Relaxed);
    }

    pub fn read(&self) -> Reading {
        Reading {
            requests: self.requests.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            latency_ns: self.latency_ns.load(Relaxed),
        }
    }
}

/// Counters of this computer's runs.
pub static REQUESTS: Meter = Meter::new();

/// A fill's progress; the goal is 0 without one.
#[derive(Debug)]
pub struct Filling {
    done: AtomicU64,
    goal: AtomicU64,
    began: Mutex<Option<Instant>>,
    last_bytes_per_s: AtomicU64,
}

pub static FILLING: Filling = Filling {
    done: AtomicU64::new(0),
    goal: AtomicU64::new(0),
    began: Mutex::new(None),
    last_bytes_per_s: AtomicU64::new(0),
};

impl Filling {
    pub fn begin(&self, goal: u64) {
        self.done.store(0, Relaxed);
        self.goal.store(goal, Relaxed);
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    pub fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Relaxed);
    }

    pub fn end(&self) {
        self.goal.store(0, Relaxed);
        let began = self.began.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(seconds) = began.map(|began| began.elapsed().as_secs_f64().max(1e-9)) {
            let rate = self.done.load(Relaxed) as f64 / seconds;
            self.last_bytes_per_s.store(rate as u64, Relaxed);
        }
    }

    /// Returns bytes per second, flush included; 0 before the first fill.
    pub fn last_rate(&self) -> f64 {
        self.last_bytes_per_s.load(Relaxed) as f64
    }

    /// Returns the bytes done and the goal; `None` without a fill.
    pub fn read(&self) -> Option<(u64, u64)> {
        let goal = self.goal.load(Relaxed);
        (goal > 0).then(|| (self.done.load(Relaxed), goal))
    }
}

/// Threads for display, which end if the work cannot get a thread.
#[derive(Debug)]
pub struct Spare {
    threads: AtomicUsize,
    end: AtomicBool,
}

pub static SPARE: Spare = Spare { threads: AtomicUsize::new(0), end: AtomicBool::new(false) };

/// A spare thread until dropped.
#[derive(Debug)]
pub struct SpareThread<'a>(&'a Spare);

impl Drop for SpareThread<'_> {
    fn drop(&mut self) {
        self.0.threads.fetch_sub(1, Relaxed);
    }
}

/// How often a spare thread checks whether to end.
pub const SPARE_LOOK: Duration = Duration::from_millis(250);

impl Spare {
    #[must_use]
    pub fn begin(&self) -> SpareThread<'_> {
        self.threads.fetch_add(1, Relaxed);
        SpareThread(self)
    }

    pub fn must_end(&self) -> bool {
        self.end.load(Relaxed)
    }

    /// Ends all for good; returns whether any ran.
    pub fn make_room(&self) -> bool {
        if self.threads.load(Relaxed) == 0 {
            return false;
        }
        self.end.store(true, Relaxed);
        let until = Instant::now() + 4 * SPARE_LOOK;
        while self.threads.load(Relaxed) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    Time(Duration),
    Requests(u64),
    Bytes(u64),
}

/// Progress in steps of known length.
#[derive(Debug)]
pub struct Work(Mutex<Option<Step>>);

#[derive(Debug, Clone)]
struct Step {
    goal: Goal,
    /// Shares of the whole work before and after the step.
    shares: Range<f64>,
    work_began: Instant,
    began: Instant,
    before: Reading,
}

/// The current work; empty if its length is unknown.
pub static WORK: Work = Work(Mutex::new(None));

#[derive(Debug)]
pub struct WorkGuard(());

impl Drop for WorkGuard {
    fn drop(&mut self) {
        *WORK.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Work {
    #[must_use]
    pub fn begin(&self, what: String, goal: Goal) -> WorkGuard {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.step(what, goal, 0.0..1.0);
        WorkGuard(())
    }

    pub fn step(&self, what: String, goal: Goal, shares: Range<f64>) {
        started(what);
        let (began, before) = (Instant::now(), REQUESTS.read());
        let mut work = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let work_began = work.as_ref().map_or(began, |step| step.work_began);
        *work = Some(Step { goal, shares, work_began, began, before });
    }

    /// Returns the share done, and the time left if known; `None` without work of known length.
    pub fn read(&self) -> Option<(f64, Option<Duration>)> {
        let step = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(step.progress(REQUESTS.read()))
    }
}

impl Step {
    fn progress(&self, now: Reading) -> (f64, Option<Duration>) {
        let of = |done: u64, goal: u64| done as f64 / goal.max(1) as f64;
        let within = match self.goal {
            Goal::Time(time) => self.began.elapsed().as_secs_f64() / time.as_secs_f64().max(1e-9),
            Goal::Requests(all) => of(now.requests - self.before.requests, all),
            Goal::Bytes(all) => of(now.bytes - self.before.bytes, all),
        };
        let Range { start, end } = self.shares;
        let share = start + (end - start) * within.clamp(0.0, 1.0);
        let left = match self.goal {
            Goal::Time(time) => Some(time.saturating_sub(self.began.elapsed())),
            _ if share > 0.0 => {
                let left = self.work_began.elapsed().as_secs_f64() * (1.0 - share) / share;
                Duration::try_from_secs_f64(left).ok()
            }
            _ => None,
        };
        (share, left)
    }
}

/// The last run, and the best rates so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LastRun {
    pub runs: u64,
    pub what: String,
    pub bytes_per_s: f64,
    pub iops: f64,
    pub mean_latency_ns: f64,
    /// For reads and for writes past the page cache; 0 without one.
    pub best_bytes_per_s: [f64; 2],
}

static LAST: Mutex<Option<LastRun>> = Mutex::new(None);

static RUNNING: Mutex<Option<String>> = Mutex::new(None);

pub fn started(what: String) {
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}

/// Returns what [`started`] set.
pub fn running() -> Option<String> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Takes bytes per second, requests per second, mean latency in ns. `op`: 0 for reads, 1 for writes
/// past the page cache.
pub fn finished(what: String, op: Option<usize>, [bytes_per_s, iops, mean_latency_ns]: [f64; 3]) {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let LastRun { runs, mut best_bytes_per_s, .. } = last.take().unwrap_or_default();
    if let Some(best) = op.and_then(|op| best_bytes_per_s.get_mut(op)) {
        *best = best.max(bytes_per_s);
    }
    let runs = runs + 1;
    *last = Some(LastRun { runs, what, bytes_per_s, iops, mean_latency_ns, best_bytes_per_s });
}

pub fn last_run() -> Option<LastRun> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_rates_are_those_past_the_page_cache() {
        for (op, rate) in [(Some(0), 5.0), (None, 50.0), (Some(1), 7.0), (Some(0), 3.0)] {
            finished("a workload".into(), op, [rate, 1.0, 1.0]);
        }
        let last = last_run().expect("a run");
        assert_eq!((last.runs, last.bytes_per_s, last.best_bytes_per_s), (4, 3.0, [5.0, 7.0]));
    }

    #[test]
    fn work_extrapolates_its_time() {
        let began = Instant::now().checked_sub(Duration::from_secs(10)).expect("a clock");
        let step = |goal, shares| Step {
            goal,
            shares,
            work_began: began,
            began,
            before: Reading { requests: 100, bytes: 0, latency_ns: 0 },
        };
        let now = Reading { requests: 300, bytes: 1000, latency_ns: 0 };
        let (share, left) = step(Goal::Requests(800), 0.0..1.0).progress(now);
        assert_eq!(share, 0.25);
        assert!((29.5..31.0).contains(&left.unwrap().as_secs_f64()), "{left:?}");
        let (share, left) = step(Goal::Bytes(500), 0.2..0.5).progress(now);
        assert_eq!(share, 0.5, "no more than the step");
        assert!((9.9..10.5).contains(&left.unwrap().as_secs_f64()), "{left:?}");
        let (_, left) = step(Goal::Time(Duration::from_secs(40)), 0.0..1.0).progress(now);
        assert!((29.0..30.1).contains(&left.unwrap().as_secs_f64()), "{left:?}");
        assert_eq!(step(Goal::Bytes(500), 0.0..1.0).progress(Reading { bytes: 0, ..now }).1, None);
        let guard = WORK.begin("work".into(), Goal::Requests(10));
        assert_eq!(WORK.read(), Some((0.0, None)));
        drop(guard);
        assert_eq!(WORK.read(), None);
    }

    #[test]
    fn spare_threads_make_room() {
        let spare = Spare { threads: AtomicUsize::new(0), end: AtomicBool::new(false) };
        assert!(!spare.make_room() && !spare.must_end(), "there is none");
        std::thread::scope(|scope| {
            let one = spare.begin();
            scope.spawn(|| {
                let _one = one;
                while !spare.must_end() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            assert!(spare.make_room());
            assert_eq!(spare.threads.load(Relaxed), 0, "it has ended");
        });
    }

    #[test]
    fn a_fill_ends_with_none() {
        FILLING.begin(10);
        FILLING.add(4);
        assert_eq!(FILLING.read(), Some((4, 10)));
        FILLING.end();
        assert!(FILLING.last_rate() > 0.0);
        assert_eq!(FILLING.read(), None);
    }
}
