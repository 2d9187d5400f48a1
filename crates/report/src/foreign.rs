//! Another tool's report.

use crate::Error;
use crate::compare::value;
use crate::format::plural;
use crate::html::environment;
use crate::terminal::table;
use machine::text::printable;
use minijinja::context;
use minijinja::value::Value;
use results::Program;
use results::compare::{Measure, Measurement, Reading, Side};
use serde::Serialize;

const MAX_BARS: usize = 40;

fn reading(one: &Measurement, measure: Measure) -> Option<&Reading> {
    one.readings.iter().find(|reading| reading.measure == measure)
}

fn measures(side: &Side) -> Vec<Measure> {
    let has = |measure: &Measure| side.asked.iter().any(|one| reading(one, *measure).is_some());
    Measure::ALL.into_iter().filter(has).collect()
}

fn rows(side: &Side) -> (Vec<String>, Vec<Vec<String>>) {
    let measures = measures(side);
    let mut head = vec!["case".to_string()];
    head.extend(measures.iter().map(|measure| measure.heading().to_string()));
    let row = |one: &Measurement| {
        let mut cells = vec![printable(&one.label)];
        cells.extend(measures.iter().map(|measure| {
            reading(one, *measure).map_or(String::new(), |reading| value(*measure, reading.value))
        }));
        cells
    };
    (head, side.asked.iter().map(row).collect())
}

fn summary(side: &Side) -> String {
    let runs = side.asked.iter().flat_map(|one| &one.readings).map(|one| one.runs.len().max(1));
    let most = runs.max().unwrap_or(0);
    let repeated = if most > 1 {
        format!(", up to {most} runs each; figures are their means")
    } else {
        String::new()
    };
    format!("{}{repeated}.", plural(side.asked.len(), "case"))
}

pub fn terminal(side: &Side, width: usize, colour: bool) -> String {
    let (head, rows) = rows(side);
    let table = table(&head, &rows, 1, width.max(40), colour);
    format!("{}: {}\n{table}", printable(&side.name), summary(side))
}

#[derive(Serialize)]
struct Bar {
    name: String,
    y: usize,
    width: f64,
    text: String,
}

#[derive(Serialize)]
struct View {
    title: &'static str,
    height: usize,
    bars: Vec<Bar>,
}

const ROW: usize = 34;
const WIDEST: f64 = 640.0;

fn view(side: &Side, measure: Measure) -> View {
    let readings: Vec<(&Measurement, f64)> = side
        .asked
        .iter()
        .filter_map(|one| Some((one, reading(one, measure)?.value)))
        .take(MAX_BARS)
        .collect();
    let max = readings.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let bar = |(place, (one, number)): (usize, &(&Measurement, f64))| Bar {
        name: one.label.clone(),
        y: place * ROW,
        width: (number / max * WIDEST * 10.0).round() / 10.0,
        text: value(measure, *number),
    };
    View {
        title: measure.heading(),
        height: readings.len() * ROW,
        bars: readings.iter().enumerate().map(bar).collect(),
    }
}

pub fn html(side: &Side, program: &Program) -> Result<String, Error> {
    let mut environment = environment()?;
    environment.add_template("foreign.html", include_str!("../templates/foreign.html"))?;
    let (head, rows) = rows(side);
    let views: Vec<View> = measures(side).into_iter().map(|measure| view(side, measure)).collect();
    let context = context! {
        values => Value::from_safe_string("{}".into()),
        kind => "report",
        target => side.name,
        about => summary(side),
        program => format!("{} {}", program.name, program.version),
        doubts => side.warnings,
        views,
        head,
        rows,
    };
    Ok(environment.get_template("foreign.html")?.render(context)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_and_figure_is_on_the_page() {
        let case = |label: &str, readings: Vec<Reading>| Measurement {
            label: label.into(),
            readings,
            ..Measurement::default()
        };
        let side = Side {
            name: "a.json".into(),
            asked: vec![
                case("reads <4k>", vec![Reading::of_runs(Measure::Iops, vec![900.0, 1098.0])]),
                case("writes", vec![Reading::value(Measure::LatencyP99, 2e6)]),
            ],
            warnings: Vec::new(),
        };
        let program =
            Program { name: "halfpower".into(), version: String::new(), arguments: Vec::new() };
        let page = html(&side, &program).unwrap();
        for words in ["reads &lt;4k&gt;", "999.00", "IOPS", "p99", "up to 2 runs each"] {
            assert!(page.contains(words), "{words} in {page}");
        }
        assert!(!page.contains("<4k>"));
        let text = terminal(&side, 100, false);
        assert!(text.contains("2 cases") && text.contains("writes"), "{text}");
    }
}
