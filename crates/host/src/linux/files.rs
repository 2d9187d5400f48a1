//! Whole files through the kernel: made, read, appended to and deleted in directories of our own.

mod directories;
mod hands;
mod stdio;
mod uring;

use super::clock::Clock;
use super::counters::{CpuMeter, ProcessIoMeter};
use super::facts::Roots;
use super::sys;
pub use directories::directory_facts;
use hands::Hands;
use machine::Nanos;
use machine::files::{AreaSpec, FileAct, FileArea, FileEngine, FileError, FileSystem, FileUsage};
use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Directories of files are called `halfpower-PID-N.files`, and their maker holds a lock on them for as long as it lives.
const PREFIX: &str = "halfpower-";
const SUFFIX: &str = ".files";

/// Whole files on this computer.
pub struct HostFiles {
    clock: Clock,
    cpu: Option<CpuMeter>,
    io: Option<ProcessIoMeter>,
}

impl HostFiles {
    /// This computer's files. What its kernel does not count is left out of [`FileSystem::usage`].
    pub fn new() -> Self {
        let roots = Roots::default();
        HostFiles { clock: Clock::get(), cpu: CpuMeter::open(&roots).ok(), io: ProcessIoMeter::open(&roots).ok() }
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

    fn open(&self, spec: &AreaSpec) -> Result<HostArea, FileError> {
        if spec.engine == FileEngine::IoUring {
            uring::Chain::new().map_err(|error| FileError::Engine { engine: spec.engine.name(), why: error.to_string() })?;
        }
        let here = [PathBuf::from(".")];
        let locations = if spec.locations.is_empty() { &here[..] } else { &spec.locations };
        let rooms = locations.iter().map(|location| Room::make(location)).collect::<Result<_, _>>()?;
        Ok(HostArea { rooms: Arc::new(rooms), spec: spec.clone() })
    }
}

/// Directories of our own, one in each location.
pub struct HostArea {
    rooms: Arc<Vec<Room>>,
    spec: AreaSpec,
}

impl FileArea for HostArea {
    type Work = Hands;

    fn make_subdirectories(&self) -> Result<(), FileError> {
        self.each_subdirectory(FileAct::MakeDirectory, |fd, name| {
            // SAFETY: an open descriptor and a C string.
            check(unsafe { libc::mkdirat(fd, name.as_ptr(), 0o700) })
        })
    }

    fn remove_subdirectories(&self) -> Result<(), FileError> {
        self.each_subdirectory(FileAct::RemoveDirectory, |fd, name| {
            // SAFETY: an open descriptor and a C string.
            check(unsafe { libc::unlinkat(fd, name.as_ptr(), libc::AT_REMOVEDIR) })
        })
    }

    fn work(&self) -> Result<Hands, FileError> {
        Hands::new(self.rooms.clone(), &self.spec)
    }
}

impl HostArea {
    fn each_subdirectory(&self, act: FileAct, what: impl Fn(RawFd, &CStr) -> io::Result<()>) -> Result<(), FileError> {
        let mut name = hands::Name::default();
        for room in self.rooms.iter() {
            for index in 0..self.spec.subdirectories {
                let name = name.directory(index);
                what(room.fd(), name).map_err(|error| FileError::of(act, room.path.join(text(name)), error))?;
            }
        }
        Ok(())
    }
}

/// A directory that we made: locked while it is used, removed with all that is in it when dropped.
#[derive(Debug)]
struct Room {
    path: PathBuf,
    handle: File,
    /// Bytes of a file-system block, which is what C's standard I/O buffers.
    block: usize,
}

impl Room {
    fn make(location: &Path) -> Result<Room, FileError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let explain = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => FileError::NoLocation(location.into()),
            io::ErrorKind::NotADirectory => FileError::NotADirectory(location.into()),
            _ => FileError::of(FileAct::MakeDirectory, location.into(), error),
        };
        if !fs::metadata(location).map_err(explain)?.is_dir() {
            return Err(FileError::NotADirectory(location.into()));
        }
        remove_leftovers(location);
        let path = location.join(format!("{PREFIX}{}-{}{SUFFIX}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let explain = |error| FileError::of(FileAct::MakeDirectory, path.clone(), error);
        fs::create_dir(&path).map_err(explain)?;
        let handle = open_directory(libc::AT_FDCWD, &path).and_then(|handle| sys::try_lock(&handle).map(|()| handle));
        let handle = handle.map_err(|error| {
            // Empty and ours; if even this fails the next run tries again.
            let _ = fs::remove_dir(&path);
            explain(error)
        })?;
        let block = handle.metadata().map_or(4096, |metadata| std::os::unix::fs::MetadataExt::blksize(&metadata) as usize);
        Ok(Room { path, handle, block: block.clamp(512, 1 << 20) })
    }

    fn fd(&self) -> RawFd {
        self.handle.as_raw_fd()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // Nothing is left to do about a failure: the next run tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the directories of files that killed runs left in `location`: the names are ours and nobody holds their lock. Returns their number.
pub fn remove_leftovers(location: &Path) -> u32 {
    let mut removed = 0;
    for entry in fs::read_dir(location).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.to_str().is_some_and(is_our_name) || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let unused = open_directory(libc::AT_FDCWD, &entry.path()).is_ok_and(|handle| sys::try_lock(&handle).is_ok());
        if unused && fs::remove_dir_all(entry.path()).is_ok() {
            removed += 1;
        }
    }
    removed
}

/// `halfpower-PID-N.files` and nothing else.
fn is_our_name(name: &str) -> bool {
    let middle = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)).and_then(|middle| middle.split_once('-'));
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    middle.is_some_and(|(pid, n)| number(pid) && number(n))
}

fn open_directory(from: RawFd, path: &Path) -> io::Result<File> {
    let path = std::ffi::CString::new(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()))?;
    open_at(from, &path, libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW)
}

fn open_at(from: RawFd, name: &CStr, flags: i32) -> io::Result<File> {
    // SAFETY: a C string; the descriptor that comes back is ours alone.
    unsafe {
        let fd = libc::openat(from, name.as_ptr(), flags | libc::O_CLOEXEC, 0o666);
        check(fd)?;
        Ok(File::from_raw_fd(fd))
    }
}

fn text(name: &CStr) -> &Path {
    Path::new(name.to_str().unwrap_or("?"))
}

fn check(returned: i32) -> io::Result<()> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
