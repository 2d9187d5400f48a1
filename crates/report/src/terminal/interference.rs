//! Interference between workloads.

use super::{Tone, paint, table, wrap};
use crate::format::rate;
use machine::text::printable;
use machine::units::{show_time, significant};
use measure::stats::Ratio;
use results::{Interference, Results};

fn times(ratio: Option<Ratio>, plain: f64) -> String {
    match ratio {
        Some(Ratio { mean, low, high, .. }) => {
            format!("{} ({}–{})", significant(mean, 3), significant(low, 3), significant(high, 3))
        }
        None => significant(plain, 3),
    }
}

/// Ratios of rounds cancel drift, so they are not the quotients of the figures next to them.
fn quotients_differ(results: &Results, found: &Interference) -> Option<&'static str> {
    const NOTICEABLE: f64 = 0.02;
    let differs = |ratio: Option<Ratio>, alone: f64, together: f64| {
        ratio.is_some_and(|ratio| (ratio.mean * alone / together - 1.0).abs() > NOTICEABLE)
    };
    let any = found.workloads.iter().any(|one| {
        let Some(alone) = &results.points[one.point].numbers else { return false };
        let rates = (alone.throughput_bytes_per_s, one.throughput_bytes_per_s);
        let p99 = (alone.latency_ns.p99 as f64, one.latency_ns.p99 as f64);
        differs(one.throughput_ratio, rates.0, rates.1) || differs(one.p99_ratio, p99.0, p99.1)
    });
    any.then_some(
        "times is the typical ratio of one round, which drift does not disturb; the rates and the p99 next to it cover all rounds",
    )
}

pub(super) fn interference(
    results: &Results,
    found: &Interference,
    width: usize,
    colour: bool,
) -> String {
    let mut out = String::new();
    for line in wrap(&found.sentence, width) {
        out.push_str(&paint(Tone::Strong, &line, colour));
        out.push('\n');
    }
    let header =
        ["workload", "target", "alone", "at once", "times", "p99 alone", "at once", "times"];
    let header: Vec<String> = header.map(str::to_owned).into();
    let several = found.workloads.iter().any(|one| one.target != found.workloads[0].target);
    let mut rows = Vec::new();
    for one in &found.workloads {
        let point = &results.points[one.point];
        let Some(alone) = &point.numbers else { continue };
        let p99 = alone.latency_ns.p99;
        rows.push(vec![
            printable(&point.workload.short()),
            if several { printable(&one.target) } else { String::new() },
            rate(alone.throughput_bytes_per_s),
            rate(one.throughput_bytes_per_s),
            times(one.throughput_ratio, one.throughput_bytes_per_s / alone.throughput_bytes_per_s),
            show_time(p99 as f64),
            show_time(one.latency_ns.p99 as f64),
            times(one.p99_ratio, one.latency_ns.p99 as f64 / p99.max(1) as f64),
        ]);
    }
    let dropped = usize::from(!several);
    let keep = |cells: Vec<String>| -> Vec<String> {
        cells
            .into_iter()
            .enumerate()
            .filter(|(place, _)| several || *place != 1)
            .map(|(_, cell)| cell)
            .collect()
    };
    let rows: Vec<Vec<String>> = rows.into_iter().map(keep).collect();
    out.push_str(&table(&keep(header), &rows, 2 - dropped, width, colour));
    if let Some(line) = quotients_differ(results, found) {
        for line in wrap(line, width) {
            out.push_str(&paint(Tone::Quiet, &line, colour));
            out.push('\n');
        }
    }
    let processor = format!(
        "processor: {} a MiB together, {} separately; together they keep {} processors busy",
        show_time(found.process_ns_per_mib),
        show_time(found.process_ns_per_mib_alone),
        significant(found.process_busy_percent / 100.0, 2)
    );
    for line in wrap(&processor, width) {
        out.push_str(&line);
        out.push('\n');
    }
    out
}
