//! `halfpower twin`: lists, validates, changes and fits simulated machines.

mod cache;
mod fit;
mod show;
mod validate;
mod whatif;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Directory, print as say};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::PathBuf;

const SCHEMA: &str = "halfpower.twin/1";

/// Options of `twin`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone)]
enum Command {
    /// List the machines and the settings that may follow their names
    List(show::ListArguments),
    /// Show one machine: its parts, and every number with its source
    Show(show::ShowArguments),
    /// Compare every published point of the 1997 study with the simulation
    Validate(validate::Arguments),
    /// Compare a machine with a changed copy of itself
    Whatif(whatif::Arguments),
    /// Calibrate a machine to the results of a real one; a random third of the points is held out
    /// and judges the fit
    Fit(fit::Arguments),
    /// Predict the effect of a memory cache on a block trace or a workload, by cache size
    Cache(cache::Arguments),
}

pub(crate) fn twin(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::List(arguments) => show::list(arguments),
        Command::Show(arguments) => show::show(arguments),
        Command::Validate(arguments) => validate::validate(context, arguments),
        Command::Whatif(arguments) => whatif::whatif(context, arguments),
        Command::Fit(arguments) => fit::fit(context, arguments),
        Command::Cache(arguments) => cache::cache(context, arguments),
    }
}

impl From<twin::Error> for Failure {
    fn from(error: twin::Error) -> Self {
        Failure::Usage(error.to_string())
    }
}

impl From<predict::Error> for Failure {
    fn from(error: predict::Error) -> Self {
        match error {
            predict::Error::Run(why) => Failure::from(why),
            predict::Error::Broken(_) | predict::Error::File(_) => Failure::Run(error.to_string()),
            other => Failure::Usage(other.to_string()),
        }
    }
}

#[derive(Serialize)]
struct Document<'a, T> {
    schema: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    content: &'a T,
}

fn json<T: Serialize>(kind: &'static str, content: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(&Document { schema: SCHEMA, kind, content })
        .map_err(|error| Failure::Run(format!("cannot write the results as JSON: {error}")))
}

fn table(head: &[&str], rows: &[Vec<String>], left: usize) -> String {
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    report::terminal::table(&head, rows, left, crate::output::width(), crate::output::colour())
}

/// Opens the directory of `--output` before anything is computed.
fn directory<'a>(
    context: &'a Context,
    path: Option<&'a PathBuf>,
) -> Result<Option<Directory<'a>>, Failure> {
    path.map(|path| Directory::new(context, path, &[], &["results.json", "report.html"]))
        .transpose()
}

/// Writes report.html and the document into a directory, and prints the path of the report.
fn write(
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
        say(&format!("\nReport: {}\n", report.display()))?;
    }
    written.map(drop)
}

/// Formats a share in percent, with one decimal if it is small.
fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value.abs() < 9.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

fn program() -> String {
    format!("halfpower {}", env!("CARGO_PKG_VERSION"))
}
