//! Reads reports of other tools for comparison. Repeated reports in one file count as several runs.

mod case;
mod diskspd;
mod fio;
mod iozone;
mod postmark;
mod sqlio;

use results::compare::{Measurement, Side};

/// Why a report cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadingError {
    /// The format is unknown.
    #[error(
        "{0}: not a report that can be compared; name a results.json of halfpower, fio's JSON, diskspd's XML, a report of IOzone, PostMark or SQLIO, or \
         a CSV with named columns"
    )]
    Unknown(String),
    /// A known report without figures, or a damaged one.
    #[error("{name}: {tool}'s report cannot be read: {why}")]
    Damaged { name: String, tool: &'static str, why: String },
}

/// Parses a report into cases with figures.
type Read = fn(&str) -> Result<Vec<Measurement>, String>;

/// Reads a tool's report.
///
/// # Errors
/// A text that is not a report of a known tool, or a report without figures.
pub fn read_report(name: &str, text: &str) -> Result<Side, ReadingError> {
    let (tool, read): (_, Read) = if text.contains("\"fio version\"") {
        ("fio", fio::read)
    } else if text.trim_start().starts_with('<') && text.contains("<Results>") {
        ("diskspd", diskspd::read)
    } else if text.contains("Iozone:") || text.contains("iozone test complete") {
        ("IOzone", iozone::read)
    } else if text.contains("seconds of transactions") {
        ("PostMark", postmark::read)
    } else if text.contains("IOs/sec:") {
        ("SQLIO", sqlio::read)
    } else {
        return Err(ReadingError::Unknown(name.into()));
    };
    let damaged = |why: String| ReadingError::Damaged { name: name.into(), tool, why };
    let asked = read(text).map_err(damaged)?;
    if asked.iter().all(|one| one.readings.is_empty()) {
        return Err(damaged("it holds no figures; was the run completed?".into()));
    }
    Ok(Side { name: name.into(), asked, warnings: Vec::new() }.join_repeats())
}
