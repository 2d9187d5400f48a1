//! Thresholds that make a build fail.

use super::measure::Measure;
use super::{Comparison, Verdict};
use machine::units::show_change;
use std::str::FromStr;

/// Such as `slower:5%`.
#[derive(Debug, Clone, PartialEq)]
pub struct FailIf {
    measures: Vec<Measure>,
    percent: f64,
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Failed {
    pub sentence: String,
}

impl FromStr for FailIf {
    type Err = String;

    fn from_str(text: &str) -> Result<FailIf, String> {
        let wrong = |why: &str| {
            format!(
                "'{text}': {why}; write slower:5%, or latency, p50, p99, p99.9 or cpu in place of slower"
            )
        };
        let (name, limit) =
            text.split_once(':').ok_or_else(|| wrong("a name and a limit are wanted"))?;
        let measures = match name {
            "slower" => {
                vec![Measure::Duration, Measure::Iops, Measure::Throughput, Measure::Operations]
            }
            "latency" => vec![
                Measure::LatencyMean,
                Measure::LatencyP50,
                Measure::LatencyP99,
                Measure::LatencyP999,
            ],
            "p50" => vec![Measure::LatencyP50],
            "p99" => vec![Measure::LatencyP99],
            "p99.9" => vec![Measure::LatencyP999],
            "cpu" => vec![Measure::Cpu],
            _ => return Err(wrong("unknown measure")),
        };
        let number = limit.strip_suffix('%').unwrap_or(limit).trim();
        let percent: f64 = number.parse().map_err(|_| wrong("the limit is not a percentage"))?;
        if !(0.0..=1000.0).contains(&percent) {
            return Err(wrong("the limit must be 0 to 1000 %"));
        }
        Ok(FailIf { measures, percent, text: text.into() })
    }
}

impl FailIf {
    pub fn percent(&self) -> f64 {
        self.percent
    }

    /// What is significantly worse by at least the limit. A single value per side never fails: it
    /// may be chance.
    pub fn failed(&self, comparison: &Comparison) -> Vec<Failed> {
        let worse_by = |measure: Measure, change_percent: f64| {
            if measure.is_rate() { -change_percent } else { change_percent }
        };
        let meets = |measure: Measure, change: f64, verdict: Verdict| {
            self.measures.contains(&measure)
                && verdict == Verdict::Worse
                && worse_by(measure, change) >= self.percent
        };
        let say = |about: &str, measure: Measure, change: f64| Failed {
            sentence: format!(
                "--fail-if {}: {about}: {} {}",
                self.text,
                measure.heading(),
                show_change(change)
            ),
        };
        let mut failed: Vec<Failed> = comparison
            .differences
            .iter()
            .filter(|one| meets(one.measure, one.change_percent, one.verdict))
            .map(|one| say(&one.label, one.measure, one.change_percent))
            .collect();
        let means =
            comparison.summaries.iter().filter(|one| one.questions > 1 && one.kind.is_none());
        failed.extend(
            means
                .filter(|one| meets(one.measure, one.geometric_mean_percent, one.verdict))
                .map(|one| say("mean over all points", one.measure, one.geometric_mean_percent)),
        );
        failed
    }
}
