//! No I/O: measures the limit of the loops.

use super::open::{Open, Setup};
use crate::linux::clock::Clock;
use crate::session::{BlockingSession, Session, Time, Wait};
use machine::{Completion, Request, Stability};
use std::io;

pub(crate) struct Null {
    done: Vec<Completion>,
}

impl Open<'_> for Null {
    fn available() -> bool {
        false
    }

    fn open(setup: Setup<'_, '_>) -> io::Result<Null> {
        Ok(Null { done: Vec::with_capacity(setup.entries as usize) })
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
            Clock::get().pass(ns);
        }
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, take: impl FnMut(Completion)) {
        self.done.drain(..).for_each(take);
    }

    fn hand_over(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn discard(&mut self, _request: &Request) -> io::Result<()> {
        Ok(())
    }

    fn queued(&mut self) -> u32 {
        0
    }

    fn sync(&mut self, _what: Stability, _target: Option<u32>) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) struct Instant;

impl Open<'_> for Instant {
    fn open(_setup: Setup<'_, '_>) -> io::Result<Instant> {
        Ok(Instant)
    }
}

impl BlockingSession for Instant {
    #[inline(always)]
    fn perform(&mut self, request: &Request, _at: *mut u8) -> i32 {
        request.len as i32
    }

    fn discard(&mut self, _request: &Request) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self, _what: Stability, _target: Option<u32>) -> io::Result<()> {
        Ok(())
    }
}
