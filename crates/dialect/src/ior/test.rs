//! One test on all tasks.

use super::options::Tests;
use super::phase::{Done, Part};
use super::result::{Direction, Phase, Stonewall, TaskShare, TestResult};
use super::run::{Surroundings, directory_of, status, status_output};
use super::task::{Access, Accessed, FileEnd, Layout, Reply, Step};
use super::{Format, Options, report};
use crate::display::print;
use crate::tasks::{self, Crew, Error, Member, Span};
use machine::units::show_size;
use machine::{Nanos, OpenAs, Sharing, Wanted};
use measure::histogram::Histogram;
use results::Latency;
use std::io::Write;
use std::path::PathBuf;
use workload::rng;

const DOUBTED_FILES: usize = 8;

pub(super) struct Test<'a, C: Crew + ?Sized> {
    crew: &'a mut C,
    tests: &'a Tests,
    options: &'a Options,
    members: &'a [Member],
    number: usize,
    around: &'a Surroundings<'a>,
    layout: Layout,
    pub(super) result: TestResult,
    pub(super) warnings: Vec<String>,
    pub(super) latencies: Vec<Histogram>,
    /// The shared file's number, while it is held.
    held: Option<u64>,
    /// Number of each task's own file, and its transfers, if written before.
    numbers: Vec<Option<u64>>,
    written: Vec<Option<u64>>,
}

impl<'a, C: Crew + ?Sized> Test<'a, C> {
    pub(super) fn new(
        crew: &'a mut C,
        tests: &'a Tests,
        options: &'a Options,
        members: &'a [Member],
        number: usize,
        around: &'a Surroundings<'a>,
    ) -> Self {
        let layout = Layout {
            tasks: members.len() as u64,
            block_bytes: options.block_bytes,
            transfer_bytes: options.transfer_bytes,
            segments: options.segments,
            per_task: options.per_task,
            random: options.random,
            signature: options.signature.unwrap_or(0),
        };
        let result = TestResult::new(options, &layout, members, (around.now)());
        let none = vec![None; members.len()];
        Test {
            crew,
            tests,
            options,
            members,
            number,
            around,
            layout,
            result,
            warnings: Vec::new(),
            latencies: Vec::new(),
            held: None,
            numbers: none.clone(),
            written: none,
        }
    }

    fn all(
        &mut self,
        step: impl Fn(usize) -> Step,
        together: bool,
    ) -> Result<Vec<(Reply, i64)>, Error> {
        let steps =
            (0..self.members.len()).map(|task| (task, tasks::Step::Ior(step(task)))).collect();
        let replies = self.crew.perform(steps, together)?;
        replies
            .into_iter()
            .map(|done| match done.reply {
                tasks::Reply::Ior(reply) => Ok((reply, done.ahead_ns)),
                _ => Err(Error::confused()),
            })
            .collect()
    }

    fn first(&mut self, step: Step) -> Result<Reply, Error> {
        let done = self.crew.perform(vec![(0, tasks::Step::Ior(step))], false)?;
        match done.into_iter().next().map(|done| done.reply) {
            Some(tasks::Reply::Ior(reply)) => Ok(reply),
            _ => Err(Error::confused()),
        }
    }

    pub(super) fn run(&mut self, out: &mut dyn Write) -> Result<(), Error> {
        let ended = self.repetitions(out);
        // A lost task answers no more, and its files are removed by their own processes.
        if let Err(error) = &ended
            && !matches!(error, Error::Lost(_))
        {
            let _ = self.release(FileEnd::AsItWas);
        }
        if self.options.unique_directory && !matches!(ended, Err(Error::Lost(_))) {
            let _ = self.all(|_| Step::RemoveDirectories, false);
        }
        ended
    }

    fn repetitions(&mut self, out: &mut dyn Write) -> Result<(), Error> {
        let text = self.options.format == Format::Text;
        if text {
            print(out, &report::test(self.number, &self.result, self.options, self.around))?;
        }
        if self.options.dry_run {
            return Ok(());
        }
        if self.options.unique_directory && self.options.write {
            let directories: Vec<PathBuf> = (0..self.members.len())
                .map(|task| directory_of(&self.options.file(task as u64, 0)).to_owned())
                .collect();
            self.all(|task| Step::MakeDirectory(directories[task].clone()), false)?;
        }
        let layout = self.layout.clone();
        self.all(|_| Step::Begin(layout.clone()), false)?;
        let began = (self.around.now)();
        for repetition in 0..self.options.repetitions {
            let passed = (self.around.now)().saturating_sub(began);
            if self.options.max_minutes > 0
                && repetition > 0
                && passed >= self.options.max_minutes * 60
            {
                self.warnings.push(format!(
                    "-T: after {} minutes {repetition} of {} repetitions were done",
                    self.options.max_minutes, self.options.repetitions
                ));
                break;
            }
            let before = self.result.wrong_transfers.unwrap_or(0);
            if self.options.write {
                self.timed(Direction::Write, repetition, text, out)?;
            }
            if self.options.check_write {
                self.verify("-W", repetition)?;
            }
            if self.options.read {
                self.timed(Direction::Read, repetition, text, out)?;
            }
            if self.options.check_read {
                self.verify("-R", repetition)?;
            }
            let wrong = self.result.wrong_transfers.unwrap_or(0) > before;
            let keeps = self.options.keep || (wrong && self.options.keep_with_error);
            self.release(if keeps { FileEnd::Keep } else { FileEnd::Remove })?;
            if wrong && self.options.quit_on_error {
                break;
            }
        }
        Ok(())
    }

    fn directory(&self) -> PathBuf {
        directory_of(&self.options.test_files[0]).to_owned()
    }

    fn wanted(&self, task: usize, repetition: u32, writes: bool) -> Wanted {
        let path = self.options.file(task as u64, repetition);
        let base = &self.options.test_files[task % self.options.test_files.len()];
        let destroy = self.tests.destroy.iter().any(|named| *named == path || named == base);
        let sharing = match self.held {
            Some(number) if writes && task > 0 && !self.layout.per_task => {
                let here = |one: &&Member| one.process_space == self.members[task].process_space;
                let processes = self.members.iter().filter(here).map(|one| one.process).collect();
                Some(Sharing::Joins { number, processes })
            }
            _ => None,
        };
        Wanted { path, writes, destroy, sharing, number: None }
    }

    /// Looks at the files of this process's tasks; the others' are made the same way.
    fn doubt_files(&mut self) {
        let tasks = if self.layout.per_task { self.members.len().min(DOUBTED_FILES) } else { 1 };
        let files = (0..tasks as u64).map(|task| self.options.file(task, 0));
        let doubt = files.filter_map(|file| (self.around.doubt)(&file)).next();
        self.warnings.extend(doubt);
    }

    /// Asks all tasks before anything is written.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        let files = if self.options.multi_file { self.options.repetitions } else { 1 };
        let writes = self.options.write;
        let directory = self.directory();
        let of = |this: &Self, task: usize| {
            let checks = this.layout.per_task || task == 0;
            // Only the first makes a file that all share.
            let wanted = (0..files).filter(|_| checks && !this.options.unique_directory);
            wanted.map(|repetition| this.wanted(task, repetition, writes)).collect::<Vec<_>>()
        };
        let wanted: Vec<Vec<Wanted>> = (0..self.members.len()).map(|task| of(self, task)).collect();
        let step = |task: usize| Step::Check {
            wanted: wanted[task].clone(),
            directory: directory.clone(),
        };
        let replies = self.all(step, false)?;
        let elsewhere = self.crew.elsewhere(&directory)?;
        if !elsewhere.is_empty() {
            let names = elsewhere.join(", ");
            if !self.layout.per_task {
                let why =
                    format!("{names} do not see the directory of the first task under this name");
                let hint = "name a directory on a file system that all see, or use -F";
                return Err(
                    machine::Error::refused(directory.display().to_string(), why, hint).into()
                );
            }
            self.warnings.push(format!(
                "{names} do not see the first task's directory: these are several file systems, and the sum of their rates is not the rate of one server"
            ));
        }
        if !writes {
            self.doubt_files();
        }
        // With a deadline the amount is not known.
        if !writes || self.options.deadline_s.is_some() {
            return Ok(());
        }
        let each = self.layout.task_bytes().saturating_mul(files.into());
        let one_system = elsewhere.is_empty();
        let tasks = if one_system { self.layout.tasks } else { 1 };
        let needed = each.saturating_mul(tasks);
        let checked = replies.iter().filter_map(|(reply, _)| match reply {
            Reply::Checked { free_bytes, there_bytes } => Some((*free_bytes, *there_bytes)),
            _ => None,
        });
        let there: u64 = checked.clone().map(|(_, there)| there).sum();
        for (task, (free, own)) in checked.enumerate() {
            let there = if one_system { there } else { own };
            let Some(free) = free.filter(|free| free.saturating_add(there) < needed) else {
                continue;
            };
            let why = format!(
                "{} do not fit into the {} that {} finds free",
                show_size(needed),
                show_size(free),
                tasks::name(self.members, task)
            );
            let hint = "free some space, or give smaller -b or -s; nothing was written";
            return Err(machine::Error::refused(directory.display().to_string(), why, hint).into());
        }
        Ok(())
    }

    fn timed(
        &mut self,
        direction: Direction,
        repetition: u32,
        text: bool,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        if self.options.delay_s > 0 {
            self.crew.pause(self.options.delay_s.saturating_mul(1_000_000_000));
        }
        let done = self.phase(direction, repetition, false)?;
        let phase = self.summed(direction, repetition, done);
        if text {
            print(out, &report::row(&phase, self.options))?;
        }
        self.result.phases.push(phase);
        Ok(())
    }

    fn verify(&mut self, option: &str, repetition: u32) -> Result<(), Error> {
        let done = self.phase(Direction::Read, repetition, true)?;
        let wrong: u64 = done.tasks.iter().map(|one| one.wrong).sum();
        *self.result.wrong_transfers.get_or_insert(0) += wrong;
        for (task, one) in done.tasks.iter().enumerate().filter(|(_, one)| one.wrong > 0) {
            self.warnings.push(format!(
                "{option}: {} read wrong data in {} of {} transfers of repetition {repetition}",
                tasks::name(self.members, task),
                one.wrong,
                one.transfers
            ));
        }
        Ok(())
    }

    /// Whose data this task reads.
    fn source(&self, task: usize, repetition: u32) -> usize {
        let count = self.members.len();
        let offset = self.options.task_offset as usize;
        let others = tasks::per_host(self.members);
        let apart = if tasks::hosts(self.members) > 1 { offset * others } else { offset };
        let shift = if self.options.reorder_random {
            let each = if self.options.reorder_seed < 0 { u64::from(repetition) } else { 0 };
            let seed = self.options.reorder_seed as u64 ^ each;
            let least = apart.min(count - 1);
            least + rng::below(rng::hash(seed, 1), (count - least) as u64) as usize
        } else if self.options.reorder {
            apart
        } else {
            0
        };
        (task + shift) % count
    }

    fn parts(&self, writes: bool) -> Vec<Part> {
        let part = |opens, transfers, closes| Part { opens, transfers, closes };
        let twice = writes && self.options.wear_out;
        match (self.options.barriers, twice) {
            (false, false) => vec![part(true, true, true)],
            (false, true) => vec![part(true, true, false), part(false, true, true)],
            (true, false) => {
                vec![part(true, false, false), part(false, true, false), part(false, false, true)]
            }
            (true, true) => vec![
                part(true, false, false),
                part(false, true, false),
                part(false, true, false),
                part(false, false, true),
            ],
        }
    }

    fn phase(
        &mut self,
        direction: Direction,
        repetition: u32,
        verify: bool,
    ) -> Result<Done, Error> {
        let writes = direction == Direction::Write;
        let shares = !self.layout.per_task && self.members.len() > 1;
        let mut hold_ns = 0;
        let empty = writes && !self.options.existing;
        if writes && shares && self.held.is_none() {
            let wanted =
                Wanted { sharing: Some(Sharing::Holds), ..self.wanted(0, repetition, true) };
            let Reply::Held { number, span } = self.first(Step::Hold { wanted, empty })? else {
                return Err(Error::confused());
            };
            self.held = Some(number);
            hold_ns = span.ns();
        }
        let deadline_ns = self
            .options
            .deadline_s
            .filter(|_| !verify)
            .map(|seconds| seconds.saturating_mul(1_000_000_000));
        let mut limit = self.options.wear_out_iterations.unwrap_or(u64::MAX);
        if let (false, Some(path)) = (self.options.write, &self.options.status_file) {
            limit = limit.min(status(path)?);
        }
        let sources: Vec<usize> = (0..self.members.len())
            .map(|task| if writes { task } else { self.source(task, repetition) })
            .collect();
        let accesses: Vec<Access> = (sources.iter().enumerate())
            .map(|(task, &source)| {
                let mut wanted = self.wanted(source, repetition, writes);
                if writes {
                    wanted = self.wanted(task, repetition, true);
                } else if let Some(number) = self.numbers[source].or(self.held) {
                    wanted.number = Some(number);
                }
                Access {
                    wanted,
                    of_task: source as u64,
                    open_as: OpenAs {
                        writes,
                        direct: self.options.direct,
                        empty: empty && !shares,
                    },
                    opens: false,
                    upto: Some(if writes { limit } else { self.written[source].unwrap_or(limit) }),
                    deadline_ns,
                    sync_each: writes && self.options.fsync_each,
                    sync: writes && self.options.fsync,
                    verify,
                    closes: false,
                }
            })
            .collect();
        // Checks of files that are there are not part of the phase.
        let only_existing = writes && !shares;
        let takes =
            |task: usize| Step::Take { wanted: accesses[task].wanted.clone(), only_existing };
        self.all(takes, false)?;
        let parts = self.parts(writes);
        let mut done = Done::of(hold_ns);
        for (place, part) in parts.iter().enumerate() {
            let again = done.stonewall.is_some();
            let most = done.stonewall.map_or(0, |wall| wall.most);
            let last = !parts[place + 1..].iter().any(|part| part.transfers);
            let step = |task: usize| {
                let access = accesses[task].clone();
                Step::Access(Access {
                    opens: part.opens,
                    closes: part.closes,
                    upto: match (part.transfers, again) {
                        (false, _) => None,
                        (true, true) => Some(most),
                        (true, false) => access.upto,
                    },
                    deadline_ns: access.deadline_ns.filter(|_| !again),
                    sync: access.sync && last,
                    ..access
                })
            };
            // Barriers are for all parts; the rest of a phase follows at once.
            let together = place == 0 || self.options.barriers;
            let replies = self.all(step, together)?;
            let mut these = Vec::new();
            for (reply, ahead_ns) in replies {
                let Reply::Accessed(one) = reply else { return Err(Error::confused()) };
                these.push(Accessed {
                    open: one.open.shifted(ahead_ns),
                    transfer: one.transfer.shifted(ahead_ns),
                    close: one.close.shifted(ahead_ns),
                    ..one
                });
            }
            if part.transfers && deadline_ns.is_some() && !again {
                done.stonewall = self.stonewall(&these);
            }
            done.add(these, *part);
        }
        if writes {
            for (task, one) in done.tasks.iter().enumerate() {
                (self.numbers[task], self.written[task]) = (Some(one.number), Some(one.transfers));
            }
            let most = done.tasks.iter().map(|one| one.transfers).max().unwrap_or(0);
            if let Some(output) = status_output(self.options, self.tests, self.members.len())? {
                output.write(format!("{most}\n").as_bytes())?;
            }
            self.check_size(&done.tasks);
        }
        Ok(done)
    }

    /// `None`: all were done before the deadline.
    fn stonewall(&self, tasks: &[Accessed]) -> Option<Stonewall> {
        let of = |tasks: &[Accessed]| tasks.iter().map(|one| one.transfers).collect::<Vec<_>>();
        let counts = of(tasks);
        let (fewest, most) = (counts.iter().min()?, counts.iter().max()?);
        if *fewest == self.layout.transfers() {
            return None;
        }
        Some(Stonewall {
            after_ns: Span::around(tasks.iter().map(|one| one.transfer)).ns(),
            fewest: *fewest,
            most: *most,
            bytes: counts.iter().sum::<u64>() * self.layout.transfer_bytes,
        })
    }

    fn check_size(&mut self, done: &[Accessed]) {
        let whole = self.layout.transfers();
        if done.iter().any(|one| one.transfers < whole) {
            return;
        }
        let tasks = if self.layout.per_task { 1 } else { self.layout.tasks };
        let expected = self.layout.task_bytes() * tasks;
        // The last one to look at a shared file sees it whole.
        let seen = |one: &Accessed| one.file_bytes;
        let least = if self.layout.per_task {
            done.iter().map(seen).min()
        } else {
            done.iter().map(seen).max()
        };
        if let Some(bytes) = least.filter(|&bytes| bytes < expected) {
            self.warnings.push(format!(
                "a file has {}, but {} were written",
                show_size(bytes),
                show_size(expected)
            ));
        }
    }

    fn summed(&mut self, direction: Direction, repetition: u32, done: Done) -> Phase {
        let all = &done.tasks;
        let transfers: u64 = all.iter().map(|one| one.transfers).sum();
        let mut latency = Histogram::new();
        all.iter().for_each(|one| latency.merge(&one.latency));
        let amounts: Vec<u64> = all.iter().map(|one| one.transfers).collect();
        let unequal =
            tasks::unequal(self.members, direction.name(), &done.begins, &done.times_ns, &amounts);
        self.warnings.extend(unequal);
        self.outliers(direction, &done.times_ns);
        let first = done.begins.iter().map(|span| span.from).min().unwrap_or(0);
        let by_task = (all.iter().enumerate())
            .map(|(task, one)| TaskShare {
                task: task as u32,
                host: self.members[task].host.clone(),
                bytes: one.transfers * self.layout.transfer_bytes,
                total_ns: done.times_ns[task],
                began_late_ns: done.begins[task].from.saturating_sub(first),
            })
            .collect();
        let phase = Phase {
            direction,
            repetition,
            bytes: transfers * self.layout.transfer_bytes,
            transfers,
            open_ns: done.open_ns,
            transfer_ns: done.transfer_ns,
            close_ns: done.close_ns,
            total_ns: done.total_ns,
            latency: Latency::of(&latency),
            stonewall: done.stonewall,
            by_task,
        };
        self.latencies.push(latency);
        phase
    }

    fn outliers(&mut self, direction: Direction, times_ns: &[Nanos]) {
        let limit = self.options.outlier_s as f64;
        if limit == 0.0 {
            return;
        }
        let times: Vec<f64> = times_ns.iter().map(|&ns| tasks::seconds(ns)).collect();
        let (mean, _) = super::result::mean_and_deviation(&times);
        for (task, time) in
            times.iter().enumerate().filter(|(_, time)| (**time - mean).abs() > limit)
        {
            self.warnings.push(format!(
                "-j: {} of {}: {time:.3} s, and the mean is {mean:.3} s",
                direction.name(),
                tasks::name(self.members, task)
            ));
        }
    }

    /// Joined files come first: the holder can mark only a file that no other process has open.
    fn release(&mut self, end: FileEnd) -> Result<(), Error> {
        if self.held.is_some() {
            self.all(|_| Step::Release { all: false, end: FileEnd::AsItWas }, false)?;
        }
        self.all(|_| Step::Release { all: true, end }, false)?;
        self.held = None;
        self.numbers.fill(None);
        if end != FileEnd::Keep {
            self.written.fill(None);
        }
        Ok(())
    }
}
