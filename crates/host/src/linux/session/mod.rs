//! Sessions: one thread's way of issuing requests to the kernel, and the loop that serves an asker through one.

pub(crate) mod aio;
pub(crate) mod mapped;
pub(crate) mod null;
pub(crate) mod striped;
pub(crate) mod sync;
pub(crate) mod uring;

use super::arena::Arena;
use super::clock::Clock;
use machine::{Asker, Completion, Error, Nanos, Next, Op, Request, Result, Stability};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a session may wait before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until one request completed.
    One,
    /// Until one request completed, or this long.
    For(Nanos),
}

/// One thread's way to a set of open files. The driver is generic over it: no dynamic dispatch per request.
pub(crate) trait Session {
    /// Queues a request to the file with this index; `at` is its data, `request.len` bytes long, untouched until it completes.
    fn issue(&mut self, file: u32, request: &Request, at: *mut u8);

    /// Submits what is queued and waits.
    fn submit(&mut self, wait: Wait) -> io::Result<()>;

    /// Takes every completion that is there.
    fn reap(&mut self, take: impl FnMut(Completion));
}

/// One thread's way to one open file where each request is done when the call returns.
pub(crate) trait BlockingSession {
    /// Does a request; `at` is its data, `request.len` bytes long. The result is as a completion's.
    fn perform(&mut self, request: &Request, at: *mut u8) -> i32;
}

/// Why a run is to end early: the user's interrupt, or another stream's failure.
#[derive(Clone, Copy)]
pub(crate) struct Halt<'a> {
    pub(crate) interrupt: &'a AtomicBool,
    pub(crate) failed: &'a AtomicBool,
}

impl Halt<'_> {
    #[inline(always)]
    fn asked(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.interrupt.load(Ordering::Relaxed)
    }
}

/// How often a run looks whether it is to end early, unless its requests take longer.
const HALT_NS: Nanos = 1_000_000;

/// What is kept of a request until it completes.
#[derive(Clone, Copy)]
struct Outstanding {
    offset: u64,
    len: u32,
    op: Op,
}

impl Outstanding {
    fn request(self, slot: u32) -> Request {
        Request { op: self.op, offset: self.offset, len: self.len, slot }
    }
}

/// Serves an asker through a session to its end; the last completion's time is returned.
///
/// One clock read per turn: every completion found in a turn is stamped with it, and it is the issue time of what replaces them.
/// `fds` are the files that [`Asker::sync_due`] brings to stable storage.
pub(crate) fn serve<S: Session, A: Asker>(
    session: &mut S,
    fds: &[RawFd],
    asker: &mut A,
    arena: &mut Arena,
    clock: Clock,
    halt: Halt<'_>,
) -> Result<Nanos> {
    let none = Outstanding { op: Op::Read, offset: 0, len: 0 };
    let mut outstanding = vec![none; asker.depth() as usize].into_boxed_slice();
    let mut in_flight = 0u32;
    let mut failure: Option<Error> = None;
    let checks = asker.checks();
    let mut now = clock.now();
    let mut last = now;
    let mut look_at = now;
    let mut ends = false;
    asker.begin(now);
    loop {
        if now >= look_at {
            ends |= halt.asked();
            look_at = now + HALT_NS;
        }
        let wait = if ends {
            if in_flight == 0 {
                break;
            }
            Wait::One
        } else {
            loop {
                match asker.next(now) {
                    Next::Issue(request) => {
                        let at = ready(asker, arena, &request);
                        outstanding[request.slot as usize] = Outstanding { op: request.op, offset: request.offset, len: request.len };
                        in_flight += 1;
                        session.issue(0, &request, at);
                    }
                    Next::WaitForCompletion => break Wait::One,
                    Next::WaitUntil(then) => break Wait::For(then.saturating_sub(now)),
                    Next::Done => {
                        if in_flight == 0 {
                            return Ok(last);
                        }
                        break Wait::One;
                    }
                }
            }
        };
        if let Err(error) = session.submit(wait) {
            return Err(Error::io("cannot submit to", "the kernel's queue")(error));
        }
        now = clock.now();
        session.reap(|completion| {
            in_flight -= 1;
            last = now;
            let request = outstanding[completion.slot as usize];
            if completion.result != request.len as i32 {
                fail(&mut failure, &request.request(completion.slot), completion.result);
                ends = true;
            } else if checks && request.op == Op::Read {
                // SAFETY: the read filled the slot's buffer, and nothing else writes it before the slot is used again.
                asker
                    .check(completion.slot, unsafe { std::slice::from_raw_parts(arena.read_place(completion.slot), request.len as usize) });
            }
            asker.complete(completion, now);
        });
        if let Some(what) = asker.sync_due()
            && failure.is_none()
        {
            let began = clock.now();
            synchronise(fds, what).map_err(Error::io("cannot bring to stable storage", "the target"))?;
            now = clock.now();
            last = now;
            asker.synced(began, now);
        }
    }
    Err(failure.unwrap_or(Error::Interrupted))
}

/// Serves an asker through blocking calls, one at a time; the last completion's time is returned.
///
/// [`serve`] for one request, without what many outstanding need.
pub(crate) fn serve_blocking<S: BlockingSession, A: Asker>(
    session: &mut S,
    fds: &[RawFd],
    asker: &mut A,
    arena: &mut Arena,
    clock: Clock,
    halt: Halt<'_>,
) -> Result<Nanos> {
    let checks = asker.checks();
    let mut now = clock.now();
    let mut last = now;
    let mut look_at = now;
    asker.begin(now);
    loop {
        if now >= look_at {
            if halt.asked() {
                return Err(Error::Interrupted);
            }
            look_at = now + HALT_NS;
        }
        if let Some(request) = asker.next_alone(now) {
            let since = now;
            now = perform(session, asker, arena, clock, checks, &request)?;
            last = now;
            asker.complete_alone(&request, since, now);
        } else {
            match asker.next(now) {
                Next::Issue(request) => {
                    now = perform(session, asker, arena, clock, checks, &request)?;
                    last = now;
                    asker.complete(Completion { slot: request.slot, result: request.len as i32 }, now);
                }
                Next::WaitUntil(then) => {
                    pass(then.saturating_sub(now).min(HALT_NS));
                    now = clock.now();
                }
                Next::WaitForCompletion => now = clock.now(),
                Next::Done => return Ok(last),
            }
        }
        if let Some(what) = asker.sync_due() {
            let began = clock.now();
            synchronise(fds, what).map_err(Error::io("cannot bring to stable storage", "the target"))?;
            now = clock.now();
            last = now;
            asker.synced(began, now);
        }
    }
}

/// Does a request through a blocking call; when it was done.
#[inline(always)]
fn perform<S: BlockingSession, A: Asker>(
    session: &mut S,
    asker: &mut A,
    arena: &mut Arena,
    clock: Clock,
    checks: bool,
    request: &Request,
) -> Result<Nanos> {
    let at = ready(asker, arena, request);
    let result = session.perform(request, at);
    let now = clock.now();
    if result != request.len as i32 {
        return Err(failed(request, result));
    }
    if checks && request.op == Op::Read {
        // SAFETY: the read filled the slot's buffer.
        asker.check(request.slot, unsafe { std::slice::from_raw_parts(at, request.len as usize) });
    }
    Ok(now)
}

/// The place of a request's data, filled where it writes.
#[inline(always)]
fn ready<A: Asker>(asker: &mut A, arena: &mut Arena, request: &Request) -> *mut u8 {
    match request.op {
        Op::Read => arena.read_place(request.slot),
        Op::Write => {
            let at = arena.write_place(request.slot);
            // SAFETY: the arena gives every slot room for the asker's largest request.
            asker.fill(request, unsafe { std::slice::from_raw_parts_mut(at, request.len as usize) });
            at
        }
    }
}

/// Brings files to stable storage, in the calling thread.
#[cold]
fn synchronise(fds: &[RawFd], what: Stability) -> io::Result<()> {
    for &fd in fds {
        // SAFETY: an open descriptor.
        let result = unsafe {
            match what {
                Stability::Data => libc::fdatasync(fd),
                Stability::File => libc::fsync(fd),
            }
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Notes the first failure.
#[cold]
#[inline(never)]
fn fail(failure: &mut Option<Error>, request: &Request, result: i32) {
    failure.get_or_insert_with(|| failed(request, result));
}

/// A request that did not do all that it was asked.
#[cold]
fn failed(request: &Request, result: i32) -> Error {
    let source = if result < 0 {
        io::Error::from_raw_os_error(-result)
    } else {
        io::Error::new(io::ErrorKind::UnexpectedEof, format!("only {result} bytes were done: the target ends there or is full"))
    };
    Error::Request { op: request.op, offset: request.offset, len: request.len, source }
}

/// Lets time pass without spinning where it is long enough; the last 60 us are spun, because a sleep ends late.
pub(crate) fn pass(for_ns: Nanos) {
    const SPIN_NS: Nanos = 60_000;
    let clock = Clock::get();
    let end = clock.now() + for_ns;
    if for_ns > SPIN_NS {
        std::thread::sleep(std::time::Duration::from_nanos(for_ns - SPIN_NS));
    }
    while clock.now() < end {
        std::hint::spin_loop();
    }
}
