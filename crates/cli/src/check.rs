//! `halfpower check`: is this volume still as fast as it was?

use crate::arguments::TargetArguments;
use crate::compare::FAILED;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::target::{Where, on_machine, resolve};
use clap::Args;
use machine::units::parse_time;
use machine::{Machine, TargetSpec};
use measure::{Repeats, RunRequest, Runner};
use results::compare::{Comparison, FailIf, Side, compare};
use results::history::{Filter, History};
use results::{Began, Kind, Point, Question, Results, measure_points};
use workload::{OpKind, Stop, Workload};

const SECOND_NS: u64 = 1_000_000_000;

/// Number of points in a check: few enough for a minute.
const MAX_POINTS: usize = 5;

/// Kinds of entries that can be a baseline. Checks are excluded: against last night's check, a slow
/// decline would never show.
const BASELINES: [&str; 3] = ["study", "sweep", "run"];

const MAX_RUN_NS: u64 = 2 * SECOND_NS;

/// Options of `check`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    #[command(flatten, next_help_heading = "Target")]
    target: TargetArguments,
    /// Entry of the history to compare with [default: the newest study, sweep or run of the target]
    #[arg(long, value_name = "ID")]
    baseline: Option<i64>,
    /// End with exit code 3 if a rate fell by this much, beyond chance
    #[arg(long, value_name = "PERCENT", default_value = "10%")]
    slower: String,
    /// Time for all of it
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "50s")]
    budget: u64,
    /// Print the comparison as JSON on standard output
    #[arg(long)]
    json: bool,
}

pub(crate) fn check(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let limit: FailIf = format!("slower:{}", arguments.slower).parse().map_err(|_| {
        Failure::Usage(format!("--slower {}: not a percentage; write it as 10%", arguments.slower))
    })?;
    let (place, mut spec) = resolve(&arguments.target)?;
    let name = spec
        .places
        .iter()
        .map(|place| place.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(", ");
    let (id, baseline) = baseline(&crate::history::open(context)?, &name, arguments.baseline)?;
    // To a cache or a rotating disk, another size is a different test.
    let whole = match &place {
        Where::Twin(machine) if spec.size.is_none() => {
            Some(machine.target_facts(&machine.open(&spec)?).size_bytes)
        }
        _ => None,
    };
    // A simulated volume has no room for a file of its whole size.
    if spec.size.is_none() && whole != Some(baseline.target.size_bytes) {
        spec.size = Some(baseline.target.size_bytes);
    }
    let writes = matches!(
        baseline.target.kind,
        machine::TargetKind::TestFile | machine::TargetKind::Simulated
    ) || !spec.destroy.is_empty();
    let chosen = chosen(&baseline, writes);
    if chosen.is_empty() {
        return Err(Failure::Usage(format!(
            "entry {id} of the history holds no point that can be measured again; name another one with --baseline"
        )));
    }
    let results = on_machine!(place, |machine| measured(&machine, &spec, &chosen, arguments))?;
    crate::history::keep_as(context, &results, Some("check"));
    let comparison = compared(&format!("entry {id}"), &baseline, &chosen, &results);
    if arguments.json {
        output::print(&output::json(comparison.to_json())?)?;
    } else {
        output::print(&report::compare::terminal(&comparison, output::width(), output::colour()))?;
    }
    if results.points.iter().all(|point| point.numbers.is_none()) {
        return Err(Failure::Run("no point could be measured".into()));
    }
    let slower = limit.failed(&comparison);
    slower.iter().for_each(|one| output::tell(&one.sentence));
    if slower.is_empty() { Ok(()) } else { Err(Failure::Printed(FAILED)) }
}

/// The baseline with its number: the named entry, or the newest of the target.
fn baseline(
    history: &History,
    target: &str,
    named: Option<i64>,
) -> Result<(i64, Results), Failure> {
    if let Some(id) = named {
        return Ok((id, history.results(id)?));
    }
    let entries = history
        .list(&Filter { target: Some(crate::history::absolute(target)), ..Filter::default() })?;
    let usable =
        entries.iter().find(|entry| BASELINES.contains(&entry.kind.as_str()) && entry.readings > 0);
    let id = usable.map(|entry| entry.id).ok_or_else(|| {
        Failure::Usage(format!(
            "{target}: the history holds no study, sweep or run of it to compare with; measure one first, for example with halfpower study {target} --quick"
        ))
    })?;
    Ok((id, history.results(id)?))
}

/// Chooses representative points: the fastest of each operation and pattern, direct I/O first.
fn chosen(baseline: &Results, writes: bool) -> Vec<Point> {
    let mut kinds: Vec<(OpKind, String)> = Vec::new();
    let mut chosen: Vec<Point> = Vec::new();
    let usable = |point: &&Point| {
        let workload = &point.workload;
        point.numbers.is_some()
            && (writes || !workload.writes())
            && workload.engine.does_io()
            && workload.allocation == machine::Allocation::Written
            && !workload.data.verify
    };
    let mut points: Vec<&Point> = baseline.points.iter().filter(usable).collect();
    points.sort_by(|a, b| {
        let rank = |point: &Point| !point.workload.buffering.is_direct();
        rank(a).cmp(&rank(b)).then(b.rate().unwrap_or(0.0).total_cmp(&a.rate().unwrap_or(0.0)))
    });
    for point in points {
        let kind = (point.workload.op, point.workload.pattern.to_string());
        if !kinds.contains(&kind) && chosen.len() < MAX_POINTS {
            kinds.push(kind);
            chosen.push(point.clone());
        }
    }
    chosen
}

fn measured<M: Machine>(
    machine: &M,
    spec: &TargetSpec,
    chosen: &[Point],
    arguments: &Arguments,
) -> Result<Results, Failure> {
    let began = Began::now(machine);
    let until = machine.now().saturating_add(arguments.budget);
    let mut workloads: Vec<Workload> =
        chosen.iter().map(|point| point.workload.workload.clone()).collect();
    let repeats = Repeats { min: 3, max: 10, ..Repeats::default() };
    let mut runner = Runner::open(machine, &RunRequest::in_turn(spec, &workloads, repeats))?;
    let facts = runner.facts()[0].clone();
    let budget_ns = until.saturating_sub(machine.now());
    // At least three runs of each point, and up to three more if they disagree.
    let run_ns = (budget_ns / (6 * chosen.len() as u64)).min(MAX_RUN_NS);
    for workload in &mut workloads {
        if let Stop::AfterNs(ns) = &mut workload.stop {
            *ns = (*ns).min(run_ns).max(1);
        }
    }
    let bar = crate::progress::bar(3 * workloads.len() as u64);
    let points =
        measure_points(&mut runner, &workloads, Repeats { budget_ns, ..repeats }, |index, runs| {
            bar.set_message(workloads[index].short());
            if runs <= 3 {
                bar.inc(1);
            }
        });
    bar.finish_and_clear();
    let results = Results::new(
        machine,
        Kind::Sweep,
        crate::context::program(),
        began,
        facts,
        arguments.target.seed,
    );
    Ok(Results { points: points?, ..results })
}

fn compared(name: &str, baseline: &Results, chosen: &[Point], now: &Results) -> Comparison {
    let before = Results { points: chosen.to_vec(), rates: Vec::new(), ..baseline.clone() };
    debug_assert!(
        chosen
            .iter()
            .zip(&now.points)
            .all(|(a, b)| Question::of(&a.workload) == Question::of(&b.workload))
    );
    let worth = results::compare::WORTH_PERCENT;
    compare(&Side::of(name, &before), &Side::of("now", now), crate::context::program(), worth)
}
