//! Open directories: files go into the directory that was checked, even if its path changes.

mod look;

use self::look::{DIRECTORY, Link};
use crate::PRIVATE;
use crate::input::check_regular;
use crate::system::{is_same_file, is_stream, is_trusted_user, names_of};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, RawMode, Uid, chmodat, fchown, fsync, linkat};
use rustix::fs::{mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The kernel's limit.
const MAX_LINKS: u32 = 40;

static HELD: Mutex<Option<HashMap<PathBuf, Arc<Directory>>>> = Mutex::new(None);

/// An open directory, and the path that led to it.
///
/// ```
/// use std::ffi::OsStr;
///
/// let path = std::env::temp_dir().join(format!("directory-{}", std::process::id()));
/// let (directory, made) = files::Directory::make(&path, files::PRIVATE)?;
/// let name = OsStr::new("result.json");
/// directory.create(name, 0o600)?;
/// assert_eq!(directory.names()?, [name]);
/// directory.remove(name)?;
/// files::remove_empty(&made);
/// assert!(!path.exists());
/// # Ok::<(), std::io::Error>(())
/// ```
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

/// The parent and name of a directory that [`Directory::make`] created.
pub type MadeDirectory = (File, OsString);

impl Directory {
    /// Resolves the path only the first time.
    pub fn held(path: &Path) -> io::Result<Arc<Directory>> {
        hold(path, None, &mut Vec::new())
    }

    /// Creates the missing part of the path.
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

    /// Refuses what is not safe for root: another user owns a symbolic link on the path, or created
    /// the directory in one that this user can write.
    pub fn open(path: &Path) -> io::Result<Directory> {
        resolve(path, None, &mut Vec::new())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn metadata(&self) -> io::Result<Metadata> {
        self.handle.metadata()
    }

    /// The path still leads here.
    pub fn is_in_place(&self) -> bool {
        matches!((self.metadata(), fs::metadata(&self.path)), (Ok(own), Ok(there)) if is_same_file(&own, &there))
    }

    /// Returns `false` for a removed directory, which takes no files.
    pub fn is_there(&self) -> bool {
        self.metadata().is_ok_and(|metadata| metadata.nlink() > 0)
    }

    /// Follows no link.
    pub fn look(&self, name: &OsStr) -> io::Result<Metadata> {
        look::look(self, name, false)
    }

    /// Follows a link.
    pub fn follow(&self, name: &OsStr) -> io::Result<Metadata> {
        look::look(self, name, true)
    }

    /// Follows no link and waits for no pipe.
    pub fn open_regular(&self, name: &OsStr) -> io::Result<File> {
        self.open_file(name, OFlags::RDONLY)
    }

    /// As [`Directory::open_regular`].
    pub fn open_to_append(&self, name: &OsStr) -> io::Result<File> {
        self.open_file(name, OFlags::WRONLY | OFlags::APPEND)
    }

    fn open_file(&self, name: &OsStr, access: OFlags) -> io::Result<File> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file: File = match openat(self, name, flags, Mode::empty()) {
            Err(Errno::LOOP) => {
                return Err(io::Error::other("it is a symbolic link; name a regular file"));
            }
            Err(Errno::NXIO) => {
                return Err(io::Error::other(
                    "it is a named pipe or a socket; name a regular file",
                ));
            }
            opened => opened?.into(),
        };
        check_regular(&file.metadata()?)?;
        Ok(file)
    }

    /// Opens a character device, a pipe or a socket to append to; waits for a pipe. Refuses other
    /// kinds.
    pub fn open_stream(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(openat(self, name, flags, Mode::empty())?);
        if is_stream(&file.metadata()?) {
            return Ok(file);
        }
        Err(io::Error::other("it was replaced at this very moment"))
    }

    /// To read and write.
    pub fn create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(self, name, flags, bits(mode))?.into())
    }

    /// To read and write. Refuses a symbolic link.
    pub fn open_or_create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        Ok(openat(self, name, flags, bits(mode))?.into())
    }

    /// Drops the result.
    pub fn stat(&self, name: &OsStr) -> io::Result<()> {
        statat(self, name, AtFlags::empty())?;
        Ok(())
    }

    /// Creates a file that the directory's owner can use, also if root calls this.
    pub fn create_for_owner(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        let owner = self.metadata()?;
        if geteuid().is_root() && owner.uid() != 0 {
            let file = self.create(name, mode)?;
            fchown(&file, Some(Uid::from_raw(owner.uid())), Some(Gid::from_raw(owner.gid())))?;
        }
        Ok(())
    }

    /// Replaces a file with the new name.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(self, from, self, to)?)
    }

    /// Fails if the new name is taken.
    pub fn rename_to_free(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match rename_without_replacing(self, from, to) {
            // A system or a file system that cannot: a link does not replace a file either.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                linkat(self, from, self, to, AtFlags::empty())?;
                self.remove(from)
            }
            renamed => Ok(renamed?),
        }
    }

    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(self, name, AtFlags::empty())?)
    }

    pub fn make_directory(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        Ok(mkdirat(self, name, bits(mode))?)
    }

    pub fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(self, name, AtFlags::REMOVEDIR)?)
    }

    pub fn is_name_of(&self, name: &OsStr, file: &File) -> bool {
        matches!((file.metadata(), self.look(name)), (Ok(own), Ok(there)) if is_same_file(&own, &there))
    }

    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.readable()?.set_permissions(Permissions::from_mode(mode))
    }

    pub fn sync(&self) -> io::Result<()> {
        Ok(fsync(self.readable()?)?)
    }

    pub fn names(&self) -> io::Result<Vec<OsString>> {
        names_of(self.readable()?)?.collect()
    }

    fn readable(&self) -> io::Result<File> {
        Ok(openat(self, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?
            .into())
    }
}

fn bits(mode: u32) -> Mode {
    Mode::from_raw_mode(mode as RawMode)
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn rename_without_replacing(
    directory: &Directory,
    from: &OsStr,
    to: &OsStr,
) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(directory, from, directory, to, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn rename_without_replacing(_: &Directory, _: &OsStr, _: &OsStr) -> rustix::io::Result<()> {
    Err(Errno::NOSYS)
}

/// Returns the directory first found at the path, while it exists.
fn hold(
    path: &Path,
    mode: Option<u32>,
    made: &mut Vec<MadeDirectory>,
) -> io::Result<Arc<Directory>> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let held = held.get_or_insert_default();
    // One that was removed can hold nothing any more.
    if let Some(known) = held.get(path).filter(|known| known.is_there()) {
        return Ok(known.clone());
    }
    let resolved = Arc::new(resolve(path, mode, made)?);
    held.insert(path.into(), resolved.clone());
    Ok(resolved)
}

/// Goes name by name to see every link.
fn resolve(path: &Path, mode: Option<u32>, made: &mut Vec<MadeDirectory>) -> io::Result<Directory> {
    let start = |path: &Path| -> io::Result<File> {
        Ok(openat(CWD, if path.is_absolute() { "/" } else { "." }, DIRECTORY, Mode::empty())?
            .into())
    };
    let names = |path: &Path| -> Vec<OsString> {
        let is_name =
            |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
        path.components().filter(is_name).map(|part| part.as_os_str().to_owned()).collect()
    };
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    let mut at = start(path)?;
    let mut rest: VecDeque<OsString> = names(path).into();
    let is_here = rest.is_empty() && path.is_relative();
    let (mut links, mut link_owners) = (0, Vec::new());
    while let Some(name) = rest.pop_front() {
        match openat(&at, &name, DIRECTORY, Mode::empty()) {
            Ok(next) => at = next.into(),
            Err(Errno::NOENT) if mode.is_some() => {
                let owner = at.metadata()?.uid();
                // It would keep that user out of a part of the home directory.
                if mode == Some(PRIVATE) && geteuid().is_root() && owner != 0 {
                    return refused(format!(
                        "root keeps nothing in a directory of another user (uid {owner})"
                    ));
                }
                mkdirat(&at, &name, bits(mode.unwrap_or_default()))?;
                let next = File::from(openat(&at, &name, DIRECTORY, Mode::empty())?);
                let mode = next.metadata()?.mode();
                if mode & 0o700 != 0o700 && !geteuid().is_root() {
                    // A mask that keeps its owner out.
                    chmodat(&at, &name, bits(mode & 0o777 | 0o700), AtFlags::empty())?;
                }
                made.push((std::mem::replace(&mut at, next), name));
            }
            // The errors of a link with these flags; MLINK is FreeBSD's.
            Err(error @ (Errno::NOTDIR | Errno::LOOP | Errno::MLINK)) => {
                let Some(Link { owner, target }) = look::link(&at, &name)? else {
                    return Err(error.into());
                };
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                if !is_trusted_user(owner) {
                    link_owners.push(owner);
                }
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
    if !is_trusted_user(own) && !is_here {
        let above = File::from(openat(&at, "..", DIRECTORY, Mode::empty())?).metadata()?;
        if !is_trusted_user(above.uid()) || above.mode() & 0o022 != 0 {
            return refused(format!(
                "another user (uid {own}) made this directory, and root does not write in it"
            ));
        }
    }
    Ok(Directory { path: path.into(), handle: at })
}

/// If empty, innermost first.
pub fn remove_empty(made: &[MadeDirectory]) {
    made.iter()
        .rev()
        .take_while(|(above, name)| unlinkat(above, name, AtFlags::REMOVEDIR).is_ok())
        .for_each(drop);
}
