//! `halfpower twin list` and `halfpower twin show`.

use super::document::{json, table};
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use machine::units::{show_rate, show_size_rounded, significant};
use machine::{Layer, Machine};
use serde::Serialize;
use std::path::Path;
use twin::preset::{self, Sourced};
use twin::settings::SETTINGS;
use twin::{Setup, Twin};

/// Options of `twin list`.
#[derive(Args, Clone)]
pub(super) struct ListArguments {
    /// Print as JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Options of `twin show`.
#[derive(Args, Clone)]
pub(super) struct ShowArguments {
    /// A machine of `halfpower twin list`, or a machine file (.toml), with settings behind it:
    /// gateway-1997,disks=4
    #[arg(value_name = "NAME")]
    machine: String,
    /// Print the machine file, to edit and pass as NAME.toml
    #[arg(long, conflicts_with = "json")]
    toml: bool,
    /// Print as JSON on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    name: String,
    about: String,
    drives: Vec<String>,
}

#[derive(Serialize)]
struct Setting {
    form: &'static str,
    meaning: &'static str,
}

#[derive(Serialize)]
struct List {
    machines: Vec<Listed>,
    settings: Vec<Setting>,
}

pub(super) fn list(context: &Context, arguments: &ListArguments) -> Result<(), Failure> {
    let mut machines = Vec::new();
    for name in preset::names() {
        let description = preset::load(name)?;
        machines.push(Listed {
            name: name.into(),
            about: description.about,
            drives: description.drives.into_keys().collect(),
        });
    }
    let settings = SETTINGS.iter().map(|&(form, meaning)| Setting { form, meaning }).collect();
    let list = List { machines, settings };
    if arguments.json {
        return context.console.print(&(json("list", &list)? + "\n"));
    }
    let rows: Vec<_> = list
        .machines
        .iter()
        .map(|one| vec![one.name.clone(), one.drives.join(", "), one.about.clone()])
        .collect();
    let mut text = table(&["machine", "drives", "what it is"], &rows, 3);
    text += "\nSettings behind the name: twin:gateway-1997,disks=4,buses=2\n";
    let rows: Vec<_> =
        list.settings.iter().map(|one| vec![one.form.into(), one.meaning.into()]).collect();
    text += &table(&["setting", "what it is"], &rows, 2);
    text += "\nA machine file of your own is named by its path:\n  halfpower twin show nvme --toml > mine.toml; halfpower study twin:mine.toml\n";
    context.console.print(&text)
}

#[derive(Serialize)]
struct Shown {
    name: String,
    about: String,
    system: String,
    processor: String,
    size_bytes: u64,
    drive: String,
    drives: Vec<String>,
    disks: u32,
    buses: u32,
    write_cache: bool,
    stripe_bytes: u64,
    layers: Vec<Layer>,
    fitted: usize,
    solved: usize,
    numbers: Vec<Sourced>,
}

pub(super) fn show(context: &Context, arguments: &ShowArguments) -> Result<(), Failure> {
    let setup = Setup::parse(&arguments.machine)?;
    let name = arguments.machine.strip_prefix("twin:").unwrap_or(&arguments.machine);
    let name = name.split_once(',').map_or(name, |(name, _)| name).trim();
    let text = match preset::text(name) {
        Some(text) => text.to_owned(),
        None => preset::DESCRIPTION
            .text(Path::new(name))
            .map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))?,
    };
    if arguments.toml {
        return context.console.print(&text);
    }
    let numbers = preset::numbers(name, &text)?;
    let shown = describe(setup, numbers);
    if arguments.json {
        context.console.print(&(json("show", &shown)? + "\n"))
    } else {
        context.console.print(&describe_in_words(&shown))
    }
}

fn describe(setup: Setup, numbers: Vec<Sourced>) -> Shown {
    let twin = Twin::new(setup);
    let setup = twin.setup();
    let facts = twin.target_facts(&twin.volume());
    Shown {
        name: setup.name.clone(),
        about: setup.description.about.clone(),
        system: setup.description.system.clone(),
        processor: setup.description.processor.name.clone(),
        size_bytes: facts.size_bytes,
        drive: setup.drive.clone(),
        drives: setup.description.drives.keys().cloned().collect(),
        disks: setup.disks,
        buses: setup.buses,
        write_cache: setup.wce,
        stripe_bytes: setup.stripe,
        layers: facts.layers,
        fitted: numbers.iter().filter(|number| number.is_fitted()).count(),
        solved: numbers.iter().filter(|number| number.is_solved()).count(),
        numbers,
    }
}

fn describe_in_words(shown: &Shown) -> String {
    let mut text = format!("{}: {}\n", shown.name, shown.about);
    let size = show_size_rounded(shown.size_bytes as f64);
    text += &format!("{}, {}; {size} on {}\n", shown.system, shown.processor, several(shown));
    text += &format!("drives to choose from: {}\n\n", shown.drives.join(", "));
    let layer = |layer: &Layer| {
        let settings: Vec<String> =
            layer.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        vec![
            layer.name.clone(),
            layer.advertised_bytes_per_s.map(show_rate).unwrap_or_default(),
            settings.join(", "),
        ]
    };
    let layers: Vec<_> = shown.layers.iter().map(layer).collect();
    text += &table(&["layer", "advertised", "settings"], &layers, 3);
    let number = |number: &Sourced| {
        vec![
            number.path.clone(),
            value(number.value),
            number.source.clone().unwrap_or_else(|| "not named".into()),
        ]
    };
    let numbers: Vec<_> = shown.numbers.iter().map(number).collect();
    text += &format!("\n{}", table(&["number", "value", "from"], &numbers, 3));
    let (all, fitted, solved) = (shown.numbers.len(), shown.fitted, shown.solved);
    text + &format!("\n{all} numbers, {fitted} of them fitted, {solved} solved from figures\n")
}

fn several(shown: &Shown) -> String {
    let cache = if shown.write_cache { "on" } else { "off" };
    format!(
        "{} x {} on {} bus{}, write cache {cache}",
        shown.disks,
        shown.drive,
        shown.buses,
        if shown.buses == 1 { "" } else { "es" }
    )
}

fn value(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        significant(value, 5)
    }
}
