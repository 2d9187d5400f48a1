//! Several tasks make their own files and begin every operation at the same time.

use crate::tasks::{self, Crew, Error, Member, Span};
use machine::Nanos;
use machine::files::{FileError, FileSystem, FileUsage};
use measure::histogram::Histogram;
use results::{MetadataResult, Rounds};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use workload::metadata::{ClientFiles, MetadataError, MetadataPlan, Operation, Session};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Step {
    /// Make directories, or join another task's.
    Begin(MetadataPlan, ClientFiles),
    /// Look up, open and read another task's files.
    Visit(ClientFiles),
    Phase(Operation),
    /// Remove the empty directories.
    End,
    /// Remove everything after a failure.
    CleanUp,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reply {
    Ready {
        processors: u32,
        /// The task's directory, which others can join.
        directory: Option<PathBuf>,
    },
    Done {
        span: Span,
        latency: Histogram,
        user_ns: Nanos,
        system_ns: Nanos,
        /// Read from devices by the process, if counted.
        read_bytes: Option<u64>,
    },
}

type Record = Box<dyn FnMut(Operation, Nanos) + Send>;

type Times = Vec<Arc<Mutex<Histogram>>>;

fn no_files() -> machine::Error {
    machine::Error::Unsupported("no files have been made".into())
}

struct Open<'f, S: FileSystem> {
    plan: MetadataPlan,
    session: Session<'f, S, Record>,
    visited: Option<Session<'f, S, Record>>,
    times: Times,
}

/// Dropping it removes its files.
pub struct Task<'f, S: FileSystem> {
    system: &'f S,
    processors: u32,
    interrupt: &'f AtomicBool,
    open: Option<Open<'f, S>>,
}

impl<'f, S: FileSystem> Task<'f, S> {
    /// `processors` are the computer's.
    pub fn new(system: &'f S, processors: u32, interrupt: &'f AtomicBool) -> Self {
        Task { system, processors, interrupt, open: None }
    }

    pub fn perform(&mut self, step: &Step) -> machine::Result<Reply> {
        let mut directory = None;
        match step {
            Step::Begin(plan, files) => {
                let times: Times = (0..plan.threads).map(|_| Arc::default()).collect();
                let session = self.session(plan, files, &times)?;
                directory = session.directory().map(Path::to_owned);
                self.open = Some(Open { plan: plan.clone(), session, visited: None, times });
            }
            Step::Visit(files) => {
                let Some(open) = &self.open else { return Err(no_files()) };
                let visited = self.session(&open.plan, files, &open.times)?;
                if let Some(open) = &mut self.open {
                    open.visited = Some(visited);
                }
            }
            Step::Phase(operation) => return self.phase(*operation),
            Step::End => {
                if let Some(Open { plan, session, .. }) = self.open.take() {
                    session.close().map_err(|error| of_plan(&plan.location, error))?;
                }
            }
            Step::CleanUp => self.open = None,
        }
        Ok(Reply::Ready { processors: self.processors, directory })
    }

    fn session(
        &self,
        plan: &MetadataPlan,
        files: &ClientFiles,
        times: &Times,
    ) -> machine::Result<Session<'f, S, Record>> {
        let record = |times: &Arc<Mutex<Histogram>>| {
            let times = Arc::clone(times);
            Box::new(move |_, ns| {
                times.lock().unwrap_or_else(PoisonError::into_inner).record(ns);
            }) as Record
        };
        let records = times.iter().map(record).collect();
        Session::open(self.system, plan, files, self.interrupt, records)
            .map_err(|error| of_plan(&plan.location, error))
    }

    fn phase(&mut self, operation: Operation) -> machine::Result<Reply> {
        let Some(open) = &mut self.open else { return Err(no_files()) };
        let session = match &mut open.visited {
            Some(visited) if operation.visits() => visited,
            _ => &mut open.session,
        };
        let before = self.system.usage();
        let place = &open.plan.location;
        let span = session.phase(operation).map_err(|error| of_plan(place, error))?;
        let used = since(self.system.usage(), before);
        let mut latency = Histogram::new();
        for times in &open.times {
            let own = &mut *times.lock().unwrap_or_else(PoisonError::into_inner);
            latency.merge(&std::mem::take(own));
        }
        Ok(Reply::Done {
            span: Span { from: span.start, to: span.end },
            latency,
            user_ns: used.user_ns,
            system_ns: used.system_ns,
            read_bytes: used.block_bytes.map(|bytes| bytes.0),
        })
    }
}

fn since(now: FileUsage, before: FileUsage) -> FileUsage {
    FileUsage {
        user_ns: now.user_ns.saturating_sub(before.user_ns),
        system_ns: now.system_ns.saturating_sub(before.system_ns),
        block_bytes: before
            .block_bytes
            .zip(now.block_bytes)
            .map(|(was, is)| (is.0.saturating_sub(was.0), is.1.saturating_sub(was.1))),
    }
}

pub fn of_plan(place: &Path, error: MetadataError) -> machine::Error {
    match error {
        MetadataError::Interrupted => machine::Error::Interrupted,
        MetadataError::File(error) => of_file(place, error),
        error @ MetadataError::Plan(_) => {
            machine::Error::refused("metadata", error.to_string(), "change the options")
        }
        error => machine::Error::Unsupported(error.to_string()),
    }
}

pub fn of_file(place: &Path, error: FileError) -> machine::Error {
    let what = place.display().to_string();
    match error {
        FileError::NoLocation(_) | FileError::NotADirectory(_) | FileError::Engine { .. } => {
            let hint = "name another directory or setting";
            machine::Error::refused(what, error.to_string(), hint)
        }
        FileError::Refused { why, .. } => machine::Error::refused(what, why, "change the setting"),
        error => machine::Error::Unsupported(error.to_string()),
    }
}

#[derive(Debug)]
pub struct Measured {
    /// One for each number of tasks.
    pub results: Vec<MetadataResult>,
    /// Reason for an early end with partial `results`.
    pub ended: Option<Error>,
}

/// Runs a plan with each number of tasks in `counts`, which join in `order`. Calls `progress`
/// before each phase (tasks, round, operation). Fails only before anything is measured.
pub fn run(
    crew: &mut dyn Crew,
    plan: &MetadataPlan,
    counts: &[usize],
    order: &[usize],
    progress: &mut dyn FnMut(usize, u32, Operation),
) -> Result<Measured, Error> {
    let members: Vec<Member> = order.iter().map(|&task| crew.members()[task].clone()).collect();
    let elsewhere = crew.elsewhere(&plan.location)?;
    if !elsewhere.is_empty() {
        let why = format!(
            "{} do not see the directory of the first task under this name",
            elsewhere.join(", ")
        );
        let hint = "name a directory on a file system that all see";
        let place = plan.location.display().to_string();
        return Err(machine::Error::refused(place, why, hint).into());
    }
    let mut results = Vec::new();
    for &count in counts {
        let count = count.min(order.len());
        let mut test = Test::new(crew, plan, &order[..count], &members[..count]);
        let ended = test.rounds(progress);
        if let Some(result) = test.result(matches!(&ended, Err(error) if error.is_interrupt())) {
            results.push(result);
        }
        if let Err(error) = ended {
            if !matches!(error, Error::Lost(_)) {
                // The files go; the reason of the end is already known.
                let _ = test.all(&Step::CleanUp, false);
            }
            if results.is_empty() {
                return Err(error);
            }
            return Ok(Measured { results, ended: Some(error) });
        }
    }
    Ok(Measured { results, ended: None })
}

/// One task, over all rounds.
#[derive(Default, Clone)]
struct Share {
    operations: u64,
    /// After the first task's start.
    late_ns: Nanos,
    time_ns: Nanos,
    processor_ns: Nanos,
}

struct Test<'a, C: Crew + ?Sized> {
    crew: &'a mut C,
    plan: &'a MetadataPlan,
    tasks: &'a [usize],
    /// In the order of `tasks`.
    members: &'a [Member],
    processors: Vec<u32>,
    rounds: [Rounds; Operation::ALL.len()],
    shares: [Vec<Share>; Operation::ALL.len()],
    user_ns: Nanos,
    system_ns: Nanos,
    read_bytes: Option<u64>,
}

impl<'a, C: Crew + ?Sized> Test<'a, C> {
    fn new(
        crew: &'a mut C,
        plan: &'a MetadataPlan,
        tasks: &'a [usize],
        members: &'a [Member],
    ) -> Self {
        Test {
            crew,
            plan,
            tasks,
            members,
            processors: Vec::new(),
            rounds: Default::default(),
            shares: std::array::from_fn(|_| vec![Share::default(); members.len()]),
            user_ns: 0,
            system_ns: 0,
            read_bytes: Some(0),
        }
    }

    fn all(&mut self, step: &Step, together: bool) -> Result<Vec<(Reply, i64)>, Error> {
        let clients = 0..self.members.len() as u32;
        self.steps(clients.map(|client| (client, step.clone())), together)
    }

    /// Clients are indices into `tasks`.
    fn steps(
        &mut self,
        steps: impl IntoIterator<Item = (u32, Step)>,
        together: bool,
    ) -> Result<Vec<(Reply, i64)>, Error> {
        let of = |(client, step)| (self.tasks[client as usize], tasks::Step::Metadata(step));
        let steps: Vec<(usize, tasks::Step)> = steps.into_iter().map(of).collect();
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        let replies = self.crew.perform(steps, together)?;
        replies
            .into_iter()
            .map(|done| match done.reply {
                tasks::Reply::Metadata(reply) => Ok((reply, done.ahead_ns)),
                _ => Err(Error::confused()),
            })
            .collect()
    }

    fn rounds(&mut self, progress: &mut dyn FnMut(usize, u32, Operation)) -> Result<(), Error> {
        self.begin()?;
        for round in 0..self.plan.rounds {
            for operation in self.plan.operations() {
                progress(self.members.len(), round, operation);
                self.phase(operation)?;
            }
        }
        self.all(&Step::End, false).map(drop)
    }

    fn begin(&mut self) -> Result<(), Error> {
        let plan = self.plan;
        let clients = self.members.len() as u32;
        plan.check_clients(clients).map_err(|error| of_plan(&plan.location, error.into()))?;
        let files = |client: u32, directory: &Option<PathBuf>| match plan.shared_directory {
            true => ClientFiles { directory: directory.clone(), client, clients },
            false => ClientFiles { directory: directory.clone(), ..ClientFiles::OWN },
        };
        let makers = if plan.shared_directory { 1 } else { clients };
        let make = |client| Step::Begin(plan.clone(), files(client, &None));
        let mut directories = self.ready((0..makers).map(|client| (client, make(client))))?;
        let shared = directories.first().cloned().flatten();
        let join = |client| (client, Step::Begin(plan.clone(), files(client, &shared)));
        directories.extend(self.ready((makers..clients).map(join))?);
        if plan.visits_others(clients) {
            let visit = |client: u32| {
                let other = plan.visited(client, clients);
                (client, Step::Visit(files(other, &directories[other as usize])))
            };
            let visited: Vec<(u32, Step)> = (0..clients).map(visit).collect();
            self.steps(visited, false)?;
        }
        Ok(())
    }

    fn ready(
        &mut self,
        steps: impl Iterator<Item = (u32, Step)>,
    ) -> Result<Vec<Option<PathBuf>>, Error> {
        let mut directories = Vec::new();
        for (reply, _) in self.steps(steps, false)? {
            let Reply::Ready { processors, directory } = reply else {
                return Err(Error::confused());
            };
            self.processors.push(processors);
            directories.push(directory);
        }
        Ok(directories)
    }

    fn phase(&mut self, operation: Operation) -> Result<(), Error> {
        let replies = self.all(&Step::Phase(operation), true)?;
        let at = operation as usize;
        let mut spans = Vec::new();
        for (task, (reply, ahead_ns)) in replies.into_iter().enumerate() {
            let Reply::Done { span, latency, user_ns, system_ns, read_bytes } = reply else {
                return Err(Error::confused());
            };
            spans.push(span.shifted(ahead_ns));
            let share = &mut self.shares[at][task];
            share.operations += latency.count();
            share.time_ns += span.ns();
            share.processor_ns += user_ns + system_ns;
            self.rounds[at].latency.merge(&latency);
            self.user_ns += user_ns;
            self.system_ns += system_ns;
            self.read_bytes = self.read_bytes.zip(read_bytes).map(|(sum, more)| sum + more);
        }
        let first = spans.iter().map(|span| span.from).min().unwrap_or(0);
        for (share, span) in self.shares[at].iter_mut().zip(&spans) {
            share.late_ns += span.from - first;
        }
        self.rounds[at].elapsed_ns.push(Span::around(spans).ns());
        Ok(())
    }

    /// `None`: no phase is complete.
    fn result(&self, interrupted: bool) -> Option<MetadataResult> {
        let clients = self.members.len() as u32;
        let mut result = MetadataResult::new(self.plan, clients, &self.rounds).ok()?;
        for one in result.operations.iter_mut().filter(|_| clients > 1) {
            let shares = &self.shares[one.operation as usize];
            one.client_rates_per_s = shares
                .iter()
                .map(|share| share.operations as f64 * 1e9 / share.time_ns.max(1) as f64)
                .collect();
            one.processor_percent = self.processor_percent(shares, one.elapsed_ns.iter().sum());
        }
        result.cpu_user_ns = self.user_ns;
        result.cpu_system_ns = self.system_ns;
        result.device_read_bytes = self.read_bytes;
        result.warnings = self.unequal();
        if self.plan.shift > 0 && !self.plan.visits_others(clients) {
            let who = if clients == 1 { "the client looked" } else { "each client looked" };
            result.warnings.push(format!(
                "{who} up, opened and read files of its own, which its cache may have served"
            ));
        }
        result.warn();
        if interrupted {
            result.interrupted = true;
            let phases: usize = self.rounds.iter().map(|rounds| rounds.elapsed_ns.len()).sum();
            let all = self.plan.rounds as usize * self.plan.operations().count();
            result.warnings.push(format!(
                "interrupted after {phases} of {all} phases: the figures are those until then"
            ));
        }
        Some(result)
    }

    fn unequal(&self) -> Vec<String> {
        let of = |operation: Operation| {
            let shares = &self.shares[operation as usize];
            let late = |share: &Share| Span { from: share.late_ns, to: share.late_ns };
            let begins: Vec<Span> = shares.iter().map(late).collect();
            let times: Vec<Nanos> = shares.iter().map(|share| share.time_ns).collect();
            let counts: Vec<u64> = shares.iter().map(|share| share.operations).collect();
            tasks::unequal(self.members, operation.name(), &begins, &times, &counts)
        };
        Operation::ALL.into_iter().flat_map(of).collect()
    }

    /// The share on the computer with the lowest.
    fn processor_percent(&self, shares: &[Share], elapsed_ns: Nanos) -> Option<f64> {
        let of_host = |host: &str| {
            let own = || (0..shares.len()).filter(|&task| self.members[task].host == host);
            let used: u64 = own().map(|task| shares[task].processor_ns).sum();
            let processors = own().find_map(|task| self.processors.get(task)).copied()?;
            let all = elapsed_ns as f64 * f64::from(processors);
            Some(used as f64 / all.max(1.0) * 100.0)
        };
        let percents: Option<Vec<f64>> =
            self.members.iter().map(|member| of_host(&member.host)).collect();
        percents?.into_iter().reduce(f64::min)
    }
}
