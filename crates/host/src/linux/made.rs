//! Files that halfpower makes: locked before anybody sees them, removed when dropped, and recognised after a kill.

use super::mark::{Marked, Named};
use super::sys;
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

/// How often a hidden file is made again where another process removes it.
const ATTEMPTS: u32 = 100;

/// Test files are called `halfpower-MARK.tmp`.
const SUFFIX: &str = ".tmp";

/// A file that halfpower made.
///
/// It has a name, although an unnamed one (O_TMPFILE) would vanish by itself: file systems treat a file without a link
/// differently where it matters here (btrfs logs no fsync of one, ext4 keeps it on the orphan list).
#[derive(Debug)]
pub(crate) struct MadeFile {
    /// Where it was made, for messages.
    pub(crate) path: PathBuf,
    directory: Arc<File>,
    name: OsString,
    file: Arc<File>,
    /// The number of its mark, where its name is the user's.
    mark: Option<String>,
    kept: bool,
    /// An earlier run kept it, and nothing was written since.
    untouched: AtomicBool,
}

impl MadeFile {
    /// Makes an empty file in `directory`, under a name of its own or this one, which must be free.
    pub(crate) fn create(directory: &Path, own_name: Option<&OsStr>) -> Result<MadeFile> {
        let opened = File::open(directory).map_err(|error| explain(error, directory, directory))?;
        MadeFile::create_in(Arc::new(opened), directory, own_name)
    }

    /// Another one in the same directory, whatever its path leads to by now.
    pub(crate) fn create_beside(&self) -> Result<MadeFile> {
        MadeFile::create_in(self.directory.clone(), self.path.parent().unwrap_or(Path::new(".")), None)
    }

    fn create_in(directory: Arc<File>, shown: &Path, own_name: Option<&OsStr>) -> Result<MadeFile> {
        sys::check_proc()?;
        let made = make(&directory, own_name);
        let (file, name, mark) =
            made.map_err(|error| explain(error, shown, &own_name.map_or(shown.into(), |name| shown.join(name))))?;
        let (path, mark) = (shown.join(&name), own_name.map(|_| mark));
        Ok(MadeFile { path, directory, name, file: Arc::new(file), mark, kept: false, untouched: false.into() })
    }

    /// The open file.
    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// A file under a name of the user's stays. As long as nobody writes it, a later run may.
    pub(crate) fn keep(&mut self) {
        self.kept |= self.mark.is_some();
    }

    /// From now on the file is written. If this process is killed, the next run removes it.
    pub(crate) fn touch(&self) {
        if let (Some(mark), true) = (&self.mark, self.untouched.swap(false, Ordering::Relaxed)) {
            let _ = self.named().work(mark);
        }
    }

    fn named(&self) -> Named<'_> {
        Named { directory: &self.directory, name: &self.name, file: &self.file }
    }

    /// Removes it although an earlier run kept it: it is made anew.
    pub(crate) fn discard(mut self) {
        self.kept = false;
    }
}

impl Drop for MadeFile {
    fn drop(&mut self) {
        match &self.mark {
            _ if !self.kept => {
                if self.mark.is_some() {
                    self.named().forget();
                }
                crate::cleanup::note(&self.path, remove(&self.directory, &self.name, &self.file));
            }
            Some(mark) if !self.untouched.load(Ordering::Relaxed) => {
                // Without a mark the file is the user's alone.
                let _ = self.named().keep(mark);
            }
            _ => {}
        }
    }
}

/// A new file, locked, then linked under its name; with the number of its mark.
fn make(directory: &File, own_name: Option<&OsStr>) -> io::Result<(File, OsString, String)> {
    let random = sys::random();
    let access = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    // What a file system without unnamed files says; another error would come of a named one too.
    let unnamed = match fs::openat(directory, ".", access | OFlags::TMPFILE, mode) {
        Ok(file) => Some(File::from(file)),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => None,
        Err(error) => return Err(error.into()),
    };
    // Otherwise a hidden one is renamed.
    let (file, hidden) = match unnamed {
        Some(file) => {
            sys::try_lock(&file)?;
            (file, None)
        }
        None => {
            let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let (file, hidden) =
                make_hidden(directory, |hidden| Ok(fs::openat(directory, hidden, flags, mode)?.into()))?;
            (file, Some(hidden))
        }
    };
    let named = || {
        let mark = mark(random, file.metadata()?.ino());
        let name: OsString = own_name.map_or_else(|| name(&mark, SUFFIX).into(), OsStr::to_owned);
        if own_name.is_some() {
            // A file that cannot be marked stays where a kill leaves it.
            let _ = Named { directory, name: &name, file: &file }.work(&mark);
        }
        let Some(hidden) = &hidden else {
            fs::linkat(fs::CWD, sys::path_of(&file), directory, &name, AtFlags::SYMLINK_FOLLOW)?;
            return Ok((name, mark));
        };
        match fs::renameat_with(directory, hidden, directory, &name, RenameFlags::NOREPLACE) {
            // A link does not replace a file either.
            Err(rustix::io::Errno::INVAL) => {
                fs::linkat(directory, hidden, directory, &name, AtFlags::empty())?;
                fs::unlinkat(directory, hidden, AtFlags::empty())?;
            }
            renamed => renamed?,
        }
        Ok((name, mark))
    };
    match named() {
        Ok((name, mark)) => Ok((file, name, mark)),
        Err(error) => {
            if let Some(hidden) = &hidden {
                let _ = fs::unlinkat(directory, hidden, AtFlags::empty());
            }
            Err(error)
        }
    }
}

/// Makes something of a hidden name that tells a later run what it is, and locks it. Before it is locked another process may take it for
/// what a killed run left: then it is made again.
pub(crate) fn make_hidden(directory: &File, make: impl Fn(&str) -> io::Result<File>) -> io::Result<(File, String)> {
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
                // Empty and ours, where it was made at all; a file or a directory.
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
            Err(error) if left > 0 && matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::WouldBlock) => {}
            made => return made,
        }
    }
}

/// Whether a name is this file's.
fn leads_to(directory: &File, name: &OsStr, file: &File) -> io::Result<bool> {
    let own = file.metadata()?;
    match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => Ok((there.st_dev, there.st_ino) == (own.dev(), own.ino())),
        Err(rustix::io::Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes hidden files and directories that killed runs left on their way to a name, and of which nobody holds the lock.
pub(crate) fn remove_parts(directory: &File) {
    let Ok(inode) = directory.metadata().map(|metadata| metadata.ino()) else { return };
    for entry in std::fs::read_dir(sys::path_of(directory)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(text) = name.to_str().filter(|text| text.starts_with('.') && text.ends_with(".part")) else {
            continue;
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let Ok(file) = fs::openat(directory, &name, flags, Mode::empty()).map(File::from) else { continue };
        let Ok(metadata) = file.metadata() else { continue };
        let (bytes, how) = match () {
            () if metadata.is_file() => (metadata.len(), AtFlags::empty()),
            // One with something in it is not removed.
            () if metadata.is_dir() => (0, AtFlags::REMOVEDIR),
            () => continue,
        };
        let ours = is_part(text, inode, metadata.ino(), bytes) && sys::try_lock(&file).is_ok();
        if ours && leads_to(directory, &name, &file).unwrap_or(false) {
            let _ = fs::unlinkat(directory, &name, how);
        }
    }
}

/// Removes a name where it still is this file's.
fn remove(directory: &File, name: &OsStr, file: &File) -> io::Result<()> {
    let (there, own) = (fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?, file.metadata()?);
    if (there.st_dev, there.st_ino) != (own.dev(), own.ino()) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(fs::unlinkat(directory, name, AtFlags::empty())?)
}

/// Removes a regular file that bears our mark and that nobody holds; its bytes.
fn remove_leftover(directory: &File, name: &OsStr, is_ours: impl Fn(&File, u64) -> bool) -> Option<u64> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(fs::openat(directory, name, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    let leftover = metadata.is_file() && is_ours(&file, metadata.ino()) && sys::try_lock(&file).is_ok();
    (leftover && remove(directory, name, &file).is_ok()).then_some(metadata.len())
}

/// Removes the test files that killed runs left in `directory`: they bear our mark and nobody holds their lock. Returns
/// their number and bytes.
pub(crate) fn remove_leftovers(directory: &Path) -> (u32, u64) {
    let mut removed = (0, 0);
    let Ok(opened) = File::open(directory) else { return removed };
    remove_parts(&opened);
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(text) = name.to_str().filter(|text| text.ends_with(SUFFIX)) else { continue };
        if let Some(bytes) = remove_leftover(&opened, &name, |_, inode| is_our_name(text, SUFFIX, inode)) {
            removed = (removed.0 + 1, removed.1 + bytes);
        }
    }
    removed
}

/// What halfpower made under a name of the user's.
#[derive(Debug)]
pub(crate) enum Earlier {
    /// A killed run left it; it is removed.
    Leftover(MadeFile),
    /// An earlier run left it, and nobody wrote it since.
    Kept(MadeFile),
}

/// What an earlier run made at a path, if nobody uses it: opened and locked.
pub(crate) fn earlier(path: &Path) -> Option<Earlier> {
    let name = path.file_name()?.to_owned();
    // Opening a device may do something.
    if !std::fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let directory = File::open(directory_of(path)).ok()?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let seen = File::from(fs::openat(&directory, &name, flags, Mode::empty()).ok()?);
    if !seen.metadata().ok()?.is_file() {
        return None;
    }
    let (mark, marked) = Named { directory: &directory, name: &name, file: &seen }.read()?;
    // A file of the user's is not even opened for writing.
    let file = reopen(&seen, true, 0).ok()?;
    sys::try_lock(&file).ok()?;
    let kept = marked == Marked::Kept;
    let made = MadeFile {
        path: path.into(),
        directory: Arc::new(directory),
        name,
        file: Arc::new(file),
        mark: Some(mark),
        // Whoever looks at it leaves it as it is.
        kept: true,
        untouched: true.into(),
    };
    Some(if kept { Earlier::Kept(made) } else { Earlier::Leftover(made) })
}

/// The bytes of a file that halfpower made under a name of the user's and that the next run may use anew: none where a
/// killed run left it. `None`: it is the user's, or somebody uses it.
pub fn made_earlier(path: &Path) -> Option<u64> {
    match earlier(path)? {
        Earlier::Leftover(_) => Some(0),
        Earlier::Kept(made) => made.file.metadata().ok().map(|metadata| metadata.len()),
    }
}

/// The directory that a file is in, by its path.
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
        Some(libc::ENOSPC) => {
            Error::refused(shown, "no space is left for a test file", "free some, or name another directory")
        }
        Some(libc::ENOENT) => Error::refused(shown, "there is no such directory to make a file in", "make it first"),
        _ => Error::io("cannot make a test file", path)(error),
    }
}

/// Opens an open file again, with other flags, whatever its path leads to by now.
///
/// # Errors
/// What the kernel says.
pub(crate) fn reopen(file: &File, writes: bool, flags: i32) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let open =
        |flags| std::fs::OpenOptions::new().read(true).write(writes).custom_flags(flags).open(sys::path_of(file));
    let opened = open(flags | libc::O_NOATIME).or_else(|error| match error.raw_os_error() {
        // Only the owner may leave the access time alone.
        Some(libc::EPERM) => open(flags),
        _ => Err(error),
    })?;
    let (held, again) = (file.metadata()?, opened.metadata()?);
    if (held.dev(), held.ino(), held.rdev()) != (again.dev(), again.ino(), again.rdev()) {
        return Err(io::Error::other(format!("descriptor {} leads to another file", file.as_raw_fd())));
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::{Earlier, MadeFile, earlier, made_earlier, remove_leftovers};
    use machine::mark::{mark, part_name};
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    #[test]
    fn leftovers_of_the_dead_go_and_the_livings_and_the_users_stay() {
        let directory = tempfile::tempdir().unwrap();
        let alive = MadeFile::create(directory.path(), None).unwrap();
        let mut dead = MadeFile::create(directory.path(), None).unwrap();
        let dead_path = dead.path.clone();
        fs::write(&dead_path, "left").unwrap();
        dead.kept = true;
        drop(dead);
        fs::copy(&dead_path, directory.path().join("aside")).unwrap();
        let name = dead_path.file_name().unwrap().to_owned();
        fs::create_dir(directory.path().join("restored")).unwrap();
        fs::copy(&dead_path, directory.path().join("restored").join(&name)).unwrap();
        for name in ["halfpower-mine.tmp", "halfpower-1-2.tmp", "halfpower-2024-11.tmp", "notes"] {
            fs::write(directory.path().join(name), "the user's").unwrap();
        }
        assert_eq!(remove_leftovers(directory.path()), (1, 4));
        assert!(!dead_path.exists() && alive.path.exists());
        assert_eq!(remove_leftovers(&directory.path().join("restored")), (0, 0), "a copy of the user's stays");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 7);
    }

    #[test]
    fn a_name_that_leads_elsewhere_by_now_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let made = MadeFile::create(directory.path(), None).unwrap();
        let path = made.path.clone();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "the user's").unwrap();
        drop(made);
        assert_eq!(fs::read(&path).unwrap(), b"the user's");
    }

    /// A file of this name as a killed run leaves it.
    fn killed(path: &Path) {
        let mut made = MadeFile::create(path.parent().unwrap(), path.file_name()).unwrap();
        // Nothing is done about it in the end.
        (made.kept, made.untouched) = (true, true.into());
    }

    #[test]
    fn a_killed_runs_file_of_the_users_name_goes() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("testfile.dat");
        let living = MadeFile::create(directory.path(), path.file_name()).unwrap();
        assert!(earlier(&path).is_none(), "its maker lives");
        assert!(MadeFile::create(directory.path(), path.file_name()).is_err(), "the name is taken");
        drop(living);
        assert!(!path.exists());
        killed(&path);
        assert_eq!(made_earlier(&path), Some(0));
        let Some(Earlier::Leftover(left)) = earlier(&path) else { panic!("what a killed run left") };
        left.discard();
        assert!(!path.exists());
    }

    #[test]
    fn what_a_kill_left_on_its_way_to_a_name_goes_and_the_users_stays() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        let here = inode(directory.path());
        let (empty, folder, full, living) =
            (at(&part_name(1, here)), at(&part_name(2, here)), at("full"), at(&part_name(4, here)));
        fs::write(&empty, "").unwrap();
        fs::create_dir(&folder).unwrap();
        fs::write(&full, "a part of a document").unwrap();
        let own = at(&part_name(3, inode(&full)));
        fs::rename(&full, &own).unwrap();
        let held = fs::File::create(&living).unwrap();
        crate::linux::sys::try_lock(&held).unwrap();
        let (named, copy, kept) =
            (at(".halfpower-0123456789abcdef.part"), at(&part_name(5, here)), at(&part_name(6, here)));
        fs::write(&named, "").unwrap();
        fs::write(&copy, "the user's").unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("thesis"), "the user's").unwrap();
        remove_leftovers(directory.path());
        assert!(!empty.exists() && !folder.exists() && !own.exists());
        assert!(living.exists() && named.exists() && copy.exists() && kept.join("thesis").exists());
    }

    #[test]
    fn a_kept_file_may_be_used_again_until_somebody_writes_it() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("testfile.dat");
        let mut made = MadeFile::create(directory.path(), path.file_name()).unwrap();
        made.file().set_len(4096).unwrap();
        made.keep();
        let done = fs::metadata(&path).unwrap().modified().unwrap();
        drop(made);
        assert!(fs::metadata(&path).unwrap().modified().unwrap() < done, "a write at the same time bears another one");
        assert_eq!(made_earlier(&path), Some(4096));
        // Used again, and kept again; killed while it writes, it is a leftover.
        for _ in 0..2 {
            let Some(Earlier::Kept(again)) = earlier(&path) else { panic!("it was kept") };
            again.touch();
            again.file().set_len(8192).unwrap();
        }
        assert_eq!(made_earlier(&path), Some(8192));
        let Some(Earlier::Kept(mut again)) = earlier(&path) else { panic!("it was kept") };
        again.touch();
        again.untouched = true.into();
        drop(again);
        assert_eq!(made_earlier(&path), Some(0));
        let Some(Earlier::Leftover(left)) = earlier(&path) else { panic!("it was written to") };
        left.discard();

        let mut made = MadeFile::create(directory.path(), path.file_name()).unwrap();
        made.keep();
        drop(made);
        fs::write(&path, "the user's").unwrap();
        assert_eq!(made_earlier(&path), None, "of another length");
        let mut made = MadeFile::create(directory.path(), Some("linked".as_ref())).unwrap();
        made.keep();
        drop(made);
        fs::hard_link(directory.path().join("linked"), directory.path().join("link")).unwrap();
        assert_eq!(made_earlier(&directory.path().join("link")), None, "it has another name");
        let copy = directory.path().join("copy");
        fs::copy(&path, &copy).unwrap();
        assert!(made_earlier(&copy).is_none() && earlier(&copy).is_none());
        assert_eq!(fs::read(&path).unwrap(), b"the user's");
    }

    #[test]
    fn a_mark_that_is_anybodys_is_none() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("mine");
        fs::write(&path, "the user's").unwrap();
        let file = fs::File::open(&path).unwrap();
        for text in [mark(7, 1), String::new(), "kept".into(), mark(7, 1) + " kept 10 0.000000000"] {
            rustix::fs::fsetxattr(&file, "user.halfpower", text.as_bytes(), rustix::fs::XattrFlags::empty()).unwrap();
            assert!(earlier(&path).is_none(), "{text:?}");
        }
    }
}
