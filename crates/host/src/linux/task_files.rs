//! Files that a parallel program's tasks use under the user's names.

use super::clock::Clock;
use super::hold::{check_number, explain_open, hold};
use super::member::{is_absent, is_unused, open_for};
use super::owned_file::{OwnedFile, directory_of, kept, reopen};
use super::sys;
use crate::session::Time;
use machine::{Error, Nanos, OpenAs, Result, Sharing, TargetSpec, TaskFile, TaskFiles, Wanted};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const LOOK_NS: Nanos = 10_000_000;

pub struct HostTaskFiles {
    interrupt: &'static AtomicBool,
}

impl HostTaskFiles {
    /// Setting `interrupt` ends the tasks.
    pub fn new(interrupt: &'static AtomicBool) -> HostTaskFiles {
        Clock::begin();
        HostTaskFiles { interrupt }
    }
}

pub struct HostTaskFile {
    path: PathBuf,
    held: Held,
    open: Option<File>,
}

enum Held {
    Made(OwnedFile),
    Other(Arc<File>),
}

impl HostTaskFile {
    fn held(&self) -> &Arc<File> {
        match &self.held {
            Held::Made(made) => made.file(),
            Held::Other(file) => file,
        }
    }

    fn metadata(&self) -> Result<fs::Metadata> {
        self.held().metadata().map_err(Error::io("cannot look at", &self.path))
    }

    fn opened(&self) -> io::Result<&File> {
        self.open.as_ref().ok_or_else(|| io::Error::other("the file is not open"))
    }
}

fn not_ours(path: &Path) -> Error {
    let (why, hint) = (
        "it exists, and halfpower did not make it or something has changed it since",
        "name another file, remove it, or name it again with --destroy-data",
    );
    Error::refused(path.display().to_string(), why, hint)
}

fn check_kind(metadata: &fs::Metadata, path: &Path) -> Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    if kind.is_file() || kind.is_block_device() {
        return Ok(());
    }
    let what = if kind.is_dir() { "it is a directory" } else { "it is not a regular file" };
    Err(Error::refused(path.display().to_string(), what, "name a file"))
}

fn missing(path: &Path) -> Error {
    let shown = path.display().to_string();
    Error::refused(shown, "no such file", "write it first (-w -k), or name one that exists")
}

fn look_at(path: &Path) -> Result<fs::Metadata> {
    fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => missing(path),
        _ => Error::io("cannot look at", path)(error),
    })
}

fn take_existing(wanted: &Wanted) -> Result<Arc<File>> {
    let path = &wanted.path;
    check_kind(&look_at(path)?, path)?;
    let file = open_for(path, false)?;
    let metadata = file.metadata().map_err(Error::io("cannot look at", path))?;
    check_kind(&metadata, path)?;
    files::remember_read(&metadata);
    if let Some(number) = wanted.number {
        check_number(&metadata, number, path)?;
    }
    if !wanted.writes {
        return Ok(Arc::new(file));
    }
    hold(file, path, &TargetSpec { sharing: wanted.sharing.clone(), ..TargetSpec::default() })
}

fn shared(made: OwnedFile, wanted: &Wanted) -> Result<Held> {
    if wanted.sharing.is_some() {
        made.share().map_err(Error::io("cannot lock for this run", &wanted.path))?;
    }
    Ok(Held::Made(made))
}

impl TaskFiles for HostTaskFiles {
    type File = HostTaskFile;

    fn now(&self) -> Nanos {
        Clock::get().now()
    }

    fn wait_until(&self, then: Nanos) {
        let clock = Clock::get();
        loop {
            let left = then.saturating_sub(clock.now());
            if left == 0 || self.is_interrupted() {
                return;
            }
            clock.pass(left.min(LOOK_NS));
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    fn check(&self, wanted: &Wanted) -> Result<()> {
        sys::check_proc()?;
        let path = &wanted.path;
        if !wanted.writes {
            check_kind(&look_at(path)?, path)?;
            return open_for(path, false).map(drop);
        }
        if !is_absent(path) {
            check_kind(&look_at(path)?, path)?;
            let ours = kept(path).is_some_and(|kept| is_unused(&kept));
            return if ours || wanted.destroy { Ok(()) } else { Err(not_ours(path)) };
        }
        let directory = directory_of(path);
        let refused = |why| {
            Error::refused(directory.display().to_string(), why, "make it first, or name another")
        };
        match fs::metadata(directory) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => Err(refused("it is not a directory")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(refused("no such directory"))
            }
            Err(error) => Err(Error::io("cannot look at", directory)(error)),
        }
    }

    fn take(&self, wanted: &Wanted) -> Result<HostTaskFile> {
        let path = &wanted.path;
        let joins = matches!(wanted.sharing, Some(Sharing::Joins { .. }));
        let own = if joins { None } else { kept(path).filter(|_| !wanted.destroy) };
        let held = match own {
            Some(own) if is_unused(&own) => {
                if wanted.writes {
                    own.touch();
                }
                shared(own, wanted)?
            }
            _ if wanted.writes && !joins && is_absent(path) => {
                shared(OwnedFile::create(directory_of(path), path.file_name())?, wanted)?
            }
            _ if wanted.writes && !joins && !wanted.destroy => return Err(not_ours(path)),
            _ => Held::Other(take_existing(wanted)?),
        };
        Ok(HostTaskFile { path: path.clone(), held, open: None })
    }

    fn free_bytes(&self, directory: &Path) -> Result<Option<u64>> {
        sys::free_bytes(directory)
            .map_err(Error::io("cannot determine the free space of", directory))
    }

    fn make_directory(&self, path: &Path) -> Result<bool> {
        match fs::create_dir(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {
                Ok(false)
            }
            Err(error) => Err(full(Error::io("cannot make the directory", path), error, path)),
        }
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(Error::io("cannot remove the directory", path))
    }

    fn create(&self, path: &Path, content: &[u8], sync: bool) -> Result<()> {
        let failed = |error| full(Error::io("cannot create", path), error, path);
        let mut file = File::options().write(true).create_new(true).open(path).map_err(failed)?;
        file.write_all(content)
            .and_then(|()| if sync { file.sync_all() } else { Ok(()) })
            .and_then(|()| close(file))
            .map_err(|error| full(Error::io("cannot write", path), error, path))
    }

    fn stat(&self, path: &Path) -> Result<u64> {
        Ok(fs::metadata(path).map_err(Error::io("cannot read the attributes of", path))?.len())
    }

    fn read(&self, path: &Path, buffer: &mut [u8]) -> Result<usize> {
        // A pipe under an item's name would wait for its writer.
        let mut file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(Error::io("cannot open", path))?;
        let mut got = 0;
        while got < buffer.len() {
            match file.read(&mut buffer[got..]) {
                Ok(0) => break,
                Ok(bytes) => got += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("cannot read", path)(error)),
            }
        }
        Ok(got)
    }

    fn sync_file_system(&self, directory: &Path) -> Result<()> {
        File::open(directory)
            .and_then(|opened| Ok(rustix::fs::syncfs(opened)?))
            .map_err(Error::io("cannot sync the file system of", directory))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(Error::io("cannot remove", path))
    }
}

fn full(otherwise: impl FnOnce(io::Error) -> Error, error: io::Error, path: &Path) -> Error {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => Error::Unsupported(format!(
            "{}: the file system is full ({error}); free some space, or ask for fewer or smaller files",
            path.display()
        )),
        _ => otherwise(error),
    }
}

/// Network file systems may report a late error.
fn close(file: File) -> io::Result<()> {
    // SAFETY: the descriptor is owned, and nothing else closes it.
    if unsafe { libc::close(file.into_raw_fd()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

impl TaskFile for HostTaskFile {
    fn number(&self) -> Result<u64> {
        Ok(self.metadata()?.ino())
    }

    fn size_bytes(&self) -> Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn open(&mut self, how: OpenAs) -> Result<()> {
        let flags = if how.direct { libc::O_DIRECT } else { 0 };
        if let (Held::Made(made), true) = (&self.held, how.writes) {
            made.touch();
        }
        let file = reopen(self.held(), how.writes, flags).map_err(|error| {
            match (how.direct, error.raw_os_error()) {
                (true, Some(libc::EINVAL)) => Error::refused(
                    self.path.display().to_string(),
                    "this file system has no direct I/O",
                    "leave out --posix.odirect",
                ),
                _ => explain_open(error, &self.path, how.writes),
            }
        })?;
        if how.empty {
            file.set_len(0).map_err(Error::io("cannot empty", &self.path))?;
        }
        self.open = Some(file);
        Ok(())
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        self.opened()?.write_at(data, offset)
    }

    fn read_at(&self, data: &mut [u8], offset: u64) -> io::Result<usize> {
        self.opened()?.read_at(data, offset)
    }

    fn sync(&self) -> Result<()> {
        self.opened()
            .and_then(File::sync_all)
            .map_err(|error| full(Error::io("cannot sync", &self.path), error, &self.path))
    }

    fn close(&mut self) -> Result<()> {
        match self.open.take() {
            Some(file) => close(file)
                .map_err(|error| full(Error::io("cannot close", &self.path), error, &self.path)),
            None => Ok(()),
        }
    }

    fn keep(&mut self) {
        if let Held::Made(made) = &mut self.held {
            made.keep();
        }
    }

    fn discard(self) {
        if let Held::Made(made) = self.held {
            made.discard();
        }
    }
}

#[cfg(test)]
mod tests;
