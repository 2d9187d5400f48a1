//! A sustained run in a terminal, as a page and as a table.

use crate::Error;
use crate::course::{Page, PagePart, Table};
use crate::plot::course::{Chart, Line, svg};
use crate::terminal::table;
use machine::text::printable;
use machine::units::{grouped, show_rate, show_size_rounded, show_time};
use results::Axis;
use std::fmt::Write;
use sustained::{Level, SeriesPoint, SustainedResult};

fn head() -> Vec<String> {
    ["written", "at", "rate", "writes/s", "p99", "worst p99"].map(str::to_owned).to_vec()
}

fn row(level: &Level) -> Vec<String> {
    let range = format!(
        "{} to {}",
        show_size_rounded(level.from_bytes as f64),
        show_size_rounded(level.to_bytes as f64)
    );
    let times = format!("{:.0} to {:.0} s", level.from_s, level.to_s);
    let rate = show_rate(level.bytes_per_s);
    let rate = if level.slides { format!("from {rate}") } else { rate };
    vec![
        range,
        times,
        rate,
        grouped(level.requests_per_s.round()),
        show_time(level.p99_ns as f64),
        show_time(level.worst_p99_ns as f64),
    ]
}

fn rows(result: &SustainedResult) -> Vec<Vec<String>> {
    result.levels.iter().map(row).collect()
}

fn wrote(result: &SustainedResult) -> String {
    format!(
        "{} written in {}",
        show_size_rounded(result.written_bytes as f64),
        sustained::span(result.took_s)
    )
}

/// The answer, the levels and what supports it.
pub fn terminal(result: &SustainedResult, width: usize, colour: bool) -> String {
    let mut out = String::new();
    let width = width.max(40);
    for sentence in &result.sentences {
        for line in crate::terminal::wrap(&printable(sentence), width) {
            out += &line;
            out.push('\n');
        }
    }
    if result.levels.len() > 1 {
        out.push('\n');
        out += &table(&head(), &rows(result), 1, width, colour);
    }
    let _ = writeln!(out, "\n{}: {}", printable(&result.target.name), wrote(result));
    for warning in &result.warnings {
        for line in crate::terminal::wrap(&format!("note: {}", printable(warning)), width) {
            out += &line;
            out.push('\n');
        }
    }
    out
}

/// A row for each point, for spreadsheets.
pub fn csv(result: &SustainedResult) -> String {
    let mut out =
        "from_s,served_s,from_bytes,bytes,requests,throughput_bytes_per_s,p99_ns,temperature_c\n"
            .to_owned();
    for point in &result.points {
        let temperature = point.temperature_c.map_or(String::new(), |celsius| celsius.to_string());
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{temperature}",
            point.from_s,
            point.served_s,
            point.from_bytes,
            point.bytes,
            point.requests,
            point.bytes_per_s(),
            point.p99_ns,
        );
    }
    out
}

fn by_bytes(points: &[SeriesPoint], y: impl Fn(&SeriesPoint) -> f64) -> Vec<(f64, f64)> {
    let at = |point: &SeriesPoint| point.from_bytes as f64 + point.bytes as f64 / 2.0;
    points.iter().map(|point| (at(point), y(point))).collect()
}

fn by_time(points: &[SeriesPoint], y: impl Fn(&SeriesPoint) -> f64) -> Vec<(f64, f64)> {
    points.iter().map(|point| ((point.from_s + point.served_s / 2.0) * 1e9, y(point))).collect()
}

/// The rates with more of the target filled.
fn fills(result: &SustainedResult) -> Table {
    let row = |one: &sustained::FillResult| {
        let of = |level: Option<&Level>| {
            level.map_or(String::new(), |level| show_rate(level.bytes_per_s))
        };
        let fast = one.reserve.map_or(String::new(), |one| show_size_rounded(one.fast_bytes));
        vec![
            format!("{} %", one.percent),
            sustained::span(one.rest_s),
            of(one.levels.first()),
            fast,
            of(one.levels.last()),
        ]
    };
    Table {
        caption: "With more of the target filled".into(),
        head: ["filled", "rest", "at first", "for", "at the end"].map(str::to_owned).to_vec(),
        rows: result.fills.iter().map(row).collect(),
    }
}

/// The page.
///
/// # Errors
/// A bug in this crate: a template that does not fit.
pub fn html(result: &SustainedResult) -> Result<String, Error> {
    let points = &result.points;
    let levels = result.levels.iter().flat_map(|level| {
        let rate = level.bytes_per_s;
        [(level.from_bytes as f64, rate), (level.to_bytes as f64, rate)]
    });
    let chart =
        |title, x, x_title, y, lines| svg(&Chart { title, x, x_title, y, lines, shaded: None });
    let rates = Line::new("measured", by_bytes(points, SeriesPoint::bytes_per_s));
    let fitted = Line { dashed: true, ..Line::new("levels", levels.collect()) };
    let rate_unit = format!("Rate, {}", machine::units::shown_in().rate_unit());
    let mut charts = vec![
        chart(&rate_unit, Axis::CacheBytes, "written", Axis::BytesPerS, vec![rates, fitted]),
        chart(
            &rate_unit,
            Axis::TimeNs,
            "time",
            Axis::BytesPerS,
            vec![Line::new("", by_time(points, SeriesPoint::bytes_per_s))],
        ),
        chart(
            "99th percentile of the latency",
            Axis::CacheBytes,
            "written",
            Axis::TimeNs,
            vec![Line::new("", by_bytes(points, |point| point.p99_ns as f64))],
        ),
    ];
    if points.iter().any(|point| point.temperature_c.is_some()) {
        let celsius = by_time(points, |point| point.temperature_c.unwrap_or(0.0));
        charts.push(chart(
            "Temperature, °C",
            Axis::TimeNs,
            "time",
            Axis::Depth,
            vec![Line::new("", celsius)],
        ));
    }
    let mut tables = vec![Table { caption: "Levels".into(), head: head(), rows: rows(result) }];
    if !result.recoveries.is_empty() {
        let row = |one: &sustained::Recovery| {
            let amount = show_size_rounded(one.fast_bytes);
            vec![
                show_time(one.rest_s * 1e9),
                if one.cut_short { format!("at least {amount}") } else { amount },
            ]
        };
        tables.push(Table {
            caption: "Recovery at rest".into(),
            head: ["rest", "written at the fast rate after it"].map(str::to_owned).to_vec(),
            rows: result.recoveries.iter().map(row).collect(),
        });
    }
    if !result.fills.is_empty() {
        tables.push(fills(result));
    }
    let settings = &result.settings;
    let text = format!(
        "{} writes of {}, {} outstanding, {}; p99 of a point is over about a second of writes.",
        settings.pattern,
        machine::units::show_size(u64::from(settings.request_bytes)),
        settings.depth,
        settings.engine
    );
    crate::course::html(&Page {
        kind: "sustained writes",
        target: &result.target.name,
        about: wrote(result),
        program: &result.program,
        doubts: &result.warnings,
        notice: None,
        sentences: &result.sentences,
        parts: vec![PagePart { title: "Sustained writes".into(), text, charts, tables }],
    })
}
