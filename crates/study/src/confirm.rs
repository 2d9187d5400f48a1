use crate::case::Case;
use crate::context::StudyContext;
use crate::experiments::Trial;
use crate::plan::Plan;
use crate::roles::{PLAIN_BYTES, is_plain, stands_for};
use crate::sampler::{Entry, Sampler};
use machine::{Machine, Nanos, Result, THROTTLE_SLICE_NS};
use results::rules::is_above;
use results::{Burst, LimitOf, RandomBurst};
use std::collections::BTreeSet;
use workload::{OpKind, Stop, Workload};

pub(crate) struct BestRates<'a> {
    pub(crate) peaks: &'a [(OpKind, usize)],
    pub(crate) bursts: &'a [(OpKind, Burst)],
    pub(crate) random_bursts: &'a [RandomBurst],
}

/// After this share of the budget a new choice is not measured from scratch.
const CHOICE_SHARE: f64 = 0.62;

const ROUNDS_TO_CONFIRM: f64 = 10.0;

const CANDIDATES: usize = 2;

/// Above this relative half width of a peak's interval only the rates decide.
const UNKNOWN: f64 = 0.5;

const PEAK_WEIGHT: f64 = 2.0;
const CHOSEN_WEIGHT: f64 = 30.0;

const LONGEST_CONFIRM_NS: f64 = 2.5e9;

/// Made even past the budget: the answer depends on them.
pub(crate) const MIN_RUNS: u32 = 3;

/// In longer runs, because the maximum of many noisy values is biased upwards.
pub(crate) fn confirm<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    trials: &[Trial],
    plan: &Plan,
) -> Result<Vec<(OpKind, usize)>> {
    let mut confirmed: Vec<(OpKind, Vec<usize>)> = Vec::new();
    for op in setting.ops() {
        let best = candidates(sampler, setting, trials, op).into_iter();
        let chosen: Vec<usize> = if sampler.noisy {
            let best: Vec<usize> = best.take(CANDIDATES).collect();
            best.into_iter().map(|index| longer(sampler, index, setting, plan)).collect()
        } else {
            best.take(1).collect()
        };
        confirmed.push((op, chosen));
    }
    let all: Vec<usize> =
        confirmed.iter().flat_map(|(_, indices)| indices.iter().copied()).collect();
    sampler.weigh(&all, PEAK_WEIGHT);
    sampler.rounds(&all, MIN_RUNS, Nanos::MAX)?;
    sampler.learn_spread();
    let best = |indices: &[usize]| {
        let rated = indices
            .iter()
            .filter_map(|&index| Some((index, sampler.entries[index].point().rate()?)));
        rated.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let peaks: Vec<(OpKind, usize)> =
        confirmed.iter().filter_map(|(op, indices)| Some((*op, best(indices)?.0))).collect();
    let chosen: Vec<usize> = peaks.iter().map(|peak| peak.1).collect();
    measure_chosen(sampler, &chosen)?;
    Ok(peaks)
}

/// From scratch: the runs that selected the points are biased by luck. More runs come later, as
/// consecutive runs sample the target at one time.
pub(crate) fn measure_chosen<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    chosen: &[usize],
) -> Result<()> {
    sampler.weigh(chosen, CHOSEN_WEIGHT);
    if sampler.noisy && sampler.machine.now() < sampler.at(CHOICE_SHARE) {
        sampler.begin_again(chosen);
        sampler.rounds(chosen, MIN_RUNS, Nanos::MAX)?;
    }
    Ok(())
}

/// Operations whose peak moved. A trial that gains does not count: the limit reports it.
pub(crate) fn highest(
    entries: &[Entry],
    setting: &StudyContext,
    peaks: &mut [(OpKind, usize)],
    bursts: &[(OpKind, Burst)],
    cases: &[Case],
) -> Vec<OpKind> {
    let mut moved = Vec::new();
    for (op, peak) in peaks {
        let burst = bursts.iter().find(|one| one.0 == *op).map(|one| one.1);
        let best = entries[*peak].point();
        let rate = |index: usize| entries[index].point().rate().unwrap_or(0.0);
        let width = best.numbers.as_ref().and_then(|numbers| numbers.relative_half_width);
        let unknown = width.is_some_and(|width| width > UNKNOWN);
        let of_peak = cases.iter().filter(|case| case.of == LimitOf::Peak && case.base == *peak);
        let gains = |case: &Case| -> Vec<usize> {
            let gains = |variant| case.ratio(variant, entries).is_some_and(|one| one.low > 1.0);
            case.trials.iter().filter(|one| gains(one.0)).map(|one| one.1).collect()
        };
        let tried: Vec<usize> = of_peak.flat_map(gains).collect();
        let above = |index: &usize| {
            let entry = &entries[*index];
            if tried.contains(index) {
                return false;
            }
            let faster = is_above(entry.point(), best, burst, &setting.facts);
            // A plain program gets at most the peak, however near the two are.
            let plain = PLAIN_BYTES.iter().any(|&bytes| is_plain(entry, *op, bytes, setting))
                && entry.point().measures_target(&setting.facts)
                && entry.point().is_settled(&setting.facts)
                && rate(*index) > rate(*peak);
            // Of a peak that is hardly known, a rate surely above it is the better one.
            let numbers = entry.point().numbers.as_ref();
            let low = numbers.and_then(|numbers| numbers.interval_95).map(|[low, _]| low);
            let surer = unknown
                && entry.point().measures_target(&setting.facts)
                && entry.point().is_settled(&setting.facts)
                && entry.workload.op() == *op
                && low.is_some_and(|low| low > rate(*peak));
            faster || plain || surer
        };
        let found = (0..entries.len()).filter(above).max_by(|&a, &b| rate(a).total_cmp(&rate(b)));
        if let Some(index) = found {
            *peak = index;
            moved.push(*op);
        }
    }
    moved
}

pub(crate) fn candidates<M: Machine>(
    sampler: &Sampler<'_, M>,
    setting: &StudyContext,
    trials: &[Trial],
    op: OpKind,
) -> Vec<usize> {
    let cells = trials.iter().flat_map(|trial| &trial.grid.cells);
    let drawn: BTreeSet<usize> = cells.filter_map(|cell| cell.point).collect();
    let mut rated: Vec<(usize, f64)> = drawn
        .into_iter()
        .filter(|&index| stands_for(&sampler.entries[index], op, setting, sampler.bursty))
        .filter_map(|index| Some((index, sampler.entries[index].point().rate()?)))
        .collect();
    rated.sort_by(|a, b| b.1.total_cmp(&a.1));
    rated.into_iter().map(|(index, _)| index).collect()
}

fn longer<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    index: usize,
    setting: &StudyContext,
    plan: &Plan,
) -> usize {
    let entry = &sampler.entries[index];
    let round = entry.samples().last().map_or(0.0, |sample| sample.mean_service_ns);
    let in_bursts = entry.in_bursts;
    // A throttle's bursts only average out over a long run; otherwise more runs beat a longer one.
    let times = if in_bursts { 2.0 } else { 1.0 };
    let longest =
        (plan.budget_ns as f64 * 0.0035 * times).clamp(setting.run_ns as f64, LONGEST_CONFIRM_NS);
    let wanted = (plan.budget_ns as f64 * 0.002 * times).max(round * ROUNDS_TO_CONFIRM * times);
    let wanted = wanted.max(setting.run_ns as f64);
    let run = (wanted.min(longest) as Nanos).next_multiple_of(THROTTLE_SLICE_NS);
    let (workload, shape) =
        (Workload { stop: Stop::AfterNs(run), ..entry.workload.clone() }, entry.shape.clone());
    let index = sampler.push(workload, shape);
    let ramp = ((round * 2.0) as Nanos).min(run);
    let entry = &mut sampler.entries[index];
    entry.in_bursts = in_bursts;
    entry.ramp_ns = if in_bursts { ramp } else { ramp.max(THROTTLE_SLICE_NS / 2) };
    index
}
