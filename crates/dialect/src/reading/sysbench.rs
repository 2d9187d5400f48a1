//! sysbench's reports (1.0).

use super::case::in_ms;
use super::lines::number;
use super::sysbench_settings::Settings;
use results::compare::{Measure, Measurement, Reading};

pub(super) fn is_report(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "File operations:") && text.contains("reads/s:")
}

#[derive(Default)]
struct Run {
    settings: Settings,
    /// By direction: requests and bytes per second.
    rates: [[f64; 2]; 2],
    fsyncs: f64,
    latency: Vec<Reading>,
}

impl Run {
    fn cases(self) -> Vec<Measurement> {
        let mut cases = Vec::new();
        for (does, [rate, bytes]) in ["read", "write"].into_iter().zip(self.rates) {
            let readings = vec![
                Reading::value(Measure::Iops, rate),
                Reading::value(Measure::Throughput, bytes),
            ];
            cases.push(self.settings.direction(does, readings));
        }
        let fsyncs = vec![Reading::value(Measure::Operations, self.fsyncs)];
        cases.push(self.settings.case("fsyncs", "fsync", fsyncs));
        // Its latencies are of all operations together.
        cases.push(self.settings.case("operations", "all operations", self.latency));
        cases.retain(|one| !one.readings.is_empty());
        cases
    }
}

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut all = Vec::new();
    let mut run = Run::default();
    let mut in_latency = false;
    for (place, line) in text.lines().map(str::trim).enumerate() {
        if run.settings.keep(line) {
            continue;
        }
        let value = |prefix: &str| line.strip_prefix(prefix).map(|text| number(text, place));
        if let Some(version) = line.strip_prefix("sysbench ") {
            if version.starts_with(|first: char| first.is_ascii_digit()) {
                all.extend(std::mem::take(&mut run).cases());
            }
        } else if let Some(rate) = value("reads/s:") {
            run.rates[0][0] = rate?;
        } else if let Some(rate) = value("writes/s:") {
            run.rates[1][0] = rate?;
        } else if let Some(rate) = value("fsyncs/s:") {
            run.fsyncs = rate?;
        } else if let Some(rate) = value("read, MiB/s:") {
            run.rates[0][1] = rate? * 1_048_576.0;
        } else if let Some(rate) = value("written, MiB/s:") {
            run.rates[1][1] = rate? * 1_048_576.0;
        } else if line == "Latency (ms):" {
            in_latency = true;
        } else if in_latency {
            let measure = match line.split_once(':') {
                Some(("avg", value)) => Some((Measure::LatencyMean, value)),
                Some(("99th percentile", value)) => Some((Measure::LatencyP99, value)),
                Some(("50th percentile", value)) => Some((Measure::LatencyP50, value)),
                _ => None,
            };
            if let Some((measure, ms)) = measure {
                run.latency.push(in_ms(measure, number(ms, place)?));
            }
            in_latency = !line.is_empty();
        }
    }
    all.extend(run.cases());
    Ok(all)
}
