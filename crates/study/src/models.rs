//! Models laid through points: half power, processor cost, service time.

use crate::draw::PeakRates;
use crate::result::{Axis, CostModel, Experiment, Figure, HalfPower, Series, ServiceModel};
use machine::units;
use measure::Point;
use measure::stats::{self, Reached};

/// Half-power and service-time models are for single requests: beyond this size the kernel splits them.
const UNSPLIT_BYTES: f64 = (1u64 << 20) as f64;

/// Where a curve reaches half of its own best.
pub(crate) fn half_power_of_series(x: Axis, y: Axis, series: &Series, points: &[Point]) -> Option<HalfPower> {
    let best = series.values.iter().filter_map(|value| value.y).fold(0.0, f64::max);
    // IOPS become bytes: the document states every peak in one unit.
    let unit = match y {
        Axis::Iops => series.values.iter().find_map(|value| Some(f64::from(points[value.point?].workload.request_bytes)))?,
        _ => 1.0,
    };
    let op = &points[series.values.first()?.point?].workload.op;
    half_power(x, series, best, unit).map(|half| HalfPower { at: series.name.clone(), op: op.clone(), ..half })
}

/// Where a curve reaches half of a peak given in the unit of its y.
fn half_power(x: Axis, series: &Series, peak: f64, unit: f64) -> Option<HalfPower> {
    let usable: Vec<stats::Point> = series
        .values
        .iter()
        .filter_map(|value| {
            let y = value.y?;
            let [low, high] = value.interval_95.unwrap_or([y, y]);
            Some(stats::Point { x: value.x, y, low: low.clamp(0.0, y), high: high.max(y) })
        })
        .collect();
    if usable.len() < 2 {
        return None;
    }
    let of = match x {
        Axis::RequestBytes => "request_bytes",
        Axis::ChunkBytes => "chunk_bytes",
        _ => "depth",
    };
    let found = stats::half_power(&usable, peak)?;
    let least = usable.iter().map(|point| point.x).fold(f64::MAX, f64::min);
    let most = usable.iter().map(|point| point.x).fold(0.0, f64::max);
    let (smallest, crossing, interval, at_or_below) = match found.reached {
        Reached::At { setting, crossing, low, high } => {
            (Some(setting), Some(crossing), Some([low.unwrap_or(least), high.unwrap_or(most)]), false)
        }
        Reached::AtOrBelow { setting, .. } => (Some(setting), None, None, true),
        Reached::Nowhere { .. } => (None, None, None, false),
    };
    Some(HalfPower {
        of: of.into(),
        at: String::new(),
        op: String::new(),
        peak_bytes_per_s: peak * unit,
        peak_from: "measured".into(),
        smallest,
        crossing,
        interval_95: interval,
        at_or_below,
    })
}

/// The half-power points of the answer: on the curves of size at each depth, and across them of depth at each size, against the
/// best rate measured and against what a layer advertises.
pub(crate) fn half_power_points(depth: &Experiment, points: &[Point], peaks: PeakRates, advertised: PeakRates) -> Vec<HalfPower> {
    let mut found = Vec::new();
    for (figure, op) in [("depth_read", "read"), ("depth_write", "write")] {
        let Some(figure) = depth.figures.iter().find(|one| one.id == figure) else { continue };
        for (peak, from) in [(peaks.of(op), "measured"), (advertised.of(op), "advertised")] {
            let Some(peak) = peak else { continue };
            let named = |half: HalfPower, at: String| HalfPower { at, op: op.into(), peak_from: from.into(), ..half };
            for series in &figure.series {
                found.extend(half_power(Axis::RequestBytes, series, peak, 1.0).map(|half| named(half, series.name.clone())));
            }
            for (size, series) in by_depth(figure, points) {
                found.extend(
                    half_power(Axis::Depth, &series, peak, 1.0).map(|half| named(half, format!("{} requests", units::show_size(size)))),
                );
            }
        }
    }
    found
}

/// A figure of size curves by depth, turned: for each size a curve over depth.
fn by_depth(figure: &Figure, points: &[Point]) -> Vec<(u64, Series)> {
    let mut turned: Vec<(u64, Series)> = Vec::new();
    for value in figure.series.iter().flat_map(|series| &series.values) {
        let Some(place) = value.point else { continue };
        let (size, depth) = (value.x as u64, f64::from(points[place].workload.depth));
        let value = crate::result::Value { x: depth, ..*value };
        match turned.iter_mut().find(|(one, _)| *one == size) {
            Some((_, series)) => series.values.push(value),
            None => turned.push((size, Series { name: String::new(), values: vec![value], half_power: None })),
        }
    }
    turned.retain(|(_, series)| series.values.len() > 2);
    turned.sort_by_key(|(size, _)| *size);
    for (_, series) in &mut turned {
        series.values.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    turned
}

/// Cost = a per request + b per byte, for each mode of the cost experiment, of the process and of the whole machine.
pub(crate) fn costs(cost: &Experiment, points: &[Point]) -> Vec<CostModel> {
    let Some(figure) = cost.figures.iter().find(|figure| figure.id == "cost_per_request") else { return Vec::new() };
    let mut models = Vec::new();
    for series in &figure.series {
        let members: Vec<&Point> = series.values.iter().filter_map(|value| Some(&points[value.point?])).collect();
        for (whose, part) in [("process", false), ("machine", true)] {
            let values: Vec<(f64, f64)> = members
                .iter()
                .filter_map(|point| {
                    let cpu = &point.numbers.as_ref()?.cpu_ns_per_request;
                    let ns = if part { cpu.machine } else { cpu.user + cpu.system };
                    (ns > 0.0).then_some((f64::from(point.workload.request_bytes), ns))
                })
                .collect();
            let Ok(fit) = stats::fit_line(&values) else { continue };
            let counted: Vec<(f64, f64)> = members
                .iter()
                .filter_map(|point| {
                    Some((f64::from(point.workload.request_bytes), point.numbers.as_ref()?.achieved.instructions_per_request?))
                })
                .collect();
            let instructions = stats::fit_line(&counted).ok().filter(|_| !part);
            // Nothing costs less than nothing, however much the points scatter.
            let [ns_per_request, ns_per_byte] = [&fit.intercept, &fit.slope].map(|one| one.value.max(0.0));
            let [of_request, of_byte] = [&fit.intercept, &fit.slope].map(|one| [one.low.max(0.0), one.high.max(0.0)]);
            models.push(CostModel {
                mode: series.name.clone(),
                whose: whose.into(),
                ns_per_request,
                ns_per_request_interval_95: of_request,
                ns_per_byte,
                ns_per_byte_interval_95: of_byte,
                rms_residual: fit.rms_relative_residual,
                instructions_per_request: instructions.as_ref().map(|fit| fit.intercept.value),
                instructions_per_byte: instructions.as_ref().map(|fit| fit.slope.value),
            });
        }
    }
    models
}

/// Time = fixed + size / rate, for each curve of single requests.
pub(crate) fn service_times(experiments: &[Experiment], points: &[Point]) -> Vec<ServiceModel> {
    let mut models = Vec::new();
    let wanted = [("unbuffered", "unbuffered", "direct "), ("device_cache", "device_cache", "")];
    for (id, figure, prefix) in wanted {
        let Some(figure) = experiments.iter().find(|one| one.id == id).and_then(|one| one.figures.iter().find(|one| one.id == figure))
        else {
            continue;
        };
        for series in &figure.series {
            let times: Vec<(f64, f64)> = series
                .values
                .iter()
                .filter(|value| value.x <= UNSPLIT_BYTES)
                .filter_map(|value| Some((value.x, points[value.point?].numbers.as_ref()?.achieved.mean_service_ns)))
                .collect();
            let Ok(fit) = stats::fit_line(&times) else { continue };
            models.push(ServiceModel {
                mode: format!("{prefix}{}", series.name),
                fixed_ns: fit.intercept.value,
                fixed_ns_interval_95: [fit.intercept.low, fit.intercept.high],
                rate_bytes_per_s: fit.rate.map(|rate| rate.value * 1e9),
                rate_interval_95: fit.rate.map(|rate| [rate.low * 1e9, rate.high * 1e9]),
                rms_residual: fit.rms_relative_residual,
                max_residual: fit.max_relative_residual,
                knee_bytes: fit.knee.map(|knee| knee.x),
            });
        }
    }
    models
}
