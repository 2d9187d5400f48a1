//! Results on disk: JSON in and out, schema versions.

use crate::document::{Results, SCHEMA};
use crate::soundness::{UniqueKeys, check};
use machine::input::Input;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// A document that halfpower wrote; a study's has some MiB.
pub const DOCUMENT: Input = Input::new("a results document", 64 << 20);

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
    /// Its figures contradict each other.
    #[error("{}: it contradicts itself: {why}; it was damaged or edited, so make it again", path.display())]
    Contradiction {
        /// Which file.
        path: PathBuf,
        /// Which figures, and in which point.
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
/// The file cannot be read, or its text is refused by [`parse`].
pub fn read(path: &Path) -> Result<Results, Error> {
    let text = DOCUMENT.text(path).map_err(|source| Error::Io { path: path.into(), source })?;
    parse(path, &text)
}

/// Reads results from the text of a file.
///
/// # Errors
/// It is not a document of ours, has another version, or contradicts itself.
pub fn parse(path: &Path, text: &str) -> Result<Results, Error> {
    let malformed = |error: serde_json::Error| Error::Malformed { path: path.into(), why: error.to_string() };
    let Header { schema } = serde_json::from_str(text).map_err(malformed)?;
    match schema.as_deref() {
        Some(SCHEMA) => {
            let _: UniqueKeys = serde_json::from_str(text).map_err(malformed)?;
            let results = serde_json::from_str(text).map_err(malformed)?;
            check(&results).map_err(|why| Error::Contradiction { path: path.into(), why })?;
            Ok(results)
        }
        Some(found) => Err(Error::Version { path: path.into(), found: found.into() }),
        None => Err(Error::Malformed { path: path.into(), why: "it names no schema".into() }),
    }
}

/// The part of a document that says how to read the rest.
#[derive(Deserialize)]
struct Header {
    schema: Option<String>,
}

/// The JSON Schema of the document, as it stands in `schema/`.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Results);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
