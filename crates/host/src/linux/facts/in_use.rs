//! Who uses a device or file: what must not be written.

use super::{Roots, block, file_system, layers, mounts, names, text};
use std::fs::OpenOptions;
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
            let shown = text(block::directory(roots, &holder).join("dm/name")).map_or(holder.clone(), |own| format!("{holder} ({own})"));
            told.push(format!("{part} is a part of {shown}"));
        }
        for (device, file) in loop_files(roots) {
            if layers::device_of_node(roots, &file).is_some_and(|device| device == part) {
                told.push(format!("{part} is what the loop device {device} is on"));
            }
        }
    }
    told
}

/// Why a block device or file must not be written, in a sentence; `None` where nothing is known to use it. What it bears
/// ([`super::signature`]) is another question.
pub fn device_in_use(roots: &Roots, path: &Path) -> Option<String> {
    if let Some(name) = layers::device_of_node(roots, path) {
        // A partition is in use when what is on the whole disk is, and the other way round.
        let disk = block::disk_of_partition(roots, &name);
        let mut told = holders(roots, &name);
        if let Some(disk) = &disk {
            let whole = mounted(roots).into_iter().find(|(device, _)| device == disk);
            told.extend(whole.map(|(device, mount_point)| format!("{device} is mounted on {mount_point}")));
        }
        if told.is_empty() && roots.is_this_machine() && held_exclusively(path) {
            told.push("another program or the kernel holds it exclusively".into());
        }
        return sentence(path, told);
    }
    let mut told = Vec::new();
    if swaps(roots).iter().any(|swap| same_file(swap, path)) {
        told.push("it is swap space in use".to_owned());
    }
    for (device, _) in loop_files(roots).into_iter().filter(|(_, file)| same_file(file, path)) {
        told.push(format!("it is what the loop device {device} is on"));
    }
    sentence(path, told)
}

fn sentence(path: &Path, told: Vec<String>) -> Option<String> {
    (!told.is_empty()).then(|| format!("{} is in use: {}", path.display(), told.join(", ")))
}

fn partitions(roots: &Roots, name: &str) -> Vec<String> {
    let dir = block::directory(roots, name);
    names(&dir).into_iter().filter(|part| dir.join(part).join("partition").exists()).collect()
}

/// Every block device with a mounted file system, and where. btrfs has several devices, and its mounts no device's number.
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
    table.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(|path| PathBuf::from(mounts::unescape(path))).collect()
}

/// Loop devices in use, with their files.
fn loop_files(roots: &Roots) -> Vec<(String, PathBuf)> {
    let devices = names(roots.sys.join("class/block"));
    devices
        .into_iter()
        .filter(|name| name.starts_with("loop"))
        .filter_map(|name| {
            let file = text(roots.sys.join("class/block").join(&name).join("loop/backing_file"))?;
            Some((name, PathBuf::from(file)))
        })
        .collect()
}

/// By what the paths lead to, where they lead anywhere; two names of one file are one file.
fn same_file(one: &Path, other: &Path) -> bool {
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => one == other,
    }
}

/// Whether the kernel refuses to share a block device: it is mounted (perhaps where this process cannot see it), a part of a
/// volume, or opened by a tool that does not share.
fn held_exclusively(path: &Path) -> bool {
    let is_device = std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_NONBLOCK).open(path);
    is_device && opened.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}
