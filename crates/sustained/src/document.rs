//! The document of a sustained run.

use crate::level::Level;
use crate::reserve::Reserve;
use crate::series::SeriesPoint;
use crate::steady::SteadyCheck;
use machine::{Engine, TargetFacts, Wear};
use results::Program;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::Pattern;

pub const SUSTAINED_SCHEMA: &str = "halfpower.sustained/1";

/// The behaviour of a target after its caches and its credit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SustainedResult {
    /// Name and version of this schema: `halfpower.sustained/1`.
    pub schema: String,
    /// The program that wrote the document.
    pub program: Program,
    pub target: TargetFacts,
    pub settings: SustainSettings,
    /// The conclusions, the answer first.
    pub sentences: Vec<String>,
    /// Reasons not to trust the result.
    pub warnings: Vec<String>,
    /// Stretches with a rate of their own, in order.
    pub levels: Vec<Level>,
    /// The store behind the fast beginning; absent if the rate did not fall.
    pub reserve: Option<Reserve>,
    /// The store whose end is a second fall, if there are two in a row: a memory in front of a
    /// drive's write cache, or a credit in requests and one in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_reserve: Option<Reserve>,
    /// Recoveries after rests.
    pub recoveries: Vec<Recovery>,
    /// Whether the last level is a steady state.
    pub steady: Option<SteadyCheck>,
    /// Latency of reads before and during writes.
    pub reads: Option<ReadsDuring>,
    /// Temperature at the fall, if heat explains it.
    pub slowed_by_heat_at_c: Option<f64>,
    pub stopped: StopReason,
    /// The error that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Results with more of the target filled, in the order of the fills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fills: Vec<FillResult>,
    /// Wear of the drives, if they report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear: Option<WearChange>,
    /// Questions for which the time or the bytes were not enough.
    pub unseen: Vec<Unseen>,
    /// All bytes that the run wrote, also after rests.
    pub written_bytes: u64,
    /// Time of the whole run in seconds.
    pub took_s: f64,
    /// Rate and latency over time and bytes, up to the first rest.
    pub points: Vec<SeriesPoint>,
}

/// The limits and the requests of a sustained run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SustainSettings {
    /// Longest time of the run.
    pub for_s: f64,
    /// Most bytes that the run may write.
    pub max_written_bytes: u64,
    pub request_bytes: u32,
    pub pattern: Pattern,
    pub depth: u32,
    pub engine: Engine,
}

/// Writes to a target that holds more data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FillResult {
    /// Share of the target that was written before, in percent.
    pub percent: u8,
    /// Time without requests after the fill.
    pub rest_s: f64,
    /// Stretches with a rate of their own, in order.
    pub levels: Vec<Level>,
    /// The store behind the fast beginning; absent if the rate did not fall.
    pub reserve: Option<Reserve>,
    /// The rate that lasts is known.
    pub settled: bool,
}

/// What drives reported before a run and after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WearChange {
    pub before: Vec<Wear>,
    pub after: Vec<Wear>,
    /// Bytes that may be written over the drives' life, given by the user or implied by what they
    /// report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endurance_bytes: Option<f64>,
}

impl WearChange {
    /// `earlier` is of the run's parts before an interruption.
    pub fn of(
        before: Vec<Wear>,
        after: Vec<Wear>,
        endurance_bytes: Option<u64>,
        earlier: Option<WearChange>,
    ) -> Option<WearChange> {
        let before = earlier.map_or(before, |one| one.before);
        let implied = || {
            let all = before.iter().map(Wear::endurance_bytes).sum::<Option<f64>>();
            all.filter(|all| *all > 0.0)
        };
        let endurance_bytes = endurance_bytes.map(|bytes| bytes as f64).or_else(implied);
        let known = !before.is_empty() || endurance_bytes.is_some();
        known.then_some(WearChange { before, after, endurance_bytes })
    }
}

/// Writes after a rest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recovery {
    /// Time without requests, after the rate had fallen to the one that lasts, in seconds.
    pub rest_s: f64,
    /// Bytes that passed at the fast rate after the rest.
    pub fast_bytes: f64,
    /// Bytes that passed at the rate between the fast and the lasting one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub middle_bytes: f64,
    /// The limits ended the writes before the rate fell again: the recovery is this much or more.
    pub cut_short: bool,
}

fn is_zero(bytes: &f64) -> bool {
    *bytes == 0.0
}

impl Recovery {
    pub(crate) fn bytes(&self) -> f64 {
        self.fast_bytes + self.middle_bytes
    }
}

/// Reads of 4 KiB, one at a time, at random places.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadsDuring {
    pub alone_mean_ns: f64,
    pub alone_p99_ns: u64,
    /// Mean latency while writes went on at full speed, in nanoseconds.
    pub during_mean_ns: f64,
    pub during_p99_ns: u64,
}

/// Why the writes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The rate that lasts is known.
    Settled,
    /// The time limit `for_s` is over.
    Time,
    /// `max_written_bytes` are written.
    MaxWritten,
    /// The user interrupted the run.
    Interrupted,
    /// A request failed; [`SustainedResult::failure`] says why.
    Failed,
}

/// Something that a longer run would show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unseen {
    /// The subject of the sentence "… was not seen".
    pub what: String,
    /// Time of the run that would show it, as far as known.
    pub needs_s: Option<f64>,
    /// Bytes that the longer run would write.
    pub needs_bytes: Option<f64>,
}

pub fn sustained_schema() -> String {
    let schema = schemars::schema_for!(SustainedResult);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
