//! One run of one workload.

use crate::histogram::Histogram;
use crate::slices::summed_rates;
use crate::stats;
use crate::stream::{SLICE_NS, Stream};
use machine::{
    CacheState, Error, Machine, Nanos, Part, Pause, REAP_LEARNING_NS, Reap, RequestSource, Result, RunOptions,
    TargetFacts, Usage,
};
use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use workload::{Cursor, Filler, Stop, Workload};

/// Requests that are quick and yet complete in fewer slices than the rest of this share are admitted in bursts.
const BURSTY_SHARE: f64 = 0.6;

/// How a run is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Time at the start that is run but not measured.
    pub ramp_ns: Nanos,
    /// Read the processor's counters; the rate of such a run is not to be used.
    pub count_instructions: bool,
    /// Note when the block layer has each request; the rate of such a run is not to be used either.
    pub trace: bool,
    /// The rate is what completes until the deadline, over the time until then: right where as many requests are under way at the
    /// beginning as at the end (after a ramp), or where they are admitted in bursts. Otherwise it is what completes until the last does.
    pub until_deadline: bool,
    /// Bytes that such a run brought into an empty page cache before; none: unknown.
    pub cache_bytes: Option<u64>,
}

/// What one run measured.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Length of the measured part.
    pub measured_ns: Nanos,
    /// Requests completed in it.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests per second over all streams, the whole measured part.
    pub rate: f64,
    /// Latencies of reads and of writes.
    pub latency: [Histogram; 2],
    /// Width of a time slice.
    pub slice_ns: Nanos,
    /// Share of the finest slices in which nothing completed.
    pub empty_share: f64,
    /// Requests per second in each slice, all streams together, the warm-up left out.
    pub slice_rates: Vec<f64>,
    /// Time at the start that the data themselves show to be warm-up, or a burst before the long-run rate.
    pub warm_up_ns: Nanos,
    /// How steady the run was, the warm-up included.
    pub verdict: stats::Verdict,
    /// Mean requests in flight over all streams.
    pub mean_depth: f64,
    /// Mean time from issue to completion.
    pub mean_service_ns: f64,
    /// Processor, device, cache; over the whole run, ramp included.
    pub usage: Usage,
    /// Requests of the whole run, ramp included: what [`Sample::usage`] belongs to.
    pub requests_with_ramp: u64,
    /// Their bytes.
    pub bytes_with_ramp: u64,
}

impl Sample {
    /// The rate of the run in requests per second. If it ends with a flush: all requests over all the time until they are on stable storage.
    /// Otherwise until the last request returned, the warm-up left out.
    pub fn iops(&self) -> f64 {
        match self.usage.sync_ns {
            Some(sync_ns) => {
                self.requests_with_ramp as f64 * 1e9 / self.usage.elapsed_ns.saturating_add(sync_ns).max(1) as f64
            }
            None => self.returned_iops(),
        }
    }

    /// Requests per second until the last one returned, the warm-up left out: of writes through a cache the rate at which the cache took them.
    pub fn returned_iops(&self) -> f64 {
        let skipped = (self.warm_up_ns / self.slice_ns.max(1)) as usize;
        if skipped == 0 || self.slice_rates.is_empty() {
            return self.rate;
        }
        self.slice_rates.iter().sum::<f64>() / self.slice_rates.len() as f64
    }

    /// Bytes that were read and written, ramp included.
    pub fn bytes_by_op(&self) -> [f64; 2] {
        let [reads, writes] = [0, 1].map(|op| self.latency[op].count() as f64);
        let each = self.bytes_with_ramp as f64 / (reads + writes).max(1.0);
        [reads * each, writes * each]
    }

    /// Whether requests completed in bursts far apart although each alone is quick: something admits them by time slices.
    pub fn is_bursty(&self) -> bool {
        let [reads, writes] = &self.latency;
        let quick = reads.percentile(50.0).max(writes.percentile(50.0));
        self.empty_share >= BURSTY_SHARE && quick * 8 < SLICE_NS
    }

    /// How far rate, mean latency and mean depth are from Little's law, as a share: L = X R (Little, 1961).
    pub fn little_error(&self) -> f64 {
        let expected = self.rate / 1e9 * self.mean_service_ns;
        if expected == 0.0 { 0.0 } else { (self.mean_depth / expected - 1.0).abs() }
    }
}

/// Runs a workload once.
///
/// # Errors
/// A workload that makes no sense on this target, an access mode that the target refuses, or a failed request.
pub fn sample<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    workload: &Workload,
    options: Options,
) -> Result<Sample> {
    sample_as(machine, target, workload, options, |stream| stream)
}

/// The same with streams that do more than stream.
pub(crate) fn sample_as<M: Machine, A: RequestSource + Borrow<Stream>>(
    machine: &M,
    target: &mut M::Target,
    workload: &Workload,
    options: Options,
    source: impl Fn(Stream) -> A,
) -> Result<Sample> {
    let facts = machine.target_facts(target);
    let ramp_ns = options.ramp_ns.max(if workload.reap == Reap::Auto { REAP_LEARNING_NS } else { 0 });
    workload.check(facts.size_bytes, alignment(workload, &facts))?;
    let access = workload.access(facts.size_bytes);
    let Options { count_instructions, trace, .. } = options;
    let cache_bytes = cache_bytes(workload, facts.size_bytes, options.cache_bytes);
    let how = RunOptions { count_instructions, trace, cache_bytes, ..RunOptions::default() };
    let ((streams, mut usage), left_out) = unpaused(|| {
        let streams = crate::sample::streams(workload, &facts, ramp_ns)?;
        let mut streams: Vec<A> = streams.into_iter().map(&source).collect();
        let usage = machine.run(&mut [Part::new(target, &access, &mut streams)], how)?.single()?;
        let paused = usage.paused;
        Ok::<_, Error>(((streams, usage), paused))
    })?;
    usage.warnings.extend(left_out);
    let mut sample = gather(&streams, usage, workload)?;
    if (options.until_deadline || ramp_ns > 0)
        && let Some(rate) = rate_until_deadline(&streams)
    {
        // The mean time is that of the same window, by Little's law: what is cut off at its ends is not.
        sample.mean_service_ns = sample.mean_depth / rate * 1e9;
        sample.rate = rate;
        if options.until_deadline {
            // The window was chosen: cut for a warm-up it would begin elsewhere in the rhythm of the bursts.
            sample.warm_up_ns = 0;
        }
    }
    if let (Some(_), Stop::AfterNs(ns)) = (workload.rate_iops, workload.stop) {
        // The last request of an open loop ends early: the time until the next one is due counts, too.
        let whole_ns = ns.saturating_sub(ramp_ns).max(1);
        sample.rate = sample.rate.min(sample.requests as f64 * 1e9 / whole_ns as f64);
    }
    Ok(sample)
}

/// No page cache is filled faster, as long as nothing else is known.
const FILL_BYTES_PER_NS: u64 = 8;

/// Bytes that a run may bring into an empty page cache: a quarter more than one before.
fn cache_bytes(workload: &Workload, size_bytes: u64, before: Option<u64>) -> u64 {
    if workload.buffering.is_direct() || workload.cache != CacheState::Cold {
        return 0;
    }
    let most = match workload.stop {
        Stop::AfterNs(ns) => before.map_or(ns.saturating_mul(FILL_BYTES_PER_NS), |bytes| bytes / 4 * 5),
        Stop::AfterBytes(bytes) => bytes,
    };
    most.min(workload.limit_bytes.unwrap_or(u64::MAX)).min(workload.region(size_bytes).1)
}

/// A run in which the program was paused is left out and repeated at most so often.
const AGAIN: usize = 3;

/// Makes a run, and makes it again where the program was paused in it; with sentences that tell what was left out.
///
/// # Errors
/// What `run` returns.
pub fn unpaused<T, E>(
    mut run: impl FnMut() -> std::result::Result<(T, Option<Pause>), E>,
) -> std::result::Result<(T, Vec<String>), E> {
    let mut told = Vec::new();
    loop {
        let (ran, paused) = run()?;
        match paused {
            None => return Ok((ran, told)),
            Some(pause) if told.len() == AGAIN => {
                return Ok((
                    ran,
                    vec![format!("{pause} within a run, as in each of {AGAIN} before it: do not trust it")],
                ));
            }
            Some(pause) => told.push(format!("a run was left out and repeated: {pause}")),
        }
    }
}

/// What requests must be multiples of.
fn alignment(workload: &Workload, facts: &TargetFacts) -> u32 {
    if workload.buffering.is_direct() { facts.direct_align_bytes } else { 1 }
}

/// The sources of a workload: one a stream, or, for an engine that has one request outstanding, as many as the depth with a common cursor.
///
/// # Errors
/// A workload that does not fit the target.
pub fn streams(workload: &Workload, facts: &TargetFacts, ramp: Nanos) -> Result<Vec<Stream>> {
    let region = workload.region(facts.size_bytes);
    let together = workload.engine.workers(workload.depth);
    let filler = Filler::new(workload);
    let mut streams = Vec::with_capacity((workload.threads * together) as usize);
    for index in 0..workload.threads {
        let shared = Arc::new(AtomicU64::new(0));
        for hand in 0..together {
            let cursor = if together > 1 { Cursor::Shared(shared.clone()) } else { Cursor::Own };
            let filler = filler.fork(streams.len() as u64);
            streams.push(Stream::new(workload, region, (index, hand), cursor, filler, ramp)?);
        }
    }
    Ok(streams)
}

/// Requests per second until the deadline; none where a stream ended before it.
fn rate_until_deadline<S: Borrow<Stream>>(streams: &[S]) -> Option<f64> {
    let windows: Option<Vec<(u64, Nanos)>> = streams.iter().map(|stream| stream.borrow().until_deadline()).collect();
    let windows = windows?;
    let longest = windows.iter().map(|window| window.1).max()?;
    Some(windows.iter().map(|window| window.0).sum::<u64>() as f64 * 1e9 / longest.max(1) as f64)
}

/// What the streams of a workload measured in one run.
///
/// # Errors
/// Not one request completed.
pub fn gather<S: Borrow<Stream>>(streams: &[S], mut usage: Usage, workload: &Workload) -> Result<Sample> {
    // Reads leave nothing to flush.
    usage.sync_ns = usage.sync_ns.filter(|_| workload.writes());
    let streams: Vec<&Stream> = streams.iter().map(Borrow::borrow).collect();
    let requests: u64 = streams.iter().map(|stream| stream.completed()).sum();
    if requests == 0 {
        return Err(Error::Unsupported(
            "no request completed in the time of the run: give it more --runtime or smaller requests".into(),
        ));
    }
    let mut latency = [Histogram::new(), Histogram::new()];
    for stream in &streams {
        for (sum, part) in latency.iter_mut().zip(stream.latency()) {
            sum.merge(part);
        }
    }
    let service: f64 = streams.iter().map(|stream| stream.mean_service_ns() * stream.completed() as f64).sum();
    let (mut slice_ns, mut slice_rates) = summed_rates(streams.iter().map(|stream| stream.slices()));
    let empty_share = slice_rates.iter().filter(|&&rate| rate == 0.0).count() as f64 / slice_rates.len().max(1) as f64;
    // Slices in which nothing completed tell of the request's length, not of the rate.
    while slice_rates.iter().filter(|&&rate| rate == 0.0).count() * 10 > slice_rates.len() && slice_rates.len() > 1 {
        slice_rates = slice_rates.chunks_exact(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        slice_ns *= 2;
    }
    // A flush at the end is of all that was written, so the rate is that of the whole run.
    let timed =
        matches!(workload.stop, Stop::AfterNs(_)) && workload.cache != CacheState::Cold && usage.sync_ns.is_none();
    // After the deadline nothing new is asked: what is still under way has the target more and more to itself. For the rate it counts, but a slow
    // run, which is longer for it, does not count for more than a fast one.
    if let Stop::AfterNs(run) = workload.stop {
        slice_rates.truncate((run / slice_ns.max(1)).max(1) as usize);
    }
    let steadiness = stats::judge(&slice_rates);
    let warm_up = if timed { steadiness.warm_up.min(slice_rates.len() / 2) } else { 0 };
    slice_rates.drain(..warm_up);
    let measured_ns = streams.iter().map(|stream| stream.measured_ns()).max().unwrap_or(0);
    // Streams that ended before the longest one count for the time they were there.
    let mean_depth = streams.iter().map(|stream| stream.mean_depth() * stream.measured_ns() as f64).sum::<f64>()
        / measured_ns.max(1) as f64;
    Ok(Sample {
        measured_ns,
        requests,
        bytes: streams.iter().map(|stream| stream.completed_bytes()).sum(),
        rate: requests as f64 * 1e9 / measured_ns.max(1) as f64,
        latency,
        slice_ns,
        empty_share,
        slice_rates,
        warm_up_ns: warm_up as u64 * slice_ns,
        verdict: steadiness.verdict,
        mean_depth,
        mean_service_ns: service / requests as f64,
        requests_with_ramp: streams.iter().map(|stream| stream.completed_with_ramp()).sum(),
        bytes_with_ramp: streams.iter().map(|stream| stream.completed_bytes_with_ramp()).sum(),
        usage,
    })
}

/// Notes in the samples of workloads that ran at the same time how many bytes the others asked of the same devices.
pub fn note_others<'s>(samples: impl IntoIterator<Item = (&'s mut Sample, &'s Workload, &'s TargetFacts)>) {
    let mut all: Vec<_> = samples.into_iter().collect();
    let asked: Vec<[u64; 2]> = all.iter().map(|one| one.0.bytes_by_op().map(|bytes| bytes as u64)).collect();
    for index in 0..all.len() {
        for (other, bytes) in asked.iter().enumerate().filter(|(other, _)| *other != index) {
            let devices = &all[other].2.devices;
            if !all[index].2.devices.iter().any(|device| devices.contains(device)) {
                continue;
            }
            let direct = all[other].1.buffering.is_direct();
            let usage = &mut all[index].0.usage;
            let sums = if direct { &mut usage.others_direct_bytes } else { &mut usage.others_cached_bytes };
            sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_brings_no_more_into_an_empty_cache_than_its_region_and_its_limit() {
        let cold = Workload {
            buffering: machine::Buffering::Buffered,
            cache: CacheState::Cold,
            stop: Stop::AfterNs(1_000_000),
            ..Workload::default()
        };
        let bytes = |workload: &Workload, before| cache_bytes(workload, 1 << 30, before);
        assert_eq!(bytes(&cold, None), 8_000_000);
        assert_eq!(bytes(&cold, Some(4000)), 5000);
        assert_eq!(bytes(&Workload { stop: Stop::AfterNs(u64::MAX), ..cold.clone() }, None), 1 << 30);
        assert_eq!(bytes(&Workload { limit_bytes: Some(1000), ..cold.clone() }, Some(4000)), 1000);
        assert_eq!(bytes(&Workload { cache: CacheState::Warm, ..cold.clone() }, None), 0);
        assert_eq!(bytes(&Workload { buffering: machine::Buffering::Direct, ..cold }, None), 0);
    }

    #[test]
    fn a_paused_run_is_left_out_and_repeated_but_not_for_ever() {
        let pause = Some(Pause { ns: 5_000_000_000, times: 1, percent: 50.0, cause: "the program was stopped" });
        let ran = |pauses: &[Option<Pause>]| {
            let mut runs = 0;
            let run = || {
                runs += 1;
                Ok((runs, pauses.get(runs - 1).copied().unwrap_or(pause)))
            };
            unpaused::<_, Error>(run).unwrap()
        };
        assert_eq!(ran(&[None]), (1, vec![]));
        let left_out = "a run was left out and repeated: the program was stopped for 5.0 s".to_string();
        assert_eq!(ran(&[pause, None]), (2, vec![left_out]));
        let (runs, told) = ran(&[]);
        assert!(runs == AGAIN + 1 && told.len() == 1 && told[0].contains("do not trust it"), "{told:?}");
        assert!(matches!(unpaused::<(), _>(|| Err(Error::Interrupted)), Err(Error::Interrupted)));
    }
}
