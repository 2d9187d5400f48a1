//! sysbench's reports before 1.0, which have totals instead of rates.

use super::case::in_ms;
use super::lines::{at, between, number};
use super::sysbench_settings::Settings;
use results::compare::{Measure, Measurement, Reading};

pub(super) fn is_report(text: &str) -> bool {
    let line = |mark: &str| text.lines().any(|line| line.trim_start().starts_with(mark));
    line("Operations performed: ") && text.contains("Total transferred")
}

#[derive(Default)]
struct Run {
    settings: Settings,
    /// Reads, then writes.
    counts: [f64; 2],
    bytes: [f64; 2],
    seconds: f64,
    latency: Vec<Reading>,
}

impl Run {
    /// A run without a time has no rates.
    fn cases(self) -> Vec<Measurement> {
        let mut cases = Vec::new();
        for (side, does) in ["read", "write"].into_iter().enumerate() {
            let readings = vec![
                Reading::value(Measure::Iops, self.counts[side] / self.seconds),
                Reading::value(Measure::Throughput, self.bytes[side] / self.seconds),
            ];
            cases.push(self.settings.direction(does, readings));
        }
        cases.push(self.settings.case("operations", "all operations", self.latency));
        cases.retain(|one| !one.readings.is_empty());
        cases
    }
}

/// The units are binary.
fn bytes(text: &str, place: usize) -> Result<f64, String> {
    let text = text.trim();
    let units = [
        ("Kb", 1024.0),
        ("Mb", 1_048_576.0),
        ("Gb", 1_073_741_824.0),
        ("Tb", 1_099_511_627_776.0),
        ("b", 1.0),
    ];
    let known = units.into_iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)));
    let (count, unit) = known.ok_or_else(|| at(place, format_args!("'{text}' is not a size")))?;
    Ok(number(count, place)? * unit)
}

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut all = Vec::new();
    let mut run = Run::default();
    for (place, line) in text.lines().map(str::trim).enumerate() {
        if run.settings.keep(line) {
            continue;
        }
        if line.starts_with("sysbench 0") {
            all.extend(std::mem::take(&mut run).cases());
        } else if let Some(counts) = line.strip_prefix("Operations performed:") {
            run.counts = [before(counts, "reads", place)?, before(counts, "writes", place)?];
        } else if line.starts_with("Read ") && line.contains("Total transferred") {
            let parts = line.split("Total").next().unwrap_or_default();
            let of = |name| between(parts, name, "  ").map(|word| bytes(word, place));
            run.bytes = [of("Read ").unwrap_or(Ok(0.0))?, of("Written ").unwrap_or(Ok(0.0))?];
        } else if let Some(seconds) = line.strip_prefix("total time:") {
            run.seconds = number(seconds.trim().trim_end_matches('s'), place)?;
        } else if let Some(ms) = line.strip_prefix("avg:").and_then(|ms| ms.strip_suffix("ms")) {
            run.latency.push(in_ms(Measure::LatencyMean, number(ms, place)?));
        }
    }
    all.extend(run.cases());
    Ok(all)
}

fn before(text: &str, name: &str, place: usize) -> Result<f64, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let index = words.iter().position(|word| word.trim_end_matches(',') == name);
    let count = index.and_then(|index| words.get(index.checked_sub(1)?));
    let count = count.ok_or_else(|| at(place, format_args!("it has no count of {name}")))?;
    number(count, place)
}
