use super::distribution::{student_cdf, student_quantile};
use super::interval::{Estimate, RUNS_FOR_DRIFT, estimate_values};
use super::ratio::fieller;

const DEGREES_OF_ONE_RUN: f64 = 3.0;
/// Power for [`Change::detectable`].
const POWER: f64 = 0.8;

/// A positive quantity with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    mean: f64,
    error: f64,
    degrees: f64,
    /// Repeated until they agreed; 0 if the number was fixed in advance.
    runs: f64,
}

impl Level {
    /// Returns `None` unless the mean is positive.
    pub fn new(mean: f64, error: f64, degrees: f64) -> Option<Level> {
        let sound =
            mean.is_finite() && mean > 0.0 && error.is_finite() && error >= 0.0 && degrees > 0.0;
        sound.then_some(Level { mean, error, degrees, runs: 0.0 })
    }

    /// Returns `None` unless the estimate is positive.
    pub fn of(estimate: &Estimate) -> Option<Level> {
        Level::of_interval(estimate.mean, [estimate.low, estimate.high], estimate.n_runs)
    }

    /// Returns `None` unless the mean is positive.
    pub fn of_interval(mean: f64, interval_95: [f64; 2], runs: u64) -> Option<Level> {
        let degrees = match runs {
            0 | 1 => DEGREES_OF_ONE_RUN,
            few if few < RUNS_FOR_DRIFT as u64 => few as f64 - 1.0,
            many => many as f64 - 2.0,
        };
        // The lower end is clipped at zero for nonnegative quantities, so the upper end gives the
        // width.
        let error = (interval_95[1] - mean) / student_quantile(0.975, degrees);
        let runs = if runs > 1 { runs as f64 } else { 0.0 };
        Level::new(mean, error, degrees).map(|level| Level { runs, ..level })
    }

    /// Takes one value per run; `None` with fewer than two values, or unless their mean is
    /// positive.
    pub fn of_runs(runs: &[f64]) -> Option<Level> {
        Level::of(&estimate_values(runs)?)
    }

    fn with_spread_of_both(&self, other: &Level) -> Level {
        if self.runs == 0.0 || other.runs == 0.0 {
            return *self;
        }
        let spread = |level: &Level| (level.error / level.mean).powi(2) * level.runs;
        let pooled = (spread(self) * self.degrees + spread(other) * other.degrees)
            / (self.degrees + other.degrees);
        Level { error: self.error.max(self.mean * (pooled / self.runs).sqrt()), ..*self }
    }

    /// For a simulated machine with identical repeats.
    pub fn exact(value: f64) -> Option<Level> {
        Level::new(value, 0.0, f64::INFINITY)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The second level over the first.
    pub ratio: f64,
    /// The 95 % interval's lower end.
    pub low: f64,
    /// Infinite if the first level may be zero.
    pub high: f64,
    /// Below 0.05 exactly if the interval excludes 1.
    pub p: f64,
    /// Detected 4 times in 5, as a fraction of the first level.
    pub detectable: f64,
}

impl Change {
    /// Fieller's interval (1954) of the ratio of separate levels, with Welch's degrees of freedom
    /// (1947). Runs repeated until they agree may agree by chance and underestimate the error, so
    /// each side has at least the spread of all runs: otherwise one in ten pairs without a
    /// difference shows one.
    pub fn between(a: &Level, b: &Level) -> Change {
        let (a, b) = (&a.with_spread_of_both(b), &b.with_spread_of_both(a));
        let ratio = b.mean / a.mean;
        let error = a.error.hypot(b.error);
        if error == 0.0 {
            let p = if ratio == 1.0 { 1.0 } else { 0.0 };
            return Change { ratio, low: ratio, high: ratio, p, detectable: 0.0 };
        }
        let part = |level: &Level| level.error.powi(4) / level.degrees;
        let degrees = error.powi(4) / (part(a) + part(b));
        let t = student_quantile(0.975, degrees);
        let (ha, hb) = (t * a.error, t * b.error);
        let (low, high) = fieller((a.mean, ha), (b.mean, hb)).unwrap_or((0.0, f64::INFINITY));
        let distance = (b.mean - a.mean).abs() / error;
        let p = 2.0 * student_cdf(-distance, degrees);
        Change {
            ratio,
            low,
            high,
            p,
            detectable: (t + student_quantile(POWER, degrees)) * error / a.mean,
        }
    }

    /// Takes logarithms of ratios under common conditions; the number of pairs is fixed in advance.
    /// `None` with fewer than two.
    pub fn of_pairs(logs: &[f64]) -> Option<Change> {
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let degrees = logs.len() as f64 - 1.0;
        if logs.len() < 2 || !mean.is_finite() {
            return None;
        }
        let error = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>()
            / degrees
            / logs.len() as f64)
            .sqrt();
        let t = student_quantile(0.975, degrees);
        let p = match error {
            0.0 if mean == 0.0 => 1.0,
            0.0 => 0.0,
            error => 2.0 * student_cdf(-(mean / error).abs(), degrees),
        };
        Some(Change {
            ratio: mean.exp(),
            low: (mean - t * error).exp(),
            high: (mean + t * error).exp(),
            p,
            detectable: ((t + student_quantile(POWER, degrees)) * error).exp() - 1.0,
        })
    }

    /// For exactly these questions, with independent errors. `None` if empty, or if a change has no
    /// finite interval.
    pub fn geometric_mean(changes: &[Change]) -> Option<Change> {
        let count = changes.len() as f64;
        let mean = changes.iter().map(|change| change.ratio.ln()).sum::<f64>() / count;
        let halves = changes.iter().map(|change| (change.high / change.low).ln() / 2.0);
        let half = halves.map(|half| half * half).sum::<f64>().sqrt() / count;
        if changes.is_empty() || !mean.is_finite() || !half.is_finite() {
            return None;
        }
        // Its own interval, which need not be symmetric.
        if let [only] = changes {
            return Some(*only);
        }
        // The half widths are for 95 % of approximately normal distributions.
        let error = half / student_quantile(0.975, 1e6);
        let p = match error {
            0.0 if mean == 0.0 => 1.0,
            0.0 => 0.0,
            error => 2.0 * student_cdf(-(mean / error).abs(), 1e6),
        };
        Some(Change {
            ratio: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
            p,
            detectable: (half + student_quantile(POWER, 1e6) * error).exp() - 1.0,
        })
    }
}

/// Holm's correction (1979): if those below 0.05 are called real, *any* is wrong at most once in
/// twenty, whatever their dependence.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut max: f64 = 0.0;
    for (place, &index) in order.iter().enumerate() {
        max = max.max(p[index] * (p.len() - place) as f64).min(1.0);
        adjusted[index] = max;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(runs: &[f64]) -> Level {
        Level::of_runs(runs).unwrap()
    }

    #[test]
    fn welch_matches_a_textbook_example() {
        let error = (1.0f64 / 3.0).sqrt();
        let [a, b] = [100.0, 110.0].map(|mean| Level::new(mean, error, 2.0).unwrap());
        let change = Change::between(&a, &b);
        assert!((change.ratio - 1.1).abs() < 1e-12);
        // Standard errors 1/sqrt(3) each; difference 10; t = 12.247 with 4 degrees of freedom: p =
        // 0.000255.
        assert!((change.p - 0.000_255).abs() < 2e-6, "{change:?}");
        assert!(
            change.low > 1.07
                && change.high < 1.13
                && change.detectable > 0.02
                && change.detectable < 0.04
        );
    }

    #[test]
    fn each_side_has_the_spread_of_both() {
        let (lucky, honest) =
            (level(&[100.0, 100.01, 99.99]), level(&[103.0, 107.0, 99.0, 104.0, 102.0]));
        let change = Change::between(&lucky, &honest);
        let alone = Change::between(&Level { runs: 0.0, ..lucky }, &honest);
        assert!(change.high - change.low > 1.2 * (alone.high - alone.low), "{change:?} {alone:?}");
    }

    #[test]
    fn interval_and_p_agree() {
        for shift in 0..60 {
            let by = f64::from(shift) * 0.1;
            let a = level(&[98.0, 100.0, 102.0, 101.0]);
            let b = level(&[98.0 + by, 99.0 + by, 103.0 + by, 100.0 + by]);
            let change = Change::between(&a, &b);
            assert_eq!(change.p < 0.05, change.low > 1.0 || change.high < 1.0, "{change:?}");
        }
    }

    #[test]
    fn exact_levels_have_exact_changes() {
        let (a, b) = (Level::exact(100.0).unwrap(), Level::exact(102.0).unwrap());
        let change = Change::between(&a, &b);
        assert_eq!((change.low, change.high, change.p, change.detectable), (1.02, 1.02, 0.0, 0.0));
        assert_eq!(Change::between(&a, &a).p, 1.0);
        assert_eq!(Level::exact(0.0), None);
    }

    #[test]
    fn pairs_and_their_mean() {
        let logs = [0.05, 0.06, 0.04, 0.05];
        let change = Change::of_pairs(&logs).unwrap();
        assert!(
            (change.ratio.ln() - 0.05).abs() < 1e-12 && change.low > 1.03 && change.p < 0.01,
            "{change:?}"
        );
        let mean = Change::geometric_mean(&[change, change, change, change]).unwrap();
        let half = |change: &Change| (change.high / change.low).ln() / 2.0;
        assert!(
            (half(&mean) - half(&change) / 2.0).abs() < 1e-12,
            "four independent ones: half as wide"
        );
        assert_eq!(Change::geometric_mean(&[]), None);
        assert_eq!(Change::geometric_mean(&[change]), Some(change), "of one it is that one");
        assert_eq!(Change::of_pairs(&[0.1]), None);
    }

    #[test]
    fn holms_example() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (got, want) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - want).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }
}
