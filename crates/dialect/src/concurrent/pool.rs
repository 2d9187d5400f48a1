//! Each thread has a stream of every target.

use super::stream::ToolStream;
use super::{RunPlan, StreamResult, ToolJob, check_simulated, tool_streams};
use machine::{
    Completion, Machine, Nanos, Next, Part, Request, RequestSource, Result, RunUsage, Scheduling,
    TargetFacts,
};
use measure::Sample;
use workload::rng;

const PURPOSE_TARGETS: u64 = 0x7a26;

#[derive(Debug, Clone)]
pub(crate) struct Pool {
    /// Per thread over all targets, drawn by weight; `None`: each target has its workload's depth.
    pub(crate) outstanding: Option<u32>,
    /// By thread, then target; 0: the thread skips the target.
    pub(crate) weights: Vec<Vec<u32>>,
    pub(crate) seed: u64,
}

#[derive(Debug)]
pub(crate) struct TargetResult {
    /// An error if no request completed.
    pub(crate) sample: Result<Sample>,
    pub(crate) threads: Vec<(u32, StreamResult)>,
    pub(crate) interrupted: bool,
}

impl TargetResult {
    pub(crate) fn measured_ns(&self) -> Nanos {
        self.threads.iter().map(|(_, result)| result.stream.measured_ns()).max().unwrap_or(0)
    }
}

/// The workloads must have the pool's number of threads, one engine and one access mode.
pub(crate) fn run_pool<M: Machine>(
    machine: &M,
    jobs: &[ToolJob<'_, M::Target>],
    pool: &Pool,
    plan: RunPlan,
) -> Result<Vec<TargetResult>> {
    let facts: Vec<TargetFacts> = jobs.iter().map(|job| machine.target_facts(job.target)).collect();
    check_simulated(jobs, &facts)?;
    let ((sources, mut usage), left_out) = measure::retry_if_paused(|| {
        let (sources, usage) = run_once(machine, jobs, &facts, pool, plan)?;
        let paused = usage.paused;
        Ok::<_, machine::Error>(((sources, usage), paused))
    })?;
    usage.warnings.extend(left_out);
    let usage = usage.single()?;
    let mut by_target: Vec<Vec<(u32, ToolStream)>> = jobs.iter().map(|_| Vec::new()).collect();
    for (thread, source) in sources.into_iter().enumerate() {
        for (target, stream) in source.streams.into_iter().enumerate() {
            if pool.weights[thread][target] > 0 {
                by_target[target].push((thread as u32, stream));
            }
        }
    }
    let result = |(job, streams): (&ToolJob<'_, M::Target>, Vec<(u32, ToolStream)>)| {
        let measured: Vec<&measure::Stream> =
            streams.iter().map(|(_, stream)| &stream.result.stream).collect();
        let sample = measure::gather(&measured, usage.clone(), &job.workload);
        TargetResult {
            sample,
            interrupted: usage.interrupted,
            threads: streams.into_iter().map(|(thread, stream)| (thread, stream.result)).collect(),
        }
    };
    let mut ran: Vec<TargetResult> = jobs.iter().zip(by_target).map(result).collect();
    let of_jobs = ran.iter_mut().zip(jobs.iter().zip(&facts));
    measure::note_others(
        of_jobs.filter_map(|(ran, (job, facts))| {
            Some((ran.sample.as_mut().ok()?, &job.workload, facts))
        }),
    );
    Ok(ran)
}

fn run_once<M: Machine>(
    machine: &M,
    jobs: &[ToolJob<'_, M::Target>],
    facts: &[TargetFacts],
    pool: &Pool,
    plan: RunPlan,
) -> Result<(Vec<PoolThread>, RunUsage)> {
    let mut by_target: Vec<_> =
        tool_streams(jobs, facts, plan)?.into_iter().map(Vec::into_iter).collect();
    let thread = |(number, weights): (usize, &Vec<u32>)| {
        let streams = by_target.iter_mut().filter_map(Iterator::next).collect();
        PoolThread::new(
            streams,
            weights,
            pool.outstanding,
            rng::derive(pool.seed, PURPOSE_TARGETS, number as u64),
        )
    };
    let mut sources: Vec<PoolThread> = pool.weights.iter().enumerate().map(thread).collect();
    let Some(first) = jobs.first() else {
        return Err(machine::Error::Unsupported("a pool has no target".into()));
    };
    let max_bytes = facts.iter().map(|facts| facts.size_bytes).max().unwrap_or(0);
    let access = machine::Access { region: (0, max_bytes), ..first.workload.access(max_bytes) };
    let scheduling = Scheduling { processors: &first.processors, ..Scheduling::default() };
    let targets = jobs.iter().map(|job| job.target).collect();
    let buffering = Vec::new();
    let part = Part { targets, access, buffering, sources: &mut sources, scheduling };
    let usage = machine.run(&mut [part], plan.options(machine))?;
    Ok((sources, usage))
}

enum Turns {
    /// Draws a target by weight, then waits until it is ready.
    Drawn { up_to: Box<[u64]>, seed: u64, count: u64, next: Option<usize> },
    /// Round robin, skipping targets without a free request.
    Each { first: usize },
}

pub(super) struct PoolThread {
    pub(super) streams: Vec<ToolStream>,
    turns: Turns,
    /// Target of each outstanding request, and slot in its stream.
    slots: Box<[(u32, u32)]>,
    free: Vec<u32>,
}

impl PoolThread {
    pub(super) fn new(
        streams: Vec<ToolStream>,
        weights: &[u32],
        outstanding: Option<u32>,
        seed: u64,
    ) -> PoolThread {
        let of_each = streams.iter().map(RequestSource::depth);
        // If the streams have depth 1, so does the thread.
        let depth = if outstanding.is_some() { of_each.max().unwrap_or(1) } else { of_each.sum() };
        let sum = |sum: &mut u64, weight: &u32| {
            *sum += u64::from(*weight);
            Some(*sum)
        };
        PoolThread {
            turns: if outstanding.is_some() {
                Turns::Drawn {
                    up_to: weights.iter().scan(0, sum).collect(),
                    seed,
                    count: 0,
                    next: None,
                }
            } else {
                Turns::Each { first: 0 }
            },
            slots: vec![(0, 0); depth as usize].into_boxed_slice(),
            free: (0..depth).rev().collect(),
            streams,
        }
    }

    #[inline]
    fn issue(&mut self, target: usize, mut request: Request) -> Next {
        // Cannot happen: `next` checks for a free slot.
        let Some(slot) = self.free.pop() else { return Next::WaitForCompletion };
        self.slots[slot as usize] = (target as u32, request.slot);
        (request.target, request.slot) = (target as u32, slot);
        Next::Issue(request)
    }

    #[inline]
    fn next_of_drawn(&mut self, now: Nanos) -> Next {
        let Turns::Drawn { up_to, seed, count, next } = &mut self.turns else { return Next::Done };
        let target = *next.get_or_insert_with(|| {
            let drawn = rng::below(rng::hash(*seed, *count), up_to.last().copied().unwrap_or(1));
            *count += 1;
            up_to.partition_point(|&end| end <= drawn)
        });
        match self.streams[target].next(now) {
            Next::Issue(request) => {
                *next = None;
                self.issue(target, request)
            }
            // All streams end at the same time.
            Next::Done if self.free.len() < self.slots.len() => Next::WaitForCompletion,
            other => other,
        }
    }

    #[inline]
    fn next_of_each(&mut self, first: usize, now: Nanos) -> Next {
        let count = self.streams.len();
        let (mut earliest, mut done) = (None, true);
        for turn in 0..count {
            let target = (first + turn) % count;
            match self.streams[target].next(now) {
                Next::Issue(request) => {
                    self.turns = Turns::Each { first: (target + 1) % count };
                    return self.issue(target, request);
                }
                Next::WaitUntil(then) => {
                    earliest = Some(earliest.map_or(then, |earliest: Nanos| earliest.min(then)));
                }
                Next::Done => continue,
                Next::WaitForCompletion => {}
                discard @ Next::Discard(_) => return discard,
            }
            done = false;
        }
        match earliest {
            Some(then) => Next::WaitUntil(then),
            None if done => Next::Done,
            None => Next::WaitForCompletion,
        }
    }
}

impl RequestSource for PoolThread {
    fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    fn max_request(&self) -> u32 {
        self.streams.iter().map(RequestSource::max_request).max().unwrap_or(0)
    }

    fn writes(&self) -> bool {
        self.streams.iter().any(RequestSource::writes)
    }

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        // All writers write the same kind of data.
        if let Some(writer) = self.streams.iter_mut().find(|stream| stream.writes()) {
            writer.fill_buffers(buffers);
        }
    }

    fn begin(&mut self, now: Nanos) {
        self.streams.iter_mut().for_each(|stream| stream.begin(now));
    }

    #[inline]
    fn next(&mut self, now: Nanos) -> Next {
        if self.free.is_empty() {
            return Next::WaitForCompletion;
        }
        let next = match self.turns {
            Turns::Drawn { .. } => self.next_of_drawn(now),
            Turns::Each { first } => self.next_of_each(first, now),
        };
        if next == Next::Done {
            // A target that is rarely drawn was also used until the end.
            let all = || self.streams.iter().map(|stream| stream.result.stream.lasted_until());
            let ended = all().max().unwrap_or(now);
            self.streams.iter_mut().for_each(|stream| stream.result.stream.extend_to(ended));
        }
        next
    }

    #[inline]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        let (target, slot) = self.slots[completion.slot as usize];
        self.free.push(completion.slot);
        self.streams[target as usize].complete(Completion { slot, ..completion }, now);
    }

    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        let (target, slot) = self.slots[request.slot as usize];
        self.streams[target as usize].fill(&Request { slot, ..*request }, buffer);
    }

    fn checks(&self) -> bool {
        self.streams.iter().any(RequestSource::checks)
    }

    fn check(&mut self, slot: u32, data: &[u8]) {
        let (target, slot) = self.slots[slot as usize];
        self.streams[target as usize].check(slot, data);
    }
}
