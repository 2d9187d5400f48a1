//! `halfpower check`.

mod replay;

use crate::compare::FAILED;
use crate::context::Context;
use crate::failure::Failure;
use crate::load::LoadArguments;
use crate::output::{self, Metrics};
use crate::points::measured_document;
use crate::target::{TargetArguments, Where, on_machine, resolve};
use clap::Args;
use clap::builder::PossibleValuesParser;
use machine::units::{parse_time, show_size_rounded};
use machine::{Engine, Machine, TargetSpec};
use measure::{Repeats, RunRequest, Runner};
use results::compare::{Comparison, FailIf, Side, compare};
use results::history::{Filter, Fingerprint, History, difference};
use results::{Began, Point, Question, Results};
use std::path::{Path, PathBuf};
use workload::{OpKind, Stop, Workload};

const SECOND_NS: u64 = 1_000_000_000;

/// Few enough for a minute.
const MAX_POINTS: usize = 5;

/// In order of preference. Not the last check: it would hide a slow decline.
const BASELINES: [&str; 2] = ["study", "sweep"];

const MAX_RUN_NS: u64 = 2 * SECOND_NS;

/// Half of the 95 % interval over the fall to find: such a fall is beyond chance.
const PRECISION_OF_LIMIT: f64 = 1.0 / 3.0;

const MAX_RUNS: u32 = 30;

/// Options of `check`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    #[command(flatten, next_help_heading = "Target")]
    target: TargetArguments,
    /// Entry of the history to compare with, this time only [default: the entry of --set-baseline,
    /// else the newest study of the target, else its newest sweep]
    #[arg(long, value_name = "ID")]
    baseline: Option<i64>,
    /// Compare with this entry from now on, and measure nothing now; without ID the one that this
    /// check would take
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, conflicts_with = "baseline")]
    set_baseline: Option<Option<i64>>,
    /// Repeat this preset instead, and compare with the first `halfpower run --workload NAME` of the
    /// target
    #[arg(long, alias = "profile", value_name = "NAME", value_parser = PossibleValuesParser::new(tune::PROFILES.map(|profile| profile.name)), conflicts_with = "set_baseline")]
    workload: Option<String>,
    /// Replay this recorded application instead, and compare with the first `halfpower replay` of it
    /// on the target
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["set_baseline", "workload", "each", "openmetrics"])]
    replay: Option<PathBuf>,
    /// Several targets are not a stripe: check each by itself
    #[arg(long)]
    each: bool,
    /// End with exit code 3 if a rate fell by this much, beyond chance
    #[arg(long, value_name = "PERCENT", default_value = "10%")]
    slower: String,
    #[command(flatten)]
    load: LoadArguments,
    /// Time for all of it
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "1m")]
    budget: u64,
    /// Also write the results to this file for node_exporter's textfile collector (OpenMetrics)
    #[arg(long, value_name = "FILE", conflicts_with = "set_baseline")]
    openmetrics: Option<PathBuf>,
    /// Print one line for each target
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    /// Print the comparison as JSON on standard output
    #[arg(long, conflicts_with = "each")]
    json: bool,
}

pub(crate) fn check(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let limit: FailIf = format!("slower:{}", arguments.slower).parse().map_err(|_| {
        Failure::Usage(format!("--slower {}: not a percentage; write it as 10%", arguments.slower))
    })?;
    if let Some(trace) = &arguments.replay {
        return replay::check(context, arguments, trace, &limit);
    }
    let targets = &arguments.target.targets;
    let own = |path: &PathBuf| {
        let target = TargetArguments { targets: vec![path.clone()], ..arguments.target.clone() };
        Arguments { target, ..arguments.clone() }
    };
    let checks: Vec<Arguments> = match arguments.each && !targets.is_empty() {
        true => targets.iter().map(own).collect(),
        false => vec![arguments.clone()],
    };
    // Every target is looked up before the first is measured.
    let history = &mut crate::history::open(context)?;
    let planned: Vec<Planned> =
        checks.iter().map(|one| planned(context, history, one)).collect::<Result<_, _>>()?;
    if let Some(id) = arguments.set_baseline {
        return planned.iter().try_for_each(|one| set_baseline(context, history, one, id));
    }
    let places: Vec<&Path> =
        planned.iter().flat_map(|one| &one.spec.places).map(PathBuf::as_path).collect();
    let mut metrics = Metrics::open(context, arguments.openmetrics.as_deref(), &places)?;
    let mut slower = false;
    for (one, planned) in checks.iter().zip(planned) {
        slower |= check_one(context, one, planned, &limit, metrics.as_mut())?;
    }
    metrics.map_or(Ok(()), |metrics| metrics.save())?;
    if slower { Err(Failure::Printed(FAILED)) } else { Ok(()) }
}

struct Planned {
    place: Where,
    spec: TargetSpec,
    name: String,
    id: i64,
    baseline: Results,
    chosen: Vec<Point>,
    preset: Option<&'static tune::Profile>,
}

fn planned(
    context: &Context,
    history: &History,
    arguments: &Arguments,
) -> Result<Planned, Failure> {
    let (place, mut spec) = resolve(context, &arguments.target)?;
    let name = spec
        .places
        .iter()
        .map(|place| place.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(", ");
    let named = arguments.baseline.or(arguments.set_baseline.flatten());
    let preset = arguments.workload.as_deref().and_then(tune::Profile::named);
    let (id, baseline, of_preset) = match preset {
        Some(preset) => {
            let workloads = preset.workloads(Engine::asynchronous(&place.engines()));
            let (id, baseline, points) =
                baseline_of_preset(history, &name, named, (preset.name, &workloads))?;
            (id, baseline, Some(points))
        }
        None => {
            let (id, baseline) = baseline(history, &name, named)?;
            (id, baseline, None)
        }
    };
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
    let chosen = of_preset.unwrap_or_else(|| chosen(&baseline, writes));
    if chosen.is_empty() {
        return Err(Failure::Usage(format!(
            "entry {id} of the history holds no point that can be measured again; name another one with --baseline"
        )));
    }
    Ok(Planned { place, spec, name, id, baseline, chosen, preset })
}

fn set_baseline(
    context: &Context,
    history: &mut History,
    of: &Planned,
    named: Option<i64>,
) -> Result<(), Failure> {
    let id = named.unwrap_or(of.id);
    history.set_baseline(&crate::history::absolute(&of.name), id)?;
    context.console.print(&format!("{}: checks compare with entry {id} from now on\n", of.name))
}

/// Returns whether the target is slower.
fn check_one(
    context: &Context,
    arguments: &Arguments,
    planned: Planned,
    limit: &FailIf,
    metrics: Option<&mut Metrics>,
) -> Result<bool, Failure> {
    let Planned { place, spec, name, id, baseline, chosen, preset } = planned;
    let on_host = matches!(place, Where::Host(_));
    let busy = if on_host { arguments.load.look(context)? } else { None };
    busy.iter().for_each(|warning| context.console.tell(warning));
    let mut results = on_machine!(place, |machine| measured(
        context, &machine, &spec, &chosen, arguments, limit
    ))?;
    results.warnings.extend(busy);
    crate::history::keep_as(context, &results, Some("check"));
    let mut comparison = compared(&format!("entry {id}"), &baseline, &chosen, &results);
    let changed = difference(&Fingerprint::of(&baseline), &Fingerprint::of(&results));
    if !changed.is_empty() {
        comparison
            .sentences
            .push(format!("Also changed since entry {id}: {}.", changed.join("; ")));
    }
    let [then, now] = [&baseline, &results].map(|one| one.target.size_bytes);
    if then != now {
        comparison.sentences.push(format!(
            "Entry {id} used {}, this check {}: to a cache or a rotating disk, another size is a different test.",
            show_size_rounded(then as f64),
            show_size_rounded(now as f64)
        ));
    }
    if let (Some(preset), [point]) = (preset, results.points.as_slice()) {
        let bar = crate::points::published_bar(preset, point, on_host);
        comparison.sentences.extend(bar.map(|goal| goal.sentence + "."));
    }
    let slower = limit.failed(&comparison);
    if let Some(metrics) = metrics {
        metrics.gauges.add(&results);
        metrics.gauges.add_check(&results, &comparison, !slower.is_empty());
    }
    if arguments.json {
        context.console.print(&output::json(comparison.to_json())?)?;
    } else if arguments.quiet {
        let verdict = if slower.is_empty() { "ok" } else { "slower" };
        let sentence = comparison.sentences.first().map_or("", String::as_str);
        context.console.print(&format!("{name}: {verdict}: {sentence}\n"))?;
    } else {
        if arguments.each {
            context.console.print(&format!("{name}\n"))?;
        }
        context.console.print(&report::compare::terminal(
            &comparison,
            output::width(),
            output::colour(),
        ))?;
    }
    if results.points.iter().all(|point| point.numbers.is_none()) {
        return Err(Failure::Run(format!("{name}: no point could be measured")));
    }
    if !arguments.quiet {
        slower.iter().for_each(|one| context.console.tell(&one.sentence));
    }
    Ok(!slower.is_empty())
}

fn baseline(
    history: &History,
    target: &str,
    named: Option<i64>,
) -> Result<(i64, Results), Failure> {
    let place = crate::history::absolute(target);
    if let Some(id) = named.map_or_else(|| history.baseline(&place), |id| Ok(Some(id)))? {
        return Ok((id, history.results(id)?));
    }
    let entries = history.list(&Filter { target: Some(place), ..Filter::default() })?;
    let newest =
        |kind: &&str| entries.iter().find(|entry| entry.kind == *kind && entry.readings > 0);
    let id = BASELINES.iter().find_map(newest).map(|entry| entry.id);
    let id = id.ok_or_else(|| {
        Failure::Usage(format!(
            "{target}: the history holds no study or sweep of it to compare with; measure one first, for example with halfpower study {target} --quick, or name an entry with --baseline"
        ))
    })?;
    Ok((id, history.results(id)?))
}

/// By default the first run: a later one may be slower already.
fn baseline_of_preset(
    history: &History,
    target: &str,
    named: Option<i64>,
    (preset, workloads): (&str, &[Workload]),
) -> Result<(i64, Results, Vec<Point>), Failure> {
    let target_name = crate::history::absolute(target);
    let entries = match named {
        Some(id) => vec![id],
        None => {
            let of_target = Filter { target: Some(target_name), ..Filter::default() };
            let entries = history.list(&of_target)?;
            let may = entries.iter().rev().filter(|entry| {
                ["run", "sweep"].contains(&entry.kind.as_str()) && entry.readings > 0
            });
            may.map(|entry| entry.id).collect()
        }
    };
    for id in entries {
        let results = history.results(id)?;
        let of = |wanted: &Workload| {
            let asked = Question::of(wanted);
            let same =
                |point: &&Point| point.numbers.is_some() && Question::of(&point.workload) == asked;
            results.points.iter().find(same).cloned()
        };
        if let Some(points) = workloads.iter().map(of).collect::<Option<Vec<Point>>>() {
            return Ok((id, results, points));
        }
    }
    let missing = match named {
        Some(id) => format!("entry {id} of the history holds no run of {preset}"),
        None => format!("{target}: the history holds no run of {preset} on it"),
    };
    Err(Failure::Usage(format!(
        "--workload {preset}: {missing}; measure one with halfpower run {target} --workload {preset}"
    )))
}

const NEAR: f64 = 0.95;

/// The smallest depth near the fastest: large requests are few in a run, so its rate has steps.
/// Points of few runs, or with requests that a throttle admitted in advance, may be fast by chance:
/// they come last.
fn chosen(baseline: &Results, writes: bool) -> Vec<Point> {
    let usable = |point: &&Point| {
        let workload = &point.workload;
        point.numbers.is_some()
            && (writes || !workload.writes())
            && workload.engine.does_io()
            && workload.allocation == machine::Allocation::Written
            && !workload.data.verify
    };
    let rank = |point: &Point| {
        let (direct, facts) = (point.workload.buffering.is_direct(), &baseline.target);
        (!direct, !point.is_settled(facts), !point.measures_target(facts))
    };
    let rate = |point: &Point| point.rate().unwrap_or(0.0);
    let mut points: Vec<&Point> = baseline.points.iter().filter(usable).collect();
    points.sort_by(|a, b| rank(a).cmp(&rank(b)).then(rate(b).total_cmp(&rate(a))));
    let mut kinds: Vec<(OpKind, String)> = Vec::new();
    let mut chosen: Vec<Point> = Vec::new();
    for fastest in &points {
        let kind = |point: &Point| (point.workload.op, point.workload.pattern.to_string());
        if kinds.contains(&kind(fastest)) || chosen.len() == MAX_POINTS {
            continue;
        }
        kinds.push(kind(fastest));
        let near = points.iter().filter(|point| {
            kind(point) == kind(fastest)
                && rank(point) == rank(fastest)
                && rate(point) >= NEAR * rate(fastest)
        });
        let in_flight = |point: &&&Point| {
            let workload = &point.workload;
            u64::from(workload.request_bytes)
                * u64::from(workload.depth)
                * u64::from(workload.threads)
        };
        chosen.extend(near.min_by_key(in_flight).map(|point| (*point).clone()));
    }
    chosen
}

fn measured<M: Machine>(
    context: &Context,
    machine: &M,
    spec: &TargetSpec,
    chosen: &[Point],
    arguments: &Arguments,
    limit: &FailIf,
) -> Result<Results, Failure> {
    let began = Began::now(machine);
    let until = machine.now().saturating_add(arguments.budget);
    let mut workloads: Vec<Workload> =
        chosen.iter().map(|point| point.workload.workload.clone()).collect();
    let usual = Repeats::default();
    let precision = usual.precision.min(limit.percent() / 100.0 * PRECISION_OF_LIMIT);
    let repeats = Repeats { max: MAX_RUNS, precision, ..usual };
    context.writes.plan_runs(&workloads, Repeats { budget_ns: arguments.budget, ..repeats });
    let mut runner = Runner::open(machine, &RunRequest::in_turn(spec, &workloads, repeats))?;
    let budget_ns = until.saturating_sub(machine.now());
    // At least three runs of each point, and up to three more if they disagree.
    let run_ns = (budget_ns / (6 * chosen.len() as u64)).min(MAX_RUN_NS);
    let noisy = machine.capabilities().noisy;
    for workload in &mut workloads {
        // Longer runs than the baseline's are steadier. Those of writes, or of a page cache, would
        // meet other limits.
        let may_last = noisy && workload.buffering.is_direct() && !workload.writes();
        if let Stop::AfterNs(ns) = &mut workload.stop {
            *ns = if may_last { run_ns } else { (*ns).min(run_ns) }.max(1);
        }
    }
    let repeats = Repeats { budget_ns, ..repeats };
    measured_document(context, &mut runner, &workloads, repeats, 3, began, arguments.target.seed)
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
