//! Requests arrive on a schedule, whether or not earlier ones are done.

use super::{LatencyGoal, SearchBy, p99_interval};
use crate::point::{Numbers, Point, measure_points};
use machine::units::{rate_number, show_rate, show_time};
use machine::{Machine, Result};
use measure::{Repeats, Runner};
use workload::{MAX_RATE_IOPS, Stop, Workload};

/// The last few requests may be in flight at the run's end.
const SERVED: f64 = 0.98;

/// The search ends if the rates around the goal are this close.
const NEAR: f64 = 1.0 / 32.0;

/// Of the highest sustained rate.
const MIN_SHARE: f64 = 1.0 / 1024.0;

/// With fewer, the 99th percentile is the maximum.
const MIN_REQUESTS: f64 = 100.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outcome {
    holds: bool,
    /// The interval is entirely on one side of the goal.
    sure: bool,
}

fn outcome(offered: f64, numbers: &Numbers, p99_ns: u64, noisy: bool) -> Outcome {
    let goal = p99_ns as f64;
    let served = numbers.iops >= SERVED * offered;
    let holds = served && numbers.latency_ns.p99 <= p99_ns;
    let sure = match p99_interval(numbers) {
        // If runs repeat exactly, one run is enough.
        _ if !noisy => true,
        Some([_, high]) if holds => high <= goal,
        Some([low, _]) => {
            let per_request = numbers.throughput_bytes_per_s / numbers.iops;
            let max_served =
                numbers.interval_95.map_or(f64::INFINITY, |[_, high]| high / per_request);
            low > goal || max_served < SERVED * offered
        }
        None => false,
    };
    Outcome { holds, sure }
}

/// Finds the highest offered rate with a 99th percentile within `p99_ns`, counted from the
/// scheduled time. Each rate becomes a point, from index `first` on. Requests due beyond the
/// workload's depth wait, which counts.
///
/// # Errors
/// As [`super::measure_within_p99`].
pub fn measure_rate_within_p99<M: Machine>(
    runner: &mut Runner<'_, M>,
    workload: &Workload,
    (p99_ns, first): (u64, usize),
    repeats: Repeats,
    mut on_rate: impl FnMut(&str),
) -> Result<(Vec<Point>, LatencyGoal)> {
    let noisy = runner.machine().capabilities().noisy;
    let mut points: Vec<Point> = Vec::new();
    let mut measure = |rate_iops: Option<f64>| -> Result<Option<Numbers>> {
        let offered = Workload { rate_iops, ..workload.clone() };
        let rate = rate_iops
            .map_or("without a given rate".to_owned(), |rate| format!("{rate:.0} requests/s"));
        on_rate(&format!("{}, {rate}", offered.short()));
        points.extend(measure_points(runner, &[offered], repeats, |_, _| {})?);
        Ok(points.last().and_then(|point| point.numbers.clone()))
    };
    if let Some(greatest) = measure(None)?.map(|numbers| numbers.iops) {
        let in_a_run = match workload.stop {
            Stop::AfterNs(ns) => MIN_REQUESTS * 1e9 / ns as f64,
            Stop::AfterBytes(_) => 0.0,
        };
        let min = (greatest * MIN_SHARE).max(in_a_run).min(greatest);
        let (mut holds, mut fails, mut rate) = (0.0, None, whole(greatest));
        while let Some(numbers) = measure(Some(rate))? {
            if outcome(rate, &numbers, p99_ns, noisy).holds {
                holds = rate
            } else {
                fails = Some(rate)
            }
            rate = whole(match fails {
                // A target may sustain more on schedule: a throttle admits less if more than one
                // slice's worth waits at once.
                None if holds < greatest * (1.0 + NEAR / 2.0) => holds * (1.0 + NEAR),
                None => holds * 2.0,
                Some(above) if holds > 0.0 => (holds + above) / 2.0,
                Some(above) => (above / 2.0).max(min),
            });
            let near = |above: f64| {
                rate <= holds || rate >= above || holds > 0.0 && above - holds <= NEAR * above
            };
            if rate > MAX_RATE_IOPS || fails.is_some_and(near) {
                break;
            }
        }
    }
    let goal = judge(&points, workload, (p99_ns, first), noisy);
    Ok((points, goal))
}

/// People read the rate and pass it to `--rate`.
fn whole(rate: f64) -> f64 {
    if rate >= 100.0 { rate.round() } else { rate }
}

/// The first point has no offered rate.
fn judge(
    points: &[Point],
    workload: &Workload,
    (p99_ns, first): (u64, usize),
    noisy: bool,
) -> LatencyGoal {
    let tried: Vec<(usize, f64, &Numbers, Outcome)> = points
        .iter()
        .enumerate()
        .filter_map(|(at, point)| {
            let (offered, numbers) = (point.workload.rate_iops?, point.numbers.as_ref()?);
            Some((at, offered, numbers, outcome(offered, numbers, p99_ns, noisy)))
        })
        .collect();
    let ordered = |a: f64, b: f64| a.total_cmp(&b);
    let best = tried.iter().filter(|one| one.3.holds).max_by(|a, b| ordered(a.1, b.1));
    let beyond = tried.iter().filter(|one| !one.3.holds).min_by(|a, b| ordered(a.1, b.1));
    let bytes = |numbers: &Numbers| numbers.throughput_bytes_per_s;
    let greatest = points
        .iter()
        .find(|point| point.workload.rate_iops.is_none())
        .and_then(|one| one.numbers.as_ref());
    let low = tried
        .iter()
        .filter(|one| one.3.holds && one.3.sure)
        .map(|one| bytes(one.2))
        .fold(0.0, f64::max);
    // The offered rate, not the achieved one: beyond the knee the target serves less.
    let per_request = best.map_or(0.0, |one| bytes(one.2) / one.2.iops);
    let failing =
        tried.iter().filter(|one| !one.3.holds && one.3.sure).map(|one| one.1 * per_request);
    let high = failing.min_by(|a, b| ordered(*a, *b));
    let interval = best.zip(high).map(|(best, high)| [low, high.max(bytes(best.2))]);
    let mut goal = LatencyGoal {
        by: SearchBy::Rate,
        p99_ns,
        op: workload.op(),
        request_bytes: workload.request_bytes,
        points: (first..first + points.len()).collect(),
        best: best.map(|one| first + one.0),
        beyond: beyond.map(|one| first + one.0),
        rate_iops: best.map(|one| one.1),
        throughput_bytes_per_s: best.map(|one| bytes(one.2)),
        interval_95: interval,
        p99_interval_95_ns: best.and_then(|one| p99_interval(one.2)),
        unlimited_bytes_per_s: greatest
            .into_iter()
            .chain(tried.iter().map(|one| one.2))
            .map(bytes)
            .max_by(f64::total_cmp),
        half_depth: None,
        sure: best.is_none_or(|one| one.3.sure) && beyond.is_none_or(|one| one.3.sure),
        sentence: String::new(),
    };
    goal.sentence =
        said(&goal, workload, best.map(|one| (one.1, one.2)), beyond.map(|one| (one.1, one.2)));
    goal
}

fn said(
    goal: &LatencyGoal,
    workload: &Workload,
    best: Option<(f64, &Numbers)>,
    beyond: Option<(f64, &Numbers)>,
) -> String {
    let within = show_time(goal.p99_ns as f64);
    let p99 = |numbers: &Numbers| show_time(numbers.latency_ns.p99 as f64);
    let failed = beyond.map(|(offered, numbers)| {
        if numbers.latency_ns.p99 > goal.p99_ns {
            format!("at {offered:.0} requests/s it is {}", p99(numbers))
        } else {
            format!("of {offered:.0} requests/s only {:.0} are served", numbers.iops)
        }
    });
    let (Some((offered, numbers)), Some(rate)) = (best, goal.throughput_bytes_per_s) else {
        return match failed {
            Some(failed) => format!(
                "no offered rate of {} keeps p99 within {within}: {failed}",
                workload.short()
            ),
            None => format!("{} could not be measured", workload.short()),
        };
    };
    let interval = goal.interval_95.map_or(String::new(), |[low, high]| {
        format!(" ({} to {})", rate_number(low), show_rate(high))
    });
    let mut said = format!(
        "p99 within {within}: at most {}{interval}, {offered:.0} requests/s of {}, at a p99 of {}",
        show_rate(rate),
        workload.short(),
        p99(numbers)
    );
    said += &failed.map_or(String::new(), |failed| format!("; {failed}"));
    if let Some(max) = goal.unlimited_bytes_per_s {
        said += &format!("; {:.0} % of the best rate at any latency", rate / max * 100.0);
    }
    if !goal.sure {
        said += "; the p99 values are too uncertain to be sure: use a longer --runtime or more --repeats";
    }
    said
}
