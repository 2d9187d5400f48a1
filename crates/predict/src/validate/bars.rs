//! Limits that the model must meet.

use super::laptop::{IOZONE, POSTMARK};
use super::{Bar, BarUnit, Figure, Group, Point, errors};
use twin::bus::Phase;

pub(super) fn bar(name: &str, limit: f64, value: f64) -> Bar {
    let unit = BarUnit::Share;
    Bar { name: name.to_owned(), unit, limit, value, holds: value <= limit }
}

pub(super) fn in_points(name: &str, limit: f64, value: f64) -> Bar {
    Bar { unit: BarUnit::Points, ..bar(name, limit, value) }
}

pub(super) fn bars(figures: &[Figure], groups: &[Group], fitted: usize) -> Vec<Bar> {
    let points: Vec<&Point> = figures
        .iter()
        .filter(|f| f.name.starts_with("fig") && f.unit == "MB/s" && f.given)
        .flat_map(|f| &f.points)
        .collect();
    let far = points.iter().filter(|point| point.relative_error().abs() > 0.2).count();
    let named = |name: &str| figures.iter().find(|f| f.name == name);
    let plain_writes = points
        .iter()
        .filter(|p| p.series == "unbuf write" && p.depth == 1 && p.disks == 1)
        .copied();
    let distance = |series: &str| {
        let all =
            named("table4").into_iter().flat_map(|f| &f.points).filter(|p| p.series == series);
        all.map(|p| (p.simulated - p.measured).abs()).fold(0.0, f64::max)
    };
    let any_phase = Phase::ALL.iter().map(|phase| distance(phase.name())).fold(0.0, f64::max);
    let [throughput, processor] = [0, 1].map(|group| &groups[group]);
    let worst = |group: &Group| group.worst().map_or(f64::NAN, |curve| curve.mean_error);
    let mean = |name: &str| named(name).map_or(f64::NAN, |figure| figure.mean_error);
    let curve = |name: &str, series: &str| {
        let of = named(name).into_iter().flat_map(|figure| &figure.points);
        errors(of.filter(|point| point.series == series)).0
    };
    vec![
        bar("throughput, mean error of the given points", 0.05, throughput.mean_error),
        bar("throughput, mean error of the worst curve", 0.12, worst(throughput)),
        bar("processor time per MB, mean error of the given points", 0.10, processor.mean_error),
        Bar { unit: BarUnit::Count, ..bar("numbers fitted", 15.0, fitted as f64) },
        bar(
            "throughput, share of points beyond 20 %",
            0.05,
            far as f64 / points.len().max(1) as f64,
        ),
        bar(
            "unbuffered writes without write cache, one at a time, worst error",
            0.01,
            errors(plain_writes).1,
        ),
        bar("table 2, mean error", 0.10, named("table2").map_or(f64::NAN, |f| f.mean_error)),
        bar(
            "table 3, prefetch hits, mean error",
            0.10,
            named("table3_prefetch_hit").map_or(f64::NAN, |f| f.mean_error),
        ),
        bar(
            "table 3, cache hits, mean error",
            0.05,
            named("table3_cache_hit").map_or(f64::NAN, |f| f.mean_error),
        ),
        in_points(
            "table 4, bus utilisation, worst distance in points",
            10.0,
            distance("Bus Utilization"),
        ),
        in_points("table 4, Data In, worst distance in points", 8.0, distance("Data In")),
        in_points("table 4, any phase, worst distance in points", 9.0, any_phase),
        bar(
            "location (figure 14), worst error",
            0.02,
            named("fig14").map_or(f64::NAN, |f| f.worst_error),
        ),
        bar("figure 7, reads, not given, mean error", 0.12, mean("fig7_read")),
        bar("figure 7, writes, not given, mean error", 0.12, mean("fig7_write")),
        bar("figure 10, not given, mean error", 0.12, mean("fig10_depth1")),
        bar(
            "figure 10, unbuffered reads, not given, mean error",
            0.05,
            curve("fig10_depth1", "unbuf read"),
        ),
        bar(
            "figure 10, unbuffered writes, not given, mean error",
            0.06,
            curve("fig10_depth1", "unbuf write wce"),
        ),
        bar("IOzone's writes on a laptop, mean error", 0.13, mean(IOZONE)),
        bar("PostMark's time on a laptop, mean error", 0.15, mean(POSTMARK)),
    ]
}
