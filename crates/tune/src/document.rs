//! The plan, the trials, and the settings worth keeping.

use crate::plan::Trial;
use machine::Alternative;
use results::Program;
use results::compare::{Difference, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const TUNE_SCHEMA: &str = "halfpower.tune/1";

/// A plan for tuning a target and, with `--yes`, the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tuning {
    /// Name and version of this schema: `halfpower.tune/1`.
    pub schema: String,
    /// The program that wrote the document.
    pub program: Program,
    pub target: String,
    /// The workloads, as options of `halfpower run`.
    pub workloads: Vec<String>,
    /// The trials, in order.
    pub plan: Vec<Step>,
    /// Values that are not tried, and why.
    pub left_out: Vec<LeftOut>,
    /// Time budget of the whole tuning.
    pub budget_ns: u64,
    /// Least time of the trials; absent if runs end after an amount of data, and for a whole
    /// benchmark.
    #[serde(rename = "least_ns")]
    pub min_ns: Option<u64>,
    /// A question is decided once any change larger than this is ruled out, in percent.
    pub until_percent: f64,
    /// Changes smaller than this count as no difference, in percent.
    pub worth_percent: f64,
    /// Time that the trials took; absent from a dry run.
    pub took_ns: Option<u64>,
    /// Results of the trials; empty in a dry run.
    pub tried: Vec<Tried>,
    /// All improvements together, measured again against the start.
    pub combination: Option<Tried>,
    /// Lines that make the proven improvements permanent.
    pub keep: Vec<KeepLine>,
    /// Commands that repeat the measurement.
    pub prove: Vec<String>,
    pub sentences: Vec<String>,
    /// Caveats, and settings that could not be restored.
    pub warnings: Vec<String>,
}

/// One value of one knob to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    pub knob: String,
    /// The component that the knob configures.
    pub of: String,
    pub about: String,
    pub from: String,
    pub to: String,
    /// How this value can lose data.
    pub risk: Option<String>,
    /// The shell command that sets the value.
    pub command: Option<String>,
}

impl Step {
    pub(crate) fn of(trial: &Trial) -> Step {
        Step {
            knob: trial.knob.clone(),
            of: trial.of.clone(),
            about: trial.about.clone(),
            from: trial.from.clone(),
            to: trial.to.value.clone(),
            risk: trial.to.risk.clone(),
            command: trial.to.command.clone(),
        }
    }
}

/// A knob, or a value of it, that is not tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    pub knob: String,
    /// The component that the knob configures.
    pub of: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// Name of the knob; `combination` for several.
    pub knob: String,
    /// The component that the knob configures.
    pub of: String,
    pub from: String,
    pub to: String,
    pub outcome: Outcome,
    /// Number of blocks of four interleaved runs, of the question with the most.
    pub blocks: u32,
    /// Changes in rate, latency and processor time for each workload.
    pub differences: Vec<Difference>,
    /// Workloads whose request size changes: latency and processor time are per request of the new
    /// size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resized: Vec<Resized>,
    /// Why the value could not be tried.
    pub failed: Option<String>,
    /// Lines that make the value permanent.
    pub keep: Vec<KeepLine>,
}

/// A workload whose request size changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resized {
    /// The question, as named in the trial's differences.
    pub question: String,
    pub from_bytes: u32,
    pub to_bytes: u32,
}

impl Tried {
    /// From a change per request to one per byte, in percent.
    pub fn cpu_per_byte_percent(&self, cpu: &Difference) -> f64 {
        let resized = self.resized.iter().find(|one| one.question == cpu.question);
        let ratio = resized.map_or(1.0, |one| f64::from(one.from_bytes) / f64::from(one.to_bytes));
        ((1.0 + cpu.change_percent / 100.0) * ratio - 1.0) * 100.0
    }

    pub fn rates(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|one| one.measure.is_rate())
    }

    /// The mean over the workloads, as a logarithm.
    pub(crate) fn gain(&self) -> f64 {
        let logs: Vec<f64> = self.rates().map(|one| (one.change_percent / 100.0).ln_1p()).collect();
        if logs.is_empty() { 0.0 } else { logs.iter().sum::<f64>() / logs.len() as f64 }
    }

    /// `open`: the time ended before some question was decided.
    pub(crate) fn judge(differences: &[Difference], open: bool, until_percent: f64) -> Outcome {
        let of_rate = || differences.iter().filter(|one| one.measure.is_rate());
        let rates: Vec<Verdict> = of_rate().map(|one| one.verdict).collect();
        let wide = |one: &Difference| {
            one.interval_95_percent.is_some_and(|[low, high]| (high - low) / 2.0 > until_percent)
        };
        match (rates.contains(&Verdict::Better), rates.contains(&Verdict::Worse)) {
            _ if rates.is_empty() => Outcome::Failed,
            (true, false) => Outcome::Helps,
            (false, true) => Outcome::Worse,
            (true, true) => Outcome::Mixed,
            (false, false)
                if open
                    || rates
                        .iter()
                        .any(|one| matches!(one, Verdict::Untold | Verdict::Changing)) =>
            {
                Outcome::Undecided
            }
            (false, false) if of_rate().any(wide) => Outcome::NoGain,
            (false, false) => Outcome::NoDifference,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Some workload is faster and none slower.
    Helps,
    /// No workload differs by enough to matter.
    NoDifference,
    /// No workload gains; losses were not measured further.
    NoGain,
    /// Some workload is slower and none faster.
    Worse,
    /// One workload is faster, another slower.
    Mixed,
    /// The time ran out before the trial was decided.
    Undecided,
    Failed,
}

impl Outcome {
    /// For users.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Helps => "faster",
            Outcome::NoDifference => "no difference",
            Outcome::NoGain => "no gain",
            Outcome::Worse => "slower",
            Outcome::Mixed => "faster and slower",
            Outcome::Undecided => "undecided",
            Outcome::Failed => "not possible",
        }
    }
}

/// A line that keeps a setting across restarts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeepLine {
    pub knob: String,
    /// The file or tool that the line is for.
    pub place: String,
    pub line: String,
}

impl KeepLine {
    pub(crate) fn of(knob: &str, to: &Alternative) -> Vec<KeepLine> {
        let line = |keep: &machine::Keep| KeepLine {
            knob: knob.into(),
            place: keep.place.clone(),
            line: keep.line.clone(),
        };
        to.keep.iter().map(line).collect()
    }
}

impl Tuning {
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// As in `schema/`.
pub fn tuning_schema() -> String {
    let schema = schemars::schema_for!(Tuning);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::compare::Measure;

    fn rate(interval_95_percent: [f64; 2], verdict: Verdict) -> Difference {
        let change_percent = f64::midpoint(interval_95_percent[0], interval_95_percent[1]);
        Difference {
            question: "--op read".into(),
            label: String::new(),
            keys: Vec::new(),
            kind: String::new(),
            measure: Measure::Throughput,
            a: 1.0,
            b: 1.0,
            runs_a: Vec::new(),
            runs_b: Vec::new(),
            change_percent,
            interval_95_percent: Some(interval_95_percent),
            p: None,
            p_holm: None,
            detectable_percent: None,
            verdict,
        }
    }

    #[test]
    fn a_value_dropped_early_counts_as_no_gain() {
        let judge =
            |interval, open| Tried::judge(&[rate(interval, Verdict::NoDifference)], open, 5.0);
        assert_eq!(judge([-2.0, 3.0], false), Outcome::NoDifference);
        assert_eq!(judge([-30.0, 1.0], false), Outcome::NoGain);
        assert_eq!(judge([-30.0, 20.0], true), Outcome::Undecided);
        let helps = [rate([4.0, 9.0], Verdict::Better), rate([-30.0, 1.0], Verdict::NoDifference)];
        assert_eq!(Tried::judge(&helps, false, 5.0), Outcome::Helps);
    }

    #[test]
    fn cpu_time_of_resized_requests_is_compared_per_byte() {
        let cpu = Difference { measure: Measure::Cpu, ..rate([100.0, 100.0], Verdict::Worse) };
        let resized =
            Resized { question: "--op read".into(), from_bytes: 64 << 10, to_bytes: 256 << 10 };
        let mut tried = Tried {
            knob: "request".into(),
            of: String::new(),
            from: "64k".into(),
            to: "256k".into(),
            outcome: Outcome::Helps,
            blocks: 5,
            differences: vec![cpu.clone()],
            resized: vec![resized],
            failed: None,
            keep: Vec::new(),
        };
        assert_eq!(
            tried.cpu_per_byte_percent(&cpu),
            -50.0,
            "twice the time for four times the bytes"
        );
        tried.resized.clear();
        assert_eq!(tried.cpu_per_byte_percent(&cpu), 100.0);
    }
}
