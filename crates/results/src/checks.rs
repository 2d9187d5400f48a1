//! Reasons to doubt a figure, from the figures themselves.

use crate::point::Numbers;
use crate::rate_change::RateChange;
use machine::units::show_capacity;
use machine::{CacheState, Figure, TargetFacts, Warning};
use measure::stats::Verdict;
use measure::{Sample, Verification};
use workload::{Pattern, Stop, Workload};

/// If no device moved more of the bytes, a cache served them.
pub const CACHED_PERCENT: f64 = 5.0;
/// Extra bytes at the devices per byte asked.
const FOREIGN_SHARE: f64 = 0.1;
/// Of one processor.
const STEAL_PERCENT: f64 = 3.0;
/// Deviation from Little's law.
const LITTLE_PERCENT: f64 = 1.0;

/// Above this, the driver takes a noticeable part of each request's time.
const CEILING_PERCENT: f64 = 50.0;

/// Smaller changes within a run are left to the interval.
const CHANGE_PERCENT: f64 = 15.0;

/// Smaller factors between points are left to their intervals.
pub(crate) const CHANGE_FACTOR: f64 = 1.5;

/// A run in order over more of a rotating disk meets tracks of different length.
const ACROSS_SHARE: f64 = 0.05;
/// The innermost track's minimum share of the outermost's data.
const INNERMOST_SHARE: f64 = 0.45;

/// Fewer requests in a run by time do not give a rate.
const FEW_REQUESTS: u64 = 10;

pub const NO_IO: &str = "the engine null does no I/O: this is the generator's own rate";

pub(crate) fn warnings(
    workload: &Workload,
    facts: &TargetFacts,
    samples: &[Sample],
    numbers: &Numbers,
) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    let achieved = &numbers.achieved;
    if !workload.engine.does_io() {
        warnings.push(NO_IO.into());
    } else if facts.in_memory {
        warnings.push(
            "the file system keeps its files in memory: no device was reached, and memory is what was measured".into(),
        );
    } else if workload.buffering.is_direct()
        && let Some(cached) = achieved.from_cache_percent
        && cached > CACHED_PERCENT
    {
        warnings.push(Warning::of(
            "{} % of the bytes of this direct run never reached a block device: a cache served them",
            [percent(cached)],
        ));
    }
    if workload.engine.does_io() && !facts.in_memory {
        warnings.extend(cache_doubts(
            workload,
            [achieved.cached_read_percent, achieved.cached_write_percent],
        ));
    }
    if let Some(share) = achieved.device_bytes_foreign_share
        && share > FOREIGN_SHARE
        && workload.buffering.is_direct()
    {
        warnings.push(Warning::of(
            "the devices moved {} % more bytes than were asked of them: another program uses them, or a layer adds its own",
            [percent(share * 100.0)],
        ));
    }
    if achieved.steal_percent > STEAL_PERCENT {
        warnings.push(Warning::of(
            "the hypervisor took {} % of a processor away during the runs",
            [percent(achieved.steal_percent)],
        ));
    }
    if achieved.little_error_percent > LITTLE_PERCENT {
        warnings.push(Warning::of(
            "rate, latency and depth disagree by {} % (Little's law): do not trust this point",
            [Figure::rounded(achieved.little_error_percent, 1)],
        ));
    }
    // The flush after the last request delays none.
    let returned = achieved
        .returned_bytes_per_s
        .map_or(1.0, |rate| rate / numbers.throughput_bytes_per_s.max(1e-9));
    let issued = numbers.iops * returned;
    if workload.rate_iops.is_some_and(|wanted| issued < wanted * 0.98) {
        warnings.push(Warning::of(
            "only {} of the {} requests per second asked for were done",
            [issued, workload.rate_iops.unwrap_or_default()].map(|rate| Figure::rounded(rate, 0)),
        ));
    }
    warnings.extend(crate::over_time::behind(&numbers.over_time));
    let fewest = samples.iter().map(|sample| sample.requests).min().unwrap_or(0);
    if matches!(workload.stop, Stop::AfterNs(_)) && fewest < FEW_REQUESTS {
        warnings.push(Warning::of(
            "a run had only {} requests, too few for a rate: run it longer",
            [Figure::count(fewest)],
        ));
    }
    if workload.data.verify {
        warnings.push(
            "each block was made and checked, which takes the processor's time: this does not measure the target"
                .into(),
        );
    }
    match &numbers.rate_change {
        Some(change) => warnings.push(change.warning()),
        None => warnings.extend(unsteady(workload, facts, samples)),
    }
    warnings.extend(achieved.disturbances.doubts(achieved.from_cache_percent));
    let of_runs = samples.iter().flat_map(|sample| &sample.usage.warnings);
    warnings.extend(Warning::merged(of_runs).into_iter().map(|(warning, _)| warning));
    warnings
}

fn percent(value: f64) -> Figure {
    Figure::rounded(value, 0)
}

/// The page cache served `read` percent, and still held `written` percent at the end.
fn cache_doubts(workload: &Workload, [read, written]: [Option<f64>; 2]) -> Vec<Warning> {
    let mut doubts = Vec::new();
    if workload.buffering.is_direct() {
        return doubts;
    }
    let asked_warm = workload.cache == CacheState::Warm;
    if let Some(read) =
        read.filter(|read| workload.read_percent > 0 && !asked_warm && *read > CACHED_PERCENT)
    {
        doubts.push(Warning::of(
            "{} % of the bytes read came from the page cache and not from a device: the rate is in part that of memory",
            [percent(read)],
        ));
    }
    if workload.writes() && !workload.sync_at_end && !workload.buffering.is_dsync() {
        match written {
            Some(written) if written > CACHED_PERCENT => doubts.push(Warning::of(
                "{} % of the bytes written were in the page cache and not on a device when the last write returned: \
                 the rate is the cache's; flush at the end or use direct I/O to measure the device",
                [percent(written)],
            )),
            Some(_) => {}
            None => doubts.push(
                "the writes returned once the page cache had them, and no device counts what it got: the rate may be the cache's; \
                 flush at the end or use direct I/O to measure the device"
                    .into(),
            ),
        }
    }
    doubts
}

pub(crate) fn little_judged(found: &Verification) -> Option<Warning> {
    let read = found.checked_bytes + found.unjudged_bytes;
    (found.checked_bytes < found.unjudged_bytes || read == 0).then(|| {
        Warning::of(
            "only {} of the {} read could be judged, since this run had not written the rest: move more bytes, or use a smaller region",
            [found.checked_bytes, read].map(|bytes| bytes as f64).map(|bytes| Figure::new(bytes, show_capacity(bytes))),
        )
    })
}

pub(crate) fn near_ceiling(workload: &Workload, share: f64, ceiling_iops: f64) -> Option<Warning> {
    (share > CEILING_PERCENT && workload.engine.does_io()).then(|| {
        Warning::of(
            "the run reached {} % of the {} requests per second that the driver can issue here at most: it may be the limit itself",
            [share, ceiling_iops].map(percent),
        )
    })
}

/// Weaker than [`rate_change`]: up to 3 of 100 stationary runs give a hint.
fn unsteady(workload: &Workload, facts: &TargetFacts, samples: &[Sample]) -> Option<Warning> {
    let longest = samples.iter().max_by_key(|sample| sample.slice_rates.len())?;
    // The rate at the end as a share of that at the beginning.
    let (change, said) = match longest.verdict {
        Verdict::Drifting { percent } => (
            1.0 + percent / 100.0,
            Warning::of(
                "the rate may have drifted by {} % within a run: longer runs would show it",
                [Figure::new(percent, format!("{percent:+.0}"))],
            ),
        ),
        Verdict::BurstExhausted { before, after, .. } => {
            let left = after / before * 100.0;
            let left_out = if longest.warm_up_ns > 0 {
                "; the reported rate excludes the faster beginning"
            } else {
                ""
            };
            (
                after / before,
                Warning::of(
                    "the rate may have fallen to {} % within a run, as if a burst credit or a cache ran out: longer runs would show it",
                    [percent(left)],
                )
                .then(left_out),
            )
        }
        Verdict::WarmingUp { percent: risen } => (
            1.0 + risen / 100.0,
            Warning::of(
                "the rate may have been still rising at the end of a run (by {} %): use longer runs",
                [percent(risen)],
            ),
        ),
        _ => return None,
    };
    if (change - 1.0).abs() * 100.0 < CHANGE_PERCENT {
        return None;
    }
    across_tracks(workload, facts, longest).or(Some(said))
}

fn across_tracks(workload: &Workload, facts: &TargetFacts, longest: &Sample) -> Option<Warning> {
    let across = across_disk(workload, facts, longest);
    let slowest = slowest_share(&longest.slice_rates);
    (across > ACROSS_SHARE && slowest >= INNERMOST_SHARE).then(|| {
        Warning::of(
            "the slowest part of a run had {} % of the rate of the fastest, as it went over {} % of a rotating disk: \
             the tracks outside hold more than those inside",
            [slowest, across].map(|share| percent(share * 100.0)),
        )
    })
}

pub(crate) fn rate_change(
    workload: &Workload,
    facts: &TargetFacts,
    samples: &[Sample],
    bytes: f64,
) -> Option<RateChange> {
    let longest = samples.iter().max_by_key(|sample| sample.slice_rates.len())?;
    let found = measure::course(samples)?;
    // The tracks of a disk differ in length: the rate follows them.
    let by_tracks = found.within && across_tracks(workload, facts, longest).is_some();
    (!by_tracks).then(|| RateChange::of(&found, bytes))
}

/// The slowest eighth over the fastest.
fn slowest_share(rates: &[f64]) -> f64 {
    let parts = rates
        .chunks(rates.len().div_ceil(8).max(1))
        .map(|part| part.iter().sum::<f64>() / part.len() as f64);
    let (min, max) =
        parts.fold((f64::INFINITY, 0.0f64), |(min, max), rate| (min.min(rate), max.max(rate)));
    if max > 0.0 { min / max } else { 1.0 }
}

/// What a run in order covers, at most 1; 0 unless the disk rotates.
fn across_disk(workload: &Workload, facts: &TargetFacts, sample: &Sample) -> f64 {
    if !facts.is_rotating()
        || !(workload.pattern.is_sequential() || workload.pattern == Pattern::Backward)
        || facts.size_bytes == 0
    {
        return 0.0;
    }
    let bytes = sample.requests_with_ramp as f64 * f64::from(workload.request_bytes);
    let region = workload.region(facts.size_bytes).1 as f64;
    bytes.min(region) / facts.size_bytes as f64
}
