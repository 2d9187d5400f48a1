//! Half-power sizes on noisy machines and in budgets too short for the grid: each has a measured
//! size on either side.

mod noisy;
mod sound;

use machine::{Machine, TargetSpec};
use noisy::{Noisy, disk};
use results::{PeakSource, Program, Results, Varied};
use study::{Effort, Plan};
use workload::{OpKind, rng};

const MILLISECOND: u64 = 1_000_000;

/// The maximum ratio of the sizes around a crossing; alignment moves them off powers of two.
const NEAR: f64 = 4.2;

fn study(machine: &Noisy, seed: u64, budget_ns: u64, effort: Effort) -> Results {
    let only = ["unbuffered", "depth", "random"].map(String::from).to_vec();
    let program = Program { name: "test".into(), version: "0".into(), arguments: Vec::new() };
    let plan = Plan { budget_ns, effort, only, seed };
    let results = study::study(machine, &TargetSpec::default(), &plan, program, &mut |_| {});
    sound::sound(results.expect("a study"))
}

fn single(results: &Results, op: OpKind) -> Vec<(f64, f64)> {
    let depth = results.experiments.iter().find(|one| one.id == "depth").expect("it was asked for");
    let id = format!("depth_{op}");
    let figure = depth.figures.iter().find(|one| one.id == id).expect("points at several depths");
    let series = figure.series.iter().find(|one| one.name == "depth 1").expect("single requests");
    series.values.iter().filter_map(|value| Some((value.x, value.y?))).collect()
}

#[test]
fn single_requests_have_a_measured_size_on_either_side_of_half() {
    let mut crossed = 0;
    for seed in 1..=24 {
        let throttled = seed % 2 == 0;
        let effort = if seed % 3 == 0 { Effort::Normal } else { Effort::Quick };
        // From a budget in which almost nothing fits to one in which the grid is thinned.
        let budget_ns = (500 + rng::hash(seed, 1) % 8000) * MILLISECOND;
        let machine = Noisy::new(disk(80e6), seed, 0.25, throttled);
        let largest = machine
            .target_facts(&machine.open(&TargetSpec::default()).expect("a target"))
            .size_bytes
            / 4;
        let results = study(&machine, seed, budget_ns, effort);
        let answer = results.answer.as_ref().expect("an answer");
        for op in answer.peaks.iter().map(|peak| peak.op) {
            let half = answer
                .half_power
                .iter()
                .find(|half| {
                    (half.of, half.op, half.peak_from)
                        == (Varied::RequestBytes, op, PeakSource::Measured)
                        && half.at == "depth 1"
                })
                .unwrap_or_else(|| panic!("seed {seed}: no half-power size of single {op}s"));
            let sizes = single(&results, op);
            let said = format!(
                "seed {seed}, {budget_ns} ns, throttled {throttled}, {op}: {half:?}, {sizes:?}"
            );
            match half.crossing {
                Some(crossing) => {
                    let above =
                        sizes.iter().position(|&(size, _)| size >= crossing).expect("a size above");
                    assert!(above > 0 && sizes[above].0 / sizes[above - 1].0 <= NEAR, "{said}");
                    crossed += 1;
                }
                None if half.at_or_below => assert!(sizes[0].0 == 512.0, "{said}"),
                // A noisy peak may be twice the rate of any single request; then the largest size
                // must have been tried.
                None => assert!(
                    sizes.last().is_some_and(|one| one.0 * 2.0 >= (16e6f64).min(largest as f64)),
                    "{said}"
                ),
            }
        }
    }
    assert!(crossed >= 40, "{crossed} of 48");
}
