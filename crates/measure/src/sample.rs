use crate::clients::{Together, sample_of_clients, sample_simulated_clients};
use crate::histogram::Histogram;
use crate::live::{SecondLog, WatchedRun};
use crate::observed::Observed;
use crate::over_time::{IntervalSample, Intervals, interval_samples};
use crate::resume;
use crate::slices::summed_rates;
use crate::stats;
use crate::stream::{SLICE_NS, Stream};
use machine::units::show_time;
use machine::{
    Access, CacheState, Error, Figure, Machine, Nanos, OnInterrupt, Part, Pause, REAP_LEARNING_NS,
    Reap, RequestSource, Result, RunOptions, Scheduling, Start, TargetFacts, Usage, Warning,
};
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use workload::{Cursor, Filler, Pattern, Stop, Workload};

/// The share of slices without a completion from which fast requests are bursty.
const BURSTY_SHARE: f64 = 0.6;

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Options {
    pub start: Start,
    pub ramp_ns: Nanos,
    /// Do not use such a run's rate.
    pub count_instructions: bool,
    /// Do not use such a run's rate.
    pub trace: bool,
    /// Count until the deadline instead of the last completion. This is right if as many requests
    /// are in flight at the beginning as at the end (after a ramp), or if they are admitted in
    /// bursts.
    pub until_deadline: bool,
    /// Brought into an empty page cache by a previous run of this kind, if known.
    pub cache_bytes: Option<u64>,
    pub keep_interrupted: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sample {
    pub measured_ns: Nanos,
    pub requests: u64,
    pub bytes: u64,
    /// Requests per second over all streams and the whole measured part.
    pub rate: f64,
    /// Latencies of reads, then of writes.
    pub latency: [Histogram; 2],
    pub slice_ns: Nanos,
    /// Of the finest slices.
    pub empty_share: f64,
    /// Requests per second over all streams, without the warm-up.
    pub slice_rates: Vec<f64>,
    pub warm_up_rates: Vec<f64>,
    /// A beginning that the data show to be a warm-up or a burst.
    pub warm_up_ns: Nanos,
    /// Positions count from the warm-up's start.
    pub verdict: stats::Verdict,
    /// Over all streams.
    pub mean_depth: f64,
    pub mean_service_ns: f64,
    /// Over the whole run, with the ramp.
    pub usage: Usage,
    pub requests_with_ramp: u64,
    pub bytes_with_ramp: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<IntervalSample>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Box<Together>>,
}

impl Sample {
    /// Returns requests per second: with a flush at the end, of the whole run to stable storage;
    /// otherwise after the warm-up until the last request returned.
    pub fn iops(&self) -> f64 {
        match self.usage.sync_ns {
            Some(sync_ns) => {
                self.requests_with_ramp as f64 * 1e9
                    / self.usage.elapsed_ns.saturating_add(sync_ns).max(1) as f64
            }
            None => self.returned_iops(),
        }
    }

    /// Leaves out the warm-up and the flush: for buffered writes the rate at which the cache
    /// absorbed them.
    pub fn returned_iops(&self) -> f64 {
        let skipped = (self.warm_up_ns / self.slice_ns.max(1)) as usize;
        if skipped == 0 || self.slice_rates.is_empty() {
            return self.rate;
        }
        self.slice_rates.iter().sum::<f64>() / self.slice_rates.len() as f64
    }

    /// Includes the ramp.
    pub fn bytes_by_op(&self) -> [f64; 2] {
        let [reads, writes] = [0, 1].map(|op| self.latency[op].count() as f64);
        let each = self.bytes_with_ramp as f64 / (reads + writes).max(1.0);
        [reads * each, writes * each]
    }

    /// Something admits requests in time slices.
    pub fn is_bursty(&self) -> bool {
        let [reads, writes] = &self.latency;
        let quick = reads.percentile(50.0).max(writes.percentile(50.0));
        self.empty_share >= BURSTY_SHARE && quick * 8 < SLICE_NS
    }

    /// Returns the deviation of rate, mean latency and mean depth from L = X R (Little, 1961).
    pub fn little_error(&self) -> f64 {
        let expected = self.rate / 1e9 * self.mean_service_ns;
        if expected == 0.0 { 0.0 } else { (self.mean_depth / expected - 1.0).abs() }
    }
}

/// May take an earlier process's run from the [`machine::RunLog`].
pub fn sample<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    workload: &Workload,
    options: Options,
) -> Result<Sample> {
    sample_watched(machine, target, workload, options, None)
}

pub(crate) fn sample_watched<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    workload: &Workload,
    options: Options,
    seconds: Option<&Arc<SecondLog>>,
) -> Result<Sample> {
    let watched = seconds.map(SecondLog::begin_run);
    let Some(log) = machine.run_log() else {
        return sample_now(machine, target, workload, options, watched);
    };
    let run = resume::description(&machine.target_facts(target), workload, options);
    let known = log.recall(&run).and_then(|kept| serde_json::from_str::<Sample>(&kept).ok());
    if let Some(sample) = known {
        machine.wrote_before(sample.bytes_by_op()[1].ceil() as u64);
        show(&sample, workload);
        return Ok(sample);
    }
    let sample = sample_now(machine, target, workload, options, watched)?;
    if sample.usage.interrupted {
        return Ok(sample);
    }
    if let Ok(kept) = serde_json::to_string(&sample) {
        log.keep(&run, &kept);
    }
    Ok(sample)
}

fn sample_now<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    workload: &Workload,
    options: Options,
    watched: Option<WatchedRun>,
) -> Result<Sample> {
    if let Some(runs) = machine.client_runs() {
        machine::live::started(workload.short());
        let sample = sample_of_clients(runs, workload, options)?;
        show(&sample, workload);
        return Ok(sample);
    }
    if machine.clients() > 1 || workload.clients.is_some() {
        return sample_simulated_clients(machine, target, workload, options);
    }
    let watch = |mut stream: Stream| {
        watched.iter().for_each(|run| stream.watch(run.clone()));
        stream
    };
    let intervals = workload.intervals();
    if intervals.is_empty() {
        return sample_as(machine, target, workload, options, 1, watch).map(|all| all.0);
    }
    let options = if workload.load.is_empty() { options } else { at_once(options) };
    let (mut sample, streams) = sample_as(machine, target, workload, options, 1, |stream| {
        Observed { stream: watch(stream), observer: Intervals::new(&intervals) }
    })?;
    sample.intervals = interval_samples(&streams, &intervals);
    Ok(sample)
}

fn at_once(options: Options) -> Options {
    Options { ramp_ns: 0, until_deadline: false, ..options }
}

pub(crate) fn sample_as<M: Machine, A: RequestSource + Borrow<Stream>>(
    machine: &M,
    target: &mut M::Target,
    workload: &Workload,
    options: Options,
    clients: u32,
    source: impl Fn(Stream) -> A,
) -> Result<(Sample, Vec<A>)> {
    machine::live::started(workload.short());
    let facts = machine.target_facts(target);
    let ramp_ns =
        options.ramp_ns.max(if workload.reap == Reap::Auto { REAP_LEARNING_NS } else { 0 });
    workload.check(facts.size_bytes, alignment(workload, &facts))?;
    let Options { start, count_instructions, trace, .. } = options;
    let cache_bytes = cache_bytes(workload, facts.size_bytes, options.cache_bytes);
    let on_interrupt =
        if options.keep_interrupted { OnInterrupt::EndRun } else { OnInterrupt::Fail };
    let how = RunOptions {
        start,
        count_instructions,
        trace,
        cache_bytes,
        on_interrupt,
        clients,
        ..RunOptions::default()
    };
    let job = Job::new(target, &facts, workload);
    let sources =
        || Ok(vec![streams(workload, &facts, ramp_ns)?.into_iter().map(&source).collect()]);
    let (mut sample, streams) = run_jobs(machine, &[job], || how, sources)?.remove(0)?;
    if (options.until_deadline || ramp_ns > 0)
        && let Some(rate) = rate_until_deadline(&streams)
    {
        // The mean time for the same window, by Little's law, which needs no requests cut off at
        // its ends.
        sample.mean_service_ns = sample.mean_depth / rate * 1e9;
        sample.rate = rate;
        if options.until_deadline {
            // The window was chosen to match the bursts; cutting a warm-up would shift it.
            sample.warm_up_ns = 0;
        }
    }
    Ok((sample, streams))
}

pub struct Job<'t, T> {
    pub target: &'t T,
    pub facts: &'t TargetFacts,
    pub workload: &'t Workload,
    pub access: Access,
    /// Empty for all.
    pub processors: &'t [u32],
}

impl<'t, T> Job<'t, T> {
    pub(crate) fn new(target: &'t T, facts: &'t TargetFacts, workload: &'t Workload) -> Job<'t, T> {
        Job { target, facts, workload, access: workload.access(facts.size_bytes), processors: &[] }
    }
}

pub type JobRun<A> = Result<(Sample, Vec<A>)>;

/// Runs all at once, again if the program was paused. A job in which no request completed fails.
pub fn run_jobs<M: Machine, A: RequestSource + Borrow<Stream>>(
    machine: &M,
    jobs: &[Job<'_, M::Target>],
    options: impl Fn() -> RunOptions,
    mut sources: impl FnMut() -> Result<Vec<Vec<A>>>,
) -> Result<Vec<JobRun<A>>> {
    let ((sources, mut usage), left_out) = retry_if_paused(|| {
        let mut sources = sources()?;
        let part = |(job, sources)| -> Part<'_, M::Target, A> {
            let Job { target, access, processors, .. }: &Job<'_, M::Target> = job;
            let scheduling = Scheduling { processors, ..Scheduling::default() };
            Part { scheduling, ..Part::new(target, access, sources) }
        };
        let mut parts = Vec::with_capacity(jobs.len());
        parts.extend(jobs.iter().zip(sources.iter_mut().map(Vec::as_mut_slice)).map(part));
        let usage = machine.run(&mut parts, options())?;
        drop(parts);
        let paused = usage.paused;
        Ok::<_, Error>(((sources, usage), paused))
    })?;
    usage.warnings.extend(left_out);
    let mut all: Vec<JobRun<A>> = (jobs.iter().zip(sources).zip(usage.by_part()))
        .map(|((job, sources), usage)| Ok((gather(&sources, usage?, job.workload)?, sources)))
        .collect();
    let of_jobs = all.iter_mut().zip(jobs);
    note_others(
        of_jobs.filter_map(|(one, job)| Some((&mut one.as_mut().ok()?.0, job.workload, job.facts))),
    );
    Ok(all)
}

/// Bounds the rate at which a run fills the cache, if nothing else is known.
const FILL_BYTES_PER_NS: u64 = 8;

fn cache_bytes(workload: &Workload, size_bytes: u64, before: Option<u64>) -> u64 {
    if workload.buffering.is_direct() || workload.cache != CacheState::Cold {
        return 0;
    }
    let max = match workload.stop {
        Stop::AfterNs(ns) => {
            before.map_or(ns.saturating_mul(FILL_BYTES_PER_NS), |bytes| bytes / 4 * 5)
        }
        Stop::AfterBytes(bytes) => bytes,
    };
    max.min(workload.limit_bytes.unwrap_or(u64::MAX)).min(workload.region(size_bytes).1)
}

const MAX_RETRIES: usize = 3;

/// Also returns sentences about the pauses.
pub fn retry_if_paused<T, E>(
    mut run: impl FnMut() -> std::result::Result<(T, Option<Pause>), E>,
) -> std::result::Result<(T, Vec<Warning>), E> {
    let mut discarded = Vec::new();
    loop {
        let (ran, paused) = run()?;
        match paused {
            None => return Ok((ran, discarded)),
            Some(pause) if discarded.len() == MAX_RETRIES => {
                return Ok((
                    ran,
                    vec![Warning::from(pause).then(format!(
                        " within a run, as in each of {MAX_RETRIES} before it: do not trust it"
                    ))],
                ));
            }
            Some(pause) => {
                discarded.push(Warning::from("a run was left out and repeated: ").then(pause))
            }
        }
    }
}

pub(crate) fn alignment(workload: &Workload, facts: &TargetFacts) -> u32 {
    if workload.buffering.is_direct() { facts.direct_align_bytes } else { 1 }
}

/// Creates a source per stream or, if the engine has one request outstanding, per unit of depth
/// with a shared cursor.
pub fn streams(workload: &Workload, facts: &TargetFacts, ramp: Nanos) -> Result<Vec<Stream>> {
    let region = workload.region(facts.size_bytes);
    let together = workload.engine.workers(workload.depth);
    let filler = Filler::new(workload);
    let mut streams = Vec::with_capacity((workload.threads * together) as usize);
    let whole = workload.pattern == Pattern::Together;
    let alone = together == 1 && (!whole || workload.threads == 1);
    let mut shared = Arc::new(AtomicU64::new(0));
    for index in 0..workload.threads {
        if !whole {
            shared = Arc::new(AtomicU64::new(0));
        }
        for hand in 0..together {
            let cursor = if alone { Cursor::Own } else { Cursor::Shared(shared.clone()) };
            let filler = filler.fork(streams.len() as u64);
            streams.push(Stream::new(workload, region, (index, hand), cursor, filler, ramp)?);
        }
    }
    Ok(streams)
}

/// Returns `None` if a stream ended earlier.
fn rate_until_deadline<S: Borrow<Stream>>(streams: &[S]) -> Option<f64> {
    let windows: Option<Vec<(u64, Nanos)>> =
        streams.iter().map(|stream| stream.borrow().until_deadline()).collect();
    let windows = windows?;
    let longest = windows.iter().map(|window| window.1).max()?;
    Some(windows.iter().map(|window| window.0).sum::<u64>() as f64 * 1e9 / longest.max(1) as f64)
}

pub fn interrupted_after(measured_ns: Nanos) -> Warning {
    let after = Figure::new(measured_ns as f64, show_time(measured_ns as f64));
    Warning::of("interrupted after {}: the figures are those until then", [after])
}

/// Fails if no request completed.
pub fn gather<S: Borrow<Stream>>(
    streams: &[S],
    mut usage: Usage,
    workload: &Workload,
) -> Result<Sample> {
    // Reads need no flush.
    usage.sync_ns = usage.sync_ns.filter(|_| workload.writes());
    let streams: Vec<&Stream> = streams.iter().map(Borrow::borrow).collect();
    let requests: u64 = streams.iter().map(|stream| stream.completed()).sum();
    if requests == 0 && usage.interrupted {
        return Err(Error::Interrupted);
    }
    if requests == 0 {
        return Err(Error::Unsupported(
            "no request completed in the time of the run: give it more --runtime or smaller requests".into(),
        ));
    }
    let mut latency = [Histogram::new(), Histogram::new()];
    for stream in &streams {
        stream.end_second();
        for (sum, part) in latency.iter_mut().zip(stream.latency()) {
            sum.merge(part);
        }
    }
    let service: f64 =
        streams.iter().map(|stream| stream.mean_service_ns() * stream.completed() as f64).sum();
    let (mut slice_ns, mut slice_rates) =
        summed_rates(streams.iter().map(|stream| stream.slices()));
    let empty_share = slice_rates.iter().filter(|&&rate| rate == 0.0).count() as f64
        / slice_rates.len().max(1) as f64;
    // Empty slices reflect the length of a request, not the rate.
    while often_empty(&slice_rates) && slice_rates.len() > 1 {
        slice_rates = slice_rates.chunks_exact(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        slice_ns *= 2;
    }
    // A final flush covers all writes, so the rate is that of the whole run.
    let timed = matches!(workload.stop, Stop::AfterNs(_))
        && workload.cache != CacheState::Cold
        && usage.sync_ns.is_none();
    if !workload.load.is_empty() {
        // The rate changes on request: slices say nothing about spread, warm-up or drift.
        slice_rates.clear();
    }
    // After the deadline no new requests are issued, and those in flight have less and less
    // competition. They count for the rate, but a slow run must not weigh more than a fast one
    // because it takes longer to drain.
    if let Stop::AfterNs(run) = workload.stop {
        slice_rates.truncate((run / slice_ns.max(1)).max(1) as usize);
    }
    let steadiness = stats::judge(&slice_rates);
    let warm_up = if timed { steadiness.warm_up.min(slice_rates.len() / 2) } else { 0 };
    let warm_up_rates: Vec<f64> = slice_rates.drain(..warm_up).collect();
    let measured_ns = streams.iter().map(|stream| stream.measured_ns()).max().unwrap_or(0);
    if usage.interrupted {
        usage.warnings.push(interrupted_after(measured_ns));
    }
    // Streams that ended early count for the time they ran.
    let mean_depth =
        streams.iter().map(|stream| stream.mean_depth() * stream.measured_ns() as f64).sum::<f64>()
            / measured_ns.max(1) as f64;
    let sample = Sample {
        measured_ns,
        requests,
        bytes: streams.iter().map(|stream| stream.completed_bytes()).sum(),
        rate: requests as f64 * 1e9 / measured_ns.max(1) as f64,
        latency,
        slice_ns,
        empty_share,
        slice_rates,
        warm_up_rates,
        warm_up_ns: warm_up as u64 * slice_ns,
        verdict: steadiness.verdict,
        mean_depth,
        mean_service_ns: service / requests as f64,
        requests_with_ramp: streams.iter().map(|stream| stream.completed_with_ramp()).sum(),
        bytes_with_ramp: streams.iter().map(|stream| stream.completed_bytes_with_ramp()).sum(),
        intervals: Vec::new(),
        together: None,
        usage,
    };
    show(&sample, workload);
    Ok(sample)
}

/// Ignores the longest pause if there is a rate apart from it: a limit that falls stops the
/// requests in flight once.
fn often_empty(slice_rates: &[f64]) -> bool {
    const RATE: usize = 4;
    let pauses =
        slice_rates.chunk_by(|a, b| (*a == 0.0) == (*b == 0.0)).filter(|part| part[0] == 0.0);
    let (empty, longest) =
        pauses.fold((0, 0), |(sum, longest), pause| (sum + pause.len(), longest.max(pause.len())));
    let counted = if slice_rates.len() - empty < RATE { empty } else { empty - longest };
    counted * 10 > slice_rates.len()
}

fn show(sample: &Sample, workload: &Workload) {
    let direct = workload.buffering.is_direct() && workload.engine.does_io();
    let op = match workload.read_percent {
        100 if direct => Some(0),
        0 if direct => Some(1),
        _ => None,
    };
    let bytes_per_request = sample.bytes as f64 / sample.requests.max(1) as f64;
    let iops = sample.iops();
    let numbers = [iops * bytes_per_request, iops, sample.mean_service_ns];
    machine::live::finished(workload.short(), op, numbers);
}

/// Counts bytes on the same devices.
pub fn note_others<'s>(
    samples: impl IntoIterator<Item = (&'s mut Sample, &'s Workload, &'s TargetFacts)>,
) {
    let mut all: Vec<_> = samples.into_iter().collect();
    let asked: Vec<[u64; 2]> =
        all.iter().map(|one| one.0.bytes_by_op().map(|bytes| bytes as u64)).collect();
    for index in 0..all.len() {
        for (other, bytes) in asked.iter().enumerate().filter(|(other, _)| *other != index) {
            let devices = &all[other].2.devices;
            if !all[index].2.devices.iter().any(|device| devices.contains(device)) {
                continue;
            }
            let direct = all[other].1.buffering.is_direct();
            let usage = &mut all[index].0.usage;
            let sums = if direct {
                &mut usage.others_direct_bytes
            } else {
                &mut usage.others_cached_bytes
            };
            sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pause_does_not_widen_the_slices() {
        let slices = |parts: &[(f64, usize)]| -> Vec<f64> {
            parts.iter().flat_map(|&(rate, slices)| vec![rate; slices]).collect()
        };
        assert!(!often_empty(&slices(&[(5.0, 20), (0.0, 9), (1.0, 20)])));
        assert!(often_empty(&slices(&[(5.0, 20), (0.0, 9), (1.0, 1), (0.0, 9), (1.0, 20)])));
        // Single requests, one after the other.
        assert!(often_empty(&slices(&[(0.0, 99), (1.0, 1)])));
        assert!(often_empty(&slices(&[(0.0, 99), (1.0, 1), (0.0, 99), (1.0, 1)])));
    }

    #[test]
    fn cache_bytes_stay_within_region_and_limit() {
        let cold = Workload {
            buffering: machine::Buffering::Buffered,
            cache: CacheState::Cold,
            stop: Stop::AfterNs(1_000_000),
            ..Workload::default()
        };
        let bytes = |workload: &Workload, before| cache_bytes(workload, 1 << 30, before);
        assert_eq!(bytes(&cold, None), 8_000_000);
        assert_eq!(bytes(&cold, Some(4000)), 5000);
        assert_eq!(
            bytes(&Workload { stop: Stop::AfterNs(u64::MAX), ..cold.clone() }, None),
            1 << 30
        );
        assert_eq!(bytes(&Workload { limit_bytes: Some(1000), ..cold.clone() }, Some(4000)), 1000);
        assert_eq!(bytes(&Workload { cache: CacheState::Warm, ..cold.clone() }, None), 0);
        assert_eq!(bytes(&Workload { buffering: machine::Buffering::Direct, ..cold }, None), 0);
    }

    #[test]
    fn paused_runs_are_repeated_a_limited_number_of_times() {
        let pause = Some(Pause {
            ns: 5_000_000_000,
            times: 1,
            percent: 50.0,
            cause: machine::PauseCause::Stopped,
        });
        let ran = |pauses: &[Option<Pause>]| {
            let mut runs = 0;
            let run = || {
                runs += 1;
                Ok((runs, pauses.get(runs - 1).copied().unwrap_or(pause)))
            };
            retry_if_paused::<_, Error>(run).unwrap()
        };
        assert_eq!(ran(&[None]), (1, vec![]));
        let (runs, left_out) = ran(&[pause, None]);
        assert_eq!(
            (runs, left_out[0].to_string()),
            (2, "a run was left out and repeated: the program was stopped for 5.0 s".to_owned())
        );
        let (runs, discarded) = ran(&[]);
        assert!(
            runs == MAX_RETRIES + 1
                && discarded.len() == 1
                && discarded[0].to_string().contains("do not trust it"),
            "{discarded:?}"
        );
        assert!(matches!(
            retry_if_paused::<(), _>(|| Err(Error::Interrupted)),
            Err(Error::Interrupted)
        ));
    }
}
