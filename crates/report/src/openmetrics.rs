//! OpenMetrics gauges for node_exporter's textfile collector.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge as Value;
use prometheus_client::registry::{Registry, Unit};
use results::compare::{Comparison, Measure};
use results::{Point, Question, Results};
use std::fmt;
use std::sync::atomic::AtomicU64;

/// Only gauges: the collector's parser lacks newer types, and a single command has no counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gauge {
    Throughput,
    Requests,
    LatencyMean,
    LatencyP50,
    LatencyP99,
    ProcessorTime,
    PublishedBar,
    Measured,
    Failed,
    Finished,
    Slower,
    Change,
}

use Gauge::{
    Change, Failed, Finished, LatencyMean, LatencyP50, LatencyP99, Measured, ProcessorTime,
    PublishedBar, Requests, Slower, Throughput,
};

/// Name without prefix and unit, unit, and help.
const GAUGES: [(Gauge, &str, &str, &str); 12] = [
    (Throughput, "throughput", "bytes_per_second", "Mean rate of the runs"),
    (Requests, "requests", "per_second", "Requests per second"),
    (LatencyMean, "latency_mean", "seconds", "Mean time from issue to completion"),
    (LatencyP50, "latency_p50", "seconds", "Median time from issue to completion"),
    (LatencyP99, "latency_p99", "seconds", "99th percentile of the time from issue to completion"),
    (ProcessorTime, "processor_time_per_request", "seconds", "Processor time per request"),
    (PublishedBar, "latency_goal_met", "", "1 if the p99 is within its goal, else 0"),
    (Measured, "points_measured", "", "Measured points of the command"),
    (Failed, "points_failed", "", "Failed points of the command"),
    (Finished, "finished_timestamp", "seconds", "Unix time at which the command ended"),
    (Slower, "check_slower", "", "1 if the check found the target slower than allowed, else 0"),
    (Change, "check_change", "ratio", "Rate of the check divided by the rate of the baseline"),
];

const NS_PER_S: f64 = 1e9;

const PREFIX: &str = "halfpower";

type Labels = Vec<(&'static str, String)>;

/// Of one or several targets.
#[derive(Debug)]
pub struct OpenMetrics {
    registry: Registry,
    families: Vec<Family<Labels, Value<f64, AtomicU64>>>,
}

impl Default for OpenMetrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let register = |&(_, name, unit, help): &(Gauge, &str, &str, &str)| {
            let family = Family::default();
            if unit.is_empty() {
                registry.register(name, help, Family::clone(&family));
            } else {
                let unit = Unit::Other(unit.to_owned());
                registry.register_with_unit(name, help, unit, Family::clone(&family));
            }
            family
        };
        let families = GAUGES.iter().map(register).collect();
        OpenMetrics { registry, families }
    }
}

impl OpenMetrics {
    pub fn names() -> Vec<String> {
        let name = |(_, name, unit, _): &(Gauge, &str, &str, &str)| match *unit {
            "" => format!("{PREFIX}_{name}"),
            unit => format!("{PREFIX}_{name}_{unit}"),
        };
        GAUGES.iter().map(name).collect()
    }

    fn set(&self, gauge: Gauge, labels: &Labels, value: f64) {
        let named = GAUGES.iter().zip(&self.families).find(|((one, ..), _)| *one == gauge);
        if let Some((_, family)) = named {
            family.get_or_create(labels).set(value);
        }
    }

    /// The peaks of a study, or every point of another command.
    pub fn add(&mut self, results: &Results) {
        let target = vec![("target", results.target.name.clone())];
        let shown: Vec<&Point> = match &results.answer {
            Some(answer) => answer.peaks.iter().map(|peak| &results.points[peak.point]).collect(),
            None => results.points.iter().collect(),
        };
        for point in shown {
            let Some(numbers) = &point.numbers else { continue };
            let labels = of_point(&target, point);
            let latency = &numbers.latency_ns;
            for (gauge, value) in [
                (Throughput, numbers.throughput_bytes_per_s),
                (Requests, numbers.iops),
                (LatencyMean, latency.mean / NS_PER_S),
                (LatencyP50, latency.p50 as f64 / NS_PER_S),
                (LatencyP99, latency.p99 as f64 / NS_PER_S),
                (ProcessorTime, numbers.cpu_ns_per_request.process() / NS_PER_S),
            ] {
                self.set(gauge, &labels, value);
            }
        }
        for goal in &results.latency_goals {
            let first = goal.points.first().map(|&index| of_point(&target, &results.points[index]));
            let labels = first.unwrap_or_else(|| target.clone());
            self.set(PublishedBar, &labels, f64::from(u8::from(goal.best.is_some())));
        }
        let failed = results.points.iter().filter(|point| point.numbers.is_none()).count();
        let ended = results.began_unix_s as f64 + results.elapsed_ns as f64 / NS_PER_S;
        self.set(Measured, &target, (results.points.len() - failed) as f64);
        self.set(Failed, &target, failed as f64);
        self.set(Finished, &target, ended);
    }

    pub fn add_check(&mut self, results: &Results, comparison: &Comparison, slower: bool) {
        let target = vec![("target", results.target.name.clone())];
        self.set(Slower, &target, f64::from(u8::from(slower)));
        for one in comparison.differences.iter().filter(|one| one.measure == Measure::Throughput) {
            let same = |point: &&Point| Question::of(&point.workload).to_string() == one.question;
            if let (Some(point), true) = (results.points.iter().find(same), one.a > 0.0) {
                self.set(Change, &of_point(&target, point), one.b / one.a);
            }
        }
    }

    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// The question distinguishes what the other labels do not name.
fn of_point(target: &Labels, point: &Point) -> Labels {
    let workload = &point.workload;
    let mut labels = target.clone();
    labels.extend([
        ("op", workload.op().to_string()),
        ("pattern", workload.pattern.to_string()),
        ("request_bytes", workload.request_bytes.to_string()),
        ("depth", workload.depth.to_string()),
        ("threads", workload.threads.to_string()),
        ("workload", Question::of(workload).to_string()),
    ]);
    labels
}
