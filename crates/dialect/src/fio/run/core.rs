//! The part that all streams have.

use super::failures::Failures;
use super::guide::{Guide, TraceStep};
use super::rates::{Rates, skipped_ns};
use super::stream_stats::{Done, StreamStats, TRIM, batch};
use crate::fio::options::tolerated::Tolerated;
use crate::fio::options::trace::Action;
use crate::fio::plan::turns::FileTurns;
use machine::{Completion, Nanos, Next, Op, Request, RequestSource, Stability};
use measure::Stream;

pub(crate) struct Core {
    pub(crate) stream: Stream,
    pub(crate) record: StreamStats,
    pub(crate) turns: FileTurns,
    pub(crate) slots: Box<[Slot]>,
    pub(crate) in_flight: u32,
    issued_in_row: u32,
    completed_in_row: u32,
    pub(crate) ramp: Nanos,
    pub(crate) measured_from: Nanos,
    pub(crate) submissions: Option<Submissions>,
    pub(crate) trims: Option<Trims>,
    pub(crate) guide: Option<Guide>,
    pub(crate) rates: Option<Rates>,
    /// The guide or the rates decide on requests.
    pub(crate) is_led: bool,
    /// The next sync and its file; `None`: all files.
    pub(crate) due: Option<(Stability, Option<u32>)>,
    pub(crate) between_passes: bool,
    pub(crate) has_rest: bool,
    /// No room is left, or a limit ended it.
    pub(crate) ended: bool,
    pub(crate) is_full: bool,
    pub(crate) fills: bool,
    pub(crate) no_space: bool,
    pub(crate) tolerated: Tolerated,
    /// Bytes of this pass; at `pass_bytes` something happens.
    pub(crate) passed: u64,
    pub(crate) pass_bytes: u64,
    pub(crate) reads_back: bool,
    pub(crate) fails: bool,
    pub(crate) leaves: bool,
    pub(crate) checks: bool,
    pub(crate) gives_priorities: bool,
    /// Empty: the stream's data.
    pub(crate) pattern: Box<[u8]>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slot {
    pub(crate) at: Nanos,
    pub(crate) offset: u64,
    /// Maximum: not returned yet.
    pub(crate) returned_at: Nanos,
    pub(crate) bytes: u32,
    pub(crate) target: u32,
    pub(crate) side: u8,
    /// Priority passed to the kernel.
    pub(crate) given: u16,
    /// Priority in effect.
    pub(crate) effective: u16,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Issue {
    pub(crate) request: Request,
    pub(crate) side: usize,
    pub(crate) now: Nanos,
}

/// Requests whose submitting call has not returned.
pub(crate) struct Submissions {
    pub(crate) open: Vec<u32>,
    /// False on simulated machines, which have no call.
    pub(crate) reported: bool,
}

pub(crate) struct Trims {
    pub(crate) then_write: bool,
    pub(crate) next_is_one: bool,
    pub(crate) under_way: Option<Request>,
    pub(crate) trimmed: Option<Request>,
}

impl Core {
    pub(crate) fn new(stream: Stream, record: StreamStats, turns: FileTurns) -> Core {
        let depth = stream.depth() as usize;
        Core {
            stream,
            record,
            turns,
            slots: vec![Slot::default(); depth].into_boxed_slice(),
            in_flight: 0,
            issued_in_row: 0,
            completed_in_row: 0,
            ramp: 0,
            measured_from: 0,
            submissions: None,
            trims: None,
            guide: None,
            rates: None,
            is_led: false,
            due: None,
            between_passes: false,
            has_rest: false,
            ended: false,
            is_full: false,
            fills: false,
            no_space: false,
            tolerated: Tolerated::default(),
            passed: 0,
            pass_bytes: u64::MAX,
            reads_back: false,
            fails: false,
            leaves: false,
            checks: false,
            gives_priorities: false,
            pattern: Box::default(),
        }
    }

    pub(crate) fn start(&mut self, now: Nanos) {
        self.stream.begin(now);
        if let Some(guide) = &mut self.guide {
            guide.begin(now);
        }
        if let Some(rates) = &mut self.rates {
            rates.begin(now);
        }
        self.measured_from = now + self.ramp;
        self.record.begin(self.measured_from);
    }

    /// The rate does not catch up with the pause.
    pub(crate) fn skip(&mut self, pause: Nanos, side: usize) {
        self.stream.skip(|interval_ns| skipped_ns(pause as f64, interval_ns));
        if let Some(rates) = &mut self.rates {
            rates.skip(pause, side);
        }
    }

    /// `None` without a schedule.
    fn next_due(&self) -> Option<Nanos> {
        self.rates.as_ref().map(Rates::next_due).or_else(|| self.stream.next_due())
    }

    /// With a rate, fio waits to issue a request, then finds that no whole one is left. Returns
    /// when to go on; `None` the second time.
    pub(crate) fn wait_for_rest(&mut self, now: Nanos) -> Option<Nanos> {
        let waits = std::mem::take(&mut self.has_rest);
        let due = self.next_due().filter(|_| waits)?.min(self.stream.deadline());
        self.lasts_until(due);
        (due > now).then_some(due)
    }

    pub(crate) fn lasts_until(&mut self, then: Nanos) {
        if then > self.measured_from {
            self.record.span.1 = self.record.span.1.max(then);
            self.stream.extend_to(then);
        }
    }

    #[inline(always)]
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        self.ended || self.stream.is_over(now)
    }

    pub(crate) fn over(&self) -> Next {
        if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion }
    }

    pub(crate) fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    #[inline(always)]
    pub(crate) fn end_of_completions(&mut self) {
        if self.completed_in_row > 0 {
            self.record.completed[batch(self.completed_in_row)] += 1;
            self.completed_in_row = 0;
        }
    }

    #[inline(always)]
    pub(crate) fn end_of_row(&mut self) {
        if self.issued_in_row > 0 {
            self.record.submitted[batch(self.issued_in_row)] += 1;
            self.issued_in_row = 0;
        }
    }

    #[inline(always)]
    pub(crate) fn next(&mut self, now: Nanos) -> Next {
        if self.ended {
            return self.over();
        }
        let trimmed = self.trims.as_mut().and_then(|trims| trims.trimmed.take());
        let next = match trimmed {
            Some(request) => Next::Issue(request),
            None if self.is_led => self.follow(now),
            None => self.stream.next(now),
        };
        match next {
            Next::Issue(request) => self.issue(request, trimmed.is_none(), now),
            next => next,
        }
    }

    /// Not `fresh`: the write after a trim.
    #[inline(always)]
    fn issue(&mut self, mut request: Request, fresh: bool, now: Nanos) -> Next {
        if self.guide.is_none() && fresh {
            let Request { op, len, .. } = request;
            if !self.turns.place(&mut request) {
                return self.end(request.slot, now);
            }
            if request.len != len {
                self.stream.adjust_budget(i64::from(len) - i64::from(request.len));
                if let Some(rates) = &mut self.rates {
                    rates.resized(op as usize, len, request.len);
                }
            }
            if request.op != op {
                self.stream.set_slot_op(request.slot, request.op);
            }
        }
        let trims = self.trims.as_mut().filter(|trims| trims.next_is_one && fresh);
        let side = if trims.is_some() { TRIM } else { request.op as usize };
        let Request { offset, len: bytes, target, .. } = request;
        self.slots[request.slot as usize] = Slot {
            at: now,
            offset,
            returned_at: Nanos::MAX,
            bytes,
            target,
            side: side as u8,
            given: 0,
            effective: 0,
        };
        if fresh {
            self.passed += u64::from(bytes);
        }
        self.in_flight += 1;
        self.issued_in_row += 1;
        self.record.depths[(self.in_flight.ilog2() as usize).min(6)] += 1;
        if let Some(trims) = trims {
            trims.under_way = Some(request);
            return Next::Discard(request);
        }
        if let Some(submissions) = &mut self.submissions {
            submissions.open.push(request.slot);
        }
        Next::Issue(request)
    }

    #[cold]
    fn end(&mut self, slot: u32, now: Nanos) -> Next {
        (self.ended, self.is_full) = (true, true);
        self.stream.abandon(slot, now);
        self.over()
    }

    fn next_rated(&mut self, now: Nanos) -> Next {
        let over = self.stream.is_over(now) || self.in_flight == self.depth();
        let Some(rates) = self.rates.as_mut().filter(|_| !over) else {
            return self.stream.next(now);
        };
        if let Some(due) = rates.wait(now) {
            return Next::WaitUntil(due.min(self.stream.deadline()));
        }
        let mut next = self.stream.next(now);
        if let Next::Issue(request) = &mut next {
            let len = request.len;
            let since = rates.direct(request, now);
            self.stream.set_slot_op(request.slot, request.op);
            self.stream.was_due(request.slot, since, now);
            if request.len != len {
                self.stream.adjust_budget(i64::from(len) - i64::from(request.len));
            }
        }
        next
    }

    fn follow(&mut self, now: Nanos) -> Next {
        if self.guide.is_none() {
            return self.next_rated(now);
        }
        let over = self.over();
        let Some(guide) = self.guide.as_mut().filter(|_| !self.stream.is_over(now)) else {
            return over;
        };
        match guide.next_step(now) {
            TraceStep::Over => over,
            TraceStep::Later(then) => Next::WaitUntil(then),
            TraceStep::Sync(what, file) => {
                guide.done();
                self.due = Some((what, Some(file)));
                Next::WaitUntil(now)
            }
            TraceStep::Request(entry) => {
                let mut next = self.stream.next(now);
                if let Next::Issue(request) = &mut next {
                    guide.done();
                    request.op =
                        if let Action::Request(op) = entry.action { op } else { Op::Write };
                    if let Some(trims) = &mut self.trims {
                        trims.next_is_one = entry.action == Action::Trim;
                    }
                    (request.target, request.offset, request.len) =
                        (entry.file, entry.offset, entry.len);
                    self.stream.set_slot_op(request.slot, request.op);
                }
                next
            }
        }
    }

    #[inline(always)]
    pub(crate) fn submitted(&mut self, now: Nanos) {
        if let Some(Submissions { open, reported }) = &mut self.submissions {
            *reported = true;
            open.drain(..).for_each(|slot| self.slots[slot as usize].returned_at = now);
        }
    }

    /// Returns `false` if a trim's write follows, and what is measured.
    #[inline(always)]
    pub(crate) fn complete(&mut self, completion: Completion, now: Nanos) -> (bool, Option<Done>) {
        // A blocking engine completes without asking for more requests.
        self.end_of_row();
        let whole = !self.trim_ended();
        if whole {
            self.stream.complete(completion, now);
        }
        self.in_flight -= 1;
        self.completed_in_row += 1;
        if now < self.measured_from {
            return (whole, None);
        }
        let slot = self.slots[completion.slot as usize];
        let latency_ns = now - slot.at;
        let done = Done {
            at: now,
            side: usize::from(slot.side),
            bytes: slot.bytes,
            offset: slot.offset,
            latency_ns,
            submission_ns: self.submission_of(completion.slot, &slot, latency_ns),
            priority: slot.effective,
        };
        self.record.add(&done);
        (whole, Some(done))
    }

    #[inline(always)]
    fn submission_of(&mut self, number: u32, slot: &Slot, latency_ns: Nanos) -> Option<Nanos> {
        let submissions = self.submissions.as_mut()?;
        if usize::from(slot.side) == TRIM {
            return None;
        }
        if slot.returned_at == Nanos::MAX {
            // The request completed before its call returned.
            submissions.open.retain(|&open| open != number);
            return submissions.reported.then_some(latency_ns);
        }
        Some((slot.returned_at - slot.at).min(latency_ns))
    }

    /// A write follows.
    #[inline(always)]
    fn trim_ended(&mut self) -> bool {
        let Some(trims) = &mut self.trims else { return false };
        let Some(request) = trims.under_way.take().filter(|_| trims.then_write) else {
            return false;
        };
        trims.trimmed = Some(request);
        true
    }

    /// `false`: the stream must stop.
    pub(crate) fn failed(&mut self, completion: Completion, now: Nanos) -> bool {
        if !self.tolerates(completion) {
            return false;
        }
        self.end_of_row();
        let slot = completion.slot;
        self.stream.abandon(slot, now);
        if let Some(submissions) = &mut self.submissions {
            submissions.open.retain(|&open| open != slot);
        }
        self.in_flight -= 1;
        self.completed_in_row += 1;
        if now >= self.measured_from {
            self.record.add_failed(now, usize::from(self.slots[slot as usize].side));
        }
        true
    }

    fn tolerates(&mut self, completion: Completion) -> bool {
        let side = usize::from(self.slots[completion.slot as usize].side);
        if self.fills && side == Op::Write as usize && Failures::is_full(completion) {
            (self.ended, self.no_space) = (true, true);
            return true;
        }
        let tolerated = [self.tolerated.reads, self.tolerated.writes, false][side];
        let ignored = self.tolerated.ignored[usize::from(side != Op::Read as usize)];
        let tolerated = tolerated && !self.reads_back && self.trims.is_none();
        match Failures::passing(completion, ignored).filter(|_| tolerated) {
            Some(failure) => self.record.failures.add(failure),
            None => return false,
        }
        true
    }

    pub(crate) fn synced(&mut self, began: Nanos, ended: Nanos) -> Option<Stability> {
        let (due, _) = self.due.take()?;
        if due == Stability::Uncached {
            return Some(due);
        }
        if ended > self.measured_from {
            // As in fio, the runtime includes the sync.
            self.record.span.1 = ended;
            self.record.end_sync = self.between_passes.then_some((began, ended));
        }
        // fio times the syncs between writes, not those at the end.
        if began >= self.measured_from && !self.between_passes {
            self.record.syncs.record(ended.saturating_sub(began));
            self.record.full_syncs += u64::from(due == Stability::File);
        }
        Some(due)
    }
}
