//! Sessions: one thread's way of issuing requests to the kernel, and the loop that serves an asker through one.

pub(crate) mod aio;
pub(crate) mod mapped;
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
    let none = Request { op: Op::Read, offset: 0, len: 0, slot: 0 };
    let mut outstanding = vec![none; asker.depth() as usize].into_boxed_slice();
    let mut in_flight = 0u32;
    let mut failure: Option<Error> = None;
    let checks = asker.checks();
    let mut now = clock.now();
    let mut last = now;
    asker.begin(now);
    loop {
        let wait = if failure.is_some() || halt.asked() {
            if in_flight == 0 {
                break;
            }
            Wait::One
        } else {
            loop {
                match asker.next(now) {
                    Next::Issue(request) => {
                        let at = match request.op {
                            Op::Read => arena.read_place(request.slot),
                            Op::Write => {
                                let at = arena.write_place(request.slot);
                                // SAFETY: the arena gives every slot room for the asker's largest request.
                                asker.fill(&request, unsafe { std::slice::from_raw_parts_mut(at, request.len as usize) });
                                at
                            }
                        };
                        outstanding[request.slot as usize] = request;
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
        session.submit(wait).map_err(Error::io("cannot submit to", "the kernel's queue"))?;
        now = clock.now();
        session.reap(|completion| {
            in_flight -= 1;
            last = now;
            let request = outstanding[completion.slot as usize];
            if completion.result != request.len as i32 {
                failure.get_or_insert_with(|| failed(&request, completion.result));
            } else if checks && request.op == Op::Read {
                // SAFETY: the read filled the slot's buffer, and nothing else writes it before the slot is used again.
                asker.check(request.slot, unsafe { std::slice::from_raw_parts(arena.read_place(request.slot), request.len as usize) });
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

/// The result of a system call as a completion has it.
pub(crate) fn result_of(returned: isize) -> i32 {
    if returned < 0 { -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) } else { returned as i32 }
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
