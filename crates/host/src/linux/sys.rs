//! The system calls that the standard library lacks, each as a safe function.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn check(returned: i32) -> io::Result<()> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes the lock of a file, or fails at once where another process has it.
pub(crate) fn try_lock(file: &File) -> io::Result<()> {
    // SAFETY: an open descriptor.
    check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) })
}

/// Bytes that an ordinary user may still write in the file system of `path`; none where it does not count them.
pub(crate) fn free_bytes(path: &Path) -> io::Result<Option<u64>> {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: an all-zero statvfs is valid, and the path is a C string.
    unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        check(libc::statvfs(path.as_ptr(), &mut stat))?;
        // ramfs, and tmpfs without a limit, say that they have no blocks at all.
        Ok((stat.f_blocks > 0).then_some(stat.f_bavail * stat.f_frsize))
    }
}

/// Bytes in a block device.
pub(crate) fn device_size(file: &File) -> io::Result<u64> {
    const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
    let mut size = 0u64;
    // SAFETY: BLKGETSIZE64 writes one u64.
    check(unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64 as _, &mut size) })?;
    Ok(size)
}

/// Drops the page cache of a range of one file (length 0: to the end). Dirty pages stay, so sync first.
pub(crate) fn drop_cache(fd: RawFd, start: u64, len: u64) {
    // SAFETY: advice on an open descriptor; it cannot fail in a way that matters.
    unsafe { libc::posix_fadvise(fd, start as libc::off_t, len as libc::off_t, libc::POSIX_FADV_DONTNEED) };
}

/// Tells the cache in which order a file will be read.
pub(crate) fn advise(fd: RawFd, hint: machine::Hint) {
    let advice = match hint {
        machine::Hint::None => libc::POSIX_FADV_NORMAL,
        machine::Hint::Sequential => libc::POSIX_FADV_SEQUENTIAL,
        machine::Hint::Random => libc::POSIX_FADV_RANDOM,
    };
    // SAFETY: advice on an open descriptor.
    unsafe { libc::posix_fadvise(fd, 0, 0, advice) };
}

/// Confines the calling thread, and those that it starts from now on, to these processors.
pub(crate) fn bind(processors: &[u32]) -> io::Result<()> {
    // SAFETY: an all-zero set is an empty one; the size is the set's.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &processor in processors {
            if processor as usize >= 8 * size_of::<libc::cpu_set_t>() {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            libc::CPU_SET(processor as usize, &mut set);
        }
        check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set))
    }
}

/// Reserves space without writing it.
pub(crate) fn reserve(file: &File, len: u64) -> io::Result<()> {
    // SAFETY: an open descriptor.
    check(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len as libc::off_t) })
}

/// A file that lives in memory and goes with its descriptor.
pub(crate) fn memory_file() -> io::Result<File> {
    // SAFETY: a C string; the descriptor is owned by nobody else.
    unsafe {
        let fd = libc::memfd_create(c"halfpower".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from_raw_fd(fd)) }
    }
}
