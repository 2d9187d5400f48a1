//! Bounded reading of files: waits for no pipe and reads no device.

use crate::system::{is_own_open_file, is_same_file, kind_name, let_wait, open_without_waiting};
use machine::units::show_size;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// A kind of file to read, and its largest size.
///
/// ```
/// use files::Input;
///
/// let name = std::env::temp_dir().join(format!("input-{}", std::process::id()));
/// std::fs::write(&name, "depth = 8")?;
/// assert_eq!(Input::new("a list of jobs", 100).text(&name)?, "depth = 8");
/// assert!(Input::new("a list of jobs", 4).text(&name).is_err());
/// std::fs::remove_file(&name)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    what: &'static str,
    max_bytes: u64,
    is_rewritten: bool,
}

/// The regular files that this process has read.
static READ: Mutex<Vec<Metadata>> = Mutex::new(Vec::new());

/// Returns whether this process has read the file: an output must not replace it.
pub fn was_read(file: &Metadata) -> bool {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    // A file's number goes to another when it is removed.
    let same = |one: &Metadata| is_same_file(one, file) && born(one) == born(file);
    read.iter().any(same)
}

fn born(file: &Metadata) -> Option<SystemTime> {
    file.created().ok()
}

/// For a file that is not read as an [`Input`]. halfpower must not have made it.
pub fn remember_read(file: &Metadata) {
    if file.is_file() && !was_read(file) {
        READ.lock().unwrap_or_else(PoisonError::into_inner).push(file.clone());
    }
}

impl Input {
    /// Takes the name with an article.
    pub const fn new(what: &'static str, max_bytes: u64) -> Input {
        Input { what, max_bytes, is_rewritten: false }
    }

    /// A state that halfpower reads and later replaces.
    pub const fn rewritten(self) -> Input {
        Input { is_rewritten: true, ..self }
    }

    /// Opens a regular file, or an open file of this process (`/dev/stdin`, or `/dev/fd/N` of a
    /// shell's `<(command)`).
    pub fn open(self, path: &Path) -> io::Result<Bounded<File>> {
        let file = open_without_waiting(path)?;
        let metadata = file.metadata()?;
        if !self.is_rewritten {
            remember_read(&metadata);
        }
        if is_own_open_file(path) && !metadata.is_dir() {
            // Its writer may need time.
            let_wait(&file)?;
            return Ok(self.bounded(file));
        }
        check_regular(&metadata)?;
        if metadata.len() > self.max_bytes {
            Err(self.too_large(Some(metadata.len())))
        } else {
            Ok(self.bounded(file))
        }
    }

    pub fn read(self, path: &Path) -> io::Result<Vec<u8>> {
        self.open(path)?.all()
    }

    pub fn text(self, path: &Path) -> io::Result<String> {
        text(self.read(path)?)
    }

    pub fn bounded<R: Read>(self, from: R) -> Bounded<R> {
        Bounded { from, left: self.max_bytes, input: self }
    }

    fn too_large(self, bytes: Option<u64>) -> io::Error {
        let Input { what, max_bytes, .. } = self;
        let (has, max) = (bytes.map_or("more".into(), show_size), show_size(max_bytes));
        io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has {has}, and {what} has at most {max}"),
        )
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Removes a byte-order mark.
pub fn text(mut bytes: Vec<u8>) -> io::Result<String> {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text (UTF-8)"))
}

/// Reads a line without its end; `None` after the last.
///
/// ```
/// let mut from: &[u8] = b"first\r\nlast";
/// assert_eq!(files::next_line(&mut from, 80)?.as_deref(), Some("first"));
/// assert_eq!(files::next_line(&mut from, 80)?.as_deref(), Some("last"));
/// assert_eq!(files::next_line(&mut from, 80)?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn next_line(from: &mut impl BufRead, max_bytes: usize) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if from.take(max_bytes as u64 + 2).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let end = line
        .strip_suffix(b"\n")
        .map_or(line.len(), |rest| rest.strip_suffix(b"\r").unwrap_or(rest).len());
    line.truncate(end);
    if line.len() > max_bytes {
        let why = format!("the line has more than {}", show_size(max_bytes as u64));
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    text(line).map(Some)
}

/// Fails unless the file is regular. Pass an open file's metadata: it cannot be replaced.
pub fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let why = format!("it is {}; name a regular file", kind_name(metadata.file_type()));
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// A reader that fails at the first byte beyond the bound.
#[derive(Debug)]
pub struct Bounded<R> {
    from: R,
    left: u64,
    input: Input,
}

impl<R: Read> Bounded<R> {
    pub fn all(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub fn get_ref(&self) -> &R {
        &self.from
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // One byte more shows that there is more.
        let max =
            usize::try_from(self.left.saturating_add(1)).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.from.read(&mut buffer[..max])?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| self.input.too_large(None))?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Input = Input::new("a small file", 4);

    #[test]
    fn a_reader_ends_at_the_bound() {
        assert_eq!(SMALL.bounded(&b"abcd"[..]).all().unwrap(), b"abcd");
        let error = SMALL.bounded(&b"abcde"[..]).all().unwrap_err();
        assert_eq!(error.to_string(), "it has more, and a small file has at most 4 B");
        assert!(SMALL.bounded(io::repeat(0)).all().is_err());
    }

    #[test]
    fn lines_are_bounded_and_lose_their_ends() {
        let mut text = &b"one\r\ntwo\n\nlast"[..];
        let lines: Vec<String> = std::iter::from_fn(|| next_line(&mut text, 4).unwrap()).collect();
        assert_eq!(lines, ["one", "two", "", "last"]);
        assert!(next_line(&mut &b"longer\n"[..], 4).is_err());
        assert!(next_line(&mut io::BufReader::new(io::repeat(b'x')), 1 << 10).is_err());
    }

    #[test]
    fn what_was_read_is_known_under_each_of_its_names() {
        let here = std::env::temp_dir().join(format!("read-{}", std::process::id()));
        std::fs::create_dir(&here).unwrap();
        let [input, link, state, other] =
            ["input", "link", "state", "other"].map(|name| here.join(name));
        for file in [&input, &state, &other] {
            std::fs::write(file, "abc").unwrap();
        }
        std::fs::hard_link(&input, &link).unwrap();
        SMALL.read(&input).unwrap();
        SMALL.rewritten().read(&state).unwrap();
        let known =
            [&input, &link, &state, &other].map(|file| was_read(&std::fs::metadata(file).unwrap()));
        std::fs::remove_dir_all(&here).unwrap();
        assert_eq!(known, [true, true, false, false]);
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        for (path, kind) in [("/", "a directory"), ("/dev/zero", "a device")] {
            let error = SMALL.read(Path::new(path)).unwrap_err().to_string();
            assert!(error.contains(kind), "{error}");
        }
    }
}
