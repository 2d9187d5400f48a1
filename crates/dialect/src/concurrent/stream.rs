//! A stream that a tool shapes and traces.

use super::{Interval, RequestRange, RequestShape, StreamResult, ThreadOrder, Trace};
use machine::{Completion, Nanos, Next, Op, Request, RequestSource};
use measure::Stream;
use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use workload::{Stop, Workload, rng};

const PURPOSE_PLACES: u64 = 0xd15;
const REST_NS: Nanos = 10_000_000;

pub(super) struct Shared {
    pub(super) stonewall: bool,
    pub(super) first_done: AtomicBool,
    /// A stream read wrong data: all stop.
    pub(super) stop: AtomicBool,
}

pub(super) struct ToolStream {
    pub(super) result: StreamResult,
    shape: RequestShape,
    shared: Arc<Shared>,
    region: (u64, u64),
    /// Shift of every offset, modulo the region's length.
    rotate_bytes: u64,
    between: Option<Between>,
    requests: Box<[(Request, Nanos)]>,
    in_flight: u32,
    scratch: Box<[u8]>,
    source_at: usize,
    seed: u64,
    drawn: u64,
    last: Option<u64>,
    in_burst: u32,
    rests_until: Nanos,
    measured_from: Nanos,
    ramp: Nanos,
    pub(super) wrong: Option<u64>,
}

/// Offsets between those of the first thread; they wrap around.
struct Between {
    /// From the region's start.
    first_bytes: u64,
    step_bytes: u64,
    count: u64,
    index: u64,
}

impl Between {
    fn new(thread: u64, request_bytes: u32, shape: &RequestShape) -> Option<Between> {
        let ThreadOrder::Apart { bytes, room_bytes } = shape.threads else { return None };
        let step_bytes = shape.step_bytes.unwrap_or(u64::from(request_bytes));
        let begins = thread * bytes;
        let first_bytes = begins % step_bytes;
        let count = room_bytes.saturating_sub(first_bytes) / step_bytes + 1;
        (first_bytes > 0).then(|| Between {
            first_bytes,
            step_bytes,
            count,
            index: begins / step_bytes % count,
        })
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let place = self.first_bytes + self.index * self.step_bytes;
        self.index = (self.index + 1) % self.count;
        place
    }
}

impl ToolStream {
    /// `region` is the first byte and the length.
    pub(super) fn new(
        stream: Stream,
        thread: u64,
        workload: &Workload,
        shape: &RequestShape,
        region: (u64, u64),
        shared: &Arc<Shared>,
        ramp: Nanos,
    ) -> ToolStream {
        let request = workload.request_bytes;
        let none = (Request { op: Op::Read, target: 0, offset: 0, len: 0, slot: 0 }, 0);
        let expected = match workload.stop {
            Stop::AfterBytes(bytes) if shape.log => bytes / u64::from(request) + 1,
            _ => 0,
        };
        let intervals = match (shape.interval_ns, workload.stop) {
            (Some(width), Stop::AfterNs(run)) => run / width.max(1) + 2,
            _ => 0,
        };
        let trace = Trace {
            log: Vec::with_capacity(expected as usize),
            intervals: vec![[Interval::default(); 2]; intervals as usize],
            ..Trace::default()
        };
        ToolStream {
            requests: vec![none; stream.depth() as usize].into_boxed_slice(),
            shape: shape.clone(),
            shared: shared.clone(),
            region,
            rotate_bytes: if let ThreadOrder::Apart { bytes, .. } = shape.threads {
                thread * bytes
            } else {
                0
            },
            between: Between::new(thread, request, shape),
            in_flight: 0,
            scratch: vec![0; if shape.copy_block.is_some() { request as usize } else { 0 }]
                .into_boxed_slice(),
            source_at: 0,
            seed: rng::derive(workload.seed, PURPOSE_PLACES, thread),
            drawn: 0,
            last: None,
            in_burst: 0,
            rests_until: 0,
            measured_from: 0,
            ramp,
            wrong: None,
            result: StreamResult { stream, trace },
        }
    }

    #[inline]
    fn moved(&mut self, offset: u64, len: u32) -> u64 {
        if let Some(between) = &mut self.between {
            return self.region.0 + between.next();
        }
        if self.rotate_bytes == 0 && self.shape.step_bytes.is_none() {
            return offset;
        }
        let len = u64::from(len);
        let step = self.shape.step_bytes.unwrap_or(len);
        let (index, count) = ((offset - self.region.0) / len, (self.region.1 / len).max(1));
        self.region.0 + (index * step + self.rotate_bytes) % (count * step)
    }

    #[inline]
    fn draw(&mut self, request: &mut Request) {
        if self.shape.follows_percent.is_none() && self.shape.ranges.is_empty() {
            return;
        }
        let drawn = rng::hash(self.seed, self.drawn);
        self.drawn += 1;
        let len = u64::from(request.len);
        let (step, count) = (self.shape.step_bytes.unwrap_or(len), (self.region.1 / len).max(1));
        let follows = self
            .shape
            .follows_percent
            .is_some_and(|percent| rng::below(drawn, 100) < u64::from(percent));
        if let Some(last) = self.last.filter(|_| follows) {
            let end = self.region.0 + (count - 1) * step + len;
            request.offset = if last + 2 * len <= end { last + len } else { self.region.0 };
        } else if !self.shape.ranges.is_empty() {
            request.offset = self.region.0 + self.in_a_range(rng::hash(drawn, 1), count) * step;
        }
        self.last = Some(request.offset);
    }

    fn in_a_range(&self, drawn: u64, count: u64) -> u64 {
        let chance = rng::below(drawn, 100);
        let (mut requests, mut from) = (0, 0);
        for &RequestRange { percent, end } in &self.shape.ranges {
            requests += u64::from(percent);
            // A sum of parts is off by less than a millionth of an offset.
            let to = ((count as f64 * end + 1e-6) as u64).min(count);
            if chance < requests {
                let first = from.min(count - 1);
                return first + rng::below(rng::hash(drawn, 1), to.saturating_sub(first).max(1));
            }
            from = to;
        }
        0
    }

    #[inline]
    fn rest(&mut self, now: Nanos) -> Option<Next> {
        let (count, pause) = self.shape.burst?;
        if self.in_burst >= count {
            (self.in_burst, self.rests_until) = (0, now + pause);
        }
        // Wait in short steps to notice the end of the run.
        let rests = now < self.rests_until && !self.result.stream.is_over(now);
        rests.then(|| Next::WaitUntil(self.rests_until.min(now + REST_NS)))
    }
}

impl Borrow<Stream> for ToolStream {
    fn borrow(&self) -> &Stream {
        &self.result.stream
    }
}

impl RequestSource for ToolStream {
    fn depth(&self) -> u32 {
        self.result.stream.depth()
    }

    fn max_request(&self) -> u32 {
        self.result.stream.max_request()
    }

    fn writes(&self) -> bool {
        self.result.stream.writes()
    }

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        match self.shape.pattern {
            Some(pattern) => buffers
                .chunks_exact_mut(8)
                .for_each(|word| word.copy_from_slice(&pattern.to_le_bytes())),
            None => self.result.stream.fill_buffers(buffers),
        }
    }

    fn begin(&mut self, now: Nanos) {
        self.result.stream.begin(now);
        self.result.trace.began = now;
        self.result.trace.ended = now;
        self.measured_from = now + self.ramp;
    }

    #[inline]
    fn next(&mut self, now: Nanos) -> Next {
        if self.shared.stop.load(Ordering::Relaxed) {
            return if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion };
        }
        if self.shared.stonewall
            && self.result.trace.counted.is_none()
            && self.shared.first_done.load(Ordering::Relaxed)
        {
            self.result.trace.counted = Some((self.result.stream.completed(), now));
        }
        if let Some(rest) = self.rest(now) {
            return rest;
        }
        let next = self.result.stream.next(now);
        match next {
            Next::Issue(mut request) => {
                request.offset = self.moved(request.offset, request.len);
                self.draw(&mut request);
                self.in_burst += 1;
                self.requests[request.slot as usize] = (request, now);
                self.in_flight += 1;
                Next::Issue(request)
            }
            Next::Done => {
                if self.shared.stonewall && self.result.trace.counted.is_none() {
                    self.result.trace.counted =
                        Some((self.result.stream.completed(), self.result.trace.ended));
                    self.shared.first_done.store(true, Ordering::Relaxed);
                }
                Next::Done
            }
            wait => wait,
        }
    }

    #[inline]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.in_flight -= 1;
        self.result.trace.ended = now;
        let (request, issued) = self.requests[completion.slot as usize];
        if self.shape.log {
            self.result.trace.log.push((request.offset, now - issued));
        }
        if let Some(width) = self.shape.interval_ns
            && now >= self.measured_from
            && let Some(interval) =
                self.result.trace.intervals.get_mut(((now - self.measured_from) / width) as usize)
        {
            interval[request.op as usize].add(now - issued);
        }
        self.result.stream.complete(completion, now);
    }

    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        if let Some(source) = &self.shape.source {
            let from = source[self.source_at..].iter().chain(source.iter().cycle());
            buffer.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            self.source_at = (self.source_at + buffer.len()) % source.len();
        } else if self.shape.pattern.is_none() {
            self.result.stream.fill(request, buffer);
        }
    }

    fn checks(&self) -> bool {
        self.shape.pattern.is_some() || self.shape.copy_block.is_some()
    }

    fn check(&mut self, slot: u32, data: &[u8]) {
        if let Some(pattern) = self.shape.pattern {
            let wanted = pattern.to_le_bytes();
            if let Some(at) = data.chunks_exact(8).position(|word| word != wanted) {
                let offset = self.requests[slot as usize].0.offset + at as u64 * 8;
                self.wrong.get_or_insert(offset);
                self.shared.stop.store(true, Ordering::Relaxed);
            }
        }
        if let Some(block) = self.shape.copy_block {
            for (to, from) in self.scratch.chunks_mut(block).zip(data.chunks(block)) {
                to[..from.len()].copy_from_slice(from);
            }
            std::hint::black_box(&self.scratch);
        }
    }
}
