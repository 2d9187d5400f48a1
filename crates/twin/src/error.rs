//! What can be wrong with a machine or its settings.

/// The result of building or using a twin.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, with the value and the hint.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// No machine of that name.
    #[error("no simulated machine is called '{name}'; there are {known}, or give the path of a machine file (.toml)")]
    Unknown {
        /// As asked.
        name: String,
        /// The presets.
        known: String,
    },
    /// A setting after the machine's name.
    #[error("setting '{setting}' of the simulated machine: {reason}")]
    Setting {
        /// As written.
        setting: String,
        /// Why not, and what would be right.
        reason: String,
    },
    /// A machine file.
    #[error("{file}, line {line}: {reason}")]
    Description {
        /// The file, or the preset's name.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Why not, and what would be right.
        reason: String,
    },
    /// A file that cannot be read.
    #[error("cannot read {file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// The system's words.
        reason: String,
    },
}

impl From<Error> for machine::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Setting { setting, reason } => machine::Error::refused(
                format!("setting '{setting}' of the simulated machine"),
                reason,
                "see `halfpower twin list` for machines and settings",
            ),
            other => machine::Error::refused("simulated machine", other.to_string(), "see `halfpower twin list`"),
        }
    }
}
