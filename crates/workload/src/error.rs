//! Errors of a workload: what makes no sense, why, and what would.

/// What is wrong with a workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A setting, or two together, make no sense.
    #[error("{what}: {why}; {mend}")]
    Refused {
        /// The setting and its value.
        what: String,
        /// Why not.
        why: String,
        /// What to do about it.
        mend: String,
    },
}

impl Error {
    /// A refused setting: `what` (the setting and its value), `why` not, and the `mend`.
    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>, mend: impl Into<String>) -> Self {
        Error::Refused { what: what.into(), why: why.into(), mend: mend.into() }
    }
}

impl From<Error> for machine::Error {
    fn from(error: Error) -> Self {
        let Error::Refused { what, why, mend } = error;
        machine::Error::Refused { what, why, mend }
    }
}
