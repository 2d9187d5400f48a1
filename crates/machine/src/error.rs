//! Each error names the file, device or value, and the fix if there is one.

use crate::Op;
use std::path::PathBuf;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A refused command or value; exit code 2.
    #[error("{what}: {why}; {hint}")]
    Refused { what: String, why: String, hint: String },
    /// Too little space; exit code 2.
    #[error("{what}: {why}; {hint}")]
    Full { what: String, why: String, hint: String },
    /// The machine lacks a feature; its experiment is skipped.
    #[error("{0}")]
    Unsupported(String),
    #[error("{0}: it does not support discards")]
    NoDiscard(String),
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// As in "cannot open".
        doing: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} of {len} bytes at offset {offset} failed: {source}", match op { Op::Read => "a read", Op::Write => "a write" })]
    Request { op: Op, offset: u64, len: u32, source: std::io::Error },
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub fn refused(
        what: impl Into<String>,
        why: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Error::Refused { what: what.into(), why: why.into(), hint: hint.into() }
    }

    pub fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { doing, path, source }
    }

    /// Returns whether the exit code is 2 (the caller erred), not 1.
    pub fn is_usage(&self) -> bool {
        matches!(self, Error::Refused { .. } | Error::Full { .. })
    }
}
