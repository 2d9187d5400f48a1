//! A recorded stream as a request source: the checks before each request, and the records after it.

use super::super::iolog::{Action, Entry};
use super::super::pacing::Exit;
use super::super::pending_verify::{Piece, Read};
use super::super::steady::STEP_NS;
use super::super::stream_stats::{Done, TRIM, batch};
use super::super::verify::repeat;
use super::{ContestState, FioStream, Issued, Submissions};
use machine::{Completion, Nanos, Next, Op, Request, RequestSource, Stability};
use std::sync::atomic::Ordering;

impl RequestSource for FioStream {
    fn depth(&self) -> u32 {
        self.stream.depth()
    }

    fn max_request(&self) -> u32 {
        self.stream.max_request()
    }

    fn writes(&self) -> bool {
        self.stream.writes()
    }

    #[inline(always)]
    fn sync_due(&self) -> Option<Stability> {
        self.due
    }

    fn synced(&mut self, began: Nanos, ended: Nanos) {
        let due = self.due.take();
        if due == Some(Stability::Uncached) {
            self.passed = 0;
            return;
        }
        self.written[1] = self.written[0];
        if let Some(progress) = &mut self.progress {
            progress.synced = progress.syncing;
        }
        if let (Some(trace), Some(what)) = (&mut self.trace, due) {
            let at_ns = began.saturating_sub(self.measured_from - self.ramp);
            trace.push(Entry { at_ns, action: Action::Sync(what), file: 0, offset: 0, len: 0 });
        }
        if ended > self.measured_from {
            // As in fio, the runtime includes the sync.
            self.record.span.1 = ended;
            self.record.end_sync = self.between_passes.then_some((began, ended));
        }
        // fio times the syncs between writes, not those at the end.
        if began >= self.measured_from && !self.between_passes {
            self.record.syncs.record(ended.saturating_sub(began));
            self.record.full_syncs += u64::from(due == Some(Stability::File));
        }
    }

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        self.stream.fill_buffers(buffers);
    }

    fn begin(&mut self, now: Nanos) {
        self.starts = now + self.delay;
        if self.delay == 0 {
            self.start(now);
        }
    }

    #[inline(always)]
    fn next(&mut self, now: Nanos) -> Next {
        match self.next_request(now) {
            Next::Done => self.sync_at_end(now),
            next => next,
        }
    }

    #[inline(always)]
    fn gives_priorities(&self) -> bool {
        self.priorities.is_some()
    }

    fn priority(&self, slot: u32) -> u16 {
        // Reads of the verification are recorded as such.
        let reads_back = self.backlog.as_ref().is_some_and(|backlog| backlog.is_reading());
        self.priorities.as_ref().filter(|_| !reads_back).map_or(0, |priorities| priorities.given(slot))
    }

    #[inline(always)]
    fn times_submission(&self) -> bool {
        self.submissions.is_some()
    }

    #[inline(always)]
    fn submitted(&mut self, now: Nanos) {
        if let Some(Submissions { returned_at, open, reported }) = &mut self.submissions {
            *reported = true;
            open.drain(..).for_each(|slot| returned_at[slot as usize] = now);
        }
    }

    #[inline(always)]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        if let Some(backlog) = self.backlog.as_mut().filter(|backlog| backlog.is_reading()) {
            backlog.complete(completion, now);
            return;
        }
        // A blocking engine completes without asking for more requests.
        self.end_of_row();
        if !self.trim_ended() {
            self.stream.complete(completion, now);
            if let Some(progress) = &mut self.progress {
                progress.numbers[completion.slot as usize] = u64::MAX;
            }
        }
        if let Some(own) = &mut self.contest {
            own.ended(completion.slot);
        }
        self.in_flight -= 1;
        self.completed_in_row += 1;
        let issued = self.issued[completion.slot as usize];
        if let Some(batches) = &mut self.batches {
            batches.done += 1;
        }
        if now < self.measured_from {
            return;
        }
        if let Some(watched) = &mut self.watched {
            watched.report_until(now);
            if now + STEP_NS >= watched.end {
                watched.sums[0] += 1;
                watched.sums[1] += u64::from(issued.bytes);
            }
        }
        let offset = self.offsets.get(completion.slot as usize).copied().unwrap_or(0);
        let latency_ns = now - issued.at;
        let submission_ns = self.submission_of(completion.slot, latency_ns);
        let priority = self.priorities.as_ref().map_or(0, |priorities| priorities.effective(completion.slot));
        let (side, bytes) = (issued.side, issued.bytes);
        let done = Done { at: now, side, bytes, offset, latency_ns, submission_ns, priority };
        self.record.add(&done);
        if self.search.is_some() || self.rates.is_some() || self.latency.most_ns != [0; 2] {
            self.check_limits(&done);
        }
    }

    fn failed(&mut self, completion: Completion, now: Nanos) -> bool {
        if !self.tolerates(completion) {
            if let Some(Exit { sets_on_error: Some(flag), .. }) = &self.exit {
                flag.store(true, Ordering::Relaxed);
            }
            return false;
        }
        self.end_of_row();
        let slot = completion.slot;
        self.stream.abandon(slot, now);
        if let Some(own) = &mut self.contest {
            own.ended(slot);
        }
        if let Some(progress) = &mut self.progress {
            progress.numbers[slot as usize] = u64::MAX;
        }
        if let Some(submissions) = &mut self.submissions {
            submissions.open.retain(|&open| open != slot);
        }
        if let Some(batches) = &mut self.batches {
            batches.done += 1;
        }
        self.in_flight -= 1;
        self.completed_in_row += 1;
        if now >= self.measured_from {
            self.record.add_failed(now, self.issued[slot as usize].side);
        }
        true
    }

    #[inline(always)]
    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        if self.pattern.is_empty() {
            self.stream.fill(request, buffer);
        } else {
            repeat(&self.pattern, buffer);
        }
        if let Some(stats) = &self.verify {
            stats.check.stamp(request.offset, buffer);
        }
    }

    fn checks(&self) -> bool {
        self.verify.is_some() && (self.backlog.is_some() || !self.stream.writes())
    }

    fn check(&mut self, slot: u32, data: &[u8]) {
        if let Some(backlog) = &self.backlog {
            // The mix's own reads are not checked: they may return older data.
            if backlog.is_reading() {
                backlog.check(slot, data);
            }
        } else if let Some(stats) = &self.verify {
            match &self.contest {
                Some(own) => own.reads[slot as usize].check(stats, Some(&own.contest), data),
                None => stats.check(self.offsets[slot as usize], data),
            }
            if let Some(Exit { sets_on_error: Some(flag), .. }) = &self.exit
                && !self.tolerated.verify
                && stats.faults() > 0
            {
                flag.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl ContestState {
    fn issued(&mut self, request: &Request, trims: bool, now: Nanos) {
        let (slot, piece) = (request.slot as usize, Piece::from(request));
        if trims || request.op == Op::Write {
            self.writes[slot] = self.contest.begin(&piece, !trims);
        } else {
            self.reads[slot] = Read::of(piece, now, Some(&self.contest));
        }
    }

    fn ended(&mut self, slot: u32) {
        let number = std::mem::take(&mut self.writes[slot as usize]);
        if number > 0 {
            self.contest.end(number);
        }
    }
}

impl FioStream {
    #[inline(always)]
    fn next_request(&mut self, now: Nanos) -> Next {
        if self.completed_in_row > 0 {
            self.record.completed[batch(self.completed_in_row)] += 1;
            self.completed_in_row = 0;
        }
        if !self.begun {
            if now < self.starts {
                return Next::WaitUntil(self.starts);
            }
            self.start(now);
        }
        if let Some(next) = self.before(now) {
            self.end_of_row();
            if let Next::Done = next {
                self.leave_flow();
            }
            return next;
        }
        let trimmed = self.trims.as_mut().and_then(|trims| trims.trimmed.take());
        let next = match trimmed {
            Some(request) => Next::Issue(request),
            None if self.guide.is_some() => self.follow(now),
            None => self.stream.next(now),
        };
        if let Some(batches) = &mut self.batches {
            batches.after(next);
        }
        if let Next::Issue(request) = next {
            return self.issue(request, trimmed.is_some(), now);
        }
        if let Next::Done = next {
            self.leave();
        }
        self.end_of_row();
        next
    }

    /// Steps that precede the next request: other jobs, blocks to verify, pauses, syncs that are
    /// due, a full batch.
    #[inline(always)]
    fn before(&mut self, now: Nanos) -> Option<Next> {
        if self.watched.is_some()
            && let Some(next) = self.check_steady_state(now)
        {
            return Some(next);
        }
        if let Some(backlog) = &mut self.backlog
            && let Some(next) = backlog.before(now, self.in_flight, self.ended || self.stream.is_over(now))
        {
            return Some(next);
        }
        if (self.ended || self.exit.is_some() || self.pauses.is_some() || self.flow.is_some())
            && let Some(next) = self.held(now)
        {
            return Some(next);
        }
        if self.search.is_some()
            && !self.ended
            && let Some(next) = self.search(now)
        {
            return Some(next);
        }
        if let Some(next) = self.upkeep(now) {
            return Some(next);
        }
        self.batches.as_mut()?.before(now, self.in_flight, self.issued.len() as u32)
    }

    /// Records a request issued now; `trimmed`: it is the write after a trim of the same blocks.
    #[inline(always)]
    fn issue(&mut self, mut request: Request, trimmed: bool, now: Nanos) -> Next {
        if self.guide.is_none() && !trimmed {
            let Request { op, len, .. } = request;
            if !self.turns.place(&mut request) {
                return self.end(request.slot, now);
            }
            if request.len != len {
                self.stream.adjust_budget(i64::from(len) - i64::from(request.len));
            }
            if request.op != op {
                self.stream.set_slot_op(request.slot, request.op);
            }
        }
        let trims = self.trims.as_mut().filter(|trims| trims.next_is_one && !trimmed);
        let side = if trims.is_some() { TRIM } else { request.op as usize };
        self.issued[request.slot as usize] = Issued { at: now, side, bytes: request.len };
        if let Some(offset) = self.offsets.get_mut(request.slot as usize) {
            *offset = request.offset;
        }
        if let Some(backlog) = self.backlog.as_mut().filter(|_| side != TRIM) {
            backlog.issued(request);
            self.stream.adjust_budget(backlog.beyond() as i64);
        }
        if let Some(own) = &mut self.contest {
            own.issued(&request, side == TRIM, now);
        }
        if let Some(pieces) = self.pieces.as_mut().filter(|_| side == Op::Write as usize) {
            pieces.add(&request);
        }
        self.written[0] += u64::from(side == Op::Write as usize);
        if !trimmed {
            self.passed += u64::from(request.len);
        }
        if let Some(pauses) = &mut self.pauses {
            pauses.issued += 1;
        }
        if let Some(flow) = &self.flow {
            flow.issued();
        }
        if let Some(progress) = &mut self.progress {
            progress.issue(request.slot);
        }
        if let Some(trace) = &mut self.trace {
            let at_ns = now - (self.measured_from - self.ramp);
            let (offset, len) = (request.offset, request.len);
            let action = if side == TRIM { Action::Trim } else { Action::Request(request.op) };
            trace.push(Entry { at_ns, action, file: request.target as u16, offset, len });
        }
        self.in_flight += 1;
        self.issued_in_row += 1;
        self.record.depths[(self.in_flight.ilog2() as usize).min(6)] += 1;
        if let Some(trims) = trims {
            trims.under_way = Some(request);
            return Next::Discard(request);
        }
        if let Some(priorities) = &mut self.priorities {
            priorities.draw(request.slot, side, request.len);
        }
        if let Some(submissions) = &mut self.submissions {
            submissions.returned_at[request.slot as usize] = Nanos::MAX;
            submissions.open.push(request.slot);
        }
        Next::Issue(request)
    }

    /// The files have no room for the request in this slot.
    #[cold]
    fn end(&mut self, slot: u32, now: Nanos) -> Next {
        self.ended = true;
        self.stream.abandon(slot, now);
        self.leave();
        if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion }
    }

    pub(super) fn leave(&mut self) {
        if let Some(Exit { sets: Some(flag), .. }) = &self.exit {
            flag.store(true, Ordering::Relaxed);
        }
        if let Some(watched) = &mut self.watched
            && !std::mem::replace(&mut watched.left, true)
        {
            watched.watch.leave();
        }
        self.leave_flow();
    }

    fn leave_flow(&mut self) {
        if let Some(flow) = &mut self.flow {
            flow.leave();
        }
    }
}
