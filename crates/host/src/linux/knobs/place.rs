use crate::linux::facts::{Mount, Roots, chosen, mount_on};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A path on the machine; of a list, the choice in brackets.
    File(PathBuf),
    /// `noatime`, `relatime` or `strictatime`.
    Atime(PathBuf),
    /// Seconds between commits.
    Commit(PathBuf),
    /// `discard` is immediate, `nodiscard` is not.
    Discard(PathBuf),
}

impl Place {
    pub fn path(&self) -> &Path {
        match self {
            Place::File(path) | Place::Atime(path) | Place::Commit(path) | Place::Discard(path) => {
                path
            }
        }
    }

    pub fn read(&self, roots: &Roots) -> io::Result<String> {
        match self {
            Place::File(path) => {
                let text = fs::read_to_string(roots.resolve(path))?;
                Ok(chosen(text.trim()).to_owned())
            }
            Place::Atime(at) => Ok(atime(&mount(roots, at)?).into()),
            Place::Commit(at) => {
                let mount = mount(roots, at)?;
                let reported = mount.option("commit").map(str::to_owned);
                reported
                    .or_else(|| default_commit(&mount).map(|seconds| seconds.to_string()))
                    .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
            }
            Place::Discard(at) => {
                Ok(if mount(roots, at)?.has_option("discard") { "discard" } else { "nodiscard" }
                    .into())
            }
        }
    }

    pub fn write(&self, roots: &Roots, value: &str) -> io::Result<()> {
        match self {
            Place::File(path) => {
                let path = roots.resolve(path);
                write_once(&path, value)?;
                if path.ends_with("queue/scheduler") {
                    renew_tags(&path.with_file_name("nr_requests"));
                }
                Ok(())
            }
            Place::Atime(at) => {
                let mount = mount(roots, at)?;
                let mode = match value {
                    "noatime" => libc::MS_NOATIME,
                    "relatime" => libc::MS_RELATIME,
                    "strictatime" => libc::MS_STRICTATIME,
                    _ => return Err(io::ErrorKind::InvalidInput.into()),
                };
                remount(at, libc::MS_BIND | kept_flags(&mount) | mode, "")
            }
            Place::Commit(at) => remount_with(roots, at, &format!("commit={value}")),
            Place::Discard(at) => remount_with(roots, at, value),
        }
    }
}

/// The kernel takes each write as a whole value.
fn write_once(path: &Path, value: &str) -> io::Result<()> {
    use io::Write;
    fs::OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_bytes())
}

/// Gives a queue as many tags as its `nr_requests` says. A change of scheduler resets the number
/// but not the tags (Linux 6.18); rewriting the same number has no effect. With too few tags, a
/// throttle counts resubmitted requests twice.
fn renew_tags(nr_requests: &Path) {
    let Ok(text) = fs::read_to_string(nr_requests) else { return };
    let Ok(now) = text.trim().parse::<u32>() else { return };
    // A refused number does not change the queue. The kernel raises anything below 4 to 4.
    let another = if now > 4 { now - 1 } else { now + 1 };
    if write_once(nr_requests, &another.to_string()).is_ok() {
        let _ = write_once(nr_requests, &now.to_string());
    }
}

fn mount(roots: &Roots, at: &Path) -> io::Result<Mount> {
    mount_on(roots, at).map_err(io::Error::other)?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// As in ext4(5) and btrfs(5).
fn default_commit(mount: &Mount) -> Option<u32> {
    match mount.fs_type.as_str() {
        "ext3" | "ext4" => Some(5),
        "btrfs" => Some(30),
        _ => None,
    }
}

fn atime(mount: &Mount) -> &'static str {
    ["noatime", "relatime"].into_iter().find(|mode| mount.has_option(mode)).unwrap_or("strictatime")
}

/// A remount clears these unless they are repeated.
fn kept_flags(mount: &Mount) -> libc::c_ulong {
    [
        ("ro", libc::MS_RDONLY),
        ("nosuid", libc::MS_NOSUID),
        ("nodev", libc::MS_NODEV),
        ("noexec", libc::MS_NOEXEC),
        ("sync", libc::MS_SYNCHRONOUS),
        ("dirsync", libc::MS_DIRSYNC),
        ("mand", libc::MS_MANDLOCK),
        ("nodiratime", libc::MS_NODIRATIME),
        ("lazytime", libc::MS_LAZYTIME),
        // MS_NOSYMFOLLOW, which the C library's headers lack (linux/mount.h).
        ("nosymfollow", 256),
    ]
    .into_iter()
    .filter(|(name, _)| mount.has_option(name))
    .fold(0, |flags, (_, flag)| flags | flag)
}

fn remount_with(roots: &Roots, at: &Path, option: &str) -> io::Result<()> {
    let mount = mount(roots, at)?;
    let mode = match atime(&mount) {
        "noatime" => libc::MS_NOATIME,
        "relatime" => libc::MS_RELATIME,
        _ => libc::MS_STRICTATIME,
    };
    remount(at, kept_flags(&mount) | mode, option)
}

fn remount(at: &Path, flags: libc::c_ulong, data: &str) -> io::Result<()> {
    let at = CString::new(at.as_os_str().as_bytes())?;
    let data = CString::new(data)?;
    // SAFETY: both strings end with a NUL and outlive the call; a remount ignores source and type.
    let done = unsafe {
        libc::mount(
            std::ptr::null(),
            at.as_ptr(),
            std::ptr::null(),
            libc::MS_REMOUNT | flags,
            data.as_ptr().cast(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
