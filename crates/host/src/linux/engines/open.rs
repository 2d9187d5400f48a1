//! What every engine's session is opened with.

use crate::arena::Arena;
use crate::reaping::Tally;
use machine::{Hint, Request, Stability};
use rustix::fs::{FallocateFlags, FileType};
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

/// What a session opens for one stream.
pub(super) struct Setup<'f, 's> {
    /// The open files, which outlive the session.
    pub(super) fds: &'f [RawFd],
    /// The most requests outstanding; of a stripe's, each piece counts.
    pub(super) entries: u32,
    /// The buffers, which outlive the session.
    pub(super) arena: &'s mut Arena,
    /// Where the part of each file that requests may touch ends.
    pub(super) end: u64,
    pub(super) writes: bool,
    pub(super) hint: Hint,
    /// Whether the buffers are to be registered with the kernel, where the interface allows.
    pub(super) register: bool,
    /// Where it is told what the stream has to do without.
    pub(super) tally: &'s Tally,
}

/// The rest of an engine's table: its other calls are [`Session`]'s or [`BlockingSession`]'s, its name and depth
/// [`Engine`]'s.
pub(super) trait Open<'f>: Sized {
    /// Whether this kernel has the mechanism and lets this process use it.
    fn available() -> bool {
        true
    }

    /// A session of one thread.
    ///
    /// # Errors
    /// What the kernel says.
    fn open(setup: Setup<'f, '_>) -> io::Result<Self>;
}

/// Gives the bytes of a request back to its file: a block device discards them, and a file has a hole there.
pub(super) fn discard(fds: &[RawFd], request: &Request) -> io::Result<()> {
    let raw = fds[request.target as usize];
    // SAFETY: the files of a stream are open for as long as its session.
    let fd = unsafe { BorrowedFd::borrow_raw(raw) };
    if !FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode).is_block_device() {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        return Ok(rustix::fs::fallocate(fd, flags, request.offset, u64::from(request.len))?);
    }
    let range = [request.offset, u64::from(request.len)];
    // SAFETY: BLKDISCARD reads two numbers: where, and how many bytes.
    if unsafe { libc::ioctl(raw, BLKDISCARD, range.as_ptr()) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `_IO(0x12, 119)` of `linux/fs.h`.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// Brings files to stable storage, or out of the cache.
pub(super) fn synchronise(fds: &[RawFd], what: Stability) -> io::Result<()> {
    for &fd in fds {
        // SAFETY: the files of a stream are open for as long as its session.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        match what {
            Stability::Data => rustix::fs::fdatasync(fd)?,
            Stability::File => rustix::fs::fsync(fd)?,
            // Advice: a file system that does not take it has no cache to drop.
            Stability::Uncached => {
                let _ = rustix::fs::fadvise(fd, 0, None, rustix::fs::Advice::DontNeed);
            }
        }
    }
    Ok(())
}
