//! Devices, pipes and standard output are written in place; other outputs go to a temporary file in
//! the same open directory, to stable storage, and are renamed. An existing file is replaced only
//! if unmodified and halfpower's ([`own`]), or with `--force`.

mod own;
mod part;

use files::{Directory, is_own_open_file, is_same_file, is_stream, is_trusted, parent, was_read};
use std::ffi::OsString;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Refused before anything was measured.
    #[error("{option} {}: {why}; {hint}", path.display())]
    Refused { option: String, path: PathBuf, why: String, hint: String },
    #[error("cannot write {}: its directory was moved or replaced meanwhile; the file is in the directory that was there before", path.display())]
    Moved { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

const ANOTHER_FILE: &str = "name another file";

/// An output that was checked before the measurement.
#[derive(Debug, Clone)]
pub struct Output {
    option: String,
    path: PathBuf,
    /// The name in the open directory; `None` for an inherited file descriptor.
    at: Option<(Arc<Directory>, OsString)>,
    force: bool,
}

/// Each file that an output of this process has, with the option that named it.
static NAMED: Mutex<Vec<(Metadata, OsString, String)>> = Mutex::new(Vec::new());

enum Place {
    Free,
    Replaceable(Metadata),
    /// A device or pipe.
    Stream,
}

impl Output {
    /// `force` also replaces files that halfpower did not write, but never one of `targets`, one
    /// that this process has read, or that of another option.
    pub fn new(
        option: &str,
        path: &Path,
        force: bool,
        targets: &[PathBuf],
    ) -> Result<Output, OutputError> {
        let output = Output::at(option, path, force)?;
        if let Some(target) = targets.iter().find(|target| output.is_target(target)) {
            let why = "it is measured, or is under a target, or is read";
            return Err(output.refused(format!("{why} ({})", target.display()), ANOTHER_FILE));
        }
        if let (Place::Free | Place::Replaceable(_), Some((directory, _))) =
            (output.place()?, &output.at)
        {
            output.take_name()?;
            part::remove_leftovers(directory);
            drop(output.temporary(directory)?);
        }
        Ok(output)
    }

    fn at(option: &str, path: &Path, force: bool) -> Result<Output, OutputError> {
        let mut output = Output { option: option.into(), path: path.into(), at: None, force };
        if !is_own_open_file(path) {
            let name = path
                .file_name()
                .ok_or_else(|| output.refused("it is a directory", "name a file"))?;
            let directory = Directory::held(parent(path))
                .map_err(|error| output.unusable(parent(path), &error))?;
            output.at = Some((directory, name.to_owned()));
        }
        Ok(output)
    }

    fn take_name(&self) -> Result<(), OutputError> {
        let Some((directory, name)) = &self.at else { return Ok(()) };
        let Ok(above) = directory.metadata() else { return Ok(()) };
        let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        let same = named.iter().find(|(a, of, _)| of == name && is_same_file(a, &above));
        match same.map(|(_, _, option)| option) {
            Some(other) if *other != self.option => {
                Err(self.refused(format!("{other} names this file, too"), ANOTHER_FILE))
            }
            Some(_) => Ok(()),
            None => {
                named.push((above, name.clone(), self.option.clone()));
                Ok(())
            }
        }
    }

    /// The output need not exist yet.
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

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file in full or not at all.
    ///
    /// # Errors
    /// Another program has created the file.
    pub fn write(&self, bytes: &[u8]) -> Result<(), OutputError> {
        let failed = |source| OutputError::Io { path: self.path.clone(), source };
        let (directory, name) = match (self.place()?, &self.at) {
            (Place::Stream, _) | (_, None) => return self.write_into(bytes).map_err(failed),
            (_, Some(at)) => (&at.0, &at.1),
        };
        let mut temporary = self.temporary(directory)?;
        temporary.file().write_all(bytes).map_err(failed)?;
        temporary.file().sync_all().map_err(failed)?;
        // The file may have changed since the first check.
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
        // Make the rename durable, too. A failed directory sync is not an error: the file exists.
        let _ = directory.sync();
        if directory.is_in_place() {
            Ok(())
        } else {
            Err(OutputError::Moved { path: self.path.clone() })
        }
    }

    /// A new file has its name from the start, so a killed command leaves it. An existing one is
    /// replaced by [`Growing::finish`], which also marks the file as halfpower's.
    pub fn grow(&self) -> Result<Growing, OutputError> {
        let failed = |source| OutputError::Io { path: self.path.clone(), source };
        let (place, directory, name) = match (self.place()?, &self.at) {
            (Place::Stream, _) | (_, None) => {
                let file = self.open_stream().map_err(failed)?;
                return Ok(Growing { output: self.clone(), file, at: None, part: None });
            }
            (place, Some((directory, name))) => (place, directory, name),
        };
        let mut part = self.temporary(directory)?;
        let file = part.file().try_clone().map_err(failed)?;
        let part = if let Place::Replaceable(before) = &place {
            part.file().set_permissions(before.permissions()).map_err(failed)?;
            Some(part)
        } else {
            part.take_free(name).map_err(failed)?;
            None
        };
        let at = Some((directory.clone(), name.clone()));
        Ok(Growing { output: self.clone(), file, at, part })
    }

    fn open_stream(&self) -> io::Result<fs::File> {
        match &self.at {
            Some((directory, name)) => directory.open_stream(name),
            None => OpenOptions::new().append(true).open(&self.path),
        }
    }

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
                // Write only to the file that was checked.
                if !is_same_file(&before, &file.metadata().map_err(failed)?) {
                    return Err(self.refused("it was replaced at this very moment", "try again"));
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

    fn refused(&self, why: impl Into<String>, hint: &str) -> OutputError {
        let (option, path) = (self.option.clone(), self.path.clone());
        OutputError::Refused { option, path, why: why.into(), hint: hint.into() }
    }

    fn unusable(&self, directory: &Path, error: &io::Error) -> OutputError {
        let directory = directory.display();
        match error.kind() {
            io::ErrorKind::NotFound => {
                self.refused(format!("{directory}: no such directory"), "make it first")
            }
            _ => self.refused(
                format!("no file can be made in {directory}: {error}"),
                "name another place",
            ),
        }
    }

    fn place(&self) -> Result<Place, OutputError> {
        let Some((directory, name)) = &self.at else { return Ok(Place::Stream) };
        let io = |source| OutputError::Io { path: self.path.clone(), source };
        let itself = match directory.look(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Place::Free),
            Err(error) => {
                let why = format!("it cannot be looked at: {error}");
                return Err(self.refused(why, ANOTHER_FILE));
            }
            Ok(metadata) => metadata,
        };
        let is_link = itself.is_symlink();
        let follows = is_link && is_trusted(&itself);
        let there = if follows { directory.follow(name).ok() } else { Some(itself) };
        match there {
            Some(there) if is_stream(&there) => Ok(Place::Stream),
            _ if is_link => {
                Err(self.refused("it is a symbolic link", "name the file that it should be"))
            }
            Some(there) if there.is_dir() => Err(self.refused("it is a directory", "name a file")),
            Some(there) if !there.is_file() => Err(self.refused(
                "it is a device that keeps data, and no place for a report",
                "name a file",
            )),
            Some(there) if was_read(&there) => {
                Err(self.refused("this command reads it", ANOTHER_FILE))
            }
            Some(there) if self.force || is_own(directory, name, there.len()).map_err(io)? => {
                Ok(Place::Replaceable(there))
            }
            _ => Err(self.refused(
                "this file is there already, and halfpower did not make it, or it was changed since",
                "name another, or add --force to replace it",
            )),
        }
    }

    fn temporary(&self, directory: &Arc<Directory>) -> Result<part::Part, OutputError> {
        part::make(directory).map_err(|error| self.unusable(directory.path(), &error))
    }

    fn write_into(&self, bytes: &[u8]) -> io::Result<()> {
        let written = match (self.path.to_str(), &self.at) {
            (Some("/dev/stdout"), _) => write_and_flush(&mut io::stdout().lock(), bytes),
            (Some("/dev/stderr"), _) => write_and_flush(&mut io::stderr().lock(), bytes),
            (_, None) => OpenOptions::new()
                .append(true)
                .open(&self.path)
                .and_then(|mut file| write_and_flush(&mut file, bytes)),
            (_, Some((directory, name))) => {
                directory.open_stream(name).and_then(|mut file| write_and_flush(&mut file, bytes))
            }
        };
        match written {
            // The reader has closed the pipe, as `head` does.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }
}

#[derive(Debug)]
pub struct Growing {
    output: Output,
    file: fs::File,
    at: Option<(Arc<Directory>, OsString)>,
    /// Until it replaces an existing file.
    part: Option<part::Part>,
}

impl Write for Growing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Growing {
    /// A stream for a command.
    pub fn stdio(&self) -> io::Result<Stdio> {
        self.file.try_clone().map(Stdio::from)
    }

    /// Makes the file durable and marks it as halfpower's.
    ///
    /// # Errors
    /// The directory was moved.
    pub fn finish(self) -> Result<(), OutputError> {
        let Growing { output, file, at, part } = self;
        let Some((directory, name)) = at else { return Ok(()) };
        let failed = |source| OutputError::Io { path: output.path.clone(), source };
        file.sync_all().map_err(failed)?;
        // Not marked, it needs --force to be replaced.
        let now = part.as_ref().map_or(name.as_os_str(), |part| part.name());
        if let Ok(content) = directory.open_regular(now) {
            own::mark(&directory, &name, &file, content);
        }
        if let Some(part) = part {
            // The file may have changed since the first check.
            match output.place()? {
                Place::Replaceable(_) => part.replace(&name),
                _ => part.take_free(&name),
            }
            .map_err(failed)?;
        }
        let _ = directory.sync();
        if directory.is_in_place() { Ok(()) } else { Err(OutputError::Moved { path: output.path }) }
    }

    /// Leaves what was there before.
    pub fn discard(self) {
        if let (Some((directory, name)), None) = (&self.at, &self.part)
            && directory.is_name_of(name, &self.file)
        {
            let _ = directory.remove(name);
        }
    }
}

/// Appends to a file that is new, or unchanged since halfpower created it, unless `force` is set.
/// Refuses links and devices that store data.
pub fn append(option: &str, path: &Path, bytes: &[u8], force: bool) -> Result<(), OutputError> {
    Output::at(option, path, force)?.add(bytes)
}

fn write_and_flush(to: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).and_then(|()| to.flush())
}

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
    fn foreign_files_are_replaced_only_with_force() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("precious");
        let fio = [
            "fio version 3 iolog\n0 /a add\n",
            "3;fio-3.33;j;0;0\n",
            "j: (groupid=0, jobs=1): err= 0:\n  read: IOPS=1\n",
        ];
        // Content does not make a file ours.
        let looks = [
            "{\"schema\": \"halfpower.results/1\"}",
            "point,op,read_percent\r\n",
            "# halfpower 0.1.0\n",
        ];
        for content in ["data", "{"].into_iter().chain(fio).chain(looks) {
            fs::write(&path, content).unwrap();
            assert!(refusal(&path, false, &[]).contains("--force"));
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        Output::new("--json", &path, true, &[]).unwrap().write(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn unmodified_outputs_are_replaced_without_leftovers() {
        let here = tempfile::tempdir().unwrap();
        for name in ["results.json", "l_slat.1.log", "trace", "sheet.xls"] {
            let path = here.path().join(name);
            let write = |text: &str| {
                Output::new("--json", &path, false, &[])
                    .and_then(|output| output.write(text.as_bytes()))
            };
            // An empty file may be replaced.
            fs::write(&path, "").unwrap();
            write("fio version 3 iolog\n").unwrap();
            write("1, 2, 3\n").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "1, 2, 3\n");
            let copy = here.path().join("copy");
            fs::copy(&path, &copy).unwrap();
            assert!(refusal(&copy, false, &[]).contains("--force"), "a copy is its user's");
            fs::remove_file(copy).unwrap();
            // Modified in place, same length.
            fs::write(&path, "1, 2, 4\n").unwrap();
            assert!(refusal(&path, false, &[]).contains("--force"), "{name} was changed");
            assert_eq!(fs::read_to_string(&path).unwrap(), "1, 2, 4\n");
            Output::new("--json", &path, true, &[]).unwrap().write(b"1, 2, 5\n").unwrap();
            write("1, 2, 6\n").unwrap();
        }
        let left = fs::read_dir(here.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(
            left.filter(|name| !name.to_string_lossy().ends_with(".halfpower-output")).count(),
            4
        );
    }

    #[test]
    fn a_growing_output_has_its_name_from_the_start() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("app.hptrace");
        let output = || Output::new("--output", &path, false, &[]);
        let mut growing = output().unwrap().grow().unwrap();
        growing.write_all(b"one").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        // As after a kill: what is there is kept.
        drop(growing);
        assert!(refusal(&path, false, &[]).contains("--force"));
        let mut growing = Output::new("--output", &path, true, &[]).unwrap().grow().unwrap();
        growing.write_all(b"two").unwrap();
        growing.finish().unwrap();
        let mut growing = output().unwrap().grow().unwrap();
        growing.write_all(b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two", "until the new one is complete");
        growing.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        // A failure keeps the earlier one, and leaves no other.
        let mut growing = output().unwrap().grow().unwrap();
        growing.write_all(b"fo").unwrap();
        growing.discard();
        assert_eq!(fs::read(&path).unwrap(), b"three");
        drop(output().unwrap().grow().unwrap());
        let new = Output::new("--output", &here.path().join("new"), false, &[]).unwrap();
        new.grow().unwrap().discard();
        let names: Vec<_> = fs::read_dir(here.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn a_file_that_was_read_is_refused_even_with_force() {
        let here = tempfile::tempdir().unwrap();
        let (read, late) = (here.path().join("read"), here.path().join("late"));
        for file in [&read, &late] {
            fs::write(file, "jobs").unwrap();
        }
        let input = files::Input::new("jobs", 100);
        input.read(&read).unwrap();
        assert!(refusal(&read, true, &[]).contains("this command reads it"));
        let output = Output::new("--json", &late, true, &[]).unwrap();
        input.read(&late).unwrap();
        assert!(output.write(b"results").is_err(), "read after the check");
        assert_eq!(fs::read_to_string(&late).unwrap(), "jobs");
    }

    #[test]
    fn two_options_cannot_name_one_file() {
        let here = tempfile::tempdir().unwrap();
        let (path, link) = (here.path().join("out"), here.path().join("link"));
        std::os::unix::fs::symlink(here.path(), &link).unwrap();
        Output::new("--csv", &path, false, &[]).unwrap();
        Output::new("--csv", &path, false, &[]).unwrap();
        for other in [&path, &link.join("out")] {
            assert!(refusal(other, true, &[]).contains("--csv names this file, too"));
        }
        for option in ["--csv", "--html"] {
            Output::new(option, Path::new("/dev/null"), false, &[]).unwrap();
        }
    }

    #[test]
    fn targets_are_refused_even_with_force_or_another_name() {
        let here = tempfile::tempdir().unwrap();
        let (target, link) = (here.path().join("target"), here.path().join("link"));
        let not_there = here.path().join("new");
        fs::write(&target, "").unwrap();
        fs::hard_link(&target, &link).unwrap();
        for output in [&target, &link, &not_there] {
            assert!(
                refusal(output, true, &[target.clone(), not_there.clone()])
                    .contains("it is measured")
            );
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
        assert!(refusal(&here.path().join("no/r.json"), false, &[]).contains("no such directory"));
        assert!(refusal(Path::new("/proc/r.json"), false, &[]).contains("/proc"));
    }

    #[test]
    fn append_adds_to_the_end_and_refuses_links() {
        let here = tempfile::tempdir().unwrap();
        let (file, link) = (here.path().join("file"), here.path().join("link"));
        for _ in 0..2 {
            append("run", &file, b"more\n", false).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "more\nmore\n");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(
            append("run", &link, b"x", true).unwrap_err().to_string().contains("symbolic link")
        );
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
        assert!(is_stream(&fs::symlink_metadata(null).unwrap()));
        let full = Output::new("--json", Path::new("/dev/full"), false, &[]).unwrap();
        assert!(matches!(full.write(b"text"), Err(OutputError::Io { .. })));
    }
}
