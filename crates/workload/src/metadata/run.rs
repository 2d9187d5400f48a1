//! Timed phases, in threads.

use super::{ClientFiles, MetadataPlan, Operation, PlanError};
use crate::Permutation;
use machine::Nanos;
use machine::files::{FileArea, FileError, FileId, FileSystem, FileWork, directories_below};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("the system refuses more threads: {0}; ask for fewer, or raise the limit (ulimit -u)")]
    Threads(io::Error),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "{what} shows {got} where {expected} must be: something else changed the directory during the run, or the file system forgets"
    )]
    Wrong { what: String, expected: u64, got: u64 },
    #[error("interrupted before the first operation; the files of the run were removed")]
    Interrupted,
}

struct Worker<W, R> {
    work: W,
    files: Range<u32>,
    directories: Range<u32>,
    order: Permutation,
    content: Vec<u8>,
    record: R,
}

struct Shared<'a, F> {
    system: &'a F,
    plan: MetadataPlan,
    files: ClientFiles,
    interrupt: &'a AtomicBool,
    failed: AtomicBool,
}

fn part(of: u32, index: u32, parts: u32) -> Range<u32> {
    let at = |index: u32| (u64::from(of) * u64::from(index) / u64::from(parts)) as u32;
    at(index)..at(index + 1)
}

impl<F> Shared<'_, F> {
    fn file(&self, number: u32) -> FileId {
        // Each client's new names follow its old ones.
        let first = self.files.client * 2 * self.plan.files;
        let subdirectory = number % self.plan.directories;
        FileId { location: 0, subdirectory, number: first + number }
    }

    fn renamed(&self, number: u32) -> FileId {
        let file = self.file(number);
        FileId { number: file.number + self.plan.files, ..file }
    }

    fn entries_in(&self, directory: u32) -> u64 {
        let below = directories_below(directory, self.plan.branch, self.plan.directories).len();
        let of_each = (self.plan.files - directory).div_ceil(self.plan.directories);
        u64::from(of_each) * u64::from(self.files.clients) + below as u64
    }
}

impl<W: FileWork, R: FnMut(Operation, Nanos)> Worker<W, R> {
    /// Creates files in ascending but visits them in random order, so the directory's order does
    /// not help.
    fn phase<F: FileSystem>(
        &mut self,
        operation: Operation,
        shared: &Shared<'_, F>,
    ) -> Result<(), MetadataError> {
        let range = if operation == Operation::List {
            self.directories.clone()
        } else {
            self.files.clone()
        };
        for place in 0..range.len() as u64 {
            if shared.interrupt.load(Ordering::Relaxed) || shared.failed.load(Ordering::Relaxed) {
                return Err(MetadataError::Interrupted);
            }
            let visited = if matches!(operation, Operation::Create | Operation::List) {
                place
            } else {
                self.order.at(place)
            };
            let number = range.start + visited as u32;
            self.perform(operation, number, shared)
                .inspect_err(|_| shared.failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    }

    fn perform<F: FileSystem>(
        &mut self,
        operation: Operation,
        number: u32,
        shared: &Shared<'_, F>,
    ) -> Result<(), MetadataError> {
        let plan = &shared.plan;
        let began = shared.system.now();
        let (expected, got) = match operation {
            Operation::Create => {
                self.work.create(shared.file(number), &self.content).map(|()| (0, 0))
            }
            Operation::Stat => {
                self.work.stat(shared.file(number)).map(|bytes| (u64::from(plan.file_bytes), bytes))
            }
            Operation::Open => self.work.open(shared.file(number)).map(|()| (0, 0)),
            Operation::Read => {
                self.work.read(shared.file(number), u64::from(plan.file_bytes)).map(|()| (0, 0))
            }
            Operation::Rename => {
                self.work.rename(shared.file(number), shared.renamed(number)).map(|()| (0, 0))
            }
            Operation::List => {
                self.work.list(0, number).map(|files| (shared.entries_in(number), files))
            }
            Operation::Delete => self.work.delete(shared.renamed(number)).map(|()| (0, 0)),
        }?;
        (self.record)(operation, shared.system.now().saturating_sub(began));
        if got != expected {
            let what = if operation == Operation::List {
                "the listing of directory"
            } else {
                "the size of file"
            };
            return Err(MetadataError::Wrong {
                what: format!("{what} {number} in '{}'", plan.location.display()),
                expected,
                got,
            });
        }
        Ok(())
    }
}

fn phase<F: FileSystem, W: FileWork + Send, R: FnMut(Operation, Nanos) + Send>(
    operation: Operation,
    workers: &mut [Worker<W, R>],
    shared: &Shared<'_, F>,
) -> Result<Range<Nanos>, MetadataError> {
    let began = shared.system.now();
    let (first, others) = workers.split_first_mut().expect("at least one worker");
    std::thread::scope(|scope| {
        let mut refused = Ok(());
        let mut handles = Vec::new();
        for worker in others {
            let body = move || worker.phase(operation, shared);
            match std::thread::Builder::new().spawn_scoped(scope, body) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    shared.failed.store(true, Ordering::Relaxed);
                    refused = Err(MetadataError::Threads(error));
                    break;
                }
            }
        }
        let mut result = refused.and_then(|()| first.phase(operation, shared));
        for handle in handles {
            let other = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // Report the original failure, not the interruption it causes in other threads.
            if matches!(result, Ok(()) | Err(MetadataError::Interrupted)) && other.is_err() {
                result = other;
            }
        }
        result
    })?;
    Ok(began..shared.system.now())
}

/// Dropping it removes all files.
pub struct Session<'a, F: FileSystem, R> {
    workers: Vec<Worker<<F::Area as FileArea>::Work, R>>,
    area: F::Area,
    shared: Shared<'a, F>,
}

impl<'a, F: FileSystem, R: FnMut(Operation, Nanos) + Send> Session<'a, F, R> {
    /// Makes the directories, or joins another client's. `records` (one per thread) get each
    /// operation's ns.
    pub fn open(
        system: &'a F,
        plan: &MetadataPlan,
        files: &ClientFiles,
        interrupt: &'a AtomicBool,
        records: Vec<R>,
    ) -> Result<Self, MetadataError> {
        plan.check()?;
        plan.check_clients(files.clients)?;
        let area = system.open(&plan.area(files))?;
        if files.directory.is_none() && !area.make_subdirectories(interrupt)? {
            return Err(MetadataError::Interrupted);
        }
        let workers = (0..plan.threads)
            .zip(records)
            .map(|(index, record)| {
                let files = part(plan.files, index, plan.threads);
                Ok(Worker {
                    work: area.work()?,
                    order: Permutation::new(
                        files.len() as u64,
                        plan.seed.wrapping_add(u64::from(index)),
                    ),
                    files,
                    directories: part(plan.directories, index, plan.threads),
                    content: vec![b'x'; plan.file_bytes as usize],
                    record,
                })
            })
            .collect::<Result<Vec<_>, FileError>>()?;
        let (plan, files) = (plan.clone(), files.clone());
        let shared = Shared { system, plan, files, interrupt, failed: AtomicBool::new(false) };
        Ok(Session { workers, area, shared })
    }

    /// `None` if other clients cannot join.
    pub fn directory(&self) -> Option<&Path> {
        self.area.directory()
    }

    /// Returns begin and end on the system's clock. Follow the order of [`Operation::ALL`].
    pub fn phase(&mut self, operation: Operation) -> Result<Range<Nanos>, MetadataError> {
        phase(operation, &mut self.workers, &self.shared)
    }

    pub fn close(self) -> Result<(), MetadataError> {
        if self.shared.files.directory.is_none() {
            // After an interrupt the area removes what is left; the measurement is complete.
            self.area.remove_subdirectories(self.shared.interrupt)?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhaseTimes {
    /// By operation and round.
    pub rounds: [Vec<Nanos>; Operation::ALL.len()],
    /// The interrupted phase and its time.
    pub unfinished: Option<(Operation, Nanos)>,
}

/// Calls `progress` before each phase; `records` (one per thread) get each operation's time. Always
/// removes all files. The user's interrupt ends it with the times until then, an early one with an
/// error.
pub fn run<F: FileSystem, R: FnMut(Operation, Nanos) + Send>(
    system: &F,
    plan: &MetadataPlan,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(u32, Operation),
    records: Vec<R>,
) -> Result<PhaseTimes, MetadataError> {
    let mut session = Session::open(system, plan, &ClientFiles::OWN, interrupt, records)?;
    let mut times = PhaseTimes::default();
    for round in 0..plan.rounds {
        for operation in plan.operations() {
            progress(round, operation);
            let began = system.now();
            match session.phase(operation) {
                Ok(span) => times.rounds[operation as usize].push(span.end - span.start),
                Err(MetadataError::Interrupted) => {
                    times.unfinished = Some((operation, system.now().saturating_sub(began)));
                    return Ok(times);
                }
                Err(error) => return Err(error),
            }
        }
    }
    session.close()?;
    Ok(times)
}
