//! IOzone's throughput mode (`-t`).

use super::case::case;
use super::lines::{at, between, number};
use results::compare::{Measure, Measurement, Reading};

pub(super) const MARK: &str = "Children see throughput for";

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut all = Vec::new();
    let [mut file, mut record] = [String::new(), String::new()];
    for (place, line) in text.lines().map(str::trim).enumerate() {
        // "Each process writes a 1024 kByte file in 64 kByte records"
        if let Some(words) = line.strip_prefix("Each ").filter(|words| words.contains(" writes a "))
        {
            file = between(words, " writes a ", " kByte").unwrap_or_default().into();
            record = between(words, " file in ", " kByte").unwrap_or_default().into();
        }
        let Some(rest) = line.strip_prefix(MARK) else { continue };
        let wrong =
            || at(place, format_args!("'{line}' has no number of processes, test, rate and unit"));
        let (what, value) = rest.split_once('=').ok_or_else(wrong)?;
        let (processes, test) = what.trim().split_once(' ').ok_or_else(wrong)?;
        number(processes, place)?;
        let mut words = value.split_whitespace();
        let rate = number(words.next().unwrap_or_default(), place)?;
        let reading = match words.next() {
            Some("kB/sec") => Reading::value(Measure::Throughput, rate * 1024.0),
            Some("ops/sec") => Reading::value(Measure::Iops, rate),
            _ => return Err(wrong()),
        };
        let test = test.trim().trim_end_matches('s').to_string();
        let settings = [
            ("test", test.clone()),
            ("processes", processes.to_string()),
            ("file KiB", file.clone()),
            ("record KiB", record.clone()),
        ];
        all.push(case(&test, &settings, vec![reading]));
    }
    Ok(all)
}
