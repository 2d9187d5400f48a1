//! System calls that the standard library lacks.

use machine::{FileSystemSpace, IoPriority};
use rustix::fs::{self, Advice};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Seek};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

pub(crate) const INTERRUPTED_CALL: i32 = -libc::EINTR;

/// Asks libc: rustix reads the auxiliary vector, which crashes under valgrind.
pub(crate) fn page_size() -> usize {
    // SAFETY: it only returns a number, which every Linux has.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

pub(crate) fn request_error(result: i32) -> io::Error {
    io::Error::from_raw_os_error(-result)
}

pub(crate) fn try_lock(file: &File) -> io::Result<()> {
    lock(file, fs::FlockOperation::NonBlockingLockExclusive)
}

pub(crate) fn try_share(file: &File) -> io::Result<()> {
    lock(file, fs::FlockOperation::NonBlockingLockShared)
}

fn lock(file: &File, operation: fs::FlockOperation) -> io::Result<()> {
    match rustix::io::retry_on_intr(|| fs::flock(file, operation)) {
        Err(rustix::io::Errno::NOLCK) => Err(io::Error::other(
            "the file system has no locks (ENOLCK), as NFS without a lock service: \
             start it (rpc.statd), or mount with -o local_lock=flock",
        )),
        locked => Ok(locked?),
    }
}

/// Fails without `/proc`, which [`path_of`] needs.
pub(crate) fn check_proc() -> machine::Result<()> {
    if Path::new("/proc/self/fd").exists() {
        return Ok(());
    }
    let why = "it is not mounted, and open files and mounts are found through it";
    Err(machine::Error::refused("/proc", why, "mount it (mount -t proc proc /proc)"))
}

pub(crate) fn is_locked(file: &File) -> bool {
    let free = try_lock(file).and_then(|()| Ok(fs::flock(file, fs::FlockOperation::Unlock)?));
    free.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Whether a process, loop device or file system has the file open for writing; `None` if file
/// system or permissions forbid the query. Needs `file` open for reading.
pub(crate) fn is_written(file: &File) -> Option<bool> {
    const F_SETSIG: libc::c_int = 10;
    let set = |command, value: libc::c_int| {
        // SAFETY: only numbers are passed.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // The kernel grants a read lease only if no open file can write. A program that opens it in the
    // meantime waits until the lease is released, and this process gets a signal. The default SIGIO
    // would kill it; SIGURG is ignored.
    set(F_SETSIG, libc::SIGURG).ok()?;
    match set(libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(()) => set(libc::F_SETLEASE, libc::F_UNLCK).ok().map(|()| false),
        Err(error) => (error.raw_os_error() == Some(libc::EAGAIN)).then_some(true),
    }
}

/// Works even if the file's own path now leads elsewhere.
pub(crate) fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// The first thread's, in bytes (`ulimit -s`); `None` if unlimited.
pub fn stack_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Stack).current
}

pub(crate) fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

pub(crate) fn free_bytes(path: &Path) -> io::Result<Option<u64>> {
    let stat = fs::statvfs(path)?;
    // ramfs, and tmpfs without a limit, report zero blocks.
    Ok((stat.f_blocks > 0).then_some(stat.f_bavail * stat.f_frsize))
}

/// `None` if the path does not exist.
pub fn file_system_space(path: &Path) -> Option<FileSystemSpace> {
    let stat = fs::statvfs(path).ok()?;
    Some(FileSystemSpace {
        bytes: stat.f_blocks * stat.f_frsize,
        free_bytes: stat.f_bfree * stat.f_frsize,
        files: stat.f_files,
        free_files: stat.f_ffree,
    })
}

pub(crate) fn device_size(mut file: &File) -> io::Result<u64> {
    file.seek(io::SeekFrom::End(0))
}

pub(crate) fn is_read_only(device: &File) -> bool {
    /// `_IO(0x12, 94)`; linux/fs.h
    const BLKROGET: libc::c_ulong = 0x125e;
    let mut is_set: libc::c_int = 0;
    // SAFETY: the kernel writes one int, which lives until the call is over.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), BLKROGET as _, &mut is_set) };
    result == 0 && is_set != 0
}

/// A length of 0 means to the end. Dirty pages stay: sync first.
pub(crate) fn drop_cache(file: &File, start: u64, len: u64) {
    // Only advice: a file system that refuses it has no cache to drop.
    let _ = fs::fadvise(file, start, NonZeroU64::new(len), Advice::DontNeed);
}

/// Needs Linux 6.5 (cachestat(2)).
pub(crate) fn cached_bytes(file: &File, start: u64, len: u64) -> io::Result<u64> {
    // Cached, dirty, under writeback, evicted, recently evicted; in pages.
    let (range, mut pages) = ([start, len], [0u64; 5]);
    // SAFETY: both arrays are as large as the kernel's structures, and outlive the call.
    let result = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            range.as_ptr(),
            pages.as_mut_ptr(),
            0 as libc::c_uint,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(pages[0] * page_size() as u64) }
}

/// On all architectures except Alpha; libc lacks it on some.
const SYS_CACHESTAT: libc::c_long = 451;

/// Whether all of a range was cached; `false` also if the file system cannot decide without
/// blocking. A kernel that begins to read (Linux 5.11 and later) may be done before it looks: ask
/// [`cached_bytes`] there.
pub(crate) fn read_cached(file: &File, into: &mut [u8], offset: u64) -> io::Result<bool> {
    let wanted = into.len();
    let mut parts = [io::IoSliceMut::new(into)];
    match rustix::io::preadv2(file, &mut parts, offset, rustix::io::ReadWriteFlags::NOWAIT) {
        Ok(read) => Ok(read == wanted),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Smaller direct requests are served from the page cache: btrfs does so below its sector size
/// (btrfs(5), "direct I/O"), reported as block size. 1 if unknown.
pub(crate) fn direct_block(file: &File) -> u32 {
    let known = fs::fstatfs(file)
        .ok()
        .filter(|reported| i128::from(reported.f_type) == i128::from(libc::BTRFS_SUPER_MAGIC));
    known.and_then(|reported| u32::try_from(reported.f_bsize).ok()).unwrap_or(1)
}

/// Compares with OpenZFS's `ZFS_SUPER_MAGIC`.
pub(crate) fn is_on_zfs(file: &File) -> bool {
    fs::fstatfs(file).is_ok_and(|reported| reported.f_type as i128 == 0x2fc1_2fc1)
}

pub(crate) fn advise(file: &File, hint: machine::Hint) {
    let advice = match hint {
        machine::Hint::None => Advice::Normal,
        machine::Hint::Sequential => Advice::Sequential,
        machine::Hint::Random => Advice::Random,
    };
    // Only advice, as above.
    let _ = fs::fadvise(file, 0, None, advice);
}

pub(crate) fn bind(processors: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &processor in processors {
        if processor as usize >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(processor as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Ignores files without stable storage, as `/dev/null`.
pub(crate) fn sync_data(file: &File) -> io::Result<()> {
    file.sync_data().or_else(|error| match file.metadata() {
        Ok(metadata)
            if metadata.file_type().is_char_device()
                && error.raw_os_error() == Some(libc::EINVAL) =>
        {
            Ok(())
        }
        _ => Err(error),
    })
}

/// Affects the calling thread and threads it starts later.
pub(crate) fn set_io_priority(priority: IoPriority) -> io::Result<()> {
    const THIS_THREAD: libc::c_long = 0;
    const WHO_PROCESS: libc::c_long = 1;
    let bits = libc::c_long::from(priority.bits());
    // SAFETY: only numbers are passed.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, THIS_THREAD, bits) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn reserve(file: &File, len: u64) -> io::Result<()> {
    Ok(fs::fallocate(file, fs::FallocateFlags::empty(), 0, len)?)
}

pub(crate) fn memory_file() -> io::Result<File> {
    Ok(fs::memfd_create("halfpower", fs::MemfdFlags::CLOEXEC)?.into())
}
