//! Errors of a prediction.

pub type Result<T> = std::result::Result<T, Error>;

/// An error, with the value and how to fix it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Twin(#[from] twin::Error),
    /// A simulated run that failed.
    #[error(transparent)]
    Run(#[from] machine::Error),
    /// An invalid change to a workload.
    #[error("setting '{setting}': {reason}")]
    Setting {
        setting: String,
        /// Why it is wrong and what would be valid.
        reason: String,
    },
    /// An invalid trace line.
    #[error("trace line {line}: {reason}")]
    Trace { line: usize, reason: String },
    /// Points that cannot calibrate a machine.
    #[error("cannot fit: {0}")]
    Fit(String),
    /// A calibrated machine that cannot be serialised.
    #[error("cannot write the fitted machine: {0}")]
    File(#[from] toml::ser::Error),
    /// A search or a replay was aborted.
    #[error("{0} was aborted")]
    Broken(&'static str),
}
