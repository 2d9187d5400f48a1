//! Outputs on their way to their name: temporary files that a later run knows as halfpower's, should this one be killed.

use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

/// A new file of a random name, locked; it goes when it is dropped.
///
/// # Errors
/// What the system says.
#[cfg(not(unix))]
pub(super) fn make(directory: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".halfpower-").suffix(".part").tempfile_in(directory)
}

/// Removes what killed runs left in a directory.
#[cfg(not(unix))]
pub(super) fn remove_leftovers(_: &Path) {}

#[cfg(unix)]
pub(super) use of_unix::{make, remove_leftovers};

#[cfg(unix)]
mod of_unix {
    use super::{NamedTempFile, Path, io};
    use machine::mark::{is_part, part_name};
    use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
    use std::fs::{self, File, Permissions};
    use std::hash::{BuildHasher, Hasher, RandomState};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use tempfile::{Builder, TempPath};

    /// How often a file is made again where another process takes it for what a killed run left.
    const ATTEMPTS: u32 = 100;

    /// A new file of a random name, locked; it goes when it is dropped.
    ///
    /// # Errors
    /// What the system says.
    pub(in crate::output) fn make(directory: &Path) -> io::Result<NamedTempFile> {
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            match once(directory) {
                Err(error)
                    if left > 0
                        && matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::WouldBlock)
                        && directory.is_dir() => {}
                made => return made,
            }
        }
    }

    fn once(directory: &Path) -> io::Result<NamedTempFile> {
        let random = RandomState::new().build_hasher().finish();
        let first = part_name(random, fs::metadata(directory)?.ino());
        // As any new file: the user's mask takes away what it should not have.
        let mode = Permissions::from_mode(0o666);
        let made = Builder::new().prefix(&first).rand_bytes(0).permissions(mode).tempfile_in(directory)?;
        lock(made.as_file())?;
        // With content it must bear the mark of its own number.
        let own = directory.join(part_name(random, made.as_file().metadata()?.ino()));
        let file = made.persist_noclobber(&own).map_err(|error| error.error)?;
        Ok(NamedTempFile::from_parts(file, TempPath::try_from_path(own)?))
    }

    /// Removes what killed runs left in a directory: it bears halfpower's mark, and nobody holds its lock.
    pub(in crate::output) fn remove_leftovers(directory: &Path) {
        let Ok(inode) = fs::metadata(directory).map(|metadata| metadata.ino()) else { return };
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with('.') && name.ends_with(".part")) else {
                continue;
            };
            let path = entry.path();
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let Ok(file) = open(&path, flags, Mode::empty()).map(File::from) else { continue };
            let Ok(metadata) = file.metadata() else { continue };
            let ours = metadata.is_file() && is_part(name, inode, metadata.ino(), metadata.len());
            let is_still_there = || {
                fs::symlink_metadata(&path)
                    .is_ok_and(|there| (there.dev(), there.ino()) == (metadata.dev(), metadata.ino()))
            };
            if ours && lock(&file).is_ok() && is_still_there() {
                let _ = fs::remove_file(&path);
            }
        }
    }

    fn lock(file: &File) -> io::Result<()> {
        Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_a_killed_run_left_goes_and_the_livings_and_the_users_stay() {
            let here = tempfile::tempdir().unwrap();
            let inode = |path: &Path| fs::metadata(path).unwrap().ino();
            // A kill before the file had its own mark, and one in the middle of the document.
            let empty = here.path().join(part_name(1, inode(here.path())));
            fs::write(&empty, "").unwrap();
            let begun = here.path().join("begun");
            fs::write(&begun, "{\"schema\": \"halfpower.results/1\", \"poi").unwrap();
            let cut = here.path().join(part_name(2, inode(&begun)));
            fs::rename(&begun, &cut).unwrap();
            let living = make(here.path()).unwrap();
            let users = [".halfpower-0123456789abcdef.part", ".halfpower-0123456789abcdef-01234567.part"];
            users.iter().for_each(|name| fs::write(here.path().join(name), "").unwrap());
            let copy = here.path().join(part_name(3, inode(here.path())));
            fs::write(&copy, "with content it must bear its own").unwrap();
            remove_leftovers(here.path());
            assert!(!empty.exists() && !cut.exists());
            assert!(living.path().exists() && copy.exists());
            assert!(users.iter().all(|name| here.path().join(name).exists()));
            drop(living);
            assert_eq!(fs::read_dir(here.path()).unwrap().count(), 3);
        }
    }
}
