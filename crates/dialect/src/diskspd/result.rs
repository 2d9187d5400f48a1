use crate::concurrent::Interval;
use machine::TargetFacts;
use measure::histogram::Histogram;
use results::Point;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reads or the writes of a thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Half {
    pub requests: u64,
    pub bytes: u64,
    #[serde(skip)]
    #[schemars(skip)]
    pub latency: Histogram,
    /// Requests in each whole interval of `-D`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<u64>,
    /// Latencies in each interval, if recorded.
    #[serde(skip)]
    #[schemars(skip)]
    pub interval_latencies: Vec<Interval>,
}

impl Half {
    pub fn plus(&self, other: &Half) -> Half {
        let mut latency = self.latency.clone();
        latency.merge(&other.latency);
        let longest = self.intervals.len().max(other.intervals.len());
        let at = |intervals: &[u64], index: usize| intervals.get(index).copied().unwrap_or(0);
        Half {
            requests: self.requests + other.requests,
            bytes: self.bytes + other.bytes,
            latency,
            intervals: (0..longest)
                .map(|index| at(&self.intervals, index) + at(&other.intervals, index))
                .collect(),
            interval_latencies: (0..longest)
                .map(|index| self.interval_latency(index).plus(&other.interval_latency(index)))
                .collect(),
        }
    }

    pub(super) fn interval_latency(&self, index: usize) -> Interval {
        self.interval_latencies.get(index).copied().unwrap_or_default()
    }

    /// Uses the histogram's buckets, each within 0.4 %.
    pub fn latency_deviation_ns(&self) -> f64 {
        let (count, mean) = (self.latency.count() as f64, self.latency.mean());
        if count == 0.0 {
            return 0.0;
        }
        let squares: f64 = self
            .latency
            .iter()
            .map(|bucket| bucket.count as f64 * (bucket.middle() as f64 - mean).powi(2))
            .sum();
        (squares / count).sqrt()
    }

    /// Of the intervals' requests per second.
    pub fn rate_deviation(&self, interval_ms: u32) -> f64 {
        let rates: Vec<f64> = self
            .intervals
            .iter()
            .map(|count| *count as f64 * 1e3 / f64::from(interval_ms.max(1)))
            .collect();
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len().max(1) as f64)
            .sqrt()
    }
}

/// One thread on one target. A thread of a pool has one entry per target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadResult {
    /// The number of the thread, unique over all targets.
    pub id: u32,
    pub path: String,
    pub file_bytes: u64,
    pub reads: Half,
    pub writes: Half,
}

/// One time span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpanResult {
    /// Length of the measured part.
    pub elapsed_ns: u64,
    /// Every pair of thread and target.
    pub threads: Vec<ThreadResult>,
    /// User, kernel and idle share of each processor in percent, warm-up included.
    pub processors_percent: Vec<[f64; 3]>,
    /// One point per target.
    pub points: Vec<Point>,
}

impl SpanResult {
    /// Counts distinct threads.
    pub fn thread_count(&self) -> usize {
        self.threads.chunk_by(|one, other| one.id == other.id).count()
    }
}

/// Cores, memory nodes and sockets of a computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    pub cores: u32,
    pub nodes: u32,
    pub sockets: u32,
}

/// Facts about the computer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    pub computer: String,
    pub processors: u32,
    /// The topology of the processors, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// Seconds since 1970-01-01 UTC at the start of the run.
    pub began_unix_s: u64,
}

/// All results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskspdResult {
    /// The command line as typed, if it is known, otherwise an equivalent one.
    pub command: String,
    pub system: System,
    pub spans: Vec<SpanResult>,
    /// Whether the user ended the run early: the last span has what was done until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
    /// The first target.
    #[serde(skip)]
    pub target: Option<TargetFacts>,
}
