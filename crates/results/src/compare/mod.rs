//! Did it help: two results beside one another, question by question.
//!
//! A [`Side`] is what one result says, from whatever document it was read: questions with readings. [`compare`] pairs the questions of two
//! sides; [`Comparison::in_turn`] takes what two arms said that were run in turn. Both give a [`Comparison`]: changes with intervals, what can be said of
//! each after having looked at all of them, means over many, and sentences.

mod arms;
mod csv;
mod fail_if;
mod judge;
mod measure;
mod sentences;
mod side;
mod table;

pub use arms::{Arm, Conduct, OnMachine, Turn, fingerprint};
pub use csv::comparison_csv;
pub use fail_if::{FailIf, Failed};
pub use measure::Measure;
pub use side::{Asked, Reading, Side, asked};
pub use table::{Columns, TableError, read_table};

use crate::document::Program;
use crate::point::RunNumbers;
use judge::Told;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Name and version of the schema of a comparison.
pub const COMPARE_SCHEMA: &str = "halfpower.compare/1";

/// A change below this share is no difference, however sure it is: nobody changes a setting for it. In percent.
pub const WORTH_PERCENT: f64 = 2.0;

/// Two sides compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Name and version of this schema: `halfpower.compare/1`.
    pub schema: String,
    /// What made it.
    pub program: Program,
    /// What is compared with.
    pub a: String,
    /// What is compared: a change is from `a` to `b`.
    pub b: String,
    /// How the two were measured.
    pub method: Method,
    /// Changes smaller than this count as none.
    pub worth_percent: f64,
    /// A change for each question and measure that both sides have.
    pub differences: Vec<Difference>,
    /// Means over the questions, of each measure: of all, then of each kind where there are several.
    pub summaries: Vec<Summary>,
    /// Questions that only A has.
    pub only_a: Vec<String>,
    /// Questions that only B has.
    pub only_b: Vec<String>,
    /// Questions that failed, on which side and why.
    pub failed: Vec<String>,
    /// What it says.
    pub sentences: Vec<String>,
    /// Reasons to doubt it.
    pub warnings: Vec<String>,
}

/// How two sides were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Each by itself, at its own time. Welch's test; what differed between the two times is in the change.
    Apart,
    /// In turn, in random blocks of four runs (ABBA or BAAB); intervals hold whenever the measurement stops.
    InTurn {
        /// Blocks of four runs.
        blocks: u32,
    },
}

/// The change of one measure of one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The question, by its identity.
    pub question: String,
    /// The question for people.
    pub label: String,
    /// Its settings by name, for a table.
    pub keys: Vec<(String, String)>,
    /// Its kind: `random reads`.
    pub kind: String,
    /// What is compared.
    pub measure: Measure,
    /// The value of A, in the measure's unit.
    pub a: f64,
    /// The value of B.
    pub b: f64,
    /// Each run of A; empty where they are not known.
    pub runs_a: Vec<f64>,
    /// Each run of B.
    pub runs_b: Vec<f64>,
    /// From A to B, in percent of A.
    pub change_percent: f64,
    /// The 95 % interval of the change; absent where no run tells one.
    pub interval_95_percent: Option<[f64; 2]>,
    /// The probability of a change this large by chance.
    pub p: Option<f64>,
    /// The same after having looked at every question (Holm).
    pub p_holm: Option<f64>,
    /// The smallest change that would have been seen 4 times in 5.
    pub detectable_percent: Option<f64>,
    /// What may be said.
    pub verdict: Verdict,
}

/// What may be said of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// B is better.
    Better,
    /// B is worse.
    Worse,
    /// None was seen, or one that is too small to matter.
    NoDifference,
    /// One value a side tells no interval: the change may be chance.
    Untold,
    /// The rate of a side changed while it was measured, and one of its rates is within what the other side had: the change may be that.
    Changing,
}

/// The mean change over several questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// What is compared.
    pub measure: Measure,
    /// Of one kind of question, `random reads`; of all where absent.
    pub kind: Option<String>,
    /// Questions in it.
    pub questions: usize,
    /// Arithmetic mean of the changes in percent.
    pub mean_percent: f64,
    /// Geometric mean of the ratios, as a change in percent: the interval is about it.
    pub geometric_mean_percent: f64,
    /// Its 95 % interval; absent for a single question without one.
    pub interval_95_percent: Option<[f64; 2]>,
    /// What the interval is made of.
    pub interval_from: IntervalFrom,
    /// The probability of such a mean by chance, after having looked at each kind of this measure (Holm).
    pub p: Option<f64>,
    /// The smallest mean change that would have been seen 4 times in 5.
    pub detectable_percent: Option<f64>,
    /// Questions in which B is better.
    pub better: usize,
    /// In which it is worse.
    pub worse: usize,
    /// In which there is no difference.
    pub no_difference: usize,
    /// What may be said of the mean.
    pub verdict: Verdict,
}

/// What the interval of a mean is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IntervalFrom {
    /// The intervals of the changes: it is about these very questions.
    Runs,
    /// The spread over the questions, where each has one value a side: it is about questions like these.
    Questions,
}

/// Both sides of one question.
struct Pair<'a> {
    asked: &'a Asked,
    other: &'a Asked,
}

/// Two sides that were measured apart.
pub fn compare(a: &Side, b: &Side, program: Program, worth_percent: f64) -> Comparison {
    let mut places: HashMap<(&str, usize), usize> = HashMap::new();
    for (place, key) in numbered(&b.asked).into_iter().enumerate() {
        places.insert(key, place);
    }
    let mut comparison = Comparison::empty(&a.name, &b.name, program, Method::Apart, worth_percent);
    let mut pairs = Vec::new();
    for (asked, key) in a.asked.iter().zip(numbered(&a.asked)) {
        match places.remove(&key) {
            Some(place) => pairs.push(Pair { asked, other: &b.asked[place] }),
            None => comparison.only_a.push(asked.label.clone()),
        }
    }
    let mut rest: Vec<usize> = places.into_values().collect();
    rest.sort_unstable();
    comparison.only_b = rest.into_iter().map(|place| b.asked[place].label.clone()).collect();
    let mut told = Vec::new();
    for Pair { asked, other } in pairs {
        for (side, name) in [(asked, &a.name), (other, &b.name)] {
            comparison
                .failed
                .extend(side.error.iter().map(|error| format!("{}: failed on {name}: {error}", side.label)));
        }
        let changing = side::changing(asked, other);
        for (side, name) in [(asked, &a.name), (other, &b.name)] {
            let change = side.changed.iter().map(|change| format!("{name}: {}: {}", side.label, change.said()));
            comparison.warnings.extend(change);
        }
        for reading in &asked.readings {
            let Some(with) = other.readings.iter().find(|with| with.measure == reading.measure) else { continue };
            told.extend(Told::apart(asked, reading, with, changing));
        }
    }
    comparison.warnings.extend(a.warnings.iter().map(|warning| format!("{}: {warning}", a.name)));
    comparison.warnings.extend(b.warnings.iter().map(|warning| format!("{}: {warning}", b.name)));
    comparison.finish(told)
}

/// Two arms that were measured in turn.
pub struct InTurn<'a> {
    /// What is compared with.
    pub a: &'a str,
    /// What is compared.
    pub b: &'a str,
    /// Blocks of four runs that were made.
    pub blocks: u32,
    /// Changes that count as none, in percent.
    pub worth_percent: f64,
    /// What each question and measure gave.
    pub series: &'a [Series],
    /// Questions that failed, on which arm and why.
    pub failed: Vec<String>,
    /// Reasons to doubt it.
    pub warnings: Vec<String>,
}

/// One measure of one question in blocks: two runs of each arm.
#[derive(Debug, Clone)]
pub struct Series {
    /// The question.
    pub asked: Asked,
    /// What is compared.
    pub measure: Measure,
    /// The two runs of A in each block.
    pub a: Vec<[f64; 2]>,
    /// The two runs of B in each block.
    pub b: Vec<[f64; 2]>,
    /// Runs of the same question do not differ: of a simulated machine.
    pub exact: bool,
}

/// What is compared of each run in turn, the rate first.
pub const OF_A_RUN: [Measure; 5] =
    [Measure::Throughput, Measure::LatencyP50, Measure::LatencyP99, Measure::LatencyP999, Measure::Cpu];

/// A run's value of each of [`OF_A_RUN`].
pub fn of_a_run(sample: &::measure::Sample) -> [f64; OF_A_RUN.len()] {
    let run = RunNumbers::of(sample);
    [
        sample.iops() * sample.bytes as f64 / sample.requests.max(1) as f64,
        run.latency_p50_ns as f64,
        run.latency_p99_ns as f64,
        run.latency_p999_ns as f64,
        run.cpu_ns_per_request,
    ]
}

impl Series {
    /// The logarithm of the ratio of B to A in each block; a straight drift through a block cancels out of it.
    pub fn logs(&self) -> Vec<f64> {
        let log = |pair: &[f64; 2]| (pair[0].ln() + pair[1].ln()) / 2.0;
        self.a.iter().zip(&self.b).map(|(a, b)| log(b) - log(a)).collect()
    }
}

impl Comparison {
    /// What two arms said that were run in turn.
    pub fn in_turn(turns: InTurn<'_>, program: Program) -> Comparison {
        let method = Method::InTurn { blocks: turns.blocks };
        let mut comparison = Comparison::empty(turns.a, turns.b, program, method, turns.worth_percent);
        comparison.failed = turns.failed;
        comparison.warnings = turns.warnings;
        comparison.finish(turns.series.iter().filter_map(Told::in_turn).collect())
    }

    fn empty(a: &str, b: &str, program: Program, method: Method, worth_percent: f64) -> Comparison {
        Comparison {
            schema: COMPARE_SCHEMA.into(),
            program,
            a: a.into(),
            b: b.into(),
            method,
            worth_percent,
            differences: Vec::new(),
            summaries: Vec::new(),
            only_a: Vec::new(),
            only_b: Vec::new(),
            failed: Vec::new(),
            sentences: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn finish(mut self, told: Vec<Told>) -> Comparison {
        (self.differences, self.summaries) = judge::judge(told, self.worth_percent);
        self.sentences = sentences::sentences(&self);
        self
    }

    /// The measure that a table shows: the rate that most questions have, else the first measure there is.
    pub fn main_measure(&self) -> Option<Measure> {
        let count = |measure: &Measure| self.of(*measure).count();
        let rates = Measure::ALL.into_iter().filter(|measure| measure.is_rate() && count(measure) > 0);
        // Of several with as many the first.
        let most = rates.rev().max_by_key(count);
        most.or_else(|| Measure::ALL.into_iter().find(|measure| count(measure) > 0))
    }

    /// The changes of one measure.
    pub fn of(&self, measure: Measure) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(move |one| one.measure == measure)
    }

    /// The comparison as a JSON text.
    ///
    /// # Errors
    /// Something in it cannot be JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// Each question with its number among those of the same text: a study may ask the same twice.
fn numbered(asked: &[Asked]) -> Vec<(&str, usize)> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    asked
        .iter()
        .map(|one| {
            let count = seen.entry(&one.question).or_default();
            *count += 1;
            (one.question.as_str(), *count)
        })
        .collect()
}

/// The JSON Schema of a comparison, as it stands in `schema/`.
pub fn comparison_schema() -> String {
    let schema = schemars::schema_for!(Comparison);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests;
