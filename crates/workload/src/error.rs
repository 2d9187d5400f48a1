//! Errors of a workload: what makes no sense, why, and what would.

/// What is wrong with a workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A setting, or two together, make no sense.
    #[error("{what}: {why}; {hint}")]
    Refused {
        /// The setting and its value.
        what: String,
        /// Why not.
        why: String,
        /// What to do about it.
        hint: String,
    },
}

impl Error {
    /// A refused setting: `what` (the setting and its value), `why` not, and the `hint`.
    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Self {
        Error::Refused { what: what.into(), why: why.into(), hint: hint.into() }
    }
}

impl From<Error> for machine::Error {
    fn from(error: Error) -> Self {
        let Error::Refused { what, why, hint } = error;
        machine::Error::Refused { what, why, hint }
    }
}
