//! Device and inode decide if both file systems store their own data. An overlay has its own
//! numbers, but passes on birth time, size and location.

use super::{Mount, Roots, extents, mounts, names};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sameness {
    Same,
    Different,
    Unknown,
}

/// Read without querying FUSE servers, which may hang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    path: PathBuf,
    pub(super) dev: (u32, u32),
    pub(super) inode: u64,
    pub(super) rdev: (u32, u32),
    pub(super) is_file: bool,
    pub(super) is_block_device: bool,
    pub(super) size: u64,
    /// Seconds and nanoseconds, if the file system stores it.
    born: Option<(i64, u32)>,
    changed: (i64, u32),
    /// 0 before Linux 5.8.
    mount: u64,
}

impl Seen {
    pub(super) fn of(path: &Path) -> io::Result<Seen> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
        let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT, wanted)?;
        let has = |flag: StatxFlags| found.stx_mask & flag.bits() != 0;
        let kind = FileType::from_raw_mode(u32::from(found.stx_mode));
        Ok(Seen {
            path: path.into(),
            dev: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            rdev: (found.stx_rdev_major, found.stx_rdev_minor),
            is_file: kind == FileType::RegularFile,
            is_block_device: kind == FileType::BlockDevice,
            size: found.stx_size,
            born: has(StatxFlags::BTIME)
                .then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec)),
            changed: (found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
            mount: if has(StatxFlags::MNT_ID) { found.stx_mnt_id } else { 0 },
        })
    }

    fn numbers(&self) -> Numbers {
        Numbers { dev: self.dev, inode: self.inode }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) dev: (u32, u32),
    pub(super) inode: u64,
}

struct Namespace {
    root: PathBuf,
    mounts: Vec<Mount>,
}

pub(crate) struct Namespaces(Vec<Namespace>);

impl Namespaces {
    pub(crate) fn visible(roots: &Roots) -> Namespaces {
        let mut all = vec![Namespace {
            root: "/".into(),
            mounts: mounts::all_mounts(roots).unwrap_or_default(),
        }];
        if roots.is_this_machine() {
            let of =
                |process: &str| std::fs::read_link(roots.proc.join(process).join("ns/mnt")).ok();
            let mut known = vec![of("self")];
            for process in processes(roots) {
                let namespace = of(&process);
                if namespace.is_none() || known.contains(&namespace) {
                    continue;
                }
                known.push(namespace);
                let directory = roots.proc.join(process);
                let mounts = mounts::mounts_in(&directory.join("mountinfo")).unwrap_or_default();
                all.push(Namespace { root: directory.join("root"), mounts });
            }
        }
        Namespaces(all)
    }

    pub(super) fn mounts(&self) -> Vec<&Mount> {
        let mut known = HashSet::new();
        let mut all = Vec::new();
        for (at, mount) in self
            .0
            .iter()
            .enumerate()
            .flat_map(|(at, one)| one.mounts().map(move |mount| (at, mount)))
        {
            if known.insert((mount.dev_t, &mount.source)) || at == 0 {
                all.push(mount);
            }
        }
        all
    }

    pub(super) fn mounted_files(&self) -> Vec<(Seen, &Mount)> {
        let of = |one: &'_ Namespace, mount: &Mount| {
            let source = Path::new(&mount.source);
            let seen = source.is_absolute().then(|| Seen::of(&one.path(source)).ok())?;
            seen.filter(|seen| seen.is_file)
        };
        let all = self.0.iter().flat_map(|one| one.mounts().map(move |mount| (one, mount)));
        let mut found: Vec<(Seen, &Mount)> = Vec::new();
        for (one, mount) in all.filter(|(_, mount)| mount.dev_t.0 == 0) {
            if found.iter().all(|(_, known)| known.id != mount.id)
                && let Some(seen) = of(one, mount)
            {
                found.push((seen, mount));
            }
        }
        found
    }

    pub(super) fn find(&self, path: &Path, numbers: Option<Numbers>) -> Option<Seen> {
        let is_it = |seen: &Seen| numbers.is_none_or(|numbers| numbers == seen.numbers());
        self.0.iter().find_map(|one| Seen::of(&one.path(path)).ok().filter(is_it))
    }

    pub(super) fn mount_of(&self, seen: &Seen) -> Option<&Mount> {
        self.0.iter().flat_map(Namespace::mounts).find(|mount| mount.id == seen.mount)
    }

    /// The file system stores its own data, so no other's file shares it.
    pub(super) fn is_plain(&self, seen: &Seen) -> bool {
        is_plain(seen.dev, self.mount_of(seen))
    }

    /// The local kernel knows the file's blocks and users: no server, no FUSE.
    pub(super) fn is_local(&self, seen: &Seen) -> bool {
        self.is_plain(seen) || self.mount_of(seen).is_some_and(|mount| mount.fs_type == "overlay")
    }

    fn is_plain_number(&self, dev: (u32, u32)) -> bool {
        is_plain(dev, self.0.iter().flat_map(Namespace::mounts).find(|mount| mount.dev_t == dev))
    }

    pub(super) fn compare(&self, one: &Seen, other: &Seen) -> Sameness {
        if one.is_block_device && other.is_block_device {
            return if one.rdev == other.rdev { Sameness::Same } else { Sameness::Different };
        }
        if one.numbers() == other.numbers() {
            return Sameness::Same;
        }
        let plain = self.is_plain(one) && self.is_plain(other);
        if plain || !one.is_file || !other.is_file || one.size != other.size {
            return Sameness::Different;
        }
        let born = one.born.zip(other.born);
        if born.is_some_and(|(one, other)| one != other) || differ_at_rest(one, other) {
            return Sameness::Different;
        }
        let mapped = self.is_local(one) && self.is_local(other);
        match mapped.then(|| extents::common(&one.path, &other.path)).flatten() {
            Some(extents::Common::Nothing) => Sameness::Different,
            Some(extents::Common::Own) => Sameness::Same,
            // Reflink copies share extents until one is written, but a copy has a later birth time
            // unless it was made within the same tick of the kernel's clock.
            Some(extents::Common::Shared) if born.is_some() => Sameness::Same,
            // An overlay keeps the inode number of a file that it has not copied up. The upper bits
            // may identify the layer.
            None if born.is_some() && one.inode as u32 == other.inode as u32 => Sameness::Same,
            _ => Sameness::Unknown,
        }
    }

    pub(super) fn compare_numbers(&self, seen: &Seen, numbers: Numbers) -> Sameness {
        match () {
            () if seen.numbers() == numbers => Sameness::Same,
            () if self.is_plain(seen) && self.is_plain_number(numbers.dev) => Sameness::Different,
            () => Sameness::Unknown,
        }
    }
}

impl Namespace {
    fn mounts(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    fn path(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

fn differ_at_rest(one: &Seen, other: &Seen) -> bool {
    let rests = |seen: &Seen| Seen::of(&seen.path).is_ok_and(|again| again.changed == seen.changed);
    one.born.zip(other.born).is_some() && one.changed != other.changed && rests(one) && rests(other)
}

/// These have no block device number.
const OWN_DATA: [&str; 8] =
    ["btrfs", "bcachefs", "zfs", "tmpfs", "ramfs", "rootfs", "devtmpfs", "hugetlbfs"];

fn is_plain(dev: (u32, u32), mount: Option<&Mount>) -> bool {
    let fs_type = mount.map(|mount| mount.fs_type.as_str());
    fs_type != Some("overlay")
        && (dev.0 != 0 || fs_type.is_some_and(|kind| OWN_DATA.contains(&kind)))
}

pub(super) fn processes(roots: &Roots) -> impl Iterator<Item = String> + use<> {
    names(&roots.proc).into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// False if the kernel does not show it.
pub fn is_same_data(roots: &Roots, one: &Path, other: &Path) -> bool {
    let (Ok(one), Ok(other)) = (Seen::of(one), Seen::of(other)) else { return false };
    Namespaces::visible(roots).compare(&one, &other) == Sameness::Same
}
