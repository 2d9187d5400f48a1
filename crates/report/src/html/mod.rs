mod answer;
mod experiments;
mod ladder;
mod method;
mod pipeline;
mod screen;
mod sweep;
mod values;

pub(crate) use experiments::{ExperimentView, section_view};
pub(crate) use values::{ShownCurve, figures_json, shown_json};

use crate::format::{cell, date, rate_unit, spent};
use crate::{Error, plot, sentences};
use machine::text::printable;
use machine::units::{Units, shown_in};
use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Environment, context, escape_formatter};
use results::columns::{self, Column};
use results::{Kind, OperationRate, Results};

/// Limits the page's size; `points.csv` has all rows.
const MAX_ROWS: usize = 2000;
/// For a page that is still too long.
const FEW_ROWS: usize = 100;
const MAX_BYTES: usize = 2_000_000;

/// Over 2 MB, drops rows of its table of points, and says so.
pub fn html(results: &Results) -> Result<String, Error> {
    let page = page(results, MAX_ROWS)?;
    if page.len() < MAX_BYTES { Ok(page) } else { self::page(results, FEW_ROWS) }
}

fn page(results: &Results, rows: usize) -> Result<String, Error> {
    let environment = environment()?;
    let experiments = experiments::views(results);
    let machine = method::machine(results);
    let answer = answer::view(results);
    let context = context! {
        values => Value::from_safe_string(values::json(results)?),
        kind => kind(results.kind),
        target => results.target.name,
        target_facts => method::target(results),
        date => date(results.began_unix_s),
        about => about(results),
        machine,
        program => format!("{} {}", results.program.name, results.program.version),
        warnings => results.warnings,
        // An answer shows its own doubts first.
        doubts => if answer.is_some() { &[] } else { results.warnings.as_slice() },
        answer,
        screen => screen::view(results),
        ladder => ladder::view(results),
        experiments,
        layers => method::layers(results),
        rate_columns => rate_columns().map(|column| column.heading).collect::<Vec<_>>(),
        rates => results.rates.iter().map(|rate| rate_columns().map(|column| cell(column, rate)).collect()).collect::<Vec<Vec<_>>>(),
        operation_clients => sentences::of_operations(results),
        one_point => one_point(results),
        point_columns => method::headings(),
        points => method::points(results, rows),
        points_left_out => results.points.len().saturating_sub(rows),
        method => method::method(results),
    };
    Ok(environment.get_template("report.html")?.render(context)?)
}

fn one_point(results: &Results) -> Option<Value> {
    if results.answer.is_some() || results.points.len() != 1 {
        return None;
    }
    let text = crate::terminal::points(results, 100, false);
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // Already sanitised; its line breaks are intended.
    Some(Value::from_safe_string(escaped))
}

pub(crate) fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    // Every text of the document passes here, so no control character reaches the page.
    environment.set_formatter(|out, state, value| match value.as_str() {
        None if value.is_none() => Ok(()),
        Some(text) if value.kind() == ValueKind::String && !value.is_safe() => {
            escape_formatter(out, state, &Value::from(printable(text)))
        }
        _ => escape_formatter(out, state, value),
    });
    environment.add_global("css", Value::from_safe_string(css()));
    environment.add_global("rate_unit", Value::from(rate_unit()));
    environment.add_global("si", Value::from(shown_in() == Units::Si));
    environment.add_global(
        "script",
        Value::from_safe_string(include_str!("../../templates/hover.js").into()),
    );
    environment.add_template("page.html", include_str!("../../templates/page.html"))?;
    environment.add_template("report.html", include_str!("../../templates/report.html"))?;
    environment.add_template("figure.svg", include_str!("../../templates/figure.svg"))?;
    environment.add_template("screen.html", include_str!("../../templates/screen.html"))?;
    environment.add_template("pipeline.svg", include_str!("../../templates/pipeline.svg"))?;
    environment.add_template("ladder.html", include_str!("../../templates/ladder.html"))?;
    environment.add_template("answer.html", include_str!("../../templates/answer.html"))?;
    Ok(environment)
}

fn rate_columns() -> impl Iterator<Item = &'static Column<OperationRate>> {
    columns::OPERATION.iter().filter(|column| !column.heading.is_empty())
}

fn css() -> String {
    include_str!("../../templates/style.css")
        .replace("$light-page", plot::colour::LIGHT_PAGE)
        .replace("$dark-page", plot::colour::DARK_PAGE)
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Study => "study",
        Kind::Stack => "stack",
        Kind::Sweep => "sweep",
        Kind::Run => "run",
        Kind::Postmark => "postmark",
        Kind::Metadata => "metadata",
    }
}

pub(crate) fn about(results: &Results) -> String {
    format!("{} · {}", method::machine(results).line, spent(results))
}
