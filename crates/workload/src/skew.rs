use crate::rng::{hash, unit};
use std::f64::consts::TAU;

/// A share `1 - h` of the draws falls into the first share `h` of the ranks `0..n`, recursively.
///
/// Gray, Sundaresan, Englert, Baclawski and Weinberger, "Quickly generating billion-record
/// synthetic databases", SIGMOD 1994: the rank is `n u^(ln h / ln(1 - h))` for a uniform `u`.
#[derive(Debug, Clone, Copy)]
pub struct SelfSimilar {
    n: u64,
    exponent: f64,
}

impl SelfSimilar {
    /// Requires `h` between 0 and 1.
    pub fn new(n: u64, h: f64) -> Self {
        SelfSimilar { n: n.max(1), exponent: h.ln() / (-h).ln_1p() }
    }

    /// Draws for `index` in the stream `seed`.
    pub fn draw(&self, seed: u64, index: u64) -> u64 {
        let place = self.n as f64 * unit(hash(seed, index)).powf(self.exponent);
        (place as u64).min(self.n - 1)
    }
}

/// In `0..n`; repeats draws outside the range.
///
/// Box and Muller, "A note on the generation of random normal deviates", The Annals of Mathematical
/// Statistics 29(2), 1958.
#[derive(Debug, Clone, Copy)]
pub struct Normal {
    n: u64,
    mean: f64,
    deviation: f64,
}

impl Normal {
    /// In percent of `n`: mean (0 to 100) and standard deviation (above 0).
    pub fn new(n: u64, mean_percent: f64, deviation_percent: f64) -> Self {
        let whole = n.max(1) as f64 / 100.0;
        Normal { n: n.max(1), mean: mean_percent * whole, deviation: deviation_percent * whole }
    }

    pub fn draw(&self, seed: u64, index: u64) -> u64 {
        let key = hash(seed, index);
        let mut attempt = 0;
        loop {
            let radius = (-2.0 * unit(hash(key, attempt)).ln()).sqrt();
            let angle = TAU * unit(hash(key, attempt + 1));
            // Both numbers of the pair are usable.
            for turn in [angle.cos(), angle.sin()] {
                let place = (self.mean + self.deviation * radius * turn).floor();
                if place >= 0.0 && place < self.n as f64 {
                    return place as u64;
                }
            }
            attempt += 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::chi_square_is_plausible;

    #[test]
    fn self_similar_shares_are_right() {
        let n = 1u64 << 40;
        let draws = 200_000u64;
        for h in [0.1, 0.2, 0.4, 0.5] {
            let law = SelfSimilar::new(n, h);
            let ranks: Vec<u64> = (0..draws).map(|i| law.draw(5, i)).collect();
            assert!(ranks.iter().all(|&rank| rank < n));
            // The first h, the first h of these, and the first h of these.
            for power in 1..=3 {
                let first = (n as f64 * f64::powi(h, power)) as u64;
                let within = ranks.iter().filter(|&&rank| rank < first).count() as f64;
                let share = f64::powi(1.0 - h, power);
                let bound = 5.0 * (share * (1.0 - share) * draws as f64).sqrt();
                assert!(
                    (within - share * draws as f64).abs() <= bound,
                    "h {h}: {within} in the first h^{power}"
                );
            }
        }
    }

    #[test]
    fn self_similar_ranks_follow_the_formula() {
        let (n, h, draws) = (50u64, 0.3f64, 100_000u64);
        let law = SelfSimilar::new(n, h);
        let mut counts = vec![0u64; n as usize];
        (0..draws).for_each(|i| counts[law.draw(9, i) as usize] += 1);
        // The share below x is (x / n)^(ln(1 - h) / ln h).
        let below = |x: u64| (x as f64 / n as f64).powf((1.0 - h).ln() / h.ln());
        let expected: Vec<f64> =
            (0..n).map(|rank| (below(rank + 1) - below(rank)) * draws as f64).collect();
        chi_square_is_plausible(&counts, &expected);
    }

    fn bell(a: f64, b: f64, mean: f64, deviation: f64) -> f64 {
        let density = |x: f64| (-((x - mean) / deviation).powi(2) / 2.0).exp();
        (b - a) / 6.0 * (density(a) + 4.0 * density((a + b) / 2.0) + density(b))
    }

    #[test]
    fn a_bell_curve_within_the_range() {
        for (mean, deviation) in
            [(50.0, 5.0), (50.0, 20.0), (25.0, 10.0), (0.0, 15.0), (100.0, 30.0), (50.0, 100.0)]
        {
            let (n, draws) = (200u64, 100_000u64);
            let law = Normal::new(n, mean, deviation);
            let mut counts = vec![0u64; n as usize];
            (0..draws).for_each(|i| counts[law.draw(13, i) as usize] += 1);
            let weights: Vec<f64> = (0..n)
                .map(|k| bell(k as f64, k as f64 + 1.0, mean * 2.0, deviation * 2.0))
                .collect();
            let total: f64 = weights.iter().sum();
            chi_square_is_plausible(
                &counts,
                &weights.iter().map(|w| w / total * draws as f64).collect::<Vec<_>>(),
            );
        }
    }

    #[test]
    fn one_block_and_very_many() {
        assert!((0..100).all(|i| SelfSimilar::new(1, 0.2).draw(1, i) == 0
            && Normal::new(1, 100.0, 1.0).draw(1, i) == 0));
        let n = 1u64 << 45;
        assert!((0..10_000).all(|i| SelfSimilar::new(n, 0.001).draw(1, i) < n
            && Normal::new(n, 99.0, 80.0).draw(1, i) < n));
    }
}
