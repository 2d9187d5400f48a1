//! What serving loops need of a system; tests run them over a failing kernel.

use crate::pause::Looks;
use machine::{Completion, Nanos, Request, Stability};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum wait, within which an interrupt is noticed.
pub(crate) const TICK_NS: Nanos = 50_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// At most [`TICK_NS`].
    One,
    /// This many or, after the first, [`machine::REAP_WAIT_NS`]; at most [`TICK_NS`].
    Several(u32),
    /// One completion, or this long; at most [`TICK_NS`].
    For(Nanos),
}

/// Dropping it waits for or cancels requests; the loop never drops one with requests in flight.
pub(crate) trait Session {
    /// `at` is the request's data, untouched until completion.
    fn issue(&mut self, file: u32, request: &Request, at: *mut u8);

    /// Applies to later requests, in the kernel's encoding; 0 is the thread's.
    fn set_priority(&mut self, _bits: u16) {}

    /// Requests that the kernel refused stay queued.
    fn submit(&mut self, wait: Wait) -> io::Result<()>;

    fn hand_over(&mut self) -> io::Result<()>;

    /// Waits for completion.
    fn discard(&mut self, request: &Request) -> io::Result<()>;

    fn reap(&mut self, take: impl FnMut(Completion));

    /// Counts issued requests that the kernel has not taken yet.
    fn queued(&mut self) -> u32;

    /// Syncs one target or all, in the calling thread.
    fn sync(&mut self, what: Stability, target: Option<u32>) -> io::Result<()>;
}

pub(crate) trait BlockingSession {
    /// Uses the data at `at`; returns the result as in a completion.
    fn perform(&mut self, request: &Request, at: *mut u8) -> i32;

    fn discard(&mut self, request: &Request) -> io::Result<()>;

    fn sync(&mut self, what: Stability, target: Option<u32>) -> io::Result<()>;
}

pub(crate) trait Time: Copy {
    /// Counts from an arbitrary start.
    fn now(self) -> Nanos;

    fn pass(self, for_ns: Nanos);
}

#[derive(Clone, Copy)]
pub(crate) struct Halt<'a> {
    pub(crate) interrupt: &'a AtomicBool,
    pub(crate) failed: &'a AtomicBool,
    pub(crate) looks: &'a Looks,
}

impl Halt<'_> {
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

    pub(crate) fn pass_until(self, then: Nanos, time: impl Time) {
        loop {
            let left = then.saturating_sub(time.now());
            if left == 0 || self.asked() {
                return;
            }
            time.pass(left.min(TICK_NS));
        }
    }
}
