//! Accuracy of comparisons, on seeded series of realistic noise.

mod noise;

use measure::stats::{Change, Level, MIN_BLOCKS, change_at_any_time, change_points, estimate_runs};
use noise::{Noise, Random, WHITE};

const SERIES: u64 = 200;

struct Disk {
    random: Random,
    level: f64,
}

impl Disk {
    fn new(seed: u64) -> Disk {
        Disk { random: Random(seed), level: 0.0 }
    }

    fn run(&mut self, rate: f64) -> f64 {
        self.level = 0.95 * self.level + 0.01 * self.random.normal();
        let stall = if self.random.uniform() < 0.05 { 0.9 } else { 1.0 };
        rate * (self.level + 0.05 * self.random.normal()).exp() * stall
    }

    fn block(&mut self, ratio: f64) -> f64 {
        let first_is_b = self.random.uniform() < 0.5;
        let order =
            if first_is_b { [true, false, false, true] } else { [false, true, true, false] };
        let mut logs = [0.0; 2];
        for is_b in order {
            logs[usize::from(is_b)] += self.run(if is_b { ratio } else { 1.0 }).ln() / 2.0;
        }
        logs[1] - logs[0]
    }
}

fn decided(seed: u64, ratio: f64, until: f64, max_blocks: usize) -> Option<Change> {
    let mut disk = Disk::new(seed);
    let mut logs = Vec::new();
    while logs.len() < max_blocks {
        logs.push(disk.block(ratio));
        let Some(change) = (logs.len() >= MIN_BLOCKS).then(|| change_at_any_time(&logs)).flatten()
        else {
            continue;
        };
        if change.p < 0.05 {
            return Some(change);
        }
        if (change.high - change.low) / 2.0 <= until {
            return None;
        }
    }
    None
}

/// The blocks in the default time of a minute, each of four runs of 0.4 s.
const DEFAULT_BLOCKS: usize = 37;

#[test]
fn identical_arms_show_no_difference() {
    let wrong =
        (0..SERIES).filter(|seed| decided(*seed, 1.0, 0.02, DEFAULT_BLOCKS).is_some()).count();
    assert!(wrong <= 12, "a difference was seen in {wrong} of {SERIES} series without any");
}

#[test]
fn long_measurements_have_no_more_false_alarms() {
    let wrong = (0..SERIES).filter(|seed| decided(1000 + seed, 1.0, 0.0, 1800).is_some()).count();
    assert!(wrong <= 12, "a difference was seen in {wrong} of {SERIES} series without any");
}

#[test]
fn five_percent_is_found_at_default_length() {
    for ratio in [1.05, 1.0 / 1.05] {
        let right = |change: Change| {
            (change.ratio > 1.0) == (ratio > 1.0) && change.low <= ratio && ratio <= change.high
        };
        let found = (0..SERIES)
            .filter(|seed| decided(2000 + seed, ratio, 0.02, DEFAULT_BLOCKS).is_some_and(right))
            .count();
        assert!(found >= 180, "{ratio}: found in {found} of {SERIES}");
    }
}

#[test]
fn two_percent_is_found_with_until_one_percent() {
    let found = (0..SERIES).filter(|seed| decided(3000 + seed, 1.02, 0.01, 1000).is_some()).count();
    assert!(found >= 180, "found in {found} of {SERIES}");
}

fn apart(random: &mut Random, noise: &Noise, ratio: f64) -> Level {
    let runs = noise.runs(random, 10, 64);
    let scaled: Vec<Vec<f64>> =
        runs.iter().map(|run| run.iter().map(|slice| slice * ratio).collect()).collect();
    for count in 3..=10 {
        let estimate = estimate_runs(&scaled[..count]).unwrap();
        if estimate.relative_half_width <= 0.03 || count == 10 {
            return Level::of(&estimate).unwrap();
        }
    }
    unreachable!("ten runs are the most")
}

#[test]
fn separate_measurements() {
    let noise = Noise {
        name: "AR(1) 0.6, 15 %, runs 2 %",
        phi: 0.6,
        spread: 0.15,
        skewed: true,
        between: 0.02,
        ..WHITE
    };
    let mut random = Random(7);
    let mut judge = |ratio: f64| {
        let both = |random: &mut Random| [apart(random, &noise, 1.0), apart(random, &noise, ratio)];
        let changes: Vec<Change> =
            (0..SERIES).map(|_| both(&mut random)).map(|[a, b]| Change::between(&a, &b)).collect();
        changes.iter().filter(|change| change.p < 0.05).count()
    };
    let wrong = judge(1.0);
    assert!(
        wrong <= 12,
        "{}: a difference was seen in {wrong} of {SERIES} pairs without any",
        noise.name
    );
    let found = judge(1.10);
    assert!(found >= 180, "10 % were found in {found} of {SERIES}");
}

fn nightly(seed: u64, step: Option<(usize, f64)>) -> Vec<f64> {
    let mut random = Random(seed);
    let value = |night: usize, random: &mut Random| {
        let level = step.filter(|(at, _)| night >= *at).map_or(1.0, |(_, level)| level);
        level * (0.03 * random.normal()).exp()
    };
    (0..80).map(|night| value(night, &mut random)).collect()
}

#[test]
fn changes_of_labelled_series() {
    let wrong =
        (0..SERIES).filter(|seed| !change_points(&nightly(*seed, None), 0.02).is_empty()).count();
    assert!(wrong <= 16, "a change was seen in {wrong} of {SERIES} series without any");
    let mut right = 0;
    for seed in 0..SERIES {
        let at = 10 + (seed as usize * 7) % 60;
        let found = change_points(&nightly(5000 + seed, Some((at, 0.92))), 0.02);
        let near = |one: usize| one.abs_diff(at) <= 3;
        right += usize::from(found.len() == 1 && near(found[0].at) && found[0].change.ratio < 1.0);
    }
    assert!(
        right >= 180,
        "a step of 8 % was found at its place, and nothing else, in {right} of {SERIES}"
    );
}

#[test]
fn two_steps_and_back_are_two_changes() {
    let mut values = nightly(1, None);
    values[30..55].iter_mut().for_each(|value| *value *= 0.8);
    let found = change_points(&values, 0.02);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].at.abs_diff(30) <= 1 && found[1].at.abs_diff(55) <= 1, "{found:?}");
}
