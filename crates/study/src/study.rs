//! The study: probe, measure, refine, confirm, answer.

use crate::answer;
use crate::case::Case;
use crate::command::Command;
use crate::confirm::{BestRates, confirm, highest};
use crate::context::StudyContext;
use crate::crossings;
use crate::experiments::{ALL, Trial};
use crate::found::{Found, PeakRates};
use crate::long_writes::{Seen, long_writes};
use crate::plan::Plan;
use crate::probe::probe;
use crate::sampler::{Entry, Progress, Sampler};
use crate::schedule;
use crate::sustain::{sustain, sustain_random};
use crate::trial::{climb, investigate, investigate_peak};
use machine::{Error, Machine, MemoryUse, Nanos, Result, TargetSpec};
use measure::Runner;
use results::{Answer, Began, Burst, Kind, LimitOf, Program, RandomBurst, Results};
use workload::OpKind;

const FILL_SHARE: f64 = 0.10;

const MEMORY_SHARE: f64 = 0.02;

/// An interrupt before the first point is an error; a later one ends the study without an answer.
/// Failures after the target was opened become failed points or skipped experiments.
pub fn study<M: Machine>(
    machine: &M,
    spec: &TargetSpec,
    plan: &Plan,
    program: Program,
    on_progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Results> {
    let (began, started) = (machine.now(), Began::now(machine));
    on_progress(Progress {
        doing: "making the test file",
        passed_ns: 0,
        budget_ns: plan.budget_ns,
    });
    let spec =
        TargetSpec { fill_ns: Some((plan.budget_ns as f64 * FILL_SHARE) as Nanos), ..spec.clone() };
    // Its workloads depend on what the probe finds.
    let mut runner =
        Runner::open_checked(machine, std::slice::from_ref(&spec), |_| Ok(Vec::new()))?;
    let mut sampler =
        Sampler::new(machine, runner.target_mut(0), began, plan.budget_ns, plan.seed, on_progress);
    let mut memory = Ok(Vec::new());
    if ALL.iter().any(|experiment| experiment.needs_memory && plan.wants(experiment.id)) {
        sampler.report("memory");
        memory = match machine.memory((plan.budget_ns as f64 * MEMORY_SHARE) as Nanos) {
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            measured => measured.map_err(|error| error.to_string()),
        };
    }
    let measured = measure(&mut sampler, &spec, plan, &memory);
    let interrupted = matches!(measured, Err(Error::Interrupted));
    if interrupted && sampler.entries.iter().any(Entry::reached) {
        sampler.drop_unreached();
        let facts = machine.target_facts(sampler.target);
        let results = Results::new(machine, Kind::Study, program, started, facts, plan.seed);
        let budget_ns = sampler.noisy.then_some(plan.budget_ns);
        return Ok(Results { budget_ns, points: sampler.points(), ..results }.interrupted(None));
    }
    let Measurements {
        setting,
        mut trials,
        peaks,
        mut bursts,
        mut random_bursts,
        cases,
        long_writes,
    } = measured?;
    let left_out = answer::left_out(&sampler, &trials);
    let indices = answer::keep_reached(&mut sampler, &mut trials);
    let peaks: Vec<_> =
        peaks.into_iter().filter_map(|(op, point)| Some((op, indices[point]?))).collect();
    bursts.iter_mut().for_each(|(_, burst)| {
        burst.point = indices[burst.point].expect("the run that showed the burst is kept");
    });
    random_bursts.retain_mut(|one| {
        let kept = indices[one.point].zip(indices[one.burst.point]);
        if let Some((lasting, burst)) = kept {
            (one.point, one.burst.point) = (lasting, burst);
        }
        kept.is_some()
    });
    let cases: Vec<_> = cases.into_iter().filter_map(|case| case.renumbered(&indices)).collect();
    let points = sampler.points();
    let found = Found {
        setting: &setting,
        grids: trials.iter().map(|trial| &trial.grid).collect(),
        entries: &sampler.entries,
        points: &points,
        measured: PeakRates::default(),
        advertised: PeakRates::default(),
        memory: &memory,
        long_writes: &long_writes,
    };
    let facts = setting.facts.clone();
    let mut warnings = facts.warnings.clone();
    if sampler.noisy {
        warnings.extend(setting.deep_engine().fallback(&setting.engines));
    }
    let command = Command::new(&spec, &facts);
    let (experiments, answer, ladder) = answer::answer(
        found,
        &trials,
        &BestRates { peaks: &peaks, bursts: &bursts, random_bursts: &random_bursts },
        &cases,
        &machine.facts(),
        &command,
        sampler.noisy,
    );
    Ok(Results {
        budget_ns: sampler.noisy.then_some(plan.budget_ns),
        experiments,
        points,
        answer: Some(Answer { left_out, ..answer }),
        ladder: Some(ladder),
        scaling: hosts::scalings(&sampler.points()),
        warnings,
        ..Results::new(machine, Kind::Study, program, started, facts, plan.seed)
    })
}

struct Measurements {
    setting: StudyContext,
    trials: Vec<Trial>,
    peaks: Vec<(OpKind, usize)>,
    bursts: Vec<(OpKind, Burst)>,
    random_bursts: Vec<RandomBurst>,
    cases: Vec<Case>,
    long_writes: Seen,
}

fn measure<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    spec: &TargetSpec,
    plan: &Plan,
    memory: &std::result::Result<Vec<MemoryUse>, String>,
) -> Result<Measurements> {
    let mut setting = probe(sampler, plan)?;
    let mut trials = schedule::measure(sampler, &mut setting, plan)?;
    let mut peaks = confirm(sampler, &setting, &trials, plan)?;
    climb(sampler, &setting, &mut peaks)?;
    let mut bursts = sustain(sampler, &setting, &mut peaks)?;
    let random_bursts = sustain_random(sampler, &setting)?;
    crossings::bracket(sampler, &setting, &mut trials, plan, &peaks)?;
    let cases = investigate(sampler, &setting, spec, &peaks, &random_bursts)?;
    schedule::settle(sampler, &setting, &mut trials, plan, &peaks, memory)?;
    let mut cases = settle_peaks(sampler, &setting, &mut peaks, &mut bursts, cases)?;
    for _ in 0..MOVES {
        // Half of another peak, or of a better known curve, may be at another size.
        let before = sampler.runs();
        crossings::bracket(sampler, &setting, &mut trials, plan, &peaks)?;
        if sampler.runs() == before {
            break;
        }
        cases = settle_peaks(sampler, &setting, &mut peaks, &mut bursts, cases)?;
    }
    let long_writes = if plan.wants("long_writes") {
        long_writes(sampler, &setting, &peaks)?
    } else {
        Err("not selected (--only)".into())
    };
    Ok(Measurements { setting, trials, peaks, bursts, random_bursts, cases, long_writes })
}

const MOVES: u32 = 3;

fn settle_peaks<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    peaks: &mut [(OpKind, usize)],
    bursts: &mut Vec<(OpKind, Burst)>,
    mut cases: Vec<Case>,
) -> Result<Vec<Case>> {
    for last in (0..=MOVES).map(|number| number == MOVES) {
        sampler.unite_visits();
        let moved = highest(&sampler.entries, setting, peaks, bursts, &cases);
        if moved.is_empty() {
            break;
        }
        // A rate above the burst's is no longer what remains after it.
        bursts.retain(|(op, burst)| {
            let peak = peaks.iter().find(|one| one.0 == *op).map(|one| one.1);
            let rate = peak.and_then(|peak| sampler.entries[peak].point().rate());
            rate.is_some_and(|rate| rate < burst.throughput_bytes_per_s)
        });
        for &(op, peak) in peaks.iter().filter(|(op, _)| moved.contains(op)) {
            let case = investigate_peak(sampler, setting, (op, peak), !last)?;
            match cases.iter_mut().find(|one| one.of == LimitOf::Peak && one.op == op) {
                Some(known) => *known = case,
                None => cases.push(case),
            }
        }
        sampler.learn_spread();
    }
    sampler.unite_visits();
    Ok(cases)
}
