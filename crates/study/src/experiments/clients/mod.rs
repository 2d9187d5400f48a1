//! Clients that use the target at the same time.

use super::prelude::*;

pub(super) static EXPERIMENT: Experiment = Experiment::new(
    "clients",
    "Clients",
    "How many clients fill the target, and what limits them?",
    &[&LARGE, &SMALL],
    grid,
    conclude,
);

/// Large requests in sequence, and small random ones.
const LARGE_BYTES: u32 = 1 << 20;
const SMALL_BYTES: u32 = 4096;

const DEPTH: u32 = 8;

static LARGE: CurveSet = CurveSet::new(
    Axis::Clients,
    0,
    &[FigureDesign::new(
        "clients_large",
        "Sequential requests of 1 MiB, 8 outstanding per client, by the number of clients",
        Axis::BytesPerS,
    )],
);

static SMALL: CurveSet = CurveSet::new(
    Axis::Clients,
    0,
    &[FigureDesign::new(
        "clients_small",
        "Random requests of 4 KiB, 8 outstanding per client, by the number of clients",
        Axis::Iops,
    )],
);

/// Returns 1, 2, 4 and so on, and all; those in between are less important.
fn numbers(all: u32) -> Vec<(u32, Rank)> {
    let powers = std::iter::successors(Some(1u32), |one| one.checked_mul(2));
    let mut numbers: Vec<(u32, Rank)> =
        powers.take_while(|&one| one < all).map(|one| (one, Rank::Core)).collect();
    let between = (3..all).step_by(2).filter(|odd| all <= 8 || odd * 2 > all);
    numbers.extend(between.take(4).map(|one| (one, Rank::Usual)));
    numbers.push((all, Rank::Core));
    numbers.sort_unstable();
    numbers
}

fn curve(set: &'static CurveSet, op: OpKind) -> Curve {
    Curve::of(set, op)
}

fn workload(setting: &StudyContext, set: &'static CurveSet, op: OpKind) -> Workload {
    if std::ptr::eq(set, &raw const LARGE) {
        let request = LARGE_BYTES.max(setting.facts.direct_align_bytes);
        setting.deep(op, request, DEPTH)
    } else {
        let request = SMALL_BYTES.max(setting.facts.direct_align_bytes);
        Workload { pattern: Pattern::Random, ..setting.deep(op, request, DEPTH) }
    }
}

fn grid(setting: &StudyContext) -> Grid {
    if setting.clients < 2 {
        return Grid::skipped("there is one client; mpirun starts several");
    }
    let mut grid = Grid::new(setting);
    for set in [&LARGE, &SMALL] {
        for op in setting.ops() {
            for (clients, rank) in numbers(setting.clients) {
                let workload = Workload { clients: Some(clients), ..workload(setting, set, op) };
                grid.add(curve(set, op), clients, workload, rank);
            }
        }
    }
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let mut conclusion = Conclusion::default();
    for scaling in hosts::scalings(found.points) {
        let what = format!("{}: {}", scaling.workload, scaling.sentence());
        conclusion.sentences.push(what);
        conclusion.sentences.extend(scaling.model.iter().map(results::ScalingModel::outlook));
    }
    conclusion
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_clients_begin_with_one_and_end_with_all() {
        let core = |all| {
            let all = numbers(all).into_iter().filter(|one| one.1 == Rank::Core);
            all.map(|one| one.0).collect::<Vec<u32>>()
        };
        assert_eq!(core(2), [1, 2]);
        assert_eq!(core(6), [1, 2, 4, 6]);
        assert_eq!(core(8), [1, 2, 4, 8]);
        let every = |all| numbers(all).into_iter().map(|one| one.0).collect::<Vec<u32>>();
        assert_eq!(every(4), [1, 2, 3, 4]);
        assert_eq!(every(8), [1, 2, 3, 4, 5, 7, 8]);
    }
}
