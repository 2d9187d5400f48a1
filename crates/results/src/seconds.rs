use measure::live::Second;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One second of a run that was watched with `run --live`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecondRecord {
    /// Number of the run, from 0.
    pub run: u64,
    /// Number of the second in its run, from 0.
    pub second: u64,
    /// Length of the measured second in nanoseconds; shorter at the end of a run.
    pub length_ns: u64,
    pub throughput_bytes_per_s: f64,
    pub iops: f64,
    /// Mean requests in flight, by Little's law from the requests that completed.
    pub mean_depth: f64,
    pub latency_p50_ns: u64,
    pub latency_p99_ns: u64,
    pub latency_p999_ns: u64,
}

impl From<&Second> for SecondRecord {
    fn from(one: &Second) -> SecondRecord {
        SecondRecord {
            run: one.run,
            second: one.second,
            length_ns: one.length_ns,
            throughput_bytes_per_s: one.bytes as f64 * 1e9 / one.length_ns.max(1) as f64,
            iops: one.iops(),
            mean_depth: one.mean_depth(),
            latency_p50_ns: one.latency.percentile(50.0),
            latency_p99_ns: one.latency.percentile(99.0),
            latency_p999_ns: one.latency.percentile(99.9),
        }
    }
}
