//! Calls `io_submit` and `io_getevents` directly.

use super::open::{Open, Setup, discard, synchronise};
use crate::session::{Session, TICK_NS, Wait};
use machine::{Completion, Op, REAP_WAIT_NS, Request, Stability};
use std::io;
use std::os::fd::RawFd;

const IOCB_FLAG_IOPRIO: u32 = 1 << 1;
const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;

/// `struct iocb` (little-endian layout, `linux/aio_abi.h`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ControlBlock {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    result_fd: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

pub(crate) struct NativeAio<'a> {
    context: u64,
    fds: &'a [RawFd],
    blocks: Box<[ControlBlock]>,
    free: Vec<u32>,
    queued: Vec<*mut ControlBlock>,
    events: Box<[Event]>,
    ready: usize,
    refused: Vec<Completion>,
    priority: u16,
}

const MAX_CONTEXT: u32 = 65_536;

impl<'f> Open<'f> for NativeAio<'f> {
    /// A real context would take tens of milliseconds to create.
    fn available() -> bool {
        // SAFETY: the kernel looks up context 0, which does not exist.
        let result = unsafe { libc::syscall(libc::SYS_io_destroy, 0 as libc::c_ulong) };
        result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
    }

    fn open(setup: Setup<'f, '_>) -> io::Result<Self> {
        let Setup { fds, entries, .. } = setup;
        let mut context = 0u64;
        let max = entries.min(MAX_CONTEXT);
        // SAFETY: io_setup writes one context handle.
        if unsafe {
            libc::syscall(libc::SYS_io_setup, max as libc::c_long, &mut context as *mut u64)
        } < 0
        {
            return Err(io::Error::last_os_error());
        }
        Ok(NativeAio {
            context,
            fds,
            blocks: vec![ControlBlock::default(); entries as usize].into_boxed_slice(),
            free: (0..entries).rev().collect(),
            queued: Vec::with_capacity(entries as usize),
            events: vec![Event::default(); max as usize].into_boxed_slice(),
            ready: 0,
            refused: Vec::with_capacity(entries as usize),
            priority: 0,
        })
    }
}

impl Session for NativeAio<'_> {
    #[inline(always)]
    fn issue(&mut self, file: u32, request: &Request, at: *mut u8) {
        let Some(index) = self.free.pop() else {
            self.refused.push(Completion { slot: request.slot, result: -libc::EAGAIN });
            return;
        };
        let block = &mut self.blocks[index as usize];
        *block = ControlBlock {
            data: u64::from(index) << 32 | u64::from(request.slot),
            opcode: if request.op == Op::Read { IOCB_CMD_PREAD } else { IOCB_CMD_PWRITE },
            fd: self.fds[file as usize] as u32,
            buffer: at as u64,
            bytes: u64::from(request.len),
            offset: request.offset as i64,
            priority: self.priority as i16,
            flags: if self.priority == 0 { 0 } else { IOCB_FLAG_IOPRIO },
            ..ControlBlock::default()
        };
        self.queued.push(block);
    }

    fn set_priority(&mut self, bits: u16) {
        self.priority = bits;
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let mut start = 0;
        while start < self.queued.len() {
            let rest = &mut self.queued[start..];
            // SAFETY: every pointer refers to a block of `self.blocks`, which outlives the context.
            let taken = unsafe {
                libc::syscall(
                    libc::SYS_io_submit,
                    self.context,
                    rest.len() as libc::c_long,
                    rest.as_mut_ptr(),
                )
            };
            if taken > 0 {
                start += taken as usize;
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // The kernel's queue is full: reap completions first and submit the rest next turn.
                // If the queue is empty, no completion will come.
                Some(libc::EAGAIN) => {
                    let at_kernel = self.blocks.len() - self.free.len() - rest.len();
                    if at_kernel == 0 && self.refused.is_empty() {
                        self.queued.drain(..start);
                        return Err(error);
                    }
                    break;
                }
                code => {
                    // The kernel refused the first of the rest; those after it may be valid.
                    // SAFETY: points to a block of `self.blocks`.
                    let data = unsafe { (*rest[0]).data };
                    self.free.push((data >> 32) as u32);
                    self.refused
                        .push(Completion { slot: data as u32, result: -code.unwrap_or(libc::EIO) });
                    start += 1;
                }
            }
        }
        self.queued.drain(..start);
        Ok(())
    }

    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        if !self.queued.is_empty() {
            self.hand_over()?;
        }
        let (min, wait_ns) = match wait {
            _ if !self.refused.is_empty() => (0, 0),
            Wait::One => (1, TICK_NS),
            Wait::Several(completions) => (completions, REAP_WAIT_NS),
            Wait::For(ns) => (libc::c_long::from(ns > 0) as u32, ns),
        };
        let mut timeout = libc::timespec { tv_sec: 0, tv_nsec: wait_ns as i64 };
        // SAFETY: `events` has room for the requested number.
        let got = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                libc::c_long::from(min),
                self.events.len() as libc::c_long,
                self.events.as_mut_ptr(),
                &mut timeout,
            )
        };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        self.ready = got as usize;
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        for event in &self.events[..self.ready] {
            self.free.push((event.data >> 32) as u32);
            take(Completion { slot: event.data as u32, result: event.result as i32 });
        }
        self.ready = 0;
        self.refused.drain(..).for_each(take);
    }

    fn discard(&mut self, request: &Request) -> io::Result<()> {
        discard(self.fds, request)
    }

    fn queued(&mut self) -> u32 {
        self.queued.len() as u32
    }

    fn sync(&mut self, what: Stability, target: Option<u32>) -> io::Result<()> {
        synchronise(self.fds, what, target)
    }
}

impl Drop for NativeAio<'_> {
    fn drop(&mut self) {
        // SAFETY: destroys the context of `new`, once; waits for requests in flight.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
