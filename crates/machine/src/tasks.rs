//! Files under the user's names, as a parallel program's tasks use them. Each call is one
//! operation, and the caller times it.

use crate::{Nanos, Result};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// In a group of processes that writes one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Makes the file, or takes an existing one, for all.
    Holds,
    Joins {
        /// In its file system: the path must lead to the file that is held.
        number: u64,
        /// The group's, on this computer.
        processes: Vec<u32>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub path: PathBuf,
    pub writes: bool,
    /// A file that halfpower did not make.
    pub destroy: bool,
    /// If other processes write it, too.
    pub sharing: Option<Sharing>,
    /// Of a file that is only read, if it must be a certain one.
    pub number: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OpenAs {
    pub writes: bool,
    pub direct: bool,
    /// Discards its data.
    pub empty: bool,
}

pub trait TaskFiles: Sync {
    type File: TaskFile;

    /// Monotonic.
    fn now(&self) -> Nanos;

    /// Or at the user's interrupt.
    fn wait_until(&self, then: Nanos);

    fn is_interrupted(&self) -> bool;

    /// # Errors
    /// The file could not be taken.
    fn check(&self, wanted: &Wanted) -> Result<()>;

    /// Makes a file that is missing and will be written. While the result lives no other run can
    /// write it. Dropping it removes a file that halfpower made, unless it is kept.
    ///
    /// # Errors
    /// An existing file that halfpower did not make and may not overwrite; a file in use.
    fn take(&self, wanted: &Wanted) -> Result<Self::File>;

    /// For files in a directory; `None` if the file system does not know.
    fn free_bytes(&self, directory: &Path) -> Result<Option<u64>>;

    /// Returns `false` if the directory was there before.
    fn make_directory(&self, path: &Path) -> Result<bool>;

    fn remove_directory(&self, path: &Path) -> Result<()>;

    /// And closes it; `sync`: when its data is on stable storage.
    ///
    /// # Errors
    /// The name is taken.
    fn create(&self, path: &Path, content: &[u8], sync: bool) -> Result<()>;

    /// In bytes.
    fn stat(&self, path: &Path) -> Result<u64>;

    /// From its start; returns the bytes read.
    fn read(&self, path: &Path, buffer: &mut [u8]) -> Result<usize>;

    /// To stable storage.
    fn sync_file_system(&self, directory: &Path) -> Result<()>;

    fn remove(&self, path: &Path) -> Result<()>;
}

/// A taken file is opened, used and closed in each phase.
pub trait TaskFile {
    /// In its file system.
    fn number(&self) -> Result<u64>;

    fn size_bytes(&self) -> Result<u64>;

    fn open(&mut self, how: OpenAs) -> Result<()>;

    /// # Errors
    /// Not open, or the system's error.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize>;

    /// # Errors
    /// Not open, or the system's error.
    fn read_at(&self, data: &mut [u8], offset: u64) -> io::Result<usize>;

    /// To stable storage.
    fn sync(&self) -> Result<()>;

    /// # Errors
    /// A write that failed after it had been accepted.
    fn close(&mut self) -> Result<()>;

    /// If halfpower made it.
    fn keep(&mut self);

    /// If halfpower made it, even if an earlier run kept it.
    fn discard(self);
}
