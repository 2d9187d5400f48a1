//! For Unix.

use rustix::fs::{Dir, Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::process::geteuid;
use std::ffi::OsString;
use std::fs::{File, FileType, Metadata};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Returns no names if the directory cannot be read. `std::fs::read_dir` panics if closing fails.
pub fn entries(directory: &Path) -> impl Iterator<Item = OsString> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = open(directory, flags, Mode::empty()).map_err(io::Error::from);
    opened.and_then(|opened| names_of(opened.into())).into_iter().flatten().map_while(Result::ok)
}

pub(crate) fn names_of(directory: File) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
    let entries = Dir::new(directory)?.map(|entry| Ok(entry?.file_name().to_bytes().to_vec()));
    Ok(entries
        .filter(|name| !matches!(name, Ok(name) if name == b"." || name == b".."))
        .map(|name| name.map(OsString::from_vec)))
}

/// Also true of nodes of one device.
pub fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    let is_device = |kind: FileType| kind.is_block_device() || kind.is_char_device();
    if is_device(a.file_type()) && is_device(b.file_type()) {
        return a.file_type() == b.file_type() && a.rdev() == b.rdev();
    }
    (a.dev(), a.ino()) == (b.dev(), b.ino()) && a.file_type() == b.file_type()
}

/// Returns whether this process trusts the owner. Root trusts only root and its caller (sudo(8),
/// pkexec(1)); others trust any owner.
pub fn is_trusted(metadata: &Metadata) -> bool {
    is_trusted_user(metadata.uid())
}

pub(crate) fn is_trusted_user(uid: u32) -> bool {
    let is_caller =
        |variable: &str| std::env::var(variable).is_ok_and(|caller| caller == uid.to_string());
    !geteuid().is_root() || uid == 0 || is_caller("SUDO_UID") || is_caller("PKEXEC_UID")
}

/// Fails unless [`is_trusted`].
pub fn check_trusted(metadata: &Metadata) -> io::Result<()> {
    if is_trusted(metadata) {
        return Ok(());
    }
    let why =
        format!("it belongs to another user (uid {}), and root does not use it", metadata.uid());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

pub fn has_same_owner(a: &Metadata, b: &Metadata) -> bool {
    a.uid() == b.uid()
}

/// A character device, pipe or socket.
pub fn is_stream(metadata: &Metadata) -> bool {
    let kind = metadata.file_type();
    kind.is_char_device() || kind.is_fifo() || kind.is_socket()
}

/// Opening waits for the other end.
pub fn is_pipe(metadata: &Metadata) -> bool {
    metadata.file_type().is_fifo()
}

pub fn is_block_device(metadata: &Metadata) -> bool {
    metadata.file_type().is_block_device()
}

pub fn inode(metadata: &Metadata) -> io::Result<u64> {
    Ok(metadata.ino())
}

pub fn is_own_open_file(path: &Path) -> bool {
    ["/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().any(|name| path == Path::new(name))
        || ["/dev/fd", "/proc/self/fd"]
            .iter()
            .any(|directory| path.parent() == Some(Path::new(directory)))
}

pub fn read_attribute(file: &File, name: &str, max_bytes: usize) -> io::Result<Vec<u8>> {
    attribute::read(file, name, max_bytes)
}

/// Fails if the file system has none.
pub fn write_attribute(file: &File, name: &str, value: &[u8]) -> io::Result<()> {
    attribute::write(file, name, value)
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
mod attribute {
    use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
    use std::fs::File;
    use std::io;

    pub(super) fn read(file: &File, name: &str, max_bytes: usize) -> io::Result<Vec<u8>> {
        let mut value = vec![0; max_bytes];
        let length = fgetxattr(file, name, &mut value[..])?;
        value.truncate(length);
        Ok(value)
    }

    pub(super) fn write(file: &File, name: &str, value: &[u8]) -> io::Result<()> {
        Ok(fsetxattr(file, name, value, XattrFlags::empty())?)
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
mod attribute {
    use std::fs::File;
    use std::io;

    pub(super) fn read(_: &File, _: &str, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn write(_: &File, _: &str, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(open(path, flags, Mode::empty())?.into())
}

pub(crate) fn let_wait(file: &File) -> io::Result<()> {
    Ok(fcntl_setfl(file, fcntl_getfl(file)? - OFlags::NONBLOCK)?)
}

pub(crate) fn kind_name(kind: FileType) -> &'static str {
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_block_device() || kind.is_char_device() => "a device",
        () => "a symbolic link",
    }
}
