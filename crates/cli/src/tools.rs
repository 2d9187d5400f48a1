//! Other tools' languages: their words in, their reports out, our results as JSON beside them.

use crate::Failure;
use crate::points::program;
use crate::target::{machine_of, on_machine};
use machine::{Machine, TargetFacts};
use measure::Point;
use report::surfaces::{Cliff, Surface};
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use study::{Kind, Results, SCHEMA};

/// Seconds since 1970-01-01.
fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Whether the words ask for help; its text goes to standard output.
fn helped(words: &[String], help: &str) -> bool {
    let asks = words.iter().any(|word| word == "--help");
    if asks {
        // A reader that has gone away needs no help.
        let _ = print(help);
    }
    asks
}

/// The file for JSON must be one that can be made before an hour is spent on what goes into it.
pub(crate) fn check_json(path: Option<&Path>) -> Result<(), Failure> {
    check_output("--json", path)
}

fn check_output(option: &str, path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shown = path.display();
    match (path.is_dir(), parent.is_dir()) {
        (true, _) => Err(Failure::Usage(format!("{option} {shown}: it is a directory; name a file"))),
        (_, false) => Err(Failure::Usage(format!("{option} {shown}: there is no directory {}; make it first", parent.display()))),
        _ => Ok(()),
    }
}

/// What goes into a document of results beside a tool's own.
struct Document<'a> {
    /// The tool, and the key of its own results.
    tool: &'a str,
    points: Vec<Point>,
    warnings: Vec<String>,
    /// Seconds since 1970-01-01 and the machine's clock at the beginning.
    began: (u64, u64),
    seed: u64,
}

/// The document that study, compare and report read.
fn in_full<M: Machine>(machine: &M, target: TargetFacts, document: Document<'_>) -> Results {
    Results {
        schema: SCHEMA.into(),
        program: program(),
        kind: Kind::Sweep,
        target,
        machine: machine.facts(),
        began_unix_s: document.began.0,
        elapsed_ns: machine.now().saturating_sub(document.began.1),
        budget_ns: None,
        seed: document.seed,
        points: document.points,
        rates: Vec::new(),
        experiments: Vec::new(),
        answer: None,
        warnings: document.warnings,
    }
}

/// Writes a document with the tool's own results under its name.
fn write_json(path: Option<&Path>, results: &Results, tool: &str, own: &impl Serialize) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let failed = |why: String| Failure::Run(format!("cannot write {}: {why}", path.display()));
    let mut value = serde_json::to_value(results).map_err(|error| failed(error.to_string()))?;
    let own = serde_json::to_value(own).map_err(|error| failed(error.to_string()))?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert(tool.into(), own);
    }
    let text = serde_json::to_string_pretty(&value).map_err(|error| failed(error.to_string()))?;
    in_place(path, &(text + "\n"))
}

/// First beside the file, then in its place: a killed program leaves no half document.
fn in_place(path: &Path, text: &str) -> Result<(), Failure> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".part");
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, path))
        .inspect_err(|_| drop(std::fs::remove_file(&partial)))
        .map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))
}

/// Writes the document beside a tool's report, where it is wanted and something was measured.
fn keep_document<M: Machine>(
    path: Option<&Path>,
    machine: &M,
    target: Option<&TargetFacts>,
    document: Document<'_>,
    own: &impl Serialize,
) -> Result<(), Failure> {
    let (Some(_), Some(target)) = (path, target) else { return Ok(()) };
    let tool = document.tool;
    write_json(path, &in_full(machine, target.clone(), document), tool, own)
}

/// `halfpower iozone`.
pub(crate) fn iozone(words: &[String]) -> Result<(), Failure> {
    if helped(words, dialect::iozone::HELP) {
        return Ok(());
    }
    let options = dialect::iozone::parse(words)?;
    check_output("--json", options.json.as_deref())?;
    check_output("--html", options.html.as_deref())?;
    let names: Vec<&Path> = options.file.iter().chain(&options.process_files).map(PathBuf::as_path).collect();
    on_machine!(machine_of(&names)?, |machine| iozone_on(&machine, &options))
}

fn iozone_on<M>(machine: &M, options: &dialect::iozone::Options) -> Result<(), Failure>
where
    M: Machine + Sync,
    M::Target: Send,
{
    let began = (now_unix_s(), machine.now());
    let result = dialect::iozone::run(machine, options, began.0, &mut io::stdout().lock())?;
    let Some(target) = &result.target else { return Ok(()) };
    let points = result.cells.iter().map(|cell| &cell.point).chain(result.throughput.iter().flat_map(|one| &one.points)).cloned().collect();
    let document = Document { tool: "iozone", points, warnings: result.warnings.clone(), began, seed: options.seed.unwrap_or(1) };
    let results = in_full(machine, target.clone(), document);
    write_json(options.json.as_deref(), &results, "iozone", &result)?;
    match &options.html {
        Some(path) => in_place(path, &surface_page(&results, &result)?),
        None => Ok(()),
    }
}

/// The rates over file and record sizes as a page.
///
/// # Errors
/// The page cannot be drawn.
pub(crate) fn surface_page(results: &Results, result: &dialect::iozone::IozoneResult) -> Result<String, Failure> {
    let surfaces: Vec<Surface> = result.surfaces.iter().map(|surface| drawn(surface, result)).collect();
    report::surfaces::surfaces(results, &surfaces).map_err(|error| Failure::Run(format!("cannot draw the surfaces: {error}")))
}

fn drawn(surface: &dialect::iozone::Surface, result: &dialect::iozone::IozoneResult) -> Surface {
    let cell = |file_bytes: u64, record_bytes: u64| {
        let same = |cell: &&dialect::iozone::Measured| {
            cell.test == surface.test && cell.cell.file_bytes == file_bytes && cell.cell.record_bytes == record_bytes
        };
        result.cells.iter().find(same).and_then(dialect::iozone::Measured::spread_percent)
    };
    let cliff = result.cliffs.iter().find(|cliff| cliff.test == surface.test).and_then(|cliff| {
        let first_slow_row = surface.file_bytes.iter().position(|bytes| *bytes == cliff.first_slow_file_bytes)?;
        Some(Cliff { first_slow_row, sentence: cliff.sentence.clone() })
    });
    Surface {
        title: surface.test.report_title().trim_end_matches(" report").into(),
        rows: surface.file_bytes.clone(),
        columns: surface.record_bytes.clone(),
        bytes_per_s: surface.kib_per_s.iter().map(|row| row.iter().map(|rate| rate.map(|rate| rate * 1024.0)).collect()).collect(),
        spread_percent: surface
            .file_bytes
            .iter()
            .map(|file| surface.record_bytes.iter().map(|record| cell(*file, *record)).collect())
            .collect(),
        cliff,
    }
}

/// `halfpower sqlio`.
pub(crate) fn sqlio(words: &[String]) -> Result<(), Failure> {
    if helped(words, dialect::sqlio::HELP) {
        return Ok(());
    }
    let options = dialect::sqlio::parse(words)?;
    check_output("--json", options.json.as_deref())?;
    let names: Vec<&Path> = options.files.iter().map(PathBuf::as_path).collect();
    on_machine!(machine_of(&names)?, |machine| sqlio_on(&machine, &options))
}

fn sqlio_on<M>(machine: &M, options: &dialect::sqlio::Options) -> Result<(), Failure>
where
    M: Machine + Sync,
    M::Target: Send,
{
    let began = (now_unix_s(), machine.now());
    let seed = options.seed.unwrap_or(1);
    let json = options.json.as_deref();
    if options.matrix {
        let result = matrix(machine, options)?;
        let (points, warnings) = (result.points.clone(), result.warnings.clone());
        keep_document(json, machine, result.target.as_ref(), Document { tool: "sqlio_matrix", points, warnings, began, seed }, &result)?;
        print(&dialect::sqlio::matrix::table(&result))?;
        let measured = result.entries.iter().any(|entry| entry.best().is_some());
        return if measured { Ok(()) } else { Err(Failure::Run("no point could be measured".into())) };
    }
    let result = dialect::sqlio::run(machine, options, &mut io::stdout().lock())?;
    for warning in &result.warnings {
        eprintln!("halfpower: warning: {warning}");
    }
    let (points, warnings) = (result.points.clone(), result.warnings.clone());
    keep_document(json, machine, result.target.as_ref(), Document { tool: "sqlio", points, warnings, began, seed }, &result)
}

/// `halfpower diskspd`.
pub(crate) fn diskspd(words: &[String]) -> Result<(), Failure> {
    if helped(words, dialect::diskspd::HELP) {
        return Ok(());
    }
    let options = dialect::diskspd::parse(words)?;
    check_output("--json", options.json.as_deref())?;
    let profile = dialect::diskspd::profile(&options)?;
    let names: Vec<&Path> = profile.spans.iter().flat_map(|span| &span.targets).map(|target| target.path.as_path()).collect();
    on_machine!(machine_of(&names)?, |machine| diskspd_on(&machine, &options, &profile))
}

fn diskspd_on<M>(machine: &M, options: &dialect::diskspd::Options, profile: &dialect::diskspd::Profile) -> Result<(), Failure>
where
    M: Machine + Sync,
    M::Target: Send,
{
    let began = (now_unix_s(), machine.now());
    let result = dialect::diskspd::run(machine, options, profile, began.0)?;
    let points = result.spans.iter().flat_map(|span| &span.points).cloned().collect();
    let seed = profile.spans.first().map_or(1, |span| u64::from(span.seed) + 1);
    let document = Document { tool: "diskspd", points, warnings: result.warnings.clone(), began, seed };
    keep_document(options.json.as_deref(), machine, result.target.as_ref(), document, &result)?;
    match profile.format {
        dialect::diskspd::Format::Text => print(&dialect::diskspd::text(profile, &result)),
        dialect::diskspd::Format::Xml => {
            for warning in &result.warnings {
                eprintln!("halfpower: warning: {warning}");
            }
            print(&dialect::diskspd::xml(profile, &result))
        }
    }
}

/// The published study, with a bar.
fn matrix<M: Machine>(machine: &M, options: &dialect::sqlio::Options) -> Result<dialect::sqlio::matrix::MatrixResult, Failure> {
    let mut target = machine.open(&dialect::sqlio::matrix::target(options)?)?;
    let steps = dialect::sqlio::matrix::workloads(options, &machine.capabilities().engines).len();
    let bar = crate::progress::bar(2 * steps as u64);
    let result = dialect::sqlio::matrix::run(machine, &mut target, options, |index, of, made| {
        bar.set_message(format!("point {} of {of}, run {made}", index + 1));
        if made <= 2 {
            bar.inc(1);
        }
    });
    bar.finish_and_clear();
    let result = result?;
    // As without the study: a file that was made under a name stays.
    machine.keep(&mut target);
    Ok(result)
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::Run(format!("cannot print: {error}")))
}
