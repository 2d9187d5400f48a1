use measure::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A latency distribution in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    pub mean: f64,
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub p9999: u64,
    pub p99999: u64,
    pub p999999: u64,
    /// The exact maximum.
    pub max: u64,
    pub count: u64,
}

/// With fewer requests above it, a percentile is an accident.
const REQUESTS_ABOVE: f64 = 10.0;

impl LatencySummary {
    /// Percentiles, such as 99.9, with enough requests above, and their latencies in ns, lowest
    /// first.
    pub fn percentiles(&self) -> impl DoubleEndedIterator<Item = (f64, u64)> {
        let all = [
            (50.0, self.p50),
            (90.0, self.p90),
            (99.0, self.p99),
            (99.9, self.p999),
            (99.99, self.p9999),
            (99.999, self.p99999),
            (99.9999, self.p999999),
        ];
        let count = self.count as f64;
        // The error of the subtraction is far below a request.
        let above = move |percentile: f64| count * (100.0 - percentile) / 100.0 + 1e-3;
        all.into_iter().filter(move |(percentile, _)| above(*percentile) >= REQUESTS_ABOVE)
    }

    /// In ns, if enough requests are slower.
    pub fn settled_p99(&self) -> Option<u64> {
        self.percentiles().find(|(percentile, _)| *percentile == 99.0).map(|(_, ns)| ns)
    }
}

impl From<&Histogram> for LatencySummary {
    fn from(h: &Histogram) -> Self {
        LatencySummary {
            mean: h.mean(),
            min: h.min(),
            p50: h.percentile(50.0),
            p90: h.percentile(90.0),
            p99: h.percentile(99.0),
            p999: h.percentile(99.9),
            p9999: h.percentile(99.99),
            p99999: h.percentile(99.999),
            p999999: h.percentile(99.9999),
            max: h.max(),
            count: h.count(),
        }
    }
}
