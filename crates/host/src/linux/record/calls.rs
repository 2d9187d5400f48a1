//! The system calls that a recording follows.

use apptrace::Access;

/// Argument positions count from 0; the descriptor is first unless noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Transfer(Transfer),
    Sync(Access),
    /// `sync_file_range(fd, offset, bytes, flags)`.
    SyncRange,
    SyncSystem,
    Copy(CopyCall),
    ReadAhead,
    /// `posix_fadvise(fd, offset, bytes, advice)`.
    Advise,
    OnlyAtDevices(&'static str),
    ChangeDirectory,
    /// `fallocate(fd, mode, offset, bytes)`.
    Allocate,
    Truncate,
    Open(OpenCall),
    Rename(RenameCall),
    Close,
    CloseRange,
    Duplicate,
    Control,
    Seek,
    /// `mmap(address, bytes, protection, flags, fd, offset)`.
    Map,
    /// `msync(address, bytes, flags)`.
    SyncMapping,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) access: Access,
    /// Without it only the result shows the bytes.
    pub(super) bytes: Option<usize>,
    /// Without it the file's position is used.
    pub(super) offset: Option<usize>,
    pub(super) flags: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenCall {
    pub(super) path: Option<usize>,
    pub(super) flags: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RenameCall {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) has_directories: bool,
    pub(super) flags: Option<usize>,
}

impl RenameCall {
    pub(super) fn directories(&self) -> [Option<usize>; 2] {
        [self.from, self.to].map(|name| self.has_directories.then(|| name - 1))
    }
}

const fn rename(from: usize, to: usize, has_directories: bool, flags: Option<usize>) -> Call {
    Call::Rename(RenameCall { from, to, has_directories, flags })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CopyCall {
    /// Descriptor, and pointer to its offset.
    pub(super) from: (usize, usize),
    /// As `from`; `sendfile` has no offset.
    pub(super) to: (usize, Option<usize>),
}

const fn open(path: Option<usize>, flags: Option<usize>) -> Call {
    Call::Open(OpenCall { path, flags })
}

const fn copy(from: (usize, usize), to: (usize, Option<usize>)) -> Call {
    Call::Copy(CopyCall { from, to })
}

const fn transfer(
    access: Access,
    bytes: Option<usize>,
    offset: Option<usize>,
    flags: Option<usize>,
) -> Call {
    Call::Transfer(Transfer { access, bytes, offset, flags })
}

/// As in `events/syscalls/sys_enter_NAME`; a kernel may lack some.
pub(super) const CALLS: [(&str, Call); 46] = [
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
    ("copy_file_range", copy((0, 1), (2, Some(3)))),
    ("splice", copy((0, 1), (2, Some(3)))),
    ("sendfile64", copy((1, 2), (0, None))),
    ("readahead", Call::ReadAhead),
    ("fadvise64", Call::Advise),
    ("io_submit", Call::OnlyAtDevices("io_submit")),
    ("chdir", Call::ChangeDirectory),
    ("fchdir", Call::ChangeDirectory),
    ("open", open(Some(0), Some(1))),
    ("creat", open(Some(0), None)),
    ("openat", open(Some(1), Some(2))),
    ("openat2", open(Some(1), None)),
    ("rename", rename(0, 1, false, None)),
    ("renameat", rename(1, 3, true, None)),
    ("renameat2", rename(1, 3, true, Some(4))),
    // Descriptors of pipes and sockets, so that their numbers are not taken for files.
    ("socket", open(None, None)),
    ("accept4", open(None, None)),
    ("epoll_create1", open(None, None)),
    ("eventfd2", open(None, None)),
    ("memfd_create", open(None, None)),
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
