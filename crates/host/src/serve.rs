//! The loops between a request source and a session.

use crate::arena::Arena;
use crate::reaping::{PartCounters, Reaping};
use crate::session::{BlockingSession, Halt, Session, TICK_NS, Time, Wait};
use crate::system::{INTERRUPTED_CALL, request_error};
use machine::{Completion, Error, Nanos, Next, Op, Reap, Request, RequestSource, Result};
use std::io;
use std::mem::ManuallyDrop;

const HALT_NS: Nanos = 1_000_000;

/// After this, an interrupted run leaves its requests and buffers to the kernel.
const GRACE_NS: Nanos = 150_000_000;

/// The kernel may refuse submissions this long for lack of resources.
const STALL_NS: Nanos = 1_000_000_000;

/// By slot; empty if the source keeps them.
struct Outstanding(Box<[Request]>);

impl Outstanding {
    fn of<A: RequestSource>(source: &A) -> Outstanding {
        let none = Request { op: Op::Read, target: 0, offset: 0, len: 0, slot: 0 };
        let kept = if source.keeps_requests() { 0 } else { source.depth() };
        Outstanding(vec![none; kept as usize].into_boxed_slice())
    }

    #[inline(always)]
    fn set<A: RequestSource>(&mut self, source: &A, request: &Request) {
        if !source.keeps_requests() {
            self.0[request.slot as usize] = *request;
        }
    }

    #[inline(always)]
    fn get<A: RequestSource>(&self, source: &A, slot: u32) -> Request {
        if source.keeps_requests() { source.outstanding(slot) } else { self.0[slot as usize] }
    }
}

/// The buffers are leaked, not freed, however the loop ends.
struct Flight<'a, S> {
    session: ManuallyDrop<S>,
    arena: &'a mut Arena,
    requests: u32,
}

impl<S: Session> Flight<'_, S> {
    #[inline(always)]
    fn issue<A: RequestSource>(
        &mut self,
        source: &mut A,
        outstanding: &mut Outstanding,
        request: &Request,
    ) {
        let at = ready(source, self.arena, request);
        outstanding.set(source, request);
        self.requests += 1;
        if source.gives_priorities() {
            self.session.set_priority(source.priority(request.slot));
        }
        self.session.issue(request.target, request, at);
    }
}

impl<S> Drop for Flight<'_, S> {
    fn drop(&mut self) {
        if self.requests == 0 {
            // SAFETY: the session is dropped only here.
            unsafe { ManuallyDrop::drop(&mut self.session) };
        } else {
            self.arena.leak();
        }
    }
}

/// Returns the last completion's time. One clock reading per turn stamps completions and the next
/// issues. Fails with the first failure, after the requests in flight, or [`Error::Interrupted`] at
/// most `GRACE_NS` and a tick after an interrupt.
pub(crate) fn serve<S: Session, A: RequestSource, T: Time>(
    session: S,
    source: &mut A,
    arena: &mut Arena,
    time: T,
    halt: Halt<'_>,
    reap: (Reap, &PartCounters),
) -> Result<Nanos> {
    let mut outstanding = Outstanding::of(source);
    let mut flight = Flight { session: ManuallyDrop::new(session), arena, requests: 0 };
    let checks = source.checks();
    let full = source.max_request() as i32;
    let times_submission = source.times_submission();
    let mut now = time.now();
    let mut last = now;
    let mut look_at = now;
    let mut ending = Ending::default();
    let mut ends = false;
    let mut reaping = Reaping::new(reap.0, source.depth(), now, reap.1);
    source.begin(now);
    loop {
        if now >= look_at {
            ends |= halt.asked_at(now);
            if ends && ending.leaves(now, halt) {
                break;
            }
            look_at = now + HALT_NS;
        }
        let wait = if ends {
            if flight.requests == 0 {
                break;
            }
            Wait::One
        } else {
            loop {
                while let Some(request) = source.next_fast(now) {
                    flight.issue(source, &mut outstanding, &request);
                }
                match source.next(now) {
                    Next::Issue(request) => flight.issue(source, &mut outstanding, &request),
                    Next::Discard(request) => {
                        let discarded = flight.session.discard(&request);
                        now = time.now();
                        last = now;
                        if let Err(error) = discarded {
                            ending.failure.get_or_insert_with(|| not_discarded(error));
                            ends = true;
                            break Wait::For(0);
                        }
                        source.complete(
                            Completion { slot: request.slot, result: request.len as i32 },
                            now,
                        );
                        if now >= look_at {
                            break Wait::For(0);
                        }
                    }
                    Next::WaitForCompletion => break reaping.wait(flight.requests, now),
                    Next::WaitUntil(then) => {
                        break Wait::For(then.saturating_sub(now).min(TICK_NS));
                    }
                    Next::Done => {
                        if flight.requests == 0 {
                            return Ok(last);
                        }
                        break Wait::One;
                    }
                }
            }
        };
        let unsubmitted = times_submission && flight.requests > 0 && flight.session.queued() > 0;
        if unsubmitted && flight.session.hand_over().is_ok() {
            source.submitted(time.now());
        }
        // Retries submissions that failed earlier, and handles the error.
        if let Err(error) = flight.session.submit(wait) {
            let nothing_taken = flight.session.queued() >= flight.requests;
            match ending.refused(error, nothing_taken, last, now) {
                Refusal::Again => {}
                Refusal::Later => time.pass(HALT_NS),
                Refusal::Drain => {
                    ends = true;
                    time.pass(HALT_NS);
                }
                Refusal::Leave => break,
            }
        }
        now = time.now();
        let Flight { session, arena, requests } = &mut flight;
        let mut completed = 0;
        session.reap(|completion| {
            completed += 1;
            last = now;
            // Most requests have the full size. Only the others need a look at the table.
            if completion.result != full {
                let request = outstanding.get(source, completion.slot);
                if completion.result != request.len as i32 {
                    if source.failed(completion, now) {
                        return;
                    }
                    fail(&mut ending.failure, &request, completion.result);
                    ends = true;
                    return;
                }
            }
            if checks
                && let request = outstanding.get(source, completion.slot)
                && request.op == Op::Read
            {
                // SAFETY: the read filled the slot's buffer; nothing else writes it until the slot
                // is reused.
                source.check(completion.slot, unsafe {
                    std::slice::from_raw_parts(
                        arena.read_place(completion.slot),
                        request.len as usize,
                    )
                });
            }
            source.complete(completion, now);
        });
        *requests -= completed;
        reaping.turned(u64::from(completed), now);
        if let Some(what) = source.sync_due()
            && !ends
        {
            let began = time.now();
            if let Err(error) = flight.session.sync(what, source.sync_target()) {
                ending.failure = Some(not_synced(error));
                ends = true;
                continue;
            }
            now = time.now();
            last = now;
            source.synced(began, now);
        }
    }
    Err(ending.failure.unwrap_or(Error::Interrupted))
}

#[derive(Default)]
struct Ending {
    failure: Option<Error>,
    leave_at: Option<Nanos>,
    stalled: Option<Nanos>,
}

enum Refusal {
    Again,
    Later,
    Drain,
    Leave,
}

impl Ending {
    #[cold]
    fn leaves(&mut self, now: Nanos, halt: Halt<'_>) -> bool {
        halt.interrupted() && now >= *self.leave_at.get_or_insert(now + GRACE_NS)
    }

    /// `nothing_taken`: the kernel has no request.
    #[cold]
    #[inline(never)]
    fn refused(
        &mut self,
        error: io::Error,
        nothing_taken: bool,
        last: Nanos,
        now: Nanos,
    ) -> Refusal {
        use io::ErrorKind::{Interrupted, ResourceBusy, TimedOut, WouldBlock};
        let passing = match error.kind() {
            Interrupted | TimedOut => return Refusal::Again,
            kind => matches!(kind, ResourceBusy | WouldBlock),
        };
        let since = self.stalled.map_or(now, |since| if last > since { now } else { since });
        self.stalled = Some(since);
        if passing && !(nothing_taken && now.saturating_sub(since) >= STALL_NS) {
            return Refusal::Later;
        }
        self.failure
            .get_or_insert_with(|| Error::io("cannot submit to", "the kernel's queue")(error));
        // If the kernel has no request, no completion will come.
        if nothing_taken { Refusal::Leave } else { Refusal::Drain }
    }
}

pub(crate) fn serve_blocking<S: BlockingSession, A: RequestSource, T: Time>(
    mut session: S,
    source: &mut A,
    arena: &mut Arena,
    time: T,
    halt: Halt<'_>,
) -> Result<Nanos> {
    let checks = source.checks();
    let mut now = time.now();
    let mut last = now;
    let mut look_at = now;
    source.begin(now);
    loop {
        if now >= look_at {
            if halt.asked_at(now) {
                return Err(Error::Interrupted);
            }
            look_at = now + HALT_NS;
        }
        if let Some(request) = source.next_sync(now) {
            let since = now;
            let done;
            (now, done) = perform(&mut session, source, arena, time, checks, &request, halt)?;
            last = now;
            if done {
                source.complete_sync(&request, since, now);
            }
        } else {
            match source.next(now) {
                Next::Issue(request) => {
                    let done;
                    (now, done) =
                        perform(&mut session, source, arena, time, checks, &request, halt)?;
                    last = now;
                    if done {
                        source.complete(
                            Completion { slot: request.slot, result: request.len as i32 },
                            now,
                        );
                    }
                }
                Next::WaitUntil(then) => {
                    time.pass(then.saturating_sub(now).min(TICK_NS));
                    now = time.now();
                }
                Next::Discard(request) => {
                    session.discard(&request).map_err(not_discarded)?;
                    now = time.now();
                    last = now;
                    source.complete(
                        Completion { slot: request.slot, result: request.len as i32 },
                        now,
                    );
                }
                Next::WaitForCompletion => now = time.now(),
                Next::Done => return Ok(last),
            }
        }
        if let Some(what) = source.sync_due() {
            let began = time.now();
            session.sync(what, source.sync_target()).map_err(not_synced)?;
            now = time.now();
            last = now;
            source.synced(began, now);
        }
    }
}

/// The request's end, and whether it succeeded: if not, the source recorded it.
#[inline(always)]
fn perform<S: BlockingSession, A: RequestSource, T: Time>(
    session: &mut S,
    source: &mut A,
    arena: &mut Arena,
    time: T,
    checks: bool,
    request: &Request,
    halt: Halt<'_>,
) -> Result<(Nanos, bool)> {
    let at = ready(source, arena, request);
    let result = session.perform(request, at);
    let mut now = time.now();
    if result != request.len as i32 {
        let result = finish(session, request, at, result, halt)?;
        now = time.now();
        if result != request.len as i32 {
            let goes_on = source.failed(Completion { slot: request.slot, result }, now);
            return if goes_on { Ok((now, false)) } else { Err(failed(request, result)) };
        }
    }
    if checks && request.op == Op::Read {
        // SAFETY: the read filled the slot's buffer.
        source.check(request.slot, unsafe { std::slice::from_raw_parts(at, request.len as usize) });
    }
    Ok((now, true))
}

#[cold]
#[inline(never)]
fn finish<S: BlockingSession>(
    session: &mut S,
    request: &Request,
    at: *mut u8,
    mut result: i32,
    halt: Halt<'_>,
) -> Result<i32> {
    while result == INTERRUPTED_CALL {
        if halt.asked() {
            return Err(Error::Interrupted);
        }
        result = session.perform(request, at);
    }
    Ok(result)
}

#[inline(always)]
fn ready<A: RequestSource>(source: &mut A, arena: &mut Arena, request: &Request) -> *mut u8 {
    match request.op {
        Op::Read => arena.read_place(request.slot),
        Op::Write => {
            let at = arena.write_place(request.slot);
            // SAFETY: the arena gives every slot room for the source's largest request.
            source
                .fill(request, unsafe { std::slice::from_raw_parts_mut(at, request.len as usize) });
            at
        }
    }
}

#[cold]
fn not_synced(error: io::Error) -> Error {
    Error::io("cannot sync", "the target")(error)
}

#[cold]
fn not_discarded(error: io::Error) -> Error {
    Error::io("cannot discard blocks of", "the target")(error)
}

#[cold]
#[inline(never)]
fn fail(failure: &mut Option<Error>, request: &Request, result: i32) {
    failure.get_or_insert_with(|| failed(request, result));
}

#[cold]
fn failed(request: &Request, result: i32) -> Error {
    let source = if result < 0 {
        request_error(result)
    } else {
        io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("only {result} bytes were done: the target ends there or is full"),
        )
    };
    Error::Request { op: request.op, offset: request.offset, len: request.len, source }
}
