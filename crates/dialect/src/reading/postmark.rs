use super::case::case;
use results::compare::{Measure, Measurement, Reading};

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut all = Vec::new();
    let mut phase = "";
    for (place, line) in text.lines().map(str::trim).enumerate() {
        if let Some(seconds) = line.strip_suffix(" seconds total") {
            let seconds: f64 = seconds
                .parse()
                .map_err(|_| format!("line {}: '{seconds}' is not a time", place + 1))?;
            let time = Reading::value(Measure::Duration, seconds * 1e9);
            all.push(case("whole run", &[("operation", "whole run".into())], vec![time]));
            continue;
        }
        let (what, count) = match line.split_once(':') {
            Some(("Creation alone", rest)) => ("create alone", rest),
            Some(("Deletion alone", rest)) => ("delete alone", rest),
            Some(("Mixed with transactions", rest)) => (
                if phase == "delete" { "delete in transactions" } else { "create in transactions" },
                rest,
            ),
            _ => {
                let Some(word) = line
                    .split_whitespace()
                    .find(|word| WORDS.iter().any(|(known, _)| known == word))
                else {
                    continue;
                };
                let what =
                    WORDS.iter().find(|(known, _)| *known == word).map_or("", |(_, what)| what);
                phase = what;
                (what, line)
            }
        };
        let rate = rate(count).map_err(|why| format!("line {}: {why}", place + 1))?;
        let Some((value, unit)) = rate else { continue };
        let (what, reading) = match unit {
            None => (what.to_string(), Reading::value(Measure::Operations, value)),
            Some(bytes) => (
                format!("data {}", if what == "read" { "read" } else { "written" }),
                Reading::value(Measure::Throughput, value * bytes),
            ),
        };
        all.push(case(&what, &[("operation", what.clone())], vec![reading]));
    }
    Ok(all)
}

const WORDS: [(&str, &str); 6] = [
    ("transactions", "transaction"),
    ("created", "create"),
    ("read", "read"),
    ("appended", "append"),
    ("deleted", "delete"),
    ("written", "write"),
];

/// `... (1234 per second)` or `(1.23 megabytes per second)`, with the unit's bytes.
fn rate(line: &str) -> Result<Option<(f64, Option<f64>)>, String> {
    let inside = line.rsplit_once('(').and_then(|(_, end)| end.strip_suffix("per second)"));
    let Some(inside) = inside else { return Ok(None) };
    let mut words = inside.split_whitespace();
    let number = words.next().unwrap_or_default();
    let value = number.parse().map_err(|_| format!("'{number}' is not a number"))?;
    let unit = match words.next() {
        None => None,
        Some("megabytes") => Some(1_048_576.0),
        Some("kilobytes") => Some(1024.0),
        Some("bytes") => Some(1.0),
        Some(other) => return Err(format!("'{other}' is not a unit of PostMark")),
    };
    Ok(Some((value, unit)))
}
