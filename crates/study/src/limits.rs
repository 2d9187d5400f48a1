//! What limits a peak: the figures of the point itself say.

use crate::result::{Advertised, Limit, Peak};
use machine::{Layer, LayerKind, MachineFacts, TargetFacts, TargetKind, units};
use measure::Point;

/// A rate within this share of an advertised limit is that limit.
const NEAR: f64 = 0.1;
/// A resource busier than this, in percent, is the limit.
const BUSY_PERCENT: f64 = 90.0;
/// Doubling the requests outstanding gains less than this where something is saturated.
const FLAT: f64 = 1.1;

/// A number among a layer's settings.
fn setting(layer: &Layer, name: &str) -> Option<f64> {
    layer.settings.get(name).and_then(|text| text.parse().ok())
}

/// How many times over a target has its layers: those of a real one are told of one member, those of a simulated one of all together.
fn times(facts: &TargetFacts) -> f64 {
    if facts.kind == TargetKind::Simulated { 1.0 } else { f64::from(facts.members.max(1)) }
}

/// The narrowest rate that a layer below advertises for an operation, with the layer's name; of a stripe, that of all members.
pub(crate) fn advertised(facts: &TargetFacts, op: &str) -> Option<Advertised> {
    let members = times(facts);
    let rate = |layer: &Layer| {
        if layer.kind == LayerKind::Throttle && op == "write" { setting(layer, "write_bytes_per_s") } else { layer.advertised_bytes_per_s }
    };
    let rates = facts
        .layers
        .iter()
        .filter_map(|layer| Some(Advertised { layer: layer.name.clone(), throughput_bytes_per_s: rate(layer)? * members }));
    rates.filter(|one| one.throughput_bytes_per_s > 0.0).min_by(|a, b| a.throughput_bytes_per_s.total_cmp(&b.throughput_bytes_per_s))
}

/// The fewest requests per second that a layer below admits for an operation, with the layer's name.
fn admitted<'a>(facts: &'a TargetFacts, op: &str) -> Option<(&'a str, f64)> {
    let members = times(facts);
    let iops = |layer: &Layer| {
        if layer.kind == LayerKind::Throttle && op == "write" { setting(layer, "write_iops") } else { layer.advertised_iops }
    };
    let limits = facts.layers.iter().filter_map(|layer| Some((layer.name.as_str(), iops(layer)? * members)));
    limits.filter(|one| one.1 > 0.0).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// What limits a peak. `more` is the best rate with at least twice as many requests outstanding, where that was measured.
pub(crate) fn limit(peak: &Peak, point: &Point, more: Option<f64>, facts: &TargetFacts, machine: &MachineFacts) -> Limit {
    let op = &peak.op;
    let say = |what: &str, sentence: String| Limit { op: op.clone(), what: what.into(), sentence };
    let rate = units::show_rate(peak.throughput_bytes_per_s);
    let Some(numbers) = &point.numbers else { return say("unknown", format!("{op}s: nothing was measured")) };
    if let Some(limit) = advertised(facts, op)
        && (peak.throughput_bytes_per_s / limit.throughput_bytes_per_s - 1.0).abs() <= NEAR
    {
        let what = facts.layers.iter().find(|layer| layer.name == limit.layer).map_or("device", |layer| match layer.kind {
            LayerKind::Throttle => "throttle",
            LayerKind::Link => "link",
            _ => "device",
        });
        let shown = units::show_rate(limit.throughput_bytes_per_s);
        return say(what, format!("{op}s are limited by the device: {rate} is what {} admits ({shown})", limit.layer));
    }
    let achieved = &numbers.achieved;
    let at_device = achieved.device_request_bytes.map_or(numbers.iops, |bytes| peak.throughput_bytes_per_s / bytes);
    if let Some((layer, iops)) = admitted(facts, op)
        && (at_device / iops - 1.0).abs() <= NEAR
    {
        let each = achieved.device_request_bytes.map_or(String::new(), |bytes| format!(" of {}", units::show_size_rounded(bytes)));
        return say(
            "throttle",
            format!("{op}s are limited by the device: {at_device:.0} requests/s{each} reach it, and {layer} admits {iops:.0}"),
        );
    }
    let busy = achieved.busy_processors / f64::from(machine.processors.max(1)) * 100.0;
    let cpu = &numbers.cpu_ns_per_request;
    let per_thread = (cpu.user + cpu.system) * numbers.iops / 1e9 / f64::from(point.workload.threads.max(1)) * 100.0;
    if facts.in_memory {
        return say(
            "memory",
            format!(
                "{op}s are limited by memory and processor: the file system keeps its files in memory ({rate}, {busy:.0} % of the processors busy)"
            ),
        );
    }
    if busy >= BUSY_PERCENT {
        return say("processor", format!("{op}s are limited by the processors: {busy:.0} % of their time is used at {rate}"));
    }
    let flat = more.is_some_and(|more| more < peak.throughput_bytes_per_s * FLAT);
    let device_busy = achieved.device_busy_percent.unwrap_or(0.0);
    if device_busy >= BUSY_PERCENT && (flat || achieved.device_mean_depth.unwrap_or(0.0) > 1.5) {
        let depth = achieved.device_mean_depth.unwrap_or(0.0);
        return say(
            "device",
            format!(
                "{op}s are limited by the device: it is busy {device_busy:.0} % of the time with {depth:.1} requests in it, and more of them gain nothing"
            ),
        );
    }
    if per_thread >= BUSY_PERCENT && point.workload.engine.is_async() {
        return say(
            "processor",
            format!(
                "{op}s are limited by the one thread that issues them: it is busy {per_thread:.0} % of the time; more threads may get more"
            ),
        );
    }
    if flat {
        return say(
            "device",
            format!(
                "{op}s are limited below the program: {rate} whether or not twice as many requests are outstanding, with {busy:.0} % of the processors busy"
            ),
        );
    }
    say(
        "latency",
        format!("{op}s are limited by the time of each request: nothing is saturated at {rate}, so more outstanding may get more"),
    )
}
