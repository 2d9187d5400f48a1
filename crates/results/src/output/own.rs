//! The mark of an output: how a later run knows what halfpower wrote and nobody has changed since, whatever its format.
//!
//! It is an extended attribute with a number that fits the file's own ([`machine::mark::mark`]), so that a copy does not bear it, and the length
//! and a checksum of the content, so that what somebody wrote into the file is his.

use std::fs::File;
use std::io::{self, Read};

/// What the mark of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The file is as halfpower wrote it.
    Own,
    /// There is none, or it is another file's, or of another content.
    Missing,
    /// The file system has no attributes.
    Unsupported,
}

/// FNV-1a of a file's content from where it stands, and its length.
fn sum(mut file: &File) -> io::Result<(u64, u64)> {
    let (mut length, mut hash) = (0, 0xCBF2_9CE4_8422_2325u64);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => return Ok((length, hash)),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        length += read as u64;
        hash = buffer[..read].iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3));
    }
}

/// Marks a file that was written in full.
#[cfg(not(unix))]
pub(super) fn mark(_: &File) {}

/// What the mark of a file says.
#[cfg(not(unix))]
pub(super) fn read(_: &File) -> Mark {
    Mark::Unsupported
}

#[cfg(unix)]
pub(super) use of_unix::{mark, read};

#[cfg(unix)]
mod of_unix {
    use super::{File, Mark, sum};
    use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
    use rustix::io::Errno;
    use std::hash::{BuildHasher, Hasher, RandomState};
    use std::io::{Seek, SeekFrom};
    use std::os::unix::fs::MetadataExt;

    /// The extended attribute. A test file has another: no output passes for one.
    const ATTRIBUTE: &str = "user.halfpower.output";

    /// A mark is shorter.
    const LONGEST: usize = 128;

    /// Marks a file that was written in full. A file system without attributes is no failure: there the content has to tell.
    pub(in crate::output) fn mark(mut file: &File) {
        let random = RandomState::new().build_hasher().finish();
        let Ok(inode) = file.metadata().map(|metadata| metadata.ino()) else { return };
        let Ok((length, sum)) = file.seek(SeekFrom::Start(0)).and_then(|_| sum(file)) else { return };
        let text = format!("{} {length} {sum:016x}", machine::mark::mark(random, inode));
        let _ = fsetxattr(file, ATTRIBUTE, text.as_bytes(), XattrFlags::empty());
    }

    /// What the mark of a file says. The file is read only where it has one that fits.
    pub(in crate::output) fn read(file: &File) -> Mark {
        let mut text = [0u8; LONGEST];
        let text = match fgetxattr(file, ATTRIBUTE, &mut text[..]) {
            Ok(length) => String::from_utf8_lossy(&text[..length]).into_owned(),
            Err(Errno::OPNOTSUPP) => return Mark::Unsupported,
            Err(_) => return Mark::Missing,
        };
        let Ok(metadata) = file.metadata() else { return Mark::Missing };
        let (mark, state) = text.split_once(' ').unwrap_or_default();
        let fits = machine::mark::is_mark(mark, metadata.ino()) && state.starts_with(&format!("{} ", metadata.len()));
        let same = fits && sum(file).is_ok_and(|(length, sum)| state == format!("{length} {sum:016x}"));
        if same { Mark::Own } else { Mark::Missing }
    }
}
