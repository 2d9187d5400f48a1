use crate::{Latency, LatencySummary, OperationRate};
use machine::files::{FileSync, FileSystem};
use machine::live::{self, Goal, Reading};
use measure::histogram::Histogram;
use measure::stats::{Estimate, estimate_values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use workload::metadata::{MetadataError, MetadataPlan, Operation, PhaseTimes, run};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetadataResult {
    pub plan: MetadataPlan,
    /// The operations in the order of a round.
    pub operations: Vec<OperationResult>,
    /// User time over all rounds and threads.
    pub cpu_user_ns: u64,
    /// System time over all rounds and threads.
    pub cpu_system_ns: u64,
    /// Bytes read from block devices, if counted.
    pub device_read_bytes: Option<u64>,
    /// The user interrupted the run: operations that had not begun are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationResult {
    pub operation: Operation,
    /// Operations in one round: files, or directories for a listing.
    pub count: u64,
    /// Time of the phase, by round.
    pub elapsed_ns: Vec<u64>,
    /// Time of the round that the user ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished_ns: Option<u64>,
    /// Operations per second over all rounds.
    pub rate_per_s: f64,
    /// Files visited per second over all rounds; differs from the rate only for a listing.
    pub files_per_s: f64,
    /// The rate with its 95 % interval over the rounds; `None` for a single round.
    pub rate_interval_per_s: Option<Estimate>,
    pub latency: Latency,
}

/// Minimum length of a phase; shorter ones are too short to judge.
const SHORT_NS: u64 = 10_000_000;

/// Measures the operations of a plan. `progress` is called before each phase. A run in which the
/// program was stopped is repeated. The user's interrupt ends it with the figures until then.
///
/// # Errors
/// As [`run`].
pub fn measure_metadata<F: FileSystem>(
    system: &F,
    plan: &MetadataPlan,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(u32, Operation),
) -> Result<MetadataResult, MetadataError> {
    plan.check()?;
    let (mut result, left_out) = measure::retry_if_paused(|| {
        let (result, paused) = system.watched(|| once(system, plan, interrupt, progress));
        Ok::<_, MetadataError>((result?, paused))
    })?;
    result.warnings.splice(0..0, left_out.iter().map(ToString::to_string));
    Ok(result)
}

fn once<F: FileSystem>(
    system: &F,
    plan: &MetadataPlan,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(u32, Operation),
) -> Result<MetadataResult, MetadataError> {
    let mut latencies: Vec<[Histogram; 6]> =
        (0..plan.threads).map(|_| std::array::from_fn(|_| Histogram::new())).collect();
    let records = latencies
        .iter_mut()
        .map(|thread| {
            move |operation: Operation, ns| {
                thread[operation as usize].record(ns);
                live::REQUESTS.add(Reading { requests: 1, bytes: 0, latency_ns: ns });
            }
        })
        .collect();
    // A listing counts once for its directory.
    let of_round = 5 * u64::from(plan.files) + u64::from(plan.directories);
    let all = Goal::Requests(of_round.saturating_mul(plan.rounds.into()));
    let _work = live::WORK.begin("files".into(), all);
    let before = system.usage();
    let times = run(system, plan, interrupt, progress, records)?;
    let after = system.usage();
    let begun = |operation: &Operation| {
        latencies.iter().any(|thread| !thread[*operation as usize].is_empty())
    };
    let operations: Vec<OperationResult> = Operation::ALL
        .into_iter()
        .filter(begun)
        .map(|operation| operation_result(plan, operation, &latencies, &times))
        .collect();
    if operations.is_empty() {
        return Err(MetadataError::Interrupted);
    }
    let mut result = MetadataResult {
        plan: plan.clone(),
        operations,
        cpu_user_ns: after.user_ns.saturating_sub(before.user_ns),
        cpu_system_ns: after.system_ns.saturating_sub(before.system_ns),
        device_read_bytes: before
            .block_bytes
            .zip(after.block_bytes)
            .map(|(was, is)| is.0.saturating_sub(was.0)),
        interrupted: times.unfinished.is_some(),
        warnings: Vec::new(),
    };
    result.warnings = warnings(&result);
    if let Some((operation, _)) = times.unfinished {
        result.warnings.push(format!(
            "interrupted in the {} of round {} of {}: the figures are those until then",
            operation.name(),
            times.rounds[operation as usize].len() + 1,
            plan.rounds
        ));
    }
    Ok(result)
}

fn operation_result(
    plan: &MetadataPlan,
    operation: Operation,
    latencies: &[[Histogram; 6]],
    times: &PhaseTimes,
) -> OperationResult {
    let mut latency = Histogram::new();
    latencies.iter().for_each(|thread| latency.merge(&thread[operation as usize]));
    let count = u64::from(if operation == Operation::List { plan.directories } else { plan.files });
    let elapsed_ns = times.rounds[operation as usize].clone();
    let unfinished_ns = times.unfinished.filter(|one| one.0 == operation).map(|one| one.1);
    let total = elapsed_ns.iter().chain(&unfinished_ns).sum::<u64>();
    let rate_per_s = latency.count() as f64 * 1e9 / total.max(1) as f64;
    let times: Vec<f64> = elapsed_ns.iter().map(|&ns| ns as f64).collect();
    OperationResult {
        operation,
        count,
        unfinished_ns,
        rate_per_s,
        files_per_s: rate_per_s * f64::from(plan.files) / count.max(1) as f64,
        rate_interval_per_s: estimate_values(&times)
            .and_then(|time| time.rate_of(count as f64 * 1e9)),
        latency: Latency::of(&latency),
        elapsed_ns,
    }
}

fn warnings(result: &MetadataResult) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut short = Vec::new();
    for operation in &result.operations {
        if operation.elapsed_ns.iter().any(|&ns| ns < SHORT_NS) {
            short.push(operation.operation.name());
        }
    }
    if !short.is_empty() {
        let limit = SHORT_NS / 1_000_000;
        warnings.push(format!(
            "{} took under {limit} ms a round: ask for more files",
            short.join(", ")
        ));
    }
    if result.device_read_bytes == Some(0) && result.plan.sync == FileSync::None {
        warnings.push(
            "nothing came from a device and nothing waited for one: these are the rates of the file-system cache"
                .into(),
        );
    }
    warnings
}

impl MetadataResult {
    /// Returns the rate of each operation.
    pub fn operation_rates(&self) -> Vec<OperationRate> {
        let settings = self.plan.settings();
        let rate = |operation: &OperationResult| OperationRate {
            operation: operation.operation.name().into(),
            settings: settings.clone(),
            count: operation.latency.count,
            per_s: operation.rate_per_s,
            interval_95: operation
                .rate_interval_per_s
                .as_ref()
                .map(|interval| [interval.low, interval.high]),
            latency_ns: Some(LatencySummary::from(&operation.latency.histogram)),
            cpu_ns: None,
        };
        self.operations.iter().map(rate).collect()
    }
}
