//! What a study, a sweep or a run leaves behind: one document, one schema, one version.

use crate::answer::Answer;
use crate::figure::Figure;
use crate::interference::Interference;
use crate::ladder::Ladder;
use crate::latency_goal::LatencyGoal;
use crate::operation::OperationRate;
use crate::point::Point;
use machine::{Machine, MachineFacts, MemoryUse, Nanos, TargetFacts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// Name and version of the document's schema. A field may be added within a version; a changed or removed one is a new version.
pub const SCHEMA: &str = "halfpower.results/1";

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// Name and version of this schema: `halfpower.results/1`.
    pub schema: String,
    /// What made it.
    pub program: Program,
    /// `study`, `stack`, `sweep`, `run`, `postmark` or `metadata`.
    pub kind: Kind,
    /// What was measured.
    pub target: TargetFacts,
    /// On which machine.
    pub machine: MachineFacts,
    /// Seconds since 1970-01-01 UTC when it began.
    pub began_unix_s: u64,
    /// How long it took.
    pub elapsed_ns: u64,
    /// Time that it was given; absent for a sweep.
    pub budget_ns: Option<u64>,
    /// The seed of everything random.
    pub seed: u64,
    /// Every point measured, or failed; experiments refer to them by their place here.
    pub points: Vec<Point>,
    /// Rates of operations on whole files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<OperationRate>,
    /// The best rates within a latency goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_goals: Vec<LatencyGoal>,
    /// What the points' workloads did to each other, where they ran at once, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interference: Option<Interference>,
    /// The experiments of a study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Experiment>,
    /// The answer of a study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The stages from the program down, advertised over achieved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<Ladder>,
    /// Reasons to doubt all of it.
    pub warnings: Vec<String>,
}

/// When work began: on the calendar and on the machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct Began {
    /// Seconds since 1970-01-01 UTC.
    pub unix_s: u64,
    clock: Nanos,
}

impl Began {
    /// Now.
    pub fn now<M: Machine>(machine: &M) -> Began {
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Began { unix_s, clock: machine.now() }
    }
}

impl Results {
    /// A document of work that ends now, still without what was measured; its warnings are the target's.
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
            interference: None,
            experiments: Vec::new(),
            answer: None,
            ladder: None,
        }
    }
}

/// The program that made a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// `halfpower`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// Which command made a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// All experiments and an answer.
    Study,
    /// The layers under a target, advertised over achieved.
    Stack,
    /// A grid of workloads.
    Sweep,
    /// One workload.
    Run,
    /// Runs of the PostMark workload: small files in transactions.
    Postmark,
    /// Operations on many files, one kind after the other.
    Metadata,
}

/// One experiment: a question, the points that answer it, and the sentence that they support.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// `memory`, `buffered`, `unbuffered`, `cost`, `depth`, `random`, `allocation`, `alignment`, `streams`, `location`, `stripe`, `device_cache`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it asks.
    pub question: String,
    /// What its numbers say; for an experiment that was skipped, the reason.
    pub sentence: String,
    /// Why it was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// What was left out of its grid, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// How it is drawn, one or more.
    pub figures: Vec<Figure>,
    /// Memory rates, of the first experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<MemoryUse>,
}
