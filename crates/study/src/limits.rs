//! What limits a peak: the figures of the point itself say.

use crate::result::{Advertised, Limit, Peak};
use machine::{LayerKind, MachineFacts, TargetFacts, units};
use measure::Point;

/// A rate within this share of an advertised limit is that limit.
const NEAR: f64 = 0.1;
/// A resource busier than this, in percent, is the limit.
const BUSY_PERCENT: f64 = 90.0;
/// Doubling the requests outstanding gains less than this where something is saturated.
const FLAT: f64 = 1.1;

/// The narrowest rate that a layer below advertises for an operation, with the layer's name. The requests per second that a
/// layer admits count at the request size of the peak.
pub(crate) fn advertised(facts: &TargetFacts, op: &str, request: Option<u32>) -> Option<Advertised> {
    let write_limit = |layer: &machine::Layer, name: &str| layer.settings.get(name).and_then(|text| text.parse::<f64>().ok());
    let mut narrowest: Option<Advertised> = None;
    let mut consider = |layer: &machine::Layer, rate: Option<f64>| {
        if let Some(rate) = rate.filter(|rate| *rate > 0.0)
            && narrowest.as_ref().is_none_or(|one| rate < one.throughput_bytes_per_s)
        {
            narrowest = Some(Advertised { layer: layer.name.clone(), throughput_bytes_per_s: rate });
        }
    };
    for layer in &facts.layers {
        let throttle = layer.kind == LayerKind::Throttle;
        let (rate, iops) = if throttle && op == "write" {
            (write_limit(layer, "write_bytes_per_s"), write_limit(layer, "write_iops"))
        } else {
            (layer.advertised_bytes_per_s, layer.advertised_iops)
        };
        let members = f64::from(facts.members.max(1));
        consider(layer, rate.map(|rate| rate * members));
        consider(layer, iops.zip(request).map(|(iops, request)| iops * f64::from(request) * members));
    }
    narrowest
}

/// What limits a peak. `more` is the best rate with at least twice as many requests outstanding, where that was measured.
pub(crate) fn limit(peak: &Peak, point: &Point, more: Option<f64>, facts: &TargetFacts, machine: &MachineFacts) -> Limit {
    let op = &peak.op;
    let say = |what: &str, sentence: String| Limit { op: op.clone(), what: what.into(), sentence };
    let rate = units::show_rate(peak.throughput_bytes_per_s);
    let Some(numbers) = &point.numbers else { return say("unknown", format!("{op}s: nothing was measured")) };
    if let Some(limit) = advertised(facts, op, Some(point.workload.request_bytes))
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
