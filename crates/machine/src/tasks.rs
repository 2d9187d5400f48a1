//! Files under the user's names, for a parallel program's tasks.

use crate::{Nanos, Result};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// A process's role in a group that writes one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Makes or takes the file for the group.
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
    /// Allows overwriting a file that halfpower did not make.
    pub destroy: bool,
    pub sharing: Option<Sharing>,
    /// The number of a file that is only read, if it must be a certain one.
    pub number: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OpenAs {
    pub writes: bool,
    pub direct: bool,
    /// Opening discards the file's data.
    pub empty: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystemSpace {
    pub bytes: u64,
    pub free_bytes: u64,
    /// 0 if the file system does not count files.
    pub files: u64,
    pub free_files: u64,
}

pub trait TaskFiles: Sync {
    type File: TaskFile;

    /// Returns monotonic time.
    fn now(&self) -> Nanos;

    /// Returns early on the user's interrupt.
    fn wait_until(&self, then: Nanos);

    fn is_interrupted(&self) -> bool;

    fn check(&self, wanted: &Wanted) -> Result<()>;

    /// Makes a missing file that will be written. While the result lives, no other run can write
    /// it; dropping it removes a file that halfpower made, unless kept.
    fn take(&self, wanted: &Wanted) -> Result<Self::File>;

    /// Returns `None` if unknown.
    fn free_bytes(&self, directory: &Path) -> Result<Option<u64>>;

    /// Returns `false` if it existed before.
    fn make_directory(&self, path: &Path) -> Result<bool>;

    fn remove_directory(&self, path: &Path) -> Result<()>;

    /// Creates and closes a new file; with `sync`, once its data is on stable storage.
    fn create(&self, path: &Path, content: &[u8], sync: bool) -> Result<()>;

    /// Returns bytes.
    fn stat(&self, path: &Path) -> Result<u64>;

    /// Reads from the start.
    fn read(&self, path: &Path, buffer: &mut [u8]) -> Result<usize>;

    fn sync_file_system(&self, directory: &Path) -> Result<()>;

    fn remove(&self, path: &Path) -> Result<()>;
}

/// A taken file; opened, used and closed in each phase.
pub trait TaskFile {
    /// The number in its file system.
    fn number(&self) -> Result<u64>;

    fn size_bytes(&self) -> Result<u64>;

    fn open(&mut self, how: OpenAs) -> Result<()>;

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize>;

    fn read_at(&self, data: &mut [u8], offset: u64) -> io::Result<usize>;

    fn sync(&self) -> Result<()>;

    /// # Errors
    /// A write failed after it had been accepted.
    fn close(&mut self) -> Result<()>;

    fn keep(&mut self);

    /// Removes a file that halfpower made, even if an earlier run kept it.
    fn discard(self);
}
