//! The members of a target: files and devices that a user named, and test files made in the directories that a user
//! named.
//!
//! Each is opened once. What was checked is that open file, and every run reaches it through that.

use super::clock::Clock;
use super::made::{MadeFile, directory_of, remove_leftovers, remove_named_leftover, reopen};
use super::{facts, sys};
use crate::arena::Arena;
use crate::test_file::{self, Fill};
use machine::{Error, NewFile, Result, TargetKind, TargetSpec, units};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Bytes of a file that is to grow: the alignment of direct I/O is found by reading them.
const GROWN_START: u64 = 256 * units::KIB;

/// One file or device of a target.
#[derive(Debug)]
pub(crate) struct Member {
    /// What it was opened by; for messages and for what the kernel knows by path alone.
    pub(crate) path: PathBuf,
    /// What it is.
    pub(crate) kind: TargetKind,
    /// Bytes in it.
    pub(crate) size: u64,
    /// May be written.
    pub(crate) writable: bool,
    /// Open as long as the target is: a device that may be written exclusively, a file that may be written locked.
    file: Arc<File>,
    /// Removes a test file in the end.
    made: Option<MadeFile>,
}

impl Member {
    /// Opens what the user named.
    pub(crate) fn open(path: &Path, spec: &TargetSpec, fill: Fill<'_>) -> Result<Member> {
        let shown = path.display().to_string();
        if spec.create && (remove_named_leftover(path) || is_absent(path)) {
            return Member::make(directory_of(path), Some(path), spec.new_file, fill);
        }
        let metadata = fs::metadata(path).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {
                Error::refused(&shown, "there is no such file, directory or device", "name one that exists")
            }
            Some(libc::EACCES) => Error::refused(&shown, "no permission to look at it", "run as a user who may"),
            _ => Error::io("cannot look at", path)(error),
        })?;
        if metadata.is_dir() {
            return Member::make(path, None, spec.new_file, fill);
        }
        let is_usable = |kind: fs::FileType| kind.is_file() || kind.is_block_device();
        let unusable = || {
            let why = "it is neither a directory nor a regular file nor a block device";
            Error::refused(&shown, why, "name one of these")
        };
        // Opening a pipe would wait for its other end.
        if !is_usable(metadata.file_type()) {
            return Err(unusable());
        }
        let writable = spec.destroy.iter().any(|named| same_file(named, path));
        let file = open_for(path, writable)?;
        let metadata = file.metadata().map_err(Error::io("cannot look at", path))?;
        if !is_usable(metadata.file_type()) {
            return Err(unusable());
        }
        let device = metadata.file_type().is_block_device();
        let file = if writable { hold(file, path, spec)? } else { Arc::new(file) };
        let (kind, there) = if device {
            (TargetKind::Device, sys::device_size(&file).map_err(Error::io("cannot tell the size of", path))?)
        } else {
            (TargetKind::File, metadata.len())
        };
        if there < test_file::LEAST {
            let (why, hint) = if device {
                ("the device is empty".into(), "name one with a medium in it")
            } else {
                (format!("the file has only {there} bytes"), "name a file of at least 4 KiB, or a directory")
            };
            return Err(Error::refused(shown, why, hint));
        }
        let size = test_file::region(fill.size, there, &shown)?;
        let mut member = Member { path: path.into(), kind, size, writable, file, made: None };
        if writable && !spec.as_is {
            let written = member.write_all(fill, size)?;
            // Blocks of a device that were never written may read faster than any that were.
            if device && fill.size.is_none() {
                member.size = written;
            }
        }
        Ok(member)
    }

    /// Makes a test file in a directory, under a name of its own or the user's.
    fn make(directory: &Path, name: Option<&Path>, new_file: NewFile, fill: Fill<'_>) -> Result<Member> {
        remove_leftovers(directory);
        let shown = directory.display().to_string();
        // That no file can be made here at all is said before that it would be too large.
        let made = MadeFile::create(directory, name.and_then(Path::file_name))?;
        let free = sys::free_bytes(&sys::path_of(made.file()))
            .map_err(Error::io("cannot tell the free space of", directory))?;
        let most = test_file::size(fill.size, free, &shown)?;
        if new_file != NewFile::Filled && fill.size.is_none() {
            return Err(Error::refused(shown, "a file that is not to be filled was given no size", "give its size"));
        }
        let (path, file) = (made.path.clone(), made.file().clone());
        let mut member =
            Member { path, kind: TargetKind::TestFile, size: most, writable: true, file, made: Some(made) };
        match new_file {
            NewFile::Filled => member.size = member.write_all(fill, most)?,
            // No more than what tells the alignment.
            NewFile::Empty => drop(member.write_all(fill, most.min(GROWN_START))?),
            NewFile::Reserved | NewFile::Sparse => member
                .lengthen(most, new_file == NewFile::Reserved)
                .map_err(Error::io("cannot make room for", &member.path))?,
        }
        Ok(member)
    }

    /// Makes a new file so long without writing it; with `reserve`, its space is reserved where the file system does that.
    fn lengthen(&self, bytes: u64, reserve: bool) -> io::Result<()> {
        let reserved = if reserve { sys::reserve(&self.file, bytes) } else { Err(io::ErrorKind::Unsupported.into()) };
        match reserved {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => self.file.set_len(bytes)?,
            result => result?,
        }
        self.file.sync_all()
    }

    /// A file that was made under a name of the user's stays.
    pub(crate) fn keep(&mut self) {
        if let Some(made) = &mut self.made {
            made.keep();
        }
    }

    /// Writes random data from the start; returns how much was written ([`Fill::write`]).
    fn write_all(&self, fill: Fill<'_>, most: u64) -> Result<u64> {
        let cannot = Error::io("cannot write", &self.path);
        let plain = &*self.file;
        let direct = reopen(plain, true, libc::O_DIRECT);
        let file = direct.as_ref().unwrap_or(plain);
        let mut arena = Arena::new(1, test_file::STEP as u32, false, machine::Memory::Huge).map_err(cannot)?;
        let written = fill.write(most, arena.bytes(), Clock::get(), |data, offset| {
            let result = file.write_all_at(data, offset).or_else(|error| match error.raw_os_error() {
                // A tail that direct I/O does not take, or a file system that accepts the flag and then refuses.
                Some(libc::EINVAL) => plain.write_all_at(data, offset),
                _ => Err(error),
            });
            result.map_err(|error| match error.raw_os_error() {
                // What was asked made sense when it was checked: a failed run, and no misuse.
                Some(libc::ENOSPC | libc::EDQUOT) => Error::Unsupported(format!(
                    "{}: the file system was full after {}; free some space or give a smaller --size",
                    self.path.display(),
                    units::show_size(offset)
                )),
                _ => Error::io("cannot fill", &self.path)(error),
            })
        })?;
        file.sync_all().map_err(Error::io("cannot bring to stable storage", &self.path))?;
        sys::drop_cache(file, 0, 0);
        Ok(written)
    }

    /// The file that halfpower made, where it is one.
    pub(crate) fn made(&self) -> Option<&MadeFile> {
        self.made.as_ref()
    }

    /// Opens the member as a run needs it.
    pub(crate) fn open_with(&self, writes: bool, flags: i32) -> io::Result<File> {
        reopen(&self.file, writes && self.writable, flags)
    }

    /// Whether the path still leads to the open file: what the kernel says of the path is then said of the file.
    ///
    /// # Errors
    /// It leads elsewhere: it was replaced, or what was mounted there is not any more.
    pub(crate) fn check_path(&self) -> Result<()> {
        let same = match (fs::metadata(&self.path), self.file.metadata()) {
            (Ok(there), Ok(own)) => identity(&there) == identity(&own),
            _ => false,
        };
        if same {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "{} leads to another file than when it was opened: it was replaced, or its file system was unmounted",
            self.path.display()
        )))
    }
}

/// What tells files and devices apart.
fn identity(metadata: &fs::Metadata) -> Identity {
    // A device has several nodes.
    if metadata.file_type().is_block_device() { (0, 0, metadata.rdev()) } else { (metadata.dev(), metadata.ino(), 0) }
}

fn is_absent(path: &Path) -> bool {
    fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// What this process holds for writing: several targets may share it.
static HELD: Mutex<Option<HashMap<Identity, Weak<File>>>> = Mutex::new(None);

/// Device and inode of a file, or the number of a block device.
type Identity = (u64, u64, u64);

/// Takes a file or device for this process alone, for as long as what is returned lives: a device exclusively (O_EXCL),
/// a file by its lock. Refuses what something uses, and what bears a file system or the like unless that was confirmed
/// too.
fn hold(file: File, path: &Path, spec: &TargetSpec) -> Result<Arc<File>> {
    let metadata = file.metadata().map_err(Error::io("cannot look at", path))?;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let held = held.get_or_insert_default();
    held.retain(|_, file| file.strong_count() > 0);
    if let Some(file) = held.get(&identity(&metadata)).and_then(Weak::upgrade) {
        return Ok(file);
    }
    let in_use = |why: String| Error::refused(path.display().to_string(), why, "name one that nothing uses");
    let own_path = sys::path_of(&file);
    let uses = facts::uses(&facts::Roots::default(), &own_path);
    if !uses.is_empty() {
        return Err(in_use(format!("it is in use: {}", uses.join(", "))));
    }
    let taken = if metadata.file_type().is_block_device() {
        reopen(&file, true, libc::O_EXCL)
    } else {
        sys::try_lock(&file).map(|()| file)
    };
    let taken = taken.map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY) => in_use("another program or the kernel holds it exclusively".into()),
        Some(libc::EWOULDBLOCK) => in_use("another run of halfpower writes it".into()),
        _ => Error::io("cannot take for this run alone", path)(error),
    })?;
    match facts::signature(&sys::path_of(&taken)) {
        Ok(Some(found)) if !spec.destroy_signed => {
            let hint = "if it may be lost, confirm with --destroy-signature, or wipe it first (wipefs)";
            return Err(Error::refused(path.display().to_string(), format!("it bears {found}"), hint));
        }
        found => found?,
    };
    let taken = Arc::new(taken);
    held.insert(identity(&metadata), Arc::downgrade(&taken));
    Ok(taken)
}

fn open_for(path: &Path, write: bool) -> Result<File> {
    File::options().read(true).write(write).open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let to = if write { "no permission to write it" } else { "no permission to read it" };
            Error::refused(path.display().to_string(), to, "run as a user who may (root for a device)")
        }
        Some(libc::EROFS) => {
            Error::refused(path.display().to_string(), "it is read-only", "leave out --destroy-data to read it")
        }
        _ => Error::io("cannot open", path)(error),
    })
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

/// The raw descriptors of open files.
pub(crate) fn descriptors(files: &[File]) -> Vec<RawFd> {
    files.iter().map(AsRawFd::as_raw_fd).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    static CALM: AtomicBool = AtomicBool::new(false);

    fn fill(interrupt: &AtomicBool, size: Option<u64>) -> Fill<'_> {
        Fill { size, within_ns: 50_000_000, seed: 7, interrupt }
    }

    #[test]
    fn a_test_file_is_full_of_data_and_goes_with_its_member() {
        let directory = tempfile::tempdir().unwrap();
        let member =
            Member::open(directory.path(), &TargetSpec::default(), fill(&CALM, Some(3 * units::MIB + 5000))).unwrap();
        let data = fs::read(&member.path).unwrap();
        assert_eq!(data.len() as u64, 3 * units::MIB + 5000);
        assert!(data.chunks(4096).all(|block| block.iter().any(|&byte| byte != 0)));
        let path = member.path.clone();
        drop(member);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_not_named_for_destruction_is_only_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("data");
        fs::write(&file, vec![7; 8192]).unwrap();
        let member = Member::open(&file, &TargetSpec::default(), fill(&CALM, None)).unwrap();
        assert!(!member.writable);
        drop(member);
        assert_eq!(fs::read(&file).unwrap(), vec![7; 8192]);
        let member = Member::open(
            &file,
            &TargetSpec { destroy: vec![file.clone()], ..TargetSpec::default() },
            fill(&CALM, None),
        )
        .unwrap();
        assert!(member.writable);
        drop(member);
        assert!(file.exists(), "the user's file stays, with other data in it");
        assert_ne!(fs::read(&file).unwrap(), vec![7; 8192]);
    }

    #[test]
    fn a_file_of_the_users_name_goes_unless_it_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("testfile.dat");
        let size = Some(units::MIB);
        let absent = Member::open(&file, &TargetSpec::default(), fill(&CALM, size)).unwrap_err();
        assert!(absent.is_usage(), "{absent}");
        let spec = TargetSpec { create: true, ..TargetSpec::default() };
        let member = Member::open(&file, &spec, fill(&CALM, size)).unwrap();
        assert!(member.writable && member.size == units::MIB && file.exists());
        drop(member);
        assert!(!file.exists());
        let mut member =
            Member::open(&file, &TargetSpec { new_file: NewFile::Empty, ..spec.clone() }, fill(&CALM, size)).unwrap();
        assert!(member.size == units::MIB && fs::metadata(&file).unwrap().len() == GROWN_START);
        member.keep();
        drop(member);
        assert!(file.exists());
        let there = Member::open(&file, &spec, fill(&CALM, None)).unwrap();
        assert!(!there.writable, "what was there before is only read");
        let nowhere = Member::open(&directory.path().join("no/such"), &spec, fill(&CALM, size)).unwrap_err();
        assert!(nowhere.is_usage() && nowhere.to_string().contains("make it first"), "{nowhere}");
    }

    #[test]
    fn refusals_name_the_place_and_how_to_fix_it() {
        let error = Member::open(Path::new("/no/such"), &TargetSpec::default(), fill(&CALM, None)).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("/no/such"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let error = Member::open(directory.path(), &TargetSpec::default(), fill(&CALM, Some(1 << 60))).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("--size"), "{error}");
    }
}
