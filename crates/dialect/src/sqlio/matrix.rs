//! The published study: 8 KB requests, 4 outstanding per thread, 1 to 256 threads on 80 GB, the
//! better of two runs of 300 s, partitions at sector 63 and at 64 KB.

use super::report::cut;
use super::run::{check_destroy, check_writable, spec};
use super::{Access, Kind, Options, files};
use machine::units::show_size;
use machine::{Error, Machine, Nanos, Result, TargetFacts, TargetSpec};
use measure::stats::{MIN_BLOCKS, Ratio, ratio_interval};
use measure::{Repeats, Runner};
use results::Point;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use workload::Workload;

/// Half the 95 % interval over the rate.
const TIGHT: f64 = 0.03;
/// Runs of a point, as published.
const MIN_RUNS: u32 = 2;
const MAX_RUNS: u32 = 4;
/// A point on two targets is decided below this change.
pub const DECIDED: f64 = 0.02;
const MAX_RUNS_IN_TURN: u32 = 32;

/// One point of the study at one partition start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// `R` or `W`.
    pub op: char,
    /// `ran` or `seq`.
    pub pattern: String,
    pub threads: u32,
    /// Partition start in bytes.
    pub align_bytes: u64,
    /// Requests per second of each run; empty if the point failed.
    pub runs_ios_per_s: Vec<f64>,
}

impl Entry {
    /// The run that the published study kept.
    pub fn best(&self) -> Option<f64> {
        self.runs_ios_per_s.iter().copied().reduce(f64::max)
    }
}

/// One row of the table of differences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// `R` or `W`.
    pub op: char,
    /// `ran` or `seq`.
    pub pattern: String,
    pub threads: u32,
    /// The two partition starts in bytes.
    pub align_bytes: [u64; 2],
    /// Better run of each, requests per second.
    pub ios_per_s: [f64; 2],
    /// The rates in MB/s (2^20), as the original prints them.
    pub mb_per_s: [f64; 2],
    /// Change of the second over the first, in percent.
    pub diff_percent: f64,
    /// The change of the rates in MB/s, in percent.
    pub diff_mb_percent: f64,
    /// The ratio with its 95 % interval, from interleaved runs; absent if there are too few.
    pub ratio: Option<Ratio>,
}

/// Results of the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixResult {
    /// The command line in its shortest form.
    pub command: String,
    pub request_bytes: u32,
    /// Every point at every partition start.
    pub entries: Vec<Entry>,
    /// Each partition start compared with the first.
    pub differences: Vec<Difference>,
    /// A summary of the differences.
    pub sentences: Vec<String>,
    /// The points in halfpower's common form.
    #[serde(skip)]
    pub points: Vec<Point>,
    /// Whether the user ended the study early: points that were not run are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
    #[serde(skip)]
    pub target: Option<TargetFacts>,
}

/// Fails for a missing file without a size, or another file in `--destroy-data`.
pub fn target(options: &Options) -> Result<TargetSpec> {
    let jobs = files(options, &[])?;
    check_destroy(options, &jobs)?;
    spec(options, &jobs[0])
}

pub fn two_targets(options: &Options) -> Result<[TargetSpec; 2]> {
    let jobs = files(options, &[])?;
    check_destroy(options, &jobs)?;
    let [a, b] = &jobs[..] else {
        return Err(Error::refused(
            "--matrix",
            "two targets are compared",
            "name two files, directories or devices",
        ));
    };
    Ok([spec(options, a)?, spec(options, b)?])
}

/// Limits of an interleaved comparison of two targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InTurn {
    /// Blocks have four runs, two on each target.
    pub max_blocks: usize,
    /// For all points.
    pub min_ns: Nanos,
}

/// `noisy`: repeated runs differ. Too few runs for an interval are an error.
pub fn in_turn(options: &Options, noisy: bool) -> Result<InTurn> {
    let max = options.repeats.unwrap_or(MAX_RUNS_IN_TURN);
    let min = 2 * MIN_BLOCKS as u32;
    if noisy && max < min {
        return Err(Error::refused(
            format!("--repeats {max}"),
            "a difference between two targets has no interval from so few runs",
            format!("give {min} or more"),
        ));
    }
    let runs = if noisy { 2 * u64::from(min) } else { 4 };
    let points = workloads(options, &[]).len() as u64;
    let min_ns = points.saturating_mul(runs).saturating_mul(options.run_ns());
    Ok(InTurn { max_blocks: max as usize / 2, min_ns })
}

/// Opens targets, and refuses points invalid on one.
pub fn open<'m, M: Machine>(
    machine: &'m M,
    specs: &[TargetSpec],
    options: &Options,
) -> Result<Runner<'m, M>> {
    let points = workloads(options, &machine.capabilities().engines);
    Runner::open_checked(machine, specs, |facts| {
        for facts in facts {
            check_writable(facts, true)?;
            points.iter().try_for_each(|(_, workload)| measure::check_fits(workload, facts))?;
        }
        Ok(points.iter().map(|(_, workload)| vec![workload.buffers()]).collect())
    })
}

/// In table order.
pub fn workloads(options: &Options, engines: &[machine::Engine]) -> Vec<(Entry, Workload)> {
    let aligns = if options.align.is_empty() { vec![0] } else { options.align.clone() };
    let max = options.max_threads.unwrap_or(super::MAX_THREADS);
    let mut all = Vec::new();
    for (kind, op) in [(Kind::Read, 'R'), (Kind::Write, 'W')] {
        for access in [Access::Random, Access::Sequential] {
            for threads in (0..9).map(|power| 1u32 << power).filter(|threads| *threads <= max) {
                for align in &aligns {
                    let mut workload = options.workload(kind, access, threads, engines);
                    workload.offset_bytes = *align;
                    workload.region_bytes = None;
                    let pattern = access.short().to_string();
                    all.push((
                        Entry {
                            op,
                            pattern,
                            threads,
                            align_bytes: *align,
                            runs_ios_per_s: Vec::new(),
                        },
                        workload,
                    ));
                }
            }
        }
    }
    all
}

/// Calls `on_progress` after every run (point, number of points, runs of the point so far). The
/// user's interrupt keeps the points until then; an early one is an error. A failed point stays
/// empty.
pub fn run<M: Machine>(
    runner: &mut Runner<'_, M>,
    options: &Options,
    mut on_progress: impl FnMut(usize, usize, usize),
) -> Result<MatrixResult> {
    let facts = runner.facts()[0].clone();
    let engines = runner.machine().capabilities().engines;
    let (mut entries, workloads): (Vec<Entry>, Vec<Workload>) =
        workloads(options, &engines).into_iter().unzip();
    let max = options.repeats.unwrap_or(MAX_RUNS);
    let repeats = Repeats { min: MIN_RUNS.min(max), max, precision: TIGHT, ..Repeats::default() };
    let count = workloads.len();
    let measured = results::measure_points(runner, &workloads, repeats, |index, made| {
        on_progress(index, count, made)
    });
    let (mut points, interrupted) = match measured {
        Ok(points) => (points, false),
        Err(Error::Interrupted) => {
            let samples = runner.take_interrupted().unwrap_or_default();
            (results::points_of(&workloads, &samples), true)
        }
        Err(error) => return Err(error),
    };
    let request = options.request_bytes();
    for (entry, point) in entries.iter_mut().zip(&points) {
        let rates = point.numbers.iter().flat_map(|numbers| &numbers.runs_bytes_per_s);
        entry.runs_ios_per_s = rates.map(|rate| rate / f64::from(request)).collect();
    }
    if interrupted {
        // The others were not run.
        points.retain(|point| point.numbers.is_some());
        entries.retain(|entry| entry.best().is_some());
        if points.is_empty() {
            return Err(Error::Interrupted);
        }
    }
    let differences = differences(&entries, request);
    let mut warnings = results::folded_warnings(points.iter());
    warnings.extend(points.iter().zip(&entries).filter_map(|(point, entry)| {
        let why = point.error.as_ref()?;
        Some(format!("{} {} with {} threads failed: {why}", entry.op, entry.pattern, entry.threads))
    }));
    Ok(MatrixResult {
        command: options.to_string(),
        request_bytes: request,
        sentences: sentences(&differences),
        differences,
        entries,
        points,
        interrupted,
        warnings,
        target: Some(facts),
    })
}

/// Compares partition starts with the first.
pub fn differences(entries: &[Entry], request_bytes: u32) -> Vec<Difference> {
    let mb = |ios: f64| cut(ios * f64::from(request_bytes) / (1 << 20) as f64);
    let Some(first) = entries.first().map(|entry| entry.align_bytes) else { return Vec::new() };
    let compare = |new: &Entry| {
        let same = |old: &&Entry| {
            old.align_bytes == first
                && old.op == new.op
                && old.pattern == new.pattern
                && old.threads == new.threads
        };
        let old = entries.iter().find(same)?;
        let ios = [old.best()?, new.best()?];
        let rates = [mb(ios[0]), mb(ios[1])];
        let runs = old.runs_ios_per_s.len().min(new.runs_ios_per_s.len());
        Some(Difference {
            op: new.op,
            pattern: new.pattern.clone(),
            threads: new.threads,
            align_bytes: [first, new.align_bytes],
            ios_per_s: ios,
            mb_per_s: rates,
            diff_percent: (ios[1] / ios[0] - 1.0) * 100.0,
            diff_mb_percent: if rates[0] > 0.0 { (rates[1] / rates[0] - 1.0) * 100.0 } else { 0.0 },
            ratio: ratio_interval(&old.runs_ios_per_s[..runs], &new.runs_ios_per_s[..runs]),
        })
    };
    entries.iter().filter(|entry| entry.align_bytes != first).filter_map(compare).collect()
}

/// One for each pair of starts.
pub fn sentences(differences: &[Difference]) -> Vec<String> {
    let mut aligns: Vec<[u64; 2]> =
        differences.iter().map(|difference| difference.align_bytes).collect();
    aligns.sort_unstable();
    aligns.dedup();
    aligns
        .iter()
        .map(|pair| {
            sentence(
                *pair,
                &differences
                    .iter()
                    .filter(|difference| difference.align_bytes == *pair)
                    .collect::<Vec<_>>(),
            )
        })
        .collect()
}

fn sentence(pair: [u64; 2], rows: &[&Difference]) -> String {
    let mean = |rows: &[f64]| rows.iter().sum::<f64>() / rows.len().max(1) as f64;
    let of = |pattern: &str| {
        rows.iter()
            .filter(|row| row.pattern == pattern)
            .map(|row| row.diff_percent)
            .collect::<Vec<_>>()
    };
    let all: Vec<f64> = rows.iter().map(|row| row.diff_percent).collect();
    let min = all.iter().copied().fold(f64::INFINITY, f64::min);
    let max = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut text = format!(
        "A start at {} against {} changes the rate by {:+.1} % on average, from {min:+.1} to {max:+.1} %: random {:+.1} %, sequential {:+.1} %.",
        show_size(pair[1]),
        show_size(pair[0]),
        mean(&all),
        mean(&of("ran")),
        mean(&of("seq"))
    );
    let judged = rows.iter().filter(|row| row.ratio.is_some()).count();
    if judged > 0 {
        let apart =
            rows.iter().filter(|row| row.ratio.as_ref().is_some_and(Ratio::is_different)).count();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            " In {apart} of {judged} points the 95 % interval of the runs leaves no doubt that there is a difference."
        );
    }
    text
}

/// The published columns, or rates of one partition start.
pub fn table(result: &MatrixResult) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    if result.differences.is_empty() {
        let _ = writeln!(text, "oper     thr    IOs/sec    MBs/sec  runs");
        for entry in &result.entries {
            let ios = entry.best().map_or("failed".into(), |best| format!("{best:.2}"));
            let mb = entry.best().map_or("failed".into(), |best| {
                format!("{:.2}", cut(best * f64::from(result.request_bytes) / (1 << 20) as f64))
            });
            let _ = writeln!(
                text,
                "{} {} {:>6} {ios:>10} {mb:>10} {:>5}",
                entry.op,
                entry.pattern,
                entry.threads,
                entry.runs_ios_per_s.len()
            );
        }
    }
    let mut pairs: Vec<[u64; 2]> = result.differences.iter().map(|row| row.align_bytes).collect();
    pairs.sort_unstable();
    pairs.dedup();
    for pair in pairs {
        let _ = writeln!(
            text,
            "orig: start at {}, new: start at {}",
            show_size(pair[0]),
            show_size(pair[1])
        );
        let _ = writeln!(text, "               IOs/sec                          MBs/sec");
        let _ = writeln!(
            text,
            "oper     thr       orig        new    diff%       orig        new    diff%"
        );
        for row in result.differences.iter().filter(|row| row.align_bytes == pair) {
            let _ = writeln!(
                text,
                "{} {} {:>6} {:>10.2} {:>10.2} {:>8.2} {:>10.2} {:>10.2} {:>8.2}",
                row.op,
                row.pattern,
                row.threads,
                row.ios_per_s[0],
                row.ios_per_s[1],
                row.diff_percent,
                row.mb_per_s[0],
                row.mb_per_s[1],
                row.diff_mb_percent
            );
        }
    }
    for sentence in &result.sentences {
        let _ = writeln!(text, "{sentence}");
    }
    for warning in &result.warnings {
        let _ = writeln!(text, "Warning: {warning}");
    }
    text
}
