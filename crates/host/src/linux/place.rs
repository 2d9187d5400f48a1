//! Places a user names: what they are, whether they may be written, test files made and removed.

use super::{facts, sys};
use machine::{Error, Result, TargetKind, TargetSpec, fill_random, units};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Test files are called `halfpower-PID-N.tmp`, and their maker holds a lock on them for as long as it lives.
const PREFIX: &str = "halfpower-";
const SUFFIX: &str = ".tmp";

/// One file or device of a target.
#[derive(Debug)]
pub(crate) struct Place {
    /// The file that is opened.
    pub(crate) path: PathBuf,
    /// What it is.
    pub(crate) kind: TargetKind,
    /// Bytes in it.
    pub(crate) size: u64,
    /// May be written.
    pub(crate) writable: bool,
    /// Keeps a test file locked and removes it in the end.
    made: Option<MadeFile>,
}

/// A file that halfpower made: locked while it is used, removed when dropped.
///
/// It has a name, although an unnamed one (O_TMPFILE) would vanish by itself: file systems treat a file without a link
/// differently where it matters here (btrfs logs no fsync of one, ext4 keeps it on the orphan list).
#[derive(Debug)]
pub(crate) struct MadeFile {
    pub(crate) path: PathBuf,
    _lock: File,
    /// It has a name of the user's and stays.
    kept: bool,
}

impl MadeFile {
    /// Makes an empty file in `directory`.
    pub(crate) fn create(directory: &Path) -> Result<MadeFile> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self::named(directory.join(format!("{PREFIX}{}-{number}{SUFFIX}", std::process::id())))
    }

    /// Makes an empty file of this name, which must be free.
    fn named(path: PathBuf) -> Result<MadeFile> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| explain_create(error, &path))?;
        let made = MadeFile { path: path.clone(), _lock: file, kept: false };
        sys::try_lock(&made._lock).map_err(Error::io("cannot lock", path))?;
        Ok(made)
    }
}

impl Drop for MadeFile {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // Nothing is left to do about a failure: the next run tries again.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes test files that a killed run left in `directory`: the names are ours and nobody holds their lock. Returns their number and bytes.
pub(crate) fn remove_leftovers(directory: &Path) -> (u32, u64) {
    let mut removed = (0, 0);
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.to_str().is_some_and(is_our_name) || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(file) = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(entry.path()) else { continue };
        if sys::try_lock(&file).is_ok() {
            let bytes = file.metadata().map_or(0, |metadata| metadata.len());
            if fs::remove_file(entry.path()).is_ok() {
                removed = (removed.0 + 1, removed.1 + bytes);
            }
        }
    }
    removed
}

/// `halfpower-PID-N.tmp` and nothing else.
fn is_our_name(name: &str) -> bool {
    let middle = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)).and_then(|middle| middle.split_once('-'));
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    middle.is_some_and(|(pid, n)| number(pid) && number(n))
}

fn explain_create(error: io::Error, path: &Path) -> Error {
    let directory = path.parent().unwrap_or(path);
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Error::refused(
            directory.display().to_string(),
            "no permission to make a test file here",
            "name a directory that you may write, or an existing file to read",
        ),
        Some(libc::EROFS) => Error::refused(
            directory.display().to_string(),
            "the file system is read-only, so no test file can be made here",
            "name an existing file to read, or another directory",
        ),
        Some(libc::ENOSPC) => {
            Error::refused(directory.display().to_string(), "no space is left for a test file", "free some, or name another directory")
        }
        _ => Error::io("cannot make a test file", path)(error),
    }
}

/// How a test file is to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fill<'a> {
    /// Bytes wanted; `None`: as many as `within_ns` allows, between the least and the most.
    pub(crate) size: Option<u64>,
    pub(crate) within_ns: u64,
    pub(crate) seed: u64,
    pub(crate) interrupt: &'a AtomicBool,
}

/// Bounds of a test file whose size halfpower chooses.
const AUTO_LEAST: u64 = 32 * units::MIB;
const AUTO_MOST: u64 = 2 * units::GIB;

/// Bytes of a file that is to grow: the alignment of direct I/O is found by reading them.
const GROWN_START: u64 = 256 * units::KIB;

/// A share of the free space that a test file never exceeds unless its size was given.
const FREE_SHARE: u64 = 4;

/// The most that a test file takes where no size was given.
fn own_size(free: Option<u64>, shown: &str) -> Result<u64> {
    let Some(free) = free else {
        return Err(Error::refused(shown, "the file system does not tell how much space is free", "give --size"));
    };
    let most = (free / FREE_SHARE).min(AUTO_MOST) / units::MIB * units::MIB;
    if most < units::MIB {
        let why = format!("only {} are free, and a test file takes at most a quarter of it", units::show_size_rounded(free as f64));
        return Err(Error::refused(shown, why, "free some space or give --size"));
    }
    Ok(most)
}

impl Place {
    /// Opens what the user named.
    pub(crate) fn open(path: &Path, spec: &TargetSpec, fill: Fill<'_>) -> Result<Place> {
        let shown = path.display().to_string();
        let metadata = fs::metadata(path);
        if spec.create && metadata.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return Place::make(parent, Some(path), spec.grown, fill);
        }
        let metadata = metadata.map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {
                Error::refused(&shown, "there is no such file, directory or device", "name one that exists")
            }
            Some(libc::EACCES) => Error::refused(&shown, "no permission to look at it", "run as a user who may"),
            _ => Error::io("cannot look at", path)(error),
        })?;
        if metadata.is_dir() {
            return Place::make(path, None, spec.grown, fill);
        }
        let destroyable = spec.destroy.iter().any(|named| same_file(named, path));
        if metadata.file_type().is_block_device() {
            may_destroy(path, destroyable, spec)?;
            return Place::device(path, destroyable, spec.as_is, fill);
        }
        if !metadata.is_file() {
            return Err(Error::refused(shown, "it is neither a directory nor a regular file nor a block device", "name one of these"));
        }
        may_destroy(path, destroyable, spec)?;
        open_for(path, destroyable)?;
        if metadata.len() < 4096 {
            return Err(Error::refused(
                shown,
                format!("the file has only {} bytes", metadata.len()),
                "name a file of at least 4 KiB, or a directory",
            ));
        }
        let mut place = Place { path: path.into(), kind: TargetKind::File, size: metadata.len(), writable: destroyable, made: None };
        place.limit(fill)?;
        if destroyable && !spec.as_is {
            place.write_all(fill, place.size)?;
        }
        Ok(place)
    }

    fn device(path: &Path, destroyable: bool, as_is: bool, fill: Fill<'_>) -> Result<Place> {
        let file = open_for(path, destroyable)?;
        let size = sys::device_size(&file).map_err(Error::io("cannot tell the size of", path))?;
        if size < 4096 {
            return Err(Error::refused(path.display().to_string(), "the device is empty", "name one with a medium in it"));
        }
        let mut place = Place { path: path.into(), kind: TargetKind::Device, size, writable: destroyable, made: None };
        place.limit(fill)?;
        if destroyable && !as_is {
            let most = place.size;
            let size = place.write_all(fill, most)?;
            // Blocks that were never written may read faster than any that were.
            place.size = if fill.size.is_none() { size } else { place.size };
        }
        Ok(place)
    }

    /// A given size limits the part of a file or device that is used.
    fn limit(&mut self, fill: Fill<'_>) -> Result<()> {
        match fill.size {
            Some(size) if size < 4096 => {
                let what = format!("{}: --size {}", self.path.display(), units::show_size(size));
                Err(Error::refused(what, "too little to measure anything", "give at least 4 KiB"))
            }
            Some(size) if size > self.size => Err(Error::refused(
                self.path.display().to_string(),
                format!("--size {} is more than its {}", units::show_size(size), units::show_size(self.size)),
                "give a smaller size, or none",
            )),
            Some(size) => {
                self.size = size;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Makes a test file in a directory, under a name of its own or the user's, filled or (to be grown) with no more than what tells the alignment.
    fn make(directory: &Path, name: Option<&Path>, grown: bool, fill: Fill<'_>) -> Result<Place> {
        remove_leftovers(directory);
        let shown = directory.display().to_string();
        let free = sys::free_bytes(directory).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::refused(&shown, "there is no such directory to make a file in", "make it first"),
            _ => Error::io("cannot tell the free space of", directory)(error),
        })?;
        // That no file can be made here at all is said before that it would be too large.
        let made = name.map_or_else(|| MadeFile::create(directory), |name| MadeFile::named(name.into()))?;
        let most = match fill.size {
            Some(size) if size < 4096 => {
                return Err(Error::refused(units::show_size(size), "a test file needs at least 4 KiB", "give a larger --size"));
            }
            Some(size) if free.is_some_and(|free| size > free) => {
                let free = units::show_size_rounded(free.unwrap_or(0) as f64);
                let why = format!("a test file of {} does not fit in the {free} that are free", units::show_size(size));
                return Err(Error::refused(shown, why, "free some space or give a smaller --size"));
            }
            Some(size) => size,
            None => own_size(free, &shown)?,
        };
        if grown && fill.size.is_none() {
            return Err(Error::refused(shown, "a file that is to grow was given no size", "give its size"));
        }
        let mut place = Place { path: made.path.clone(), kind: TargetKind::TestFile, size: 0, writable: true, made: Some(made) };
        place.size = place.write_all(fill, if grown { most.min(GROWN_START) } else { most })?;
        if grown {
            place.size = most;
        }
        Ok(place)
    }

    /// A file that was made under a name of the user's stays.
    pub(crate) fn keep(&mut self) {
        if let Some(made) = &mut self.made {
            made.kept = !made.path.file_name().and_then(|name| name.to_str()).is_some_and(is_our_name);
        }
    }

    /// Writes random data from the start; returns how much was written. Ends at `most`, or, where no size was given, when the time is over and the least is there.
    fn write_all(&mut self, fill: Fill<'_>, most: u64) -> Result<u64> {
        const STEP: usize = 1 << 20;
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_DIRECT)
            .open(&self.path)
            .or_else(|_| OpenOptions::new().write(true).open(&self.path))
            .map_err(Error::io("cannot write", &self.path))?;
        let clock = super::clock::Clock::get();
        let start = clock.now();
        let mut arena = super::arena::Arena::new(1, STEP as u32, false).map_err(Error::io("no memory for the buffer of", &self.path))?;
        let mut written = 0u64;
        while written < most {
            if fill.interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if fill.size.is_none() && written >= AUTO_LEAST && clock.now() - start > fill.within_ns {
                break;
            }
            let step = (STEP as u64).min(most - written) as usize;
            let buffer = &mut arena.bytes()[..step];
            fill_random(fill.seed ^ written.wrapping_mul(0x9E37_79B9_7F4A_7C15), buffer);
            let result = file.write_all_at(buffer, written).or_else(|error| match error.raw_os_error() {
                // A tail that direct I/O does not take, or a file system that accepts the flag and then refuses.
                Some(libc::EINVAL) => File::options().write(true).open(&self.path)?.write_all_at(buffer, written),
                _ => Err(error),
            });
            result.map_err(|error| match error.raw_os_error() {
                // What was asked made sense when it was checked: a failed run, and no misuse.
                Some(libc::ENOSPC | libc::EDQUOT) => Error::Unsupported(format!(
                    "{}: the file system was full after {}; free some space or give a smaller --size",
                    self.path.display(),
                    units::show_size(written)
                )),
                _ => Error::io("cannot fill", &self.path)(error),
            })?;
            written += step as u64;
        }
        file.sync_all().map_err(Error::io("cannot bring to stable storage", &self.path))?;
        sys::drop_cache(file.as_raw_fd(), 0, 0);
        Ok(written)
    }

    /// Whether halfpower made the file.
    pub(crate) fn is_made(&self) -> bool {
        self.made.is_some()
    }

    /// The directory in which scratch files beside this one go; only where the file is ours.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.made.as_ref().and_then(|made| made.path.parent())
    }

    /// Opens the place as a run needs it.
    pub(crate) fn open_with(&self, writes: bool, flags: i32) -> io::Result<File> {
        open_with(&self.path, writes, flags)
    }
}

/// Opens a file with `O_DIRECT`, `O_DSYNC` and the like.
pub(crate) fn open_with(path: &Path, writes: bool, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).write(writes).custom_flags(flags | libc::O_NOATIME).open(path).or_else(|error| {
        match error.raw_os_error() {
            // Only the owner may leave the access time alone.
            Some(libc::EPERM) => OpenOptions::new().read(true).write(writes).custom_flags(flags).open(path),
            _ => Err(error),
        }
    })
}

/// Refuses to overwrite what something uses, and what bears a file system or the like unless that was confirmed too.
fn may_destroy(path: &Path, destroyable: bool, spec: &TargetSpec) -> Result<()> {
    if !destroyable {
        return Ok(());
    }
    if let Some(reason) = facts::device_in_use(&facts::Roots::default(), path) {
        return Err(Error::refused(path.display().to_string(), reason, "name one that nothing uses"));
    }
    match facts::signature(path) {
        Ok(Some(found)) if !spec.destroy_signed => {
            let mend = "if it may be lost, confirm with --destroy-signature, or wipe it first (wipefs)";
            Err(Error::refused(path.display().to_string(), format!("it bears {found}"), mend))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

fn open_for(path: &Path, write: bool) -> Result<File> {
    OpenOptions::new().read(true).write(write).open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let to = if write { "no permission to write it" } else { "no permission to read it" };
            Error::refused(path.display().to_string(), to, "run as a user who may (root for a device)")
        }
        Some(libc::EROFS) => Error::refused(path.display().to_string(), "it is read-only", "leave out --destroy-data to read it"),
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

    static CALM: AtomicBool = AtomicBool::new(false);

    fn fill(interrupt: &AtomicBool, size: Option<u64>) -> Fill<'_> {
        Fill { size, within_ns: 50_000_000, seed: 7, interrupt }
    }

    #[test]
    fn a_test_file_is_full_of_data_and_goes_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::open(directory.path(), &TargetSpec::default(), fill(&CALM, Some(3 * units::MIB + 5000))).unwrap();
        let data = fs::read(&place.path).unwrap();
        assert_eq!(data.len() as u64, 3 * units::MIB + 5000);
        assert!(data.chunks(4096).all(|block| block.iter().any(|&byte| byte != 0)));
        let path = place.path.clone();
        drop(place);
        assert!(!path.exists());
    }

    #[test]
    fn leftovers_of_the_dead_go_and_the_livings_and_the_users_stay() {
        let directory = tempfile::tempdir().unwrap();
        let alive = MadeFile::create(directory.path()).unwrap();
        let dead = directory.path().join("halfpower-999999-3.tmp");
        fs::write(&dead, "left").unwrap();
        for name in ["halfpower-mine.tmp", "halfpower-1-2.tmp.txt", "halfpower-1x-2.tmp", "notes"] {
            fs::write(directory.path().join(name), "the user's").unwrap();
        }
        assert_eq!(remove_leftovers(directory.path()), (1, 4));
        assert!(!dead.exists() && alive.path.exists());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 5);
    }

    #[test]
    fn what_is_not_named_for_destruction_is_only_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("data");
        fs::write(&file, vec![7; 8192]).unwrap();
        let place = Place::open(&file, &TargetSpec::default(), fill(&CALM, None)).unwrap();
        assert!(!place.writable);
        drop(place);
        assert_eq!(fs::read(&file).unwrap(), vec![7; 8192]);
        let place = Place::open(&file, &TargetSpec { destroy: vec![file.clone()], ..TargetSpec::default() }, fill(&CALM, None)).unwrap();
        assert!(place.writable);
        drop(place);
        assert!(file.exists(), "the user's file stays, with other data in it");
        assert_ne!(fs::read(&file).unwrap(), vec![7; 8192]);
    }

    #[test]
    fn a_file_of_the_users_name_goes_unless_it_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("testfile.dat");
        let size = Some(units::MIB);
        let absent = Place::open(&file, &TargetSpec::default(), fill(&CALM, size)).unwrap_err();
        assert!(absent.is_usage(), "{absent}");
        let spec = TargetSpec { create: true, ..TargetSpec::default() };
        let place = Place::open(&file, &spec, fill(&CALM, size)).unwrap();
        assert!(place.writable && place.size == units::MIB && file.exists());
        drop(place);
        assert!(!file.exists());
        let mut place = Place::open(&file, &TargetSpec { grown: true, ..spec.clone() }, fill(&CALM, size)).unwrap();
        assert!(place.size == units::MIB && fs::metadata(&file).unwrap().len() == GROWN_START);
        place.keep();
        drop(place);
        assert!(file.exists());
        let there = Place::open(&file, &spec, fill(&CALM, None)).unwrap();
        assert!(!there.writable, "what was there before is only read");
        let nowhere = Place::open(&directory.path().join("no/such"), &spec, fill(&CALM, size)).unwrap_err();
        assert!(nowhere.is_usage() && nowhere.to_string().contains("make it first"), "{nowhere}");
    }

    #[test]
    fn refusals_name_the_place_and_the_mend() {
        let error = Place::open(Path::new("/no/such"), &TargetSpec::default(), fill(&CALM, None)).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("/no/such"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let error = Place::open(directory.path(), &TargetSpec::default(), fill(&CALM, Some(1 << 60))).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("--size"), "{error}");
    }
}
