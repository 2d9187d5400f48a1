//! Whole files as a unit of work: what a small-file workload or a metadata workload asks of a file system.
//!
//! A [`FileSystem`] opens a [`FileArea`], in which each worker thread does [`FileWork`]. A file is a number, so that a
//! worker formats its name without allocating; everything that an area made goes with it, however the run ends.

use crate::{Nanos, Pause};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// A file: the directory it is in and the number that is its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// Index of the location in [`AreaSpec::locations`].
    pub location: u32,
    /// Index of the subdirectory in the location; 0 also where there are none.
    pub subdirectory: u32,
    /// The file's name.
    pub number: u32,
}

/// The mechanism by which files are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileEngine {
    /// Calls of the block size move data through a buffer of one file-system block, as C's standard I/O does.
    #[default]
    Stdio,
    /// Each block is a system call.
    Syscalls,
    /// One submission opens, reads or writes, and closes a file (Linux io_uring).
    IoUring,
}

impl FileEngine {
    /// Every engine.
    pub const ALL: [FileEngine; 3] = [FileEngine::Stdio, FileEngine::Syscalls, FileEngine::IoUring];

    /// The name in the language and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FileEngine::Stdio => "stdio",
            FileEngine::Syscalls => "syscalls",
            FileEngine::IoUring => "io_uring",
        }
    }
}

/// When a change counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileSync {
    /// When the file-system cache has it.
    #[default]
    None,
    /// A written file when its data is on stable storage (`fsync` before the close).
    File,
    /// Besides, a creation, renaming or deletion when the directory's entry is on stable storage (`fsync` of the directory).
    All,
}

impl FileSync {
    /// Every degree.
    pub const ALL: [FileSync; 3] = [FileSync::None, FileSync::File, FileSync::All];

    /// The name in the language and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FileSync::None => "none",
            FileSync::File => "file",
            FileSync::All => "all",
        }
    }
}

/// Where and how files are worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AreaSpec {
    /// Existing directories; none: the current directory.
    pub locations: Vec<PathBuf>,
    /// Subdirectories in each location, `s0` and on; 0: the files are in the location itself.
    pub subdirectories: u32,
    /// The mechanism.
    pub engine: FileEngine,
    /// When a change counts as done.
    pub sync: FileSync,
    /// Bytes of one read call.
    pub read_block_bytes: u32,
    /// Bytes of one write call.
    pub write_block_bytes: u32,
}

/// What was being done when an error came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileAct {
    /// Making a directory.
    MakeDirectory,
    /// Making a file.
    Create,
    /// Reading a file.
    Read,
    /// Appending to a file.
    Append,
    /// Deleting a file.
    Delete,
    /// Reading a file's attributes.
    Stat,
    /// Opening and closing a file.
    Open,
    /// Renaming a file.
    Rename,
    /// Listing a directory.
    List,
    /// Removing a directory.
    RemoveDirectory,
    /// Setting up the mechanism.
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

/// Why file work failed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The location is not there.
    #[error("the location '{}' does not exist: make the directory first or name another", .0.display())]
    NoLocation(PathBuf),
    /// The location is something else.
    #[error("the location '{}' is not a directory: name a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The file system is full.
    #[error("no space left to {act} '{}': free some, or lower the number or the size of the files ({source})", .path.display())]
    Full {
        /// What was being done.
        act: FileAct,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file did not have the size that it was given.
    #[error("'{}' has {got} bytes where {expected} were written: something else changed it during the run", .path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Bytes that it should have.
        expected: u64,
        /// Bytes that it has.
        got: u64,
    },
    /// The location does not do this.
    #[error("{}: {why}", .path.display())]
    Refused {
        /// The location.
        path: PathBuf,
        /// What it does not do, and what to do instead.
        why: String,
    },
    /// Anything else.
    #[error("cannot {act} '{}': {source}{}", .path.display(), hint(source))]
    Io {
        /// What was being done.
        act: FileAct,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The engine is not to be had here.
    #[error("the engine {engine} is not available: {why}; use stdio or syscalls")]
    Engine {
        /// Its name.
        engine: &'static str,
        /// Why not.
        why: String,
    },
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
    /// Sorts a system error by what would fix it.
    pub fn of(act: FileAct, path: PathBuf, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FileError::Full { act, path, source },
            _ => FileError::Io { act, path, source },
        }
    }
}

/// What the process has used so far; two of them bracket a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileUsage {
    /// User time, all threads.
    pub user_ns: Nanos,
    /// System time, all threads.
    pub system_ns: Nanos,
    /// Bytes fetched from block devices, and bytes dirtied that will have to be written to them, where counted.
    pub block_bytes: Option<(u64, u64)>,
}

/// Files can be worked on here, and time passes.
pub trait FileSystem: Sync {
    /// An opened area.
    type Area: FileArea;

    /// Nanoseconds on a clock that never goes back.
    fn now(&self) -> Nanos;

    /// What the process has used so far.
    fn usage(&self) -> FileUsage;

    /// Does the work, and tells the longest time in it in which the program did not run, where there was one.
    fn watched<T>(&self, work: impl FnOnce() -> T) -> (T, Option<Pause>) {
        (work(), None)
    }

    /// What keeps everything measured here from being trusted.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Makes a directory of its own in each location.
    ///
    /// # Errors
    /// A location that is not there, is not a directory or may not be written; an engine that is not to be had.
    fn open(&self, spec: &AreaSpec) -> Result<Self::Area, FileError>;
}

/// Directories made for a run. Dropping it removes them and everything in them.
pub trait FileArea: Sync {
    /// What one thread works with.
    type Work: FileWork + Send;

    /// Makes the subdirectories; returns false if `interrupt` became true before all were made.
    ///
    /// # Errors
    /// What the file system says, with the path.
    fn make_subdirectories(&self, interrupt: &AtomicBool) -> Result<bool, FileError>;

    /// Removes the subdirectories, which must be empty; returns false if `interrupt` became true before all were removed.
    ///
    /// # Errors
    /// What the file system says, with the path.
    fn remove_subdirectories(&self, interrupt: &AtomicBool) -> Result<bool, FileError>;

    /// Makes a worker for one thread.
    ///
    /// # Errors
    /// No memory, or no resources for the engine.
    fn work(&self) -> Result<Self::Work, FileError>;
}

/// Operations on whole files, by one thread.
///
/// # Errors
/// Every operation fails with what the file system says, with the path.
pub trait FileWork {
    /// Makes a new file with this content.
    fn create(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError>;

    /// Reads a file of so many bytes from start to end.
    fn read(&mut self, file: FileId, bytes: u64) -> Result<(), FileError>;

    /// Appends this content to a file.
    fn append(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError>;

    /// Deletes a file.
    fn delete(&mut self, file: FileId) -> Result<(), FileError>;

    /// Reads a file's attributes; returns its size in bytes.
    fn stat(&mut self, file: FileId) -> Result<u64, FileError>;

    /// Opens a file and closes it.
    fn open(&mut self, file: FileId) -> Result<(), FileError>;

    /// Gives a file another number, in the same or another directory.
    fn rename(&mut self, from: FileId, to: FileId) -> Result<(), FileError>;

    /// Lists a directory from start to end; returns how many files it has.
    fn list(&mut self, location: u32, subdirectory: u32) -> Result<u64, FileError>;
}
