//! Pairs of points that differ in one setting, ranked by gain.

use crate::advice::{changes, steps};
use crate::command::Command;
use crate::conclusion::{Change, Comparison};
use crate::ratios::{exact, iops_ratio};
use crate::roles::PLAIN_BYTES;
use crate::sampler::Entry;
use machine::CacheState;
use measure::Sample;
use measure::stats::Ratio;
use results::{Finding, FindingStep, Point, UncertainGain};
use workload::Pattern;

const MIN_GAIN: f64 = 1.1;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Findings {
    /// For a plain program, cheapest first.
    pub(crate) proven: Vec<Finding>,
    pub(crate) unproven: Vec<UncertainGain>,
}

pub(crate) fn findings(
    comparisons: &[Comparison],
    entries: &[Entry],
    points: &[Point],
    command: &Command,
    is_plain: impl Fn(&Entry) -> bool,
) -> Findings {
    let mut found: Vec<(Change, Finding)> = Vec::new();
    let mut unproven = Vec::new();
    for comparison in comparisons {
        match gain_of(comparison, entries) {
            Gain::Small => {}
            Gain::Unproven(gain, gain_interval_95) => unproven.push(UncertainGain {
                title: comparison.title.clone(),
                gain,
                gain_interval_95,
                points: [comparison.before, comparison.after],
            }),
            Gain::Proven(ratio) => {
                let Some(mut finding) = finding(comparison, ratio, entries, points, command) else {
                    continue;
                };
                finding.from_plain = is_plain(&entries[comparison.before]);
                found.push((comparison.change, finding));
            }
        }
    }
    Findings { proven: ranked(found, entries), unproven }
}

fn ranked(found: Vec<(Change, Finding)>, entries: &[Entry]) -> Vec<Finding> {
    let workload = |index: usize| &entries[index].workload;
    let low = |finding: &Finding| finding.gain_interval_95.map_or(1.0, |[low, _]| low);
    let cost = |finding: &Finding| {
        changes(workload(finding.points[0]), workload(finding.points[1])).max(1)
    };
    let worth = |finding: &Finding| low(finding).ln() / f64::from(cost(finding));
    // Common access comes before uncommon: sequential or deep direct requests, then small ones at
    // depth 1, cached files, and last writes that are synced one by one, whatever the gain.
    let rank = |finding: &Finding| {
        let entry = &entries[finding.points[0]];
        let before = &entry.workload;
        let sequential = before.pattern == Pattern::Seq;
        match before.buffering {
            _ if finding.from_plain && low(finding) >= MIN_GAIN => 0,
            _ if low(finding) < MIN_GAIN => 3,
            one if one.is_dsync() => 4,
            one if !one.is_direct() && in_cache(entry) => 3,
            one if one.is_direct() && sequential && before.request_bytes < PLAIN_BYTES[0] => 3,
            one if one.is_direct() && (sequential || before.outstanding() > 1) => 2,
            _ => 1,
        }
    };
    // The advice for half of the peak and that for nearly all of it stay together.
    let of_plain = |one: &(Change, Finding)| one.0 == Change::Plain && one.1.from_plain;
    let op = |finding: &Finding| workload(finding.points[0]).op();
    let worth_of_all = |one: &(Change, Finding)| {
        let same = |other: &&(Change, Finding)| {
            of_plain(one) && of_plain(other) && op(&one.1) == op(&other.1)
        };
        found.iter().filter(same).map(|other| worth(&other.1)).fold(worth(&one.1), f64::max)
    };
    let worths: Vec<f64> = found.iter().map(worth_of_all).collect();
    let mut sorted: Vec<(f64, (Change, Finding))> = worths.into_iter().zip(found).collect();
    let place = |one: &(Change, Finding)| (rank(&one.1), u32::from(one.0 != Change::Plain));
    sorted.sort_by(|(a, one), (b, other)| {
        let effort = cost(&one.1).cmp(&cost(&other.1));
        place(one).cmp(&place(other)).then(b.total_cmp(a)).then(effort)
    });
    let mut seen = Vec::new();
    let repeats = |(_, (change, finding)): (f64, (Change, Finding))| {
        let repeated = seen.contains(&change) && !(finding.from_plain && change == Change::Plain);
        seen.push(change);
        (repeated, finding)
    };
    let mut sorted: Vec<(bool, Finding)> = sorted.into_iter().map(repeats).collect();
    sorted.sort_by_key(|(repeated, finding)| (rank(finding), *repeated));
    sorted.into_iter().map(|(_, finding)| finding).collect()
}

/// A cache's rate is the target's only if the target is in memory.
fn in_cache(entry: &Entry) -> bool {
    let workload = &entry.workload;
    let served =
        if workload.writes() { !workload.sync_at_end } else { workload.cache != CacheState::Cold };
    served && !entry.facts.in_memory
}

pub(crate) fn is_worth_a_word(comparison: &Comparison, entries: &[Entry]) -> bool {
    !matches!(gain_of(comparison, entries), Gain::Small)
}

enum Gain {
    Small,
    /// Reportable if it were certain; with its interval.
    Unproven(f64, Option<[f64; 2]>),
    Proven(Ratio),
}

fn gain_of(comparison: &Comparison, entries: &[Entry]) -> Gain {
    let (before, after) = (&entries[comparison.before], &entries[comparison.after]);
    if comparison.before == comparison.after {
        return Gain::Small;
    }
    match gain(before, after) {
        Some(ratio) if ratio.mean < MIN_GAIN => Gain::Small,
        Some(ratio) if ratio.low > 1.0 => Gain::Proven(ratio),
        Some(ratio) => Gain::Unproven(ratio.mean, Some([ratio.low, ratio.high])),
        None => match before.point().rate().zip(after.point().rate()) {
            Some((a, b)) if b >= a * MIN_GAIN => Gain::Unproven(b / a, None),
            _ => Gain::Small,
        },
    }
}

fn finding(
    comparison: &Comparison,
    ratio: Ratio,
    entries: &[Entry],
    points: &[Point],
    command: &Command,
) -> Option<Finding> {
    let Comparison { before, after, title, setting, .. } = comparison;
    let numbers = |index: usize| points[index].numbers.as_ref();
    let cost = |index: usize| points[index].cpu_ns_per_mib();
    let p99 = |index: usize| numbers(index)?.latency_ns.settled_p99();
    let steps = if comparison.change == Change::Plain {
        steps(entries, *before, *after)
    } else {
        Vec::new()
    };
    let step = |(from, to, change): (usize, usize, String)| {
        let ratio = gain(&entries[from], &entries[to])?;
        Some(FindingStep {
            change,
            point: to,
            gain: ratio.mean,
            gain_interval_95: Some([ratio.low, ratio.high]),
            cpu_ns_per_mib: cost(to),
            p99_ns: p99(to),
        })
    };
    let steps: Option<Vec<FindingStep>> = steps.into_iter().map(step).collect();
    Some(Finding {
        title: title.clone(),
        gain: ratio.mean,
        gain_interval_95: Some([ratio.low, ratio.high]),
        evidence: Finding::rates([&points[*before], &points[*after]])?.full,
        setting: setting.clone(),
        check: command.check(&entries[*before], &entries[*after]),
        points: [*before, *after],
        cpu_ns_per_mib: cost(*before).zip(cost(*after)).map(|(before, after)| [before, after]),
        p99_ns: p99(*before).zip(p99(*after)).map(|(before, after)| [before, after]),
        from_plain: false,
        reaches: comparison.reaches,
        steps: steps.unwrap_or_default(),
    })
}

/// Of bytes per second.
fn gain(before: &Entry, after: &Entry) -> Option<Ratio> {
    let requests =
        f64::from(after.workload.request_bytes) / f64::from(before.workload.request_bytes);
    let first = |entry: &Entry| entry.samples().first().map(Sample::iops);
    let ratio = iops_ratio(before, after)
        .or_else(|| exact(before, after, first(before)?, first(after)?))?;
    let [median, mean, low, high] =
        [ratio.median, ratio.mean, ratio.low, ratio.high].map(|one| one * requests);
    Some(Ratio { median, mean, low, high, ..ratio })
}
