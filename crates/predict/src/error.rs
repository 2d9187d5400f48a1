pub type Result<T> = std::result::Result<T, Error>;

/// Names the value and its fix.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Twin(#[from] twin::Error),
    #[error(transparent)]
    Run(#[from] machine::Error),
    #[error("setting '{setting}': {reason}")]
    Setting { setting: String, reason: String },
    #[error("trace: {0}")]
    Trace(#[from] apptrace::foreign::ForeignError),
    #[error("cannot fit: {0}")]
    Fit(String),
    #[error("cannot write the fitted machine: {0}")]
    File(#[from] toml::ser::Error),
    #[error("{0} was aborted")]
    Broken(&'static str),
}
