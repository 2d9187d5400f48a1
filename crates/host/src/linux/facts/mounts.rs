use super::Roots;
use crate::linux::sys;
use machine::{Error, Result};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub id: u64,
    /// A device, a remote path, or a word (`tmpfs`).
    pub source: String,
    /// Not `/` for a bind mount or a btrfs subvolume.
    pub root: PathBuf,
    pub mount_point: PathBuf,
    pub fs_type: String,
    pub options: Vec<String>,
    /// Major 0 is a virtual file system, or btrfs, which numbers each subvolume.
    pub dev_t: (u32, u32),
}

impl Mount {
    pub fn in_memory(&self) -> bool {
        matches!(self.fs_type.as_str(), "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" | "rootfs")
    }

    /// Compares the whole option (`noatime`).
    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|option| option == name)
    }

    /// The value in `lowerdir=/a:/b`; empty if it has none.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|option| {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            (key == name).then_some(value)
        })
    }
}

/// Follows symbolic links; fails if the mount is not listed.
pub fn mount_of(roots: &Roots, path: &Path) -> Result<Mount> {
    let mounts = all_mounts(roots)?;
    if roots.is_this_machine() {
        let path = path.canonicalize().map_err(Error::io("cannot find", path))?;
        if let Some(mount) =
            mount_id(CWD, &path).and_then(|id| mounts.iter().find(|mount| mount.id == id))
        {
            return Ok(mount.clone());
        }
        return at(mounts, &path).ok_or_else(|| no_mount(&path));
    }
    at(mounts, path).ok_or_else(|| no_mount(path))
}

pub fn mount_of_file(roots: &Roots, file: BorrowedFd<'_>) -> Result<Mount> {
    let by_id = mount_id(file, Path::new(""))
        .map(|id| all_mounts(roots).map(|mounts| mounts.into_iter().find(|mount| mount.id == id)));
    if let Some(Some(mount)) = by_id.transpose()? {
        return Ok(mount);
    }
    mount_of(roots, &roots.proc.join("self/fd").join(file.as_raw_fd().to_string()))
}

/// The path need not exist.
pub fn mount_at(roots: &Roots, path: &Path) -> Result<Mount> {
    at(all_mounts(roots)?, path).ok_or_else(|| no_mount(path))
}

/// The file may no longer exist.
pub(super) fn mount_of_file_at(roots: &Roots, path: &Path) -> Option<Mount> {
    mount_of(roots, path).or_else(|_| mount_at(roots, path)).ok()
}

/// A later mount hides an earlier one at the same mount point.
pub(super) fn all_mounts(roots: &Roots) -> Result<Vec<Mount>> {
    if roots.is_this_machine() {
        sys::check_proc()?;
    }
    mounts_in(&roots.proc.join("self/mountinfo"))
}

pub(super) fn mounts_in(path: &Path) -> Result<Vec<Mount>> {
    let bytes = std::fs::read(path).map_err(Error::io("cannot read", path))?;
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(parse).collect())
}

pub(crate) fn mount_on(roots: &Roots, mount_point: &Path) -> Result<Option<Mount>> {
    Ok(all_mounts(roots)?.into_iter().rfind(|mount| mount.mount_point == mount_point))
}

fn at(mounts: Vec<Mount>, path: &Path) -> Option<Mount> {
    let depth = |mount: &Mount| mount.mount_point.components().count();
    mounts.into_iter().filter(|mount| path.starts_with(&mount.mount_point)).max_by_key(depth)
}

fn no_mount(path: &Path) -> Error {
    let source = std::io::Error::new(
        std::io::ErrorKind::NotFound,
        "it is not on a mount visible to this process",
    );
    Error::Io { doing: "cannot determine the file system of", path: path.to_path_buf(), source }
}

/// Needs Linux 5.8.
fn mount_id(dir: impl AsFd, name: &Path) -> Option<u64> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let found = statx(dir, name, flags, StatxFlags::MNT_ID).ok()?;
    (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id)
}

/// Parses `36 35 98:0 /root /point rw,noatime shared:1 - ext3 /dev/root rw,errors=continue`
/// (proc(5)).
fn parse(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut fields = mount.split(' ');
    let id = fields.next()?.parse().ok()?;
    let (major, minor) = fields.nth(1)?.split_once(':')?;
    let root = unescape(fields.next()?);
    let mount_point = unescape(fields.next()?);
    let own_options = fields.next()?;
    let mut fields = file_system.split(' ');
    let (fs_type, source) = (unescape(fields.next()?), unescape(fields.next()?));
    let mut options: Vec<String> = own_options.split(',').map(unescape).collect();
    for option in fields.next().unwrap_or("").split(',').filter(|option| !option.is_empty()) {
        let option = unescape(option);
        if !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount {
        id,
        source,
        root: root.into(),
        mount_point: mount_point.into(),
        fs_type,
        options,
        dev_t: (major.parse().ok()?, minor.parse().ok()?),
    })
}

pub(super) fn unescape(field: &str) -> String {
    let bytes = field.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = bytes.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\').and_then(|digits| {
            digits.iter().try_fold(0u32, |sum, digit| {
                matches!(digit, b'0'..=b'7').then(|| sum * 8 + u32::from(digit - b'0'))
            })
        });
        match escape.and_then(|code| u8::try_from(code).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_complete_line_is_parsed() {
        let mount =
            parse(r"36 35 98:3 /sub\040dir /mnt\0401\134x rw,noatime shared:1 master:2 - ext4 /dev/root rw,errors=continue,noatime")
                .unwrap();
        assert_eq!(mount.mount_point, Path::new(r"/mnt 1\x"));
        assert_eq!(
            (mount.root.as_path(), mount.source.as_str(), mount.fs_type.as_str()),
            (Path::new("/sub dir"), "/dev/root", "ext4")
        );
        assert_eq!(mount.dev_t, (98, 3));
        assert_eq!(mount.options, ["rw", "noatime", "errors=continue"]);
        assert_eq!(
            (mount.option("errors"), mount.option("rw"), mount.option("error")),
            (Some("continue"), Some(""), None)
        );
    }

    #[test]
    fn the_longest_and_last_mount_wins() {
        let line = |id: u32, point: &str| {
            parse(&format!("{id} 1 8:{id} / {point} rw - ext4 /dev/x{id} rw")).unwrap()
        };
        let mounts = vec![line(1, "/"), line(2, "/data"), line(3, "/data/deep"), line(4, "/data")];
        let id = |path: &str| at(mounts.clone(), Path::new(path)).unwrap().id;
        assert_eq!(
            (id("/data/file"), id("/data/deep/file"), id("/database"), id("/data")),
            (4, 3, 1, 4)
        );
    }

    #[test]
    fn this_machines_mounts() {
        let roots = Roots::default();
        let proc = mount_of(&roots, Path::new("/proc/self/status")).unwrap();
        assert_eq!((proc.fs_type.as_str(), proc.dev_t.0), ("proc", 0));
        let file = std::fs::File::open("/proc/self/status").unwrap();
        assert_eq!(mount_of_file(&roots, std::os::fd::AsFd::as_fd(&file)).unwrap(), proc);
        assert!(
            mount_of(&roots, Path::new("/no/such/place"))
                .unwrap_err()
                .to_string()
                .contains("/no/such/place")
        );
    }

    proptest! {
        #[test]
        fn no_line_makes_the_parser_panic(line in "\\PC*") {
            let _ = parse(&line);
        }

        #[test]
        fn escaped_names_are_decoded(name in "[ -~\t\n]*") {
            let escaped: String = name.chars().map(|c| match c { ' ' | '\t' | '\n' | '\\' => format!("\\{:03o}", c as u32), c => c.to_string() }).collect();
            prop_assert_eq!(unescape(&escaped), name);
        }
    }
}
