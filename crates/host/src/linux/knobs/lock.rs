//! A lock that no other user can hold.

use crate::linux::sys;
use files::Directory;
use rustix::fs::{Mode, fchmod, major, minor};
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The lock file may be replaced at the same moment.
const ATTEMPTS: u32 = 10;

#[derive(Debug)]
pub(super) struct Lock(#[allow(dead_code, reason = "open, so locked")] File);

#[derive(Debug)]
pub(super) enum LockError {
    Held(Holder),
    Io(io::Error),
}

impl From<io::Error> for LockError {
    fn from(error: io::Error) -> Self {
        LockError::Io(error)
    }
}

impl Lock {
    /// Restricts a lock file that other users can open, and replaces it if one of them holds the
    /// lock.
    pub(super) fn take(directory: &Directory, name: &OsStr) -> Result<Lock, LockError> {
        for _ in 0..ATTEMPTS {
            let file = match directory.create(name, 0o600) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    directory.open_to_append(name)?
                }
                made => made?,
            };
            let metadata = file.metadata()?;
            if metadata.uid() != geteuid().as_raw() {
                let why = format!("it belongs to another user (uid {}); remove it", metadata.uid());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why).into());
            }
            if metadata.mode() & 0o777 != 0o600 {
                fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(io::Error::from)?;
            }
            match sys::try_lock(&file) {
                // If the file was replaced in between, it is no longer the lock.
                Ok(()) if directory.is_name_of(name, &file) => return Ok(Lock(file)),
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let holder = Holder::of(&file)?;
                    if !holder.is_stranger() {
                        return Err(LockError::Held(holder));
                    }
                    // Another user opened it while that was permitted.
                    if directory.is_name_of(name, &file) {
                        directory.remove(name)?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::from(io::ErrorKind::WouldBlock).into())
    }
}

/// As far as known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holder {
    processes: Vec<(u32, Option<u32>, String)>,
}

impl Holder {
    /// From `/proc/locks` (proc(5)); if those processes have ended, all that have the file open.
    fn of(file: &File) -> io::Result<Holder> {
        let own = file.metadata()?;
        let device = format!("{:02x}:{:02x}:{}", major(own.dev()), minor(own.dev()), own.ino());
        let mut takers = Vec::new();
        for line in fs::read_to_string("/proc/locks").unwrap_or_default().lines() {
            // A process that waits for the lock has an arrow instead of the kind.
            let [_, "FLOCK", _, _, pid, place, ..] =
                line.split_whitespace().collect::<Vec<_>>()[..]
            else {
                continue;
            };
            let Ok(pid) = pid.parse::<u32>() else { continue };
            // Some file systems show a different device there.
            let is_same_inode = place.rsplit(':').next() == Some(own.ino().to_string().as_str());
            if place == device && is_alive(pid) || is_same_inode && has_open(pid, file) {
                takers.push(pid);
            }
        }
        if takers.is_empty() {
            let others = files::entries(Path::new("/proc"))
                .filter_map(|name| name.to_str()?.parse::<u32>().ok());
            takers =
                others.filter(|pid| *pid != std::process::id() && has_open(*pid, file)).collect();
        }
        takers.dedup();
        Ok(Holder { processes: takers.into_iter().map(described).collect() })
    }

    pub(super) fn is(&self, pid: u32) -> bool {
        self.processes.iter().any(|(holder, ..)| *holder == pid)
    }

    fn is_stranger(&self) -> bool {
        let own = geteuid().as_raw();
        let is_other = |user: Option<u32>| user.is_some_and(|user| user != own && user != 0);
        !self.processes.is_empty() && self.processes.iter().all(|(_, user, _)| is_other(*user))
    }
}

fn described(pid: u32) -> (u32, Option<u32>, String) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let user = field("Uid:").and_then(|ids| ids.split_whitespace().next()?.parse().ok());
    (pid, user, field("Name:").unwrap_or("unknown").to_owned())
}

fn is_alive(pid: u32) -> bool {
    fs::metadata(format!("/proc/{pid}/status")).is_ok()
}

fn has_open(pid: u32, file: &File) -> bool {
    let Ok(own) = file.metadata() else { return false };
    let open_files = PathBuf::from(format!("/proc/{pid}/fd"));
    let is_own = |open: fs::Metadata| (open.dev(), open.ino()) == (own.dev(), own.ino());
    files::entries(&open_files).any(|name| fs::metadata(open_files.join(name)).is_ok_and(is_own))
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.processes.is_empty() {
            return f.write_str("a process that cannot be seen from here");
        }
        for (index, (pid, _, name)) in self.processes.iter().enumerate() {
            write!(
                f,
                "{}process {pid} ({})",
                if index > 0 { ", " } else { "" },
                machine::text::printable(name)
            )?;
        }
        Ok(())
    }
}
