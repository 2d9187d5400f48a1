//! Warm-up, drift, exhausted bursts and stalls are distinguished from noise on labelled series.

mod noise;

use measure::stats::{Verdict, judge};
use noise::{Noise, Random, WHITE};

const TRIALS: u64 = 600;

const NOISES: &[Noise] = &[
    Noise { name: "white 3 %", spread: 0.03, ..WHITE },
    Noise { name: "AR(1) 0.5, 5 %", phi: 0.5, spread: 0.05, ..WHITE },
    Noise { name: "AR(1) 0.9, 5 %", phi: 0.9, spread: 0.05, ..WHITE },
    Noise { name: "lognormal 10 %, 0.5", phi: 0.5, spread: 0.1, skewed: true, ..WHITE },
    Noise { name: "lognormal 40 %", spread: 0.4, skewed: true, ..WHITE },
];

/// Returns the percentage of trials that satisfy `right`.
fn share(
    noise: &Noise,
    slices: usize,
    shape: impl Fn(usize) -> f64,
    right: impl Fn(usize, Verdict) -> bool,
) -> f64 {
    let mut random = Random(42 + slices as u64);
    let mut hits = 0;
    for _ in 0..TRIALS {
        let mut series = noise.runs(&mut random, 1, slices).remove(0);
        series.iter_mut().enumerate().for_each(|(t, v)| *v *= 100.0 * shape(t));
        let s = judge(&series);
        hits += u64::from(right(s.warm_up, s.verdict));
    }
    100.0 * hits as f64 / TRIALS as f64
}

#[test]
fn stationary_noise_raises_few_alarms() {
    for noise in NOISES {
        for n in [20, 50, 100, 200, 500, 1500] {
            let steady = share(noise, n, |_| 1.0, |_, v| v == Verdict::Steady);
            let whole = share(noise, n, |_| 1.0, |w, _| w == 0);
            println!(
                "{} {n} slices: {steady:.1} % steady, {whole:.1} % without warm-up",
                noise.name
            );
            assert!(
                steady >= 97.0 && whole >= 98.0,
                "{} {n} slices: {steady} % steady, {whole} % without warm-up",
                noise.name
            );
        }
    }
}

#[test]
fn labelled_series_are_recognised() {
    const N: usize = 500;
    let reported =
        |what: &str, shape: &dyn Fn(usize) -> f64, right: &dyn Fn(usize, Verdict) -> bool| {
            for noise in &NOISES[..4] {
                let percent = share(noise, N, shape, right);
                println!("{what} in {}: {percent:.1} %", noise.name);
                assert!(percent >= 95.0, "{what} in {}: {percent} %", noise.name);
            }
        };
    let ramp =
        |end: usize| move |t: usize| if t < end { 0.3 + 0.7 * t as f64 / end as f64 } else { 1.0 };
    reported("a ramp over 100 slices", &ramp(100), &|w, v| {
        (50..=150).contains(&w) && v == Verdict::Steady
    });
    reported("a slow start of 60 slices", &|t| if t < 60 { 0.6 } else { 1.0 }, &|w, v| {
        (55..=70).contains(&w) && v == Verdict::Steady
    });
    reported("a ramp over 400 slices", &ramp(400), &|w, v| {
        w == 0 && matches!(v, Verdict::WarmingUp { percent } if percent > 30.0)
    });
    reported("a drift of -30 %", &|t| 1.15 - 0.3 * t as f64 / N as f64, &|w, v| {
        w == 0 && matches!(v, Verdict::Drifting { percent } if (-42.0..-18.0).contains(&percent))
    });
    reported(
        "a burst credit gone at 200",
        &|t| if t < 200 { 1.5 } else { 0.75 },
        &|w, v| matches!(v, Verdict::BurstExhausted { at, before, after } if at.abs_diff(200) <= 10 && w == at && before > 1.5 * after),
    );
    reported("a burst credit gone at 400", &|t| if t < 400 { 1.5 } else { 0.75 }, &|w, v| {
        w == 0 && matches!(v, Verdict::BurstExhausted { at, .. } if at.abs_diff(400) <= 10)
    });
    reported(
        "a ramp of 20 slices, then a burst gone",
        &|t| ramp(20)(t) * if t < 300 { 2.0 } else { 1.0 },
        &|_, v| matches!(v, Verdict::BurstExhausted { at, .. } if at.abs_diff(300) <= 10),
    );
    reported(
        "stalls of 5 slices every 25",
        &|t| if (18..23).contains(&(t % 25)) { 0.01 } else { 1.0 },
        &|w, v| {
            w == 0
                && matches!(v, Verdict::Stalls { count: 20, longest: 5, period: Some(p), .. } if (p - 25.0).abs() < 0.1)
        },
    );
    reported(
        "throttled 3 slices of 5",
        &|t| if t % 5 < 2 { 2.5 } else { 0.0 },
        &|_, v| matches!(v, Verdict::Stalls { percent, period: Some(p), .. } if (percent - 60.0).abs() < 1.0 && (p - 5.0).abs() < 0.1),
    );
}

#[test]
fn short_series_show_plain_changes() {
    let burst = share(
        &NOISES[0],
        50,
        |t| if t < 20 { 1.5 } else { 0.75 },
        |_, v| matches!(v, Verdict::BurstExhausted { at: 20, .. }),
    );
    let ramp = share(
        &NOISES[0],
        50,
        |t| if t < 10 { 0.3 + 0.07 * t as f64 } else { 1.0 },
        |w, v| (4..=14).contains(&w) && v == Verdict::Steady,
    );
    assert!(burst >= 99.0 && ramp >= 98.0, "{burst} % of bursts, {ramp} % of ramps");
}

#[test]
fn short_series_have_no_verdict() {
    assert_eq!(judge(&[1.0; 19]).verdict, Verdict::TooShort { slices: 19, needed: 20 });
    assert_eq!(judge(&[1.0; 20]).verdict, Verdict::Steady);
    assert_eq!(judge(&[0.0; 40]).verdict, Verdict::Steady);
    let mut step = vec![300.0; 30];
    step.extend([100.0; 30]);
    assert_eq!(
        judge(&step).verdict,
        Verdict::BurstExhausted { at: 30, before: 300.0, after: 100.0 }
    );
}

#[test]
fn a_periodic_series_is_steady() {
    for rate in [1.02f64, 1.31, 1.5, 1.98, 4.25, 33.4] {
        for n in [60usize, 134, 989, 1953] {
            let counts: Vec<f64> = (0..n)
                .map(|t| ((t + 1) as f64 * rate).floor() - (t as f64 * rate).floor())
                .collect();
            let s = judge(&counts);
            assert_eq!(
                (s.warm_up, s.verdict),
                (0, Verdict::Steady),
                "{rate} requests a slice, {n} slices"
            );
        }
    }
    // Tracks of 15 slices with the last four faster, as if a cache helps across a head switch.
    for n in [200usize, 994, 1000, 1003] {
        let tracks: Vec<f64> =
            (0..n).map(|t| if t % 15 < 11 { 32.0 } else { 40.0 + (t % 2) as f64 }).collect();
        let s = judge(&tracks);
        assert_eq!((s.warm_up, s.verdict), (0, Verdict::Steady), "{n} slices");
    }
    // The same periodic series with a real change.
    let falls: Vec<f64> = (0..1000)
        .map(|t| f64::from(if t < 900 { if t % 3 == 0 { 4 } else { 5 } } else { 1 + (t % 2) }))
        .collect();
    assert!(
        matches!(judge(&falls).verdict, Verdict::BurstExhausted { at: 900, .. }),
        "{:?}",
        judge(&falls)
    );
    let late: Vec<f64> =
        (0..1000).map(|t| f64::from(if t < 980 { 4 + i32::from(t % 3 == 0) } else { 1 })).collect();
    assert!(
        matches!(judge(&late).verdict, Verdict::BurstExhausted { at: 980, .. }),
        "{:?}",
        judge(&late)
    );
}
