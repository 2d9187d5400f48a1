//! Clients at the same time, with a file each or one for all.

use super::prelude::*;
use workload::ClientFiles;

pub(super) static EXPERIMENT: Experiment = Experiment::new(
    "clients",
    "Clients",
    "How many clients fill the target, and what limits them?",
    &[&LARGE, &SMALL, &FILES],
    grid,
    conclude,
);

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

static FILES: CurveSet = CurveSet::new(
    Axis::Clients,
    1,
    &[FigureDesign::new(
        "clients_files",
        "A file for each client, and one file for all, by the number of clients",
        Axis::BytesPerS,
    )],
);

const ONE_FILE: [ClientFiles; 2] = [ClientFiles::Segments, ClientFiles::Interleaved];

fn by_files(op: OpKind, files: ClientFiles) -> Curve {
    let (name, order) = match files {
        ClientFiles::Own => ("a file each", 0),
        ClientFiles::Segments => ("one file, a part each", 1),
        ClientFiles::Interleaved => ("one file, in turn", 2),
    };
    Curve::variant(&FILES, op, name).ordered(order)
}

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
    if let Err(why) = &setting.one_file {
        grid.notes.push(format!("one file for all clients was not measured: {why}"));
        return grid;
    }
    for op in setting.ops() {
        for (clients, rank) in numbers(setting.clients).into_iter().filter(|one| one.0 > 1) {
            let rank = if clients == setting.clients { rank } else { Rank::Usual };
            for client_files in [ClientFiles::Own].into_iter().chain(ONE_FILE) {
                let large = workload(setting, &LARGE, op);
                let workload = Workload { clients: Some(clients), client_files, ..large };
                grid.add(by_files(op, client_files), clients, workload, rank);
            }
        }
    }
    grid
}

fn compare_files(found: &Found<'_>, conclusion: &mut Conclusion) {
    for files in ONE_FILE {
        let how = match files {
            ClientFiles::Interleaved => "requests in turn",
            _ => "a part each",
        };
        let mut each = Vec::new();
        for op in OPS {
            let last = |files| found.curve(&by_files(op, files)).last().copied();
            let (Some(own), Some(one)) = (last(ClientFiles::Own), last(files)) else { continue };
            if own.x != one.x {
                continue;
            }
            let shared = format!("with one file for all {} clients ({how})", own.x);
            let effect = match one.change_to(&own) {
                Effect::By(more) if more > 0.0 => {
                    format!(
                        "are {} slower {shared} than with a file each",
                        percent(1.0 - one.y / own.y)
                    )
                }
                Effect::By(_) => {
                    format!(
                        "are {} faster {shared} than with a file each",
                        percent(one.y / own.y - 1.0)
                    )
                }
                Effect::Nothing => format!("are as fast {shared} as with a file each"),
                Effect::Unsure => {
                    format!("{shared} may differ from those with a file each: {UNEVEN}")
                }
            };
            each.push((op, effect));
            let title = format!("Give each of {} clients a file of its own ({op})", own.x);
            conclusion.comparisons.push(Comparison::new(
                Change::ClientFiles,
                one,
                own,
                title,
                "one file for each client",
            ));
        }
        conclusion.sentences.extend(statements(each));
    }
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let mut conclusion = Conclusion::default();
    for scaling in hosts::scalings(found.points) {
        let what = format!("{}: {}", scaling.workload, scaling.sentence());
        conclusion.sentences.push(what);
        conclusion.sentences.extend(scaling.model.iter().map(results::ScalingModel::outlook));
    }
    compare_files(found, &mut conclusion);
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
