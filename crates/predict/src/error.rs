//! What can be wrong with a prediction.

/// The result of a prediction.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, with the value and the hint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A machine or its settings.
    #[error(transparent)]
    Twin(#[from] twin::Error),
    /// A simulated run that could not be made.
    #[error(transparent)]
    Run(#[from] machine::Error),
    /// A change of a workload.
    #[error("setting '{setting}': {reason}")]
    Setting {
        /// As written.
        setting: String,
        /// Why not, and what would be right.
        reason: String,
    },
    /// A trace line.
    #[error("trace line {line}: {reason}")]
    Trace {
        /// Line, from 1.
        line: usize,
        /// Why not.
        reason: String,
    },
    /// Points that cannot calibrate a machine.
    #[error("cannot fit: {0}")]
    Fit(String),
    /// A calibrated machine that cannot be written as a file.
    #[error("cannot write the fitted machine: {0}")]
    File(#[from] toml::ser::Error),
    /// A search or a replay broke off.
    #[error("{0} broke off")]
    Broken(&'static str),
}
