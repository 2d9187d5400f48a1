//! Every published point of the 1997 study, and SQLIO's matrix.

pub mod alignment;
pub mod published;

use crate::{Result, run, workload};
use machine::{Allocation, Buffering, Engine, Hint, Machine, Op};
use published::Measured;
use serde::Serialize;
use std::path::Path;
use twin::bus::Phase;
use twin::{Twin, preset};
use workload::{Stop, Workload};

/// A published value and the simulated one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The curve or column.
    pub series: String,
    pub drive: String,
    pub disks: u32,
    pub buses: u32,
    pub depth: u32,
    pub request_bytes: u32,
    /// From 0 (outer edge) to 1, if it varies.
    pub radial: Option<f64>,
    /// Published, in the figure's unit.
    pub measured: f64,
    pub simulated: f64,
}

impl Point {
    /// (simulated - measured) / measured.
    pub fn relative_error(&self) -> f64 {
        (self.simulated - self.measured) / self.measured
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// `fig3_throughput`, `table4` and the like.
    pub name: String,
    pub unit: String,
    pub points: Vec<Point>,
    pub mean_error: f64,
    pub worst_error: f64,
}

impl Figure {
    fn new(name: &str, unit: &str, points: Vec<Point>) -> Self {
        let (mean_error, worst_error) = errors(points.iter());
        Figure { name: name.to_owned(), unit: unit.to_owned(), points, mean_error, worst_error }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    pub figure: String,
    pub series: String,
    pub drive: String,
    pub disks: u32,
    pub buses: u32,
    pub depth: u32,
    pub points: u32,
    pub mean_error: f64,
    pub worst_error: f64,
}

fn curves(figures: &[&Figure]) -> Vec<Curve> {
    let mut curves = Vec::new();
    for figure in figures {
        let mut left: Vec<&Point> = figure.points.iter().collect();
        while let Some(&first) = left.first() {
            let of = |p: &Point| (p.series.clone(), p.drive.clone(), p.disks, p.buses, p.depth);
            let (points, rest): (Vec<&Point>, Vec<&Point>) =
                left.into_iter().partition(|p| of(p) == of(first));
            let (mean_error, worst_error) = errors(points.iter().copied());
            let (series, drive, disks, buses, depth) = of(first);
            let figure = figure.name.clone();
            let points = points.len() as u32;
            curves.push(Curve {
                figure,
                series,
                drive,
                disks,
                buses,
                depth,
                points,
                mean_error,
                worst_error,
            });
            left = rest;
        }
    }
    curves
}

/// Figures of one kind, with the model's error over all of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// Quantity they show.
    pub name: String,
    pub points: u32,
    pub mean_error: f64,
    pub curves: Vec<Curve>,
}

impl Group {
    fn new(name: &str, figures: &[Figure], unit: &str) -> Group {
        let figures: Vec<&Figure> = figures
            .iter()
            .filter(|figure| figure.name.starts_with("fig") && figure.unit == unit)
            .collect();
        let points = || figures.iter().flat_map(|figure| &figure.points);
        let (name, mean_error) = (name.to_owned(), errors(points()).0);
        Group { name, points: points().count() as u32, mean_error, curves: curves(&figures) }
    }

    pub fn worst(&self) -> Option<&Curve> {
        self.curves.iter().max_by(|a, b| a.mean_error.total_cmp(&b.mean_error))
    }
}

fn errors<'a>(points: impl Iterator<Item = &'a Point>) -> (f64, f64) {
    let all: Vec<f64> = points.map(|point| point.relative_error().abs()).collect();
    (all.iter().sum::<f64>() / all.len().max(1) as f64, all.iter().copied().fold(0.0, f64::max))
}

/// A limit the model must meet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    pub name: String,
    pub limit: f64,
    pub value: f64,
    pub holds: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Validation {
    pub machine: String,
    pub figures: Vec<Figure>,
    /// Throughput and processor time separately, over all figures whose points were available to
    /// calibration.
    pub groups: Vec<Group>,
    /// On the 2003 server.
    pub alignment: Vec<alignment::Gain>,
    /// The limits the model must meet.
    pub bars: Vec<Bar>,
    pub fitted: Vec<(String, f64)>,
    /// Computed from a published figure, so that the figure is no test of them.
    pub solved: Vec<(String, f64)>,
}

impl Validation {
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

const MIB: f64 = (1 << 20) as f64;
const MACHINE: &str = "gateway-1997";
/// The limit on the number of calibrated numbers.
pub const NUMBERS_FITTED: &str = "numbers fitted";
/// Offset of the study's files within a chunk on striped volumes, except those it calls aligned.
const OFF_THE_CHUNK: &str = ",start=12k";

/// Simulates every published point.
pub fn validate() -> Result<Validation> {
    validate_machine(MACHINE)
}

/// Another description of the study's machine: a preset's name, or a `.toml` file.
///
/// # Errors
/// An unknown machine, or one without the study's drives.
pub fn validate_machine(machine: &str) -> Result<Validation> {
    let mut figures: Vec<Figure> = Vec::new();
    let measured = published::measurements();
    let mut names: Vec<&str> = measured.iter().map(|point| point.figure).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let mut points = Vec::new();
        let mut unit = "";
        for point in measured.iter().filter(|point| point.figure == name) {
            points.push(simulate(machine, point)?);
            unit = point.unit;
        }
        figures.push(Figure::new(name, unit, points));
    }
    figures.push(table2(machine)?);
    let (hits, again) = table3(machine)?;
    figures.push(hits);
    figures.push(again);
    figures.push(table4(machine)?);
    let text = preset::text(machine).map_or_else(
        || preset::DESCRIPTION.text(Path::new(machine)).unwrap_or_default(),
        str::to_owned,
    );
    let numbers = preset::numbers(machine, &text)?;
    let those = |which: fn(&preset::Sourced) -> bool| -> Vec<(String, f64)> {
        let chosen = numbers.iter().filter(|number| which(number));
        chosen.map(|number| (number.path.clone(), number.value)).collect()
    };
    let (fitted, solved) = (those(preset::Sourced::is_fitted), those(preset::Sourced::is_solved));
    let groups = vec![
        Group::new("throughput", &figures, "MB/s"),
        Group::new("processor time per MB", &figures, "CPU ms/MB"),
    ];
    let alignment = alignment::gains()?;
    let mut bars = bars(&figures, &groups, fitted.len());
    bars.extend(alignment::bars(&alignment));
    Ok(Validation { machine: machine.to_owned(), figures, groups, alignment, bars, fitted, solved })
}

fn twin(machine: &str, drive: &str, disks: u32, more: &str) -> Result<Twin> {
    Ok(Twin::from_name(&format!("{machine},drive={drive},disks={disks}{more}"))?)
}

fn simulate(machine: &str, point: &Measured) -> Result<Point> {
    let mut settings =
        format!(",buses={},wce={}", point.buses, if point.wce { "on" } else { "off" });
    match point.raid5 {
        Some(true) => settings += ",raid=5,parity=host",
        Some(false) => settings += ",raid=5,parity=array",
        None => {}
    }
    if point.disks > 1 && !point.aligned {
        settings += OFF_THE_CHUNK;
    }
    let machine = twin(machine, &point.drive, point.disks, &settings)?;
    let volume = machine.volume();
    let mut asked = workload(point.op, point.request_kb << 10, point.depth);
    if point.depth == 1 {
        // The study's synchronous loops; its deeper programs used completion routines.
        asked.engine = Engine::Sync;
    }
    if point.buffered {
        asked.buffering = Buffering::Buffered;
        asked.hint = Hint::Sequential;
        // The measured time includes closing the file.
        asked.sync_at_end = point.op == Op::Write;
    }
    if point.extends {
        asked.allocation = Allocation::Extend;
    }
    if let Some(radial) = point.radial {
        let size = machine.target_facts(&volume).size_bytes;
        asked.region_start_bytes = (size as f64 * radial) as u64 / 65536 * 65536;
        (asked.region_bytes, asked.stop) = (Some(32 << 20), Stop::AfterBytes(32 << 20));
    }
    let outcome = run(&machine, &volume, &asked)?;
    let simulated =
        if point.unit == "MB/s" { outcome.bytes_per_s() / MIB } else { outcome.cpu_ms_per_mib() };
    Ok(Point {
        series: point.series.to_owned(),
        drive: point.drive.clone(),
        disks: point.disks,
        buses: point.buses,
        depth: point.depth,
        request_bytes: point.request_kb << 10,
        radial: point.radial,
        measured: point.value,
        simulated,
    })
}

fn plain(
    series: &str,
    drive: &str,
    disks: u32,
    request_bytes: u32,
    measured: f64,
    simulated: f64,
) -> Point {
    let (series, drive) = (series.to_owned(), drive.to_owned());
    Point {
        series,
        drive,
        disks,
        buses: 1,
        depth: 1,
        request_bytes,
        radial: None,
        measured,
        simulated,
    }
}

fn table2(machine: &str) -> Result<Figure> {
    let twin = Twin::from_name(machine)?;
    let rates = twin.memory(0)?;
    let rate = |kind: &str| {
        let one = rates.iter().find(|one| one.kind == kind);
        one.and_then(|one| one.rates_bytes_per_s.first()).map_or(f64::NAN, |rate| rate / MIB)
    };
    let point = |(name, kind, measured): (&'static str, String, f64)| {
        plain(name, "", 1, 0, measured, rate(&kind))
    };
    Ok(Figure::new("table2", "MB/s", published::table2().into_iter().map(point).collect()))
}

fn table3(machine: &str) -> Result<(Figure, Figure)> {
    let (mut hits, mut again) = (Vec::new(), Vec::new());
    for (request_bytes, drive, same, measured) in published::table3() {
        let machine = twin(machine, &drive, 1, ",wce=off")?;
        let volume = machine.volume();
        let mut asked = Workload { engine: Engine::Sync, ..workload(Op::Read, request_bytes, 1) };
        asked.stop = Stop::AfterBytes(u64::from(request_bytes) * 2000);
        asked.region_bytes = Some(if same { u64::from(request_bytes) } else { 100 << 20 });
        // A pause between requests lets the prefetch stay ahead.
        asked.think_ns = if same { 0 } else { 30_000_000 };
        let mean_ms = run(&machine, &volume, &asked)?.latency_ns as f64 * 1e-6;
        let point = plain(
            if same { "cache hit" } else { "prefetch hit" },
            &drive,
            1,
            request_bytes,
            measured,
            mean_ms,
        );
        if same { again.push(point) } else { hits.push(point) }
    }
    Ok((
        Figure::new("table3_prefetch_hit", "ms", hits),
        Figure::new("table3_cache_hit", "ms", again),
    ))
}

/// Share of bus time by phase, for Ultra-Wide drives read at depth 3.
fn table4(machine: &str) -> Result<Figure> {
    let mut points = Vec::new();
    for (name, request_bytes, disks, measured) in published::table4() {
        let machine = twin(machine, "st34371w", disks, if disks > 1 { OFF_THE_CHUNK } else { "" })?;
        let volume = machine.volume();
        run(&machine, &volume, &workload(Op::Read, request_bytes, 3))?;
        let phases = volume.bus_phases()[0];
        let busy = phases.busy() as f64;
        let simulated = match Phase::ALL.iter().find(|phase| phase.name() == name) {
            Some(&phase) => phases.get(phase) as f64 / busy * 100.0,
            None => busy / volume.ran_ns() as f64 * 100.0,
        };
        points.push(Point {
            depth: 3,
            ..plain(name, "st34371w", disks, request_bytes, measured, simulated)
        });
    }
    Ok(Figure::new("table4", "percent", points))
}

fn bar(name: &str, limit: f64, value: f64) -> Bar {
    Bar { name: name.to_owned(), limit, value, holds: value <= limit }
}

fn bars(figures: &[Figure], groups: &[Group], fitted: usize) -> Vec<Bar> {
    let points: Vec<&Point> = figures
        .iter()
        .filter(|f| f.name.starts_with("fig") && f.unit == "MB/s")
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
    let [throughput, processor] = [0, 1].map(|group| &groups[group]);
    let worst = |group: &Group| group.worst().map_or(f64::NAN, |curve| curve.mean_error);
    vec![
        bar("throughput, mean error of the given points", 0.05, throughput.mean_error),
        bar("throughput, mean error of the worst curve", 0.12, worst(throughput)),
        bar("processor time per MB, mean error of the given points", 0.10, processor.mean_error),
        bar(NUMBERS_FITTED, 15.0, fitted as f64),
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
        bar(
            "table 4, bus utilisation, worst distance in points",
            10.0,
            distance("Bus Utilization"),
        ),
        bar("table 4, Data In, worst distance in points", 8.0, distance("Data In")),
        bar(
            "location (figure 14), worst error",
            0.02,
            named("fig14").map_or(f64::NAN, |f| f.worst_error),
        ),
    ]
}
