//! Users of a device or file, which must then not be written.

use super::loops::Loop;
use super::same_data::{Namespaces, Sameness, Seen, processes};
use super::{Mount, Roots, block, file_system, layers, mounts, names, number, text};
use std::fs::OpenOptions;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Includes those of partitions: `sda1 is mounted on /boot`.
pub fn holders(roots: &Roots, name: &str) -> Vec<String> {
    held_by(roots, &Namespaces::visible(roots), name)
}

fn held_by(roots: &Roots, spaces: &Namespaces, name: &str) -> Vec<String> {
    let mounted = mounted(roots, spaces);
    let swaps = swaps(roots);
    let mut reported = Vec::new();
    for part in [name.to_owned()].into_iter().chain(partitions(roots, name)) {
        for (_, mount_point) in mounted.iter().filter(|(device, _)| *device == part) {
            reported.push(format!("{part} is mounted on {mount_point}"));
        }
        if swaps
            .iter()
            .any(|swap| layers::device_of_node(roots, swap).is_some_and(|device| device == part))
        {
            reported.push(format!("{part} is swap space in use"));
        }
        let dir = block::directory(roots, &part);
        for holder in names(dir.join("holders")) {
            let shown = text(block::directory(roots, &holder).join("dm/name"))
                .map_or(holder.clone(), |own| format!("{holder} ({own})"));
            reported.push(format!("{part} is a part of {shown}"));
        }
        for one in Loop::all(roots) {
            if one.device(roots).is_some_and(|on| on == part) {
                reported.push(format!("{part} is what the loop device {} is on", one.name));
            }
        }
    }
    reported
}

/// Ignores contents: see [`super::signature()`].
pub fn device_in_use(roots: &Roots, path: &Path) -> Option<String> {
    let held = uses(roots, &Namespaces::visible(roots), path, None).held;
    (!held.is_empty()).then(|| format!("{} is in use: {}", path.display(), held.join(", ")))
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Uses {
    pub(crate) held: Vec<String>,
    pub(crate) unknown: Vec<String>,
}

impl Uses {
    fn note(&mut self, sameness: Sameness, held: String, unknown: impl FnOnce() -> String) {
        match sameness {
            Sameness::Same => self.held.push(held),
            Sameness::Unknown => self.unknown.push(unknown()),
            Sameness::Different => {}
        }
    }
}

/// `is_written`: open for writing anywhere, if known.
pub(crate) fn uses(
    roots: &Roots,
    spaces: &Namespaces,
    path: &Path,
    is_written: Option<bool>,
) -> Uses {
    let mut uses = Uses::default();
    if roots.is_this_machine() && !roots.sys.join("class/block").exists() {
        let why = "loop devices and volumes may be on it: /sys is not mounted (mount -t sysfs sysfs /sys)";
        uses.unknown.push(why.into());
    }
    if let Some(name) = layers::device_of_node(roots, path) {
        // A partition is in use if its whole disk is, and vice versa.
        let disk = block::disk_of_partition(roots, &name);
        let held = &mut uses.held;
        held.extend(held_by(roots, spaces, &name));
        if let Some(disk) = &disk {
            let whole = mounted(roots, spaces).into_iter().find(|(device, _)| device == disk);
            held.extend(
                whole.map(|(device, mount_point)| format!("{device} is mounted on {mount_point}")),
            );
            held.extend(loops_over_a_partition(roots, disk, &name));
        }
        if held.is_empty() && roots.is_this_machine() && held_exclusively(path) {
            held.push("another program or the kernel holds it exclusively".into());
        }
        let whole = disk.as_ref().unwrap_or(&name);
        uses_below(roots, spaces, whole, &mut uses);
    } else if roots.is_this_machine()
        && let Ok(file) = Seen::of(path)
    {
        uses_of_file(roots, spaces, &file, &mut uses);
        for one in Loop::all(roots) {
            // No writer has the file open, so no writable loop device uses it.
            let writes_elsewhere =
                is_written == Some(false) && spaces.is_plain(&file) && !one.is_read_only;
            let sameness = one.is_on(spaces, &file);
            if !(writes_elsewhere && sameness == Sameness::Unknown) {
                let held = format!("it is what the loop device {} is on", one.name);
                uses.note(sameness, held, || {
                    format!(
                        "the loop device {} may be on it: no path leads to that device's file",
                        one.name
                    )
                });
            }
        }
    }
    uses
}

fn uses_of_file(roots: &Roots, spaces: &Namespaces, file: &Seen, uses: &mut Uses) {
    for swap in swaps(roots).iter().filter_map(|swap| spaces.find(swap, None)) {
        let unknown = || "it may be swap space in use".to_owned();
        uses.note(spaces.compare(file, &swap), "it is swap space in use".to_owned(), unknown);
    }
    for (source, mount) in spaces.mounted_files() {
        let at = mount.mount_point.display();
        let unknown = || format!("it may be what is mounted on {at}");
        uses.note(spaces.compare(file, &source), format!("it is mounted on {at}"), unknown);
    }
}

fn loops_over_a_partition(roots: &Roots, disk: &str, name: &str) -> Vec<String> {
    let sectors = |file: &str| number(block::directory(roots, name).join(file)).unwrap_or(0);
    // 512-byte sectors on every disk (sysfs).
    let start = sectors("start").saturating_mul(512);
    let own = start..start.saturating_add(sectors("size").saturating_mul(512));
    let over = Loop::all(roots).into_iter().filter(|one| {
        let is_over = one.bytes.start < own.end && own.start < one.bytes.end;
        is_over && one.device(roots).is_some_and(|on| on == disk)
    });
    over.map(|one| format!("{disk} is what the loop device {} is on, over {name}", one.name))
        .collect()
}

fn uses_below(roots: &Roots, spaces: &Namespaces, name: &str, uses: &mut Uses) {
    let all = Loop::all(roots);
    let Some(own) = all.iter().find(|one| one.name == name) else { return };
    for other in all.iter().filter(|other| other.name != name && own.overlaps(spaces, other)) {
        let others = held_by(roots, spaces, &other.name);
        let held = others.is_empty() && held_exclusively(&roots.dev.join(&other.name));
        let held = held.then(|| format!("{} is held exclusively", other.name));
        uses.held.extend(
            others.into_iter().chain(held).map(|use_| format!("{use_}, over the same file")),
        );
    }
    if let Some(below) = own.device(roots) {
        let itself = format!("is what the loop device {name} is on");
        uses.held.extend(
            held_by(roots, spaces, &below).into_iter().filter(|use_| !use_.ends_with(&itself)),
        );
    } else if let Some(file) = own.file(spaces) {
        uses_of_file(roots, spaces, &file, uses);
    }
}

fn partitions(roots: &Roots, name: &str) -> Vec<String> {
    let dir = block::directory(roots, name);
    names(&dir).into_iter().filter(|part| dir.join(part).join("partition").exists()).collect()
}

/// Finds all devices of btrfs, whose mounts show no block device's number.
fn mounted(roots: &Roots, spaces: &Namespaces) -> Vec<(String, String)> {
    let mut mounted = Vec::new();
    for mount in spaces.mounts() {
        for device in file_system::members(roots, mount) {
            mounted.push((device, mount.mount_point.display().to_string()));
        }
    }
    mounted
}

fn swaps(roots: &Roots) -> Vec<PathBuf> {
    let table = text(roots.proc.join("swaps")).unwrap_or_default();
    table
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .map(|path| PathBuf::from(mounts::unescape(path)))
        .collect()
}

fn held_exclusively(path: &Path) -> bool {
    let is_device =
        std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
    let opened =
        OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_NONBLOCK).open(path);
    is_device && opened.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}

/// Omits `others`. `Some(false)` for `is_written` usually saves the search.
pub(crate) fn users(
    roots: &Roots,
    spaces: &Namespaces,
    path: &Path,
    is_written: Option<bool>,
    others: &[u32],
) -> Uses {
    let mut uses = Uses::default();
    let Ok(own) = Seen::of(path) else { return uses };
    let is_fuse = |mount: &&Mount| mount.fs_type.starts_with("fuse");
    // A file on FUSE belongs to its server.
    let served = spaces.mounts().iter().any(is_fuse)
        && !spaces.mount_of(&own).is_some_and(|mount| is_fuse(&mount));
    if is_written == Some(false) && spaces.is_plain(&own) && !served {
        return uses;
    }
    let mut allowed: Vec<String> = others.iter().map(u32::to_string).collect();
    allowed.push(std::process::id().to_string());
    for process in processes(roots).filter(|process| !allowed.contains(process)) {
        let directory = roots.proc.join(&process);
        let of = |file: String| {
            let leads_to = std::fs::read_link(directory.join("fd").join(&file)).unwrap_or_default();
            // Sockets, pipes and the like have no path.
            leads_to.is_absolute().then_some((file, leads_to))
        };
        let files: Vec<(String, PathBuf)> =
            names(directory.join("fd")).into_iter().filter_map(of).collect();
        // A server may open the file it serves read-only.
        let serves = served && files.iter().any(|(_, leads_to)| leads_to == Path::new("/dev/fuse"));
        let sameness = |(file, _): &(String, PathBuf)| {
            let sameness = spaces.compare(&own, &Seen::of(&directory.join("fd").join(file)).ok()?);
            let is_use = sameness != Sameness::Different
                && (serves || is_for_writing(&directory.join("fdinfo").join(file)));
            is_use.then_some(sameness)
        };
        let all: Vec<Sameness> = files.iter().filter_map(sameness).collect();
        let Some(found) =
            [Sameness::Same, Sameness::Unknown].into_iter().find(|one| all.contains(one))
        else {
            continue;
        };
        let name = text(directory.join("comm")).unwrap_or_default();
        let (does, may) = if serves {
            ("serves a file system from it", "may serve a file system from it")
        } else {
            ("has it open for writing", "may have it open for writing")
        };
        let process = format!("{name} (process {process})");
        uses.note(found, format!("{process} {does}"), || format!("{process} {may}"));
    }
    // NFS and SMB grant a lease only if the server agrees.
    if uses.held.is_empty() && is_written == Some(true) && spaces.is_local(&own) {
        uses.held.push("another program or the kernel has it open for writing".into());
    }
    uses
}

/// `info` is a file in `/proc/PID/fdinfo` (proc(5)).
fn is_for_writing(info: &Path) -> bool {
    let info = text(info).unwrap_or_default();
    let flags = info
        .lines()
        .find_map(|line| i32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    // O_PATH allows neither reads nor writes.
    flags
        .is_some_and(|flags| flags & libc::O_PATH == 0 && flags & libc::O_ACCMODE != libc::O_RDONLY)
}
