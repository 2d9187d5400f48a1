//! Steady state is declared for steady series only, also if the specification's rule is deceived.

use sustained::{WINDOW, steady_state};
use workload::rng::{hash, unit};

const VALUES: usize = 60;

/// Returns approximately normal noise: the sum of twelve uniform numbers.
fn noise(seed: u64, at: usize) -> f64 {
    (0..12).map(|k| unit(hash(seed, at as u64 * 12 + k))).sum::<f64>() - 6.0
}

fn judged(values: &[f64]) -> sustained::SteadyCheck {
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let rounds: Vec<f64> = values.chunks(values.len() / WINDOW).map(mean).collect();
    steady_state(&rounds, values).expect("five rounds")
}

fn series(seed: u64, sigma: f64, shape: impl Fn(f64) -> f64) -> Vec<f64> {
    let value = |at: usize| {
        let share = at as f64 / (VALUES - 1) as f64;
        1000.0 * shape(share) * (1.0 + sigma * noise(seed, at))
    };
    (0..VALUES).map(value).collect()
}

#[test]
fn steady_series_are_declared_steady() {
    let mut missed = Vec::new();
    for seed in 0..100 {
        let sigma = [0.002, 0.01, 0.02, 0.04, 0.08][seed as usize % 5];
        let check = judged(&series(seed, sigma, |_| 1.0));
        if !check.is_steady() {
            missed.push((seed, sigma, check));
        }
    }
    assert!(missed.len() <= 1, "{missed:?}");
}

#[test]
fn drifts_teeth_and_two_levels_are_never_steady() {
    let mut deceived = 0;
    let mut all = 0;
    let mut wrong = Vec::new();
    let mut judge = |what: &str, seed: u64, values: &[f64]| {
        let check = judged(values);
        all += 1;
        deceived += usize::from(check.to_specification);
        if check.is_steady() {
            wrong.push(format!("{what} with seed {seed}: {check:?}"));
        }
    };
    for seed in 0..60u64 {
        let sigma = [0.002, 0.01, 0.015][seed as usize % 3];
        let size = 0.06 + 0.01 * (seed / 3) as f64;
        judge("a rise", seed, &series(seed, sigma, |at| 1.0 + size * at));
        judge("a fall", seed, &series(seed, sigma, |at| 1.0 / (1.0 + size * at)));
        let teeth = 1.5 + (seed % 7) as f64 * 0.9;
        let amplitude = 0.12 + 0.005 * seed as f64;
        judge(
            &format!("teeth of {amplitude} {teeth} times"),
            seed,
            &series(seed, sigma, |at| 1.0 + amplitude * (at * teeth).fract()),
        );
        let step = 0.08 + 0.01 * seed as f64;
        let place = 0.25 + 0.5 * unit(hash(7, seed));
        judge(
            "one step",
            seed,
            &series(seed, sigma, |at| if at < place { 1.0 } else { 1.0 + step }),
        );
        let stays = 2.0 + (seed % 5) as f64;
        judge(
            "two levels in turn",
            seed,
            &series(seed, sigma, |at| {
                if (at * stays).fract() < 0.5 { 1.0 } else { 1.0 + step.max(0.1) }
            }),
        );
    }
    assert!(all >= 300 && wrong.is_empty(), "{} of {all}:\n{}", wrong.len(), wrong.join("\n"));
    // The check is worth having: five means hide these patterns.
    assert!(deceived > 50, "the specification's own rule accepts {deceived} of {all}");
}

#[test]
fn the_rule_is_the_specifications_own() {
    // Range 20 % and slope 0: allowed; any more is not.
    let check = steady_state(&[100.0, 110.0, 90.0, 110.0, 90.0], &[]).unwrap();
    assert!(check.to_specification && (check.range_percent - 20.0).abs() < 1e-9, "{check:?}");
    assert!(!steady_state(&[100.0, 110.1, 90.0, 110.0, 89.9], &[]).unwrap().to_specification);
    // A slope of 10 % of the mean over the window: 95, 97.5, 100, 102.5, 105.
    let check = steady_state(&[95.0, 97.5, 100.0, 102.5, 105.0], &[]).unwrap();
    assert!((check.slope_percent - 10.0).abs() < 1e-9 && check.line == [95.0, 105.0], "{check:?}");
    assert!(check.to_specification);
    assert!(!steady_state(&[94.0, 97.0, 100.0, 103.0, 106.0], &[]).unwrap().to_specification);
    // Only the last five rounds count; fewer have no verdict.
    assert!(steady_state(&[1.0, 100.0, 100.0, 100.0, 100.0, 100.0], &[]).unwrap().is_steady());
    assert_eq!(steady_state(&[100.0; 4], &[]), None);
    assert_eq!(steady_state(&[100.0, 100.0, 0.0, 100.0, 100.0], &[]), None);
}
