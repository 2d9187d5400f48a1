//! Other tools' languages: their words in, their reports out, our results as JSON beside them.

use crate::Failure;
use crate::points::program;
use host::Host;
use machine::{Machine, TargetFacts};
use measure::Point;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
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
    let Some(path) = path else { return Ok(()) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (path.is_dir(), parent.is_dir()) {
        (true, _) => Err(Failure::Usage(format!("--json {}: it is a directory; name a file", path.display()))),
        (_, false) => Err(Failure::Usage(format!("--json {}: there is no directory {}; make it first", path.display(), parent.display()))),
        _ => Ok(()),
    }
}

/// What goes into a document of results beside a tool's own.
struct Document<'a> {
    /// The tool, and the key of its own results.
    tool: &'a str,
    target: Option<TargetFacts>,
    points: Vec<Point>,
    warnings: Vec<String>,
    /// Seconds since 1970-01-01 and the machine's clock at the beginning.
    began: (u64, u64),
    seed: u64,
}

/// Writes a document that study, compare and report read, with the tool's own results under its name.
fn write_json(path: Option<&Path>, machine: &Host, document: Document<'_>, own: &impl Serialize) -> Result<(), Failure> {
    let (Some(path), Some(target)) = (path, document.target) else { return Ok(()) };
    let results = Results {
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
    };
    let failed = |why: String| Failure::Run(format!("cannot write {}: {why}", path.display()));
    let mut value = serde_json::to_value(&results).map_err(|error| failed(error.to_string()))?;
    let own = serde_json::to_value(own).map_err(|error| failed(error.to_string()))?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert(document.tool.into(), own);
    }
    let text = serde_json::to_string_pretty(&value).map_err(|error| failed(error.to_string()))?;
    // First beside the file, then in its place: a killed program leaves no half document.
    let partial = path.with_extension("json.part");
    std::fs::write(&partial, text + "\n").and_then(|()| std::fs::rename(&partial, path)).map_err(|error| failed(error.to_string()))
}

/// `halfpower iozone`.
pub(crate) fn iozone(words: &[String]) -> Result<(), Failure> {
    if helped(words, dialect::iozone::HELP) {
        return Ok(());
    }
    let options = dialect::iozone::parse(words)?;
    check_json(options.json.as_deref())?;
    let machine = Host::new(crate::interrupt::flag());
    let began = (now_unix_s(), machine.now());
    let result = dialect::iozone::run(&machine, &options, began.0, &mut io::stdout().lock())?;
    let points = result.cells.iter().map(|cell| &cell.point).chain(result.throughput.iter().flat_map(|one| &one.points)).cloned().collect();
    let document = Document {
        tool: "iozone",
        target: result.target.clone(),
        points,
        warnings: result.warnings.clone(),
        began,
        seed: options.seed.unwrap_or(1),
    };
    write_json(options.json.as_deref(), &machine, document, &result)
}

/// `halfpower sqlio`.
pub(crate) fn sqlio(words: &[String]) -> Result<(), Failure> {
    if helped(words, dialect::sqlio::HELP) {
        return Ok(());
    }
    let options = dialect::sqlio::parse(words)?;
    check_json(options.json.as_deref())?;
    let machine = Host::new(crate::interrupt::flag());
    let began = (now_unix_s(), machine.now());
    let seed = options.seed.unwrap_or(1);
    if options.matrix {
        let result = matrix(&machine, &options)?;
        let document = Document {
            tool: "sqlio_matrix",
            target: result.target.clone(),
            points: result.points.clone(),
            warnings: result.warnings.clone(),
            began,
            seed,
        };
        write_json(options.json.as_deref(), &machine, document, &result)?;
        print(&dialect::sqlio::matrix::table(&result))?;
        let measured = result.entries.iter().any(|entry| entry.best().is_some());
        return if measured { Ok(()) } else { Err(Failure::Run("no point could be measured".into())) };
    }
    let result = dialect::sqlio::run(&machine, &options, &mut io::stdout().lock())?;
    for warning in &result.warnings {
        eprintln!("halfpower: warning: {warning}");
    }
    let document = Document {
        tool: "sqlio",
        target: result.target.clone(),
        points: result.points.clone(),
        warnings: result.warnings.clone(),
        began,
        seed,
    };
    write_json(options.json.as_deref(), &machine, document, &result)
}

/// `halfpower diskspd`.
pub(crate) fn diskspd(words: &[String]) -> Result<(), Failure> {
    if helped(words, dialect::diskspd::HELP) {
        return Ok(());
    }
    let options = dialect::diskspd::parse(words)?;
    check_json(options.json.as_deref())?;
    let machine = Host::new(crate::interrupt::flag());
    let began = (now_unix_s(), machine.now());
    let (profile, result) = dialect::diskspd::run(&machine, &options, began.0)?;
    let document = Document {
        tool: "diskspd",
        target: result.target.clone(),
        points: result.spans.iter().flat_map(|span| &span.points).cloned().collect(),
        warnings: result.warnings.clone(),
        began,
        seed: profile.spans.first().map_or(1, |span| u64::from(span.seed) + 1),
    };
    write_json(options.json.as_deref(), &machine, document, &result)?;
    match profile.format {
        dialect::diskspd::Format::Text => print(&dialect::diskspd::text(&profile, &result)),
        dialect::diskspd::Format::Xml => {
            for warning in &result.warnings {
                eprintln!("halfpower: warning: {warning}");
            }
            print(&dialect::diskspd::xml(&profile, &result))
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
