//! Results on disk: JSON in and out, schema versions.

use crate::document::{Results, SCHEMA};
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why results cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("cannot read {}: {source}", path.display())]
    Io {
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

/// Results as a JSON text that ends with its last line.
///
/// # Errors
/// Something in them cannot be JSON.
pub fn to_json(results: &Results) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(results)? + "\n")
}

/// Results as a JSON text, with a command's own result, of a schema of its own, under the command's name.
///
/// # Errors
/// Something in them cannot be JSON.
pub fn to_json_with(results: &Results, command: &str, own: &impl Serialize) -> serde_json::Result<String> {
    let mut document = serde_json::to_value(results)?;
    let mut own = serde_json::to_value(own)?;
    if let (Some(fields), Some(own_fields)) = (document.as_object_mut(), own.as_object_mut()) {
        own_fields.insert("schema".into(), format!("halfpower.{command}/1").into());
        fields.insert(command.into(), own);
    }
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// Reads results.
///
/// # Errors
/// The file cannot be read, is no document of ours, or is one of another version.
pub fn read(path: &Path) -> Result<Results, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Io { path: path.into(), source })?;
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
