//! `halfpower twin fit` of a sustained run.

use super::document::{json, percent, program};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::save;
use crate::terminal::table;
use machine::units::significant;
use predict::sustained::{FittedNumber, Reproduced, SustainedFit, base, fit_sustained};
use results::Output;
use serde::Serialize;
use std::path::Path;
use sustained::{SUSTAINED_SCHEMA, SustainedResult};
use twin::Setup;

pub(super) fn read(path: &Path) -> Result<Option<SustainedResult>, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
    // Other documents have readers with better messages.
    let Ok(text) = results::DOCUMENT.text(path) else { return Ok(None) };
    let schema = serde_json::from_str::<serde_json::Value>(&text)
        .ok()
        .and_then(|value| value.get("schema")?.as_str().map(str::to_owned));
    if schema.as_deref() != Some(SUSTAINED_SCHEMA) {
        return Ok(None);
    }
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| wrong(format!("not a document of study --sustained: {error}")))
}

#[derive(Serialize)]
struct Shown<'a> {
    machine: &'a str,
    target: &'a str,
    numbers: &'a [FittedNumber],
    reproduced: &'a [Reproduced],
}

pub(super) fn fit(
    context: &Context,
    result: &SustainedResult,
    preset: Option<&str>,
    output: Option<&Output>,
    as_json: bool,
) -> Result<(), Failure> {
    let name = base(result).ok_or_else(|| {
        Failure::Usage(format!(
            "{}: its rate did not fall, so there is no write cache or credit to fit; measure longer with --for and --max-written",
            result.target.name
        ))
    })?;
    let name = preset.unwrap_or(name);
    let setup = Setup::parse(name)?;
    let fit = fit_sustained(&setup, result)?.ok_or_else(|| {
        Failure::Usage(format!(
            "--preset {name}: its drive has no write cache or credit; take nvme-qlc, cloud-burst or cloud-hdd"
        ))
    })?;
    if let Some(output) = output {
        save(output, &format!("# {} fitted this machine.\n{}", program(), fit.machine_file()?))?;
    }
    let shown = Shown {
        machine: name,
        target: &result.target.name,
        numbers: &fit.numbers,
        reproduced: &fit.reproduced,
    };
    if as_json {
        return context.console.print(&(json("fit_sustained", &shown)? + "\n"));
    }
    context.console.print(&text(&fit, &shown))?;
    match output {
        Some(output) => {
            context.console.print(&format!("\nMachine: twin:{}\n", output.path().display()))
        }
        None => context.console.print("\n--output FILE.toml writes the fitted machine.\n"),
    }
}

fn text(fit: &SustainedFit, shown: &Shown<'_>) -> String {
    let rows: Vec<_> = fit
        .numbers
        .iter()
        .map(|one| vec![one.path.clone(), significant(one.before, 4), significant(one.after, 4)])
        .collect();
    let numbers = table(&["number", &format!("of {}", shown.machine), "fitted"], &rows, 1);
    let rows: Vec<_> = fit
        .reproduced
        .iter()
        .map(|one| {
            vec![
                one.name.to_owned(),
                significant(one.measured, 4),
                significant(one.simulated, 4),
                percent(one.simulated / one.measured - 1.0),
            ]
        })
        .collect();
    let again = table(&["same run again", "measured", "simulated", "error"], &rows, 1);
    format!("{} fitted to {}:\n{numbers}\n{again}", shown.machine, shown.target)
}
