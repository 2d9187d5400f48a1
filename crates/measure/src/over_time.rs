use crate::histogram::Histogram;
use crate::observed::{Observed, Observer};
use crate::stream::Stream;
use machine::{Completion, Nanos};
use serde::{Deserialize, Serialize};
use workload::Interval;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IntervalSample {
    /// From the measured part's beginning.
    pub from_ns: Nanos,
    pub until_ns: Nanos,
    /// If the load changes.
    pub offered_iops: Option<f64>,
    pub completed: u64,
    /// Requests due but not issued before the run ended.
    pub not_issued: u64,
    /// Of requests due in the interval; without a schedule, issued in it.
    pub latency: Histogram,
}

#[derive(Debug, Clone)]
struct Counts {
    completed: u64,
    latency: Histogram,
}

pub(crate) struct Intervals {
    /// Each interval's end, from the measured part's beginning.
    ends: Box<[Nanos]>,
    counts: Box<[Counts]>,
}

impl Intervals {
    pub(crate) fn new(intervals: &[Interval]) -> Intervals {
        let none = Counts { completed: 0, latency: Histogram::new() };
        Intervals {
            ends: intervals.iter().map(|one| one.until_ns).collect(),
            counts: vec![none; intervals.len()].into_boxed_slice(),
        }
    }

    fn at(&mut self, measured_from: Nanos, time: Nanos) -> Option<&mut Counts> {
        let passed = time.checked_sub(measured_from)?;
        let place = self.ends.partition_point(|end| *end <= passed);
        self.counts.get_mut(place)
    }
}

impl Observer for Intervals {
    fn ended(&mut self, stream: &Stream, completion: Completion, now: Nanos) {
        let (since, from) = (stream.since(completion.slot), stream.measured_from());
        if let Some(counts) = self.at(from, since) {
            counts.latency.record(now - since);
        }
        if let Some(counts) = self.at(from, now) {
            counts.completed += 1;
        }
    }
}

pub(crate) fn interval_samples(
    streams: &[Observed<Intervals>],
    intervals: &[Interval],
) -> Vec<IntervalSample> {
    let left: Vec<Vec<u64>> = streams.iter().map(|one| one.stream.not_issued()).collect();
    let sample = |(place, interval): (usize, &Interval)| {
        let mut latency = Histogram::new();
        streams.iter().for_each(|stream| latency.merge(&stream.observer.counts[place].latency));
        let of_step = |step: usize| left.iter().filter_map(|left| left.get(step)).sum();
        IntervalSample {
            from_ns: interval.from_ns,
            until_ns: interval.until_ns,
            offered_iops: interval.step.map(|step| step.1),
            completed: streams.iter().map(|stream| stream.observer.counts[place].completed).sum(),
            not_issued: interval.step.map_or(0, |step| of_step(step.0)),
            latency,
        }
    };
    intervals.iter().enumerate().map(sample).collect()
}
