//! A sweep has no experiments: its axes follow from what varies.

use machine::units::show_size;
use results::Point;
use results::{Axis, CurveName, Figure, SecondRecord, Series, Value};

/// More have colours and labels that are too similar.
const MAX_CURVES: usize = 12;

/// The table and points.csv have all values.
const MAX_VALUES: usize = 1200;

struct Dimension {
    axis: Option<Axis>,
    value: fn(&Point) -> f64,
    name: fn(&Point) -> String,
}

/// In order of preference: the first that varies becomes x.
const DIMENSIONS: [Dimension; 8] = [
    Dimension {
        axis: Some(Axis::RequestBytes),
        value: |p| f64::from(p.workload.request_bytes),
        name: |p| show_size(u64::from(p.workload.request_bytes)),
    },
    Dimension {
        axis: Some(Axis::Depth),
        value: |p| f64::from(p.workload.depth),
        name: |p| format!("depth {}", p.workload.depth),
    },
    Dimension {
        axis: Some(Axis::Threads),
        value: |p| f64::from(p.workload.threads),
        name: |p| format!("{} threads", p.workload.threads),
    },
    Dimension {
        axis: Some(Axis::OffsetBytes),
        value: |p| p.workload.offset_bytes as f64,
        name: |p| format!("shifted by {}", show_size(p.workload.offset_bytes)),
    },
    Dimension { axis: None, value: |_| 0.0, name: Point::operation },
    Dimension { axis: None, value: |_| 0.0, name: |p| p.workload.pattern.to_string() },
    Dimension { axis: None, value: |_| 0.0, name: |p| p.workload.engine.name().into() },
    Dimension { axis: None, value: |_| 0.0, name: Point::mode },
];

pub(super) fn figures(points: &[Point]) -> Vec<Figure> {
    let varies = |dimension: &&Dimension| {
        let mut names = points.iter().map(|point| (dimension.name)(point));
        names.next().is_some_and(|first| names.any(|name| name != first))
    };
    let varying: Vec<&Dimension> = DIMENSIONS.iter().filter(varies).collect();
    let Some((along, axis)) =
        varying.iter().find_map(|dimension| Some((*dimension, dimension.axis?)))
    else {
        return Vec::new();
    };
    let others: Vec<&Dimension> =
        varying.into_iter().filter(|dimension| dimension.axis != Some(axis)).collect();
    let mut curves: Vec<(CurveName, Vec<usize>)> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let name = name(&others, point);
        match curves.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(index),
            None => curves.push((name, vec![index])),
        }
    }
    let mut figures = Vec::new();
    let mut drawn = 0;
    for (part, chunk) in curves.chunks(MAX_CURVES).enumerate() {
        drawn += chunk.iter().map(|(_, members)| members.len()).sum::<usize>();
        if part > 0 && drawn > MAX_VALUES {
            break;
        }
        for (id, title, y) in [
            ("rate", "Rate", Axis::BytesPerS),
            ("cpu", "Processor time a request, whole machine", Axis::CpuNsPerRequest),
        ] {
            let by = crate::format::axis_title(axis);
            let more = if curves.len() > MAX_CURVES {
                format!(", part {}", part + 1)
            } else {
                String::new()
            };
            let series = chunk
                .iter()
                .map(|(name, members)| curve(name, members, points, along, y))
                .collect();
            figures.push(Figure {
                id: format!("{id}-{}", part + 1),
                title: format!("{title} by {by}{more}"),
                x: axis,
                y,
                series,
            });
        }
    }
    figures
}

pub(super) fn over_time(seconds: &[SecondRecord]) -> Vec<Figure> {
    let runs = seconds.iter().map(|one| one.run).max().map_or(0, |last| last + 1);
    let curve = |run: u64, y: fn(&SecondRecord) -> f64| -> Series {
        let of_run = seconds.iter().filter(|one| one.run == run);
        let value = |one: &SecondRecord| Value {
            x: (one.second * 1_000_000_000 + one.length_ns) as f64,
            y: Some(y(one)),
            interval_95: None,
            point: None,
        };
        let values = of_run.map(value).collect();
        Series::new(CurveName::from(format!("run {}", run + 1)).ordered(run as f64), values)
    };
    let figure = |id: &str, title: &str, y: Axis, of: fn(&SecondRecord) -> f64| Figure {
        id: id.into(),
        title: title.into(),
        x: Axis::TimeNs,
        y,
        series: (0..runs).take(MAX_CURVES).map(|run| curve(run, of)).collect(),
    };
    if runs == 0 {
        return Vec::new();
    }
    vec![
        figure("rate-over-time", "Rate of every second", Axis::BytesPerS, |one| {
            one.throughput_bytes_per_s
        }),
        figure("p99-over-time", "99th percentile of every second", Axis::ServiceNs, |one| {
            one.latency_p99_ns as f64
        }),
    ]
}

pub(super) fn left_out(points: &[Point], figures: &[&Figure]) -> Option<String> {
    let drawn: usize = figures
        .iter()
        .filter(|figure| figure.y == Axis::BytesPerS && figure.x != Axis::TimeNs)
        .flat_map(|figure| &figure.series)
        .map(|series| series.values.len())
        .sum();
    let missing = points.len().checked_sub(drawn).filter(|missing| *missing > 0 && drawn > 0)?;
    Some(format!("{missing} of {} points are not drawn; points.csv has them all", points.len()))
}

/// The group is the dimension that readers see first.
fn name(others: &[&Dimension], point: &Point) -> CurveName {
    let mut parts = others.iter().rev();
    let Some(first) = parts.next() else { return point.operation().into() };
    let rest: Vec<&&Dimension> = parts.collect();
    let order = |dimension: &Dimension| dimension.axis.map(|_| (dimension.value)(point));
    let in_group = |name: CurveName| name.in_group((first.name)(point));
    match rest[..] {
        [] => CurveName { order: order(first), ..(first.name)(point).into() },
        [last] => in_group(CurveName { order: order(last), ..(last.name)(point).into() }),
        _ => {
            let names: Vec<String> = rest.iter().map(|one| (one.name)(point)).collect();
            in_group(names.join(", ").into())
        }
    }
}

fn curve(
    name: &CurveName,
    members: &[usize],
    points: &[Point],
    along: &Dimension,
    y: Axis,
) -> Series {
    let mut values: Vec<Value> = members
        .iter()
        .map(|&index| {
            let numbers = points[index].numbers.as_ref();
            let (value, interval_95) = match (numbers, y) {
                (Some(numbers), Axis::BytesPerS) => {
                    (Some(numbers.throughput_bytes_per_s), numbers.interval_95)
                }
                (Some(numbers), _) => (Some(numbers.cpu_ns_per_request.machine), None),
                (None, _) => (None, None),
            };
            Value { x: (along.value)(&points[index]), y: value, interval_95, point: Some(index) }
        })
        .collect();
    values.sort_by(|a, b| a.x.total_cmp(&b.x));
    Series::new(name.clone(), values)
}
