//! What one run gave.

use machine::files::{FileEngine, FileSync};
use results::Latency;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use workload::smallfile::{SmallFileCounts, SmallFilePlan};

/// A run of the PostMark workload: all that both reports are made from, and what they lack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostmarkResult {
    /// What was done.
    pub plan: SmallFilePlan,
    /// Threads that shared the files.
    pub threads: u32,
    /// How files were read and written.
    pub engine: FileEngine,
    /// When a change counted as done.
    pub sync: FileSync,
    /// Files and bytes, exact.
    pub counts: SmallFileCounts,
    /// Bytes read, added up in single precision as the original does; its report shows this sum.
    pub classic_read_bytes: f32,
    /// Bytes written, added up in single precision.
    pub classic_written_bytes: f32,
    /// Times of the phases.
    pub phases: Phases,
    /// What follows from counts and times.
    pub rates: Rates,
    /// 95 % interval of the transactions per second, from the run's own time slices; `None`: too short a run to tell.
    pub transactions_interval: Option<Interval>,
    /// Latency by operation: `create`, `read`, `append`, `delete`; only those that were done.
    pub latency: BTreeMap<String, Latency>,
    /// User time of the process during the run, all threads.
    pub cpu_user_ns: u64,
    /// System time of the process during the run, all threads.
    pub cpu_system_ns: u64,
    /// Processor time of the process for each transaction, creation and deletion of files before and after included.
    pub cpu_per_transaction_ns: f64,
    /// Bytes that came from block devices, where counted.
    pub device_read_bytes: Option<u64>,
    /// Bytes dirtied that were or will be written to block devices unless deleted before, where counted.
    pub device_write_bytes: Option<u64>,
    /// What keeps these figures from being trusted.
    pub warnings: Vec<String>,
}

/// Times of the phases, by the machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Phases {
    /// From the first creation to the last deletion.
    pub total_ns: u64,
    /// Making the base number of files.
    pub create_ns: u64,
    /// The transactions.
    pub transactions_ns: u64,
    /// Deleting what is left.
    pub delete_ns: u64,
}

/// Rates over exact times.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Transactions over their phase.
    pub transactions_per_s: f64,
    /// Files made before the transactions over that phase.
    pub create_alone_per_s: f64,
    /// Files deleted after the transactions over that phase.
    pub delete_alone_per_s: f64,
    /// Bytes read over the total time.
    pub read_bytes_per_s: f64,
    /// Bytes written over the total time.
    pub written_bytes_per_s: f64,
}

/// An interval of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end, per second.
    pub low_per_s: f64,
    /// Upper end, per second.
    pub high_per_s: f64,
}

/// Per second; a time of nothing counts as a nanosecond.
pub(crate) fn per_second(amount: f64, ns: u64) -> f64 {
    amount * 1e9 / ns.max(1) as f64
}
