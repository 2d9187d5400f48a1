//! Every command stores its result; `halfpower history` shows it.

mod several;

use crate::context::{Context, NoHistory};
use crate::documents::Document;
use crate::failure::Failure;
use crate::imported::Imported;
use crate::output;
use clap::{Args, Subcommand};
use machine::units::{parse_time, show_size};
use machine::{MachineFacts, TargetFacts};
use report::history::HistoryRow;
use results::compare::{Arm, Comparison, Measure, Measurement};
use results::history::{
    Entry, Filter, Fingerprint, History, HistoryError, Other, Trend, difference, trends,
};
use results::{Program, Results};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tune::Tuning;

/// An export is built in memory.
const MAX_EXPORT_BYTES: usize = 1 << 30;

const MAX_TRENDS: usize = 12;

/// Only warns if the history cannot be written.
fn kept(context: &Context, keep: impl FnOnce(&mut History) -> Result<i64, HistoryError>) {
    let result = match context.history_file() {
        Ok(path) => History::open(&path)
            .and_then(|mut history| keep(&mut history))
            .map_err(|error| error.to_string()),
        Err(NoHistory::Disabled) => return,
        Err(why) => Err(why.to_string()),
    };
    if let Err(why) = result {
        context.console.tell(&format!("warning: this result is not in the history: {why}"));
    }
}

pub(crate) fn absolute(target: &str) -> String {
    // A name that is not a path, such as a simulated machine, stays as it is.
    std::fs::canonicalize(target)
        .map_or_else(|_| target.into(), |path| path.to_string_lossy().into_owned())
}

pub(crate) fn keep(context: &Context, results: &Results) {
    keep_as(context, results, None);
}

/// An interrupted measurement cannot be a baseline.
pub(crate) fn keep_as(context: &Context, results: &Results, kind: Option<&str>) {
    let measured =
        results.points.iter().any(|point| point.numbers.is_some()) || !results.rates.is_empty();
    if measured && !results.incomplete {
        kept(context, |history| history.keep(results, &absolute(&results.target.name), kind));
    }
}

pub(crate) fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

pub(crate) fn keep_comparison(
    context: &Context,
    comparison: &Comparison,
    arms: &[Box<dyn Arm>; 2],
    began_unix_s: u64,
) {
    let program = &comparison.program;
    keep_other(context, comparison.to_json(), |document| Other {
        began_unix_s,
        kind: "compare",
        target: format!("{} -> {}", comparison.a, comparison.b),
        fingerprint: results::compare::fingerprint(arms, &program.version),
        program,
        document,
    });
}

pub(crate) fn keep_tuning(
    context: &Context,
    tuning: &Tuning,
    machine: &MachineFacts,
    target: &TargetFacts,
    began_unix_s: u64,
) {
    let program = &tuning.program;
    keep_other(context, tuning.to_json(), |document| Other {
        began_unix_s,
        kind: "tune",
        target: absolute(&tuning.target),
        fingerprint: Fingerprint::of_facts(machine, target, &program.version),
        program,
        document,
    });
}

pub(crate) const REPLAY: &str = "replay";

/// A result that is not a list of points.
pub(crate) struct Measured<'a> {
    /// One of [`results::history::WITHOUT_POINTS`].
    pub(crate) kind: &'static str,
    pub(crate) machine: &'a MachineFacts,
    pub(crate) target: &'a TargetFacts,
    pub(crate) name: &'a str,
    pub(crate) program: &'a Program,
    pub(crate) began_unix_s: u64,
}

pub(crate) fn keep_measured(
    context: &Context,
    document: &str,
    of: &Measured<'_>,
    asked: Vec<Measurement>,
) {
    let other = Other {
        began_unix_s: of.began_unix_s,
        kind: of.kind,
        target: absolute(of.name),
        fingerprint: Fingerprint::of_facts(of.machine, of.target, &of.program.version),
        program: of.program,
        document: document.to_owned(),
    };
    kept(context, |history| history.keep_other(other, asked));
}

fn keep_other<'a>(
    context: &Context,
    document: serde_json::Result<String>,
    other: impl FnOnce(String) -> Other<'a>,
) {
    kept(context, |history| {
        let document =
            document.map_err(|error| HistoryError::Document { id: 0, why: error.to_string() })?;
        history.keep_other(other(document), Vec::new())
    });
}

impl From<HistoryError> for Failure {
    fn from(error: HistoryError) -> Self {
        if error.is_usage() {
            Failure::Usage(error.to_string())
        } else {
            Failure::Run(error.to_string())
        }
    }
}

pub(crate) fn open(context: &Context) -> Result<History, Failure> {
    Ok(History::open_existing(&file(context)?)?)
}

fn file(context: &Context) -> Result<PathBuf, Failure> {
    context.history_file().map_err(|why| Failure::Usage(format!("no history: {why}")))
}

/// All reports, or none.
fn import(context: &Context, reports: &[PathBuf], target: Option<&str>) -> Result<(), Failure> {
    let mut read = Vec::new();
    for path in reports {
        let imported = Imported::read(path)?;
        read.push((path, imported.side()?, imported));
    }
    let mut history = History::open(&file(context)?)?;
    let program = crate::context::program();
    for (path, side, imported) in read {
        let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let target = absolute(target.unwrap_or(&path.to_string_lossy()));
        let other = Other {
            // No tool's report has the time of every run; the file was written at the end.
            began_unix_s: since.map_or(0, |time| time.as_secs()),
            kind: "import",
            target: target.clone(),
            fingerprint: Fingerprint::default(),
            program: &program,
            document: output::json(serde_json::to_string(&imported))?,
        };
        let cases = side.asked.len();
        let id = history.keep_other(other, side.asked)?;
        context
            .console
            .print(&format!("entry {id}: {}, {cases} cases of {target}\n", side.name))?;
    }
    Ok(())
}

/// Options of `history`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Task>,
    #[command(flatten)]
    list: ListArguments,
}

#[derive(Args, Clone, Default)]
struct ListArguments {
    /// Only of this target
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Only of this kind: run, sweep, study, sustained, pts, check, compare, tune, replay, postmark,
    /// metadata or import
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Show at most the newest N entries
    #[arg(long, value_name = "N", default_value_t = 50)]
    max: u32,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand, Clone)]
enum Task {
    /// Show an entry, or compare several: rates and p99 of the questions that they share, and what
    /// changed between them
    Show {
        /// Their numbers
        #[arg(required = true, value_name = "ID")]
        ids: Vec<i64>,
        /// Print the documents as they were stored
        #[arg(long)]
        json: bool,
        /// Write a page with its report, or with the comparison, to this file instead
        #[arg(long, value_name = "FILE", conflicts_with = "json")]
        html: Option<PathBuf>,
    },
    /// Write a note about an entry, as 'new firmware'; without TEXT, remove it
    Note {
        /// Its number
        id: i64,
        /// The note
        text: Vec<String>,
    },
    /// Give an entry tags, for `history --tag`
    Tag {
        /// Its number
        id: i64,
        /// Words
        #[arg(required = true, value_parser = tag)]
        tags: Vec<String>,
        /// Take these tags away instead
        #[arg(long)]
        remove: bool,
    },
    /// Store reports of other tools: of fio, diskspd, IOzone, PostMark, SQLIO, sysbench, IOR, mdtest
    /// or elbencho
    Import {
        /// Reports, each with one run or several
        #[arg(required = true, value_name = "FILE")]
        reports: Vec<PathBuf>,
        /// The target that they measured, so that trends show them with its other entries [default:
        /// the file]
        #[arg(long, value_name = "TARGET")]
        target: Option<String>,
    },
    /// Show how a target's figures changed over time, and when they changed for good
    Trend {
        /// The target, named as it was when measured
        target: String,
        /// Measure to show
        #[arg(long, value_parser = ["throughput", "operations", "time", "p50", "p99", "p99.9", "cpu"], default_value = "throughput")]
        measure: String,
        /// Only questions that contain this text
        #[arg(long, value_name = "TEXT")]
        question: Option<String>,
        /// Write a page with all trends to this file
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Print everything for other programs
    Export {
        /// json: every document, one a line; csv and parquet: every point of every document
        #[arg(long, value_parser = ["json", "csv", "parquet"], default_value = "json")]
        format: String,
        /// Write to this file instead of standard output; Parquet requires it
        #[arg(long, value_name = "FILE", required_if_eq("format", "parquet"))]
        output: Option<PathBuf>,
    },
    /// Remove entries
    Prune {
        /// Numbers of entries
        ids: Vec<i64>,
        /// Keep this many of the newest entries of each target, remove the others
        #[arg(long, value_name = "N", conflicts_with = "ids")]
        keep: Option<usize>,
        /// Remove entries older than this, as 2160h
        #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "ids")]
        older: Option<u64>,
    },
}

pub(crate) fn history(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    if let Some(Task::Import { reports, target }) = &arguments.command {
        return import(context, reports, target.as_deref());
    }
    let mut history = open(context)?;
    match &arguments.command {
        Some(Task::Import { .. }) => Ok(()),
        None => list(context, &history, &arguments.list),
        Some(Task::Show { ids, json, html }) => match (&ids[..], html) {
            (_, None) if *json => ids.iter().try_for_each(|id| show(context, &history, *id, true)),
            ([id], Some(file)) => page(context, &history, *id, file),
            ([id], None) => show(context, &history, *id, false),
            (ids, file) => several::show(context, &history, ids, file.as_deref()),
        },
        Some(Task::Note { id, text }) => Ok(history.set_note(*id, text.join(" ").trim())?),
        Some(Task::Tag { id, tags, remove }) => {
            Ok(tags.iter().try_for_each(|tag| history.set_tag(*id, tag, !remove))?)
        }
        Some(Task::Trend { target, measure, question, html }) => {
            trend(context, &history, target, measure, question.as_deref(), html.as_ref())
        }
        Some(Task::Export { format, output }) => {
            export(context, &history, format, output.as_deref())
        }
        Some(Task::Prune { ids, keep, older }) => prune(context, &mut history, ids, *keep, *older),
    }
}

fn tag(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|one: char| one.is_whitespace() || one.is_control()) {
        return Err(format!("'{text}': a tag is one word; history note writes a sentence"));
    }
    Ok(text.to_owned())
}

fn list(context: &Context, history: &History, arguments: &ListArguments) -> Result<(), Failure> {
    let ListArguments { target, kind, tag, max, json } = arguments.clone();
    let target = target.map(|target| absolute(&target));
    let entries = history.list(&Filter { target, kind, tag, max: Some(max) })?;
    if json {
        return context
            .console
            .print(&(output::json(serde_json::to_string_pretty(&entries))? + "\n"));
    }
    context.console.print(&report::history::list(&entries, output::width(), output::colour()))
}

fn show(context: &Context, history: &History, id: i64, json: bool) -> Result<(), Failure> {
    let (entry, document) = history.get(id)?;
    if json {
        return context.console.print(&document);
    }
    if let Some(document) = Document::parse(&format!("entry {id}"), &document)? {
        return context.console.print(&document.terminal());
    }
    if entry.kind == "import" {
        let unreadable =
            |error| Failure::Run(format!("entry {id} of the history cannot be read: {error}"));
        let imported: Imported = serde_json::from_str(&document).map_err(unreadable)?;
        let side = imported.side()?;
        return context.console.print(&report::foreign::terminal(
            &side,
            output::width(),
            output::colour(),
        ));
    }
    let results = history.results(id)?;
    if results.answer.is_some() {
        output::show_study(context, &results, None, output::Form::Screen)
    } else {
        output::show_points(context, &results, false)
    }
}

fn page(context: &Context, history: &History, id: i64, file: &Path) -> Result<(), Failure> {
    let page = output::output(context, "--html", file, &[])?;
    let (entry, text) = history.get(id)?;
    let drawn = match Document::parse(&format!("entry {id}"), &text)? {
        None => output::report_page(&history.results(id)?)?,
        Some(document) => document.html()?.ok_or_else(|| {
            Failure::Usage(format!(
                "entry {id} is a {}, which has no page; halfpower history show {id} prints it",
                entry.kind
            ))
        })?,
    };
    output::save(&page, &drawn)
}

fn measure(name: &str) -> Measure {
    match name {
        "operations" => Measure::Operations,
        "time" => Measure::Duration,
        "p50" => Measure::LatencyP50,
        "p99" => Measure::LatencyP99,
        "p99.9" => Measure::LatencyP999,
        "cpu" => Measure::Cpu,
        _ => Measure::Throughput,
    }
}

fn trend(
    context: &Context,
    history: &History,
    target: &str,
    name: &str,
    question: Option<&str>,
    html: Option<&PathBuf>,
) -> Result<(), Failure> {
    let page = output::optional(context, "--html", html.map(PathBuf::as_path), &[])?;
    let measure = measure(name);
    let mut all = trends(history.occurrences(&absolute(target), measure)?);
    if let Some(text) = question {
        all.retain(|one| one.question.contains(text) || one.label.contains(text));
    }
    if all.is_empty() {
        return Err(Failure::Usage(format!(
            "{target}: the history holds no {name} of it{}; halfpower history lists what there is",
            question.map_or(String::new(), |text| format!(" with '{text}' in the question"))
        )));
    }
    let questions = all.len();
    all.truncate(MAX_TRENDS);
    let reported: Vec<HistoryRow> =
        all.into_iter().map(|trend| with_changes(history, trend)).collect::<Result<_, _>>()?;
    context.console.print(&report::history::trends(
        &reported,
        measure,
        output::width(),
        output::colour(),
    ))?;
    if questions > reported.len() {
        context.console.tell(&format!(
            "{} more questions have fewer readings; --question TEXT shows them",
            questions - reported.len()
        ));
    }
    let Some(page) = page else { return Ok(()) };
    let program = crate::context::program();
    let text = report::history::trends_html(
        target,
        &reported,
        measure,
        &format!("{} {}", program.name, program.version),
    );
    output::save(
        &page,
        &text.map_err(|error| Failure::Run(format!("cannot draw the trends: {error}")))?,
    )
}

fn with_changes(history: &History, trend: Trend) -> Result<HistoryRow, HistoryError> {
    let of = |place: usize| history.fingerprint(trend.values[place].entry);
    let changed = |&place: &usize| Ok((place, difference(&of(place - 1)?, &of(place)?)));
    let machine = trend.machine_changes.iter().map(changed).collect::<Result<_, HistoryError>>()?;
    Ok(HistoryRow { trend, machine })
}

fn export(
    context: &Context,
    history: &History,
    format: &str,
    file: Option<&Path>,
) -> Result<(), Failure> {
    let file = output::optional(context, "--output", file, &[])?;
    let mut entries = history.list(&Filter::default())?;
    entries.reverse();
    if format == "parquet" {
        let bytes = parquet(history, &entries)?;
        return file.map_or(Ok(()), |file| Ok(file.write(&bytes)?));
    }
    let mut text = String::new();
    let mut first = true;
    for entry in entries {
        if format == "json" {
            text += &json_line(history, &entry)?;
        } else if entry.has_points() {
            text += &results::history_csv(&entry, &history.results(entry.id)?, first);
            first = false;
        }
        if text.len() > MAX_EXPORT_BYTES {
            let hint = "leave out --output and redirect standard output, or remove entries with history prune";
            return Err(Failure::Usage(format!(
                "the history is too large for one file ({}): {hint}",
                show_size(text.len() as u64)
            )));
        }
        if file.is_none() {
            context.console.print(&std::mem::take(&mut text))?;
        }
    }
    file.map_or(Ok(()), |file| output::save(&file, &text))
}

#[cfg(feature = "parquet")]
fn parquet(history: &History, entries: &[Entry]) -> Result<Vec<u8>, Failure> {
    let mut table = results::HistoryTable::default();
    for entry in entries.iter().filter(|entry| entry.has_points()) {
        table.add(entry, &history.results(entry.id)?);
    }
    table.to_parquet().map_err(|error| Failure::Run(format!("cannot make a Parquet file: {error}")))
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &History, _: &[Entry]) -> Result<Vec<u8>, Failure> {
    let why = "--format parquet: this halfpower was built without Parquet; use csv, or build it with --features parquet";
    Err(Failure::Usage(why.into()))
}

fn json_line(history: &History, entry: &Entry) -> Result<String, Failure> {
    let (_, document) = history.get(entry.id)?;
    let unreadable =
        |error| Failure::Run(format!("entry {} of the history cannot be read: {error}", entry.id));
    let document: serde_json::Value = serde_json::from_str(&document).map_err(unreadable)?;
    let line = serde_json::json!({ "entry": entry, "document": document });
    Ok(output::json(serde_json::to_string(&line))? + "\n")
}

fn prune(
    context: &Context,
    history: &mut History,
    ids: &[i64],
    keep: Option<usize>,
    older: Option<u64>,
) -> Result<(), Failure> {
    let mut doomed = ids.to_vec();
    if ids.is_empty() {
        if keep.is_none() && older.is_none() {
            return Err(Failure::Usage(
                "name entries, or what to remove with --keep N or --older TIME".into(),
            ));
        }
        let now = now_unix_s();
        let mut of_target: std::collections::HashMap<String, usize> =
            std::collections::HashMap::new();
        for entry in history.list(&Filter::default())? {
            let newer = of_target.entry(entry.target.clone()).or_default();
            let surplus = keep.is_some_and(|keep| *newer >= keep);
            let old =
                older.is_some_and(|ns| now.saturating_sub(entry.began_unix_s) > ns / 1_000_000_000);
            *newer += 1;
            if surplus || old {
                doomed.push(entry.id);
            }
        }
    }
    let removed = history.remove(&doomed)?;
    history.compact()?;
    context
        .console
        .print(&format!("{removed} {} removed\n", if removed == 1 { "entry" } else { "entries" }))
}
