//! Fails a job that is too slow.

use super::failures::IO_ERROR;
use super::failures::JobError;
use crate::fio::options::min_rates::MinRates;
use crate::fio::plan::jobs::Job;
use machine::Nanos;
use machine::units::show_time;

const TIMED_OUT: i32 = 110;
/// As in fio, rates are not checked before.
const SETTLES_NS: Nanos = 2_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    Latency(Nanos),
    /// Per second: bytes if `bytes`, otherwise requests.
    Rate {
        bytes: bool,
        min: u64,
        reached: u64,
    },
}

impl StopReason {
    pub(crate) fn error(self, job: &Job) -> JobError {
        let goal = &job.options.latency;
        match self {
            StopReason::Latency(ns) if goal.searches() && goal.max_ns == [0; 2] => JobError {
                errno: TIMED_OUT,
                text: format!(
                    "latency_target: a single outstanding request took {}, and the limit is {}; give latency_percentile=99.9, or more time",
                    show_time(ns as f64),
                    show_time(goal.target_ns as f64)
                ),
            },
            StopReason::Latency(ns) => JobError {
                errno: TIMED_OUT,
                text: format!(
                    "a request took {}, longer than max_latency (or latency_target) allows",
                    show_time(ns as f64)
                ),
            },
            StopReason::Rate { bytes, min, reached } => {
                let (name, unit) =
                    if bytes { ("rate_min", "bytes/s") } else { ("rate_iops_min", "requests/s") };
                JobError {
                    errno: IO_ERROR,
                    text: format!("{name}={min} was not met: {reached} {unit}"),
                }
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct RateWatch {
    min_rates: MinRates,
    settled_at: Nanos,
    /// Requests and bytes, by direction.
    done: [[u64; 2]; 2],
    last: [Option<(Nanos, [u64; 2])>; 2],
}

impl RateWatch {
    pub(crate) fn new(min_rates: MinRates) -> RateWatch {
        RateWatch { min_rates, settled_at: 0, done: [[0; 2]; 2], last: [None; 2] }
    }

    pub(crate) fn begin(&mut self, now: Nanos) {
        self.settled_at = now.saturating_add(SETTLES_NS);
    }

    #[inline]
    pub(crate) fn complete(&mut self, now: Nanos, side: usize, bytes: u32) -> Option<StopReason> {
        let done = self.done.get_mut(side)?;
        done[0] += 1;
        done[1] += u64::from(bytes);
        let (min, in_bytes) = match (self.min_rates.bytes[side], self.min_rates.requests[side]) {
            (Some(bytes), _) => (bytes, true),
            (None, requests) => (requests?, false),
        };
        if now < self.settled_at {
            return None;
        }
        let (since, before) = *self.last[side].get_or_insert((now, *done));
        let spent = now - since;
        if spent < self.min_rates.cycle_ns.max(1) {
            return None;
        }
        let moved = done[usize::from(in_bytes)] - before[usize::from(in_bytes)];
        let reached = (moved as f64 * 1e9 / spent as f64) as u64;
        self.last[side] = Some((now, *done));
        (reached < min).then_some(StopReason::Rate { bytes: in_bytes, min, reached })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gives_up(min: MinRates, per_second: impl Fn(u64) -> u64) -> Option<(u64, StopReason)> {
        let mut watch = RateWatch::new(min);
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
    fn a_low_rate_stops_the_job_after_two_seconds_and_a_cycle() {
        let requests = |min| MinRates { requests: [Some(min), None], ..MinRates::default() };
        assert_eq!(gives_up(requests(1000), |_| 1001), None);
        let slow = StopReason::Rate { bytes: false, min: 1000, reached: 500 };
        assert_eq!(gives_up(requests(1000), |_| 500), Some((3, slow)));
        let later = |second| if second < 6 { 2000 } else { 500 };
        let (at, why) = gives_up(requests(1000), later).unwrap();
        assert!(
            at >= 7 && matches!(why, StopReason::Rate { bytes: false, min: 1000, .. }),
            "{at} {why:?}"
        );
        // A minimum for writes, in a job that only reads.
        assert_eq!(
            gives_up(MinRates { requests: [None, Some(1000)], ..MinRates::default() }, |_| 500),
            None
        );
    }

    #[test]
    fn rate_min_overrides_rate_iops_min() {
        let min = MinRates {
            bytes: [Some(2 << 20), None],
            requests: [Some(1 << 30), None],
            cycle_ns: 3_000_000_000,
        };
        assert_eq!(gives_up(min, |_| 1000), None);
        let slow = StopReason::Rate { bytes: true, min: 2 << 20, reached: 250 * 4096 };
        assert_eq!(gives_up(min, |_| 250), Some((5, slow)));
    }
}
