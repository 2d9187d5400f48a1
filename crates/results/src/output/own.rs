//! The mark of an output: how a later run knows what halfpower wrote and nobody has changed since, whatever its format.
//!
//! It is the length and a checksum of the content. An extended attribute holds it, with a number that fits the file's own
//! ([`machine::mark::mark`]), so that a copy does not bear it. Where no attribute can be written, a hidden file beside the output does.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How a hidden file beside an output begins.
const TITLE: &str = "halfpower output ";

/// A mark is shorter.
const LONGEST: usize = 128;

/// What a mark says of the content: its length, and its checksum (FNV-1a).
fn state(mut content: impl Read) -> io::Result<String> {
    let (mut length, mut hash) = (0, 0xCBF2_9CE4_8422_2325u64);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = match content.read(&mut buffer) {
            Ok(0) => return Ok(format!("{length} {hash:016x}")),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        length += read as u64;
        hash = buffer[..read].iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3));
    }
}

/// Marks an output with this content: a file that has its name already, or will be renamed to it. What cannot be marked is no failure: the next
/// run asks for --force.
pub(super) fn mark(path: &Path, file: &File, content: &[u8]) {
    let Ok(state) = state(content) else { return };
    if !attribute::write(file, &state) {
        let _ = write_beside(path, &state);
    }
}

/// Whether a file is as halfpower wrote it under this name. It is read only where it has a mark, and the length that the mark says.
pub(super) fn is_own(path: &Path, file: &File) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    let told = attribute::read(file, &metadata).or_else(|| read_beside(path, &metadata));
    let same =
        |told: String| told.starts_with(&format!("{} ", metadata.len())) && state(file).is_ok_and(|is| is == told);
    told.is_some_and(same)
}

/// The hidden file beside an output; a test file has one of another name.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".halfpower-output");
    path.with_file_name(name)
}

fn write_beside(path: &Path, state: &str) -> io::Result<()> {
    let beside = beside(path);
    // Whatever stands there: only what is a mark itself is replaced.
    if mark_of(&beside).is_some() {
        fs::remove_file(&beside)?;
    }
    io::Write::write_all(&mut File::create_new(&beside)?, format!("{TITLE}{state}\n").as_bytes())
}

/// What the file beside an output says, if both have one owner: in a directory of many users anybody can put one there.
fn read_beside(path: &Path, output: &Metadata) -> Option<String> {
    let (state, metadata) = mark_of(&beside(path))?;
    is_one_owner(output, &metadata).then_some(state)
}

fn mark_of(beside: &Path) -> Option<(String, Metadata)> {
    let metadata = fs::symlink_metadata(beside).ok().filter(Metadata::is_file)?;
    let mut text = String::new();
    File::open(beside).ok()?.take(LONGEST as u64).read_to_string(&mut text).ok()?;
    Some((text.strip_prefix(TITLE)?.trim_end().to_owned(), metadata))
}

#[cfg(unix)]
fn is_one_owner(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    a.uid() == b.uid()
}

#[cfg(not(unix))]
fn is_one_owner(_: &Metadata, _: &Metadata) -> bool {
    true
}

#[cfg(not(unix))]
mod attribute {
    use super::{File, Metadata};

    pub(super) fn write(_: &File, _: &str) -> bool {
        false
    }

    pub(super) fn read(_: &File, _: &Metadata) -> Option<String> {
        None
    }
}

#[cfg(unix)]
mod attribute {
    use super::{File, LONGEST, Metadata};
    use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
    use std::hash::{BuildHasher, Hasher, RandomState};
    use std::os::unix::fs::MetadataExt;

    /// The extended attribute. A test file has another: no output passes for one.
    const ATTRIBUTE: &str = "user.halfpower.output";

    /// Whether the attribute could be written.
    pub(super) fn write(file: &File, state: &str) -> bool {
        let random = RandomState::new().build_hasher().finish();
        let Ok(inode) = file.metadata().map(|metadata| metadata.ino()) else { return false };
        let text = format!("{} {state}", machine::mark::mark(random, inode));
        fsetxattr(file, ATTRIBUTE, text.as_bytes(), XattrFlags::empty()).is_ok()
    }

    /// What the attribute says; of another file's nothing.
    pub(super) fn read(file: &File, metadata: &Metadata) -> Option<String> {
        let mut text = [0u8; LONGEST];
        let length = fgetxattr(file, ATTRIBUTE, &mut text[..]).ok()?;
        let text = String::from_utf8_lossy(text.get(..length)?).into_owned();
        let (mark, state) = text.split_once(' ')?;
        Some(if machine::mark::is_mark(mark, metadata.ino()) { state.to_owned() } else { String::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_beside_tells_an_output_as_it_was_written_and_replaces_nothing_of_the_users() {
        let here = tempfile::tempdir().unwrap();
        let (output, hidden) = (here.path().join("l_bw.1.log"), here.path().join(".l_bw.1.log.halfpower-output"));
        fs::write(&output, "1, 2\n").unwrap();
        let is_own = || is_own(&output, &File::open(&output).unwrap());
        assert!(!is_own());
        fs::write(&hidden, "mine").unwrap();
        assert!(write_beside(&output, "5 0").is_err() && !is_own());
        assert_eq!(fs::read_to_string(&hidden).unwrap(), "mine");
        fs::remove_file(&hidden).unwrap();
        for content in ["3, 4\n", "5, 6\n"] {
            fs::write(&output, content).unwrap();
            assert!(!is_own(), "changed since");
            write_beside(&output, &state(content.as_bytes()).unwrap()).unwrap();
            assert!(is_own());
        }
        let copy = here.path().join("copy");
        fs::copy(&output, &copy).unwrap();
        assert!(!super::is_own(&copy, &File::open(&copy).unwrap()));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_or_another_users_file_beside_is_no_mark() {
        let here = tempfile::tempdir().unwrap();
        let (output, elsewhere) = (here.path().join("out"), here.path().join("elsewhere"));
        fs::write(&output, "text").unwrap();
        let mark = format!("{TITLE}{}\n", state(&b"text"[..]).unwrap());
        fs::write(&elsewhere, &mark).unwrap();
        std::os::unix::fs::symlink(&elsewhere, beside(&output)).unwrap();
        let is_own = || is_own(&output, &File::open(&output).unwrap());
        assert!(!is_own());
        fs::remove_file(beside(&output)).unwrap();
        fs::write(beside(&output), &mark).unwrap();
        assert!(is_own());
        // Only root can give a file away.
        if std::os::unix::fs::chown(beside(&output), Some(12_345), None).is_ok() {
            assert!(!is_own());
        }
    }
}
