//! Linux native asynchronous I/O: `io_submit` and `io_getevents`, called directly.

use super::{Session, Wait};
use machine::{Completion, Op, Request};
use std::io;
use std::os::fd::RawFd;

const IOCB_CMD_PREAD: u16 = 0;
const IOCB_CMD_PWRITE: u16 = 1;

/// The kernel's `struct iocb` (little-endian layout, `linux/aio_abi.h`).
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

/// The kernel's `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

/// A context of `io_setup`.
pub(crate) struct NativeAio {
    context: u64,
    fds: Vec<RawFd>,
    blocks: Box<[ControlBlock]>,
    /// Blocks that are not at the kernel.
    free: Vec<u32>,
    queued: Vec<*mut ControlBlock>,
    events: Box<[Event]>,
    ready: usize,
    /// Requests that the kernel refused at submission, to be reaped as failures.
    refused: Vec<Completion>,
}

/// Whether this kernel has the interface. Asked with a context that is none: making and destroying a real one takes the kernel tens of
/// milliseconds.
pub(crate) fn available() -> bool {
    // SAFETY: the kernel looks for context 0, and there is none.
    let result = unsafe { libc::syscall(libc::SYS_io_destroy, 0 as libc::c_ulong) };
    result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

impl NativeAio {
    /// A context for `entries` requests to the files `fds`.
    pub(crate) fn new(fds: Vec<RawFd>, entries: u32) -> io::Result<NativeAio> {
        let mut context = 0u64;
        // SAFETY: io_setup writes one context handle.
        if unsafe { libc::syscall(libc::SYS_io_setup, entries as libc::c_long, &mut context as *mut u64) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(NativeAio {
            context,
            fds,
            blocks: vec![ControlBlock::default(); entries as usize].into_boxed_slice(),
            free: (0..entries).rev().collect(),
            queued: Vec::with_capacity(entries as usize),
            events: vec![Event::default(); entries as usize].into_boxed_slice(),
            ready: 0,
            refused: Vec::with_capacity(entries as usize),
        })
    }
}

impl Session for NativeAio {
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
            ..ControlBlock::default()
        };
        self.queued.push(block);
    }

    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        let mut start = 0;
        while start < self.queued.len() {
            let rest = &mut self.queued[start..];
            // SAFETY: every pointer is to a block of `self.blocks`, which lives until the context is destroyed.
            let taken = unsafe { libc::syscall(libc::SYS_io_submit, self.context, rest.len() as libc::c_long, rest.as_mut_ptr()) };
            if taken > 0 {
                start += taken as usize;
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // The kernel's queue is full: take completions first, submit the rest at the next turn.
                Some(libc::EAGAIN) => break,
                code => {
                    // The first of the rest is the one refused; the ones behind it may be well.
                    // SAFETY: a pointer to a block of `self.blocks`.
                    let data = unsafe { (*rest[0]).data };
                    self.free.push((data >> 32) as u32);
                    self.refused.push(Completion { slot: data as u32, result: -code.unwrap_or(libc::EIO) });
                    start += 1;
                }
            }
        }
        self.queued.drain(..start);
        let mut timeout = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let (least, timeout): (libc::c_long, *mut libc::timespec) = match wait {
            _ if !self.refused.is_empty() => (0, &mut timeout),
            Wait::One => (1, std::ptr::null_mut()),
            Wait::For(ns) => {
                timeout = libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
                (1, &mut timeout)
            }
        };
        // SAFETY: `events` has room for as many as are asked for.
        let got = unsafe {
            libc::syscall(libc::SYS_io_getevents, self.context, least, self.events.len() as libc::c_long, self.events.as_mut_ptr(), timeout)
        };
        if got >= 0 {
            self.ready = got as usize;
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
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
}

impl Drop for NativeAio {
    fn drop(&mut self) {
        // SAFETY: destroys the context of `new`, once; it waits for what is in flight.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
