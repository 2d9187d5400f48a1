//! A test for use after every block of runs: its interval *ever* excludes the true mean with
//! probability at most 5 %.
//!
//! The Bayes factor of a normal effect size (Gönen, Johnson, Lu and Westfall, The American
//! Statistician 59, 2005) is a martingale without effect (Lai 1976; Wang and Ramdas, 2024); Ville's
//! inequality bounds it.

use super::change::Change;
use super::distribution::student_quantile;

/// Variance in squared standard deviations of a block, and weight; valid for any choice. The first
/// is narrow from about 10 to 100 blocks. The second costs 2 % of width and detects an effect of
/// many standard deviations after five blocks, even among dozens of questions; the first alone
/// never gets below p = 0.028.
const EFFECTS: [(f64, f64); 2] = [(1.0, 0.8), (100.0, 0.2)];
const ERROR: f64 = 0.05;

/// Fewer blocks' intervals are useless.
pub const MIN_BLOCKS: usize = 5;

/// Takes logarithms of B over A in independent blocks; interval and [`Change::p`] are valid at
/// every length at once. `None` without a finite interval.
pub fn change_at_any_time(logs: &[f64]) -> Option<Change> {
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    if logs.len() < 2 || !mean.is_finite() {
        return None;
    }
    let degrees = count - 1.0;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / degrees;
    let error = (variance / count).sqrt();
    let half = max_square(count)?.sqrt() * error;
    let square = if error == 0.0 {
        if mean == 0.0 { 0.0 } else { f64::INFINITY }
    } else {
        (mean / error).powi(2)
    };
    let ln_factor = if square.is_infinite() { f64::INFINITY } else { ln_factor(square, count) };
    Some(Change {
        ratio: mean.exp(),
        low: (mean - half).exp(),
        high: (mean + half).exp(),
        p: (-ln_factor).exp().min(1.0),
        detectable: (half + student_quantile(0.8, degrees) * error).exp() - 1.0,
    })
}

/// Takes a squared t statistic.
fn ln_factor(square: f64, count: f64) -> f64 {
    let degrees = count - 1.0;
    let logs = EFFECTS.map(|(effect, weight)| {
        let spread = 1.0 + count * effect;
        let ratio = (1.0 + square / degrees) / (1.0 + square / degrees / spread);
        f64::ln(weight) + count / 2.0 * ratio.ln() - spread.ln() / 2.0
    });
    let greatest = logs.into_iter().fold(f64::NEG_INFINITY, f64::max);
    greatest + logs.map(|log| (log - greatest).exp()).iter().sum::<f64>().ln()
}

/// Returns `None` if the Bayes factor never reaches 1 / [`ERROR`].
fn max_square(count: f64) -> Option<f64> {
    const STEPS: u32 = 60;
    /// Beyond it the factor no longer grows.
    const LIMIT: f64 = 1e12;
    let allowed = |square: f64| ln_factor(square, count) <= -ERROR.ln();
    if allowed(LIMIT) {
        return None;
    }
    let (mut low, mut high) = (0.0, LIMIT.ln_1p());
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        *(if allowed(f64::exp_m1(middle)) { &mut low } else { &mut high }) = middle;
    }
    Some(low.exp_m1())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_and_p_agree() {
        let noise = [0.01, -0.02, 0.015, 0.0, -0.01, 0.02, -0.005, 0.012, -0.018, 0.003];
        let mut both = [false; 2];
        for step in 0..80 {
            let shift = f64::from(step) * 0.0005;
            let logs: Vec<f64> = noise.iter().map(|value| value + shift).collect();
            let change = change_at_any_time(&logs).unwrap();
            let excluded = change.low > 1.0 || change.high < 1.0;
            assert_eq!(change.p < ERROR, excluded, "{change:?}");
            both[usize::from(excluded)] = true;
        }
        assert_eq!(both, [true, true]);
    }

    #[test]
    fn wider_than_a_fixed_length_interval_and_narrowing() {
        let logs: Vec<f64> = (0..60).map(|i| f64::from(i * i * 7 % 41) / 1000.0).collect();
        let width = |count: usize| {
            change_at_any_time(&logs[..count]).map_or(f64::INFINITY, |c| (c.high / c.low).ln())
        };
        let once = Change::of_pairs(&logs[..20]).unwrap();
        assert!(
            width(20) > (once.high / once.low).ln()
                && width(20) < 2.0 * (once.high / once.low).ln()
        );
        assert!(width(10) > width(20) && width(20) > width(60));
        for few in 0..3 {
            assert_eq!(change_at_any_time(&logs[..few]), None, "{few} blocks are too few");
        }
        assert!(change_at_any_time(&logs[..MIN_BLOCKS]).is_some());
    }

    #[test]
    fn five_blocks_detect_a_large_effect_among_many_questions() {
        let change = change_at_any_time(&[0.69, 0.70, 0.71, 0.68, 0.70]).unwrap();
        assert!(change.p * 100.0 < ERROR && change.low > 1.8 && change.high < 2.2, "{change:?}");
    }

    #[test]
    fn blocks_that_agree_exactly() {
        let same = change_at_any_time(&[0.0; 5]).unwrap();
        assert_eq!((same.ratio, same.low, same.high, same.p), (1.0, 1.0, 1.0, 1.0));
        let other = change_at_any_time(&[0.5; 5]).unwrap();
        assert_eq!((other.p, other.low), (0.0, other.high));
    }
}
