//! Rules that no finished document may contradict.

mod figures;
mod findings;
mod limits;
mod peaks;

pub use peaks::is_above;

use crate::finding::PeakDoubt;
use crate::{Answer, Point, Results};
use machine::TargetFacts;
use serde_json::Value;
use std::fmt;
use workload::OpKind;

/// Figures that differ by a smaller share are equal.
const ROUNDING: f64 = 1e-6;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident => $words:literal,)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Rule {
            $($(#[$doc])* $name,)+
        }

        impl Rule {
            pub const ALL: &'static [Rule] = &[$(Rule::$name),+];

            /// A clause of a sentence.
            pub fn words(self) -> &'static str {
                match self {
                    $(Rule::$name => $words,)+
                }
            }
        }
    };
}

rules! {
    OneValue => "one quantity has one value",
    PeakIsHighest => "the peak is the highest settled rate",
    PlainIsPart => "a plain program gets at most the peak",
    BelowCap => "a peak is within what each layer admits",
    CapIsLimit => "a rate at a known limit has this limit",
    TrialDecided => "a trial that allows both outcomes is undecided",
    LimitAgrees => "a limit agrees with its trials",
    FindingAgrees => "a finding agrees with the rates it compares",
    AdviceChanges => "an advice changes a setting and surely gains",
    OneHalfPower => "a half-power size has one value",
    OneModel => "a quantity has one model",
    ModelFits => "a model fits its points",
    PercentileIsSettled => "ten requests or more are above a percentile",
    VisitsAgree => "visits to one workload agree",
    LadderBelowCap => "a stage of the ladder achieves at most what it advertises",
    NoSharedStripe => "targets that share a device form no stripe",
    NotNegative => "no time, rate or count is negative",
    PointExists => "each figure refers to a point that exists",
}

#[derive(Debug, Clone, PartialEq)]
pub struct Contradiction {
    pub rule: Rule,
    pub what: String,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, but {}", self.rule.words(), self.what)
    }
}

pub fn check(results: &Results) -> Vec<Contradiction> {
    let mut found = Vec::new();
    if let Ok(value) = serde_json::to_value(results) {
        negative(&value, "", &mut found);
    }
    let Some(answer) = &results.answer else { return found };
    let (facts, points) = (&results.target, &results.points[..]);
    let mut checks = Checks { answer, points, facts, found };
    checks.peaks();
    checks.visits();
    checks.plain();
    checks.limits();
    checks.findings();
    checks.half_power(results);
    checks.models();
    checks.ladder(results);
    checks.indices(results);
    checks.found
}

fn negative(value: &Value, path: &str, found: &mut Vec<Contradiction>) {
    const ENDINGS: [&str; 7] =
        ["_ns", "_s", "_bytes", "_iops", "iops", "_interval_95", "_half_width"];
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                // A clock may be behind another one.
                let measured = name != "clock_offset_ns"
                    && (ENDINGS.iter().any(|ending| name.ends_with(ending))
                        || name.contains("_ns_per_")
                        || name == "interval_95"
                        || name == "repeats");
                let numbers = match value {
                    Value::Array(all) => all.iter().filter_map(Value::as_f64).collect(),
                    one => Vec::from_iter(one.as_f64()),
                };
                if let Some(number) = numbers.iter().find(|number| measured && **number < 0.0) {
                    let what = format!("{} is {number}", path.trim_start_matches('.'));
                    found.push(Contradiction { rule: Rule::NotNegative, what });
                }
                negative(value, &path, found);
            }
        }
        Value::Array(all) => {
            for (index, value) in all.iter().enumerate() {
                negative(value, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

struct Checks<'a> {
    answer: &'a Answer,
    points: &'a [Point],
    facts: &'a TargetFacts,
    found: Vec<Contradiction>,
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= a.abs().max(b.abs()) * ROUNDING
}

impl<'a> Checks<'a> {
    fn add(&mut self, rule: Rule, what: String) {
        self.found.push(Contradiction { rule, what });
    }

    fn rate(&self, point: usize) -> Option<f64> {
        self.points.get(point).and_then(Point::rate)
    }

    /// The rate that saturates the narrowest layer.
    fn admitted(&self, op: OpKind) -> Option<f64> {
        let rates = self
            .facts
            .layers
            .iter()
            .filter_map(|layer| layer.target_rate(op == OpKind::Write))
            .filter(|&rate| rate > 0.0);
        rates.min_by(f64::total_cmp)
    }

    fn is_beyond(&self, op: OpKind) -> bool {
        let doubted =
            self.answer.peak_doubts.iter().any(
                |doubt| matches!(doubt, PeakDoubt::AboveAdvertised { op: of, .. } if *of == op),
            );
        doubted || self.answer.peak(op).is_some_and(|peak| peak.burst.is_some())
    }

    fn is_rate(&mut self, name: &str, point: usize, rate: f64, interval: Option<[f64; 2]>) {
        let numbers = self.points.get(point).and_then(|point| point.numbers.as_ref());
        let Some(numbers) = numbers else {
            return self.add(
                Rule::OneValue,
                format!("{name} is that of points[{point}], which has no figures"),
            );
        };
        if !same(rate, numbers.throughput_bytes_per_s) {
            let of_point = numbers.throughput_bytes_per_s;
            self.add(
                Rule::OneValue,
                format!("{name} is {rate} bytes/s, and points[{point}] has {of_point}"),
            );
        }
        if interval.is_some_and(|ends| Some(ends) != numbers.interval_95) {
            let [of, is] = [numbers.interval_95, interval];
            self.add(
                Rule::OneValue,
                format!("the interval of {name} is {is:?}, and points[{point}] has {of:?}"),
            );
        }
    }

    fn is_peak(&mut self, op: OpKind, rate: Option<f64>, name: &str) {
        let peak = self.answer.peak(op).map(|peak| peak.throughput_bytes_per_s);
        if let Some((rate, peak)) = rate.zip(peak).filter(|&(rate, peak)| !same(rate, peak)) {
            self.add(Rule::OneValue, format!("{name} is {rate} bytes/s, and the peak is {peak}"));
        }
    }
}
