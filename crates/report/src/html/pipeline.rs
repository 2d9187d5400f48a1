//! The way from program to device.

use crate::format::rate_unit;
use crate::pipeline::{Cell, Column, Pipeline, Row};
use crate::plot::text;
use machine::text::printable;
use results::{Overview, Results};
use serde::Serialize;

/// In pixels.
const WIDTHS: [(&str, f64); 2] = [("wide", 540.0), ("narrow", 360.0)];
const ROW: f64 = 34.0;
const BAR_TOP: f64 = 18.0;
const BAR: f64 = 11.0;
const ARROW: f64 = 10.0;

#[derive(Serialize)]
pub(super) struct Picture {
    title: String,
    drawings: Vec<Drawing>,
}

#[derive(Serialize)]
struct Drawing {
    class: &'static str,
    width: f64,
    height: f64,
    rows: Vec<Rung>,
    /// Place, top and bottom of the line.
    plain: Option<[f64; 3]>,
}

#[derive(Serialize)]
struct Rung {
    text: f64,
    kind: &'static str,
    name: String,
    figure: String,
    bar: f64,
    bar_height: f64,
    achieved: f64,
    advertised: Option<f64>,
    /// The tip of an arrow beyond the right edge.
    beyond: Option<f64>,
    narrowest: bool,
    plain: bool,
}

pub(super) fn pictures(results: &Results, overview: &Overview) -> Vec<Picture> {
    let Some(pipeline) = Pipeline::of(results, overview, usize::MAX) else { return Vec::new() };
    let picture = |(place, column): (usize, &Column)| Picture {
        title: format!("{}s", column.op),
        drawings: WIDTHS
            .iter()
            .map(|(class, width)| drawing(class, *width, &pipeline.rows, place, column))
            .collect(),
    };
    pipeline.columns.iter().enumerate().map(picture).collect()
}

fn drawing(
    class: &'static str,
    width: f64,
    rows: &[Row],
    place: usize,
    column: &Column,
) -> Drawing {
    let edge = width - ARROW;
    let rung = |(number, row): (usize, &Row)| {
        let cell = row.cells[place];
        let figure = figure(&cell);
        let room = width - text::width(&format!("{}  {figure}  ", row.kind));
        Rung {
            text: number as f64 * ROW + 12.0,
            kind: row.kind,
            name: named(row, room),
            figure,
            bar: number as f64 * ROW + BAR_TOP,
            bar_height: BAR,
            achieved: cell.achieved.map_or(0.0, |rate| tenth(column.place(rate) * edge)),
            advertised: cell.advertised.map(|rate| tenth(column.place(rate) * edge)),
            beyond: beyond(&cell, column).then_some(width - 1.0),
            narrowest: cell.narrowest,
            plain: number == 0 && column.plain.is_some(),
        }
    };
    let height = rows.len() as f64 * ROW;
    Drawing {
        class,
        width,
        height,
        rows: rows.iter().enumerate().map(rung).collect(),
        plain: column
            .plain
            .map(|rate| [tenth(column.place(rate) * edge), BAR_TOP, height - ROW + BAR_TOP + BAR]),
    }
}

fn named(row: &Row, room: f64) -> String {
    text::fit(&printable(&row.name), room)
}

fn figure(cell: &Cell) -> String {
    match cell.words(" of ") {
        words if words.is_empty() => words,
        words => format!("{words} {}", rate_unit()),
    }
}

fn beyond(cell: &Cell, column: &Column) -> bool {
    [cell.achieved, cell.advertised].into_iter().flatten().any(|rate| column.is_beyond(rate))
}

fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
