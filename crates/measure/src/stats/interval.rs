//! The *long-run rate* with its confidence interval: total work over total time.
//!
//! Several runs: Student's t of their means, exact for any correlation within runs and spread
//! between them. From six runs on, linear drift takes a degree of freedom. The half width is at
//! least half the standard error from the slices.
//!
//! One run: the variance comes from the slices' spectrum near zero (Lazarus, Lewis, Stock and
//! Watson, J. Business & Economic Statistics 36, 2018), corrected by an AR(1) fit (Andrews and
//! Monahan, Econometrica 60, 1992).

use std::f64::consts::PI;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::student_quantile;
use super::series::{autocorrelation_at_1, detrended, mean};
use super::spread::Spread;

/// An estimate with its 95 % interval, in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Total work over total time; always inside the interval.
    pub mean: f64,
    /// Lower end of the 95 % interval; not negative if no value is.
    pub low: f64,
    pub high: f64,
    /// Number of runs. With a single one the interval does not include the difference between runs.
    pub n_runs: u64,
    /// Independent values that give an equally wide interval: fewer than the values if those are
    /// correlated or runs differ.
    pub n_effective: f64,
    /// Half the interval over the mean. `f64::MAX` if the mean is zero and values differ.
    pub relative_half_width: f64,
}

impl Estimate {
    fn new(
        centre: f64,
        half: f64,
        nonnegative: bool,
        n_runs: usize,
        n_effective: f64,
    ) -> Option<Estimate> {
        let low = if nonnegative { (centre - half).max(0.0) } else { centre - half };
        let relative_half_width =
            if half == 0.0 { 0.0 } else { (half / centre.abs()).min(f64::MAX) };
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

    /// Estimates `amount / x`; `self` estimates x. `None` if x may be zero.
    pub fn rate_of(self, amount: f64) -> Option<Estimate> {
        let [mean, low, high] = [self.mean, self.high, self.low].map(|x| amount / x);
        let e =
            Estimate { mean, low, high, relative_half_width: (high - low) / 2.0 / mean, ..self };
        (self.low > 0.0).then_some(e)
    }

    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// For a single run's interval.
pub const MIN_SLICES: usize = 8;
pub(super) const RUNS_FOR_DRIFT: usize = 6;
/// The largest half width, as a share, for an interval's upper end.
const LARGEST_SHARE: f64 = 0.75;
/// Of several runs, in standard errors from their slices.
const MIN_HALF_WIDTH: f64 = 0.5;

/// Takes several runs in order, each of rates in time slices of equal length. Leave out warm-ups
/// first ([`super::warm_up`]).
///
/// Repeating until the interval is narrow tends to stop when runs agree by chance: starting with
/// five runs, the interval covers the true value 91 to 95 % of the time; with three, 89 to 94 %
/// (simulated noise, goal 3 to 5 %).
///
/// `None` for a single run of fewer than [`MIN_SLICES`] slices, no run, or a value that is not
/// finite.
pub fn estimate_runs<R: AsRef<[f64]>>(runs: &[R]) -> Option<Estimate> {
    let runs: Vec<&[f64]> = runs.iter().map(AsRef::as_ref).filter(|r| !r.is_empty()).collect();
    match runs[..] {
        [] => None,
        [run] => estimate_run(run),
        _ => estimate_several(&runs),
    }
}

/// One value per run, in order. `None` with fewer than two, or if one is not finite.
pub fn estimate_values(values: &[f64]) -> Option<Estimate> {
    let runs: Vec<[f64; 1]> = values.iter().map(|&v| [v]).collect();
    if runs.len() < 2 { None } else { estimate_runs(&runs) }
}

/// Returns `None` with fewer than two runs, or unless the mean is positive.
pub fn spread_of_runs<R: AsRef<[f64]>>(runs: &[R]) -> Option<Spread> {
    let runs: Vec<&[f64]> = runs.iter().map(AsRef::as_ref).filter(|r| !r.is_empty()).collect();
    if runs.len() < 2 || !runs.iter().all(|r| all_finite(r)) {
        return None;
    }
    let (weights, means, centre) = means_of(&runs);
    let (error, degrees) = error_between(&weights, &means, centre);
    (centre > 0.0).then(|| Spread {
        variance: error * error * runs.len() as f64 / (centre * centre),
        degrees,
    })
}

/// Uses the spread that many points' runs share ([`Spread::in_common`]), so even a single run's
/// interval includes the difference between runs.
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
        _ => MIN_HALF_WIDTH * error_within(&runs, &weights),
    };
    let half = (student_quantile(0.975, degrees) * error).max(within);
    let estimate = Estimate::new(
        centre,
        half,
        nonnegative(&runs),
        runs.len(),
        effective_values(&runs, centre, error),
    )?;
    // The spread is relative to the true rate, not to the one seen: a run that was slow by chance
    // is farther from the true rate than it seems.
    let share = half / centre;
    let (low, high) = (centre / (1.0 + share), centre / (1.0 - share.min(LARGEST_SHARE)));
    Some(Estimate { low, high, relative_half_width: (high - low) / 2.0 / centre, ..estimate })
}

/// Returns each run's share of the time, its mean, and the mean of all.
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
    Estimate::new(centre, half, nonnegative(&[run]), 1, effective_values(&[run], centre, error))
}

fn estimate_several(runs: &[&[f64]]) -> Option<Estimate> {
    if !runs.iter().all(|r| all_finite(r)) {
        return None;
    }
    let (weights, means, centre) = means_of(runs);
    let (between, degrees) = error_between(&weights, &means, centre);
    let half = (student_quantile(0.975, degrees) * between)
        .max(MIN_HALF_WIDTH * error_within(runs, &weights));
    Estimate::new(
        centre,
        half,
        nonnegative(runs),
        runs.len(),
        effective_values(runs, centre, between),
    )
}

/// With its degrees of freedom.
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
    let squares: f64 = (0..k)
        .map(|i| (weights[i] * (means[i] - centre - slope * (i as f64 - middle))).powi(2))
        .sum();
    let degrees = if k < RUNS_FOR_DRIFT { k - 1 } else { k - 2 } as f64;
    ((squares * k as f64 / degrees).sqrt(), degrees)
}

/// 0 if a run has too few slices.
fn error_within(runs: &[&[f64]], weights: &[f64]) -> f64 {
    if runs.iter().any(|r| r.len() < MIN_SLICES) {
        return 0.0;
    }
    runs.iter()
        .zip(weights)
        .map(|(r, w)| w * w * LongRunVariance::of(r).variance / r.len() as f64)
        .sum::<f64>()
        .sqrt()
}

fn effective_values(runs: &[&[f64]], centre: f64, error: f64) -> f64 {
    let n = runs.iter().map(|r| r.len()).sum::<usize>() as f64;
    let variance = runs.iter().flat_map(|r| r.iter()).map(|v| (v - centre).powi(2)).sum::<f64>()
        / (n - 1.0).max(1.0);
    if error == 0.0 { n } else { (variance / (error * error)).clamp(1.0, n) }
}

fn all_finite(run: &[f64]) -> bool {
    run.iter().all(|v| v.is_finite())
}

fn nonnegative(runs: &[&[f64]]) -> bool {
    runs.iter().all(|r| r.iter().all(|&v| v >= 0.0))
}

/// Of the series' mean, times its length.
#[derive(Debug, Clone, Copy)]
pub(super) struct LongRunVariance {
    pub variance: f64,
    pub degrees: usize,
}

impl LongRunVariance {
    /// Requires [`MIN_SLICES`] values; removes linear drift.
    pub(super) fn of(series: &[f64]) -> LongRunVariance {
        let n = series.len() as f64;
        let rest = detrended(series);
        let r = autocorrelation_at_1(&rest);
        // Removing mean and drift biases the autocorrelation down by this much (Kendall 1954,
        // Marriott and Pope 1954).
        let phi = (r + (2.0 + 4.0 * r) / n).clamp(0.0, 0.97);
        let correlation_time = (1.0 + phi) / (1.0 - phi);
        let by_length = 0.4 * n.powf(2.0 / 3.0);
        let degrees = (n / (2.0 * correlation_time)).min(by_length).clamp(3.0, 16.0) as usize;
        // The first cosine is almost the drift that was removed.
        let sum: f64 = (2..degrees + 2)
            .map(|j| {
                let frequency = PI * j as f64 / n;
                let spectrum = (1.0 - phi).powi(2)
                    / ((1.0 - phi).powi(2) + 2.0 * phi * (1.0 - frequency.cos()));
                cosine_projection(&rest, frequency).powi(2) / spectrum
            })
            .sum();
        LongRunVariance { variance: sum / degrees as f64, degrees }
    }
}

/// In rad per slice.
fn cosine_projection(series: &[f64], frequency: f64) -> f64 {
    // cos((t + 1/2) w) by recurrence: accurate enough over any run, and much faster than a cosine
    // per slice.
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
        // 5 values with mean 3 and standard deviation sqrt(2.5); t with 4 degrees of freedom is
        // 2.776.
        let e = estimate_values(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((e.mean, e.n_runs), (3.0, 5));
        let half = 2.776_445 * (2.5f64 / 5.0).sqrt();
        assert!((e.high - 3.0 - half).abs() < 1e-5 && (e.low - 3.0 + half).abs() < 1e-5, "{e:?}");
        assert!((e.relative_half_width - half / 3.0).abs() < 1e-6);
    }

    #[test]
    fn two_values_give_an_interval_and_one_does_not() {
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
    fn linear_drift_over_runs_is_removed() {
        let values: Vec<f64> =
            (0..8).map(|i| 100.0 + f64::from(i) + if i % 2 == 0 { 0.1 } else { -0.1 }).collect();
        let e = estimate_values(&values).unwrap();
        assert!((e.mean - 103.5).abs() < 1e-9 && e.relative_half_width < 0.002, "{e:?}");
    }

    #[test]
    fn slices_bound_the_interval_of_agreeing_runs() {
        let run: Vec<f64> =
            (0..64).map(|t| 100.0 + 20.0 * (f64::from(t * t) * 0.7).sin()).collect();
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
        assert!(
            (rate.mean - 4.0 * 300.0 / 6.0).abs() < 1e-9 && rate.contains(rate.mean),
            "{rate:?}"
        );
        assert_eq!(
            estimate_values(&[0.1, 3.0]).unwrap().rate_of(1.0),
            None,
            "no time at all is possible"
        );
    }

    #[test]
    fn rates_are_not_negative() {
        assert_eq!(estimate_values(&[1.0, 3.0]).unwrap().low, 0.0);
        assert!(estimate_values(&[-1.0, 3.0]).unwrap().low < -1.0);
    }
}
