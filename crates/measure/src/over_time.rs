//! Latencies of each interval of a run.

use crate::histogram::Histogram;
use crate::stream::Stream;
use machine::{Completion, Nanos, Next, Request, RequestSource};
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use workload::Interval;

/// The requests of an interval.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IntervalSample {
    /// Start, from the beginning of the measured part.
    pub from_ns: Nanos,
    /// End, from the beginning of the measured part.
    pub until_ns: Nanos,
    /// Requests per second of the load in this interval, if it changes over time.
    pub offered_iops: Option<f64>,
    /// Requests completed within the interval.
    pub completed: u64,
    /// Requests of this interval's step of the load that were due and not issued before the run
    /// ended.
    pub not_issued: u64,
    /// Latency of reads and writes that were due in the interval; without a schedule, of those
    /// issued in it.
    pub latency: Histogram,
}

#[derive(Debug, Clone)]
struct Counts {
    completed: u64,
    latency: Histogram,
}

/// A stream that keeps the latencies of each interval apart.
pub(crate) struct IntervalStream {
    stream: Stream,
    /// Ends of the intervals, from the beginning of the measured part.
    ends: Box<[Nanos]>,
    counts: Box<[Counts]>,
}

impl IntervalStream {
    pub(crate) fn new(stream: Stream, intervals: &[Interval]) -> IntervalStream {
        let none = Counts { completed: 0, latency: Histogram::new() };
        IntervalStream {
            stream,
            ends: intervals.iter().map(|one| one.until_ns).collect(),
            counts: vec![none; intervals.len()].into_boxed_slice(),
        }
    }

    /// The interval of this time on the machine's clock; `None` before the first and after the
    /// last.
    fn at(&mut self, time: Nanos) -> Option<&mut Counts> {
        let passed = time.checked_sub(self.stream.measured_from())?;
        let place = self.ends.partition_point(|end| *end <= passed);
        self.counts.get_mut(place)
    }
}

impl Borrow<Stream> for IntervalStream {
    fn borrow(&self) -> &Stream {
        &self.stream
    }
}

impl RequestSource for IntervalStream {
    fn depth(&self) -> u32 {
        self.stream.depth()
    }

    fn max_request(&self) -> u32 {
        self.stream.max_request()
    }

    fn writes(&self) -> bool {
        self.stream.writes()
    }

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        self.stream.fill_buffers(buffers);
    }

    fn begin(&mut self, now: Nanos) {
        self.stream.begin(now);
    }

    fn next(&mut self, now: Nanos) -> Next {
        self.stream.next(now)
    }

    fn complete(&mut self, completion: Completion, now: Nanos) {
        let since = self.stream.since(completion.slot);
        if let Some(counts) = self.at(since) {
            counts.latency.record(now - since);
        }
        if let Some(counts) = self.at(now) {
            counts.completed += 1;
        }
        self.stream.complete(completion, now);
    }

    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        self.stream.fill(request, buffer);
    }
}

/// The sums of several streams.
pub(crate) fn interval_samples(
    streams: &[IntervalStream],
    intervals: &[Interval],
) -> Vec<IntervalSample> {
    let left: Vec<Vec<u64>> = streams.iter().map(|one| one.stream.not_issued()).collect();
    let sample = |(place, interval): (usize, &Interval)| {
        let mut latency = Histogram::new();
        streams.iter().for_each(|stream| latency.merge(&stream.counts[place].latency));
        let of_step = |step: usize| left.iter().filter_map(|left| left.get(step)).sum();
        IntervalSample {
            from_ns: interval.from_ns,
            until_ns: interval.until_ns,
            offered_iops: interval.step.map(|step| step.1),
            completed: streams.iter().map(|stream| stream.counts[place].completed).sum(),
            not_issued: interval.step.map_or(0, |step| of_step(step.0)),
            latency,
        }
    };
    intervals.iter().enumerate().map(sample).collect()
}
