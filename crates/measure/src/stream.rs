//! All of this module is the hot path: no allocation, no lock, no formatting.

mod source;

use crate::histogram::Histogram;
use crate::live::{SecondMark, WatchedRun};
use crate::pace::Pace;
use crate::slices::Slices;
use machine::live::Reading;
use machine::{Allocation, CacheState, Nanos, Next, Op, Request};
use workload::{Cursor, Filler, Pattern, Sequence, Stop, Workload};

pub(crate) const SLICE_NS: Nanos = 5_000_000;

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The scheduled time in an open loop, otherwise the time of issue.
    since: Nanos,
    offset: u64,
    len: u32,
    next: u32,
    op: Op,
}

const NO_SLOT: u32 = u32::MAX;

/// Shares differ by at most one.
fn part_of(whole: u64, k: u64, parts: u64) -> u64 {
    let at = |k: u64| (u128::from(whole) * u128::from(k) / u128::from(parts.max(1))) as u64;
    at(k + 1) - at(k)
}

#[derive(Debug)]
pub struct Stream {
    sequence: Sequence,
    filler: Filler,
    slots: Box<[Slot]>,
    /// Last in, first out; if slots pause, first in, first out.
    free: u32,
    free_last: u32,
    in_flight: u32,
    /// When each slot's pause between completion and issue ends.
    rests: Box<[Nanos]>,
    request: u32,
    writes: bool,
    think: Nanos,
    pace: Option<Pace>,
    run_ns: Nanos,
    ramp: Nanos,
    /// Bytes left to request when the sequence was at `settled`; counts down to 0.
    budget: i64,
    /// Up to this place in the sequence, requests are taken off `budget`.
    settled: u64,
    ends_whole: bool,
    /// Bytes of the last request over the budget.
    beyond: i64,
    deadline: Nanos,
    /// Until then a free slot is enough to issue; 0 if other conditions apply.
    plain_until: Nanos,
    began: Nanos,
    measured_from: Nanos,
    last_event: Nanos,
    slice_end: Nanos,
    /// A slice's end, or 1 ns past the deadline.
    next_mark: Nanos,
    measuring: bool,
    before: u64,
    /// Requests completed until the deadline, once it has passed.
    in_time: Option<u64>,
    bytes: u64,
    bytes_before: u64,
    /// Latencies in ns: before the issue, and within the ramp.
    not_served: u64,
    abandoned_ns: u64,
    latency: [Histogram; 2],
    slices: Slices,
    shown: Reading,
    second: Option<Box<SecondMark>>,
}

impl Stream {
    /// `region`: first byte and length. `hand` numbers the sources that share one cursor; sources
    /// divide a limit on bytes.
    pub fn new(
        workload: &Workload,
        region: (u64, u64),
        (index, hand): (u32, u32),
        cursor: Cursor,
        filler: Filler,
        ramp: Nanos,
    ) -> Result<Stream, workload::Error> {
        let sequence = Sequence::new(workload, region, index, cursor)?;
        let depth = if workload.engine.is_async() { workload.depth } else { 1 };
        let streams = u64::from(workload.threads);
        let sources =
            if workload.engine.is_async() { streams } else { u64::from(workload.outstanding()) };
        let together = sources / streams.max(1);
        let source = u64::from(index) * together + u64::from(hand);
        let unit = u64::from(workload.min_request_bytes());
        // Requests of a single size are never cut; the last of several sizes is.
        let requests =
            |bytes: u64| if workload.sizes.is_some() { bytes.div_ceil(unit) } else { bytes / unit };
        let share = |bytes: u64| part_of(requests(bytes), source, sources).saturating_mul(unit);
        let (run_ns, mut budget) = match workload.stop {
            Stop::AfterNs(ns) => (ns, u64::MAX),
            Stop::AfterBytes(bytes) => (Nanos::MAX / 4, share(bytes)),
        };
        budget = budget.min(workload.limit_bytes.map_or(u64::MAX, share));
        let grows = workload.writes() && workload.allocation != Allocation::Written;
        let cold = workload.cache == CacheState::Cold && !workload.buffering.is_direct();
        if grows || cold {
            // A second pass would find the space already written or the data cached.
            let pass = if workload.sizes.is_some() {
                sequence.span().1.div_ceil(unit)
            } else {
                sequence.len_blocks()
            };
            let part = if workload.pattern == Pattern::Together {
                part_of(pass, source, sources)
            } else {
                part_of(pass, u64::from(hand), together)
            };
            budget = budget.min(part.saturating_mul(unit));
        }
        let pace = Pace::new(workload, (source, sources));
        let mut stream = Stream {
            filler,
            slots: (1..=depth)
                .map(|next| Slot {
                    since: 0,
                    offset: 0,
                    len: 0,
                    next: if next == depth { NO_SLOT } else { next },
                    op: Op::Read,
                })
                .collect(),
            free: 0,
            free_last: depth - 1,
            in_flight: 0,
            rests: vec![0; if workload.think_ns > 0 { depth as usize } else { 0 }]
                .into_boxed_slice(),
            request: workload.request_bytes,
            writes: workload.writes(),
            think: workload.think_ns,
            pace,
            run_ns,
            ramp,
            // 8 EiB are as good as no limit.
            budget: i64::try_from(budget).unwrap_or(i64::MAX),
            settled: 0,
            ends_whole: false,
            beyond: 0,
            deadline: 0,
            plain_until: 0,
            began: 0,
            measured_from: 0,
            last_event: 0,
            slice_end: 0,
            next_mark: 0,
            measuring: false,
            before: 0,
            in_time: None,
            bytes: 0,
            bytes_before: 0,
            not_served: 0,
            abandoned_ns: 0,
            latency: [Histogram::new(), Histogram::new()],
            slices: Slices::new(0, SLICE_NS),
            shown: Reading::default(),
            second: None,
            sequence,
        };
        stream.count_from_here();
        Ok(stream)
    }

    #[cold]
    fn measure_from(&mut self, from: Nanos, now: Nanos) {
        self.shown = Reading { bytes: self.bytes, ..Reading::default() };
        if let Some(second) = &mut self.second {
            second.begin(from, self.bytes);
        }
        self.measuring = true;
        self.measured_from = from;
        self.before += self.completed();
        self.bytes_before = self.bytes;
        self.in_time = None;
        self.abandoned_ns = 0;
        self.latency.iter_mut().for_each(Histogram::clear);
        self.slices = Slices::new(from, SLICE_NS);
        self.slices.close(now, 0);
        self.slice_end = self.slices.end();
        // A request that started in the ramp counts from here for the depth, and thus also for the
        // service time.
        self.not_served = self.passed_in_flight(from);
    }

    fn passed_in_flight(&self, until: Nanos) -> u64 {
        let passed = |slot: &Slot| until.saturating_sub(slot.since);
        let all: u64 = self.slots.iter().map(passed).sum();
        let free = std::iter::successors(self.slots.get(self.free as usize), |slot| {
            self.slots.get(slot.next as usize)
        });
        all - free.map(passed).sum::<u64>()
    }

    /// Restarts the measured part. Nothing may be in flight.
    #[cold]
    pub fn measure_anew(&mut self, now: Nanos) {
        self.advance_clock(now);
        self.measure_from(now, now);
        self.deadline = now.saturating_add(self.run_ns);
        self.plain_until = if self.plain_until > 0 { self.deadline } else { 0 };
        self.next_mark = self.slice_end.min(self.deadline.saturating_add(1));
    }

    fn show(&mut self) {
        let now = Reading {
            requests: self.completed(),
            bytes: self.bytes,
            latency_ns: self.latencies_ns(),
        };
        machine::live::REQUESTS.add(Reading {
            requests: now.requests - self.shown.requests,
            bytes: now.bytes - self.shown.bytes,
            latency_ns: now.latency_ns - self.shown.latency_ns,
        });
        self.shown = now;
    }

    #[cold]
    #[inline(never)]
    fn at_mark(&mut self, now: Nanos) {
        if now >= self.slice_end {
            if self.measuring {
                self.slices.close(now, self.completed());
                self.slice_end = self.slices.end();
                self.show();
                if let Some(second) = self.second.as_mut().filter(|second| second.is_over(now)) {
                    second.next(now, self.bytes, &self.latency);
                }
            } else {
                self.measure_from(self.slice_end, now);
            }
        }
        if self.in_time.is_none() && now > self.deadline {
            self.in_time = Some(self.completed());
        }
        self.next_mark = if self.in_time.is_some() {
            self.slice_end
        } else {
            self.slice_end.min(self.deadline.saturating_add(1))
        };
    }

    #[inline(always)]
    fn advance_clock(&mut self, now: Nanos) {
        self.last_event = now;
        if now >= self.next_mark {
            self.at_mark(now);
        }
    }

    #[inline(always)]
    fn take(&mut self, slot: u32) -> Request {
        let (op, offset, len) = match self.sequence.next_short() {
            Some(request) => request,
            None => self.take_counted(),
        };
        Request { op, target: 0, offset, len, slot }
    }

    /// Takes uncounted requests off the budget. Only requests that leave some budget pass
    /// uncounted.
    fn settle(&mut self) {
        let taken = self.sequence.place() - self.settled;
        self.budget -= (taken * u64::from(self.request)) as i64;
        self.settled = self.sequence.place();
    }

    fn count_from_here(&mut self) {
        self.settled = self.sequence.place();
        self.sequence.limit_short(self.budget.max(0) as u64);
    }

    #[inline(never)]
    fn take_counted(&mut self) -> (Op, u64, u32) {
        self.settle();
        let (op, offset, mut len) = self.sequence.next();
        self.budget -= i64::from(len);
        if self.budget <= 0 {
            self.beyond = -self.budget;
            // The last request takes the remaining bytes.
            len = if self.ends_whole { len } else { (i64::from(len) + self.budget) as u32 };
            self.budget = 0;
            self.plain_until = 0;
        }
        self.count_from_here();
        (op, offset, len)
    }

    /// Returns `None` if no slot is free or the fast path ends.
    #[inline(always)]
    fn issue_short(&mut self, since: Nanos) -> Option<Request> {
        // [`NO_SLOT`] is beyond the slots.
        let slot = self.slots.get_mut(self.free as usize)?;
        let (op, offset, len) = self.sequence.next_short()?;
        let request = Request { op, target: 0, offset, len, slot: self.free };
        self.in_flight += 1;
        *slot = Slot { since, offset, len, op, next: slot.next };
        self.free = slot.next;
        Some(request)
    }

    #[inline(never)]
    fn issue(&mut self, index: u32, since: Nanos) -> Request {
        self.in_flight += 1;
        let request = self.take(index);
        let slot = &mut self.slots[index as usize];
        slot.since = since;
        slot.offset = request.offset;
        slot.len = request.len;
        slot.op = request.op;
        self.free = slot.next;
        request
    }

    /// For a request without a slot that has completed but is not counted yet.
    #[cold]
    #[inline(never)]
    fn at_mark_alone(&mut self, since: Nanos, now: Nanos) {
        (self.slots[0].since, self.free) = (since, NO_SLOT);
        self.at_mark(now);
        self.free = 0;
    }

    #[inline(never)]
    fn rest(&mut self, index: u32, now: Nanos) {
        self.rests[index as usize] = now + self.think;
        self.slots[index as usize].next = NO_SLOT;
        if self.free == NO_SLOT {
            self.free = index;
        } else {
            self.slots[self.free_last as usize].next = index;
        }
        self.free_last = index;
    }

    #[inline(never)]
    fn next_slow(&mut self, now: Nanos) -> Next {
        if now >= self.deadline || self.budget == 0 {
            if self.in_flight > 0 {
                return Next::WaitForCompletion;
            }
            self.last_to_deadline(now);
            return Next::Done;
        }
        if self.think > 0 {
            let rested = self.rests[self.free as usize];
            if rested > now {
                return Next::WaitUntil(rested.min(self.deadline));
            }
        }
        let mut since = now;
        if let Some(pace) = &mut self.pace {
            let intended = self.began + pace.due();
            if intended > now {
                return Next::WaitUntil(intended.min(self.deadline));
            }
            pace.advance();
            since = intended;
        }
        // It may end the ramp, and earlier time does not belong to this request.
        self.advance_clock(now);
        let request = self.issue(self.free, since);
        self.not_served += now - since;
        Next::Issue(request)
    }

    #[cold]
    fn last_to_deadline(&mut self, now: Nanos) {
        if self.budget > 0 && now >= self.deadline {
            self.advance_clock(self.deadline.max(self.last_event));
        }
    }

    /// As a Poisson process.
    pub fn arrive_at_random(&mut self, seed: u64) {
        if let Some(pace) = &mut self.pace {
            pace.arrive_at_random(seed);
        }
    }

    /// Does not cut the last request.
    pub fn end_with_a_whole_request(&mut self) {
        self.ends_whole = true;
    }

    /// The next request is `bytes` shorter than the sequence says.
    pub fn adjust_budget(&mut self, bytes: i64) {
        self.settle();
        // Bytes by which the last request was cut, or exceeded the end, are not requested again.
        let beyond = if self.ends_whole && self.budget == 0 { self.beyond } else { 0 };
        self.budget = self.budget.saturating_add(bytes - bytes.clamp(0, beyond)).max(0);
        self.count_from_here();
    }

    /// Nothing is issued from `now` on.
    pub fn is_over(&self, now: Nanos) -> bool {
        self.budget == 0 || now >= self.deadline
    }

    pub fn set_slot_op(&mut self, slot: u32, op: Op) {
        self.slots[slot as usize].op = op;
    }

    /// Counts the latency from `since`.
    pub fn was_due(&mut self, slot: u32, since: Nanos, now: Nanos) {
        let since = since.clamp(self.began, now);
        self.slots[slot as usize].since = since;
        self.not_served += now - since;
    }

    /// Without a schedule, returns the time of issue.
    pub(crate) fn since(&self, slot: u32) -> Nanos {
        self.slots[slot as usize].since
    }

    pub(crate) fn measured_from(&self) -> Nanos {
        if self.measuring { self.measured_from } else { self.began.saturating_add(self.ramp) }
    }

    pub(crate) fn not_issued(&self) -> Vec<u64> {
        self.pace.as_ref().map_or_else(Vec::new, Pace::left)
    }

    pub fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// `None` without a schedule.
    pub fn next_due(&self) -> Option<Nanos> {
        self.pace.as_ref().map(|pace| self.began + pace.due())
    }

    /// Adds a pause that the schedule does not catch up with.
    pub fn skip(&mut self, moved: impl Fn(f64) -> f64) {
        if let Some(pace) = &mut self.pace {
            pace.skip(moved);
        }
    }

    /// Frees a failed request's slot without counting it, for a source that continues after errors.
    #[cold]
    pub fn abandon(&mut self, slot: u32, now: Nanos) {
        self.advance_clock(now);
        self.abandoned_ns += now - self.slots[slot as usize].since;
        self.slots[slot as usize].next = self.free;
        self.in_flight -= 1;
        if self.think == 0 {
            self.free = slot;
        } else {
            self.rest(slot, now);
        }
    }

    /// Extends the run to `now` without a request.
    pub fn extend_to(&mut self, now: Nanos) {
        self.advance_clock(now.max(self.last_event));
    }

    /// Includes the ramp.
    pub fn began(&self) -> Nanos {
        self.began
    }

    /// The last completion, or the end of the time.
    pub fn lasted_until(&self) -> Nanos {
        self.last_event
    }

    /// In the measured part.
    pub fn completed(&self) -> u64 {
        self.latency[0].count() + self.latency[1].count()
    }

    pub fn completed_with_ramp(&self) -> u64 {
        self.before + self.completed()
    }

    /// In the measured part.
    pub fn completed_bytes(&self) -> u64 {
        self.bytes - self.bytes_before
    }

    pub fn completed_bytes_with_ramp(&self) -> u64 {
        self.bytes
    }

    pub fn measured_ns(&self) -> Nanos {
        // A run that ended within its ramp is measured as a whole.
        self.last_event.saturating_sub(if self.measuring { self.measured_from } else { self.began })
    }

    /// Requests and measured time; `None` if the stream ended earlier.
    pub fn until_deadline(&self) -> Option<(u64, Nanos)> {
        let in_time = self.in_time.unwrap_or_else(|| self.completed());
        (self.measuring && self.last_event >= self.deadline && in_time > 0)
            .then(|| (in_time, self.deadline - self.measured_from))
    }

    /// In the measured part.
    pub fn mean_depth(&self) -> f64 {
        let others = self.passed_in_flight(self.last_event).saturating_add(self.abandoned_ns);
        let time = self.latencies_ns().saturating_add(others).saturating_sub(self.not_served);
        time as f64 / self.measured_ns().max(1) as f64
    }

    fn latencies_ns(&self) -> u64 {
        self.latency[0].sum().saturating_add(self.latency[1].sum())
    }

    /// From issue to completion.
    pub fn mean_service_ns(&self) -> f64 {
        let served = self.latencies_ns().saturating_sub(self.not_served);
        served as f64 / self.completed().max(1) as f64
    }

    pub(crate) fn watch(&mut self, run: WatchedRun) {
        self.second = Some(Box::new(SecondMark::new(run)));
    }

    pub(crate) fn end_second(&self) {
        if let Some(second) = &self.second {
            second.add(self.last_event, self.bytes, &self.latency);
        }
    }

    /// Reads, then writes.
    pub fn latency(&self) -> &[Histogram; 2] {
        &self.latency
    }

    pub fn slices(&self) -> &Slices {
        &self.slices
    }
}
