//! PostMark's terse report: 13 numbers a line.

use super::case::case;
use super::lines::number;
use results::compare::{Measure, Measurement, Reading};

/// Rates after the two times, by the full report's names.
const OPERATIONS: [&str; 9] = [
    "transaction",
    "create",
    "create alone",
    "create in transactions",
    "read",
    "append",
    "delete",
    "delete alone",
    "delete in transactions",
];
const DATA: [&str; 2] = ["data read", "data written"];

pub(super) fn is_terse(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let rate = |word: &&str| {
        word.split_once('.')
            .is_some_and(|(whole, part)| digits(whole) && digits(part) && part.len() == 2)
    };
    words.len() == 2 + OPERATIONS.len() + DATA.len()
        && words[..2].iter().all(|word| digits(word))
        && words[2..].iter().all(rate)
}

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut all = Vec::new();
    for (place, line) in text.lines().enumerate().filter(|(_, line)| is_terse(line)) {
        let values = line.split_whitespace().map(|word| number(word, place));
        let values: Vec<f64> = values.collect::<Result<_, _>>()?;
        let mut add = |what: &str, measure, value| {
            let settings = [("operation", what.to_string())];
            all.push(case(what, &settings, vec![Reading::value(measure, value)]));
        };
        add("whole run", Measure::Duration, values[0] * 1e9);
        for (what, rate) in OPERATIONS.into_iter().zip(&values[2..]) {
            add(what, Measure::Operations, *rate);
        }
        for (what, bytes_per_s) in DATA.into_iter().zip(&values[2 + OPERATIONS.len()..]) {
            add(what, Measure::Throughput, *bytes_per_s);
        }
    }
    Ok(all)
}
