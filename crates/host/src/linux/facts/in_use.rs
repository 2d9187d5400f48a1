//! Who uses a device or file: what must not be written.

use super::{Roots, block, file_system, layers, mounts, names, number, text};
use std::fs::OpenOptions;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Who holds a block device or one of its partitions, by its kernel name (`sda`): each a part of a sentence, such as
/// `sda1 is mounted on /boot`.
pub fn holders(roots: &Roots, name: &str) -> Vec<String> {
    let mounted = mounted(roots);
    let swaps = swaps(roots);
    let mut told = Vec::new();
    for part in [name.to_owned()].into_iter().chain(partitions(roots, name)) {
        for (_, mount_point) in mounted.iter().filter(|(device, _)| *device == part) {
            told.push(format!("{part} is mounted on {mount_point}"));
        }
        if swaps.iter().any(|swap| layers::device_of_node(roots, swap).is_some_and(|device| device == part)) {
            told.push(format!("{part} is swap space in use"));
        }
        let dir = block::directory(roots, &part);
        for holder in names(dir.join("holders")) {
            let shown = text(block::directory(roots, &holder).join("dm/name"))
                .map_or(holder.clone(), |own| format!("{holder} ({own})"));
            told.push(format!("{part} is a part of {shown}"));
        }
        for (device, backing) in loop_backings(roots) {
            if backing.device(roots).is_some_and(|on| on == part) {
                told.push(format!("{part} is what the loop device {device} is on"));
            }
        }
    }
    told
}

/// Why a block device or file must not be written, in a sentence; `None` where nothing is known to use it. What it
/// bears ([`super::signature`]) is another question.
pub fn device_in_use(roots: &Roots, path: &Path) -> Option<String> {
    let uses = uses(roots, path);
    (!uses.is_empty()).then(|| format!("{} is in use: {}", path.display(), uses.join(", ")))
}

/// What uses a block device or file: each a part of a sentence.
pub(crate) fn uses(roots: &Roots, path: &Path) -> Vec<String> {
    if let Some(name) = layers::device_of_node(roots, path) {
        // A partition is in use when what is on the whole disk is, and the other way round.
        let disk = block::disk_of_partition(roots, &name);
        let mut told = holders(roots, &name);
        if let Some(disk) = &disk {
            let whole = mounted(roots).into_iter().find(|(device, _)| device == disk);
            told.extend(whole.map(|(device, mount_point)| format!("{device} is mounted on {mount_point}")));
            told.extend(loops_over_a_partition(roots, disk, &name));
        }
        if told.is_empty() && roots.is_this_machine() && held_exclusively(path) {
            told.push("another program or the kernel holds it exclusively".into());
        }
        let whole = disk.as_ref().unwrap_or(&name);
        told.extend(uses_of_the_same_bytes(roots, whole));
        told.extend(uses_below(roots, whole));
        return told;
    }
    let mut told = Vec::new();
    if swaps(roots).iter().any(|swap| same_file(swap, path)) {
        told.push("it is swap space in use".to_owned());
    }
    for (device, _) in loop_backings(roots).into_iter().filter(|(_, backing)| backing.is(path)) {
        told.push(format!("it is what the loop device {device} is on"));
    }
    told
}

/// Uses of other loop devices over the same bytes of the same file.
fn uses_of_the_same_bytes(roots: &Roots, name: &str) -> Vec<String> {
    let all = loop_backings(roots);
    let Some((_, own)) = all.iter().find(|(device, _)| device == name) else { return Vec::new() };
    let others = all.iter().filter(|(device, backing)| device != name && own.overlaps(backing));
    let uses = |device: &String| {
        let told = holders(roots, device);
        let held = told.is_empty() && held_exclusively(&roots.dev.join(device));
        let held = held.then(|| format!("{device} is held exclusively"));
        told.into_iter().chain(held).map(|told| format!("{told}, over the same file")).collect::<Vec<_>>()
    };
    others.flat_map(|(device, _)| uses(device)).collect()
}

/// Loop devices on a whole disk that have bytes in common with one of its partitions.
fn loops_over_a_partition(roots: &Roots, disk: &str, name: &str) -> Vec<String> {
    let sectors = |file: &str| number(block::directory(roots, name).join(file)).unwrap_or(0);
    // Sectors of 512 bytes, whatever the disk's own (sysfs).
    let start = sectors("start").saturating_mul(512);
    let own = start..start.saturating_add(sectors("size").saturating_mul(512));
    let over = loop_backings(roots).into_iter().filter(|(_, backing)| {
        let bytes = match backing {
            Backing::File { bytes, .. } => bytes.clone(),
            Backing::Path(_) => 0..u64::MAX,
        };
        backing.device(roots).is_some_and(|on| on == disk) && bytes.start < own.end && own.start < bytes.end
    });
    over.map(|(device, _)| format!("{disk} is what the loop device {device} is on, over {name}")).collect()
}

/// Uses of the device that a loop device is on, but for the loop device itself.
fn uses_below(roots: &Roots, name: &str) -> Vec<String> {
    let all = loop_backings(roots);
    let own = all.iter().find(|(device, _)| device == name).and_then(|(_, backing)| backing.device(roots));
    let Some(below) = own else { return Vec::new() };
    let itself = format!("is what the loop device {name} is on");
    holders(roots, &below).into_iter().filter(|use_| !use_.ends_with(&itself)).collect()
}

fn partitions(roots: &Roots, name: &str) -> Vec<String> {
    let dir = block::directory(roots, name);
    names(&dir).into_iter().filter(|part| dir.join(part).join("partition").exists()).collect()
}

/// Every block device with a mounted file system, and where. btrfs has several devices, and its mounts no device's
/// number.
fn mounted(roots: &Roots) -> Vec<(String, String)> {
    let mut mounted = Vec::new();
    for mount in mounts::all_mounts(roots).unwrap_or_default() {
        for device in file_system::members(roots, &mount) {
            mounted.push((device, mount.mount_point.display().to_string()));
        }
    }
    mounted
}

/// The devices and files of `/proc/swaps`.
fn swaps(roots: &Roots) -> Vec<PathBuf> {
    let table = text(roots.proc.join("swaps")).unwrap_or_default();
    table
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .map(|path| PathBuf::from(mounts::unescape(path)))
        .collect()
}

/// What a loop device is on.
enum Backing {
    /// By its path, which may lead to another file by now, or lie in another mount namespace.
    Path(PathBuf),
    /// By the numbers of its file: of the file system's device, of the file, and, where it is a device, of that; and the
    /// bytes of it.
    File { dev: u64, inode: u64, rdev: u64, bytes: Range<u64> },
}

impl Backing {
    /// The kernel's name of the device that it is.
    fn device(&self, roots: &Roots) -> Option<String> {
        match *self {
            Backing::Path(ref path) => layers::device_of_node(roots, path),
            Backing::File { rdev: 0, .. } => None,
            Backing::File { rdev, .. } => layers::name_of_number(roots, (libc::major(rdev), libc::minor(rdev))),
        }
    }

    /// Whether they have bytes in common.
    fn overlaps(&self, other: &Backing) -> bool {
        match (self, other) {
            (
                Backing::File { dev, inode, bytes, .. },
                Backing::File { dev: other_dev, inode: other_inode, bytes: other_bytes, .. },
            ) => {
                let common = bytes.start.max(other_bytes.start)..bytes.end.min(other_bytes.end);
                (dev, inode) == (other_dev, other_inode) && !common.is_empty()
            }
            (Backing::Path(own), Backing::Path(other)) => own == other,
            _ => false,
        }
    }

    fn is(&self, path: &Path) -> bool {
        match self {
            Backing::Path(own) => same_file(own, path),
            Backing::File { dev, inode, .. } => {
                std::fs::metadata(path).is_ok_and(|file| (file.dev(), file.ino()) == (*dev, *inode))
            }
        }
    }
}

/// Loop devices in use, with what they are on.
fn loop_backings(roots: &Roots) -> Vec<(String, Backing)> {
    let devices = names(roots.sys.join("class/block"));
    devices
        .into_iter()
        .filter(|name| name.starts_with("loop"))
        .filter_map(|name| {
            let path = text(roots.sys.join("class/block").join(&name).join("loop/backing_file"))?;
            // A partition of a loop device has no such file.
            let asked = if roots.is_this_machine() { backing_of(&roots.dev.join(&name)) } else { None };
            Some((name, asked.unwrap_or(Backing::Path(path.into()))))
        })
        .collect()
}

/// What the kernel says that a loop device is on; `None`: it may not be asked.
fn backing_of(device: &Path) -> Option<Backing> {
    /// The beginning of `struct loop_info64` (linux/loop.h), and the rest of it.
    #[repr(C)]
    struct LoopInfo {
        dev: u64,
        inode: u64,
        rdev: u64,
        offset: u64,
        size_limit: u64,
        rest: [u8; 192],
    }
    const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
    let device = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(device).ok()?;
    let mut info = LoopInfo { dev: 0, inode: 0, rdev: 0, offset: 0, size_limit: 0, rest: [0; 192] };
    // SAFETY: the structure is as long as the kernel's, 232 bytes.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &mut info) };
    // The kernel has its numbers in the encoding of the C library's dev_t for all but very large minors.
    let end = if info.size_limit == 0 { u64::MAX } else { info.offset.saturating_add(info.size_limit) };
    (result == 0).then_some(Backing::File {
        dev: info.dev,
        inode: info.inode,
        rdev: info.rdev,
        bytes: info.offset..end,
    })
}

/// By what the paths lead to, where they lead anywhere; two names of one file are one file.
fn same_file(one: &Path, other: &Path) -> bool {
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => one == other,
    }
}

/// Whether the kernel refuses to share a block device: it is mounted (perhaps where this process cannot see it), a part
/// of a volume, or opened by a tool that does not share.
fn held_exclusively(path: &Path) -> bool {
    let is_device = std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_NONBLOCK).open(path);
    is_device && opened.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}
