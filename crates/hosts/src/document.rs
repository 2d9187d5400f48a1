//! The document: who took part, the points with each client's share, and what limits them.

use crate::message::Client;
use machine::{MachineFacts, TargetFacts};
use results::{LatencySummary, Point, Program};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the schema.
pub const HOSTS_SCHEMA: &str = "halfpower.hosts/1";

/// The same workloads on many clients at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostsResult {
    /// Name and version of this schema: `halfpower.hosts/1`.
    pub schema: String,
    /// The program that wrote it, as rank 0 was started.
    pub program: Program,
    /// The computer of rank 0.
    pub machine: MachineFacts,
    /// The target of rank 0. Its size is that of all clients' test files together.
    pub target: TargetFacts,
    /// The clients: one per rank.
    pub clients: Vec<Client>,
    /// Whether all clients see a file that rank 0 made in the target directory; absent if the
    /// target is not a directory.
    pub same_directory: Option<bool>,
    /// Start time in seconds since 1970-01-01 UTC.
    pub began_unix_s: u64,
    /// Elapsed time.
    pub elapsed_ns: u64,
    /// Random seed.
    pub seed: u64,
    /// Every workload with every number of clients.
    pub points: Vec<HostsPoint>,
    /// The gain of more clients, for each workload measured with several numbers of them.
    pub scaling: Vec<Scaling>,
    /// It ended early: the points are those measured until then.
    pub incomplete: bool,
    /// Warnings about the whole document.
    pub warnings: Vec<String>,
}

/// A workload on a number of clients at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostsPoint {
    /// Number of clients.
    pub clients: u32,
    /// All clients together. Rates are those of the window in which all worked.
    pub point: Point,
    /// The timing of the clients in each run.
    pub runs: Vec<HostsRun>,
    /// The share of each client.
    pub by_client: Vec<ClientNumbers>,
    /// Jain's index of the clients' rates: 1 if all are equal, 1/n if one of n has everything
    /// (Jain, Chiu and Hawe, DEC-TR-301, 1984).
    pub fairness: Option<f64>,
    /// Clients that differ from the others, and lateness.
    pub warnings: Vec<String>,
}

/// The timing of one run, on rank 0's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostsRun {
    /// The time in which all clients worked, without a warm-up.
    pub window_ns: u64,
    /// Rate of all clients in it.
    pub throughput_bytes_per_s: f64,
    /// Rate from the first begin until the first client finished (IOR's stonewall).
    pub until_first_finished_bytes_per_s: f64,
    /// Rate from the first begin until the last client finished (IOR's wear-out).
    pub until_last_finished_bytes_per_s: f64,
    /// From the first client's begin to the last one's.
    pub begin_spread_ns: u64,
    /// Rank of the client that began last.
    pub began_last: u32,
    /// From the first client's end to the last one's.
    pub end_spread_ns: u64,
    /// Rank of the client that finished first.
    pub finished_first: u32,
    /// Rank of the client that finished last.
    pub finished_last: u32,
}

/// The share of one client in a point; rates are means over the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientNumbers {
    pub rank: u32,
    pub host: String,
    /// In the window in which all clients worked.
    pub throughput_bytes_per_s: f64,
    pub iops: f64,
    /// Of all its requests.
    pub latency_ns: LatencySummary,
    /// User and system time of the process per request.
    pub cpu_ns_per_request: f64,
    /// Busy time of the host's processors, in percent of all of them.
    pub processor_percent: f64,
    /// Use of the host's busiest network link, in percent of its speed; absent if no link of it has
    /// a known speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_percent: Option<f64>,
    /// Largest delay of its begin behind the first client's.
    pub began_late_ns: u64,
    /// Its rate over the median of all clients' rates.
    pub of_median: f64,
}

/// The rates with different numbers of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scaling {
    /// The workload in words.
    pub workload: String,
    /// Rate with each number of clients, fewest first.
    pub steps: Vec<ScalingStep>,
    /// The highest rate.
    pub peak_bytes_per_s: f64,
    /// The fewest measured clients that reach half of the peak.
    pub half_power_clients: u32,
    /// The fewest measured clients from which more gain less than 5 %.
    pub knee_clients: u32,
    /// The bottleneck with the most clients.
    pub limit: ScalingLimit,
    /// No client had a free processor.
    pub processors_busy: bool,
    /// Ranks far below the median rate of the clients.
    pub slow_clients: Vec<u32>,
    /// The expected gain of more clients; absent with fewer than four numbers of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ScalingModel>,
}

/// The rate with a number of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingStep {
    pub clients: u32,
    /// Index of the point.
    pub point: u32,
    pub throughput_bytes_per_s: f64,
    /// The 95 % interval.
    pub interval_95: Option<[f64; 2]>,
    /// Rate over this number of times the rate of one client.
    pub efficiency: Option<f64>,
    pub fairness: Option<f64>,
}

/// A model of the rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingModel {
    pub form: ModelForm,
    /// The rate that any number of clients reach at most; absent if none is seen.
    pub peak_bytes_per_s: Option<f64>,
    /// Largest relative error on a step, if the model is fitted to the others only.
    pub left_out_error: f64,
    /// Rates with more clients than were measured.
    pub predicted: Vec<ScalingPrediction>,
}

/// The form of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelForm {
    /// Each client has its own rate until a limit that all share.
    SharedLimit,
    /// The rate n/(n + h) of a peak: clients wait for one another before the limit.
    Waiting,
}

/// The rate that a model gives for a number of clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingPrediction {
    pub clients: u32,
    pub throughput_bytes_per_s: f64,
}

/// The bottleneck of many clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScalingLimit {
    /// Each client: the rate grows with their number.
    Client,
    /// The part that all share: more clients gain nothing.
    Server,
    /// The network between them.
    Network,
    /// One or some clients are slower than the others.
    Imbalance,
    /// Too few numbers of clients, or intervals too wide.
    Undecided,
}
