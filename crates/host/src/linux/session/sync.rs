//! One blocking call at a time: `pread` and `pwrite`.

use super::{Session, Wait, pass, result_of};
use machine::{Completion, Op, Request};
use std::io;
use std::os::fd::RawFd;

/// A session that does each request where it is issued.
pub(crate) struct Blocking {
    fd: RawFd,
    done: Option<Completion>,
}

impl Blocking {
    /// A session on one open file.
    pub(crate) fn new(fd: RawFd) -> Blocking {
        Blocking { fd, done: None }
    }
}

impl Session for Blocking {
    #[inline(always)]
    fn issue(&mut self, _file: u32, request: &Request, at: *mut u8) {
        let (len, offset) = (request.len as usize, request.offset as libc::off_t);
        // SAFETY: `at` is `len` bytes of the session's arena.
        let returned = unsafe {
            match request.op {
                Op::Read => libc::pread(self.fd, at.cast(), len, offset),
                Op::Write => libc::pwrite(self.fd, at.cast(), len, offset),
            }
        };
        self.done = Some(Completion { slot: request.slot, result: result_of(returned) });
    }

    #[inline(always)]
    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        match wait {
            Wait::For(ns) if self.done.is_none() => pass(ns),
            _ => {}
        }
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        if let Some(completion) = self.done.take() {
            take(completion);
        }
    }
}
