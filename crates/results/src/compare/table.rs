//! CSV with named columns.

use super::measure::Measure;
use super::side::{Measurement, Reading, Side, kind};
use crate::csv::history_columns;
use machine::units::MIB;
use std::str::FromStr;
use workload::OpKind;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    pub a: String,
    pub b: String,
}

/// Given by the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Meaning {
    column: String,
    /// With the factor for its values; `None`: a setting.
    measure: Option<(Measure, f64)>,
}

const SETTING: &str = "setting";

impl FromStr for Meaning {
    type Err = String;

    fn from_str(text: &str) -> Result<Meaning, String> {
        let wrong = || {
            let names: Vec<&str> = NAMES.iter().map(|(name, ..)| *name).collect();
            format!(
                "'{text}' is not COLUMN=MEASURE; a measure is one of {}, or {SETTING}",
                names.join(", ")
            )
        };
        let (column, name) = text.rsplit_once('=').ok_or_else(wrong)?;
        let measure = NAMES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name.trim()));
        let measure = match measure {
            Some((_, measure, scale)) => Some((*measure, *scale)),
            None if name.trim() == SETTING => None,
            None => return Err(wrong()),
        };
        Ok(Meaning { column: column.trim().into(), measure })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("{name}: not a table in CSV: {why}")]
    Malformed { name: String, why: String },
    #[error(
        "{name}: no column holds a measure ({columns}); name two of them with --columns A,B, or call one iops, throughput_bytes_per_s, MBps, \
         operations_per_s, latency_p50_ns or latency_p99_ns"
    )]
    NoMeasure { name: String, columns: String },
    #[error(
        "{name}: what does the column '{column}' hold? Write --measure '{column}=MEASURE', such as iops, MiB/s or p99_us, or --measure '{column}=setting'"
    )]
    Unclear { name: String, column: String },
    #[error("{name}: it has no column '{column}'; its columns are {columns}")]
    NoColumn { name: String, column: String, columns: String },
    #[error(
        "{name}, line {line}: '{text}' in the column {column} is not a positive number; correct it or leave it empty"
    )]
    Cell { name: String, line: u64, column: String, text: String },
}

/// With the factor for their values; halfpower's own names first.
const NAMES: [(&str, Measure, f64); 19] = [
    ("iops", Measure::Iops, 1.0),
    ("throughput_bytes_per_s", Measure::Throughput, 1.0),
    ("operations_per_s", Measure::Operations, 1.0),
    ("latency_mean_ns", Measure::LatencyMean, 1.0),
    ("latency_p50_ns", Measure::LatencyP50, 1.0),
    ("latency_p99_ns", Measure::LatencyP99, 1.0),
    ("latency_p999_ns", Measure::LatencyP999, 1.0),
    ("cpu_ns_per_request", Measure::Cpu, 1.0),
    // Storage tools mean 2^20 bytes by MB.
    ("mbps", Measure::Throughput, MIB as f64),
    ("mb_per_s", Measure::Throughput, MIB as f64),
    ("mb/s", Measure::Throughput, MIB as f64),
    ("mib/s", Measure::Throughput, MIB as f64),
    ("mib_per_s", Measure::Throughput, MIB as f64),
    ("kb/s", Measure::Throughput, 1024.0),
    ("bytes_per_s", Measure::Throughput, 1.0),
    ("ios/sec", Measure::Iops, 1.0),
    ("p50_us", Measure::LatencyP50, 1e3),
    ("p99_us", Measure::LatencyP99, 1e3),
    ("p99_ms", Measure::LatencyP99, 1e6),
];

/// Not part of the question: length, seed and row number.
const NO_KEYS: [&str; 5] = ["point", "stop_after_ns", "stop_after_bytes", "limit_bytes", "seed"];

#[derive(Debug, Clone)]
struct Source {
    measure: Measure,
    scale: f64,
    column: usize,
    interval: Option<[usize; 2]>,
}

/// A column named after a measure (`iops`) belongs to one side. Two columns whose names start with
/// one measure (`iops_4KB_unit`, `iops_64KB_unit`) are two sides, named by the rest. Columns before
/// the first measure are the question; rows with one question are repeats. `meanings` explains
/// other names.
///
/// # Errors
/// No measure, or a question's column that could be one.
pub fn read_table(
    name: &str,
    text: &str,
    columns: Option<&Columns>,
    meanings: &[Meaning],
) -> Result<Vec<Side>, TableError> {
    let mut reader =
        ::csv::ReaderBuilder::new().trim(::csv::Trim::All).from_reader(text.as_bytes());
    let malformed =
        |error: ::csv::Error| TableError::Malformed { name: name.into(), why: error.to_string() };
    let header: Vec<String> =
        reader.headers().map_err(malformed)?.iter().map(String::from).collect();
    if let Some(Meaning { column, .. }) =
        meanings.iter().find(|meaning| !header.contains(&meaning.column))
    {
        let columns = header.join(", ");
        return Err(TableError::NoColumn { name: name.into(), column: column.clone(), columns });
    }
    let sides = sides(name, &header, columns, meanings)?;
    let first = sides
        .iter()
        .flat_map(|(_, sources)| sources)
        .map(|source| source.column)
        .min()
        .unwrap_or(0);
    let keys: Vec<usize> =
        (0..first).filter(|&place| !NO_KEYS.contains(&header[place].as_str())).collect();
    let error_column = header.iter().position(|column| column == "error");
    let mut read: Vec<Side> =
        sides.iter().map(|(side, _)| Side { name: side.clone(), ..Side::default() }).collect();
    let unclear = |place: &usize| {
        let column = &header[*place];
        !meanings.iter().any(|meaning| meaning.column == *column)
            && !history_columns().any(|own| own == column)
    };
    let unclear: Vec<usize> = keys.iter().copied().filter(|place| unclear(place)).collect();
    for row in reader.records() {
        let row = row.map_err(malformed)?;
        // Settings are words and whole numbers.
        let holds_figures = |place: &&usize| {
            let cell = row.get(**place).unwrap_or_default();
            looks_measured(&header[**place]) && cell.parse::<f64>().is_ok()
                || cell.parse::<f64>().is_ok_and(|value| value.fract() != 0.0)
        };
        if let Some(&place) = unclear.iter().find(holds_figures) {
            return Err(TableError::Unclear { name: name.into(), column: header[place].clone() });
        }
        let line = row.position().map_or(0, ::csv::Position::line);
        let keys: Vec<(String, String)> = keys
            .iter()
            .map(|&place| (header[place].clone(), row.get(place).unwrap_or_default().to_string()))
            .collect();
        for (side, (_, sources)) in read.iter_mut().zip(&sides) {
            let mut readings = Vec::new();
            for source in sources {
                readings.extend(reading(name, line, &header, &row, source)?);
            }
            let why = || {
                error_column
                    .and_then(|column| row.get(column))
                    .filter(|why| !why.is_empty())
                    .unwrap_or("no value")
            };
            let error = readings.is_empty().then(|| why().to_string());
            side.asked.push(asked(&keys, readings, error));
        }
    }
    let repeats =
        sides.iter().flat_map(|(_, sources)| sources).all(|source| source.interval.is_none());
    Ok(read.into_iter().map(|side| if repeats { side.join_repeats() } else { side }).collect())
}

fn looks_measured(column: &str) -> bool {
    const WORDS: [&str; 18] = [
        "iops",
        "bandwidth",
        "throughput",
        "latency",
        "lat",
        "bw",
        "rate",
        "ops",
        "mbps",
        "mean",
        "avg",
        "average",
        "median",
        "p50",
        "p95",
        "p99",
        "elapsed",
        "runtime",
    ];
    let lower = column.to_ascii_lowercase();
    lower.contains("/s")
        || lower
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(|word| WORDS.contains(&word))
}

/// Also returns the factor, and the rest of the name.
fn measured<'a>(column: &'a str, meanings: &[Meaning]) -> Option<(Measure, f64, &'a str)> {
    if let Some(meaning) = meanings.iter().find(|meaning| meaning.column == column) {
        return meaning.measure.map(|(measure, scale)| (measure, scale, ""));
    }
    let lower = column.to_ascii_lowercase();
    let fits = |name: &str| {
        let rest = lower.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(['_', ' ', '-'])).then_some(name.len())
    };
    NAMES.iter().find_map(|&(name, measure, scale)| {
        let at = fits(name)?;
        Some((measure, scale, column[at..].trim_matches(['_', ' ', '-'])))
    })
}

fn sides(
    name: &str,
    header: &[String],
    columns: Option<&Columns>,
    meanings: &[Meaning],
) -> Result<Vec<(String, Vec<Source>)>, TableError> {
    let all = || header.join(", ");
    if let Some(Columns { a, b }) = columns {
        let side = |wanted: &String| {
            let column = header.iter().position(|column| column == wanted).ok_or_else(|| {
                TableError::NoColumn { name: name.into(), column: wanted.clone(), columns: all() }
            })?;
            let (measure, scale, _) = measured(wanted, meanings)
                .ok_or_else(|| TableError::Unclear { name: name.into(), column: wanted.clone() })?;
            Ok((wanted.clone(), vec![Source { measure, scale, column, interval: None }]))
        };
        return Ok(vec![side(a)?, side(b)?]);
    }
    let known: Vec<(usize, Measure, f64, &str)> = header
        .iter()
        .enumerate()
        .filter_map(|(place, column)| {
            measured(column, meanings).map(|(measure, scale, rest)| (place, measure, scale, rest))
        })
        .collect();
    let at = |measure: Measure, rest: &str| {
        known
            .iter()
            .find(|one| one.1 == measure && one.3.eq_ignore_ascii_case(rest))
            .map(|one| one.0)
    };
    let alone: Vec<Source> = known
        .iter()
        .filter(|one| one.3.is_empty())
        .map(|&(column, measure, scale, _)| Source {
            measure,
            scale,
            column,
            interval: at(measure, "low_95")
                .zip(at(measure, "high_95"))
                .map(|(low, high)| [low, high]),
        })
        .collect();
    if !alone.is_empty() {
        return Ok(vec![(name.into(), alone)]);
    }
    let mut names: Vec<&str> = Vec::new();
    for (_, _, _, rest) in &known {
        if !names.contains(rest) {
            names.push(rest);
        }
    }
    let [a, b] = names[..] else {
        return Err(TableError::NoMeasure { name: name.into(), columns: all() });
    };
    let of = |side: &str| {
        let mine = known.iter().filter(|one| one.3 == side);
        mine.map(|&(column, measure, scale, _)| Source { measure, scale, column, interval: None })
            .collect()
    };
    Ok(vec![(spoken(a), of(a)), (spoken(b), of(b))])
}

/// Turns `31_5KB_offset` into `31.5KB offset`.
fn spoken(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let digit = |place: Option<usize>| {
        place.and_then(|place| letters.get(place)).is_some_and(char::is_ascii_digit)
    };
    let say = |(place, &letter): (usize, &char)| match letter {
        '_' if digit(place.checked_sub(1)) && digit(Some(place + 1)) => '.',
        '_' => ' ',
        other => other,
    };
    letters.iter().enumerate().map(say).collect()
}

fn reading(
    name: &str,
    line: u64,
    header: &[String],
    row: &::csv::StringRecord,
    source: &Source,
) -> Result<Option<Reading>, TableError> {
    let number = |column: usize| {
        let text = row.get(column).unwrap_or_default();
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && value >= 0.0 => Ok(Some(value * source.scale)),
            _ => Err(TableError::Cell {
                name: name.into(),
                line,
                column: header[column].clone(),
                text: text.into(),
            }),
        }
    };
    let Some(value) = number(source.column)? else { return Ok(None) };
    let interval_95 = match source.interval {
        Some([low, high]) => number(low)?.zip(number(high)?).map(|(low, high)| [low, high]),
        None => None,
    };
    Ok(Some(Reading { interval_95, ..Reading::value(source.measure, value) }))
}

fn asked(keys: &[(String, String)], readings: Vec<Reading>, error: Option<String>) -> Measurement {
    let of = |name: &str| keys.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let op = match of("op").unwrap_or_default() {
        "R" | "r" | "read" => Some(OpKind::Read),
        "W" | "w" | "write" => Some(OpKind::Write),
        "mix" => Some(OpKind::Mix),
        _ => None,
    };
    let pattern = match of("pattern") {
        Some("ran" | "rand" | "random") => Some("random"),
        Some("sequential" | "seq") => Some("seq"),
        other => other,
    };
    let say = |(key, value): &(String, String)| match value.parse::<f64>() {
        Ok(_) => format!("{key} {value}"),
        Err(_) => value.clone(),
    };
    let said: Vec<String> = keys.iter().filter(|(_, value)| !value.is_empty()).map(say).collect();
    Measurement {
        question: keys
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(" "),
        label: said.join(", "),
        keys: keys.to_vec(),
        kind: match (op, pattern) {
            (Some(op), Some(pattern)) => kind(op, pattern),
            _ => of("op").unwrap_or_default().to_string(),
        },
        readings,
        error,
        changed: None,
    }
}
