use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Of a whole benchmark, in ns.
    Duration,
    /// Requests per second.
    Iops,
    /// Bytes per second.
    Throughput,
    /// On whole files, per second.
    Operations,
    /// In ns.
    LatencyMean,
    /// In ns.
    LatencyP50,
    /// In ns.
    LatencyP99,
    /// In ns.
    LatencyP999,
    /// Of the process, in ns per request.
    Cpu,
}

impl Measure {
    /// The time of everything first, then rates.
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

    /// For reports.
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
