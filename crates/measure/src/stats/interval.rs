//! The rate of a measurement with the interval that it deserves.
//!
//! # What the interval is about
//! The truth is the *long-run rate*: the work that would be done in a unit of time if the machine ran on for
//! ever under the conditions of the measurement. Its estimate is total work over total time, so the mean of
//! equal time slices and not their median: slices are skewed (a stall costs a slice everything, nothing gives
//! it twice the rate), and their median tells of a machine that never stalls. A drift belongs to the
//! conditions: where the rate slides through the measurement, the truth is its average over that time.
//!
//! # How
//! * **Several runs**: the mean of each run is one value, and Student's t with (runs - 1) degrees of freedom
//!   is used on them. That is exact for any correlation within a run and any spread between runs, which no use of the
//!   slices can improve on: what runs differ by cannot be seen from inside one. From six runs on, one more
//!   degree of freedom is spent on a straight drift over the runs. Runs that agree by chance better than their
//!   own slices allow do not make the interval narrower than half the standard error that the slices tell
//!   (more would make the interval of two or three runs cover more than it says).
//! * **One run**: the variance of its mean is read off the spectrum of its slices near frequency zero, where all
//!   autocorrelation is accounted for: projections on the lowest cosines, after Lazarus, Lewis, Stock and
//!   Watson (HAR inference: recommendations for practice, J. Business & Economic Statistics 36, 2018), each
//!   corrected by the spectrum of the autoregression of order one that was fitted to the slices
//!   (Andrews and Monahan, Econometrica 60, 1992). It cannot know how runs differ.

use std::f64::consts::PI;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::student_quantile;
use super::series::{autocorrelation_at_1, detrended, mean};
use super::spread::Spread;

/// A measured quantity with its 95 % interval. Units are those of the values it was made from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Total work over total time: the mean, which the interval is about and which it always holds.
    pub mean: f64,
    /// Lower end of the 95 % interval of the mean; not below zero where no value is.
    pub low: f64,
    /// Upper end of the 95 % interval of the mean.
    pub high: f64,
    /// Runs (repeats) that went in. With one, the interval tells of that run: how runs differ is not known.
    pub n_runs: u64,
    /// How many independent values would give an interval as sure: values (slices where there are runs of them)
    /// are worth less than their number when they are correlated or runs differ.
    pub n_effective: f64,
    /// Half the interval's width over the mean: 0.03 is plus or minus 3 %. `f64::MAX` where the mean is zero and values differ.
    pub relative_half_width: f64,
}

impl Estimate {
    /// The estimate from its centre and half the width of its interval; `None` where that is not finite.
    fn new(centre: f64, half: f64, nonnegative: bool, n_runs: usize, n_effective: f64) -> Option<Estimate> {
        let low = if nonnegative { (centre - half).max(0.0) } else { centre - half };
        let relative_half_width = if half == 0.0 { 0.0 } else { (half / centre.abs()).min(f64::MAX) };
        let e = Estimate {
            mean: centre,
            low,
            high: centre + half,
            n_runs: n_runs as u64,
            n_effective,
            relative_half_width,
        };
        [e.mean, e.low, e.high, e.n_effective].iter().all(|v| v.is_finite()).then_some(e)
    }

    /// The estimate of `amount / x` where this one is of x: the rate of rounds of equal work from the time that each took. `None` where
    /// x may be zero.
    pub fn rate_of(self, amount: f64) -> Option<Estimate> {
        let [mean, low, high] = [self.mean, self.high, self.low].map(|x| amount / x);
        let e = Estimate { mean, low, high, relative_half_width: (high - low) / 2.0 / mean, ..self };
        (self.low > 0.0).then_some(e)
    }

    /// Whether the interval holds `value`.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Slices that one run must have before its own interval can be told.
pub const MIN_SLICES: usize = 8;
/// Runs from which a straight drift over the runs is allowed for.
const RUNS_FOR_DRIFT: usize = 6;
/// Half widths beyond this share of a rate are taken for it where the share is one of the true rate.
const LARGEST_SHARE: f64 = 0.75;
/// The least half width of several runs, in standard errors as told by their slices.
const LEAST_HALF_WIDTH: f64 = 0.5;

/// The estimate from several runs, each a series of rates in time slices of equal length, runs in the order they were made.
///
/// Leave warm-ups out first ([`super::warm_up`]). Runs of different length count by their time.
///
/// A loop that repeats until the interval is tight stops more gladly where runs agree by chance: begun with five runs, its last interval
/// covers the truth 91 to 95 % of the time, begun with three 89 to 94 % (in simulated noise, goal 3 to 5 %).
///
/// `None` where no interval can be told: one run of fewer than [`MIN_SLICES`] slices, no run, or a value that is not finite.
pub fn estimate_runs<R: AsRef<[f64]>>(runs: &[R]) -> Option<Estimate> {
    let runs: Vec<&[f64]> = runs.iter().map(AsRef::as_ref).filter(|r| !r.is_empty()).collect();
    match runs[..] {
        [] => None,
        [run] => estimate_run(run),
        _ => estimate_several(&runs),
    }
}

/// The estimate from one value a run, runs in the order they were made.
///
/// `None` where no interval can be told: fewer than two values, or a value that is not finite. Two values give an interval
/// 12.7 standard errors to each side; that is what two values are worth.
pub fn estimate_values(values: &[f64]) -> Option<Estimate> {
    let runs: Vec<[f64; 1]> = values.iter().map(|&v| [v]).collect();
    if runs.len() < 2 { None } else { estimate_runs(&runs) }
}

/// The spread of these runs about their mean; `None` where there are fewer than two, or the mean is not above zero.
pub fn spread_of_runs<R: AsRef<[f64]>>(runs: &[R]) -> Option<Spread> {
    let runs: Vec<&[f64]> = runs.iter().map(AsRef::as_ref).filter(|r| !r.is_empty()).collect();
    if runs.len() < 2 || !runs.iter().all(|r| all_finite(r)) {
        return None;
    }
    let (weights, means, centre) = means_of(&runs);
    let (error, degrees) = error_between(&weights, &means, centre);
    (centre > 0.0).then(|| Spread { variance: error * error * runs.len() as f64 / (centre * centre), degrees })
}

/// [`estimate_runs`] of a point that is one of many: `common` is the spread that the runs of all of them have in common
/// ([`Spread::in_common`]). It makes up for runs that are few, so that a single run has an interval, too, and one that knows how runs
/// differ. The rate lies nearer to the lower end of its interval than to the upper one.
pub fn estimate_beside<R: AsRef<[f64]>>(runs: &[R], common: Option<Spread>) -> Option<Estimate> {
    let alone = estimate_runs(runs);
    let Some(common) = common else { return alone };
    let runs: Vec<&[f64]> = runs.iter().map(AsRef::as_ref).filter(|r| !r.is_empty()).collect();
    if runs.is_empty() || !runs.iter().all(|r| all_finite(r)) {
        return None;
    }
    let (weights, _, centre) = means_of(&runs);
    if centre <= 0.0 {
        return alone;
    }
    let Spread { variance, degrees } = common.beside(spread_of_runs(&runs));
    let error = centre * (variance / runs.len() as f64).sqrt();
    let within = match runs[..] {
        [_] => alone.map_or(0.0, |alone| alone.high - alone.mean),
        _ => LEAST_HALF_WIDTH * error_within(&runs, &weights),
    };
    let half = (student_quantile(0.975, degrees) * error).max(within);
    let estimate = Estimate::new(centre, half, nonnegative(&runs), runs.len(), worth(&runs, centre, error))?;
    // The spread is a share of the true rate, not of the one that was seen: what was slow by chance is farther from the truth than it seems.
    let share = half / centre;
    let (low, high) = (centre / (1.0 + share), centre / (1.0 - share.min(LARGEST_SHARE)));
    Some(Estimate { low, high, relative_half_width: (high - low) / 2.0 / centre, ..estimate })
}

/// Each run's share of the time, its mean, and the mean of all.
fn means_of(runs: &[&[f64]]) -> (Vec<f64>, Vec<f64>, f64) {
    let total: f64 = runs.iter().map(|r| r.len() as f64).sum();
    let weights: Vec<f64> = runs.iter().map(|r| r.len() as f64 / total).collect();
    let means: Vec<f64> = runs.iter().map(|r| mean(r)).collect();
    let centre = weights.iter().zip(&means).map(|(w, m)| w * m).sum();
    (weights, means, centre)
}

fn estimate_run(run: &[f64]) -> Option<Estimate> {
    if run.len() < MIN_SLICES || !all_finite(run) {
        return None;
    }
    let centre = mean(run);
    let lrv = LongRunVariance::of(run);
    let n = run.len() as f64;
    let error = (lrv.variance / n).sqrt();
    let half = student_quantile(0.975, lrv.degrees as f64) * error;
    Estimate::new(centre, half, nonnegative(&[run]), 1, worth(&[run], centre, error))
}

fn estimate_several(runs: &[&[f64]]) -> Option<Estimate> {
    if !runs.iter().all(|r| all_finite(r)) {
        return None;
    }
    let (weights, means, centre) = means_of(runs);
    let (between, degrees) = error_between(&weights, &means, centre);
    let half = (student_quantile(0.975, degrees) * between).max(LEAST_HALF_WIDTH * error_within(runs, &weights));
    Estimate::new(centre, half, nonnegative(runs), runs.len(), worth(runs, centre, between))
}

/// Standard error of the weighted mean from what the runs differ by, and its degrees of freedom. Each mean has its weight ([`means_of`]).
fn error_between(weights: &[f64], means: &[f64], centre: f64) -> (f64, f64) {
    let k = means.len();
    let (slope, middle) = if k < RUNS_FOR_DRIFT {
        (0.0, 0.0)
    } else {
        let middle: f64 = weights.iter().enumerate().map(|(i, w)| w * i as f64).sum();
        let moment = |power: i32, f: &dyn Fn(usize) -> f64| {
            (0..k).map(|i| weights[i] * (i as f64 - middle).powi(power) * f(i)).sum::<f64>()
        };
        (moment(1, &|i| means[i] - centre) / moment(2, &|_| 1.0), middle)
    };
    let squares: f64 = (0..k).map(|i| (weights[i] * (means[i] - centre - slope * (i as f64 - middle))).powi(2)).sum();
    let degrees = if k < RUNS_FOR_DRIFT { k - 1 } else { k - 2 } as f64;
    ((squares * k as f64 / degrees).sqrt(), degrees)
}

/// Standard error of the weighted mean as the slices alone would have it; 0 where a run has too few to tell.
fn error_within(runs: &[&[f64]], weights: &[f64]) -> f64 {
    if runs.iter().any(|r| r.len() < MIN_SLICES) {
        return 0.0;
    }
    runs.iter().zip(weights).map(|(r, w)| w * w * LongRunVariance::of(r).variance / r.len() as f64).sum::<f64>().sqrt()
}

/// The independent values that would give a mean with this standard error, at most as many as there are: one at least, for no run is empty.
fn worth(runs: &[&[f64]], centre: f64, error: f64) -> f64 {
    let n = runs.iter().map(|r| r.len()).sum::<usize>() as f64;
    let variance = runs.iter().flat_map(|r| r.iter()).map(|v| (v - centre).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    if error == 0.0 { n } else { (variance / (error * error)).clamp(1.0, n) }
}

fn all_finite(run: &[f64]) -> bool {
    run.iter().all(|v| v.is_finite())
}

fn nonnegative(runs: &[&[f64]]) -> bool {
    runs.iter().all(|r| r.iter().all(|&v| v >= 0.0))
}

/// The variance that the mean of a correlated series has, times the length of the series.
#[derive(Debug, Clone, Copy)]
pub(super) struct LongRunVariance {
    /// In squared units of the series.
    pub variance: f64,
    /// Degrees of freedom it was estimated with.
    pub degrees: usize,
}

impl LongRunVariance {
    /// From a series of at least [`MIN_SLICES`] values; a straight drift in it is taken out first.
    pub(super) fn of(series: &[f64]) -> LongRunVariance {
        let n = series.len() as f64;
        let rest = detrended(series);
        let r = autocorrelation_at_1(&rest);
        // Taking out mean and drift biases the autocorrelation down by this much (Kendall 1954, Marriott and Pope 1954).
        let phi = (r + (2.0 + 4.0 * r) / n).clamp(0.0, 0.97);
        let correlation_time = (1.0 + phi) / (1.0 - phi);
        let by_length = 0.4 * n.powf(2.0 / 3.0);
        let degrees = (n / (2.0 * correlation_time)).min(by_length).clamp(3.0, 16.0) as usize;
        // The first cosine is nearly the drift that was taken out.
        let sum: f64 = (2..degrees + 2)
            .map(|j| {
                let frequency = PI * j as f64 / n;
                let spectrum = (1.0 - phi).powi(2) / ((1.0 - phi).powi(2) + 2.0 * phi * (1.0 - frequency.cos()));
                cosine_projection(&rest, frequency).powi(2) / spectrum
            })
            .sum();
        LongRunVariance { variance: sum / degrees as f64, degrees }
    }
}

/// The projection of the series on the unit vector of the cosine of `frequency` (rad a slice).
fn cosine_projection(series: &[f64], frequency: f64) -> f64 {
    // cos((t + 1/2) w) by its recurrence: exact enough over any run, and much faster than a cosine a slice.
    let step = 2.0 * frequency.cos();
    let (mut before, mut now) = ((0.5 * frequency).cos(), (0.5 * frequency).cos());
    let mut sum = 0.0;
    for v in series {
        sum += v * now;
        (before, now) = (now, step * now - before);
    }
    sum * (2.0 / series.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_values() {
        // 5 values of mean 3 and standard deviation sqrt(2.5); t with 4 degrees of freedom is 2.776.
        let e = estimate_values(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((e.mean, e.n_runs), (3.0, 5));
        let half = 2.776_445 * (2.5f64 / 5.0).sqrt();
        assert!((e.high - 3.0 - half).abs() < 1e-5 && (e.low - 3.0 + half).abs() < 1e-5, "{e:?}");
        assert!((e.relative_half_width - half / 3.0).abs() < 1e-6);
    }

    #[test]
    fn two_values_are_honest_and_one_is_silent() {
        let e = estimate_values(&[99.0, 101.0]).unwrap();
        assert!((e.high - 112.706).abs() < 0.001, "t with one degree of freedom is 12.706: {e:?}");
        assert_eq!(estimate_values(&[100.0]), None);
        assert_eq!(estimate_values(&[]), None);
        assert_eq!(estimate_values(&[1.0, f64::NAN]), None);
        assert_eq!(estimate_runs::<Vec<f64>>(&[]), None);
        assert_eq!(estimate_runs(&[vec![5.0; MIN_SLICES - 1]]), None);
    }

    #[test]
    fn constant_rates_have_no_width() {
        for runs in [vec![vec![7.0; 100]], vec![vec![7.0; 20]; 4]] {
            let e = estimate_runs(&runs).unwrap();
            assert_eq!((e.low, e.mean, e.high, e.relative_half_width), (7.0, 7.0, 7.0, 0.0));
        }
        assert_eq!(estimate_values(&[0.0, 0.0, 0.0]).unwrap().relative_half_width, 0.0);
    }

    #[test]
    fn a_straight_drift_over_many_runs_is_not_noise() {
        let values: Vec<f64> = (0..8).map(|i| 100.0 + f64::from(i) + if i % 2 == 0 { 0.1 } else { -0.1 }).collect();
        let e = estimate_values(&values).unwrap();
        assert!((e.mean - 103.5).abs() < 1e-9 && e.relative_half_width < 0.002, "{e:?}");
    }

    #[test]
    fn runs_that_agree_by_chance_are_no_surer_than_their_slices() {
        let run: Vec<f64> = (0..64).map(|t| 100.0 + 20.0 * (f64::from(t * t) * 0.7).sin()).collect();
        let mut reversed = run.clone();
        reversed.reverse();
        let e = estimate_runs(&[run, reversed]).unwrap();
        assert!(e.relative_half_width > 0.005, "equal means of noisy slices: {e:?}");
    }

    #[test]
    fn longer_runs_count_more() {
        let e = estimate_runs(&[vec![10.0; 30], vec![20.0; 10]]).unwrap();
        assert_eq!(e.mean, 12.5, "total work over total time");
    }

    #[test]
    fn rounds_of_equal_work_have_the_rate_of_all_work_over_all_time() {
        let times = estimate_values(&[1.0, 2.0, 1.5, 1.5]).unwrap();
        let rate = times.rate_of(300.0).unwrap();
        assert!((rate.mean - 4.0 * 300.0 / 6.0).abs() < 1e-9 && rate.contains(rate.mean), "{rate:?}");
        assert_eq!(estimate_values(&[0.1, 3.0]).unwrap().rate_of(1.0), None, "no time at all is possible");
    }

    #[test]
    fn rates_are_not_negative() {
        assert_eq!(estimate_values(&[1.0, 3.0]).unwrap().low, 0.0);
        assert!(estimate_values(&[-1.0, 3.0]).unwrap().low < -1.0);
    }
}
