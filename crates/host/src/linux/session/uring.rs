//! io_uring: one ring a thread, single issuer, task work deferred to the wait, files and buffers registered.

use super::{Session, Wait};
use crate::linux::arena::Arena;
use io_uring::{IoUring, opcode, squeue, types};
use machine::{Completion, Op, Request};
use std::io;
use std::os::fd::RawFd;

/// The kernel takes at most this many bytes in one registered buffer.
const REGISTERED_MOST: usize = 1 << 30;

/// The largest submission ring; more outstanding requests than this go in several submissions.
const RING_MOST: u32 = 4096;

/// A ring with its files registered and, where the memory limit allows, its buffers.
pub(crate) struct Ring {
    ring: IoUring,
    registered: bool,
}

impl Ring {
    /// A ring for `entries` requests to `fds`, from and to the buffers of `arena`.
    pub(crate) fn new(fds: &[RawFd], entries: u32, arena: &mut Arena) -> io::Result<Ring> {
        let ring = build(entries.clamp(1, RING_MOST))?;
        ring.submitter().register_files(fds)?;
        let bytes = arena.bytes();
        let whole = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // The arena outlives the ring (see `run`). A refusal (the locked-memory limit) costs speed, not truth.
        // SAFETY: the registered range is the arena's mapping.
        let registered = bytes.len() <= REGISTERED_MOST && unsafe { ring.submitter().register_buffers(&[whole]) }.is_ok();
        Ok(Ring { ring, registered })
    }

    #[inline(always)]
    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the buffer stays untouched until the completion, and the arena outlives the ring.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The ring is full: the kernel takes what is there. An error shows again at the next submission.
            let _ = self.ring.submit();
        }
    }
}

/// Whether this kernel lets this process have a ring. Asked for a ring of no entries: permission is looked at first, and making and
/// closing a real one takes milliseconds.
pub(crate) fn available() -> bool {
    let mut parameters = [0u8; 120];
    // SAFETY: the parameters are as long as the kernel's `struct io_uring_params`.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, 0 as libc::c_uint, parameters.as_mut_ptr()) };
    result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// The leanest ring that this kernel offers.
fn build(entries: u32) -> io::Result<IoUring> {
    let completions = entries.saturating_mul(2);
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(completions)
        .build(entries)
        .or_else(|_| IoUring::builder().setup_coop_taskrun().setup_cqsize(completions).build(entries))
        .or_else(|_| IoUring::builder().setup_cqsize(completions).build(entries))
}

impl Session for Ring {
    #[inline(always)]
    fn issue(&mut self, file: u32, request: &Request, at: *mut u8) {
        let fd = types::Fixed(file);
        let &Request { offset, len, slot, .. } = request;
        let data = u64::from(slot);
        // Each entry goes into the ring where it is made: one that passes through a variable is copied twice.
        match (request.op, self.registered) {
            (Op::Read, true) => self.push(&opcode::ReadFixed::new(fd, at, len, 0).offset(offset).build().user_data(data)),
            (Op::Write, true) => self.push(&opcode::WriteFixed::new(fd, at, len, 0).offset(offset).build().user_data(data)),
            (Op::Read, false) => self.push(&opcode::Read::new(fd, at, len).offset(offset).build().user_data(data)),
            (Op::Write, false) => self.push(&opcode::Write::new(fd, at, len).offset(offset).build().user_data(data)),
        }
    }

    #[inline(always)]
    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        let result = match wait {
            Wait::One => self.ring.submit_and_wait(1),
            Wait::For(ns) => {
                let timeout = types::Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32);
                self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&timeout))
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) => tolerated(error),
        }
    }

    #[inline(always)]
    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        for entry in self.ring.completion() {
            take(Completion { slot: entry.user_data() as u32, result: entry.result() });
        }
    }
}

/// A ring whose requests go to the kernel and back and no further: what the ring and the loop around it can do.
pub(crate) struct NoOps {
    ring: Ring,
}

impl NoOps {
    /// A ring for so many requests.
    pub(crate) fn new(entries: u32) -> io::Result<NoOps> {
        Ok(NoOps { ring: Ring { ring: build(entries.clamp(1, RING_MOST))?, registered: false } })
    }
}

impl Session for NoOps {
    #[inline(always)]
    fn issue(&mut self, _file: u32, request: &Request, _at: *mut u8) {
        // A no-op's own result is 0; the driver wants the length.
        self.ring.push(&opcode::Nop::new().build().user_data(u64::from(request.len) << 32 | u64::from(request.slot)));
    }

    #[inline(always)]
    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        self.ring.submit(wait)
    }

    #[inline(always)]
    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        for entry in self.ring.ring.completion() {
            take(Completion { slot: entry.user_data() as u32, result: (entry.user_data() >> 32) as i32 });
        }
    }
}

/// What the kernel says of a wait that ended without a completion, or with its queue full, is no failure: the next turn tries again.
#[cold]
fn tolerated(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
        _ => Err(error),
    }
}
