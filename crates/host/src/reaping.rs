//! How a serving loop waits for completions: for how many, asleep or polling; and how it learns what pays.

use crate::session::Wait;
use machine::{Nanos, POLL_MOST_NS, ParityUse, Reap, Waits};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The most completions that learning tries to wait for.
const LEARNED_MOST: u32 = 32;

/// How long one way of waiting is tried at a time.
const TRIAL_NS: Nanos = 6_000_000;

/// How often each had been tried at the end of a stage: in turn, so that a drift falls on all.
const ROUNDS: [usize; 3] = [3, 7, 13];

/// How many ways stay in after each stage but the last, beside the least and polling.
const STAYS: [usize; 2] = [2, 1];

/// A trial with fewer completions says nothing, and requests so slow leave no wake to save.
const LEAST_COMPLETIONS: u64 = 72;

/// Waiting for more must gain this share over waiting for fewer, for it costs latency; and polling over sleeping, for it costs a processor.
const WORTH: f64 = 1.02;

/// The shortest time that is polled before a sleep; where this fails, there is only sleep.
const POLL_LEAST_NS: Nanos = 10_000;

/// What the streams of a part did, kept where all of them reach it.
#[derive(Default)]
pub(crate) struct Tally {
    /// How often a stream waited in the kernel.
    waits: AtomicU64,
    /// For how many completions they waited in the end: the most of any.
    least: AtomicU32,
    /// A stream polled in the end.
    polled: AtomicBool,
    /// The buffers of a stream could not be registered with the kernel.
    unregistered: AtomicBool,
    /// Time in which a stream's thread could have run and had no processor, over all streams.
    unserved_ns: AtomicU64,
    /// Time in which parity was computed, and the bytes that it was computed from.
    parity: (AtomicU64, AtomicU64),
    /// No processor is left for the kernel where each stream keeps one busy.
    crowded: bool,
}

impl Tally {
    /// Of a run with so many streams, over all parts, on so many processors.
    pub(crate) fn new(streams: usize, processors: usize) -> Tally {
        Tally { crowded: streams >= processors, ..Tally::default() }
    }

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

    /// Adds how long a stream's thread waited for a processor.
    pub(crate) fn note_unserved(&self, ns: Nanos) {
        self.unserved_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// How long the streams' threads waited for a processor, together.
    pub(crate) fn unserved_ns(&self) -> Nanos {
        self.unserved_ns.load(Ordering::Relaxed)
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
        let completions = self.least.load(Ordering::Relaxed);
        (completions > 0).then(|| Waits { waits, completions, polled: self.polled.load(Ordering::Relaxed) })
    }
}

/// How one stream waits.
pub(crate) struct Reaping<'a> {
    least: u32,
    waits: u64,
    polling: Option<Polling>,
    /// Until when the stream polls; then it sleeps.
    poll_until: Nanos,
    /// The turn's wait was no sleep.
    polled: bool,
    trials: Option<Box<Trials>>,
    tally: &'a Tally,
}

/// How long a stream polls before it sleeps: longer where a sleep was short, not at all where they are long, as a hypervisor does
/// for a processor that halts.
#[derive(Default)]
struct Polling {
    budget_ns: Nanos,
    /// The last completion.
    since: Nanos,
}

impl Polling {
    /// After so many completions at this time, for which the stream slept or polled: until when it polls now.
    ///
    /// What counts is the time between two completions. A stream that is woken late finds many of them, and would have met them one by one if it had
    /// polled.
    fn completed(&mut self, polled: bool, completions: u64, now: Nanos) -> Nanos {
        let waited = now.saturating_sub(self.since) / completions.max(1);
        self.since = now;
        if waited > POLL_MOST_NS {
            self.budget_ns /= 2;
            if self.budget_ns < POLL_LEAST_NS {
                self.budget_ns = 0;
            }
        } else if !polled {
            self.budget_ns = (self.budget_ns * 2).clamp(POLL_LEAST_NS, POLL_MOST_NS);
        }
        now + self.budget_ns
    }
}

impl<'a> Reaping<'a> {
    pub(crate) fn new(reap: Reap, depth: u32, now: Nanos, tally: &'a Tally) -> Reaping<'a> {
        let trials = (reap == Reap::Auto).then(|| Trials::new(depth, !tally.crowded, now));
        let first = trials.as_ref().map_or(reap, |trials| trials.tried());
        let mut reaping = Reaping { least: 1, waits: 0, polling: None, poll_until: 0, polled: false, trials, tally };
        reaping.set(first, depth);
        reaping
    }

    fn set(&mut self, reap: Reap, depth: u32) {
        self.least = if let Reap::AtLeast(least) = reap { least.min(depth) } else { 1 };
        self.polling = (reap == Reap::Poll && !self.tally.crowded).then(Polling::default);
        self.poll_until = 0;
    }

    /// The wait of a turn with nothing left to issue.
    #[inline(always)]
    pub(crate) fn wait(&mut self, in_flight: u32, now: Nanos) -> Wait {
        if now < self.poll_until {
            self.polled = true;
            return Wait::For(0);
        }
        if self.least <= 1 { Wait::One } else { Wait::Several(self.least.min(in_flight)) }
    }

    /// After a turn that took this many completions.
    #[inline(always)]
    pub(crate) fn turned(&mut self, completions: u64, now: Nanos) {
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
        self.tally.least.fetch_max(self.least, Ordering::Relaxed);
        self.tally.polled.fetch_or(self.polling.is_some(), Ordering::Relaxed);
    }
}

/// What to do after a trial.
enum Learned {
    /// Wait in this way for the next one.
    Try(Reap),
    /// Wait in this way from now on.
    Settled(Reap),
}

/// Ways to wait, tried in turn, in stages: each stage tries fewer of them, and more often.
///
/// A trial is short and the machine disturbs it, so a way that seems good in a few must prove it in more. Two are tried to the end: sleeping until one
/// request completed, which costs least, and polling, which gains most where wakes are what limits.
struct Trials {
    /// Each way with its rates in completions per nanosecond. A way that costs less stands before one that costs more.
    ways: Vec<(Reap, Vec<f64>)>,
    depth: u32,
    stage: usize,
    /// The way tried now.
    turn: usize,
    began: Nanos,
    completions: u64,
}

impl Trials {
    /// Numbers to wait for up to half of the depth, for of few requests in flight each is wanted back at once; and polling, where that may be.
    fn new(depth: u32, may_poll: bool, now: Nanos) -> Box<Trials> {
        let most = (depth / 2).clamp(1, LEARNED_MOST);
        let numbers = (0..=most.ilog2()).map(|power| Reap::AtLeast(1 << power));
        let ways = numbers.chain(may_poll.then_some(Reap::Poll)).map(|way| (way, Vec::new())).collect();
        Box::new(Trials { ways, depth, stage: 0, turn: 0, began: now, completions: 0 })
    }

    /// What is tried now.
    fn tried(&self) -> Reap {
        self.ways[self.turn].0
    }

    /// Takes a turn's completions in; whether something else is to be done now, and what.
    fn took(&mut self, completions: u64, now: Nanos) -> Option<Learned> {
        self.completions += completions;
        let elapsed = now.saturating_sub(self.began);
        if elapsed < TRIAL_NS {
            return None;
        }
        if self.completions < LEAST_COMPLETIONS {
            return Some(Learned::Settled(Reap::AtLeast(1)));
        }
        self.ways[self.turn].1.push(self.completions as f64 / elapsed as f64);
        (self.began, self.completions) = (now, 0);
        self.turn = (self.turn + 1) % self.ways.len();
        if self.turn == 0 && self.ways[0].1.len() >= ROUNDS[self.stage] {
            self.stage += 1;
            match STAYS.get(self.stage - 1) {
                Some(&stays) => self.drop_to(stays),
                None => return Some(Learned::Settled(self.best())),
            }
        }
        Some(Learned::Try(self.tried()))
    }

    /// Keeps the first way, polling, and so many of the others, the best.
    fn drop_to(&mut self, stays: usize) {
        let mut rates: Vec<f64> = self.ways.iter().skip(1).filter(|(way, _)| *way != Reap::Poll).map(of).collect();
        rates.sort_by(|a, b| b.total_cmp(a));
        let least = rates.get(stays.saturating_sub(1)).copied().unwrap_or(0.0);
        let mut number = 0;
        self.ways.retain(|one| {
            number += 1;
            number == 1 || one.0 == Reap::Poll || of(one) >= least
        });
    }

    /// The first way that no other beats by [`WORTH`].
    fn best(&self) -> Reap {
        let top = self.ways.iter().map(of).fold(0.0, f64::max);
        let first = self.ways.iter().find(|one| of(one) * WORTH >= top);
        first.map_or(Reap::AtLeast(1), |&(way, _)| way)
    }
}

/// What a way gave: the median of its trials.
fn of((_, rates): &(Reap, Vec<f64>)) -> f64 {
    middle(rates)
}

/// The median.
fn middle(rates: &[f64]) -> f64 {
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

    /// Lets a stream of this depth learn on a kernel with this rate in requests per second for each way; what it chose, and the time it took.
    fn learned(depth: u32, rate: impl Fn(Reap) -> f64) -> (Reap, Nanos) {
        learned_among(1, depth, rate)
    }

    /// The same beside other streams, on two processors.
    fn learned_among(streams: usize, depth: u32, rate: impl Fn(Reap) -> f64) -> (Reap, Nanos) {
        let tally = Tally::new(streams, 2);
        let mut reaping = Reaping::new(Reap::Auto, depth, 0, &tally);
        let mut now = 0;
        while let Some(trials) = &reaping.trials {
            let way = trials.tried();
            let completions = if let Reap::AtLeast(least) = way { least } else { 1 };
            now += (1e9 * f64::from(completions) / rate(way)) as Nanos;
            reaping.turned(u64::from(completions), now);
        }
        drop(reaping);
        let waits = tally.waits().expect("it waited");
        (if waits.polled { Reap::Poll } else { Reap::AtLeast(waits.completions) }, now)
    }

    /// Each wake costs 5 us, each request 5 us more; polling saves no wake here.
    fn wakes(way: Reap) -> f64 {
        let completions = if let Reap::AtLeast(least) = way { least } else { 1 };
        1e9 / (5000.0 + 5000.0 / f64::from(completions))
    }

    #[test]
    fn what_pays_is_learned_before_the_run_is_measured() {
        // 16 gain 1.88 over 1, 32 gain 2 % more and a little.
        let (way, time) = learned(64, wakes);
        assert_eq!(way, Reap::AtLeast(32));
        assert!(time <= machine::REAP_LEARNING_NS, "{time} ns");
        assert_eq!(learned(16, wakes).0, Reap::AtLeast(8), "no more than half of the depth");
        let few = |way| if matches!(way, Reap::AtLeast(1..=4)) { 100e3 } else { 80e3 };
        assert_eq!(learned(64, few).0, Reap::AtLeast(1), "what gains nothing is not waited for");
    }

    #[test]
    fn polling_is_learned_where_it_gains() {
        let polled = |gain: f64| move |way| if way == Reap::Poll { gain * 1e5 } else { 1e5 };
        assert_eq!(learned(32, polled(1.2)).0, Reap::Poll);
        assert_eq!(learned(1, polled(1.2)).0, Reap::Poll);
        assert_eq!(learned(32, polled(1.01)).0, Reap::AtLeast(1), "it costs a processor");
        assert_eq!(learned_among(2, 32, polled(1.2)).0, Reap::AtLeast(1), "no processor would be left for the kernel");
    }

    #[test]
    fn a_way_that_is_good_in_a_few_trials_must_prove_it_in_more() {
        // Waiting for 4 gains 10 %; single trials differ by more, as on a shared machine.
        for seed in 0..50_u64 {
            let trial = std::cell::Cell::new(seed * 1000);
            let noisy = |way| {
                trial.set(trial.get() + 1);
                let share = (trial.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / (1 << 24) as f64;
                let gain = if way == Reap::AtLeast(4) { 1.1 } else { 1.0 };
                1e5 * gain * (0.95 + 0.1 * share)
            };
            // One rate a trial: what a turn takes does not depend on how many turns a trial has.
            assert_eq!(learned(8, noisy).0, Reap::AtLeast(4), "seed {seed}");
        }
    }

    #[test]
    fn polling_is_not_given_up_for_a_bad_beginning() {
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
        let tally = Tally::default();
        let mut reaping = Reaping::new(Reap::AtLeast(100), 32, 0, &tally);
        assert_eq!(reaping.wait(32, 0), Wait::Several(32));
        assert_eq!(reaping.wait(5, 0), Wait::Several(5));
        assert_eq!(Reaping::new(Reap::AtLeast(1), 32, 0, &tally).wait(5, 0), Wait::One);
    }

    /// A stream that polls, on a device that completes one request every so often; its sleeps and its polls.
    fn polls(every: Nanos, completions: u32) -> (u64, u64) {
        const POLL_NS: Nanos = 500;
        let tally = Tally::default();
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
        assert_eq!(polls(4_000_000, 1000), (1000, 0), "no time is burnt where it gains nothing");
        let together = Tally::default();
        let mut woken_late = Reaping::new(Reap::Poll, 32, 0, &together);
        (1..9).for_each(|turn| woken_late.turned(32, turn * 640_000));
        assert_eq!(woken_late.wait(32, 8 * 640_000 + 90_000), Wait::For(0), "32 completions in 640 us are 20 us apart");
        let tally = Tally::new(2, 2);
        let mut crowded = Reaping::new(Reap::Poll, 1, 0, &tally);
        crowded.turned(1, 1000);
        crowded.turned(1, 2000);
        assert_eq!(crowded.wait(1, 2000), Wait::One, "streams that take the kernel's processor only wait longer");
    }
}
