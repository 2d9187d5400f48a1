//! What is worth changing: pairs of points that differ in one setting, ranked by gain.

use crate::command::Command;
use crate::found::{ENOUGH, Reading, smallest};
use crate::sampler::Entry;
use crate::sentences::size;
use machine::units::show_rate;
use measure::stats::{Ratio, ratio_interval, ratio_of_estimates};
use measure::{Sample, rate_estimate};
use results::{Finding, Point};

/// Gains below this are not worth a reader's time.
const LEAST_GAIN: f64 = 1.1;

/// What is changed. The best finding of each kind comes before the second of any: three sizes are one advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Size,
    Depth,
    Completions,
    Cache,
    Durability,
    Mechanism,
    Allocation,
    Alignment,
    Chunk,
}

/// Two settings to be compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    change: Change,
    /// Indices of the points.
    pub(crate) before: usize,
    pub(crate) after: usize,
    /// What to do, in a few words.
    pub(crate) title: String,
    /// The setting to use.
    setting: String,
}

impl Comparison {
    /// From one reading to another.
    pub(crate) fn new(
        change: Change,
        before: Reading,
        after: Reading,
        title: impl Into<String>,
        setting: impl Into<String>,
    ) -> Comparison {
        Comparison { change, before: before.point, after: after.point, title: title.into(), setting: setting.into() }
    }

    /// From requests of 4 KiB to the smallest that are good enough; none where those are.
    pub(crate) fn of_sizes(curve: &[Reading], verb: &str) -> Option<Comparison> {
        let small = curve.iter().find(|reading| reading.x == 4096.0)?;
        let good = smallest(curve, ENOUGH)?;
        let size = size(good.x);
        let title = format!("{verb} in requests of {size}, not 4 KiB");
        (good.x > small.x).then(|| Comparison::new(Change::Size, *small, good, title, format!("request size {size}")))
    }

    /// From one request outstanding to the fewest that are good enough; none where one is.
    pub(crate) fn of_depths(curve: &[Reading], title: impl Fn(f64) -> String) -> Option<Comparison> {
        let (one, good) = (curve.first()?, smallest(curve, ENOUGH)?);
        let setting = format!("{} requests outstanding", good.x);
        (good.x > one.x).then(|| Comparison::new(Change::Depth, *one, good, title(good.x), setting))
    }
}

/// The comparisons whose gain is large and sure enough, the greatest first.
pub(crate) fn findings(
    comparisons: &[Comparison],
    entries: &[Entry],
    points: &[Point],
    command: &Command,
) -> Vec<Finding> {
    let mut found: Vec<(Change, Finding)> = comparisons
        .iter()
        .filter_map(|comparison| Some((comparison.change, finding(comparison, entries, points, command)?)))
        .collect();
    found.sort_by(|a, b| b.1.gain.total_cmp(&a.1.gain));
    let mut seen = Vec::new();
    let (first, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(|(change, _)| {
        let new = !seen.contains(change);
        seen.push(*change);
        new
    });
    first.into_iter().chain(rest).map(|(_, finding)| finding).collect()
}

/// A comparison as a finding, if the difference is sure and large enough.
fn finding(comparison: &Comparison, entries: &[Entry], points: &[Point], command: &Command) -> Option<Finding> {
    let Comparison { before, after, title, setting, .. } = comparison;
    if before == after {
        return None;
    }
    let rate = |index: usize| Some(show_rate(points[index].rate()?));
    let gain = gain(&entries[*before], &entries[*after])?;
    if gain.mean < LEAST_GAIN || gain.low <= 1.0 {
        return None;
    }
    Some(Finding {
        title: title.clone(),
        gain: gain.mean,
        gain_interval_95: Some([gain.low, gain.high]),
        evidence: format!(
            "{} with {}, against {} with {}",
            rate(*after)?,
            points[*after].workload.short(),
            rate(*before)?,
            points[*before].workload.short()
        ),
        setting: setting.clone(),
        check: command.check(&entries[*before], &entries[*after]),
        points: [*before, *after],
    })
}

/// How many times the bytes per second of one entry another has: of runs made in turn where there are several, else of the two rates.
fn gain(before: &Entry, after: &Entry) -> Option<Ratio> {
    let requests = f64::from(after.workload.request_bytes) / f64::from(before.workload.request_bytes);
    let rates = |entry: &Entry| -> Vec<f64> { entry.samples().iter().map(Sample::iops).collect() };
    let (a, b) = (rates(before), rates(after));
    let shared = a.len().min(b.len());
    let ratio = if shared > 1 {
        ratio_interval(&a[..shared], &b[..shared])?
    } else {
        ratio_of_estimates(&rate_estimate(before.samples())?, &rate_estimate(after.samples())?)?
    };
    let [median, mean, low, high] = [ratio.median, ratio.mean, ratio.low, ratio.high].map(|one| one * requests);
    Some(Ratio { median, mean, low, high, ..ratio })
}
