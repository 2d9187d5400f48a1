//! Runs a plan on a machine.

use super::arrange::{Arrangement, ClonePlan, FilePlan};
use super::error::FioError;
use super::flow::{Flow, FlowGroup};
use super::histlog::HistogramLog;
use super::iolog::{Guide, Player, Writes};
use super::options::{ExitWhat, FioEngine};
use super::pacing::Exit;
use super::plan::{Job, Plan};
use super::record::{BySide, Record, SIDES, SPREAD_NS, by_side};
use super::recorder::Recorder;
use super::result::{CloneResult, FioResult, GroupResult, JobError, JobResult, Recorded};
use super::steady::Watch;
use super::translate;
use super::verify::{Reader, VerifyStats};
use crate::parse::is_twin;
use machine::{
    Access, Buffers, Machine, Nanos, OnFailure, Part, Pause, RequestSource, RunOptions, TargetFacts, TargetKind,
    TargetSpec, Usage,
};
use measure::histogram::Histogram;
use measure::{Stream, gather, streams};
use results::Point;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use workload::{Cursor, Pattern, Sequence, Workload};

/// What the kernel counted of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Changes of context.
    pub context_switches: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Page faults that needed none.
    pub minor_faults: u64,
}

/// What one device did, by reads and writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskUse {
    /// Its name.
    pub name: String,
    /// Requests completed.
    pub requests: [u64; 2],
    /// Sectors of 512 bytes.
    pub sectors: [u64; 2],
    /// Requests merged.
    pub merges: [u64; 2],
    /// Milliseconds that requests took together.
    pub ticks_ms: [u64; 2],
    /// Milliseconds that all requests took together.
    pub queue_ms: u64,
    /// Milliseconds with at least one request in flight.
    pub busy_ms: u64,
}

/// What fio reports beyond a machine's [`Usage`].
pub trait Surroundings {
    /// What the kernel has counted of this process so far.
    fn counts(&self) -> Counts;
    /// What these devices have done so far; those that do not count are left out.
    fn disks(&self, names: &[String]) -> Vec<DiskUse>;
    /// Milliseconds since 1970.
    fn unix_ms(&self) -> u64;
}

impl Counts {
    fn since(self, before: Counts) -> Counts {
        Counts {
            context_switches: self.context_switches.saturating_sub(before.context_switches),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
        }
    }
}

impl DiskUse {
    fn since(&self, before: &DiskUse) -> DiskUse {
        let less = |now: [u64; 2], then: [u64; 2]| [now[0].saturating_sub(then[0]), now[1].saturating_sub(then[1])];
        DiskUse {
            name: self.name.clone(),
            requests: less(self.requests, before.requests),
            sectors: less(self.sectors, before.sectors),
            merges: less(self.merges, before.merges),
            ticks_ms: less(self.ticks_ms, before.ticks_ms),
            queue_ms: self.queue_ms.saturating_sub(before.queue_ms),
            busy_ms: self.busy_ms.saturating_sub(before.busy_ms),
        }
    }
}

/// Refuses what this machine cannot do, before anything is written.
///
/// # Errors
/// An engine that is not available here.
pub fn check_machine<M: Machine>(machine: &M, plan: &Plan) -> Result<(), FioError> {
    let engines = machine.capabilities().engines;
    for job in plan.jobs() {
        // What moves nothing needs no mechanism; in virtual time it would take none either.
        let nothing = translate::engine(job) == machine::Engine::Null && !machine.facts().simulated;
        if !nothing && !engines.contains(&translate::engine(job)) {
            let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
            let engine = &job.options.engine_name;
            return Err(
                job.wrong(format!("ioengine={engine} is not available on this machine; it has {}", names.join(", ")))
            );
        }
    }
    Ok(())
}

/// Puts libaio, or threads, in the place of io_uring where the system refuses that: jobs for other computers often name it. What was done is
/// among the plan's warnings.
pub fn replace_missing_engines<M: Machine>(machine: &M, plan: &mut Plan) {
    let engines = machine.capabilities().engines;
    let instead = machine::Engine::asynchronous(&engines);
    let mut said = None;
    for job in plan.groups.iter_mut().flatten().filter(|job| job.options.engine == FioEngine::IoUring) {
        said = said.or_else(|| instead.fallback(&engines));
        (job.options.engine, job.options.engine_name) = match instead {
            machine::Engine::Libaio => (FioEngine::Libaio, "libaio".into()),
            machine::Engine::Threads => (FioEngine::PosixAio, "posixaio".into()),
            _ => continue,
        };
    }
    plan.warnings.extend(said);
}

/// Refuses sets of jobs whose buffers memory cannot hold.
fn check_memory<M: Machine>(machine: &M, plan: &Plan, arrangement: &Arrangement) -> Result<(), FioError> {
    for (number, jobs) in plan.groups.iter().enumerate() {
        let clones = arrangement.clones.iter().filter(|clone| clone.job.0 == number);
        let buffers: Vec<Buffers> =
            clones.map(|clone| translate::clone_workload(&jobs[clone.job.1], clone, 0).buffers()).collect();
        let names: Vec<String> = jobs.iter().map(Job::shown).collect();
        machine.check_memory(&buffers).map_err(|source| FioError::Machine { job: names.join(", "), source })?;
    }
    Ok(())
}

/// Runs sets of jobs one after the other, on files that are made first and stay only where `keep` says so; `on_group` is called before
/// each set.
///
/// A job that fails has its error in its result, and the others go on.
///
/// # Errors
/// A file that cannot be made or opened, a workload that makes no sense on its file, the user's interrupt.
pub fn run<M: Machine>(
    machine: &M,
    surroundings: &dyn Surroundings,
    plan: &Plan,
    arrangement: &Arrangement,
    destroy_signed: bool,
    keep: bool,
    on_group: &mut dyn FnMut(&[Job]),
) -> Result<FioResult, FioError> {
    let began = machine.now();
    let mut warnings = plan.warnings.clone();
    let mut groups = Vec::with_capacity(plan.groups.len());
    let specs: Vec<TargetSpec> = arrangement.files.iter().map(|file| target_spec(file, destroy_signed)).collect();
    check_memory(machine, plan, arrangement)?;
    let _made = MadeDirectories::make(arrangement)?;
    let opened = machine.open_all(&specs, &mut |_| Ok(()));
    let mut targets = opened.map_err(|source| FioError::Machine { job: "laying out files".into(), source })?;
    let facts: Vec<TargetFacts> = targets.iter().map(|target| machine.target_facts(target)).collect();
    // What makes no sense in the last set is refused before the first one writes.
    for (number, jobs) in plan.groups.iter().enumerate() {
        let clones: Vec<&ClonePlan> = arrangement.clones.iter().filter(|clone| clone.job.0 == number).collect();
        Group { machine, jobs, clones, arrangement, targets: &targets, facts: &facts, surroundings, chance: 0 }
            .check()?;
    }
    for (number, jobs) in plan.groups.iter().enumerate() {
        on_group(jobs);
        let clones: Vec<&ClonePlan> = arrangement.clones.iter().filter(|clone| clone.job.0 == number).collect();
        let chance = surroundings.unix_ms();
        let group =
            Group { machine, jobs, clones, arrangement, targets: &targets, facts: &facts, surroundings, chance };
        groups.push(group.run(&mut warnings)?);
        if jobs.iter().any(|job| job.options.exitall && job.options.exit_what == ExitWhat::All) {
            break;
        }
    }
    if keep {
        targets.iter_mut().for_each(|target| machine.keep(target));
    }
    Ok(FioResult {
        plan: plan.clone(),
        groups,
        warnings,
        machine: machine.facts(),
        ended_unix_ms: surroundings.unix_ms(),
        elapsed_ns: machine.now().saturating_sub(began),
    })
}

/// Directories that were made for files to be laid out. Dropped, those that are empty go.
struct MadeDirectories(Vec<PathBuf>);

impl MadeDirectories {
    fn make(arrangement: &Arrangement) -> Result<MadeDirectories, FioError> {
        let mut made = MadeDirectories(Vec::new());
        for file in arrangement.files.iter().filter(|file| file.made.is_some() && !is_twin(&file.path)) {
            let missing = file.path.ancestors().skip(1).take_while(|up| !up.as_os_str().is_empty() && !up.exists());
            let missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
            for directory in missing.into_iter().rev() {
                fs::create_dir(&directory).map_err(|error| {
                    FioError::Usage(format!("cannot make the directory {}: {error}", directory.display()))
                })?;
                made.0.push(directory);
            }
        }
        Ok(made)
    }
}

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        for directory in self.0.iter().rev() {
            // One with something in it stays, and that is what failing means here.
            let _ = fs::remove_dir(directory);
        }
    }
}

/// How a file is opened, and made where it is not there.
fn target_spec(file: &FilePlan, destroy_signed: bool) -> TargetSpec {
    let simulated = is_twin(&file.path);
    TargetSpec {
        places: vec![file.path.clone()],
        destroy: if file.written && !simulated && file.made.is_none() { vec![file.path.clone()] } else { Vec::new() },
        destroy_signed,
        as_is: true,
        create: file.made.is_some(),
        new_file: file.made.unwrap_or_default(),
        // A simulated volume is as large as it must be.
        // Of a file of which nothing is moved only its name is needed.
        size: file.made.map(|_| if file.idle { file.bytes.min(IDLE_BYTES) } else { file.bytes }),
        ..TargetSpec::default()
    }
}

/// Length of a file that no job moves data in: such jobs name sizes that no file system has room for.
const IDLE_BYTES: u64 = 1 << 20;

/// A run is made again where the program was stopped for this share of it or more: one in so many.
const TOLERATED: u64 = 100;

/// One run of a set of jobs.
struct Ran {
    recorders: Vec<Recorder>,
    watches: Watches,
    verified: Verified,
    /// What was counted before it.
    before: (Counts, Vec<DiskUse>),
    /// When it began.
    unix_ms: u64,
    errors: Vec<Option<JobError>>,
    usage: Usage,
    paused: Option<Pause>,
}

/// Who watches each job for a steady rate, where somebody does.
type Watches = Vec<Option<Arc<Watch>>>;

/// What was checked of each job, where something is.
type Verified = Vec<Option<Arc<VerifyStats>>>;

/// A set of jobs that run together.
struct Group<'a, M: Machine> {
    machine: &'a M,
    jobs: &'a [Job],
    clones: Vec<&'a ClonePlan>,
    arrangement: &'a Arrangement,
    /// Every file of the arrangement, and what lies under it.
    targets: &'a [M::Target],
    facts: &'a [TargetFacts],
    surroundings: &'a dyn Surroundings,
    /// Seeds jobs that are not to repeat.
    chance: u64,
}

impl<'a, M: Machine> Group<'a, M> {
    fn job_of(&self, clone: &ClonePlan) -> &'a Job {
        &self.jobs[clone.job.1]
    }

    /// What lies under all files of these clones together.
    fn facts_of(&self, clones: &[&ClonePlan]) -> TargetFacts {
        let mut files: Vec<usize> = Vec::new();
        clones.iter().for_each(|clone| add_new(&mut files, &clone.files));
        together(files.iter().map(|&file| &self.facts[file]))
    }

    fn run(&self, warnings: &mut Vec<String>) -> Result<GroupResult, FioError> {
        let facts = self.facts_of(&self.clones);
        add_new(warnings, &facts.warnings);
        self.check_simulated(&facts)?;
        let (ran, left_out) = measure::unpaused(|| {
            let mut ran = self.run_once(&facts)?;
            // Of a long run a short pause is no reason to make it again.
            let paused = ran.paused.filter(|pause| pause.ns.saturating_mul(TOLERATED) >= ran.usage.elapsed_ns);
            if let (Some(pause), None) = (ran.paused, paused) {
                ran.usage.warnings.push(format!("{pause} within the run, and its figures hold that time"));
            }
            Ok::<_, FioError>((ran, paused))
        })?;
        add_new(warnings, &left_out);
        let Ran { recorders, watches, verified, before, unix_ms, mut errors, usage, .. } = ran;
        let after = (self.surroundings.counts(), self.surroundings.disks(&facts.devices));
        let read_back = self.read_back(&recorders, &verified, &mut errors)?;
        for (error, stats) in errors.iter_mut().zip(&verified) {
            if let (None, Some(text)) = (&error, stats.as_ref().and_then(|stats| stats.complaint())) {
                *error = Some(JobError { errno: ILLEGAL_SEQUENCE, text });
            }
        }
        let mut jobs = self.results(recorders, &watches, &usage, unix_ms, errors)?;
        for (number, recorded) in read_back {
            let clone = jobs.iter_mut().flat_map(|job| &mut job.clones).find(|clone| clone.number == number);
            clone.into_iter().for_each(|clone| clone.recorded.read_back = Some(Box::new(recorded.clone())));
        }
        for (job, stats) in jobs.iter_mut().zip(&verified) {
            job.verified_bytes = stats.as_ref().map(|stats| stats.bytes());
        }
        for numbers in jobs.iter().filter_map(|job| job.point.numbers.as_ref()) {
            add_new(warnings, &numbers.warnings);
        }
        let disks = after
            .1
            .iter()
            .filter_map(|disk| before.1.iter().find(|was| was.name == disk.name).map(|was| disk.since(was)))
            .collect();
        Ok(GroupResult { jobs, usage, counts: after.0.since(before.0), disks, facts })
    }

    /// One run of all jobs of the set.
    fn run_once(&self, facts: &TargetFacts) -> Result<Ran, FioError> {
        let verified: Verified =
            self.jobs.iter().map(|job| job.options.check().map(|check| Arc::new(VerifyStats::new(check)))).collect();
        let (mut recorders, watches) = self.recorders(&verified)?;
        let before = (self.surroundings.counts(), self.surroundings.disks(&facts.devices));
        let unix_ms = self.surroundings.unix_ms();
        let mut errors: Vec<Option<JobError>> = vec![None; self.jobs.len()];
        let (usage, paused) = self.run_parts(self.parts(&mut recorders), &mut errors)?;
        Ok(Ran { recorders, watches, verified, before, unix_ms, errors, usage, paused })
    }

    /// The parts of the run, each with the place of its job: the clones of a job on the same files are streams of one.
    fn parts<'r>(&self, recorders: &'r mut [Recorder]) -> Vec<(usize, Part<'r, M::Target, Recorder>)>
    where
        'a: 'r,
    {
        let mut parts = Vec::new();
        let (mut rest, mut clones) = (recorders, self.clones.as_slice());
        while let Some(first) = clones.first() {
            let job = self.job_of(first);
            let split = job.options.split_processors && !job.options.processors.is_empty();
            let alike = |clone: &&&ClonePlan| clone.files == first.files && clone.job == first.job;
            let count = if split { 1 } else { clones.iter().take_while(alike).count() };
            let (own, others) = rest.split_at_mut(streams_of(job) as usize * count);
            (rest, clones) = (others, &clones[count..]);
            let access = translate::access(job, self.file_bytes(first));
            let all = &job.options.processors;
            // As in fio: the clones of all jobs take turns.
            let own_one = (first.number as usize - 1) % all.len().max(1);
            let processors = if split { &all[own_one..=own_one] } else { all };
            let part = Part { targets: self.targets_of(first), access, sources: own, processors };
            parts.push((first.job.1, part));
        }
        parts
    }

    /// Runs parts, each with the place of its job; a part that fails gives its job an error.
    fn run_parts<S: RequestSource>(
        &self,
        parts: Vec<(usize, Part<'_, M::Target, S>)>,
        errors: &mut [Option<JobError>],
    ) -> Result<(Usage, Option<Pause>), FioError> {
        let (jobs, mut parts): (Vec<usize>, Vec<_>) = parts.into_iter().unzip();
        let options = RunOptions { on_failure: OnFailure::EndPart, ..RunOptions::default() };
        let failed = |source: machine::Error| {
            let names: Vec<String> = self.jobs.iter().map(Job::shown).collect();
            FioError::Machine { job: names.join(", "), source }
        };
        let run = self.machine.run(&mut parts, options).map_err(failed)?;
        let mut whole = Usage { began: run.began, cpu: run.cpu, block_bytes: run.block_bytes, ..Usage::default() };
        whole.warnings = run.warnings;
        let alone = run.parts.len() == 1;
        for (job, part) in jobs.into_iter().zip(run.parts) {
            match part {
                Ok(part) => {
                    whole.elapsed_ns = whole.elapsed_ns.max(part.elapsed_ns);
                    whole.sync_ns = whole.sync_ns.max(part.sync_ns);
                    // Parts may share a device: its counters belong to none alone.
                    whole.device = part.device.filter(|_| alone);
                }
                Err(machine::Error::Interrupted) => return Err(failed(machine::Error::Interrupted)),
                Err(error) => drop(errors[job].get_or_insert_with(|| error.into())),
            }
        }
        Ok((whole, run.paused))
    }

    fn targets_of(&self, clone: &ClonePlan) -> Vec<&'a M::Target> {
        clone.files.iter().map(|&file| &self.targets[file]).collect()
    }

    /// Bytes of each of a clone's files.
    fn file_bytes(&self, clone: &ClonePlan) -> u64 {
        clone.files.iter().map(|&file| self.arrangement.files[file].bytes).min().unwrap_or(0)
    }

    /// Bytes of all of a clone's files, which its stream sees as one.
    fn bytes(&self, clone: &ClonePlan) -> u64 {
        self.file_bytes(clone) * clone.files.len() as u64
    }

    /// Refuses what makes no sense on the files.
    fn check(&self) -> Result<(), FioError> {
        self.check_simulated(&self.facts_of(&self.clones))?;
        self.clones.iter().try_for_each(|clone| {
            let job = self.job_of(clone);
            self.checked(clone, &translate::clone_workload(job, clone, seed(job, self.chance))).map(drop)
        })
    }

    /// What lies under a clone's files, which its stream sees as one, once its workload makes sense there.
    fn checked(&self, clone: &ClonePlan, workload: &Workload) -> Result<TargetFacts, FioError> {
        let facts = TargetFacts { size_bytes: self.bytes(clone), ..self.facts_of(&[clone]) };
        let align = if workload.buffering.is_direct() { facts.direct_align_bytes } else { 1 };
        let failed = |source: machine::Error| FioError::Machine { job: self.job_of(clone).shown(), source };
        workload.check(facts.size_bytes, align).map_err(|error| failed(error.into()))?;
        Ok(facts)
    }

    /// The sources of all clones, in their order, and who watches each job for a steady rate.
    fn recorders(&self, verified: &Verified) -> Result<(Vec<Recorder>, Watches), FioError> {
        let watches = self.watches();
        let exits = self.exits();
        let flows = self.flows();
        let mut recorders = Vec::new();
        for (place, clone) in self.clones.iter().enumerate() {
            let job = self.job_of(clone);
            let options = &job.options;
            let failed = |source: machine::Error| FioError::Machine { job: job.shown(), source };
            let seed = seed(job, self.chance);
            let workload = translate::clone_workload(job, clone, seed);
            let facts = self.checked(clone, &workload)?;
            let turns = translate::turns(job, clone, seed);
            let several_passes = clone.limit_bytes.is_none_or(|bytes| bytes > turns.pass_bytes());
            let streams = streams(&workload, &facts, options.ramp_ns).map_err(failed)?;
            let pass_bytes = turns.pass_bytes() / streams.len() as u64;
            for stream in streams {
                let mut recorder = Recorder::new(stream, job, turns.clone(), seed ^ u64::from(clone.number));
                if let Some(stats) = &verified[clone.job.1] {
                    recorder.verified_in(stats.clone(), backlog(job, clone));
                }
                if let Some(watch) = &watches[clone.job.1] {
                    recorder.watched_by(watch.clone(), options.steady.ramp_ns);
                }
                if let Some(guide) = self.guide(clone, seed)? {
                    recorder.guided_by(guide);
                }
                if let Some((group, member)) = &flows[place] {
                    recorder.flows_with(Flow::new(group.clone(), *member, options.flow_sleep_ns));
                }
                if let Some(exit) = &exits[clone.job.1] {
                    recorder.exits_with(exit.clone());
                }
                if options.invalidate && !options.direct && several_passes && !job.is_guided() {
                    recorder.cold_passes(pass_bytes);
                }
                recorders.push(recorder);
            }
        }
        Ok((recorders, watches))
    }

    /// What a clone does in the place of a sequence of its own.
    fn guide(&self, clone: &ClonePlan, seed: u64) -> Result<Option<Guide>, FioError> {
        let job = self.job_of(clone);
        if let Some(trace) = &job.options.trace {
            let passes = if job.options.time_based { u64::MAX } else { job.options.loops };
            return Ok(Some(Guide::Trace(Player::new(trace.clone(), passes))));
        }
        if !job.options.checks_mix {
            return Ok(None);
        }
        let mut mix = job.clone();
        (mix.options.writes, mix.options.checks_mix) = (true, false);
        let workload = translate::clone_workload(&mix, clone, seed);
        let turns = translate::turns(&mix, clone, seed);
        let sequence = Sequence::new(&workload, workload.region(self.bytes(clone)), 0, Cursor::Own)
            .map_err(|error| FioError::Machine { job: job.shown(), source: error.into() })?;
        let bytes = clone.limit_bytes.unwrap_or(turns.pass_bytes());
        Ok(Some(Guide::Writes(Box::new(Writes::new(sequence, turns, bytes / mix.request_bytes())))))
    }

    /// Each clone's group and place in it, where its job has a flow.
    fn flows(&self) -> Vec<Option<(Arc<FlowGroup>, usize)>> {
        let of = |clone: &&ClonePlan| Some(&self.job_of(clone).options).filter(|options| options.flow > 0);
        let mut ids: Vec<u64> = self.clones.iter().filter_map(|clone| Some(of(clone)?.flow_id)).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut flows: Vec<Option<(Arc<FlowGroup>, usize)>> = vec![None; self.clones.len()];
        for id in ids {
            let places: Vec<usize> = (0..self.clones.len())
                .filter(|&place| of(&self.clones[place]).is_some_and(|options| options.flow_id == id))
                .collect();
            let weights = places.iter().map(|&place| self.job_of(self.clones[place]).options.flow);
            let group = Arc::new(FlowGroup::new(weights));
            places.iter().enumerate().for_each(|(member, &place)| flows[place] = Some((group.clone(), member)));
        }
        flows
    }

    /// How each job ends with others, where any job of the set asks for it.
    fn exits(&self) -> Vec<Option<Exit>> {
        let all = Arc::new(AtomicBool::new(false));
        let mut groups: Vec<(u32, Arc<AtomicBool>)> = Vec::new();
        let mut of_group = |id: u32| match groups.iter().find(|(known, _)| *known == id) {
            Some((_, flag)) => flag.clone(),
            None => {
                groups.push((id, Arc::new(AtomicBool::new(false))));
                groups[groups.len() - 1].1.clone()
            }
        };
        let any = self.jobs.iter().any(|job| job.options.exitall);
        let mut exit = |job: &Job| {
            let own = of_group(job.group_id);
            let sets = match job.options.exit_what {
                _ if !job.options.exitall => None,
                ExitWhat::Group => Some(own.clone()),
                ExitWhat::Stonewall | ExitWhat::All => Some(all.clone()),
            };
            Exit { heeds: [all.clone(), own], sets }
        };
        self.jobs.iter().map(|job| any.then(|| exit(job))).collect()
    }

    /// A simulated machine has no data, and gives none back.
    fn check_simulated(&self, facts: &TargetFacts) -> Result<(), FioError> {
        let simulated = facts.kind == TargetKind::Simulated;
        if let Some(job) = self.jobs.iter().find(|job| job.options.trims && simulated) {
            let mode = job.options.mode;
            return Err(
                job.wrong(format!("rw={mode}: a simulated machine does not trim; use rw=write or a real device"))
            );
        }
        let refused = self.jobs.iter().find(|job| job.options.verify.is_some()).filter(|_| simulated);
        refused.map_or(Ok(()), |job| {
            Err(job.wrong("verify: a simulated machine holds no data that could be verified; leave it out"))
        })
    }

    /// Reads what the jobs wrote and checks it, where that is asked; by the clones' numbers.
    fn read_back(
        &self,
        recorders: &[Recorder],
        verified: &Verified,
        errors: &mut [Option<JobError>],
    ) -> Result<Vec<(u32, Recorded)>, FioError> {
        let mut rest = recorders;
        let (mut asked, mut readers) = (Vec::new(), Vec::new());
        for clone in &self.clones {
            let (job, place) = (self.job_of(clone), clone.job.1);
            let (own, others) = rest.split_at(streams_of(job) as usize);
            rest = others;
            let options = &job.options;
            let wanted =
                options.do_verify && options.writes && backlog(job, clone).is_none() && errors[place].is_none();
            let Some(stats) = verified[place].as_deref().filter(|_| wanted) else { continue };
            let seed = seed(job, self.chance);
            let workload = translate::clone_workload(job, clone, seed);
            let turns = translate::turns(job, clone, seed);
            let sequence = Sequence::new(&workload, workload.region(self.bytes(clone)), 0, Cursor::Own)
                .map_err(|error| FioError::Machine { job: job.shown(), source: error.into() })?;
            let mut requests: u64 = own.iter().map(Recorder::completed_with_ramp).sum();
            if !job.options.reads && job.sizes().is_none() && matches!(workload.pattern, Pattern::Seq | Pattern::Random)
            {
                // One pass is all that there is.
                requests = requests.min(turns.pass_bytes() / job.request_bytes());
            }
            let depth = if workload.engine.is_async() { workload.depth } else { 1 };
            asked.push(*clone);
            // Of several sizes the last request was as small as it had to be.
            let bytes = job.sizes().and(clone.limit_bytes);
            let reader = Reader::new(sequence, requests, turns, depth, workload.request_bytes, stats);
            readers.push(reader.of_bytes(bytes));
        }
        if readers.is_empty() {
            return Ok(Vec::new());
        }
        let part = |(clone, reader): (&&'a ClonePlan, _)| {
            let access = Access { sync_at_end: false, ..translate::access(self.job_of(clone), self.file_bytes(clone)) };
            let sources = std::slice::from_mut(reader);
            (clone.job.1, Part { targets: self.targets_of(clone), access, sources, processors: &[] })
        };
        self.run_parts(asked.iter().zip(&mut readers).map(part).collect(), errors)?;
        Ok(asked.iter().map(|clone| clone.number).zip(readers.into_iter().map(Reader::recorded)).collect())
    }

    /// Who watches each job: jobs that are reported together are watched together.
    fn watches(&self) -> Watches {
        let together =
            |a: &Job, b: &Job| a.options.group_reporting && b.options.group_reporting && a.group_id == b.group_id;
        let streams = |job: &Job| job.options.clones * streams_of(job);
        let mut watches = Watches::new();
        for (index, job) in self.jobs.iter().enumerate() {
            let known =
                self.jobs[..index].iter().position(|other| together(other, job) && other.options.steady.watches());
            let count = || {
                self.jobs
                    .iter()
                    .filter(|other| {
                        std::ptr::eq(*other, job) || (together(other, job) && other.options.steady.watches())
                    })
                    .map(streams)
                    .sum()
            };
            watches.push(match known {
                _ if !job.options.steady.watches() => None,
                Some(known) => watches[known].clone(),
                None => Some(Arc::new(Watch::new(job.options.steady, count()))),
            });
        }
        watches
    }

    /// What each job gave. The recorders are in the order of the clones, each clone's together.
    fn results(
        &self,
        recorders: Vec<Recorder>,
        watches: &[Option<Arc<Watch>>],
        usage: &Usage,
        unix_ms: u64,
        errors: Vec<Option<JobError>>,
    ) -> Result<Vec<JobResult>, FioError> {
        let mut recorders = recorders.into_iter();
        let mut all: Vec<(Vec<Stream>, Vec<CloneResult>, Nanos)> =
            self.jobs.iter().map(|_| (Vec::new(), Vec::new(), Nanos::MAX)).collect();
        for clone in &self.clones {
            let job = self.job_of(clone);
            let together = streams_of(job);
            let (streams, results, began) = &mut all[clone.job.1];
            let mut result: Option<CloneResult> = None;
            for (stream, record) in recorders.by_ref().take(together as usize).map(Recorder::into_parts) {
                *began = (*began).min(record.span.0);
                let paths = clone.files.iter().map(|&file| self.arrangement.files[file].path.clone()).collect();
                let one = clone_result(clone.number, &stream, record, paths);
                match &mut result {
                    None => result = Some(one),
                    Some(sum) => join(sum, one),
                }
                streams.push(stream);
            }
            results.extend(result);
        }
        let total: u64 = all.iter().flat_map(|(streams, _, _)| streams).map(Stream::completed_with_ramp).sum();
        let mut jobs = Vec::with_capacity(self.jobs.len());
        let each = self.jobs.iter().zip(all).zip(errors).enumerate();
        for (index, ((job, (streams, clones, began)), mut error)) in each {
            let own_clones: Vec<&ClonePlan> =
                self.clones.iter().copied().filter(|clone| clone.job.1 == index).collect();
            let workload = translate::job_workload(job, own_clones[0], self.arrangement, seed(job, self.chance));
            let own: u64 = streams.iter().map(Stream::completed_with_ramp).sum();
            let usage =
                if self.jobs.len() == 1 { usage.clone() } else { share(usage, own as f64 / total.max(1) as f64) };
            let began_unix_ms = unix_ms + began.saturating_sub(usage.began) / 1_000_000;
            if error.is_none() && clones.iter().all(|clone| clone.recorded.requests == [0; SIDES]) {
                error = Some(JobError { errno: NO_DATA, text: nothing_measured(job).into() });
            }
            let point = match &error {
                Some(error) => Point::failed(workload, &error.text),
                None => {
                    let failed = |source: machine::Error| FioError::Machine { job: job.shown(), source };
                    let sample = gather(&streams, usage, &workload).map_err(failed)?;
                    Point::from_samples(&workload, &self.facts_of(&own_clones), &[sample])
                }
            };
            let steady = watches[index].as_ref().map(|watch| watch.verdict());
            let job = job.clone();
            jobs.push(JobResult { job, clones, point, error, began_unix_ms, steady, verified_bytes: None });
        }
        Ok(jobs)
    }
}

/// Linux's EILSEQ, with which fio reports data that is not what was written.
const ILLEGAL_SEQUENCE: i32 = 84;
/// Linux's ENODATA.
const NO_DATA: i32 = 61;
/// Linux's EIO, for what has no number of the system's.
const IO_ERROR: i32 = 5;

impl From<machine::Error> for JobError {
    fn from(error: machine::Error) -> Self {
        let errno = match &error {
            machine::Error::Request { source, .. } | machine::Error::Io { source, .. } => source.raw_os_error(),
            _ => None,
        };
        JobError { errno: errno.unwrap_or(IO_ERROR), text: error.to_string() }
    }
}

/// Requests of a stream after which its writes are read back before others follow, and whether reads count among them; none: they are not.
fn backlog(job: &Job, clone: &ClonePlan) -> Option<(u64, bool)> {
    let options = &job.options;
    let each = match (options.verify_backlog, clone.limit_bytes) {
        _ if !options.do_verify => None,
        (0, Some(bytes)) if options.loops > 1 => {
            let requests = bytes / options.loops / job.request_bytes();
            Some((requests / u64::from(streams_of(job)), true))
        }
        (0, _) => None,
        (writes, _) => Some((writes, false)),
    };
    each.map(|(requests, reads)| (requests.max(1), reads))
}

/// Streams of a clone.
fn streams_of(job: &Job) -> u32 {
    if translate::engine(job) == machine::Engine::Threads { job.effective_depth() } else { 1 }
}

/// What is under all targets together.
fn together<'f>(mut each: impl Iterator<Item = &'f TargetFacts>) -> TargetFacts {
    let mut whole = each.next().expect("a set of jobs has a file").clone();
    for facts in each {
        whole.name = format!("{}, {}", whole.name, facts.name);
        whole.direct_refused = whole.direct_refused.or_else(|| facts.direct_refused.clone());
        whole.direct_align_bytes = whole.direct_align_bytes.max(facts.direct_align_bytes);
        add_new(&mut whole.devices, &facts.devices);
        add_new(&mut whole.layers, &facts.layers);
        add_new(&mut whole.warnings, &facts.warnings);
    }
    whole
}

/// Adds what is not there yet.
fn add_new<T: Clone + PartialEq>(known: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !known.contains(one) {
            known.push(one.clone());
        }
    }
}

/// The seed of a job.
fn seed(job: &Job, chance: u64) -> u64 {
    match job.options.seed {
        Some(seed) => seed,
        // fio's own, so that a run repeats unless it is not to.
        None if job.options.repeatable => 0x89,
        None => chance,
    }
}

/// A job's part of what a set of jobs used, by requests; what only the set as a whole has is left out.
fn share(usage: &Usage, part: f64) -> Usage {
    let of = |ns: Nanos| (ns as f64 * part) as Nanos;
    let mut cpu = usage.cpu;
    (cpu.user_ns, cpu.system_ns, cpu.machine_ns) = (of(cpu.user_ns), of(cpu.system_ns), of(cpu.machine_ns));
    Usage { cpu, device: None, block_bytes: None, ..usage.clone() }
}

/// Why nothing was measured of a job of which no request ended in the part that is measured.
fn nothing_measured(job: &Job) -> &'static str {
    if job.options.ramp_ns > 0 {
        "all of it was done within its ramp_time, so nothing was measured; give it time_based with a runtime, or a shorter ramp_time"
    } else {
        "no request completed in the time of the run; give it more runtime, or a smaller bs"
    }
}

/// What one stream of a clone gave.
fn clone_result(number: u32, stream: &Stream, record: Record, paths: Vec<PathBuf>) -> CloneResult {
    let latency = record.from_issue.unwrap_or_else(|| {
        let [read, write] = stream.latency().clone();
        [read, write, Histogram::new()]
    });
    let [submission, completion] = record.phases.unwrap_or_else(|| [by_side(), latency.clone()]);
    let recorded = Recorded {
        latency,
        submission,
        completion,
        requests: record.requests,
        bytes: record.bytes,
        runtime_ns: record.span.1.saturating_sub(record.span.0),
        spread_ns: SPREAD_NS,
        spread: record.spread.whole(),
        syncs: record.syncs,
        depths: record.depths,
        submitted: record.submitted,
        completed: record.completed,
        read_back: record.read_back.map(Box::new),
    };
    CloneResult {
        number,
        recorded,
        log: record.log.map(|log| (log.width_ns, log.whole())),
        lines: record.lines,
        histograms: record.histograms.map(HistogramLog::closed).unwrap_or_default(),
        trace: record.trace.map(|trace| (paths, trace)),
        progress: record.progress,
    }
}

/// Joins the streams of a clone that has several.
fn join(sum: &mut CloneResult, other: CloneResult) {
    sum.recorded.add(&other.recorded);
    if let (Some((_, sums)), Some((_, parts))) = (&mut sum.log, other.log) {
        sums.resize(sums.len().max(parts.len()), Default::default());
        for (sums, parts) in sums.iter_mut().zip(parts) {
            for (sum, part) in sums.iter_mut().zip(parts) {
                sum.add(part);
            }
        }
    }
    if let (Some((_, trace)), Some((_, others))) = (&mut sum.trace, other.trace) {
        trace.extend(others);
    }
    sum.histograms.extend(other.histograms);
    if let (Some(lines), Some(others)) = (&mut sum.lines, other.lines) {
        lines.extend(others);
        lines.sort_by_key(|line| line.at_ns);
    }
}

/// The latencies of all directions together.
pub(crate) fn merged(latency: &BySide) -> Histogram {
    let mut all = Histogram::new();
    latency.iter().for_each(|side| all.merge(side));
    all
}
