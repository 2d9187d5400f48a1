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
        print!("{help}");
    }
    asks
}

/// The file for JSON must be one that can be made before an hour is spent on what goes into it.
fn check_json(path: Option<&Path>) -> Result<(), Failure> {
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
    write_json(options.json.as_deref(), &machine, document, &result)?;
    io::stdout().flush().map_err(|error| Failure::Run(format!("cannot print: {error}")))
}
