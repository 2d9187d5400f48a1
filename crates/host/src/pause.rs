//! Whether this process runs at all: a run in which it was stopped measured nothing.

use machine::Nanos;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often somebody looks at the clock at the latest.
pub(crate) const LOOK_NS: Nanos = 50_000_000;

/// Where a look comes later than it should by this much, nothing ran: a loaded machine makes nobody wait so long.
pub(crate) const PAUSE_NS: Nanos = 300_000_000;

/// Looks at the clock by all threads of a run, and the longest time without one. One thread may be kept waiting while others
/// run, so none can tell alone that the process was stopped.
pub(crate) struct Looks {
    last: AtomicU64,
    longest: AtomicU64,
}

impl Looks {
    pub(crate) fn from(now: Nanos) -> Looks {
        Looks { last: AtomicU64::new(now), longest: AtomicU64::new(0) }
    }

    /// Forgets all before now.
    pub(crate) fn begin(&self, now: Nanos) {
        self.last.store(now, Ordering::Relaxed);
        self.longest.store(0, Ordering::Relaxed);
    }

    /// A thread runs now.
    pub(crate) fn note(&self, now: Nanos) {
        let since = now.saturating_sub(self.last.fetch_max(now, Ordering::Relaxed));
        if since > LOOK_NS {
            self.longest.fetch_max(since - LOOK_NS, Ordering::Relaxed);
        }
    }

    /// The longest time in which nothing ran; 0 where it is not worth a word.
    pub(crate) fn paused_ns(&self) -> Nanos {
        let longest = self.longest.load(Ordering::Relaxed);
        if longest < PAUSE_NS { 0 } else { longest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What looks at these times tell, after one at 0.
    fn paused(looks: &[Nanos]) -> Nanos {
        let seen = Looks::from(0);
        looks.iter().for_each(|&now| seen.note(now));
        seen.paused_ns()
    }

    #[test]
    fn a_time_without_any_look_is_told_and_a_late_look_is_not() {
        assert_eq!(paused(&[LOOK_NS, 2 * LOOK_NS, 3 * LOOK_NS + 5_000_000_000]), 5_000_000_000);
        assert_eq!(paused(&[LOOK_NS, 2 * LOOK_NS + PAUSE_NS / 2]), 0);
    }

    #[test]
    fn a_thread_that_waits_while_another_runs_was_not_stopped() {
        let one_runs: Vec<Nanos> = (1..1000).map(|ms| ms * 1_000_000).collect();
        assert_eq!(paused(&[&one_runs[..], &[1_000_000_000]].concat()), 0);
        // A look that was taken before another and is told after it.
        assert_eq!(paused(&[LOOK_NS, PAUSE_NS, LOOK_NS]), 0);
    }

    #[test]
    fn what_lay_before_the_beginning_is_forgotten() {
        let looks = Looks::from(0);
        looks.note(2 * PAUSE_NS);
        looks.begin(5 * PAUSE_NS);
        looks.note(5 * PAUSE_NS + LOOK_NS);
        assert_eq!(looks.paused_ns(), 0);
    }
}
