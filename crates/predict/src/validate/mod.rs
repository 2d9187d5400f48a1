//! All published points of the 1997 study, and SQLIO's matrix.

pub mod alignment;
mod bars;
mod laptop;
pub mod predictions;
pub mod published;
mod tables;

use crate::{Outcome, Result, run, workload};
use machine::{Allocation, Buffering, Engine, Hint, Machine, Op};
use published::Measured;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use twin::{Twin, preset};
use workload::Stop;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
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
    /// As (simulated - measured) / measured.
    pub fn relative_error(&self) -> f64 {
        (self.simulated - self.measured) / self.measured
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Named as `fig3_throughput`, `table4`.
    pub name: String,
    pub unit: String,
    pub points: Vec<Point>,
    pub mean_error: f64,
    pub worst_error: f64,
    /// Known when the model was made; if not, the values test it.
    pub given: bool,
}

impl Figure {
    fn new(name: &str, unit: &str, points: Vec<Point>) -> Self {
        let (mean_error, worst_error) = errors(points.iter());
        let (name, unit) = (name.to_owned(), unit.to_owned());
        Figure { name, unit, points, mean_error, worst_error, given: true }
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

/// With the error over all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    pub name: String,
    pub points: u32,
    pub mean_error: f64,
    pub curves: Vec<Curve>,
}

impl Group {
    fn new(name: &str, figures: &[Figure], unit: &str, given: bool) -> Group {
        let of_study = |figure: &&Figure| figure.name.starts_with("fig");
        let figures: Vec<&Figure> = figures
            .iter()
            .filter(|figure| of_study(figure) && figure.unit == unit && figure.given == given)
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarUnit {
    /// 0.1 is 10 %.
    Share,
    /// Percentage points.
    Points,
    Count,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    pub name: String,
    #[serde(skip)]
    pub unit: BarUnit,
    pub limit: f64,
    pub value: f64,
    pub holds: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Validation {
    pub machine: String,
    pub figures: Vec<Figure>,
    /// Throughput and processor time over the calibrating figures, and throughput over the others.
    pub groups: Vec<Group>,
    pub predictions: Vec<predictions::Prediction>,
    /// On the 2003 server.
    pub alignment: Vec<alignment::Gain>,
    pub bars: Vec<Bar>,
    pub fitted: Vec<(String, f64)>,
    /// Computed from a published figure, which therefore does not test them.
    pub solved: Vec<(String, f64)>,
}

impl Validation {
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

const MIB: f64 = (1 << 20) as f64;
const MACHINE: &str = "gateway-1997";
/// Where files on striped volumes start, except those that the study calls aligned.
const OFF_THE_CHUNK: &str = ",start=12k";

pub fn validate() -> Result<Validation> {
    validate_machine(MACHINE)
}

/// Takes a preset's name or a `.toml` file.
pub fn validate_machine(machine: &str) -> Result<Validation> {
    let mut figures = simulate_figures(machine, &published::measurements(), true)?;
    figures.extend(simulate_figures(machine, &published::released(), false)?);
    figures.extend(simulate_figures(machine, &published::raid5(), false)?);
    figures.push(tables::table2(machine)?);
    let (hits, again) = tables::table3(machine)?;
    figures.push(hits);
    figures.push(again);
    figures.push(tables::table4(machine)?);
    figures.extend(laptop::figures()?);
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
        Group::new("throughput", &figures, "MB/s", true),
        Group::new("processor time per MB", &figures, "CPU ms/MB", true),
        Group::new("throughput, not given", &figures, "MB/s", false),
    ];
    let alignment = alignment::gains()?;
    let mut bars = bars::bars(&figures, &groups, fitted.len());
    bars.extend(alignment::bars(&alignment));
    let predictions = predictions::predictions(machine)?;
    Ok(Validation {
        machine: machine.to_owned(),
        figures,
        groups,
        predictions,
        alignment,
        bars,
        fitted,
        solved,
    })
}

fn simulate_figures(machine: &str, measured: &[Measured], given: bool) -> Result<Vec<Figure>> {
    let names: BTreeSet<&str> = measured.iter().map(|point| point.figure).collect();
    let figure = |name: &str| {
        let of: Vec<&Measured> = measured.iter().filter(|point| point.figure == name).collect();
        let points = of.iter().map(|point| simulate(machine, point)).collect::<Result<_>>()?;
        let unit = of.first().map_or("", |point| point.unit);
        Ok(Figure { given, ..Figure::new(name, unit, points) })
    };
    names.into_iter().map(figure).collect()
}

fn twin(machine: &str, drive: &str, disks: u32, more: &str) -> Result<Twin> {
    Ok(Twin::from_name(&format!("{machine},drive={drive},disks={disks}{more}"))?)
}

fn simulate(machine: &str, point: &Measured) -> Result<Point> {
    let outcome = outcome(machine, point, "")?;
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

/// Adds the settings of `more`.
fn outcome(machine: &str, point: &Measured, more: &str) -> Result<Outcome> {
    let mut settings =
        format!(",buses={},wce={}{more}", point.buses, if point.wce { "on" } else { "off" });
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
    run(&machine, &volume, &asked)
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
