//! How a serving loop waits for completions.

use crate::session::Wait;
use machine::{Nanos, POLL_MAX_NS, ParityUse, Reap, Waits};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

const MAX_LEARNED: u32 = 32;

const TRIAL_NS: Nanos = 6_000_000;

/// Trials of each way by the end of each stage.
const ROUNDS: [usize; 3] = [3, 7, 13];

/// Ways left after each stage, besides the first and polling.
const KEPT: [usize; 2] = [2, 1];

/// Fewer completions are inconclusive; slow requests leave no wakeups to save.
const MIN_COMPLETIONS: u64 = 72;

/// The required gain: waiting for more costs latency, polling costs a CPU.
const WORTH: f64 = 1.02;

/// If even this does not pay, the stream only sleeps.
const MIN_POLL_NS: Nanos = 10_000;

#[derive(Default)]
pub(crate) struct PartCounters {
    waits: AtomicU64,
    min_completions: AtomicU32,
    polled: AtomicBool,
    unregistered: AtomicBool,
    /// Streams' threads were runnable but not scheduled.
    unserved_ns: AtomicU64,
    /// The time, and the input bytes.
    parity: (AtomicU64, AtomicU64),
    /// Polling in every stream would leave the kernel no CPU.
    crowded: bool,
}

impl PartCounters {
    /// `streams` counts all parts of a run.
    pub(crate) fn new(streams: usize, processors: usize) -> PartCounters {
        PartCounters { crowded: streams >= processors, ..PartCounters::default() }
    }

    pub(crate) fn note_parity(&self, ns: Nanos, bytes: u64) {
        self.parity.0.fetch_add(ns, Ordering::Relaxed);
        self.parity.1.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn parity(&self) -> Option<ParityUse> {
        let bytes = self.parity.1.load(Ordering::Relaxed);
        (bytes > 0).then(|| ParityUse { ns: self.parity.0.load(Ordering::Relaxed), bytes })
    }

    pub(crate) fn note_unserved(&self, ns: Nanos) {
        self.unserved_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub(crate) fn unserved_ns(&self) -> Nanos {
        self.unserved_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn note_unregistered(&self) {
        self.unregistered.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_unregistered(&self) -> bool {
        self.unregistered.load(Ordering::Relaxed)
    }

    /// `None` for blocking calls.
    pub(crate) fn waits(&self) -> Option<Waits> {
        let waits = self.waits.load(Ordering::Relaxed);
        let completions = self.min_completions.load(Ordering::Relaxed);
        (completions > 0).then(|| Waits {
            waits,
            completions,
            polled: self.polled.load(Ordering::Relaxed),
        })
    }
}

pub(crate) struct Reaping<'a> {
    min_completions: u32,
    waits: u64,
    polling: Option<Polling>,
    poll_until: Nanos,
    polled: bool,
    trials: Option<Box<Trials>>,
    sleeps: bool,
    tally: &'a PartCounters,
}

/// The budget grows after short sleeps, not after long ones, as when a hypervisor deschedules a
/// CPU.
#[derive(Default)]
struct Polling {
    budget_ns: Nanos,
    since: Nanos,
}

impl Polling {
    /// When polling ends, by the time between completions: a stream that wakes late finds several.
    fn completed(&mut self, polled: bool, completions: u64, now: Nanos) -> Nanos {
        let waited = now.saturating_sub(self.since) / completions.max(1);
        self.since = now;
        if waited > POLL_MAX_NS {
            self.budget_ns /= 2;
            if self.budget_ns < MIN_POLL_NS {
                self.budget_ns = 0;
            }
        } else if !polled {
            self.budget_ns = (self.budget_ns * 2).clamp(MIN_POLL_NS, POLL_MAX_NS);
        }
        now + self.budget_ns
    }
}

impl<'a> Reaping<'a> {
    pub(crate) fn new(reap: Reap, depth: u32, now: Nanos, tally: &'a PartCounters) -> Reaping<'a> {
        let trials = (reap == Reap::Auto).then(|| Trials::new(depth, !tally.crowded, now));
        let first = trials.as_ref().map_or(reap, |trials| trials.tried());
        let mut reaping = Reaping {
            min_completions: 1,
            waits: 0,
            polling: None,
            poll_until: 0,
            polled: false,
            trials,
            sleeps: false,
            tally,
        };
        reaping.set(first, depth);
        reaping
    }

    fn set(&mut self, reap: Reap, depth: u32) {
        self.min_completions = if let Reap::AtLeast(min) = reap { min.min(depth) } else { 1 };
        self.polling = (reap == Reap::Poll && !self.tally.crowded).then(Polling::default);
        self.poll_until = 0;
        self.sleeps = self.polling.is_none() && self.trials.is_none();
    }

    #[inline(always)]
    pub(crate) fn wait(&mut self, in_flight: u32, now: Nanos) -> Wait {
        if now < self.poll_until {
            self.polled = true;
            return Wait::For(0);
        }
        if self.min_completions <= 1 {
            Wait::One
        } else {
            Wait::Several(self.min_completions.min(in_flight))
        }
    }

    #[inline(always)]
    pub(crate) fn turned(&mut self, completions: u64, now: Nanos) {
        if self.sleeps {
            self.waits += 1;
        } else {
            self.turned_awake(completions, now);
        }
    }

    fn turned_awake(&mut self, completions: u64, now: Nanos) {
        self.waits += u64::from(!self.polled);
        if let Some(polling) = &mut self.polling
            && completions > 0
        {
            self.poll_until = polling.completed(self.polled, completions, now);
        }
        self.polled = false;
        if self.trials.is_some() {
            self.learn(completions, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, completions: u64, now: Nanos) {
        let Some(trials) = &mut self.trials else { return };
        let depth = trials.depth;
        let way = match trials.took(completions, now) {
            None => return,
            Some(Learned::Try(way)) => way,
            Some(Learned::Settled(way)) => {
                self.trials = None;
                way
            }
        };
        self.set(way, depth);
    }
}

impl Drop for Reaping<'_> {
    fn drop(&mut self) {
        self.tally.waits.fetch_add(self.waits, Ordering::Relaxed);
        self.tally.min_completions.fetch_max(self.min_completions, Ordering::Relaxed);
        self.tally.polled.fetch_or(self.polling.is_some(), Ordering::Relaxed);
    }
}

enum Learned {
    Try(Reap),
    Settled(Reap),
}

/// Ways to wait alternate, so that drift affects them equally, in stages with fewer ways and more
/// trials. Sleeping until one request completes and polling stay to the end.
struct Trials {
    /// Completions per nanosecond, the cheapest way first.
    ways: Vec<(Reap, Vec<f64>)>,
    depth: u32,
    stage: usize,
    turn: usize,
    began: Nanos,
    completions: u64,
}

impl Trials {
    /// Tries up to half the depth: with few in flight, each request is needed at once.
    fn new(depth: u32, may_poll: bool, now: Nanos) -> Box<Trials> {
        let max = (depth / 2).clamp(1, MAX_LEARNED);
        let numbers = (0..=max.ilog2()).map(|power| Reap::AtLeast(1 << power));
        let ways =
            numbers.chain(may_poll.then_some(Reap::Poll)).map(|way| (way, Vec::new())).collect();
        Box::new(Trials { ways, depth, stage: 0, turn: 0, began: now, completions: 0 })
    }

    fn tried(&self) -> Reap {
        self.ways[self.turn].0
    }

    fn took(&mut self, completions: u64, now: Nanos) -> Option<Learned> {
        self.completions += completions;
        let elapsed = now.saturating_sub(self.began);
        if elapsed < TRIAL_NS {
            return None;
        }
        if self.completions < MIN_COMPLETIONS {
            return Some(Learned::Settled(Reap::AtLeast(1)));
        }
        self.ways[self.turn].1.push(self.completions as f64 / elapsed as f64);
        (self.began, self.completions) = (now, 0);
        self.turn = (self.turn + 1) % self.ways.len();
        if self.turn == 0 && self.ways[0].1.len() >= ROUNDS[self.stage] {
            self.stage += 1;
            match KEPT.get(self.stage - 1) {
                Some(&stays) => self.drop_to(stays),
                None => return Some(Learned::Settled(self.best())),
            }
        }
        Some(Learned::Try(self.tried()))
    }

    fn drop_to(&mut self, stays: usize) {
        let mut rates: Vec<f64> =
            self.ways.iter().skip(1).filter(|(way, _)| *way != Reap::Poll).map(of).collect();
        rates.sort_by(|a, b| b.total_cmp(a));
        let min = rates.get(stays.saturating_sub(1)).copied().unwrap_or(0.0);
        let mut number = 0;
        self.ways.retain(|one| {
            number += 1;
            number == 1 || one.0 == Reap::Poll || of(one) >= min
        });
    }

    fn best(&self) -> Reap {
        let top = self.ways.iter().map(of).fold(0.0, f64::max);
        let first = self.ways.iter().find(|one| of(one) * WORTH >= top);
        first.map_or(Reap::AtLeast(1), |&(way, _)| way)
    }
}

fn of((_, rates): &(Reap, Vec<f64>)) -> f64 {
    median(rates)
}

fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let above = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[above],
        _ => (sorted[above - 1] + sorted[above]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(depth: u32, rate: impl Fn(Reap) -> f64) -> (Reap, Nanos) {
        learned_among(1, depth, rate)
    }

    fn learned_among(streams: usize, depth: u32, rate: impl Fn(Reap) -> f64) -> (Reap, Nanos) {
        let tally = PartCounters::new(streams, 2);
        let mut reaping = Reaping::new(Reap::Auto, depth, 0, &tally);
        let mut now = 0;
        while let Some(trials) = &reaping.trials {
            let way = trials.tried();
            let completions = if let Reap::AtLeast(min) = way { min } else { 1 };
            now += (1e9 * f64::from(completions) / rate(way)) as Nanos;
            reaping.turned(u64::from(completions), now);
        }
        drop(reaping);
        let waits = tally.waits().expect("it waited");
        (if waits.polled { Reap::Poll } else { Reap::AtLeast(waits.completions) }, now)
    }

    fn wakes(way: Reap) -> f64 {
        let completions = if let Reap::AtLeast(min) = way { min } else { 1 };
        1e9 / (5000.0 + 5000.0 / f64::from(completions))
    }

    #[test]
    fn what_pays_is_learned_before_the_run_is_measured() {
        // Waiting for 16 gains 1.88 times over 1; 32 gains slightly over 2 % more.
        let (way, time) = learned(64, wakes);
        assert_eq!(way, Reap::AtLeast(32));
        assert!(time <= machine::REAP_LEARNING_NS, "{time} ns");
        assert_eq!(learned(16, wakes).0, Reap::AtLeast(8), "no more than half of the depth");
        let few = |way| if matches!(way, Reap::AtLeast(1..=4)) { 100e3 } else { 80e3 };
        assert_eq!(learned(64, few).0, Reap::AtLeast(1), "waits that gain nothing are not used");
    }

    #[test]
    fn polling_is_learned_where_it_gains() {
        let polled = |gain: f64| move |way| if way == Reap::Poll { gain * 1e5 } else { 1e5 };
        assert_eq!(learned(32, polled(1.2)).0, Reap::Poll);
        assert_eq!(learned(1, polled(1.2)).0, Reap::Poll);
        assert_eq!(learned(32, polled(1.01)).0, Reap::AtLeast(1), "polling costs a CPU");
        assert_eq!(
            learned_among(2, 32, polled(1.2)).0,
            Reap::AtLeast(1),
            "the kernel would have no CPU left"
        );
    }

    #[test]
    fn a_way_that_is_good_in_a_few_trials_must_prove_it_in_more() {
        // Waiting for 4 gains 10 %; single trials vary by more, as on a shared machine.
        for seed in 0..50_u64 {
            let trial = std::cell::Cell::new(seed * 1000);
            let noisy = |way| {
                trial.set(trial.get() + 1);
                let share = (trial.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64
                    / (1 << 24) as f64;
                let gain = if way == Reap::AtLeast(4) { 1.1 } else { 1.0 };
                1e5 * gain * (0.95 + 0.1 * share)
            };
            // One rate per trial: a turn's time does not depend on the number of turns.
            assert_eq!(learned(8, noisy).0, Reap::AtLeast(4), "seed {seed}");
        }
    }

    #[test]
    fn polling_survives_a_slow_start() {
        let trials = std::cell::Cell::new(0);
        let late = |way| {
            trials.set(trials.get() + 1);
            let disturbed = way == Reap::Poll && trials.get() <= 3 * 6;
            if disturbed {
                0.5e5
            } else if way == Reap::Poll {
                1.15e5
            } else {
                1e5
            }
        };
        assert_eq!(learned(32, late).0, Reap::Poll);
    }

    #[test]
    fn slow_requests_are_taken_one_by_one() {
        let (way, time) = learned(32, |_| 8000.0);
        assert_eq!(way, Reap::AtLeast(1));
        assert!(time < 2 * TRIAL_NS);
    }

    #[test]
    fn no_more_are_waited_for_than_are_in_flight() {
        let tally = PartCounters::default();
        let mut reaping = Reaping::new(Reap::AtLeast(100), 32, 0, &tally);
        assert_eq!(reaping.wait(32, 0), Wait::Several(32));
        assert_eq!(reaping.wait(5, 0), Wait::Several(5));
        assert_eq!(Reaping::new(Reap::AtLeast(1), 32, 0, &tally).wait(5, 0), Wait::One);
    }

    fn polls(every: Nanos, completions: u32) -> (u64, u64) {
        const POLL_NS: Nanos = 500;
        let tally = PartCounters::default();
        let mut reaping = Reaping::new(Reap::Poll, 1, 0, &tally);
        let (mut now, mut polls) = (0, 0);
        for number in 1..=u64::from(completions) {
            let done = number * every;
            while now < done {
                match reaping.wait(1, now) {
                    Wait::For(0) => {
                        polls += 1;
                        now += POLL_NS;
                    }
                    _ => now = done,
                }
                reaping.turned(u64::from(now >= done), now);
            }
        }
        (reaping.waits, polls)
    }

    #[test]
    fn a_stream_polls_for_quick_completions_and_sleeps_for_slow_ones() {
        let (sleeps, polls_of_quick) = polls(40_000, 1000);
        assert!(sleeps <= 4, "{sleeps} sleeps: the first few, until polling is long enough");
        assert!(polls_of_quick > 70_000, "{polls_of_quick}");
        assert_eq!(polls(4_000_000, 1000), (1000, 0), "polling stops if it gains nothing");
        let together = PartCounters::default();
        let mut woken_late = Reaping::new(Reap::Poll, 32, 0, &together);
        (1..9).for_each(|turn| woken_late.turned(32, turn * 640_000));
        assert_eq!(
            woken_late.wait(32, 8 * 640_000 + 90_000),
            Wait::For(0),
            "32 completions in 640 us are 20 us apart"
        );
        let tally = PartCounters::new(2, 2);
        let mut crowded = Reaping::new(Reap::Poll, 1, 0, &tally);
        crowded.turned(1, 1000);
        crowded.turned(1, 2000);
        assert_eq!(
            crowded.wait(1, 2000),
            Wait::One,
            "streams that take the kernel's processor only wait longer"
        );
    }
}
