#[derive(Debug, thiserror::Error)]
pub enum FioError {
    /// Unusable input; nothing was measured.
    #[error("{0}")]
    Usage(String),
    #[error("{job}: {source}")]
    Machine { job: String, source: machine::Error },
}

impl FioError {
    /// The exit code is then 2, not 1.
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
