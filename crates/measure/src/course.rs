//! Whether a point's runs had one rate and, if not, when it changed.

use crate::repeat::rate_estimate;
use crate::sample::Sample;
use crate::stats::{self, Verdict};
use machine::{Nanos, THROTTLE_SLICE_NS};

/// Fewer runs alone cannot show a change: their slices count first.
const FEW_RUNS: usize = 4;
/// A few shorter runs show a change by their slices only: in `tests/data` one of three runs of 200
/// ms often differs by a factor of 10.
const LONG_RUN_NS: Nanos = 800_000_000;
const BLOCKS: usize = 40;
/// Schedulers and quotas divide less time than this among programs.
const MIN_BLOCK_NS: Nanos = 50_000_000;
/// More phases are a rhythm, which the mean describes.
const MAX_WITHIN: usize = 4;
/// Slices of a throttle in a block: one more or less of five is a small share.
const THROTTLE_SLICES: Nanos = 5;

#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// At least two, in order of time.
    pub phases: Vec<RatePhase>,
    pub gradual: bool,
    /// Not between runs.
    pub within: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePhase {
    /// Since the program began.
    pub from_ns: Nanos,
    pub after_bytes: u64,
    pub iops: f64,
}

/// Returns `None` if one rate describes all runs.
pub fn course(samples: &[Sample]) -> Option<Course> {
    let last = samples.len().checked_sub(1)?;
    let whole = |run: usize| RatePhase { iops: samples[run].iops(), ..beginning(samples, run, 0) };
    let runs: Vec<RatePhase> = (0..=last).map(whole).collect();
    let rates: Vec<f64> = runs.iter().map(|run| run.iops).collect();
    let levels = stats::phases(&rates, uncertain(samples));
    let few = samples.len() < FEW_RUNS;
    if let Some(slide) = levels.as_ref().filter(|levels| levels.gradual && !few) {
        let end = beginning(samples, last, samples[last].usage.elapsed_ns);
        let rate = |phase: usize| slide.phases[phase].rate;
        let phases =
            vec![RatePhase { iops: rate(0), ..runs[0] }, RatePhase { iops: rate(1), ..end }];
        return Some(Course { phases, gradual: true, within: false });
    }
    // Each run that is looked into may raise a false alarm, so of many only those are in which a
    // change can hide from the rates of whole runs.
    let looked: Vec<usize> = match &levels {
        _ if few => (0..=last).collect(),
        Some(levels) => levels
            .phases
            .windows(2)
            .flat_map(|pair| pair[0].values.end - 1..=pair[1].values.start)
            .collect(),
        None => vec![0, 1, last - 1, last],
    };
    let each: Vec<Option<Course>> = (0..=last)
        .map(|run| looked.contains(&run).then(|| within(samples, run)).flatten())
        .collect();
    if let Some(slide) = slide_of_each(&each) {
        return Some(slide);
    }
    // A run that changed counts by its parts.
    let (mut parts, mut run_of) = (Vec::new(), Vec::new());
    for (run, course) in each.iter().enumerate() {
        parts.extend(course.as_ref().map_or(&runs[run..=run], |course| &course.phases));
        run_of.resize(parts.len(), run);
    }
    let found = each.iter().flatten().next();
    if few && found.is_none() && samples.iter().any(|sample| sample.measured_ns < LONG_RUN_NS) {
        return None;
    }
    let unchanged =
        samples.iter().zip(&each).filter(|(_, course)| course.is_none()).map(|(sample, _)| sample);
    // The run in which it happened, if it was one, shows when.
    let straddled = |run: usize| beginning(samples, run, change_at(&samples[run]).unwrap_or(0));
    let of_parts = course_of_runs(&parts, uncertain(unchanged), |part| straddled(run_of[part]))
        .filter(|one| !one.gradual);
    let of_runs =
        || course_of_runs(&runs, uncertain(samples), straddled).filter(|one| !one.gradual);
    let within = found.is_some() && levels.is_none();
    let one_by_one = of_parts.or_else(of_runs).map(|course| Course { within, ..course });
    // The mean of a single run may mix both rates if its blocks are too few to show the change.
    let mixed = |course: &Course| {
        let starts = |phase: &RatePhase| {
            [1, last].iter().any(|&run| samples[run].usage.since_start_ns == phase.from_ns)
        };
        found.is_none() && last > 0 && course.phases[1..].iter().any(starts)
    };
    if one_by_one.as_ref().is_some_and(mixed) {
        return joined(samples).filter(|course| course.within).or(one_by_one);
    }
    one_by_one.or_else(|| found.cloned()).or_else(|| joined(samples))
}

#[derive(Clone, Copy)]
struct Place {
    run: usize,
    offset: Nanos,
    width: Nanos,
}

/// Returns when the rate of a block began, if it differs from the block before, and whether that
/// was within a run. Between runs it is the end of a run whose last requests took longer than a
/// block.
fn began_between(samples: &[Sample], before: Place, first: Place) -> (RatePhase, bool) {
    let end = before.offset + before.width;
    let between = before.run != first.run;
    if between && samples[before.run].usage.elapsed_ns > end + before.width {
        return (beginning(samples, before.run, end), true);
    }
    (beginning(samples, first.run, first.offset), !between)
}

/// Finds a change near a run's end, which few means do not show.
fn joined(samples: &[Sample]) -> Option<Course> {
    let short = |sample: &Sample| sample.measured_ns < LONG_RUN_NS;
    if !(2..stats::MIN_TESTED).contains(&samples.len()) || samples.iter().any(short) {
        return None;
    }
    let (mut all, mut places): (Vec<f64>, Vec<Place>) = (Vec::new(), Vec::new());
    for (run, sample) in samples.iter().enumerate() {
        let warm_up = &sample.warm_up_rates;
        let falls = || stats::mean(warm_up) >= stats::FEW_FACTOR * stats::mean(&sample.slice_rates);
        // After the first run, such a fast beginning shows the rate before the change.
        let left_out = if run > 0 && !warm_up.is_empty() && falls() {
            warm_up
        } else {
            fast_beginning(sample)
        };
        let start = start_of(sample) - left_out.len() as u64 * sample.slice_ns;
        let (width, blocks) = blocks(sample, left_out);
        for (block, rate) in blocks.into_iter().enumerate() {
            // A limit that falls keeps requests waiting until they fit it: the rates before and
            // after that count.
            if rate > 0.0 {
                places.push(Place { run, offset: start + block as u64 * width, width });
                all.push(rate);
            }
        }
    }
    let found = stats::phases(&all, 0.0)
        .filter(|found| !found.gradual && found.phases.len() <= MAX_WITHIN)?;
    let apart = |pair: &[stats::Phase]| {
        let (high, low) = (pair[0].rate.max(pair[1].rate), pair[0].rate.min(pair[1].rate));
        high >= stats::FEW_FACTOR * low
    };
    if found.phases.iter().any(|phase| phase.values.len() < 2)
        || !found.phases.windows(2).all(apart)
    {
        return None;
    }
    let phase = |phase: &stats::Phase| {
        let first = phase.values.start;
        let (began, within) = match first.checked_sub(1) {
            None => (beginning(samples, 0, 0), false),
            Some(before) => began_between(samples, places[before], places[first]),
        };
        (RatePhase { iops: phase.rate, ..began }, within)
    };
    let (phases, within): (Vec<RatePhase>, Vec<bool>) = found.phases.iter().map(phase).unzip();
    Some(Course { phases, gradual: false, within: within.contains(&true) })
}

fn slide_of_each(each: &[Option<Course>]) -> Option<Course> {
    let slides: Option<Vec<&Course>> =
        each.iter().map(|course| course.as_ref().filter(|one| one.gradual)).collect();
    let slides = slides.filter(|slides| slides.len() > 1)?;
    let ends = [slides[0].phases[0], *slides[slides.len() - 1].phases.last()?];
    let rises = |[from, to]: [RatePhase; 2]| to.iops > from.iops;
    let one_way = |course: &&Course| {
        rises([course.phases[0], course.phases[course.phases.len() - 1]]) == rises(ends)
    };
    slides.iter().all(one_way).then(|| Course {
        phases: ends.to_vec(),
        gradual: true,
        within: true,
    })
}

/// Takes half the relative interval of one rate as `uncertain`; calls `straddled` if the rate
/// changed within a run.
pub fn course_of_runs(
    runs: &[RatePhase],
    uncertain: f64,
    straddled: impl Fn(usize) -> RatePhase,
) -> Option<Course> {
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

/// A fast beginning is a change, unlike a warm-up: the run's rate leaves it out.
fn fast_beginning(sample: &Sample) -> &[f64] {
    match sample.verdict {
        Verdict::BurstExhausted { .. } => &sample.warm_up_rates,
        _ => &[],
    }
}

fn within(samples: &[Sample], run: usize) -> Option<Course> {
    let sample = &samples[run];
    let left_out = fast_beginning(sample);
    let (width, blocks) = blocks(sample, left_out);
    let start = start_of(sample) - left_out.len() as u64 * sample.slice_ns;
    if blocks.len() < stats::MIN_TESTED {
        return None;
    }
    let found = stats::phases(&blocks, 0.0).filter(|found| found.phases.len() <= MAX_WITHIN)?;
    // One block may be a stall.
    if found.phases.iter().any(|phase| phase.values.len() < 2) {
        return None;
    }
    let mut end = 0;
    let mut phases: Vec<RatePhase> = found
        .phases
        .iter()
        .map(|phase| {
            // The rate changed in a block between two phases.
            let from = if end == 0 { 0 } else { start + end as u64 * width };
            end = phase.values.end;
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

/// Wide enough for a throttle's bursts; with their width.
fn blocks(sample: &Sample, left_out: &[f64]) -> (Nanos, Vec<f64>) {
    let width = sample.slice_ns.max(1);
    let slices = [left_out, &sample.slice_rates].concat();
    let min = if sample.is_bursty() {
        let enough = slices.len() as u64 * width / stats::MIN_TESTED as u64 / THROTTLE_SLICE_NS;
        (enough.clamp(2, THROTTLE_SLICES) * THROTTLE_SLICE_NS).div_ceil(width) as usize
    } else {
        MIN_BLOCK_NS.div_ceil(width) as usize
    };
    let group = slices.len().div_ceil(BLOCKS).max(min).max(1);
    let mean = |block: &[f64]| block.iter().sum::<f64>() / group as f64;
    (group as u64 * width, slices.chunks_exact(group).map(mean).collect())
}

fn change_at(sample: &Sample) -> Option<Nanos> {
    let at = stats::best_step(&sample.slice_rates)?;
    Some(start_of(sample) + at as u64 * sample.slice_ns)
}

fn ramp_ns(sample: &Sample) -> Nanos {
    sample.usage.elapsed_ns.saturating_sub(sample.measured_ns)
}

fn start_of(sample: &Sample) -> Nanos {
    ramp_ns(sample) + sample.warm_up_rates.len() as u64 * sample.slice_ns
}

fn beginning(samples: &[Sample], run: usize, offset_ns: Nanos) -> RatePhase {
    let sample = &samples[run];
    let before: u64 = samples[..run].iter().map(|sample| sample.bytes_with_ramp).sum();
    let start = start_of(sample).min(offset_ns);
    let slices = ((offset_ns - start) / sample.slice_ns.max(1)) as usize;
    let bytes_per_request = sample.bytes_with_ramp as f64 / sample.requests_with_ramp.max(1) as f64;
    let sum = |rates: &[f64]| {
        rates.iter().sum::<f64>() * sample.slice_ns as f64 / 1e9 * bytes_per_request
    };
    let rates = &sample.slice_rates;
    // The slices leave out the ramp and the warm-up.
    let unseen = (sample.bytes_with_ramp as f64 - sum(rates)).max(0.0);
    let share = if start_of(sample) > 0 { start as f64 / start_of(sample) as f64 } else { 0.0 };
    let inside = (unseen * share + sum(&rates[..slices.min(rates.len())]))
        .min(sample.bytes_with_ramp as f64);
    RatePhase {
        from_ns: sample.usage.since_start_ns + offset_ns,
        after_bytes: before + inside as u64,
        iops: 0.0,
    }
}

/// Computes half the 95 % interval of a run's rate, as a share: the median, because a change widens
/// one; 0 if most runs have no interval. Chance exceeds twice this in 1 of 200 pairs.
fn uncertain<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> f64 {
    let of = |sample: &Sample| {
        let rate = rate_estimate(std::slice::from_ref(sample))?;
        Some((rate.high - rate.mean) / rate.mean).filter(|share| share.is_finite())
    };
    let all: Vec<Option<f64>> = samples.into_iter().map(of).collect();
    let widths: Vec<f64> = all.iter().flatten().copied().collect();
    if widths.is_empty() || 2 * widths.len() < all.len() { 0.0 } else { stats::median(&widths) }
}
