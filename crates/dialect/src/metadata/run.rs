//! The phases, the threads, the clock.

use super::{MetadataPlan, Operation, PlanError};
use crate::postmark::Latency;
use machine::files::{FileArea, FileError, FileId, FileSystem, FileWork};
use measure::histogram::Histogram;
use measure::stats::{Estimate, estimate_values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use workload::Permutation;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The plan cannot be carried out.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// A listing or the attributes do not show what was made.
    #[error("{what} shows {got} where {expected} must be: something else changed the directory during the run, or the file system forgets")]
    Wrong {
        /// What was looked at.
        what: String,
        /// What must be there.
        expected: u64,
        /// What was there.
        got: u64,
    },
    /// Somebody wanted it to end.
    #[error("interrupted; the files of the run were removed and nothing is reported")]
    Interrupted,
}

/// What a metadata run gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetadataResult {
    /// What was asked.
    pub plan: MetadataPlan,
    /// By operation, in the order of a round.
    pub operations: Vec<OperationResult>,
    /// User time of the process over all rounds, all threads.
    pub cpu_user_ns: u64,
    /// System time of the process over all rounds, all threads.
    pub cpu_system_ns: u64,
    /// Bytes that came from block devices, where counted.
    pub device_read_bytes: Option<u64>,
    /// What keeps these figures from being trusted.
    pub warnings: Vec<String>,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationResult {
    /// Which.
    pub operation: Operation,
    /// Operations of one round: files, or directories where these are listed.
    pub count: u64,
    /// Time of the phase in each round.
    pub elapsed_ns: Vec<u64>,
    /// Operations per second, all rounds together.
    pub rate_per_s: f64,
    /// Files gone over per second, all rounds together: more than the rate only for a listing.
    pub files_per_s: f64,
    /// The rate with its 95 % interval over the rounds; `None` with one round.
    pub rate_interval_per_s: Option<Estimate>,
    /// Latency of one operation.
    pub latency: Latency,
}

/// Under this a phase says little.
const SHORT_NS: u64 = 10_000_000;

/// One thread's share of the files and of the directories.
struct Worker<W> {
    work: W,
    files: Range<u32>,
    directories: Range<u32>,
    order: Permutation,
    content: Vec<u8>,
    latency: [Histogram; 6],
}

/// What the threads share.
struct Shared<'a, F> {
    system: &'a F,
    plan: &'a MetadataPlan,
    interrupt: &'a AtomicBool,
    failed: AtomicBool,
}

/// The part of `0..of` that is the `index`-th of `parts`.
fn part(of: u32, index: u32, parts: u32) -> Range<u32> {
    let at = |index: u32| (u64::from(of) * u64::from(index) / u64::from(parts)) as u32;
    at(index)..at(index + 1)
}

impl MetadataPlan {
    fn file(&self, number: u32) -> FileId {
        FileId { location: 0, subdirectory: number % self.directories, number }
    }

    /// The same file under its new name.
    fn renamed(&self, number: u32) -> FileId {
        FileId { number: number + self.files, ..self.file(number) }
    }

    /// Files in a directory.
    fn files_in(&self, directory: u32) -> u64 {
        u64::from((self.files - directory).div_ceil(self.directories))
    }
}

impl<W: FileWork> Worker<W> {
    /// Does one operation on all that is this thread's. Files are made in the order of their numbers and visited in a random one, so that
    /// the order of the directory is no help.
    fn phase<F: FileSystem>(&mut self, operation: Operation, shared: &Shared<'_, F>) -> Result<(), MetadataError> {
        let range = if operation == Operation::List { self.directories.clone() } else { self.files.clone() };
        for place in 0..range.len() as u64 {
            if shared.interrupt.load(Ordering::Relaxed) || shared.failed.load(Ordering::Relaxed) {
                return Err(MetadataError::Interrupted);
            }
            let visited = if matches!(operation, Operation::Create | Operation::List) { place } else { self.order.at(place) };
            let number = range.start + visited as u32;
            self.perform(operation, number, shared).inspect_err(|_| shared.failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    }

    fn perform<F: FileSystem>(&mut self, operation: Operation, number: u32, shared: &Shared<'_, F>) -> Result<(), MetadataError> {
        let plan = shared.plan;
        let began = shared.system.now();
        let (expected, got) = match operation {
            Operation::Create => self.work.create(plan.file(number), &self.content).map(|()| (0, 0)),
            Operation::Stat => self.work.stat(plan.file(number)).map(|bytes| (u64::from(plan.file_bytes), bytes)),
            Operation::Open => self.work.open(plan.file(number)).map(|()| (0, 0)),
            Operation::Rename => self.work.rename(plan.file(number), plan.renamed(number)).map(|()| (0, 0)),
            Operation::List => self.work.list(0, number).map(|files| (plan.files_in(number), files)),
            Operation::Delete => self.work.delete(plan.renamed(number)).map(|()| (0, 0)),
        }?;
        self.latency[operation as usize].record(shared.system.now().saturating_sub(began));
        if got != expected {
            let what = if operation == Operation::List { "the listing of directory" } else { "the size of file" };
            return Err(MetadataError::Wrong { what: format!("{what} {number} in '{}'", plan.location.display()), expected, got });
        }
        Ok(())
    }
}

/// Has all threads do one phase; returns its time.
fn phase<F: FileSystem, W: FileWork + Send>(
    operation: Operation,
    workers: &mut [Worker<W>],
    shared: &Shared<'_, F>,
) -> Result<u64, MetadataError> {
    let began = shared.system.now();
    let (first, others) = workers.split_first_mut().expect("at least one worker");
    std::thread::scope(|scope| {
        let handles: Vec<_> = others.iter_mut().map(|worker| scope.spawn(move || worker.phase(operation, shared))).collect();
        let mut result = first.phase(operation, shared);
        for handle in handles {
            let other = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // A thread that was stopped by another's failure is not what went wrong.
            if matches!(result, Ok(()) | Err(MetadataError::Interrupted)) && other.is_err() {
                result = other;
            }
        }
        result
    })?;
    Ok(shared.system.now().saturating_sub(began))
}

/// Carries out a plan; `progress` hears of each phase before it begins. All files are removed whatever happens.
///
/// # Errors
/// A plan or a location that cannot be used, a failed operation, an interrupt.
pub fn run<F: FileSystem>(
    system: &F,
    plan: &MetadataPlan,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(u32, Operation),
) -> Result<MetadataResult, MetadataError> {
    plan.check()?;
    let area = system.open(&plan.area())?;
    area.make_subdirectories()?;
    let mut workers = (0..plan.threads)
        .map(|index| {
            let files = part(plan.files, index, plan.threads);
            Ok(Worker {
                work: area.work()?,
                order: Permutation::new(files.len() as u64, plan.seed.wrapping_add(u64::from(index))),
                files,
                directories: part(plan.directories, index, plan.threads),
                content: vec![b'x'; plan.file_bytes as usize],
                latency: std::array::from_fn(|_| Histogram::new()),
            })
        })
        .collect::<Result<Vec<_>, FileError>>()?;
    let shared = Shared { system, plan, interrupt, failed: AtomicBool::new(false) };
    let mut elapsed = [const { Vec::new() }; 6];
    let before = system.usage();
    for round in 0..plan.rounds {
        for operation in Operation::ALL {
            progress(round, operation);
            elapsed[operation as usize].push(phase(operation, &mut workers, &shared)?);
        }
    }
    let after = system.usage();
    area.remove_subdirectories()?;
    let operations =
        Operation::ALL.map(|operation| operation_result(plan, operation, &workers, std::mem::take(&mut elapsed[operation as usize])));
    let mut result = MetadataResult {
        plan: plan.clone(),
        operations: operations.into(),
        cpu_user_ns: after.user_ns.saturating_sub(before.user_ns),
        cpu_system_ns: after.system_ns.saturating_sub(before.system_ns),
        device_read_bytes: before.block_bytes.zip(after.block_bytes).map(|(was, is)| is.0.saturating_sub(was.0)),
        warnings: Vec::new(),
    };
    result.warnings = warnings(&result);
    Ok(result)
}

fn operation_result<W>(plan: &MetadataPlan, operation: Operation, workers: &[Worker<W>], elapsed_ns: Vec<u64>) -> OperationResult {
    let mut latency = Histogram::new();
    workers.iter().for_each(|worker| latency.merge(&worker.latency[operation as usize]));
    let count = u64::from(if operation == Operation::List { plan.directories } else { plan.files });
    let rate = |amount: u64, ns: u64| amount as f64 * 1e9 / ns.max(1) as f64;
    let total: u64 = elapsed_ns.iter().sum();
    let rates: Vec<f64> = elapsed_ns.iter().map(|&ns| rate(count, ns)).collect();
    OperationResult {
        operation,
        count,
        rate_per_s: rate(count * u64::from(plan.rounds), total),
        files_per_s: rate(u64::from(plan.files) * u64::from(plan.rounds), total),
        rate_interval_per_s: estimate_values(&rates),
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
        warnings.push(format!("{} took under {limit} ms a round: ask for more files", short.join(", ")));
    }
    if result.device_read_bytes == Some(0) && result.plan.sync == machine::files::FileSync::None {
        warnings.push("nothing came from a device and nothing waited for one: these are the rates of the file-system cache".into());
    }
    warnings
}
