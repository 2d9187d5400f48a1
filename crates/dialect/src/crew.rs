//! A crew: the streams of several workloads on several files in one run, started together and, where asked, counted only until the first is done.
//!
//! [`measure::sample`] runs one workload on one target. The tools whose languages are spoken here also run a file a process, a
//! file's threads from different starting points, or readers beside writers, and report each by itself.

use machine::{Error, Machine, Nanos, Op, Result, TargetFacts, TargetKind};
use measure::{Sample, Stream};
use player::{Common, Player};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use workload::{Cursor, Filler, Workload};

mod player;
#[cfg(test)]
mod tests;

/// Time from the last stream's readiness to the common start, so that no stream is still asleep then.
const SETTLE_NS: Nanos = 1_000_000;

/// What a tool does to the requests of a workload.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    /// Every offset is moved on by so many bytes within the region, around its end.
    pub(crate) rotate_bytes: u64,
    /// The places of the requests are so many bytes apart, and not as many as a request is long. The job's region has then a request's
    /// length for each place, wherever that ends.
    pub(crate) step_bytes: Option<u64>,
    /// Writes carry this pattern, and reads must find it.
    pub(crate) pattern: Option<u64>,
    /// Writes carry these bytes, each going on where the one before ended.
    pub(crate) source: Option<Arc<[u8]>>,
    /// The data of reads is copied once more, in blocks of so many bytes.
    pub(crate) copy_block: Option<usize>,
    /// Offset and latency of every request are kept.
    pub(crate) log: bool,
    /// Completions are counted in intervals of so many nanoseconds, reads and writes apart.
    pub(crate) interval_ns: Option<Nanos>,
    /// The threads of a sequential workload take the next block of one common sequence.
    pub(crate) interlocked: bool,
}

/// Streams of one workload.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) workload: Workload,
    pub(crate) shape: Shape,
}

impl Job {
    /// Bytes that a target must seem to have for the workload's region.
    fn seeming_size(&self, size_bytes: u64) -> u64 {
        match (self.shape.step_bytes, self.workload.region_bytes) {
            (Some(_), Some(bytes)) => size_bytes.max(self.workload.region_start_bytes + bytes),
            _ => size_bytes,
        }
    }
}

/// A file and what is done to it. All jobs of a part reach it the same way: that of the first.
pub(crate) struct Part<'t, T> {
    pub(crate) target: &'t mut T,
    pub(crate) jobs: Vec<Job>,
    /// Its streams run on these processors alone.
    pub(crate) processors: Vec<u32>,
}

/// How a run is made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run {
    /// Time at the start that is run but not measured.
    pub(crate) ramp_ns: Nanos,
    /// When the first stream has done its bytes, the others go on but count no more ([`Notes::counted`]).
    pub(crate) stonewall: bool,
}

/// What the streams of one part measured.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) sample: Sample,
    pub(crate) streams: Vec<Stream>,
    pub(crate) notes: Vec<Notes>,
    /// When the first stream began and the last ended, on the machine's clock.
    pub(crate) span: (Nanos, Nanos),
}

/// What a stream noted beside its measurements.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    /// Offset in bytes and latency of every request, in order of completion.
    pub(crate) log: Vec<(u64, Nanos)>,
    /// Reads and writes completed in each interval.
    pub(crate) intervals: Vec<[u64; 2]>,
    /// When the stream began and when its last request ended.
    pub(crate) began: Nanos,
    pub(crate) ended: Nanos,
    /// Requests done, and the time, when the first stream of a run with a stonewall was done.
    pub(crate) counted: Option<(u64, Nanos)>,
}

/// Runs all parts at once.
///
/// # Errors
/// A workload that makes no sense on its target, an access mode that a target refuses, a failed request, data that is not
/// what was written. The first error ends all parts.
pub(crate) fn run<M>(machine: &M, parts: Vec<Part<'_, M::Target>>, how: Run) -> Result<Vec<Ran>>
where
    M: Machine + Sync,
    M::Target: Send,
{
    let facts: Vec<TargetFacts> = parts.iter().map(|part| machine.target_facts(part.target)).collect();
    check_simulated(&parts, &facts)?;
    let mut crews = Vec::new();
    for (part, facts) in parts.iter().zip(&facts) {
        crews.push(streams(&part.jobs, facts, how.ramp_ns)?);
    }
    let common = Arc::new(Common {
        expected: crews.iter().map(Vec::len).sum(),
        ready: AtomicUsize::new(0),
        start: AtomicU64::new(0),
        stonewall: how.stonewall,
        first_done: AtomicBool::new(false),
        stop: AtomicBool::new(false),
    });
    let work = |part: Part<'_, M::Target>, facts: &TargetFacts, streams: Vec<(Stream, usize)>| -> Result<Ran> {
        let ran = run_part(machine, part, facts, streams, &common, how.ramp_ns);
        if ran.is_err() {
            common.stop.store(true, Ordering::Relaxed);
        }
        ran
    };
    let alone = parts.len() == 1 && parts[0].processors.is_empty();
    let mut work_list = parts.into_iter().zip(&facts).zip(crews).map(|((part, facts), crew)| (part, facts, crew));
    if alone {
        return work_list.by_ref().map(|(part, facts, crew)| work(part, facts, crew)).collect();
    }
    let results: Vec<Result<Ran>> = std::thread::scope(|scope| {
        let work = &work;
        let hands: Vec<_> = work_list.map(|(part, facts, crew)| scope.spawn(move || work(part, facts, crew))).collect();
        hands.into_iter().map(|hand| hand.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    first_failure(results)
}

/// A simulated machine serves one target at a time, has processors that nobody can be bound to, and moves no data.
fn check_simulated<T>(parts: &[Part<'_, T>], facts: &[TargetFacts]) -> Result<()> {
    let Some(twin) = facts.iter().find(|facts| facts.kind == TargetKind::Simulated) else { return Ok(()) };
    let refused = |why: &str, mend: &str| Err(Error::refused(twin.name.clone(), why, mend));
    if parts.len() > 1 {
        return refused("a simulated machine serves one file at a time", "name it alone, and no other file");
    }
    if parts.iter().any(|part| !part.processors.is_empty()) {
        return refused("threads cannot be bound to processors of a simulated machine", "leave out the processors");
    }
    if parts.iter().flat_map(|part| &part.jobs).any(|job| job.shape.pattern.is_some()) {
        return refused("a simulated machine holds no data that could be verified", "leave out the verification");
    }
    Ok(())
}

/// All results, or the first error; one that only says that another stopped the run stands back.
fn first_failure(results: Vec<Result<Ran>>) -> Result<Vec<Ran>> {
    let mut rans = Vec::new();
    let mut errors = Vec::new();
    for result in results {
        match result {
            Ok(ran) => rans.push(ran),
            Err(error) => errors.push(error),
        }
    }
    errors.sort_by_key(|error| matches!(error, Error::Unsupported(_)));
    errors.into_iter().next().map_or(Ok(rans), Err)
}

/// The streams of all jobs of a part, each with the number of its job.
fn streams(jobs: &[Job], facts: &TargetFacts, ramp: Nanos) -> Result<Vec<(Stream, usize)>> {
    let mut all = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let workload = &job.workload;
        let direct = workload.buffering.is_direct();
        if let (true, Some(why)) = (direct, &facts.direct_refused) {
            return Err(Error::Unsupported(format!("{}: {why}", facts.name)));
        }
        let size = job.seeming_size(facts.size_bytes);
        workload.check(size, if direct { facts.direct_align_bytes } else { 1 })?;
        let region = workload.region(size);
        if job.shape.interlocked {
            let one = Workload { threads: 1, ..workload.clone() };
            let shared = Arc::new(AtomicU64::new(0));
            for _ in 0..workload.threads {
                let filler = Filler::new(workload).fork(all.len() as u64);
                all.push((Stream::new(&one, region, (0, 0), Cursor::Shared(shared.clone()), filler, ramp)?, number));
            }
        } else if jobs.len() == 1 && job.shape.step_bytes.is_none() {
            all.extend(measure::streams(workload, facts, ramp)?.into_iter().map(|stream| (stream, number)));
        } else {
            for index in 0..workload.threads {
                let filler = Filler::new(workload).fork(all.len() as u64);
                all.push((Stream::new(workload, region, (index, 0), Cursor::Own, filler, ramp)?, number));
            }
        }
    }
    Ok(all)
}

fn run_part<M: Machine>(
    machine: &M,
    part: Part<'_, M::Target>,
    facts: &TargetFacts,
    streams: Vec<(Stream, usize)>,
    common: &Arc<Common>,
    ramp: Nanos,
) -> Result<Ran> {
    if !part.processors.is_empty() {
        machine.bind(&part.processors)?;
    }
    let first = &part.jobs[0].workload;
    let mut access = first.access(facts.size_bytes);
    if part.jobs.len() > 1 {
        access.region = (0, facts.size_bytes);
    }
    let mut players: Vec<Player> = streams
        .into_iter()
        .map(|(stream, job)| {
            let job = &part.jobs[job];
            Player::new(stream, job, job.workload.region(job.seeming_size(facts.size_bytes)), common, ramp)
        })
        .collect();
    let usage = machine.run(part.target, &access, &mut players)?;
    if let Some(offset) = players.iter().find_map(|player| player.wrong) {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, "the data is not what was written");
        return Err(Error::Request { op: Op::Read, offset, len: first.request_bytes, source });
    }
    let span = (
        players.iter().map(|player| player.notes.began).min().unwrap_or(usage.began),
        players.iter().map(|player| player.notes.ended).max().unwrap_or(usage.began),
    );
    let (streams, notes): (Vec<Stream>, Vec<Notes>) = players.into_iter().map(|player| (player.stream, player.notes)).unzip();
    let sample = measure::gather(&streams, usage, first)?;
    Ok(Ran { sample, streams, notes, span })
}
