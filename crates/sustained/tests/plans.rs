//! The plans of SNIA's tests, against hand-made numbers.

use sustained::pts::{
    PhaseKind, PtsOptions, PtsPlan, PtsStep, PtsTest, Until, estimate, plan, steady_round,
};

const TB: u64 = 1_000_000_000_000;
const MINUTE_S: f64 = 60.0;

fn of(test: PtsTest) -> PtsPlan {
    plan(test, TB, 512, &PtsOptions::default())
}

/// Returns the minimum and maximum time of each phase, at 1 GB/s.
fn seconds(test: PtsTest) -> Vec<[f64; 2]> {
    estimate(&of(test), 1e9).phases.iter().map(|phase| phase.seconds).collect()
}

fn near(found: &[[f64; 2]], truth: &[[f64; 2]]) {
    assert_eq!(found.len(), truth.len(), "{found:?}");
    for (found, truth) in found.iter().zip(truth) {
        for (found, truth) in found.iter().zip(truth) {
            let off = found - truth;
            assert!(off.abs() <= truth * 1e-4, "{found} and not {truth}");
        }
    }
}

#[test]
fn hours_are_those_of_the_specification() {
    let fill = [2000.0; 2];
    let rounds = |minutes: f64| [5.0, 25.0].map(|count| count * minutes * MINUTE_S);
    // Five rounds of half an hour are judged in the first minute of the fifth.
    let half_hours = [121.0 * MINUTE_S, 750.0 * MINUTE_S];
    near(&seconds(PtsTest::Iops), &[[0.0; 2], fill, rounds(56.0)]);
    near(
        &seconds(PtsTest::Throughput),
        &[[0.0; 2], fill, rounds(2.0), [0.0; 2], fill, rounds(2.0)],
    );
    near(&seconds(PtsTest::Latency), &[[0.0; 2], fill, rounds(9.0), [20.0 * MINUTE_S; 2]]);
    let idle = [5.0, 10.0, 15.0, 25.0, 50.0].map(|wait| [360.0 * (5.0 + wait); 2]);
    let back = [30.0 * MINUTE_S; 2];
    let hir: Vec<[f64; 2]> = [[0.0; 2], half_hours]
        .into_iter()
        .chain(idle.into_iter().flat_map(|wait| [wait, back]))
        .collect();
    near(&seconds(PtsTest::Hir), &hir);
    near(&seconds(PtsTest::Xsr), &[[0.0; 2], [28_800.0; 2], [21_600.0; 2], [28_800.0; 2]]);
    near(
        &seconds(PtsTest::Dirth),
        &[[0.0; 2], fill, half_hours, rounds(54.0), [3.0 * 70.0 * MINUTE_S; 2]],
    );
}

#[test]
fn threads_and_depth_are_the_recommended_ones() {
    assert_eq!(PtsOptions::recommended(100), (4, 32));
    assert_eq!(PtsOptions::recommended(75), (2, 16));
    let loads = |test, phase: usize| match &of(test).phases[phase].kind {
        PhaseKind::Rounds { cells, .. } => {
            cells.iter().map(|cell| (cell.threads, cell.depth)).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    assert!(loads(PtsTest::Iops, 2).iter().all(|load| *load == (4, 32)));
    assert!(loads(PtsTest::Latency, 2).iter().all(|load| *load == (1, 1)));
    assert_eq!(loads(PtsTest::Xsr, 1), [(1, 32)]);
    let dirth = loads(PtsTest::Dirth, 3);
    assert_eq!((dirth.len(), dirth[1], dirth[49]), (50, (32, 32), (1, 1)));
}

fn step(cell: usize, round: u32, rate: f64) -> PtsStep {
    PtsStep {
        phase: 2,
        round,
        cell,
        from_s: 0.0,
        seconds: 60.0,
        requests: (rate * 60.0) as u64,
        bytes: 0,
        written_bytes: 0,
        mean_latency_ns: 1e6,
        p99_ns: 0,
        p99999_ns: 0,
        max_latency_ns: 0,
        parts: Vec::new(),
        percentiles: Vec::new(),
        temperature_c: None,
    }
}

#[test]
fn all_tracked_cells_must_be_steady() {
    let plan = of(PtsTest::Iops);
    let PhaseKind::Rounds { cells, tracking, also_tracking, .. } = &plan.phases[2].kind else {
        panic!("rounds")
    };
    let what = |cell: &usize| (cells[*cell].read_percent, cells[*cell].block_bytes);
    assert_eq!(what(tracking), (0, 4096));
    assert_eq!(
        also_tracking.iter().map(what).collect::<Vec<_>>(),
        [(65, 64 << 10), (100, 1 << 20)]
    );
    // One of the three still falls.
    for falls in [*tracking, also_tracking[0], also_tracking[1]] {
        let rate = |cell: usize, round: u32| {
            if cell == falls { 1000.0 / f64::from(round + 1) } else { 1000.0 }
        };
        let steps: Vec<PtsStep> = (0..5)
            .flat_map(|round| {
                (0..cells.len()).map(move |cell| step(cell, round, rate(cell, round)))
            })
            .collect();
        let check = steady_round(&plan, &steps, 2).unwrap();
        assert!(!check.to_specification, "cell {falls}: {check:?}");
    }
    let steps: Vec<PtsStep> = (0..5)
        .flat_map(|round| (0..cells.len()).map(move |cell| step(cell, round, 1000.0)))
        .collect();
    assert!(steady_round(&plan, &steps, 2).unwrap().to_specification);
}

#[test]
fn a_round_that_has_not_ended_does_not_count() {
    let plan = of(PtsTest::Iops);
    let PhaseKind::Rounds { cells, tracking, .. } = &plan.phases[2].kind else { panic!("rounds") };
    let steps = |rates: [f64; 5], more: usize| -> Vec<PtsStep> {
        let whole = (0..5).flat_map(|round| {
            (0..cells.len()).map(move |cell| step(cell, round, rates[round as usize]))
        });
        whole.chain((0..more).map(|cell| step(cell, 5, 1000.0))).collect()
    };
    // With what has been measured of a sixth round, all five values of each cell would be equal.
    let falls = [2000.0, 1000.0, 1000.0, 1000.0, 1000.0];
    let most = cells.len() - 1;
    assert!(most > *tracking);
    let check = steady_round(&plan, &steps(falls, most), 2).unwrap();
    assert!(!check.to_specification, "{check:?}");
    assert!(steady_round(&plan, &steps([1000.0; 5], most), 2).unwrap().to_specification);
    // A test of other rounds ends after their number.
    assert_eq!(steady_round(&of(PtsTest::Xsr), &steps([1000.0; 5], 0), 1), None);
}

#[test]
fn of_half_hours_the_first_minute_counts() {
    let plan = of(PtsTest::Hir);
    let PhaseKind::Rounds { until: Until::Steady { every, .. }, .. } = plan.phases[1].kind else {
        panic!("to steady state")
    };
    assert_eq!(every, 30);
    let minutes = |count: u32, rate: fn(u32) -> f64| -> Vec<PtsStep> {
        (0..count).map(|minute| PtsStep { phase: 1, ..step(0, minute, rate(minute)) }).collect()
    };
    // Steady within five minutes, but not over two hours.
    let falls = |minute: u32| 1000.0 / (1.0 + f64::from(minute) / 30.0);
    assert_eq!(steady_round(&plan, &minutes(30, falls), 1), None);
    assert!(!steady_round(&plan, &minutes(121, falls), 1).unwrap().to_specification);
    assert!(steady_round(&plan, &minutes(121, |_| 1000.0), 1).unwrap().to_specification);
}
