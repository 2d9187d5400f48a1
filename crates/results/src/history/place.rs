//! SQLite opens a file by path, so the path is resolved and checked first.

use super::HistoryError;
use files::{Directory, PRIVATE, check_regular, check_trusted, is_same_file, parent};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Resolves all links; creates a missing directory and file. Refuses what is not a file and, as
/// root, another user's file or link.
pub(super) fn resolved(path: &Path) -> Result<PathBuf, HistoryError> {
    let refused = |why: String| HistoryError::Refused { path: path.into(), why };
    let failed = |error: io::Error| refused(error.to_string());
    let name = path.file_name().ok_or_else(|| refused("it is a directory".into()))?;
    let (directory, _) = Directory::make(parent(path), PRIVATE)
        .map_err(|source| HistoryError::Directory { path: path.into(), source })?;
    match directory.look(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Root must not create a file in a user's directory that the user could not use later.
            directory.create_for_owner(name, 0o600).map_err(failed)?;
        }
        Err(error) => return Err(failed(error)),
        Ok(metadata) if metadata.is_symlink() => {
            check_trusted(&metadata).map_err(failed)?;
            let real = fs::canonicalize(path).map_err(failed)?;
            return if real == path {
                Err(refused("a link that leads to itself".into()))
            } else {
                resolved(&real)
            };
        }
        Ok(metadata) => {
            check_trusted(&metadata).and_then(|()| check_regular(&metadata)).map_err(failed)?
        }
    }
    let real = fs::canonicalize(parent(path)).map_err(failed)?;
    let is_it =
        |there: fs::Metadata| directory.metadata().is_ok_and(|own| is_same_file(&own, &there));
    if fs::metadata(&real).is_ok_and(is_it) {
        Ok(real.join(name))
    } else {
        Err(refused("its directory was replaced at this very moment".into()))
    }
}
