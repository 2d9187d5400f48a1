//! Choice and order of the cells that fit the budget.

use crate::answer::sides;
use crate::confirm::candidates;
use crate::context::StudyContext;
use crate::crossings;
use crate::decisive::decisive;
use crate::experiments::{Trial, wanted};
use crate::figures;
use crate::found::{Found, PeakRates};
use crate::grid::{Cell, StripeShape};
use crate::long_writes::{self, NOT_YET};
use crate::plan::Plan;
use crate::sampler::{LONGEST_RUN_NS, PRECISION, Sampler};
use machine::{Machine, MemoryUse, Nanos, Result, THROTTLE_SLICE_NS};
use results::{Axis, Question};
use std::collections::{BTreeMap, BTreeSet};
use workload::{OpKind, Pattern, Workload};

/// Of the budget; points that need more runs get the rest.
const GRID_SHARE: f64 = 0.58;

/// By then, every point has had its first runs.
const FIRST_SHARE: f64 = 0.42;

/// By then, the deciding points have had their first runs, however long the grid took.
const SPREAD_SHARE: f64 = 0.66;

/// By then, the deciding points have reached [`FIRST_PRECISION`].
const DECISIVE_SHARE: f64 = 0.48;

/// By then, the sizes around half-power points have run.
const REFINE_SHARE: f64 = 0.52;

/// When the most uncertain points start, and when measuring ends.
const SETTLE_SHARES: [f64; 2] = [0.92, 0.985];

const FIRST_PRECISION: f64 = 0.15;

const DECISIVE_WEIGHT: f64 = 3.0;

const SIDE_WEIGHT: f64 = 2.0;

const REFINE_RUNS: u32 = 2;

const FIRST_RUNS: u32 = 3;

/// For the points every answer needs.
const OVERRUN_SHARE: f64 = 2.0;

const MIN_POINTS: usize = 16;

/// Per run, to open files, prepare caches and write back dirty data.
const OVERHEAD_NS: f64 = 10e6;

/// Weights within this range are measured together, in random order.
const WEIGHT_CLASS: u32 = 5;

/// Runs per point: points differ by more than a longer run would reveal.
const RUNS: u32 = 20;

pub(crate) fn measure<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &mut StudyContext,
    plan: &Plan,
) -> Result<Vec<Trial>> {
    let mut trials = wanted(setting, plan);
    if sampler.noisy {
        let cells: usize = trials.iter().map(|trial| trial.grid.cells.len()).sum();
        let min_run = setting.run_ns as f64;
        let left = (sampler.at(GRID_SHARE).saturating_sub(sampler.machine.now())) as f64;
        // Many cells belong to several experiments and run once.
        setting.run_ns = (left / (cells.max(1) as f64 * 0.75 * f64::from(RUNS)) - OVERHEAD_NS)
            .clamp(min_run, LONGEST_RUN_NS) as Nanos;
        // Wait between two bursts, and through the first of them ([`measure::of_whole_bursts`]).
        let gap = if sampler.bursty {
            THROTTLE_SLICE_NS as f64 * 2.5
        } else {
            sampler.overhead.max(OVERHEAD_NS)
        };
        let runs = left / (setting.run_ns as f64 + gap);
        trials = wanted(setting, plan);
        let thinned = thin(&mut trials, (runs as usize).max(MIN_POINTS));
        sampler.left_out.extend(thinned);
    }
    for cell in trials.iter_mut().flat_map(|trial| &mut trial.grid.cells) {
        cell.point = sampler.add(cell, setting);
    }
    let weights = weights(&trials);
    let classes: BTreeSet<u32> = weights.values().map(|weight| weight / WEIGHT_CLASS).collect();
    // Every study needs these points, so they may overrun a short budget.
    let needed = weights.values().min().copied();
    let needed: Vec<usize> = weights
        .iter()
        .filter(|(_, weight)| Some(**weight) == needed)
        .map(|(index, _)| *index)
        .collect();
    sampler.rounds(&needed, 1, sampler.at(OVERRUN_SHARE))?;
    for class in classes {
        let of_class = weights.iter().filter(|(_, weight)| **weight / WEIGHT_CLASS == class);
        let indices: Vec<usize> = of_class.map(|(index, _)| *index).collect();
        sampler.rounds(&indices, 1, sampler.at(GRID_SHARE))?;
    }
    count_instructions(sampler, &trials)?;
    let all: Vec<usize> = weights.into_keys().collect();
    // A few runs locate the answer; then the deciding points go first, and the others get the rest.
    sampler.rounds(&all, FIRST_RUNS, sampler.at(FIRST_SHARE))?;
    let decisive = decisive(sampler, setting, &trials);
    // If the first turn used all the time, these runs provide the spread.
    sampler.rounds(&decisive, FIRST_RUNS, sampler.at(SPREAD_SHARE))?;
    sampler.learn_spread();
    sampler.weigh(&decisive, DECISIVE_WEIGHT);
    sampler.tighten(&decisive, FIRST_PRECISION, sampler.at(DECISIVE_SHARE))?;
    refine(sampler, setting, &mut trials)?;
    // An added size may turn out to be the best.
    let best = |op| Some((op, *candidates(sampler, setting, &trials, op).first()?));
    let peaks: Vec<(OpKind, usize)> = setting.ops().into_iter().filter_map(best).collect();
    crossings::bracket(sampler, setting, &mut trials, plan, &peaks)?;
    Ok(trials)
}

/// New runs can move crossings, so those are measured too.
pub(crate) fn settle<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    trials: &mut [Trial],
    plan: &Plan,
    peaks: &[(OpKind, usize)],
    memory: &std::result::Result<Vec<MemoryUse>, String>,
) -> Result<()> {
    let writes = plan.wants("long_writes") && long_writes::applies(setting).is_ok();
    let later = if writes { long_writes::SHARE } else { 0.0 };
    for share in SETTLE_SHARES.map(|share| share - later) {
        sampler.learn_spread();
        if sampler.noisy {
            let points = &sampler.points()[..];
            let measured = PeakRates::measured(peaks, points);
            let (entries, advertised) = (&sampler.entries[..], PeakRates::default());
            let grids = trials.iter().map(|trial| &trial.grid).collect();
            let found = Found {
                setting,
                grids,
                entries,
                points,
                measured,
                advertised,
                memory,
                long_writes: NOT_YET,
            };
            let sides = sides(&found, trials);
            sampler.weigh(&sides, SIDE_WEIGHT);
        }
        let all: Vec<usize> =
            (0..sampler.entries.len()).filter(|&index| sampler.entries[index].reached()).collect();
        sampler.tighten(&all, PRECISION, sampler.at(share))?;
        sampler.learn_spread();
        crossings::bracket(sampler, setting, trials, plan, peaks)?;
    }
    sampler.learn_spread();
    Ok(())
}

pub(crate) fn thin(trials: &mut [Trial], max: usize) -> Option<String> {
    let identity = |cell: &Cell| (Question::of(&cell.workload), cell.shape.clone());
    let kind = |cell: &Cell| {
        let workload = &cell.workload;
        (workload.op(), workload.buffering.is_direct(), workload.pattern == Pattern::Random)
    };
    let mut seen: Vec<(u32, _, (Question, Option<StripeShape>))> = Vec::new();
    for cell in trials.iter().flat_map(|trial| &trial.grid.cells) {
        let one = identity(cell);
        match seen.iter_mut().find(|known| known.2 == one) {
            Some(known) => known.0 = known.0.min(weight(cell)),
            None => seen.push((weight(cell), kind(cell), one)),
        }
    }
    let dropped = seen.len().checked_sub(max).filter(|&dropped| dropped > 0)?;
    // Among equally informative cells keep the same number of each kind, as each kind has its own
    // peak and verdict; within a kind, those of the earlier experiments.
    seen.sort_by_key(|one| one.0);
    let class = |number: usize| (seen[number].0 / WEIGHT_CLASS, seen[number].1);
    let turn =
        |number: usize| (0..number).filter(|&earlier| class(earlier) == class(number)).count();
    let turns: Vec<usize> = (0..seen.len()).map(turn).collect();
    let mut ranked: Vec<_> = seen.into_iter().zip(turns).collect();
    ranked.sort_by_key(|((weight, ..), turn)| (weight / WEIGHT_CLASS, *turn));
    let kept: Vec<_> = ranked.into_iter().take(max).map(|((.., one), _)| one).collect();
    for trial in trials {
        trial.grid.cells.retain(|cell| kept.contains(&identity(cell)));
    }
    Some(format!("{dropped} of {} points, to leave time for the others", dropped + max))
}

fn weight(cell: &Cell) -> u32 {
    // A stripe is why several targets were given.
    if cell.shape.is_some() { 0 } else { WEIGHT_CLASS + cell.dispensable() }
}

fn weights(trials: &[Trial]) -> BTreeMap<usize, u32> {
    let mut weights = BTreeMap::new();
    for cell in trials.iter().flat_map(|trial| &trial.grid.cells) {
        if let Some(point) = cell.point {
            let min = weights.entry(point).or_insert(u32::MAX);
            *min = weight(cell).min(*min);
        }
    }
    weights
}

/// In separate runs: a counter slows the run.
fn count_instructions<M: Machine>(sampler: &mut Sampler<'_, M>, trials: &[Trial]) -> Result<()> {
    if !sampler.machine.capabilities().counts_instructions {
        return Ok(());
    }
    for trial in trials {
        let wanted =
            trial.grid.cells.iter().filter(|cell| (trial.experiment.counts_instructions)(cell));
        for index in wanted.filter_map(|cell| cell.point) {
            if sampler.machine.now() < sampler.at(GRID_SHARE)
                && sampler.entries[index].measured.failure.is_none()
            {
                sampler.count_instructions(index)?;
            }
        }
    }
    Ok(())
}

fn refine<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    trials: &mut [Trial],
) -> Result<()> {
    let points = sampler.points();
    let mut added = Vec::new();
    for trial in trials.iter_mut().filter(|trial| trial.experiment.refines) {
        let mut cells: Vec<Cell> = Vec::new();
        for figure in
            figures::draw(trial, &points).iter().filter(|figure| figure.x == Axis::RequestBytes)
        {
            for series in &figure.series {
                let Some(half) = series.half_power.as_ref().filter(|half| !half.at_or_below) else {
                    continue;
                };
                let Some(above) = half.smallest else { continue };
                let Some(below) = series.values.iter().rfind(|value| value.x < above) else {
                    continue;
                };
                let align = setting.align() as f64;
                let middle = ((below.x * above).sqrt() / align).round() * align;
                if above / below.x < 1.9 || middle <= below.x || middle >= above {
                    continue;
                }
                let like = trial.grid.cells.iter().find(|cell| {
                    let drawn = cell.curve.set.figures.iter().any(|one| one.id == figure.id);
                    drawn && cell.curve.name.to_string() == series.name && cell.x == above
                });
                cells.extend(like.map(|like| Cell {
                    x: middle,
                    workload: Workload { request_bytes: middle as u32, ..like.workload.clone() },
                    ..like.clone()
                }));
            }
        }
        for mut cell in cells {
            cell.point = sampler.add(&cell, setting);
            if let Some(index) = cell.point {
                added.push(index);
                trial.grid.cells.push(cell);
            }
        }
    }
    sampler.weigh(&added, DECISIVE_WEIGHT);
    sampler.rounds(&added, REFINE_RUNS, sampler.at(REFINE_SHARE))
}
