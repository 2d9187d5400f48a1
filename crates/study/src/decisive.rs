//! Points that decide the answer deserve more runs.

use crate::context::StudyContext;
use crate::experiments::Trial;
use crate::figures;
use crate::roles::{PLAIN_BYTES, is_plain, stands_for};
use crate::sampler::Sampler;
use machine::Machine;
use std::collections::BTreeSet;
use workload::Pattern;

/// Per operation: each may turn out to be the peak.
const CANDIDATES: usize = 3;

const AROUND: usize = 2;

/// Every entry must have been run.
pub(crate) fn decisive<M: Machine>(
    sampler: &Sampler<'_, M>,
    setting: &StudyContext,
    trials: &[Trial],
) -> Vec<usize> {
    let mut chosen = BTreeSet::new();
    let rated: Vec<(usize, f64)> = (0..sampler.entries.len())
        .filter_map(|index| Some((index, sampler.entries[index].point().rate()?)))
        .collect();
    for op in setting.ops() {
        for random in [false, true] {
            let mut candidates: Vec<(usize, f64)> = rated
                .iter()
                .copied()
                .filter(|&(index, _)| {
                    let entry = &sampler.entries[index];
                    let small =
                        entry.workload.request_bytes == 4096.max(setting.facts.direct_align_bytes);
                    let kind = (entry.workload.pattern == Pattern::Random && small) == random;
                    kind && stands_for(entry, op, setting, sampler.bursty)
                })
                .collect();
            candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
            chosen.extend(candidates.into_iter().take(CANDIDATES).map(|(index, _)| index));
        }
        let plain = rated.iter().map(|&(index, _)| index).filter(|&index| {
            PLAIN_BYTES.iter().any(|&bytes| is_plain(&sampler.entries[index], op, bytes, setting))
        });
        chosen.extend(plain);
    }
    let points = sampler.points();
    let figures = trials
        .iter()
        .filter(|trial| trial.experiment.refines)
        .flat_map(|trial| figures::draw(trial, &points));
    for series in figures.flat_map(|figure| figure.series) {
        let half = series.half_power.as_ref().filter(|half| !half.at_or_below);
        let Some(smallest) = half.and_then(|half| half.smallest) else { continue };
        let below = series.values.iter().rev().filter(|value| value.x < smallest).take(AROUND);
        let above = series.values.iter().filter(|value| value.x >= smallest).take(AROUND);
        chosen.extend(below.chain(above).filter_map(|value| value.point));
    }
    chosen.into_iter().collect()
}
