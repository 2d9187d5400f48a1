//! Errors of a machine. Each names the place and, where there is one, the hint.

use crate::Op;
use std::path::PathBuf;

/// The result of asking a machine.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller asked for something that makes no sense or must not be done: exit code 2.
    #[error("{what}: {why}; {hint}")]
    Refused {
        /// The place or value.
        what: String,
        /// Why not.
        why: String,
        /// What to do about it.
        hint: String,
    },
    /// What is to be made does not fit: exit code 2.
    #[error("{what}: {why}; {hint}")]
    Full {
        /// The place.
        what: String,
        /// What does not fit in what.
        why: String,
        /// What to do about it.
        hint: String,
    },
    /// The target cannot do what was asked (no direct I/O, no such engine): the experiment is skipped with this reason.
    #[error("{0}")]
    Unsupported(String),
    /// A system call failed.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was being done ("cannot open").
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// A request of a run failed.
    #[error("{} of {len} bytes at offset {offset} failed: {source}", match op { Op::Read => "a read", Op::Write => "a write" })]
    Request {
        /// Read or write.
        op: Op,
        /// Where.
        offset: u64,
        /// How much was asked.
        len: u32,
        /// The system's words.
        source: std::io::Error,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// A refused value: `what` (the place or value), `why` not, and the `hint`.
    pub fn refused(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Refused { what: what.into(), why: why.into(), hint: hint.into() }
    }

    /// A failed system call on a file; for use with `map_err`.
    pub fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Error::Io { doing, path, source }
    }

    /// Whether the caller should have known better (exit code 2), as against a failed measurement (exit code 1).
    pub fn is_usage(&self) -> bool {
        matches!(self, Error::Refused { .. } | Error::Full { .. })
    }
}
