//! Tables and conclusions, from the plan and the steps only.

use super::document::{MatrixCell, PhaseResult, PtsResult, PtsStep};
use super::plan::{Cell, HistogramCells, Measured, PhaseKind, PtsPlan, Until};
use super::tests::{PtsTest, WAITS_S};
use crate::sentences::worn;
use crate::steady::{SteadyCheck, WINDOW, steady_state};
use machine::units::show_span as span;
use machine::units::{grouped, show_capacity, show_rate, show_size, show_time};

fn value(step: &PtsStep, measured: Measured) -> f64 {
    match measured {
        Measured::Iops => step.iops(),
        Measured::Throughput => step.bytes_per_s(),
        Measured::Latency => step.mean_latency_ns,
    }
}

fn of_phase(steps: &[PtsStep], phase: usize) -> impl Iterator<Item = &PtsStep> + Clone {
    steps.iter().filter(move |step| step.phase == phase)
}

fn whole_rounds(steps: &[PtsStep], phase: usize, cells: &[Cell]) -> u32 {
    of_phase(steps, phase).filter(|step| step.cell + 1 == cells.len()).count() as u32
}

/// Checks a phase's last whole rounds; of several tracked cells, returns one that is not steady.
/// `None` for a fixed number of rounds.
pub fn steady_round(plan: &PtsPlan, steps: &[PtsStep], phase: usize) -> Option<SteadyCheck> {
    let PhaseKind::Rounds { tracking, also_tracking, until, .. } = &plan.phases.get(phase)?.kind
    else {
        return None;
    };
    if matches!(until, Until::Rounds(_)) {
        return None;
    }
    let mut all = Vec::new();
    for cell in std::iter::once(tracking).chain(also_tracking) {
        all.push(steady_cell(plan, steps, phase, *cell)?);
    }
    // The first of equal ones.
    all.into_iter().reduce(|one, other| {
        let rank = |check: &SteadyCheck| (!check.to_specification, !check.is_steady());
        if rank(&other) > rank(&one) { other } else { one }
    })
}

fn steady_cell(
    plan: &PtsPlan,
    steps: &[PtsStep],
    phase: usize,
    cell: usize,
) -> Option<SteadyCheck> {
    let PhaseKind::Rounds { cells, measured, until, .. } = &plan.phases.get(phase)?.kind else {
        return None;
    };
    let rounds = whole_rounds(steps, phase, cells);
    let counts = |step: &&PtsStep| {
        step.cell == cell && step.round < rounds && step.round.is_multiple_of(until.every())
    };
    let tracked: Vec<&PtsStep> = of_phase(steps, phase).filter(counts).collect();
    let window = &tracked[tracked.len().checked_sub(WINDOW)?..];
    let rounds: Vec<f64> = window.iter().map(|step| value(step, *measured)).collect();
    // Rates within the steps; of latencies their inverse, for which the patterns are the same.
    let within: Vec<f64> = window.iter().flat_map(|step| step.parts.iter().copied()).collect();
    steady_state(&rounds, &within)
}

pub(crate) fn is_done(plan: &PtsPlan, steps: &[PtsStep], phase: usize, rounds: u32) -> bool {
    let PhaseKind::Rounds { until, .. } = &plan.phases[phase].kind else { return false };
    if rounds >= until.max_rounds() {
        return true;
    }
    match *until {
        Until::Steady { .. } => {
            steady_round(plan, steps, phase).is_some_and(|check| check.to_specification)
        }
        Until::Rounds(_) => false,
        Until::Written { bytes, .. } => {
            let written: u64 = of_phase(steps, phase).map(|step| step.written_bytes).sum();
            written >= bytes
                || steady_round(plan, steps, phase).is_some_and(|check| check.to_specification)
        }
    }
}

/// Of all phases with rounds.
pub fn phase_results(plan: &PtsPlan, steps: &[PtsStep]) -> Vec<PhaseResult> {
    let phases = plan.phases.iter().enumerate();
    phases
        .filter_map(|(index, phase)| {
            let PhaseKind::Rounds { cells, tracking, measured, .. } = &phase.kind else {
                return None;
            };
            let own = || of_phase(steps, index);
            let rounds = whole_rounds(steps, index, cells);
            let tracked: Vec<f64> = own()
                .filter(|step| step.cell == *tracking && step.round < rounds)
                .map(|step| value(step, *measured))
                .collect();
            (rounds > 0).then(|| PhaseResult {
                phase: index,
                title: phase.title.clone(),
                rounds,
                steady: steady_round(plan, steps, index),
                matrix: cells
                    .iter()
                    .enumerate()
                    .filter_map(|(number, cell)| matrix_cell(own(), cell, number, rounds))
                    .collect(),
                tracked,
            })
        })
        .collect()
}

fn matrix_cell<'a>(
    steps: impl Iterator<Item = &'a PtsStep>,
    cell: &Cell,
    number: usize,
    rounds: u32,
) -> Option<MatrixCell> {
    let first = rounds.saturating_sub(WINDOW as u32);
    let window: Vec<&PtsStep> = steps
        .filter(|step| step.cell == number && step.round >= first && step.round < rounds)
        .collect();
    let count = window.len() as f64;
    let mean = |of: fn(&PtsStep) -> f64| window.iter().map(|step| of(step)).sum::<f64>() / count;
    let max = |of: fn(&PtsStep) -> u64| window.iter().map(|step| of(step)).max().unwrap_or(0);
    (count > 0.0).then(|| MatrixCell {
        cell: *cell,
        iops: mean(PtsStep::iops),
        bytes_per_s: mean(PtsStep::bytes_per_s),
        mean_latency_ns: mean(|step| step.mean_latency_ns),
        p99_ns: max(|step| step.p99_ns),
        p99999_ns: max(|step| step.p99999_ns),
        max_latency_ns: max(|step| step.max_latency_ns),
    })
}

/// A histogram phase's cells in order, and whether each histogram is kept.
pub fn histogram_steps(plan: &PtsPlan, steps: &[PtsStep], phase: usize) -> Vec<(Cell, bool)> {
    let Some(PhaseKind::Histograms { of_phase, which, seconds, writes_before_s }) =
        plan.phases.get(phase).map(|phase| &phase.kind)
    else {
        return Vec::new();
    };
    let found = phase_results(plan, steps).into_iter().find(|one| one.phase == *of_phase);
    let matrix = found.map(|one| one.matrix).unwrap_or_default();
    let cells = match which {
        HistogramCells::Cell(number) => match plan.phases.get(*of_phase).map(|phase| &phase.kind) {
            Some(PhaseKind::Rounds { cells, .. }) => {
                cells.get(*number).copied().into_iter().collect()
            }
            _ => Vec::new(),
        },
        HistogramCells::Points { max_mean_latency_ns } => points(&matrix, *max_mean_latency_ns),
    };
    cells
        .into_iter()
        .flat_map(|cell| {
            let before = Cell { read_percent: 0, seconds: *writes_before_s, ..cell };
            let before = (*writes_before_s > 0.0).then_some((before, false));
            before.into_iter().chain([(Cell { seconds: *seconds, ..cell }, true)])
        })
        .collect()
}

/// The highest rate, near the middle, and the fewest outstanding.
fn points(matrix: &[MatrixCell], max_mean_latency_ns: f64) -> Vec<Cell> {
    let mixed = || matrix.iter().filter(|one| one.cell.read_percent > 0);
    let quick = || mixed().filter(|one| one.mean_latency_ns < max_mean_latency_ns);
    let highest = quick().max_by(|a, b| a.iops.total_cmp(&b.iops));
    let single = mixed().min_by_key(|one| one.cell.threads * one.cell.depth);
    let middle = highest.zip(single).and_then(|(high, low)| {
        let half = f64::midpoint(high.iops, low.iops);
        let off = |one: &MatrixCell| (one.iops - half).abs();
        quick().min_by(|a, b| off(a).total_cmp(&off(b)))
    });
    [highest, middle, single].into_iter().flatten().map(|one| one.cell).collect()
}

fn name(cell: &Cell) -> String {
    let order = if cell.random { "random" } else { "sequential" };
    let size = show_size(u64::from(cell.block_bytes));
    match cell.read_percent {
        100 => format!("{order} reads of {size}"),
        0 => format!("{order} writes of {size}"),
        mix => format!("{order} {size} with {mix} % reads"),
    }
}

fn steadiness(result: &PtsResult, phase: &PhaseResult) -> Option<String> {
    let PhaseKind::Rounds { until, .. } = &result.plan.phases[phase.phase].kind else {
        return None;
    };
    let max = match until {
        Until::Rounds(_) => return None,
        Until::Steady { max_rounds, .. } => (phase.rounds >= *max_rounds).then_some(max_rounds),
        Until::Written { .. } => None,
    };
    let Some(check) = &phase.steady else {
        return Some(format!("no steady state after {} rounds", phase.rounds));
    };
    let numbers = format!("range {:.1} %, slope {:.1} %", check.range_percent, check.slope_percent);
    Some(match (check.to_specification, check.contradicted_by, max) {
        (true, None, _) => format!("steady state in round {} ({numbers})", phase.rounds),
        (true, Some(pattern), _) => format!(
            "steady state by the specification's rule in round {} ({numbers}), but the rate {}",
            phase.rounds,
            pattern.sentence()
        ),
        (false, _, Some(max)) => format!("no steady state within {max} rounds ({numbers})"),
        (false, _, None) => format!("no steady state in the last five rounds ({numbers})"),
    })
}

/// The answer first.
pub fn pts_sentences(result: &PtsResult) -> Vec<String> {
    let mut all = Vec::new();
    let cells = || result.phases.iter().flat_map(|phase| &phase.matrix);
    let found = |mix, block| {
        cells().find(|one| one.cell.read_percent == mix && one.cell.block_bytes == block)
    };
    let rate = |one: &MatrixCell| format!("{} {}", grouped(one.iops.round()), "requests/s");
    match result.plan.test {
        PtsTest::Iops => {
            let parts: Vec<String> =
                [(100, 4096, "reads"), (65, 8192, "65 % reads"), (0, 4096, "writes")]
                    .into_iter()
                    .filter_map(|(mix, block, words)| {
                        let size = show_size(u64::from(block));
                        Some(format!("{} for random {size} {words}", rate(found(mix, block)?)))
                    })
                    .collect();
            all.extend((!parts.is_empty()).then(|| parts.join(", ") + "."));
        }
        PtsTest::Throughput => all.extend(
            cells().map(|one| format!("{} for {}.", show_rate(one.bytes_per_s), name(&one.cell))),
        ),
        PtsTest::Latency => {
            let parts: Vec<String> = [(100, "read"), (0, "write")]
                .into_iter()
                .filter_map(|(mix, word)| {
                    let one = found(mix, 4096)?;
                    Some(format!(
                        "a 4 KiB {word} takes {} on average, {} at most",
                        show_time(one.mean_latency_ns),
                        show_time(one.max_latency_ns as f64)
                    ))
                })
                .collect();
            all.extend((!parts.is_empty()).then(|| capitalised(&parts.join("; ")) + "."));
        }
        PtsTest::Wsat => all.extend(saturation(result)),
        PtsTest::Hir => all.extend(idle_recovery(result)),
        PtsTest::Xsr => all.extend(cross_stimulus(result)),
        PtsTest::Dirth => all.extend(demand(result)),
    }
    let said =
        |phase: &PhaseResult| Some(format!("{}: {}.", phase.title, steadiness(result, phase)?));
    all.extend(result.phases.iter().filter_map(said));
    if !result.complete {
        all.insert(0, "The test is not complete: its numbers are preliminary.".into());
    }
    if !result.plan.to_specification() {
        all.push(format!(
            "Not to the specification: times and space are divided by {}.",
            result.plan.scale
        ));
    }
    if result.interruptions > 0 {
        all.push(format!(
            "Not to the specification: the run was interrupted and continued {} times, and the drive rested meanwhile.",
            result.interruptions
        ));
    }
    all.extend(result.wear.as_ref().map(|wear| worn(result.written_bytes, wear)));
    all.push(format!(
        "{} written in {}.",
        show_capacity(result.written_bytes as f64),
        span(result.took_s)
    ));
    all
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn saturation(result: &PtsResult) -> Option<String> {
    let phase = result.phases.first()?;
    let (first, last) = (phase.tracked.first()?, phase.tracked.last()?);
    let written: u64 = of_phase(&result.steps, phase.phase).map(|step| step.written_bytes).sum();
    Some(format!(
        "Random 4 KiB writes start at {} per second and are at {} after {}, {:.1} times the space.",
        grouped(first.round()),
        grouped(last.round()),
        show_capacity(written as f64),
        written as f64 / result.plan.active_bytes as f64
    ))
}

fn idle_recovery(result: &PtsResult) -> Option<String> {
    let base = result.phases.first()?.tracked.last()?;
    let rests = result.phases.iter().filter(|phase| {
        let kind = &result.plan.phases[phase.phase].kind;
        matches!(kind, PhaseKind::Rounds { cells, .. } if cells[0].wait_s > 0.0)
    });
    let of = |(phase, wait): (&PhaseResult, &f64)| {
        let last = &phase.tracked[phase.tracked.len().saturating_sub(WINDOW)..];
        let mean = last.iter().sum::<f64>() / last.len() as f64;
        format!("{:.2} with {wait:.0} s", mean / base)
    };
    let parts: Vec<String> = rests.zip(&WAITS_S).map(of).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "Base rate {} writes/s. Idle times after 5 s of writes raise it to this multiple: {}.",
            grouped(base.round()),
            parts.join(", ")
        )
    })
}

fn cross_stimulus(result: &PtsResult) -> Option<String> {
    let last = |index: usize| result.phases.get(index)?.tracked.last().copied();
    let (before, random) = (last(0)?, last(1));
    let mut text = format!("Sequential writes end at {}", show_rate(before));
    if let Some(random) = random {
        text += &format!(", random ones at {}", show_rate(random));
    }
    if let Some(phase) = result.phases.get(2) {
        let back = phase.tracked.iter().position(|rate| *rate >= before * 0.9);
        text += &match back {
            Some(0) => "; sequential writes then have their rate again at once".into(),
            Some(minutes) => {
                format!("; sequential writes then need {minutes} rounds to reach 90 % again")
            }
            None => "; sequential writes then do not reach 90 % again".to_owned(),
        };
    }
    if let Some(end) = last(2) {
        text += &format!(", and end at {}", show_rate(end));
    }
    Some(text + ".")
}

fn demand(result: &PtsResult) -> Option<String> {
    let phase = result.phases.last()?;
    let order = |a: &&MatrixCell, b: &&MatrixCell| a.iops.total_cmp(&b.iops);
    let mixed = || phase.matrix.iter().filter(|one| one.cell.read_percent > 0);
    let best = mixed().max_by(order)?;
    let worst = mixed().min_by(order)?;
    let words = |one: &MatrixCell| {
        format!(
            "{} requests/s with {} x {} outstanding ({} on average)",
            grouped(one.iops.round()),
            one.cell.threads,
            one.cell.depth,
            show_time(one.mean_latency_ns)
        )
    };
    Some(format!("From {} to {}.", words(worst), words(best)))
}
