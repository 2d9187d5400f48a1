//! What a run gave.

use crate::concurrent::Interval;
use machine::TargetFacts;
use measure::histogram::Histogram;
use results::Point;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reads or the writes of a thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Half {
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
    /// Their latencies.
    #[serde(skip)]
    #[schemars(skip)]
    pub latency: Histogram,
    /// Requests in each whole interval of `-D`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<u64>,
    /// Their latencies, where they are known.
    #[serde(skip)]
    #[schemars(skip)]
    pub interval_latencies: Vec<Interval>,
}

impl Half {
    /// Both together.
    pub fn plus(&self, other: &Half) -> Half {
        let mut latency = self.latency.clone();
        latency.merge(&other.latency);
        let longest = self.intervals.len().max(other.intervals.len());
        let at = |intervals: &[u64], index: usize| intervals.get(index).copied().unwrap_or(0);
        Half {
            requests: self.requests + other.requests,
            bytes: self.bytes + other.bytes,
            latency,
            intervals: (0..longest).map(|index| at(&self.intervals, index) + at(&other.intervals, index)).collect(),
            interval_latencies: (0..longest)
                .map(|index| self.interval_latency(index).plus(&other.interval_latency(index)))
                .collect(),
        }
    }

    /// The latencies of an interval.
    pub(super) fn interval_latency(&self, index: usize) -> Interval {
        self.interval_latencies.get(index).copied().unwrap_or_default()
    }

    /// Standard deviation of the latencies in ns, from the histogram's buckets (within 0.4 % of each).
    pub fn latency_deviation_ns(&self) -> f64 {
        let (count, mean) = (self.latency.count() as f64, self.latency.mean());
        if count == 0.0 {
            return 0.0;
        }
        let squares: f64 =
            self.latency.iter().map(|bucket| bucket.count as f64 * (bucket.middle() as f64 - mean).powi(2)).sum();
        (squares / count).sqrt()
    }

    /// Standard deviation of the requests per second over the intervals.
    pub fn rate_deviation(&self, interval_ms: u32) -> f64 {
        let rates: Vec<f64> =
            self.intervals.iter().map(|count| *count as f64 * 1e3 / f64::from(interval_ms.max(1))).collect();
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len().max(1) as f64).sqrt()
    }
}

/// One thread on one target. A thread of a pool is told once for each of its targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadResult {
    /// Counted over all targets.
    pub id: u32,
    /// The target's path.
    pub path: String,
    /// Its size.
    pub file_bytes: u64,
    /// Its reads.
    pub reads: Half,
    /// Its writes.
    pub writes: Half,
}

/// One time span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpanResult {
    /// Length of the measured part.
    pub elapsed_ns: u64,
    /// Every thread, and of each every target.
    pub threads: Vec<ThreadResult>,
    /// User, kernel and idle share of each processor in percent, warm-up included.
    pub processors_percent: Vec<[f64; 3]>,
    /// One point a target.
    pub points: Vec<Point>,
}

impl SpanResult {
    /// Threads, however many targets each has.
    pub fn thread_count(&self) -> usize {
        self.threads.chunk_by(|one, other| one.id == other.id).count()
    }
}

/// What is said of the computer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Its name.
    pub computer: String,
    /// Processors.
    pub processors: u32,
    /// Seconds since 1970-01-01 UTC when the run began.
    pub began_unix_s: u64,
}

/// All of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskspdResult {
    /// The command line in its shortest form.
    pub command: String,
    /// The computer.
    pub system: System,
    /// Every time span.
    pub spans: Vec<SpanResult>,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
    /// The first target.
    #[serde(skip)]
    pub target: Option<TargetFacts>,
}
