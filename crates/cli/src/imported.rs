//! Other tools' reports.

use crate::documents;
use crate::failure::Failure;
use files::Input;
use results::compare::Side;
use serde::{Deserialize, Serialize};
use std::path::Path;

const REPORT: Input = Input::new("a report", 64 << 20);

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Imported {
    schema: String,
    name: String,
    text: String,
}

const IMPORT_SCHEMA: &str = "halfpower.import/1";

impl Imported {
    pub(crate) fn read(path: &Path) -> Result<Imported, Failure> {
        Ok(Imported { schema: IMPORT_SCHEMA.into(), name: name(path), text: text_of(path)? })
    }

    pub(crate) fn is_report(&self) -> bool {
        dialect::reading::is_report(&self.name, &self.text)
            && documents::schema(&self.text).is_none()
    }

    pub(crate) fn into_parts(self) -> (String, String) {
        (self.name, self.text)
    }

    pub(crate) fn side(&self) -> Result<Side, Failure> {
        dialect::reading::read_report(&self.name, &self.text)
            .map_err(|error| Failure::Usage(error.to_string()))
    }
}

pub(crate) fn text_of(path: &Path) -> Result<String, Failure> {
    Ok(text(&bytes(path)?))
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |why: String| Failure::Usage(format!("cannot read {}: {why}", path.display()));
    REPORT
        .read(path)
        .map_err(|error| unreadable(format!("{error}; name a results.json or a tool's report")))
}

/// UTF-8, or UTF-16 with a byte-order mark, which Windows shells write on redirection.
fn text(bytes: &[u8]) -> String {
    let units = |bytes: &[u8], order: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| order([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn name(path: &Path) -> String {
    let file = path
        .file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    let within =
        path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    match within {
        Some(within)
            if matches!(file.as_str(), "results.json" | "sustained.json" | "points.csv") =>
        {
            format!("{within}/{file}")
        }
        _ => file,
    }
}
