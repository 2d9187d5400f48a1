//! No I/O at all: what the loops around a session can do.

use super::{BlockingSession, Session, Wait, pass};
use machine::{Completion, Request};
use std::io;

/// A session whose requests are done when they are issued.
pub(crate) struct Null {
    done: Vec<Completion>,
}

impl Null {
    /// A session for so many requests outstanding.
    pub(crate) fn new(entries: u32) -> Null {
        Null { done: Vec::with_capacity(entries as usize) }
    }
}

impl Session for Null {
    #[inline(always)]
    fn issue(&mut self, _file: u32, request: &Request, _at: *mut u8) {
        self.done.push(Completion { slot: request.slot, result: request.len as i32 });
    }

    #[inline(always)]
    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        if let (Wait::For(ns), true) = (wait, self.done.is_empty()) {
            pass(ns);
        }
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, take: impl FnMut(Completion)) {
        self.done.drain(..).for_each(take);
    }
}

/// The same for the loop of blocking calls.
pub(crate) struct Instant;

impl BlockingSession for Instant {
    #[inline(always)]
    fn perform(&mut self, request: &Request, _at: *mut u8) -> i32 {
        request.len as i32
    }
}
