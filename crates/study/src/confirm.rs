//! The best rates, measured again.

use crate::bench::Bench;
use crate::design::{Setting, Way};
use crate::draw::Laid;
use crate::plan::Plan;
use machine::{Machine, Nanos, Result};
use measure::THROTTLE_SLICE_NS;
use std::collections::BTreeSet;
use workload::{Stop, Workload};

/// Share of the budget at which the answer should stand.
const CONFIRM_SHARE: f64 = 0.96;

/// A run that confirms a peak holds at least so many rounds of requests.
const ROUNDS_TO_CONFIRM: f64 = 50.0;

/// Longest run that confirms a peak.
const LONGEST_CONFIRM_NS: f64 = 2.5e9;

/// The best rates, measured again in longer runs: the best of many noisy figures is too good to be true.
pub(crate) fn confirm<M: Machine>(bench: &mut Bench<'_, M>, setting: &Setting, laid: &[Laid], plan: &Plan) -> Result<Vec<(Way, usize)>> {
    // What the page cache serves or takes is no rate of the target, unless the target lives there.
    let from_cache =
        |workload: &Workload, way: Way| !setting.facts.in_memory && (workload.cache != machine::CacheState::Cold || way == Way::Write);
    let mut confirmed: Vec<(Way, Vec<usize>)> = Vec::new();
    let drawn: BTreeSet<usize> = laid.iter().flat_map(|one| one.places.iter().flatten().copied()).collect();
    for way in setting.ways() {
        let mut candidates: Vec<(usize, f64)> = drawn
            .iter()
            .filter_map(|&place| {
                let entry = &bench.entries[place];
                let whole = entry.shape.as_ref().is_none_or(|shape| shape.members.len() as u32 == setting.members);
                let fits = entry.workload.read_percent == way.read_percent()
                    && entry.workload.allocation == machine::Allocation::Written
                    && entry.workload.region_bytes.is_none()
                    && entry.workload.limit_bytes.is_none();
                let cached = !entry.workload.buffering.is_direct() && (setting.direct() || from_cache(&entry.workload, way));
                let rate = entry.point().rate()?;
                // Where requests are admitted in bursts, only runs of whole bursts tell a rate.
                let told = !bench.bursty || entry.in_bursts || setting.facts.in_memory;
                (whole && fits && !cached && told).then_some((place, rate))
            })
            .collect();
        candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
        let chosen: Vec<usize> = if bench.noisy {
            candidates.iter().take(if bench.bursty { 1 } else { 2 }).map(|&(place, _)| confirming(bench, place, setting, plan)).collect()
        } else {
            candidates.iter().take(1).map(|&(place, _)| place).collect()
        };
        confirmed.push((way, chosen));
    }
    let all: Vec<usize> = confirmed.iter().flat_map(|(_, places)| places.iter().copied()).collect();
    // The answer stands on these: three runs each, even where the time is up.
    bench.rounds(&all, 3, Nanos::MAX)?;
    bench.tighten(&all, bench.at(CONFIRM_SHARE))?;
    let best = |places: &[usize]| {
        places.iter().copied().filter_map(|place| Some((place, bench.entries[place].point().rate()?))).max_by(|a, b| a.1.total_cmp(&b.1))
    };
    Ok(confirmed.iter().filter_map(|(way, places)| Some((*way, best(places)?.0))).collect())
}

/// Puts an entry on the bench again, to be run longer, from a steady state to a steady state.
fn confirming<M: Machine>(bench: &mut Bench<'_, M>, place: usize, setting: &Setting, plan: &Plan) -> usize {
    let entry = &bench.entries[place];
    let round = entry.samples.last().map_or(0.0, |sample| sample.mean_service_ns);
    let in_bursts = entry.in_bursts;
    let longest = (plan.budget_ns as f64 * 0.02).clamp(setting.run_ns as f64, LONGEST_CONFIRM_NS);
    let wanted = (plan.budget_ns as f64 * 0.006).max(setting.run_ns as f64).max(round * ROUNDS_TO_CONFIRM);
    let run = (wanted.min(longest) as Nanos).next_multiple_of(THROTTLE_SLICE_NS);
    let (workload, shape) = (Workload { stop: Stop::AfterNs(run), ..entry.workload.clone() }, entry.shape.clone());
    let place = bench.push(workload, shape);
    let ramp = ((round * 2.0) as Nanos).min(run);
    let entry = &mut bench.entries[place];
    entry.in_bursts = in_bursts;
    entry.ramp_ns = if in_bursts { ramp } else { ramp.max(THROTTLE_SLICE_NS / 2) };
    place
}
