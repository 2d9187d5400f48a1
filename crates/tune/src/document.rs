//! The document: what was planned, what was tried, and what is worth keeping.

use crate::plan::Trial;
use machine::Alternative;
use results::Program;
use results::compare::{Difference, Measure, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the schema.
pub const TUNE_SCHEMA: &str = "halfpower.tune/1";

/// A tuning: a plan, and with `--yes` what it came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tuning {
    /// Name and version of this schema: `halfpower.tune/1`.
    pub schema: String,
    /// What made it.
    pub program: Program,
    /// What was measured.
    pub target: String,
    /// The workloads, as options of `halfpower run`.
    pub workloads: Vec<String>,
    /// What is tried, in this order.
    pub plan: Vec<Step>,
    /// What is not tried, and why.
    pub left_out: Vec<LeftOut>,
    /// Time for all of it.
    pub budget_ns: u64,
    /// The least time that it takes; absent where runs end after an amount of data.
    pub least_ns: Option<u64>,
    /// A question is decided where no change larger than this can be there.
    pub until_percent: f64,
    /// Changes smaller than this count as none.
    pub worth_percent: f64,
    /// The time that it took; absent where it was planned alone.
    pub took_ns: Option<u64>,
    /// What was tried; empty where it was planned alone.
    pub tried: Vec<Tried>,
    /// Everything that helped, together, once more against the start.
    pub combination: Option<Tried>,
    /// The lines that keep what the combination shows to be worth it.
    pub keep: Vec<KeepLine>,
    /// Commands that measure the change again.
    pub prove: Vec<String>,
    /// What it says.
    pub sentences: Vec<String>,
    /// Reasons to doubt it, and settings that are not as they were.
    pub warnings: Vec<String>,
}

/// One value of one knob that is to be tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The knob.
    pub knob: String,
    /// What it belongs to.
    pub of: String,
    /// What it does.
    pub about: String,
    /// Its value now.
    pub from: String,
    /// The value that is tried.
    pub to: String,
    /// How data can be lost with it.
    pub risk: Option<String>,
    /// The shell command that sets it.
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
    /// The knob.
    pub knob: String,
    /// What it belongs to.
    pub of: String,
    /// Why not.
    pub why: String,
}

/// A change that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// The knob; `combination` of several.
    pub knob: String,
    /// What it belongs to.
    pub of: String,
    /// Its value before.
    pub from: String,
    /// The value that was tried.
    pub to: String,
    /// What may be said of it.
    pub outcome: Outcome,
    /// Blocks of four runs in turn, of the question with most.
    pub blocks: u32,
    /// The changes of rate, latency and processor time for each workload.
    pub differences: Vec<Difference>,
    /// The workloads whose requests have another size with it: a latency or a processor time is that of such a request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resized: Vec<Resized>,
    /// Why it could not be tried.
    pub failed: Option<String>,
    /// What keeps it.
    pub keep: Vec<KeepLine>,
}

/// A workload whose requests have another size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resized {
    /// The workload, as its differences name it.
    pub question: String,
    /// Bytes of a request before.
    pub from_bytes: u32,
    /// Bytes of a request with the change.
    pub to_bytes: u32,
}

impl Tried {
    /// The change of processor time for each byte in percent, from that for each request.
    pub fn cpu_per_byte_percent(&self, cpu: &Difference) -> f64 {
        let resized = self.resized.iter().find(|one| one.question == cpu.question);
        let ratio = resized.map_or(1.0, |one| f64::from(one.from_bytes) / f64::from(one.to_bytes));
        ((1.0 + cpu.change_percent / 100.0) * ratio - 1.0) * 100.0
    }

    /// The changes of the rate.
    pub fn rates(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|one| one.measure == Measure::Throughput)
    }

    /// The mean change of the rate over the workloads, as a logarithm.
    pub(crate) fn gain(&self) -> f64 {
        let logs: Vec<f64> = self.rates().map(|one| (one.change_percent / 100.0).ln_1p()).collect();
        if logs.is_empty() { 0.0 } else { logs.iter().sum::<f64>() / logs.len() as f64 }
    }

    /// What may be said of the changes of the rate. `open`: some question was not decided when the time was up.
    pub(crate) fn judge(differences: &[Difference], open: bool, until_percent: f64) -> Outcome {
        let of_rate = || differences.iter().filter(|one| one.measure == Measure::Throughput);
        let rates: Vec<Verdict> = of_rate().map(|one| one.verdict).collect();
        let wide =
            |one: &Difference| one.interval_95_percent.is_some_and(|[low, high]| (high - low) / 2.0 > until_percent);
        match (rates.contains(&Verdict::Better), rates.contains(&Verdict::Worse)) {
            _ if rates.is_empty() => Outcome::Failed,
            (true, false) => Outcome::Helps,
            (false, true) => Outcome::Worse,
            (true, true) => Outcome::Mixed,
            (false, false) if open || rates.iter().any(|one| matches!(one, Verdict::Untold | Verdict::Changing)) => {
                Outcome::Undecided
            }
            (false, false) if of_rate().any(wide) => Outcome::NoGain,
            (false, false) => Outcome::NoDifference,
        }
    }
}

/// What may be said of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Some workload is faster, none slower.
    Helps,
    /// No workload changes by as much as matters.
    NoDifference,
    /// No workload gains as much as matters; whether one loses was not asked any longer.
    NoGain,
    /// Some workload is slower, none faster.
    Worse,
    /// One is faster, another slower.
    Mixed,
    /// The time was up before it could be told.
    Undecided,
    /// It could not be tried.
    Failed,
}

impl Outcome {
    /// In a word or two.
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

/// A line that keeps a setting after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeepLine {
    /// The knob.
    pub knob: String,
    /// Where the line goes.
    pub place: String,
    /// The line.
    pub line: String,
}

impl KeepLine {
    pub(crate) fn of(knob: &str, to: &Alternative) -> Vec<KeepLine> {
        let line =
            |keep: &machine::Keep| KeepLine { knob: knob.into(), place: keep.place.clone(), line: keep.line.clone() };
        to.keep.iter().map(line).collect()
    }
}

impl Tuning {
    /// The document as a JSON text.
    ///
    /// # Errors
    /// Something in it cannot be JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// The JSON Schema of a tuning, as it stands in `schema/`.
pub fn tuning_schema() -> String {
    let schema = schemars::schema_for!(Tuning);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_was_dropped_early_is_no_gain_and_not_no_difference() {
        let judge = |interval, open| Tried::judge(&[rate(interval, Verdict::NoDifference)], open, 5.0);
        assert_eq!(judge([-2.0, 3.0], false), Outcome::NoDifference);
        assert_eq!(judge([-30.0, 1.0], false), Outcome::NoGain);
        assert_eq!(judge([-30.0, 20.0], true), Outcome::Undecided);
        let helps = [rate([4.0, 9.0], Verdict::Better), rate([-30.0, 1.0], Verdict::NoDifference)];
        assert_eq!(Tried::judge(&helps, false, 5.0), Outcome::Helps);
    }

    #[test]
    fn processor_time_of_larger_requests_is_told_for_each_byte() {
        let cpu = Difference { measure: Measure::Cpu, ..rate([100.0, 100.0], Verdict::Worse) };
        let resized = Resized { question: "--op read".into(), from_bytes: 64 << 10, to_bytes: 256 << 10 };
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
        assert_eq!(tried.cpu_per_byte_percent(&cpu), -50.0, "twice the time for four times the bytes");
        tried.resized.clear();
        assert_eq!(tried.cpu_per_byte_percent(&cpu), 100.0);
    }
}
