//! Outputs of `twin` commands.

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Directory;
use serde::Serialize;
use std::path::PathBuf;

const SCHEMA: &str = "halfpower.twin/1";

#[derive(Serialize)]
struct Document<'a, T> {
    schema: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    content: &'a T,
}

pub(super) fn json<T: Serialize>(kind: &'static str, content: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(&Document { schema: SCHEMA, kind, content })
        .map_err(|error| Failure::Run(format!("cannot write the results as JSON: {error}")))
}

/// Call before anything is computed.
pub(super) fn directory<'a>(
    context: &'a Context,
    path: Option<&'a PathBuf>,
) -> Result<Option<Directory<'a>>, Failure> {
    path.map(|path| Directory::new(context, path, &[], &["results.json", "report.html"]))
        .transpose()
}

pub(super) fn write(
    context: &Context,
    directory: Option<&Directory<'_>>,
    page: &report::validation::Page,
    document: &str,
    quiet: bool,
) -> Result<(), Failure> {
    let Some(directory) = directory else { return Ok(()) };
    let html = report::validation::page(page)
        .map_err(|error| Failure::Run(format!("cannot draw the report: {error}")))?;
    let written = directory.save("results.json", &format!("{document}\n"));
    let report = directory.save("report.html", &html)?;
    if !quiet {
        context.console.print(&format!("\nReport: {}\n", report.display()))?;
    }
    written.map(drop)
}

pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value.abs() < 9.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

pub(super) fn program() -> String {
    format!("halfpower {}", env!("CARGO_PKG_VERSION"))
}
