//! Files that halfpower writes: one way for every output of every command, and nothing of the user's is overwritten.
//!
//! A character device, a pipe and standard output are written into. Any other output is first written in full to a temporary file of a
//! random name in the same directory, brought to stable storage, and then renamed. The directory is held open from the first check on: whatever
//! becomes of its path, the file goes into that one. A file that is there already is replaced only if it bears the mark of one
//! that halfpower made and nobody changed ([`own`]), or if that was asked for. What a killed run left of a temporary file goes with the next output
//! beside it.

mod own;
mod part;

use machine::directory::{Directory, is_same_file, is_trusted, parent};
use machine::input::is_own_open_file;
use rustix::fs::{Mode, OFlags, openat};
use std::ffi::OsString;
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a file cannot be an output, or could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// It must not be one: said before anything is measured.
    #[error("{option} {}: {why}", path.display())]
    Refused {
        /// The option that named it.
        option: String,
        /// Which file.
        path: PathBuf,
        /// Why, and what to do instead.
        why: String,
    },
    /// It was written, and its directory has another path by now.
    #[error("cannot write {}: its directory was moved or replaced meanwhile; the file is in the directory that was there before", path.display())]
    Moved {
        /// Which file.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
}

/// A place for an output, tried before the measurement.
#[derive(Debug, Clone)]
pub struct Output {
    option: String,
    path: PathBuf,
    /// Its directory and its name there; none for one of the process's own open files.
    at: Option<(Arc<Directory>, OsString)>,
    force: bool,
}

/// What stands under the name of an output.
enum Place {
    /// Nothing yet.
    Free,
    /// A file that may be replaced, as it is now.
    Replaceable(Metadata),
    /// Something that takes bytes and keeps its name.
    Stream,
}

impl Output {
    /// An output that `option` names. `force` replaces files that halfpower did not make, but none of `targets`.
    ///
    /// # Errors
    /// A place that cannot be written, a file of somebody else's, one of `targets`.
    pub fn new(option: &str, path: &Path, force: bool, targets: &[PathBuf]) -> Result<Output, OutputError> {
        let output = Output::at(option, path, force)?;
        if let Some(target) = targets.iter().find(|target| output.is_target(target)) {
            return Err(output.refused(format!(
                "it is what is measured, or lies under it, or is read ({}); name another file",
                target.display()
            )));
        }
        if let (Place::Free | Place::Replaceable(_), Some((directory, _))) = (output.place()?, &output.at) {
            part::remove_leftovers(directory);
            drop(output.temporary(directory)?);
        }
        Ok(output)
    }

    /// The directory of an output, held open, and its name there.
    fn at(option: &str, path: &Path, force: bool) -> Result<Output, OutputError> {
        let mut output = Output { option: option.into(), path: path.into(), at: None, force };
        if !is_own_open_file(path) {
            let name = path.file_name().ok_or_else(|| output.refused("it is a directory; name a file"))?;
            let directory = Directory::held(parent(path)).map_err(|error| output.unusable(parent(path), &error))?;
            output.at = Some((directory, name.to_owned()));
        }
        Ok(output)
    }

    /// Whether it is this file or device, whether or not it is there yet.
    fn is_target(&self, target: &Path) -> bool {
        let Some((directory, name)) = &self.at else { return false };
        match (directory.follow(name), fs::metadata(target)) {
            (Ok(own), Ok(target)) => is_same_file(&own, &target),
            (Err(_), Err(_)) => {
                let above = fs::metadata(parent(target)).ok().zip(directory.metadata().ok());
                above.is_some_and(|(a, b)| is_same_file(&a, &b)) && target.file_name() == Some(name)
            }
            _ => false,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all of the output: nothing or everything is there afterwards, if it is a file.
    ///
    /// # Errors
    /// It cannot be written, or a file of somebody else's has appeared there since.
    pub fn write(&self, bytes: &[u8]) -> Result<(), OutputError> {
        let failed = |source| OutputError::Io { path: self.path.clone(), source };
        let (directory, name) = match (self.place()?, &self.at) {
            (Place::Stream, _) | (_, None) => return self.write_into(bytes).map_err(failed),
            (_, Some(at)) => (&at.0, &at.1),
        };
        let mut temporary = self.temporary(directory)?;
        temporary.file().write_all(bytes).map_err(failed)?;
        temporary.file().sync_all().map_err(failed)?;
        // The file there may have changed since the first look.
        let place = self.place()?;
        if let Place::Replaceable(before) = &place {
            temporary.file().set_permissions(before.permissions()).map_err(failed)?;
        }
        own::mark(directory, name, temporary.file(), bytes);
        match place {
            Place::Replaceable(_) => temporary.replace(name),
            _ => temporary.take_free(name),
        }
        .map_err(failed)?;
        // The rename, too. A directory that cannot be synced is no failure: the file is there.
        let _ = directory.sync();
        if directory.is_in_place() { Ok(()) } else { Err(OutputError::Moved { path: self.path.clone() }) }
    }

    /// Adds to the end of the file, which is made where it is not there.
    ///
    /// # Errors
    /// It cannot be written, or is no place for a report.
    fn add(&self, bytes: &[u8]) -> Result<(), OutputError> {
        let failed = |source| OutputError::Io { path: self.path.clone(), source };
        let (place, directory, name) = match (self.place()?, &self.at) {
            (Place::Stream, _) | (_, None) => return self.write_into(bytes).map_err(failed),
            (place, Some((directory, name))) => (place, directory, name),
        };
        let (mut file, is_ours) = match place {
            Place::Stream | Place::Free => (directory.create(name, 0o666).map_err(failed)?, true),
            Place::Replaceable(before) => {
                let is_ours = is_own(directory, name, before.len()).map_err(failed)?;
                let file = directory.open_to_append(name).map_err(failed)?;
                // What was looked at is what is written.
                if !is_same_file(&before, &file.metadata().map_err(failed)?) {
                    return Err(self.refused("it was replaced at this very moment"));
                }
                (file, is_ours)
            }
        };
        write_and_flush(&mut file, bytes).map_err(failed)?;
        if is_ours {
            own::mark(directory, name, &file, directory.open_regular(name).map_err(failed)?);
        }
        Ok(())
    }

    fn refused(&self, why: impl Into<String>) -> OutputError {
        OutputError::Refused { option: self.option.clone(), path: self.path.clone(), why: why.into() }
    }

    /// A directory in which no file can be made.
    fn unusable(&self, directory: &Path, error: &io::Error) -> OutputError {
        self.refused(match error.kind() {
            io::ErrorKind::NotFound => format!("there is no directory {}; make it first", directory.display()),
            _ => format!("no file can be made in {}: {error}; name another place", directory.display()),
        })
    }

    /// What stands there, if it may be an output.
    fn place(&self) -> Result<Place, OutputError> {
        let Some((directory, name)) = &self.at else { return Ok(Place::Stream) };
        let io = |source| OutputError::Io { path: self.path.clone(), source };
        let itself = match directory.look(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Place::Free),
            Err(error) => return Err(self.refused(format!("it cannot be looked at: {error}"))),
            Ok(metadata) => metadata,
        };
        let is_link = itself.is_symlink();
        let follows = is_link && is_trusted(itself.uid());
        let there = if follows { directory.follow(name).ok() } else { Some(itself) };
        match there {
            Some(there) if is_stream(there.file_type()) => Ok(Place::Stream),
            _ if is_link => Err(self.refused("it is a symbolic link; name the file that it should be")),
            Some(there) if there.is_dir() => Err(self.refused("it is a directory; name a file")),
            Some(there) if !there.is_file() => {
                Err(self.refused("it is a device that keeps data, and no place for a report; name a file"))
            }
            Some(there) if self.force || is_own(directory, name, there.len()).map_err(io)? => {
                Ok(Place::Replaceable(there))
            }
            _ => Err(self.refused(
                "this file is there already, and halfpower did not make it, or it was changed since; name another, or add --force to replace it",
            )),
        }
    }

    /// A new file of a random name in the same directory; it goes when it is dropped.
    fn temporary(&self, directory: &Arc<Directory>) -> Result<part::Part, OutputError> {
        part::make(directory).map_err(|error| self.unusable(directory.path(), &error))
    }

    fn write_into(&self, bytes: &[u8]) -> io::Result<()> {
        let written = match (self.path.to_str(), &self.at) {
            (Some("/dev/stdout"), _) => write_and_flush(&mut io::stdout().lock(), bytes),
            (Some("/dev/stderr"), _) => write_and_flush(&mut io::stderr().lock(), bytes),
            (_, None) => {
                OpenOptions::new().append(true).open(&self.path).and_then(|mut file| write_and_flush(&mut file, bytes))
            }
            (_, Some((directory, name))) => {
                let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
                let mut file = File::from(openat(directory, name, flags, Mode::empty())?);
                if !is_stream(file.metadata()?.file_type()) {
                    return Err(io::Error::other("it was replaced at this very moment"));
                }
                write_and_flush(&mut file, bytes)
            }
        };
        match written {
            // A reader that has gone away has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }
}

/// Adds a text to the end of a file that `option` names. It must be new, or one that halfpower made and nobody changed, unless `force` is set.
/// Links and devices that keep data are refused.
///
/// # Errors
/// It cannot be written, or is no place for a report.
pub fn append(option: &str, path: &Path, bytes: &[u8], force: bool) -> Result<(), OutputError> {
    Output::at(option, path, force)?.add(bytes)
}

fn write_and_flush(to: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).and_then(|()| to.flush())
}

/// A character device, a pipe or a socket.
fn is_stream(kind: FileType) -> bool {
    kind.is_char_device() || kind.is_fifo() || kind.is_socket()
}

/// Whether a regular file is one that halfpower made, or empty.
fn is_own(directory: &Directory, name: &std::ffi::OsStr, length: u64) -> io::Result<bool> {
    Ok(length == 0 || own::is_own(directory, name, &directory.open_regular(name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path, force: bool, targets: &[PathBuf]) -> String {
        match Output::new("--json", path, force, targets) {
            Err(error @ OutputError::Refused { .. }) => error.to_string(),
            other => panic!("{} should be refused: {other:?}", path.display()),
        }
    }

    #[test]
    fn a_file_of_somebody_elses_is_replaced_only_by_force() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("precious");
        let fio = [
            "fio version 3 iolog\n0 /a add\n",
            "3;fio-3.33;j;0;0\n",
            "j: (groupid=0, jobs=1): err= 0:\n  read: IOPS=1\n",
        ];
        // Whatever they look like.
        let looks = ["{\"schema\": \"halfpower.results/1\"}", "point,op,read_percent\r\n", "# halfpower 0.1.0\n"];
        for content in ["data", "{"].into_iter().chain(fio).chain(looks) {
            fs::write(&path, content).unwrap();
            assert!(refusal(&path, false, &[]).contains("--force"));
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        Output::new("--json", &path, true, &[]).unwrap().write(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn what_halfpower_made_is_replaced_as_long_as_nobody_changed_it_and_nothing_else_is_left() {
        let here = tempfile::tempdir().unwrap();
        for name in ["results.json", "l_slat.1.log", "trace", "sheet.xls"] {
            let path = here.path().join(name);
            let write =
                |text: &str| Output::new("--json", &path, false, &[]).and_then(|output| output.write(text.as_bytes()));
            // What is empty is nobody's.
            fs::write(&path, "").unwrap();
            write("fio version 3 iolog\n").unwrap();
            write("1, 2, 3\n").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "1, 2, 3\n");
            let copy = here.path().join("copy");
            fs::copy(&path, &copy).unwrap();
            assert!(refusal(&copy, false, &[]).contains("--force"), "a copy is its user's");
            fs::remove_file(copy).unwrap();
            // Written in its place, of the same length.
            fs::write(&path, "1, 2, 4\n").unwrap();
            assert!(refusal(&path, false, &[]).contains("--force"), "{name} was changed");
            assert_eq!(fs::read_to_string(&path).unwrap(), "1, 2, 4\n");
            Output::new("--json", &path, true, &[]).unwrap().write(b"1, 2, 5\n").unwrap();
            write("1, 2, 6\n").unwrap();
        }
        let left = fs::read_dir(here.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.filter(|name| !name.to_string_lossy().ends_with(".halfpower-output")).count(), 4);
    }

    #[test]
    fn a_target_is_no_output_even_by_force_or_under_another_name() {
        let here = tempfile::tempdir().unwrap();
        let (target, link) = (here.path().join("target"), here.path().join("link"));
        let not_there = here.path().join("new");
        fs::write(&target, "").unwrap();
        fs::hard_link(&target, &link).unwrap();
        for output in [&target, &link, &not_there] {
            assert!(refusal(output, true, &[target.clone(), not_there.clone()]).contains("what is measured"));
        }
    }

    #[test]
    fn a_file_that_appears_during_the_measurement_stays() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("results");
        let output = Output::new("--json", &path, false, &[]).unwrap();
        fs::write(&path, "somebody else's").unwrap();
        assert!(output.write(b"new").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "somebody else's");
    }

    #[test]
    fn places_that_cannot_be_written_are_refused_at_once() {
        let here = tempfile::tempdir().unwrap();
        assert!(refusal(here.path(), false, &[]).contains("directory"));
        assert!(refusal(&here.path().join("no/r.json"), false, &[]).contains("no directory"));
        assert!(refusal(Path::new("/proc/r.json"), false, &[]).contains("/proc"));
    }

    #[test]
    fn what_is_added_goes_to_the_end_of_a_file_and_into_no_link() {
        let here = tempfile::tempdir().unwrap();
        let (file, link) = (here.path().join("file"), here.path().join("link"));
        for _ in 0..2 {
            append("run", &file, b"more\n", false).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "more\nmore\n");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(append("run", &link, b"x", true).unwrap_err().to_string().contains("symbolic link"));
        assert!(append("run", here.path(), b"x", true).is_err());
        append("run", Path::new("/dev/null"), b"x", false).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "more\nmore\n");
        fs::write(&file, "mine\n").unwrap();
        assert!(append("run", &file, b"x", false).unwrap_err().to_string().contains("--force"));
        for _ in 0..2 {
            append("run", &file, b"x\n", true).unwrap();
        }
        assert!(append("run", &file, b"x", false).is_err(), "it stays the user's");
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine\nx\nx\n");
    }

    #[test]
    fn a_link_is_never_followed_to_a_file() {
        let here = tempfile::tempdir().unwrap();
        let (file, link) = (here.path().join("file"), here.path().join("link"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(refusal(&link, true, &[]).contains("symbolic link"), "to nothing");
        fs::write(&file, "").unwrap();
        assert!(refusal(&link, true, &[]).contains("symbolic link"), "to a file");
        assert_eq!(fs::read_to_string(&file).unwrap(), "");
    }

    #[test]
    fn devices_are_written_into_and_stay_devices() {
        let null = Path::new("/dev/null");
        Output::new("--json", null, false, &[]).unwrap().write(b"text").unwrap();
        assert!(is_stream(fs::symlink_metadata(null).unwrap().file_type()));
        let full = Output::new("--json", Path::new("/dev/full"), false, &[]).unwrap();
        assert!(matches!(full.write(b"text"), Err(OutputError::Io { .. })));
    }
}
