//! Discards data, so that a drive can erase its flash in advance.

use super::member::Member;
use machine::{Error, Result, TargetKind};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Few enough bytes for a prompt interrupt.
const STEP: u64 = 64 << 30;

pub(crate) fn discard(member: &Member, interrupted: impl Fn() -> bool) -> Result<()> {
    let shown = member.path.display().to_string();
    if !member.writable {
        let why = "it was there before and is only read";
        return Err(Error::refused(shown, why, "name it again after --destroy-data to write it"));
    }
    let file = member.open_with(true, 0).map_err(Error::io("cannot open", &member.path))?;
    for from in (0..member.size).step_by(STEP as usize) {
        if interrupted() {
            return Err(Error::Interrupted);
        }
        let bytes = STEP.min(member.size - from);
        let done = match member.kind {
            TargetKind::Device => device(&file, from, bytes),
            _ => punch(&file, from, bytes),
        };
        done.map_err(|error| match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::ENOSYS) => {
                Error::NoDiscard(shown.to_string())
            }
            _ => Error::io("cannot discard the data of", &member.path)(error),
        })?;
    }
    Ok(())
}

fn device(file: &File, from: u64, bytes: u64) -> io::Result<()> {
    /// `_IO(0x12, 119)`; linux/fs.h
    const BLKDISCARD: libc::c_ulong = 0x1277;
    // The kernel takes whole sectors.
    let range: [u64; 2] = [from, bytes / 512 * 512];
    // SAFETY: the kernel reads two u64, which live until the call is over.
    match unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD as _, &range) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reserves the space again, so that later writes find room.
fn punch(file: &File, from: u64, bytes: u64) -> io::Result<()> {
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from, bytes)?;
    match fallocate(file, FallocateFlags::empty(), from, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        other => Ok(other?),
    }
}
