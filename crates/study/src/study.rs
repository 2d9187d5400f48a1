//! The study: scouts, measures, refines, confirms, answers.

use crate::answer::{answer, keep_reached, left_out};
use crate::bench::{Bench, Progress};
use crate::confirm::confirm;
use crate::draw;
use crate::grids::lay_out;
use crate::phases;
use crate::plan::Plan;
use crate::result::{Kind, Program, Results, SCHEMA};
use crate::scout::scout;
use machine::{Machine, Nanos, Result, TargetSpec};
use std::time::{SystemTime, UNIX_EPOCH};

/// Share of the budget in which the test file is filled.
const FILL_SHARE: f64 = 0.10;

/// Studies a target: opens it, makes every experiment that fits it and the time, and answers.
///
/// # Errors
/// A target that cannot be opened, the user's interrupt. What goes wrong later is a failed point or a skipped experiment.
pub fn study<M: Machine>(
    machine: &M,
    spec: &TargetSpec,
    plan: &Plan,
    program: Program,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<Results> {
    let began = machine.now();
    let began_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    told(Progress { doing: "making the test file", passed_ns: 0, budget_ns: plan.budget_ns });
    let spec = TargetSpec { fill_ns: Some((plan.budget_ns as f64 * FILL_SHARE) as Nanos), ..spec.clone() };
    let mut target = machine.open(&spec)?;
    let facts = machine.target_facts(&target);
    let mut bench = Bench::new(machine, &mut target, began, plan.budget_ns, plan.seed, told);
    let mut memory = Vec::new();
    if plan.wants("memory") {
        bench.tell("memory");
        memory = machine.memory((plan.budget_ns as f64 * 0.02) as Nanos);
    }
    let mut setting = scout(&mut bench, plan)?;
    let mut laid = lay_out(&mut bench, &mut setting, plan)?;
    let peaks = confirm(&mut bench, &setting, &laid, plan)?;
    let left_out = left_out(&bench, &laid);
    let peaks = keep_reached(&mut bench, &mut laid, &peaks);
    let points = bench.points();
    let mut results = Results {
        schema: SCHEMA.into(),
        program,
        kind: Kind::Study,
        target: facts,
        machine: machine.facts(),
        began_unix_s,
        elapsed_ns: 0,
        budget_ns: bench.noisy.then_some(plan.budget_ns),
        seed: plan.seed,
        rates: Vec::new(),
        experiments: laid.iter().map(|one| draw::experiment(one, &points)).collect(),
        points,
        answer: None,
        warnings: Vec::new(),
    };
    for experiment in &mut results.experiments {
        match experiment.id.as_str() {
            "memory" => experiment.memory = std::mem::take(&mut memory),
            "buffered" => experiment.figures.extend(phases::figure(&laid, &bench.entries)),
            _ => {}
        }
    }
    answer(&mut results, &bench, &laid, &peaks, left_out);
    results.elapsed_ns = bench.passed();
    Ok(results)
}
