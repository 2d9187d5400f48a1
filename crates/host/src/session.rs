//! The seam between the serving loops and a system: sessions, the clock, and the wish to stop.
//!
//! The loops ([`crate::serve`]) are generic over everything here, so that tests can put a kernel that fails below them.

use crate::pause::Looks;
use machine::{Completion, Nanos, Request, Stability};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest that a session waits before it returns, with a completion or without: an interrupt is seen after this
/// time at the latest.
pub(crate) const TICK_NS: Nanos = 50_000_000;

/// How long a session may wait before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Until one request completed, or [`TICK_NS`].
    One,
    /// Until so many requests completed or, once one has, [`machine::REAP_WAIT_NS`]; or [`TICK_NS`].
    Several(u32),
    /// Until one request completed, or this long, which is at most [`TICK_NS`].
    For(Nanos),
}

/// One thread's way to a set of open files. The driver is generic over it: no dynamic dispatch per request.
///
/// Dropping a session waits for, or cancels, what is at the kernel; the loop never drops one with requests in flight.
pub(crate) trait Session {
    /// Queues a request to the file with this index; `at` is its data, `request.len` bytes long, untouched until it
    /// completes.
    fn issue(&mut self, file: u32, request: &Request, at: *mut u8);

    /// The requests that are issued from now on have this priority, as the kernel has it; 0: that of the thread. Where calls carry none it has no
    /// effect.
    fn set_priority(&mut self, _bits: u16) {}

    /// Submits what is queued and waits.
    ///
    /// # Errors
    /// What the kernel says; requests that it did not take stay queued for the next call.
    fn submit(&mut self, wait: Wait) -> io::Result<()>;

    /// Gives the kernel what is queued, and waits for nothing.
    ///
    /// # Errors
    /// As [`Session::submit`].
    fn hand_over(&mut self) -> io::Result<()>;

    /// Gives the bytes of a request back to its file (discard), and waits for that.
    ///
    /// # Errors
    /// What the kernel says; a session that cannot.
    fn discard(&mut self, request: &Request) -> io::Result<()>;

    /// Takes every completion that is there.
    fn reap(&mut self, take: impl FnMut(Completion));

    /// How many of the issued requests the kernel has not taken yet.
    fn queued(&mut self) -> u32;

    /// Brings everything written to stable storage, in the calling thread.
    ///
    /// # Errors
    /// What the kernel says.
    fn sync(&mut self, what: Stability) -> io::Result<()>;
}

/// One thread's way to a set of open files where each request is done when the call returns.
pub(crate) trait BlockingSession {
    /// Does a request; `at` is its data, `request.len` bytes long. The result is as a completion's.
    fn perform(&mut self, request: &Request, at: *mut u8) -> i32;

    /// As [`Session::discard`].
    ///
    /// # Errors
    /// What the kernel says; a session that cannot.
    fn discard(&mut self, request: &Request) -> io::Result<()>;

    /// As [`Session::sync`].
    ///
    /// # Errors
    /// What the kernel says.
    fn sync(&mut self, what: Stability) -> io::Result<()>;
}

/// A clock that never goes back, and sleep.
pub(crate) trait Time: Copy {
    /// Nanoseconds from an arbitrary start.
    fn now(self) -> Nanos;

    /// Lets this time pass.
    fn pass(self, for_ns: Nanos);
}

/// Why a run is to end early: the user's interrupt, or another stream's failure; and where a stream says that it runs.
#[derive(Clone, Copy)]
pub(crate) struct Halt<'a> {
    pub(crate) interrupt: &'a AtomicBool,
    pub(crate) failed: &'a AtomicBool,
    pub(crate) looks: &'a Looks,
}

impl Halt<'_> {
    /// [`Halt::asked`] of a stream that says that it runs.
    pub(crate) fn asked_at(self, now: Nanos) -> bool {
        self.looks.note(now);
        self.asked()
    }

    #[inline(always)]
    pub(crate) fn asked(self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.interrupted()
    }

    #[inline(always)]
    pub(crate) fn interrupted(self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Lets time pass until `then`, or until the run is to end.
    pub(crate) fn pass_until(self, then: Nanos, time: impl Time) {
        loop {
            let left = then.saturating_sub(time.now());
            if left == 0 || self.asked() {
                return;
            }
            time.pass(left.min(10_000_000));
        }
    }
}
