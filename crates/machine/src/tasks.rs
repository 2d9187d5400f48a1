//! Files under the user's names, as the tasks of a parallel program use them: each call is one
//! operation, and the caller times it.

use crate::{Nanos, Result};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The role of a process in a group that writes one file together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// It makes the file, or takes an existing one, and holds it for all.
    Holds,
    /// Another process of the group holds it.
    Joins {
        /// The file's number in its file system: the path must lead to the file that is held.
        number: u64,
        /// The group's processes on this computer.
        processes: Vec<u32>,
    },
}

/// A file that a task will use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub path: PathBuf,
    pub writes: bool,
    /// The user allows halfpower to overwrite a file that halfpower did not make.
    pub destroy: bool,
    /// If other processes write it, too.
    pub sharing: Option<Sharing>,
    /// The number of a file that is only read, if the file must be a certain one.
    pub number: Option<u64>,
}

/// The mode in which a task opens a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OpenAs {
    pub writes: bool,
    /// Bypass the page cache.
    pub direct: bool,
    /// Discard its data first.
    pub empty: bool,
}

/// A file system with a clock.
pub trait TaskFiles: Sync {
    type File: TaskFile;

    /// Time on a monotonic clock.
    fn now(&self) -> Nanos;

    /// Returns at this time, or at the user's interrupt.
    fn wait_until(&self, then: Nanos);

    fn is_interrupted(&self) -> bool;

    /// Changes nothing.
    ///
    /// # Errors
    /// The file could not be taken.
    fn check(&self, wanted: &Wanted) -> Result<()>;

    /// Makes a file that is missing and will be written, and holds the file while the result lives: no
    /// other run can write it. Dropping it removes a file that halfpower made, unless it is kept.
    ///
    /// # Errors
    /// An existing file that halfpower did not make and may not overwrite; a file in use.
    fn take(&self, wanted: &Wanted) -> Result<Self::File>;

    /// Free space for files in a directory; `None` if the file system does not know.
    fn free_bytes(&self, directory: &Path) -> Result<Option<u64>>;

    /// Returns `false` if the directory was there before.
    fn make_directory(&self, path: &Path) -> Result<bool>;

    fn remove_directory(&self, path: &Path) -> Result<()>;

    /// Creates and closes a new file; `sync`: when its data is on stable storage.
    ///
    /// # Errors
    /// The name is taken.
    fn create(&self, path: &Path, content: &[u8], sync: bool) -> Result<()>;

    /// Size in bytes of a file or directory.
    fn stat(&self, path: &Path) -> Result<u64>;

    /// Opens a file, fills the buffer from its start, and closes it; returns the bytes read.
    fn read(&self, path: &Path, buffer: &mut [u8]) -> Result<usize>;

    /// Brings the file system of a directory to stable storage.
    fn sync_file_system(&self, directory: &Path) -> Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;
}

/// A file that a task has taken. It is opened, used and closed in each phase.
pub trait TaskFile {
    /// Its number in its file system.
    fn number(&self) -> Result<u64>;

    fn size_bytes(&self) -> Result<u64>;

    fn open(&mut self, how: OpenAs) -> Result<()>;

    /// # Errors
    /// Not open, or the system's error.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize>;

    /// # Errors
    /// Not open, or the system's error.
    fn read_at(&self, data: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Brings its data to stable storage.
    fn sync(&self) -> Result<()>;

    /// # Errors
    /// A write that failed after it had been accepted.
    fn close(&mut self) -> Result<()>;

    /// Keeps a file that halfpower made.
    fn keep(&mut self);

    /// Removes a file that halfpower made, even if an earlier run kept it.
    fn discard(self);
}
