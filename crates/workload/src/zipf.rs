//! The Zipf distribution, exact in constant time and memory.

use crate::rng::{hash, unit};

/// Ranks `1..=n` have probabilities proportional to `rank^-theta`, for any `theta > 0`.
///
/// Rejection-inversion: Hörmann and Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", ACM Transactions on Modeling and Computer Simulation 6(3),
/// 1996. The hat is the integral of `x^-theta`; draws need fewer than 1.1 candidates on average.
///
/// ```
/// let zipf = workload::Zipf::new(1_000, 1.2);
/// let first = (0..10_000).filter(|&index| zipf.draw(7, index) == 1).count();
/// assert!((2_000..4_000).contains(&first), "{first}");
/// ```
#[derive(Debug, Clone)]
pub struct Zipf {
    n: u64,
    theta: f64,
    low: f64,
    high: f64,
    /// Candidates this close below their rank are accepted without evaluating the hat.
    squeeze: f64,
}

impl Zipf {
    /// Requires a finite `theta` above 0.
    pub fn new(n: u64, theta: f64) -> Self {
        let n = n.max(1);
        let mut zipf = Zipf { n, theta, low: 0.0, high: 0.0, squeeze: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(n as f64 + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    pub fn draw(&self, seed: u64, index: u64) -> u64 {
        let key = hash(seed, index);
        let mut attempt = 0;
        loop {
            let u = self.high + unit(hash(key, attempt)) * (self.low - self.high);
            let x = self.inverse(u);
            // The conversion saturates, so rounding at the far end cannot leave the range.
            let rank = ((x + 0.5) as u64).clamp(1, self.n);
            let k = rank as f64;
            if k - x <= self.squeeze || u >= self.integral(k + 0.5) - self.density(k) {
                return rank;
            }
            attempt += 1;
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Integrates `t^-theta` from 1 to `x`, without loss of digits near a theta of 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.theta) * log;
        log * if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t * 0.5 * (1.0 + t / 3.0) }
    }

    fn inverse(&self, y: f64) -> f64 {
        // Rounding may put the product slightly below -1, outside the range of x.
        let t = (y * (1.0 - self.theta)).max(-1.0);
        (y * if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t * (0.5 - t / 3.0) }).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::chi_square_is_plausible;

    #[test]
    fn frequencies_follow_the_law() {
        for theta in [0.2, 0.5, 0.99, 1.0, 1.000_000_001, 1.2, 2.0, 5.0] {
            for n in [1u64, 2, 10, 1000] {
                let zipf = Zipf::new(n, theta);
                let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-theta)).collect();
                let total: f64 = weights.iter().sum();
                let draws = 50_000u64;
                let mut counts = vec![0u64; n as usize];
                for i in 0..draws {
                    counts[zipf.draw(3, i) as usize - 1] += 1;
                }
                let expected: Vec<f64> = weights.iter().map(|w| w / total * draws as f64).collect();
                chi_square_is_plausible(&counts, &expected);
            }
        }
    }

    #[test]
    fn huge_ranges_and_exponents_stay_inside() {
        for theta in [0.01, 0.5, 1.0, 3.0, 50.0] {
            let n = 1u64 << 45;
            let zipf = Zipf::new(n, theta);
            for i in 0..2000 {
                let rank = zipf.draw(11, i);
                assert!((1..=n).contains(&rank), "{rank} for theta {theta}");
            }
        }
    }

    #[test]
    fn a_huge_range_has_the_mean_of_the_law() {
        // For theta 1 the share of ranks up to m is H(m)/H(n), with H(n) = ln n + 0.5772156649 +
        // 1/(2n).
        let n = 1u64 << 40;
        let zipf = Zipf::new(n, 1.0);
        let draws = 100_000;
        let below = (0..draws).filter(|&i| zipf.draw(17, i) <= 1 << 20).count() as f64
            / f64::from(draws as u32);
        let harmonic = |n: f64| n.ln() + 0.577_215_664_9 + 0.5 / n;
        let share = harmonic((1u64 << 20) as f64) / harmonic(n as f64);
        assert!((below - share).abs() < 0.008, "{below} against {share}");
    }
}
