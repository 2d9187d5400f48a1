//! The course finds few changes of a rate in stationary noise and in recordings of real sweeps, and
//! often finds one that exists.

mod noise;

use machine::Usage;
use measure::histogram::Histogram;
use measure::stats::judge;
use measure::{Course, Sample, course};
use noise::{Noise, Random, WHITE};

const SLICE_NS: u64 = 10_000_000;

fn sample(mut slices: Vec<f64>, slice_ns: u64, began_ns: u64, bursty: bool) -> Sample {
    let judged = judge(&slices);
    let (elapsed_ns, rate) =
        (slices.len() as u64 * slice_ns, slices.iter().sum::<f64>() / slices.len() as f64);
    let requests = (rate * elapsed_ns as f64 / 1e9) as u64;
    let warm_up_rates: Vec<f64> = slices.drain(..judged.warm_up.min(slices.len() / 2)).collect();
    Sample {
        measured_ns: elapsed_ns,
        requests,
        bytes: requests * 4096,
        rate,
        latency: [Histogram::new(), Histogram::new()],
        slice_ns,
        empty_share: if bursty { 1.0 } else { 0.0 },
        slice_rates: slices,
        warm_up_ns: warm_up_rates.len() as u64 * slice_ns,
        warm_up_rates,
        verdict: judged.verdict,
        mean_depth: 1.0,
        mean_service_ns: 1e9 / rate.max(1e-9),
        usage: Usage { since_start_ns: began_ns, elapsed_ns, ..Usage::default() },
        requests_with_ramp: requests,
        bytes_with_ramp: requests * 4096,
        intervals: Vec::new(),
        together: None,
    }
}

/// Returns runs whose rates are `level` of the time, from 0 to 1 over all runs.
fn runs(
    noise: &Noise,
    seed: u64,
    count: usize,
    slices: usize,
    level: impl Fn(f64) -> f64,
) -> Vec<Sample> {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ (count * slices) as u64);
    let all = noise.runs(&mut random, count, slices).into_iter().enumerate();
    all.map(|(run, rates)| {
        let at = |slice: usize| (run * slices + slice) as f64 / (count * slices) as f64;
        let rates = rates
            .iter()
            .enumerate()
            .map(|(slice, rate)| 1e4 * rate.max(0.001) * level(at(slice)))
            .collect();
        sample(rates, SLICE_NS, run as u64 * slices as u64 * SLICE_NS, false)
    })
    .collect()
}

const STATIONARY: &[Noise] = &[
    Noise { name: "white 10 %", ..WHITE },
    Noise { name: "white 50 %", spread: 0.5, skewed: true, ..WHITE },
    Noise { name: "AR(1) 0.5, 20 %", phi: 0.5, spread: 0.2, ..WHITE },
    Noise { name: "AR(1) 0.9, 5 %", phi: 0.9, spread: 0.05, ..WHITE },
    Noise { name: "10 % between runs", between: 0.1, ..WHITE },
    Noise { name: "20 % between runs", between: 0.2, between_skewed: true, spread: 0.05, ..WHITE },
];

#[test]
fn runs_in_stationary_noise_show_no_change() {
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let each = STATIONARY.iter().map(|noise| scope.spawn(|| false_alarms(noise)));
        let each: Vec<_> = each.collect();
        each.into_iter().flat_map(|noise| noise.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn false_alarms(noise: &Noise) -> Vec<String> {
    let mut wrong = Vec::new();
    for (count, slices, points) in [
        (1, 20, 1000),
        (1, 100, 1000),
        (2, 20, 1000),
        (2, 50, 1000),
        (2, 300, 500),
        (3, 20, 1000),
        (3, 50, 1000),
        (3, 100, 500),
        (4, 30, 1000),
        (5, 100, 500),
        (8, 30, 1000),
        (10, 50, 500),
        (20, 30, 500),
        (40, 20, 500),
        (1000, 8, 100),
    ] {
        let alarms = (0..points)
            .filter(|&seed| course(&runs(noise, seed, count, slices, |_| 1.0)).is_some())
            .count();
        let percent = 100.0 * alarms as f64 / points as f64;
        println!("{}: {count} runs of {slices} slices: {percent} %", noise.name);
        if percent > 1.0 {
            wrong.push(format!("{}: {count} runs of {slices} slices: {percent} %", noise.name));
        }
    }
    wrong
}

/// Returns the percentage of points with a step between `from` and `to` of the time that `right`
/// accepts.
fn found(
    noise: &Noise,
    [count, slices]: [usize; 2],
    factor: f64,
    [from, to]: [f64; 2],
    right: impl Fn(&Course) -> bool,
) -> f64 {
    const POINTS: u64 = 200;
    let hits = (0..POINTS).filter(|&seed| {
        let at = from + (to - from) * (seed as f64 + 0.5) / POINTS as f64;
        let samples =
            runs(noise, seed, count, slices, |time| if time < at { 1.0 } else { 1.0 / factor });
        course(&samples).is_some_and(|course| right(&course))
    });
    100.0 * hits.count() as f64 / POINTS as f64
}

/// Two or three runs have to be 0.8 s long: see `LONG_RUN_NS`.
#[test]
fn a_step_to_a_tenth_is_found_at_any_number_of_runs_wherever_it_is() {
    let noise = Noise { between: 0.1, ..WHITE };
    let falls =
        |course: &Course| course.phases[0].iops > 2.0 * course.phases[course.phases.len() - 1].iops;
    let mut missed: Vec<String> = Vec::new();
    for (count, slices) in
        [2, 3, 4, 5, 6, 7, 8, 10, 13, 20, 40].into_iter().flat_map(|n| [(n, 100), (n.max(4), 40)])
    {
        let share = found(&noise, [count, slices], 10.0, [0.1, 0.9], falls);
        println!("{count} runs of {slices} slices: {share} %");
        if share < if slices < 100 { 85.0 } else { 90.0 } {
            missed.push(format!("{count} runs of {slices} slices: {share} %"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The blocks of one run are too few to show a change by themselves, and its mean mixes both rates.
#[test]
fn both_rates_and_the_time_are_right_in_whichever_run_a_throttle_changes() {
    const SECONDS: usize = 3;
    const ADMITTED: [f64; 2] = [500.0, 50.0];
    for count in [2_usize, 3] {
        // A shorter beginning of a run is its warm-up.
        for at_tenths in (10..SECONDS * 10 * count - 5).filter(|at| at % (SECONDS * 10) >= 10) {
            let admitted = |tenth: usize| ADMITTED[usize::from(tenth >= at_tenths)];
            let run = |run: usize| {
                let first = run * SECONDS * 10;
                let slices = (first..first + SECONDS * 10).flat_map(|tenth| {
                    (0..10).map(move |slice| if slice == 0 { 10.0 * admitted(tenth) } else { 0.0 })
                });
                sample(slices.collect(), SLICE_NS, first as u64 * 10 * SLICE_NS, true)
            };
            let samples: Vec<Sample> = (0..count).map(run).collect();
            let found = course(&samples);
            let case = format!("{count} runs, at {at_tenths} tenths: {found:?}");
            let found = found.expect(&case);
            assert_eq!(found.phases.len(), 2, "{case}");
            for (phase, admitted) in found.phases.iter().zip(ADMITTED) {
                assert!((phase.iops / admitted - 1.0).abs() < 0.15, "{case}");
            }
            let from_tenths = found.phases[1].from_ns as f64 / 1e8;
            assert!((from_tenths - at_tenths as f64).abs() <= 5.0, "{case}");
        }
    }
}

#[test]
fn half_the_rate_is_found_from_eight_runs_on() {
    let noise = Noise { between: 0.05, ..WHITE };
    let falls =
        |course: &Course| course.phases[0].iops > 1.4 * course.phases[course.phases.len() - 1].iops;
    let mut missed: Vec<String> = Vec::new();
    for count in [8, 10, 14, 20, 40] {
        let share = found(&noise, [count, 50], 2.0, [0.25, 0.75], falls);
        println!("{count} runs: {share} %");
        if share < 80.0 {
            missed.push(format!("{count} runs: {share} %"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// 40 points of three short runs per sweep, with the number that shows a change.
const RECORDED: &[(&str, usize)] = &[
    ("tmpfs-200", 0),
    ("ext4-direct-200", 0),
    ("ext4-buffered-300", 0),
    ("loop-direct-200", 0),
    ("tmpfs-loaded-200", 0),
    ("ext4-direct-loaded-500", 1),
    ("loop-direct-loaded-300", 0),
];

/// Returns the runs of each recorded point: place, point, and for each run the rate that 999
/// represents, the width of a slice in ms, whether it was bursty, and its slices.
fn recorded() -> Vec<(&'static str, Vec<Sample>)> {
    let point = |line: &'static str| {
        let mut fields = line.split(',');
        let place = fields.next().unwrap();
        let run = |(number, run): (usize, &str)| {
            let values: Vec<f64> = run.split(' ').map(|value| value.parse().unwrap()).collect();
            let rates = values[3..].iter().map(|slice| slice / 999.0 * values[0]).collect();
            sample(
                rates,
                values[1] as u64 * 1_000_000,
                number as u64 * 8_000_000_000,
                values[2] != 0.0,
            )
        };
        (place, fields.skip(1).enumerate().map(run).collect())
    };
    include_str!("data/sweeps.csv").lines().map(point).collect()
}

#[test]
fn short_runs_on_a_loaded_machine_are_no_flood_of_changes() {
    let points = recorded();
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for (place, samples) in &points {
        if counts.last().is_none_or(|last| last.0 != *place) {
            counts.push((place, 0));
        }
        let found = course(samples);
        if let Some(found) = &found {
            println!(
                "{place}: {:?} {found:?}",
                samples.iter().map(|run| run.rate as u64).collect::<Vec<_>>()
            );
        }
        counts.last_mut().unwrap().1 += usize::from(found.is_some());
    }
    let alarms: usize = counts.iter().map(|(_, count)| count).sum();
    assert!(100 * alarms <= 3 * points.len(), "{alarms} of {} points: {counts:?}", points.len());
    assert_eq!(counts, RECORDED);
}
