use super::{NO_SLOT, Slot, Stream};
use machine::{Completion, Nanos, Next, Request, RequestSource};

impl Stream {
    /// Requires a free slot.
    #[inline(never)]
    fn next_free(&mut self, now: Nanos) -> Next {
        match self.next_fast(now) {
            Some(request) => Next::Issue(request),
            None if now < self.plain_until => Next::Issue(self.issue(self.free, now)),
            None => self.next_slow(now),
        }
    }
}

impl RequestSource for Stream {
    fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    fn max_request(&self) -> u32 {
        self.request
    }

    #[inline(always)]
    fn keeps_requests(&self) -> bool {
        true
    }

    #[inline(always)]
    fn outstanding(&self, slot: u32) -> Request {
        let Slot { op, offset, len, .. } = self.slots[slot as usize];
        Request { op, target: 0, offset, len, slot }
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
        self.plain_until = if self.pace.is_some() || self.think > 0 || self.budget == 0 {
            0
        } else {
            self.deadline
        };
        if self.ramp == 0 {
            self.measure_from(now, now);
        }
        self.next_mark = self.slice_end.min(self.deadline.saturating_add(1));
    }

    /// Inlined as far as the usual answer after [`Stream::next_fast`]: all slots are in flight.
    #[inline(always)]
    fn next(&mut self, now: Nanos) -> Next {
        if self.free == NO_SLOT { Next::WaitForCompletion } else { self.next_free(now) }
    }

    #[inline(always)]
    fn next_fast(&mut self, now: Nanos) -> Option<Request> {
        if now < self.plain_until { self.issue_short(now) } else { None }
    }

    #[inline(always)]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.advance_clock(now);
        let slot = &mut self.slots[completion.slot as usize];
        self.latency[slot.op as usize].record(now - slot.since);
        // A failed request ends the run, so its byte count is never used.
        self.bytes += u64::from(completion.result as u32);
        slot.next = self.free;
        self.in_flight -= 1;
        if self.think == 0 {
            self.free = completion.slot;
        } else {
            self.rest(completion.slot, now);
        }
    }

    #[inline(always)]
    fn next_sync(&mut self, now: Nanos) -> Option<Request> {
        (now < self.plain_until).then(|| self.take(0))
    }

    #[inline(always)]
    fn complete_sync(&mut self, request: &Request, since: Nanos, now: Nanos) {
        self.last_event = now;
        if now >= self.next_mark {
            self.at_mark_alone(since, now);
        }
        self.latency[request.op as usize].record(now - since);
        self.bytes += u64::from(request.len);
    }

    #[inline(always)]
    fn fill(&mut self, _request: &Request, buffer: &mut [u8]) {
        self.filler.stamp(buffer);
    }
}
