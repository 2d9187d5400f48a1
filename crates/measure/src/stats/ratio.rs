use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::interval::{Estimate, estimate_values};
use super::series::median;

/// b over a with its 95 % interval: 1.8 is 1.8 times as fast.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Median of the pairs' ratios, or the ratio of the means if runs were not paired.
    pub median: f64,
    /// Geometric mean of the pairs' ratios, to which the interval belongs; the ratio of the means
    /// if runs were not paired.
    pub mean: f64,
    /// Lower end of the 95 % interval, above zero.
    pub low: f64,
    /// Upper end of the 95 % interval; `f64::MAX` if the divisor may be zero.
    pub high: f64,
    /// Number of pairs of runs; 0 if runs were not paired.
    pub n_pairs: u64,
}

impl Ratio {
    /// The interval excludes 1.
    pub fn is_different(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// Takes one value per run; runs are made in turn, a then b (or b then a). A pair shares its
/// conditions, so slow drift cancels out. `None` with fewer than two pairs, lists of different
/// length, or a value that is not positive.
pub fn ratio_interval(a: &[f64], b: &[f64]) -> Option<Ratio> {
    let positive = |values: &[f64]| values.iter().all(|v| v.is_finite() && *v > 0.0);
    if a.len() != b.len() || !positive(a) || !positive(b) {
        return None;
    }
    let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect();
    let e = estimate_values(&logs)?;
    // Not from the low end, which is clipped at zero if all logarithms are positive.
    let half = e.high - e.mean;
    Some(Ratio {
        median: median(&logs).exp(),
        mean: e.mean.exp(),
        low: (e.mean - half).exp(),
        high: (e.mean + half).exp().min(f64::MAX),
        n_pairs: logs.len() as u64,
    })
}

/// By Fieller's theorem (1954). `None` unless both means are positive and the interval of `a`
/// excludes zero.
pub fn ratio_of_estimates(a: &Estimate, b: &Estimate) -> Option<Ratio> {
    if !(a.mean > 0.0 && b.mean > 0.0) {
        return None;
    }
    let (low, high) = fieller((a.mean, a.high - a.mean), (b.mean, b.high - b.mean))?;
    let mean = b.mean / a.mean;
    Some(Ratio { median: mean, mean, low, high, n_pairs: 0 })
}

/// Computes the interval of `b / a` from means and half widths. `None` if the interval of `a`
/// includes zero.
pub(super) fn fieller((a, ha): (f64, f64), (b, hb): (f64, f64)) -> Option<(f64, f64)> {
    // Roots of (b - r a)^2 = hb^2 + r^2 ha^2.
    let divisor = a * a - ha * ha;
    let root = (a * a * hb * hb + b * b * ha * ha - ha * ha * hb * hb).max(0.0).sqrt();
    (divisor > 0.0).then(|| (((a * b - root) / divisor).max(0.0), (a * b + root) / divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_cancel_drift() {
        let a = [100.0, 80.0, 120.0, 60.0, 150.0];
        let b = [181.0, 143.0, 217.0, 107.0, 271.0];
        let r = ratio_interval(&a, &b).unwrap();
        assert!(
            r.low > 1.77
                && r.high < 1.83
                && (r.median - 1.8).abs() < 0.02
                && r.n_pairs == 5
                && r.is_different(),
            "{r:?}"
        );
        let back = ratio_interval(&b, &a).unwrap();
        assert!(
            (back.mean * r.mean - 1.0).abs() < 1e-12 && (back.low * r.high - 1.0).abs() < 1e-9,
            "the other way round is the inverse"
        );
    }

    #[test]
    fn a_small_gain_in_noise_is_not_significant() {
        let r = ratio_interval(&[100.0, 101.0, 99.0], &[100.0, 110.0, 97.0]).unwrap();
        assert!(!r.is_different() && r.low < 1.0 && r.high > 1.0, "{r:?}");
        assert_eq!(ratio_interval(&[1.0], &[2.0]), None);
        assert_eq!(ratio_interval(&[1.0, 0.0], &[2.0, 1.0]), None);
        assert_eq!(ratio_interval(&[1.0, 2.0], &[2.0]), None);
    }

    #[test]
    fn ratio_of_separate_estimates() {
        let a = estimate_values(&[98.0, 100.0, 102.0, 100.0]).unwrap();
        let b = estimate_values(&[198.0, 202.0, 200.0, 200.0]).unwrap();
        let r = ratio_of_estimates(&a, &b).unwrap();
        let (ha, hb) = (a.relative_half_width, b.relative_half_width);
        // For narrow intervals the relative half widths add in squares.
        assert!(
            (r.mean - 2.0).abs() < 1e-12
                && ((r.high - r.low) / 4.0 / ha.hypot(hb) - 1.0).abs() < 0.01,
            "{r:?}"
        );
        let zero = estimate_values(&[0.1, 3.0]).unwrap();
        assert_eq!(ratio_of_estimates(&zero, &b), None, "a divisor that may be zero");
    }
}
