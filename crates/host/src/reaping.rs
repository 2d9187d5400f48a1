//! For how many completions a serving loop waits, and how it learns what pays.

use crate::session::Wait;
use machine::{Nanos, ParityUse, Reap, Waits};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The most completions that learning tries to wait for.
const LEARNED_MOST: u32 = 32;

/// How long one number is tried at a time.
const TRIAL_NS: Nanos = 4_000_000;

/// How often each is tried: in turn, so that a drift falls on all.
const ROUNDS: usize = 4;

/// A trial with fewer completions says nothing, and requests so slow leave no wake to save.
const LEAST_COMPLETIONS: u64 = 48;

/// Waiting for more must gain this share over waiting for fewer, for it costs latency.
const WORTH: f64 = 1.02;

/// What the streams of a part did, kept where all of them reach it.
#[derive(Default)]
pub(crate) struct Tally {
    /// How often a stream waited in the kernel.
    waits: AtomicU64,
    /// For how many completions they waited in the end: the most of any.
    least: AtomicU32,
    /// The buffers of a stream could not be registered with the kernel.
    unregistered: AtomicBool,
    /// Time in which parity was computed, and the bytes that it was computed from.
    parity: (AtomicU64, AtomicU64),
}

impl Tally {
    /// Adds what a stream computed of parity.
    pub(crate) fn note_parity(&self, ns: Nanos, bytes: u64) {
        self.parity.0.fetch_add(ns, Ordering::Relaxed);
        self.parity.1.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What the streams computed of parity, where there was anything.
    pub(crate) fn parity(&self) -> Option<ParityUse> {
        let bytes = self.parity.1.load(Ordering::Relaxed);
        (bytes > 0).then(|| ParityUse { ns: self.parity.0.load(Ordering::Relaxed), bytes })
    }

    /// Notes that a stream's buffers are not registered.
    pub(crate) fn note_unregistered(&self) {
        self.unregistered.store(true, Ordering::Relaxed);
    }

    /// Whether a stream's buffers could not be registered.
    pub(crate) fn is_unregistered(&self) -> bool {
        self.unregistered.load(Ordering::Relaxed)
    }

    /// How the streams waited; none where each request is a call of its own.
    pub(crate) fn waits(&self) -> Option<Waits> {
        let waits = self.waits.load(Ordering::Relaxed);
        (waits > 0).then(|| Waits { waits, completions: self.least.load(Ordering::Relaxed) })
    }
}

/// The number to wait for of one stream.
pub(crate) struct Reaping<'a> {
    least: u32,
    waits: u64,
    trials: Option<Box<Trials>>,
    tally: &'a Tally,
}

impl<'a> Reaping<'a> {
    pub(crate) fn new(reap: Reap, depth: u32, now: Nanos, tally: &'a Tally) -> Reaping<'a> {
        let trials = (reap == Reap::Auto).then(|| Trials::new(depth, now)).flatten();
        let least = match (reap, &trials) {
            (Reap::AtLeast(least), _) => least.min(depth),
            (Reap::Auto, Some(trials)) => trials.tried(),
            (Reap::Auto, None) => 1,
        };
        Reaping { least, waits: 0, trials, tally }
    }

    /// The wait of a turn with nothing left to issue.
    #[inline(always)]
    pub(crate) fn wait(&self, in_flight: u32) -> Wait {
        if self.least <= 1 { Wait::One } else { Wait::Several(self.least.min(in_flight)) }
    }

    /// After a turn that took this many completions.
    #[inline(always)]
    pub(crate) fn turned(&mut self, completions: u64, now: Nanos) {
        self.waits += 1;
        if self.trials.is_some() {
            self.learn(completions, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, completions: u64, now: Nanos) {
        let Some(trials) = &mut self.trials else { return };
        match trials.took(completions, now) {
            Some(best) => {
                self.least = best;
                self.trials = None;
            }
            None => self.least = trials.tried(),
        }
    }
}

impl Drop for Reaping<'_> {
    fn drop(&mut self) {
        self.tally.waits.fetch_add(self.waits, Ordering::Relaxed);
        self.tally.least.fetch_max(self.least, Ordering::Relaxed);
    }
}

/// Numbers tried in turn.
struct Trials {
    /// For each power of two: completions, and the time they took.
    seen: Vec<(u64, Nanos)>,
    done: usize,
    began: Nanos,
    completions: u64,
}

impl Trials {
    /// None where there is nothing to choose: of few requests in flight each is wanted back at once.
    fn new(depth: u32, now: Nanos) -> Option<Box<Trials>> {
        let most = (depth / 2).min(LEARNED_MOST);
        let numbers = most.checked_ilog2()? as usize + 1;
        (numbers > 1).then(|| Box::new(Trials { seen: vec![(0, 0); numbers], done: 0, began: now, completions: 0 }))
    }

    /// The number that is tried now.
    fn tried(&self) -> u32 {
        1 << (self.done % self.seen.len())
    }

    /// Takes a turn's completions in; the number that pays, once that is known.
    fn took(&mut self, completions: u64, now: Nanos) -> Option<u32> {
        self.completions += completions;
        let elapsed = now.saturating_sub(self.began);
        if elapsed < TRIAL_NS {
            return None;
        }
        if self.completions < LEAST_COMPLETIONS {
            return Some(1);
        }
        let index = self.done % self.seen.len();
        let (sum, time) = &mut self.seen[index];
        (*sum, *time) = (*sum + self.completions, *time + elapsed);
        (self.began, self.completions) = (now, 0);
        self.done += 1;
        (self.done == ROUNDS * self.seen.len()).then(|| self.best())
    }

    /// The least number that no other beats by [`WORTH`].
    fn best(&self) -> u32 {
        let rates = || self.seen.iter().map(|&(sum, time)| sum as f64 / time.max(1) as f64);
        let top = rates().fold(0.0, f64::max);
        1 << rates().position(|rate| rate * WORTH >= top).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a stream of this depth learn on a kernel with this rate in requests per second for each number; what it chose, and the time it took.
    fn learned(depth: u32, rate: impl Fn(u32) -> f64) -> (u32, Nanos) {
        let tally = Tally::default();
        let mut reaping = Reaping::new(Reap::Auto, depth, 0, &tally);
        let mut now = 0;
        while reaping.trials.is_some() {
            now += (1e9 * f64::from(reaping.least) / rate(reaping.least)) as Nanos;
            reaping.turned(u64::from(reaping.least), now);
        }
        drop(reaping);
        (tally.waits().expect("it waited").completions, now)
    }

    #[test]
    fn what_pays_is_learned_in_a_tenth_of_a_second() {
        // Each wake costs 5 us, each request 5 us more: 16 gain 1.88, 32 gain 2 % more and a little.
        let (least, time) = learned(64, |n| 1e9 / (5000.0 + 5000.0 / f64::from(n)));
        assert_eq!(least, 32);
        assert!(time <= 110_000_000, "{time} ns");
        assert_eq!(learned(16, |n| 1e9 / (5000.0 + 5000.0 / f64::from(n))).0, 8, "no more than half of the depth");
        assert_eq!(learned(64, |n| if n <= 4 { 100e3 } else { 80e3 }).0, 1, "what gains nothing is not waited for");
    }

    #[test]
    fn slow_requests_are_taken_one_by_one() {
        let (least, time) = learned(32, |_| 8000.0);
        assert_eq!(least, 1);
        assert!(time < 2 * TRIAL_NS);
    }

    #[test]
    fn few_in_flight_leave_no_choice() {
        for depth in 1..4 {
            let tally = Tally::default();
            let reaping = Reaping::new(Reap::Auto, depth, 0, &tally);
            assert_eq!((reaping.trials.is_none(), reaping.wait(depth)), (true, Wait::One), "{depth}");
        }
    }

    #[test]
    fn no_more_are_waited_for_than_are_in_flight() {
        let tally = Tally::default();
        let reaping = Reaping::new(Reap::AtLeast(100), 32, 0, &tally);
        assert_eq!(reaping.wait(32), Wait::Several(32));
        assert_eq!(reaping.wait(5), Wait::Several(5));
        assert_eq!(Reaping::new(Reap::AtLeast(1), 32, 0, &tally).wait(5), Wait::One);
    }
}
