//! What is left behind by work on whole files in directories: one document, as every command's.

use crate::Failure;
use host::Host;
use host::files::directory_facts;
use machine::Machine;
use measure::OperationRate;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use study::{Kind, Results, SCHEMA};

/// When the work began: in seconds since 1970-01-01, and on the machine's clock.
#[derive(Clone, Copy)]
pub(crate) struct Began {
    unix_s: u64,
    clock_ns: u64,
}

impl Began {
    /// Now.
    pub(crate) fn now(clock_ns: u64) -> Began {
        Began { unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()), clock_ns }
    }
}

/// What one of the commands gave.
pub(crate) struct Work<'a> {
    pub(crate) kind: Kind,
    /// Where the files were; none: in the current directory.
    pub(crate) directories: &'a [PathBuf],
    pub(crate) rates: Vec<OperationRate>,
    pub(crate) warnings: Vec<String>,
    pub(crate) seed: u64,
}

/// The document that all commands write, with the command's own results, which have a schema of their own, under its name.
///
/// # Errors
/// A directory that is no longer there.
pub(crate) fn document(host: &Host, began: Began, work: Work<'_>, name: &str, own: &impl Serialize) -> Result<Value, Failure> {
    let results = Results {
        schema: SCHEMA.into(),
        program: crate::points::program(),
        kind: work.kind,
        target: directory_facts(work.directories)?,
        machine: host.facts(),
        began_unix_s: began.unix_s,
        elapsed_ns: host.now().saturating_sub(began.clock_ns),
        budget_ns: None,
        seed: work.seed,
        points: Vec::new(),
        rates: work.rates,
        experiments: Vec::new(),
        answer: None,
        warnings: work.warnings,
    };
    let odd = |error: serde_json::Error| Failure::Run(format!("cannot turn the results into JSON: {error}"));
    let mut value = serde_json::to_value(&results).map_err(odd)?;
    let mut own = serde_json::to_value(own).map_err(odd)?;
    if let (Some(fields), Some(own_fields)) = (value.as_object_mut(), own.as_object_mut()) {
        own_fields.insert("schema".into(), json!(format!("halfpower.{name}/1")));
        fields.insert(name.into(), own);
    }
    Ok(value)
}

/// Writes a document: first beside the file, then in its place, so that a killed program leaves no half one.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(path: &Path, document: &Value) -> Result<(), Failure> {
    let partial = path.with_extension("json.part");
    let written = std::fs::write(&partial, format!("{document:#}\n")).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))
}
