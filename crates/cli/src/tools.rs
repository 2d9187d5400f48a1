//! Other tools' command lines and reports.

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::target::{machine_of, on_machine};
use host::facts::{Roots, Topology, topology};
use machine::text::printable_lines;
use machine::{Machine, TargetFacts};
use results::Point;
use results::{Began, Kind, Output, Results};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

fn helped(context: &Context, words: &[String], help: &str) -> Result<bool, Failure> {
    let asks = words.iter().any(|word| word == "--help");
    if asks {
        context.console.print(help)?;
    }
    Ok(asks)
}

struct Document<'a> {
    /// The tool's name, also the JSON key of its own results.
    tool: &'a str,
    points: Vec<Point>,
    warnings: Vec<String>,
    interrupted: bool,
    began: Began,
    seed: u64,
}

fn in_full<M: Machine>(machine: &M, target: &TargetFacts, document: Document<'_>) -> Results {
    let Document { points, warnings, interrupted, began, seed, .. } = document;
    let results =
        Results::new(machine, Kind::Sweep, crate::context::program(), began, target.clone(), seed);
    let results = Results { points, warnings, ..results };
    if interrupted { results.interrupted(None) } else { results }
}

fn ended(context: &Context, interrupted: bool) -> Result<(), Failure> {
    match context.writes.limited() {
        Some(limited) => Err(limited),
        None if interrupted => Err(Failure::Interrupted),
        None => Ok(()),
    }
}

fn keep_document<M: Machine>(
    context: &Context,
    output: Option<&Output>,
    machine: &M,
    target: Option<&TargetFacts>,
    document: Document<'_>,
    own: &impl Serialize,
) -> Result<(), Failure> {
    let Some(target) = target else { return Ok(()) };
    let tool = document.tool;
    let results = in_full(machine, target, document);
    crate::history::keep(context, &results);
    let Some(output) = output else { return Ok(()) };
    let text = results::to_json_with(&results, tool, own);
    output::save(output, &output::json(text)?)
}

pub(crate) fn iozone(mut context: Context, words: &[String]) -> Result<(), Failure> {
    let asks = |option: &str| words.iter().any(|word| word == option);
    if asks("-h") || asks("--help") {
        return context.console.print(dialect::iozone::HELP);
    }
    if asks("-v") {
        return context.console.print(&dialect::iozone::version());
    }
    let options = dialect::iozone::parse(&context.take_ours(words)?)?;
    let options = dialect::iozone::Options {
        force: context.force,
        typed: Some(dialect::joined(words)),
        ..options
    }
    .with_clients()?;
    context.writes.destroys(&options.destroy);
    let files = dialect::iozone::files(&options);
    let names: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let json = output::optional(&context, "--json", options.json.as_deref(), &names)?;
    let html = output::optional(&context, "--html", options.html.as_deref(), &names)?;
    output::optional(&context, "-b", options.excel_file.as_deref(), &names)?;
    on_machine!(machine_of(&context, &names)?, |machine| iozone_on(
        &context,
        &machine,
        &options,
        json.as_ref(),
        html.as_ref()
    ))
}

fn iozone_on<M>(
    context: &Context,
    machine: &M,
    options: &dialect::iozone::Options,
    json: Option<&Output>,
    html: Option<&Output>,
) -> Result<(), Failure>
where
    M: Machine + Sync,
    M::Target: Send,
{
    let began = Began::now(machine);
    let result =
        dialect::iozone::run(machine, options, began.unix_s, &mut context.console.report())?;
    let Some(target) = &result.target else { return Ok(()) };
    let points = result
        .cells
        .iter()
        .map(|cell| &cell.point)
        .chain(result.throughput.iter().flat_map(|one| &one.points))
        .cloned()
        .collect();
    let document = Document {
        tool: "iozone",
        points,
        warnings: result.warnings.clone(),
        interrupted: result.interrupted,
        began,
        seed: options.seed.unwrap_or(1),
    };
    let results = in_full(machine, target, document);
    crate::history::keep(context, &results);
    let written = match json {
        Some(json) => {
            output::save(json, &output::json(results::to_json_with(&results, "iozone", &result))?)
        }
        None => Ok(()),
    };
    let drawn = match html {
        Some(html) => output::save(html, &output::surface_page(&results, &result)?),
        None => Ok(()),
    };
    written.and(drawn)?;
    ended(context, result.interrupted)
}

pub(crate) fn sqlio(mut context: Context, words: &[String]) -> Result<(), Failure> {
    if helped(&context, words, dialect::sqlio::HELP)? {
        return Ok(());
    }
    let options = dialect::sqlio::parse(&context.take_ours(words)?)?;
    context.writes.destroys(&options.destroy);
    let jobs = dialect::sqlio::jobs(&options)?;
    let names: Vec<&Path> = jobs.iter().map(|job| job.path.as_path()).collect();
    let read: Vec<&Path> = names.iter().copied().chain(options.parameters.as_deref()).collect();
    let json = output::optional(&context, "--json", options.json.as_deref(), &read)?;
    if options.compares() {
        return crate::compare::matrix::compare(&context, &options, json.as_ref());
    }
    on_machine!(machine_of(&context, &names)?, |machine| sqlio_on(
        &context,
        &machine,
        &options,
        json.as_ref()
    ))
}

fn sqlio_on<M>(
    context: &Context,
    machine: &M,
    options: &dialect::sqlio::Options,
    json: Option<&Output>,
) -> Result<(), Failure>
where
    M: Machine + Sync,
    M::Target: Send,
{
    let began = Began::now(machine);
    let seed = options.seed.unwrap_or(1);
    if options.matrix {
        let result = matrix(context, machine, options)?;
        let (points, warnings) = (result.points.clone(), result.warnings.clone());
        let kept = keep_document(
            context,
            json,
            machine,
            result.target.as_ref(),
            Document {
                tool: "sqlio_matrix",
                points,
                warnings,
                interrupted: result.interrupted,
                began,
                seed,
            },
            &result,
        );
        context.console.print(&printable_lines(&dialect::sqlio::matrix::table(&result)))?;
        kept?;
        ended(context, result.interrupted)?;
        let measured = result.entries.iter().any(|entry| entry.best().is_some());
        return if measured {
            Ok(())
        } else {
            Err(Failure::Run("no point could be measured".into()))
        };
    }
    let result = dialect::sqlio::run(machine, options, &mut context.console.report())?;
    context.console.warn(&result.warnings);
    let (points, warnings) = (result.points.clone(), result.warnings.clone());
    keep_document(
        context,
        json,
        machine,
        result.target.as_ref(),
        Document { tool: "sqlio", points, warnings, interrupted: result.interrupted, began, seed },
        &result,
    )?;
    ended(context, result.interrupted)
}

pub(crate) fn diskspd(mut context: Context, words: &[String]) -> Result<(), Failure> {
    if helped(&context, words, dialect::diskspd::HELP)? {
        return Ok(());
    }
    let clock = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u32);
    let options = dialect::diskspd::parse(&context.take_ours(words)?)?.seeded(clock);
    let options = dialect::diskspd::Options { typed: Some(dialect::joined(words)), ..options };
    context.writes.destroys(&options.destroy);
    let profile = dialect::diskspd::profile(&options)?;
    if options.profile_only {
        return context.console.print(&match profile.format {
            dialect::diskspd::Format::Text => {
                printable_lines(&dialect::diskspd::profile_text(&profile, &options.command()))
            }
            dialect::diskspd::Format::Xml => dialect::diskspd::profile_xml(&profile, 0),
        });
    }
    let names: Vec<&Path> = profile
        .spans
        .iter()
        .flat_map(|span| &span.targets)
        .map(|target| target.path.as_path())
        .collect();
    let sources = profile.spans.iter().flat_map(|span| &span.targets);
    let sources = sources.filter_map(|target| target.source_file.as_deref());
    let read = names.iter().copied().chain(options.file.as_deref()).chain(sources);
    let read: Vec<&Path> = read.collect();
    let json = output::optional(&context, "--json", options.json.as_deref(), &read)?;
    on_machine!(machine_of(&context, &names)?, |machine| diskspd_on(
        &context,
        &machine,
        &options,
        &profile,
        json.as_ref()
    ))
}

fn diskspd_on<M>(
    context: &Context,
    machine: &M,
    options: &dialect::diskspd::Options,
    profile: &dialect::diskspd::Profile,
    json: Option<&Output>,
) -> Result<(), Failure>
where
    M: Machine + Sync,
    M::Target: Send,
{
    let began = Began::now(machine);
    let mut result = dialect::diskspd::run(machine, options, profile, began.unix_s)?;
    if !machine.facts().simulated {
        result.system.topology =
            topology(&Roots::default()).map(|Topology { cores, nodes, sockets }| {
                dialect::diskspd::Topology { cores, nodes, sockets }
            });
    }
    let points = result.spans.iter().flat_map(|span| &span.points).cloned().collect();
    let seed = profile.spans.first().map_or(1, |span| u64::from(span.seed) + 1);
    let document = Document {
        tool: "diskspd",
        points,
        warnings: result.warnings.clone(),
        interrupted: result.interrupted,
        began,
        seed,
    };
    let kept = keep_document(context, json, machine, result.target.as_ref(), document, &result);
    match profile.format {
        dialect::diskspd::Format::Text => {
            context.console.print(&printable_lines(&dialect::diskspd::text(profile, &result)))?
        }
        dialect::diskspd::Format::Xml => {
            context.console.warn(&result.warnings);
            context.console.print(&dialect::diskspd::xml(profile, &result))?;
        }
    }
    kept?;
    ended(context, result.interrupted)
}

fn matrix<M: Machine>(
    context: &Context,
    machine: &M,
    options: &dialect::sqlio::Options,
) -> Result<dialect::sqlio::matrix::MatrixResult, Failure> {
    let engines = machine.capabilities().engines;
    let spec = dialect::sqlio::matrix::target(options)?;
    let mut runner = dialect::sqlio::matrix::open(machine, &[spec], options)?;
    let steps = dialect::sqlio::matrix::workloads(options, &engines).len();
    let bar = context.console.bar(2 * steps as u64);
    let result = dialect::sqlio::matrix::run(&mut runner, options, |index, of, made| {
        bar.set_message(format!("point {} of {of}, run {made}", index + 1));
        if made <= 2 {
            bar.inc(1);
        }
    });
    bar.finish_and_clear();
    let result = result?;
    // Keep a file that was created under a given name, as other runs do.
    runner.keep(|_| !result.interrupted);
    Ok(result)
}
