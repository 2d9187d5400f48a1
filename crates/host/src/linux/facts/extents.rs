//! In how many pieces a file lies on its device.

use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// `struct fiemap` of `linux/fiemap.h`, without room for extents: only their number is wanted.
#[repr(C)]
#[derive(Default)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `FS_IOC_FIEMAP` of `linux/fs.h`: `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: u64 = 0xC020_660B;

/// The number of extents of a regular file; none where the file system does not tell.
pub(super) fn count(path: &Path) -> Option<u32> {
    // A named pipe that took the file's place must not block.
    let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOATIME).open(path);
    let file =
        file.or_else(|_| std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut map = Fiemap { length: u64::MAX, ..Fiemap::default() };
    // SAFETY: the kernel writes the header alone, for there is no room for extents, and the header lives until it returns.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) };
    (done == 0).then_some(map.mapped_extents)
}
