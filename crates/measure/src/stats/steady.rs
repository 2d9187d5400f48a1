//! Whether a measurement was steady, and from when.
//!
//! Four shapes are laid through the rates of the slices: level, straight line, one step, and a ramp that ends in a level. A
//! shape other than the level is believed when what it explains is beyond what autocorrelated noise, as
//! estimated from what the shape leaves over, brings about by chance, and when it is large enough to matter.
//! Among believed shapes the one that leaves least over is taken.
//!
//! A series without noise may have a rhythm (a disk that turns, requests that beat against the slices) and is made of whole requests. Its
//! long-run variance is next to nothing, so that by chance alone any phase of the rhythm would be a change. So a shape must move more than
//! the request or two that fall on this side or that of a slice's end, and a short stretch must be unlike every other of its length.
//!
//! A marginal rule such as MSER (White, Simulation 69, 1997) finds the ramp's end as well, but has no
//! notion of chance: it cuts a third of a stationary series whose slices are correlated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::student_quantile;
use super::interval::LongRunVariance;
use super::series::{Line, mean, median};

/// Slices that a series must have to be judged.
pub const MIN_TO_JUDGE: usize = 20;
/// Changes smaller than this share of the mean are left alone.
const LEAST_CHANGE: f64 = 0.05;
/// Probability, one-sided, at which the straight line is believed against chance.
const LINE_TAIL: f64 = 0.001;
/// The same for the step and the ramp, whose place is searched for.
const SEARCHED_TAIL: f64 = 0.0001;
/// A faster begin that is a smaller share of the series than this is a transient, not a burst credit.
const LEAST_BURST: f64 = 0.05;
/// A change moves at least so many requests from one part of the series to the other: fewer are the ends of slices.
const LEAST_MOVED: f64 = 2.0;
/// Slices slower than this share of the running rate are stalled.
const STALLED: f64 = 0.2;
/// Slices up to this share of the running rate are neither stalled nor running.
const RUNNING: f64 = 0.5;

/// How steady a series of slice rates was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steadiness {
    /// Slices at the begin to leave out of the long-run rate; never more than half of the series.
    pub warm_up: usize,
    /// What the series was after the warm-up.
    pub verdict: Verdict,
}

/// What a series of slice rates was. Rates are in the unit of the series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Verdict {
    /// No change beyond noise.
    Steady,
    /// The rate slides steadily.
    Drifting {
        /// Change from the first slice to the last, percent of the mean; negative: it slows down.
        percent: f64,
    },
    /// A fast begin, then a step down to a lower rate: a burst credit or a cache ran out.
    BurstExhausted {
        /// Slice of the step.
        at: usize,
        /// Mean rate before.
        before: f64,
        /// Mean rate after.
        after: f64,
    },
    /// Still getting faster in the second half: the run was too short to show the long-run rate.
    WarmingUp {
        /// Change from the first slice to the last, percent of the mean.
        percent: f64,
    },
    /// Steady but for slices in which next to nothing was done.
    Stalls {
        /// Times that it stopped.
        count: usize,
        /// Slices that were stalled, in percent of all.
        percent: f64,
        /// Slices of the longest stall.
        longest: usize,
        /// Slices from the begin of a stall to that of the next, where stalls are regular.
        period: Option<f64>,
    },
    /// Too few slices to tell.
    TooShort {
        /// Slices there are.
        slices: usize,
        /// Slices it takes.
        needed: usize,
    },
}

/// Slices to leave out at the begin of a series; 0 where it is stationary. See [`judge`].
pub fn warm_up(series: &[f64]) -> usize {
    judge(series).warm_up
}

/// Judges the rates of equal slices of one run, in order.
///
/// Slices should be long enough for many completions each: where a request takes longer than a slice, empty slices look like stalls.
pub fn judge(series: &[f64]) -> Steadiness {
    let n = series.len();
    if n < MIN_TO_JUDGE || !series.iter().all(|v| v.is_finite()) {
        return Steadiness { warm_up: 0, verdict: Verdict::TooShort { slices: n, needed: MIN_TO_JUDGE } };
    }
    let stalls = Stalls::find(series);
    let running = stalls.bridged(series);
    let steady = |warm_up: usize| Steadiness { warm_up, verdict: stalls.verdict() };
    let Some(shape) = Shape::believed(&running) else { return steady(0) };
    match shape {
        Shape::Line { percent } => Steadiness { warm_up: 0, verdict: Verdict::Drifting { percent } },
        Shape::Step { at, before, after } if before > after && at as f64 >= LEAST_BURST * n as f64 => {
            let warm_up = if at <= n / 2 { at } else { 0 };
            Steadiness { warm_up, verdict: Verdict::BurstExhausted { at, before, after } }
        }
        Shape::Step { at, before, after } => after_transient(series, at, after - before),
        Shape::Ramp { end, change } => after_transient(series, end, change),
    }
}

/// What follows a transient of `end` slices over which the rate changed by `change`.
fn after_transient(series: &[f64], end: usize, change: f64) -> Steadiness {
    let n = series.len();
    let percent = 100.0 * change / mean(series).abs();
    if end > n / 2 {
        let verdict = if change > 0.0 { Verdict::WarmingUp { percent } } else { Verdict::Drifting { percent } };
        return Steadiness { warm_up: 0, verdict };
    }
    let rest = judge(&series[end..]);
    let warm_up = end + rest.warm_up;
    let verdict = match rest.verdict {
        Verdict::BurstExhausted { at, before, after } => Verdict::BurstExhausted { at: at + end, before, after },
        // A series that was long enough had a transient in it; what follows is too short to doubt.
        Verdict::TooShort { .. } => Verdict::Steady,
        other => other,
    };
    Steadiness { warm_up: if warm_up <= n / 2 { warm_up } else { end }, verdict }
}

/// A shape laid through a series.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Line { percent: f64 },
    Step { at: usize, before: f64, after: f64 },
    Ramp { end: usize, change: f64 },
}

/// Sums up to each slice, of values and of values times their slice number.
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
    /// The shape that explains the series best, where one does beyond chance and to an extent that matters.
    fn believed(series: &[f64]) -> Option<Shape> {
        let n = series.len();
        let scale = mean(series).abs();
        let least_moved = LEAST_MOVED * quantum(series);
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
            .filter(|(_, _, change, _)| change.abs() >= LEAST_CHANGE * scale)
            .filter(|(shape, fit, _, _)| moved(fit) > least_moved && shape.is_alone(series))
            .filter_map(|(shape, fit, _, tail)| left_over(series, &fit, tail).map(|rest| (shape, rest)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(shape, _)| shape)
    }

    /// Whether a short stretch is unlike all others of its length: if not, it is a phase of a rhythm.
    fn is_alone(&self, series: &[f64]) -> bool {
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
        let (mut least, mut most) = (sum, sum);
        for t in length..rest.len() {
            sum += rest[t] - rest[t - length];
            (least, most) = (least.min(sum), most.max(sum));
        }
        own < least || own > most
    }

    /// The best step, its fit and its height.
    fn best_step(series: &[f64]) -> (Shape, Vec<f64>, f64) {
        let n = series.len();
        let all = mean(series);
        let centred: Vec<f64> = series.iter().map(|v| v - all).collect();
        let prefix = Prefix::of(&centred);
        let explained = |at: usize| prefix.sum[at].powi(2) * n as f64 / (at * (n - at)) as f64;
        let at = (2..=n - 5).max_by(|&a, &b| explained(a).total_cmp(&explained(b))).unwrap_or(n / 2);
        let (before, after) = (mean(&series[..at]), mean(&series[at..]));
        let fit = (0..n).map(|t| if t < at { before } else { after }).collect();
        (Shape::Step { at, before, after }, fit, after - before)
    }

    /// The best ramp that ends in a level, its fit and its height.
    fn best_ramp(series: &[f64]) -> (Shape, Vec<f64>, f64) {
        let n = series.len();
        let all = mean(series);
        let centred: Vec<f64> = series.iter().map(|v| v - all).collect();
        let prefix = Prefix::of(&centred);
        // The regressor is min(t - end, 0); its inner products come from the sums up to `end`.
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
        let end = (3..=n - 5).max_by(|&a, &b| explained(a).total_cmp(&explained(b))).unwrap_or(n / 2);
        let (product, squares, middle) = parts(end);
        let slope = product / squares;
        let fit = (0..n).map(|t| all + slope * ((t as f64 - end as f64).min(0.0) - middle)).collect();
        (Shape::Ramp { end, change: slope * end as f64 }, fit, slope * end as f64)
    }
}

/// The least difference between two rates of a series: of rates that are counts of requests, that of one request.
fn quantum(series: &[f64]) -> f64 {
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    let scale = sorted.last().map_or(0.0, |most| most.abs());
    // Equal counts differ by how their rates were rounded.
    let least =
        sorted.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 1e-9 * scale).fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { 0.0 }
}

/// How much a shape lets one part of the series have more than the mean: as much as the other has less.
fn moved(fit: &[f64]) -> f64 {
    let all = mean(fit);
    fit.iter().map(|v| (v - all).abs()).sum::<f64>() / 2.0
}

/// The squares that a fit leaves over, where what it explains is beyond chance.
fn left_over(series: &[f64], fit: &[f64], tail: f64) -> Option<f64> {
    let all = mean(series);
    let explained: f64 = fit.iter().map(|v| (v - all).powi(2)).sum();
    let rest: Vec<f64> = series.iter().zip(fit).map(|(v, f)| v - f).collect();
    let noise = LongRunVariance::of(&rest);
    let critical = student_quantile(1.0 - tail, noise.degrees as f64);
    (explained > critical * critical * noise.variance).then(|| rest.iter().map(|v| v * v).sum())
}

/// Slices in which next to nothing was done.
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
        // Between stopped and running there is a gap; widely spread rates have none.
        let between = series.iter().filter(|&&v| (STALLED * running..RUNNING * running).contains(&v)).count();
        let told = count >= 2 && 10 * between <= 7 * count && 20 * count <= 17 * n;
        Stalls { stalled: if told { stalled } else { vec![false; n] } }
    }

    /// The series with stalled slices at the rate before them.
    fn bridged(&self, series: &[f64]) -> Vec<f64> {
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
            && 4 * gaps.iter().filter(|&&g| (g - middle).abs() <= (0.15 * middle).max(1.0)).count() >= 3 * gaps.len();
        let stalled = self.stalled.iter().filter(|&&s| s).count();
        Verdict::Stalls {
            count: begins.len(),
            percent: 100.0 * stalled as f64 / self.stalled.len() as f64,
            longest,
            period: regular.then(|| mean(&gaps)),
        }
    }
}
