//! Operations on whole files: threads do [`FileWork`] in a [`FileArea`] of a [`FileSystem`].

use crate::{Nanos, Pause};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Index in [`AreaSpec::locations`].
    pub location: u32,
    /// Index in the location; ignored if files are in the location itself.
    pub subdirectory: u32,
    pub number: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileEngine {
    /// Calls of the block size through a buffer of one file-system block, like C's standard I/O.
    #[default]
    Stdio,
    /// One system call per block.
    Syscalls,
    /// One submission opens, reads or writes, and closes a file (Linux io_uring).
    IoUring,
}

impl FileEngine {
    pub const ALL: [FileEngine; 3] = [FileEngine::Stdio, FileEngine::Syscalls, FileEngine::IoUring];

    pub fn name(self) -> &'static str {
        match self {
            FileEngine::Stdio => "stdio",
            FileEngine::Syscalls => "syscalls",
            FileEngine::IoUring => "io_uring",
        }
    }
}

/// The point at which a change counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileSync {
    /// A change is done when it is in the page cache.
    #[default]
    None,
    /// A change is done after an `fsync` before the close.
    File,
    /// Like `File`, with an `fsync` of the directory after a creation, renaming or deletion.
    All,
}

impl FileSync {
    pub const ALL: [FileSync; 3] = [FileSync::None, FileSync::File, FileSync::All];

    pub fn name(self) -> &'static str {
        match self {
            FileSync::None => "none",
            FileSync::File => "file",
            FileSync::All => "all",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AreaSpec {
    /// Existing directories; empty means the current one.
    pub locations: Vec<PathBuf>,
    /// Another process makes and removes the locations: see [`FileArea::directory`].
    pub joins: bool,
    /// Subdirectories per location, named from `s0` (`t0` in a tree); 0: files are in the location.
    pub subdirectories: u32,
    /// Subdirectories below each one of a tree with the root `t0`; 0: no tree.
    pub branch: u32,
    pub engine: FileEngine,
    pub sync: FileSync,
    pub read_block_bytes: u32,
    pub write_block_bytes: u32,
}

/// Returns the parent in a tree with `branch` below each, numbered level by level; `None` for the
/// location.
///
/// ```
/// use machine::files::parent_directory;
///
/// // Below 0: 1 and 2. Below 1: 3 and 4.
/// assert_eq!([4, 3, 1, 0].map(|number| parent_directory(number, 2)), [Some(1), Some(1), Some(0), None]);
/// // Without a tree.
/// assert_eq!(parent_directory(4, 0), None);
/// ```
pub fn parent_directory(number: u32, branch: u32) -> Option<u32> {
    number.checked_sub(1)?.checked_div(branch)
}

/// Returns those directly below, of `all` in the tree.
///
/// ```
/// use machine::files::directories_below;
///
/// assert_eq!(directories_below(1, 2, 4), 3..4);
/// ```
pub fn directories_below(number: u32, branch: u32, all: u32) -> Range<u32> {
    let first = number.saturating_mul(branch).saturating_add(1);
    let end = if branch == 0 { first } else { first.saturating_add(branch) };
    first.min(all)..end.min(all)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileAct {
    MakeDirectory,
    Create,
    Read,
    Append,
    Delete,
    Stat,
    Open,
    Rename,
    List,
    RemoveDirectory,
    SetUp,
}

impl fmt::Display for FileAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileAct::MakeDirectory => "make the directory",
            FileAct::Create => "create",
            FileAct::Read => "read",
            FileAct::Append => "append to",
            FileAct::Delete => "delete",
            FileAct::Stat => "read the attributes of",
            FileAct::Open => "open",
            FileAct::Rename => "rename",
            FileAct::List => "list",
            FileAct::RemoveDirectory => "remove the directory",
            FileAct::SetUp => "set up the engine in",
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("the location '{}' does not exist: make the directory first or name another", .0.display())]
    NoLocation(PathBuf),
    #[error("the location '{}' is not a directory: name a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("no space left to {act} '{}': free some, or lower the number or the size of the files ({source})", .path.display())]
    Full { act: FileAct, path: PathBuf, source: io::Error },
    #[error("'{}' has {got} bytes where {expected} were written: something else changed it during the run", .path.display())]
    Size { path: PathBuf, expected: u64, got: u64 },
    #[error("{}: {why}", .path.display())]
    Refused { path: PathBuf, why: String },
    #[error("cannot {act} '{}': {source}{}", .path.display(), hint(source))]
    Io { act: FileAct, path: PathBuf, source: io::Error },
    #[error("the engine {engine} is not available: {why}; use stdio or syscalls")]
    Engine { engine: &'static str, why: String },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; name a directory that you may write to"
        }
        io::ErrorKind::NotFound => "; something removed it during the run",
        _ => "",
    }
}

impl FileError {
    /// Classifies a system error by its fix.
    pub fn of(act: FileAct, path: PathBuf, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                FileError::Full { act, path, source }
            }
            _ => FileError::Io { act, path, source },
        }
    }
}

/// All threads of the process together, so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileUsage {
    pub user_ns: Nanos,
    pub system_ns: Nanos,
    /// Read from block devices and dirtied for them, if counted.
    pub block_bytes: Option<(u64, u64)>,
}

pub trait FileSystem: Sync {
    type Area: FileArea;

    /// Returns monotonic time.
    fn now(&self) -> Nanos;

    fn usage(&self) -> FileUsage;

    fn watched<T>(&self, work: impl FnOnce() -> T) -> (T, Option<Pause>) {
        (work(), None)
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Makes a private directory in each location, or joins another area's.
    fn open(&self, spec: &AreaSpec) -> Result<Self::Area, FileError>;
}

/// A run's directories; dropping it removes them.
pub trait FileArea: Sync {
    type Work: FileWork + Send;

    /// Returns `false` if `interrupt` became true first.
    fn make_subdirectories(&self, interrupt: &AtomicBool) -> Result<bool, FileError>;

    /// Removes empty subdirectories; returns `false` if `interrupt` became true first.
    fn remove_subdirectories(&self, interrupt: &AtomicBool) -> Result<bool, FileError>;

    /// Returns the first location's directory for other processes; `None` if they cannot join.
    fn directory(&self) -> Option<&Path>;

    fn work(&self) -> Result<Self::Work, FileError>;
}

/// One thread's operations.
pub trait FileWork {
    fn create(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError>;

    fn read(&mut self, file: FileId, bytes: u64) -> Result<(), FileError>;

    fn append(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError>;

    fn delete(&mut self, file: FileId) -> Result<(), FileError>;

    /// Returns bytes.
    fn stat(&mut self, file: FileId) -> Result<u64, FileError>;

    fn open(&mut self, file: FileId) -> Result<(), FileError>;

    fn rename(&mut self, from: FileId, to: FileId) -> Result<(), FileError>;

    /// Returns the number of files.
    fn list(&mut self, location: u32, subdirectory: u32) -> Result<u64, FileError>;
}
