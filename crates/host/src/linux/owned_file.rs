//! Halfpower's files: locked before they get a name, removed when dropped. A later run removes a
//! killed run's generated names; other files belong to the user.

use super::mark::Named;
use super::sys;
use crate::cleanup::Progress;
use crate::test_file::{is_our_name, name};
use machine::mark::{is_part, mark, part_name};
use machine::{Error, Result};
use rustix::fs::{self, AtFlags, Mode, OFlags, RenameFlags};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Another process may remove the hidden file.
const ATTEMPTS: u32 = 100;

pub(super) const SUFFIX: &str = ".tmp";

/// Has a name because file systems treat an unnamed file (O_TMPFILE) differently: btrfs does not
/// log its fsync, ext4 puts it on the orphan list.
#[derive(Debug)]
pub(crate) struct OwnedFile {
    pub(crate) path: PathBuf,
    directory: Arc<File>,
    name: OsString,
    file: Arc<File>,
    is_named: bool,
    kept: bool,
    /// An earlier run kept it, and nothing has written it since.
    untouched: AtomicBool,
}

impl OwnedFile {
    /// `own_name` must be free.
    pub(crate) fn create(directory: &Path, own_name: Option<&OsStr>) -> Result<OwnedFile> {
        let opened = File::open(directory).map_err(|error| explain(error, directory, directory))?;
        OwnedFile::create_in(Arc::new(opened), directory, own_name)
    }

    pub(crate) fn create_beside(&self) -> Result<OwnedFile> {
        OwnedFile::create_in(
            self.directory.clone(),
            self.path.parent().unwrap_or(Path::new(".")),
            None,
        )
    }

    fn create_in(
        directory: Arc<File>,
        shown: &Path,
        own_name: Option<&OsStr>,
    ) -> Result<OwnedFile> {
        sys::check_proc()?;
        let made = make(&directory, own_name).map_err(|error| match directory.metadata() {
            // File systems have several errors for it.
            Ok(metadata) if metadata.nlink() == 0 => io::Error::from_raw_os_error(libc::ENOENT),
            _ => error,
        });
        let (file, name) = made.map_err(|error| {
            explain(error, shown, &own_name.map_or(shown.into(), |name| shown.join(name)))
        })?;
        let (path, is_named) = (shown.join(&name), own_name.is_some());
        Ok(OwnedFile {
            path,
            directory,
            name,
            file: Arc::new(file),
            is_named,
            kept: false,
            untouched: false.into(),
        })
    }

    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(crate) fn keep(&mut self) {
        self.kept |= self.is_named;
    }

    pub(crate) fn share(&self) -> io::Result<()> {
        sys::try_share(&self.file)
    }

    /// Removes the mark before a write: if then killed, the file is the user's.
    pub(crate) fn touch(&self) {
        if self.is_named && self.untouched.swap(false, Ordering::Relaxed) {
            self.named().unmark();
        }
    }

    fn named(&self) -> Named<'_> {
        Named { directory: &self.directory, name: &self.name, file: &self.file }
    }

    pub(crate) fn discard(mut self) {
        self.kept = false;
    }

    /// The file must not change afterwards.
    fn mark_kept(&mut self) -> io::Result<()> {
        // No process may have it open for writing, including this one.
        self.file = Arc::new(reopen(&self.file, false, 0)?);
        sys::try_lock(&self.file)?;
        self.named().keep()
    }
}

impl Drop for OwnedFile {
    fn drop(&mut self) {
        if !self.kept {
            if self.is_named {
                self.named().forget();
            }
            crate::cleanup::note(&self.path, remove(&self.directory, &self.name, &self.file));
        } else if !*self.untouched.get_mut() {
            // Without a mark, the file belongs to the user.
            let _ = self.mark_kept();
        }
    }
}

fn make(directory: &File, own_name: Option<&OsStr>) -> io::Result<(File, OsString)> {
    let access = OFlags::RDWR | OFlags::CLOEXEC;
    // A file that stays under a user's name is readable as another program's would be.
    let shared = if own_name.is_some() { Mode::RGRP | Mode::ROTH } else { Mode::empty() };
    let mode = Mode::RUSR | Mode::WUSR | shared;
    // The error of a file system without unnamed files; another error would also occur with a named
    // one.
    let unnamed = match fs::openat(directory, ".", access | OFlags::TMPFILE, mode) {
        Ok(file) => Some(File::from(file)),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {
            None
        }
        Err(error) => return Err(error.into()),
    };
    // Otherwise rename a hidden file.
    let (file, hidden) = match unnamed {
        Some(file) => {
            sys::try_lock(&file)?;
            (file, None)
        }
        None => {
            let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let (file, hidden) = make_hidden(directory, |hidden| {
                Ok(fs::openat(directory, hidden, flags, mode)?.into())
            })?;
            (file, Some(hidden))
        }
    };
    let named = || {
        let mark = mark(sys::random(), file.metadata()?.ino());
        let name: OsString = own_name.map_or_else(|| name(&mark, SUFFIX).into(), OsStr::to_owned);
        let Some(hidden) = &hidden else {
            fs::linkat(fs::CWD, sys::path_of(&file), directory, &name, AtFlags::SYMLINK_FOLLOW)?;
            return Ok(name);
        };
        match fs::renameat_with(directory, hidden, directory, &name, RenameFlags::NOREPLACE) {
            // A link does not replace an existing file either.
            Err(rustix::io::Errno::INVAL) => {
                fs::linkat(directory, hidden, directory, &name, AtFlags::empty())?;
                fs::unlinkat(directory, hidden, AtFlags::empty())?;
            }
            renamed => renamed?,
        }
        Ok(name)
    };
    match named() {
        Ok(name) => Ok((file, name)),
        Err(error) => {
            if let Some(hidden) = &hidden {
                let _ = fs::unlinkat(directory, hidden, AtFlags::empty());
            }
            Err(error)
        }
    }
}

pub(crate) fn make_hidden(
    directory: &File,
    make: impl Fn(&str) -> io::Result<File>,
) -> io::Result<(File, String)> {
    let inode = directory.metadata()?.ino();
    let once = || {
        let hidden = part_name(sys::random(), inode);
        let locked = make(&hidden).and_then(|made| {
            sys::try_lock(&made)?;
            let own = leads_to(directory, OsStr::new(&hidden), &made)?;
            if own { Ok(made) } else { Err(io::Error::from(io::ErrorKind::NotFound)) }
        });
        match locked {
            Ok(made) => Ok((made, hidden)),
            Err(error) => {
                // Empty and ours, if it was created at all; a file or a directory.
                let removed = fs::unlinkat(directory, &hidden, AtFlags::empty());
                let _ = removed.or_else(|_| fs::unlinkat(directory, &hidden, AtFlags::REMOVEDIR));
                Err(error)
            }
        }
    };
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match once() {
            Err(error)
                if left > 0
                    && matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::WouldBlock
                    ) => {}
            made => return made,
        }
    }
}

fn leads_to(directory: &File, name: &OsStr, file: &File) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => Ok((there.st_dev, there.st_ino) == (own.dev(), own.ino())),
        Err(rustix::io::Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn remove_parts(directory: &File, progress: &mut Progress<'_>) {
    let Ok(inode) = directory.metadata().map(|metadata| metadata.ino()) else { return };
    for name in files::entries(&sys::path_of(directory)) {
        let Some(text) =
            name.to_str().filter(|text| text.starts_with('.') && text.ends_with(".part"))
        else {
            continue;
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let Ok(file) = fs::openat(directory, &name, flags, Mode::empty()).map(File::from) else {
            continue;
        };
        let Ok(metadata) = file.metadata() else { continue };
        let (bytes, how) = match () {
            () if metadata.is_file() => (metadata.len(), AtFlags::empty()),
            // A non-empty one stays.
            () if metadata.is_dir() => (0, AtFlags::REMOVEDIR),
            () => continue,
        };
        let ours = is_part(text, inode, metadata.ino(), bytes) && sys::try_lock(&file).is_ok();
        if ours && leads_to(directory, &name, &file).unwrap_or(false) {
            if !progress.step() {
                return;
            }
            let _ = fs::unlinkat(directory, &name, how);
        }
    }
}

fn remove(directory: &File, name: &OsStr, file: &File) -> io::Result<()> {
    let (there, own) = (fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?, file.metadata()?);
    if (there.st_dev, there.st_ino) != (own.dev(), own.ino()) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(fs::unlinkat(directory, name, AtFlags::empty())?)
}

/// Returns the bytes removed.
fn remove_leftover(
    directory: &File,
    name: &OsStr,
    is_ours: impl Fn(&File, u64) -> bool,
) -> Option<u64> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(fs::openat(directory, name, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    let leftover =
        metadata.is_file() && is_ours(&file, metadata.ino()) && sys::try_lock(&file).is_ok();
    (leftover && remove(directory, name, &file).is_ok()).then_some(metadata.len())
}

/// Returns number and bytes.
pub(crate) fn remove_leftovers(directory: &Path) -> (u32, u64) {
    let mut removed = (0, 0);
    let Ok(opened) = File::open(directory) else { return removed };
    let mut progress = Progress::of(directory);
    remove_parts(&opened, &mut progress);
    for name in files::entries(directory) {
        let Some(text) = name.to_str().filter(|text| text.ends_with(SUFFIX)) else { continue };
        if let Some(bytes) =
            remove_leftover(&opened, &name, |_, inode| is_our_name(text, SUFFIX, inode))
        {
            removed = (removed.0 + 1, removed.1 + bytes);
            if !progress.step() {
                break;
            }
        }
    }
    removed
}

pub(crate) fn kept(path: &Path) -> Option<OwnedFile> {
    let name = path.file_name()?.to_owned();
    // Opening a device may have side effects.
    if !std::fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let directory = File::open(directory_of(path)).ok()?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let seen = File::from(fs::openat(&directory, &name, flags, Mode::empty()).ok()?);
    let is_kept = |file| Named { directory: &directory, name: &name, file }.is_kept();
    if !seen.metadata().ok()?.is_file() || !is_kept(&seen) || sys::is_written(&seen) != Some(false)
    {
        return None;
    }
    // Do not even open a file of the user's for writing.
    let file = reopen(&seen, true, 0).ok()?;
    sys::try_lock(&file).ok()?;
    if !is_kept(&file) {
        return None;
    }
    let file = Arc::new(file);
    // Looking at the file does not change it.
    let (kept, untouched) = (true, true.into());
    Some(OwnedFile {
        path: path.into(),
        directory: Arc::new(directory),
        name,
        file,
        is_named: true,
        kept,
        untouched,
    })
}

/// The size for reuse; `None` if the file is the user's, or in use.
pub fn kept_bytes(path: &Path) -> Option<u64> {
    kept(path)?.file.metadata().ok().map(|metadata| metadata.len())
}

pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn explain(error: io::Error, directory: &Path, path: &Path) -> Error {
    let shown = directory.display().to_string();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Error::refused(
            shown,
            "no permission to make a test file here",
            "name a directory that you may write, or an existing file to read",
        ),
        Some(libc::EROFS) => Error::refused(
            shown,
            "the file system is read-only, so no test file can be made here",
            "name an existing file to read, or another directory",
        ),
        Some(libc::ENOSPC) => Error::refused(
            shown,
            "no space is left for a test file",
            "free some, or name another directory",
        ),
        Some(libc::ENOENT) => {
            Error::refused(shown, "the directory does not exist, or was removed", "make it first")
        }
        // A name was looked at before: it led to no file.
        Some(libc::EEXIST) if path.is_symlink() => Error::refused(
            path.display().to_string(),
            "it is a symbolic link to no file, and is not followed",
            "name the file that it should lead to",
        ),
        _ => Error::io("cannot make a test file", path)(error),
    }
}

pub(crate) fn reopen(file: &File, writes: bool, flags: i32) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let open = |flags| {
        std::fs::OpenOptions::new()
            .read(true)
            .write(writes)
            .custom_flags(flags)
            .open(sys::path_of(file))
    };
    let opened = open(flags | libc::O_NOATIME).or_else(|error| match error.raw_os_error() {
        // Only the owner may use O_NOATIME.
        Some(libc::EPERM) => open(flags),
        _ => Err(error),
    })?;
    let (held, again) = (file.metadata()?, opened.metadata()?);
    if (held.dev(), held.ino(), held.rdev()) != (again.dev(), again.ino(), again.rdev()) {
        return Err(io::Error::other(format!(
            "descriptor {} leads to another file",
            file.as_raw_fd()
        )));
    }
    Ok(opened)
}

#[cfg(test)]
mod tests;
