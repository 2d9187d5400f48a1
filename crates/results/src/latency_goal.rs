//! The best rate with a 99th percentile within a goal.

mod by_rate;

pub use by_rate::measure_rate_within_p99;

use crate::point::{Numbers, Point, measure_points};
use machine::units::{rate_number, show_rate, show_time, significant};
use machine::{Machine, Result};
use measure::{Repeats, Runner, stats};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::{OpKind, Workload};

/// With less gain from twice the depth, the rate has peaked.
const GAIN: f64 = 1.02;

/// Doublings without gain that end the search.
const FLAT: u32 = 2;

/// Rates this close are equal: the lower depth wins.
const SAME: f64 = 0.01;

/// Rates that differ less are shown alike.
const VISIBLE: f64 = 0.0005;

/// The search ends at adjacent depths, or at depths within 1/16.
const NEAR: u32 = 16;

/// What the search varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchBy {
    /// The number of outstanding requests; latency counts from issue.
    #[default]
    Depth,
    /// Requests per second on a schedule; latency counts from the scheduled time.
    Rate,
}

impl SearchBy {
    pub const ALL: [SearchBy; 2] = [SearchBy::Depth, SearchBy::Rate];

    /// On the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            SearchBy::Depth => "depth",
            SearchBy::Rate => "rate",
        }
    }
}

/// The best rate with a 99th percentile within a goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyGoal {
    #[serde(default)]
    pub by: SearchBy,
    /// The goal for the 99th percentile of the latency, in nanoseconds.
    pub p99_ns: u64,
    pub op: OpKind,
    pub request_bytes: u32,
    /// Indices of the points measured, in order.
    pub points: Vec<usize>,
    /// The point with the best rate within the goal, by index; absent if even one outstanding
    /// request misses it.
    pub best: Option<usize>,
    /// The point with the lowest depth or offered rate that misses the goal, by index; absent if
    /// none does.
    pub beyond: Option<usize>,
    /// The best offered rate within the goal; absent if the search is by depth.
    #[serde(default)]
    pub rate_iops: Option<f64>,
    /// The best rate within the goal.
    pub throughput_bytes_per_s: Option<f64>,
    /// The 95 % interval of the best rate within the goal. By offered rate: from the highest rate
    /// that is significantly within the goal to the lowest that significantly misses it.
    pub interval_95: Option<[f64; 2]>,
    /// The 95 % interval of the 99th percentile at the best point, if the repeats give one.
    pub p99_interval_95_ns: Option<[f64; 2]>,
    /// The best rate regardless of latency.
    pub unlimited_bytes_per_s: Option<f64>,
    /// The lowest depth that reaches half of the best rate within the goal; absent if the search is
    /// by offered rate.
    pub half_depth: Option<u32>,
    /// The percentiles on both sides differ from the goal by more than their intervals.
    pub sure: bool,
    pub sentence: String,
}

/// Doubles the depth until the 99th percentile exceeds `p99_ns` or the rate stops growing, then
/// bisects. Each depth becomes a point, from index `first` on.
///
/// # Errors
/// Only the user's interrupt: other failures become the point's error and end the search.
pub fn measure_within_p99<M: Machine>(
    runner: &mut Runner<'_, M>,
    at: impl Fn(u32) -> Workload,
    (p99_ns, max, first): (u64, u32, usize),
    repeats: Repeats,
    mut on_depth: impl FnMut(&Workload),
) -> Result<(Vec<Point>, LatencyGoal)> {
    let mut points: Vec<Point> = Vec::new();
    let mut measure = |depth: u32| -> Result<Option<(f64, u64)>> {
        let workload = at(depth);
        on_depth(&workload);
        points.extend(measure_points(runner, &[workload], repeats, |_, _| {})?);
        let numbers = points.last().and_then(|point| point.numbers.as_ref());
        Ok(numbers.map(|numbers| (numbers.iops, numbers.latency_ns.p99)))
    };
    let (mut holds, mut too_deep, mut depth, mut max_iops, mut flat) = (0, None, 1, 0.0f64, 0);
    while let Some((iops, p99)) = measure(depth)? {
        if p99 > p99_ns {
            too_deep = Some(depth);
            break;
        }
        flat = if iops < max_iops * GAIN { flat + 1 } else { 0 };
        (holds, max_iops) = (depth, max_iops.max(iops));
        if flat == FLAT || depth >= max {
            break;
        }
        depth = (depth * 2).min(max);
    }
    while let Some(deep) =
        too_deep.filter(|&deep| holds > 0 && deep - holds > (holds / NEAR).max(1))
    {
        let middle = holds + (deep - holds) / 2;
        match measure(middle)? {
            Some((_, p99)) if p99 <= p99_ns => holds = middle,
            Some(_) => too_deep = Some(middle),
            None => break,
        }
    }
    let goal = judge(&points, &at(1), p99_ns, first, runner.machine().capabilities().noisy);
    Ok((points, goal))
}

/// Judges the p99 by the bar that `whose` publishes; `None` if the point failed. `first` is its
/// index.
pub fn meets_published_p99(
    point: &Point,
    (p99_ns, first): (u64, usize),
    whose: &str,
    noisy: bool,
) -> Option<LatencyGoal> {
    let p99 = show_time(point.numbers.as_ref()?.latency_ns.p99 as f64);
    let one = &point.workload.workload;
    let mut goal = judge(std::slice::from_ref(point), one, p99_ns, first, noisy);
    let verdict = match (goal.best.is_some(), goal.sure) {
        (true, true) => "the bar is met",
        (false, true) => "the bar is not met",
        (true, false) => "the bar is met, but the runs differ too much to be sure: measure longer",
        (false, false) => {
            "the bar is not met, but the runs differ too much to be sure: measure longer"
        }
    };
    let bar = show_time(p99_ns as f64);
    goal.sentence = format!("{whose} needs a p99 below {bar}; here it is {p99}: {verdict}");
    Some(goal)
}

fn p99_interval(numbers: &Numbers) -> Option<[f64; 2]> {
    let runs: Vec<f64> = numbers.runs.iter().map(|run| run.latency_p99_ns as f64).collect();
    stats::estimate_values(&runs).map(|p99| [p99.low, p99.high])
}

fn judge(points: &[Point], one: &Workload, p99_ns: u64, first: usize, noisy: bool) -> LatencyGoal {
    let measured: Vec<(usize, &Numbers)> = points
        .iter()
        .enumerate()
        .filter_map(|(at, point)| Some((at, point.numbers.as_ref()?)))
        .collect();
    let depth = |at: usize| points[at].workload.depth;
    let holding =
        || measured.iter().copied().filter(|(_, numbers)| numbers.latency_ns.p99 <= p99_ns);
    let rate = |numbers: &Numbers| numbers.throughput_bytes_per_s;
    let greatest = holding().map(|(_, numbers)| rate(numbers)).fold(0.0, f64::max);
    let fewest = |share: f64| {
        holding()
            .filter(|(_, numbers)| rate(numbers) >= share * greatest)
            .min_by_key(|(at, _)| depth(*at))
    };
    let best = fewest(1.0 - SAME);
    let beyond = measured
        .iter()
        .copied()
        .filter(|(_, numbers)| numbers.latency_ns.p99 > p99_ns)
        .min_by_key(|(at, _)| depth(*at));
    // If runs repeat exactly, one run is enough.
    let clear = |side: Option<(usize, &Numbers)>, end: usize, within: bool| {
        side.is_none_or(|(_, numbers)| match p99_interval(numbers) {
            Some(ends) => (ends[end] <= p99_ns as f64) == within,
            None => !noisy,
        })
    };
    let sure = clear(best, 1, true) && clear(beyond, 0, false);
    let mut goal = LatencyGoal {
        by: SearchBy::Depth,
        p99_ns,
        op: one.op(),
        request_bytes: one.request_bytes,
        points: (first..first + points.len()).collect(),
        best: best.map(|(at, _)| first + at),
        beyond: beyond.map(|(at, _)| first + at),
        rate_iops: None,
        throughput_bytes_per_s: best.map(|(_, numbers)| rate(numbers)),
        interval_95: best.and_then(|(_, numbers)| numbers.interval_95),
        p99_interval_95_ns: best.and_then(|(_, numbers)| p99_interval(numbers)),
        unlimited_bytes_per_s: measured
            .iter()
            .map(|(_, numbers)| rate(numbers))
            .max_by(f64::total_cmp),
        half_depth: fewest(0.5).map(|(at, _)| depth(at)),
        sure,
        sentence: String::new(),
    };
    goal.sentence = goal.said(points, one, best, beyond);
    goal
}

impl LatencyGoal {
    fn said(
        &self,
        points: &[Point],
        one: &Workload,
        best: Option<(usize, &Numbers)>,
        beyond: Option<(usize, &Numbers)>,
    ) -> String {
        let goal = show_time(self.p99_ns as f64);
        let p99 = |numbers: &Numbers| show_time(numbers.latency_ns.p99 as f64);
        let outstanding = |at: usize| points[at].workload.outstanding();
        let (Some((at, numbers)), Some(rate)) = (best, self.throughput_bytes_per_s) else {
            return match beyond {
                Some((at, numbers)) => format!(
                    "no rate of {} keeps p99 within {goal}: with {} outstanding it is {}",
                    one.short(),
                    outstanding(at),
                    p99(numbers)
                ),
                None => format!("{} could not be measured", one.short()),
            };
        };
        let interval = self.interval_95.map_or(String::new(), |[low, high]| {
            format!(" ({} to {})", rate_number(low), show_rate(high))
        });
        let within = points.iter().filter(|point| {
            let p99 = point.numbers.as_ref().map(|numbers| numbers.latency_ns.p99);
            p99.is_some_and(|p99| p99 <= self.p99_ns)
        });
        // The smallest depth that nearly reaches the highest rate is named.
        let deeper = within
            .max_by_key(|point| point.workload.outstanding())
            .filter(|point| point.workload.outstanding() > outstanding(at));
        let gain = deeper.and_then(Point::rate).map_or(0.0, |deep| deep / rate - 1.0);
        let most = if gain > VISIBLE { "" } else { "at most " };
        let mut said = format!(
            "p99 within {goal}: {most}{}{interval} with {}, at a p99 of {}",
            show_rate(rate),
            points[at].workload.short(),
            p99(numbers)
        );
        if let Some(deeper) = deeper.filter(|_| gain > VISIBLE) {
            said += &format!(
                "; {} outstanding keep within it too and gain {} %",
                deeper.workload.outstanding(),
                significant(gain * 100.0, 1)
            );
        }
        said += &match beyond {
            // 200.3 us are not within 200 us.
            Some((at, numbers)) if p99(numbers) == goal => {
                format!("; with {} outstanding it is just above", outstanding(at))
            }
            Some((at, numbers)) => {
                format!("; with {} outstanding it is {}", outstanding(at), p99(numbers))
            }
            None => "; keeping more outstanding gains nothing".to_owned(),
        };
        if let Some(half) = self.half_depth.filter(|&half| half < points[at].workload.depth) {
            said += &format!("; half of that rate from depth {half}");
        }
        if let Some(max) = self.unlimited_bytes_per_s.filter(|max| rate < max * (1.0 - SAME)) {
            said += &format!("; {:.0} % of the best rate at any latency", rate / max * 100.0);
        }
        if !self.sure {
            said += "; the p99 values are too uncertain to be sure: use a longer --runtime or more --repeats";
        }
        said
    }
}
