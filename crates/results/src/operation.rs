//! Operations on whole files have no request size, so they are not points.

use crate::point::LatencySummary;
use measure::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rate of one kind of operation under given settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationRate {
    /// Name of the operation: `transaction`, `create`, `read`, `append`, `stat`, `open`, `rename`,
    /// `list`, `delete`; followed by `alone` if it also had a phase of its own in addition to the
    /// mix.
    pub operation: String,
    /// Settings that differ from the defaults, as command options. Rates of the same operation and
    /// settings are comparable.
    pub settings: String,
    /// Number of operations.
    pub count: u64,
    /// Operations per second of the time that they shared with other operations.
    pub per_s: f64,
    /// The 95 % interval of the rate; absent if the run was too short.
    pub interval_95: Option<[f64; 2]>,
    /// Latency per operation, if timed.
    pub latency_ns: Option<LatencySummary>,
    /// User and system time per operation, if it can be separated from other operations.
    pub cpu_ns: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    pub count: u64,
    pub mean_ns: f64,
    pub min_ns: u64,
    pub p50_ns: u64,
    pub p95_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
    /// The full distribution.
    pub histogram: Histogram,
}

impl Latency {
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
