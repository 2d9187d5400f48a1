use super::case::case;
use results::compare::{Measure, Measurement, Reading};
use serde_json::Value;

/// Jobs with equal values are compared.
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
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut runs: Vec<Value> = Vec::new();
    let mut from = text.find('{').ok_or("it has no JSON object")?;
    loop {
        let mut values = serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>();
        let document = values.next().ok_or("it is empty")?.map_err(|error| {
            let before = text[..from].matches('\n').count();
            format!("line {}: {error}", before + error.line())
        })?;
        // A later report of the same run replaces an earlier one (status-interval).
        if runs.last().is_some_and(|last| is_unfinished(last, &document)) {
            runs.pop();
        }
        runs.push(document);
        from += values.byte_offset();
        match text[from..].find('{') {
            Some(next) => from += next,
            None => break,
        }
    }
    let mut all = Vec::new();
    for run in &runs {
        all.extend(cases(run)?);
    }
    Ok(all)
}

/// `next` is a later report of the same run if that began before `report` was written. `elapsed` is
/// in seconds, rounded up.
fn is_unfinished(report: &Value, next: &Value) -> bool {
    let written_ms = |one: &Value| one["timestamp_ms"].as_f64();
    let began_ms =
        |one: &Value| Some(written_ms(one)? - one["jobs"][0]["elapsed"].as_f64()? * 1000.0);
    matches!((written_ms(report), began_ms(next)), (Some(written), Some(began)) if began < written - 1000.0)
}

/// Clones ran at once, so they are one case, even with their own entries.
fn cases(document: &Value) -> Result<Vec<Measurement>, String> {
    let jobs = document["jobs"].as_array().ok_or("it has no jobs")?;
    let global = &document["global options"];
    let mut cases: Vec<(Case, Vec<&Value>)> = Vec::new();
    for job in jobs {
        for does in DIRECTIONS.into_iter().filter(|does| positive(&job[*does]["iops"]).is_some()) {
            let case = Case::of(job, global, does);
            match cases.iter_mut().find(|(known, _)| *known == case) {
                Some((_, clones)) => clones.push(job),
                None => cases.push((case, vec![job])),
            }
        }
    }
    Ok(cases.into_iter().map(|(case, clones)| case.measured(&clones)).collect())
}

fn positive(value: &Value) -> Option<f64> {
    value.as_f64().filter(|value| *value > 0.0)
}

#[derive(PartialEq)]
struct Case {
    /// Groups run one after the other.
    group: Option<u64>,
    does: &'static str,
    settings: Vec<(&'static str, String)>,
}

impl Case {
    fn of(job: &Value, global: &Value, does: &'static str) -> Case {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let option = |name: &str| {
            let own = Some(&job["job options"][name]).filter(|one| !one.is_null());
            text(own.unwrap_or(&global[name]))
        };
        let mut settings = vec![("job", text(&job["jobname"])), ("does", does.to_string())];
        settings.extend(SETTINGS.map(|name| (name, option(name))));
        Case { group: job["groupid"].as_u64(), does, settings }
    }

    fn measured(self, clones: &[&Value]) -> Measurement {
        let figures: Vec<&Value> = clones.iter().map(|job| &job[self.does]).collect();
        let sum = |name: &str| figures.iter().filter_map(|one| positive(&one[name])).sum::<f64>();
        let mut readings = vec![
            Reading::value(Measure::Iops, sum("iops")),
            Reading::value(
                Measure::Throughput,
                figures.iter().filter_map(|one| bandwidth(one)).sum(),
            ),
        ];
        readings.extend(mean(&figures).map(|mean| Reading::value(Measure::LatencyMean, mean)));
        for (measure, key) in [
            (Measure::LatencyP50, "50.000000"),
            (Measure::LatencyP99, "99.000000"),
            (Measure::LatencyP999, "99.900000"),
        ] {
            readings.extend(percentile(&figures, key).map(|value| Reading::value(measure, value)));
        }
        readings.extend(cpu_ns(clones).map(|ns| Reading::value(Measure::Cpu, ns)));
        let random = |(name, value): &(&str, String)| {
            ["rw", "readwrite"].contains(name) && value.contains("rand")
        };
        let order = if self.settings.iter().any(random) { "random" } else { "sequential" };
        case(&format!("{order} {}s", self.does), &self.settings, readings)
    }
}

/// fio before 3.0 only has KiB/s.
fn bandwidth(one: &Value) -> Option<f64> {
    positive(&one["bw_bytes"]).or_else(|| Some(positive(&one["bw"])? * 1024.0))
}

/// The field and its factor to ns; fio before 2.99 has us.
fn latency<'a>(one: &'a Value, name: &str) -> (&'a Value, f64) {
    let ns = &one[format!("{name}_ns").as_str()];
    if ns.is_null() { (&one[name], 1e3) } else { (ns, 1.0) }
}

/// In ns, over all requests.
fn mean(figures: &[&Value]) -> Option<f64> {
    let mean = |one: &Value| {
        let (lat, to_ns) = latency(one, "lat");
        Some(positive(&lat["mean"])? * to_ns)
    };
    let [only] = figures else {
        let (mut ns, mut requests) = (0.0, 0.0);
        for one in figures {
            // Every clone must have both.
            let count = positive(&one["total_ios"])?;
            ns += mean(one)? * count;
            requests += count;
        }
        return Some(ns / requests);
    };
    mean(only)
}

/// Clones can only be combined from buckets (`json+`).
fn percentile(figures: &[&Value], key: &str) -> Option<f64> {
    ["clat", "lat"].iter().find_map(|name| match figures {
        [only] => {
            let (lat, to_ns) = latency(only, name);
            Some(positive(&lat["percentile"][key])? * to_ns)
        }
        several => {
            let mut buckets: Vec<(u64, u64)> = Vec::new();
            for one in several {
                let counts =
                    latency(one, name).0["bins"].as_object().filter(|bins| !bins.is_empty())?;
                for (ns, count) in counts {
                    buckets.push((ns.parse().ok()?, count.as_u64()?));
                }
            }
            buckets.sort_unstable();
            let wanted = key.parse::<f64>().ok()? / 100.0
                * buckets.iter().map(|(_, count)| *count as f64).sum::<f64>();
            let mut below = 0;
            let reached = buckets.iter().find(|(_, count)| {
                below += count;
                below as f64 >= wanted
            });
            reached.map(|(ns, _)| *ns as f64)
        }
    })
}

/// Per request. The percentages are of the run time of all clones of an entry.
fn cpu_ns(clones: &[&Value]) -> Option<f64> {
    let (mut ns, mut requests) = (0.0, 0.0);
    for job in clones {
        let percent =
            positive(&job["usr_cpu"]).unwrap_or(0.0) + positive(&job["sys_cpu"]).unwrap_or(0.0);
        let sum = |name: &str| {
            DIRECTIONS.iter().filter_map(|does| positive(&job[*does][name])).sum::<f64>()
        };
        match (positive(&job["job_runtime"]), sum("total_ios")) {
            (Some(ms), count) if count > 0.0 => {
                (ns, requests) = (ns + percent / 100.0 * ms * 1e6, requests + count);
            }
            // Reports of fio before 3.0.
            _ => (ns, requests) = (ns + percent / 100.0 * 1e9, requests + sum("iops")),
        }
    }
    (requests > 0.0).then(|| ns / requests)
}
