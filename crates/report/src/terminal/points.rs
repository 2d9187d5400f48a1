//! The points of a run, a sweep or a study as a table.

use super::one_point::block;
use super::{Tone, paint, table, wrap};
use crate::words::{OPERATION_COLUMNS, clean, mib_per_s, mode, operation, operation_row, percent, plural, process_cpu_ns, short_count};
use machine::units::{show_size, show_time, significant};
use measure::{OperationRate, Point};
use study::{Kind, Results};

/// A column: its name, what it shows of a point, whether it says what was asked, and how readily it is given up (0: never).
struct Column {
    name: &'static str,
    show: fn(&Point) -> String,
    asked: bool,
    readily: u8,
}

const COLUMNS: [Column; 16] = [
    Column { name: "op", show: operation, asked: true, readily: 0 },
    Column { name: "pattern", show: |p| p.workload.pattern.option(), asked: true, readily: 0 },
    Column { name: "request", show: |p| show_size(u64::from(p.workload.request_bytes)), asked: true, readily: 0 },
    Column { name: "depth", show: |p| p.workload.depth.to_string(), asked: true, readily: 0 },
    Column { name: "threads", show: |p| p.workload.threads.to_string(), asked: true, readily: 0 },
    Column { name: "engine", show: |p| p.workload.engine.name().into(), asked: true, readily: 0 },
    Column { name: "mode", show: mode, asked: true, readily: 0 },
    Column { name: "shift", show: |p| show_size(p.workload.offset_bytes), asked: true, readily: 0 },
    Column { name: "MiB/s", show: rate, asked: false, readily: 0 },
    Column {
        name: "± %",
        show: |p| measured(p, |n| n.relative_half_width.map_or("?".into(), |w| percent(w * 100.0))),
        asked: false,
        readily: 1,
    },
    Column { name: "IOPS", show: |p| measured(p, |n| short_count(n.iops)), asked: false, readily: 2 },
    Column { name: "p50", show: |p| measured(p, |n| show_time(n.latency_ns.p50 as f64)), asked: false, readily: 3 },
    Column { name: "p99", show: |p| measured(p, |n| show_time(n.latency_ns.p99 as f64)), asked: false, readily: 1 },
    Column { name: "CPU us", show: |p| measured(p, |n| significant(process_cpu_ns(n) / 1e3, 3)), asked: false, readily: 1 },
    Column {
        name: "to disk",
        show: |p| measured(p, |n| n.achieved.synced_bytes_per_s.map_or(String::new(), mib_per_s)),
        asked: false,
        readily: 4,
    },
    Column { name: "", show: notes, asked: false, readily: 0 },
];

fn measured(point: &Point, show: fn(&measure::Numbers) -> String) -> String {
    point.numbers.as_ref().map_or_else(String::new, show)
}

/// The rate, or that there is none.
fn rate(point: &Point) -> String {
    point.numbers.as_ref().map_or_else(|| "failed".into(), |numbers| mib_per_s(numbers.throughput_bytes_per_s))
}

/// Marks of a point whose words stand below the table.
fn notes(point: &Point) -> String {
    match &point.numbers {
        None => "x".into(),
        Some(numbers) if !numbers.warnings.is_empty() => "!".into(),
        Some(_) => String::new(),
    }
}

/// The points of a document as a table, their warnings and errors below it; one point alone is told in full.
///
/// What is the same for all points is said once above the table. Where the columns do not fit, those go first that follow from others.
pub fn points(results: &Results, width: usize, colour: bool) -> String {
    let width = width.max(40);
    let rates = operations(&results.rates, width, colour);
    match (results.points.as_slice(), results.kind) {
        ([], _) if rates.is_empty() => "no point was measured\n".into(),
        ([], _) => rates,
        ([point], Kind::Run | Kind::Sweep) => block(results, point, width, colour) + &rates,
        (points, _) => many(points, width, colour) + &rates,
    }
}

/// Rates of operations on whole files; columns that say nothing are left out.
fn operations(rates: &[OperationRate], width: usize, colour: bool) -> String {
    if rates.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = rates.iter().map(|rate| operation_row(rate).iter().map(|cell| clean(cell)).collect()).collect();
    let shown: Vec<usize> = (0..OPERATION_COLUMNS.len()).filter(|&column| rows.iter().any(|row| !row[column].is_empty())).collect();
    let header: Vec<String> = shown.iter().map(|&column| OPERATION_COLUMNS[column].to_string()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| shown.iter().map(|&column| row[column].clone()).collect()).collect();
    let left = shown.iter().filter(|column| **column < 2).count();
    table(&header, &rows, left, width, colour)
}

fn many(points: &[Point], width: usize, colour: bool) -> String {
    let cells: Vec<Vec<String>> = COLUMNS.iter().map(|column| points.iter().map(|point| clean(&(column.show)(point))).collect()).collect();
    let same = |place: usize| cells[place].iter().all(|cell| *cell == cells[place][0]);
    let (said, mut shown): (Vec<usize>, Vec<usize>) = (0..COLUMNS.len()).partition(|&place| COLUMNS[place].asked && same(place));
    shown.retain(|&place| COLUMNS[place].asked || !cells[place].iter().all(String::is_empty));
    let columns_of = |place: usize| {
        use unicode_width::UnicodeWidthStr;
        cells[place].iter().map(|cell| cell.width()).max().unwrap_or(0).max(COLUMNS[place].name.width()) + 2
    };
    while shown.iter().map(|&place| columns_of(place)).sum::<usize>() > width + 2 {
        let Some(&given_up) = shown.iter().filter(|&&place| COLUMNS[place].readily > 0).max_by_key(|&&place| COLUMNS[place].readily) else {
            break;
        };
        shown.retain(|&place| place != given_up);
    }
    let mut out = String::new();
    for line in wrap(&format!("all {}: {}", plural(points.len(), "point"), in_common(&said, &cells)), width) {
        out.push_str(&paint(Tone::Quiet, &line, colour));
        out.push('\n');
    }
    let header: Vec<String> = shown.iter().map(|&place| COLUMNS[place].name.to_string()).collect();
    let rows: Vec<Vec<String>> = (0..points.len()).map(|row| shown.iter().map(|&place| cells[place][row].clone()).collect()).collect();
    let left = shown.iter().take_while(|&&place| matches!(COLUMNS[place].name, "op" | "pattern")).count();
    out.push_str(&table(&header, &rows, left, width, colour));
    out.push_str(&remarks(points, width, colour));
    out
}

/// What is the same for all points: `read, seq, 1 thread, io_uring, direct`.
fn in_common(said: &[usize], cells: &[Vec<String>]) -> String {
    let words: Vec<String> = said
        .iter()
        .filter_map(|&place| match (COLUMNS[place].name, cells[place][0].as_str()) {
            ("shift", "0 B") => None,
            ("shift", value) => Some(format!("shifted by {value}")),
            ("request", value) => Some(format!("{value} requests")),
            ("depth", value) => Some(format!("depth {value}")),
            ("threads", "1") => Some("1 thread".into()),
            ("threads", value) => Some(format!("{value} threads")),
            (_, value) => Some(value.into()),
        })
        .collect();
    if words.is_empty() { "nothing in common".into() } else { words.join(", ") }
}

/// Errors and warnings, each text once with the points that it is about.
fn remarks(points: &[Point], width: usize, colour: bool) -> String {
    let mut said: Vec<(Tone, String, Vec<String>)> = Vec::new();
    for point in points {
        let errors = point.error.iter().map(|text| (Tone::Failed, format!("failed: {text}")));
        let warnings = point.numbers.iter().flat_map(|numbers| &numbers.warnings).map(|text| (Tone::Doubt, text.clone()));
        for (tone, text) in errors.chain(warnings) {
            match said.iter_mut().find(|(_, known, _)| *known == text) {
                Some((_, _, about)) => about.push(point.workload.short()),
                None => said.push((tone, text, vec![point.workload.short()])),
            }
        }
    }
    said.sort_by_key(|(tone, _, _)| *tone != Tone::Failed);
    let mut out = String::new();
    for (tone, text, about) in said {
        let mark = if tone == Tone::Failed { "x" } else { "!" };
        let about = match about.as_slice() {
            [one] => one.clone(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
            [] => String::new(),
        };
        for (place, line) in wrap(&format!("{text} ({about})"), width - 2).into_iter().enumerate() {
            let mark = if place == 0 { mark } else { " " };
            out.push_str(&paint(tone, &format!("{mark} {line}"), colour));
            out.push('\n');
        }
    }
    out
}
