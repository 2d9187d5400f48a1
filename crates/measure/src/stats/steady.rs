//! Whether a measurement was steady, and from when.
//!
//! Constant, line, step and ramp are fitted to the slices. A shape counts if it explains more than
//! autocorrelated noise and matters; the smallest residuals win. A periodic series has hardly any
//! noise, so a shape must also move more than two requests, and a short stretch must be unique.
//! MSER (White, Simulation 69, 1997) ignores chance: it cuts a third of a stationary series.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::student_quantile;
use super::interval::LongRunVariance;
use super::series::{Line, mean, median};

/// In slices.
pub const MIN_TO_JUDGE: usize = 20;
/// Smaller fractions of the mean are ignored.
const MIN_CHANGE: f64 = 0.05;
const LINE_TAIL: f64 = 0.001;
/// One-sided, of step and ramp, whose position is searched for.
const SEARCHED_TAIL: f64 = 0.0001;
/// A fast start below this share is a transient, not a burst credit.
const MIN_BURST: f64 = 0.05;
/// In requests; fewer are an effect of slice boundaries.
const MIN_MOVED: f64 = 2.0;
/// As a share of the running rate.
const STALLED: f64 = 0.2;
/// Below this share of the running rate a slice is not running.
const RUNNING: f64 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steadiness {
    /// Slices to exclude at the start; at most half of the series.
    pub warm_up: usize,
    /// Verdict on the slices after the warm-up, or on a burst at the start.
    pub verdict: Verdict,
}

/// The change that a series shows; rates are in the unit of the series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Verdict {
    /// No change beyond noise.
    Steady,
    Drifting {
        /// Change from the first slice to the last, in percent of the mean; negative: slowing down.
        percent: f64,
    },
    /// A fast start, then a step down: a burst credit or a cache ran out.
    BurstExhausted {
        at: usize,
        before: f64,
        after: f64,
    },
    /// A warm-up that ends in the second half: the run was too short to show the long-run rate.
    WarmingUp {
        /// Change from the first slice to the last, in percent of the mean.
        percent: f64,
    },
    /// Slices with almost no work done.
    Stalls {
        count: usize,
        /// Share of all slices, in percent.
        percent: f64,
        longest: usize,
        /// Slices between the starts of stalls, if they are regular.
        period: Option<f64>,
    },
    TooShort {
        slices: usize,
        needed: usize,
    },
}

/// Returns slices; 0 if stationary.
pub fn warm_up(series: &[f64]) -> usize {
    judge(series).warm_up
}

/// If a request takes longer than a slice, empty slices look like stalls.
pub fn judge(series: &[f64]) -> Steadiness {
    let n = series.len();
    if n < MIN_TO_JUDGE || !series.iter().all(|v| v.is_finite()) {
        return Steadiness {
            warm_up: 0,
            verdict: Verdict::TooShort { slices: n, needed: MIN_TO_JUDGE },
        };
    }
    let stalls = Stalls::find(series);
    let running = stalls.without_stalls(series);
    let steady = |warm_up: usize| Steadiness { warm_up, verdict: stalls.verdict() };
    let Some(shape) = Shape::best_shape(&running) else { return steady(0) };
    match shape {
        Shape::Line { percent } => {
            Steadiness { warm_up: 0, verdict: Verdict::Drifting { percent } }
        }
        Shape::Step { at, before, after }
            if before > after && at as f64 >= MIN_BURST * n as f64 =>
        {
            let warm_up = if at <= n / 2 { at } else { 0 };
            Steadiness { warm_up, verdict: Verdict::BurstExhausted { at, before, after } }
        }
        Shape::Step { at, before, after } => after_transient(series, at, after - before),
        Shape::Ramp { end, change } => after_transient(series, end, change),
    }
}

fn after_transient(series: &[f64], end: usize, change: f64) -> Steadiness {
    let n = series.len();
    let percent = 100.0 * change / mean(series).abs();
    if end > n / 2 {
        let verdict = if change > 0.0 {
            Verdict::WarmingUp { percent }
        } else {
            Verdict::Drifting { percent }
        };
        return Steadiness { warm_up: 0, verdict };
    }
    let rest = judge(&series[end..]);
    let warm_up = end + rest.warm_up;
    let verdict = match rest.verdict {
        Verdict::BurstExhausted { at, before, after } => {
            Verdict::BurstExhausted { at: at + end, before, after }
        }
        // The series was long enough to show a transient, so its rest is not called too short.
        Verdict::TooShort { .. } => Verdict::Steady,
        other => other,
    };
    Steadiness { warm_up: if warm_up <= n / 2 { warm_up } else { end }, verdict }
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Line { percent: f64 },
    Step { at: usize, before: f64, after: f64 },
    Ramp { end: usize, change: f64 },
}

struct Prefix {
    sum: Vec<f64>,
    moment: Vec<f64>,
}

impl Prefix {
    fn of(centred: &[f64]) -> Prefix {
        let (mut sum, mut moment) = (vec![0.0], vec![0.0]);
        for (t, v) in centred.iter().enumerate() {
            sum.push(sum[t] + v);
            moment.push(moment[t] + v * t as f64);
        }
        Prefix { sum, moment }
    }
}

impl Shape {
    fn best_shape(series: &[f64]) -> Option<Shape> {
        let n = series.len();
        let scale = mean(series).abs();
        let min_moved = MIN_MOVED * quantum(series);
        let line = Line::through(series);
        let change = line.slope * (n - 1) as f64;
        let fit: Vec<f64> = (0..n).map(|t| line.at(t)).collect();
        let step = Self::best_step(series);
        let ramp = Self::best_ramp(series);
        let candidates = [
            (Shape::Line { percent: 100.0 * change / scale }, fit, change, LINE_TAIL),
            (step.0, step.1, step.2, SEARCHED_TAIL),
            (ramp.0, ramp.1, ramp.2, SEARCHED_TAIL),
        ];
        candidates
            .into_iter()
            .filter(|(_, _, change, _)| change.abs() >= MIN_CHANGE * scale)
            .filter(|(shape, fit, _, _)| moved(fit) > min_moved && shape.is_unique(series))
            .filter_map(|(shape, fit, _, tail)| {
                left_over(series, &fit, tail).map(|rest| (shape, rest))
            })
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(shape, _)| shape)
    }

    /// `false` for a stretch that repeats as one phase of a period.
    fn is_unique(&self, series: &[f64]) -> bool {
        let n = series.len();
        let (stretch, rest) = match *self {
            Shape::Line { .. } => return true,
            Shape::Step { at, .. } if 2 * at > n => (&series[at..], &series[..at]),
            Shape::Step { at, .. } => (&series[..at], &series[at..]),
            Shape::Ramp { end, .. } => (&series[..end], &series[end..]),
        };
        if rest.len() < 2 * stretch.len() {
            return true;
        }
        let length = stretch.len();
        let own: f64 = stretch.iter().sum();
        let mut sum: f64 = rest[..length].iter().sum();
        let (mut min, mut max) = (sum, sum);
        for t in length..rest.len() {
            sum += rest[t] - rest[t - length];
            (min, max) = (min.min(sum), max.max(sum));
        }
        own < min || own > max
    }

    fn best_step(series: &[f64]) -> (Shape, Vec<f64>, f64) {
        let n = series.len();
        let all = mean(series);
        let centred: Vec<f64> = series.iter().map(|v| v - all).collect();
        let prefix = Prefix::of(&centred);
        let explained = |at: usize| prefix.sum[at].powi(2) * n as f64 / (at * (n - at)) as f64;
        let at =
            (2..=n - 5).max_by(|&a, &b| explained(a).total_cmp(&explained(b))).unwrap_or(n / 2);
        let (before, after) = (mean(&series[..at]), mean(&series[at..]));
        let fit = (0..n).map(|t| if t < at { before } else { after }).collect();
        (Shape::Step { at, before, after }, fit, after - before)
    }

    fn best_ramp(series: &[f64]) -> (Shape, Vec<f64>, f64) {
        let n = series.len();
        let all = mean(series);
        let centred: Vec<f64> = series.iter().map(|v| v - all).collect();
        let prefix = Prefix::of(&centred);
        // The regressor is min(t - end, 0); its inner products come from the prefix sums.
        let parts = |end: usize| {
            let e = end as f64;
            let total = -e * (e + 1.0) / 2.0;
            let squares = e * (e + 1.0) * (2.0 * e + 1.0) / 6.0 - total * total / n as f64;
            (prefix.moment[end] - e * prefix.sum[end], squares, total / n as f64)
        };
        let explained = |end: usize| {
            let (product, squares, _) = parts(end);
            product * product / squares
        };
        let end =
            (3..=n - 5).max_by(|&a, &b| explained(a).total_cmp(&explained(b))).unwrap_or(n / 2);
        let (product, squares, middle) = parts(end);
        let slope = product / squares;
        let fit =
            (0..n).map(|t| all + slope * ((t as f64 - end as f64).min(0.0) - middle)).collect();
        (Shape::Ramp { end, change: slope * end as f64 }, fit, slope * end as f64)
    }
}

/// The smallest step between two rates: one request, if rates are counts.
fn quantum(series: &[f64]) -> f64 {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    let scale = sorted.last().map_or(0.0, |max| max.abs());
    // Equal counts may differ by rounding.
    let min = sorted
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .filter(|gap| *gap > 1e-9 * scale)
        .fold(f64::INFINITY, f64::min);
    if min.is_finite() { min } else { 0.0 }
}

fn moved(fit: &[f64]) -> f64 {
    let all = mean(fit);
    fit.iter().map(|v| (v - all).abs()).sum::<f64>() / 2.0
}

/// `None` unless what the fit explains is significant.
fn left_over(series: &[f64], fit: &[f64], tail: f64) -> Option<f64> {
    let all = mean(series);
    let explained: f64 = fit.iter().map(|v| (v - all).powi(2)).sum();
    let rest: Vec<f64> = series.iter().zip(fit).map(|(v, f)| v - f).collect();
    let noise = LongRunVariance::of(&rest);
    let critical = student_quantile(1.0 - tail, noise.degrees as f64);
    (explained > critical * critical * noise.variance).then(|| rest.iter().map(|v| v * v).sum())
}

struct Stalls {
    stalled: Vec<bool>,
}

impl Stalls {
    fn find(series: &[f64]) -> Stalls {
        let n = series.len();
        let floor = STALLED * mean(series);
        let running = median(&series.iter().copied().filter(|&v| v > floor).collect::<Vec<_>>());
        let stalled: Vec<bool> = series.iter().map(|&v| v < STALLED * running).collect();
        let count = stalled.iter().filter(|&&s| s).count();
        // There is a gap between stalled and running slices; widely spread rates have no such gap.
        let between =
            series.iter().filter(|&&v| (STALLED * running..RUNNING * running).contains(&v)).count();
        let reported = count >= 2 && 10 * between <= 7 * count && 20 * count <= 17 * n;
        Stalls { stalled: if reported { stalled } else { vec![false; n] } }
    }

    fn without_stalls(&self, series: &[f64]) -> Vec<f64> {
        let first = self.stalled.iter().position(|s| !s).unwrap_or(0);
        let mut last = series[first];
        let mut bridge = |(&v, &stalled): (&f64, &bool)| {
            if !stalled {
                last = v;
            }
            last
        };
        series.iter().zip(&self.stalled).map(&mut bridge).collect()
    }

    fn verdict(&self) -> Verdict {
        let mut begins = Vec::new();
        let (mut length, mut longest) = (0, 0);
        for (t, &stalled) in self.stalled.iter().enumerate() {
            length = if stalled { length + 1 } else { 0 };
            longest = longest.max(length);
            if length == 1 {
                begins.push(t as f64);
            }
        }
        if begins.is_empty() {
            return Verdict::Steady;
        }
        let gaps: Vec<f64> = begins.windows(2).map(|w| w[1] - w[0]).collect();
        let middle = median(&gaps);
        let regular = gaps.len() >= 3
            && 4 * gaps.iter().filter(|&&g| (g - middle).abs() <= (0.15 * middle).max(1.0)).count()
                >= 3 * gaps.len();
        let stalled = self.stalled.iter().filter(|&&s| s).count();
        Verdict::Stalls {
            count: begins.len(),
            percent: 100.0 * stalled as f64 / self.stalled.len() as f64,
            longest,
            period: regular.then(|| mean(&gaps)),
        }
    }
}
