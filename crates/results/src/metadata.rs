use crate::{Latency, LatencySummary, OperationRate};
use machine::Nanos;
use machine::files::{FileSync, FileSystem};
use machine::live::{self, Goal, Reading};
use measure::histogram::Histogram;
use measure::stats::{Estimate, estimate_values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use workload::metadata::{MetadataError, MetadataPlan, Operation, run};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetadataResult {
    pub plan: MetadataPlan,
    /// Number of clients that ran the plan at once.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub clients: u32,
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

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(clients: &u32) -> bool {
    *clients == 1
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationResult {
    pub operation: Operation,
    /// Operations of all clients in one round: files, or directories for a listing.
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
    /// Rate of each of several clients in its own time, in operations per second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_rates_per_s: Vec<f64>,
    /// Processor time of the clients over that of their host's processors, in percent: that of the
    /// host with the lowest share. Absent for a single client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_percent: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rounds {
    /// Of each operation, over all rounds and clients.
    pub latency: Histogram,
    pub elapsed_ns: Vec<Nanos>,
    /// A round that the user ended early.
    pub unfinished_ns: Option<Nanos>,
}

/// Shorter phases are too short to judge.
const SHORT_NS: u64 = 10_000_000;

/// Calls `progress` before each phase. Repeats a run in which the program was stopped. The user's
/// interrupt ends it with the figures so far.
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
    let own = system.warnings().into_iter().chain(left_out.iter().map(ToString::to_string));
    result.warnings.splice(0..0, own);
    Ok(result)
}

fn once<F: FileSystem>(
    system: &F,
    plan: &MetadataPlan,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(u32, Operation),
) -> Result<MetadataResult, MetadataError> {
    let mut latencies: Vec<[Histogram; Operation::ALL.len()]> =
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
    let of_round = plan.operations().map(|one| u64::from(items(plan, one))).sum::<u64>();
    let all = Goal::Requests(of_round.saturating_mul(plan.rounds.into()));
    let _work = live::WORK.begin("files".into(), all);
    let before = system.usage();
    let times = run(system, plan, interrupt, progress, records)?;
    let after = system.usage();
    let rounds = Operation::ALL.map(|operation| {
        let mut latency = Histogram::new();
        latencies.iter().for_each(|thread| latency.merge(&thread[operation as usize]));
        let unfinished = times.unfinished.filter(|one| one.0 == operation);
        Rounds {
            latency,
            elapsed_ns: times.rounds[operation as usize].clone(),
            unfinished_ns: unfinished.map(|one| one.1),
        }
    });
    let mut result = MetadataResult::new(plan, 1, &rounds)?;
    result.cpu_user_ns = after.user_ns.saturating_sub(before.user_ns);
    result.cpu_system_ns = after.system_ns.saturating_sub(before.system_ns);
    result.device_read_bytes =
        before.block_bytes.zip(after.block_bytes).map(|(was, is)| is.0.saturating_sub(was.0));
    result.interrupted = times.unfinished.is_some();
    result.warn();
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

/// Counts a listing once for its directory.
fn items(plan: &MetadataPlan, operation: Operation) -> u32 {
    if operation == Operation::List { plan.directories } else { plan.files }
}

fn operation_result(
    plan: &MetadataPlan,
    clients: u32,
    operation: Operation,
    rounds: &Rounds,
) -> OperationResult {
    let of_each = items(plan, operation);
    // A listing of a shared directory shows the files of all clients.
    let shown = match operation == Operation::List && plan.shared_directory {
        true => f64::from(plan.files) * f64::from(clients),
        false => f64::from(plan.files),
    };
    let count = u64::from(of_each) * u64::from(clients);
    let total = rounds.elapsed_ns.iter().chain(&rounds.unfinished_ns).sum::<u64>();
    let rate_per_s = rounds.latency.count() as f64 * 1e9 / total.max(1) as f64;
    let times: Vec<f64> = rounds.elapsed_ns.iter().map(|&ns| ns as f64).collect();
    OperationResult {
        operation,
        count,
        unfinished_ns: rounds.unfinished_ns,
        rate_per_s,
        files_per_s: rate_per_s * shown / f64::from(of_each.max(1)),
        rate_interval_per_s: estimate_values(&times)
            .and_then(|time| time.rate_of(count as f64 * 1e9)),
        latency: Latency::of(&rounds.latency),
        elapsed_ns: rounds.elapsed_ns.clone(),
        client_rates_per_s: Vec::new(),
        processor_percent: None,
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
    /// Rounds are in the order of [`Operation::ALL`].
    ///
    /// # Errors
    /// No operation has begun.
    pub fn new(
        plan: &MetadataPlan,
        clients: u32,
        rounds: &[Rounds; Operation::ALL.len()],
    ) -> Result<MetadataResult, MetadataError> {
        let operations: Vec<OperationResult> = (Operation::ALL.into_iter().zip(rounds))
            .filter(|(_, rounds)| !rounds.latency.is_empty())
            .map(|(operation, rounds)| operation_result(plan, clients, operation, rounds))
            .collect();
        if operations.is_empty() {
            return Err(MetadataError::Interrupted);
        }
        Ok(MetadataResult {
            plan: plan.clone(),
            clients,
            operations,
            cpu_user_ns: 0,
            cpu_system_ns: 0,
            device_read_bytes: None,
            interrupted: false,
            warnings: Vec::new(),
        })
    }

    /// A client used its own files, but would use another's with more clients.
    pub fn is_served_by_own_cache(&self, operation: Operation) -> bool {
        operation.visits() && self.plan.shift > 0 && !self.plan.visits_others(self.clients)
    }

    pub fn warn(&mut self) {
        let warnings = warnings(self);
        self.warnings.extend(warnings);
    }

    pub fn operation_rates(&self) -> Vec<OperationRate> {
        let mut settings = self.plan.settings();
        if self.clients > 1 {
            settings.push_str(&format!(" --clients {}", self.clients));
        }
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
