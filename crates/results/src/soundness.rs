//! Finds damage and edits by hand.

use crate::document::Results;
use crate::operation::OperationRate;
use crate::point::{LatencySummary, Numbers, Point};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// Figures that differ by a smaller share are equal.
const ROUNDING: f64 = 0.01;

type Check = Result<(), String>;

pub(crate) fn check(results: &Results) -> Check {
    for (index, point) in results.points.iter().enumerate() {
        check_point(point).map_err(|why| format!("points[{index}]: {why}"))?;
    }
    for (index, rate) in results.rates.iter().enumerate() {
        check_operation(rate)
            .map_err(|why| format!("rates[{index}] ({}): {why}", rate.operation))?;
    }
    Ok(())
}

fn check_point(point: &Point) -> Check {
    let workload = &point.workload.workload;
    for (field, value) in [
        ("request_bytes", workload.request_bytes),
        ("depth", workload.depth),
        ("threads", workload.threads),
    ] {
        if value == 0 {
            return Err(format!("{field} is 0"));
        }
    }
    if workload.read_percent > 100 {
        return Err(format!("read_percent is {}", workload.read_percent));
    }
    match (&point.numbers, &point.error) {
        (Some(numbers), None) => check_numbers(point, numbers),
        (None, Some(_)) => Ok(()),
        (Some(_), Some(_)) => Err("it has numbers and an error".into()),
        (None, None) => {
            Err("it has no error, and its numbers are incomplete or of another type".into())
        }
    }
}

fn check_numbers(point: &Point, numbers: &Numbers) -> Check {
    let rate = numbers.throughput_bytes_per_s;
    not_negative("throughput_bytes_per_s", rate)?;
    not_negative("iops", numbers.iops)?;
    check_interval(rate, numbers.interval_95)?;
    if let Some(width) = numbers.relative_half_width {
        not_negative("relative_half_width", width)?;
    }
    numbers.runs_bytes_per_s.iter().try_for_each(|run| not_negative("runs_bytes_per_s", *run))?;
    let (repeats, runs) = (numbers.repeats as usize, numbers.runs_bytes_per_s.len());
    if repeats == 0 {
        return Err("repeats is 0".into());
    }
    if runs != repeats {
        return Err(format!("repeats is {repeats}, and runs_bytes_per_s has {runs}"));
    }
    if !numbers.runs.is_empty() && numbers.runs.len() != repeats {
        return Err(format!("repeats is {repeats}, and runs has {}", numbers.runs.len()));
    }
    for run in &numbers.runs {
        let [p50, p99, p999] = [run.latency_p50_ns, run.latency_p99_ns, run.latency_p999_ns];
        if !(p50 <= p99 && p99 <= p999) {
            return Err(format!(
                "runs: the percentiles {p50}, {p99} and {p999} ns are out of order"
            ));
        }
        not_negative("runs: cpu_ns_per_request", run.cpu_ns_per_request)?;
    }
    let request = f64::from(point.workload.request_bytes);
    if point.workload.sizes.is_none()
        && (numbers.iops * request - rate).abs() > rate.max(request) * ROUNDING
    {
        let iops = numbers.iops;
        return Err(format!(
            "throughput_bytes_per_s is {rate}, and iops is {iops} with requests of {request} bytes"
        ));
    }
    let latencies = [
        ("latency_ns", Some(&numbers.latency_ns)),
        ("read_latency_ns", numbers.read_latency_ns.as_ref()),
        ("write_latency_ns", numbers.write_latency_ns.as_ref()),
    ];
    latencies
        .iter()
        .filter_map(|(field, one)| Some((field, (*one)?)))
        .try_for_each(|(field, one)| latency(field, one))
}

fn check_operation(rate: &OperationRate) -> Check {
    not_negative("per_s", rate.per_s)?;
    // The rate counts all runs together, the interval is that of their mean: it may leave the rate
    // out.
    rate.interval_95.map_or(Ok(()), in_order)?;
    rate.latency_ns.as_ref().map_or(Ok(()), |one| latency("latency_ns", one))
}

fn not_negative(field: &str, value: f64) -> Check {
    if value >= 0.0 && value.is_finite() { Ok(()) } else { Err(format!("{field} is {value}")) }
}

fn check_interval(rate: f64, interval: Option<[f64; 2]>) -> Check {
    let Some([low, high]) = interval else { return Ok(()) };
    in_order([low, high])?;
    // Runs of different lengths weigh differently in the rate and in the mean that the interval is
    // of.
    let slack = rate * ROUNDING + (high - low) / 2.0;
    match (low - slack..=high + slack).contains(&rate) {
        true => Ok(()),
        false => Err(format!("interval_95 from {low} to {high} does not contain the rate {rate}")),
    }
}

fn in_order([low, high]: [f64; 2]) -> Check {
    match low.is_finite() && high.is_finite() && low <= high {
        true => Ok(()),
        false => Err(format!("interval_95 from {low} to {high} is out of order")),
    }
}

fn latency(field: &str, of: &LatencySummary) -> Check {
    let steps = [of.min, of.p50, of.p90, of.p99, of.p999, of.p9999, of.p99999, of.p999999, of.max];
    if !steps.is_sorted() {
        return Err(format!(
            "{field}: the percentiles {steps:?} ns, from min to max, are out of order"
        ));
    }
    let (low, high) = (of.min as f64 * (1.0 - ROUNDING), of.max as f64 * (1.0 + ROUNDING));
    if (low..=high).contains(&of.mean) {
        return Ok(());
    }
    Err(format!("{field}: the mean {} is not between min {} and max {}", of.mean, of.min, of.max))
}

/// A JSON value in which no object has a key twice.
pub(crate) struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(UniqueKeys)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = UniqueKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeys, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format!("the field '{key}' is there twice")));
            }
            keys.insert(key);
            map.next_value::<UniqueKeys>()?;
        }
        Ok(UniqueKeys)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueKeys, A::Error> {
        while items.next_element::<UniqueKeys>()?.is_some() {}
        Ok(UniqueKeys)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }
}
