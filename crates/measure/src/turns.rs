//! A block of four runs is ABBA or BAAB, so drift cancels out.

use crate::stats::{MIN_BLOCKS, change_at_any_time, holm};
use machine::Nanos;
use workload::rng::SplitMix64;

const CHANCE: f64 = 0.05;

/// A block's values by arm, value and turn.
pub type Block<const N: usize> = [[[f64; 2]; N]; 2];

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// A change's relative half width that decides a question.
    pub until: f64,
    /// Each question gets its minimum number of blocks anyway.
    pub budget_ns: Nanos,
    /// The maximum per question; [`MIN_BLOCKS`] or more if runs differ.
    pub max_blocks: usize,
    /// Closes a question once arm 1 cannot be faster by this fraction.
    pub gain_wanted: Option<f64>,
    /// Otherwise one block is enough.
    pub noisy: bool,
    pub seed: u64,
}

impl Limits {
    fn max(&self) -> usize {
        self.max_blocks.max(MIN_BLOCKS)
    }
}

#[derive(Debug)]
pub enum Stop<E> {
    /// No answer; the other questions continue.
    Question(String),
    /// The blocks so far count if they are enough.
    Interrupted(E),
    All(E),
}

pub trait Arms<const N: usize> {
    type Error;

    /// In ns, from an arbitrary start.
    fn now(&self) -> Nanos;

    /// Returns the values, the rate first.
    fn run(&mut self, arm: usize, question: usize) -> Result<[f64; N], Stop<Self::Error>>;

    /// Called before each block, counted from 1.
    fn on_block(&mut self, _question: usize, _block: usize, _passed_ns: Nanos) {}
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answer<const N: usize> {
    pub blocks: Vec<Block<N>>,
    /// The arm and the reason.
    pub failed: Option<(usize, String)>,
    pub closed: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Turns<const N: usize> {
    pub answers: Vec<Answer<N>>,
    pub interrupted: bool,
}

impl<const N: usize> Turns<N> {
    /// Questions still open when the time was up.
    pub fn open(&self) -> usize {
        self.answers.iter().filter(|answer| !answer.closed).count()
    }
}

/// Ends when each question is decided or the time is up. An interrupt is an error only before any
/// result.
pub fn in_turn<const N: usize, A: Arms<N>>(
    arms: &mut A,
    questions: usize,
    limits: Limits,
) -> Result<Turns<N>, A::Error> {
    let mut answers = vec![Answer { blocks: Vec::new(), failed: None, closed: false }; questions];
    let mut order = SplitMix64::new(limits.seed);
    let began = arms.now();
    let mut longest = 0;
    let goes_on = |answer: &Answer<N>| !answer.closed && answer.blocks.len() < limits.max();
    while answers.iter().any(goes_on) {
        for question in 0..questions {
            if !goes_on(&answers[question]) {
                continue;
            }
            let passed = arms.now().saturating_sub(began);
            let enough =
                answers.iter().all(|answer| answer.closed || answer.blocks.len() >= MIN_BLOCKS);
            if enough && passed.saturating_add(longest) > limits.budget_ns {
                return Ok(Turns { answers, interrupted: false });
            }
            arms.on_block(question, answers[question].blocks.len() + 1, passed);
            let first = usize::from(order.next_u64() >> 63 == 1);
            match block(arms, question, first) {
                Ok(block) => answers[question].blocks.push(block),
                Err((_, Stop::Interrupted(_)))
                    if enough && !answers[question].blocks.is_empty() =>
                {
                    return Ok(Turns { answers, interrupted: true });
                }
                Err((_, Stop::Interrupted(error) | Stop::All(error))) => return Err(error),
                Err((arm, Stop::Question(why))) => {
                    answers[question].failed = Some((arm, why));
                    answers[question].closed = true;
                }
            }
            longest = longest.max(arms.now().saturating_sub(began).saturating_sub(passed));
        }
        close(&mut answers, limits);
    }
    Ok(Turns { answers, interrupted: false })
}

fn block<const N: usize, A: Arms<N>>(
    arms: &mut A,
    question: usize,
    first: usize,
) -> Result<Block<N>, (usize, Stop<A::Error>)> {
    let mut values = [[[0.0; 2]; N]; 2];
    let second = 1 - first;
    for (arm, turn) in [(first, 0), (second, 0), (second, 1), (first, 1)] {
        let run = arms.run(arm, question).map_err(|stop| (arm, stop))?;
        for (series, value) in values[arm].iter_mut().zip(run) {
            series[turn] = value;
        }
    }
    Ok(values)
}

fn close<const N: usize>(answers: &mut [Answer<N>], limits: Limits) {
    if !limits.noisy {
        answers.iter_mut().for_each(|answer| answer.closed = true);
        return;
    }
    let rate = |answer: &Answer<N>| {
        let log = |values: [f64; 2]| (values[0].ln() + values[1].ln()) / 2.0;
        let logs: Vec<f64> =
            answer.blocks.iter().map(|block| log(block[1][0]) - log(block[0][0])).collect();
        if logs.len() < MIN_BLOCKS { None } else { change_at_any_time(&logs) }
    };
    let changes: Vec<_> = answers.iter().map(rate).collect();
    let adjusted = holm(
        &changes.iter().map(|change| change.map_or(1.0, |change| change.p)).collect::<Vec<f64>>(),
    );
    for ((answer, change), p) in answers.iter_mut().zip(changes).zip(adjusted) {
        let narrow = change.is_some_and(|change| (change.high - change.low) / 2.0 <= limits.until);
        let hopeless = change
            .zip(limits.gain_wanted)
            .is_some_and(|(change, wanted)| change.high < 1.0 + wanted);
        answer.closed |= change.is_some() && (p < CHANCE || narrow || hopeless);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type HowItStops = fn() -> Stop<&'static str>;

    struct Fake {
        rates: Vec<[f64; 2]>,
        noise: SplitMix64,
        clock: Nanos,
        order: Vec<(usize, usize)>,
        stops: Option<(usize, HowItStops)>,
    }

    impl Fake {
        fn new(rates: &[[f64; 2]]) -> Fake {
            Fake {
                rates: rates.to_vec(),
                noise: SplitMix64::new(7),
                clock: 0,
                order: Vec::new(),
                stops: None,
            }
        }
    }

    impl Arms<1> for Fake {
        type Error = &'static str;

        fn now(&self) -> Nanos {
            self.clock
        }

        fn run(&mut self, arm: usize, question: usize) -> Result<[f64; 1], Stop<&'static str>> {
            if let Some((at, stop)) = self.stops
                && self.order.len() == at
            {
                self.order.push((question, arm));
                return Err(stop());
            }
            self.order.push((question, arm));
            self.clock += 1_000_000;
            let noise = (self.noise.next_u64() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
            Ok([self.rates[question][arm] * (noise * 0.02).exp()])
        }
    }

    const LIMITS: Limits = Limits {
        until: 0.05,
        budget_ns: 10_000_000_000,
        max_blocks: usize::MAX,
        gain_wanted: None,
        noisy: true,
        seed: 1,
    };

    #[test]
    fn each_question_runs_until_decided() {
        let mut arms = Fake::new(&[[100.0, 200.0], [100.0, 100.0]]);
        let turns = in_turn(&mut arms, 2, LIMITS).unwrap();
        assert!(turns.open() == 0 && !turns.interrupted && arms.clock < LIMITS.budget_ns);
        for chunk in arms.order.chunks(4) {
            let of_block: Vec<usize> = chunk.iter().map(|(_, arm)| *arm).collect();
            assert!(of_block == [0, 1, 1, 0] || of_block == [1, 0, 0, 1], "{of_block:?}");
            assert!(chunk.iter().all(|(question, _)| *question == chunk[0].0));
        }
        let [changed, same] = [0, 1].map(|index| {
            let logs: Vec<f64> = turns.answers[index]
                .blocks
                .iter()
                .map(|block| (block[1][0][0] / block[0][0][0]).ln())
                .collect();
            change_at_any_time(&logs).unwrap()
        });
        assert!((changed.ratio - 2.0).abs() < 0.1 && (same.ratio - 1.0).abs() < 0.05);
    }

    #[test]
    fn the_budget_still_allows_the_minimum_of_blocks() {
        let mut arms = Fake::new(&[[100.0, 100.0]; 3]);
        let turns = in_turn(&mut arms, 3, Limits { until: 1e-9, budget_ns: 1, ..LIMITS }).unwrap();
        assert_eq!(turns.open(), 3);
        assert!(turns.answers.iter().all(|answer| answer.blocks.len() == MIN_BLOCKS));
    }

    #[test]
    fn the_maximum_of_blocks_closes_a_question() {
        let mut arms = Fake::new(&[[100.0, 100.0], [100.0, 200.0]]);
        let turns = in_turn(&mut arms, 2, Limits { until: 1e-9, max_blocks: 9, ..LIMITS }).unwrap();
        assert_eq!((turns.open(), turns.answers[0].blocks.len()), (1, 9));
        assert!(turns.answers[1].closed && turns.answers[1].blocks.len() < 9);
        let few = in_turn(
            &mut Fake::new(&[[1.0, 1.0]]),
            1,
            Limits { until: 1e-9, max_blocks: 1, ..LIMITS },
        )
        .unwrap();
        assert_eq!(few.answers[0].blocks.len(), MIN_BLOCKS, "fewer say nothing");
    }

    #[test]
    fn excluded_gains_close_a_question_early() {
        let blocks = |rates: [f64; 2], gain_wanted| {
            let mut arms = Fake::new(&[rates]);
            let limits = Limits { until: 1e-9, max_blocks: 400, gain_wanted, ..LIMITS };
            in_turn(&mut arms, 1, limits).unwrap().answers[0].blocks.len()
        };
        // A loss of 0.05 % in noise of 0.6 %: detecting it takes hundreds of blocks, excluding a
        // gain of 2 % only a few.
        assert!(blocks([1000.0, 999.5], Some(0.02)) <= 8);
        assert!(blocks([1000.0, 999.5], None) > 50);
        // A real gain is found as without the limit.
        assert_eq!(blocks([100.0, 110.0], Some(0.02)), blocks([100.0, 110.0], None));
    }

    #[test]
    fn one_block_is_enough_without_noise() {
        let mut arms = Fake::new(&[[100.0, 101.0]; 2]);
        let turns = in_turn(&mut arms, 2, Limits { noisy: false, ..LIMITS }).unwrap();
        assert!(turns.answers.iter().all(|answer| answer.blocks.len() == 1 && answer.closed));
    }

    #[test]
    fn other_questions_continue_after_a_failure() {
        let mut arms = Fake::new(&[[100.0, 200.0], [100.0, 200.0]]);
        arms.stops = Some((1, || Stop::Question("no such value".into())));
        let turns = in_turn(&mut arms, 2, LIMITS).unwrap();
        assert_eq!(
            turns.answers[0].failed.as_ref().map(|(_, why)| why.as_str()),
            Some("no such value")
        );
        assert!(turns.answers[1].failed.is_none() && turns.answers[1].blocks.len() >= MIN_BLOCKS);
    }

    #[test]
    fn an_interrupt_keeps_sufficient_blocks() {
        let mut early = Fake::new(&[[100.0, 100.0]]);
        early.stops = Some((5, || Stop::Interrupted("interrupted")));
        assert_eq!(in_turn(&mut early, 1, LIMITS).unwrap_err(), "interrupted");
        let mut late = Fake::new(&[[100.0, 100.0]]);
        late.stops = Some((4 * MIN_BLOCKS + 1, || Stop::Interrupted("interrupted")));
        let turns = in_turn(&mut late, 1, Limits { until: 1e-9, ..LIMITS }).unwrap();
        assert!(turns.interrupted && turns.answers[0].blocks.len() == MIN_BLOCKS);
    }
}
