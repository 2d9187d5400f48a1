//! The end of the page.

use crate::format::{
    cell, duration, grouped, heading, layer_kind, plural, rate, share, target_kind,
};
use machine::units::{show_capacity, show_size};
use results::Point;
use results::Results;
use results::columns::{self, Column};
use serde::Serialize;
use workload::OpKind;

type Facts = Vec<(String, String)>;

fn fact(facts: &mut Facts, name: &str, value: impl Into<String>) {
    let value = value.into();
    if !value.is_empty() {
        facts.push((name.into(), value));
    }
}

#[derive(Serialize)]
pub(super) struct MachineView {
    pub(super) line: String,
    facts: Facts,
    settings: Facts,
}

pub(super) fn machine(results: &Results) -> MachineView {
    let machine = &results.machine;
    let mut facts = Facts::new();
    fact(
        &mut facts,
        "name",
        if machine.simulated {
            format!("{} (simulated)", machine.name)
        } else {
            machine.name.clone()
        },
    );
    fact(&mut facts, "system", machine.system.as_str());
    fact(&mut facts, "processor", machine.processor.as_str());
    fact(&mut facts, "processors online", machine.processors.to_string());
    fact(&mut facts, "memory", show_capacity(machine.memory_bytes as f64));
    fact(&mut facts, "virtualization", machine.virtualization.clone().unwrap_or_default());
    let parts = [
        machine.name.clone(),
        plural(machine.processors as usize, "processor"),
        machine.system.clone(),
    ];
    let line = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let settings =
        machine.settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    MachineView { line, facts, settings }
}

pub(super) fn target(results: &Results) -> Facts {
    let target = &results.target;
    let mut facts = Facts::new();
    fact(&mut facts, "target", format!("{}: {}", target.name, target_kind(target.kind)));
    fact(&mut facts, "size used", show_capacity(target.size_bytes as f64));
    let direct = match (target.direct, &target.direct_refused) {
        (true, _) => {
            format!("yes, in multiples of {}", show_size(u64::from(target.direct_align_bytes)))
        }
        (false, Some(reason)) => format!("no: {reason}"),
        (false, None) => "no".into(),
    };
    fact(&mut facts, "direct I/O", direct);
    fact(&mut facts, "writable", if target.writable { "yes" } else { "no: it was only read" });
    fact(&mut facts, "physical sector", show_size(u64::from(target.physical_block_bytes)));
    fact(&mut facts, "file-system block", show_size(u64::from(target.block_bytes)));
    if target.members > 1 {
        let chunk = target
            .chunk_bytes
            .map(|bytes| format!(", chunks of {}", show_size(bytes)))
            .unwrap_or_default();
        let parity = match target.raid5 {
            None => String::new(),
            Some(machine::Raid5 { failed: None, .. }) => ", RAID 5".into(),
            Some(machine::Raid5 { failed: Some(failed), rebuild: false }) => {
                format!(", RAID 5 without member {failed}")
            }
            Some(machine::Raid5 { failed: Some(failed), rebuild: true }) => {
                format!(", RAID 5: member {failed} is rebuilt")
            }
        };
        fact(&mut facts, "stripe", format!("{} members{chunk}{parity}", target.members));
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

#[derive(Serialize)]
pub(super) struct LayerView {
    kind: &'static str,
    name: String,
    rate: String,
    iops: String,
    /// Operation, share, and length of the bar in percent.
    reached: Vec<(String, String, String)>,
    settings: Facts,
}

pub(super) fn layers(results: &Results) -> Vec<LayerView> {
    let mut peaks: Vec<(OpKind, f64)> = results
        .answer
        .iter()
        .flat_map(|answer| &answer.peaks)
        .map(|peak| (peak.op, peak.throughput_bytes_per_s))
        .collect();
    if peaks.is_empty() {
        for op in [OpKind::Read, OpKind::Write, OpKind::Mix] {
            let rates = results
                .points
                .iter()
                .filter(|point| point.workload.op == op)
                .filter_map(Point::rate);
            peaks.extend(rates.reduce(f64::max).map(|rate| (op, rate)));
        }
    }
    let view = |layer: &machine::Layer| LayerView {
        kind: layer_kind(layer.kind),
        name: layer.name.clone(),
        rate: layer.advertised_bytes_per_s.map(rate).unwrap_or_default(),
        iops: layer.advertised_iops.map(grouped).unwrap_or_default(),
        reached: match layer.target_rate(false) {
            Some(advertised) => peaks
                .iter()
                .filter_map(|(op, peak)| {
                    let bar = format!("{:.1}", (peak / advertised * 100.0).clamp(0.0, 100.0));
                    Some((op.to_string(), share(*peak, advertised)?, bar))
                })
                .collect(),
            None => Vec::new(),
        },
        settings: layer
            .settings
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    };
    results.target.layers.iter().map(view).collect()
}

#[derive(Serialize)]
pub(super) struct PointView {
    index: usize,
    asked: Vec<String>,
    measured: Vec<String>,
    error: Option<String>,
    warnings: Vec<String>,
}

const MAX_WARNINGS: usize = 4;
const MAX_CHARACTERS: usize = 300;

pub(super) fn points(results: &Results, max: usize) -> Vec<PointView> {
    results
        .points
        .iter()
        .take(max)
        .enumerate()
        .map(|(index, point)| point_view(index, point))
        .collect()
}

fn page_columns() -> impl Iterator<Item = &'static Column<Point>> {
    columns::POINT
        .iter()
        .filter(|column| !column.heading.is_empty() && column.heading != "returned")
}

pub(super) fn headings() -> Vec<(&'static str, bool)> {
    let words = |heading| matches!(heading, "op" | "pattern" | "engine" | "mode");
    page_columns().map(|column| (heading(column), words(column.heading))).collect()
}

fn point_view(index: usize, point: &Point) -> PointView {
    let short = |text: &String| text.chars().take(MAX_CHARACTERS).collect::<String>();
    let cells = |asked: bool| -> Vec<String> {
        page_columns()
            .filter(|column| column.asked == asked)
            .map(|column| cell(column, point))
            .collect()
    };
    let asked = cells(true);
    let measured = point.numbers.as_ref().map(|_| cells(false));
    let error = match (&point.error, &measured) {
        (Some(error), _) => Some(short(error)),
        (None, None) => Some("not measured".into()),
        (None, Some(_)) => None,
    };
    let warnings = point
        .numbers
        .iter()
        .flat_map(|numbers| &numbers.warnings)
        .take(MAX_WARNINGS)
        .map(short)
        .collect();
    PointView { index, asked, measured: measured.unwrap_or_default(), error, warnings }
}

pub(super) fn method(results: &Results) -> Facts {
    let mut facts = Facts::new();
    let arguments: Vec<&str> = results.program.arguments.iter().map(String::as_str).collect();
    fact(&mut facts, "program", format!("{} {}", results.program.name, results.program.version));
    fact(&mut facts, "arguments", arguments.join(" "));
    let budget =
        results.budget_ns.map(|ns| format!(" of a budget of {}", duration(ns))).unwrap_or_default();
    let simulated = if results.machine.simulated { ", simulated" } else { "" };
    fact(&mut facts, "time", format!("{}{budget}{simulated}", duration(results.elapsed_ns)));
    fact(&mut facts, "seed", results.seed.to_string());
    let measured: Vec<&results::Numbers> =
        results.points.iter().filter_map(|point| point.numbers.as_ref()).collect();
    let failed = results.points.len() - measured.len();
    let failed = if failed > 0 { format!(", {failed} of them failed") } else { String::new() };
    fact(&mut facts, "points", format!("{}{failed}", grouped(results.points.len() as f64)));
    let mut repeats: Vec<u32> = measured.iter().map(|numbers| numbers.repeats).collect();
    repeats.sort_unstable();
    if let (Some(min), Some(max)) = (repeats.first(), repeats.last()) {
        let runs: u64 = repeats.iter().map(|count| u64::from(*count)).sum();
        fact(
            &mut facts,
            "runs",
            format!(
                "{}, {min} to {max} a point, half of the points {} or more",
                grouped(runs as f64),
                repeats[repeats.len() / 2]
            ),
        );
        let tight = measured
            .iter()
            .filter(|numbers| numbers.relative_half_width.is_some_and(|width| width <= 0.03))
            .count();
        let part = share(tight as f64, measured.len() as f64).unwrap_or_default();
        fact(
            &mut facts,
            "intervals",
            format!(
                "95 %, of the mean; within 3 % for {tight} of {} points ({part})",
                measured.len()
            ),
        );
    }
    fact(&mut facts, "schema", results.schema.as_str());
    facts
}
