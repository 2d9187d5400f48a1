//! What a study, a sweep or a run leaves behind: one document, one schema, one version.

use machine::{MachineFacts, MemoryUse, TargetFacts};
use measure::{OperationRate, Point};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the document's schema. A field may be added within a version; a changed or removed one is a new version.
pub const SCHEMA: &str = "halfpower.results/1";

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// Name and version of this schema: `halfpower.results/1`.
    pub schema: String,
    /// What made it.
    pub program: Program,
    /// `study`, `sweep`, `run`, `postmark` or `metadata`.
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
    /// The experiments of a study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<Experiment>,
    /// The answer of a study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Reasons to doubt all of it.
    pub warnings: Vec<String>,
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

/// A figure: what is on its axes, and its series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Unique in the document: a short name for files and anchors.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What x is.
    pub x: Axis,
    /// What y is.
    pub y: Axis,
    /// Its curves.
    pub series: Vec<Series>,
}

/// What an axis shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Request size in bytes; logarithmic.
    RequestBytes,
    /// Requests outstanding over all streams; logarithmic.
    Depth,
    /// Streams; logarithmic.
    Threads,
    /// Shift of every request in bytes; each value stands for itself.
    OffsetBytes,
    /// Position in the target, 0 to 1.
    Position,
    /// Stripe chunk in bytes; logarithmic.
    ChunkBytes,
    /// Members of a stripe.
    Members,
    /// Time since the run began, in ns.
    TimeNs,
    /// Rate in bytes per second; from zero.
    BytesPerS,
    /// Requests per second; from zero.
    Iops,
    /// Processor time of the whole machine per MiB in ns; logarithmic.
    CpuNsPerMib,
    /// Processor time of the whole machine per request in ns; logarithmic.
    CpuNsPerRequest,
    /// Mean time from issue to completion in ns; logarithmic.
    ServiceNs,
    /// Size of a cache in bytes; logarithmic.
    CacheBytes,
    /// Share of accesses that a cache misses, 0 to 1.
    MissShare,
    /// How many times as fast; from zero.
    Gain,
}

/// A curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its values, by rising x. Points that failed have no y.
    pub values: Vec<Value>,
    /// Where it reaches half of the peak, if it is a curve of which that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_power: Option<HalfPower>,
}

/// One value of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// On the x axis.
    pub x: f64,
    /// On the y axis; absent where the point failed.
    pub y: Option<f64>,
    /// The 95 % interval of y.
    pub interval_95: Option<[f64; 2]>,
    /// The point in the document's list, where y is a figure of one.
    pub point: Option<usize>,
}

/// A half-power point: the smallest setting that reaches half of the peak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HalfPower {
    /// What is varied: `request_bytes` or `depth`.
    pub of: String,
    /// What is held: `depth 8`, `64 KiB requests`.
    pub at: String,
    /// Read or write.
    pub op: String,
    /// The peak that is halved, in bytes per second.
    pub peak_bytes_per_s: f64,
    /// Where the peak is from: `measured` or `advertised`.
    pub peak_from: String,
    /// The smallest measured setting that reaches half; absent where none does.
    pub smallest: Option<f64>,
    /// Where the curve crosses half, between measured settings.
    pub crossing: Option<f64>,
    /// The 95 % interval of the crossing.
    pub interval_95: Option<[f64; 2]>,
    /// The smallest setting measured reaches half already: the true half-power point is at or below it.
    pub at_or_below: bool,
}

/// What the study found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Why its numbers should not be trusted, the gravest first; empty where they can be.
    pub doubts: Vec<String>,
    /// The best rates: reading, then writing (absent where the target was only read).
    pub peaks: Vec<Peak>,
    /// What limits the peak, one sentence each.
    pub limits: Vec<Limit>,
    /// Half-power points.
    pub half_power: Vec<HalfPower>,
    /// Processor cost by request and byte.
    pub costs: Vec<CostModel>,
    /// Service time by request size.
    pub service_times: Vec<ServiceModel>,
    /// What is worth changing, the greatest gain first.
    pub findings: Vec<Finding>,
    /// What the budget left out, in a sentence each.
    pub left_out: Vec<String>,
}

/// The best rate of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// `read` or `write`.
    pub op: String,
    /// Median rate.
    pub throughput_bytes_per_s: f64,
    /// Its 95 % interval.
    pub interval_95: Option<[f64; 2]>,
    /// The point.
    pub point: usize,
    /// How to get it, as the options of `halfpower run`.
    pub settings: String,
    /// The rate that a layer below advertises, and its name.
    pub advertised: Option<Advertised>,
}

/// A rate on the box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advertised {
    /// Of which layer.
    pub layer: String,
    /// In bytes per second.
    pub throughput_bytes_per_s: f64,
}

/// What limits a peak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// `read` or `write`.
    pub op: String,
    /// `device`, `throttle`, `link`, `processor`, `memory`, `latency` or `unknown`.
    pub what: String,
    /// The sentence with its evidence.
    pub sentence: String,
}

/// Processor cost = per request + per byte x size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostModel {
    /// `buffered read`, `direct write`, ...
    pub mode: String,
    /// `process` (user + system) or `machine` (kernel threads too).
    pub whose: String,
    /// Cost of a request whatever its size, in ns.
    pub ns_per_request: f64,
    /// Its 95 % interval.
    pub ns_per_request_interval_95: [f64; 2],
    /// Cost of a byte, in ns.
    pub ns_per_byte: f64,
    /// Its 95 % interval.
    pub ns_per_byte_interval_95: [f64; 2],
    /// Root mean square of the relative residuals.
    pub rms_residual: f64,
    /// User-space instructions a request whatever its size, where they were counted.
    pub instructions_per_request: Option<f64>,
    /// User-space instructions a byte.
    pub instructions_per_byte: Option<f64>,
}

/// Service time = fixed + size / rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceModel {
    /// `direct read`, `reread`, `prefetch`, `miss`, ...
    pub mode: String,
    /// The part that no request escapes, in ns.
    pub fixed_ns: f64,
    /// Its 95 % interval.
    pub fixed_ns_interval_95: [f64; 2],
    /// The rate of the rest; absent where the time does not rise with the size.
    pub rate_bytes_per_s: Option<f64>,
    /// Its 95 % interval.
    pub rate_interval_95: Option<[f64; 2]>,
    /// Root mean square of the relative residuals.
    pub rms_residual: f64,
    /// Greatest relative residual.
    pub max_residual: f64,
    /// Request size in bytes at which the model bends, if it does.
    pub knee_bytes: Option<f64>,
}

/// A setting worth changing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What to do, in a few words.
    pub title: String,
    /// How much faster: 1.8 is 80 % more.
    pub gain: f64,
    /// Its 95 % interval.
    pub gain_interval_95: Option<[f64; 2]>,
    /// The sentence with both figures.
    pub evidence: String,
    /// The setting to use.
    pub setting: String,
    /// A command that shows the difference again.
    pub check: String,
    /// The points compared: before, after.
    pub points: [usize; 2],
}
