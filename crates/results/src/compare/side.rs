use super::measure::Measure;
use crate::document::{Kind, Results};
use crate::operation::OperationRate;
use crate::point::{Numbers, Point, RunNumbers, folded_warnings};
use crate::question::Question;
use crate::rate_change::RateChange;
use machine::units::show_size;
use workload::OpKind;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Side {
    /// A file or a target.
    pub name: String,
    /// In document order.
    pub asked: Vec<Measurement>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measurement {
    /// The same on both sides.
    pub question: String,
    pub label: String,
    /// In column order.
    pub keys: Vec<(String, String)>,
    /// Such as `random reads`.
    pub kind: String,
    /// Empty if the question failed.
    pub readings: Vec<Reading>,
    pub error: Option<String>,
    pub changed: Option<RateChange>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub measure: Measure,
    /// In the measure's unit.
    pub value: f64,
    /// By the value's own estimator.
    pub interval_95: Option<[f64; 2]>,
    /// Empty if only the mean is known.
    pub runs: Vec<f64>,
    /// Readings never differ (simulated machine).
    pub exact: bool,
}

impl Reading {
    pub fn value(measure: Measure, value: f64) -> Reading {
        Reading { measure, value, interval_95: None, runs: Vec::new(), exact: false }
    }

    pub fn of_runs(measure: Measure, runs: Vec<f64>) -> Reading {
        let value = runs.iter().sum::<f64>() / runs.len().max(1) as f64;
        Reading { measure, value, interval_95: None, runs, exact: false }
    }
}

pub(super) fn kind(op: OpKind, pattern: &str) -> String {
    let order = match pattern {
        "seq" | "together" => "sequential",
        other => other.split(':').next().unwrap_or(other),
    };
    let does = match op {
        OpKind::Read => "reads",
        OpKind::Write => "writes",
        OpKind::Mix => "mixes",
    };
    format!("{order} {does}")
}

impl Side {
    pub fn of(name: &str, results: &Results) -> Side {
        let exact = results.machine.simulated;
        let mut asked: Vec<Measurement> =
            results.points.iter().map(|point| of_point(point, exact)).collect();
        if results.kind == Kind::Postmark {
            asked.extend(results.rates.iter().filter_map(|rate| whole_run(rate, exact)));
        }
        asked.extend(results.rates.iter().map(of_rate));
        let mut warnings = results.warnings.clone();
        warnings.extend(
            folded_warnings(results.points.iter())
                .into_iter()
                .filter(|one| !results.warnings.contains(one)),
        );
        Side { name: name.into(), asked, warnings }
    }

    /// Joins equal questions: repeated runs of other tools repeat their report.
    pub fn join_repeats(mut self) -> Side {
        let mut joined: Vec<Measurement> = Vec::with_capacity(self.asked.len());
        for one in self.asked {
            match joined.iter_mut().find(|known| known.question == one.question) {
                Some(known) => known.add_run(&one),
                None => joined.push(one),
            }
        }
        self.asked = joined;
        self
    }
}

impl Measurement {
    fn add_run(&mut self, run: &Measurement) {
        for reading in &mut self.readings {
            let Some(more) = run.readings.iter().find(|more| more.measure == reading.measure)
            else {
                continue;
            };
            if reading.runs.is_empty() {
                reading.runs.push(reading.value);
            }
            reading.runs.push(more.value);
            *reading = Reading::of_runs(reading.measure, std::mem::take(&mut reading.runs));
        }
    }
}

/// Returns whether a rate that changed while measured may explain the whole difference: one rate is
/// within the other's range.
pub(super) fn changing(a: &Measurement, b: &Measurement) -> bool {
    let range = |asked: &Measurement| {
        let rate = asked.readings.iter().find(|reading| reading.measure == Measure::Throughput)?;
        let [low, high] =
            rate.interval_95.filter(|_| asked.changed.is_none()).unwrap_or([rate.value; 2]);
        let [min, max] = asked.changed.as_ref().map_or([low, high], RateChange::range);
        Some([min.min(low), max.max(high)])
    };
    let overlap = range(a).zip(range(b)).is_some_and(|([a_low, a_high], [b_low, b_high])| {
        // A rate that equals the other's is within its range.
        a_low <= b_high * ALIKE && b_low <= a_high * ALIKE
    });
    overlap && (a.changed.is_some() || b.changed.is_some())
}

/// Rates closer than this factor are equal.
const ALIKE: f64 = 1.1;

fn of_point(point: &Point, exact: bool) -> Measurement {
    let readings =
        point.numbers.as_ref().map(|numbers| of_numbers(numbers, exact)).unwrap_or_default();
    let changed = point.numbers.as_ref().and_then(|numbers| numbers.rate_change.clone());
    Measurement { readings, error: point.error.clone(), changed, ..asked(point) }
}

/// Without figures.
pub fn asked(point: &Point) -> Measurement {
    let workload = &point.workload;
    let keys = [
        ("op", point.operation()),
        ("pattern", workload.pattern.to_string()),
        ("request", show_size(u64::from(workload.request_bytes))),
        ("depth", workload.depth.to_string()),
        ("threads", workload.threads.to_string()),
        ("engine", workload.engine.name().to_string()),
        ("mode", point.mode()),
        ("shift", show_size(workload.offset_bytes)),
    ];
    Measurement {
        question: Question::of(workload).text().into(),
        label: workload.short(),
        keys: keys.map(|(name, value)| (name.to_string(), value)).to_vec(),
        kind: kind(workload.op, &workload.pattern.to_string()),
        ..Measurement::default()
    }
}

fn of_numbers(numbers: &Numbers, exact: bool) -> Vec<Reading> {
    // Earlier documents hold the rate including the flush separately from the rate until the last
    // write returned.
    let (rate, interval_95, rates) =
        match (numbers.achieved.synced_bytes_per_s, numbers.achieved.returned_bytes_per_s) {
            (Some(synced), None) => (synced, numbers.achieved.synced_interval_95, Vec::new()),
            _ => (
                numbers.throughput_bytes_per_s,
                numbers.interval_95,
                numbers.runs_bytes_per_s.clone(),
            ),
        };
    let runs = |value: fn(&RunNumbers) -> f64| numbers.runs.iter().map(value).collect::<Vec<f64>>();
    // Requests and bytes per second change alike: one of them is enough.
    let mut readings = vec![Reading {
        measure: Measure::Throughput,
        value: rate,
        interval_95,
        runs: rates,
        exact,
    }];
    for (measure, value, runs) in [
        (Measure::LatencyP50, numbers.latency_ns.p50 as f64, runs(|run| run.latency_p50_ns as f64)),
        (Measure::LatencyP99, numbers.latency_ns.p99 as f64, runs(|run| run.latency_p99_ns as f64)),
        (
            Measure::LatencyP999,
            numbers.latency_ns.p999 as f64,
            runs(|run| run.latency_p999_ns as f64),
        ),
        (Measure::Cpu, numbers.cpu_ns_per_request.process(), runs(|run| run.cpu_ns_per_request)),
    ] {
        // Mean and interval come from one estimator: that of the runs, if there are several.
        let reading = if runs.len() > 1 {
            Reading::of_runs(measure, runs)
        } else {
            Reading::value(measure, value)
        };
        readings.push(Reading { exact, ..reading });
    }
    readings
}

/// A PostMark run creates files from beginning to end.
pub(super) fn whole_run(rate: &OperationRate, exact: bool) -> Option<Measurement> {
    let whole = rate.operation == "create" && rate.per_s > 0.0;
    let time = Reading::value(Measure::Duration, rate.count as f64 / rate.per_s * 1e9);
    whole.then(|| of_operation("whole run", &rate.settings, vec![Reading { exact, ..time }]))
}

pub(super) fn of_rate(rate: &OperationRate) -> Measurement {
    let mut readings = vec![Reading {
        interval_95: rate.interval_95,
        ..Reading::value(Measure::Operations, rate.per_s)
    }];
    if let Some(latency) = &rate.latency_ns {
        readings.push(Reading::value(Measure::LatencyP50, latency.p50 as f64));
        readings.push(Reading::value(Measure::LatencyP99, latency.p99 as f64));
        readings.push(Reading::value(Measure::LatencyP999, latency.p999 as f64));
    }
    readings.extend(rate.cpu_ns.map(|cpu| Reading::value(Measure::Cpu, cpu)));
    of_operation(&rate.operation, &rate.settings, readings)
}

fn of_operation(operation: &str, settings: &str, readings: Vec<Reading>) -> Measurement {
    Measurement {
        question: format!("{operation} {settings}"),
        label: if settings.is_empty() {
            operation.to_owned()
        } else {
            format!("{operation}, {settings}")
        },
        keys: vec![
            ("operation".into(), operation.to_owned()),
            ("settings".into(), settings.to_owned()),
        ],
        kind: operation.to_owned(),
        readings,
        ..Measurement::default()
    }
}
