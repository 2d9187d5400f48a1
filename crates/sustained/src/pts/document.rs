//! The document of a test, from which a killed run continues.

use super::plan::{Cell, PtsPlan};
use crate::document::WearChange;
use crate::steady::SteadyCheck;
use machine::{Engine, MachineFacts, TargetFacts};
use results::Program;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const PTS_SCHEMA: &str = "halfpower.pts/1";

/// A test of a target to SNIA's specification, done or in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtsResult {
    /// Name and version of this schema: `halfpower.pts/1`.
    pub schema: String,
    /// The program that wrote the document.
    pub program: Program,
    pub conditions: Conditions,
    pub plan: PtsPlan,
    /// Every phase is done.
    pub complete: bool,
    /// Times that the run was interrupted and continued.
    pub interruptions: u32,
    pub written_bytes: u64,
    /// Time of all steps in seconds.
    pub took_s: f64,
    /// Wear of the drives, if they report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear: Option<WearChange>,
    /// The conclusions, the answer first.
    pub sentences: Vec<String>,
    pub warnings: Vec<String>,
    /// Tables of the phases with rounds.
    pub phases: Vec<PhaseResult>,
    /// The steps done, in order.
    pub steps: Vec<PtsStep>,
}

/// The conditions that the specification asks to report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    pub machine: MachineFacts,
    pub target: TargetFacts,
    pub engine: Engine,
    /// The data that were written; `random` is incompressible.
    pub data: String,
}

/// A measured step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtsStep {
    /// Index of the phase.
    pub phase: usize,
    /// Number of the round, from 0.
    pub round: u32,
    /// Index of the cell in its phase; for a preconditioning, index of its part.
    pub cell: usize,
    /// Start of the step, in seconds since the start of the run, without interruptions.
    pub from_s: f64,
    pub seconds: f64,
    pub requests: u64,
    pub bytes: u64,
    pub written_bytes: u64,
    pub mean_latency_ns: f64,
    pub p99_ns: u64,
    pub p99999_ns: u64,
    pub max_latency_ns: u64,
    /// Rates of equal parts of the step, for the cell that is tracked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<f64>,
    /// Latency percentiles in percent and nanoseconds, of a histogram step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<(f64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
}

impl PtsStep {
    pub fn iops(&self) -> f64 {
        self.requests as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }
}

/// The tables of a phase with rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseResult {
    /// Index of the phase.
    pub phase: usize,
    pub title: String,
    /// Number of whole rounds.
    pub rounds: u32,
    /// The tracked value in each round: requests per second, bytes per second or nanoseconds.
    pub tracked: Vec<f64>,
    /// The steady-state window: the last five rounds.
    pub steady: Option<SteadyCheck>,
    /// Means over the window, one for each cell.
    pub matrix: Vec<MatrixCell>,
}

/// Means of a cell over the steady-state window, or over all rounds if there are fewer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixCell {
    pub cell: Cell,
    pub iops: f64,
    pub bytes_per_s: f64,
    pub mean_latency_ns: f64,
    pub p99_ns: u64,
    pub p99999_ns: u64,
    pub max_latency_ns: u64,
}

pub fn pts_schema() -> String {
    let schema = schemars::schema_for!(PtsResult);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
