//! The outcome of removing the test files and directories that this process created.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Test files and directories that had to be removed.
#[derive(Debug, Clone, Default)]
pub struct Cleanup {
    pub removed: usize,
    /// The others, with the reason and how to fix it.
    pub left: Vec<(PathBuf, String)>,
}

static CLEANUP: Mutex<Cleanup> = Mutex::new(Cleanup { removed: 0, left: Vec::new() });

/// The outcome so far.
pub fn cleanup() -> Cleanup {
    CLEANUP.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

pub(crate) fn note(path: &Path, outcome: io::Result<()>) {
    let mut cleanup = CLEANUP.lock().unwrap_or_else(PoisonError::into_inner);
    match outcome {
        Ok(()) => cleanup.removed += 1,
        // Another process removed or replaced it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            let hint = if error.kind() == io::ErrorKind::DirectoryNotEmpty {
                "move the rest away, then remove the directory"
            } else {
                "the next run in that directory removes it"
            };
            let left = (path.into(), format!("{error}; {hint}"));
            if !cleanup.left.contains(&left) {
                cleanup.left.push(left);
            }
        }
    }
}
