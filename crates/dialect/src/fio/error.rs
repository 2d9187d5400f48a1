//! What ends a run in fio's language early.

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum FioError {
    /// The job file, the arguments or what they name cannot be used: exit code 2. Nothing was measured.
    #[error("{0}")]
    Usage(String),
    /// The machine refused or failed.
    #[error("{job}: {source}")]
    Machine {
        /// The job or the jobs that ran together.
        job: String,
        /// The machine's words.
        source: machine::Error,
    },
}

impl FioError {
    /// Whether the caller should have known better (exit code 2), as against a failed run (exit code 1).
    pub fn is_usage(&self) -> bool {
        match self {
            FioError::Usage(_) => true,
            FioError::Machine { source, .. } => source.is_usage(),
        }
    }

    /// Whether the user stopped it.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, FioError::Machine { source: machine::Error::Interrupted, .. })
    }
}
