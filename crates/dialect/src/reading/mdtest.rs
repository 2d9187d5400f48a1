//! mdtest's summary of rates.

use super::case::case;
use super::lines::{at, number};
use results::compare::{Measure, Measurement, Reading};

pub(super) const MARK: &str = "SUMMARY rate";

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut all = Vec::new();
    let mut in_table = false;
    let mut tasks = String::new();
    for (place, line) in text.lines().enumerate() {
        let words = line.trim();
        if let Some((count, _)) = words.split_once(" tasks, ") {
            tasks = count.into();
        }
        if words.starts_with(MARK) {
            in_table = true;
            continue;
        }
        let is_head = words.starts_with("Operation ") || words.starts_with("---------");
        if !in_table || is_head {
            continue;
        }
        if words.is_empty() || words.starts_with("--") {
            in_table = false;
            continue;
        }
        // An operation of several words, then maximum, minimum, mean and deviation.
        let cells: Vec<&str> = words.split_whitespace().filter(|word| *word != ":").collect();
        let Some(split) = cells.len().checked_sub(4).filter(|split| *split > 0) else {
            return Err(at(place, format_args!("'{words}' has no four rates")));
        };
        let mut rates = Vec::new();
        for cell in &cells[split..] {
            rates.push(number(cell, place)?);
        }
        let operation = cells[..split].join(" ");
        let settings = [("operation", operation.clone()), ("tasks", tasks.clone())];
        let mean = vec![Reading::value(Measure::Operations, rates[2])];
        let one = case(&operation, &settings, mean);
        // Operations that were not run have rates of zero.
        if !one.readings.is_empty() {
            all.push(one);
        }
    }
    Ok(all)
}
