pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    #[error(
        "no simulated machine is called '{name}'; there are {known}, or give the path of a machine file (.toml)"
    )]
    Unknown { name: String, known: String },
    #[error("setting '{setting}' of the simulated machine: {reason}")]
    Setting { setting: String, reason: String },
    #[error("{file}, line {line}: {reason}")]
    Description { file: String, line: usize, reason: String },
    #[error("cannot read {file}: {reason}")]
    File { file: String, reason: String },
}

impl From<Error> for machine::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Setting { setting, reason } => machine::Error::refused(
                format!("setting '{setting}' of the simulated machine"),
                reason,
                "see `halfpower twin list` for machines and settings",
            ),
            other => machine::Error::refused(
                "simulated machine",
                other.to_string(),
                "see `halfpower twin list`",
            ),
        }
    }
}
