//! A target's members: named files and devices, and test files.

use super::clock::Clock;
use super::hold::{explain_open, hold, identity};
use super::owned_file::{OwnedFile, SUFFIX, directory_of, kept, remove_leftovers, reopen};
use super::{facts, sys};
use crate::arena::Arena;
use crate::test_file::{self, Fill};
use machine::{Error, NewFile, Result, Sharing, TargetKind, TargetSpec, fill_random, live, units};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Enough to probe direct I/O's alignment.
const GROWN_START: u64 = 256 * units::KIB;

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) path: PathBuf,
    pub(crate) kind: TargetKind,
    pub(crate) size: u64,
    pub(crate) writable: bool,
    /// Held for the target's life: a writable device exclusively, a writable file locked.
    file: Arc<File>,
    made: Option<OwnedFile>,
    to_fill: Option<FillTo>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FillTo {
    End,
    Time,
    /// Lengthens only, and reserves space if `true`.
    Longer(bool),
    /// Fills these bytes at the start; requests write the rest.
    Start(u64),
    /// Only reserves space, beyond the end of an empty file.
    Beyond,
}

fn made_in(directory: &Path, number: u64) -> Result<PathBuf> {
    let made = files::entries(directory).find(|name| {
        name.to_str().is_some_and(|name| test_file::is_our_name(name, SUFFIX, number))
    });
    made.map(|name| directory.join(name)).ok_or_else(|| {
        let why = "the file that rank 0 made for all clients is not in it";
        Error::refused(
            directory.display().to_string(),
            why,
            "name a directory that all hosts share",
        )
    })
}

impl Member {
    /// Overwrites nothing before [`Member::fill`].
    pub(crate) fn open(path: &Path, spec: &TargetSpec, fill: Fill<'_>) -> Result<Member> {
        sys::check_proc()?;
        let shown = path.display().to_string();
        if let Some(Sharing::Joins { number, .. }) = spec.sharing {
            if path.is_dir() {
                return Member::join(&made_in(path, number)?, spec, fill);
            }
            return Member::join(path, spec, fill);
        }
        let named = spec.destroy.iter().any(|named| same_file(named, path));
        if let Some(kept) = kept(path).filter(|kept| !named && is_unused(kept)) {
            return Member::again(kept, path, spec, fill)?.shared(spec);
        }
        if spec.create && is_absent(path) {
            return Member::make(directory_of(path), Some(path), spec.new_file, fill)?.shared(spec);
        }
        let metadata = fs::metadata(path).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {
                Error::refused(&shown, "no such file, directory or device", "name one that exists")
            }
            Some(libc::EACCES) => Error::refused(
                &shown,
                "no permission to inspect it",
                "run as a user with permission",
            ),
            _ => Error::io("cannot look at", path)(error),
        })?;
        if metadata.is_dir() {
            return Member::make(path, None, spec.new_file, fill)?.shared(spec);
        }
        let is_usable = |kind: fs::FileType| kind.is_file() || kind.is_block_device();
        let unusable = || {
            let why = "not a directory, regular file or block device";
            Error::refused(&shown, why, "name one of these")
        };
        if endless_device(&metadata) {
            return Member::endless(path, fill.size);
        }
        // Opening a pipe would wait for its other end.
        if !is_usable(metadata.file_type()) {
            return Err(unusable());
        }
        let writable = named;
        let file = open_for(path, false)?;
        let metadata = file.metadata().map_err(Error::io("cannot look at", path))?;
        if !is_usable(metadata.file_type()) {
            return Err(unusable());
        }
        let device = metadata.file_type().is_block_device();
        let file = if writable { hold(file, path, spec)? } else { Arc::new(file) };
        let (kind, there) = if device {
            (
                TargetKind::Device,
                sys::device_size(&file).map_err(Error::io("cannot determine the size of", path))?,
            )
        } else {
            (TargetKind::File, metadata.len())
        };
        if there == 0 {
            let (why, hint) = if device {
                ("the device is empty", "name one with a medium in it")
            } else {
                (
                    "the file has 0 bytes",
                    "name a file that holds at least one request, or a directory",
                )
            };
            return Err(Error::refused(shown, why, hint));
        }
        if let Some(size) =
            fill.size.filter(|&size| size > there && spec.create && !writable && !device)
        {
            let (there, size) = (units::show_size(there), units::show_size(size));
            let why = format!("it exists already, with only {there} of {size}");
            return Err(Error::refused(
                shown,
                why,
                "remove it, name it again with --destroy-data, or give a smaller size",
            ));
        }
        let longer = fill
            .size
            .filter(|&size| size > there && spec.lengthen && kind == TargetKind::File && named);
        if let Some(size) = longer {
            let to_fill = match spec.new_file {
                NewFile::Filled => FillTo::End,
                other => FillTo::Longer(other == NewFile::Reserved),
            };
            let to_fill = Some(to_fill);
            return Ok(Member {
                path: path.into(),
                kind,
                size,
                writable,
                file,
                made: None,
                to_fill,
            });
        }
        let size = test_file::region(fill.size, there, &shown)?;
        // Device blocks that were never written may read too fast, so only the filled part of a
        // device counts.
        let to_fill = if device && fill.size.is_none() { FillTo::Time } else { FillTo::End };
        let to_fill = (writable && !spec.as_is).then_some(to_fill);
        Ok(Member { path: path.into(), kind, size, writable, file, made: None, to_fill })
    }

    fn join(path: &Path, spec: &TargetSpec, fill: Fill<'_>) -> Result<Member> {
        let file = hold(open_for(path, false)?, path, spec)?;
        let there = file.metadata().map_err(Error::io("cannot look at", path))?.len();
        // The holder may fill it only now.
        let size = fill.size.unwrap_or(there);
        let kind = TargetKind::File;
        Ok(Member {
            path: path.into(),
            kind,
            size,
            writable: true,
            file,
            made: None,
            to_fill: None,
        })
    }

    fn shared(self, spec: &TargetSpec) -> Result<Member> {
        if let (Some(made), Some(_)) = (&self.made, &spec.sharing) {
            made.share().map_err(Error::io("cannot lock for this run", &self.path))?;
        }
        Ok(self)
    }

    fn endless(path: &Path, size: Option<u64>) -> Result<Member> {
        let shown = path.display().to_string();
        let Some(size) = size else {
            return Err(Error::refused(
                shown,
                "it is neither a block device nor does it have a size",
                "give --size",
            ));
        };
        let file = Arc::new(open_for(path, true)?);
        if !endless_device(&file.metadata().map_err(Error::io("cannot look at", path))?) {
            return Err(Error::refused(
                shown,
                "it is now a different device",
                "run halfpower again",
            ));
        }
        let size = test_file::region(Some(size), u64::MAX, &shown)?;
        Ok(Member {
            path: path.into(),
            kind: TargetKind::Device,
            size,
            writable: true,
            file,
            made: None,
            to_fill: None,
        })
    }

    fn again(kept: OwnedFile, path: &Path, spec: &TargetSpec, fill: Fill<'_>) -> Result<Member> {
        let there = kept.file().metadata().map_err(Error::io("cannot look at", path))?.len();
        let fits = there > 0 && fill.size.is_none_or(|size| size <= there);
        let as_it_is = fits && spec.new_file == NewFile::Filled;
        if let Some(size) = fill.size.filter(|&size| spec.lengthen && size > there && there > 0)
            && spec.new_file != NewFile::Filled
        {
            let (kind, file) = (TargetKind::TestFile, kept.file().clone());
            let to_fill = Some(FillTo::Longer(spec.new_file == NewFile::Reserved));
            let made = Some(kept);
            return Ok(Member {
                path: path.into(),
                kind,
                size,
                writable: true,
                file,
                made,
                to_fill,
            });
        }
        if spec.create && !as_it_is {
            kept.discard();
            let size = fill.size.or(Some(there));
            let mut member =
                Member::make(directory_of(path), Some(path), spec.new_file, Fill { size, ..fill })?;
            member.keep();
            return Ok(member);
        }
        let size = test_file::region(fill.size, there, &path.display().to_string())?;
        let file = kept.file().clone();
        let kind = TargetKind::TestFile;
        Ok(Member {
            path: path.into(),
            kind,
            size,
            writable: true,
            file,
            made: Some(kept),
            to_fill: None,
        })
    }

    /// File system, bytes needed, bytes free.
    pub(crate) fn room(&self) -> Option<(u64, u64, u64)> {
        let metadata =
            self.file.metadata().ok().filter(|_| self.made.is_some() && self.to_fill.is_some())?;
        let free = sys::free_bytes(&sys::path_of(&self.file)).ok()??;
        Some((metadata.dev(), self.size.saturating_sub(metadata.len()), free))
    }

    pub(crate) fn fill_bytes(&self, fill: Fill<'_>) -> u64 {
        match self.to_fill {
            Some(FillTo::End | FillTo::Time) => self.size.saturating_sub(self.fill_from(fill)),
            Some(FillTo::Start(bytes)) => bytes,
            Some(FillTo::Longer(_) | FillTo::Beyond) | None => 0,
        }
    }

    /// A new file is filled from its start.
    fn fill_from(&self, fill: Fill<'_>) -> u64 {
        if self.made.is_some() { 0 } else { fill.from }
    }

    pub(crate) fn fill(&mut self, fill: Fill<'_>) -> Result<()> {
        let fill = Fill { from: self.fill_from(fill), ..fill };
        match self.to_fill.take() {
            None => {}
            Some(FillTo::End) => drop(self.write_all(fill, self.size)?),
            Some(FillTo::Time) => self.size = self.write_all(fill, self.size)?,
            Some(FillTo::Start(bytes)) => {
                let cannot = || Error::io("cannot write", &self.path);
                self.file.set_len(0).map_err(cannot())?;
                if bytes > 0 {
                    self.write_all(fill, bytes.next_multiple_of(4096))?;
                    self.file.set_len(bytes).map_err(cannot())?;
                }
                self.file.sync_all().map_err(cannot())?;
            }
            Some(FillTo::Beyond) => {
                let cannot = || Error::io("cannot allocate space for", &self.path);
                self.file.set_len(0).map_err(cannot())?;
                let keeps = rustix::fs::FallocateFlags::KEEP_SIZE;
                let reserved = rustix::fs::fallocate(&*self.file, keeps, 0, self.size);
                match reserved.map_err(io::Error::from) {
                    Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
                    result => result.map_err(cannot())?,
                }
            }
            Some(FillTo::Longer(reserve)) => {
                self.made.iter().for_each(OwnedFile::touch);
                let file =
                    reopen(&self.file, true, 0).map_err(Error::io("cannot open", &self.path))?;
                lengthen(&file, self.size, reserve)
                    .map_err(Error::io("cannot allocate space for", &self.path))?;
            }
        }
        Ok(())
    }

    fn make(
        directory: &Path,
        name: Option<&Path>,
        new_file: NewFile,
        fill: Fill<'_>,
    ) -> Result<Member> {
        remove_leftovers(directory);
        let shown = directory.display().to_string();
        // Create first: an error that no file can be created here takes precedence over its size.
        let made = OwnedFile::create(directory, name.and_then(Path::file_name))?;
        let free = sys::free_bytes(&sys::path_of(made.file()))
            .map_err(Error::io("cannot determine the free space of", directory))?;
        let max = test_file::size(fill.size, free, &shown)?;
        if new_file != NewFile::Filled && fill.size.is_none() {
            return Err(Error::refused(
                shown,
                "a file that is not filled needs a size",
                "give its size",
            ));
        }
        let (path, file) = (made.path.clone(), made.file().clone());
        let to_fill = match new_file {
            NewFile::Filled => Some(FillTo::Time),
            NewFile::Grows(bytes) => Some(FillTo::Start(bytes)),
            NewFile::ReservedBeyond => Some(FillTo::Beyond),
            _ => None,
        };
        let kind = TargetKind::TestFile;
        let member =
            Member { path, kind, size: max, writable: true, file, made: Some(made), to_fill };
        match new_file {
            // Only enough to probe the alignment.
            NewFile::Filled | NewFile::Empty | NewFile::Grows(_) | NewFile::ReservedBeyond => {
                let mut start = vec![0; max.min(GROWN_START) as usize];
                fill_random(fill.seed, &mut start);
                member
                    .file
                    .write_all_at(&start, 0)
                    .map_err(Error::io("cannot write", &member.path))?;
                if new_file == NewFile::Empty {
                    member.file.sync_all().map_err(Error::io("cannot sync", &member.path))?;
                }
            }
            NewFile::Reserved | NewFile::Sparse => {
                lengthen(&member.file, max, new_file == NewFile::Reserved)
                    .map_err(Error::io("cannot allocate space for", &member.path))?
            }
        }
        Ok(member)
    }

    /// Of an endless device each node is another.
    pub(crate) fn is_same_as(&self, other: &Member) -> bool {
        let (Ok(one), Ok(other)) = (self.file.metadata(), other.file.metadata()) else {
            return false;
        };
        !endless_device(&one) && identity(&one) == identity(&other)
    }

    pub(crate) fn number(&self) -> Option<u64> {
        self.file.metadata().ok().map(|metadata| metadata.ino())
    }

    pub(crate) fn keep(&mut self) {
        if let Some(made) = &mut self.made {
            made.keep();
        }
    }

    fn write_all(&self, fill: Fill<'_>, max: u64) -> Result<u64> {
        let cannot = Error::io("cannot write", &self.path);
        let plain = &*self.file;
        let direct = reopen(plain, true, libc::O_DIRECT);
        let file = direct.as_ref().unwrap_or(plain);
        let mut arena =
            Arena::new(1, test_file::STEP as u32, 0, machine::Memory::Huge).map_err(cannot)?;
        live::FILLING.begin(max);
        let written = fill.write(max, arena.bytes(), Clock::get(), |data, offset| {
            let result = file.write_all_at(data, offset).or_else(|error| match error.raw_os_error() {
                // A tail too short for direct I/O, or a file system that accepts the flag but then
                // refuses the write.
                Some(libc::EINVAL) => plain.write_all_at(data, offset),
                _ => Err(error),
            });
            live::FILLING.add(data.len() as u64);
            result.map_err(|error| match error.raw_os_error() {
                // The size was valid when it was checked, so this is a failed run, not a usage
                // error.
                Some(libc::ENOSPC | libc::EDQUOT) => Error::Unsupported(format!(
                    "{}: the file system was full after {}; free some space or give a smaller --size",
                    self.path.display(),
                    units::show_size(offset)
                )),
                Some(libc::EFBIG) => Error::Unsupported(format!(
                    "{}: a file may not be larger than {} here; raise the limit (ulimit -f) or give a smaller --size",
                    self.path.display(),
                    units::show_size(offset)
                )),
                _ => Error::io("cannot fill", &self.path)(error),
            })
        });
        let synced = file.sync_all();
        live::FILLING.end();
        let written = written?;
        synced.map_err(Error::io("cannot sync", &self.path))?;
        sys::drop_cache(file, 0, 0);
        Ok(written)
    }

    pub(crate) fn made(&self) -> Option<&OwnedFile> {
        self.made.as_ref()
    }

    pub(crate) fn open_with(&self, writes: bool, flags: i32) -> io::Result<File> {
        if let Some(made) = self.made.as_ref().filter(|_| writes) {
            made.touch();
        }
        reopen(&self.file, writes && self.writable, flags)
    }

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

fn lengthen(file: &File, bytes: u64, reserve: bool) -> io::Result<()> {
    let reserved =
        if reserve { sys::reserve(file, bytes) } else { Err(io::ErrorKind::Unsupported.into()) };
    match reserved {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => file.set_len(bytes)?,
        result => result?,
    }
    file.sync_all()
}

/// A device without a size, as `/dev/null` and `/dev/zero`.
pub fn is_endless(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| endless_device(&metadata))
}

fn endless_device(metadata: &fs::Metadata) -> bool {
    let number = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
    metadata.file_type().is_char_device() && [(1, 3), (1, 5)].contains(&number)
}

pub(super) fn is_unused(made: &OwnedFile) -> bool {
    let roots = facts::Roots::default();
    facts::uses(&roots, &facts::Namespaces::visible(&roots), &sys::path_of(made.file()), None)
        .held
        .is_empty()
}

pub(super) fn is_absent(path: &Path) -> bool {
    fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

pub(super) fn open_for(path: &Path, write: bool) -> Result<File> {
    File::options()
        .read(true)
        .write(write)
        .open(path)
        .map_err(|error| explain_open(error, path, write))
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

pub(crate) fn descriptors(files: &[File]) -> Vec<RawFd> {
    files.iter().map(AsRawFd::as_raw_fd).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    static CALM: AtomicBool = AtomicBool::new(false);

    fn fill(interrupt: &AtomicBool, size: Option<u64>) -> Fill<'_> {
        Fill { from: 0, size, within_ns: 50_000_000, seed: 7, interrupt }
    }

    fn open(path: &Path, spec: &TargetSpec, fill: Fill<'_>) -> Result<Member> {
        let mut member = Member::open(path, spec, fill)?;
        member.fill(fill)?;
        Ok(member)
    }

    #[test]
    fn a_fill_leaves_what_is_before_the_region() {
        let here = tempfile::tempdir().unwrap();
        let (path, whole) = (here.path().join("part"), here.path().join("whole"));
        let spec = |path: &Path| TargetSpec {
            places: vec![path.into()],
            destroy: vec![path.into()],
            ..TargetSpec::default()
        };
        let (size, from) = (3 * units::MIB + 5000, units::MIB + 12_345);
        for path in [&path, &whole] {
            fs::write(path, vec![7; size as usize]).unwrap();
        }
        let part = Fill { from, ..fill(&CALM, None) };
        let mut member = Member::open(&path, &spec(&path), part).unwrap();
        assert_eq!(member.fill_bytes(part), size - from);
        member.fill(part).unwrap();
        open(&whole, &spec(&whole), fill(&CALM, None)).unwrap();
        let (part, whole) = (fs::read(&path).unwrap(), fs::read(&whole).unwrap());
        let (kept, filled) = part.split_at(from as usize);
        assert!(kept.iter().all(|&byte| byte == 7));
        assert!(filled == &whole[from as usize..], "a verifying run must know the data");
        // A file that halfpower made has no data to keep.
        let fill = Fill { from, ..fill(&CALM, Some(size)) };
        let made = open(here.path(), &TargetSpec::default(), fill).unwrap();
        assert!(fs::read(&made.path).unwrap()[..4096].iter().any(|&byte| byte != 0));
    }

    #[test]
    fn a_test_file_is_filled_and_removed_with_its_member() {
        let directory = tempfile::tempdir().unwrap();
        let member = open(
            directory.path(),
            &TargetSpec::default(),
            fill(&CALM, Some(3 * units::MIB + 5000)),
        )
        .unwrap();
        let data = fs::read(&member.path).unwrap();
        assert_eq!(data.len() as u64, 3 * units::MIB + 5000);
        assert!(data.chunks(4096).all(|block| block.iter().any(|&byte| byte != 0)));
        let path = member.path.clone();
        drop(member);
        assert!(!path.exists());
    }

    #[test]
    fn files_not_named_for_destruction_are_read_only() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("data");
        fs::write(&file, vec![7; 8192]).unwrap();
        let member = open(&file, &TargetSpec::default(), fill(&CALM, None)).unwrap();
        assert!(!member.writable);
        drop(member);
        assert_eq!(fs::read(&file).unwrap(), vec![7; 8192]);
        let member = open(
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
    fn nothing_is_overwritten_before_it_is_filled() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("data");
        fs::write(&file, vec![7; 8192]).unwrap();
        let spec = TargetSpec { destroy: vec![file.clone()], ..TargetSpec::default() };
        let mut member = Member::open(&file, &spec, fill(&CALM, None)).unwrap();
        assert_eq!(fs::read(&file).unwrap(), vec![7; 8192]);
        member.fill(fill(&CALM, None)).unwrap();
        assert_ne!(fs::read(&file).unwrap(), vec![7; 8192]);
    }

    #[test]
    fn a_user_named_file_is_removed_unless_kept() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("testfile.dat");
        let size = Some(units::MIB);
        let absent = open(&file, &TargetSpec::default(), fill(&CALM, size)).unwrap_err();
        assert!(absent.is_usage(), "{absent}");
        let spec = TargetSpec { create: true, ..TargetSpec::default() };
        let member = open(&file, &spec, fill(&CALM, size)).unwrap();
        assert!(member.writable && member.size == units::MIB && file.exists());
        drop(member);
        assert!(!file.exists());
        let mut member = open(
            &file,
            &TargetSpec { new_file: NewFile::Empty, ..spec.clone() },
            fill(&CALM, size),
        )
        .unwrap();
        assert!(member.size == units::MIB && fs::metadata(&file).unwrap().len() == GROWN_START);
        member.keep();
        drop(member);
        assert!(file.exists());
        let there = open(&file, &spec, fill(&CALM, None)).unwrap();
        assert!(there.writable, "an earlier run made it");
        drop(there);
        assert!(file.exists(), "and kept it");
        fs::write(&file, vec![1; 8192]).unwrap();
        let there = open(&file, &spec, fill(&CALM, None)).unwrap();
        assert!(!there.writable, "the user has written it since");
        let nowhere =
            open(&directory.path().join("no/such"), &spec, fill(&CALM, size)).unwrap_err();
        assert!(nowhere.is_usage() && nowhere.to_string().contains("make it first"), "{nowhere}");
    }

    #[test]
    fn refusals_name_the_place_and_how_to_fix_it() {
        let error =
            open(Path::new("/no/such"), &TargetSpec::default(), fill(&CALM, None)).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("/no/such"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let error =
            open(directory.path(), &TargetSpec::default(), fill(&CALM, Some(1 << 60))).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("--size"), "{error}");
    }
}
