//! Arms that run a whole benchmark.

use super::side::{Measurement, Reading, of_rate, whole_run};
use super::{Comparison, Conduct, InTurn, Series, Turn};
use crate::document::Program;
use crate::operation::OperationRate;
use ::measure::turns::{self, Stop, in_turn};
use machine::{Error, Nanos};

/// A run gives the rates of its operations.
pub trait WholeRuns {
    /// Two runs may differ.
    fn is_noisy(&self) -> bool;

    fn run(&mut self) -> machine::Result<Vec<OperationRate>>;
}

struct Both<'a, C> {
    arms: &'a mut [Box<dyn WholeRuns>; 2],
    runs: [Vec<Vec<OperationRate>>; 2],
    name: &'a str,
    conduct: &'a mut C,
}

impl<C: Conduct> turns::Arms<1> for Both<'_, C> {
    type Error = C::Error;

    fn now(&self) -> Nanos {
        self.conduct.now()
    }

    fn run(&mut self, arm: usize, _question: usize) -> Result<[f64; 1], Stop<C::Error>> {
        self.conduct.before_run(arm)?;
        let exact = !self.arms[arm].is_noisy();
        // A run that repeats exactly is run once.
        let rates = match self.runs[arm].last().filter(|_| exact) {
            Some(same) => same.clone(),
            None => self.arms[arm].run().map_err(|error| match error {
                Error::Interrupted => Stop::Interrupted(error.into()),
                error if error.is_usage() => Stop::All(error.into()),
                error => Stop::Question(error.to_string()),
            })?,
        };
        let value = speed(&rates);
        self.runs[arm].push(rates);
        Ok([value])
    }

    fn on_block(&mut self, _question: usize, block: usize, passed_ns: Nanos) {
        self.conduct.on_block(self.name, block, passed_ns);
    }
}

/// Operations per second over a PostMark run, or the geometric mean of metadata rates.
pub fn speed(rates: &[OperationRate]) -> f64 {
    let whole = rates.iter().find(|rate| rate.operation == "transaction");
    let time = rates.iter().find_map(|rate| whole_run(rate, false));
    if let (Some(_), Some(time)) = (whole, time.as_ref().and_then(|time| time.readings.first())) {
        let counted = ["create", "read", "append", "delete"];
        let operations = rates.iter().filter(|rate| counted.contains(&rate.operation.as_str()));
        let operations: u64 = operations.map(|rate| rate.count).sum();
        return operations as f64 * 1e9 / time.value;
    }
    let logs: f64 = rates.iter().map(|rate| rate.per_s.ln()).sum();
    (logs / rates.len().max(1) as f64).exp()
}

/// Only PostMark has a total time: it creates files from beginning to end.
fn questions(rates: &[OperationRate]) -> Vec<Measurement> {
    let whole = rates.iter().any(|rate| rate.operation == "transaction");
    let time = rates.iter().filter(|_| whole).filter_map(|rate| whole_run(rate, false));
    time.chain(rates.iter().map(of_rate)).collect()
}

impl Comparison {
    /// Measures until the speed is decided or a limit is reached.
    ///
    /// # Errors
    /// An interrupt before any result, or the conductor's error.
    pub fn of_whole_runs<C: Conduct>(
        arms: &mut [Box<dyn WholeRuns>; 2],
        (name, turn): (&str, Turn<'_>),
        conduct: &mut C,
        program: Program,
    ) -> Result<Comparison, C::Error> {
        let mut both = Both { arms, runs: [Vec::new(), Vec::new()], name, conduct };
        let turns = in_turn(&mut both, 1, turn.limits)?;
        let answer = &turns.answers[0];
        let runs = both.runs.map(|runs| runs.iter().map(|run| questions(run)).collect::<Vec<_>>());
        let mut warnings = Vec::new();
        if turns.interrupted {
            warnings.push("interrupted: what was measured until then is reported".into());
        }
        if turns.open() > 0 {
            warnings.push(format!(
                "still open when it stopped: neither a difference nor its absence to within {} % is sure; give it more {}",
                turn.limits.until * 100.0,
                turn.more
            ));
        }
        let reported = InTurn {
            a: turn.names[0],
            b: turn.names[1],
            blocks: answer.blocks.len() as u32,
            worth_percent: turn.worth_percent,
            failed: answer
                .failed
                .iter()
                .map(|(arm, why)| format!("{name}: failed on {}: {why}", turn.names[*arm]))
                .collect(),
            series: &series(&runs, answer.blocks.len(), !turn.limits.noisy),
            warnings,
        };
        Ok(Comparison::in_turn(reported, program))
    }
}

/// A block has two runs of each arm, in run order.
fn series(runs: &[Vec<Vec<Measurement>>; 2], blocks: usize, exact: bool) -> Vec<Series> {
    let Some(first) = runs[0].first() else { return Vec::new() };
    let value = |run: &[Measurement], asked: &Measurement, reading: &Reading| {
        let same = run.iter().find(|one| one.question == asked.question)?;
        Some(same.readings.iter().find(|one| one.measure == reading.measure)?.value)
    };
    let mut all = Vec::new();
    for asked in first {
        for reading in &asked.readings {
            let side = |arm: usize| -> Option<Vec<[f64; 2]>> {
                (0..blocks)
                    .map(|block| {
                        let turn =
                            |turn: usize| value(runs[arm].get(2 * block + turn)?, asked, reading);
                        Some([turn(0)?, turn(1)?])
                    })
                    .collect()
            };
            let (Some(a), Some(b)) = (side(0), side(1)) else { continue };
            let asked = Measurement { readings: Vec::new(), ..asked.clone() };
            all.push(Series { asked, measure: reading.measure, a, b, exact });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::{Measure, Verdict};
    use super::*;
    use ::measure::turns::Limits;

    struct Known {
        seconds: f64,
        runs: u32,
        noisy: bool,
    }

    impl WholeRuns for Known {
        fn is_noisy(&self) -> bool {
            self.noisy
        }

        fn run(&mut self) -> machine::Result<Vec<OperationRate>> {
            self.runs += 1;
            let noise = if self.noisy { 1.0 + 0.01 * f64::from(self.runs % 3) } else { 1.0 };
            let seconds = self.seconds * noise;
            let rate = |operation: &str, count: u64| OperationRate {
                operation: operation.into(),
                settings: String::new(),
                count,
                per_s: count as f64 / seconds,
                interval_95: None,
                latency_ns: None,
                cpu_ns: None,
            };
            Ok(vec![rate("transaction", 500), rate("create", 1000)])
        }
    }

    struct Clock(Nanos);

    impl Conduct for Clock {
        type Error = Error;

        fn now(&self) -> Nanos {
            self.0
        }

        fn on_block(&mut self, _question: &str, _block: usize, _passed_ns: Nanos) {
            self.0 += 1;
        }
    }

    fn compared(noisy: bool) -> Comparison {
        let arm = |seconds: f64| Box::new(Known { seconds, runs: 0, noisy }) as Box<dyn WholeRuns>;
        let turn = Turn {
            names: ["tuned not", "tuned"],
            limits: Limits {
                until: 0.02,
                budget_ns: 1000,
                max_blocks: 20,
                gain_wanted: None,
                noisy,
                seed: 3,
            },
            worth_percent: 2.0,
            rate: Measure::Operations,
            keys: &[],
            more: "--budget",
        };
        let program =
            Program { name: String::new(), version: String::new(), arguments: Vec::new() };
        let mut arms = [arm(181.0), arm(159.0)];
        Comparison::of_whole_runs(&mut arms, ("PostMark", turn), &mut Clock(0), program).unwrap()
    }

    #[test]
    fn the_answer_is_the_total_time() {
        for noisy in [true, false] {
            let comparison = compared(noisy);
            assert!(comparison.is_of_time());
            let time = comparison.of(Measure::Duration).next().unwrap();
            let expected = (159.0 / 181.0 - 1.0) * 100.0;
            assert!((time.change_percent - expected).abs() < 1.5, "{}", time.change_percent);
            assert_eq!(time.verdict, Verdict::Better);
            assert_eq!(comparison.of(Measure::Operations).count(), 2);
            if !noisy {
                assert!((time.change_percent - expected).abs() < 1e-9);
            }
        }
    }
}
