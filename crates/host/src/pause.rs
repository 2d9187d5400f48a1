//! Detects that this process was stopped, which invalidates the run. A thread reads the clock every
//! [`WAKE_NS`], for 0.34 % of a CPU: 17 us a wake. In a gap, the kernel reports how long it was
//! runnable; in the rest the process was stopped.

use machine::Nanos;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const WAKE_NS: Nanos = 4_000_000;

pub(crate) const LOOK_NS: Nanos = 50_000_000;

const LATE_NS: Nanos = 2_000_000;

/// Even on a loaded machine threads wait less.
pub(crate) const PAUSE_NS: Nanos = 300_000_000;

/// Stops are reported only if longer in total, and a larger share of the run.
const STOPPED_NS: Nanos = 20_000_000;
const STOPPED_PERCENT: f64 = 3.0;

/// Clock readings of all threads: a single one may wait while others run.
pub(crate) struct Looks {
    last: AtomicU64,
    longest: AtomicU64,
    sum: AtomicU64,
    count: AtomicU64,
}

/// Gaps without a clock reading by any thread, less the sleep that ends each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Gaps {
    /// 0 if shorter than [`PAUSE_NS`].
    pub(crate) longest_ns: Nanos,
    pub(crate) sum_ns: Nanos,
    pub(crate) count: u64,
}

impl Looks {
    pub(crate) fn from(now: Nanos) -> Looks {
        Looks {
            last: AtomicU64::new(now),
            longest: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            count: AtomicU64::new(0),
        }
    }

    pub(crate) fn begin(&self, now: Nanos) {
        self.last.store(now, Ordering::Relaxed);
        [&self.longest, &self.sum, &self.count]
            .into_iter()
            .for_each(|one| one.store(0, Ordering::Relaxed));
    }

    pub(crate) fn note(&self, now: Nanos) {
        let since = now.saturating_sub(self.last.fetch_max(now, Ordering::Relaxed));
        if since > WAKE_NS + LATE_NS {
            self.gap(since - WAKE_NS);
        }
    }

    #[cold]
    fn gap(&self, ns: Nanos) {
        self.longest.fetch_max(ns, Ordering::Relaxed);
        self.sum.fetch_add(ns, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn gaps(&self) -> Gaps {
        let longest = self.longest.load(Ordering::Relaxed);
        Gaps {
            longest_ns: if longest < PAUSE_NS { 0 } else { longest },
            sum_ns: self.sum.load(Ordering::Relaxed),
            count: self.count.load(Ordering::Relaxed),
        }
    }
}

impl Gaps {
    /// `explained_ns`: waits for a CPU that other programs, a quota or a hypervisor took. `None` if
    /// too short to report.
    pub(crate) fn stopped_ns(&self, explained_ns: Nanos, run_ns: Nanos) -> Option<Nanos> {
        let stopped = self.sum_ns.saturating_sub(explained_ns);
        let enough = stopped >= STOPPED_NS && percent(stopped, run_ns) >= STOPPED_PERCENT;
        enough.then_some(stopped)
    }
}

pub(crate) fn percent(ns: Nanos, run_ns: Nanos) -> f64 {
    (ns as f64 / run_ns.max(1) as f64 * 100.0).min(100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn gaps(looks: &[Nanos]) -> Gaps {
        let seen = Looks::from(0);
        looks.iter().for_each(|&now| seen.note(now));
        seen.gaps()
    }

    #[test]
    fn a_gap_is_a_pause_and_a_late_reading_is_not() {
        assert_eq!(gaps(&[WAKE_NS, 2 * WAKE_NS, 3 * WAKE_NS + 5_000 * MS]).longest_ns, 5_000 * MS);
        assert_eq!(gaps(&[WAKE_NS, 2 * WAKE_NS + PAUSE_NS / 2]).longest_ns, 0);
        assert_eq!(gaps(&[WAKE_NS, 2 * WAKE_NS + LATE_NS]), Gaps::default());
    }

    #[test]
    fn a_thread_that_waits_while_another_runs_was_not_stopped() {
        let one_runs: Vec<Nanos> = (1..1000).map(|ms| ms * MS).collect();
        assert_eq!(gaps(&[&one_runs[..], &[1_000_000_000]].concat()), Gaps::default());
        // A reading recorded after a later one.
        assert_eq!(gaps(&[WAKE_NS, PAUSE_NS / 4, WAKE_NS]).longest_ns, 0);
    }

    #[test]
    fn readings_before_the_start_are_forgotten() {
        let looks = Looks::from(0);
        looks.note(2 * PAUSE_NS);
        looks.begin(5 * PAUSE_NS);
        looks.note(5 * PAUSE_NS + WAKE_NS);
        assert_eq!(looks.gaps(), Gaps::default());
    }

    #[test]
    fn short_stops_add_up_without_explained_waits() {
        // Stopped for 20 of each 40 ms, otherwise a reading every millisecond.
        let looks: Vec<Nanos> = (0..1000).filter(|ms| ms % 40 < 20).map(|ms| ms * MS).collect();
        let gaps = gaps(&looks);
        assert_eq!((gaps.count, gaps.longest_ns), (24, 0));
        assert!((400 * MS..500 * MS).contains(&gaps.sum_ns), "{gaps:?}");
        assert_eq!(gaps.stopped_ns(0, 1000 * MS), Some(gaps.sum_ns));
        assert_eq!(
            gaps.stopped_ns(gaps.sum_ns - 10 * MS, 1000 * MS),
            None,
            "other programs explain nearly all of it"
        );
        assert_eq!(gaps.stopped_ns(0, 60_000 * MS), None, "too little of a long run");
    }
}
