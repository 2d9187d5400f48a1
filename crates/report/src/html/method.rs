//! The foot of the page: the machine, the layers under the target, all points, and how it was measured.

use super::target_words;
use crate::words::{
    duration, grouped, layer_kind, mib_per_s, mode, operation, percent, plural, process_cpu_ns, rate, share, short_count, size,
};
use machine::units::{show_size, show_size_rounded, show_time, significant};
use measure::Point;
use serde::Serialize;
use study::Results;

/// Names and values under one another.
type Facts = Vec<(String, String)>;

fn fact(facts: &mut Facts, name: &str, value: impl Into<String>) {
    let value = value.into();
    if !value.is_empty() {
        facts.push((name.into(), value));
    }
}

/// The machine and its settings.
#[derive(Serialize)]
pub(super) struct MachineView {
    pub(super) line: String,
    facts: Facts,
    settings: Facts,
}

pub(super) fn machine(results: &Results) -> MachineView {
    let machine = &results.machine;
    let mut facts = Facts::new();
    fact(&mut facts, "name", if machine.simulated { format!("{} (simulated)", machine.name) } else { machine.name.clone() });
    fact(&mut facts, "system", machine.system.as_str());
    fact(&mut facts, "processor", machine.processor.as_str());
    fact(&mut facts, "processors online", machine.processors.to_string());
    fact(&mut facts, "memory", show_size_rounded(machine.memory_bytes as f64));
    fact(&mut facts, "virtualization", machine.virtualization.clone().unwrap_or_default());
    let parts = [machine.name.clone(), plural(machine.processors as usize, "processor"), machine.system.clone()];
    let line = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let settings = machine.settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    MachineView { line, facts, settings }
}

/// What was measured.
pub(super) fn target(results: &Results) -> Facts {
    let target = &results.target;
    let mut facts = Facts::new();
    fact(&mut facts, "target", format!("{}: {}", target.name, target_words(results)));
    fact(&mut facts, "size used", show_size_rounded(target.size_bytes as f64));
    let direct = match (target.direct, &target.direct_refused) {
        (true, _) => format!("yes, in multiples of {}", show_size(u64::from(target.direct_align_bytes))),
        (false, Some(reason)) => format!("no: {reason}"),
        (false, None) => "no".into(),
    };
    fact(&mut facts, "direct I/O", direct);
    fact(&mut facts, "writable", if target.writable { "yes" } else { "no: it was only read" });
    fact(&mut facts, "physical sector", show_size(u64::from(target.physical_block_bytes)));
    fact(&mut facts, "file-system block", show_size(u64::from(target.block_bytes)));
    if target.members > 1 {
        let chunk = target.chunk_bytes.map(|bytes| format!(", chunks of {}", show_size(bytes))).unwrap_or_default();
        fact(&mut facts, "stripe", format!("{} members{chunk}", target.members));
    }
    if target.in_memory {
        fact(&mut facts, "in memory", "yes: no device was reached");
    }
    fact(&mut facts, "devices", target.devices.join(", "));
    for warning in &target.warnings {
        fact(&mut facts, "warning", warning.as_str());
    }
    facts
}

/// A layer under the target, with what was reached of what it advertises.
#[derive(Serialize)]
pub(super) struct LayerView {
    kind: &'static str,
    name: String,
    rate: String,
    iops: String,
    /// For each peak: operation, share, length of its bar in percent.
    reached: Vec<(String, String, String)>,
    settings: Facts,
}

pub(super) fn layers(results: &Results) -> Vec<LayerView> {
    let mut peaks: Vec<(String, f64)> =
        results.answer.iter().flat_map(|answer| &answer.peaks).map(|peak| (peak.op.clone(), peak.throughput_bytes_per_s)).collect();
    if peaks.is_empty() {
        for op in ["read", "write", "mix"] {
            let rates = results.points.iter().filter(|point| point.workload.op == op).filter_map(Point::rate);
            peaks.extend(rates.reduce(f64::max).map(|rate| (op.to_string(), rate)));
        }
    }
    let view = |layer: &machine::Layer| LayerView {
        kind: layer_kind(layer.kind),
        name: layer.name.clone(),
        rate: layer.advertised_bytes_per_s.map(rate).unwrap_or_default(),
        iops: layer.advertised_iops.map(grouped).unwrap_or_default(),
        reached: match layer.advertised_bytes_per_s {
            Some(advertised) => peaks
                .iter()
                .filter_map(|(op, peak)| {
                    let bar = format!("{:.1}", (peak / advertised * 100.0).clamp(0.0, 100.0));
                    Some((op.clone(), share(*peak, advertised)?, bar))
                })
                .collect(),
            None => Vec::new(),
        },
        settings: layer.settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    };
    results.target.layers.iter().map(view).collect()
}

/// A row of the table of all points.
#[derive(Serialize)]
pub(super) struct PointView {
    index: usize,
    asked: Vec<String>,
    measured: Vec<String>,
    error: Option<String>,
    warnings: Vec<String>,
}

/// Most warnings told of a point, and most characters of each.
const MOST_WARNINGS: usize = 4;
const MOST_CHARACTERS: usize = 300;

pub(super) fn points(results: &Results, most: usize) -> Vec<PointView> {
    results.points.iter().take(most).enumerate().map(|(index, point)| point_view(index, point)).collect()
}

fn point_view(index: usize, point: &Point) -> PointView {
    let w = &point.workload;
    let short = |text: &String| text.chars().take(MOST_CHARACTERS).collect::<String>();
    let asked = vec![
        operation(point),
        w.pattern.option(),
        show_size(u64::from(w.request_bytes)),
        w.depth.to_string(),
        w.threads.to_string(),
        w.engine.name().into(),
        mode(point),
        if w.offset_bytes > 0 { show_size(w.offset_bytes) } else { String::new() },
    ];
    let measured = point.numbers.as_ref().map(|n| {
        vec![
            mib_per_s(n.throughput_bytes_per_s),
            n.relative_half_width.map(|width| percent(width * 100.0)).unwrap_or_default(),
            n.repeats.to_string(),
            short_count(n.iops),
            show_time(n.latency_ns.p50 as f64),
            show_time(n.latency_ns.p99 as f64),
            significant(process_cpu_ns(n) / 1e3, 3),
            significant(n.cpu_ns_per_request.machine / 1e3, 3),
            significant(n.achieved.mean_depth, 3),
            n.achieved.device_request_bytes.map(|bytes| size(bytes.round())).unwrap_or_default(),
        ]
    });
    let error = match (&point.error, &measured) {
        (Some(error), _) => Some(short(error)),
        (None, None) => Some("not measured".into()),
        (None, Some(_)) => None,
    };
    let warnings = point.numbers.iter().flat_map(|numbers| &numbers.warnings).take(MOST_WARNINGS).map(short).collect();
    PointView { index, asked, measured: measured.unwrap_or_default(), error, warnings }
}

/// How it was measured.
pub(super) fn method(results: &Results) -> Facts {
    let mut facts = Facts::new();
    let arguments: Vec<&str> = results.program.arguments.iter().map(String::as_str).collect();
    fact(&mut facts, "program", format!("{} {}", results.program.name, results.program.version));
    fact(&mut facts, "arguments", arguments.join(" "));
    let budget = results.budget_ns.map(|ns| format!(" of a budget of {}", duration(ns))).unwrap_or_default();
    fact(&mut facts, "time", format!("{}{budget}", duration(results.elapsed_ns)));
    fact(&mut facts, "seed", results.seed.to_string());
    let measured: Vec<&measure::Numbers> = results.points.iter().filter_map(|point| point.numbers.as_ref()).collect();
    let failed = results.points.len() - measured.len();
    let failed = if failed > 0 { format!(", {failed} of them failed") } else { String::new() };
    fact(&mut facts, "points", format!("{}{failed}", grouped(results.points.len() as f64)));
    let mut repeats: Vec<u32> = measured.iter().map(|numbers| numbers.repeats).collect();
    repeats.sort_unstable();
    if let (Some(least), Some(most)) = (repeats.first(), repeats.last()) {
        let runs: u64 = repeats.iter().map(|count| u64::from(*count)).sum();
        fact(
            &mut facts,
            "runs",
            format!("{}, {least} to {most} a point, half of the points {} or more", grouped(runs as f64), repeats[repeats.len() / 2]),
        );
        let tight = measured.iter().filter(|numbers| numbers.relative_half_width.is_some_and(|width| width <= 0.03)).count();
        let part = share(tight as f64, measured.len() as f64).unwrap_or_default();
        fact(&mut facts, "intervals", format!("95 %, of the median; within 3 % for {tight} of {} points ({part})", measured.len()));
    }
    fact(&mut facts, "schema", results.schema.as_str());
    facts
}
