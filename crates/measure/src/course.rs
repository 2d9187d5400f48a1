//! Whether the runs of a point had one rate, and when it changed if not.

use crate::repeat::rate_estimate;
use crate::sample::Sample;
use crate::stats::{self, Verdict};
use machine::{Nanos, THROTTLE_SLICE_NS};

/// Runs below which the slices within them are looked at first: so few runs cannot show a change by themselves.
const FEW_RUNS: usize = 4;
/// Blocks of slices that a run is divided into.
const BLOCKS: usize = 40;
/// Shortest block: schedulers and quotas divide less time than this among programs.
const LEAST_BLOCK_NS: Nanos = 50_000_000;
/// More phases than this within a run are a rhythm, which the mean describes.
const MOST_WITHIN: usize = 4;
/// A fall within the warm-up of a run by less than this share is left to the interval.
const LEAST_FALL: f64 = 0.15;
/// A throttle admits in slices. One more or less falls into a block: of five that is a small share.
const THROTTLE_SLICES: Nanos = 5;

/// How the rate of a point changed over its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// The rates in the order of time: two or more.
    pub phases: Vec<RatePhase>,
    /// The rate slid from the first to the last.
    pub gradual: bool,
    /// It was seen within one run, and not between runs.
    pub within: bool,
}

/// A stretch of time with a rate of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePhase {
    /// When it began, since the program did.
    pub from_ns: Nanos,
    /// Bytes that the runs of the point had moved until then.
    pub after_bytes: u64,
    /// Requests per second.
    pub iops: f64,
}

/// How the rate of these runs, in the order in which they were made, changed; `None` if one rate describes them.
pub fn course(samples: &[Sample]) -> Option<Course> {
    if samples.len() >= FEW_RUNS {
        return between(samples).or_else(|| {
            let longest = samples.iter().enumerate().max_by_key(|(_, sample)| sample.slice_rates.len())?.0;
            let began = (longest > 0).then_some(0).and_then(|first| within(samples, first).filter(fell_at_once));
            began.or_else(|| within(samples, longest))
        });
    }
    let each: Vec<Option<Course>> = (0..samples.len()).map(|run| within(samples, run)).collect();
    if let [Some(first), .., Some(last)] = &each[..]
        && each.iter().flatten().filter(|course| course.gradual).count() == each.len()
    {
        let ends = [first.phases[0], *last.phases.last()?];
        let one_way = |course: &Course| {
            let phases = &course.phases;
            (phases[phases.len() - 1].iops > phases[0].iops) == (ends[1].iops > ends[0].iops)
        };
        if each.iter().flatten().all(one_way) {
            return Some(Course { phases: ends.to_vec(), gradual: true, within: true });
        }
    }
    // A run that changed counts by its parts.
    let mut parts = Vec::new();
    for (run, course) in each.iter().enumerate() {
        match course {
            Some(course) => parts.extend(&course.phases),
            None => parts.push(RatePhase { iops: samples[run].iops(), ..beginning(samples, run, 0) }),
        }
    }
    let rates: Vec<f64> = parts.iter().map(|part| part.iops).collect();
    let found = each.iter().flatten().next();
    let whole = samples.iter().zip(&each).filter(|(_, course)| course.is_none()).map(|(sample, _)| sample);
    let levels = stats::phases(&rates, uncertain(whole)).filter(|levels| !levels.gradual);
    levels.map_or_else(
        || found.cloned(),
        |levels| {
            let phase = |level: &stats::Phase| RatePhase { iops: level.rate, ..parts[level.values.start] };
            let phases = levels.phases.iter().map(phase).collect();
            Some(Course { phases, gradual: false, within: found.is_some() })
        },
    )
}

/// A burst credit that the first run used up.
fn fell_at_once(course: &Course) -> bool {
    course.phases.first().zip(course.phases.last()).is_some_and(|(first, last)| first.iops > last.iops)
}

/// Changes that the rates of whole runs show.
fn between(samples: &[Sample]) -> Option<Course> {
    let runs: Vec<RatePhase> =
        (0..samples.len()).map(|run| RatePhase { iops: samples[run].iops(), ..beginning(samples, run, 0) }).collect();
    // The run in which it happened, if it was one, shows when.
    let straddled = |run: usize| beginning(samples, run, change_at(&samples[run]).unwrap_or(0));
    let mut course = course_of_runs(&runs, uncertain(samples), straddled)?;
    if course.gradual
        && let Some(end) = course.phases.last_mut()
    {
        let last = samples.len() - 1;
        *end = RatePhase { iops: end.iops, ..beginning(samples, last, samples[last].usage.elapsed_ns) };
    }
    Some(course)
}

/// How the rates of whole runs, each with its beginning, changed. `uncertain`: half the interval of one rate, as a share of it. `straddled` is
/// asked when it changed within this run.
pub fn course_of_runs(runs: &[RatePhase], uncertain: f64, straddled: impl Fn(usize) -> RatePhase) -> Option<Course> {
    let rates: Vec<f64> = runs.iter().map(|run| run.iops).collect();
    let found = stats::phases(&rates, uncertain)?;
    let mut end = 0;
    let phase = |phase: &stats::Phase| {
        let first = phase.values.start;
        let within = end > 0 && end < first;
        let began = if within { straddled(end) } else { runs[first] };
        end = phase.values.end;
        RatePhase { iops: phase.rate, ..began }
    };
    let phases = found.phases.iter().map(phase).collect();
    Some(Course { phases, gradual: found.gradual, within: false })
}

/// Changes that the slices of one run show.
fn within(samples: &[Sample], run: usize) -> Option<Course> {
    let sample = &samples[run];
    // The judge of the slices found one fall, and may have left out the fast beginning.
    let fell = || {
        let Verdict::BurstExhausted { at, before, after } = sample.verdict else { return None };
        let from = ramp_ns(sample) + at as u64 * sample.slice_ns;
        let phases = vec![
            RatePhase { iops: before, ..beginning(samples, run, 0) },
            RatePhase { iops: after, ..beginning(samples, run, from) },
        ];
        (after < before * (1.0 - LEAST_FALL)).then_some(Course { phases, gradual: false, within: true })
    };
    if sample.warm_up_ns > 0 && matches!(sample.verdict, Verdict::BurstExhausted { .. }) {
        return fell();
    }
    let (width, blocks) = blocks(sample);
    let Some(found) = stats::phases(&blocks, 0.0).filter(|found| found.phases.len() <= MOST_WITHIN) else {
        return fell();
    };
    let mut phases: Vec<RatePhase> = found
        .phases
        .iter()
        .map(|phase| {
            let from = if phase.values.start == 0 { 0 } else { start_of(sample) + phase.values.start as u64 * width };
            RatePhase { iops: phase.rate, ..beginning(samples, run, from) }
        })
        .collect();
    if found.gradual
        && let Some(end) = phases.last_mut()
    {
        *end = RatePhase { iops: end.iops, ..beginning(samples, run, sample.usage.elapsed_ns) };
    }
    Some(Course { phases, gradual: found.gradual, within: true })
}

/// The rates of a run in blocks, wide enough for the bursts of a throttle, with their width.
fn blocks(sample: &Sample) -> (Nanos, Vec<f64>) {
    let width = sample.slice_ns.max(1);
    let least_ns = if sample.is_bursty() { THROTTLE_SLICES * THROTTLE_SLICE_NS } else { LEAST_BLOCK_NS };
    let least = least_ns.div_ceil(width) as usize;
    let group = sample.slice_rates.len().div_ceil(BLOCKS).max(least).max(1);
    let mean = |block: &[f64]| block.iter().sum::<f64>() / group as f64;
    (group as u64 * width, sample.slice_rates.chunks_exact(group).map(mean).collect())
}

/// The time in a run that divides it best into two rates.
fn change_at(sample: &Sample) -> Option<Nanos> {
    let rates = &sample.slice_rates;
    let all = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let n = rates.len() as f64;
    let mut sum = 0.0;
    let explained = rates.iter().enumerate().take(rates.len().saturating_sub(1)).map(|(slice, rate)| {
        sum += rate - all;
        let at = (slice + 1) as f64;
        (sum * sum / (at * (n - at)), slice + 1)
    });
    let (_, at) = explained.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(start_of(sample) + at as u64 * sample.slice_ns)
}

/// Time at the start of a run that was not measured.
fn ramp_ns(sample: &Sample) -> Nanos {
    sample.usage.elapsed_ns.saturating_sub(sample.measured_ns)
}

/// When the first slice that counts began, since the run did.
fn start_of(sample: &Sample) -> Nanos {
    ramp_ns(sample) + sample.warm_up_ns
}

/// This time in a run, and what had been moved until then; no rate.
fn beginning(samples: &[Sample], run: usize, offset_ns: Nanos) -> RatePhase {
    let sample = &samples[run];
    let before: u64 = samples[..run].iter().map(|sample| sample.bytes_with_ramp).sum();
    let start = start_of(sample).min(offset_ns);
    let slices = ((offset_ns - start) / sample.slice_ns.max(1)) as usize;
    let bytes_per_request = sample.bytes_with_ramp as f64 / sample.requests_with_ramp.max(1) as f64;
    let sum = |rates: &[f64]| rates.iter().sum::<f64>() * sample.slice_ns as f64 / 1e9 * bytes_per_request;
    let rates = &sample.slice_rates;
    // The slices leave out the ramp and the warm-up.
    let unseen = (sample.bytes_with_ramp as f64 - sum(rates)).max(0.0);
    let share = if start_of(sample) > 0 { start as f64 / start_of(sample) as f64 } else { 0.0 };
    let inside = (unseen * share + sum(&rates[..slices.min(rates.len())])).min(sample.bytes_with_ramp as f64);
    RatePhase { from_ns: sample.usage.since_start_ns + offset_ns, after_bytes: before + inside as u64, iops: 0.0 }
}

/// Half the interval of a single run's rate, as a share of it; 0 if no run has one. The median: that of a run in which the rate changed is
/// wide.
fn uncertain<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> f64 {
    let of = |sample: &Sample| {
        let rate = rate_estimate(std::slice::from_ref(sample))?;
        Some((rate.high - rate.mean) / rate.mean).filter(|share| share.is_finite())
    };
    let widths: Vec<f64> = samples.into_iter().filter_map(of).collect();
    if widths.is_empty() { 0.0 } else { stats::median(&widths) }
}
