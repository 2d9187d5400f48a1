//! Where results go: JSON to standard output alone, everything for people otherwise.

use crate::Failure;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use study::Results;

/// Columns of the terminal; where there is none, what fits most.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(100, |(columns, _)| usize::from(columns.0).clamp(60, 160))
}

/// Colour only on a terminal, and not where NO_COLOR forbids it.
pub(crate) fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The points of a run or a sweep.
pub(crate) fn show_points(results: &Results, json: bool) {
    if json {
        println!("{}", store::to_json(results));
    } else {
        print!("{}", report::terminal::points(results, width(), colour()));
    }
}

/// A study: its tables, for those who scroll, then the answer, which is what stays on the screen.
pub(crate) fn show_study(results: &Results, written: &[PathBuf], json: bool) {
    if json {
        println!("{}", store::to_json(results));
        return;
    }
    print!("{}", report::terminal::tables(results, width(), colour()));
    print!("{}", report::terminal::answer(results, width(), colour()));
    if let Some(report) = written.iter().find(|path| path.extension().is_some_and(|extension| extension == "html")) {
        println!("\nReport: {}", report.display());
    }
}

/// Makes a directory for output.
///
/// # Errors
/// It cannot be made.
pub(crate) fn make_directory(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|error| {
        Failure::Usage(format!("--output {}: cannot make this directory: {error}; name one that you may write", directory.display()))
    })
}

/// Writes results.json, report.html and a table for each experiment; returns the files.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write_study(results: &Results, directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let json = directory.join("results.json");
    store::write(results, &json).map_err(|error| Failure::Run(error.to_string()))?;
    let mut written = write_report(results, directory)?;
    written.push(json);
    Ok(written)
}

/// Writes report.html and a table for each experiment; returns the files.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write_report(results: &Results, directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let html = report::html(results).map_err(|error| Failure::Run(format!("cannot draw the report: {error}")))?;
    let mut files = vec![("report.html".to_string(), html)];
    files.extend(report::csv(results));
    let mut written = Vec::new();
    for (name, text) in files {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))?;
        written.push(path);
    }
    Ok(written)
}
