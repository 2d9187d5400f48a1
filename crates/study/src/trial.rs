//! Single changes to a workload that distinguish between bottlenecks.

use crate::case::{Case, GAIN, Variant};
use crate::confirm::{MIN_RUNS, measure_chosen};
use crate::context::StudyContext;
use crate::other_target::try_other_target;
use crate::ratios::ratio;
use crate::roles::{PLAIN_BYTES, is_plain, stands_for};
use crate::sampler::{Entry, Sampler};
use machine::{LayerKind, Machine, Nanos, Result, TargetKind, TargetSpec};
use results::{LimitOf, RandomBurst};
use workload::{OpKind, Pattern, Stop, Workload};

const TRIALS_SHARE: f64 = 0.70;

/// Ends the search for a deeper peak.
const CLIMB_SHARE: f64 = 0.64;

const CLIMBS: u32 = 3;

/// Of a trial, before the remaining time is divided.
const RUNS: u32 = 4;

const UNDECIDED_WEIGHT: f64 = 3.0;

fn cases<M: Machine>(
    sampler: &Sampler<'_, M>,
    setting: &StudyContext,
    peaks: &[(OpKind, usize)],
    random_bursts: &[RandomBurst],
) -> Vec<Case> {
    let case = |of, op, base| Case { of, op, base, trials: Vec::new(), other_target: None };
    let mut all: Vec<Case> =
        peaks.iter().map(|&(op, base)| case(LimitOf::Peak, op, base)).collect();
    let measured: Vec<(usize, &Entry)> = sampler
        .entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.point().rate().is_some())
        .collect();
    for op in setting.ops() {
        for bytes in PLAIN_BYTES {
            let plain = measured.iter().find(|(_, entry)| is_plain(entry, op, bytes, setting));
            all.extend(plain.map(|&(base, _)| case(LimitOf::Plain, op, base)));
        }
    }
    for op in setting.ops() {
        let lasting = random_bursts.iter().find(|one| one.op == op).map(|one| one.point);
        let best = lasting.or_else(|| best_random(sampler, setting, op, |_| true));
        all.extend(best.map(|base| case(LimitOf::Random, op, base)));
    }
    all
}

pub(crate) fn best_random<M: Machine>(
    sampler: &Sampler<'_, M>,
    setting: &StudyContext,
    op: OpKind,
    wanted: impl Fn(&Workload) -> bool,
) -> Option<usize> {
    let small = 4096.max(setting.facts.direct_align_bytes);
    let random = sampler.entries.iter().enumerate().filter(|(_, entry)| {
        let workload = &entry.workload;
        workload.pattern == Pattern::Random
            && workload.request_bytes == small
            && !workload.engine.is_mapped()
            && stands_for(entry, op, setting, sampler.bursty)
            && wanted(workload)
    });
    let rated = random.filter_map(|(index, entry)| Some((index, entry.point().rate()?)));
    rated.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index)
}

fn changed<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    base: usize,
    variant: Variant,
) -> Option<usize> {
    let base = &sampler.entries[base];
    let workload = variant.of(&base.workload, setting)?;
    if !matches!(workload.stop, Stop::AfterNs(_)) || !fits(&workload, setting) {
        return None;
    }
    let (shape, in_bursts, ramp_ns) = (base.shape.clone(), base.in_bursts, base.ramp_ns);
    let same =
        |one: &Entry| one.workload == workload && one.shape == shape && one.ramp_ns == ramp_ns;
    let known = sampler.entries.iter().position(same);
    Some(known.unwrap_or_else(|| {
        let index = sampler.push(workload, shape);
        let entry = &mut sampler.entries[index];
        (entry.in_bursts, entry.ramp_ns) = (in_bursts, ramp_ns);
        index
    }))
}

pub(crate) fn climb<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    peaks: &mut [(OpKind, usize)],
) -> Result<()> {
    if !sampler.noisy {
        return Ok(());
    }
    let mut open: Vec<usize> = (0..peaks.len()).collect();
    for _ in 0..CLIMBS {
        let mut tried = Vec::new();
        for number in open {
            let deeper = changed(sampler, setting, peaks[number].1, Variant::Deeper);
            tried.extend(deeper.map(|deeper| (number, deeper)));
        }
        // A peak without one of these runs has no verdict, so they may overrun a short budget.
        let deeper: Vec<usize> = tried.iter().map(|one| one.1).collect();
        sampler.rounds(&deeper, 1, Nanos::MAX)?;
        let until = sampler.at(CLIMB_SHARE);
        for runs in 2..=MIN_RUNS {
            let bases: Vec<usize> = tried.iter().map(|one| peaks[one.0].1).collect();
            sampler.again(&bases, until)?;
            sampler.rounds(&deeper, runs, until)?;
        }
        sampler.learn_spread();
        let faster = |&(number, deeper): &(usize, usize)| {
            let ratio = ratio(&sampler.entries[peaks[number].1], &sampler.entries[deeper]);
            ratio.is_some_and(|ratio| ratio.mean >= GAIN && ratio.low > 1.0)
        };
        tried.retain(faster);
        if tried.is_empty() || sampler.machine.now() >= until {
            return Ok(());
        }
        for &(number, deeper) in &tried {
            sampler.weigh_no_more(peaks[number].1);
            peaks[number].1 = deeper;
        }
        let chosen: Vec<usize> = tried.iter().map(|one| one.1).collect();
        measure_chosen(sampler, &chosen)?;
        open = tried.into_iter().map(|one| one.0).collect();
    }
    Ok(())
}

pub(crate) fn investigate<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    spec: &TargetSpec,
    peaks: &[(OpKind, usize)],
    random_bursts: &[RandomBurst],
) -> Result<Vec<Case>> {
    let mut cases = cases(sampler, setting, peaks, random_bursts);
    for case in &mut cases {
        for variant in [Variant::Deeper, Variant::Wider, Variant::Resized, Variant::Hinted] {
            if variant == Variant::Resized && case.of == LimitOf::Plain {
                continue;
            }
            if variant == Variant::Hinted && !obeys_hints(setting) {
                continue;
            }
            case.trials.extend(
                changed(sampler, setting, case.base, variant).map(|index| (variant, index)),
            );
        }
    }
    // One run of each in turn, so all have the same number when time runs out.
    let until = sampler.at(TRIALS_SHARE);
    // Plain writes last: their phases explain most of it, and their flush makes runs longer.
    for (of, writes) in [
        (LimitOf::Peak, true),
        (LimitOf::Plain, false),
        (LimitOf::Random, true),
        (LimitOf::Plain, true),
    ] {
        let of_kind =
            cases.iter().filter(|case| case.of == of && (writes || case.op != OpKind::Write));
        let indices: Vec<usize> =
            of_kind.flat_map(|case| &case.trials).map(|(_, index)| *index).collect();
        sampler.rounds(&indices, 1, until)?;
    }
    for case in &cases {
        // A throttle is reported by the system, and an extra run through it would use up the next
        // one's burst credit.
        if !sampler.bursty && sampler.machine.now() < sampler.at(1.0) {
            sampler.trace(case.base)?;
        }
    }
    let on_files =
        setting.facts.layers.first().is_some_and(|layer| layer.kind == LayerKind::FileSystem);
    for case in cases.iter_mut().filter(|case| case.of == LimitOf::Peak && on_files) {
        case.other_target = try_other_target(sampler, setting, spec, (case.op, case.base), until)?;
    }
    for runs in 2..=RUNS {
        sampler.learn_spread();
        let undecided: Vec<usize> =
            cases.iter().flat_map(|case| case.undecided(&sampler.entries)).collect();
        if !undecided.is_empty() {
            let bases: Vec<usize> = peaks.iter().map(|peak| peak.1).collect();
            sampler.again(&bases, until)?;
        }
        sampler.rounds(&undecided, runs, until)?;
        sampler.weigh(&undecided, UNDECIDED_WEIGHT);
    }
    Ok(cases)
}

/// Keeps existing trials; with `measure` the others run once.
pub(crate) fn investigate_peak<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    (op, base): (OpKind, usize),
    measure: bool,
) -> Result<Case> {
    let mut trials = Vec::new();
    for variant in [Variant::Deeper, Variant::Wider, Variant::Resized] {
        trials.extend(changed(sampler, setting, base, variant).map(|index| (variant, index)));
    }
    if measure {
        let indices: Vec<usize> = trials.iter().map(|one| one.1).collect();
        sampler.rounds(&indices, 1, sampler.at(1.0))?;
    }
    Ok(Case { of: LimitOf::Peak, op, base, trials, other_target: None })
}

fn obeys_hints(setting: &StudyContext) -> bool {
    setting.facts.kind != TargetKind::Simulated
        || setting.facts.layers.iter().any(|layer| layer.facts.follows_hints)
}

fn fits(workload: &Workload, setting: &StudyContext) -> bool {
    let align = if workload.buffering.is_direct() { setting.facts.direct_align_bytes } else { 1 };
    workload.check(setting.facts.size_bytes, align).is_ok()
}
