//! Removes a directory with what halfpower created in it. Follows no link and enters no mount.

use super::worker::{MAX_LEVELS, SUBDIRECTORY, TREE};
use crate::linux::sys;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat, unlinkat};
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

const SHOWN: usize = 3;

/// The name must still refer to the directory. [`io::ErrorKind::DirectoryNotEmpty`]: entries that
/// halfpower did not create; [`io::ErrorKind::Interrupted`]: `goes_on` returned false.
pub(super) fn remove(
    parent: &File,
    name: &OsStr,
    directory: &File,
    goes_on: &mut dyn FnMut() -> bool,
) -> io::Result<()> {
    let (there, own) = (statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?, directory.metadata()?);
    if (there.st_dev, there.st_ino) != (own.dev(), own.ino()) {
        let is_gone = own.nlink() == 0;
        return Err(if is_gone {
            io::ErrorKind::NotFound.into()
        } else {
            not_empty("its name leads to something else")
        });
    }
    let mut tree = Tree { volume: volume(directory)?, others: Vec::new(), goes_on };
    if volume(parent)? != tree.volume {
        return Err(not_empty("something is mounted on it"));
    }
    tree.empty(directory, "", Place::Top)?;
    if !tree.others.is_empty() {
        let (shown, more) = (tree.others.len().min(SHOWN), tree.others.len().saturating_sub(SHOWN));
        let names = tree.others[..shown].join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return Err(not_empty(&format!(
            "halfpower did not make all that is in it ({names}{more})"
        )));
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

fn not_empty(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::DirectoryNotEmpty, why)
}

struct Tree<'a> {
    volume: (u64, u64),
    others: Vec<String>,
    goes_on: &'a mut dyn FnMut() -> bool,
}

impl Tree<'_> {
    fn empty(&mut self, directory: &File, at: &str, place: Place) -> io::Result<()> {
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            if !(self.goes_on)() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let removed = match kind(directory, name, entry.file_type())? {
                FileType::RegularFile if number(name.to_bytes()).is_some() => {
                    unlink(directory, name, AtFlags::empty())?
                }
                FileType::Directory => match place.of(name.to_bytes()) {
                    Some(below) => self.remove_below(directory, name, at, below)?,
                    None => false,
                },
                _ => false,
            };
            if !removed {
                self.others.push(format!("{at}{}", name.to_string_lossy()));
            }
        }
        Ok(())
    }

    fn remove_below(
        &mut self,
        directory: &File,
        name: &CStr,
        at: &str,
        place: Place,
    ) -> io::Result<bool> {
        // An empty one goes at once; one with something in it is looked at.
        if let Ok(true) = unlink(directory, name, AtFlags::REMOVEDIR) {
            return Ok(true);
        }
        // O_PATH does not open the device or file system that is mounted there.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = File::from(openat(directory, name, flags, Mode::empty())?);
        if volume(&below)? != self.volume {
            return Ok(false);
        }
        let others = self.others.len();
        self.empty(
            &File::open(sys::path_of(&below))?,
            &format!("{at}{}/", name.to_string_lossy()),
            place,
        )?;
        Ok(self.others.len() > others || unlink(directory, name, AtFlags::REMOVEDIR)?)
    }
}

/// `false` if a mount point prevents it.
fn unlink(directory: &File, name: &CStr, flags: AtFlags) -> io::Result<bool> {
    match unlinkat(directory, name, flags) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(true),
        Err(rustix::io::Errno::BUSY) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn kind(directory: &File, name: &CStr, listed: FileType) -> io::Result<FileType> {
    if listed != FileType::Unknown {
        return Ok(listed);
    }
    Ok(FileType::from_raw_mode(statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode))
}

/// Mount ID and device: a bind mount of the same file system has the same device.
fn volume(file: &File) -> io::Result<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let mount = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    let mount =
        mount.ok_or_else(|| io::Error::other("the kernel does not say on which mount it is"))?;
    Ok((mount, file.metadata()?.dev()))
}

fn number(name: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(name).ok()?;
    text.parse::<u32>().ok().filter(|number| number.to_string() == text)
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Top,
    Subdirectory,
    /// Its number, and the levels above it.
    InTree(u32, usize),
}

impl Place {
    fn of(self, name: &[u8]) -> Option<Place> {
        let in_tree = || number(name.strip_prefix(TREE)?);
        match self {
            Place::Top if name.strip_prefix(SUBDIRECTORY).and_then(number).is_some() => {
                Some(Place::Subdirectory)
            }
            Place::Top => in_tree().filter(|&root| root == 0).map(|root| Place::InTree(root, 1)),
            Place::Subdirectory => None,
            // Directories in one have larger numbers.
            Place::InTree(around, levels) => in_tree()
                .filter(|&below| below > around && levels < MAX_LEVELS)
                .map(|below| Place::InTree(below, levels + 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn removed(at: &Path) -> Result<(), String> {
        let parent = File::open(at.parent().unwrap()).unwrap();
        remove(&parent, at.file_name().unwrap(), &File::open(at).unwrap(), &mut || true)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn names_of_others_stay_and_are_named() {
        let here = tempfile::tempdir().unwrap();
        let at = here.path().join("tree");
        let make = || {
            for below in ["s0", "s1"] {
                fs::create_dir_all(at.join(below)).unwrap();
                fs::write(at.join(below).join("4294967295"), "ours").unwrap();
            }
            fs::write(at.join("0"), "ours").unwrap();
        };
        make();
        removed(&at).unwrap();
        assert!(!at.exists());
        make();
        fs::write(here.path().join("elsewhere"), "the user's").unwrap();
        fs::create_dir_all(at.join("s0/s2")).unwrap();
        let others = [
            ("notes.txt", "a"),
            ("s1/thesis", "b"),
            ("s0/s2/7", "c"),
            ("01", "d"),
            ("s1/+1", "e"),
            ("t0/t2/t1/7", "f"),
            ("t1/7", "g"),
            ("s0/t1/7", "h"),
        ];
        for below in ["t0/t2/t1", "t0/t2/t5/t11", "t1", "s0/t1"] {
            fs::create_dir_all(at.join(below)).unwrap();
        }
        for ours in ["t0/3", "t0/t2/4", "t0/t2/t5/t11/6"] {
            fs::write(at.join(ours), "ours").unwrap();
        }
        for (name, text) in others {
            fs::write(at.join(name), text).unwrap();
        }
        symlink(here.path().join("elsewhere"), at.join("8")).unwrap();
        let why = removed(&at).unwrap_err();
        assert!(why.contains("and 6 more"), "{why}");
        for gone in ["0", "s0/4294967295", "s1/4294967295", "t0/3", "t0/t2/4", "t0/t2/t5"] {
            assert!(!at.join(gone).exists(), "{gone}");
        }
        for stays in others.map(|one| one.0).into_iter().chain(["8"]) {
            assert!(at.join(stays).exists(), "{stays}");
        }
        fs::remove_dir_all(&at).unwrap();
        make();
        fs::write(at.join("s1/thesis"), "the user's").unwrap();
        let why = removed(&at).unwrap_err();
        assert!(why.contains("(s1/thesis)"), "{why}");
        assert!(!at.join("s0").exists());
    }
}
