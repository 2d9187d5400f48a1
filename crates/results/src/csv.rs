//! CSV (RFC 4180). Numbers are plain, in the headers' units.

use crate::columns::{self, Cell, Column};
use crate::document::{Experiment, Results};
use crate::figure::{Axis, Figure, Value};
use crate::history::Entry;
use crate::point::Point;
use std::collections::BTreeSet;

/// Returns names and texts. A failed point has a reason in the column `error` instead of numbers;
/// warnings are separated by `; `.
pub fn csv(results: &Results) -> Vec<(String, String)> {
    let mut files =
        vec![("points.csv".to_string(), rows(columns::POINT, &results.points, Some("point")))];
    let mut taken = BTreeSet::from(["points".to_string(), "operations".to_string()]);
    if !results.rates.is_empty() {
        files.push(("operations.csv".to_string(), rows(columns::OPERATION, &results.rates, None)));
    }
    for experiment in &results.experiments {
        if !experiment.figures.is_empty() {
            files.push((
                file_name(&experiment.id, &mut taken),
                figures(experiment, &results.points),
            ));
        }
        if !experiment.memory.is_empty() {
            let name = if experiment.figures.is_empty() {
                experiment.id.clone()
            } else {
                format!("{}_rates", experiment.id)
            };
            files.push((file_name(&name, &mut taken), memory(experiment)));
        }
    }
    files
}

/// Unique, and valid on every file system.
fn file_name(id: &str, taken: &mut BTreeSet<String>) -> String {
    let plain: String = id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .take(60)
        .collect();
    let plain = if plain.is_empty() { "experiment".to_string() } else { plain };
    let mut name = plain.clone();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{plain}_{number}");
        number += 1;
    }
    name + ".csv"
}

pub(crate) struct Table(pub(crate) String);

impl Table {
    pub(crate) fn new(header: &[&str]) -> Table {
        let mut table = Table(String::new());
        table.row(header.iter().map(|name| (*name).to_string()));
        table
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        for (place, cell) in cells.into_iter().enumerate() {
            if place > 0 {
                self.0.push(',');
            }
            self.0.push_str(&quoted(&cell));
        }
        self.0.push_str("\r\n");
    }
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.into()
    }
}

pub(crate) fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| format!("{value}")).unwrap_or_default()
}

fn ends(interval: Option<[f64; 2]>) -> [String; 2] {
    [number(interval.map(|[low, _]| low)), number(interval.map(|[_, high]| high))]
}

fn rows<T>(columns: &[Column<T>], rows: &[T], first: Option<&str>) -> String {
    let named: Vec<&Column<T>> = columns.iter().filter(|column| !column.name.is_empty()).collect();
    let header: Vec<&str> =
        first.into_iter().chain(named.iter().map(|column| column.name)).collect();
    let mut table = Table::new(&header);
    for (index, row) in rows.iter().enumerate() {
        let number = first.map(|_| index.to_string());
        table.row(number.into_iter().chain(named.iter().map(|column| plain((column.get)(row)))));
    }
    table.0
}

pub(crate) fn history_columns() -> impl Iterator<Item = &'static str> {
    ["entry", "began_unix_s", "kind", "target", "machine"]
        .into_iter()
        .chain(named_columns().map(|column| column.name))
}

/// A row per point, in the order of [`history_columns`].
pub(crate) fn history_rows(
    entry: &Entry,
    results: &Results,
) -> impl Iterator<Item = Vec<Option<Cell>>> {
    results.points.iter().map(|point| {
        let of_entry = [
            Cell::Count(entry.id.unsigned_abs()),
            Cell::Count(entry.began_unix_s),
            Cell::Text(entry.kind.clone()),
            Cell::Text(entry.target.clone()),
            Cell::Text(entry.machine.clone()),
        ];
        of_entry
            .into_iter()
            .map(Some)
            .chain(named_columns().map(|column| (column.get)(point)))
            .collect()
    })
}

fn named_columns() -> impl Iterator<Item = &'static Column<Point>> {
    columns::POINT.iter().filter(|column| !column.name.is_empty())
}

/// Rows begin with the entry's number, time, kind, target and machine.
pub fn history_csv(entry: &Entry, results: &Results, header: bool) -> String {
    let mut table = Table(String::new());
    if header {
        table.row(history_columns().map(String::from));
    }
    history_rows(entry, results).for_each(|row| table.row(row.into_iter().map(plain)));
    table.0
}

fn plain(cell: Option<Cell>) -> String {
    match cell {
        None => String::new(),
        Some(Cell::Text(text)) => text,
        Some(Cell::Count(count)) => count.to_string(),
        Some(Cell::Number(value)) => number(Some(value)),
    }
}

fn warnings(point: &Point) -> String {
    point.numbers.as_ref().map(|numbers| numbers.warnings.join("; ")).unwrap_or_default()
}

fn axes(experiment: &Experiment, part: fn(&Figure) -> Axis) -> Vec<Axis> {
    let mut axes = Vec::new();
    for axis in experiment.figures.iter().map(part) {
        if !axes.contains(&axis) {
            axes.push(axis);
        }
    }
    axes
}

/// Each axis has its own column: an experiment's figures may differ in their axes.
fn figures(experiment: &Experiment, points: &[Point]) -> String {
    let (xs, ys) = (axes(experiment, |figure| figure.x), axes(experiment, |figure| figure.y));
    let mut header = vec!["figure".to_string(), "series".to_string()];
    header.extend(xs.iter().map(|axis| axis_column(*axis).to_string()));
    for axis in &ys {
        let name = axis_column(*axis);
        header.extend([name.to_string(), format!("{name}_low_95"), format!("{name}_high_95")]);
    }
    header.extend(["point", "repeats", "warnings", "error"].map(String::from));
    let mut table = Table::new(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for figure in &experiment.figures {
        for series in &figure.series {
            for value in &series.values {
                let mut cells = vec![figure.id.clone(), series.name.clone()];
                cells.extend(xs.iter().map(|axis| number((*axis == figure.x).then_some(value.x))));
                for axis in &ys {
                    let here = *axis == figure.y;
                    let [low, high] = ends(value.interval_95.filter(|_| here));
                    cells.extend([number(value.y.filter(|_| here)), low, high]);
                }
                cells.extend(evidence(value, points));
                table.row(cells);
            }
        }
    }
    table.0
}

/// Index, repeats, warnings and error.
fn evidence(value: &Value, points: &[Point]) -> [String; 4] {
    let point = value.point.and_then(|index| points.get(index));
    let error = match point.and_then(|point| point.error.clone()) {
        Some(error) => error,
        None if value.y.is_none() => "not measured".into(),
        None => String::new(),
    };
    [
        value.point.map(|index| index.to_string()).unwrap_or_default(),
        point
            .and_then(|point| point.numbers.as_ref())
            .map(|numbers| numbers.repeats.to_string())
            .unwrap_or_default(),
        point.map(warnings).unwrap_or_default(),
        error,
    ]
}

fn memory(experiment: &Experiment) -> String {
    let mut table = Table::new(&["kind", "threads", "repeat", "rate_bytes_per_s"]);
    for usage in &experiment.memory {
        for (repeat, rate) in usage.rates_bytes_per_s.iter().enumerate() {
            table.row([
                usage.kind.name().to_owned(),
                usage.threads.to_string(),
                (repeat + 1).to_string(),
                number(Some(*rate)),
            ]);
        }
    }
    table.0
}

fn axis_column(axis: Axis) -> &'static str {
    match axis {
        Axis::RequestBytes => "request_bytes",
        Axis::Depth => "depth",
        Axis::Threads => "threads",
        Axis::Clients => "clients",
        Axis::Completions => "completions",
        Axis::OffsetBytes => "offset_bytes",
        Axis::Position => "position_share",
        Axis::ChunkBytes => "chunk_bytes",
        Axis::Members => "members",
        Axis::TimeNs => "time_ns",
        Axis::BytesPerS => "throughput_bytes_per_s",
        Axis::Iops => "iops",
        Axis::CpuNsPerMib => "cpu_ns_per_mib",
        Axis::CpuNsPerRequest => "cpu_ns_per_request",
        Axis::ServiceNs => "service_ns",
        Axis::CacheBytes => "cache_bytes",
        Axis::MissShare => "miss_share",
        Axis::Gain => "gain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_rfc_4180_asks() {
        assert_eq!(quoted("plain text"), "plain text");
        assert_eq!(quoted("a, \"b\"\r\nc"), "\"a, \"\"b\"\"\r\nc\"");
    }

    #[test]
    fn file_names_are_plain_and_unique() {
        let mut taken = BTreeSet::from(["points".to_string()]);
        let names: Vec<String> =
            ["points", "../a b", "../a/b", ""].iter().map(|id| file_name(id, &mut taken)).collect();
        assert_eq!(names, ["points_2.csv", "___a_b.csv", "___a_b_2.csv", "experiment.csv"]);
    }
}
