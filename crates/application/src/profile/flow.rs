//! Figures of one kind of requests.

use crate::Latency;
use apptrace::Request;
use machine::Nanos;
use measure::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Other sizes count to the next power of two.
const MAX_SIZES: usize = 64;

/// The unit of file systems and devices.
pub const BLOCK_BYTES: u64 = 4096;

/// Requests of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeCount {
    pub bytes: u64,
    pub requests: u64,
}

/// Reads or writes of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowProfile {
    pub requests: u64,
    /// Bytes read or written.
    pub bytes: u64,
    pub errors: u64,
    /// Request sizes, the most frequent first.
    pub sizes: Vec<SizeCount>,
    /// Share of the requests that begin where the one before them in the file ended; `None` if the
    /// recording shows no offsets.
    pub sequential: Option<f64>,
    /// Share of the requests that begin within the one before them in the file and end no earlier:
    /// a log's last block is written again as it fills.
    pub rewrites: Option<f64>,
    /// Mean number of requests in a sequential run.
    pub run_requests: Option<f64>,
    /// Share of the requests whose start and size are multiples of 4 KiB.
    pub aligned: Option<f64>,
    /// Share of the requests with O_DIRECT.
    pub direct: f64,
    /// Share of the requests that are on stable storage when they are done.
    pub durable: f64,
    pub latency: Option<Latency>,
    /// Time that threads spent in these requests.
    pub waited_ns: Nanos,
}

/// Takes memory only when used.
#[derive(Default)]
pub(super) struct Times(Option<Histogram>);

impl Times {
    pub(super) fn record(&mut self, ns: Nanos) {
        self.0.get_or_insert_default().record(ns);
    }

    pub(super) fn merge(&mut self, other: Times) {
        match (&mut self.0, other.0) {
            (Some(own), Some(other)) => own.merge(&other),
            (own @ None, other) => *own = other,
            (Some(_), None) => {}
        }
    }

    pub(super) fn latency(&self) -> Option<Latency> {
        self.0.as_ref().and_then(Latency::of)
    }
}

#[derive(Default)]
pub(super) struct Flow {
    pub(super) requests: u64,
    pub(super) bytes: u64,
    errors: u64,
    sizes: BTreeMap<u64, u64>,
    /// With a known offset.
    located: u64,
    sequential: u64,
    rewrites: u64,
    aligned: u64,
    direct: u64,
    pub(super) durable: u64,
    latency: Times,
    pub(super) waited_ns: Nanos,
    last: Option<(u64, u64)>,
    appends: Appends,
}

/// Earlier requests that one may continue: some arrive out of order.
const RECENT: usize = 4;

/// In mean requests; in smaller extents random ones often follow by chance.
const MIN_REQUESTS_OF_EXTENT: u64 = 32;

#[derive(Default)]
struct Appends {
    recent: [Option<(u64, u64)>; RECENT],
    next: usize,
    extent: Option<(u64, u64)>,
    bytes: u64,
    /// Continue the one before, or write its end again.
    strict: u64,
    /// As `strict`, or next to another recent one.
    near: u64,
    /// As `near`, without writes of the same end again.
    forward: u64,
    /// At a lower offset than the one before.
    backward: u64,
}

impl Appends {
    fn add(&mut self, start: u64, end: u64) {
        let before = (self.next + RECENT - 1) % RECENT;
        if let Some((start_before, end_before)) = self.recent[before] {
            let is_again = (start_before..end_before).contains(&start) && end >= end_before;
            let is_strict = start == end_before || is_again;
            let is_near = is_strict
                || self.recent.iter().flatten().any(|recent| recent.1 == start || recent.0 == end);
            self.strict += u64::from(is_strict);
            self.near += u64::from(is_near);
            self.backward += u64::from(start < start_before);
            self.forward += u64::from(is_near && !(is_again && end == end_before));
        }
        self.recent[self.next] = Some((start, end));
        self.next = (self.next + 1) % RECENT;
        self.bytes = self.bytes.saturating_add(end - start);
        let (first, last) = self.extent.unwrap_or((start, end));
        self.extent = Some((first.min(start), last.max(end)));
    }

    fn share(&self, requests: u64) -> f64 {
        if self.forward == 0 {
            return 0.0;
        }
        let extent = self.extent.map_or(0, |(first, last)| last - first);
        let is_wide =
            extent.saturating_mul(requests) >= self.bytes.saturating_mul(MIN_REQUESTS_OF_EXTENT);
        let continued = if is_wide { self.near } else { self.strict };
        continued.saturating_sub(self.backward) as f64 / requests.saturating_sub(1).max(1) as f64
    }
}

impl Flow {
    pub(super) fn add(&mut self, request: &Request) {
        self.requests += 1;
        match request.result {
            Some(done) => self.bytes += u64::try_from(done).unwrap_or(0),
            None => self.bytes += request.bytes,
        }
        self.errors += u64::from(request.result.is_some_and(|done| done < 0));
        let size = match self.sizes.contains_key(&request.bytes) || self.sizes.len() < MAX_SIZES {
            true => request.bytes,
            false => request.bytes.checked_next_power_of_two().unwrap_or(u64::MAX),
        };
        *self.sizes.entry(size).or_default() += 1;
        if let Some(offset) = request.offset {
            self.located += 1;
            let end = offset.saturating_add(request.bytes);
            if let Some((start_before, end_before)) = self.last {
                self.sequential += u64::from(offset == end_before);
                let is_again = (start_before..end_before).contains(&offset) && end >= end_before;
                self.rewrites += u64::from(is_again);
            }
            self.last = Some((offset, end));
            self.appends.add(offset, end);
            let is_aligned =
                offset.is_multiple_of(BLOCK_BYTES) && request.bytes.is_multiple_of(BLOCK_BYTES);
            self.aligned += u64::from(is_aligned);
        }
        self.direct += u64::from(request.open.direct);
        self.durable += u64::from(request.open.dsync);
        if let Some(duration) = request.duration_ns {
            self.latency.record(duration);
            self.waited_ns += duration;
        }
    }

    pub(super) fn sequential(&self) -> f64 {
        self.sequential as f64 / self.located.saturating_sub(1).max(1) as f64
    }

    pub(super) fn appended(&self) -> f64 {
        self.appends.share(self.located)
    }

    pub(super) fn profile(&self) -> Option<FlowProfile> {
        if self.requests == 0 {
            return None;
        }
        let share = |count: u64| count as f64 / self.requests as f64;
        let of_located =
            |count: u64| (self.located > 0).then(|| count as f64 / self.located as f64);
        let mut sizes: Vec<SizeCount> =
            self.sizes.iter().map(|(&bytes, &requests)| SizeCount { bytes, requests }).collect();
        sizes.sort_by_key(|size| std::cmp::Reverse(size.requests));
        Some(FlowProfile {
            requests: self.requests,
            bytes: self.bytes,
            errors: self.errors,
            sizes,
            sequential: (self.located > 0).then(|| self.sequential()),
            rewrites: of_located(self.rewrites),
            run_requests: (self.located > 0)
                .then(|| self.located as f64 / (self.located - self.sequential) as f64),
            aligned: of_located(self.aligned),
            direct: share(self.direct),
            durable: share(self.durable),
            latency: self.latency.latency(),
            waited_ns: self.waited_ns,
        })
    }
}
