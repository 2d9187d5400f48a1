//! A replay as text and as questions.

use crate::terminal::table;
use application::replay::{ClassResult, Quantity, ReplayDocument};
use machine::text::printable;
use machine::units::{show_rate, show_size_rounded, show_time, significant};
use results::compare::{Measure, Measurement, Reading};

pub(crate) fn measurements(document: &ReplayDocument) -> Vec<Measurement> {
    let exact = document.simulated;
    let asked = |label: String, reading: Reading| Measurement {
        question: label.clone(),
        label,
        kind: "replay".into(),
        readings: vec![Reading { exact, ..reading }],
        ..Measurement::default()
    };
    let runs: Vec<f64> = document.runs_s.iter().map(|seconds| seconds * 1e9).collect();
    let time = asked("whole replay".into(), Reading::of_runs(Measure::Duration, runs));
    let classes = document.classes.iter().filter_map(|one| {
        let p99 = Reading::value(Measure::LatencyP99, one.latency?.p99_ns as f64);
        Some(asked(one.class.to_string(), p99))
    });
    std::iter::once(time).chain(classes).collect()
}

fn seconds(quantity: &Quantity) -> String {
    let interval = quantity.interval_95.map(|[low, high]| {
        format!(" (95 %: {} to {})", show_time(low * 1e9), show_time(high * 1e9))
    });
    show_time(quantity.mean * 1e9) + &interval.unwrap_or_default()
}

pub(crate) fn text(document: &ReplayDocument) -> String {
    let row = |one: &ClassResult| {
        let time = |ns: Option<u64>| ns.map_or_else(String::new, |ns| show_time(ns as f64));
        let (here, then) = (one.latency, one.recorded_latency);
        vec![
            one.class.to_string(),
            one.requests.to_string(),
            show_size_rounded(one.bytes as f64),
            time(here.map(|one| one.p50_ns)),
            time(here.map(|one| one.p99_ns)),
            time(then.map(|one| one.p50_ns)),
            time(then.map(|one| one.p99_ns)),
        ]
    };
    let head = ["requests", "number", "bytes", "p50", "p99", "recorded p50", "recorded p99"];
    let rows: Vec<Vec<String>> = document.classes.iter().map(row).collect();
    let ratio = document.elapsed_s.mean / document.recorded_s;
    let against = if document.recorded_s > 0.0 {
        let recorded = show_time(document.recorded_s * 1e9);
        format!(", {} times the recorded {recorded}", significant(ratio, 3))
    } else {
        String::new()
    };
    let rates = match (&document.requests_per_s, &document.throughput_bytes_per_s) {
        (Some(requests), Some(bytes)) => {
            format!("{} requests/s, {}\n", significant(requests.mean, 3), show_rate(bytes.mean))
        }
        _ => String::new(),
    };
    let pace = match document.speed {
        None => ", without pauses".to_owned(),
        Some(1.0) => String::new(),
        Some(speed) => format!(", pauses divided by {speed}"),
    };
    let simulated = if document.simulated { " (simulated: a prediction)" } else { "" };
    let mut text = format!(
        "{} on {}{simulated}: {}{against}{pace}\n{rates}{}",
        document.trace,
        printable(&document.target),
        seconds(&document.elapsed_s),
        table(&head, &rows, 1)
    );
    for line in document.skipped.sentence().iter().chain(&document.warnings) {
        text += &format!("{}\n", printable(line));
    }
    text
}
