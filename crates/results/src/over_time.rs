use crate::point::LatencySummary;
use machine::units::show_time;
use machine::{Figure, Nanos, Warning};
use measure::Sample;
use measure::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A step of a load that changes over time, or a window of a run; several runs are merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalNumbers {
    /// Start of the interval, from the beginning of the measured part of a run.
    pub from_ns: Nanos,
    /// End of the interval, from the beginning of the measured part of a run.
    pub until_ns: Nanos,
    /// Requests per second of the load, if it changes over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_iops: Option<f64>,
    /// Requests per second that completed in the interval.
    pub iops: f64,
    /// Requests due in the interval's step and not issued before the run ended, over all runs. They
    /// have no latency.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_issued: u64,
    /// Latency of the requests that were due in the interval (without a load: issued in it); absent
    /// if there was none.
    pub latency_ns: Option<LatencySummary>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// With less of a step's rate, the run did not keep up.
const KEPT_UP: f64 = 0.98;

impl IntervalNumbers {
    /// `30 s to 90 s`.
    pub fn span(&self) -> String {
        let [from, until] = [self.from_ns, self.until_ns].map(|ns| show_time(ns as f64));
        format!("{from} to {until}")
    }

    fn is_behind(&self) -> bool {
        self.offered_iops.is_some_and(|rate| self.iops < rate * KEPT_UP) || self.is_censored()
    }

    /// The latency of requests that were never issued is unknown.
    fn is_censored(&self) -> bool {
        let issued = self.latency_ns.as_ref().map_or(0, |latency| latency.count) as f64;
        self.not_issued as f64 > (issued + self.not_issued as f64) * (1.0 - KEPT_UP)
    }
}

pub(crate) fn over_time(samples: &[&Sample]) -> Vec<IntervalNumbers> {
    let Some(first) = samples.first() else { return Vec::new() };
    let merged = |place: usize| {
        let runs = || samples.iter().filter_map(move |sample| sample.intervals.get(place));
        let mut latency = Histogram::new();
        runs().for_each(|run| latency.merge(&run.latency));
        let one = &first.intervals[place];
        let seconds = (one.until_ns - one.from_ns) as f64 / 1e9 * runs().count() as f64;
        IntervalNumbers {
            from_ns: one.from_ns,
            until_ns: one.until_ns,
            offered_iops: one.offered_iops,
            iops: runs().map(|run| run.completed).sum::<u64>() as f64 / seconds,
            not_issued: runs().map(|run| run.not_issued).sum(),
            latency_ns: (!latency.is_empty()).then(|| LatencySummary::from(&latency)),
        }
    };
    (0..first.intervals.len()).map(merged).collect()
}

pub(crate) fn behind(intervals: &[IntervalNumbers]) -> Option<Warning> {
    let late: Vec<&IntervalNumbers> = intervals.iter().filter(|one| one.is_behind()).collect();
    let first = late.first()?;
    let more = match late.len() - 1 {
        0 => Warning::from(""),
        more => Warning::of(", and so in {} more", [Figure::count(more as u64)]),
    };
    let censored = if late.iter().any(|one| one.is_censored()) {
        "; requests that were still due at the end have no latency, so it is understated"
    } else {
        ""
    };
    let rates = [first.iops, first.offered_iops.unwrap_or_default()];
    Some(
        Warning::from(format!("from {} only ", first.span()))
            .then(Warning::of(
                "{} of the {} requests per second of the load completed",
                rates.map(|rate| Figure::rounded(rate, 0)),
            ))
            .then(more)
            .then(censored),
    )
}
