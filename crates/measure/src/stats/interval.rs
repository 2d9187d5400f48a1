//! The rate of a measurement with the interval that it deserves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::student_quantile;

/// A measured quantity with its 95 % interval. Units are those of the values it was made from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The median over the runs.
    pub median: f64,
    /// Total work over total time: the mean, which the interval is about.
    pub mean: f64,
    /// Lower end of the 95 % interval of the mean; not below zero where no value is.
    pub low: f64,
    /// Upper end of the 95 % interval of the mean.
    pub high: f64,
    /// Runs (repeats) that went in.
    pub n_runs: u64,
    /// How many independent values the data are worth.
    pub n_effective: f64,
    /// Half the interval's width over the mean: 0.03 is plus or minus 3 %.
    pub relative_half_width: f64,
}

/// The estimate from several runs, each a series of rates in time slices of equal length (in runs of one series, in order).
///
/// `None` where no interval can be told: no values, one lone value, or a value that is not finite.
pub fn estimate_runs<R: AsRef<[f64]>>(runs: &[R]) -> Option<Estimate> {
    let means: Vec<f64> = runs.iter().map(|r| r.as_ref()).filter(|r| !r.is_empty()).map(mean).collect();
    estimate_values(&means)
}

/// The estimate from one value a run.
///
/// `None` where no interval can be told: fewer than two values, or a value that is not finite.
pub fn estimate_values(values: &[f64]) -> Option<Estimate> {
    let n = values.len();
    if n < 2 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let centre = mean(values);
    let variance = values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (n - 1) as f64;
    let half = student_quantile(0.975, (n - 1) as f64) * (variance / n as f64).sqrt();
    Some(Estimate {
        median: median(values),
        mean: centre,
        low: centre - half,
        high: centre + half,
        n_runs: n as u64,
        n_effective: n as f64,
        relative_half_width: half / centre.abs(),
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n % 2 == 1 { sorted[n / 2] } else { 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]) }
}
