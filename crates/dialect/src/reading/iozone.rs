//! Parses IOzone's table of file and record sizes.

use super::asked;
use results::compare::{Measure, Measurement, Reading};

/// Its tests in column order, with the width of their columns.
const TESTS: [(&str, usize); 21] = [
    ("write", 9),
    ("rewrite", 9),
    ("read", 9),
    ("reread", 9),
    ("random read", 9),
    ("random write", 9),
    ("backward read", 9),
    ("record rewrite", 10),
    ("stride read", 10),
    ("fwrite", 9),
    ("frewrite", 9),
    ("fread", 9),
    ("freread", 9),
    ("pwrite", 10),
    ("repwrite", 10),
    ("pread", 10),
    ("repread", 10),
    ("pwritev", 10),
    ("repwritev", 10),
    ("preadv", 10),
    ("repreadv", 10),
];
/// Width of the columns of the file and record sizes.
const SIZES: [usize; 2] = [16, 8];

/// The unit of a number in the table.
fn reading(text: &str, value: f64) -> Reading {
    if text.contains("operations per second") {
        Reading::value(Measure::Iops, value)
    } else if text.contains("Microseconds/op") {
        Reading::value(Measure::LatencyMean, value * 1e3)
    } else {
        Reading::value(Measure::Throughput, value * 1024.0)
    }
}

/// Parses one case for each test, file and record size.
pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut rows = text
        .lines()
        .skip_while(|line| line.split_whitespace().take(2).ne(["kB", "reclen"]))
        .skip(1);
    let rows: Vec<&str> = rows.by_ref().take_while(|line| !line.trim().is_empty()).collect();
    if rows.is_empty() {
        return Err("it has no table of file and record sizes".into());
    }
    let mut all = Vec::new();
    for row in rows {
        let [file, record] =
            [(0, SIZES[0]), (SIZES[0], SIZES[1])].map(|(from, width)| cell(row, from, width));
        let (Some(file), Some(record)) = (file, record) else {
            return Err(format!("this row of its table has no sizes: '{}'", row.trim()));
        };
        let mut from = SIZES[0] + SIZES[1];
        for (test, width) in TESTS {
            if let Some(value) = cell(row, from, width) {
                let settings = [
                    ("test", test.to_string()),
                    ("file KiB", file.to_string()),
                    ("record KiB", record.to_string()),
                ];
                all.push(asked(test, &settings, vec![reading(text, value)]));
            }
            from += width;
        }
    }
    Ok(all)
}

/// The number in a column; `None`: it is blank.
fn cell(row: &str, from: usize, width: usize) -> Option<f64> {
    row.get(from..row.len().min(from + width))?.trim().parse().ok()
}
