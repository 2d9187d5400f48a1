//! Each point's variance is shrunk toward the common one, more strongly the better points agree
//! (empirical Bayes: Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004).

const MIN_GROUPS: usize = 5;

/// Represents infinity.
const MAX_DEGREES: f64 = 1e6;

/// As a share of the median: runs that agree to the last digit agree by rounding.
const MIN_SHARE: f64 = 1e-5;

/// Of single runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Of a run's rate, as a fraction of the squared rate.
    pub variance: f64,
    pub degrees: f64,
}

impl Spread {
    /// Returns `None` for too few points.
    pub fn in_common(points: &[Spread]) -> Option<Spread> {
        let mut sorted: Vec<f64> =
            points.iter().map(|one| one.variance).filter(|one| one.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let min = sorted.get(sorted.len() / 2)? * MIN_SHARE;
        let usable: Vec<Spread> = points
            .iter()
            .filter(|one| one.variance.is_finite() && one.degrees >= 1.0)
            .map(|one| Spread { variance: one.variance.max(min), ..*one })
            .filter(|one| one.variance > 0.0)
            .collect();
        if usable.len() < MIN_GROUPS {
            return None;
        }
        let n = usable.len() as f64;
        // The logarithm of a variance with d degrees of freedom has known mean and variance,
        // relative to the true variance.
        let logs: Vec<f64> = usable
            .iter()
            .map(|one| one.variance.ln() - digamma(one.degrees / 2.0) + (one.degrees / 2.0).ln())
            .collect();
        let mean = logs.iter().sum::<f64>() / n;
        let scatter = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let by_chance = usable.iter().map(|one| trigamma(one.degrees / 2.0)).sum::<f64>() / n;
        let beyond = scatter - by_chance;
        let degrees = if beyond > 0.0 {
            (2.0 * trigamma_inverse(beyond)).min(MAX_DEGREES)
        } else {
            MAX_DEGREES
        };
        let variance = (mean + digamma(degrees / 2.0) - (degrees / 2.0).ln()).exp();
        // However well they agree, the common spread has no more degrees of freedom than all runs
        // together.
        let degrees = degrees.min(usable.iter().map(|one| one.degrees).sum());
        (variance.is_finite() && variance > 0.0).then_some(Spread { variance, degrees })
    }

    pub fn beside(self, own: Option<Spread>) -> Spread {
        let Some(own) = own else { return self };
        let degrees = self.degrees + own.degrees;
        Spread {
            variance: (self.degrees * self.variance + own.degrees * own.variance) / degrees,
            degrees,
        }
    }
}

/// For x > 0 (Abramowitz and Stegun 6.3.5, 6.3.18).
fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    sum + x.ln() - 0.5 / x - square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))
}

/// Abramowitz and Stegun 6.4.6, 6.4.12.
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    sum + 1.0 / x + square / 2.0 + square / x * (1.0 / 6.0 - square * (1.0 / 30.0 - square / 42.0))
}

fn trigamma_inverse(value: f64) -> f64 {
    let (mut low, mut high) = (1e-4f64, MAX_DEGREES);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        if trigamma(middle) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digamma_and_trigamma_have_their_known_values() {
        let euler = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + euler).abs() < 1e-9, "{}", digamma(1.0));
        assert!((digamma(0.5) + euler + 4f64.ln()).abs() < 1e-9);
        let pi = std::f64::consts::PI;
        assert!((trigamma(1.0) - pi * pi / 6.0).abs() < 1e-9);
        assert!((trigamma(0.5) - pi * pi / 2.0).abs() < 1e-9);
        for x in [0.05, 0.5, 3.0, 700.0] {
            assert!((trigamma_inverse(trigamma(x)) / x - 1.0).abs() < 1e-6, "{x}");
        }
    }

    fn groups(variances: &[f64], degrees: f64) -> Vec<Spread> {
        variances.iter().map(|&variance| Spread { variance, degrees }).collect()
    }

    #[test]
    fn only_similar_spreads_are_pooled() {
        let alike = Spread::in_common(&groups(&[0.04, 0.05, 0.035, 0.045, 0.038, 0.041], 4.0))
            .expect("enough");
        assert_eq!(alike.degrees, 24.0, "spreads differ only by chance, so all runs count");
        let noisy = alike.beside(Some(Spread { variance: 0.4, degrees: 1.0 }));
        assert!(noisy.variance < 0.08 && noisy.degrees == 25.0, "{noisy:?}");
        let apart =
            Spread::in_common(&groups(&[1e-6, 1e-1, 1e-4, 1e-2, 1e-5, 1e-3], 4.0)).expect("enough");
        assert!(apart.degrees < 1.0, "{apart:?}");
        let own = Spread { variance: 1e-6, degrees: 4.0 };
        assert!(apart.beside(Some(own)).variance < 0.1 * apart.variance.max(1e-5) + 1e-2);
        assert_eq!(Spread::in_common(&groups(&[0.1; 4], 2.0)), None);
        assert_eq!(alike.beside(None), alike);
        assert_eq!(Spread::in_common(&groups(&[0.0; 8], 2.0)), None, "no run differs from another");
    }
}
