//! Runs a plan step by step.

use super::document::{PtsResult, PtsStep};
use super::plan::{Cell, PhaseKind, PtsPlan, Purge};
use super::results::{histogram_steps, is_done, phase_results, pts_sentences};
use machine::{Engine, Error, Machine, Nanos, Part, Result, RunOptions, TargetFacts};
use measure::{Sample, gather, streams};
use workload::{Pattern, Stop, Workload};

/// A preconditioning can continue between its parts.
const FILL_PARTS: u64 = 64;
const FILL_DEPTH: u32 = 32;
/// Rates kept per step.
const PARTS: usize = 12;
const PERCENTILES: [f64; 8] = [1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999];

#[derive(Debug, Clone)]
pub struct PtsProgress<'a> {
    pub phase: &'a str,
    pub round: u32,
    pub max_rounds: u32,
    pub written_bytes: u64,
}

enum Next {
    Purge { phase: usize },
    Fill { phase: usize, part: usize, block_bytes: u32, region: (u64, u64) },
    Cell { phase: usize, round: u32, number: usize, cell: Cell, tracked: bool, histogram: bool },
}

fn next(plan: &PtsPlan, steps: &[PtsStep]) -> Option<Next> {
    let mut phase = steps.last().map_or(0, |step| step.phase);
    loop {
        let own = || steps.iter().filter(|step| step.phase == phase);
        match &plan.phases.get(phase)?.kind {
            PhaseKind::Purge if own().next().is_none() => return Some(Next::Purge { phase }),
            PhaseKind::Purge => {}
            PhaseKind::Fill { block_bytes, times } => {
                let part = own().count() as u64;
                if part < FILL_PARTS * u64::from(*times) {
                    let block = u64::from(*block_bytes);
                    let blocks = plan.active_bytes / block;
                    let at = |part: u64| blocks * part / FILL_PARTS * block;
                    let in_pass = part % FILL_PARTS;
                    let region = (at(in_pass), at(in_pass + 1) - at(in_pass));
                    let part = part as usize;
                    return Some(Next::Fill { phase, part, block_bytes: *block_bytes, region });
                }
            }
            PhaseKind::Rounds { cells, tracking, .. } => {
                let done = own().count();
                let (round, number) = ((done / cells.len()) as u32, done % cells.len());
                if number > 0 || done == 0 || !is_done(plan, steps, phase, round) {
                    let tracked = number == *tracking;
                    let cell = cells[number];
                    return Some(Next::Cell {
                        phase,
                        round,
                        number,
                        cell,
                        tracked,
                        histogram: false,
                    });
                }
            }
            PhaseKind::Histograms { .. } => {
                let number = own().count();
                if let Some(&(cell, histogram)) = histogram_steps(plan, steps, phase).get(number) {
                    return Some(Next::Cell {
                        phase,
                        round: 0,
                        number,
                        cell,
                        tracked: false,
                        histogram,
                    });
                }
            }
        }
        phase += 1;
    }
}

/// Continues a test until it is complete. `on_step` is called before each step, and `false` ends
/// the run; `keep` gets the document after each.
///
/// A simulated drive forgets its state when the program ends, so its steps run again, with the same
/// results.
///
/// # Errors
/// Too small a `max_written`, a failed request, or an interrupt.
pub fn run<M: Machine>(
    machine: &M,
    target: &M::Target,
    result: &mut PtsResult,
    max_written: u64,
    on_step: &mut dyn FnMut(&PtsProgress<'_>) -> bool,
    keep: &mut dyn FnMut(&mut PtsResult) -> Result<()>,
) -> Result<()> {
    let facts = machine.target_facts(target);
    crate::writer::check_writable(&facts)?;
    let runner = Runner { machine, target, facts, engine: result.conditions.engine };
    if machine.facts().simulated {
        result.steps.clear();
        (result.written_bytes, result.took_s, result.interruptions) = (0, 0.0, 0);
    }
    while let Some(next) = next(&result.plan, &result.steps) {
        let (phase, round) = match &next {
            Next::Purge { phase } | Next::Fill { phase, .. } => (*phase, 0),
            Next::Cell { phase, round, .. } => (*phase, *round),
        };
        let max_rounds = match &result.plan.phases[phase].kind {
            PhaseKind::Rounds { until, .. } => until.max_rounds(),
            _ => 1,
        };
        let progress = PtsProgress {
            phase: &result.plan.phases[phase].title,
            round,
            max_rounds,
            written_bytes: result.written_bytes,
        };
        if !on_step(&progress) {
            return Err(Error::Interrupted);
        }
        let left = max_written.saturating_sub(result.written_bytes);
        let step = runner.step(&result.plan, &result.steps, next, left)?;
        let step = PtsStep { from_s: result.took_s, ..step };
        let waits_s = wait_s(&result.plan, &step);
        result.took_s += step.seconds + waits_s;
        result.written_bytes += step.written_bytes;
        result.steps.push(step);
        pause(machine, waits_s, on_step, result)?;
        keep(result)?;
    }
    result.complete = true;
    finish(result);
    keep(result)
}

pub(crate) fn finish(result: &mut PtsResult) {
    result.phases = phase_results(&result.plan, &result.steps);
    result.sentences = pts_sentences(result);
}

impl PtsResult {
    /// Also for an unfinished test.
    pub fn finished(mut self) -> PtsResult {
        finish(&mut self);
        self
    }
}

fn wait_s(plan: &PtsPlan, step: &PtsStep) -> f64 {
    match &plan.phases[step.phase].kind {
        PhaseKind::Rounds { cells, .. } => cells[step.cell].wait_s,
        _ => 0.0,
    }
}

fn pause<M: Machine>(
    machine: &M,
    seconds: f64,
    on_step: &mut dyn FnMut(&PtsProgress<'_>) -> bool,
    result: &PtsResult,
) -> Result<()> {
    let mut left_s = seconds;
    while left_s > 0.0 {
        machine.pause((left_s.min(1.0) * 1e9) as Nanos);
        left_s -= 1.0;
        let progress = PtsProgress {
            phase: "idle",
            round: 0,
            max_rounds: 1,
            written_bytes: result.written_bytes,
        };
        if left_s > 0.0 && !on_step(&progress) {
            return Err(Error::Interrupted);
        }
    }
    Ok(())
}

struct Runner<'m, M: Machine> {
    machine: &'m M,
    target: &'m M::Target,
    facts: TargetFacts,
    engine: Engine,
}

impl<M: Machine> Runner<'_, M> {
    fn step(&self, plan: &PtsPlan, steps: &[PtsStep], next: Next, left: u64) -> Result<PtsStep> {
        // Every step has its own places, whether the run was interrupted or not.
        let seed = workload::rng::hash(plan.seed, steps.len() as u64);
        match next {
            Next::Purge { phase } => {
                if plan.purge == Purge::Discard {
                    self.machine.discard(self.target)?;
                }
                Ok(PtsStep {
                    phase,
                    round: 0,
                    cell: 0,
                    from_s: 0.0,
                    seconds: 0.0,
                    requests: 0,
                    bytes: 0,
                    written_bytes: 0,
                    mean_latency_ns: 0.0,
                    p99_ns: 0,
                    p99999_ns: 0,
                    max_latency_ns: 0,
                    parts: Vec::new(),
                    percentiles: Vec::new(),
                    temperature_c: None,
                })
            }
            Next::Fill { phase, part, block_bytes, region } => {
                check_left(region.1, left)?;
                let workload = Workload {
                    read_percent: 0,
                    pattern: Pattern::Seq,
                    request_bytes: block_bytes,
                    depth: FILL_DEPTH,
                    engine: self.engine,
                    region_start_bytes: region.0,
                    region_bytes: Some(region.1.max(u64::from(block_bytes))),
                    stop: Stop::AfterBytes(region.1.max(u64::from(block_bytes))),
                    seed,
                    ..Workload::default()
                };
                let sample = self.run(&workload)?;
                Ok(self.done(phase, 0, part, &workload, &sample, false, false))
            }
            Next::Cell { phase, round, number, cell, tracked, histogram } => {
                let writes = cell.read_percent < 100;
                let block = u64::from(cell.block_bytes);
                let request = block * u64::from(cell.depth) * u64::from(cell.threads);
                if writes {
                    check_left(request, left)?;
                }
                let space = plan.active_bytes / block * block;
                let start = if cell.random { 0 } else { position(steps, phase, number, space) };
                let pattern = if cell.random { Pattern::Random } else { Pattern::Together };
                let workload = Workload {
                    read_percent: cell.read_percent,
                    pattern,
                    request_bytes: cell.block_bytes,
                    depth: cell.depth,
                    threads: cell.threads,
                    engine: if cell.depth == 1 { Engine::Sync } else { self.engine },
                    region_start_bytes: start,
                    region_bytes: Some(space - start),
                    stop: Stop::AfterNs((cell.seconds * 1e9) as Nanos),
                    limit_bytes: writes.then_some(left / block * block),
                    seed,
                    ..Workload::default()
                };
                let sample = self.run(&workload)?;
                Ok(self.done(phase, round, number, &workload, &sample, tracked, histogram))
            }
        }
    }

    fn run(&self, workload: &Workload) -> Result<Sample> {
        measure::check(workload, &self.facts)?;
        let mut sources = streams(workload, &self.facts, 0)?;
        let access = workload.access(self.facts.size_bytes);
        let mut parts = [Part::new(self.target, &access, &mut sources)];
        let usage = self.machine.run(&mut parts, RunOptions::default())?.single()?;
        gather(&sources, usage, workload)
    }

    #[expect(clippy::too_many_arguments, reason = "a step's place and its sample")]
    fn done(
        &self,
        phase: usize,
        round: u32,
        cell: usize,
        workload: &Workload,
        sample: &Sample,
        tracked: bool,
        histogram: bool,
    ) -> PtsStep {
        let mut latency = sample.latency[0].clone();
        latency.merge(&sample.latency[1]);
        let written = if workload.read_percent == 0 {
            sample.bytes_with_ramp
        } else {
            sample.bytes_by_op()[1].ceil() as u64
        };
        let rates = [&sample.warm_up_rates[..], &sample.slice_rates[..]].concat();
        let length = rates.len() / PARTS;
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        PtsStep {
            phase,
            round,
            cell,
            from_s: 0.0,
            seconds: sample.measured_ns as f64 * 1e-9,
            requests: sample.requests_with_ramp,
            bytes: sample.bytes_with_ramp,
            written_bytes: written,
            mean_latency_ns: latency.mean(),
            p99_ns: latency.percentile(99.0),
            p99999_ns: latency.percentile(99.999),
            max_latency_ns: latency.max(),
            parts: if tracked && length > 0 {
                rates.chunks_exact(length).take(PARTS).map(mean).collect()
            } else {
                Vec::new()
            },
            percentiles: if histogram {
                PERCENTILES.map(|percent| (percent, latency.percentile(percent))).to_vec()
            } else {
                Vec::new()
            },
            temperature_c: self.machine.celsius(self.target),
        }
    }
}

/// A sequential step continues the cell's earlier steps.
fn position(steps: &[PtsStep], phase: usize, number: usize, space: u64) -> u64 {
    let own = steps.iter().filter(|step| step.phase == phase && step.cell == number);
    let bytes: u64 = own.map(|step| step.bytes).sum();
    let at = bytes % space.max(1);
    // A pass from near the end would have next to no space.
    if at > space / 2 { 0 } else { at }
}

fn check_left(needed: u64, left: u64) -> Result<()> {
    if needed <= left {
        return Ok(());
    }
    let shown = machine::units::show_size(left);
    Err(Error::Unsupported(format!(
        "--max-written: {shown} are left, which do not suffice for the next step; continue with --resume and a larger --max-written"
    )))
}
