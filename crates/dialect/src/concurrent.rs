//! Concurrent jobs of a tool: several workloads, each on a target of its own, in one run of parts that start together.
//!
//! [`measure::sample`] runs one workload on one target. The tools also run a file per process, a file's threads from different starting
//! points, or readers beside writers, and report each job by itself.

use machine::{
    Error, Machine, Nanos, Op, Part, Result, RunOptions, RunUsage, Scheduling, Start, TargetFacts, TargetKind, Usage,
};
use measure::{Sample, Stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use stream::{Shared, ToolStream};
use workload::{Cursor, Filler, Workload};

mod pool;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use pool::{Pool, TargetRan, run_pool};

/// How the threads of a job share its region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ThreadOrder {
    /// As the workload's pattern has it.
    #[default]
    Pattern,
    /// They take the next block of one common sequence.
    Interlocked,
    /// Each goes through all of the region, and begins so many bytes after the one before it. Where that is no whole number of steps, its places lie
    /// between the others', as far as `room_bytes` from the region's first byte.
    Apart { bytes: u64, room_bytes: u64 },
}

/// What a tool does to the requests of a workload.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestShape {
    pub(crate) threads: ThreadOrder,
    /// Requests begin so many bytes apart instead of a request's length. The region then has a request's length for each of them,
    /// wherever that ends.
    pub(crate) step_bytes: Option<u64>,
    /// So many percent of the requests follow the one before instead of going where the workload says.
    pub(crate) follows_percent: Option<u8>,
    /// So many percent of the requests go to so many percent of the region, range after range; 100 of both. Empty: the workload says.
    pub(crate) ranges: Vec<(u8, u8)>,
    /// After so many requests a pause.
    pub(crate) burst: Option<(u32, Nanos)>,
    /// Writes carry this pattern, and reads must find it.
    pub(crate) pattern: Option<u64>,
    /// Writes carry these bytes, each going on where the one before ended.
    pub(crate) source: Option<Arc<[u8]>>,
    /// The data of reads is copied once more, in blocks of so many bytes.
    pub(crate) copy_block: Option<usize>,
    /// Keep offset and latency of every request.
    pub(crate) log: bool,
    /// Count completions in intervals of so many nanoseconds, reads and writes apart.
    pub(crate) interval_ns: Option<Nanos>,
}

/// A workload, its target, and the processors that its streams may run on (empty: all).
pub(crate) struct ToolJob<'t, T> {
    pub(crate) target: &'t T,
    pub(crate) workload: Workload,
    pub(crate) shape: RequestShape,
    pub(crate) processors: Vec<u32>,
}

impl<T> ToolJob<'_, T> {
    fn seeming_size(&self, size_bytes: u64) -> u64 {
        seeming_size(&self.workload, &self.shape, size_bytes)
    }
}

/// Bytes that a target of `size_bytes` must seem to have for the workload's region.
fn seeming_size(workload: &Workload, shape: &RequestShape, size_bytes: u64) -> u64 {
    match (shape.step_bytes, workload.region_bytes) {
        (Some(_), Some(bytes)) => size_bytes.max(workload.region_start_bytes + bytes),
        _ => size_bytes,
    }
}

/// How a run is made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunPlan {
    /// Time at the start that is run but not measured.
    pub(crate) ramp_ns: Nanos,
    /// Time before it.
    pub(crate) rest_ns: Nanos,
    /// When the first stream has done its bytes, the others go on but count no more ([`Trace::counted`]).
    pub(crate) stonewall: bool,
}

impl RunPlan {
    fn options<M: Machine>(self, machine: &M) -> RunOptions {
        let start = if self.rest_ns > 0 { Start::At(machine.now() + self.rest_ns) } else { Start::Now };
        RunOptions { start, ..RunOptions::default() }
    }
}

/// What one job measured.
#[derive(Debug)]
pub(crate) struct ToolResult {
    pub(crate) sample: Sample,
    pub(crate) streams: Vec<StreamResult>,
    /// When the first stream began and the last ended, on the machine's clock.
    pub(crate) span: (Nanos, Nanos),
}

/// What one stream measured and traced.
#[derive(Debug)]
pub(crate) struct StreamResult {
    pub(crate) stream: Stream,
    pub(crate) trace: Trace,
}

/// The requests that completed in an interval, and their latencies in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Interval {
    /// Requests.
    pub requests: u64,
    /// The shortest latency; 0 without requests.
    pub least_ns: u64,
    /// The longest.
    pub most_ns: u64,
    /// Their sum, and the sum of their squares.
    pub sum_ns: f64,
    /// See `sum_ns`.
    pub squares_ns2: f64,
}

impl Interval {
    /// One more request.
    #[inline]
    pub fn add(&mut self, latency_ns: Nanos) {
        let one = latency_ns as f64;
        *self = self.plus(&Interval {
            requests: 1,
            least_ns: latency_ns,
            most_ns: latency_ns,
            sum_ns: one,
            squares_ns2: one * one,
        });
    }

    /// Both together.
    #[inline]
    pub fn plus(&self, other: &Interval) -> Interval {
        let least_ns = match (self.requests, other.requests) {
            (0, _) => other.least_ns,
            (_, 0) => self.least_ns,
            _ => self.least_ns.min(other.least_ns),
        };
        Interval {
            requests: self.requests + other.requests,
            least_ns,
            most_ns: self.most_ns.max(other.most_ns),
            sum_ns: self.sum_ns + other.sum_ns,
            squares_ns2: self.squares_ns2 + other.squares_ns2,
        }
    }

    /// Mean latency; 0 without requests.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns / self.requests.max(1) as f64
    }

    /// Standard deviation of the latencies.
    pub fn deviation_ns(&self) -> f64 {
        (self.squares_ns2 / self.requests.max(1) as f64 - self.mean_ns().powi(2)).max(0.0).sqrt()
    }
}

/// What a stream keeps beside its measurements.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    /// Offset in bytes and latency of every request, in order of completion.
    pub(crate) log: Vec<(u64, Nanos)>,
    /// Reads and writes completed in each interval.
    pub(crate) intervals: Vec<[Interval; 2]>,
    /// When the stream began and when its last request ended.
    pub(crate) began: Nanos,
    pub(crate) ended: Nanos,
    /// Requests done, and the time, when the first stream of a run with a stonewall was done.
    pub(crate) counted: Option<(u64, Nanos)>,
}

/// Runs all jobs at once.
///
/// # Errors
/// A workload that makes no sense on its target, an access mode that a target refuses, a failed request, data that is not
/// what was written. The first error ends the run.
pub(crate) fn run<M: Machine>(machine: &M, jobs: &[ToolJob<'_, M::Target>], plan: RunPlan) -> Result<Vec<ToolResult>> {
    let facts: Vec<TargetFacts> = jobs.iter().map(|job| machine.target_facts(job.target)).collect();
    check_simulated(jobs, &facts)?;
    let ((sources, mut usage), left_out) = measure::unpaused(|| {
        let (sources, usage) = run_once(machine, jobs, &facts, plan)?;
        let paused = usage.paused;
        Ok::<_, Error>(((sources, usage), paused))
    })?;
    usage.warnings.extend(left_out);
    let each = jobs.iter().zip(sources).zip(usage.by_part());
    let mut results: Vec<ToolResult> =
        each.map(|((job, sources), usage)| result(job, sources, usage?)).collect::<Result<_>>()?;
    let of_jobs = results.iter_mut().zip(jobs.iter().zip(&facts));
    measure::note_others(of_jobs.map(|(result, (job, facts))| (&mut result.sample, &job.workload, facts)));
    Ok(results)
}

/// One run of all jobs: their streams, and what they used.
fn run_once<M: Machine>(
    machine: &M,
    jobs: &[ToolJob<'_, M::Target>],
    facts: &[TargetFacts],
    plan: RunPlan,
) -> Result<(Vec<Vec<ToolStream>>, RunUsage)> {
    let mut sources = tool_streams(jobs, facts, plan)?;
    let mut parts: Vec<Part<'_, M::Target, ToolStream>> = Vec::with_capacity(jobs.len());
    for ((job, facts), sources) in jobs.iter().zip(facts).zip(&mut sources) {
        let mut access = job.workload.access(facts.size_bytes);
        if job.shape.step_bytes.is_some() || matches!(job.shape.threads, ThreadOrder::Apart { bytes: 1.., .. }) {
            access.region = (0, facts.size_bytes);
        }
        let scheduling = Scheduling { processors: &job.processors, ..Scheduling::default() };
        parts.push(Part { targets: vec![job.target], access, sources, scheduling });
    }
    let usage = machine.run(&mut parts, plan.options(machine))?;
    drop(parts);
    Ok((sources, usage))
}

/// The streams of all jobs.
fn tool_streams<T>(jobs: &[ToolJob<'_, T>], facts: &[TargetFacts], plan: RunPlan) -> Result<Vec<Vec<ToolStream>>> {
    let shared = Arc::new(Shared {
        stonewall: plan.stonewall,
        first_done: AtomicBool::new(false),
        stop: AtomicBool::new(false),
    });
    let of = |(job, facts): (&ToolJob<'_, T>, &TargetFacts)| {
        let streams = streams(job, facts, plan.ramp_ns)?.into_iter().enumerate();
        let region = job.workload.region(job.seeming_size(facts.size_bytes));
        let source = |(thread, stream)| {
            ToolStream::new(stream, thread as u64, &job.workload, &job.shape, region, &shared, plan.ramp_ns)
        };
        Ok(streams.map(source).collect())
    };
    jobs.iter().zip(facts).map(of).collect()
}

/// A simulated machine moves no data.
fn check_simulated<T>(jobs: &[ToolJob<'_, T>], facts: &[TargetFacts]) -> Result<()> {
    let Some(twin) = facts.iter().find(|facts| facts.kind == TargetKind::Simulated) else { return Ok(()) };
    if jobs.iter().any(|job| job.shape.pattern.is_some()) {
        let why = "a simulated machine holds no data that could be verified";
        return Err(Error::refused(twin.name.clone(), why, "leave out the verification"));
    }
    Ok(())
}

/// Refuses a job that makes no sense on its target.
///
/// # Errors
/// The reason.
pub(crate) fn check(workload: &Workload, shape: &RequestShape, facts: &TargetFacts) -> Result<()> {
    let direct = workload.buffering.is_direct();
    if let (true, Some(why)) = (direct, &facts.direct_refused) {
        return Err(Error::Unsupported(format!("{}: {why}", facts.name)));
    }
    let align = if direct { facts.direct_align_bytes } else { 1 };
    let size = seeming_size(workload, shape, facts.size_bytes);
    Ok(one_thread_of(workload, shape).as_ref().unwrap_or(workload).check(size, align)?)
}

/// The workload of each thread by itself, where they do not share the pattern.
fn one_thread_of(workload: &Workload, shape: &RequestShape) -> Option<Workload> {
    let rate_iops = workload.rate_iops.map(|rate| rate / f64::from(workload.threads));
    let apart = workload.threads > 1 && shape.threads != ThreadOrder::Pattern;
    apart.then(|| Workload { threads: 1, rate_iops, ..workload.clone() })
}

/// The streams of a job.
fn streams<T>(job: &ToolJob<'_, T>, facts: &TargetFacts, ramp: Nanos) -> Result<Vec<Stream>> {
    let workload = &job.workload;
    check(workload, &job.shape, facts)?;
    let facts = TargetFacts { size_bytes: job.seeming_size(facts.size_bytes), ..facts.clone() };
    let Some(alone) = one_thread_of(workload, &job.shape) else {
        return measure::streams(workload, &facts, ramp);
    };
    let shared = (job.shape.threads == ThreadOrder::Interlocked).then(|| Arc::new(AtomicU64::new(0)));
    let region = workload.region(facts.size_bytes);
    let stream = |thread: u32| {
        let cursor = shared.clone().map_or(Cursor::Own, Cursor::Shared);
        let filler = Filler::new(workload).fork(u64::from(thread));
        Ok(Stream::new(&alone, region, (0, 0), cursor, filler, ramp)?)
    };
    (0..workload.threads).map(stream).collect()
}

/// What the streams of a job measured.
fn result<T>(job: &ToolJob<'_, T>, sources: Vec<ToolStream>, usage: Usage) -> Result<ToolResult> {
    if let Some(offset) = sources.iter().find_map(|source| source.wrong) {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, "the data is not what was written");
        return Err(Error::Request { op: Op::Read, offset, len: job.workload.request_bytes, source });
    }
    let span = (
        sources.iter().map(|source| source.result.trace.began).min().unwrap_or(usage.began),
        sources.iter().map(|source| source.result.trace.ended).max().unwrap_or(usage.began),
    );
    let sample = measure::gather(&sources, usage, &job.workload)?;
    Ok(ToolResult { sample, streams: sources.into_iter().map(|source| source.result).collect(), span })
}
