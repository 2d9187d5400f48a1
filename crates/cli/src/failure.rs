#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is invalid or was refused: exit code 2.
    Usage(String),
    /// A measurement or an output failed: exit code 1.
    Run(String),
    /// The user interrupted the command: exit code 130, the shell convention.
    Interrupted,
    /// The reason was already printed; this is the exit code.
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
