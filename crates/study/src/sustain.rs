//! A peak that a cache or a burst credit serves is measured again after the burst.

use crate::case::SAME;
use crate::context::StudyContext;
use crate::sampler::{Entry, Sampler};
use crate::trial::best_random;
use crate::verdict;
use machine::{Machine, Nanos, Result};
use measure::Sample;
use measure::stats::Verdict;
use results::{Burst, FELL, RandomBurst};
use workload::{OpKind, Stop, Workload};

/// Writes this many times as fast as random reads were sorted in the disk's cache: both need the
/// same seeks.
pub(crate) const TOO_FAST: f64 = 5.0;

/// Each attempt to see the end of a burst is this much longer.
const LONGER: u64 = 4;

const ATTEMPTS: u32 = 5;

const SUSTAIN_SHARE: f64 = 0.61;

const RUNS: u32 = 3;

/// The share of a run, after a burst, that shows the lasting rate.
const LASTING: f64 = 0.3;

pub(crate) fn sustain<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    peaks: &mut [(OpKind, usize)],
) -> Result<Vec<(OpKind, Burst)>> {
    let mut bursts = Vec::new();
    // A throttle's bursts are shorter than its runs, and memory has none.
    if sampler.bursty || setting.facts.in_memory {
        return Ok(bursts);
    }
    for (op, peak) in peaks {
        if is_burst(&sampler.entries[*peak], setting, *op)
            && let Some((burst, lasting)) = beyond(sampler, *peak)?
        {
            bursts.push((*op, burst));
            *peak = lasting;
        }
    }
    Ok(bursts)
}

pub(crate) fn sustain_random<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
) -> Result<Vec<RandomBurst>> {
    let mut bursts = Vec::new();
    if sampler.bursty || setting.facts.in_memory {
        return Ok(bursts);
    }
    let iops = |sampler: &Sampler<'_, M>, index: usize| {
        let point = sampler.entries[index].point();
        point.numbers.as_ref().map_or(0.0, |numbers| numbers.iops)
    };
    let reads = best_random(sampler, setting, OpKind::Read, |_| true);
    let reads = reads.map_or(f64::INFINITY, |index| iops(sampler, index));
    for op in setting.ops() {
        let best = best_random(sampler, setting, op, |_| true);
        let single = best_random(sampler, setting, op, |workload| workload.outstanding() == 1);
        for index in best.into_iter().chain(single.filter(|&single| Some(single) != best)) {
            let cached = op == OpKind::Write
                && setting.facts.is_rotating()
                && iops(sampler, index) > reads * TOO_FAST;
            if !cached && !is_burst(&sampler.entries[index], setting, op) {
                continue;
            }
            let outstanding = sampler.entries[index].workload.outstanding();
            bursts.extend(beyond(sampler, index)?.map(|(burst, point)| RandomBurst {
                op,
                outstanding,
                point,
                burst,
            }));
        }
    }
    Ok(bursts)
}

fn is_burst(entry: &Entry, setting: &StudyContext, op: OpKind) -> bool {
    let cap = verdict::advertised(&setting.facts, op).map(|one| one.throughput_bytes_per_s);
    let above = cap.zip(entry.point().rate()).is_some_and(|(cap, rate)| rate > cap * (1.0 + SAME));
    let fell = |sample: &Sample| matches!(sample.verdict, Verdict::BurstExhausted { before, after, .. } if after < before * FELL);
    above || entry.samples().iter().any(fell)
}

fn beyond<M: Machine>(sampler: &mut Sampler<'_, M>, peak: usize) -> Result<Option<(Burst, usize)>> {
    let entry = &sampler.entries[peak];
    let (workload, shape) = (entry.workload.clone(), entry.shape.clone());
    let Stop::AfterNs(first) = workload.stop else { return Ok(None) };
    let mut run = first;
    for _ in 0..ATTEMPTS {
        run = run.saturating_mul(LONGER);
        let needs = run.saturating_mul(u64::from(RUNS) + 1);
        if sampler.noisy && sampler.machine.now().saturating_add(needs) > sampler.at(SUSTAIN_SHARE)
        {
            return Ok(None);
        }
        let of_length = |ns: Nanos| Workload { stop: Stop::AfterNs(ns), ..workload.clone() };
        let long = sampler.push(of_length(run), shape.clone());
        sampler.rounds(&[long], 1, Nanos::MAX)?;
        let bytes = f64::from(workload.request_bytes);
        let Some(fall) = sampler.entries[long].samples().first().and_then(fall) else { continue };
        // The end of the burst moves a little from run to run.
        let ramp_ns = fall.length_ns / 4 * 5;
        let lasting = sampler.push(of_length(first.max(fall.length_ns)), shape);
        sampler.entries[lasting].ramp_ns = ramp_ns;
        sampler.rounds(&[lasting], RUNS, Nanos::MAX)?;
        let burst = Burst {
            throughput_bytes_per_s: fall.iops * bytes,
            length_s: fall.length_ns as f64 / 1e9,
            point: long,
        };
        let slower = sampler.entries[lasting].point().rate();
        let fell = slower.is_some_and(|rate| rate < burst.throughput_bytes_per_s * FELL);
        return Ok(fell.then_some((burst, lasting)));
    }
    Ok(None)
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Fall {
    /// Before the fall.
    iops: f64,
    length_ns: Nanos,
}

fn fall(sample: &Sample) -> Option<Fall> {
    let rates: Vec<f64> = sample.warm_up_rates.iter().chain(&sample.slice_rates).copied().collect();
    let whole: f64 = rates.iter().sum();
    let (mut before, mut best) = (0.0, None::<(f64, usize, [f64; 2])>);
    for at in 1..rates.len() {
        before += rates[at - 1];
        let [head, tail] = [before / at as f64, (whole - before) / (rates.len() - at) as f64];
        // The squares that a step explains.
        let explained = head * before + tail * (whole - before);
        if best.is_none_or(|known| explained > known.0) {
            best = Some((explained, at, [head, tail]));
        }
    }
    let (_, at, [head, tail]) = best?;
    let follows = (rates.len() - at) as f64 >= rates.len() as f64 * LASTING;
    (tail < head * FELL && follows)
        .then(|| Fall { iops: head, length_ns: at as u64 * sample.slice_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::run;

    #[test]
    fn a_step_down_is_the_end_of_a_burst() {
        let with = |rates: Vec<f64>| {
            let slice_ns = 10_000_000;
            fall(&Sample { slice_rates: rates, slice_ns, ..run(&Workload::default(), 100.0) })
        };
        let step = |burst: usize| {
            (0..100).map(|at| if at < burst { 200.0 } else { 100.0 }).collect::<Vec<f64>>()
        };
        assert_eq!(with(step(40)), Some(Fall { iops: 200.0, length_ns: 400_000_000 }));
        assert_eq!(with(step(90)), None, "too little follows to show the rate that lasts");
        assert_eq!(with(step(0)), None);
        assert_eq!(with(step(40).into_iter().rev().collect()), None, "a warm-up is not a burst");
        assert_eq!(with(vec![1.0]), None);
    }
}
