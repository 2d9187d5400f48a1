//! `halfpower compare`: did it help?

mod arms;
pub(crate) mod matrix;
mod read;
mod replay;
mod small_files;

pub(crate) use read::Imported;

use crate::arguments::PointArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::small_files::SmallFiles;
use crate::target::{is_twin, results_at};
use crate::unfinished::{Unfinished, refuse_twin};
use clap::Args;
use machine::units::parse_time;
use results::Output;
use results::compare::{Columns, Comparison, FailIf, Meaning, WORTH_PERCENT};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::Ordering;

/// The exit code if a `--fail-if` condition is met.
pub(crate) const FAILED: u8 = 3;

/// Options of `compare`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// Measure now: the target of arm A with its own options of `run`, in one word: '/mnt/ext4
    /// --depth 8'
    #[arg(
        long,
        value_name = "TARGET [OPTIONS]",
        requires = "b",
        help_heading = "Two arms, measured in turn"
    )]
    a: Option<String>,
    /// The same for arm B
    #[arg(
        long,
        value_name = "TARGET [OPTIONS]",
        requires = "a",
        help_heading = "Two arms, measured in turn"
    )]
    b: Option<String>,
    /// Replay this recorded application on both arms, which are targets with options of `replay`:
    /// '/mnt/ext4 --as-fast-as-possible'
    #[arg(
        long,
        value_name = "TRACE",
        requires = "a",
        conflicts_with_all = ["postmark", "metadata"],
        help_heading = "Two arms, measured in turn"
    )]
    replay: Option<PathBuf>,
    /// Shell command to run before each run of arm A
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "a",
        help_heading = "Two arms, measured in turn"
    )]
    a_setup: Option<String>,
    /// Shell command to run before each run of arm B
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "a",
        help_heading = "Two arms, measured in turn"
    )]
    b_setup: Option<String>,
    /// Run PostMark in the directories (or on the simulated machines) of --a and --b: a file of its
    /// commands up to `run`, without locations
    #[arg(
        long,
        value_name = "FILE",
        requires = "a",
        conflicts_with = "metadata",
        help_heading = "Two arms, measured in turn"
    )]
    postmark: Option<PathBuf>,
    /// Create, stat, open, rename, list and delete files in --a and --b: options of `metadata` in one
    /// word: '--files 2000 --sync file'
    #[arg(
        long,
        value_name = "OPTIONS",
        requires = "a",
        allow_hyphen_values = true,
        help_heading = "Two arms, measured in turn"
    )]
    metadata: Option<String>,
    /// Stop when a difference is decided, or when any difference is known to be smaller than this
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "2%", help_heading = "Two arms, measured in turn")]
    until: f64,
    /// Stop when this time is up
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "1m", help_heading = "Two arms, measured in turn")]
    budget: u64,
    /// Columns of a CSV to compare, if their names do not identify them
    #[arg(long, value_name = "A,B", value_parser = columns, help_heading = "Comparison")]
    columns: Option<Columns>,
    /// Measure of a CSV column, if its name does not say it: 'bandwidth=MiB/s', 'old=iops', or
    /// 'case=setting'
    #[arg(long, value_name = "COLUMN=MEASURE", value_parser = Meaning::from_str, help_heading = "Comparison")]
    measure: Vec<Meaning>,
    /// Smallest change that matters; smaller ones do not count, even if significant [default: 2%,
    /// or half of --until]
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = "Comparison")]
    worth: Option<f64>,
    /// End with exit code 3 if B is significantly worse: slower:5%, latency:10%, p50:, p99:, p99.9:
    /// or cpu:
    #[arg(long, value_name = "WHAT:PERCENT", value_parser = FailIf::from_str, help_heading = "Comparison")]
    fail_if: Vec<FailIf>,
    /// Write a page with all changes, intervals and runs to this file
    #[arg(long, value_name = "FILE", help_heading = "Comparison")]
    html: Option<PathBuf>,
    /// Write all changes to this file as CSV
    #[arg(long, value_name = "FILE", help_heading = "Comparison")]
    csv: Option<PathBuf>,
    /// Print Markdown, for a pull request
    #[arg(long, conflicts_with = "json", help_heading = "Comparison")]
    markdown: bool,
    #[command(flatten)]
    workload: PointArguments,
}

/// A percentage above 0: `2%`, `2`.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 100.0 => Ok(value),
        _ => Err(format!("'{text}' is not a percentage above 0 and up to 100; write it as 2%")),
    }
}

fn columns(text: &str) -> Result<Columns, String> {
    match text.split_once(',') {
        Some((a, b)) if !a.trim().is_empty() && !b.trim().is_empty() && !b.contains(',') => {
            Ok(Columns { a: a.trim().into(), b: b.trim().into() })
        }
        _ => Err(format!("'{text}' does not name two columns; write them as OLD,NEW")),
    }
}

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
            if let Some(option) = workload_option() {
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

/// Compares two arms of replays.
fn replays(
    context: &Context,
    arguments: &Arguments,
    trace: &Path,
    arms: [&str; 2],
) -> Result<(), Failure> {
    let of_run = workload_option().or_else(|| arguments.workload.resume.then(|| "--resume".into()));
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

/// Shows a comparison; fails if the user interrupted it, it is empty, or a condition is met.
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

/// Compares two results; a stored comparison is shown again.
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

/// An interrupted comparison shows the results so far and ends with the exit code of an interrupt.
fn not_interrupted() -> Result<(), Failure> {
    if crate::interrupt::flag().load(Ordering::Relaxed) {
        Err(Failure::Interrupted)
    } else {
        Ok(())
    }
}

/// The arguments of this program, except those that are not UTF-8: they are file names, not
/// options.
fn words_typed() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

/// Workload options on the command line; only arms accept them.
pub(crate) fn workload_options() -> Vec<String> {
    let words = arms::words_of_runs(words_typed());
    words.into_iter().filter(|word| word.starts_with("--") && word != "--json").collect()
}

fn workload_option() -> Option<String> {
    workload_options().into_iter().next()
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

/// Ends with exit code 3 if a condition is met.
fn fail(context: &Context, conditions: &[FailIf], comparison: &Comparison) -> Result<(), Failure> {
    let failed: Vec<_> =
        conditions.iter().flat_map(|condition| condition.failed(comparison)).collect();
    for one in &failed {
        context.console.tell(&one.sentence);
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Printed(FAILED)) }
}
