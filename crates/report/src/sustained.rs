//! A sustained run.

mod page;

pub use page::html;

use crate::terminal::table;
use machine::text::printable;
use machine::units::{grouped, show_capacity, show_rate, show_time};
use std::fmt::Write;
use sustained::{Level, SustainedResult};

fn head() -> Vec<String> {
    ["written", "at", "rate", "writes/s", "p99", "worst p99"].map(str::to_owned).to_vec()
}

fn row(level: &Level) -> Vec<String> {
    let range = format!(
        "{} to {}",
        show_capacity(level.from_bytes as f64),
        show_capacity(level.to_bytes as f64)
    );
    let times = format!("{:.0} to {:.0} s", level.from_s, level.to_s);
    let rate = show_rate(level.bytes_per_s);
    let rate = match level.saw_tooth {
        Some([low, high]) => format!("{rate}, {} to {}", show_rate(low), show_rate(high)),
        None if level.slides => format!("from {rate}"),
        None => rate,
    };
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
        show_capacity(result.written_bytes as f64),
        sustained::span(result.took_s)
    )
}

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

/// A row for each point.
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
