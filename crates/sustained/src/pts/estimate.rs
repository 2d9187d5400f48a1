//! Time and bytes of a plan before it runs.

use super::plan::{Cell, HistogramCells, PhaseKind, PtsPlan, Until};
use crate::steady::WINDOW;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseEstimate {
    pub title: String,
    /// Minimum and maximum.
    pub rounds: [u32; 2],
    pub cells: usize,
    /// Minimum and maximum.
    pub seconds: [f64; 2],
    pub max_written_bytes: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Assumed for all requests.
    pub bytes_per_s: f64,
    pub phases: Vec<PhaseEstimate>,
    pub seconds: [f64; 2],
    pub max_written_bytes: f64,
}

/// A scaled cell may be shorter than its outstanding requests.
fn busy_s(cell: &Cell, bytes_per_s: f64) -> f64 {
    let outstanding = f64::from(cell.threads) * f64::from(cell.depth) * f64::from(cell.block_bytes);
    cell.seconds.max(outstanding / bytes_per_s)
}

/// An upper bound: random small requests are slower.
fn written(cell: &Cell, bytes_per_s: f64) -> f64 {
    busy_s(cell, bytes_per_s) * bytes_per_s * f64::from(100 - cell.read_percent) / 100.0
}

/// Rounds until steady state is first judged.
fn first_check(until: &Until) -> u32 {
    (WINDOW as u32 - 1) * until.every() + 1
}

/// Times of rounds to the specification are exact; preconditioning time and bytes follow from the
/// rate.
pub fn estimate(plan: &PtsPlan, bytes_per_s: f64) -> Estimate {
    let phases: Vec<PhaseEstimate> = plan
        .phases
        .iter()
        .map(|phase| {
            let title = phase.title.clone();
            match &phase.kind {
                PhaseKind::Purge => PhaseEstimate {
                    title,
                    rounds: [0; 2],
                    cells: 0,
                    seconds: [0.0; 2],
                    max_written_bytes: 0.0,
                },
                PhaseKind::Fill { times, .. } => {
                    let bytes = plan.active_bytes as f64 * f64::from(*times);
                    PhaseEstimate {
                        title,
                        rounds: [1; 2],
                        cells: 1,
                        seconds: [bytes / bytes_per_s; 2],
                        max_written_bytes: bytes,
                    }
                }
                PhaseKind::Rounds { cells, until, .. } => {
                    let round_s: f64 =
                        cells.iter().map(|cell| busy_s(cell, bytes_per_s) + cell.wait_s).sum();
                    let round_bytes: f64 =
                        cells.iter().map(|cell| written(cell, bytes_per_s)).sum();
                    let max = until.max_rounds();
                    let rounds = match *until {
                        Until::Steady { .. } => [first_check(until).min(max), max],
                        Until::Rounds(_) => [max; 2],
                        Until::Written { bytes, .. } => {
                            let full = (bytes as f64 / round_bytes.max(1.0)).ceil();
                            [(full as u32).clamp(1, first_check(until).min(max)), max]
                        }
                    };
                    let most = match *until {
                        Until::Written { bytes, .. } => bytes as f64 + round_bytes,
                        _ => f64::INFINITY,
                    };
                    PhaseEstimate {
                        title,
                        rounds,
                        cells: cells.len(),
                        seconds: rounds.map(|count| f64::from(count) * round_s),
                        max_written_bytes: (f64::from(max) * round_bytes).min(most),
                    }
                }
                PhaseKind::Histograms { of_phase, which, seconds, writes_before_s } => {
                    let cells = match &plan.phases[*of_phase].kind {
                        PhaseKind::Rounds { cells, .. } => &cells[..],
                        _ => &[],
                    };
                    let (count, cell) = match which {
                        HistogramCells::Cell(number) => (1, cells.get(*number)),
                        HistogramCells::Points { .. } => (3, cells.last()),
                    };
                    let share = cell.map_or(1.0, |cell| f64::from(100 - cell.read_percent) / 100.0);
                    let all = f64::from(count);
                    PhaseEstimate {
                        title,
                        rounds: [1; 2],
                        cells: count as usize,
                        seconds: [all * (seconds + writes_before_s); 2],
                        max_written_bytes: all * bytes_per_s * (seconds * share + writes_before_s),
                    }
                }
            }
        })
        .collect();
    let seconds = [0, 1].map(|end| phases.iter().map(|phase| phase.seconds[end]).sum());
    let max_written_bytes = phases.iter().map(|phase| phase.max_written_bytes).sum();
    Estimate { bytes_per_s, phases, seconds, max_written_bytes }
}
