//! The stream: a small state machine that keeps its requests outstanding and issues the next on each completion.
//!
//! It is the same code on the host and on the twin, and all of it is the hot path: no allocation, no
//! lock, no formatting, one histogram entry a request, time passed in.

use crate::histogram::Histogram;
use crate::slices::Slices;
use machine::{Allocation, Asker, CacheState, Completion, Nanos, Next, Op, Request};
use workload::{Cursor, Filler, Sequence, Stop, Workload};

/// Width of the time slices in which completions are counted.
pub(crate) const SLICE_NS: Nanos = 5_000_000;

/// One outstanding request, or the slot of one.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// When it was issued; of a free slot: not to be used before.
    issued: Nanos,
    /// From when its latency counts: the intended time in an open loop, the issue otherwise.
    since: Nanos,
    op: Op,
}

/// When requests are issued by the clock.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Between two requests, in 2^-16 ns: rates of millions per second need fractions.
    interval: u64,
    /// Intended time of the next request, relative to the beginning, in 2^-16 ns.
    next: u64,
}

/// A stream of a workload, and what it has measured.
#[derive(Debug)]
pub struct Stream {
    sequence: Sequence,
    filler: Filler,
    slots: Box<[Slot]>,
    /// Free slots in the order in which they became free.
    free: Box<[u32]>,
    free_head: u32,
    in_flight: u32,
    request: u32,
    writes: bool,
    think: Nanos,
    pace: Option<Pace>,
    run_ns: Nanos,
    ramp: Nanos,
    /// Requests still to be issued; counts down.
    budget: u64,
    deadline: Nanos,
    began: Nanos,
    /// When what is measured begins: the end of the ramp.
    measured_from: Nanos,
    last_event: Nanos,
    slice_end: Nanos,
    measuring: bool,
    completed: u64,
    /// Completed in the ramp.
    before: u64,
    /// Completed in the measured part until the deadline.
    in_time: u64,
    /// Integral of the requests in flight over time.
    depth_area: u128,
    /// Sum of the times from issue to completion.
    service: u64,
    latency: [Histogram; 2],
    slices: Slices,
}

impl Stream {
    /// Stream `index` of a workload in a region of the target (first byte, length).
    ///
    /// # Errors
    /// A workload that does not fit the region.
    pub fn new(
        workload: &Workload,
        region: (u64, u64),
        index: u32,
        cursor: Cursor,
        filler: Filler,
        ramp: Nanos,
    ) -> Result<Stream, workload::Error> {
        let sequence = Sequence::new(workload, region, index, cursor)?;
        let depth = if workload.engine.is_async() { workload.depth } else { 1 };
        let streams = u64::from(workload.threads);
        let askers = if workload.engine.is_async() { streams } else { u64::from(workload.outstanding()) };
        let share = |bytes: u64| bytes.div_ceil(u64::from(workload.request_bytes)).div_ceil(askers).max(1);
        let (run_ns, mut budget) = match workload.stop {
            Stop::AfterNs(ns) => (ns, u64::MAX),
            Stop::AfterBytes(bytes) => (Nanos::MAX / 4, share(bytes)),
        };
        budget = budget.min(workload.limit_bytes.map_or(u64::MAX, share));
        let grows = workload.writes() && workload.allocation != Allocation::Written;
        let cold = workload.cache == CacheState::Cold && !workload.buffering.is_direct();
        if grows || cold {
            // A second pass would find its space written, or its data in the cache, by the first.
            budget = budget.min((sequence.len_blocks() / (askers / streams).max(1)).max(1));
        }
        let pace = workload.rate_iops.map(|rate| {
            let interval = (askers as f64 / rate * 1e9 * 65536.0) as u64;
            // Streams take turns: their requests are spread over the interval.
            Pace { interval, next: interval / askers * u64::from(index) }
        });
        Ok(Stream {
            filler,
            slots: vec![Slot { issued: 0, since: 0, op: Op::Read }; depth as usize].into_boxed_slice(),
            free: (0..depth).collect(),
            free_head: 0,
            in_flight: 0,
            request: workload.request_bytes,
            writes: workload.writes(),
            think: workload.think_ns,
            pace,
            run_ns,
            ramp,
            budget,
            deadline: 0,
            began: 0,
            measured_from: 0,
            last_event: 0,
            slice_end: 0,
            measuring: false,
            completed: 0,
            before: 0,
            in_time: 0,
            depth_area: 0,
            service: 0,
            latency: [Histogram::new(), Histogram::new()],
            slices: Slices::new(0, SLICE_NS),
            sequence,
        })
    }

    /// Starts the measured part at `from`, noticed at `now`, and forgets what the ramp counted.
    #[cold]
    fn measure_from(&mut self, from: Nanos, now: Nanos) {
        self.measuring = true;
        self.measured_from = from;
        self.before = self.completed;
        self.completed = 0;
        self.in_time = 0;
        self.depth_area = u128::from(now - from) * u128::from(self.in_flight);
        self.service = 0;
        self.latency.iter_mut().for_each(Histogram::clear);
        self.slices = Slices::new(from, SLICE_NS);
        self.slices.close(now, 0);
        self.slice_end = self.slices.end();
        // A request that began in the ramp counts from here in the depth, so in the service time too.
        for slot in &mut self.slots {
            slot.issued = slot.issued.max(from);
        }
    }

    #[cold]
    fn at_slice_end(&mut self, now: Nanos) {
        if self.measuring {
            self.slices.close(now, self.completed);
            self.slice_end = self.slices.end();
        } else {
            self.measure_from(self.slice_end, now);
        }
    }

    /// Accounts for the time since the last event.
    #[inline(always)]
    fn pass_to(&mut self, now: Nanos) {
        self.depth_area += u128::from(now - self.last_event) * u128::from(self.in_flight);
        self.last_event = now;
        if now >= self.slice_end {
            self.at_slice_end(now);
        }
    }

    /// Requests completed in the measured part.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Requests completed in all.
    pub fn completed_with_ramp(&self) -> u64 {
        self.before + self.completed
    }

    /// Length of the measured part.
    pub fn measured_ns(&self) -> Nanos {
        // A run that ended within its ramp is measured as a whole.
        self.last_event.saturating_sub(if self.measuring { self.measured_from } else { self.began })
    }

    /// Requests of the measured part that completed until the deadline, and the time until then; none where the stream ended before.
    pub fn until_deadline(&self) -> Option<(u64, Nanos)> {
        (self.measuring && self.last_event >= self.deadline && self.in_time > 0).then(|| (self.in_time, self.deadline - self.measured_from))
    }

    /// Mean requests in flight over the measured part.
    pub fn mean_depth(&self) -> f64 {
        self.depth_area as f64 / self.measured_ns().max(1) as f64
    }

    /// Mean time from issue to completion. With [`Stream::mean_depth`] and the rate it must obey Little's law.
    pub fn mean_service_ns(&self) -> f64 {
        self.service as f64 / self.completed.max(1) as f64
    }

    /// Latencies of reads and of writes.
    pub fn latency(&self) -> &[Histogram; 2] {
        &self.latency
    }

    /// Completions by time.
    pub fn slices(&self) -> &Slices {
        &self.slices
    }
}

impl Asker for Stream {
    fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    fn max_request(&self) -> u32 {
        self.request
    }

    fn writes(&self) -> bool {
        self.writes
    }

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        self.filler.fill_buffers(buffers);
    }

    fn begin(&mut self, now: Nanos) {
        self.began = now;
        self.deadline = now.saturating_add(self.ramp).saturating_add(self.run_ns);
        self.last_event = now;
        self.slice_end = now + self.ramp;
        if self.ramp == 0 {
            self.measure_from(now, now);
        }
    }

    #[inline(always)]
    fn next(&mut self, now: Nanos) -> Next {
        let depth = self.slots.len() as u32;
        if now >= self.deadline || self.budget == 0 {
            return if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion };
        }
        if self.in_flight == depth {
            return Next::WaitForCompletion;
        }
        let index = self.free[self.free_head as usize];
        let mut since = now;
        if let Some(pace) = &mut self.pace {
            let intended = self.began + (pace.next >> 16);
            if intended > now {
                return Next::WaitUntil(intended.min(self.deadline));
            }
            pace.next += pace.interval;
            since = intended;
        }
        let slot = &mut self.slots[index as usize];
        if self.think > 0 && slot.issued > now {
            return Next::WaitUntil(slot.issued.min(self.deadline));
        }
        let (op, offset, len) = self.sequence.next();
        *slot = Slot { issued: now, since, op };
        self.free_head = if self.free_head + 1 == depth { 0 } else { self.free_head + 1 };
        self.pass_to(now);
        self.in_flight += 1;
        self.budget -= 1;
        Next::Issue(Request { op, offset, len, slot: index })
    }

    #[inline(always)]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.pass_to(now);
        let depth = self.slots.len() as u32;
        let slot = &mut self.slots[completion.slot as usize];
        self.latency[slot.op as usize].record(now - slot.since);
        self.service += now - slot.issued;
        // Until then the slot rests.
        slot.issued = now + self.think;
        let tail = self.free_head + depth - self.in_flight;
        self.free[(if tail >= depth { tail - depth } else { tail }) as usize] = completion.slot;
        self.in_flight -= 1;
        self.completed += 1;
        self.in_time += u64::from(now <= self.deadline);
    }

    #[inline(always)]
    fn fill(&mut self, _request: &Request, buffer: &mut [u8]) {
        self.filler.stamp(buffer);
    }
}
