//! Concurrent jobs of a tool, reported separately.

use machine::{
    Error, Machine, Nanos, OnInterrupt, Op, Result, RunOptions, Start, TargetFacts, TargetKind,
};
use measure::{Job, Sample, Stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use stream::{Shared, ToolStream};
use workload::{Cursor, Filler, Workload, check_direct};

mod pool;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use pool::{Pool, TargetResult, run_pool};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ThreadOrder {
    #[default]
    Pattern,
    /// Threads share one sequence of blocks.
    Interlocked,
    /// Each thread covers the whole region, starting `bytes` after the previous one. Offsets
    /// between those of the first thread reach at most `room_bytes`.
    Apart { bytes: u64, room_bytes: u64 },
}

#[derive(Debug, Clone, Default)]
pub(crate) struct RequestShape {
    pub(crate) threads: ThreadOrder,
    /// Distance between requests, if not their length; the region then counts one length per
    /// request.
    pub(crate) step_bytes: Option<u64>,
    /// Requests that follow the previous one instead of the pattern.
    pub(crate) follows_percent: Option<u8>,
    /// In order, with shares that sum to 100; empty: the workload decides.
    pub(crate) ranges: Vec<RequestRange>,
    /// Requests, and the pause after them.
    pub(crate) burst: Option<(u32, Nanos)>,
    pub(crate) pattern: Option<u64>,
    /// Each write continues where the previous one ended.
    pub(crate) source: Option<Arc<[u8]>>,
    /// Reads copy their data in blocks of this size.
    pub(crate) copy_block: Option<usize>,
    pub(crate) log: bool,
    pub(crate) interval_ns: Option<Nanos>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RequestRange {
    /// Of the requests.
    pub(crate) percent: u8,
    /// As a fraction of the region.
    pub(crate) end: f64,
}

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

fn seeming_size(workload: &Workload, shape: &RequestShape, size_bytes: u64) -> u64 {
    match (shape.step_bytes, workload.region_bytes) {
        (Some(_), Some(bytes)) => size_bytes.max(workload.region_start_bytes + bytes),
        _ => size_bytes,
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunPlan {
    pub(crate) ramp_ns: Nanos,
    pub(crate) rest_ns: Nanos,
    /// After the first stream's end the others continue without counting ([`Trace::counted`]).
    pub(crate) stonewall: bool,
}

impl RunPlan {
    fn options<M: Machine>(self, machine: &M) -> RunOptions {
        let start =
            if self.rest_ns > 0 { Start::At(machine.now() + self.rest_ns) } else { Start::Now };
        RunOptions { start, on_interrupt: OnInterrupt::EndRun, ..RunOptions::default() }
    }
}

#[derive(Debug)]
pub(crate) struct ToolResult {
    pub(crate) sample: Sample,
    pub(crate) streams: Vec<StreamResult>,
    /// On the machine's clock.
    pub(crate) span: (Nanos, Nanos),
}

impl ToolResult {
    pub(crate) fn is_interrupted(&self) -> bool {
        self.sample.usage.interrupted
    }
}

#[derive(Debug)]
pub(crate) struct StreamResult {
    pub(crate) stream: Stream,
    pub(crate) trace: Trace,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Interval {
    pub requests: u64,
    /// 0 without requests.
    pub min_ns: u64,
    pub max_ns: u64,
    pub sum_ns: f64,
    pub squares_ns2: f64,
}

impl Interval {
    #[inline]
    pub fn add(&mut self, latency_ns: Nanos) {
        let one = latency_ns as f64;
        *self = self.plus(&Interval {
            requests: 1,
            min_ns: latency_ns,
            max_ns: latency_ns,
            sum_ns: one,
            squares_ns2: one * one,
        });
    }

    #[inline]
    pub fn plus(&self, other: &Interval) -> Interval {
        let min_ns = match (self.requests, other.requests) {
            (0, _) => other.min_ns,
            (_, 0) => self.min_ns,
            _ => self.min_ns.min(other.min_ns),
        };
        Interval {
            requests: self.requests + other.requests,
            min_ns,
            max_ns: self.max_ns.max(other.max_ns),
            sum_ns: self.sum_ns + other.sum_ns,
            squares_ns2: self.squares_ns2 + other.squares_ns2,
        }
    }

    /// 0 without requests.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns / self.requests.max(1) as f64
    }

    pub fn deviation_ns(&self) -> f64 {
        (self.squares_ns2 / self.requests.max(1) as f64 - self.mean_ns().powi(2)).max(0.0).sqrt()
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    /// Offset and latency, in order of completion.
    pub(crate) log: Vec<(u64, Nanos)>,
    pub(crate) intervals: Vec<[Interval; 2]>,
    pub(crate) began: Nanos,
    pub(crate) ended: Nanos,
    /// Completed requests and time when the first stream finished.
    pub(crate) counted: Option<(u64, Nanos)>,
}

/// The first error ends the run. An interrupt keeps the results until then, but is an error if no
/// request completed.
pub(crate) fn run<M: Machine>(
    machine: &M,
    jobs: &[ToolJob<'_, M::Target>],
    plan: RunPlan,
) -> Result<Vec<ToolResult>> {
    let facts: Vec<TargetFacts> = jobs.iter().map(|job| machine.target_facts(job.target)).collect();
    check_simulated(jobs, &facts)?;
    let access = |job: &ToolJob<'_, M::Target>, facts: &TargetFacts| {
        let mut access = job.workload.access(facts.size_bytes);
        if job.shape.step_bytes.is_some()
            || matches!(job.shape.threads, ThreadOrder::Apart { bytes: 1.., .. })
        {
            access.region = (0, facts.size_bytes);
        }
        access
    };
    let parts: Vec<_> = (jobs.iter().zip(&facts))
        .map(|(job, facts)| Job {
            target: job.target,
            facts,
            workload: &job.workload,
            access: access(job, facts),
            processors: &job.processors,
        })
        .collect();
    let ran = measure::run_jobs(
        machine,
        &parts,
        || plan.options(machine),
        || tool_streams(jobs, &facts, plan),
    )?;
    jobs.iter().zip(ran).map(|(job, ran)| result(job, ran?)).collect()
}

fn tool_streams<T>(
    jobs: &[ToolJob<'_, T>],
    facts: &[TargetFacts],
    plan: RunPlan,
) -> Result<Vec<Vec<ToolStream>>> {
    let shared = Arc::new(Shared {
        stonewall: plan.stonewall,
        first_done: AtomicBool::new(false),
        stop: AtomicBool::new(false),
    });
    let of = |(job, facts): (&ToolJob<'_, T>, &TargetFacts)| {
        let streams = streams(job, facts, plan.ramp_ns)?.into_iter().enumerate();
        let region = job.workload.region(job.seeming_size(facts.size_bytes));
        let source = |(thread, stream)| {
            ToolStream::new(
                stream,
                thread as u64,
                &job.workload,
                &job.shape,
                region,
                &shared,
                plan.ramp_ns,
            )
        };
        Ok(streams.map(source).collect())
    };
    jobs.iter().zip(facts).map(of).collect()
}

fn check_simulated<T>(jobs: &[ToolJob<'_, T>], facts: &[TargetFacts]) -> Result<()> {
    let Some(twin) = facts.iter().find(|facts| facts.kind == TargetKind::Simulated) else {
        return Ok(());
    };
    if jobs.iter().any(|job| job.shape.pattern.is_some()) {
        let why = "a simulated machine holds no data that could be verified";
        return Err(Error::refused(twin.name.clone(), why, "leave out the verification"));
    }
    Ok(())
}

pub(crate) fn check(workload: &Workload, shape: &RequestShape, facts: &TargetFacts) -> Result<()> {
    let direct = workload.buffering.is_direct();
    if let (true, Some(why)) = (direct, &facts.direct_refused) {
        return Err(Error::Unsupported(format!("{}: {why}", facts.name)));
    }
    let align = if direct { facts.direct_align_bytes } else { 1 };
    if let Some(bytes) = shape.step_bytes {
        check_direct("distance of requests", bytes, align)?;
    }
    if let ThreadOrder::Apart { bytes, .. } = shape.threads {
        check_direct("distance of threads", bytes, align)?;
    }
    let size = seeming_size(workload, shape, facts.size_bytes);
    Ok(one_thread_of(workload, shape).as_ref().unwrap_or(workload).check(size, align)?)
}

fn one_thread_of(workload: &Workload, shape: &RequestShape) -> Option<Workload> {
    let rate_iops = workload.rate_iops.map(|rate| rate / f64::from(workload.threads));
    let apart = workload.threads > 1 && shape.threads != ThreadOrder::Pattern;
    apart.then(|| Workload { threads: 1, rate_iops, ..workload.clone() })
}

fn streams<T>(job: &ToolJob<'_, T>, facts: &TargetFacts, ramp: Nanos) -> Result<Vec<Stream>> {
    let workload = &job.workload;
    check(workload, &job.shape, facts)?;
    let facts = TargetFacts { size_bytes: job.seeming_size(facts.size_bytes), ..facts.clone() };
    let Some(alone) = one_thread_of(workload, &job.shape) else {
        return measure::streams(workload, &facts, ramp);
    };
    let shared =
        (job.shape.threads == ThreadOrder::Interlocked).then(|| Arc::new(AtomicU64::new(0)));
    let region = workload.region(facts.size_bytes);
    let stream = |thread: u32| {
        let cursor = shared.clone().map_or(Cursor::Own, Cursor::Shared);
        let filler = Filler::new(workload).fork(u64::from(thread));
        Ok(Stream::new(&alone, region, (0, 0), cursor, filler, ramp)?)
    };
    (0..workload.threads).map(stream).collect()
}

fn result<T>(
    job: &ToolJob<'_, T>,
    (sample, sources): (Sample, Vec<ToolStream>),
) -> Result<ToolResult> {
    if let Some(offset) = sources.iter().find_map(|source| source.wrong) {
        let source = std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            "the data is not what was written",
        );
        return Err(Error::Request {
            op: Op::Read,
            offset,
            len: job.workload.request_bytes,
            source,
        });
    }
    let span = (
        sources.iter().map(|source| source.result.trace.began).min().unwrap_or(sample.usage.began),
        sources.iter().map(|source| source.result.trace.ended).max().unwrap_or(sample.usage.began),
    );
    Ok(ToolResult {
        sample,
        streams: sources.into_iter().map(|source| source.result).collect(),
        span,
    })
}
