//! E-divisive (Matteson and James, JASA 109, 2014) splits at the maximum energy distance. Welch's
//! t-test decides, as in Hunter (Fleming et al., ICPE 2023), not a permutation test: it is
//! deterministic and fast.

use super::change::{Change, Level};

const MIN_SIDE: usize = 4;
/// A split is the best of many: 1 of 50 series of 80 values without a change shows one.
const MAX_P: f64 = 0.0005;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The first value after the change.
    pub at: usize,
    /// Up to the neighbouring changes.
    pub change: Change,
}

/// Finds changes of at least `min_share` (0.02: 2 %) in positive values, in order.
pub fn change_points(values: &[f64], min_share: f64) -> Vec<ChangePoint> {
    if !values.iter().all(|value| value.is_finite() && *value > 0.0) {
        return Vec::new();
    }
    let mut splits = vec![0, values.len()];
    search(values, 0, min_share, &mut splits);
    splits.sort_unstable();
    // A split found in a longer stretch is judged again between its neighbours.
    loop {
        let judged: Vec<Option<Change>> = splits
            .windows(3)
            .map(|at| judge(&values[at[0]..at[1]], &values[at[1]..at[2]], min_share))
            .collect();
        match judged.iter().position(Option::is_none) {
            Some(weak) => drop(splits.remove(weak + 1)),
            None => {
                let found = splits[1..].iter().zip(judged);
                return found
                    .filter_map(|(&at, change)| Some(ChangePoint { at, change: change? }))
                    .collect();
            }
        }
    }
}

fn search(values: &[f64], first: usize, min_share: f64, splits: &mut Vec<usize>) {
    let Some(at) = best_split(values) else { return };
    let (before, after) = values.split_at(at);
    if judge(before, after, min_share).is_some() {
        splits.push(first + at);
        search(before, first, min_share, splits);
        search(after, first + at, min_share, splits);
    }
}

/// Scales the energy distance by both sides' sizes.
fn best_split(values: &[f64]) -> Option<usize> {
    let count = values.len();
    if count < 2 * MIN_SIDE {
        return None;
    }
    // Sums of distances within the left side, within the right side, and between them. Values move
    // one by one from right to left.
    let to =
        |value: f64, others: &[f64]| others.iter().map(|other| (value - other).abs()).sum::<f64>();
    let (mut left, mut between) = (0.0, 0.0);
    let mut right: f64 = (0..count).map(|place| to(values[place], &values[place + 1..])).sum();
    let mut best = (0.0, None);
    for at in 1..count {
        let moved = values[at - 1];
        let (before, after) = (to(moved, &values[..at - 1]), to(moved, &values[at..]));
        left += before;
        right -= after;
        between += after - before;
        if at < MIN_SIDE || count - at < MIN_SIDE {
            continue;
        }
        let (m, n) = (at as f64, (count - at) as f64);
        let distance =
            2.0 * between / (m * n) - 2.0 * left / (m * (m - 1.0)) - 2.0 * right / (n * (n - 1.0));
        let scaled = distance * m * n / (m + n);
        if scaled > best.0 {
            best = (scaled, Some(at));
        }
    }
    best.1
}

fn judge(before: &[f64], after: &[f64], min_share: f64) -> Option<Change> {
    let level = |values: &[f64]| {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance =
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Level::new(mean, (variance / count).sqrt(), count - 1.0)
    };
    if before.len() < 2 || after.len() < 2 {
        return None;
    }
    let change = Change::between(&level(before)?, &level(after)?);
    (change.p < MAX_P && (change.ratio - 1.0).abs() >= min_share).then_some(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_located() {
        let values: Vec<f64> =
            (0..40).map(|i| if i < 17 { 100.0 } else { 80.0 } + f64::from(i * 13 % 7)).collect();
        let found = change_points(&values, 0.02);
        assert_eq!(found.iter().map(|one| one.at).collect::<Vec<_>>(), [17]);
        assert!((found[0].change.ratio - 0.8).abs() < 0.03, "{found:?}");
    }

    #[test]
    fn small_steps_and_short_series_are_ignored() {
        let values: Vec<f64> =
            (0..40).map(|i| if i < 17 { 100.0 } else { 101.0 } + f64::from(i % 2) * 0.1).collect();
        assert_eq!(change_points(&values, 0.02), []);
        assert_eq!(change_points(&values, 0.005).len(), 1);
        assert_eq!(change_points(&[1.0, 2.0, 3.0], 0.0), []);
        assert_eq!(change_points(&[1.0, f64::NAN, 3.0, 1.0, 1.0, 1.0, 1.0], 0.0), []);
        assert_eq!(change_points(&[], 0.0), []);
    }
}
