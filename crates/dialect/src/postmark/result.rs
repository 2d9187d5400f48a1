use machine::files::{FileEngine, FileSync};
use results::Latency;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use workload::smallfile::{SmallFileCounts, SmallFilePlan};

/// A run of the PostMark workload: the data of both reports and the details that they lack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostmarkResult {
    pub plan: SmallFilePlan,
    pub threads: u32,
    pub engine: FileEngine,
    /// The moment at which a change counted as complete.
    pub sync: FileSync,
    /// Complete transactions when the user ended the run early; the figures are those until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted_after: Option<u32>,
    /// Exact counts of files and bytes.
    pub counts: SmallFileCounts,
    /// Bytes read, summed in single precision like the original, whose report shows this sum.
    pub classic_read_bytes: f32,
    /// Bytes written, summed in single precision.
    pub classic_written_bytes: f32,
    pub phases: Phases,
    /// Rates computed from counts and times.
    pub rates: Rates,
    /// 95 % interval of the transactions per second, from the run's time slices; `None` if the run
    /// was too short.
    pub transactions_interval: Option<Interval>,
    /// Latency by operation: `create`, `read`, `append`, `delete`; omits unused ones.
    pub latency: BTreeMap<String, Latency>,
    /// User time of the process during the run, all threads.
    pub cpu_user_ns: u64,
    /// System time of the process during the run, all threads.
    pub cpu_system_ns: u64,
    /// Processor time per transaction, including the creation and deletion phases.
    pub cpu_per_transaction_ns: f64,
    /// Bytes read from block devices, if the system counts them.
    pub device_read_bytes: Option<u64>,
    /// Dirtied bytes that will reach block devices unless deleted first, if the system counts them.
    pub device_write_bytes: Option<u64>,
    /// Reasons to doubt these figures.
    pub warnings: Vec<String>,
}

impl PostmarkResult {
    /// Counts complete transactions.
    pub fn transactions(&self) -> u32 {
        self.interrupted_after.unwrap_or(self.plan.transactions)
    }
}

/// Times of the phases, by the machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Phases {
    /// The time from the first creation to the last deletion.
    pub total_ns: u64,
    /// Creation of the initial files.
    pub create_ns: u64,
    pub transactions_ns: u64,
    /// Deletion of the remaining files.
    pub delete_ns: u64,
}

/// Rates over exact times.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Transactions over their phase.
    pub transactions_per_s: f64,
    /// Files created before the transactions, over that phase.
    pub create_alone_per_s: f64,
    /// Files deleted after the transactions, over that phase.
    pub delete_alone_per_s: f64,
    /// Bytes read over the total time.
    pub read_bytes_per_s: f64,
    /// Bytes written over the total time.
    pub written_bytes_per_s: f64,
}

/// Confidence interval of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    pub low_per_s: f64,
    pub high_per_s: f64,
}

/// A time of zero counts as one nanosecond.
pub(crate) fn per_second(amount: f64, ns: u64) -> f64 {
    amount * 1e9 / ns.max(1) as f64
}
