//! From measured cells to figures.

use crate::design::{Cell, Design, FigureDesign, Shows};
use crate::models;
use crate::result::{Axis, Experiment, Figure, Series, Value};
use machine::units::MIB;
use measure::Point;

/// A design whose cells have places on the bench.
pub(crate) struct Laid {
    pub(crate) design: Design,
    /// For each cell, the point that holds it; none where it was left out.
    pub(crate) places: Vec<Option<usize>>,
}

/// Peaks that half-power points refer to, in bytes per second.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PeakRates {
    pub(crate) read: Option<f64>,
    pub(crate) write: Option<f64>,
}

impl PeakRates {
    pub(crate) fn of(&self, op: &str) -> Option<f64> {
        if op == "write" { self.write } else { self.read }
    }
}

/// Draws an experiment from the points.
pub(crate) fn experiment(laid: &Laid, points: &[Point]) -> Experiment {
    let design = &laid.design;
    let figures = design.figures.iter().map(|figure| draw(figure, laid, points)).filter(|figure| !figure.series.is_empty()).collect();
    Experiment {
        id: design.id.into(),
        title: design.title.into(),
        question: design.question.into(),
        sentence: String::new(),
        skipped: design.skipped.clone(),
        left_out: design.notes.clone(),
        figures,
        memory: Vec::new(),
    }
}

fn draw(figure: &FigureDesign, laid: &Laid, points: &[Point]) -> Figure {
    let mut series: Vec<Series> = Vec::new();
    for (cell, place) in laid.design.cells.iter().zip(&laid.places) {
        if cell.group != figure.group {
            continue;
        }
        let Some(place) = *place else { continue };
        let value = value(cell, figure.y, place, &points[place]);
        match series.iter_mut().find(|series| series.name == cell.series) {
            Some(series) => series.values.push(value),
            None => series.push(Series { name: cell.series.clone(), values: vec![value], half_power: None }),
        }
    }
    for one in &mut series {
        one.values.sort_by(|a, b| a.x.total_cmp(&b.x));
        if figure.half_power {
            one.half_power = models::half_power_of_series(figure.x, figure.y, one, points);
        }
    }
    Figure { id: figure.id.into(), title: figure.title.into(), x: figure.x, y: figure.y, series }
}

/// The y of a cell on an axis, with its interval.
fn value(cell: &Cell, axis: Axis, place: usize, point: &Point) -> Value {
    let empty = Value { x: cell.x, y: None, interval_95: None, point: Some(place) };
    let Some(numbers) = &point.numbers else { return empty };
    let request = f64::from(point.workload.request_bytes);
    let cpu = &numbers.cpu_ns_per_request;
    let scaled = |interval: Option<[f64; 2]>, factor: f64| interval.map(|[low, high]| [low * factor, high * factor]);
    let process = cpu.user + cpu.system;
    let (y, interval) = match axis {
        Axis::BytesPerS if cell.shows == Shows::Synced => match numbers.achieved.synced_bytes_per_s {
            Some(rate) => (rate, None),
            None => return empty,
        },
        Axis::BytesPerS => (numbers.throughput_bytes_per_s, numbers.interval_95),
        Axis::Iops => (numbers.iops, scaled(numbers.interval_95, 1.0 / request)),
        Axis::CpuNsPerRequest => (process, cpu.process_interval_95),
        Axis::CpuNsPerMib => (process * MIB as f64 / request, scaled(cpu.process_interval_95, MIB as f64 / request)),
        Axis::ServiceNs => (numbers.achieved.mean_service_ns, None),
        _ => return empty,
    };
    Value { y: Some(y), interval_95: interval, ..empty }
}
