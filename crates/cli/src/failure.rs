#[derive(Debug)]
pub(crate) enum Failure {
    /// Exit code 2.
    Usage(String),
    /// Exit code 1.
    Run(String),
    /// Exit code 130, the shell convention.
    Interrupted,
    /// The exit code; its reason was printed.
    Printed(u8),
}

impl From<machine::Error> for Failure {
    fn from(error: machine::Error) -> Self {
        match error {
            machine::Error::Interrupted => Failure::Interrupted,
            error if error.is_usage() => Failure::Usage(error.to_string()),
            error => Failure::Run(error.to_string()),
        }
    }
}

impl From<workload::Error> for Failure {
    fn from(error: workload::Error) -> Self {
        Failure::from(machine::Error::from(error))
    }
}
