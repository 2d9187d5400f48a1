//! The results document.

use crate::answer::Answer;
use crate::clients::Clients;
use crate::figure::Figure;
use crate::finding::Finding;
use crate::interference::Interference;
use crate::ladder::Ladder;
use crate::latency_goal::LatencyGoal;
use crate::operation::OperationRate;
use crate::point::Point;
use crate::scaling::{OperationScaling, Scaling};
use crate::seconds::SecondRecord;
use machine::units::show_time;
use machine::{Machine, MachineFacts, MemoryUse, Nanos, TargetFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// Fields may be added within a version; changing or removing one requires a new version.
pub const SCHEMA: &str = "halfpower.results/1";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// Name and version of this schema: `halfpower.results/1`.
    pub schema: String,
    /// The program that wrote the document.
    pub program: Program,
    /// The command that wrote the document: `study`, `stack`, `sweep`, `run`, `postmark` or
    /// `metadata`.
    pub kind: Kind,
    pub target: TargetFacts,
    pub machine: MachineFacts,
    /// Start of the command, in seconds since 1970-01-01 UTC.
    pub began_unix_s: u64,
    pub elapsed_ns: u64,
    /// Time budget in nanoseconds; absent for a sweep.
    pub budget_ns: Option<u64>,
    /// Random seed.
    pub seed: u64,
    /// The points, measured or failed; experiments refer to them by index.
    pub points: Vec<Point>,
    /// Rates of operations on whole files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<OperationRate>,
    /// The best rates within a latency goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_goals: Vec<LatencyGoal>,
    /// Each second of the runs of `run --live`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seconds: Vec<SecondRecord>,
    /// Interference between the workloads, if they also ran concurrently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interference: Option<Interference>,
    /// The experiments of a study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Experiment>,
    /// The conclusions of a study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The layers from the program down, with advertised and achieved rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<Ladder>,
    /// The clients, if processes on several hosts measured together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Clients>,
    /// The gain of more clients, for each workload measured with several numbers of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<Scaling>,
    /// The gain of more clients for operations on files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operation_scaling: Vec<OperationScaling>,
    /// The user's interrupt ended the command early: the points are those measured until then, and
    /// a study has no answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// Warnings about the whole document.
    pub warnings: Vec<String>,
}

/// In calendar time and on the machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct Began {
    pub unix_s: u64,
    clock: Nanos,
}

impl Began {
    pub fn now<M: Machine>(machine: &M) -> Began {
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Began { unix_s, clock: machine.now() }
    }
}

impl Results {
    /// Without measurements; it ends now.
    pub fn new<M: Machine>(
        machine: &M,
        kind: Kind,
        program: Program,
        began: Began,
        target: TargetFacts,
        seed: u64,
    ) -> Results {
        Results {
            schema: SCHEMA.into(),
            program,
            kind,
            warnings: target.warnings.clone(),
            target,
            machine: machine.facts(),
            began_unix_s: began.unix_s,
            elapsed_ns: machine.now().saturating_sub(began.clock),
            budget_ns: None,
            seed,
            points: Vec::new(),
            rates: Vec::new(),
            latency_goals: Vec::new(),
            seconds: Vec::new(),
            interference: None,
            experiments: Vec::new(),
            answer: None,
            ladder: None,
            clients: None,
            scaling: Vec::new(),
            operation_scaling: Vec::new(),
            incomplete: false,
        }
    }

    /// Marks the user's interrupt after some of the `planned` points.
    pub fn interrupted(mut self, planned: Option<usize>) -> Results {
        let of = planned.map(|planned| format!(" of {planned}")).unwrap_or_default();
        self.incomplete = true;
        let after = show_time(self.elapsed_ns as f64);
        self.warnings.push(if self.rates.is_empty() {
            let measured = self.points.iter().filter(|point| point.numbers.is_some()).count();
            format!("interrupted after {after}: {measured}{of} points were measured")
        } else {
            format!("interrupted after {after}: the rates are those until then")
        });
        self
    }
}

impl Results {
    /// Restates sentences in the current units. Those without values stay.
    pub fn restate(&mut self) {
        let Some(answer) = &mut self.answer else { return };
        for limit in &mut answer.limits {
            if limit.cause.is_some() {
                *limit = limit.clone().with_sentences();
            }
        }
        for finding in &mut answer.findings {
            let points = finding.points.map(|index| self.points.get(index));
            if let [Some(before), Some(after)] = points
                && let Some(rates) = Finding::rates([before, after])
            {
                finding.evidence = rates.full;
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    pub name: String,
    pub version: String,
    pub arguments: Vec<String>,
}

/// The command that wrote a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// All experiments and their conclusions.
    Study,
    /// The layers under a target.
    Stack,
    Sweep,
    Run,
    /// Transactions on small files.
    Postmark,
    /// Operations on many files, one kind after the other.
    Metadata,
}

/// A question, the points that answer it, and the conclusion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// Name of the experiment: `memory`, `buffered`, `unbuffered`, `cost`, `depth`, `random`,
    /// `allocation`, `alignment`, `streams`, `clients`, `location`, `stripe`, `device_cache`,
    /// `long_writes`.
    pub id: String,
    pub title: String,
    pub question: String,
    /// The conclusion; for a skipped experiment, the reason.
    pub sentence: String,
    /// Why the experiment was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Parts of the grid that were left out, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    pub figures: Vec<Figure>,
    /// Rates of memory; in the first experiment only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<MemoryUse>,
}
