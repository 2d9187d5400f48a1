//! For `run --live`.

use crate::histogram::Histogram;
use machine::Nanos;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub(crate) const SECOND_NS: Nanos = 1_000_000_000;

/// A shorter part has no useful percentiles.
const MIN_LENGTH_NS: Nanos = SECOND_NS / 10;

#[derive(Debug, Clone)]
pub struct Second {
    /// Counts from 0.
    pub run: u64,
    /// Counts from 0 in each run.
    pub second: u64,
    /// Shorter at a run's end.
    pub length_ns: Nanos,
    pub bytes: u64,
    pub latency: Histogram,
    /// When the first stream finished it.
    pub finished: Instant,
}

impl Second {
    pub fn iops(&self) -> f64 {
        self.latency.count() as f64 * 1e9 / self.length_ns.max(1) as f64
    }

    /// By Little's law.
    pub fn mean_depth(&self) -> f64 {
        self.latency.sum() as f64 / self.length_ns.max(1) as f64
    }
}

#[derive(Debug, Default)]
pub struct SecondLog {
    runs: AtomicU64,
    seconds: Mutex<BTreeMap<(u64, u64), Second>>,
}

impl SecondLog {
    pub fn after(&self, skipped: usize) -> Vec<Second> {
        self.seconds().values().skip(skipped).cloned().collect()
    }

    pub(crate) fn begin_run(self: &Arc<Self>) -> WatchedRun {
        WatchedRun { log: self.clone(), run: self.runs.fetch_add(1, Ordering::Relaxed) }
    }

    fn seconds(&self) -> MutexGuard<'_, BTreeMap<(u64, u64), Second>> {
        self.seconds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counting takes some of the streams' time once a second.
#[derive(Debug, Clone)]
pub(crate) struct WatchedRun {
    log: Arc<SecondLog>,
    run: u64,
}

#[derive(Debug)]
pub(crate) struct SecondMark {
    run: WatchedRun,
    measured_from: Nanos,
    began: Nanos,
    bytes: u64,
    latency: Histogram,
}

impl SecondMark {
    pub(crate) fn new(run: WatchedRun) -> SecondMark {
        SecondMark { run, measured_from: 0, began: 0, bytes: 0, latency: Histogram::new() }
    }

    pub(crate) fn begin(&mut self, now: Nanos, bytes: u64) {
        (self.measured_from, self.began, self.bytes) = (now, now, bytes);
        self.latency.clear();
    }

    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        now >= self.began + SECOND_NS
    }

    pub(crate) fn add(&self, now: Nanos, bytes: u64, latency: &[Histogram; 2]) {
        let length_ns = now.saturating_sub(self.began);
        if length_ns < MIN_LENGTH_NS {
            return;
        }
        let second = (self.began - self.measured_from) / SECOND_NS;
        let mut both = latency[0].clone();
        both.merge(&latency[1]);
        let new = both.since(&self.latency);
        let WatchedRun { log, run } = &self.run;
        let mut all = log.seconds();
        let one = all.entry((*run, second)).or_insert_with(|| Second {
            run: *run,
            second,
            length_ns: 0,
            bytes: 0,
            latency: Histogram::new(),
            finished: Instant::now(),
        });
        // A stream that waits for a slow request ends its second late.
        one.length_ns = one.length_ns.max(length_ns);
        one.bytes += bytes - self.bytes;
        one.latency.merge(&new);
    }

    pub(crate) fn next(&mut self, now: Nanos, bytes: u64, latency: &[Histogram; 2]) {
        self.add(now, bytes, latency);
        let whole = (now - self.measured_from) / SECOND_NS * SECOND_NS;
        self.began = self.measured_from + whole;
        self.bytes = bytes;
        self.latency = latency[0].clone();
        self.latency.merge(&latency[1]);
    }
}
