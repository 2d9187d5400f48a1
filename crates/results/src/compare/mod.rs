//! [`compare`] pairs the questions of two [`Side`]s; [`Comparison::in_turn`] takes arms that ran in
//! turn.

mod arms;
mod csv;
mod fail_if;
mod judge;
mod measure;
mod sentences;
mod side;
mod table;
mod whole_runs;

pub use arms::{Arm, Conduct, OnMachine, Turn, fingerprint};
pub use csv::comparison_csv;
pub use fail_if::{FailIf, Failed};
pub use measure::Measure;
pub use side::{Measurement, Reading, Side, asked};
pub use table::{Columns, Meaning, TableError, read_table};
pub use whole_runs::{WholeRuns, speed};

use crate::document::Program;
use crate::point::RunNumbers;
use judge::Judgement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

pub const COMPARE_SCHEMA: &str = "halfpower.compare/1";

/// By default, smaller changes are not worth acting on.
pub const WORTH_PERCENT: f64 = 2.0;

/// A comparison of two sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Name and version of this schema: `halfpower.compare/1`.
    pub schema: String,
    /// The program that made the comparison.
    pub program: Program,
    /// Name of side A, the baseline.
    pub a: String,
    /// Name of side B; changes are from A to B.
    pub b: String,
    pub method: Method,
    /// Changes smaller than this count as no difference, in percent.
    pub worth_percent: f64,
    /// One difference per question and measure that both sides have.
    pub differences: Vec<Difference>,
    /// Means over the questions by measure: over all, then by kind if there are several.
    pub summaries: Vec<Summary>,
    /// Questions that only A has.
    pub only_a: Vec<String>,
    /// Questions that only B has.
    pub only_b: Vec<String>,
    /// Questions that failed, with side and reason.
    pub failed: Vec<String>,
    pub sentences: Vec<String>,
    pub warnings: Vec<String>,
}

/// How two sides were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The sides were measured separately: Welch's test; the change includes any difference between
    /// the two times.
    Apart,
    /// The sides were measured in turn, in random blocks of four runs (ABBA or BAAB). The intervals
    /// are valid whenever the measurement stops.
    InTurn {
        /// Number of blocks of four runs.
        blocks: u32,
    },
}

/// The change of one measure of one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Identity of the question.
    pub question: String,
    /// The question in words, for people.
    pub label: String,
    /// Settings by name, for a table.
    pub keys: Vec<(String, String)>,
    /// Kind of the question, such as `random reads`.
    pub kind: String,
    pub measure: Measure,
    /// The value of A, in the measure's unit.
    pub a: f64,
    pub b: f64,
    /// Values of the runs of A; empty if unknown.
    pub runs_a: Vec<f64>,
    pub runs_b: Vec<f64>,
    /// Change from A to B in percent of A.
    pub change_percent: f64,
    /// The 95 % interval of the change; absent if no run gives one.
    pub interval_95_percent: Option<[f64; 2]>,
    /// The probability of a change this large by chance (p-value).
    pub p: Option<f64>,
    /// The p-value, corrected for the number of questions (Holm).
    pub p_holm: Option<f64>,
    /// The smallest change detectable with a power of 80 %.
    pub detectable_percent: Option<f64>,
    pub verdict: Verdict,
}

/// The verdict on a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// B is better.
    Better,
    /// B is worse.
    Worse,
    /// Not significant, or too small to matter.
    NoDifference,
    /// A single value per side gives no interval: the change may be chance.
    Untold,
    /// The rate of a side changed during the measurement, and one of its rates is within the range
    /// of the other side: that may explain the change.
    Changing,
}

/// The mean change over several questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    pub measure: Measure,
    /// Kind of the questions, such as `random reads`; absent for the mean of all.
    pub kind: Option<String>,
    pub questions: usize,
    /// Arithmetic mean change, as publications give it; sentences, figures and tables use the
    /// geometric mean.
    pub mean_percent: f64,
    /// Geometric mean of the ratios, as a change in percent.
    pub geometric_mean_percent: f64,
    /// The 95 % interval of the mean change; absent for a single question without one.
    pub interval_95_percent: Option<[f64; 2]>,
    pub interval_from: IntervalFrom,
    /// The p-value of the mean change, corrected for the number of kinds (Holm).
    pub p: Option<f64>,
    /// The smallest mean change detectable with a power of 80 %.
    pub detectable_percent: Option<f64>,
    /// Number of questions that are better in B.
    pub better: usize,
    /// Number of questions that are worse in B.
    pub worse: usize,
    /// Number of questions without a difference.
    pub no_difference: usize,
    pub verdict: Verdict,
}

/// Source of the interval of a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IntervalFrom {
    /// The spread over the runs: valid for exactly these questions.
    Runs,
    /// The spread over the questions, if each has one value per side: valid for similar questions.
    Questions,
}

struct Pair<'a> {
    asked: &'a Measurement,
    other: &'a Measurement,
}

/// The sides were measured separately.
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
    let mut reported = Vec::new();
    for Pair { asked, other } in pairs {
        for (side, name) in [(asked, &a.name), (other, &b.name)] {
            comparison.failed.extend(
                side.error.iter().map(|error| format!("{}: failed on {name}: {error}", side.label)),
            );
        }
        let changing = side::changing(asked, other);
        for (side, name) in [(asked, &a.name), (other, &b.name)] {
            let change = side
                .changed
                .iter()
                .map(|change| format!("{name}: {}: {}", side.label, change.warning()));
            comparison.warnings.extend(change);
        }
        for reading in &asked.readings {
            let Some(with) = other.readings.iter().find(|with| with.measure == reading.measure)
            else {
                continue;
            };
            reported.extend(Judgement::apart(asked, reading, with, changing));
        }
    }
    comparison.warnings.extend(a.warnings.iter().map(|warning| format!("{}: {warning}", a.name)));
    comparison.warnings.extend(b.warnings.iter().map(|warning| format!("{}: {warning}", b.name)));
    comparison.finish(reported)
}

pub struct InTurn<'a> {
    /// The baseline.
    pub a: &'a str,
    pub b: &'a str,
    /// Blocks of four runs.
    pub blocks: u32,
    /// Smaller changes count as no difference.
    pub worth_percent: f64,
    pub series: &'a [Series],
    /// With arm and reason.
    pub failed: Vec<String>,
    pub warnings: Vec<String>,
}

/// Runs of one measure of a question.
#[derive(Debug, Clone)]
pub struct Series {
    pub asked: Measurement,
    pub measure: Measure,
    /// Two runs of arm A in each block.
    pub a: Vec<[f64; 2]>,
    pub b: Vec<[f64; 2]>,
    /// Runs never differ (simulated machine).
    pub exact: bool,
}

/// The rate first.
pub const RUN_MEASURES: [Measure; 5] = [
    Measure::Throughput,
    Measure::LatencyP50,
    Measure::LatencyP99,
    Measure::LatencyP999,
    Measure::Cpu,
];

pub fn run_measures(sample: &::measure::Sample) -> [f64; RUN_MEASURES.len()] {
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
    /// log(B / A) by block, in which linear drift cancels out.
    pub fn logs(&self) -> Vec<f64> {
        let log = |pair: &[f64; 2]| (pair[0].ln() + pair[1].ln()) / 2.0;
        self.a.iter().zip(&self.b).map(|(a, b)| log(b) - log(a)).collect()
    }
}

impl Comparison {
    pub fn in_turn(turns: InTurn<'_>, program: Program) -> Comparison {
        let method = Method::InTurn { blocks: turns.blocks };
        let mut comparison =
            Comparison::empty(turns.a, turns.b, program, method, turns.worth_percent);
        comparison.failed = turns.failed;
        comparison.warnings = turns.warnings;
        comparison.finish(turns.series.iter().filter_map(Judgement::in_turn).collect())
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

    fn finish(mut self, reported: Vec<Judgement>) -> Comparison {
        (self.differences, self.summaries) = judge::judge(reported, self.worth_percent);
        self.sentences = sentences::sentences(&self);
        self
    }

    /// A total time is compared; rates are its parts.
    pub fn is_of_time(&self) -> bool {
        self.of(Measure::Duration).next().is_some()
    }

    /// The rate that most questions have, otherwise the first measure.
    pub fn main_measure(&self) -> Option<Measure> {
        let count = |measure: &Measure| self.of(*measure).count();
        let rates =
            Measure::ALL.into_iter().filter(|measure| measure.is_rate() && count(measure) > 0);
        // The first one if several tie.
        let max = rates.rev().max_by_key(count);
        max.or_else(|| Measure::ALL.into_iter().find(|measure| count(measure) > 0))
    }

    pub fn of(&self, measure: Measure) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(move |one| one.measure == measure)
    }

    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// A study may ask the same question twice.
fn numbered(asked: &[Measurement]) -> Vec<(&str, usize)> {
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

/// As in `schema/`.
pub fn comparison_schema() -> String {
    let schema = schemars::schema_for!(Comparison);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests;
