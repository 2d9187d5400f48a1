/// Why a workload is invalid, and the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{what}: {why}; {hint}")]
    Refused { what: String, why: String, hint: String },
}

impl Error {
    pub(crate) fn refused(
        what: impl Into<String>,
        why: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Error::Refused { what: what.into(), why: why.into(), hint: hint.into() }
    }
}

impl From<Error> for machine::Error {
    fn from(error: Error) -> Self {
        let Error::Refused { what, why, hint } = error;
        machine::Error::Refused { what, why, hint }
    }
}
