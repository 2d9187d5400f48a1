//! Measurements as an experiment sees them.

use crate::context::StudyContext;
use crate::grid::{Cell, Curve, Grid};
use crate::long_writes::Seen;
use crate::sampler::Entry;
use machine::units::MIB;
use machine::{MemoryKind, MemoryUse};
use results::{Axis, Numbers, Point, Value};
use workload::OpKind;

/// The smallest setting with this share of the best rate is recommended.
pub(crate) const ENOUGH: f64 = 0.9;

pub(crate) const NOTICEABLE: f64 = 0.05;

/// Readings are the same if their intervals rule out a larger ratio.
const SAME: f64 = 1.25;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PeakRate {
    pub(crate) bytes_per_s: f64,
    pub(crate) interval_95: Option<[f64; 2]>,
}

impl From<f64> for PeakRate {
    fn from(bytes_per_s: f64) -> PeakRate {
        PeakRate { bytes_per_s, interval_95: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct PeakRates {
    pub(crate) read: Option<PeakRate>,
    pub(crate) write: Option<PeakRate>,
}

impl PeakRates {
    pub(crate) fn measured(peaks: &[(OpKind, usize)], points: &[Point]) -> PeakRates {
        let of = |op: OpKind| {
            let (_, point) = peaks.iter().find(|(of, _)| *of == op)?;
            let numbers = points[*point].numbers.as_ref()?;
            Some(PeakRate {
                bytes_per_s: numbers.throughput_bytes_per_s,
                interval_95: numbers.interval_95,
            })
        };
        PeakRates { read: of(OpKind::Read), write: of(OpKind::Write) }
    }

    pub(crate) fn of(&self, op: OpKind) -> Option<PeakRate> {
        if op == OpKind::Write { self.write } else { self.read }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reading {
    pub(crate) x: f64,
    /// In the unit of the curve's first figure, unless another axis was requested.
    pub(crate) y: f64,
    pub(crate) interval_95: Option<[f64; 2]>,
    /// From a simulated machine, so it needs no interval.
    pub(crate) exact: bool,
    pub(crate) point: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Effect {
    /// Relative: 0.5 is 50 % more.
    By(f64),
    Nothing,
    Unsure,
}

impl Effect {
    pub(crate) fn gain(self) -> Option<f64> {
        match self {
            Effect::By(more) if more > 0.0 => Some(more),
            _ => None,
        }
    }
}

impl Reading {
    fn interval(&self) -> Option<[f64; 2]> {
        self.interval_95.or(self.exact.then_some([self.y, self.y]))
    }

    /// Relative, of readings whose intervals do not overlap, however small.
    pub(crate) fn sure_change_to(&self, other: &Reading) -> Option<f64> {
        let (a, b) = (self.interval()?, other.interval()?);
        (a[1] < b[0] || b[1] < a[0]).then_some(other.y / self.y - 1.0)
    }

    /// `Nothing` requires intervals that rule out a large difference.
    pub(crate) fn change_to(&self, other: &Reading) -> Effect {
        let (Some(a), Some(b)) = (self.interval(), other.interval()) else {
            return Effect::Unsure;
        };
        match self.sure_change_to(other) {
            Some(change) if change.abs() >= NOTICEABLE => Effect::By(change),
            Some(_) => Effect::Nothing,
            None if b[1] <= a[0] * SAME && a[1] <= b[0] * SAME => Effect::Nothing,
            None => Effect::Unsure,
        }
    }
}

pub(crate) struct Found<'a> {
    pub(crate) setting: &'a StudyContext,
    pub(crate) grids: Vec<&'a Grid>,
    pub(crate) entries: &'a [Entry],
    pub(crate) points: &'a [Point],
    pub(crate) measured: PeakRates,
    pub(crate) advertised: PeakRates,
    pub(crate) memory: &'a Result<Vec<MemoryUse>, String>,
    pub(crate) long_writes: &'a Seen,
}

impl Found<'_> {
    pub(crate) fn memory_rate(&self, kind: MemoryKind) -> Option<f64> {
        let rates =
            self.memory.as_ref().ok()?.iter().find(|one| one.kind == kind && one.threads == 1)?;
        rates.mean_bytes_per_s()
    }

    pub(crate) fn cells(&self, curve: &Curve) -> Vec<(&Cell, usize)> {
        let cells =
            self.grids.iter().flat_map(|grid| &grid.cells).filter(|cell| cell.curve == *curve);
        let mut cells: Vec<(&Cell, usize)> =
            cells.filter_map(|cell| Some((cell, cell.point?))).collect();
        cells.sort_by(|a, b| a.0.x.total_cmp(&b.0.x));
        cells
    }

    /// By rising x, without failed points.
    pub(crate) fn curve(&self, curve: &Curve) -> Vec<Reading> {
        self.curve_by(curve, curve.set.figures[0].y)
    }

    pub(crate) fn curve_by(&self, curve: &Curve, axis: Axis) -> Vec<Reading> {
        let reading = |(cell, point): (&Cell, usize)| {
            let value = value(cell, axis, point, &self.points[point]);
            let exact = self.entries[point].repeats_exactly();
            Some(Reading { x: cell.x, y: value.y?, interval_95: value.interval_95, exact, point })
        };
        self.cells(curve).into_iter().filter_map(reading).collect()
    }

    pub(crate) fn at(&self, curve: &Curve, x: impl Into<f64>) -> Option<Reading> {
        let x = x.into();
        self.curve(curve).into_iter().find(|reading| reading.x == x)
    }
}

pub(crate) fn best(readings: &[Reading]) -> Option<Reading> {
    readings.iter().copied().max_by(|a, b| a.y.total_cmp(&b.y))
}

pub(crate) fn worst(readings: &[Reading]) -> Option<Reading> {
    readings.iter().copied().min_by(|a, b| a.y.total_cmp(&b.y))
}

pub(crate) fn smallest(readings: &[Reading], share: f64) -> Option<Reading> {
    let best = best(readings)?.y;
    readings.iter().copied().find(|reading| reading.y >= share * best)
}

/// The median: a device that prefetches serves some requests late, and a mean would mix two
/// regimes.
pub(crate) fn typical_ns(numbers: &Numbers) -> f64 {
    numbers.latency_ns.p50 as f64
}

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
        Axis::ServiceNs => (typical_ns(numbers), None),
        _ => return empty,
    };
    Value { y: Some(y), interval_95: interval, ..empty }
}
