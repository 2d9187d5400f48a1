/// Why a result is missing.
#[derive(Debug, thiserror::Error)]
pub enum FioError {
    /// Unusable input; nothing was measured.
    #[error("{0}")]
    Usage(String),
    #[error("{job}: {source}")]
    Machine { job: String, source: machine::Error },
}

impl FioError {
    /// Returns whether the input is at fault: exit code 2 instead of 1.
    pub fn is_usage(&self) -> bool {
        match self {
            FioError::Usage(_) => true,
            FioError::Machine { source, .. } => source.is_usage(),
        }
    }

    pub fn is_interrupt(&self) -> bool {
        matches!(self, FioError::Machine { source: machine::Error::Interrupted, .. })
    }
}
