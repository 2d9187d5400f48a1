//! Copies from and to a memory-mapped file.

use super::BlockingSession;
use machine::{Hint, Op, Request};
use std::io;
use std::os::fd::RawFd;

/// A session over a mapping of the whole file.
pub(crate) struct Mapped {
    base: *mut u8,
    len: usize,
}

impl Mapped {
    /// Maps `len` bytes of the file, writable where asked.
    pub(crate) fn new(fd: RawFd, len: u64, writes: bool, hint: Hint) -> io::Result<Mapped> {
        let len = len as usize;
        let protection = if writes { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: a new shared mapping of an open file; the kernel chooses where.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let advice = match hint {
            Hint::None => libc::MADV_NORMAL,
            Hint::Sequential => libc::MADV_SEQUENTIAL,
            Hint::Random => libc::MADV_RANDOM,
        };
        // SAFETY: advice on our own mapping; its failure changes nothing but speed.
        unsafe { libc::madvise(base, len, advice) };
        Ok(Mapped { base: base.cast(), len })
    }
}

impl BlockingSession for Mapped {
    #[inline(always)]
    fn perform(&mut self, request: &Request, at: *mut u8) -> i32 {
        let (offset, len) = (request.offset as usize, request.len as usize);
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return -libc::EINVAL;
        }
        // SAFETY: the range was just checked to lie in the mapping; `at` is `len` bytes of the arena.
        unsafe {
            match request.op {
                Op::Read => std::ptr::copy_nonoverlapping(self.base.add(offset), at, len),
                Op::Write => std::ptr::copy_nonoverlapping(at, self.base.add(offset), len),
            }
        }
        request.len as i32
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped, once.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}
