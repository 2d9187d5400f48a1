//! `halfpower study`, and `halfpower report`, which shows a study again.

use crate::Failure;
use crate::arguments::{ReportArguments, StudyArguments};
use crate::target::{on_machine, resolve};
use machine::{Machine, TargetSpec, units};
use std::path::{Path, PathBuf};
use study::{Effort, Plan, Results};

const SECOND_NS: u64 = 1_000_000_000;

/// The shortest budget in which a study says anything.
const LEAST_BUDGET_NS: u64 = 5 * SECOND_NS;

/// Studies a target and writes its report.
pub(crate) fn study(arguments: &StudyArguments) -> Result<(), Failure> {
    let (effort, usual) = match (arguments.quick, arguments.full) {
        (true, _) => (Effort::Quick, 50 * SECOND_NS),
        (_, true) => (Effort::Full, 1200 * SECOND_NS),
        _ => (Effort::Normal, 180 * SECOND_NS),
    };
    let budget_ns = arguments.budget.unwrap_or(usual);
    if budget_ns < LEAST_BUDGET_NS {
        return Err(Failure::Usage(format!(
            "--budget {}: too short to measure anything; give at least 5s",
            units::show_time(budget_ns as f64)
        )));
    }
    let plan = Plan { budget_ns, effort, only: arguments.only.clone(), seed: arguments.target.seed };
    let (place, spec) = resolve(&arguments.target)?;
    // The last thing a long study should meet is a directory that it cannot make.
    crate::output::make_directory(&arguments.output)?;
    let results = on_machine!(place, |machine| study_on(&machine, &spec, &plan))?;
    let written = crate::output::write_study(&results, &arguments.output)?;
    crate::output::show_study(&results, &written, arguments.json);
    Ok(())
}

fn study_on<M: Machine>(machine: &M, spec: &TargetSpec, plan: &Plan) -> Result<Results, Failure> {
    let bar = crate::progress::time_bar(plan.budget_ns);
    let results = study::study(machine, spec, plan, crate::points::program(), &mut |progress| {
        crate::progress::at(&bar, progress.passed_ns, progress.doing);
    });
    bar.finish_and_clear();
    Ok(results?)
}

/// Makes the report of a document again.
pub(crate) fn report(arguments: &ReportArguments) -> Result<(), Failure> {
    let results = store::read(&arguments.results).map_err(|error| Failure::Usage(error.to_string()))?;
    let beside = arguments.results.parent().unwrap_or(Path::new("."));
    let directory = arguments.output.as_deref().unwrap_or(beside);
    crate::output::make_directory(directory)?;
    let mut written = crate::output::write_report(&results, directory)?;
    written.extend(surfaces(arguments, &results, directory)?);
    crate::output::show_study(&results, &written, false);
    Ok(())
}

/// The page of surfaces of a document that `halfpower iozone` wrote: it holds the rates over file and record sizes beside the points.
fn surfaces(arguments: &ReportArguments, results: &Results, directory: &Path) -> Result<Option<PathBuf>, Failure> {
    let text = std::fs::read_to_string(&arguments.results).map_err(|error| Failure::Usage(error.to_string()))?;
    let document: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let Some(own) = document.get("iozone").and_then(|own| serde_json::from_value(own.clone()).ok()) else { return Ok(None) };
    let own: dialect::iozone::IozoneResult = own;
    if own.surfaces.is_empty() {
        return Ok(None);
    }
    let path = directory.join("surfaces.html");
    std::fs::write(&path, crate::tools::surface_page(results, &own)?)
        .map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))?;
    Ok(Some(path))
}
