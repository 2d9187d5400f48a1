//! Rate changes over runs are found at the right run, and stationary noise rarely shows one.

mod noise;

use measure::stats::phases;
use noise::{Noise, Random, WHITE};

const SERIES: u64 = 2000;

#[derive(Clone, Copy)]
enum Kind {
    Slices(Noise),
    /// One-sided Cauchy tails, like stalls: a value is the level over 1 + spread |c|.
    Stalls(f64),
}

const LOUD: &[(&str, Kind, usize)] = &[
    ("white 20 %", Kind::Slices(Noise { spread: 0.2, ..WHITE }), 2),
    ("lognormal 20 %", Kind::Slices(Noise { spread: 0.2, skewed: true, ..WHITE }), 2),
    ("white 30 %", Kind::Slices(Noise { spread: 0.3, ..WHITE }), 8),
    ("lognormal 40 %", Kind::Slices(Noise { spread: 0.4, skewed: true, ..WHITE }), 8),
    ("AR(1) 0.5, 20 %", Kind::Slices(Noise { phi: 0.5, spread: 0.2, ..WHITE }), 8),
    ("AR(1) 0.9, 7 %", Kind::Slices(Noise { phi: 0.9, spread: 0.07, ..WHITE }), 8),
    ("AR(1) 0.9, 20 %", Kind::Slices(Noise { phi: 0.9, spread: 0.2, ..WHITE }), 100),
    ("stalls with Cauchy's tails", Kind::Stalls(0.1), 8),
];

fn series(kind: Kind, seed: u64, count: usize) -> Vec<f64> {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ count as u64);
    match kind {
        Kind::Slices(noise) => noise
            .runs(&mut random, 1, count)
            .remove(0)
            .iter()
            .map(|v| 100.0 * v.max(0.01))
            .collect(),
        Kind::Stalls(spread) => (0..count)
            .map(|_| {
                100.0
                    / (1.0 + spread * (std::f64::consts::PI * (random.uniform() - 0.5)).tan().abs())
            })
            .collect(),
    }
}

#[test]
fn stationary_noise_shows_no_change() {
    let mut worst: Vec<String> = Vec::new();
    for (name, kind, from) in LOUD {
        for count in [2, 3, 4, 5, 7, 8, 10, 14, 20, 40, 100, 300, 1000] {
            if count < *from {
                continue;
            }
            let series_of = if count > 100 { SERIES / 4 } else { SERIES };
            let wrong = (0..series_of)
                .filter(|&seed| phases(&series(*kind, seed, count), 0.0).is_some())
                .count();
            let percent = 100.0 * wrong as f64 / series_of as f64;
            println!("{name}, {count} values: {percent:.2} %");
            if percent > 1.0 {
                worst.push(format!("{name}, {count} values: {percent} %"));
            }
        }
    }
    assert!(worst.is_empty(), "{worst:#?}");
}

#[test]
fn half_the_rate_is_found_from_eight_runs_on() {
    const TRIALS: u64 = 300;
    for (spread, phi, from) in [(0.05, 0.0, 8), (0.1, 0.0, 20), (0.05, 0.5, 20)] {
        let noise = Kind::Slices(Noise { spread, phi, ..WHITE });
        for count in [8, 10, 20, 50, 200, 1000].into_iter().filter(|count| *count >= from) {
            let found = |shape: &dyn Fn(usize) -> f64, right: &dyn Fn(f64, f64) -> bool| {
                let hits = (0..TRIALS).filter(|&seed| {
                    let mut values = series(noise, seed, count);
                    values.iter_mut().enumerate().for_each(|(t, v)| *v *= shape(t));
                    phases(&values, 0.0).is_some_and(|course| {
                        right(course.phases[0].rate, course.phases.last().unwrap().rate)
                    })
                });
                100.0 * hits.count() as f64 / TRIALS as f64
            };
            let near = |rate: f64, truth: f64| (rate / truth - 1.0).abs() < 0.2;
            let at = (count * 2 / 5).max(1);
            let step =
                found(&|t| if t < at { 1.0 } else { 0.5 }, &|a, b| near(a, 100.0) && near(b, 50.0));
            let straddled = found(
                &|t| {
                    if t < at {
                        1.0
                    } else if t == at {
                        0.7
                    } else {
                        0.5
                    }
                },
                &|a, b| near(a, 100.0) && near(b, 50.0),
            );
            let slide =
                found(&|t| 1.0 - 0.5 * t as f64 / (count - 1) as f64, &|a, b| a > 80.0 && b < 70.0);
            println!(
                "{spread} {phi}, {count} values: step {step:.1} %, straddled {straddled:.1} %, slide {slide:.1} %"
            );
            let power = if spread < 0.1 { 85.0 } else { 70.0 };
            assert!(step >= power, "a step in {count} values of {spread}: {step} %");
            assert!(
                straddled >= power,
                "a step within a run, {count} values of {spread}: {straddled} %"
            );
            assert!(slide >= power, "a slide over {count} values of {spread}: {slide} %");
        }
    }
}

#[test]
fn a_pause_between_two_rates_is_a_part_of_neither() {
    // Recorded from a throttle that fell to a tenth and held all requests meanwhile, in blocks of
    // 640 ms.
    let rates = [457.8, 534.4, 457.8, 381.2, 14.1, 45.3, 45.3, 54.7, 45.3];
    let found = phases(&rates, 0.0).expect("the rate fell to a tenth");
    let values: Vec<_> = found.phases.iter().map(|phase| phase.values.clone()).collect();
    assert_eq!(values, [0..4, 5..9]);
    assert!(!found.gradual);
}
