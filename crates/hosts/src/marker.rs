//! A small file by which ranks see whether all share a directory.

use crate::message::Marker;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

const MAX_BYTES: u64 = 256;

/// Removes the file when dropped.
pub(crate) struct Made {
    pub(crate) marker: Marker,
    path: PathBuf,
}

impl Made {
    /// `unique` differs between two runs.
    pub(crate) fn in_directory(directory: &Path, unique: u64) -> std::io::Result<Made> {
        let name = format!("halfpower-{}-{unique:016x}.marker", std::process::id());
        let path = directory.join(&name);
        let content = format!("halfpower {unique:016x}\n");
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        let made = Made { marker: Marker { name, content }, path };
        file.write_all(made.marker.content.as_bytes())?;
        // A client of a network file system sends it to the server here.
        file.sync_all()?;
        Ok(made)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

pub(crate) fn is_seen(directory: &Path, marker: &Marker) -> bool {
    let mut content = String::new();
    File::open(directory.join(&marker.name))
        .and_then(|file| file.take(MAX_BYTES).read_to_string(&mut content))
        .is_ok_and(|_| content == marker.content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_seen_until_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let made = Made::in_directory(directory.path(), 7).unwrap();
        assert!(is_seen(directory.path(), &made.marker));
        assert!(Made::in_directory(directory.path(), 7).is_err(), "nothing is overwritten");
        let other = Marker { content: "else".into(), ..made.marker.clone() };
        assert!(
            !is_seen(directory.path(), &other),
            "a file of the same name elsewhere has another content"
        );
        let marker = made.marker.clone();
        drop(made);
        assert!(
            !is_seen(directory.path(), &marker)
                && directory.path().read_dir().unwrap().next().is_none()
        );
    }
}
