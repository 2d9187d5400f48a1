//! The file of another process's descriptor: by the open file, never by its name.

use apptrace::{Kind, OpenFile, TracedFile};
use std::fs::{self, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::SystemTime;

/// Device, inode, name: a deleted file's number can come back under another name.
pub(super) type Identity = (u64, u64, String);

#[derive(Clone)]
pub(super) struct Found {
    pub(super) identity: Identity,
    pub(super) file: TracedFile,
    pub(super) open: OpenFile,
    pub(super) position: Option<u64>,
    pub(super) ends_at_exec: bool,
}

pub(super) fn look(thread: i32, descriptor: i32) -> Option<Found> {
    let path = format!("/proc/{thread}/fd/{descriptor}");
    // Follows the kernel's link to the open file itself.
    let metadata = fs::metadata(&path).ok()?;
    let name = fs::read_link(&path).ok()?.to_string_lossy().into_owned();
    let name = match name.strip_suffix(" (deleted)") {
        Some(name) if metadata.nlink() == 0 => name.to_owned(),
        _ => name,
    };
    let info = fs::read_to_string(format!("/proc/{thread}/fdinfo/{descriptor}")).ok();
    let entry = |key: &str| {
        let line = info.as_deref()?.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim().to_owned())
    };
    let flags = entry("flags:").and_then(|text| i32::from_str_radix(&text, 8).ok());
    let position = entry("pos:").and_then(|text| text.parse().ok());
    let kind = kind(&metadata, &name);
    // All pipes and sockets are one file each: their numbers mean nothing later.
    let is_numbered = kind == Kind::Stream && !name.starts_with('/');
    let name = match name.split_once(':') {
        Some((sort, _)) if is_numbered => sort.to_owned(),
        _ => name,
    };
    let size_bytes = (kind == Kind::Regular).then_some(metadata.len());
    let of_device = metadata.file_type().is_block_device().then_some((0, metadata.rdev()));
    let of_stream = is_numbered.then_some((0, 0));
    let (device, inode) = of_device.or(of_stream).unwrap_or((metadata.dev(), metadata.ino()));
    Some(Found {
        identity: (device, inode, name.clone()),
        file: TracedFile { name, kind, size_bytes },
        open: open_file(flags.unwrap_or(0)),
        position,
        ends_at_exec: flags.unwrap_or(0) & libc::O_CLOEXEC != 0,
    })
}

/// The file that a program named, unless it was found at its descriptor, which may be another one's
/// by now.
pub(super) fn by_name(
    thread: i32,
    found: Option<Found>,
    given: &Path,
    flags: i32,
    began: SystemTime,
) -> Option<Found> {
    // Such names mean a file of the process that opens them.
    let is_own = |start: &&str| given.starts_with(start);
    if OWN_NAMES.iter().any(is_own) && (found.is_some() || is_descriptor(given)) {
        return found;
    }
    if let Some(found) = &found
        && given
            .file_name()
            .is_some_and(|name| Path::new(&found.file.name).file_name() == Some(name))
    {
        return Some(found.clone());
    }
    let is_ours = is_in_our_mounts(thread);
    let metadata = fs::metadata(given).ok().filter(|_| is_ours && !given.starts_with("/proc"));
    let at = metadata.as_ref().map(|metadata| (metadata.dev(), metadata.ino()));
    if let Some(found) = found
        && at == Some((found.identity.0, found.identity.1))
    {
        return Some(found);
    }
    // The directory is there more often than the file.
    let named = given
        .parent()
        .zip(given.file_name())
        .and_then(|(directory, name)| Some(fs::canonicalize(directory).ok()?.join(name)));
    let full = fs::canonicalize(given).ok().or(named).filter(|_| is_ours);
    let full = full.unwrap_or_else(|| given.to_owned());
    let name = full.to_string_lossy().into_owned();
    let kind = match &metadata {
        Some(metadata) => kind(metadata, &name),
        None if is_virtual(&name) => Kind::Stream,
        None => Kind::Regular,
    };
    // A file that this call made had no bytes then. Without its time of birth it may be older.
    let size_bytes = metadata.as_ref().filter(|_| kind == Kind::Regular).and_then(|metadata| {
        if flags & libc::O_CREAT == 0 {
            return Some(metadata.len());
        }
        let made = metadata.created().ok()?;
        Some(if made < began { metadata.len() } else { 0 })
    });
    let identity = metadata.as_ref().map(|metadata| match metadata.file_type().is_block_device() {
        true => (0, metadata.rdev()),
        false => (metadata.dev(), metadata.ino()),
    });
    // Of a file that is gone only the name is known.
    let (device, inode) = identity.unwrap_or((u64::MAX, 0));
    Some(Found {
        identity: (device, inode, name.clone()),
        file: TracedFile { name, kind, size_bytes },
        open: open_file(flags),
        position: Some(0),
        ends_at_exec: flags & libc::O_CLOEXEC != 0,
    })
}

/// Names that mean another file in each process.
const OWN_NAMES: [&str; 5] = ["/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

fn is_descriptor(name: &Path) -> bool {
    name.starts_with("/dev") || name.components().any(|part| part.as_os_str() == "fd")
}

pub(super) fn descriptor_of(name: &Path) -> Option<i32> {
    let starts = ["/proc/self/fd", "/proc/thread-self/fd", "/dev/fd"];
    let number = starts.iter().find_map(|start| name.strip_prefix(start).ok())?;
    number.to_str()?.parse().ok()
}

/// A thread that is gone counts as ours.
fn is_in_our_mounts(thread: i32) -> bool {
    let of = |thread: &str| fs::read_link(format!("/proc/{thread}/ns/mnt")).ok();
    of(&thread.to_string()).is_none_or(|mounts| Some(mounts) == of("self"))
}

pub(super) fn device_name((major, minor): (u32, u32)) -> String {
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}")).ok();
    let name = link.as_deref().and_then(|link| link.file_name());
    match name {
        Some(name) => format!("/dev/{}", name.to_string_lossy()),
        None => format!("device {major}:{minor}"),
    }
}

fn kind(metadata: &Metadata, name: &str) -> Kind {
    let kind = metadata.file_type();
    if kind.is_dir() {
        Kind::Directory
    } else if kind.is_block_device() {
        Kind::BlockDevice
    } else if kind.is_file() && !(is_virtual(name) && rustix::fs::major(metadata.dev()) == 0) {
        Kind::Regular
    } else {
        Kind::Stream
    }
}

fn is_virtual(name: &str) -> bool {
    ["/proc/", "/sys/", "/dev/shm/", "/memfd:"].iter().any(|start| name.starts_with(start))
}

pub(super) fn open_file(flags: i32) -> OpenFile {
    OpenFile {
        direct: flags & libc::O_DIRECT != 0,
        dsync: flags & libc::O_DSYNC != 0,
        append: flags & libc::O_APPEND != 0,
        metadata: false,
    }
}

/// Names as they are, or as hashes with a key that is never written.
pub(super) struct Names(Option<RandomState>);

impl Names {
    pub(super) fn new(anonymous: bool) -> Names {
        Names(anonymous.then(RandomState::new))
    }

    pub(super) fn are_hidden(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn show(&self, name: String) -> String {
        match &self.0 {
            None => name,
            Some(key) => format!("{:016x}", key.hash_one(name)),
        }
    }
}
