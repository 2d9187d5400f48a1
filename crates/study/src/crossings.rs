//! Sizes around each crossing of half of the peak, even those left out before.

use crate::context::StudyContext;
use crate::experiments::{Trial, wanted};
use crate::grid::Cell;
use crate::plan::Plan;
use crate::sampler::{Entry, Sampler};
use machine::{Machine, Nanos, Result};
use measure::stats;
use results::{Axis, Question};
use std::collections::{BTreeMap, BTreeSet};
use workload::{OpKind, Workload};

/// Between sizes up to this ratio, the curve follows Hockney's law.
const NEAR: f64 = 4.0;

const STRIDE: f64 = 4.0;

/// Runs per size: one has no interval, and a throttle may admit an extra slice in it.
const MIN_RUNS: u32 = 2;

const FIRST_BYTES: f64 = 65_536.0;

/// Of a short budget, for curves deeper than one request.
const OVERRUN_SHARE: f64 = 1.1;

struct Curve {
    trial: usize,
    like: Cell,
    /// Of its operation's peak, in bytes per second.
    half: f64,
    tried: BTreeSet<u64>,
}

pub(crate) fn bracket<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    trials: &mut [Trial],
    plan: &Plan,
    peaks: &[(OpKind, usize)],
) -> Result<()> {
    if !sampler.noisy {
        return Ok(());
    }
    let rate = |index: usize| sampler.entries[index].point().rate();
    let halves: Vec<(OpKind, f64)> =
        peaks.iter().filter_map(|&(op, index)| Some((op, rate(index)? / 2.0))).collect();
    let (single, deep) = curves(trials, setting, plan, &halves)
        .into_iter()
        .partition(|one| one.like.workload.depth == 1);
    bracket_curves(sampler, setting, trials, single, Nanos::MAX)?;
    bracket_curves(sampler, setting, trials, deep, sampler.at(OVERRUN_SHARE))
}

fn curves(
    trials: &[Trial],
    setting: &StudyContext,
    plan: &Plan,
    halves: &[(OpKind, f64)],
) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for (trial, whole) in wanted(setting, plan).into_iter().enumerate() {
        for cell in whole.grid.cells.into_iter().filter(|cell| cell.curve.set.half_of_peak) {
            let single = cell.workload.depth == 1;
            let begun =
                single || trials[trial].grid.cells.iter().any(|one| one.curve == cell.curve);
            let known = curves.iter().any(|one| one.trial == trial && one.like.curve == cell.curve);
            let half = halves.iter().find(|(op, _)| *op == cell.workload.op());
            if let Some(&(_, half)) =
                half.filter(|_| begun && !known && cell.curve.set.x == Axis::RequestBytes)
            {
                curves.push(Curve { trial, like: cell, half, tried: BTreeSet::new() });
            }
        }
    }
    curves
}

fn bracket_curves<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    trials: &mut [Trial],
    mut curves: Vec<Curve>,
    until: Nanos,
) -> Result<()> {
    let align = setting.align() as f64;
    let sizes: Vec<f64> = setting.sizes().into_iter().map(|(size, _)| f64::from(size)).collect();
    loop {
        let (mut wanted, mut added) = (Vec::new(), false);
        for curve in &mut curves {
            let rates = rates(sampler, &curve.like);
            for (size, _, index) in around(&rates, curve.half).map(|place| rates[place]) {
                // Another experiment may have measured it; the figure shows it, too.
                let trial = &mut trials[curve.trial];
                let shown = |cell: &Cell| cell.curve == curve.like.curve && cell.x == size;
                if !trial.grid.cells.iter().any(shown) {
                    add(sampler, setting, trial, &curve.like, size);
                }
                wanted.push(index);
            }
            let Some(size) = next_size(&rates, &sizes, curve.half, align, &curve.tried) else {
                continue;
            };
            curve.tried.insert(size as u64);
            let Some(index) = add(sampler, setting, &mut trials[curve.trial], &curve.like, size)
            else {
                continue;
            };
            wanted.push(index);
            added = true;
        }
        wanted.retain(|&index| {
            let entry = &sampler.entries[index];
            entry.measured.failure.is_none() && entry.samples().len() < MIN_RUNS as usize
        });
        let ends = |sampler: &Sampler<'_, M>| -> usize {
            let ended = |entry: &Entry| {
                entry.samples().len() + usize::from(entry.measured.failure.is_some())
            };
            wanted.iter().map(|&index| ended(&sampler.entries[index])).sum()
        };
        let before = ends(sampler);
        sampler.rounds(&wanted, MIN_RUNS, until)?;
        // Nothing is left to run, or the time is up.
        if !added && ends(sampler) == before {
            return Ok(());
        }
    }
}

fn add<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    trial: &mut Trial,
    like: &Cell,
    size: f64,
) -> Option<usize> {
    let workload = Workload { request_bytes: size as u32, ..like.workload.clone() };
    let cell = Cell { x: size, workload, point: None, ..like.clone() };
    let point = sampler.add(&cell, setting);
    match trial.grid.cells.iter_mut().find(|one| one.curve == cell.curve && one.x == size) {
        Some(known) => known.point = point,
        None => trial.grid.cells.push(Cell { point, ..cell }),
    }
    point
}

/// Of several visits the longest runs count.
fn rates<M: Machine>(sampler: &Sampler<'_, M>, like: &Cell) -> Vec<(f64, f64, usize)> {
    let question = Question::of(&like.workload);
    let of_curve = |workload: &Workload| {
        let request_bytes = like.workload.request_bytes;
        Question::of(&Workload { request_bytes, ..workload.clone() }) == question
    };
    let mut sizes = BTreeMap::<u32, (stats::Point, u64, usize)>::new();
    for (index, entry) in sampler.entries.iter().enumerate() {
        if entry.shape != like.shape || !of_curve(&entry.workload) {
            continue;
        }
        let Some(numbers) = entry.point().numbers.as_ref() else { continue };
        let (x, y) = (f64::from(entry.workload.request_bytes), numbers.throughput_bytes_per_s);
        let [low, high] = numbers.interval_95.unwrap_or([y, y]);
        let measured_ns = numbers.achieved.measured_ns;
        let known = sizes.get(&entry.workload.request_bytes);
        if known.is_none_or(|known| known.1 < measured_ns) {
            let point = stats::Point { x, y, low, high };
            sizes.insert(entry.workload.request_bytes, (point, measured_ns, index));
        }
    }
    let points: Vec<stats::Point> = sizes.values().map(|one| one.0).collect();
    sizes
        .values()
        .zip(stats::smoothed(&points))
        .map(|(&(point, _, index), y)| (point.x, y, index))
        .collect()
}

fn around(rates: &[(f64, f64, usize)], half: f64) -> std::ops::Range<usize> {
    match rates.iter().position(|one| one.1 >= half) {
        Some(above) => above.saturating_sub(1)..above + 1,
        None => rates.len().saturating_sub(1)..rates.len(),
    }
}

/// `None` if the sizes around the crossing are close enough, or there is no other.
fn next_size(
    rates: &[(f64, f64, usize)],
    sizes: &[f64],
    half: f64,
    align: f64,
    tried: &BTreeSet<u64>,
) -> Option<f64> {
    let known = |size: f64| tried.contains(&(size as u64)) || rates.iter().any(|one| one.0 == size);
    let open: Vec<f64> = sizes.iter().copied().filter(|&size| !known(size)).collect();
    let (Some(first), Some(last)) = (rates.first(), rates.last()) else {
        let from_first = |size: &f64| (size / FIRST_BYTES).ln().abs();
        return open.into_iter().min_by(|a, b| from_first(a).total_cmp(&from_first(b)));
    };
    match rates.iter().position(|one| one.1 >= half) {
        None => {
            let larger = || open.iter().copied().filter(|&size| size > last.0);
            larger().find(|&size| size >= last.0 * STRIDE).or(larger().next_back())
        }
        Some(0) => {
            let smaller = || open.iter().copied().filter(|&size| size < first.0);
            smaller().rfind(|&size| size <= first.0 / STRIDE).or(smaller().next())
        }
        Some(above) => {
            let (below, above) = (rates[above - 1].0, rates[above].0);
            let middle = ((below * above).sqrt() / align).round() * align;
            (above / below > NEAR && middle > below && middle < above && !known(middle))
                .then_some(middle)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: [f64; 8] =
        [512.0, 4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];

    fn measured(
        begun: &[usize],
        rate: impl Fn(f64) -> f64,
        half: f64,
        refused: f64,
    ) -> Vec<(f64, f64, usize)> {
        let mut rates: Vec<(f64, f64, usize)> =
            begun.iter().map(|&at| (SIZES[at], rate(SIZES[at]), 0)).collect();
        let mut tried = BTreeSet::new();
        while let Some(size) = next_size(&rates, &SIZES, half, 512.0, &tried) {
            assert!(tried.insert(size as u64), "{size} twice");
            if size < refused {
                rates.push((size, rate(size), 0));
                rates.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
        }
        rates
    }

    proptest! {
        #[test]
        fn a_crossing_has_a_neighbour_on_either_side(
            begun in proptest::sample::subsequence((0..SIZES.len()).collect::<Vec<_>>(), 0..4),
            crossing in 600.0f64..16e6,
            noise in proptest::collection::vec(0.7f64..1.4, 64),
        ) {
            // Hockney's law reaches half of 1 at the crossing; each size has its own error.
            let rate = |size: f64| size / (size + crossing) * noise[(size.log2() * 2.0) as usize % noise.len()];
            let rates = measured(&begun, rate, 0.5, f64::INFINITY);
            match rates.iter().position(|one| one.1 >= 0.5) {
                None => prop_assert_eq!(rates.last().unwrap().0, SIZES[SIZES.len() - 1]),
                Some(0) => prop_assert_eq!(rates[0].0, SIZES[0]),
                Some(above) => {
                    prop_assert!(rates[above].0 / rates[above - 1].0 <= NEAR * 1.1);
                    prop_assert_eq!(around(&rates, 0.5), above - 1..above + 1);
                }
            }
        }

        #[test]
        fn sizes_that_do_not_fit_end_the_search(refused in 4096.0f64..16e6) {
            let rates = measured(&[1], |size| size / 1e9, 0.5, refused);
            prop_assert!(rates.iter().all(|one| one.0 < refused));
        }
    }
}
