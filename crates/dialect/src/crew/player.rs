//! A stream with a tool's shape around it.

use super::{Job, Notes, SETTLE_NS, Shape};
use crate::asking::of_the_stream;
use machine::{Asker, Completion, Nanos, Next, Op, Request};
use measure::Stream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// What all streams of a run share.
pub(super) struct Common {
    pub(super) expected: usize,
    pub(super) ready: AtomicUsize,
    /// When all begin; 0: not yet known.
    pub(super) start: AtomicU64,
    pub(super) stonewall: bool,
    /// Somebody is done: the others' counts end here.
    pub(super) first_done: AtomicBool,
    /// Somebody has failed: nothing more is issued.
    pub(super) stop: AtomicBool,
}

/// A stream with the tool's shape around it.
pub(super) struct Player {
    pub(super) stream: Stream,
    shape: Shape,
    common: Arc<Common>,
    /// First byte and length of the region that offsets stay in.
    region: (u64, u64),
    requests: Box<[(Request, Nanos)]>,
    in_flight: u32,
    scratch: Box<[u8]>,
    /// Where the next write begins in the data of [`Shape::source`].
    source_at: usize,
    pub(super) notes: Notes,
    measured_from: Nanos,
    ramp: Nanos,
    started: bool,
    announced: bool,
    pub(super) wrong: Option<u64>,
}

impl Player {
    pub(super) fn new(stream: Stream, job: &Job, region: (u64, u64), common: &Arc<Common>, ramp: Nanos) -> Player {
        let request = job.workload.request_bytes;
        let none = (Request { op: Op::Read, offset: 0, len: 0, slot: 0 }, 0);
        let expected = match job.workload.stop {
            workload::Stop::AfterBytes(bytes) if job.shape.log => bytes / u64::from(request) + 1,
            _ => 0,
        };
        let intervals = match (job.shape.interval_ns, job.workload.stop) {
            (Some(width), workload::Stop::AfterNs(run)) => run / width.max(1) + 2,
            _ => 0,
        };
        Player {
            requests: vec![none; stream.depth() as usize].into_boxed_slice(),
            shape: job.shape.clone(),
            common: common.clone(),
            region,
            in_flight: 0,
            scratch: vec![0; if job.shape.copy_block.is_some() { request as usize } else { 0 }].into_boxed_slice(),
            source_at: 0,
            notes: Notes { log: Vec::with_capacity(expected as usize), intervals: vec![[0; 2]; intervals as usize], ..Notes::default() },
            measured_from: 0,
            ramp,
            started: false,
            announced: false,
            wrong: None,
            stream,
        }
    }

    /// Waits for the common start; `None` once it has come.
    fn before_start(&mut self, now: Nanos) -> Option<Next> {
        let common = &self.common;
        if !self.announced {
            self.announced = true;
            if common.ready.fetch_add(1, Ordering::AcqRel) + 1 == common.expected {
                common.start.store((now + if common.expected > 1 { SETTLE_NS } else { 0 }).max(1), Ordering::Release);
            }
        }
        match common.start.load(Ordering::Acquire) {
            // A run that fails elsewhere before the start never begins.
            0 if common.stop.load(Ordering::Relaxed) => Some(Next::Done),
            0 => Some(Next::WaitUntil(now + SETTLE_NS / 4)),
            start if start > now => Some(Next::WaitUntil(start)),
            _ => {
                self.started = true;
                self.stream.begin(now);
                self.notes.began = now;
                self.notes.ended = now;
                self.measured_from = now + self.ramp;
                None
            }
        }
    }

    /// Where a request of the workload goes.
    #[inline]
    fn place(&self, offset: u64, len: u32) -> u64 {
        if self.shape.rotate_bytes == 0 && self.shape.step_bytes.is_none() {
            return offset;
        }
        let len = u64::from(len);
        let step = self.shape.step_bytes.unwrap_or(len);
        let (index, places) = ((offset - self.region.0) / len, (self.region.1 / len).max(1));
        self.region.0 + (index * step + self.shape.rotate_bytes) % (places * step)
    }
}

impl Asker for Player {
    of_the_stream!();

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        match self.shape.pattern {
            Some(pattern) => buffers.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&pattern.to_le_bytes())),
            None => self.stream.fill_buffers(buffers),
        }
    }

    fn begin(&mut self, _now: Nanos) {}

    #[inline]
    fn next(&mut self, now: Nanos) -> Next {
        if !self.started
            && let Some(wait) = self.before_start(now)
        {
            return wait;
        }
        if self.common.stop.load(Ordering::Relaxed) {
            return if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion };
        }
        if self.common.stonewall && self.notes.counted.is_none() && self.common.first_done.load(Ordering::Relaxed) {
            self.notes.counted = Some((self.stream.completed(), now));
        }
        let next = self.stream.next(now);
        match next {
            Next::Issue(mut request) => {
                request.offset = self.place(request.offset, request.len);
                self.requests[request.slot as usize] = (request, now);
                self.in_flight += 1;
                Next::Issue(request)
            }
            Next::Done => {
                if self.common.stonewall && self.notes.counted.is_none() {
                    self.notes.counted = Some((self.stream.completed(), self.notes.ended));
                    self.common.first_done.store(true, Ordering::Relaxed);
                }
                Next::Done
            }
            wait => wait,
        }
    }

    #[inline]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.in_flight -= 1;
        self.notes.ended = now;
        let (request, issued) = self.requests[completion.slot as usize];
        if self.shape.log {
            self.notes.log.push((request.offset, now - issued));
        }
        if let Some(width) = self.shape.interval_ns
            && now >= self.measured_from
            && let Some(count) = self.notes.intervals.get_mut(((now - self.measured_from) / width) as usize)
        {
            count[request.op as usize] += 1;
        }
        self.stream.complete(completion, now);
    }

    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        if let Some(source) = &self.shape.source {
            let from = source[self.source_at..].iter().chain(source.iter().cycle());
            buffer.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            self.source_at = (self.source_at + buffer.len()) % source.len();
        } else if self.shape.pattern.is_none() {
            self.stream.fill(request, buffer);
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
                self.common.stop.store(true, Ordering::Relaxed);
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
