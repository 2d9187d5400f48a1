//! `halfpower plan`.

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::replay::load;
use application::profile::Role;
use application::replay::{Class, OpKind};
use clap::Args;
use files::Input;
use machine::text::printable;
use machine::units::{parse_time, show_time, significant};
use predict::plan::{Catalogue, Goal, Plan, PlanDocument, Prediction, Prices};
use std::path::{Path, PathBuf};

/// Options of `plan`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// A trace of any format of `halfpower trace convert`
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// A volume of the catalogue (gp3,size=500g,iops=6000,throughput=250m) or a simulated machine
    /// (twin:NAME, with settings); several: gp3,io2,iops=10000,twin:nvme
    #[arg(long, value_name = "NAME,...", required = true)]
    on: Vec<String>,
    /// More volumes, in the form of the catalogue (docs/application.md)
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// Your prices, to name the cheapest volume
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// A goal for the 99th percentile: log-sync=2ms, data-read=5ms; give it several times
    #[arg(long, value_name = "CLASS=TIME", value_parser = goal)]
    p99: Vec<Goal>,
    /// A simulated machine like that of the recording, to show the model's error
    #[arg(long, value_name = "NAME")]
    recorded_on: Option<String>,
    /// Print the plan as JSON on standard output
    #[arg(long)]
    json: bool,
}

fn goal(text: &str) -> Result<Goal, String> {
    let wrong = || {
        format!(
            "'{text}' is not a goal; write log-sync=2ms or data-read=5ms, with a role of halfpower profile"
        )
    };
    let (class, time) = text.split_once('=').ok_or_else(wrong)?;
    let (role, op) = class.split_once('-').ok_or_else(wrong)?;
    let role = Role::ALL.into_iter().find(|one| one.name() == role).ok_or_else(wrong)?;
    let op = OpKind::ALL.into_iter().find(|one| one.name() == op).ok_or_else(wrong)?;
    Ok(Goal { class: Class { role, op }, p99_ns: parse_time(time)? })
}

const TABLE: Input = Input::new("a table of volumes", 1 << 20);

fn text_of(path: &Path) -> Result<String, Failure> {
    TABLE
        .text(path)
        .map_err(|error| Failure::Usage(printable(&format!("{}: {error}", path.display()))))
}

/// In `gp3,size=500g,io2`, a part with `=` is a setting of the name before it.
fn names(lists: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for list in lists {
        let mut first = true;
        for part in list.split(',').map(str::trim) {
            match names.last_mut().filter(|_| !first && part.contains('=')) {
                Some(last) => *last += &format!(",{part}"),
                None => names.push(part.to_owned()),
            }
            first = false;
        }
    }
    names
}

pub(crate) fn plan(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let (script, _) = load(&arguments.trace)?;
    let mut catalogue = Catalogue::built_in()?;
    if let Some(path) = &arguments.catalogue {
        catalogue.extend(&path.to_string_lossy(), &text_of(path)?)?;
    }
    let prices = match &arguments.prices {
        Some(path) => Some(Prices::parse(&path.to_string_lossy(), &text_of(path)?)?),
        None => None,
    };
    let on = names(&arguments.on);
    let plan = Plan {
        script: &script,
        on: &on,
        catalogue: &catalogue,
        prices: prices.as_ref(),
        goals: &arguments.p99,
        recorded_on: arguments.recorded_on.as_deref(),
    };
    let document = plan.make(&printable(&arguments.trace.to_string_lossy()))?;
    if arguments.json {
        return context.console.print(&output::json(
            serde_json::to_string_pretty(&document).map(|text| text + "\n"),
        )?);
    }
    context.console.print(&text(&document))
}

fn text(document: &PlanDocument) -> String {
    let classes: Vec<Class> = document
        .predictions
        .first()
        .map(|one| one.classes.iter().map(|one| one.class).collect())
        .unwrap_or_default();
    let mut head = vec!["on".to_owned(), "time".to_owned()];
    head.extend(classes.iter().map(|class| format!("{class} p99")));
    let priced = document.predictions.iter().any(|one| one.price_per_month.is_some());
    head.extend(priced.then(|| "a month".to_owned()));
    let row = |one: &Prediction| {
        let mut row = vec![one.name.clone(), show_time(one.elapsed_s * 1e9)];
        row.extend(one.classes.iter().map(|one| {
            one.latency.map_or_else(String::new, |latency| show_time(latency.p99_ns as f64))
        }));
        let price = one.price_per_month.map_or_else(String::new, |price| significant(price, 4));
        row.extend(priced.then_some(price));
        row
    };
    let rows: Vec<Vec<String>> = document.predictions.iter().map(row).collect();
    let mut text = format!(
        "{}: {} requests, recorded in {}; predictions of simulated volumes:\n{}",
        document.trace,
        document.requests,
        show_time(document.recorded_s * 1e9),
        report::terminal::table(&head, &rows, 1, output::width(), output::colour())
    );
    let mut sources: Vec<String> =
        document.predictions.iter().filter_map(|one| one.source.clone()).collect();
    sources.dedup();
    for line in &document.sentences {
        text += &format!("{}\n", printable(line));
    }
    for source in sources {
        text += &format!("Limits: {}.\n", printable(&source));
    }
    text
}
