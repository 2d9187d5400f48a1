//! A mark lets a later run recognise an unchanged output: length and checksum in an extended
//! attribute, with the file's number ([`machine::mark::mark`]), or in a hidden file next to it.

use files::{Directory, Input, has_same_owner};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read};

/// The hidden file's title.
const TITLE: &str = "halfpower output ";

const LONGEST: usize = 128;

const BESIDE: Input = Input::new("a mark of halfpower", LONGEST as u64);

/// Length and checksum (FNV-1a).
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
        hash = buffer[..read]
            .iter()
            .fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3));
    }
}

/// Without a mark the next run asks for --force, so failing to mark is not an error.
pub(super) fn mark(directory: &Directory, name: &OsStr, file: &File, content: impl Read) {
    let Ok(state) = state(content) else { return };
    if attribute::write(file, &state).is_err() {
        let _ = write_beside(directory, name, &state);
    }
}

/// Reads the file only if it has a mark with its length.
pub(super) fn is_own(directory: &Directory, name: &OsStr, file: &File) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    let reported =
        attribute::read(file, &metadata).or_else(|| read_beside(directory, name, &metadata));
    let same = |reported: String| {
        reported.starts_with(&format!("{} ", metadata.len()))
            && state(file.take(metadata.len())).is_ok_and(|is| is == reported)
    };
    reported.is_some_and(same)
}

/// A test file's hidden file has another name.
fn beside(name: &OsStr) -> OsString {
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(".halfpower-output");
    beside
}

fn write_beside(directory: &Directory, name: &OsStr, state: &str) -> io::Result<()> {
    let beside = beside(name);
    // Only a mark is replaced; any other file there stays.
    if mark_of(directory, &beside).is_some() {
        directory.remove(&beside)?;
    }
    io::Write::write_all(
        &mut directory.create(&beside, 0o666)?,
        format!("{TITLE}{state}\n").as_bytes(),
    )
}

/// Requires one owner of both files: in a shared directory any user can put one there.
fn read_beside(directory: &Directory, name: &OsStr, output: &Metadata) -> Option<String> {
    let (state, metadata) = mark_of(directory, &beside(name))?;
    has_same_owner(output, &metadata).then_some(state)
}

fn mark_of(directory: &Directory, beside: &OsStr) -> Option<(String, Metadata)> {
    let file = directory.open_regular(beside).ok()?;
    let metadata = file.metadata().ok()?;
    let text = String::from_utf8(BESIDE.bounded(file).all().ok()?).ok()?;
    Some((text.strip_prefix(TITLE)?.trim_end().to_owned(), metadata))
}

mod attribute {
    use super::{File, LONGEST, Metadata};
    use files::{inode, read_attribute, write_attribute};
    use std::hash::{BuildHasher, Hasher, RandomState};
    use std::io;

    /// Test files have another attribute, so none passes for an output.
    const ATTRIBUTE: &str = "user.halfpower.output";

    pub(super) fn write(file: &File, state: &str) -> io::Result<()> {
        let random = RandomState::new().build_hasher().finish();
        let text = format!("{} {state}", machine::mark::mark(random, inode(&file.metadata()?)?));
        write_attribute(file, ATTRIBUTE, text.as_bytes())
    }

    /// Empty if the mark is another file's.
    pub(super) fn read(file: &File, metadata: &Metadata) -> Option<String> {
        let text = read_attribute(file, ATTRIBUTE, LONGEST).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let (mark, state) = text.split_once(' ')?;
        Some(if machine::mark::is_mark(mark, inode(metadata).ok()?) {
            state.to_owned()
        } else {
            String::new()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_file_beside_tells_an_output_as_it_was_written_and_replaces_nothing_of_the_users() {
        let here = tempfile::tempdir().unwrap();
        let (output, hidden) =
            (here.path().join("l_bw.1.log"), here.path().join(".l_bw.1.log.halfpower-output"));
        fs::write(&output, "1, 2\n").unwrap();
        let directory = Directory::open(here.path()).unwrap();
        let name = OsStr::new("l_bw.1.log");
        let is_own = || is_own(&directory, name, &File::open(&output).unwrap());
        assert!(!is_own());
        fs::write(&hidden, "mine").unwrap();
        assert!(write_beside(&directory, name, "5 0").is_err() && !is_own());
        assert_eq!(fs::read_to_string(&hidden).unwrap(), "mine");
        fs::remove_file(&hidden).unwrap();
        for content in ["3, 4\n", "5, 6\n"] {
            fs::write(&output, content).unwrap();
            assert!(!is_own(), "changed since");
            write_beside(&directory, name, &state(content.as_bytes()).unwrap()).unwrap();
            assert!(is_own());
        }
        let copy = here.path().join("copy");
        fs::copy(&output, &copy).unwrap();
        assert!(!super::is_own(&directory, OsStr::new("copy"), &File::open(&copy).unwrap()));
    }

    #[test]
    fn a_link_or_another_users_file_beside_is_no_mark() {
        let here = tempfile::tempdir().unwrap();
        let (output, elsewhere) = (here.path().join("out"), here.path().join("elsewhere"));
        fs::write(&output, "text").unwrap();
        let mark = format!("{TITLE}{}\n", state(&b"text"[..]).unwrap());
        fs::write(&elsewhere, &mark).unwrap();
        let directory = Directory::open(here.path()).unwrap();
        let beside = here.path().join(beside(OsStr::new("out")));
        std::os::unix::fs::symlink(&elsewhere, &beside).unwrap();
        let is_own = || is_own(&directory, OsStr::new("out"), &File::open(&output).unwrap());
        assert!(!is_own());
        fs::remove_file(&beside).unwrap();
        fs::write(&beside, &mark).unwrap();
        assert!(is_own());
        // Only root can give a file away.
        if std::os::unix::fs::chown(&beside, Some(12_345), None).is_ok() {
            assert!(!is_own());
        }
    }
}
