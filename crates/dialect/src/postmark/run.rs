use super::result::per_second;
use super::{Config, Interval, Phases, PostmarkResult, Rates};
use machine::files::{FileArea, FileError, FileSystem, FileUsage, FileWork};
use machine::live::{self, Goal, Reading};
use measure::histogram::Histogram;
use results::Latency;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use workload::smallfile::{FileOp, Generator, Phase, PlanError, SmallFileCounts, Step};

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("the system refuses more threads: {0}; ask for fewer, or raise the limit (ulimit -u)")]
    Threads(io::Error),
    #[error(transparent)]
    File(#[from] FileError),
    /// The run's output already says so.
    #[error(
        "out of files after {0} transactions: increase the number of files or decrease the number of transactions"
    )]
    OutOfFiles(u32),
    /// Before the first transaction, with the files created until then.
    #[error(
        "interrupted; the files of the run were removed ({0} were made; the mix had not begun)"
    )]
    Interrupted(u64),
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
}

const SLICES: u32 = 40;

/// The rate of a shorter run means little.
const SHORT_NS: u64 = 1_000_000_000;

/// In the order of the workers' histograms.
const OPERATIONS: [&str; 4] = ["create", "read", "append", "delete"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PhaseEnd {
    Complete,
    OutOfFiles,
    Stopped,
}

/// Walks all operations and executes those on its own files, which stay in order without a lock.
struct Worker<W> {
    index: u32,
    of: u32,
    generator: Generator,
    work: W,
    text: Arc<[u8]>,
    counts: SmallFileCounts,
    latency: [Histogram; 4],
    /// Read and written by all workers, in single precision.
    classic: [f32; 2],
}

struct Shared<'a, F> {
    system: &'a F,
    interrupt: &'a AtomicBool,
    failed: AtomicBool,
}

impl<W: FileWork> Worker<W> {
    fn walk<F: FileSystem>(
        &mut self,
        phase: Phase,
        shared: &Shared<'_, F>,
        transacted: &mut dyn FnMut(u32),
    ) -> Result<PhaseEnd, FileError> {
        while let Some(step) = self.generator.next() {
            match step {
                Step::Do(op) => {
                    match op {
                        FileOp::Read(_, bytes) => self.classic[0] += bytes as f32,
                        FileOp::Create(_, bytes) | FileOp::Append(_, bytes) => {
                            self.classic[1] += bytes as f32
                        }
                        FileOp::Delete(_) => {}
                    }
                    if op.file().number % self.of != self.index {
                        continue;
                    }
                    if shared.interrupt.load(Ordering::Relaxed)
                        || shared.failed.load(Ordering::Relaxed)
                    {
                        return Ok(PhaseEnd::Stopped);
                    }
                    self.perform(op, shared.system)
                        .inspect_err(|_| shared.failed.store(true, Ordering::Relaxed))?;
                    self.counts.count(phase, op);
                }
                Step::Transacted(index) => transacted(index),
                Step::OutOfFiles => return Ok(PhaseEnd::OutOfFiles),
                Step::End(_) => return Ok(PhaseEnd::Complete),
            }
        }
        Ok(PhaseEnd::Complete)
    }

    fn perform<F: FileSystem>(&mut self, op: FileOp, system: &F) -> Result<(), FileError> {
        let began = system.now();
        let kind = match op {
            FileOp::Create(file, bytes) => {
                self.work.create(file, &self.text[..bytes as usize]).map(|()| 0)
            }
            FileOp::Read(file, bytes) => self.work.read(file, u64::from(bytes)).map(|()| 1),
            FileOp::Append(file, bytes) => {
                self.work.append(file, &self.text[..bytes as usize]).map(|()| 2)
            }
            FileOp::Delete(file) => self.work.delete(file).map(|()| 3),
        }?;
        let latency_ns = system.now().saturating_sub(began);
        self.latency[kind].record(latency_ns);
        let bytes = match op {
            FileOp::Create(_, bytes) | FileOp::Append(_, bytes) | FileOp::Read(_, bytes) => {
                u64::from(bytes)
            }
            FileOp::Delete(_) => 0,
        };
        live::REQUESTS.add(Reading { requests: 1, bytes, latency_ns });
        Ok(())
    }
}

/// The first worker prints; the others have their own threads.
fn phase<F: FileSystem, W: FileWork + Send>(
    phase: Phase,
    workers: &mut [Worker<W>],
    shared: &Shared<'_, F>,
    transacted: &mut dyn FnMut(u32),
) -> Result<(PhaseEnd, u64), RunError> {
    let began = shared.system.now();
    let (first, others) = workers.split_first_mut().expect("at least one worker");
    let end = std::thread::scope(|scope| {
        let mut refused = None;
        let mut handles = Vec::new();
        for worker in others {
            let body = move || worker.walk(phase, shared, &mut |_| {}).map_err(RunError::from);
            match std::thread::Builder::new().spawn_scoped(scope, body) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    shared.failed.store(true, Ordering::Relaxed);
                    refused = Some(RunError::Threads(error));
                    break;
                }
            }
        }
        let mut end = match refused {
            Some(error) => Err(error),
            None => first.walk(phase, shared, transacted).map_err(RunError::from),
        };
        for handle in handles {
            let other = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            end = match (end, other) {
                (Err(error), _) | (Ok(_), Err(error)) => Err(error),
                (Ok(PhaseEnd::Stopped), Ok(_)) | (Ok(_), Ok(PhaseEnd::Stopped)) => {
                    Ok(PhaseEnd::Stopped)
                }
                (Ok(end), Ok(_)) => Ok(end),
            };
        }
        end
    })?;
    Ok((end, shared.system.now().saturating_sub(began)))
}

/// Prints the progress, but not the report, as the original does. Always removes all files. The
/// user's interrupt keeps the figures until then; a run during which the program was stopped is
/// silently repeated.
pub fn run<F: FileSystem>(
    system: &F,
    config: &Config,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<PostmarkResult, RunError> {
    let mut reported = false;
    let (mut result, left_out) = measure::retry_if_paused(|| {
        let mut nowhere = io::sink();
        let out: &mut dyn Write =
            if std::mem::replace(&mut reported, true) { &mut nowhere } else { &mut *out };
        let (result, paused) = system.watched(|| once(system, config, interrupt, out));
        Ok::<_, RunError>((result?, paused))
    })?;
    result.warnings.splice(0..0, left_out.iter().map(ToString::to_string));
    Ok(result)
}

fn once<F: FileSystem>(
    system: &F,
    config: &Config,
    interrupt: &AtomicBool,
    out: &mut dyn Write,
) -> Result<PostmarkResult, RunError> {
    let start = Generator::start(&config.plan)?;
    let area = system.open(&config.area())?;
    let mut workers = (0..config.threads.max(1))
        .map(|index| {
            Ok(Worker {
                index,
                of: config.threads.max(1),
                generator: start.generator.clone(),
                work: area.work()?,
                text: start.text.clone(),
                counts: SmallFileCounts::default(),
                latency: std::array::from_fn(|_| Histogram::new()),
                classic: [0.0; 2],
            })
        })
        .collect::<Result<Vec<_>, FileError>>()?;
    let subdirectories = config.plan.subdirectories_used() > 0;
    if subdirectories {
        print(out, "Creating subdirectories...")?;
        let made = area.make_subdirectories(interrupt);
        print(out, if matches!(made, Ok(true)) { "Done\n" } else { "\n" })?;
        if !made? {
            return Err(RunError::Interrupted(0));
        }
    }
    let shared = Shared { system, interrupt, failed: AtomicBool::new(false) };
    let (before, began) = (system.usage(), system.now());
    let _work = live::WORK.begin("files".into(), Goal::Requests(operations(config)));
    let measured = phases(config, &mut workers, &shared, out);
    let total_ns = system.now().saturating_sub(began);
    let after = system.usage();
    if !measured.as_ref().is_ok_and(|measured| measured.end != PhaseEnd::Stopped) {
        // End the unfinished progress line.
        print(out, "\n")?;
    }
    let measured = measured?;
    if subdirectories && measured.end != PhaseEnd::Stopped {
        print(out, "Deleting subdirectories...")?;
        let removed = area.remove_subdirectories(interrupt);
        print(out, if matches!(removed, Ok(true)) { "Done\n" } else { "\n" })?;
        // After an interrupt the area removes what is left; the measurement is complete.
        removed?;
    }
    let counts =
        workers.iter().fold(SmallFileCounts::default(), |sum, worker| sum.plus(&worker.counts));
    match measured.end {
        PhaseEnd::OutOfFiles => return Err(RunError::OutOfFiles(measured.transactions)),
        PhaseEnd::Stopped if measured.transactions == 0 => {
            return Err(RunError::Interrupted(counts.created()));
        }
        PhaseEnd::Stopped | PhaseEnd::Complete => {}
    }
    let measured = Measured { phases: Phases { total_ns, ..measured.phases }, ..measured };
    let mut result = result(config, &workers, counts, &measured, (before, after));
    result.warnings.splice(0..0, system.warnings());
    Ok(result)
}

fn operations(config: &Config) -> u64 {
    2 * (u64::from(config.plan.number) + u64::from(config.plan.transactions))
}

fn print(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

struct Measured {
    phases: Phases,
    /// Time per transaction, in ns.
    slices: Vec<f64>,
    transactions: u32,
    end: PhaseEnd,
}

impl Measured {
    fn stopped(self) -> Measured {
        Measured { end: PhaseEnd::Stopped, ..self }
    }
}

fn phases<F: FileSystem, W: FileWork + Send>(
    config: &Config,
    workers: &mut [Worker<W>],
    shared: &Shared<'_, F>,
    out: &mut dyn Write,
) -> Result<Measured, RunError> {
    let mut measured = Measured {
        phases: Phases::default(),
        slices: Vec::with_capacity(SLICES as usize + 1),
        transactions: 0,
        end: PhaseEnd::Complete,
    };
    print(out, "Creating files...")?;
    let (end, create_ns) = phase(Phase::Create, workers, shared, &mut |_| {})?;
    measured.phases.create_ns = create_ns;
    if end == PhaseEnd::Stopped {
        return Ok(measured.stopped());
    }
    print(out, "Done\nPerforming transactions")?;
    let transactions = config.plan.transactions;
    let (tenth, slice) = ((transactions / 10).max(1), (transactions / SLICES).max(1));
    let mut printed = Ok(());
    let mut last = shared.system.now();
    let (end, transactions_ns) = phase(Phase::Transact, workers, shared, &mut |index| {
        measured.transactions = index + 1;
        if measured.transactions.is_multiple_of(slice) {
            let now = shared.system.now();
            measured.slices.push(now.saturating_sub(last) as f64 / f64::from(slice));
            last = now;
        }
        if index % tenth == 0 && printed.is_ok() {
            printed = print(out, ".");
        }
    })?;
    measured.phases.transactions_ns = transactions_ns;
    if end == PhaseEnd::Stopped {
        return Ok(measured.stopped());
    }
    measured.end = end;
    printed?;
    if end == PhaseEnd::OutOfFiles {
        let advice = "out of files!\nFor this workload, either increase the number of files or\ndecrease the number of transactions.\n";
        print(out, advice)?;
    } else {
        print(out, "Done\n")?;
    }
    print(out, "Deleting files...")?;
    let (deleted, delete_ns) = phase(Phase::Delete, workers, shared, &mut |_| {})?;
    measured.phases.delete_ns = delete_ns;
    if deleted == PhaseEnd::Stopped && end != PhaseEnd::OutOfFiles {
        return Ok(measured.stopped());
    }
    print(out, "Done\n")?;
    Ok(measured)
}

fn result<W>(
    config: &Config,
    workers: &[Worker<W>],
    counts: SmallFileCounts,
    measured: &Measured,
    usage: (FileUsage, FileUsage),
) -> PostmarkResult {
    let phases = measured.phases;
    let mut latency = std::collections::BTreeMap::new();
    for (kind, name) in OPERATIONS.iter().enumerate() {
        let mut all = Histogram::new();
        workers.iter().for_each(|worker| all.merge(&worker.latency[kind]));
        if !all.is_empty() {
            latency.insert((*name).to_string(), Latency::of(&all));
        }
    }
    let (before, after) = usage;
    let cpu_user_ns = after.user_ns.saturating_sub(before.user_ns);
    let cpu_system_ns = after.system_ns.saturating_sub(before.system_ns);
    let device = before
        .block_bytes
        .zip(after.block_bytes)
        .map(|(was, is)| (is.0.saturating_sub(was.0), is.1.saturating_sub(was.1)));
    let transactions = f64::from(measured.transactions);
    // Slices hold equal work, not equal time, so compute the interval for the time per transaction.
    let interval =
        measure::stats::estimate_runs(&[&measured.slices[..]]).filter(|time| time.low > 0.0);
    let mut result = PostmarkResult {
        plan: config.plan.clone(),
        threads: config.threads.max(1),
        engine: config.engine,
        sync: config.sync,
        interrupted_after: (measured.end == PhaseEnd::Stopped).then_some(measured.transactions),
        counts,
        classic_read_bytes: workers[0].classic[0],
        classic_written_bytes: workers[0].classic[1],
        phases,
        rates: Rates {
            transactions_per_s: per_second(transactions, phases.transactions_ns),
            create_alone_per_s: per_second(counts.created_alone as f64, phases.create_ns),
            delete_alone_per_s: per_second(counts.deleted_alone as f64, phases.delete_ns),
            read_bytes_per_s: per_second(counts.read_bytes as f64, phases.total_ns),
            written_bytes_per_s: per_second(counts.written_bytes as f64, phases.total_ns),
        },
        transactions_interval: interval
            .map(|time| Interval { low_per_s: 1e9 / time.high, high_per_s: 1e9 / time.low }),
        latency,
        cpu_user_ns,
        cpu_system_ns,
        cpu_per_transaction_ns: (cpu_user_ns + cpu_system_ns) as f64 / transactions,
        device_read_bytes: device.map(|bytes| bytes.0),
        device_write_bytes: device.map(|bytes| bytes.1),
        warnings: Vec::new(),
    };
    result.warnings = warnings(&result);
    result
}

/// Avoids words that parsers of the original's report look for.
fn warnings(result: &PostmarkResult) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(done) = result.interrupted_after {
        let all = result.plan.transactions;
        warnings.push(format!(
            "interrupted after {done} of {all} steps of the mix: the figures are those until then"
        ));
    }
    if result.phases.transactions_ns < SHORT_NS {
        let ms = result.phases.transactions_ns as f64 / 1e6;
        warnings.push(format!(
            "the mix lasted only {ms:.1} ms, under a second; make it longer for reliable figures"
        ));
    }
    if result.sync == machine::files::FileSync::None {
        warnings.extend(cache_doubt(result));
    }
    warnings
}

fn cache_doubt(result: &PostmarkResult) -> Option<String> {
    let asked = result.counts.read_bytes as f64;
    let from_cache =
        result.device_read_bytes.and_then(|device| results::cached_percent(asked, device as f64));
    match from_cache {
        Some(percent) if percent >= 100.0 => Some(
            "no byte came from a device and nothing waited for one: this is the speed of the file-system cache".into(),
        ),
        Some(percent) if percent > results::CACHED_PERCENT => Some(format!(
            "{percent:.0} % of the bytes read came from no device, and nothing waited for those written: \
             this is in part the speed of the file-system cache"
        )),
        _ if result.counts.written_bytes > 0 => Some(
            "nothing waited for the bytes written to reach a device: their rate is that of the file-system cache"
                .into(),
        ),
        _ => None,
    }
}
