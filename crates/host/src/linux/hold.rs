//! Acquires existing files and devices for writing: only if unused, and so that no other program
//! can start using them.

use super::owned_file::reopen;
use super::{facts, sys};
use machine::{Error, Result, Sharing, TargetSpec};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

pub(super) fn identity(metadata: &fs::Metadata) -> Identity {
    // Several nodes may lead to one device.
    if metadata.file_type().is_block_device() {
        (0, 0, metadata.rdev())
    } else {
        (metadata.dev(), metadata.ino(), 0)
    }
}

static HELD: Mutex<Option<HashMap<Identity, Weak<File>>>> = Mutex::new(None);

/// The device and inode of a file, or a block device's number.
pub(super) type Identity = (u64, u64, u64);

/// Other programs may close late: a refused run, or the kernel after a program's end.
const CLOSING: Duration = Duration::from_secs(1);

/// Holds a device exclusively (O_EXCL), a file by its lock, while the result lives. A signature, or
/// a possible use that the kernel does not show, needs the user's confirmation.
pub(super) fn hold(file: File, path: &Path, spec: &TargetSpec) -> Result<Arc<File>> {
    let metadata = file.metadata().map_err(Error::io("cannot look at", path))?;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let held = held.get_or_insert_default();
    held.retain(|_, file| file.strong_count() > 0);
    if let Some(file) = held.get(&identity(&metadata)).and_then(Weak::upgrade) {
        return Ok(file);
    }
    let shown = path.display().to_string();
    let in_use = |why: String| Error::refused(&shown, why, "name one that nothing uses");
    let is_device = metadata.file_type().is_block_device();
    let group = match &spec.sharing {
        Some(Sharing::Joins { number, processes }) => {
            check_number(&metadata, *number, path)?;
            Some(processes.as_slice())
        }
        _ => None,
    };
    let unknown = unused(&file, is_device, group).map_err(in_use)?;
    if is_device && sys::is_read_only(&file) {
        let hint = "make it writable (blockdev --setrw), or leave out --destroy-data to read it";
        return Err(Error::refused(&shown, "the device is read-only", hint));
    }
    if is_device && spec.sharing.is_some() {
        return Err(Error::refused(
            shown,
            "a device is held by one process at a time, so several cannot write it together",
            "name a file that all see",
        ));
    }
    // Not before the checks: an overlay copies a lower layer's file as soon as it is opened for
    // writing.
    let exclusively = if is_device { libc::O_EXCL } else { 0 };
    let taken = reopen(&file, true, exclusively).map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY) => in_use("another program or the kernel holds it exclusively".into()),
        _ => explain_open(error, path, true),
    })?;
    if !is_device {
        let locked = match spec.sharing {
            None => sys::try_lock(&taken),
            // Exclusive at first: no other group may have it.
            Some(Sharing::Holds) => sys::try_lock(&taken).and_then(|()| sys::try_share(&taken)),
            Some(Sharing::Joins { .. }) => sys::try_share(&taken),
        };
        locked.map_err(|error| match error.raw_os_error() {
            Some(libc::EWOULDBLOCK) => in_use(OTHER_RUN.into()),
            _ => Error::io("cannot lock for this run", path)(error),
        })?;
    }
    // Those who join rely on the checks of the one who holds it.
    let confirmed = spec.destroy_signed || group.is_some();
    if let (false, false) = (unknown.is_empty(), confirmed) {
        let why = format!("it cannot be ruled out that it is in use: {}", unknown.join(", "));
        return Err(Error::refused(
            shown,
            why,
            "make sure that nothing uses it, then confirm with --destroy-signature",
        ));
    }
    match facts::signature(&sys::path_of(&taken)) {
        Ok(Some(found)) if !confirmed => {
            let hint =
                "if it may be lost, confirm with --destroy-signature, or wipe it first (wipefs)";
            return Err(Error::refused(
                path.display().to_string(),
                format!("it contains {found}"),
                hint,
            ));
        }
        found => found?,
    };
    let taken = Arc::new(taken);
    held.insert(identity(&metadata), Arc::downgrade(&taken));
    Ok(taken)
}

const OTHER_RUN: &str = "another run of halfpower writes it";

pub(super) fn check_number(metadata: &fs::Metadata, number: u64, path: &Path) -> Result<()> {
    if metadata.ino() == number {
        return Ok(());
    }
    Err(Error::refused(
        path.display().to_string(),
        "it is not the file that the first process has opened under this name",
        "name a file on a file system that all hosts see, and let nothing replace it",
    ))
}

/// Possible uses; fails for a certain one. A group's processes may write the file.
fn unused(
    file: &File,
    is_device: bool,
    group: Option<&[u32]>,
) -> std::result::Result<Vec<String>, String> {
    let (roots, own_path) = (facts::Roots::default(), sys::path_of(file));
    let began = Instant::now();
    loop {
        // A lease does not say who writes.
        let is_written = if is_device || group.is_some() { None } else { sys::is_written(file) };
        let spaces = facts::Namespaces::visible(&roots);
        let uses = facts::uses(&roots, &spaces, &own_path, is_written);
        if !uses.held.is_empty() {
            return Err(format!("it is in use: {}", uses.held.join(", ")));
        }
        let users = facts::users(&roots, &spaces, &own_path, is_written, group.unwrap_or_default());
        if users.held.is_empty() {
            return Ok([uses.unknown, users.unknown].concat());
        }
        if !is_device && group.is_none() && sys::is_locked(file) {
            return Err(OTHER_RUN.into());
        }
        if began.elapsed() > CLOSING {
            return Err(format!("it is in use: {}", users.held.join(", ")));
        }
        std::thread::sleep(CLOSING / 50);
    }
}

pub(super) fn explain_open(error: io::Error, path: &Path, write: bool) -> Error {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let to = if write { "no permission to write it" } else { "no permission to read it" };
            Error::refused(
                path.display().to_string(),
                to,
                "run as a user who may (root for a device)",
            )
        }
        Some(libc::ENXIO | libc::ENODEV) => {
            let why = "no driver serves this device node, or it has no medium";
            Error::refused(
                path.display().to_string(),
                why,
                "name a device that is there (lsblk shows them)",
            )
        }
        Some(libc::EROFS) => Error::refused(
            path.display().to_string(),
            "it is read-only",
            "leave out --destroy-data to read it",
        ),
        _ => Error::io("cannot open", path)(error),
    }
}
