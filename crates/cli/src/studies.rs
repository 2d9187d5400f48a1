//! `halfpower study` and `halfpower report`.

use crate::arguments::{ReportArguments, ShownUnits, StudyArguments};
use crate::context::Context;
use crate::documents::Document;
use crate::failure::Failure;
use crate::imported::Imported;
use crate::output::{self, Directory, Form, Metrics};
use crate::target::{Where, resolve, results_at};
use crate::unfinished::{Unfinished, refuse_twin};
use machine::{Machine, TargetSpec, units};
use results::Results;
use results::compare::Side;
use std::path::{Path, PathBuf};
use study::{Effort, Plan};

const SECOND_NS: u64 = 1_000_000_000;

const MIN_BUDGET_NS: u64 = 5 * SECOND_NS;

/// The kept runs stay until the study is shown.
pub(crate) type Studied = (Result<Results, Failure>, Option<Unfinished>);

pub(crate) fn study(context: &Context, arguments: &StudyArguments) -> Result<(), Failure> {
    study_by(context, arguments, |place, spec, plan| match place {
        Where::Twin(machine) => {
            refuse_twin(arguments.resume)?;
            let setup = machine.setup().clone();
            let results = study_on(context, &*machine, spec, plan).map(|mut results| {
                predict::outlook::add(&setup, &mut results);
                if plan.only.is_empty() && !results.incomplete {
                    crate::metadata::add_to_simulated_study(context, &setup, &mut results);
                }
                results
            });
            Ok((results, None))
        }
        Where::Host(machine) => {
            let busy = arguments.load.look(context)?;
            busy.iter().for_each(|warning| context.console.tell(warning));
            let begun = Unfinished::begin(context, "study", &spec.places, arguments.resume)?;
            let machine = begun.machine(machine);
            let results = study_on(context, &machine, spec, plan).map(|mut results| {
                results.warnings.extend(busy);
                results
            });
            Ok((results, Some(begun)))
        }
    })
}

pub(crate) fn study_by(
    context: &Context,
    arguments: &StudyArguments,
    measure: impl FnOnce(Where, &TargetSpec, &Plan) -> Result<Studied, Failure>,
) -> Result<(), Failure> {
    let _units = arguments.units.choose(context);
    if arguments.sustained.sustained {
        let asked = crate::sustained::Asked {
            target: &arguments.target,
            output: &arguments.output,
            json: arguments.json,
            resume: arguments.resume,
        };
        return crate::sustained::study(context, &arguments.sustained, &asked);
    }
    let (effort, usual) = match (arguments.quick, arguments.full) {
        (true, _) => (Effort::Quick, 60 * SECOND_NS),
        (_, true) => (Effort::Full, 1200 * SECOND_NS),
        _ => (Effort::Normal, 180 * SECOND_NS),
    };
    let budget_ns = arguments.budget.unwrap_or(usual);
    check_budget(budget_ns)?;
    let plan =
        Plan { budget_ns, effort, only: arguments.only.clone(), seed: arguments.target.seed };
    let (place, spec) = resolve(context, &arguments.target)?;
    context.writes.plan_for(true, plan.budget_ns);
    let targets: Vec<&Path> = spec.places.iter().map(PathBuf::as_path).collect();
    // Find an unwritable output before the study, not after it.
    let directory = Directory::new(
        context,
        &arguments.output,
        &targets,
        &["results.json", "report.html", "points.csv"],
    )?;
    let metrics = Metrics::open(context, arguments.openmetrics.as_deref(), &targets)?;
    let (results, unfinished) = measure(place, &spec, &plan)?;
    let shown = results.and_then(|mut results| {
        if let Some(limit) = context.writes.note() {
            results.warnings.push(limit.clone());
            if let Some(answer) = &mut results.answer {
                answer.doubts.insert(0, limit);
            }
        }
        if let Some(unfinished) = &unfinished {
            results.warnings.extend(unfinished.warnings());
            results.began_unix_s = unfinished.began_unix_s().unwrap_or(results.began_unix_s);
        }
        show(context, arguments, &directory, metrics, &results)
    });
    if let Some(unfinished) = unfinished {
        unfinished.end(&shown);
    }
    shown
}

fn show(
    context: &Context,
    arguments: &StudyArguments,
    directory: &Directory<'_>,
    metrics: Option<Metrics>,
    results: &Results,
) -> Result<(), Failure> {
    crate::history::keep(context, results);
    let json = output::json(results::to_json(results))?;
    let written = directory.save("results.json", &json);
    let report = directory.save_report(results);
    let form = Form::of(arguments.json, arguments.details);
    output::show_study(context, results, report.as_ref().ok().map(PathBuf::as_path), form)?;
    let exported = match metrics {
        Some(mut metrics) if !results.incomplete => {
            metrics.gauges.add(results);
            metrics.save()
        }
        _ => Ok(()),
    };
    written.and(report)?;
    exported?;
    if results.incomplete { Err(Failure::Interrupted) } else { Ok(()) }
}

pub(crate) fn check_budget(budget_ns: u64) -> Result<(), Failure> {
    if budget_ns < MIN_BUDGET_NS {
        return Err(Failure::Usage(format!(
            "--budget {}: too short to measure anything; give at least 5s",
            units::show_time(budget_ns as f64)
        )));
    }
    Ok(())
}

pub(crate) fn study_on<M: Machine>(
    context: &Context,
    machine: &M,
    spec: &TargetSpec,
    plan: &Plan,
) -> Result<Results, Failure> {
    let bar = context.console.time_bar(plan.budget_ns);
    let results = study::study(machine, spec, plan, crate::context::program(), &mut |progress| {
        bar.at(progress.passed_ns, progress.doing);
    });
    bar.finish_and_clear();
    Ok(results?)
}

pub(crate) fn report(context: &Context, arguments: &ReportArguments) -> Result<(), Failure> {
    let _units = arguments.units.choose(context);
    let path = results_at(&arguments.results)?;
    if let Some(imported) = Imported::read(&path).ok().filter(Imported::is_report) {
        return foreign_report(context, arguments, &path, &imported.side()?);
    }
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let text = results::DOCUMENT
        .text(&path)
        .map_err(|error| usage(&format_args!("cannot read {}: {error}", path.display())))?;
    if let Some(document) = Document::parse(&path.display().to_string(), &text)? {
        return document_report(context, arguments, &path, &document);
    }
    let mut results = results::parse(&path, &text).map_err(|error| usage(&error))?;
    if arguments.units != ShownUnits::Binary {
        results.restate();
    }
    if arguments.check {
        return check(context, &path, &results);
    }
    let beside = path.parent().unwrap_or(Path::new("."));
    let directory = arguments.output.as_deref().unwrap_or(beside);
    let directory = Directory::new(context, directory, &[], &["report.html"])?;
    let report = directory.save_report(&results)?;
    surfaces(&text, &results, &directory)?;
    output::show_study(context, &results, Some(&report), Form::of(false, arguments.details))
}

fn document_report(
    context: &Context,
    arguments: &ReportArguments,
    path: &Path,
    document: &Document,
) -> Result<(), Failure> {
    if arguments.check {
        return Err(Failure::Usage(format!(
            "{}: --check knows the rules of documents with points, and this one has none; leave it out",
            path.display()
        )));
    }
    let beside = path.parent().unwrap_or(Path::new("."));
    let directory = arguments.output.as_deref().unwrap_or(beside);
    let inputs = [path];
    let directory = Directory::new(context, directory, &inputs, &["report.html"])?;
    context.console.print(&document.terminal())?;
    let Some(page) = document.html()? else { return Ok(()) };
    let saved = directory.save("report.html", &page)?;
    context.console.print(&format!("Report: {}\n", saved.display()))
}

fn foreign_report(
    context: &Context,
    arguments: &ReportArguments,
    path: &Path,
    side: &Side,
) -> Result<(), Failure> {
    if arguments.check {
        return Err(Failure::Usage(format!(
            "{}: --check knows the rules of halfpower's documents, and this is another tool's report; leave it out",
            path.display()
        )));
    }
    let beside = path.parent().unwrap_or(Path::new("."));
    let directory = arguments.output.as_deref().unwrap_or(beside);
    let inputs = [path];
    let directory = Directory::new(context, directory, &inputs, &["report.html"])?;
    let page = report::foreign::html(side, &crate::context::program())
        .map_err(|error| Failure::Run(format!("cannot draw the report: {error}")))?;
    let saved = directory.save("report.html", &page)?;
    context.console.print(&report::foreign::terminal(side, output::width(), output::colour()))?;
    context.console.print(&format!("Report: {}\n", saved.display()))
}

fn check(context: &Context, path: &Path, results: &Results) -> Result<(), Failure> {
    let broken = results::rules::check(results);
    for one in &broken {
        context.console.print(&format!("{one}\n"))?;
    }
    match broken.len() {
        0 => context.console.print("no contradiction\n"),
        count => {
            Err(Failure::Run(format!("{} contradicts itself in {count} places", path.display())))
        }
    }
}

fn surfaces(text: &str, results: &Results, directory: &Directory<'_>) -> Result<(), Failure> {
    #[derive(serde::Deserialize)]
    struct Document {
        iozone: dialect::iozone::IozoneResult,
    }
    // Documents of other commands have no surfaces.
    let Ok(Document { iozone: own }) = serde_json::from_str(text) else { return Ok(()) };
    if own.surfaces.is_empty() {
        return Ok(());
    }
    directory.save("surfaces.html", &output::surface_page(results, &own)?).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::PointArguments;
    use crate::console::Console;
    use machine::Engine;
    use results::Question;
    use twin::Twin;
    use workload::Workload;

    fn asked(command: &str) -> (Vec<Workload>, TargetSpec) {
        let words = shlex::split(command).expect("words of a shell");
        assert!(
            words[0] == "halfpower" && ["run", "sweep"].contains(&words[1].as_str()),
            "{command}"
        );
        let arguments = PointArguments::parse(&words[1], words[2..].iter().cloned())
            .unwrap_or_else(|error| panic!("{command}: {error}"));
        let context = &Context::new(Console::default(), false, true, None);
        let (_, spec) = resolve(context, &arguments.target)
            .unwrap_or_else(|_| panic!("{command}: no such target"));
        (crate::points::grid(&arguments, &Engine::ALL), spec)
    }

    #[test]
    fn commands_of_a_study_ask_what_it_measured() {
        let mut found = 0;
        for name in ["twin:gateway-1997,drive=st34371w,disks=3", "twin:nvme", "twin:virtio"] {
            let twin = Twin::from_name(name).expect("a simulated machine");
            let plan = Plan {
                budget_ns: 60 * SECOND_NS,
                effort: Effort::Quick,
                only: Vec::new(),
                seed: 7,
            };
            let spec = TargetSpec { places: vec![name.into()], ..TargetSpec::default() };
            let results = study::study(&twin, &spec, &plan, crate::context::program(), &mut |_| {})
                .expect("a study");
            let point = |index: usize| results.points[index].workload.workload.clone();
            let answer = results.answer.as_ref().expect("an answer");
            let findings =
                answer.findings.iter().map(|one| (one.check.clone(), one.points.to_vec()));
            let peaks = answer
                .peaks
                .iter()
                .map(|one| (format!("halfpower run {name} {}", one.settings), vec![one.point]));
            for (check, points) in findings.chain(peaks) {
                let asked: Vec<_> = check.split("; ").map(asked).collect();
                assert!(asked.iter().all(|(_, spec)| spec.places == [Path::new(name)]), "{check}");
                let asked: Vec<Workload> =
                    asked.into_iter().flat_map(|(workloads, _)| workloads).collect();
                let measured: Vec<Workload> = points.into_iter().map(point).collect();
                let questions =
                    |all: &[Workload]| -> Vec<Question> { all.iter().map(Question::of).collect() };
                assert_eq!(questions(&asked), questions(&measured), "{check}");
                let more = |all: &[Workload]| -> Vec<_> {
                    all.iter().map(|one| (one.limit_bytes, one.seed)).collect()
                };
                assert_eq!(more(&asked), more(&measured), "{check}");
                found += 1;
            }
        }
        assert!(found > 20, "{found} commands");
    }
}
