use machine::Nanos;
use measure::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Latencies of a class of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Half of the requests took at most this time, in nanoseconds.
    pub p50_ns: Nanos,
    /// 99 % of the requests took at most this time, in nanoseconds.
    pub p99_ns: Nanos,
    pub max_ns: Nanos,
}

impl Latency {
    /// `None`: an empty histogram.
    pub fn of(histogram: &Histogram) -> Option<Latency> {
        (!histogram.is_empty()).then(|| Latency {
            p50_ns: histogram.percentile(50.0),
            p99_ns: histogram.percentile(99.0),
            max_ns: histogram.max(),
        })
    }
}
