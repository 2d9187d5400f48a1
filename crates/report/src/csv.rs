//! CSV after RFC 4180: one file an experiment, and one of all points. Numbers are plain, in the units that the headers name.

use crate::words::axis_column;
use machine::Hint;
use measure::{Numbers, OperationRate, Point};
use std::collections::BTreeSet;
use study::{Axis, Experiment, Results, Value};
use workload::Stop;

/// Name and text of each file: `points.csv`, `operations.csv` where operations on files were measured, and one of each experiment that measured something, by the name of its id.
///
/// Lines end in CR LF and a text with a comma, a quote or a line break is quoted, as RFC 4180 asks. A failed point has its reason in
/// the column `error` and no numbers. Several warnings are separated by `; `.
pub fn csv(results: &Results) -> Vec<(String, String)> {
    let mut files = vec![("points.csv".to_string(), points(&results.points))];
    let mut taken = BTreeSet::from(["points".to_string(), "operations".to_string()]);
    if !results.rates.is_empty() {
        files.push(("operations.csv".to_string(), operations(&results.rates)));
    }
    for experiment in &results.experiments {
        if !experiment.figures.is_empty() {
            files.push((file_name(&experiment.id, &mut taken), figures(experiment, &results.points)));
        }
        if !experiment.memory.is_empty() {
            let name = if experiment.figures.is_empty() { experiment.id.clone() } else { format!("{}_rates", experiment.id) };
            files.push((file_name(&name, &mut taken), memory(experiment)));
        }
    }
    files
}

/// A name that every file system takes, and that no other file has.
fn file_name(id: &str, taken: &mut BTreeSet<String>) -> String {
    let plain: String = id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).take(60).collect();
    let plain = if plain.is_empty() { "experiment".to_string() } else { plain };
    let mut name = plain.clone();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{plain}_{number}");
        number += 1;
    }
    name + ".csv"
}

/// Rows of one table.
struct Table(String);

impl Table {
    fn new(header: &[&str]) -> Table {
        let mut table = Table(String::new());
        table.row(header.iter().map(|name| (*name).to_string()));
        table
    }

    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
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
    if cell.contains([',', '"', '\r', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.into() }
}

/// A number with all its digits, or nothing.
fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| format!("{value}")).unwrap_or_default()
}

fn ends(interval: Option<[f64; 2]>) -> [String; 2] {
    [number(interval.map(|[low, _]| low)), number(interval.map(|[_, high]| high))]
}

/// The columns of a point that say what was asked.
const ASKED: [&str; 23] = [
    "op",
    "read_percent",
    "pattern",
    "request_bytes",
    "depth",
    "threads",
    "engine",
    "buffering",
    "hint",
    "allocation",
    "cache",
    "offset_bytes",
    "region_start_bytes",
    "region_bytes",
    "stop_after_ns",
    "stop_after_bytes",
    "rate_iops",
    "think_ns",
    "sync_at_end",
    "compressible_percent",
    "duplicate_percent",
    "verify",
    "seed",
];

fn asked(point: &Point) -> Vec<String> {
    let w = &point.workload;
    let hint = match w.hint {
        Hint::None => "none",
        Hint::Sequential => "sequential",
        Hint::Random => "random",
    };
    let cache = match w.cache {
        machine::CacheState::AsIs => "as_is",
        machine::CacheState::Cold => "cold",
        machine::CacheState::Warm => "warm",
    };
    let (stop_ns, stop_bytes) = match w.stop {
        Stop::AfterNs(ns) => (ns.to_string(), String::new()),
        Stop::AfterBytes(bytes) => (String::new(), bytes.to_string()),
    };
    vec![
        w.op.clone(),
        w.read_percent.to_string(),
        w.pattern.option(),
        w.request_bytes.to_string(),
        w.depth.to_string(),
        w.threads.to_string(),
        w.engine.name().into(),
        w.buffering.name().into(),
        hint.into(),
        w.allocation.name().into(),
        cache.into(),
        w.offset_bytes.to_string(),
        w.region_start_bytes.to_string(),
        w.region_bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
        stop_ns,
        stop_bytes,
        number(w.rate_iops),
        w.think_ns.to_string(),
        w.sync_at_end.to_string(),
        w.data.compressible_percent.to_string(),
        w.data.duplicate_percent.to_string(),
        w.data.verify.to_string(),
        w.seed.to_string(),
    ]
}

/// The columns of a point that say what was measured.
const MEASURED: [&str; 38] = [
    "throughput_bytes_per_s",
    "throughput_bytes_per_s_low_95",
    "throughput_bytes_per_s_high_95",
    "iops",
    "repeats",
    "latency_mean_ns",
    "latency_min_ns",
    "latency_p50_ns",
    "latency_p90_ns",
    "latency_p99_ns",
    "latency_p999_ns",
    "latency_p9999_ns",
    "latency_p99999_ns",
    "latency_p999999_ns",
    "latency_max_ns",
    "cpu_user_ns_per_request",
    "cpu_system_ns_per_request",
    "cpu_machine_ns_per_request",
    "measured_ns",
    "requests",
    "bytes",
    "mean_depth",
    "mean_service_ns",
    "little_error_percent",
    "device_request_bytes",
    "device_mean_depth",
    "device_busy_percent",
    "device_bytes_foreign_share",
    "from_cache_percent",
    "busy_processors",
    "steal_percent",
    "sync_ns",
    "synced_bytes_per_s",
    "warm_up_ns",
    "instructions_per_request",
    "driver_ceiling_iops",
    "no_op_ceiling_iops",
    "of_ceiling_percent",
];

fn measured(numbers: &Numbers) -> Vec<String> {
    let latency = &numbers.latency_ns;
    let cpu = &numbers.cpu_ns_per_request;
    let achieved = &numbers.achieved;
    let [low, high] = ends(numbers.interval_95);
    let some = |value: f64| number(Some(value));
    vec![
        some(numbers.throughput_bytes_per_s),
        low,
        high,
        some(numbers.iops),
        numbers.repeats.to_string(),
        some(latency.mean),
        latency.min.to_string(),
        latency.p50.to_string(),
        latency.p90.to_string(),
        latency.p99.to_string(),
        latency.p999.to_string(),
        latency.p9999.to_string(),
        latency.p99999.to_string(),
        latency.p999999.to_string(),
        latency.max.to_string(),
        some(cpu.user),
        some(cpu.system),
        some(cpu.machine),
        achieved.measured_ns.to_string(),
        achieved.requests.to_string(),
        achieved.bytes.to_string(),
        some(achieved.mean_depth),
        some(achieved.mean_service_ns),
        some(achieved.little_error_percent),
        number(achieved.device_request_bytes),
        number(achieved.device_mean_depth),
        number(achieved.device_busy_percent),
        number(achieved.device_bytes_foreign_share),
        number(achieved.from_cache_percent),
        some(achieved.busy_processors),
        some(achieved.steal_percent),
        number(achieved.sync_ns),
        number(achieved.synced_bytes_per_s),
        some(achieved.warm_up_ns),
        number(achieved.instructions_per_request),
        number(achieved.driver_ceiling_iops),
        number(achieved.no_op_ceiling_iops),
        number(achieved.of_ceiling_percent),
    ]
}

fn points(points: &[Point]) -> String {
    let header: Vec<&str> = ["point"].into_iter().chain(ASKED).chain(MEASURED).chain(["warnings", "error"]).collect();
    let mut table = Table::new(&header);
    for (index, point) in points.iter().enumerate() {
        let mut cells = vec![index.to_string()];
        cells.extend(asked(point));
        match &point.numbers {
            Some(numbers) => cells.extend(measured(numbers)),
            None => cells.extend(MEASURED.map(|_| String::new())),
        }
        cells.push(warnings(point));
        cells.push(point.error.clone().unwrap_or_default());
        table.row(cells);
    }
    table.0
}

fn warnings(point: &Point) -> String {
    point.numbers.as_ref().map(|numbers| numbers.warnings.join("; ")).unwrap_or_default()
}

/// The axes of an experiment's figures, each once, in their order.
fn axes(experiment: &Experiment, part: fn(&study::Figure) -> Axis) -> Vec<Axis> {
    let mut axes = Vec::new();
    for axis in experiment.figures.iter().map(part) {
        if !axes.contains(&axis) {
            axes.push(axis);
        }
    }
    axes
}

/// A row for each value of each curve. Figures of one experiment may have different axes: each axis has its column.
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

/// The point under a value: its place, repeats, warnings and error.
fn evidence(value: &Value, points: &[Point]) -> [String; 4] {
    let point = value.point.and_then(|index| points.get(index));
    let error = match point.and_then(|point| point.error.clone()) {
        Some(error) => error,
        None if value.y.is_none() => "not measured".into(),
        None => String::new(),
    };
    [
        value.point.map(|index| index.to_string()).unwrap_or_default(),
        point.and_then(|point| point.numbers.as_ref()).map(|numbers| numbers.repeats.to_string()).unwrap_or_default(),
        point.map(warnings).unwrap_or_default(),
        error,
    ]
}

fn operations(rates: &[OperationRate]) -> String {
    let mut table = Table::new(&[
        "operation",
        "settings",
        "count",
        "operations_per_s",
        "operations_per_s_low_95",
        "operations_per_s_high_95",
        "latency_mean_ns",
        "latency_p50_ns",
        "latency_p99_ns",
        "latency_max_ns",
        "cpu_ns_per_operation",
    ]);
    for rate in rates {
        let [low, high] = ends(rate.interval_95);
        let latency = rate.latency_ns.as_ref();
        let whole = |part: Option<u64>| part.map(|ns| ns.to_string()).unwrap_or_default();
        table.row([
            rate.operation.clone(),
            rate.settings.clone(),
            rate.count.to_string(),
            number(Some(rate.per_s)),
            low,
            high,
            number(latency.map(|latency| latency.mean)),
            whole(latency.map(|latency| latency.p50)),
            whole(latency.map(|latency| latency.p99)),
            whole(latency.map(|latency| latency.max)),
            number(rate.cpu_ns),
        ]);
    }
    table.0
}

fn memory(experiment: &Experiment) -> String {
    let mut table = Table::new(&["kind", "threads", "repeat", "rate_bytes_per_s"]);
    for usage in &experiment.memory {
        for (repeat, rate) in usage.rates_bytes_per_s.iter().enumerate() {
            table.row([usage.kind.clone(), usage.threads.to_string(), (repeat + 1).to_string(), number(Some(*rate))]);
        }
    }
    table.0
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
        let names: Vec<String> = ["points", "../a b", "../a/b", ""].iter().map(|id| file_name(id, &mut taken)).collect();
        assert_eq!(names, ["points_2.csv", "___a_b.csv", "___a_b_2.csv", "experiment.csv"]);
    }
}
