//! Whole files, in halfpower's own directories.

mod directories;
mod removal;
mod stdio;
mod uring;
mod worker;

use super::clock::Clock;
use super::counters::{CpuMeter, DisturbanceMeter, ProcessIoMeter};
use super::facts::Roots;
use super::owned_file::{make_hidden, remove_parts};
use super::snapshot::{Moment, pause};
use super::sys;
use crate::cleanup;
use crate::run_streams;
use crate::session::Time;
use crate::test_file::{is_our_name, name};
pub use directories::directory_facts;
use machine::files::{AreaSpec, FileAct, FileArea, FileEngine, FileError, FileSystem, FileUsage};
use machine::mark::mark;
use machine::{Nanos, Pause};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstatvfs, mkdirat, openat, renameat, unlinkat};
use std::ffi::{CStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use worker::FileWorker;

/// Names are `halfpower-MARK.files`; the creator holds a lock on the directory.
const SUFFIX: &str = ".files";

pub struct HostFiles {
    clock: Clock,
    cpu: Option<CpuMeter>,
    io: Option<ProcessIoMeter>,
    disturbance: DisturbanceMeter,
}

impl HostFiles {
    pub fn new() -> Self {
        let roots = Roots::default();
        HostFiles {
            clock: Clock::get(),
            cpu: CpuMeter::open(&roots).ok(),
            io: ProcessIoMeter::open(&roots).ok(),
            disturbance: DisturbanceMeter::open(&roots),
        }
    }
}

impl Default for HostFiles {
    fn default() -> Self {
        Self::new()
    }
}

impl FileSystem for HostFiles {
    type Area = HostArea;

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn usage(&self) -> FileUsage {
        let cpu = self.cpu.as_ref().and_then(|meter| meter.read().ok());
        let io = self.io.as_ref().and_then(|meter| meter.read().ok());
        FileUsage {
            user_ns: cpu.map_or(0, |cpu| cpu.user_ns),
            system_ns: cpu.map_or(0, |cpu| cpu.system_ns),
            block_bytes: io.map(|io| (io.read_bytes, io.write_bytes)),
        }
    }

    fn watched<T>(&self, work: impl FnOnce() -> T) -> (T, Option<Pause>) {
        let stolen =
            || self.cpu.as_ref().and_then(|meter| meter.read().ok()).map_or(0, |cpu| cpu.steal_ns);
        let look = || (Moment::now(), stolen(), self.disturbance.read());
        let (done, seen) = run_streams::watched(self.clock, look, work);
        let paused = seen.and_then(
            |(gaps, (before, stolen_before, quota_before), (after, stolen_after, quota_after))| {
                let held_ns =
                    quota_after.quota_since(&quota_before).map_or(0, |quota| quota.throttled_ns);
                pause(&before, &after, gaps, stolen_after.saturating_sub(stolen_before), held_ns)
            },
        );
        (done, paused)
    }

    fn open(&self, spec: &AreaSpec) -> Result<HostArea, FileError> {
        if spec.engine == FileEngine::IoUring {
            uring::Chain::new().map_err(|error| FileError::Engine {
                engine: spec.engine.name(),
                why: error.to_string(),
            })?;
        }
        let here = [PathBuf::from(".")];
        let locations = if spec.locations.is_empty() { &here[..] } else { &spec.locations };
        let open = |location: &PathBuf| match spec.joins {
            true => WorkDirectory::join(location),
            false => WorkDirectory::make(location, spec.subdirectories),
        };
        let directories = locations.iter().map(open).collect::<Result<_, _>>()?;
        Ok(HostArea { directories: Arc::new(directories), spec: spec.clone() })
    }
}

/// Halfpower's own directories, one in each location.
pub struct HostArea {
    directories: Arc<Vec<WorkDirectory>>,
    spec: AreaSpec,
}

impl FileArea for HostArea {
    type Work = FileWorker;

    fn make_subdirectories(&self, interrupt: &AtomicBool) -> Result<bool, FileError> {
        let numbers = 0..self.spec.subdirectories;
        self.each_subdirectory(numbers, FileAct::MakeDirectory, interrupt, |directory, name| {
            Ok(mkdirat(directory, name, Mode::RWXU)?)
        })
    }

    fn remove_subdirectories(&self, interrupt: &AtomicBool) -> Result<bool, FileError> {
        // Those below a directory first.
        let numbers = (0..self.spec.subdirectories).rev();
        self.each_subdirectory(numbers, FileAct::RemoveDirectory, interrupt, |directory, name| {
            Ok(unlinkat(directory, name, AtFlags::REMOVEDIR)?)
        })
    }

    fn directory(&self) -> Option<&Path> {
        self.directories.first().map(|directory| directory.path.as_path())
    }

    fn work(&self) -> Result<FileWorker, FileError> {
        FileWorker::new(self.directories.clone(), &self.spec)
    }
}

impl HostArea {
    fn each_subdirectory(
        &self,
        numbers: impl Iterator<Item = u32> + Clone,
        act: FileAct,
        interrupt: &AtomicBool,
        what: impl Fn(&File, &CStr) -> io::Result<()>,
    ) -> Result<bool, FileError> {
        let mut name = worker::Name::new(&self.spec);
        for directory in self.directories.iter() {
            for index in numbers.clone() {
                if interrupt.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                let name = name.directory(index);
                what(&directory.handle, name)
                    .map_err(|error| FileError::of(act, directory.path.join(text(name)), error))?;
            }
        }
        Ok(true)
    }
}

#[derive(Debug)]
struct WorkDirectory {
    path: PathBuf,
    /// Parent and name; `None` if another process made it.
    made: Option<(File, OsString)>,
    handle: File,
    /// Buffer size of C's standard I/O.
    block: usize,
}

impl WorkDirectory {
    fn make(location: &Path, subdirectories: u32) -> Result<WorkDirectory, FileError> {
        let explain = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => FileError::NoLocation(location.into()),
            io::ErrorKind::NotADirectory => FileError::NotADirectory(location.into()),
            _ => FileError::of(FileAct::MakeDirectory, location.into(), error),
        };
        if !fs::metadata(location).map_err(explain)?.is_dir() {
            return Err(FileError::NotADirectory(location.into()));
        }
        // Without it the directory could not be removed in the end.
        sys::check_proc().map_err(|error| FileError::Refused {
            path: location.into(),
            why: error.to_string(),
        })?;
        remove_leftovers(location);
        let parent = open_directory(CWD, location).map_err(explain)?;
        check_inodes(&parent, location, subdirectories)?;
        // Lock the directory before it gets the name that other processes look for.
        let hidden = make_hidden(&parent, |hidden| {
            mkdirat(&parent, hidden, Mode::RWXU)?;
            open_directory(&parent, Path::new(hidden))
        });
        let failed = |error: io::Error| {
            FileError::of(FileAct::MakeDirectory, location.join("halfpower-*.files"), error)
        };
        let (handle, hidden) = hidden.map_err(failed)?;
        let named = || {
            let metadata = handle.metadata()?;
            let name: OsString = name(&mark(sys::random(), metadata.ino()), SUFFIX).into();
            renameat(&parent, &hidden, &parent, &name)?;
            Ok((name, block_bytes(&handle)?))
        };
        let (name, block) = named().map_err(|error| {
            // Empty and ours.
            let _ = unlinkat(&parent, &hidden, AtFlags::REMOVEDIR);
            failed(error)
        })?;
        let path = location.join(&name);
        Ok(WorkDirectory { path, made: Some((parent, name)), handle, block })
    }

    fn join(path: &Path) -> Result<WorkDirectory, FileError> {
        let explain = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => FileError::NoLocation(path.into()),
            _ => FileError::of(FileAct::Open, path.into(), error),
        };
        let handle = open_directory(CWD, path).map_err(explain)?;
        let block = block_bytes(&handle).map_err(explain)?;
        Ok(WorkDirectory { path: path.into(), made: None, handle, block })
    }

    fn fd(&self) -> RawFd {
        self.handle.as_raw_fd()
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        let Some((parent, name)) = &self.made else { return };
        // All of it goes, whatever has been interrupted.
        cleanup::note(&self.path, removal::remove(parent, name, &self.handle, &mut || true));
    }
}

/// Removes killed runs' directories, which have our mark and no lock; other programs' files stay,
/// as [`crate::cleanup()`] reports.
pub fn remove_leftovers(location: &Path) -> u32 {
    let mut removed = 0;
    let Ok(parent) = open_directory(CWD, location) else { return removed };
    let mut progress = cleanup::Progress::of(location);
    remove_parts(&parent, &mut progress);
    for name in ::files::entries(&sys::path_of(&parent)) {
        let Some(text) = name.to_str().filter(|text| text.ends_with(SUFFIX)) else { continue };
        let Ok(handle) = open_directory(&parent, Path::new(&name)) else { continue };
        let ours =
            handle.metadata().is_ok_and(|metadata| is_our_name(text, SUFFIX, metadata.ino()));
        if ours && sys::try_lock(&handle).is_ok() {
            match removal::remove(&parent, &name, &handle, &mut || progress.step()) {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => break,
                failed => cleanup::note(&location.join(&name), failed),
            }
        }
    }
    removed
}

fn check_inodes(parent: &File, location: &Path, subdirectories: u32) -> Result<(), FileError> {
    let free =
        fstatvfs(parent).ok().filter(|counted| counted.f_files > 0).map(|counted| counted.f_favail);
    match free {
        Some(free) if free < u64::from(subdirectories) => Err(FileError::Refused {
            path: location.into(),
            why: format!(
                "{subdirectories} subdirectories are more than the {free} inodes that are free here; ask for fewer"
            ),
        }),
        _ => Ok(()),
    }
}

fn block_bytes(directory: &File) -> io::Result<usize> {
    Ok((directory.metadata()?.blksize() as usize).clamp(512, 1 << 20))
}

fn open_directory(from: impl AsFd, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(from, path, flags, Mode::empty())?.into())
}

fn open_at(from: impl AsFd, name: &CStr, flags: i32) -> io::Result<File> {
    let flags = OFlags::from_bits_retain(flags as u32) | OFlags::CLOEXEC;
    Ok(openat(from, name, flags, Mode::from_raw_mode(0o666))?.into())
}

fn text(name: &CStr) -> &Path {
    Path::new(name.to_str().unwrap_or("?"))
}
