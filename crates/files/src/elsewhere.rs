//! An unknown system: every answer refuses.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs::{File, FileType, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// None can be held open here.
#[derive(Debug)]
pub struct Directory(Infallible);

pub type MadeDirectory = Infallible;

fn unsupported() -> io::Error {
    let why = format!(
        "halfpower writes no files on {}: it cannot check whose directory this is",
        std::env::consts::OS
    );
    io::Error::new(io::ErrorKind::Unsupported, why)
}

#[allow(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "the face of the Unix directory; only the first three can be called"
)]
impl Directory {
    pub fn held(_: &Path) -> io::Result<Arc<Directory>> {
        Err(unsupported())
    }

    pub fn make(_: &Path, _: u32) -> io::Result<(Arc<Directory>, Vec<MadeDirectory>)> {
        Err(unsupported())
    }

    pub fn open(_: &Path) -> io::Result<Directory> {
        Err(unsupported())
    }

    pub fn path(&self) -> &Path {
        match self.0 {}
    }

    pub fn metadata(&self) -> io::Result<Metadata> {
        match self.0 {}
    }

    pub fn is_in_place(&self) -> bool {
        match self.0 {}
    }

    pub fn is_there(&self) -> bool {
        match self.0 {}
    }

    pub fn look(&self, _: &OsStr) -> io::Result<Metadata> {
        match self.0 {}
    }

    pub fn follow(&self, _: &OsStr) -> io::Result<Metadata> {
        match self.0 {}
    }

    pub fn open_regular(&self, _: &OsStr) -> io::Result<File> {
        match self.0 {}
    }

    pub fn open_to_append(&self, _: &OsStr) -> io::Result<File> {
        match self.0 {}
    }

    pub fn open_stream(&self, _: &OsStr) -> io::Result<File> {
        match self.0 {}
    }

    pub fn create(&self, _: &OsStr, _: u32) -> io::Result<File> {
        match self.0 {}
    }

    pub fn open_or_create(&self, _: &OsStr, _: u32) -> io::Result<File> {
        match self.0 {}
    }

    pub fn stat(&self, _: &OsStr) -> io::Result<()> {
        match self.0 {}
    }

    pub fn create_for_owner(&self, _: &OsStr, _: u32) -> io::Result<()> {
        match self.0 {}
    }

    pub fn rename(&self, _: &OsStr, _: &OsStr) -> io::Result<()> {
        match self.0 {}
    }

    pub fn rename_to_free(&self, _: &OsStr, _: &OsStr) -> io::Result<()> {
        match self.0 {}
    }

    pub fn remove(&self, _: &OsStr) -> io::Result<()> {
        match self.0 {}
    }

    pub fn is_name_of(&self, _: &OsStr, _: &File) -> bool {
        match self.0 {}
    }

    pub fn set_mode(&self, _: u32) -> io::Result<()> {
        match self.0 {}
    }

    pub fn sync(&self) -> io::Result<()> {
        match self.0 {}
    }

    pub fn names(&self) -> io::Result<Vec<OsString>> {
        match self.0 {}
    }
}

/// Empty if the directory cannot be read.
pub fn entries(directory: &Path) -> impl Iterator<Item = OsString> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name())
}

pub fn remove_empty(_: &[MadeDirectory]) {}

/// Returns `true`: an output file may be the measured target.
pub fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
    true
}

pub fn is_trusted(_: &Metadata) -> bool {
    false
}

pub fn check_trusted(_: &Metadata) -> io::Result<()> {
    let why = format!("halfpower cannot check on {} who owns it", std::env::consts::OS);
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

pub fn has_same_owner(_: &Metadata, _: &Metadata) -> bool {
    false
}

pub fn is_stream(_: &Metadata) -> bool {
    false
}

/// Returns `true` except for files and directories: opening others may wait forever.
pub fn is_pipe(metadata: &Metadata) -> bool {
    !metadata.is_file() && !metadata.is_dir()
}

pub fn is_block_device(_: &Metadata) -> bool {
    false
}

pub fn inode(_: &Metadata) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

pub fn is_own_open_file(_: &Path) -> bool {
    false
}

pub fn read_attribute(_: &File, _: &str, _: usize) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub fn write_attribute(_: &File, _: &str, _: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Refuses devices, which may be pipes that wait.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    use std::path::{Component, Prefix};
    if let Some(Component::Prefix(prefix)) = path.components().next()
        && matches!(prefix.kind(), Prefix::DeviceNS(_) | Prefix::Verbatim(_))
    {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a device or a pipe; name a regular file",
        ));
    }
    File::open(path)
}

pub(crate) fn let_wait(_: &File) -> io::Result<()> {
    Ok(())
}

pub(crate) fn kind_name(kind: FileType) -> &'static str {
    if kind.is_dir() { "a directory" } else { "a symbolic link or a device" }
}
