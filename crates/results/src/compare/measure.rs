use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Time of a whole benchmark in nanoseconds.
    Duration,
    /// Requests per second.
    Iops,
    /// Bytes per second.
    Throughput,
    /// Operations on whole files per second.
    Operations,
    /// Mean latency in nanoseconds.
    LatencyMean,
    /// Median latency in nanoseconds.
    LatencyP50,
    /// 99th percentile of the latency in nanoseconds.
    LatencyP99,
    /// 99.9th percentile of the latency in nanoseconds.
    LatencyP999,
    /// Processor time of the process in nanoseconds per request.
    Cpu,
}

impl Measure {
    /// The total time first, then rates.
    pub const ALL: [Measure; 9] = [
        Measure::Duration,
        Measure::Iops,
        Measure::Operations,
        Measure::Throughput,
        Measure::LatencyMean,
        Measure::LatencyP50,
        Measure::LatencyP99,
        Measure::LatencyP999,
        Measure::Cpu,
    ];

    /// In files and options, with its unit.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Duration => "duration_ns",
            Measure::Iops => "iops",
            Measure::Throughput => "throughput_bytes_per_s",
            Measure::Operations => "operations_per_s",
            Measure::LatencyMean => "latency_mean_ns",
            Measure::LatencyP50 => "latency_p50_ns",
            Measure::LatencyP99 => "latency_p99_ns",
            Measure::LatencyP999 => "latency_p999_ns",
            Measure::Cpu => "cpu_ns_per_request",
        }
    }

    pub fn heading(self) -> &'static str {
        match self {
            Measure::Duration => "total time",
            Measure::Iops => "IOPS",
            Measure::Throughput => "MiB/s",
            Measure::Operations => "operations/s",
            Measure::LatencyMean => "mean latency",
            Measure::LatencyP50 => "p50",
            Measure::LatencyP99 => "p99",
            Measure::LatencyP999 => "p99.9",
            Measure::Cpu => "processor time",
        }
    }

    /// Higher is better.
    pub fn is_rate(self) -> bool {
        matches!(self, Measure::Iops | Measure::Throughput | Measure::Operations)
    }

    /// For better and worse.
    pub fn words(self) -> [&'static str; 2] {
        if self == Measure::Cpu { ["less", "more"] } else { ["faster", "slower"] }
    }
}
