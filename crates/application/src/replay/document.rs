use super::Class;
use crate::Latency;
use machine::{CacheState, MachineFacts, ResourceUse, TargetFacts};
use measure::stats::estimate_values;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const SCHEMA: &str = "halfpower.replay/1";

pub fn schema() -> String {
    serde_json::to_string_pretty(&schemars::schema_for!(ReplayDocument)).unwrap_or_default() + "\n"
}

/// Requests of the trace that are not replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Requests that failed in the recording.
    pub failed: u64,
    /// Requests that moved no bytes: reads at the end of a file.
    pub empty: u64,
    /// Truncations, allocations, syncs of the whole system; calls that only start reads or writes.
    pub other: u64,
    /// The block layer's view of the same requests.
    pub block_layer: u64,
    /// Events that the recording missed.
    pub lost: u64,
}

impl Skipped {
    /// `None` without any.
    pub fn sentence(&self) -> Option<String> {
        let parts = [
            (self.failed, "failed requests"),
            (self.other, "truncations, allocations, prefetches and syncs of the whole system"),
            (self.lost, "events that the recording lost"),
        ];
        let said: Vec<String> = parts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{what} ({count})"))
            .collect();
        (!said.is_empty()).then(|| format!("Not replayed: {}.", said.join(", ")))
    }
}

/// Requests of one kind on files of one role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassResult {
    #[serde(flatten)]
    pub class: Class,
    /// Number of requests in one run.
    pub requests: u64,
    /// Bytes read or written in one run.
    pub bytes: u64,
    /// Latency over all runs.
    pub latency: Option<Latency>,
    /// Latency in the recording, if that has the ends of requests.
    pub recorded_latency: Option<Latency>,
}

/// A mean over the runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    pub mean: f64,
    /// The 95 % interval of the mean; `None` for a single run.
    pub interval_95: Option<[f64; 2]>,
}

impl Quantity {
    /// `None` without values.
    pub fn of(values: &[f64]) -> Option<Quantity> {
        match (values, estimate_values(values)) {
            ([], _) => None,
            (_, Some(one)) => {
                let interval_95 = (values.len() > 1).then_some([one.low, one.high]);
                Some(Quantity { mean: one.mean, interval_95 })
            }
            (_, None) => {
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                Some(Quantity { mean, interval_95: None })
            }
        }
    }

    /// `amount` over this time; `None` if that may be zero.
    pub fn rate_of(self, amount: f64) -> Option<Quantity> {
        let interval_95 = self.interval_95.map(|[low, high]| [amount / high, amount / low]);
        let positive = self.interval_95.map_or(self.mean, |[low, _]| low) > 0.0;
        positive.then_some(Quantity { mean: amount / self.mean, interval_95 })
    }
}

/// A replay's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayDocument {
    pub schema: String,
    /// The trace's name.
    pub trace: String,
    /// The trace's format.
    pub format: String,
    pub target: String,
    pub simulated: bool,
    /// Recorded pauses were divided by this; `None`: left out.
    pub speed: Option<f64>,
    /// All requests were direct.
    pub direct: bool,
    /// Requests that a thread could have outstanding; `None`: as in the recording.
    pub depth: Option<u32>,
    /// The page cache before each run.
    pub cache: CacheState,
    pub runs: u32,
    pub threads: u64,
    pub files: u64,
    /// Number of requests in one run.
    pub requests: u64,
    /// Bytes read or written in one run.
    pub bytes: u64,
    /// Time in the recording from the first request to the last end of one, in seconds.
    pub recorded_s: f64,
    /// Time of the replay from the first request to the last end of one, in seconds.
    pub elapsed_s: Quantity,
    /// Time of each run of the replay, in seconds.
    pub runs_s: Vec<f64>,
    pub requests_per_s: Option<Quantity>,
    pub throughput_bytes_per_s: Option<Quantity>,
    pub classes: Vec<ClassResult>,
    pub skipped: Skipped,
    /// Parts of a simulated machine that count their busy time, busiest first.
    #[schemars(skip)]
    #[serde(skip)]
    pub resources: Vec<ResourceUse>,
    /// The machine, and the target of the first file.
    #[schemars(skip)]
    #[serde(skip)]
    pub facts: Option<(MachineFacts, TargetFacts)>,
    pub warnings: Vec<String>,
}
