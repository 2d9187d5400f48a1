//! Where another run decides something: the points on which the answer hangs.

use crate::confirm::{candidates, stands_for};
use crate::crossings;
use crate::figures;
use crate::plan::Plan;
use crate::sampler::Sampler;
use crate::schedule::Trial;
use crate::setting::Setting;
use crate::trial::{PLAIN_BYTES, is_plain};
use machine::Machine;
use std::collections::BTreeSet;
use workload::{OpKind, Pattern};

/// Half widths of intervals at which a peak, a size beside half of it, and another rate of the answer are settled.
pub(crate) const PEAK_GOAL: f64 = 0.05;
const HALF_GOAL: f64 = 0.06;
const RATE_GOAL: f64 = 0.10;

/// Who may beat the leader by no more than this share is no rival: the rate is the same.
const RIVAL_GOAL: f64 = 0.08;

/// How much a curve of deeper requests matters beside that of single ones.
const DEEP_WEIGHT: f64 = 0.5;

/// The best points of an operation that may turn out to be its peak.
const CANDIDATES: usize = 3;

/// The candidates for each peak and for the best of small random requests, what a plain program gets, and the two points around each
/// half-power point. Each of them has to have been run.
pub(crate) fn decisive<M: Machine>(sampler: &Sampler<'_, M>, setting: &Setting, trials: &[Trial]) -> Vec<usize> {
    let mut chosen = BTreeSet::new();
    let rated: Vec<(usize, f64)> =
        (0..sampler.entries.len()).filter_map(|index| Some((index, sampler.entries[index].point().rate()?))).collect();
    for op in setting.ops() {
        for random in [false, true] {
            let mut candidates: Vec<(usize, f64)> = rated
                .iter()
                .copied()
                .filter(|&(index, _)| {
                    let entry = &sampler.entries[index];
                    let small = entry.workload.request_bytes == 4096.max(setting.facts.direct_align_bytes);
                    let kind = (entry.workload.pattern == Pattern::Random && small) == random;
                    kind && stands_for(entry, op, setting, sampler.bursty)
                })
                .collect();
            candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
            chosen.extend(candidates.into_iter().take(CANDIDATES).map(|(index, _)| index));
        }
        let plain = rated
            .iter()
            .map(|&(index, _)| index)
            .filter(|&index| PLAIN_BYTES.iter().any(|&bytes| is_plain(&sampler.entries[index], op, bytes, setting)));
        chosen.extend(plain);
    }
    let points = sampler.points();
    let figures =
        trials.iter().filter(|trial| trial.experiment.refines).flat_map(|trial| figures::draw(trial, &points));
    for series in figures.flat_map(|figure| figure.series) {
        let half = series.half_power.as_ref().filter(|half| !half.at_or_below);
        let Some(smallest) = half.and_then(|half| half.smallest) else { continue };
        let below = series.values.iter().rfind(|value| value.x < smallest);
        let at = series.values.iter().find(|value| value.x == smallest);
        chosen.extend(below.into_iter().chain(at).filter_map(|value| value.point));
    }
    chosen.into_iter().collect()
}

/// What the answer hangs on beside the peaks, with what its interval is too wide by: the sizes around half of each peak, the best small random
/// requests, what a plain program gets. `peaks` are the entries of the best rates.
pub(crate) fn stakes<M: Machine>(
    sampler: &Sampler<'_, M>,
    setting: &Setting,
    trials: &[Trial],
    plan: &Plan,
    peaks: &[(OpKind, usize)],
) -> Vec<(usize, f64)> {
    let width = |index: usize| sampler.entries[index].half_width();
    let beside = crossings::neighbours(sampler, setting, trials, plan, peaks);
    let mut stakes: Vec<(usize, f64)> = Vec::new();
    for index in beside {
        let single = sampler.entries[index].workload.depth == 1;
        stakes.push((index, (width(index) - HALF_GOAL) * if single { 1.0 } else { DEEP_WEIGHT }));
    }
    for op in setting.ops() {
        let small = 4096.max(setting.facts.direct_align_bytes);
        let random = candidates(sampler, setting, trials, op).into_iter().find(|&index| {
            let workload = &sampler.entries[index].workload;
            workload.pattern == Pattern::Random && workload.request_bytes == small
        });
        let plain = (0..sampler.entries.len()).filter(|&index| {
            let entry = &sampler.entries[index];
            entry.reached() && PLAIN_BYTES.iter().any(|&bytes| is_plain(entry, op, bytes, setting))
        });
        stakes.extend(random.into_iter().chain(plain).map(|index| (index, width(index) - RATE_GOAL)));
    }
    stakes
}

/// The entries that may still be better than the best of an operation, itself too, with what they may be better by.
pub(crate) fn rivals<M: Machine>(
    sampler: &Sampler<'_, M>,
    setting: &Setting,
    trials: &[Trial],
    op: OpKind,
    best: usize,
) -> Vec<(usize, f64)> {
    let rate = |index: usize| sampler.entries[index].point().rate().unwrap_or(0.0);
    let most = rate(best) * (1.0 + RIVAL_GOAL);
    let may_gain = |index: usize| rate(index) * (1.0 + sampler.entries[index].half_width().min(2.0)) / most - 1.0;
    candidates(sampler, setting, trials, op).into_iter().map(|index| (index, may_gain(index))).collect()
}
