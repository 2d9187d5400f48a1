//! Runs the iterations: all tasks at the same time.

use super::options::Options;
use super::report;
use super::result::{Kind, MdtestResult, Operation, Phase};
use super::task::{Items, Plan, Reply, Step};
use crate::calendar::month_first;
use crate::display::print;
use crate::tasks::{self, Crew, Error, Member, SpaceOf, Span};
use files::Input;
use machine::Nanos;
use measure::histogram::Histogram;
use results::{Latency, Output};
use std::io::Write;
use std::path::{Path, PathBuf};

const STATUS: Input = Input::new("a status file of mdtest", 4 << 10).rewritten();

pub struct Surroundings<'a> {
    pub space: SpaceOf<'a>,
    /// Seconds since 1970.
    pub now: &'a dyn Fn() -> u64,
}

/// The test's directories.
pub fn files(options: &Options) -> &[PathBuf] {
    &options.directories
}

/// Prints mdtest's report to `out`, also after the user's interrupt. The interrupt and failures
/// remove all items; an earlier test's tree is an error.
pub fn run(
    crew: &mut dyn Crew,
    options: &Options,
    around: &Surroundings<'_>,
    out: &mut dyn Write,
) -> Result<MdtestResult, Error> {
    let members = crew.members().to_vec();
    // An unwritable output is found before the run, not after it.
    status_output(options)?;
    let mut test = Test::new(crew, options, &members);
    // A refusal comes before the report.
    test.check(0)?;
    let (started, first) = (month_first((around.now)()), &options.directories[0]);
    // A directory that is missing is made in the one above.
    let space = first.ancestors().map(|place| match place.as_os_str().is_empty() {
        true => (around.space)(Path::new(".")),
        false => (around.space)(place),
    });
    let space = space.flatten().next();
    print(out, &report::head(options, &members, &started, space))?;
    let mut ended = Ok(());
    for iteration in 0..options.iterations {
        if iteration > 0 && options.delay_s > 0 {
            test.crew.pause(options.delay_s.saturating_mul(1_000_000_000));
        }
        ended = test.iteration(iteration);
        if ended.is_err() {
            break;
        }
        if options.verbose > 0 {
            print(out, &report::iteration(&test.result, iteration))?;
        }
    }
    match ended {
        Err(Error::Lost(why)) => return Err(Error::Lost(why)),
        Err(error) => {
            let _ = test.all(|_| Step::CleanUp, false);
            // The tree goes after all tasks' items.
            let _ = test.all(|_| Step::CleanUp, false);
            if !error.is_interrupt() {
                return Err(error);
            }
            test.result.interrupted = true;
        }
        Ok(()) => {}
    }
    let result = test.result;
    print(out, &report::end(&result, options, &month_first((around.now)())))?;
    Ok(result)
}

fn status_output(options: &Options) -> Result<Option<Output>, Error> {
    let path = options.status_file.as_deref().filter(|_| options.create);
    Ok(path.map(|path| Output::new("-x", path, options.force, &[])).transpose()?)
}

fn status(path: &Path) -> Result<u64, machine::Error> {
    let what = || format!("-x {}", path.display());
    let text = STATUS.text(path).map_err(|error| {
        machine::Error::refused(what(), error.to_string(), "write it with -C -W, or leave it out")
    })?;
    text.trim().parse().map_err(|_| {
        machine::Error::refused(what(), "it is not a number of items", "write it with -C -W")
    })
}

struct Test<'a, C: Crew + ?Sized> {
    crew: &'a mut C,
    options: &'a Options,
    members: &'a [Member],
    items: u64,
    result: MdtestResult,
}

struct Done {
    spans: Vec<Span>,
    counts: Vec<u64>,
    latency: Histogram,
    wrong: u64,
}

impl<'a, C: Crew + ?Sized> Test<'a, C> {
    fn new(crew: &'a mut C, options: &'a Options, members: &'a [Member]) -> Self {
        let (items, _) = options.shares();
        let result = MdtestResult {
            command: options.command.clone(),
            tasks: members.len() as u32,
            hosts: tasks::hosts(members) as u32,
            tasks_per_host: tasks::per_host(members) as u32,
            items,
            ..MdtestResult::default()
        };
        Test { crew, options, members, items, result }
    }

    fn all(&mut self, step: impl Fn(u64) -> Step, together: bool) -> Result<Done, Error> {
        let tasks = (0..self.members.len()).collect();
        self.some(tasks, step, together)
    }

    fn some(
        &mut self,
        tasks: Vec<usize>,
        step: impl Fn(u64) -> Step,
        together: bool,
    ) -> Result<Done, Error> {
        let steps =
            tasks.iter().map(|&task| (task, tasks::Step::Mdtest(step(task as u64)))).collect();
        let replies = self.crew.perform(steps, together)?;
        let mut done =
            Done { spans: Vec::new(), counts: Vec::new(), latency: Histogram::new(), wrong: 0 };
        for tasks::Done { reply, ahead_ns } in replies {
            match reply {
                tasks::Reply::Mdtest(Reply::Ready) => {}
                tasks::Reply::Mdtest(Reply::Done { span, count, latency, wrong }) => {
                    done.spans.push(span.shifted(ahead_ns));
                    done.counts.push(count);
                    done.latency.merge(&latency);
                    done.wrong += wrong;
                }
                _ => return Err(Error::confused()),
            }
        }
        Ok(done)
    }

    fn plan(&self, iteration: u32) -> Plan {
        let options = self.options;
        Plan {
            creates: options.create,
            directories: options.directories.clone(),
            iteration,
            unique: options.unique,
            branch: options.branch.into(),
            depth: options.depth,
            leaf_only: options.leaf_only,
            per_directory: options.shares().1,
            write_bytes: options.write_bytes,
            read_bytes: options.read_bytes,
            sync: options.sync,
            sync_phase: options.sync_phase,
            random: options.random,
            verify: options.verify,
        }
    }

    fn planters(&self) -> Vec<usize> {
        let count = self.members.len();
        if self.options.unique {
            (0..count).collect()
        } else {
            (0..count.min(self.options.directories.len())).collect()
        }
    }

    /// All tasks check their directories before anything is made.
    fn check(&mut self, iteration: u32) -> Result<(), Error> {
        let plan = self.plan(iteration);
        self.result.directories = plan.tree(0).len() as u64;
        self.all(|task| Step::Begin { plan: plan.clone(), task }, false)?;
        self.all(|_| Step::Check, false)?;
        if iteration > 0 {
            return Ok(());
        }
        for directory in self.options.directories.clone() {
            let elsewhere = self.crew.elsewhere(&directory)?;
            if elsewhere.is_empty() {
                continue;
            }
            let why = format!(
                "{} do not see the directory of the first task under this name",
                elsewhere.join(", ")
            );
            let hint = "name a directory on a file system that all see";
            return Err(machine::Error::refused(directory.display().to_string(), why, hint).into());
        }
        Ok(())
    }

    fn iteration(&mut self, iteration: u32) -> Result<(), Error> {
        if iteration > 0 {
            self.check(iteration)?;
        }
        if self.options.create {
            let planters = self.planters();
            let done = self.some(planters, |_| Step::MakeTree, true)?;
            self.keep(None, Operation::Create, iteration, done, None);
        }
        let made = match (self.options.create, &self.options.status_file) {
            (false, Some(path)) => status(path)?.min(self.items),
            _ => self.items,
        };
        for (kind, wanted) in
            [(Kind::Directory, self.options.folders), (Kind::File, self.options.files)]
        {
            if wanted {
                self.kind(kind, iteration, made)?;
            }
        }
        if self.options.remove {
            let planters = self.planters();
            let done = self.some(planters, |_| Step::RemoveTree, true)?;
            self.keep(None, Operation::Remove, iteration, done, None);
        }
        self.all(|_| Step::Keep, false)?;
        Ok(())
    }

    fn kind(&mut self, kind: Kind, iteration: u32, made: u64) -> Result<(), Error> {
        let options = self.options;
        let mut upto = made;
        for operation in Operation::ALL {
            let wanted = match operation {
                Operation::Create => options.create,
                Operation::Stat => options.stat,
                Operation::Read => options.read && kind == Kind::File,
                Operation::Remove => options.remove,
            };
            if !wanted {
                continue;
            }
            let deadline_ns = options
                .deadline_s
                .filter(|_| operation == Operation::Create)
                .map(|seconds| seconds.saturating_mul(1_000_000_000));
            let done = self.items(kind, operation, 0, upto, deadline_ns, true)?;
            let (fewest, most) = (
                done.counts.iter().copied().min().unwrap_or(0),
                done.counts.iter().copied().max().unwrap_or(0),
            );
            if operation != Operation::Create {
                self.keep(Some(kind), operation, iteration, done, None);
                continue;
            }
            let stonewall = (fewest < upto).then_some([fewest, most]);
            let done = if fewest < most { self.catch_up(kind, done, most)? } else { done };
            self.keep(Some(kind), operation, iteration, done, stonewall);
            upto = most;
            if let Some(output) = status_output(options)? {
                output.write(format!("{most}\n").as_bytes())?;
            }
        }
        Ok(())
    }

    /// Lets all tasks make as many items as the fastest.
    fn catch_up(&mut self, kind: Kind, mut done: Done, most: u64) -> Result<Done, Error> {
        let counts = done.counts.clone();
        let step = |task: u64| {
            Step::Items(Items {
                kind,
                operation: Operation::Create,
                of_task: task,
                from: counts[task as usize],
                upto: most,
                deadline_ns: None,
            })
        };
        let rest = self.all(step, false)?;
        for (span, more) in done.spans.iter_mut().zip(&rest.spans) {
            span.to = span.to.max(more.to);
        }
        done.counts = rest.counts;
        done.latency.merge(&rest.latency);
        done.wrong += rest.wrong;
        Ok(done)
    }

    fn items(
        &mut self,
        kind: Kind,
        operation: Operation,
        from: u64,
        upto: u64,
        deadline_ns: Option<Nanos>,
        together: bool,
    ) -> Result<Done, Error> {
        let count = self.members.len() as u64;
        // Each phase works on the items of another task than the one before.
        let phase = match operation {
            Operation::Create => 0,
            Operation::Stat => 1,
            Operation::Read => 2,
            Operation::Remove => 3,
        };
        let shift = self.options.stride * phase;
        let step = |task: u64| {
            let of_task = (task + shift) % count;
            Step::Items(Items { kind, operation, of_task, from, upto, deadline_ns })
        };
        self.all(step, together)
    }

    fn keep(
        &mut self,
        kind: Option<Kind>,
        operation: Operation,
        iteration: u32,
        done: Done,
        stonewall: Option<[u64; 2]>,
    ) {
        let name = Phase::name(kind, operation);
        if done.wrong > 0 {
            self.result.wrong_items += done.wrong;
            self.result.warnings.push(format!(
                "{name}: {} items do not have the size or the data that was written",
                done.wrong
            ));
        }
        if kind.is_some() {
            let times: Vec<Nanos> = done.spans.iter().map(|span| span.ns()).collect();
            let unequal = tasks::unequal(self.members, &name, &done.spans, &times, &done.counts);
            self.result.warnings.extend(unequal);
        }
        self.result.phases.push(Phase {
            kind,
            operation,
            iteration,
            count: done.counts.iter().sum(),
            elapsed_ns: Span::around(done.spans).ns(),
            latency: Latency::of(&done.latency),
            stonewall,
        });
    }
}
