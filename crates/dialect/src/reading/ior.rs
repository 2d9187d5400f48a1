//! IOR's JSON.

use super::case::case;
use results::compare::{Measure, Measurement, Reading};
use serde_json::Value;

pub(super) fn is_report(text: &str) -> bool {
    text.contains("\"bwMiB\"") || text.contains("\"bwMeanMIB\"")
}

const OPTIONS: [&str; 10] = [
    "api",
    "access",
    "type",
    "ordering in a file",
    "nodes",
    "tasks",
    "segments",
    "xfersize",
    "blocksize",
    "aggregate filesize",
];

/// Repetitions are runs.
pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    // IOR prints a banner before it on some systems.
    let from = text.find('{').ok_or("it has no JSON object")?;
    let mut values = serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>();
    let document = values.next().ok_or("it is empty")?.map_err(|error| {
        format!("line {}: {error}", text[..from].matches('\n').count() + error.line())
    })?;
    let tests = document["tests"].as_array().ok_or("it has no \"tests\"")?;
    let mut all = Vec::new();
    for test in tests {
        let options = &test["Options"];
        let results =
            [&test["Results"], &options["Results"]].into_iter().find(|one| one.is_array());
        let results = results.ok_or("a test has no \"Results\"")?;
        let mut rows = Vec::new();
        flatten(results, &mut rows);
        for row in rows {
            let Some(does) = row["access"].as_str() else { continue };
            let mut settings = vec![("does", does.to_string())];
            settings.extend(OPTIONS.map(|name| (name, shown(&options[name]))));
            let mut readings = Vec::new();
            readings.extend(
                row["bwMiB"]
                    .as_f64()
                    .map(|rate| Reading::value(Measure::Throughput, rate * 1_048_576.0)),
            );
            readings.extend(row["iops"].as_f64().map(|rate| Reading::value(Measure::Iops, rate)));
            readings.extend(
                row["latency"].as_f64().map(|s| Reading::value(Measure::LatencyMean, s * 1e9)),
            );
            all.push(case(&format!("{does}s"), &settings, readings));
        }
    }
    Ok(all)
}

/// Some versions have a list per repetition.
fn flatten<'a>(value: &'a Value, rows: &mut Vec<&'a Value>) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| flatten(one, rows)),
        other => rows.push(other),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
