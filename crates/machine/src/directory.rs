//! Directories that are held open: whatever becomes of a directory's path, files go into the one that was checked.

use crate::input::check_regular;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, RenameFlags, fsync, linkat, mkdirat, openat, readlinkat};
use rustix::fs::{chmodat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType, Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Symbolic links on a path's way; the kernel follows as many.
const MAX_LINKS: u32 = 40;

/// Permissions of a directory that only its owner can use: of the journal, of the history.
pub const PRIVATE: u32 = 0o700;

/// The directories whose paths were resolved, by those paths.
static HELD: Mutex<Option<HashMap<PathBuf, Arc<Directory>>>> = Mutex::new(None);

/// An open directory, and the path that led to it.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    handle: File,
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// A directory that [`Directory::make`] made: in which one, and its name there.
pub type MadeDirectory = (File, OsString);

impl Directory {
    /// The directory at a path, which is resolved the first time: the same path gives the same directory from then on.
    ///
    /// # Errors
    /// As [`Directory::open`].
    pub fn held(path: &Path) -> io::Result<Arc<Directory>> {
        hold(path, None, &mut Vec::new())
    }

    /// [`Directory::held`], which makes a missing directory and those above it.
    ///
    /// # Errors
    /// As [`Directory::open`], and a directory that cannot be made.
    pub fn make(path: &Path, mode: u32) -> io::Result<(Arc<Directory>, Vec<MadeDirectory>)> {
        let mut made = Vec::new();
        match hold(path, Some(mode), &mut made) {
            Ok(held) => Ok((held, made)),
            Err(error) => {
                remove_empty(&made);
                Err(error)
            }
        }
    }

    /// Opens a directory.
    ///
    /// # Errors
    /// It is missing or not a directory, or root must not trust it: a symbolic link of another user is on the way, or
    /// another user made it in a directory in which that user can.
    pub fn open(path: &Path) -> io::Result<Directory> {
        resolve(path, None, &mut Vec::new())
    }

    /// The path that led to it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory itself.
    ///
    /// # Errors
    /// The system's.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.handle.metadata()
    }

    /// Whether the path still leads to it.
    pub fn is_in_place(&self) -> bool {
        matches!((self.metadata(), fs::metadata(&self.path)), (Ok(own), Ok(there)) if is_same_file(&own, &there))
    }

    /// The file of a name in it; of a symbolic link the link itself.
    ///
    /// # Errors
    /// Nothing has, or the system's.
    pub fn look(&self, name: &OsStr) -> io::Result<Metadata> {
        look_at(self, name, OFlags::NOFOLLOW)
    }

    /// The file that a name in it leads to.
    ///
    /// # Errors
    /// As [`Directory::look`].
    pub fn follow(&self, name: &OsStr) -> io::Result<Metadata> {
        look_at(self, name, OFlags::empty())
    }

    /// Opens a regular file to read, without following a link and without waiting for a pipe.
    ///
    /// # Errors
    /// It is not there or something else.
    pub fn open_regular(&self, name: &OsStr) -> io::Result<File> {
        self.open_file(name, OFlags::RDONLY)
    }

    /// Opens a regular file to add to it, as [`Directory::open_regular`] does.
    ///
    /// # Errors
    /// It is not there or something else.
    pub fn open_to_append(&self, name: &OsStr) -> io::Result<File> {
        self.open_file(name, OFlags::WRONLY | OFlags::APPEND)
    }

    fn open_file(&self, name: &OsStr, access: OFlags) -> io::Result<File> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file: File = match openat(self, name, flags, Mode::empty()) {
            Err(Errno::LOOP) => return Err(io::Error::other("it is a symbolic link; name a regular file")),
            Err(Errno::NXIO) => return Err(io::Error::other("it is a named pipe or a socket; name a regular file")),
            opened => opened?.into(),
        };
        check_regular(&file.metadata()?)?;
        Ok(file)
    }

    /// Makes a new file to read and write.
    ///
    /// # Errors
    /// The name is taken, or the system's.
    pub fn create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(self, name, flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Gives a file another name, which may be taken.
    ///
    /// # Errors
    /// The system's.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(self, from, self, to)?)
    }

    /// Gives a file a name that must be free.
    ///
    /// # Errors
    /// The name is taken, or the system's.
    pub fn rename_to_free(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match renameat_with(self, from, self, to, RenameFlags::NOREPLACE) {
            // A file system that cannot: a link does not replace a file either.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                linkat(self, from, self, to, AtFlags::empty())?;
                self.remove(from)
            }
            renamed => Ok(renamed?),
        }
    }

    /// Removes a name of a file.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(self, name, AtFlags::empty())?)
    }

    /// Whether a name in it is this file's.
    pub fn is_name_of(&self, name: &OsStr, file: &File) -> bool {
        matches!((file.metadata(), self.look(name)), (Ok(own), Ok(there)) if is_same_file(&own, &there))
    }

    /// Sets its permissions.
    ///
    /// # Errors
    /// The system's.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.readable()?.set_permissions(Permissions::from_mode(mode))
    }

    /// Brings its names to stable storage.
    ///
    /// # Errors
    /// It may not be read, or the system's.
    pub fn sync(&self) -> io::Result<()> {
        Ok(fsync(self.readable()?)?)
    }

    /// The names in it.
    ///
    /// # Errors
    /// It may not be read, or the system's.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let readable = self.readable()?;
        let mut names = Vec::new();
        let mut buffer = Vec::with_capacity(1 << 15);
        let mut entries = RawDir::new(&readable, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    fn readable(&self) -> io::Result<File> {
        Ok(openat(self, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?.into())
    }
}

fn look_at(directory: impl AsFd, name: impl rustix::path::Arg, follow: OFlags) -> io::Result<Metadata> {
    File::from(openat(directory, name, OFlags::PATH | OFlags::CLOEXEC | follow, Mode::empty())?).metadata()
}

/// Whether root may trust what this user put in its way: root's own, and that of the user who called it (sudo(8), pkexec(1)). Other users
/// trust what the kernel lets them use.
pub fn is_trusted(uid: u32) -> bool {
    let is_caller = |variable: &str| std::env::var(variable).is_ok_and(|caller| caller == uid.to_string());
    !geteuid().is_root() || uid == 0 || is_caller("SUDO_UID") || is_caller("PKEXEC_UID")
}

/// The directory that was found at a path the first time; made with `mode` if it is missing.
fn hold(path: &Path, mode: Option<u32>, made: &mut Vec<MadeDirectory>) -> io::Result<Arc<Directory>> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let held = held.get_or_insert_default();
    // One that was removed can hold nothing any more.
    let is_there = |known: &&Arc<Directory>| known.metadata().is_ok_and(|metadata| metadata.nlink() > 0);
    if let Some(known) = held.get(path).filter(is_there) {
        return Ok(known.clone());
    }
    let resolved = Arc::new(resolve(path, mode, made)?);
    held.insert(path.into(), resolved.clone());
    Ok(resolved)
}

/// Follows a path one name at a time, so that every link on the way is seen; makes what is missing with `mode`.
fn resolve(path: &Path, mode: Option<u32>, made: &mut Vec<MadeDirectory>) -> io::Result<Directory> {
    const FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    let start = |path: &Path| -> io::Result<File> {
        Ok(openat(CWD, if path.is_absolute() { "/" } else { "." }, FLAGS, Mode::empty())?.into())
    };
    let names = |path: &Path| -> Vec<OsString> {
        let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
        path.components().filter(is_name).map(|part| part.as_os_str().to_owned()).collect()
    };
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    let mut at = start(path)?;
    let mut rest: VecDeque<OsString> = names(path).into();
    let is_here = rest.is_empty() && path.is_relative();
    let (mut links, mut link_owners) = (0, Vec::new());
    while let Some(name) = rest.pop_front() {
        match openat(&at, &name, FLAGS, Mode::empty()) {
            Ok(next) => at = next.into(),
            Err(Errno::NOENT) if mode.is_some() => {
                let owner = at.metadata()?.uid();
                // It would keep that user out of a part of the home directory.
                if mode == Some(PRIVATE) && geteuid().is_root() && owner != 0 {
                    return refused(format!("root keeps nothing in a directory of another user (uid {owner})"));
                }
                mkdirat(&at, &name, Mode::from_raw_mode(mode.unwrap_or_default()))?;
                let next = File::from(openat(&at, &name, FLAGS, Mode::empty())?);
                let mode = next.metadata()?.mode();
                if mode & 0o700 != 0o700 && !geteuid().is_root() {
                    // A mask that keeps its owner out.
                    chmodat(&at, &name, Mode::from_raw_mode(mode & 0o777 | 0o700), AtFlags::empty())?;
                }
                made.push((std::mem::replace(&mut at, next), name));
            }
            // The errors of a link with these flags.
            Err(error @ (Errno::NOTDIR | Errno::LOOP)) => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let link = File::from(openat(&at, &name, flags, Mode::empty())?);
                let metadata = link.metadata()?;
                links += 1;
                if !metadata.is_symlink() || links > MAX_LINKS {
                    return Err(if links > MAX_LINKS { Errno::LOOP } else { error }.into());
                }
                if !is_trusted(metadata.uid()) {
                    link_owners.push(metadata.uid());
                }
                let target = PathBuf::from(OsString::from_vec(readlinkat(&link, "", Vec::new())?.into_bytes()));
                if target.is_absolute() {
                    at = start(&target)?;
                }
                names(&target).into_iter().rev().for_each(|name| rest.push_front(name));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let own = at.metadata()?.uid();
    if let Some(owner) = link_owners.into_iter().find(|owner| *owner != own) {
        return refused(format!("a symbolic link of another user (uid {owner}) is on its way"));
    }
    // The current directory was chosen by going there.
    if !is_trusted(own) && !is_here {
        let above = look_at(&at, "..", OFlags::empty())?;
        if !is_trusted(above.uid()) || above.mode() & 0o022 != 0 {
            return refused(format!("another user (uid {own}) made this directory, and root does not write in it"));
        }
    }
    Ok(Directory { path: path.into(), handle: at })
}

/// Whether two are the same file, or nodes of the same device.
pub fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    let is_device = |kind: FileType| kind.is_block_device() || kind.is_char_device();
    if is_device(a.file_type()) && is_device(b.file_type()) {
        return a.file_type() == b.file_type() && a.rdev() == b.rdev();
    }
    (a.dev(), a.ino()) == (b.dev(), b.ino()) && a.file_type() == b.file_type()
}

/// The directory that a file's path says it is in.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes directories that were made and are empty, the innermost first.
pub fn remove_empty(made: &[MadeDirectory]) {
    made.iter().rev().take_while(|(above, name)| unlinkat(above, name, AtFlags::REMOVEDIR).is_ok()).for_each(drop);
}
