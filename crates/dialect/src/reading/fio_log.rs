//! Logs of fio 3; only a log's name says what it holds. Without `log_avg_msec` each line is a
//! request; with it, a line is the mean of a window, and its request size is 0.

use super::case::case;
use super::lines::{at, number};
use results::compare::{Measure, Measurement, Reading};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bandwidth,
    Iops,
    Latency,
    Completion,
    Submission,
}

impl Kind {
    /// `NAME_bw.log`, or `NAME_bw.3.log` of the third job.
    fn of(name: &str) -> Option<Kind> {
        let stem = name.strip_suffix(".log")?;
        let stem = match stem.rsplit_once('.') {
            Some((stem, job)) if job.bytes().all(|byte| byte.is_ascii_digit()) => stem,
            _ => stem,
        };
        let kinds = [
            ("_bw", Kind::Bandwidth),
            ("_iops", Kind::Iops),
            ("_clat", Kind::Completion),
            ("_slat", Kind::Submission),
            ("_lat", Kind::Latency),
        ];
        kinds.into_iter().find(|(end, _)| stem.ends_with(end)).map(|(_, kind)| kind)
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Bandwidth => "bandwidth",
            Kind::Iops => "requests",
            Kind::Latency => "latency",
            Kind::Completion => "completion latency",
            Kind::Submission => "submission latency",
        }
    }

    fn is_latency(self) -> bool {
        !matches!(self, Kind::Bandwidth | Kind::Iops)
    }
}

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

#[derive(Debug, Clone, Copy)]
struct Entry {
    ms: f64,
    value: f64,
    bytes: f64,
}

pub(super) fn is_log(name: &str, text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty());
    let columns = |line: &str| {
        let numbers = line.split(',').filter(|column| column.trim().parse::<f64>().is_ok());
        (4..=6).contains(&line.split(',').count()) && numbers.count() >= 4
    };
    Kind::of(name).is_some() && first.is_some_and(columns)
}

pub(super) fn read(name: &str, text: &str) -> Result<Vec<Measurement>, String> {
    let kind = Kind::of(name).ok_or("its name does not say what it holds: NAME_bw.log")?;
    let mut all: [Vec<Entry>; 3] = Default::default();
    for (place, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        if !(4..=6).contains(&columns.len()) {
            return Err(at(place, "it has not the four to six columns of a log of fio"));
        }
        if columns.len() == 4 && kind.is_latency() {
            return Err(at(
                place,
                "four columns are of an older fio, whose latencies are in us or in ns; compare its JSON instead",
            ));
        }
        let value = |column: usize| number(columns[column], place);
        let direction = value(2)?;
        let known = [0.0, 1.0, 2.0].iter().position(|one| *one == direction);
        let Some(entries) = known.map(|one| &mut all[one]) else {
            let why = format!("direction {} is not 0 (read), 1 (write) or 2 (trim)", columns[2]);
            return Err(at(place, why));
        };
        entries.push(Entry { ms: value(0)?, value: value(1)?, bytes: value(3)? });
    }
    let last_ms = all.iter().flatten().map(|entry| entry.ms).fold(0.0, f64::max);
    let directions = DIRECTIONS.into_iter().zip(all).filter(|(_, entries)| !entries.is_empty());
    Ok(directions.map(|(does, entries)| measured(kind, does, &entries, last_ms)).collect())
}

fn measured(kind: Kind, does: &str, entries: &[Entry], last_ms: f64) -> Measurement {
    let count = entries.len() as f64;
    let mean = entries.iter().map(|entry| entry.value).sum::<f64>() / count;
    let each_request = entries.iter().all(|entry| entry.bytes > 0.0);
    // A run of less than a millisecond has no rate.
    let per_s = |sum: f64| if last_ms > 0.0 { sum * 1e3 / last_ms } else { 0.0 };
    let bytes = || entries.iter().map(|entry| entry.bytes).sum();
    let readings = match (kind, each_request) {
        (Kind::Bandwidth, false) => vec![Reading::value(Measure::Throughput, mean * 1024.0)],
        (Kind::Iops, false) => vec![Reading::value(Measure::Iops, mean)],
        (Kind::Bandwidth | Kind::Iops, true) => vec![
            Reading::value(Measure::Iops, per_s(count)),
            Reading::value(Measure::Throughput, per_s(bytes())),
        ],
        (_, false) => vec![Reading::value(Measure::LatencyMean, mean)],
        (_, true) => latencies(entries, mean),
    };
    let settings = [("log", kind.name().to_string()), ("does", does.to_string())];
    case(&format!("{does}s"), &settings, readings)
}

/// The percentiles are nearest ranks.
fn latencies(entries: &[Entry], mean: f64) -> Vec<Reading> {
    let mut sorted: Vec<f64> = entries.iter().map(|entry| entry.value).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() as f64 * share).ceil() as usize).max(1) - 1];
    let shares =
        [(0.5, Measure::LatencyP50), (0.99, Measure::LatencyP99), (0.999, Measure::LatencyP999)];
    let percentiles = shares.map(|(share, measure)| Reading::value(measure, at(share)));
    std::iter::once(Reading::value(Measure::LatencyMean, mean)).chain(percentiles).collect()
}
