//! The mark of a file that halfpower made under a name of the user's: an extended attribute, or where the file system has
//! none a small file beside it.
//!
//! As long as its maker works on it the mark is a number that fits the file's own ([`machine::mark::mark`]). When it is
//! done and the file stays, its size and the time of its last change are added: a file that somebody else has written since
//! is his.

use machine::mark::is_mark;
use rustix::fs::{self, AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, XattrFlags};
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;

/// The extended attribute.
const ATTRIBUTE: &str = "user.halfpower";

/// A mark is shorter.
const LONGEST: usize = 128;

/// More than a step of any file system's times: FAT has 2 s, ext2 and ext3 1 s, ramfs a tick of the kernel's clock.
const SET_BACK_S: i64 = 3;

/// What a mark says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marked {
    /// Its maker works on it, or was killed.
    Working,
    /// Its maker left it as it is now.
    Kept,
}

/// A file in its directory, under its name.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) directory: &'a File,
    pub(crate) name: &'a OsStr,
    pub(crate) file: &'a File,
}

/// How a kept file is told from one that was written since.
fn state(metadata: &Metadata) -> String {
    format!("kept {} {}.{:09}", metadata.size(), metadata.mtime(), metadata.mtime_nsec())
}

impl Named<'_> {
    /// Marks a file that is being made or written.
    ///
    /// # Errors
    /// Neither an attribute nor a file beside it can be written.
    pub(crate) fn work(self, mark: &str) -> io::Result<()> {
        self.write(mark)
    }

    /// Marks a file that stays as it is now.
    ///
    /// # Errors
    /// As [`Named::work`].
    pub(crate) fn keep(self, mark: &str) -> io::Result<()> {
        let kept = self.set_back().and_then(|()| self.write(&format!("{mark} {}", state(&self.file.metadata()?))));
        // With the mark of a run that works on it the next run would remove it.
        kept.inspect_err(|_| self.unmark())
    }

    /// Sets the time of the last change back: a write in the moment in which the file was done would bear the same time otherwise, and not be seen.
    fn set_back(self) -> io::Result<()> {
        let metadata = self.file.metadata()?;
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let last_modification = Timespec { tv_sec: metadata.mtime() - SET_BACK_S, tv_nsec: metadata.mtime_nsec() };
        Ok(fs::futimens(self.file, &Timestamps { last_access, last_modification })?)
    }

    /// Takes the mark off: the file is its user's.
    fn unmark(self) {
        let _ = fs::fremovexattr(self.file, ATTRIBUTE);
        self.forget();
    }

    /// The mark's number and what it says; `None` where halfpower did not make the file, or somebody wrote it since.
    pub(crate) fn read(self) -> Option<(String, Marked)> {
        let metadata = self.file.metadata().ok()?;
        // Where there are no attributes anybody could put a mark beside another's file, or link to it.
        if metadata.nlink() != 1 || metadata.uid() != geteuid().as_raw() {
            return None;
        }
        let text = self.text()?;
        let (mark, rest) = text.split_once(' ').unwrap_or((&text, ""));
        if !is_mark(mark, metadata.ino()) {
            return None;
        }
        match rest {
            "" => Some((mark.into(), Marked::Working)),
            kept if kept == state(&metadata) => Some((mark.into(), Marked::Kept)),
            _ => None,
        }
    }

    /// Removes the file beside it, if there is one of its own.
    pub(crate) fn forget(self) {
        let own = self.beside().is_some_and(|text| {
            let mark = text.split(' ').next().unwrap_or_default();
            self.file.metadata().is_ok_and(|metadata| is_mark(mark, metadata.ino()))
        });
        if own {
            let _ = fs::unlinkat(self.directory, beside(self.name), AtFlags::empty());
        }
    }

    fn write(self, text: &str) -> io::Result<()> {
        match fs::fsetxattr(self.file, ATTRIBUTE, text.as_bytes(), XattrFlags::empty()) {
            Err(rustix::io::Errno::OPNOTSUPP) => {}
            written => return Ok(written?),
        }
        // Whatever stands there: only what is a mark itself is replaced.
        if self.beside().is_some() {
            fs::unlinkat(self.directory, beside(self.name), AtFlags::empty())?;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(fs::openat(self.directory, beside(self.name), flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(text.as_bytes())
    }

    fn text(self) -> Option<String> {
        let mut text = [0u8; LONGEST];
        match fs::fgetxattr(self.file, ATTRIBUTE, &mut text[..]) {
            Ok(len) => String::from_utf8(text[..len].to_vec()).ok(),
            Err(rustix::io::Errno::OPNOTSUPP) => self.beside(),
            Err(_) => None,
        }
    }

    /// What the file beside it says, if it looks like a mark.
    fn beside(self) -> Option<String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(fs::openat(self.directory, beside(self.name), flags, Mode::empty()).ok()?);
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.uid() != geteuid().as_raw() {
            return None;
        }
        let mut text = String::new();
        file.take(LONGEST as u64).read_to_string(&mut text).ok()?;
        let looks =
            text.len() >= 25 && text.as_bytes()[16] == b'-' && text[..16].bytes().all(|c| c.is_ascii_hexdigit());
        looks.then_some(text)
    }
}

/// The name of the file beside it.
fn beside(name: &OsStr) -> OsString {
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(".halfpower");
    beside
}
