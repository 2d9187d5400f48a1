//! Tasks of IOR, mdtest and `halfpower metadata`. The first sends [`Step`]s through a [`Crew`];
//! each task answers with a [`Reply`].

use crate::{ior, mdtest, metadata};
use machine::files::FileSystem;
use machine::units::{GIB, MIB, show_time};
use machine::{FileSystemSpace, Nanos, TaskFiles};
use results::{OutputError, SLOW_SHARE};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::AtomicBool;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub host: String,
    /// Shared by tasks that see one another's processes.
    pub process_space: String,
    pub process: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Step {
    Ior(ior::Step),
    Mdtest(mdtest::Step),
    Metadata(metadata::Step),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reply {
    Ior(ior::Reply),
    Mdtest(mdtest::Reply),
    Metadata(metadata::Reply),
}

#[derive(Debug, Clone)]
pub struct Done {
    pub reply: Reply,
    /// The task's clock minus the first task's.
    pub ahead_ns: i64,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Machine(#[from] machine::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("{message}")]
    Tasks {
        message: String,
        /// The command line is at fault, not the measurement.
        usage: bool,
    },
    /// Tasks that have ended; no other can go on.
    #[error("{0}")]
    Lost(String),
}

impl Error {
    /// The exit code is then 2.
    pub fn is_usage(&self) -> bool {
        match self {
            Error::Machine(error) => error.is_usage(),
            Error::Output(error) => matches!(error, OutputError::Refused { .. }),
            Error::Tasks { usage, .. } => *usage,
            Error::Lost(_) => false,
        }
    }

    pub fn is_interrupt(&self) -> bool {
        matches!(self, Error::Machine(machine::Error::Interrupted))
    }

    pub(crate) fn confused() -> Error {
        let message = "a task answered another question; this is a fault of halfpower".into();
        Error::Tasks { message, usage: false }
    }
}

/// All tasks of a command.
pub trait Crew {
    /// At least one, by number.
    fn members(&self) -> &[Member];

    /// Does steps (`together`: at the same time) and returns the replies in their order.
    fn perform(&mut self, steps: Vec<(usize, Step)>, together: bool) -> Result<Vec<Done>, Error>;

    /// Tasks that do not see this task's directory under that name. Makes a file there.
    fn elsewhere(&mut self, directory: &Path) -> Result<Vec<String>, Error>;

    fn pause(&mut self, for_ns: Nanos);
}

#[derive(Debug)]
pub struct Access<'f, F, S> {
    pub files: &'f F,
    pub system: &'f S,
    pub interrupt: &'f AtomicBool,
}

impl<F, S> Clone for Access<'_, F, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F, S> Copy for Access<'_, F, S> {}

pub struct Worker<'f, F: TaskFiles, S: FileSystem> {
    access: Access<'f, F, S>,
    ior: Option<ior::Task<'f, F>>,
    mdtest: Option<mdtest::Task<'f, F>>,
    metadata: Option<metadata::Task<'f, S>>,
}

impl<'f, F: TaskFiles, S: FileSystem> Worker<'f, F, S> {
    pub fn new(access: Access<'f, F, S>) -> Self {
        Worker { access, ior: None, mdtest: None, metadata: None }
    }

    /// `start` is common, on this computer's clock.
    pub fn perform(&mut self, step: &Step, start: Option<Nanos>) -> machine::Result<Reply> {
        let Access { files, system, interrupt } = self.access;
        match step {
            Step::Ior(step) => {
                let task = self.ior.get_or_insert_with(|| ior::Task::new(files));
                task.perform(step, start).map(Reply::Ior)
            }
            Step::Mdtest(step) => {
                let task = self.mdtest.get_or_insert_with(|| mdtest::Task::new(files));
                task.perform(step, start).map(Reply::Mdtest)
            }
            Step::Metadata(step) => {
                let task = self.metadata.get_or_insert_with(|| {
                    let processors = std::thread::available_parallelism();
                    let processors = processors.map_or(1, |count| count.get() as u32);
                    metadata::Task::new(system, processors, interrupt)
                });
                if let Some(start) = start {
                    files.wait_until(start);
                }
                task.perform(step).map(Reply::Metadata)
            }
        }
    }
}

/// One task, in this process.
pub struct Alone<'f, F: TaskFiles, S: FileSystem> {
    worker: Worker<'f, F, S>,
    member: Member,
}

impl<'f, F: TaskFiles, S: FileSystem> Alone<'f, F, S> {
    pub fn new(access: Access<'f, F, S>, host: String) -> Self {
        let member = Member { host, process_space: String::new(), process: std::process::id() };
        Alone { worker: Worker::new(access), member }
    }
}

impl<F: TaskFiles, S: FileSystem> Crew for Alone<'_, F, S> {
    fn members(&self) -> &[Member] {
        std::slice::from_ref(&self.member)
    }

    fn perform(&mut self, steps: Vec<(usize, Step)>, _together: bool) -> Result<Vec<Done>, Error> {
        let done = |(_, step): (usize, Step)| {
            Ok(Done { reply: self.worker.perform(&step, None)?, ahead_ns: 0 })
        };
        steps.into_iter().map(done).collect()
    }

    fn elsewhere(&mut self, _directory: &Path) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn pause(&mut self, for_ns: Nanos) {
        let files = self.worker.access.files;
        files.wait_until(files.now().saturating_add(for_ns));
    }
}

/// On the task's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Span {
    pub from: Nanos,
    pub to: Nanos,
}

impl Span {
    pub(crate) fn of<F: TaskFiles, T>(
        files: &F,
        work: impl FnOnce() -> machine::Result<T>,
    ) -> machine::Result<(T, Span)> {
        let from = files.now();
        let done = work()?;
        Ok((done, Span { from, to: files.now() }))
    }

    pub(crate) fn shifted(self, ahead_ns: i64) -> Span {
        let shifted = |time: Nanos| time.saturating_add_signed(ahead_ns.saturating_neg());
        Span { from: shifted(self.from), to: shifted(self.to) }
    }

    /// Empty without spans.
    pub(crate) fn around(spans: impl IntoIterator<Item = Span>) -> Span {
        let all = spans
            .into_iter()
            .reduce(|all, one| Span { from: all.from.min(one.from), to: all.to.max(one.to) });
        all.unwrap_or_default()
    }

    pub(crate) fn ns(self) -> Nanos {
        self.to.saturating_sub(self.from)
    }
}

pub type SpaceOf<'a> = &'a dyn Fn(&Path) -> Option<FileSystemSpace>;

pub(crate) struct SpaceWords {
    pub(crate) capacity: String,
    pub(crate) used: String,
    pub(crate) inodes: String,
    pub(crate) used_inodes: String,
}

impl SpaceWords {
    pub(crate) fn of(space: FileSystemSpace) -> SpaceWords {
        let gib = space.bytes as f64 / GIB as f64;
        let used = |all: u64, free: u64| {
            let share = all.saturating_sub(free) as f64 / all.max(1) as f64;
            format!("{:.1}%", share * 100.0)
        };
        SpaceWords {
            capacity: match gib {
                1024.0.. => format!("{:.1} TiB", gib / 1024.0),
                _ => format!("{gib:.1} GiB"),
            },
            used: used(space.bytes, space.free_bytes),
            inodes: format!("{:.1} Mi", space.files as f64 / MIB as f64),
            used_inodes: used(space.files, space.free_files),
        }
    }

    pub(crate) fn line(&self) -> String {
        let SpaceWords { capacity, used, inodes, used_inodes } = self;
        format!(
            "FS                  : {capacity}   Used FS: {used}   Inodes: {inodes}   Used Inodes: {used_inodes}\n"
        )
    }
}

pub(crate) fn seconds(ns: Nanos) -> f64 {
    ns as f64 / 1e9
}

/// A task may begin this share of a phase late.
const LATE_SHARE: f64 = 0.01;

/// A scheduler may cause shorter delays.
const LATE_NS: Nanos = 5_000_000;

pub(crate) fn name(members: &[Member], task: usize) -> String {
    format!("task {task} ({})", members[task].host)
}

/// Warns of late and slow tasks. `begins` are on one clock; each task did `amounts` in `times_ns`.
pub(crate) fn unequal(
    members: &[Member],
    phase: &str,
    begins: &[Span],
    times_ns: &[Nanos],
    amounts: &[u64],
) -> Vec<String> {
    let mut warnings = Vec::new();
    let first = begins.iter().map(|span| span.from).min().unwrap_or(0);
    let longest = times_ns.iter().copied().max().unwrap_or(0).max(1);
    for (task, span) in begins.iter().enumerate() {
        let late = span.from.saturating_sub(first);
        let share = late as f64 / longest as f64;
        if share > LATE_SHARE && late > LATE_NS {
            warnings.push(format!(
                "{phase}: {} began {} ({:.0} % of the time) after the first",
                name(members, task),
                show_time(late as f64),
                share * 100.0
            ));
        }
    }
    let rates: Vec<f64> = (times_ns.iter().zip(amounts))
        .map(|(&time, &amount)| amount as f64 / time.max(1) as f64)
        .collect();
    let mut sorted = rates.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    if rates.len() < 3 || median == 0.0 {
        return warnings;
    }
    for (task, &rate) in rates.iter().enumerate().filter(|(_, rate)| **rate < median * SLOW_SHARE) {
        // A short phase says little about a task.
        if times_ns[task] as f64 - amounts[task] as f64 / median < LATE_NS as f64 {
            continue;
        }
        warnings.push(format!(
            "{phase}: {} is slow: it reaches {:.0} % of the tasks' median rate",
            name(members, task),
            rate / median * 100.0
        ));
    }
    warnings
}

/// Tasks that share the first one's page cache.
pub(crate) fn per_host(members: &[Member]) -> usize {
    members.iter().filter(|one| one.host == members[0].host).count()
}

pub(crate) fn hosts(members: &[Member]) -> usize {
    let mut names: Vec<&str> = members.iter().map(|one| one.host.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(count: usize) -> Vec<Member> {
        (0..count)
            .map(|task| Member {
                host: format!("h{task}"),
                process_space: String::new(),
                process: 1,
            })
            .collect()
    }

    #[test]
    fn late_and_slow_tasks_are_named() {
        let span = |from: u64, to: u64| Span { from: from * 1_000_000, to: to * 1_000_000 };
        let spans = [span(0, 1000), span(300, 1000), span(0, 1000)];
        let times = spans.map(Span::ns);
        let said = unequal(&members(3), "write", &spans, &times, &[100, 70, 40]);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("task 1 (h1) began 300 ms (30 %"), "{said:?}");
        assert!(said[1].contains("task 2 (h2) is slow: it reaches 40 %"), "{said:?}");
        assert!(unequal(&members(2), "write", &spans[..1], &times[..1], &[7]).is_empty());
        let short = [3_000_000, 1_000_000, 1_000_000];
        assert!(unequal(&members(3), "write", &[], &short, &[10, 10, 10]).is_empty());
    }

    #[test]
    fn spans_of_another_clock_are_shifted() {
        let there = Span { from: 5_000, to: 6_000 };
        assert_eq!(there.shifted(4_000), Span { from: 1_000, to: 2_000 });
        assert_eq!(there.shifted(-4_000), Span { from: 9_000, to: 10_000 });
        let both = Span::around([there, Span { from: 1_000, to: 5_500 }]);
        assert_eq!((both.from, both.ns()), (1_000, 5_000));
    }
}
