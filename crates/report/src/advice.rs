//! Changes worth making.

use crate::format::grouped;
use machine::units::{show_time, significant};
use results::{Answer, Finding, Goal, Results};
use workload::Pattern;

/// Costs that change by a smaller factor are not shown.
const NOTABLE: f64 = 1.25;

pub(crate) struct Row {
    pub(crate) change: String,
    pub(crate) gain: String,
    /// `p99 ×4.6, CPU −69 %`, or `none`.
    pub(crate) cost: String,
}

pub(crate) fn rows(answer: &Answer, results: &Results) -> Vec<Row> {
    let row = |finding: &Finding| Row {
        change: finding.title.clone(),
        gain: gain(finding),
        cost: cost(finding, results),
    };
    answer.findings.iter().map(row).collect()
}

pub(crate) fn gain(finding: &Finding) -> String {
    // If runs repeat exactly, the interval is the gain itself.
    let interval =
        finding.gain_interval_95.map(|ends| ends.map(factor)).filter(|[low, high]| low != high);
    let interval = interval.map(|[low, high]| format!(" ({low}–{high})")).unwrap_or_default();
    format!("×{}{interval}", factor(finding.gain))
}

pub(crate) fn factor(value: f64) -> String {
    if value >= 99.5 { grouped(value.round()) } else { significant(value, 3) }
}

fn cost(finding: &Finding, results: &Results) -> String {
    let p99 = finding.p99_ns.map(|[before, after]| (before as f64, after as f64));
    // Too few requests for a p99 are enough for a mean.
    let mean = |point: usize| Some(results.points.get(point)?.numbers.as_ref()?.latency_ns.mean);
    let [before, after] = finding.points;
    let (name, latency) = match p99 {
        Some(_) => ("p99", p99),
        None => ("latency", mean(before).zip(mean(after))),
    };
    let cpu = finding.cpu_ns_per_mib.map(|[before, after]| (before, after));
    let notable = |name: &str, values: Option<(f64, f64)>| {
        let (before, after) = values.filter(|(before, _)| *before > 0.0)?;
        match after / before {
            ratio if ratio >= NOTABLE => Some(format!("{name} ×{}", significant(ratio, 2))),
            ratio if ratio <= 1.0 / NOTABLE => {
                Some(format!("{name} −{:.0} %", (1.0 - ratio) * 100.0))
            }
            _ => None,
        }
    };
    let all: Vec<String> = notable(name, latency)
        .into_iter()
        .chain(notable("CPU", cpu))
        .chain(ends_with_the_credit(finding, results).then(|| "burst only".into()))
        .collect();
    match (all.is_empty(), latency.is_some() || cpu.is_some()) {
        (false, _) => all.join(", "),
        (true, true) => "none".into(),
        (true, false) => "not measured".into(),
    }
}

/// A layer sustains less than the rate with the change.
fn ends_with_the_credit(finding: &Finding, results: &Results) -> bool {
    let after = results.points.get(finding.points[1]);
    let Some((rate, workload)) = after.and_then(|point| Some((point.rate()?, &point.workload)))
    else {
        return false;
    };
    let layers = results.target.layers.iter();
    let mut bursts = layers.flat_map(|layer| &layer.facts.bursts);
    // A layer may count requests in sequence as one.
    workload.pattern == Pattern::Random
        && bursts.any(|one| rate > one.sustained_bytes_per_s(workload.request_bytes) * NOTABLE)
}

pub(crate) fn figures(finding: &Finding) -> String {
    let p99 = finding.p99_ns.map(|[before, after]| {
        format!("p99 {}, was {}", show_time(after as f64), show_time(before as f64))
    });
    let cpu = finding.cpu_ns_per_mib.map(|[before, after]| {
        format!("CPU {} a MiB, was {}", show_time(after), show_time(before))
    });
    p99.into_iter().chain(cpu).collect::<Vec<_>>().join("; ")
}

pub(crate) fn nothing_to_change(answer: &Answer) -> &'static str {
    let plain_is_enough = !answer.plain.is_empty()
        && answer.plain.iter().all(|one| one.reaches == Some(Goal::NinetyPercent));
    if plain_is_enough {
        "Nothing: a plain program already gets 90 % of the peak or more."
    } else {
        "No change gained enough to be sure of it."
    }
}
