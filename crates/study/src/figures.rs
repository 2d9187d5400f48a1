//! From measured cells to figures.

use crate::grid::{Cell, CurveSet, FigureDesign};
use crate::models;
use crate::schedule::Trial;
use machine::units::MIB;
use results::{Axis, Figure, Point, Series, Value};

pub(crate) fn draw(trial: &Trial, points: &[Point]) -> Vec<Figure> {
    let (sets, cells) = (trial.experiment.curves.iter(), &trial.grid.cells);
    let figures = sets
        .flat_map(|set| set.figures.iter().map(move |figure| draw_one(set, figure, cells, points)));
    figures.filter(|figure| !figure.series.is_empty()).collect()
}

fn draw_one(
    set: &'static CurveSet,
    figure: &FigureDesign,
    cells: &[Cell],
    points: &[Point],
) -> Figure {
    let mut series: Vec<Series> = Vec::new();
    for cell in cells.iter().filter(|cell| std::ptr::eq(cell.curve.set, set)) {
        let Some(point) = cell.point else { continue };
        let value = value(cell, figure.y, point, &points[point]);
        match series.iter_mut().find(|series| series.name == cell.curve.name) {
            Some(series) => series.values.push(value),
            None => series.push(Series {
                name: cell.curve.name.to_string(),
                values: vec![value],
                half_power: None,
            }),
        }
    }
    for one in &mut series {
        one.values.sort_by(|a, b| a.x.total_cmp(&b.x));
        if set.half_power {
            one.half_power = models::half_power_of_series(set.x, figure.y, one, points);
        }
    }
    Figure { id: figure.id.into(), title: figure.title.into(), x: set.x, y: figure.y, series }
}

/// The value of a cell on a y axis, with its interval; `index` is that of its point.
pub(crate) fn value(cell: &Cell, axis: Axis, index: usize, point: &Point) -> Value {
    let empty = Value { x: cell.x, y: None, interval_95: None, point: Some(index) };
    let Some(numbers) = &point.numbers else { return empty };
    let request = f64::from(point.workload.request_bytes);
    let cpu = &numbers.cpu_ns_per_request;
    let scaled = |interval: Option<[f64; 2]>, factor: f64| {
        interval.map(|[low, high]| [low * factor, high * factor])
    };
    let process = cpu.process();
    let (y, interval) = match axis {
        Axis::BytesPerS if !cell.synced && numbers.achieved.returned_bytes_per_s.is_some() => {
            (numbers.achieved.returned_bytes_per_s.unwrap_or_default(), None)
        }
        Axis::BytesPerS => (numbers.throughput_bytes_per_s, numbers.interval_95),
        Axis::Iops => (numbers.iops, scaled(numbers.interval_95, 1.0 / request)),
        Axis::CpuNsPerRequest => (process, cpu.process_interval_95),
        Axis::CpuNsPerMib => {
            (process * MIB as f64 / request, scaled(cpu.process_interval_95, MIB as f64 / request))
        }
        Axis::ServiceNs => (numbers.achieved.mean_service_ns, None),
        _ => return empty,
    };
    Value { y: Some(y), interval_95: interval, ..empty }
}
