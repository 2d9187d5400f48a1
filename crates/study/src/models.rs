use crate::found::{Found, Reading};
use crate::grid::Curve;
use measure::stats::{self, FitPoint, LineFit, Reached};
use results::{
    Axis, CostMode, CostModel, CostScope, Figure, Fixed, HalfPower, MAX_FIT_ERROR, Numbers,
    PeakSource, Point, Question, Series, ServiceMode, ServiceModel, Varied,
};
use std::collections::BTreeMap;
use workload::{OpKind, Workload};

/// The kernel splits larger requests, even if no counter shows it.
const UNSPLIT_BYTES: f64 = (1u64 << 20) as f64;
/// Requests at the device below this share of a request are parts of it.
const WHOLE: f64 = 0.75;

/// A worse line does not describe all points: repeats of a point agree better.
const MAX_LINE_ERROR: f64 = 0.05;
/// Two regimes must fit better than one by this factor.
const BETTER: f64 = 2.0;
const GROWS: f64 = 1.5;

pub(crate) fn half_power_of_series(
    x: Axis,
    y: Axis,
    series: &Series,
    points: &[Point],
) -> Option<HalfPower> {
    let reading = |value: &results::Value| {
        Some(Reading {
            x: value.x,
            y: value.y?,
            interval_95: value.interval_95,
            exact: false,
            point: value.point?,
        })
    };
    // A processor time has no half-power point.
    if !matches!(y, Axis::BytesPerS | Axis::Iops) {
        return None;
    }
    let readings: Vec<Reading> = series.values.iter().filter_map(reading).collect();
    let best = readings.iter().map(|reading| reading.y).fold(0.0, f64::max);
    let workload = &points[readings.first()?.point].workload;
    // The document gives every peak in bytes per second.
    let unit = if y == Axis::Iops { f64::from(workload.request_bytes) } else { 1.0 };
    let varied = match x {
        Axis::RequestBytes => Varied::RequestBytes,
        Axis::ChunkBytes => Varied::ChunkBytes,
        _ => Varied::Depth,
    };
    let half = half_power(varied, &readings, best, None)?;
    Some(HalfPower {
        at: series.name.clone(),
        op: workload.op,
        peak_bytes_per_s: best * unit,
        ..half
    })
}

/// The peak has an interval unless it is one of the readings.
fn half_power(
    of: Varied,
    readings: &[Reading],
    peak: f64,
    interval: Option<[f64; 2]>,
) -> Option<HalfPower> {
    if readings.len() < 2 {
        return None;
    }
    let point = |reading: &Reading| {
        let [low, high] =
            reading.interval_95.filter(|_| !reading.exact).unwrap_or([reading.y, reading.y]);
        stats::Point { x: reading.x, y: reading.y, low, high }
    };
    let curve: Vec<stats::Point> = readings.iter().map(point).collect();
    let min = curve.iter().map(|point| point.x).fold(f64::MAX, f64::min);
    let max = curve.iter().map(|point| point.x).fold(0.0, f64::max);
    let (smallest, crossing, interval_95, at_or_below) =
        match stats::half_power(&curve, peak, interval)?.reached {
            Reached::At { setting, crossing, low, high } => (
                Some(setting),
                Some(crossing),
                Some([low.unwrap_or(min), high.unwrap_or(max)]),
                false,
            ),
            Reached::AtOrBelow { setting, .. } => (Some(setting), None, None, true),
            Reached::Nowhere { .. } => (None, None, None, false),
        };
    Some(HalfPower {
        of,
        at: String::new(),
        fixed: None,
        op: OpKind::Read,
        peak_bytes_per_s: peak,
        peak_from: PeakSource::Measured,
        smallest,
        crossing,
        interval_95,
        at_or_below,
    })
}

pub(crate) fn half_power_points(
    op: OpKind,
    curves: &[(u32, Vec<Reading>)],
    found: &Found<'_>,
) -> Vec<HalfPower> {
    let curves: Vec<(u32, Vec<Reading>)> =
        curves.iter().map(|(depth, readings)| (*depth, every_size(readings, found))).collect();
    let mut points = Vec::new();
    for (peaks, peak_from) in
        [(found.measured, PeakSource::Measured), (found.advertised, PeakSource::Advertised)]
    {
        let Some(peak) = peaks.of(op) else { continue };
        let at = |fixed: Fixed, of: Varied, readings: &[Reading]| {
            let half = half_power(of, readings, peak.bytes_per_s, peak.interval_95)?;
            Some(HalfPower { at: fixed.to_string(), fixed: Some(fixed), op, peak_from, ..half })
        };
        for (depth, readings) in &curves {
            points.extend(at(Fixed::Depth(*depth), Varied::RequestBytes, readings));
        }
        for (size, readings) in by_size(&curves) {
            points.extend(at(Fixed::RequestBytes(size), Varied::Depth, &readings));
        }
    }
    points
}

/// Of several visits the longest runs count.
fn every_size(readings: &[Reading], found: &Found<'_>) -> Vec<Reading> {
    let Some(first) = readings.first().and_then(|one| found.entries.get(one.point)) else {
        return readings.to_vec();
    };
    let of_curve = |workload: &Workload| {
        let bytes = first.workload.request_bytes;
        Question::of(&Workload { request_bytes: bytes, ..workload.clone() })
    };
    let mut sizes = BTreeMap::<u32, Reading>::new();
    for point in results::representatives(found.points) {
        let Some(entry) = found.entries.get(point) else { continue };
        if entry.shape != first.shape || of_curve(&entry.workload) != first.question {
            continue;
        }
        let Some(numbers) = &found.points[point].numbers else { continue };
        let reading = Reading {
            x: f64::from(entry.workload.request_bytes),
            y: numbers.throughput_bytes_per_s,
            interval_95: numbers.interval_95,
            exact: entry.repeats_exactly(),
            point,
        };
        sizes.insert(entry.workload.request_bytes, reading);
    }
    sizes.into_values().collect()
}

pub(crate) fn share_half_power(figures: &mut [Figure], answer: &[HalfPower], points: &[Point]) {
    let of_sizes = figures
        .iter_mut()
        .filter(|figure| figure.x == Axis::RequestBytes && figure.y == Axis::BytesPerS);
    for series in of_sizes.flat_map(|figure| &mut figure.series) {
        let Some(first) = series.values.iter().find_map(|value| value.point) else { continue };
        let workload = &points[first].workload;
        let of_curve = Workload {
            read_percent: workload.read_percent,
            request_bytes: workload.request_bytes,
            depth: workload.depth,
            engine: workload.engine,
            buffering: machine::Buffering::Direct,
            ..Workload::default()
        };
        if Question::of(workload) != Question::of(&of_curve) || points[first].stripe.is_some() {
            continue;
        }
        let shared = answer.iter().find(|half| {
            half.op == workload.op
                && half.of == Varied::RequestBytes
                && half.peak_from == PeakSource::Measured
                && half.fixed == Some(Fixed::Depth(workload.depth))
        });
        if let Some(half) = shared.filter(|_| series.half_power.is_some()) {
            series.half_power = Some(HalfPower { at: series.name.clone(), ..half.clone() });
        }
    }
}

fn by_size(curves: &[(u32, Vec<Reading>)]) -> Vec<(u64, Vec<Reading>)> {
    let mut turned = std::collections::BTreeMap::<u64, Vec<Reading>>::new();
    for (depth, readings) in curves {
        for reading in readings {
            turned
                .entry(reading.x as u64)
                .or_default()
                .push(Reading { x: f64::from(*depth), ..*reading });
        }
    }
    turned.into_iter().filter(|(_, readings)| readings.len() > 2).collect()
}

/// Cost = a per request + b per byte, for the process and for the machine.
pub(crate) fn costs(found: &Found<'_>, curve: &Curve, mode: CostMode) -> Vec<CostModel> {
    let numbers: Vec<_> = found
        .cells(curve)
        .into_iter()
        .filter_map(|(cell, point)| Some((cell.x, found.points[point].numbers.as_ref()?)))
        .collect();
    let counted: Vec<(f64, f64)> = numbers
        .iter()
        .filter_map(|(size, numbers)| Some((*size, numbers.achieved.instructions_per_request?)))
        .collect();
    let fit = |whose: CostScope| {
        let times: Vec<(f64, f64)> = numbers
            .iter()
            .map(|(size, numbers)| {
                let cpu = &numbers.cpu_ns_per_request;
                (*size, if whose == CostScope::Machine { cpu.machine } else { cpu.process() })
            })
            .filter(|(_, ns)| *ns > 0.0)
            .collect();
        let fit = stats::fit_line(&times).ok()?;
        if fit.rms_relative_residual > MAX_FIT_ERROR {
            return None;
        }
        let instructions = stats::fit_line(&counted).ok().filter(|_| whose == CostScope::Process);
        // Costs are never negative, however much the points scatter.
        let [request, byte] = [&fit.intercept, &fit.slope]
            .map(|one| [one.value, one.low, one.high].map(|v| v.max(0.0)));
        Some(CostModel {
            mode,
            whose,
            ns_per_request: request[0],
            ns_per_request_interval_95: [request[1], request[2]],
            ns_per_byte: byte[0],
            ns_per_byte_interval_95: [byte[1], byte[2]],
            rms_residual: fit.rms_relative_residual,
            instructions_per_request: instructions.as_ref().map(|fit| fit.intercept.value),
            instructions_per_byte: instructions.as_ref().map(|fit| fit.slope.value),
        })
    };
    [CostScope::Process, CostScope::Machine].into_iter().filter_map(fit).collect()
}

/// Time = fixed + size / rate over `time_ns` of single requests; two regimes if one line does not
/// fit.
pub(crate) fn service_times(
    found: &Found<'_>,
    curve: &Curve,
    mode: ServiceMode,
    time_ns: fn(&Numbers) -> f64,
) -> Vec<ServiceModel> {
    let is_whole = |size: f64, numbers: &Numbers| {
        let at_device = numbers.achieved.device_request_bytes;
        at_device.is_none_or(|bytes| bytes >= WHOLE * size)
    };
    let (mut times, mut split) = (Vec::new(), Vec::new());
    for (cell, point) in found.cells(curve).into_iter().filter(|(cell, _)| cell.x <= UNSPLIT_BYTES)
    {
        let Some(numbers) = &found.points[point].numbers else { continue };
        let kind = if is_whole(cell.x, numbers) { &mut times } else { &mut split };
        kind.push((cell.x, time_ns(numbers)));
    }
    // Sizes that the kernel splits may be a regime of their own, which needs two of them.
    if split.len() > 1 {
        times.append(&mut split);
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Ok(one) = stats::fit_line(&times) else { return Vec::new() };
    match regimes(&times, &one) {
        Some(two) => two.iter().filter_map(|fit| service_model(mode, fit, true)).collect(),
        None => service_model(mode, &one, false).into_iter().collect(),
    }
}

const MODEL_SIZES: usize = 4;

/// A missing model is a result if there are enough sizes.
pub(crate) fn could_have_model(found: &Found<'_>, curve: &Curve) -> bool {
    let measured =
        found.cells(curve).into_iter().filter(|(_, point)| found.points[*point].numbers.is_some());
    measured.count() >= MODEL_SIZES
}

fn regimes(times: &[(f64, f64)], one: &LineFit) -> Option<[LineFit; 2]> {
    if one.rms_relative_residual <= MAX_LINE_ERROR {
        return None;
    }
    let squares = |fit: &LineFit| fit.rms_relative_residual.powi(2) * fit.points.len() as f64;
    let together = |two: &[LineFit; 2]| squares(&two[0]) + squares(&two[1]);
    let splits = (1..times.len()).filter(|&at| times[at - 1].0 < times[at].0);
    let fits = splits.filter_map(|at| {
        let (below, above) = times.split_at(at);
        let two = [stats::fit_line(below).ok()?, stats::fit_line(above).ok()?];
        two.iter().all(makes_sense).then_some(two)
    });
    let best = fits.min_by(|a, b| together(a).total_cmp(&together(b)))?;
    let rms = (together(&best) / times.len() as f64).sqrt();
    (rms <= one.rms_relative_residual / BETTER).then_some(best)
}

/// The line's time grows, if that of its points does.
fn makes_sense(fit: &LineFit) -> bool {
    let grows = |points: &[FitPoint]| {
        points.last().zip(points.first()).is_some_and(|(last, first)| last.y > GROWS * first.y)
    };
    fit.rate.is_some() || !grows(&fit.points)
}

/// `None` if the line does not describe its points, or if its fixed time is certainly negative: a
/// part of each request was ready in advance.
fn service_model(mode: ServiceMode, fit: &LineFit, of_some_sizes: bool) -> Option<ServiceModel> {
    if fit.rms_relative_residual > MAX_FIT_ERROR || fit.intercept.high < 0.0 {
        return None;
    }
    let sizes = || Some([fit.points.first()?.x, fit.points.last()?.x]);
    let fixed = &fit.intercept;
    let [value, low, high] = [fixed.value, fixed.low, fixed.high].map(|time| time.max(0.0));
    Some(ServiceModel {
        mode,
        sizes_bytes: sizes().filter(|_| of_some_sizes),
        fixed_ns: value,
        fixed_ns_interval_95: [low, high],
        rate_bytes_per_s: fit.rate.map(|rate| rate.value * 1e9),
        rate_interval_95: fit.rate.map(|rate| [rate.low.max(0.0) * 1e9, rate.high * 1e9]),
        rms_residual: fit.rms_relative_residual,
        max_residual: fit.max_relative_residual,
        knee_bytes: fit.knee.map(|knee| knee.x),
    })
}
