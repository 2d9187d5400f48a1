//! Which cells are measured in the time there is, in which order, and where grids are refined.

use crate::confirm::candidates;
use crate::crossings;
use crate::decisive::{PEAK_GOAL, decisive, rivals, stakes};
use crate::experiments::{ALL, Experiment};
use crate::figures;
use crate::grid::{Cell, Grid, Rank, StripeShape};
use crate::plan::{Effort, Plan};
use crate::sampler::{LONGEST_RUN_NS, Sampler};
use crate::setting::Setting;
use crate::trial::Case;
use machine::{Machine, Nanos, Result};
use measure::{Repeated, THROTTLE_SLICE_NS};
use results::{Axis, Question};
use std::collections::{BTreeMap, BTreeSet};
use workload::{OpKind, Pattern, Workload};

/// Shares of the budget at which each part ends.
const MAIN_SHARE: f64 = 0.78;
const REFINE_SHARE: f64 = 0.86;

/// Where the points on which the answer hangs have had their first turn.
const DECISIVE_SHARE: f64 = 0.6;

/// Runs of each point before it is asked which of them matter.
const FIRST_RUNS: u32 = 2;

/// What no answer can do without may take so much of the budget.
const OVERRUN_SHARE: f64 = 2.0;

/// Points that no budget is too short for.
const LEAST_POINTS: usize = 16;

/// What a run takes beyond its length, about: files opened, caches brought into their state, dirty data written.
const OVERHEAD_NS: f64 = 10e6;

/// Weights within so much of each other are measured together, in a random order.
const WEIGHT_CLASS: u32 = 5;

/// Runs of each point below which points are left out instead.
const LEAST_RUNS: f64 = 2.0;

/// Where runs differ, and not by the slices of a throttle: every point has been run once, twice where the time allows, and those on which
/// the answer hangs have had their turn before the best of them are confirmed.
const ONCE_SHARE: f64 = 0.60;
const TWICE_SHARE: f64 = 0.42;
const RACE_SHARE: f64 = 0.60;

/// Where the study stops to measure.
const SETTLE_SHARE: f64 = 0.985;

/// Runs of a tenth of each point's share: where they differ, many short ones tell more than few long ones.
const SHORT_RUNS: f64 = 10.0;

/// How much a peak matters beside what else the answer tells: its half-power points are as sure as it is, and its runs are longer.
const PEAK_WEIGHT: f64 = 20.0;

/// Most runs of a point.
const MOST_RUNS: u32 = 100;

/// So many points are run before it is asked again which matter.
const BATCH: usize = 8;

/// Runs of each point that are hoped for: fewer tell an interval too wide to be of use (Student's t), and shorter ones lose little.
const RUNS: u32 = 5;

/// An experiment with its grid on this target.
pub(crate) struct Trial {
    pub(crate) experiment: &'static Experiment,
    pub(crate) grid: Grid,
}

/// Makes the grids fit the time, measures them, and refines the curves around half power. Cells then have their points' indices.
pub(crate) fn measure<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &mut Setting,
    plan: &Plan,
) -> Result<Vec<Trial>> {
    let mut trials = wanted(setting, plan);
    if sampler.noisy {
        let cells: usize = trials.iter().map(|trial| trial.grid.cells.len()).sum();
        let least_run = setting.run_ns as f64;
        let left = (sampler.at(MAIN_SHARE).saturating_sub(sampler.machine.now())) as f64;
        let runs_of_each = if sampler.bursty { f64::from(RUNS) } else { SHORT_RUNS };
        // Many cells belong to several experiments and are run once.
        setting.run_ns = (left / (cells.max(1) as f64 * 0.75 * runs_of_each) - OVERHEAD_NS)
            .clamp(least_run, LONGEST_RUN_NS) as Nanos;
        let beside = if sampler.bursty { THROTTLE_SLICE_NS as f64 } else { OVERHEAD_NS };
        let runs = left / (setting.run_ns as f64 + beside);
        trials = wanted(setting, plan);
        let thinned = thin(&mut trials, ((runs / LEAST_RUNS) as usize).max(LEAST_POINTS));
        sampler.left_out.extend(thinned);
    }
    for cell in trials.iter_mut().flat_map(|trial| &mut trial.grid.cells) {
        cell.point = sampler.add(cell, setting);
    }
    // Runs differ by chance alone.
    let steady = sampler.noisy && !sampler.bursty;
    let weights = weights(&trials);
    let classes: BTreeSet<u32> = weights.values().map(|weight| weight / WEIGHT_CLASS).collect();
    for (number, class) in classes.into_iter().enumerate() {
        let of_class = weights.iter().filter(|(_, weight)| **weight / WEIGHT_CLASS == class);
        let indices: Vec<usize> = of_class.map(|(index, _)| *index).collect();
        // Without the first of them there is no answer, so they may overrun a budget that is too short.
        let share = match number {
            0 => OVERRUN_SHARE,
            _ if steady => ONCE_SHARE,
            _ => MAIN_SHARE,
        };
        sampler.rounds(&indices, 1, sampler.at(share))?;
    }
    count_instructions(sampler, &trials)?;
    let all: Vec<usize> = weights.into_keys().collect();
    if steady {
        sampler.rounds(&all, FIRST_RUNS, sampler.at(TWICE_SHARE))?;
        race(sampler, setting, &mut trials, plan)?;
        return Ok(trials);
    }
    // Two runs tell where the answer lies; then those go first on which it hangs, and the others have what is left.
    sampler.rounds(&all, FIRST_RUNS, sampler.at(MAIN_SHARE))?;
    let decisive = decisive(sampler, setting, &trials);
    sampler.tighten(&decisive, sampler.at(DECISIVE_SHARE))?;
    sampler.rounds(&all, RUNS, sampler.at(MAIN_SHARE))?;
    refine(sampler, setting, &mut trials)?;
    let peaks = leaders(sampler, setting, &trials);
    crossings::bracket(sampler, setting, &mut trials, plan, &peaks)?;
    sampler.tighten(&all, sampler.at(REFINE_SHARE))?;
    Ok(trials)
}

/// The best entry of each operation so far.
fn leaders<M: Machine>(sampler: &Sampler<'_, M>, setting: &Setting, trials: &[Trial]) -> Vec<(OpKind, usize)> {
    let best = |op| Some((op, *candidates(sampler, setting, trials, op).first()?));
    setting.ops().into_iter().filter_map(best).collect()
}

/// Runs go to the points on which the answer hangs, those first whose next run may change it most for its time.
fn race<M: Machine>(sampler: &mut Sampler<'_, M>, setting: &Setting, trials: &mut [Trial], plan: &Plan) -> Result<()> {
    sampler.learn_spread();
    let until = sampler.at(RACE_SHARE);
    loop {
        // One of the sizes that are added may turn out to be the best.
        let peaks = leaders(sampler, setting, trials);
        crossings::bracket(sampler, setting, trials, plan, &peaks)?;
        let mut open = stakes(sampler, setting, trials, plan, &peaks);
        for &(op, best) in &peaks {
            open.extend(rivals(sampler, setting, trials, op, best));
        }
        if !run_most_urgent(sampler, open, until)? {
            return Ok(());
        }
    }
}

/// What is left of the time goes to what the answer hangs on and is still open: the peaks, the sizes around half of them, what a plain program
/// gets, the trials of the verdicts. What the answer does not need has had its runs.
///
/// # Errors
/// The user's interrupt.
pub(crate) fn settle<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &Setting,
    trials: &mut [Trial],
    plan: &Plan,
    peaks: &[(OpKind, usize)],
    cases: &[Case],
) -> Result<()> {
    if !sampler.noisy || sampler.bursty {
        return Ok(());
    }
    sampler.learn_spread();
    let until = sampler.at(SETTLE_SHARE);
    loop {
        crossings::bracket(sampler, setting, trials, plan, peaks)?;
        let mut open = stakes(sampler, setting, trials, plan, peaks);
        open.extend(
            peaks.iter().map(|&(_, index)| (index, (sampler.entries[index].half_width() - PEAK_GOAL) * PEAK_WEIGHT)),
        );
        let undecided = cases.iter().flat_map(|case| case.undecided(&sampler.entries));
        open.extend(undecided.map(|index| (index, sampler.entries[index].half_width())));
        if !run_most_urgent(sampler, open, until)? {
            break;
        }
    }
    sampler.learn_spread();
    Ok(())
}

/// Runs the points of a list whose next run promises most for its time, each with what its interval is too wide by; whether there was any.
fn run_most_urgent<M: Machine>(sampler: &mut Sampler<'_, M>, open: Vec<(usize, f64)>, until: Nanos) -> Result<bool> {
    let now = sampler.machine.now();
    let mut gains = BTreeMap::<usize, f64>::new();
    for (index, excess) in open.into_iter().filter(|one| one.1 > 0.0).map(|(index, excess)| (index, excess.min(2.0))) {
        let standing = sampler.standing(index);
        if standing.closed || standing.runs >= MOST_RUNS || now.saturating_add(standing.cost_ns) > until {
            continue;
        }
        let gain = excess / f64::from(standing.runs + 1) / standing.cost_ns.max(1) as f64;
        let known = gains.entry(index).or_insert(0.0);
        *known = known.max(gain);
    }
    let mut urgent: Vec<(usize, f64)> = gains.into_iter().collect();
    urgent.sort_by(|a, b| b.1.total_cmp(&a.1));
    let batch: Vec<usize> = urgent.into_iter().take(BATCH).map(|one| one.0).collect();
    sampler.once_more(&batch, until)
}

/// The grids of the experiments that are wanted, as far as the effort goes.
pub(crate) fn wanted(setting: &Setting, plan: &Plan) -> Vec<Trial> {
    let most = match plan.effort {
        Effort::Quick => Rank::Core,
        Effort::Normal => Rank::Usual,
        Effort::Full => Rank::Rich,
    };
    let trial = |experiment: &&'static Experiment| {
        let mut grid = (experiment.grid)(setting);
        if plan.wants(experiment.id) {
            grid.cells.retain(|cell| cell.rank <= most);
        } else {
            grid = Grid { notes: grid.notes, ..Grid::skipped("it was not asked for (--only)") };
        }
        Trial { experiment, grid }
    };
    ALL.iter().map(trial).collect()
}

/// Leaves cells out where there are more questions than runs allow, those first that tell least; says how many.
pub(crate) fn thin(trials: &mut [Trial], most: usize) -> Option<String> {
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
    let dropped = seen.len().checked_sub(most).filter(|&dropped| dropped > 0)?;
    // Of cells that tell as much, as many of each kind stay, for each kind has a peak and a verdict of its own; of one kind, those of the
    // earlier experiments.
    seen.sort_by_key(|one| one.0);
    let class = |number: usize| (seen[number].0 / WEIGHT_CLASS, seen[number].1);
    let turn = |number: usize| (0..number).filter(|&earlier| class(earlier) == class(number)).count();
    let turns: Vec<usize> = (0..seen.len()).map(turn).collect();
    let mut ranked: Vec<_> = seen.into_iter().zip(turns).collect();
    ranked.sort_by_key(|((weight, ..), turn)| (weight / WEIGHT_CLASS, *turn));
    let kept: Vec<_> = ranked.into_iter().take(most).map(|((.., one), _)| one).collect();
    for trial in trials {
        trial.grid.cells.retain(|cell| kept.contains(&identity(cell)));
    }
    Some(format!("{dropped} of {} points, so that each of the others is run {LEAST_RUNS} times", dropped + most))
}

/// The order in which cells are left out: the greatest first.
fn weight(cell: &Cell) -> u32 {
    // A stripe is what several targets are named for.
    if cell.shape.is_some() { 0 } else { WEIGHT_CLASS + cell.dispensable() }
}

/// Every point once, with the least weight of its cells.
fn weights(trials: &[Trial]) -> BTreeMap<usize, u32> {
    let mut weights = BTreeMap::new();
    for cell in trials.iter().flat_map(|trial| &trial.grid.cells) {
        if let Some(point) = cell.point {
            let least = weights.entry(point).or_insert(u32::MAX);
            *least = weight(cell).min(*least);
        }
    }
    weights
}

/// Counts instructions where experiments wish it, in runs of their own: a counter slows what it counts.
fn count_instructions<M: Machine>(sampler: &mut Sampler<'_, M>, trials: &[Trial]) -> Result<()> {
    if !sampler.machine.capabilities().counts_instructions {
        return Ok(());
    }
    for trial in trials {
        let wanted = trial.grid.cells.iter().filter(|cell| (trial.experiment.counts_instructions)(cell));
        for index in wanted.filter_map(|cell| cell.point) {
            if sampler.machine.now() < sampler.at(MAIN_SHARE) && sampler.entries[index].measured.failure.is_none() {
                sampler.count_instructions(index)?;
            }
        }
    }
    Ok(())
}

/// Adds a size between the two around each half-power point, where that would tell more, and measures it.
fn refine<M: Machine>(sampler: &mut Sampler<'_, M>, setting: &Setting, trials: &mut [Trial]) -> Result<()> {
    let points = sampler.points();
    let mut added = Vec::new();
    for trial in trials.iter_mut().filter(|trial| trial.experiment.refines) {
        let mut cells: Vec<Cell> = Vec::new();
        for figure in figures::draw(trial, &points).iter().filter(|figure| figure.x == Axis::RequestBytes) {
            for series in &figure.series {
                let Some(half) = series.half_power.as_ref().filter(|half| !half.at_or_below) else { continue };
                let Some(above) = half.smallest else { continue };
                let Some(below) = series.values.iter().rfind(|value| value.x < above) else { continue };
                let align = setting.align() as f64;
                let middle = ((below.x * above).sqrt() / align).round() * align;
                if above / below.x < 1.9 || middle <= below.x || middle >= above {
                    continue;
                }
                let like = trial.grid.cells.iter().find(|cell| {
                    let drawn = cell.curve.set.figures.iter().any(|one| one.id == figure.id);
                    drawn && cell.curve.name == series.name && cell.x == above
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
    sampler.weigh(&added, 2.0);
    sampler.rounds(&added, RUNS, sampler.at(REFINE_SHARE))
}
