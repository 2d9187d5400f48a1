//! Runs a plan on a machine.

use super::arrange::{Arrangement, ClonePlan};
use super::error::FioError;
use super::plan::{Job, Plan};
use super::recorder::{Record, Recorder, SPREAD_NS};
use super::result::{CloneResult, FioResult, GroupResult, JobResult, Recorded};
use super::steady::Watch;
use super::translate;
use super::verify::{Book, Reader};
use crate::words::is_twin;
use machine::{Access, Hint, Machine, Nanos, TargetFacts, TargetKind, TargetSpec, Usage};
use measure::histogram::Histogram;
use measure::{Point, Stream, gather, streams};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use workload::{Cursor, Pattern, Sequence, Workload};

/// Multiple of a stripe's chunk; files side by side are no stripe, and this is the least that one can have.
const LEAST_CHUNK: u64 = 512;

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

/// What a machine itself does not tell: what fio reports beyond its [`Usage`], and the space of its file systems.
pub trait Surroundings {
    /// Reserves space for a file without writing it, and makes it so long.
    ///
    /// # Errors
    /// The file system cannot (`Unsupported`), or has no such space.
    fn reserve(&self, file: &File, bytes: u64) -> io::Result<()>;
    /// Bytes that a directory's file system has left for this user; `None`: it does not say.
    ///
    /// # Errors
    /// There is no such directory.
    fn free_bytes(&self, directory: &Path) -> io::Result<Option<u64>>;
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
/// An engine that is not to be had here.
pub fn check_machine<M: Machine>(machine: &M, plan: &Plan) -> Result<(), FioError> {
    let engines = machine.capabilities().engines;
    for job in plan.jobs() {
        // What moves nothing needs no mechanism; in virtual time it would take none either.
        let nothing = translate::engine(job) == machine::Engine::Null && !machine.facts().simulated;
        if !nothing && !engines.contains(&translate::engine(job)) {
            let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
            let engine = &job.options.engine_name;
            return Err(job.wrong(format!("ioengine={engine} is not to be had on this machine; it has {}", names.join(", "))));
        }
    }
    Ok(())
}

/// Runs sets of jobs one after the other; `told` hears of each before it begins. The files are there already.
///
/// # Errors
/// A workload that makes no sense on its file, a refusal or failure of the machine, the user's interrupt.
pub fn run<M: Machine>(
    machine: &M,
    surroundings: &dyn Surroundings,
    plan: &Plan,
    arrangement: &Arrangement,
    destroy_signed: bool,
    told: &mut dyn FnMut(&[Job]),
) -> Result<FioResult, FioError> {
    let began = machine.now();
    let mut warnings = plan.warnings.clone();
    let mut groups = Vec::with_capacity(plan.groups.len());
    for (number, jobs) in plan.groups.iter().enumerate() {
        told(jobs);
        let clones: Vec<&ClonePlan> = arrangement.clones.iter().filter(|clone| clone.job.0 == number).collect();
        let group = Group { jobs, clones, arrangement, surroundings, destroy_signed, chance: surroundings.unix_ms() };
        groups.push(group.run(machine, &mut warnings)?);
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

/// Who watches each job for a steady rate, where somebody does.
type Watches = Vec<Option<Arc<Watch>>>;

/// What was looked at of each job, where something is.
type Books = Vec<Option<Arc<Book>>>;

/// A set of jobs that run together.
struct Group<'a> {
    jobs: &'a [Job],
    clones: Vec<&'a ClonePlan>,
    arrangement: &'a Arrangement,
    surroundings: &'a dyn Surroundings,
    destroy_signed: bool,
    /// Seeds jobs that are not to repeat.
    chance: u64,
}

impl Group<'_> {
    /// The group in a message.
    fn shown(&self) -> String {
        let names: Vec<String> = self.jobs.iter().map(Job::shown).collect();
        names.join(", ")
    }

    /// The files of the group, each once, by place in the arrangement.
    fn files(&self) -> Vec<usize> {
        let mut files: Vec<usize> = Vec::new();
        for clone in &self.clones {
            for file in &clone.files {
                if !files.contains(file) {
                    files.push(*file);
                }
            }
        }
        files
    }

    /// Whether every clone uses several files, request by request in turns.
    fn take_turns(&self) -> bool {
        self.clones.iter().all(|clone| clone.files.len() > 1)
    }

    /// The chunk of the stripe that the files are opened as: a request where they take turns.
    fn chunk(&self, files: usize) -> u64 {
        match files {
            0 | 1 => 0,
            _ if self.take_turns() => self.jobs[0].request_bytes(),
            _ => LEAST_CHUNK,
        }
    }

    fn job_of(&self, clone: &ClonePlan) -> &Job {
        &self.jobs[clone.job.1]
    }

    fn run<M: Machine>(&self, machine: &M, warnings: &mut Vec<String>) -> Result<GroupResult, FioError> {
        let failed = |source: machine::Error| FioError::Machine { job: self.shown(), source };
        let files = self.files();
        let of = |file: &usize| &self.arrangement.files[*file];
        let spec = TargetSpec {
            places: files.iter().map(|file| of(file).path.clone()).collect(),
            destroy: files.iter().map(of).filter(|file| file.written && !is_twin(&file.path)).map(|file| file.path.clone()).collect(),
            destroy_signed: self.destroy_signed,
            as_is: true,
            chunk: self.chunk(files.len()),
            // A simulated volume is as large as it must be.
            size: files.first().map(of).filter(|file| is_twin(&file.path)).map(|file| file.bytes),
            ..TargetSpec::default()
        };
        let mut target = machine.open(&spec).map_err(failed)?;
        let facts = machine.target_facts(&target);
        warnings.extend(facts.warnings.iter().filter(|warning| !warnings.contains(warning)).cloned().collect::<Vec<_>>());
        let books: Books = self.jobs.iter().map(|job| job.options.method().map(|method| Arc::new(Book::new(method)))).collect();
        self.check_simulated(&facts)?;
        let (mut recorders, watches) = self.recorders(&files, &facts, &books)?;
        let hint = self.hint(warnings);
        let access = translate::access(&self.jobs[0], hint, facts.size_bytes);
        let before = (self.surroundings.counts(), self.surroundings.disks(&facts.devices));
        let unix_ms = self.surroundings.unix_ms();
        let usage = machine.run(&mut target, &access, &mut recorders).map_err(failed)?;
        let after = (self.surroundings.counts(), self.surroundings.disks(&facts.devices));
        let read_back = self.read_back(machine, &mut target, &access, &recorders, (&facts, &books)).map_err(failed)?;
        for (job, book) in self.jobs.iter().zip(&books) {
            if let Some(what) = book.as_ref().and_then(|book| book.complaint()) {
                return Err(FioError::Verify { job: job.shown(), what });
            }
        }
        let mut jobs = self.results(recorders, &watches, &usage, &facts, unix_ms)?;
        for (number, recorded) in read_back {
            let clone = jobs.iter_mut().flat_map(|job| &mut job.clones).find(|clone| clone.number == number);
            clone.into_iter().for_each(|clone| clone.recorded.read_back = Some(Box::new(recorded.clone())));
        }
        for (job, book) in jobs.iter_mut().zip(&books) {
            job.verified_bytes = book.as_ref().map(|book| book.bytes());
        }
        for warning in jobs.iter().filter_map(|job| job.point.numbers.as_ref()).flat_map(|numbers| &numbers.warnings) {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        let disks =
            after.1.iter().filter_map(|disk| before.1.iter().find(|was| was.name == disk.name).map(|was| disk.since(was))).collect();
        Ok(GroupResult { jobs, usage, counts: after.0.since(before.0), disks, facts })
    }

    /// What the cache is told: what all jobs agree on.
    fn hint(&self, warnings: &mut Vec<String>) -> Hint {
        let first = translate::hint(&self.jobs[0]);
        if self.jobs.iter().all(|job| translate::hint(job) == first) {
            return first;
        }
        warnings
            .push(format!("{}: random and sequential jobs run together, so the page cache is told neither (fadvise_hint)", self.shown()));
        Hint::None
    }

    /// The askers of all clones, in their order, and who watches each job for a steady rate.
    fn recorders(&self, files: &[usize], facts: &TargetFacts, books: &Books) -> Result<(Vec<Recorder>, Watches), FioError> {
        let watches = self.watches();
        let mut recorders = Vec::new();
        for clone in &self.clones {
            let job = self.job_of(clone);
            let failed = |source: machine::Error| FioError::Machine { job: job.shown(), source };
            let seed = seed(job, self.chance);
            let workload = translate::clone_workload(job, clone, seed);
            let bytes = if clone.files.len() > 1 { facts.size_bytes } else { self.arrangement.files[clone.files[0]].bytes };
            let align = if workload.buffering.is_direct() { facts.direct_align_bytes } else { 1 };
            workload.check(bytes, align).map_err(|error| failed(error.into()))?;
            let alone = files.len() > 1 && clone.files.len() == 1;
            let member = files.iter().position(|&file| file == clone.files[0]).filter(|_| alone).map(|member| member as u32);
            let facts = TargetFacts { size_bytes: bytes, ..facts.clone() };
            for stream in streams(&workload, &facts, job.options.ramp_ns).map_err(failed)? {
                let mut recorder = Recorder::new(stream, job, member, seed ^ u64::from(clone.number));
                if let Some(book) = &books[clone.job.1] {
                    recorder.verified_in(book.clone());
                }
                if let Some(watch) = &watches[clone.job.1] {
                    recorder.watched_by(watch.clone(), job.options.steady.ramp_ns);
                }
                recorders.push(recorder);
            }
        }
        Ok((recorders, watches))
    }

    /// A simulated machine has no data, and no files to take turns with.
    fn check_simulated(&self, facts: &TargetFacts) -> Result<(), FioError> {
        let refused = self.jobs.iter().find(|job| job.options.verify.is_some()).filter(|_| facts.kind == TargetKind::Simulated);
        refused.map_or(Ok(()), |job| Err(job.wrong("verify: a simulated machine holds no data that could be verified; leave it out")))
    }

    /// Reads what the jobs wrote and looks at it, where that is asked; by the clones' numbers.
    fn read_back<M: Machine>(
        &self,
        machine: &M,
        target: &mut M::Target,
        access: &Access,
        recorders: &[Recorder],
        (facts, books): (&TargetFacts, &Books),
    ) -> machine::Result<Vec<(u32, Recorded)>> {
        let mut rest = recorders;
        let (mut numbers, mut readers) = (Vec::new(), Vec::new());
        for clone in &self.clones {
            let job = self.job_of(clone);
            let (own, others) = rest.split_at(self.hands(job) as usize);
            rest = others;
            let Some(book) = books[clone.job.1].as_deref().filter(|_| job.options.do_verify && job.options.writes) else { continue };
            let workload = translate::clone_workload(job, clone, seed(job, self.chance));
            let bytes = if clone.files.len() > 1 { facts.size_bytes } else { self.arrangement.files[clone.files[0]].bytes };
            let sequence = Sequence::new(&workload, workload.region(bytes), 0, Cursor::Own)?;
            let mut requests: u64 = own.iter().map(Recorder::completed_with_ramp).sum();
            if !job.options.reads && matches!(workload.pattern, Pattern::Seq | Pattern::Random) {
                // One pass is all that there is.
                requests = requests.min(sequence.len_blocks());
            }
            let depth = if workload.engine.is_async() { workload.depth } else { 1 };
            numbers.push(clone.number);
            readers.push(Reader::new(sequence, requests, own[0].place(), depth, workload.request_bytes, book));
        }
        if readers.is_empty() {
            return Ok(Vec::new());
        }
        machine.run(target, &Access { sync_at_end: false, ..access.clone() }, &mut readers)?;
        Ok(numbers.into_iter().zip(readers.into_iter().map(Reader::recorded)).collect())
    }

    /// Streams of a clone.
    fn hands(&self, job: &Job) -> u32 {
        if translate::engine(job) == machine::Engine::Threads { job.effective_depth() } else { 1 }
    }

    /// Who watches each job: jobs that are reported together are watched together.
    fn watches(&self) -> Watches {
        let together = |a: &Job, b: &Job| a.options.group_reporting && b.options.group_reporting && a.group_id == b.group_id;
        let streams =
            |job: &Job| job.options.clones * if translate::engine(job) == machine::Engine::Threads { job.effective_depth() } else { 1 };
        let mut watches = Watches::new();
        for (index, job) in self.jobs.iter().enumerate() {
            let known = self.jobs[..index].iter().position(|other| together(other, job) && other.options.steady.watches());
            let count = || {
                self.jobs
                    .iter()
                    .filter(|other| std::ptr::eq(*other, job) || (together(other, job) && other.options.steady.watches()))
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
        facts: &TargetFacts,
        unix_ms: u64,
    ) -> Result<Vec<JobResult>, FioError> {
        let mut recorders = recorders.into_iter();
        let mut all: Vec<(Vec<Stream>, Vec<CloneResult>, Nanos)> = self.jobs.iter().map(|_| (Vec::new(), Vec::new(), Nanos::MAX)).collect();
        for clone in &self.clones {
            let job = self.job_of(clone);
            let together = self.hands(job);
            let (streams, results, began) = &mut all[clone.job.1];
            let mut result: Option<CloneResult> = None;
            for (stream, record) in recorders.by_ref().take(together as usize).map(Recorder::into_parts) {
                *began = (*began).min(record.span.0);
                let one = clone_result(clone.number, &stream, record);
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
        for (index, (job, (streams, clones, began))) in self.jobs.iter().zip(all).enumerate() {
            let first = self.clones.iter().find(|clone| clone.job.1 == index).expect("a job has a clone");
            let workload = translate::job_workload(job, first, self.arrangement, seed(job, self.chance));
            let own: u64 = streams.iter().map(Stream::completed_with_ramp).sum();
            let usage = if self.jobs.len() == 1 { usage.clone() } else { share(usage, own as f64 / total.max(1) as f64) };
            if clones.iter().all(|clone| clone.recorded.requests == [0, 0]) {
                return Err(nothing_measured(job));
            }
            let point = point(job, &workload, &streams, usage.clone(), facts)?;
            let began_unix_ms = unix_ms + began.saturating_sub(usage.began) / 1_000_000;
            let steady = watches[index].as_ref().map(|watch| watch.verdict());
            jobs.push(JobResult { job: job.clone(), clones, point, began_unix_ms, steady, verified_bytes: None });
        }
        Ok(jobs)
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

/// A job of which no request ended in the part that is measured.
fn nothing_measured(job: &Job) -> FioError {
    let why = if job.options.ramp_ns > 0 {
        "all of it was done within its ramp_time, so nothing was measured; give it time_based with a runtime, or a shorter ramp_time"
    } else {
        "no request completed in the time of the run; give it more runtime, or a smaller bs"
    };
    FioError::Machine { job: job.shown(), source: machine::Error::Unsupported(why.into()) }
}

/// A job's result as halfpower has it.
fn point(job: &Job, workload: &Workload, streams: &[Stream], usage: Usage, facts: &TargetFacts) -> Result<Point, FioError> {
    let failed = |source: machine::Error| FioError::Machine { job: job.shown(), source };
    let sample = gather(streams, usage, workload).map_err(failed)?;
    Ok(Point::from_samples(workload, facts, &[sample]))
}

/// What one stream of a clone gave.
fn clone_result(number: u32, stream: &Stream, record: Record) -> CloneResult {
    let latency = record.from_issue.clone().unwrap_or_else(|| stream.latency().clone());
    let recorded = Recorded {
        latency,
        requests: record.requests,
        bytes: record.bytes,
        runtime_ns: record.span.1.saturating_sub(record.span.0),
        spread_ns: SPREAD_NS,
        spread: record.spread.whole(),
        syncs: record.syncs,
        depths: record.depths,
        submitted: record.submitted,
        completed: record.completed,
        read_back: None,
    };
    CloneResult { number, recorded, log: record.log.map(|log| (log.width_ns, log.with_open())), lines: record.lines }
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
    if let (Some(lines), Some(others)) = (&mut sum.lines, other.lines) {
        lines.extend(others);
        lines.sort_by_key(|line| line.at_ns);
    }
}

/// Both directions' latencies together.
pub(crate) fn both(latency: &[Histogram; 2]) -> Histogram {
    let mut both = latency[0].clone();
    both.merge(&latency[1]);
    both
}
