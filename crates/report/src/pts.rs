//! A test of SNIA's specification.

mod page;
mod tables;

pub use page::html;

use crate::terminal::{table, wrap};
use machine::text::printable;
use machine::units::{show_capacity, show_rate};
use std::fmt::Write;
use sustained::pts::{Estimate, PtsPlan, PtsResult};
use sustained::span;
use tables::{histograms, single_cells, tables, with_matrix};
fn notice(result: &PtsResult) -> Option<String> {
    let why = if !result.plan.to_specification() {
        format!("--scale {}", result.plan.scale)
    } else if !result.complete {
        "the test is not complete".into()
    } else if result.interruptions > 0 {
        "the run was interrupted".into()
    } else {
        return None;
    };
    Some(format!("Not to the specification: {why}."))
}

pub fn terminal(result: &PtsResult, width: usize, colour: bool) -> String {
    let width = width.max(40);
    let mut out = String::new();
    let mut say = |text: &str| {
        for line in wrap(&printable(text), width) {
            out += &line;
            out.push('\n');
        }
    };
    say(&format!("{}: {}", result.plan.test.title(), result.conditions.target.name));
    if let Some(notice) = notice(result) {
        say(&notice);
    }
    result.sentences.iter().for_each(|sentence| say(sentence));
    for phase in with_matrix(result) {
        for one in tables(result, phase) {
            let _ =
                write!(out, "\n{}\n{}", one.caption, table(&one.head, &one.rows, 1, width, colour));
        }
    }
    for one in single_cells(result).into_iter().chain(histograms(result)) {
        let _ = write!(out, "\n{}\n{}", one.caption, table(&one.head, &one.rows, 1, width, colour));
    }
    for warning in result.warnings.iter().chain(&result.plan.left_out) {
        for line in wrap(&format!("note: {}", printable(warning)), width) {
            out += &line;
            out.push('\n');
        }
    }
    out
}

pub fn plan(plan: &PtsPlan, estimate: &Estimate, width: usize, colour: bool) -> String {
    let time = |seconds: [f64; 2]| {
        let [low, high] = seconds.map(|end| if end == 0.0 { "-".to_owned() } else { span(end) });
        if low == high { low } else { format!("{low} to {high}") }
    };
    let size = |bytes: f64| if bytes == 0.0 { "-".into() } else { show_capacity(bytes) };
    let rows: Vec<Vec<String>> = estimate
        .phases
        .iter()
        .map(|phase| {
            let [low, high] = phase.rounds;
            vec![
                phase.title.clone(),
                if low == high { low.to_string() } else { format!("{low} to {high}") },
                phase.cells.to_string(),
                time(phase.seconds),
                size(phase.max_written_bytes),
            ]
        })
        .collect();
    let head = ["phase", "rounds", "cells", "time", "written at most"].map(str::to_owned);
    let mut out = format!(
        "{} on {}{}\n\n",
        plan.test.title(),
        show_capacity(plan.active_bytes as f64),
        if plan.to_specification() {
            String::new()
        } else {
            format!("; not to the specification: --scale {}", plan.scale)
        }
    );
    out += &table(&head, &rows, 1, width.max(40), colour);
    let _ = writeln!(
        out,
        "\nIn all {}, at most {} written, at an assumed {} (--assume-rate).",
        time(estimate.seconds),
        size(estimate.max_written_bytes),
        show_rate(estimate.bytes_per_s)
    );
    for one in &plan.left_out {
        let _ = writeln!(out, "Left out: {one}.");
    }
    out
}
