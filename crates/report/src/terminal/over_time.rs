//! A load's steps, or a run's windows.

use super::{Tone, paint, table};
use crate::format::{grouped, plural};
use machine::units::show_time;
use results::{IntervalNumbers, Point};

pub(super) fn intervals(point: &Point, width: usize, colour: bool) -> String {
    let Some(numbers) = &point.numbers else { return String::new() };
    let all = &numbers.over_time;
    if all.is_empty() {
        return String::new();
    }
    let is_load = all.iter().any(|one| one.offered_iops.is_some());
    let never: u64 = all.iter().map(|one| one.not_issued).sum();
    let mut header = vec!["from", "to"];
    header.extend(is_load.then_some("asked/s"));
    header.extend(["done/s", "p50", "p99", "p99.9", "max"]);
    header.extend((never > 0).then_some("not issued"));
    let row = |one: &IntervalNumbers| {
        let time = |ns: u64| show_time(ns as f64);
        let mut cells = vec![time(one.from_ns), time(one.until_ns)];
        cells.extend(is_load.then(|| one.offered_iops.map(grouped).unwrap_or_default()));
        cells.push(grouped(one.iops));
        let latency = one.latency_ns.as_ref();
        // Percentiles with too few requests above them are accidents.
        let settled = |wanted: f64| {
            let mut all = latency?.percentiles();
            all.find(|(percentile, _)| *percentile == wanted).map(|(_, ns)| time(ns))
        };
        cells.extend([50.0, 99.0, 99.9].map(|wanted| settled(wanted).unwrap_or_default()));
        cells.push(latency.map(|latency| time(latency.max)).unwrap_or_default());
        cells.extend((never > 0).then(|| grouped(one.not_issued as f64)));
        cells
    };
    let header: Vec<String> = header.into_iter().map(String::from).collect();
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    let heading = format!("latency over time, {}", plural(numbers.repeats as usize, "run"));
    let lines = table(&header, &rows, 0, width, colour);
    format!("{}\n{lines}", paint(Tone::Quiet, &heading, colour))
}

pub(super) fn intervals_of_all(points: &[Point], width: usize, colour: bool) -> String {
    let of_point = |point: &Point| {
        let text = intervals(point, width, colour);
        let name = paint(Tone::Strong, &point.workload.short(), colour);
        (!text.is_empty()).then(|| format!("{name}: {text}"))
    };
    points.iter().filter_map(of_point).collect()
}
