//! Points as a table.

use super::one_point::block;
use super::over_time::{intervals, intervals_of_all};
use super::{Tone, paint, table, wrap};
use crate::format::{cell, heading, plural, rate_unit};
use crate::sentences;
use machine::Warning;
use machine::text::printable;
use results::columns::{self, Column};
use results::{Kind, Results};
use results::{Numbers, OperationRate, Point};

fn notes(point: &Point) -> String {
    match &point.numbers {
        None => "x".into(),
        Some(numbers) if !numbers.warnings.is_empty() => "!".into(),
        Some(_) => String::new(),
    }
}

/// With warnings and errors; shows a single point in full.
pub fn points(results: &Results, width: usize, colour: bool) -> String {
    if crate::hosts::are_several(results) {
        return crate::hosts::terminal(results, width, colour);
    }
    let width = width.max(40);
    let rates = operations(&results.rates, width, colour) + &of_clients(results, width);
    let table = match (results.points.as_slice(), results.kind) {
        ([], _) if rates.is_empty() => "no measured points\n".into(),
        ([], _) => rates,
        ([point], Kind::Run | Kind::Sweep) => {
            block(results, point, width, colour)
                + &intervals(point, width, colour)
                + &doubts(results, width, colour)
                + &rates
        }
        (points, _) => {
            many(points, width, colour)
                + &intervals_of_all(points, width, colour)
                + &doubts(results, width, colour)
                + &rates
        }
    };
    let beside = match &results.interference {
        Some(found) => super::interference::interference(results, found, width, colour),
        None => String::new(),
    };
    table + &latency_goals(results, width) + &beside
}

fn of_clients(results: &Results, width: usize) -> String {
    let sentences = sentences::of_operations(results);
    let lines = sentences.iter().flat_map(|sentence| wrap(&printable(sentence), width));
    lines.map(|line| line + "\n").collect()
}

fn latency_goals(results: &Results, width: usize) -> String {
    let sentences =
        results.latency_goals.iter().flat_map(|goal| wrap(&printable(&goal.sentence), width));
    sentences.map(|line| line + "\n").collect()
}

fn doubts(results: &Results, width: usize, colour: bool) -> String {
    let reported = |text: &String| {
        results
            .points
            .iter()
            .filter_map(|point| point.numbers.as_ref())
            .any(|numbers| numbers.warnings.contains(text))
    };
    let mut out = String::new();
    for text in results.warnings.iter().filter(|text| !reported(text)) {
        for (place, line) in wrap(text, width - 2).into_iter().enumerate() {
            let mark = if place == 0 { "!" } else { " " };
            out.push_str(&paint(Tone::Doubt, &format!("{mark} {}", printable(&line)), colour));
            out.push('\n');
        }
    }
    out
}

fn shown_columns<T>(columns: &'static [Column<T>]) -> Vec<&'static Column<T>> {
    columns.iter().filter(|column| column.readily.is_some()).collect()
}

fn operations(rates: &[OperationRate], width: usize, colour: bool) -> String {
    if rates.is_empty() {
        return String::new();
    }
    let of_column = |column: &'static Column<OperationRate>| {
        let cells: Vec<String> = rates.iter().map(|rate| printable(&cell(column, rate))).collect();
        cells.iter().any(|cell| !cell.is_empty()).then_some((column, cells))
    };
    let shown: Vec<_> =
        shown_columns(columns::OPERATION).into_iter().filter_map(of_column).collect();
    let header: Vec<String> = shown.iter().map(|(column, _)| column.heading.to_string()).collect();
    let rows: Vec<Vec<String>> = (0..rates.len())
        .map(|row| shown.iter().map(|(_, cells)| cells[row].clone()).collect())
        .collect();
    let left = shown.iter().filter(|(column, _)| column.asked).count();
    table(&header, &rows, left, width, colour)
}

fn many(points: &[Point], width: usize, colour: bool) -> String {
    let columns = shown_columns(columns::POINT);
    let show = |column: &Column<Point>, point: &Point| match (&point.numbers, heading(column)) {
        (None, heading) if heading == rate_unit() => "failed".to_string(),
        _ => printable(&cell(column, point)),
    };
    let mut cells: Vec<Vec<String>> = columns
        .iter()
        .map(|column| points.iter().map(|point| show(column, point)).collect())
        .collect();
    let same = |place: usize| cells[place].iter().all(|cell| *cell == cells[place][0]);
    let (said, mut shown): (Vec<usize>, Vec<usize>) =
        (0..columns.len()).partition(|&place| columns[place].asked && same(place));
    let common: Vec<(&str, &str)> =
        said.iter().map(|&place| (columns[place].heading, cells[place][0].as_str())).collect();
    let common = in_common(&common);
    cells.push(points.iter().map(notes).collect());
    let mut headings: Vec<&str> = columns.iter().map(|column| heading(column)).collect();
    headings.push("");
    shown.push(columns.len());
    let asked = |place: usize| columns.get(place).is_some_and(|column| column.asked);
    let readily = |place: usize| columns.get(place).and_then(|column| column.readily).unwrap_or(0);
    shown.retain(|&place| asked(place) || !cells[place].iter().all(String::is_empty));
    let columns_of = |place: usize| {
        use unicode_width::UnicodeWidthStr;
        cells[place].iter().map(|cell| cell.width()).max().unwrap_or(0).max(headings[place].width())
            + 2
    };
    while shown.iter().map(|&place| columns_of(place)).sum::<usize>() > width + 2 {
        let given_up = shown
            .iter()
            .copied()
            .filter(|&place| readily(place) > 0)
            .max_by_key(|&place| readily(place));
        let Some(given_up) = given_up else { break };
        shown.retain(|&place| place != given_up);
    }
    let mut out = String::new();
    for line in wrap(&format!("all {}: {}", plural(points.len(), "point"), common), width) {
        out.push_str(&paint(Tone::Quiet, &line, colour));
        out.push('\n');
    }
    let header: Vec<String> = shown.iter().map(|&place| headings[place].to_string()).collect();
    let rows: Vec<Vec<String>> = (0..points.len())
        .map(|row| shown.iter().map(|&place| cells[place][row].clone()).collect())
        .collect();
    let left =
        shown.iter().take_while(|&&place| matches!(headings[place], "op" | "pattern")).count();
    out.push_str(&table(&header, &rows, left, width, colour));
    out.push_str(&remarks(points, width, colour));
    out
}

fn in_common(said: &[(&str, &str)]) -> String {
    let words: Vec<String> = said
        .iter()
        .filter_map(|one| match *one {
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

fn remarks(points: &[Point], width: usize, colour: bool) -> String {
    let mut errors: Vec<(&str, Vec<String>)> = Vec::new();
    // Warnings that differ only in figures are one.
    let mut warnings: Vec<(Warning, Vec<String>)> = Vec::new();
    for point in points {
        let of = point.workload.short();
        if let Some(error) = point.error.as_deref() {
            match errors.iter_mut().find(|(known, _)| *known == error) {
                Some((_, about)) => about.push(of.clone()),
                None => errors.push((error, vec![of.clone()])),
            }
        }
        for warning in point.numbers.iter().flat_map(Numbers::doubts) {
            match warnings.iter_mut().find(|(known, _)| known.is_like(&warning)) {
                Some((known, about)) => {
                    known.merge(&warning);
                    about.push(of.clone());
                }
                None => warnings.push((warning, vec![of.clone()])),
            }
        }
    }
    let errors =
        errors.into_iter().map(|(error, about)| (Tone::Failed, format!("failed: {error}"), about));
    let warnings =
        warnings.into_iter().map(|(warning, about)| (Tone::Doubt, warning.to_string(), about));
    let said: Vec<(Tone, String, Vec<String>)> = errors.chain(warnings).collect();
    let mut out = String::new();
    for (tone, text, about) in said {
        let mark = if tone == Tone::Failed { "x" } else { "!" };
        let about = match about.as_slice() {
            [one] => one.clone(),
            all if all.len() == points.len() => format!("all {} points", all.len()),
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
