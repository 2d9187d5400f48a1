//! What ends a job with an error of its own: a request that took too long, a rate below the least.

use super::failures::IO_ERROR;
use super::plan::Job;
use super::result::JobError;
use machine::Nanos;
use machine::units::show_time;

/// Linux's ETIMEDOUT.
const TIMED_OUT: i32 = 110;
/// As in fio no rate is too low before.
const SETTLES_NS: Nanos = 2_000_000_000;

/// Rates below which a job ends, of reads and of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeastRates {
    /// `rate_min`: bytes per second.
    pub bytes: [Option<u64>; 2],
    /// `rate_iops_min`: requests per second, heeded where there is no `rate_min`.
    pub requests: [Option<u64>; 2],
    /// `rate_cycle`: the time over which a rate is taken, at least.
    pub cycle_ns: Nanos,
}

impl Default for LeastRates {
    fn default() -> Self {
        LeastRates { bytes: [None; 2], requests: [None; 2], cycle_ns: 1_000_000_000 }
    }
}

impl LeastRates {
    /// Whether any is asked for.
    pub fn any(&self) -> bool {
        self.bytes != [None; 2] || self.requests != [None; 2]
    }
}

/// Why a job ended itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GaveUp {
    /// A request took so long.
    Latency(Nanos),
    /// Its rate was below the least, in bytes or in requests per second.
    Rate {
        /// In bytes.
        bytes: bool,
        /// The least.
        least: u64,
        /// What it was.
        reached: u64,
    },
}

impl GaveUp {
    /// As the error of the job.
    pub(crate) fn error(self, job: &Job) -> JobError {
        let goal = &job.options.latency;
        match self {
            GaveUp::Latency(ns) if goal.searches() && goal.most_ns == [0; 2] => JobError {
                errno: TIMED_OUT,
                text: format!(
                    "latency_target: a request took {} with no other outstanding, and none may take more than {}; give latency_percentile=99.9, or more time",
                    show_time(ns as f64),
                    show_time(goal.target_ns as f64)
                ),
            },
            GaveUp::Latency(ns) => JobError {
                errno: TIMED_OUT,
                text: format!(
                    "a request took {}, longer than max_latency (or latency_target) allows",
                    show_time(ns as f64)
                ),
            },
            GaveUp::Rate { bytes, least, reached } => {
                let (name, unit) = if bytes { ("rate_min", "bytes/s") } else { ("rate_iops_min", "requests/s") };
                JobError { errno: IO_ERROR, text: format!("{name}={least} was not met: {reached} {unit}") }
            }
        }
    }
}

/// The rates of one stream beside those.
#[derive(Debug, Clone)]
pub(crate) struct RateWatch {
    least: LeastRates,
    /// No rate is too low before.
    settled_at: Nanos,
    /// Requests and bytes so far, of reads and of writes.
    done: [[u64; 2]; 2],
    /// When a rate was last taken, and what was done by then.
    last: [Option<(Nanos, [u64; 2])>; 2],
}

impl RateWatch {
    pub(crate) fn new(least: LeastRates) -> RateWatch {
        RateWatch { least, settled_at: 0, done: [[0; 2]; 2], last: [None; 2] }
    }

    /// What is measured begins.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.settled_at = now.saturating_add(SETTLES_NS);
    }

    /// A read (0) or a write (1) is done. What ends the job.
    #[inline]
    pub(crate) fn complete(&mut self, now: Nanos, side: usize, bytes: u32) -> Option<GaveUp> {
        let done = self.done.get_mut(side)?;
        done[0] += 1;
        done[1] += u64::from(bytes);
        let (least, in_bytes) = match (self.least.bytes[side], self.least.requests[side]) {
            (Some(bytes), _) => (bytes, true),
            (None, requests) => (requests?, false),
        };
        if now < self.settled_at {
            return None;
        }
        let (since, before) = *self.last[side].get_or_insert((now, *done));
        let spent = now - since;
        if spent < self.least.cycle_ns.max(1) {
            return None;
        }
        let moved = done[usize::from(in_bytes)] - before[usize::from(in_bytes)];
        let reached = (moved as f64 * 1e9 / spent as f64) as u64;
        self.last[side] = Some((now, *done));
        (reached < least).then_some(GaveUp::Rate { bytes: in_bytes, least, reached })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When a stream of requests of 4096 bytes, so many a second, gives up.
    fn gives_up(least: LeastRates, per_second: impl Fn(u64) -> u64) -> Option<(u64, GaveUp)> {
        let mut watch = RateWatch::new(least);
        watch.begin(0);
        let mut now = 0;
        while now < 10_000_000_000 {
            now += 1_000_000_000 / per_second(now / 1_000_000_000);
            if let Some(why) = watch.complete(now, 0, 4096) {
                return Some((now.div_ceil(1_000_000_000), why));
            }
        }
        None
    }

    #[test]
    fn a_rate_below_the_least_ends_the_job_after_two_seconds_and_a_cycle() {
        let requests = |least| LeastRates { requests: [Some(least), None], ..LeastRates::default() };
        assert_eq!(gives_up(requests(1000), |_| 1001), None);
        let slow = GaveUp::Rate { bytes: false, least: 1000, reached: 500 };
        assert_eq!(gives_up(requests(1000), |_| 500), Some((3, slow)));
        let later = |second| if second < 6 { 2000 } else { 500 };
        let (at, why) = gives_up(requests(1000), later).unwrap();
        assert!(at >= 7 && matches!(why, GaveUp::Rate { bytes: false, least: 1000, .. }), "{at} {why:?}");
        // Of the writes, of which there are none.
        assert_eq!(gives_up(LeastRates { requests: [None, Some(1000)], ..LeastRates::default() }, |_| 500), None);
    }

    #[test]
    fn bytes_come_before_requests_and_a_cycle_may_be_long() {
        let least =
            LeastRates { bytes: [Some(2 << 20), None], requests: [Some(1 << 30), None], cycle_ns: 3_000_000_000 };
        assert_eq!(gives_up(least, |_| 1000), None);
        let slow = GaveUp::Rate { bytes: true, least: 2 << 20, reached: 250 * 4096 };
        assert_eq!(gives_up(least, |_| 250), Some((5, slow)));
    }
}
