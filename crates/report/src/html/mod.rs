//! The report as one HTML file that needs nothing else: figures as SVG, style and script inside.

mod answer;
mod experiments;
mod method;
mod sweep;
mod values;

pub(crate) use experiments::{ExperimentView, section_view};
pub(crate) use values::{ShownCurve, figures_json, shown_json};

use crate::words::{axis_title, clean, date, duration, plural, target_kind};
use crate::{Error, plot};
use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Environment, context, escape_formatter};
use study::{Kind, Results};

/// Rows of the table of all points: more would not be read and make the page too long; `points.csv` has them all.
const MOST_ROWS: usize = 2000;
/// Rows where even that makes the page too long.
const FEW_ROWS: usize = 100;
/// The longest page, in bytes.
const MOST_BYTES: usize = 2_000_000;

/// The report as one HTML page, for a browser without a network.
///
/// A page that would be longer than 2 MB leaves out rows of its table of points, and says so.
///
/// # Errors
/// A fault of this crate: a template that does not fit the document.
pub fn html(results: &Results) -> Result<String, Error> {
    let page = page(results, MOST_ROWS)?;
    if page.len() < MOST_BYTES { Ok(page) } else { self::page(results, FEW_ROWS) }
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
        // An answer leads with them in its own words.
        doubts => if answer.is_some() { &[] } else { results.warnings.as_slice() },
        answer,
        experiments,
        layers => method::layers(results),
        rate_columns => crate::words::OPERATION_COLUMNS,
        rates => results.rates.iter().map(crate::words::operation_row).collect::<Vec<_>>(),
        one_point => one_point(results),
        points => method::points(results, rows),
        points_left_out => results.points.len().saturating_sub(rows),
        method => method::method(results),
    };
    Ok(environment.get_template("report.html")?.render(context)?)
}

/// A run of one point in full, as the terminal tells it.
fn one_point(results: &Results) -> Option<Value> {
    if results.answer.is_some() || results.points.len() != 1 {
        return None;
    }
    let text = crate::terminal::points(results, 100, false);
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // Its texts are cleaned already, and its line breaks are meant.
    Some(Value::from_safe_string(escaped))
}

pub(crate) fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    // Every text of the document passes here: nothing invisible reaches the page, whoever chose the name.
    environment.set_formatter(|out, state, value| match value.as_str() {
        None if value.is_none() => Ok(()),
        Some(text) if value.kind() == ValueKind::String && !value.is_safe() => escape_formatter(out, state, &Value::from(clean(text))),
        _ => escape_formatter(out, state, value),
    });
    environment.add_global("css", Value::from_safe_string(css()));
    environment.add_global("script", Value::from_safe_string(include_str!("../../templates/hover.js").into()));
    environment.add_template("page.html", include_str!("../../templates/page.html"))?;
    environment.add_template("report.html", include_str!("../../templates/report.html"))?;
    environment.add_template("figure.svg", include_str!("../../templates/figure.svg"))?;
    environment.add_template("answer.html", include_str!("../../templates/answer.html"))?;
    Ok(environment)
}

/// The style sheet with the pages' colours, against which the curves' colours are chosen.
fn css() -> String {
    include_str!("../../templates/style.css")
        .replace("$light-page", plot::colour::LIGHT_PAGE)
        .replace("$dark-page", plot::colour::DARK_PAGE)
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Study => "study",
        Kind::Sweep => "sweep",
        Kind::Run => "run",
        Kind::Postmark => "postmark",
        Kind::Metadata => "metadata",
    }
}

/// The machine and what was done on it, in a line.
pub(crate) fn about(results: &Results) -> String {
    let points = plural(results.points.len(), "point");
    format!("{} · {points} in {}", method::machine(results).line, duration(results.elapsed_ns))
}

/// A name that may stand in an id or an anchor: letters, digits and hyphens, with its place in front so that no two are the same.
fn anchor(place: usize, id: &str) -> String {
    let plain: String = id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).take(40).collect();
    format!("f{place}-{plain}")
}

/// The name of an axis in the head of a table column.
fn column(axis: study::Axis) -> &'static str {
    axis_title(axis)
}

/// What the target is in a few words.
fn target_words(results: &Results) -> String {
    target_kind(results.target.kind).to_string()
}
