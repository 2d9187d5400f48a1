//! Temporary files that a later run knows as halfpower's, should this one be killed.

use files::{Directory, inode};
use machine::mark::{is_part, part_name};
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::Arc;

/// Another process may take the file for a leftover.
const ATTEMPTS: u32 = 100;

#[derive(Debug)]
pub(super) struct Part {
    directory: Arc<Directory>,
    name: OsString,
    file: File,
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.directory.is_name_of(&self.name, &self.file) {
            let _ = self.directory.remove(&self.name);
        }
    }
}

impl Part {
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    pub(super) fn replace(self, name: &OsStr) -> io::Result<()> {
        self.directory.rename(&self.name, name)
    }

    pub(super) fn take_free(self, name: &OsStr) -> io::Result<()> {
        self.directory.rename_to_free(&self.name, name)
    }
}

pub(super) fn make(directory: &Arc<Directory>) -> io::Result<Part> {
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match once(directory, left == 0) {
            Err(error)
                if left > 0
                    && matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::WouldBlock
                    )
                    && directory.is_there() => {}
            made => return made,
        }
    }
}

/// Any reader can lock the file, which keeps other processes from removing it: the last attempt
/// does without our lock.
fn once(directory: &Arc<Directory>, is_last: bool) -> io::Result<Part> {
    let random = RandomState::new().build_hasher().finish();
    let first: OsString = part_name(random, inode(&directory.metadata()?)?).into();
    // As any new file: the user's mask takes away what it should not have.
    let file = directory.create(&first, 0o666)?;
    let mut part = Part { directory: directory.clone(), name: first, file };
    match part.file.try_lock() {
        Err(TryLockError::WouldBlock) if is_last => {}
        locked => locked?,
    }
    // With content it must have the mark of its own number.
    let own: OsString = part_name(random, inode(&part.file.metadata()?)?).into();
    directory.rename_to_free(&part.name, &own)?;
    part.name = own;
    Ok(part)
}

pub(super) fn remove_leftovers(directory: &Directory) {
    let Ok(own) = directory.metadata().and_then(|metadata| inode(&metadata)) else { return };
    for name in directory.names().unwrap_or_default() {
        let Some(text) =
            name.to_str().filter(|name| name.starts_with('.') && name.ends_with(".part"))
        else {
            continue;
        };
        let Ok(file) = directory.open_regular(&name) else { continue };
        let Ok(metadata) = file.metadata() else { continue };
        let ours = inode(&metadata).is_ok_and(|number| is_part(text, own, number, metadata.len()));
        if ours && file.try_lock().is_ok() && directory.is_name_of(&name, &file) {
            let _ = directory.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn what_a_killed_run_left_goes_and_the_livings_and_the_users_stay() {
        let here = tempfile::tempdir().unwrap();
        let directory = Arc::new(Directory::open(here.path()).unwrap());
        let inode = |path: &Path| super::inode(&fs::metadata(path).unwrap()).unwrap();
        // A kill before the file had its own mark, and one in the middle of the document.
        let empty = here.path().join(part_name(1, inode(here.path())));
        fs::write(&empty, "").unwrap();
        let begun = here.path().join("begun");
        fs::write(&begun, "{\"schema\": \"halfpower.results/1\", \"poi").unwrap();
        let cut = here.path().join(part_name(2, inode(&begun)));
        fs::rename(&begun, &cut).unwrap();
        let living = make(&directory).unwrap();
        let users =
            [".halfpower-0123456789abcdef.part", ".halfpower-0123456789abcdef-01234567.part"];
        users.iter().for_each(|name| fs::write(here.path().join(name), "").unwrap());
        let copy = here.path().join(part_name(3, inode(here.path())));
        fs::write(&copy, "with content it must have its own").unwrap();
        remove_leftovers(&directory);
        assert!(!empty.exists() && !cut.exists());
        assert!(here.path().join(&living.name).exists() && copy.exists());
        assert!(users.iter().all(|name| here.path().join(name).exists()));
        drop(living);
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 3);
    }
}
