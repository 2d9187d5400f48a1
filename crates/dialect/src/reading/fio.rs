//! Parses fio's JSON.

use super::asked;
use results::compare::{Measure, Measurement, Reading};
use serde_json::Value;

/// Options that identify a case: jobs with equal values are compared.
const SETTINGS: [&str; 12] = [
    "rw",
    "readwrite",
    "bs",
    "bssplit",
    "iodepth",
    "numjobs",
    "ioengine",
    "direct",
    "sync",
    "rwmixread",
    "rate_iops",
    "size",
];

/// Parses the cases of a report, ignoring text before the first brace.
pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let from = text.find('{').ok_or("it has no JSON object")?;
    let document: Value = serde_json::Deserializer::from_str(&text[from..])
        .into_iter()
        .next()
        .ok_or("it is empty")?
        .map_err(|error| error.to_string())?;
    let jobs = document["jobs"].as_array().ok_or("it has no jobs")?;
    let global = &document["global options"];
    Ok(jobs
        .iter()
        .flat_map(|job| {
            ["read", "write", "trim"].into_iter().filter_map(move |does| of(job, global, does))
        })
        .collect())
}

/// One direction of a job; `None`: it is idle.
fn of(job: &Value, global: &Value, does: &str) -> Option<Measurement> {
    let figures = &job[does];
    let number = |value: &Value| value.as_f64().filter(|value| *value > 0.0);
    let iops = number(&figures["iops"])?;
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let option = |name: &str| {
        text(Some(&job["job options"][name]).filter(|one| !one.is_null()).unwrap_or(&global[name]))
    };
    let mut settings = vec![("job", text(&job["jobname"])), ("does", does.to_string())];
    settings.extend(SETTINGS.map(|name| (name, option(name))));
    let mut readings = vec![Reading::value(Measure::Iops, iops)];
    readings
        .extend(number(&figures["bw_bytes"]).map(|rate| Reading::value(Measure::Throughput, rate)));
    let latency = |name: &str| Some(&figures[name]).filter(|one| number(&one["mean"]).is_some());
    if let Some(whole) = latency("lat_ns") {
        readings
            .extend(number(&whole["mean"]).map(|mean| Reading::value(Measure::LatencyMean, mean)));
    }
    let percentiles = ["clat_ns", "lat_ns"].map(|name| &figures[name]["percentile"]);
    for (measure, key) in [
        (Measure::LatencyP50, "50.000000"),
        (Measure::LatencyP99, "99.000000"),
        (Measure::LatencyP999, "99.900000"),
    ] {
        let value = percentiles.iter().find_map(|one| number(&one[key]));
        readings.extend(value.map(|value| Reading::value(measure, value)));
    }
    // Total CPU time of the job: user and system percent of its run time.
    let percent = number(&job["usr_cpu"]).unwrap_or(0.0) + number(&job["sys_cpu"]).unwrap_or(0.0);
    let other: f64 =
        ["read", "write", "trim"].iter().filter_map(|name| number(&job[*name]["iops"])).sum();
    readings.push(Reading::value(Measure::Cpu, percent / 100.0 / other * 1e9));
    let order = if option("rw").contains("rand") || option("readwrite").contains("rand") {
        "random"
    } else {
        "sequential"
    };
    Some(asked(&format!("{order} {does}s"), &settings, readings))
}
