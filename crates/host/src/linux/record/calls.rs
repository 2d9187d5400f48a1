//! The system calls that a recording follows, and what their arguments mean.

use apptrace::Access;

/// A system call's use of files. Numbers are positions of arguments, from 0; the file
/// descriptor is the first unless noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Transfer(Transfer),
    Sync(Access),
    /// `sync_file_range(fd, offset, bytes, flags)`.
    SyncRange,
    /// `sync()`.
    SyncSystem,
    /// `fallocate(fd, mode, offset, bytes)`.
    Allocate,
    /// `ftruncate(fd, bytes)`.
    Truncate,
    /// The position of the flags, if they are an argument.
    Open(Option<usize>),
    Close,
    /// `close_range(first, last, flags)`.
    CloseRange,
    /// The result is another descriptor of the same open file.
    Duplicate,
    /// `fcntl(fd, command, argument)`.
    Control,
    Seek,
    /// `mmap(address, bytes, protection, flags, fd, offset)`.
    Map,
    /// `msync(address, bytes, flags)`.
    SyncMapping,
}

/// A read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) access: Access,
    /// The count of bytes; without it only the result shows them.
    pub(super) bytes: Option<usize>,
    /// The offset; without it the file's position is used.
    pub(super) offset: Option<usize>,
    pub(super) flags: Option<usize>,
}

const fn transfer(
    access: Access,
    bytes: Option<usize>,
    offset: Option<usize>,
    flags: Option<usize>,
) -> Call {
    Call::Transfer(Transfer { access, bytes, offset, flags })
}

/// Names as in `events/syscalls/sys_enter_NAME`; those that a kernel lacks are left out.
pub(super) const CALLS: [(&str, Call); 35] = [
    ("read", transfer(Access::Read, Some(2), None, None)),
    ("write", transfer(Access::Write, Some(2), None, None)),
    ("pread64", transfer(Access::Read, Some(2), Some(3), None)),
    ("pwrite64", transfer(Access::Write, Some(2), Some(3), None)),
    ("readv", transfer(Access::Read, None, None, None)),
    ("writev", transfer(Access::Write, None, None, None)),
    ("preadv", transfer(Access::Read, None, Some(3), None)),
    ("pwritev", transfer(Access::Write, None, Some(3), None)),
    ("preadv2", transfer(Access::Read, None, Some(3), Some(5))),
    ("pwritev2", transfer(Access::Write, None, Some(3), Some(5))),
    ("fsync", Call::Sync(Access::SyncFile)),
    ("fdatasync", Call::Sync(Access::SyncData)),
    ("syncfs", Call::Sync(Access::SyncSystem)),
    ("sync", Call::SyncSystem),
    ("sync_file_range", Call::SyncRange),
    ("fallocate", Call::Allocate),
    ("ftruncate", Call::Truncate),
    ("open", Call::Open(Some(1))),
    ("creat", Call::Open(None)),
    ("openat", Call::Open(Some(2))),
    ("openat2", Call::Open(None)),
    // Descriptors of pipes and sockets, so that their numbers are not taken for files.
    ("socket", Call::Open(None)),
    ("accept4", Call::Open(None)),
    ("epoll_create1", Call::Open(None)),
    ("eventfd2", Call::Open(None)),
    ("memfd_create", Call::Open(None)),
    ("close", Call::Close),
    ("close_range", Call::CloseRange),
    ("dup", Call::Duplicate),
    ("dup2", Call::Duplicate),
    ("dup3", Call::Duplicate),
    ("fcntl", Call::Control),
    ("lseek", Call::Seek),
    ("mmap", Call::Map),
    ("msync", Call::SyncMapping),
];
