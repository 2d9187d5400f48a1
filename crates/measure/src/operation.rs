//! Rates of operations on whole files, which have no request size and so are no points.

use crate::point::LatencySummary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How fast one kind of operation went under some settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationRate {
    /// `transaction`, `create`, `read`, `append`, `stat`, `open`, `rename`, `list`, `delete`; with `alone` behind it where the operation had
    /// a phase of its own beside a mix.
    pub operation: String,
    /// What was asked beyond the defaults, as the command takes it: two rates of the same operation and settings are comparable.
    pub settings: String,
    /// Operations.
    pub count: u64,
    /// Operations per second of the time that they shared with what else was done in it.
    pub per_s: f64,
    /// The 95 % interval of the rate; absent where too little was run to tell.
    pub interval_95: Option<[f64; 2]>,
    /// Time of one operation, where each was timed.
    pub latency_ns: Option<LatencySummary>,
    /// Processor time (user and system) of the process for each, where it can be told from that of other operations.
    pub cpu_ns: Option<f64>,
}
