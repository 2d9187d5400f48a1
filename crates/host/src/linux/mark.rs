//! Marks a file that the user named, kept for reuse, in an extended attribute or a small file next
//! to it: inode number, size and times. Programs cannot set the change time (ctime): an equal one
//! means an unchanged file if each later change gets another, which [`Named::keep`] proves.

use super::sys;
use rustix::fs::{self, AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, XattrFlags};
use rustix::process::geteuid;
use rustix::time::{ClockId, clock_gettime};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

const ATTRIBUTE: &str = "user.halfpower";

const TITLE: &str = "halfpower kept ";

const LONGEST: usize = 160;

/// Attempts to predict a write's time: the clock may advance between ticks (Linux 6.13 and later).
const ATTEMPTS: u32 = 20;

/// Several ticks of any kernel's clock (10 ms at 100 Hz). A file system with coarser times proves
/// nothing.
const PATIENCE: Duration = Duration::from_millis(50);

/// The kernel closes an io_uring ring's files late.
const CLOSING: Duration = Duration::from_millis(500);

#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) directory: &'a File,
    pub(crate) name: &'a OsStr,
    pub(crate) file: &'a File,
}

/// Seconds and nanoseconds.
type Time = (i64, i64);

fn changed(metadata: &Metadata) -> Time {
    (metadata.ctime(), metadata.ctime_nsec())
}

fn mark(metadata: &Metadata, (seconds, nanoseconds): Time) -> String {
    let (inode, size) = (metadata.ino(), metadata.size());
    format!(
        "{TITLE}{inode} {size} {}.{:09} {seconds}.{nanoseconds:09}",
        metadata.mtime(),
        metadata.mtime_nsec()
    )
}

fn kernel_time() -> Time {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    (now.tv_sec, now.tv_nsec)
}

fn wait_for_tick(last: Time) -> io::Result<()> {
    let begin = Instant::now();
    while kernel_time() <= last {
        if begin.elapsed() > PATIENCE {
            return Err(unproven("the kernel's clock does not move on"));
        }
        sleep(Duration::from_micros(100));
    }
    Ok(())
}

fn unproven(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}

impl Named<'_> {
    /// Fails if a change could go undetected: then the file belongs to its user.
    pub(crate) fn keep(self) -> io::Result<()> {
        let kept = self.write().and_then(|()| {
            // A program that has mapped the file can write it without changing its times (tmpfs).
            let begin = Instant::now();
            while sys::is_written(self.file) != Some(false) {
                if begin.elapsed() > CLOSING {
                    return Err(unproven("another program may write it"));
                }
                sleep(Duration::from_millis(5));
            }
            if self.is_kept() {
                Ok(())
            } else {
                Err(unproven("it was changed at this very moment"))
            }
        });
        kept.inspect_err(|_| self.unmark())
    }

    pub(crate) fn unmark(self) {
        let _ = fs::fremovexattr(self.file, ATTRIBUTE);
        self.forget();
    }

    pub(crate) fn is_kept(self) -> bool {
        let Ok(metadata) = self.file.metadata() else { return false };
        // Another user could create a mark next to the file, or a link to it.
        metadata.nlink() == 1
            && metadata.uid() == geteuid().as_raw()
            && self.text().is_some_and(|text| text == mark(&metadata, changed(&metadata)))
    }

    pub(crate) fn forget(self) {
        let Ok(metadata) = self.file.metadata() else { return };
        let own = format!("{TITLE}{} ", metadata.ino());
        if self.beside().is_some_and(|text| text.starts_with(&own)) {
            let _ = fs::unlinkat(self.directory, beside(self.name), AtFlags::empty());
        }
    }

    fn write(self) -> io::Result<()> {
        match self.write_attribute() {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => self.write_beside(),
            written => written,
        }
    }

    /// The mark predicts the ctime that writing it causes.
    fn write_attribute(self) -> io::Result<()> {
        let mut last = (0, 0);
        for _ in 0..ATTEMPTS {
            wait_for_tick(last)?;
            last = kernel_time();
            let text = mark(&self.file.metadata()?, last);
            fs::fsetxattr(self.file, ATTRIBUTE, text.as_bytes(), XattrFlags::empty())?;
            if changed(&self.file.metadata()?) == last {
                return wait_for_tick(last);
            }
        }
        fs::fremovexattr(self.file, ATTRIBUTE)?;
        Err(unproven("the file system's times are not the kernel's"))
    }

    fn write_beside(self) -> io::Result<()> {
        let metadata = self.file.metadata()?;
        if metadata.ctime_nsec() == 0 {
            return Err(unproven("the file system counts its times in seconds"));
        }
        // Replace only a mark, never another file.
        if self.beside().is_some() {
            fs::unlinkat(self.directory, beside(self.name), AtFlags::empty())?;
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(fs::openat(
            self.directory,
            beside(self.name),
            flags,
            Mode::RUSR | Mode::WUSR,
        )?);
        file.write_all(mark(&metadata, changed(&metadata)).as_bytes())?;
        // Proves that a change made now gets a later ctime even if a program resets the mtime. FAT
        // reports the mtime as ctime.
        let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let epoch = Timespec { tv_sec: 0, tv_nsec: 0 };
        let begin = Instant::now();
        loop {
            fs::futimens(&file, &Timestamps { last_access: omitted, last_modification: epoch })?;
            match changed(&file.metadata()?) > changed(&metadata) {
                true => return Ok(()),
                false if begin.elapsed() > PATIENCE => {
                    return Err(unproven("the file system's times do not move on"));
                }
                false => sleep(Duration::from_millis(1)),
            }
        }
    }

    fn text(self) -> Option<String> {
        let mut text = [0u8; LONGEST];
        match fs::fgetxattr(self.file, ATTRIBUTE, &mut text[..]) {
            Ok(len) => String::from_utf8(text[..len].to_vec()).ok(),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NODATA) => self.beside(),
            Err(_) => None,
        }
    }

    fn beside(self) -> Option<String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file =
            File::from(fs::openat(self.directory, beside(self.name), flags, Mode::empty()).ok()?);
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.uid() != geteuid().as_raw() {
            return None;
        }
        let mut text = String::new();
        file.take(LONGEST as u64).read_to_string(&mut text).ok()?;
        text.starts_with(TITLE).then_some(text)
    }
}

fn beside(name: &OsStr) -> OsString {
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(".halfpower");
    beside
}
