//! Runs a set of jobs.

use super::answers::{Answers, Board, Running};
use super::contested::{Contest, Contested};
use super::coordination::Watches;
use super::failures::{Failures, JobError};
use super::finished::Finished;
use super::fio_stream::{FioStream, StreamState};
use super::flow::Flow;
use super::group::{Ended, Group, Verified, add_new, backlog, repeats, seed, streams_of};
use super::guide::{Guide, TracePlayer, Writes};
use super::pending_verify::{PendingVerify, Piece};
use super::read_back::{Walk, Written};
use super::result::{GroupResult, JobResult};
use super::syncs::Passes;
use super::system_stats::{Counts, DiskUse};
use super::verify::{Check, CloneVerify, VerifyStats};
use super::verifying::Verification;
use super::whole_files::WholeFiles;
use crate::fio::options::error::FioError;
use crate::fio::options::tolerated::ILLEGAL_SEQUENCE;
use crate::fio::plan::arrange::ClonePlan;
use crate::fio::plan::jobs::Job;
use crate::fio::plan::translate;
use machine::{
    Completion, Machine, Next, Op, Part, Pause, RequestSource, Scheduling, TargetFacts, Usage,
    Warning,
};
use measure::streams;
use std::sync::Arc;
use workload::{Cursor, Sequence, Stop, Workload};

/// A pause of one part in this many repeats the run.
const TOLERATED: u64 = 100;

struct RunOutcome {
    recorders: Vec<FioStream>,
    watches: Watches,
    verified: Verified,
    before: (Counts, Vec<DiskUse>),
    unix_ms: u64,
    errors: Vec<Option<JobError>>,
    usage: Usage,
    paused: Option<Pause>,
    /// The work until an interrupt.
    interrupted: Option<GroupResult>,
}

impl<'a, M: Machine> Group<'a, M> {
    pub(crate) fn run(&self, warnings: &mut Vec<String>) -> Result<Ended, FioError> {
        if self.clones.is_empty() {
            return Ok(Ended::Whole(self.without_runs()));
        }
        let facts = self.facts_of(&self.clones);
        add_new(warnings, &facts.warnings);
        let (ran, left_out) = measure::retry_if_paused(|| {
            let mut ran = self.run_once(&facts)?;
            // A short pause does not invalidate a long run.
            let paused = ran
                .paused
                .filter(|pause| pause.ns.saturating_mul(TOLERATED) >= ran.usage.elapsed_ns);
            if let (Some(pause), None) = (ran.paused, paused) {
                ran.usage.warnings.push(
                    Warning::from(pause).then(" during the run; its figures include that time"),
                );
            }
            Ok::<_, FioError>((ran, paused))
        })?;
        if let Some(group) = ran.interrupted {
            return Ok(Ended::Interrupted(group));
        }
        add_new(warnings, &left_out.iter().map(ToString::to_string).collect::<Vec<_>>());
        let RunOutcome {
            recorders, watches, verified, before, unix_ms, mut errors, mut usage, ..
        } = ran;
        let after = (self.system_stats.counts(), self.system_stats.disks(&facts.devices));
        let mut recorders: Vec<Finished> = recorders.into_iter().map(FioStream::finish).collect();
        self.add_failures(&mut recorders, &mut errors);
        let read_back = self.read_back(&mut recorders, &verified, &mut errors)?;
        for ((error, stats), job) in errors.iter_mut().zip(&verified).zip(self.jobs) {
            let complaint = stats
                .as_ref()
                .filter(|_| !job.options.tolerated.verify)
                .and_then(|stats| stats.complaint());
            if let (None, Some(text)) = (&error, complaint) {
                *error = Some(JobError { errno: ILLEGAL_SEQUENCE, text });
            }
        }
        let process_ns = usage.process_ns.take();
        let mut jobs = self.results(recorders, &watches, &usage, unix_ms, errors)?;
        let flush = |job: &JobResult| job.point.numbers.as_ref()?.achieved.sync_ns;
        usage.sync_ns = jobs.iter().filter_map(flush).max_by(f64::total_cmp).map(|ns| ns as u64);
        for (number, recorded) in read_back {
            let clone = jobs
                .iter_mut()
                .flat_map(|job| &mut job.clones)
                .find(|clone| clone.number == number);
            clone
                .into_iter()
                .for_each(|clone| clone.recorded.read_back = Some(Box::new(recorded.clone())));
        }
        for (job, stats) in jobs.iter_mut().zip(&verified) {
            let Some(stats) = stats else { continue };
            stats
                .unjudged()
                .iter()
                .for_each(|text| add_new(warnings, &[format!("{}: {text}", job.job.shown())]));
            job.verified_bytes = Some(stats.bytes());
            if stats.bytes() == 0 && job.job.options.do_verify && job.error.is_none() {
                let text = "verify: no data were read back, because the time ended before a pass did; let the job end by its size, or write verify_backlog=64";
                add_new(warnings, &[format!("{}: {text}", job.job.shown())]);
            }
            if let Some(text) = stats.complaint().filter(|_| job.job.options.tolerated.verify) {
                job.faults = Failures { count: stats.faults(), first: ILLEGAL_SEQUENCE };
                add_new(warnings, &[format!("{}: {text}", job.job.shown())]);
            }
        }
        for numbers in jobs.iter().filter_map(|job| job.point.numbers.as_ref()) {
            add_new(warnings, &numbers.warnings);
        }
        let disks = DiskUse::all_since(&after.1, &before.1);
        let counts = after.0.since(before.0);
        Ok(Ended::Whole(GroupResult { jobs, usage, process_ns, counts, disks, facts }))
    }

    fn add_failures(&self, recorders: &mut [Finished], errors: &mut [Option<JobError>]) {
        let mut recorders = recorders.iter_mut();
        for clone in &self.clones {
            let count = streams_of(self.job_of(clone)) as usize;
            for failed in recorders.by_ref().take(count).filter_map(|one| one.failed.take()) {
                errors[clone.job.1].get_or_insert(failed);
            }
        }
    }

    fn run_once(&self, facts: &TargetFacts) -> Result<RunOutcome, FioError> {
        let verified: Verified = self
            .jobs
            .iter()
            .map(|job| Check::of(&job.options).map(|check| Arc::new(VerifyStats::new(check))))
            .collect();
        let streams = self.clones.iter().map(|clone| streams_of(self.job_of(clone)) as usize);
        let board = self.status.is_some().then(|| Arc::new(Board::new(streams.sum())));
        let (mut recorders, watches) = self.recorders(&verified, board.as_ref())?;
        let before = (self.system_stats.counts(), self.system_stats.disks(&facts.devices));
        let unix_ms = self.system_stats.unix_ms();
        let mut errors: Vec<Option<JobError>> = vec![None; self.jobs.len()];
        let unfinished = &self.unfinished(facts, &before, unix_ms);
        let running = self.status.as_ref().zip(board).map(|((status, so_far), board)| Running {
            status,
            board,
            unfinished,
            so_far: so_far.clone(),
        });
        let began = self.machine.now();
        let mut run = || self.run_parts(self.parts(&mut recorders), &mut errors);
        let ran = match &running {
            Some(running) => running.during(run),
            None => run(),
        };
        let (usage, paused, interrupted) = match ran {
            Ok((usage, paused)) => (usage, paused, None),
            Err(error) if error.is_interrupt() => {
                let elapsed_ns = self.machine.now().saturating_sub(began);
                let recorded = recorders.iter().map(FioStream::recorded);
                (Usage::default(), None, Some(unfinished.with(recorded, elapsed_ns)))
            }
            Err(error) => return Err(error),
        };
        Ok(RunOutcome {
            recorders,
            watches,
            verified,
            before,
            unix_ms,
            errors,
            usage,
            paused,
            interrupted,
        })
    }

    /// A job's clones on the same files share a part.
    fn parts<'r>(
        &self,
        recorders: &'r mut [FioStream],
    ) -> Vec<(usize, Part<'r, M::Target, FioStream>)>
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
            let access = translate::access(job, self.arrangement.file_bytes(first));
            let all = &job.options.processors;
            // As in fio, the clones of all jobs alternate.
            let own_one = (first.number as usize - 1) % all.len().max(1);
            let processors = if split { &all[own_one..=own_one] } else { all };
            let scheduling = Scheduling {
                processors,
                io_priority: job.options.io_priority(),
                nice: job.options.nice,
            };
            let (targets, buffering) = (self.targets_of(first), Vec::new());
            let part = Part { targets, access, buffering, sources: own, scheduling };
            parts.push((first.job.1, part));
        }
        parts
    }

    fn facts_for(&self, clone: &ClonePlan) -> TargetFacts {
        TargetFacts { size_bytes: self.arrangement.bytes(clone), ..self.facts_of(&[clone]) }
    }

    /// Contests matter if one verifies and either several streams use its files and one writes, or
    /// its own writes overlap in flight.
    fn contests(&self, verified: &Verified) -> Vec<Option<Contest>> {
        let all: Arc<Contested> = Arc::default();
        let maker = |clone: &ClonePlan| {
            let own = &verified[clone.job.1].as_ref()?.check;
            verified
                .iter()
                .position(|other| other.as_ref().is_some_and(|other| other.check == *own))
        };
        let shares = |clone: &ClonePlan, other: &ClonePlan| {
            clone.files.iter().any(|file| other.files.contains(file))
        };
        let contested = |clone: &ClonePlan| {
            let users: Vec<&ClonePlan> =
                self.clones.iter().copied().filter(|other| shares(clone, other)).collect();
            let in_flight: u32 = users.iter().map(|user| self.job_of(user).effective_depth()).sum();
            let jobs = || users.iter().map(|user| self.job_of(user));
            let passes = users.iter().any(|user| user.passes > 1 || user.limit_bytes.is_none());
            let again = users.len() > 1
                || passes
                || jobs().any(|job| repeats(job) || job.options.io_size.is_some());
            in_flight > 1
                && again
                && jobs().any(changes)
                && users.iter().any(|user| verified[user.job.1].is_some())
        };
        let contest = |clone: &&ClonePlan| {
            contested(clone).then(|| Contest::new(all.clone(), &clone.files, maker(clone)))
        };
        self.clones.iter().map(contest).collect()
    }

    fn recorders(
        &self,
        verified: &Verified,
        board: Option<&Arc<Board>>,
    ) -> Result<(Vec<FioStream>, Watches), FioError> {
        let watches = self.watches();
        let exits = self.exits();
        let flows = self.flows();
        let contests = self.contests(verified);
        let mut recorders = Vec::new();
        for (place, clone) in self.clones.iter().enumerate() {
            let job = self.job_of(clone);
            let options = &job.options;
            let failed = |source: machine::Error| FioError::Machine { job: job.shown(), source };
            let seed = seed(job, self.chance);
            let workload = translate::clone_workload(job, clone, seed);
            let facts = self.facts_for(clone);
            let turns = translate::turns(job, clone, seed);
            let several_passes = clone.limit_bytes.is_none_or(|bytes| bytes > turns.pass_bytes());
            let streams = streams(&workload, &facts, options.ramp_ns).map_err(failed)?;
            let pass_bytes = turns.pass_bytes() / streams.len() as u64;
            let cold = options.invalidate && !job.is_direct();
            // A `time_based` job starts a new pass without an end.
            let synced = options.end_fsync && !options.time_based;
            let turns_end = (cold || synced) && several_passes && !job.is_guided();
            let passes = if turns_end {
                Passes { bytes: pass_bytes, cold, synced }
            } else {
                Passes::default()
            };
            for stream in streams {
                let repeats = repeats(job)
                    || job.varies_by_pass()
                    || job.has_own_places()
                    || (job.covers() && several_passes);
                let every = backlog(job, clone);
                let keeps =
                    job.keeps_writes() && options.do_verify && options.writes && every.is_none();
                let verification = |stats: &Arc<VerifyStats>| Verification {
                    stats: CloneVerify::new(stats, &clone.files),
                    every,
                    batch: if options.verify_backlog > 0 { options.verify_batch } else { 0 },
                    repeats,
                    keeps,
                };
                let flow = flows[place].as_ref();
                let state = StreamState {
                    watch: watches[clone.job.1].clone(),
                    contest: contests[place].clone(),
                    verify: verified[clone.job.1].as_ref().map(verification),
                    exit: exits[clone.job.1].clone(),
                    flow: flow.map(|(group, member)| {
                        Flow::new(group.clone(), *member, options.flow_sleep_ns)
                    }),
                    passes,
                    answers: board.map(|board| Answers::new(board.clone(), recorders.len())),
                    guide: self.guide(clone, seed)?,
                    whole_files: WholeFiles::of(job, clone)?,
                    has_rest: clone.has_rest,
                };
                recorders.push(FioStream::new(
                    stream,
                    job,
                    turns.clone(),
                    seed ^ u64::from(clone.number),
                    state,
                ));
            }
        }
        Ok((recorders, watches))
    }

    fn guide(&self, clone: &ClonePlan, seed: u64) -> Result<Option<Guide>, FioError> {
        let job = self.job_of(clone);
        if let Some(trace) = &job.options.trace {
            let passes = if job.options.time_based { u64::MAX } else { job.options.loops };
            return Ok(Some(Guide::Trace(TracePlayer::new(trace.clone(), passes))));
        }
        let Some(writer) = job.checked_writer() else { return Ok(None) };
        let workload = translate::clone_workload(&writer, clone, seed);
        let turns = translate::turns(&writer, clone, seed);
        let bytes = clone.limit_bytes.unwrap_or(turns.pass_bytes());
        let failed = |source| FioError::Machine { job: job.shown(), source };
        let written = if writer.keeps_writes() {
            let stop = Stop::AfterBytes(bytes);
            let workload = Workload { stop, depth: 1, ..workload };
            let streams = streams(&workload, &self.facts_for(clone), 0).map_err(failed)?;
            let chance = seed ^ u64::from(clone.number);
            let stream = |stream| {
                FioStream::new(stream, &writer, turns.clone(), chance, StreamState::default())
            };
            let pieces = streams.into_iter().flat_map(|one| pieces_of(stream(one)));
            Written::Pieces(pieces.collect::<Vec<Piece>>().into_iter())
        } else {
            let region = workload.region(self.arrangement.bytes(clone));
            let sequence = Sequence::new(&workload, region, 0, Cursor::Own)
                .map_err(|error| failed(error.into()))?;
            let requests = bytes / writer.request_bytes();
            Written::Walk(Box::new(Walk::new(sequence, turns, requests, None, repeats(&writer))))
        };
        Ok(Some(Guide::Writes(Writes::new(written))))
    }
}

/// What a job's writes leave, without I/O.
fn pieces_of(mut stream: FioStream) -> Vec<Piece> {
    let (mut left, mut now) = (PendingVerify::new(true), 0);
    stream.begin(now);
    loop {
        match stream.next(now) {
            Next::Issue(request) | Next::Discard(request) => {
                if request.op == Op::Write {
                    left.add(&request);
                }
                let result = request.len as i32;
                stream.complete(Completion { slot: request.slot, result }, now);
            }
            Next::WaitUntil(then) => now = now.max(then),
            Next::WaitForCompletion | Next::Done => return left.drain(),
        }
    }
}

fn changes(job: &Job) -> bool {
    job.options.writes || job.options.trims
}
