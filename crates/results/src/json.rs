use crate::document::{Results, SCHEMA};
use crate::soundness::{UniqueKeys, check};
use files::Input;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// A study's document has a few MiB.
pub const DOCUMENT: Input = Input::new("a results document", 64 << 20);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: not a results document of halfpower: {why}; name a results.json that study, sweep or run wrote", path.display())]
    Malformed { path: PathBuf, why: String },
    #[error("{}: it contradicts itself: {why}; it was damaged or edited, so make it again", path.display())]
    Contradiction { path: PathBuf, why: String },
    #[error("{}: its schema is '{found}' and this program reads '{SCHEMA}'; use the program that wrote it", path.display())]
    Version { path: PathBuf, found: String },
}

/// With a final newline.
pub fn to_json(results: &Results) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(results)? + "\n")
}

/// Adds a command's own result (and schema) in a field named after the command.
pub fn to_json_with(
    results: &Results,
    command: &str,
    own: &impl Serialize,
) -> serde_json::Result<String> {
    let mut document = serde_json::to_value(results)?;
    let mut own = serde_json::to_value(own)?;
    if let (Some(fields), Some(own_fields)) = (document.as_object_mut(), own.as_object_mut()) {
        own_fields.insert("schema".into(), format!("halfpower.{command}/1").into());
        fields.insert(command.into(), own);
    }
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

pub fn read(path: &Path) -> Result<Results, Error> {
    let text = DOCUMENT.text(path).map_err(|source| Error::Io { path: path.into(), source })?;
    parse(path, &text)
}

/// # Errors
/// Another schema version.
pub fn parse(path: &Path, text: &str) -> Result<Results, Error> {
    let malformed =
        |error: serde_json::Error| Error::Malformed { path: path.into(), why: error.to_string() };
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

#[derive(Deserialize)]
struct Header {
    schema: Option<String>,
}

/// As in `schema/`.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Results);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
