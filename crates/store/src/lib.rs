//! Results on disk: JSON in and out, schema versions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use study::{Results, SCHEMA};

/// Why results cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// `read` or `write`.
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The file is not a document of ours.
    #[error("{}: not a results document of halfpower: {why}; name a results.json that study, sweep or run wrote", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
    /// A document of another version.
    #[error("{}: its schema is '{found}' and this program reads '{SCHEMA}'; use the program that wrote it", path.display())]
    Version {
        /// Which file.
        path: PathBuf,
        /// The schema that it names.
        found: String,
    },
}

/// Results as a JSON text.
pub fn to_json(results: &Results) -> String {
    // Serialization to memory of a type without maps of odd keys cannot fail.
    serde_json::to_string_pretty(results).unwrap_or_default()
}

/// Writes results: first beside the file, then in its place, so that a killed program leaves no half document.
///
/// # Errors
/// The file cannot be written.
pub fn write(results: &Results, path: &Path) -> Result<(), Error> {
    let failed = |source| Error::Io { doing: "write", path: path.into(), source };
    let partial = path.with_extension("json.part");
    fs::write(&partial, to_json(results) + "\n").and_then(|()| fs::rename(&partial, path)).map_err(failed)
}

/// Reads results.
///
/// # Errors
/// The file cannot be read, is no document of ours, or is one of another version.
pub fn read(path: &Path) -> Result<Results, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Io { doing: "read", path: path.into(), source })?;
    let malformed = |why: String| Error::Malformed { path: path.into(), why };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
    match value.get("schema").and_then(|schema| schema.as_str()) {
        Some(SCHEMA) => serde_json::from_value(value).map_err(|error| malformed(error.to_string())),
        Some(found) => Err(Error::Version { path: path.into(), found: found.into() }),
        None => Err(malformed("it names no schema".into())),
    }
}

/// The JSON Schema of the document, as it stands in `schema/`.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Results);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
