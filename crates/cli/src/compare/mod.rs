//! `halfpower compare`: did it help?

mod arguments;
mod arms;
pub(crate) mod matrix;
mod read;
mod replay;
mod small_files;

pub(crate) use arguments::Arguments;

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::run_words::workload_options;
use crate::small_files::SmallFiles;
use crate::target::{is_twin, results_at};
use crate::unfinished::{Unfinished, refuse_twin};
use results::Output;
use results::compare::{Comparison, FailIf, WORTH_PERCENT};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Exit code if a `--fail-if` condition is met.
pub(crate) const FAILED: u8 = 3;

struct Outputs {
    html: Option<Output>,
    csv: Option<Output>,
}

pub(crate) fn compare(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let results = &arguments.workload.target.targets;
    if let (Some(trace), Some(a), Some(b)) = (&arguments.replay, &arguments.a, &arguments.b) {
        return replays(context, arguments, trace, [a, b]);
    }
    let asked = SmallFiles::of(arguments.postmark.as_deref(), arguments.metadata.as_deref())?;
    if let Some(asked) = asked {
        let outputs = Outputs {
            html: output::optional(context, "--html", arguments.html.as_deref(), &[])?,
            csv: output::optional(context, "--csv", arguments.csv.as_deref(), &[])?,
        };
        if arguments.workload.resume {
            let why = "its runs are not kept; leave it out";
            return Err(Failure::Usage(format!("--resume: {}: {why}", asked.name())));
        }
        return judge(
            context,
            arguments,
            &outputs,
            &small_files::compare(context, arguments, &asked)?,
        );
    }
    let arms = match (&arguments.a, &arguments.b) {
        (Some(a), Some(b)) => Some(([a.as_str(), b.as_str()], arms::arguments([a, b])?)),
        _ => None,
    };
    let measured = arms.iter().flat_map(|(_, of)| of).flat_map(|arm| &arm.target.targets);
    let kept: Vec<&Path> = results.iter().chain(measured).map(PathBuf::as_path).collect();
    let outputs = Outputs {
        html: output::optional(context, "--html", arguments.html.as_deref(), &kept)?,
        csv: output::optional(context, "--csv", arguments.csv.as_deref(), &kept)?,
    };
    match &arms {
        Some((names, of)) => {
            if let Some(result) = results.first() {
                return Err(Failure::Usage(format!(
                    "{}: --a and --b name what is measured; leave out the results, or --a and --b",
                    result.display()
                )));
            }
            let targets = [&of[0], &of[1]].map(|arm| &arm.target.targets);
            let targets: Vec<PathBuf> = targets.into_iter().flatten().cloned().collect();
            if targets.iter().all(|target| is_twin(target)) {
                refuse_twin(arguments.workload.resume)?;
            }
            let unfinished =
                Unfinished::begin(context, "compare", &targets, arguments.workload.resume)?;
            let comparison = arms::compare(context, arguments, *names, of, &unfinished);
            let judged = comparison.and_then(|one| judge(context, arguments, &outputs, &one));
            unfinished.end(&judged);
            judged
        }
        None => {
            if let Some(option) = workload_options::<Arguments>().first() {
                return Err(Failure::Usage(format!(
                    "{option}: results that are there cannot be asked anything; name two arms with --a and --b to measure now"
                )));
            }
            let results: Vec<PathBuf> =
                results.iter().map(|path| results_at(path)).collect::<Result<_, Failure>>()?;
            judge(context, arguments, &outputs, &read(context, &results, arguments)?)
        }
    }
}

fn replays(
    context: &Context,
    arguments: &Arguments,
    trace: &Path,
    arms: [&str; 2],
) -> Result<(), Failure> {
    let of_run = workload_options::<Arguments>()
        .into_iter()
        .next()
        .or_else(|| arguments.workload.resume.then(|| "--resume".into()));
    if let Some(option) = of_run {
        return Err(Failure::Usage(format!(
            "{option}: --replay takes options of halfpower replay, inside --a and --b"
        )));
    }
    if let Some(result) = arguments.workload.target.targets.first() {
        return Err(Failure::Usage(format!(
            "{}: --a and --b name what is measured; leave out the results",
            result.display()
        )));
    }
    let outputs = Outputs {
        html: output::optional(context, "--html", arguments.html.as_deref(), &[trace])?,
        csv: output::optional(context, "--csv", arguments.csv.as_deref(), &[trace])?,
    };
    judge(context, arguments, &outputs, &replay::compare(context, arguments, trace, arms)?)
}

fn judge(
    context: &Context,
    arguments: &Arguments,
    outputs: &Outputs,
    comparison: &Comparison,
) -> Result<(), Failure> {
    show(context, arguments, outputs, comparison)?;
    not_interrupted()?;
    if comparison.differences.is_empty() {
        return Err(Failure::Run("the two have nothing that can be compared".into()));
    }
    fail(context, &arguments.fail_if, comparison)
}

fn read(
    context: &Context,
    results: &[PathBuf],
    arguments: &Arguments,
) -> Result<Comparison, Failure> {
    if let Some(kept) = read::kept(context, results)? {
        if arguments.worth.is_some() {
            let hint = "leave it out, or name the two results";
            return Err(Failure::Usage(format!(
                "--worth: this comparison was judged when it was made; {hint}"
            )));
        }
        return Ok(kept);
    }
    let worth = arguments.worth.unwrap_or(WORTH_PERCENT);
    let [a, b] = read::sides(context, results, arguments.columns.as_ref(), &arguments.measure)?;
    Ok(results::compare::compare(&a, &b, crate::context::program(), worth))
}

fn not_interrupted() -> Result<(), Failure> {
    if crate::interrupt::flag().load(Ordering::Relaxed) {
        Err(Failure::Interrupted)
    } else {
        Ok(())
    }
}

fn show(
    context: &Context,
    arguments: &Arguments,
    outputs: &Outputs,
    comparison: &Comparison,
) -> Result<(), Failure> {
    let drawn = |error| Failure::Run(format!("cannot draw the comparison: {error}"));
    let printed = if arguments.workload.json {
        context.console.print(&output::json(comparison.to_json())?)
    } else if arguments.markdown {
        context.console.print(&report::compare::markdown(comparison))
    } else {
        context.console.print(&report::compare::terminal(
            comparison,
            output::width(),
            output::colour(),
        ))
    };
    let html = match &outputs.html {
        Some(file) => output::save(file, &report::compare::html(comparison).map_err(drawn)?),
        None => Ok(()),
    };
    let csv = match &outputs.csv {
        Some(file) => output::save(file, &results::compare::comparison_csv(comparison)),
        None => Ok(()),
    };
    printed.and(html).and(csv)
}

fn fail(context: &Context, conditions: &[FailIf], comparison: &Comparison) -> Result<(), Failure> {
    let failed: Vec<_> =
        conditions.iter().flat_map(|condition| condition.failed(comparison)).collect();
    for one in &failed {
        context.console.tell(&one.sentence);
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Printed(FAILED)) }
}
