//! Attributes without opening the file, which would rewind a tape or wait for a pipe.

#[cfg(target_os = "linux")]
pub(super) use by_handle::{DIRECTORY, link, look};
#[cfg(not(target_os = "linux"))]
pub(super) use by_path::{DIRECTORY, link, look};

use std::path::PathBuf;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) owner: u32,
    pub(super) target: PathBuf,
}

/// Handles that cannot read or write (`O_PATH`).
#[cfg(target_os = "linux")]
mod by_handle {
    use super::Link;
    use crate::Directory;
    use rustix::fs::{Mode, OFlags, openat, readlinkat};
    use std::ffi::{OsStr, OsString};
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::MetadataExt;

    const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

    pub(in super::super) const DIRECTORY: OFlags =
        HANDLE.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);

    pub(in super::super) fn look(
        directory: &Directory,
        name: &OsStr,
        follows: bool,
    ) -> io::Result<Metadata> {
        let flags = if follows { HANDLE } else { HANDLE.union(OFlags::NOFOLLOW) };
        File::from(openat(directory, name, flags, Mode::empty())?).metadata()
    }

    pub(in super::super) fn link(directory: &File, name: &OsStr) -> io::Result<Option<Link>> {
        let link =
            File::from(openat(directory, name, HANDLE.union(OFlags::NOFOLLOW), Mode::empty())?);
        let metadata = link.metadata()?;
        if !metadata.is_symlink() {
            return Ok(None);
        }
        let target = OsString::from_vec(readlinkat(&link, "", Vec::new())?.into_bytes()).into();
        Ok(Some(Link { owner: metadata.uid(), target }))
    }
}

/// Only if the path leads to the file that the directory has under the name.
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", allow(dead_code, reason = "tried by the tests"))]
mod by_path {
    use super::Link;
    use crate::Directory;
    use rustix::fs::{AtFlags, FileType, OFlags, Stat, readlinkat, statat};
    use std::ffi::{OsStr, OsString};
    use std::fs::{self, File, Metadata};
    use std::io;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::MetadataExt;

    pub(in super::super) const DIRECTORY: OFlags =
        OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

    fn replaced() -> io::Error {
        io::Error::other("it or its directory was moved or replaced meanwhile; try again")
    }

    #[allow(clippy::unnecessary_cast, reason = "systems differ in these types")]
    fn identity(stat: &Stat) -> (u64, u64) {
        (stat.st_dev as u64, stat.st_ino as u64)
    }

    pub(in super::super) fn look(
        directory: &Directory,
        name: &OsStr,
        follows: bool,
    ) -> io::Result<Metadata> {
        let flags = if follows { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let stat = statat(directory, name, flags)?;
        let path = directory.path().join(name);
        let metadata = if follows { fs::metadata(path) } else { fs::symlink_metadata(path) };
        metadata
            .ok()
            .filter(|found| (found.dev(), found.ino()) == identity(&stat))
            .ok_or_else(replaced)
    }

    pub(in super::super) fn link(directory: &File, name: &OsStr) -> io::Result<Option<Link>> {
        let stat = || statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let before = stat()?;
        if !FileType::from_raw_mode(before.st_mode).is_symlink() {
            return Ok(None);
        }
        let target =
            OsString::from_vec(readlinkat(directory, name, Vec::new())?.into_bytes()).into();
        // A link's target never changes: if the link is still there, this is its target.
        let after = stat()?;
        let is_same = identity(&before) == identity(&after)
            && (before.st_ctime, before.st_ctime_nsec) == (after.st_ctime, after.st_ctime_nsec);
        if is_same { Ok(Some(Link { owner: before.st_uid, target })) } else { Err(replaced()) }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::{Directory, is_same_file};
    use rustix::fs::{CWD, Mode, openat};
    use std::ffi::OsStr;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_name_is_the_same_file_with_and_without_a_handle() {
        let here = tempfile::tempdir().unwrap();
        fs::write(here.path().join("file"), "text").unwrap();
        symlink("file", here.path().join("link")).unwrap();
        symlink("nothing", here.path().join("dangling")).unwrap();
        let directory = Directory::open(here.path()).unwrap();
        for name in ["file", "link", "dangling", "missing"].map(OsStr::new) {
            for follows in [false, true] {
                match (
                    by_handle::look(&directory, name, follows),
                    by_path::look(&directory, name, follows),
                ) {
                    (Ok(a), Ok(b)) => {
                        assert!(is_same_file(&a, &b) && a.len() == b.len(), "{name:?}")
                    }
                    (Err(a), Err(b)) => assert_eq!(a.kind(), b.kind(), "{name:?}"),
                    other => panic!("{name:?}, follows {follows}: {other:?}"),
                }
            }
        }
        let opened = |flags| File::from(openat(CWD, here.path(), flags, Mode::empty()).unwrap());
        let (handle, readable) = (opened(by_handle::DIRECTORY), opened(by_path::DIRECTORY));
        for name in ["file", "link", "dangling"].map(OsStr::new) {
            let link = by_handle::link(&handle, name).unwrap();
            assert_eq!(link, by_path::link(&readable, name).unwrap(), "{name:?}");
            assert_eq!(link.is_some(), name != "file");
        }
    }

    #[test]
    fn without_a_handle_a_directory_that_was_replaced_is_refused() {
        let here = tempfile::tempdir().unwrap();
        let (held, moved) = (here.path().join("held"), here.path().join("moved"));
        fs::create_dir(&held).unwrap();
        fs::write(held.join("file"), "checked").unwrap();
        let directory = Directory::open(&held).unwrap();
        fs::rename(&held, &moved).unwrap();
        fs::create_dir(&held).unwrap();
        fs::write(held.join("file"), "another").unwrap();
        let name = OsStr::new("file");
        assert!(
            by_path::look(&directory, name, false).unwrap_err().to_string().contains("replaced")
        );
        assert!(is_same_file(
            &by_handle::look(&directory, name, false).unwrap(),
            &fs::metadata(moved.join("file")).unwrap()
        ));
    }
}
