//! Rates of operations on whole files, which have no request size and so are no points.

use crate::point::LatencySummary;
use measure::histogram::Histogram;
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

/// The latency of one kind of operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Operations done.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Smallest.
    pub min_ns: u64,
    /// Half of the operations took no longer.
    pub p50_ns: u64,
    /// 95 % took no longer.
    pub p95_ns: u64,
    /// 99 % took no longer.
    pub p99_ns: u64,
    /// 99.9 % took no longer.
    pub p999_ns: u64,
    /// Largest.
    pub max_ns: u64,
    /// All of them.
    pub histogram: Histogram,
}

impl Latency {
    /// The figures of a histogram.
    pub fn of(histogram: &Histogram) -> Self {
        Latency {
            count: histogram.count(),
            mean_ns: histogram.mean(),
            min_ns: histogram.min(),
            p50_ns: histogram.percentile(50.0),
            p95_ns: histogram.percentile(95.0),
            p99_ns: histogram.percentile(99.0),
            p999_ns: histogram.percentile(99.9),
            max_ns: histogram.max(),
            histogram: histogram.clone(),
        }
    }
}
