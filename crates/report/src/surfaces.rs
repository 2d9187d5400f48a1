//! Rates over file and record sizes, as in IOzone.

use crate::format::{date, rate, rate_number};
use crate::{Error, html, plot};
use dialect::iozone;
use machine::units::{show_size, significant};
use minijinja::context;
use minijinja::value::Value;
use results::Results;
use serde::Serialize;

/// The file size that outgrows a cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Cliff {
    pub first_slow_row: usize,
    pub sentence: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Surface {
    pub title: String,
    /// File sizes in bytes, ascending.
    pub rows: Vec<u64>,
    /// Record sizes in bytes, ascending.
    pub columns: Vec<u64>,
    /// By row and column; `None` if not measured.
    pub bytes_per_s: Vec<Vec<Option<f64>>>,
    /// The repeats' range over their median, by row and column; empty without repeats.
    pub spread_percent: Vec<Vec<Option<f64>>>,
    pub cliff: Option<Cliff>,
}

#[derive(Serialize)]
struct View {
    anchor: String,
    title: String,
    description: String,
    cliff: Option<String>,
    extremes: Vec<(String, String)>,
    scenes: Vec<plot::surface::SurfaceScene>,
    columns: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    file: String,
    cells: Vec<Option<(String, usize)>>,
    after_cliff: bool,
}

pub fn of_iozone(results: &Results, own: &iozone::IozoneResult) -> Result<String, Error> {
    let all: Vec<Surface> = own.surfaces.iter().map(|surface| drawn(surface, own)).collect();
    surfaces(results, &all)
}

fn drawn(surface: &iozone::Surface, result: &iozone::IozoneResult) -> Surface {
    let cell = |file_bytes: u64, record_bytes: u64| {
        let same = |cell: &&iozone::Measured| {
            cell.test == surface.test
                && cell.cell.file_bytes == file_bytes
                && cell.cell.record_bytes == record_bytes
        };
        result.cells.iter().find(same).and_then(iozone::Measured::spread_percent)
    };
    let cliff = result.cliffs.iter().find(|cliff| cliff.test == surface.test).and_then(|cliff| {
        let first_slow_row =
            surface.file_bytes.iter().position(|bytes| *bytes == cliff.first_slow_file_bytes)?;
        Some(Cliff { first_slow_row, sentence: cliff.sentence.clone() })
    });
    Surface {
        title: surface.test.title().into(),
        rows: surface.file_bytes.clone(),
        columns: surface.record_bytes.clone(),
        bytes_per_s: surface
            .kib_per_s
            .iter()
            .map(|row| row.iter().map(|rate| rate.map(|rate| rate * 1024.0)).collect())
            .collect(),
        spread_percent: surface
            .file_bytes
            .iter()
            .map(|file| surface.record_bytes.iter().map(|record| cell(*file, *record)).collect())
            .collect(),
        cliff,
    }
}

pub fn surfaces(results: &Results, surfaces: &[Surface]) -> Result<String, Error> {
    let mut environment = html::environment()?;
    environment.add_template("surfaces.html", include_str!("../templates/surfaces.html"))?;
    environment.add_template("surface.svg", include_str!("../templates/surface.svg"))?;
    let views: Vec<View> =
        surfaces.iter().enumerate().map(|(place, surface)| view(place, surface)).collect();
    let values = surfaces
        .iter()
        .enumerate()
        .map(|(place, surface)| (format!("s{place}"), values(surface)))
        .collect();
    let context = context! {
        bands => plot::surface::bands().iter().map(|pair| (pair.light.clone(), pair.dark.clone())).collect::<Vec<_>>(),
        values => Value::from_safe_string(html::shown_json(values)?),
        target => results.target.name,
        kind => "iozone",
        about => html::about(results),
        date => date(results.began_unix_s),
        program => format!("{} {}", results.program.name, results.program.version),
        arguments => results.program.arguments.join(" "),
        doubts => results.warnings,
        surfaces => views,
    };
    Ok(environment.get_template("surfaces.html")?.render(context)?)
}

fn cells(surface: &Surface) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
    let row = |(row, rates): (usize, &'_ Vec<Option<f64>>)| {
        rates
            .iter()
            .enumerate()
            .filter_map(move |(column, rate)| Some((row, column, (*rate)?)))
            .collect::<Vec<_>>()
    };
    surface
        .bytes_per_s
        .iter()
        .take(surface.rows.len())
        .enumerate()
        .flat_map(row)
        .filter(|(_, column, _)| *column < surface.columns.len())
}

fn view(place: usize, surface: &Surface) -> View {
    let rooms = [plot::Room::Wide, plot::Room::Narrow];
    let max = cells(surface).map(|cell| cell.2).fold(0.0, f64::max);
    let at = |(row, column, value): (usize, usize, f64)| {
        format!(
            "{} in records of {} of a file of {}",
            rate(value),
            show_size(surface.columns[column]),
            show_size(surface.rows[row])
        )
    };
    let best = cells(surface).max_by(|a, b| a.2.total_cmp(&b.2)).map(at);
    let worst = cells(surface).min_by(|a, b| a.2.total_cmp(&b.2)).map(at);
    let band = |value: f64| {
        ((value / max.max(f64::MIN_POSITIVE) * plot::surface::BANDS as f64) as usize)
            .min(plot::surface::BANDS - 1)
    };
    let row = |(index, bytes): (usize, &u64)| Row {
        file: show_size(*bytes),
        cells: (0..surface.columns.len())
            .map(|column| surface.bytes_per_s.get(index)?.get(column).copied().flatten())
            .map(|value| value.map(|value| (rate_number(value), band(value))))
            .collect(),
        after_cliff: surface.cliff.as_ref().is_some_and(|cliff| cliff.first_slow_row == index),
    };
    View {
        anchor: format!("s{place}"),
        title: surface.title.clone(),
        description: format!(
            "The rate over {} file sizes and {} record sizes",
            surface.rows.len(),
            surface.columns.len()
        ),
        cliff: surface.cliff.as_ref().map(|cliff| cliff.sentence.clone()),
        extremes: [("best", best), ("worst", worst)]
            .into_iter()
            .filter_map(|(name, value)| Some((name.into(), value?)))
            .collect(),
        scenes: rooms.map(|room| plot::surface::lay_out_surface(surface, room)).into(),
        columns: surface.columns.iter().map(|bytes| show_size(*bytes)).collect(),
        rows: surface.rows.iter().enumerate().map(row).collect(),
    }
}

fn values(surface: &Surface) -> Vec<html::ShownCurve> {
    let curve = |(row, bytes): (usize, &u64)| {
        let name = format!("file {}", show_size(*bytes));
        let of_row = cells(surface).filter(move |cell| cell.0 == row);
        let values = of_row.map(|(_, column, value)| {
            let spread =
                surface.spread_percent.get(row).and_then(|row| row.get(column).copied().flatten());
            let lines =
                spread.map(|percent| format!("repeats within {} %", significant(percent, 2)));
            (
                format!("record {}", show_size(surface.columns[column])),
                rate(value),
                lines.into_iter().collect(),
            )
        });
        (name, values.collect())
    };
    surface.rows.iter().enumerate().map(curve).collect()
}
