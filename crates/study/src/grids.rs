//! Grids that fit the time: what is left out of them, in which order they are measured, and where they are refined.

use crate::bench::{Bench, LONGEST_RUN_NS};
use crate::design::{Cell, Design, Rank, Setting, Shape};
use crate::draw::{self, Laid};
use crate::experiments::designs;
use crate::plan::{Effort, Plan};
use crate::result::Axis;
use machine::{Machine, Nanos, Result};
use measure::THROTTLE_SLICE_NS;
use std::collections::{BTreeMap, BTreeSet};
use workload::Workload;

/// Shares of the budget at which each part ends.
const MAIN_SHARE: f64 = 0.78;
const REFINE_SHARE: f64 = 0.86;

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

/// Runs of each point that are hoped for: fewer tell an interval too wide to be of use (Student's t), and shorter ones lose little.
const RUNS: usize = 5;

/// Makes the grids fit the time, measures them, refines the curves around half power. Returns the experiments with their places on the bench.
pub(crate) fn lay_out<M: Machine>(bench: &mut Bench<'_, M>, setting: &mut Setting, plan: &Plan) -> Result<Vec<Laid>> {
    let most = match plan.effort {
        Effort::Quick => Rank::Core,
        Effort::Normal => Rank::Usual,
        Effort::Full => Rank::Rich,
    };
    let wanted = |setting: &Setting| -> Vec<Design> {
        designs(setting)
            .into_iter()
            .map(|mut design| {
                design.cells.retain(|cell| cell.rank <= most && (setting.facts.writable || !cell.workload.writes()));
                if !plan.wants(design.id) {
                    design.skipped = Some("it was not asked for (--only)".into());
                    design.cells.clear();
                }
                design
            })
            .collect()
    };
    let mut designs = wanted(setting);
    if bench.noisy {
        let cells: usize = designs.iter().map(|design| design.cells.len()).sum();
        let least_run = setting.run_ns as f64;
        let left = (bench.at(MAIN_SHARE).saturating_sub(bench.machine.now())) as f64;
        // Many cells stand in several experiments and are run once.
        setting.run_ns = (left / (cells.max(1) as f64 * 0.75 * RUNS as f64) - OVERHEAD_NS).clamp(least_run, LONGEST_RUN_NS) as Nanos;
        let beside = if bench.bursty { THROTTLE_SLICE_NS as f64 } else { OVERHEAD_NS };
        let runs = left / (setting.run_ns as f64 + beside);
        designs = wanted(setting);
        let thinned = thin(&mut designs, ((runs / LEAST_RUNS) as usize).max(LEAST_POINTS));
        bench.left_out.extend(thinned);
    }
    let mut laid: Vec<Laid> = designs
        .into_iter()
        .map(|design| {
            let places = design.cells.iter().map(|cell| bench.add(cell, setting)).collect();
            Laid { design, places }
        })
        .collect();
    let weighed = weighed(&laid);
    // Each once, what tells most first, in case the time is short; then interleaved.
    let classes: BTreeSet<u32> = weighed.values().map(|weight| weight / WEIGHT_CLASS).collect();
    let mut first = true;
    for class in classes {
        let places: Vec<usize> = weighed.iter().filter(|(_, weight)| **weight / WEIGHT_CLASS == class).map(|(place, _)| *place).collect();
        // Without the first of them there is no answer, so they may overrun a budget that is too short.
        let until = if first { bench.at(OVERRUN_SHARE) } else { bench.at(MAIN_SHARE) };
        bench.rounds(&places, 1, until)?;
        first = false;
    }
    count_instructions(bench, &laid)?;
    let all: Vec<usize> = weighed.into_keys().collect();
    bench.rounds(&all, RUNS, bench.at(MAIN_SHARE))?;
    refine(bench, setting, &mut laid)?;
    bench.tighten(&all, bench.at(REFINE_SHARE))?;
    Ok(laid)
}

/// Leaves cells out where there are more workloads than runs allow, those first that tell least; says how many.
fn thin(designs: &mut [Design], most: usize) -> Option<String> {
    let mut seen: Vec<(u32, &Workload, Option<&Shape>)> = Vec::new();
    for cell in designs.iter().flat_map(|design| &design.cells) {
        match seen.iter_mut().find(|one| one.1 == &cell.workload && one.2 == cell.shape.as_ref()) {
            Some(one) => one.0 = one.0.min(weight(cell)),
            None => seen.push((weight(cell), &cell.workload, cell.shape.as_ref())),
        }
    }
    if seen.len() <= most {
        return None;
    }
    let dropped = seen.len() - most;
    // Stable: of cells that tell as much, those of the earlier experiments stay.
    seen.sort_by_key(|one| one.0);
    let kept: Vec<(Workload, Option<Shape>)> = seen.iter().take(most).map(|one| (one.1.clone(), one.2.cloned())).collect();
    for design in designs.iter_mut() {
        design.cells.retain(|cell| kept.iter().any(|(workload, shape)| *workload == cell.workload && *shape == cell.shape));
    }
    Some(format!("{dropped} of {} points, so that each of the others is run {LEAST_RUNS} times", dropped + kept.len()))
}

/// How little a cell tells: rich grids first, then the sizes between those that show a curve's shape.
fn weight(cell: &Cell) -> u32 {
    if cell.shape.is_some() {
        // A stripe is what several targets are named for.
        return 0;
    }
    let rank = match cell.rank {
        Rank::Core => 0,
        Rank::Usual => 20,
        Rank::Rich => 40,
    };
    let size = match cell.workload.request_bytes {
        // Models and half power need the whole curve.
        _ if cell.group == "unbuffered" => 0,
        4096 | 65_536 | 1_048_576 => 0,
        16_384 | 262_144 => 4,
        _ => 8,
    };
    let group = match cell.group {
        "unbuffered" | "depth_read" | "depth_write" => 0,
        "buffered" | "random" | "allocation" => 1,
        "cost" | "streams" | "device_cache" => 2,
        _ => 3,
    };
    WEIGHT_CLASS + rank + size + group
}

/// Every place once, with the least weight of the cells that stand there.
fn weighed(laid: &[Laid]) -> BTreeMap<usize, u32> {
    let mut weights = BTreeMap::new();
    for (cell, place) in laid.iter().flat_map(|one| one.design.cells.iter().zip(&one.places)) {
        if let Some(place) = place {
            let least = weights.entry(*place).or_insert(u32::MAX);
            *least = weight(cell).min(*least);
        }
    }
    weights
}

/// Counts instructions for the cost experiment's corners, in runs of their own: a counter slows what it counts.
fn count_instructions<M: Machine>(bench: &mut Bench<'_, M>, laid: &[Laid]) -> Result<()> {
    if !bench.machine.capabilities().counts_instructions {
        return Ok(());
    }
    let Some(cost) = laid.iter().find(|one| one.design.id == "cost") else { return Ok(()) };
    let corners = cost.design.cells.iter().zip(&cost.places).filter(|(cell, _)| matches!(cell.x as u64, 4096 | 65_536 | 1_048_576));
    let places: Vec<usize> = corners.filter_map(|(_, place)| *place).collect();
    for place in places {
        if bench.machine.now() < bench.at(MAIN_SHARE) && bench.entries[place].failure.is_none() {
            bench.count(place)?;
        }
    }
    Ok(())
}

/// Adds a size between the two around each half-power point, where that would tell more, and measures it.
fn refine<M: Machine>(bench: &mut Bench<'_, M>, setting: &Setting, laid: &mut [Laid]) -> Result<()> {
    let points = bench.points();
    let mut added = Vec::new();
    for one in laid.iter_mut().filter(|one| matches!(one.design.id, "unbuffered" | "depth" | "buffered")) {
        let drawn = draw::experiment(one, &points);
        let mut cells: Vec<(Cell, usize)> = Vec::new();
        for (figure, series) in drawn
            .figures
            .iter()
            .filter(|figure| figure.x == Axis::RequestBytes)
            .flat_map(|figure| figure.series.iter().map(move |series| (figure, series)))
        {
            let Some(half) = series.half_power.as_ref().filter(|half| !half.at_or_below) else { continue };
            let Some(above) = half.smallest else { continue };
            let Some(below) = series.values.iter().rfind(|value| value.x < above) else { continue };
            let align = f64::from(setting.facts.direct_align_bytes);
            let middle = ((below.x * above).sqrt() / align).round() * align;
            if above / below.x < 1.9 || middle <= below.x || middle >= above {
                continue;
            }
            let Some(like) = one.design.cells.iter().find(|cell| cell.group == figure.id && cell.series == series.name && cell.x == above)
            else {
                continue;
            };
            let cell = Cell { x: middle, workload: Workload { request_bytes: middle as u32, ..like.workload.clone() }, ..like.clone() };
            if let Some(place) = bench.add(&cell, setting) {
                cells.push((cell, place));
            }
        }
        for (cell, place) in cells {
            one.design.cells.push(cell);
            one.places.push(Some(place));
            added.push(place);
        }
    }
    bench.weigh(&added, 2.0);
    bench.rounds(&added, RUNS, bench.at(REFINE_SHARE))?;
    Ok(())
}
