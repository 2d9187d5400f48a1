//! IOzone's tables for spreadsheets (`-R`).

use super::case::case;
use super::iozone::{TESTS, reading};
use super::lines::{at, number};
use crate::iozone::Test;
use results::compare::Measurement;

/// Capitals differ between versions.
fn table(line: &str) -> Option<&'static str> {
    let title = line.trim().trim_matches('"').trim();
    let mut tests = Test::CLASSIC.iter().chain(&Test::POSITIONED).zip(TESTS);
    let found = tests.find(|(test, _)| test.report_title().eq_ignore_ascii_case(title));
    found.map(|(_, (name, _))| name)
}

pub(super) fn is_report(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with('"') && table(line).is_some())
}

fn cells(line: &str, place: usize) -> Result<(Vec<f64>, Vec<f64>), String> {
    let (mut quoted, mut plain) = (Vec::new(), Vec::new());
    for word in line.split_whitespace() {
        let inside = word.trim_matches('"');
        let value = number(inside, place)?;
        if inside.len() == word.len() { plain.push(value) } else { quoted.push(value) }
    }
    Ok((quoted, plain))
}

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut all = Vec::new();
    let mut current: Option<(&str, Option<Vec<f64>>)> = None;
    for (place, line) in text.lines().enumerate() {
        if let Some(test) = table(line).filter(|_| line.trim_start().starts_with('"')) {
            current = Some((test, None));
            continue;
        }
        let Some((test, records)) = &mut current else { continue };
        if line.trim().is_empty() {
            current = None;
            continue;
        }
        let (quoted, values) = cells(line, place)?;
        let Some(records) = records else {
            if quoted.is_empty() || !values.is_empty() {
                return Err(at(place, "the head of record sizes is missing"));
            }
            *records = Some(quoted);
            continue;
        };
        let [file] = quoted[..] else {
            return Err(at(place, "the row does not begin with one file size in quotation marks"));
        };
        if values.len() > records.len() {
            return Err(at(
                place,
                format_args!("{} figures for {} record sizes", values.len(), records.len()),
            ));
        }
        for (record, value) in records.iter().zip(values) {
            let settings = [
                ("test", (*test).to_string()),
                ("file KiB", file.to_string()),
                ("record KiB", record.to_string()),
            ];
            let one = case(test, &settings, vec![reading(text, value)]);
            // Sizes that were skipped are zeros.
            if !one.readings.is_empty() {
                all.push(one);
            }
        }
    }
    Ok(all)
}
