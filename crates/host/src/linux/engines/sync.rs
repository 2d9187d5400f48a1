//! One blocking call at a time: `pread` and `pwrite`.

use super::open::{Open, Setup, discard, synchronise};
use crate::session::BlockingSession;
use machine::{Op, Request, Stability};
use std::io;
use std::os::fd::RawFd;

pub(crate) struct Blocking<'a> {
    fds: &'a [RawFd],
    kernel_polls: bool,
}

impl Blocking<'_> {
    #[cold]
    fn perform_polled(&self, request: &Request, at: *mut u8) -> i32 {
        let fd = self.fds[request.target as usize];
        let data = libc::iovec { iov_base: at.cast(), iov_len: request.len as usize };
        let offset = request.offset as libc::off_t;
        // SAFETY: `at` is `len` bytes of the session's arena.
        let done = unsafe {
            match request.op {
                Op::Read => libc::preadv2(fd, &raw const data, 1, offset, libc::RWF_HIPRI),
                Op::Write => libc::pwritev2(fd, &raw const data, 1, offset, libc::RWF_HIPRI),
            }
        };
        if done < 0 {
            -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
        } else {
            done as i32
        }
    }
}

impl<'f> Open<'f> for Blocking<'f> {
    fn open(setup: Setup<'f, '_>) -> io::Result<Self> {
        Ok(Blocking { fds: setup.fds, kernel_polls: setup.kernel_polls })
    }
}

impl BlockingSession for Blocking<'_> {
    #[inline(always)]
    fn perform(&mut self, request: &Request, at: *mut u8) -> i32 {
        if self.kernel_polls {
            return self.perform_polled(request, at);
        }
        let number = match request.op {
            Op::Read => libc::SYS_pread64,
            Op::Write => libc::SYS_pwrite64,
        };
        // SAFETY: `at` is `len` bytes of the session's arena.
        unsafe { call(number, self.fds[request.target as usize], at, request.len, request.offset) }
    }

    fn discard(&mut self, request: &Request) -> io::Result<()> {
        discard(self.fds, request)
    }

    fn sync(&mut self, what: Stability, target: Option<u32>) -> io::Result<()> {
        synchronise(self.fds, what, target)
    }
}

/// The C library's wrapper is a cancellation point, about 50 instructions more.
///
/// # Safety
/// The call may read or write `len` bytes at `at`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn call(number: libc::c_long, fd: RawFd, at: *mut u8, len: u32, offset: u64) -> i32 {
    let mut result = number;
    // SAFETY: the kernel's convention on x86_64: it changes only rax, rcx, r11 and memory at `at`.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") result,
            in("rdi") i64::from(fd),
            in("rsi") at,
            in("rdx") u64::from(len),
            in("r10") offset,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result as i32
}

/// # Safety
/// The call may read or write `len` bytes at `at`.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn call(number: libc::c_long, fd: RawFd, at: *mut u8, len: u32, offset: u64) -> i32 {
    // SAFETY: as the caller promises.
    let result = unsafe {
        if number == libc::SYS_pread64 {
            libc::pread(fd, at.cast(), len as usize, offset as libc::off_t)
        } else {
            libc::pwrite(fd, at.cast(), len as usize, offset as libc::off_t)
        }
    };
    if result < 0 {
        -std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
    } else {
        result as i32
    }
}
