use super::*;
use machine::TargetKind;
use measure::histogram::Histogram;
use measure::stats::Verdict;

fn facts() -> TargetFacts {
    TargetFacts { writable: false, ..TargetFacts::new("t", TargetKind::File, 1 << 30) }
}

fn run(rate: f64, latency_ns: u64, warm_up_ns: u64) -> Sample {
    let mut reads = Histogram::new();
    reads.record(latency_ns);
    let wave = |slice: u32| rate * (1.0 + 0.01 * f64::from(slice % 3) - 0.01);
    Sample {
        measured_ns: 1_000_000_000,
        requests: rate as u64,
        bytes: rate as u64 * 65536,
        rate,
        latency: [reads, Histogram::new()],
        slice_ns: 10_000_000,
        empty_share: 0.0,
        slice_rates: (0..99).map(wave).collect(),
        warm_up_rates: Vec::new(),
        warm_up_ns,
        verdict: Verdict::Steady,
        mean_depth: 1.0,
        mean_service_ns: 1e9 / rate,
        usage: machine::Usage::default(),
        requests_with_ramp: rate as u64,
        bytes_with_ramp: rate as u64 * 65536,
        intervals: Vec::new(),
        together: None,
    }
}

fn numbers(samples: &[Sample]) -> Numbers {
    Point::from_samples(&Workload::default(), &facts(), samples).numbers.expect("it was measured")
}

#[test]
fn the_longest_visit_stands_for_a_workload() {
    let visit = |rate: f64, request_bytes: u32, runs: usize| {
        let workload = Workload { request_bytes, ..Workload::default() };
        Point::from_samples(&workload, &facts(), &vec![run(rate, 1000, 0); runs])
    };
    // The short visits are faster, and another size is another workload.
    let points = [
        visit(300.0, 65536, 2),
        visit(200.0, 65536, 3),
        visit(400.0, 65536, 1),
        visit(9.0, 4096, 1),
    ];
    assert_eq!(crate::representatives(&points), [1, 3]);
    let failed = Point::failed(Workload::default(), "no");
    assert!(crate::representatives(&[failed]).is_empty());
    let equal = [visit(1.0, 4096, 1), visit(2.0, 4096, 1)];
    assert_eq!(crate::representatives(&equal), [0], "the first of equals");
}

#[test]
fn equally_long_runs_have_equal_weight() {
    // The slow run has empty slices, so its slices are fewer and wider.
    let slow = run(100.0, 1000, 0);
    let slices: Vec<f64> =
        slow.slice_rates.chunks_exact(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
    let slow = Sample { slice_ns: slow.slice_ns * 2, slice_rates: slices, ..slow };
    let iops = numbers(&[run(300.0, 1000, 0), slow]).iops;
    assert!((iops - 200.0).abs() < 1e-6, "{iops}");
}

#[test]
fn the_interval_contains_the_rate() {
    let series: [&[f64]; 6] = [
        &[640.0, 160.0, 160.0, 160.0, 160.0],
        &[640.0, 640.0, 640.0, 160.0],
        &[100.0, 101.0, 400.0, 99.0, 100.0, 102.0, 98.0],
        &[1.0, 1000.0],
        &[100.0; 12],
        &[5.0],
    ];
    for rates in series {
        let samples: Vec<Sample> = rates.iter().map(|rate| run(*rate, 1000, 0)).collect();
        let found = numbers(&samples);
        let [low, high] = found.interval_95.expect("99 slices give one");
        assert!((low..=high).contains(&found.throughput_bytes_per_s), "{rates:?}: {found:?}");
        let half = (high - found.throughput_bytes_per_s) / found.throughput_bytes_per_s;
        assert!(
            (half - found.relative_half_width.unwrap()).abs() < 1e-9,
            "the width is that of the same interval"
        );
    }
}

#[test]
fn a_limit_drop_between_runs_is_reported() {
    let found = numbers(&[run(640.0, 1000, 0), run(64.0, 1000, 0)]);
    let said = "the rate changed: 40 MiB/s, then 4 MiB/s from 0 ns on (after 40.0 MiB)";
    assert!(found.warnings.iter().any(|warning| warning.starts_with(said)), "{:?}", found.warnings);
    assert!(found.rate_change.is_some_and(|change| change.phases.len() == 2 && !change.within_run));
    assert_eq!(numbers(&[run(640.0, 1000, 0), run(630.0, 1000, 0)]).warnings, Vec::<String>::new());
}

#[test]
fn measurements_differ_if_their_intervals_do() {
    let at = |rate: f64| {
        numbers(&[run(rate, 1000, 0), run(rate * 1.01, 1000, 0), run(rate * 0.99, 1000, 0)])
    };
    assert!(at(640.0).differs(&at(160.0)) && at(160.0).differs(&at(640.0)));
    assert!(!at(640.0).differs(&at(600.0)), "too near");
    let wide = numbers(&[run(100.0, 1000, 0), run(500.0, 1000, 0)]);
    assert!(!wide.differs(&at(1000.0)), "its interval holds the other");
}

#[test]
fn rate_and_latencies_are_of_the_same_runs() {
    let warming = run(50.0, 1_000_000, 300_000_000);
    let found = numbers(&[warming.clone(), run(100.0, 1000, 0), run(100.0, 1000, 0)]);
    assert_eq!((found.repeats, found.runs_bytes_per_s.len(), found.latency_ns.count), (2, 2, 2));
    assert!(found.latency_ns.max < 1_000_000 && (found.iops - 100.0).abs() < 1e-6, "{found:?}");
    assert_eq!(
        numbers(&[warming, run(100.0, 1000, 0)]).repeats,
        2,
        "a single run gives no interval between runs"
    );
}

#[test]
fn a_wait_that_began_before_a_short_run_is_at_most_all_of_its_time() {
    let mut short = run(100.0, 1000, 0);
    short.usage.elapsed_ns = 20_000;
    short.usage.unserved_ns = Some(2_000_000);
    short.usage.disturbance.others_processors = 1.0;
    let found = numbers(&[short.clone(), short]).achieved.disturbances;
    assert_eq!(found.contention_percent, Some(100.0));
}
