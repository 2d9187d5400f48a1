use crate::fio::options::tolerated::{Errors, ILLEGAL_SEQUENCE};
use machine::Completion;

pub(crate) const IO_ERROR: i32 = 5;
/// Linux's ENOSPC and EDQUOT.
pub(crate) const NO_SPACE: i32 = 28;
const OVER_QUOTA: i32 = 122;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobError {
    /// As fio reports it.
    pub errno: i32,
    pub text: String,
}

impl From<machine::Error> for JobError {
    fn from(error: machine::Error) -> Self {
        let errno = match &error {
            machine::Error::Full { .. } => Some(NO_SPACE),
            machine::Error::Request { source, .. } | machine::Error::Io { source, .. } => {
                source.raw_os_error()
            }
            _ => None,
        };
        JobError { errno: errno.unwrap_or(IO_ERROR), text: error.to_string() }
    }
}

/// Tolerated failures: requests count, but not their bytes and latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Failures {
    pub count: u64,
    /// First error number; 0: none.
    pub first: i32,
}

impl Failures {
    pub(crate) fn add(&mut self, other: Failures) {
        self.count += other.count;
        if self.first == 0 {
            self.first = other.first;
        }
    }

    pub(crate) fn is_full(completion: Completion) -> bool {
        matches!(-completion.result, NO_SPACE | OVER_QUOTA)
    }

    /// As in fio, without `ignore_error` only the device's I/O errors pass.
    pub(crate) fn passing(completion: Completion, ignored: Errors) -> Option<Failures> {
        let first = -completion.result;
        let passes = if ignored.is_empty() {
            matches!(first, IO_ERROR | ILLEGAL_SEQUENCE)
        } else {
            ignored.has(first)
        };
        passes.then_some(Failures { count: 1, first })
    }
}
