//! Every command's pipeline: check, open, check again, measure.

use crate::ceiling::Ceilings;
use crate::concurrent::measure_concurrent;
use crate::live::SecondLog;
use crate::repeat::{Measured, Repeats, repeat_workloads};
use crate::sample::{Job, Options, sample_watched};
use machine::units::show_size;
use machine::{
    Allocation, Buffers, Engine, Error, MIN_FILLED_BYTES, Machine, Result, TargetFacts, TargetKind,
    TargetSpec,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use workload::{Stop, Workload};

/// For checks before the target is open.
const ANY_SIZE: u64 = u64::MAX >> 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestPart {
    pub target: usize,
    pub workload: Workload,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrangement {
    #[default]
    InTurn,
    /// Each part alone, then all at once, round after round.
    Concurrent,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    pub targets: Vec<TargetSpec>,
    pub parts: Vec<RequestPart>,
    #[serde(default)]
    pub arrangement: Arrangement,
    pub repeats: Repeats,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunSamples {
    pub facts: Vec<TargetFacts>,
    pub parts: Vec<Measured>,
    /// Each part while all others ran; empty if none did. Processor time is that of all parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<Measured>,
}

impl RunRequest {
    pub fn in_turn(spec: &TargetSpec, workloads: &[Workload], repeats: Repeats) -> RunRequest {
        let part = |workload: &Workload| RequestPart { target: 0, workload: workload.clone() };
        RunRequest {
            targets: vec![spec.clone()],
            parts: workloads.iter().map(part).collect(),
            arrangement: Arrangement::InTurn,
            repeats,
        }
    }

    /// Groups parts that run at the same time.
    fn buffers(&self) -> Vec<Vec<Buffers>> {
        let each = self.parts.iter().map(|part| part.workload.buffers());
        match self.arrangement {
            Arrangement::InTurn => each.map(|one| vec![one]).collect(),
            Arrangement::Concurrent => vec![each.collect()],
        }
    }

    /// Checks before the targets are open.
    pub fn check<M: Machine>(&self, machine: &M) -> Result<()> {
        check_windows_engine(machine, self.parts.iter().map(|part| &part.workload))?;
        for RequestPart { target, workload } in &self.parts {
            if *target >= self.targets.len() {
                let why = format!("the request has {} targets", self.targets.len());
                return Err(Error::refused(format!("target {target}"), why, "count from 0"));
            }
            workload.check(ANY_SIZE, 1)?;
        }
        check_memory(machine, &self.buffers())
    }

    fn check_opened(&self, facts: &[TargetFacts]) -> Result<()> {
        self.parts.iter().try_for_each(|part| check(&part.workload, &facts[part.target]))
    }

    /// The targets, with no fill before the first region.
    fn within_regions(&self) -> Vec<TargetSpec> {
        let first = |target: usize| {
            let own = self.parts.iter().filter(|part| part.target == target);
            own.map(|part| part.workload.region_start_bytes).min().unwrap_or(0)
        };
        let targets = self.targets.iter().cloned().enumerate();
        targets.map(|(index, spec)| TargetSpec { fill_from: first(index), ..spec }).collect()
    }

    fn by_target<'a>(
        &'a self,
        facts: &'a [TargetFacts],
    ) -> impl Iterator<Item = (&'a TargetSpec, &'a TargetFacts, Vec<&'a Workload>)> {
        self.targets.iter().zip(facts).enumerate().map(|(index, (spec, facts))| {
            let own = self.parts.iter().filter(|part| part.target == index);
            (spec, facts, own.map(|part| &part.workload).collect())
        })
    }
}

fn check_windows_engine<'a, M: Machine>(
    machine: &M,
    mut workloads: impl Iterator<Item = &'a Workload>,
) -> Result<()> {
    let engines = machine.capabilities().engines;
    let missing = |one: &&Workload| one.engine.is_windows() && !engines.contains(&one.engine);
    let Some(workload) = workloads.find(missing) else { return Ok(()) };
    let names: Vec<&str> = engines.into_iter().map(Engine::name).collect();
    let what = format!("engine {}", workload.engine);
    let why = "only simulated Windows machines such as twin:gateway-1997 have it";
    Err(Error::refused(what, why, format!("take one of {}", names.join(", "))))
}

pub struct Runner<'m, M: Machine> {
    machine: &'m M,
    targets: Vec<M::Target>,
    facts: Vec<TargetFacts>,
    interrupted: Option<Vec<Measured>>,
    seconds: Option<Arc<SecondLog>>,
}

impl<'m, M: Machine> Runner<'m, M> {
    /// Writes nothing before all checks pass.
    pub fn open(machine: &'m M, request: &RunRequest) -> Result<Runner<'m, M>> {
        Runner::open_then(machine, request, |_| Ok(()))
    }

    /// As [`Runner::open`]; calls `last` after the checks, before any write.
    pub fn open_then(
        machine: &'m M,
        request: &RunRequest,
        mut last: impl FnMut(&[TargetFacts]) -> Result<()>,
    ) -> Result<Runner<'m, M>> {
        request.check(machine)?;
        let before = &mut |facts: &[TargetFacts]| {
            request.check_opened(facts)?;
            for (spec, facts, workloads) in request.by_target(facts) {
                check_certain_size(&workloads, spec, facts)?;
                check_any_runs(&workloads, spec, facts)?;
            }
            last(facts)
        };
        let targets = machine.open_all(&request.within_regions(), before)?;
        let runner = Runner::of(machine, targets);
        request.check_opened(&runner.facts)?;
        Ok(runner)
    }

    /// For work that depends on the targets' facts. `check` refuses invalid work, and returns the
    /// buffers of each group of concurrent streams.
    pub fn open_checked(
        machine: &'m M,
        specs: &[TargetSpec],
        mut check: impl FnMut(&[TargetFacts]) -> Result<Vec<Vec<Buffers>>>,
    ) -> Result<Runner<'m, M>> {
        let mut all = |facts: &[TargetFacts]| check_memory(machine, &check(facts)?);
        let targets = machine.open_all(specs, &mut all)?;
        let runner = Runner::of(machine, targets);
        // A filled target may be smaller than expected.
        all(&runner.facts)?;
        Ok(runner)
    }

    pub fn of(machine: &'m M, targets: Vec<M::Target>) -> Runner<'m, M> {
        let facts = targets.iter().map(|target| machine.target_facts(target)).collect();
        Runner { machine, targets, facts, interrupted: None, seconds: None }
    }

    pub fn watch(&mut self, seconds: Arc<SecondLog>) {
        self.seconds = Some(seconds);
    }

    pub(crate) fn seconds(&self) -> Option<Arc<SecondLog>> {
        self.seconds.clone()
    }

    pub fn machine(&self) -> &'m M {
        self.machine
    }

    pub fn facts(&self) -> &[TargetFacts] {
        &self.facts
    }

    pub fn targets(&self) -> &[M::Target] {
        &self.targets
    }

    pub fn target_mut(&mut self, index: usize) -> &mut M::Target {
        &mut self.targets[index]
    }

    pub fn into_targets(self) -> Vec<M::Target> {
        self.targets
    }

    pub fn keep(&mut self, keeps: impl Fn(&TargetFacts) -> bool) {
        let kept = self.targets.iter_mut().zip(&self.facts).filter(|(_, facts)| keeps(facts));
        kept.for_each(|(target, _)| self.machine.keep(target));
    }

    /// On the first target.
    pub fn in_turn(
        &mut self,
        workloads: &[Workload],
        repeats: Repeats,
        on_progress: impl FnMut(usize, usize),
    ) -> Result<RunSamples> {
        self.run(&RunRequest::in_turn(&TargetSpec::default(), workloads, repeats), on_progress)
    }

    /// The runs before [`Runner::run`]'s interrupt.
    pub fn take_interrupted(&mut self) -> Option<RunSamples> {
        let parts = self.interrupted.take()?;
        Some(RunSamples { facts: self.facts.clone(), parts, together: Vec::new() })
    }

    /// Calls `on_progress` with the part and its runs so far; the number after the last part means
    /// all at once. Fails on the user's interrupt, and if concurrent parts stop after an amount of
    /// data; other errors fail their part.
    pub fn run(
        &mut self,
        request: &RunRequest,
        on_progress: impl FnMut(usize, usize),
    ) -> Result<RunSamples> {
        let (parts, repeats) = (&request.parts, request.repeats);
        let (parts, together) = match request.arrangement {
            Arrangement::InTurn => (self.each_in_turn(parts, repeats, on_progress)?, Vec::new()),
            Arrangement::Concurrent => {
                let (targets, facts) = (&self.targets, &self.facts);
                let jobs: Vec<Job<'_, M::Target>> = (parts.iter())
                    .map(|RequestPart { target: at, workload }| {
                        Job::new(&targets[*at], &facts[*at], workload)
                    })
                    .collect();
                measure_concurrent(self.machine, &jobs, repeats, on_progress)?
            }
        };
        Ok(RunSamples { facts: self.facts.clone(), parts, together })
    }

    fn each_in_turn(
        &mut self,
        parts: &[RequestPart],
        repeats: Repeats,
        on_progress: impl FnMut(usize, usize),
    ) -> Result<Vec<Measured>> {
        let (machine, targets, seconds) = (self.machine, &mut self.targets, &self.seconds);
        let work: Vec<(&Workload, TargetFacts)> =
            parts.iter().map(|part| (&part.workload, self.facts[part.target].clone())).collect();
        let once = |part: usize, options| {
            let RequestPart { target, workload } = &parts[part];
            let options = Options { keep_interrupted: true, ..options };
            sample_watched(machine, &mut targets[*target], workload, options, seconds.as_ref())
        };
        let mut all = Vec::new();
        if let Err(error) = repeat_workloads(machine, &work, repeats, once, on_progress, &mut all) {
            self.interrupted = Some(all);
            return Err(error);
        }
        let mut ceilings: Vec<Ceilings> =
            self.targets.iter().map(|_| Ceilings::default()).collect();
        for (part, measured) in
            parts.iter().zip(&mut all).filter(|(_, measured)| measured.failure.is_none())
        {
            measured.ceiling =
                ceilings[part.target].of(machine, &self.targets[part.target], &part.workload);
        }
        Ok(all)
    }
}

/// Checks groups of concurrent streams.
pub fn check_memory<M: Machine>(machine: &M, groups: &[Vec<Buffers>]) -> Result<()> {
    groups.iter().try_for_each(|group| machine.check_memory(group))
}

/// Also refuses writes to a read-only target.
pub fn check(workload: &Workload, facts: &TargetFacts) -> Result<()> {
    check_fits(workload, facts)?;
    check_writable(facts, workload.writes(), "name it again after --destroy-data to write it")
}

pub fn check_fits(workload: &Workload, facts: &TargetFacts) -> Result<()> {
    let align =
        if workload.buffering.is_direct() && facts.direct { facts.direct_align_bytes } else { 1 };
    workload.check(facts.size_bytes, align).map_err(|error| {
        // What does not fit is the target itself.
        let small = facts.size_bytes < u64::from(workload.request_bytes);
        match machine::Error::from(error) {
            machine::Error::Refused { what, why, hint } if small => {
                machine::Error::Refused { what: format!("{}: {what}", facts.name), why, hint }
            }
            error => error,
        }
    })
}

/// `hint` says how to allow writes.
pub fn check_writable(facts: &TargetFacts, writes: bool, hint: &str) -> Result<()> {
    if writes && !facts.writable {
        return Err(Error::refused(&facts.name, "it was there before and is only read", hint));
    }
    Ok(())
}

fn check_certain_size(
    workloads: &[&Workload],
    spec: &TargetSpec,
    facts: &TargetFacts,
) -> Result<()> {
    let new_file =
        facts.kind == TargetKind::TestFile || facts.kind == TargetKind::Stripe && facts.writable;
    if spec.size.is_some() || !spec.destroy.is_empty() || !new_file {
        return Ok(());
    }
    let min = facts.size_bytes.min(MIN_FILLED_BYTES * u64::from(facts.members));
    let facts = TargetFacts { size_bytes: min, ..facts.clone() };
    workloads.iter().try_for_each(|workload| check(workload, &facts)).map_err(|error| match error {
        Error::Refused { what, why, .. } => {
            let shown = show_size(min);
            let why = format!("{why}; without --size only the first {shown} of a new file are certain to be filled");
            Error::refused(what, why, "give --size")
        }
        error => error,
    })
}

fn check_any_runs(workloads: &[&Workload], spec: &TargetSpec, facts: &TargetFacts) -> Result<()> {
    if spec.destroy.is_empty() {
        return Ok(());
    }
    let refused = |workload: &&Workload| match &facts.direct_refused {
        Some(why) if workload.buffering.is_direct() => Some(why.clone()),
        _ if workload.engine.is_mapped() && facts.members > 1 => {
            Some("a stripe cannot be mapped".into())
        }
        _ if workload.writes()
            && workload.allocation != Allocation::Written
            && facts.kind != TargetKind::TestFile =>
        {
            Some(format!(
                "only in a directory can files be made whose space is {}",
                workload.allocation.name()
            ))
        }
        _ => None,
    };
    let reasons: Option<Vec<String>> = workloads.iter().map(refused).collect();
    match reasons.and_then(|reasons| reasons.into_iter().next()) {
        Some(why) => Err(Error::Unsupported(format!("{}: {why}; nothing was written", facts.name))),
        None => Ok(()),
    }
}

/// Known before the runs start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlannedWrites {
    /// From runs that end after an amount of data.
    pub min_bytes: u64,
    /// If every point takes all its runs; [`u64::MAX`] if unknown.
    pub max_bytes: u64,
    /// From runs that only time ends.
    pub timed_ns: u64,
}

impl PlannedWrites {
    pub fn of<'a>(
        workloads: impl IntoIterator<Item = &'a Workload>,
        repeats: Repeats,
    ) -> PlannedWrites {
        let mut all = PlannedWrites::default();
        for workload in workloads.into_iter().filter(|workload| workload.writes()) {
            let share = u64::from(100 - workload.read_percent);
            let written = |bytes: u64| (u128::from(bytes) * u128::from(share) / 100) as u64;
            match workload.stop {
                Stop::AfterBytes(bytes) => {
                    let bytes = written(bytes.min(workload.limit_bytes.unwrap_or(u64::MAX)));
                    let times = |runs: u32| bytes.saturating_mul(u64::from(runs));
                    all.min_bytes = all.min_bytes.saturating_add(times(repeats.min));
                    all.max_bytes = all.max_bytes.saturating_add(times(repeats.max));
                }
                Stop::AfterNs(ns) => {
                    let most = ns.saturating_mul(u64::from(repeats.max));
                    all.timed_ns = all.timed_ns.saturating_add(most.min(repeats.budget_ns));
                }
            }
        }
        all
    }
}
