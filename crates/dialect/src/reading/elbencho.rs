//! elbencho's CSV.

use super::case::case;
use super::lines::{at, number};
use results::compare::{Measure, Measurement, Reading};

pub(super) fn is_report(text: &str) -> bool {
    text.lines()
        .next()
        .is_some_and(|head| head.contains("MiB/s [last]") && head.contains("operation"))
}

const SETTINGS: [&str; 14] = [
    "label",
    "path type",
    "paths",
    "hosts",
    "threads",
    "dirs",
    "files",
    "file size",
    "block size",
    "direct IO",
    "random",
    "IO depth",
    "shared paths",
    "operation",
];

/// With factors to the measures' units. The first column of a measure that is not empty counts:
/// phases without requests only have latencies of entries.
const FIGURES: [(&str, Measure, f64); 5] = [
    ("IOPS [last]", Measure::Iops, 1.0),
    ("MiB/s [last]", Measure::Throughput, 1_048_576.0),
    ("entries/s [last]", Measure::Operations, 1.0),
    ("IO lat us [avg]", Measure::LatencyMean, 1e3),
    ("Ent lat us [avg]", Measure::LatencyMean, 1e3),
];

/// `[last]` counts until the last thread was done. Repeated lines are runs.
pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let head = reader.headers().map_err(|error| error.to_string())?.clone();
    let mut all = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| error.to_string())?;
        let line = row.position().map_or(0, |position| position.line() as usize).saturating_sub(1);
        // Appended runs repeat the head.
        if row == head {
            continue;
        }
        if row.len() != head.len() {
            return Err(at(
                line,
                format_args!("{} cells, and the head has {}", row.len(), head.len()),
            ));
        }
        let cell = |name: &str| {
            head.iter().position(|column| column == name).and_then(|place| row.get(place))
        };
        let settings = SETTINGS.map(|name| (name, cell(name).unwrap_or_default().to_string()));
        let mut readings: Vec<Reading> = Vec::new();
        for (name, measure, factor) in FIGURES {
            if readings.iter().any(|one| one.measure == measure) {
                continue;
            }
            if let Some(text) = cell(name).filter(|text| !text.is_empty()) {
                readings.push(Reading::value(measure, number(text, line)? * factor));
            }
        }
        let operation = cell("operation").unwrap_or_default().to_lowercase();
        all.push(case(&operation, &settings, readings));
    }
    Ok(all)
}
