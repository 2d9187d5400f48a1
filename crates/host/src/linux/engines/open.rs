use crate::arena::Arena;
use crate::reaping::PartCounters;
use machine::{Hint, Request, Stability, Writeback};
use rustix::fs::{FallocateFlags, FileType};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

pub(super) struct Setup<'f, 's> {
    pub(super) fds: &'f [RawFd],
    /// The maximum; each piece of a stripe counts.
    pub(super) entries: u32,
    pub(super) arena: &'s mut Arena,
    pub(super) end: u64,
    pub(super) writes: bool,
    pub(super) hint: Hint,
    pub(super) register: bool,
    pub(super) kernel_polls: bool,
    pub(super) tally: &'s PartCounters,
}

pub(super) trait Open<'f>: Sized {
    fn available() -> bool {
        true
    }

    fn open(setup: Setup<'f, '_>) -> io::Result<Self>;
}

pub(super) fn discard(fds: &[RawFd], request: &Request) -> io::Result<()> {
    let raw = fds[request.target as usize];
    // SAFETY: a stream's files stay open as long as its session.
    let fd = unsafe { BorrowedFd::borrow_raw(raw) };
    if !FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode).is_block_device() {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        return Ok(rustix::fs::fallocate(fd, flags, request.offset, u64::from(request.len))?);
    }
    let range = [request.offset, u64::from(request.len)];
    // SAFETY: BLKDISCARD reads two numbers, offset and length.
    if unsafe { libc::ioctl(raw, BLKDISCARD, range.as_ptr()) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn move_dirty(fd: BorrowedFd, how: Writeback, offset: u64, bytes: u64) -> io::Result<()> {
    let flags = [
        (how.wait_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE),
        (how.write, libc::SYNC_FILE_RANGE_WRITE),
        (how.wait_after, libc::SYNC_FILE_RANGE_WAIT_AFTER),
    ];
    let flags = flags.iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag);
    // SAFETY: only numbers are passed.
    let result =
        unsafe { libc::sync_file_range(fd.as_raw_fd(), offset as i64, bytes as i64, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `_IO(0x12, 119)` of `linux/fs.h`.
const BLKDISCARD: libc::Ioctl = 0x1277;

pub(super) fn synchronise(fds: &[RawFd], what: Stability, target: Option<u32>) -> io::Result<()> {
    let fds = match target {
        Some(target) => &fds[target as usize..=target as usize],
        None => fds,
    };
    for &fd in fds {
        // SAFETY: a stream's files stay open as long as its session.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        match what {
            Stability::Data => rustix::fs::fdatasync(fd)?,
            Stability::File => rustix::fs::fsync(fd)?,
            // Only advice: a file system that refuses it has no cache to drop.
            Stability::Uncached => {
                let _ = rustix::fs::fadvise(fd, 0, None, rustix::fs::Advice::DontNeed);
            }
            // 0 B would be all up to the end.
            Stability::Moved { bytes: 0, .. } => {}
            Stability::Moved { how, offset, bytes } => move_dirty(fd, how, offset, bytes)?,
        }
    }
    Ok(())
}
