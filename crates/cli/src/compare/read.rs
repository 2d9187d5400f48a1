//! Any tool's results as sides of a comparison.

use crate::context::Context;
use crate::documents::{self, Document};
use crate::failure::Failure;
use crate::imported::{Imported, text_of};
use results::Results;
use results::compare::{COMPARE_SCHEMA, Columns, Comparison, Meaning, Side, read_table};
use std::path::{Path, PathBuf};

pub(super) fn sides(
    context: &Context,
    results: &[PathBuf],
    columns: Option<&Columns>,
    meanings: &[Meaning],
) -> Result<[Side; 2], Failure> {
    let mut sides = Vec::new();
    for result in results {
        sides.extend(read(context, result, columns, meanings)?);
    }
    let count = sides.len();
    let [mut a, mut b]: [Side; 2] = sides.try_into().map_err(|_| {
        let what = match (results.len(), count) {
            (0, _) => "name two results, or two arms with --a and --b".to_string(),
            (1, _) => format!("{}: it holds one side; name a second result", results[0].display()),
            (files, sides) => format!("{files} files with {sides} sides: exactly two are compared"),
        };
        Failure::Usage(what)
    })?;
    if a.name == b.name {
        a.name += " (A)";
        b.name += " (B)";
    }
    Ok([a, b])
}

pub(super) fn kept(context: &Context, results: &[PathBuf]) -> Result<Option<Comparison>, Failure> {
    let [path] = results else { return Ok(None) };
    let text = match entry(path) {
        Some(id) => {
            let (entry, document) = crate::history::open(context)?.get(id)?;
            if entry.kind != "compare" {
                return Ok(None);
            }
            document
        }
        None => text_of(path)?,
    };
    if documents::schema(&text).is_none_or(|schema| schema != COMPARE_SCHEMA) {
        return Ok(None);
    }
    match Document::parse(&path.display().to_string(), &text)? {
        Some(Document::Comparison(comparison)) => Ok(Some(*comparison)),
        _ => Ok(None),
    }
}

fn entry(path: &Path) -> Option<i64> {
    if path.exists() { None } else { path.to_str()?.parse().ok() }
}

fn read(
    context: &Context,
    path: &Path,
    columns: Option<&Columns>,
    meanings: &[Meaning],
) -> Result<Vec<Side>, Failure> {
    if let Some(id) = entry(path) {
        let history = crate::history::open(context)?;
        let (entry, document) = history.get(id)?;
        if entry.kind == "import" {
            let imported: Imported = serde_json::from_str(&document).map_err(|error| {
                Failure::Run(format!("entry {id} of the history cannot be read: {error}"))
            })?;
            return Ok(vec![imported.side()?]);
        }
        if let Some(side) = of_document(&format!("entry {id}"), &document)? {
            return Ok(vec![side]);
        }
        let results = history.results(id)?;
        return Ok(vec![Side::of(&named(&format!("entry {id}"), &results), &results)]);
    }
    // Reports of other tools may hold names in any encoding.
    let imported = Imported::read(path)?;
    if columns.is_none() && meanings.is_empty() && imported.is_report() {
        return Ok(vec![imported.side()?]);
    }
    let (name, text) = imported.into_parts();
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    if is_csv(path, &text) || columns.is_some() || !meanings.is_empty() {
        return read_table(&name, &text, columns, meanings).map_err(|error| usage(&error));
    }
    if let Some(side) = of_document(&name, &text)? {
        return Ok(vec![side]);
    }
    if documents::schema(&text).is_some() {
        let results = results::parse(path, &text).map_err(|error| usage(&error))?;
        return Ok(vec![Side::of(&named(&name, &results), &results)]);
    }
    dialect::reading::read_report(&name, &text)
        .map(|side| vec![side])
        .map_err(|error| usage(&error))
}

fn of_document(name: &str, text: &str) -> Result<Option<Side>, Failure> {
    match Document::parse(name, text)? {
        None => Ok(None),
        Some(document) => document.side(name).map(Some).ok_or_else(|| {
            Failure::Usage(format!(
                "{name}: it holds no points to compare; name the results that it was made from"
            ))
        }),
    }
}

fn named(name: &str, results: &Results) -> String {
    format!("{name} ({})", results.target.name)
}

fn is_csv(path: &Path, text: &str) -> bool {
    let named = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let first = text.lines().next().unwrap_or_default();
    named || (first.matches(',').count() >= 2 && !text.trim_start().starts_with(['{', '[', '<']))
}
