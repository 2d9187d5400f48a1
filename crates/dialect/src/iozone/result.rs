use super::{Cell, Test};
use machine::TargetFacts;
use machine::units::{show_rate, show_size};
use results::Point;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The half-power criterion for a cliff.
const HALF: f64 = 0.5;

/// One pass over one file with one record size, with its repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    #[serde(flatten)]
    pub cell: Cell,
    pub test: Test,
    /// Bytes per second of each repeat, including the flush if requested.
    pub runs_bytes_per_s: Vec<f64>,
    /// Requests per second of the median repeat.
    pub operations_per_s: f64,
    /// Processor time over elapsed time in percent, of all repeats.
    pub cpu_percent: f64,
    /// The pass as a point, with latencies, processor cost and warnings.
    pub point: Point,
}

impl Measured {
    /// The median in bytes per second.
    pub fn rate(&self) -> f64 {
        let mut sorted = self.runs_bytes_per_s.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The range over the median; `None` with one repeat.
    pub fn spread_percent(&self) -> Option<f64> {
        let min = self.runs_bytes_per_s.iter().copied().fold(f64::INFINITY, f64::min);
        let max = self.runs_bytes_per_s.iter().copied().fold(0.0, f64::max);
        (self.runs_bytes_per_s.len() > 1).then(|| (max - min) / self.rate() * 100.0)
    }
}

/// The rates of one test over file and record sizes, for a surface plot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Surface {
    pub test: Test,
    /// File sizes, ascending.
    pub file_bytes: Vec<u64>,
    /// Record sizes, ascending.
    pub record_bytes: Vec<u64>,
    /// Rate in KiB/s by file size, then record size; absent if the record is larger than the file
    /// or nothing was measured.
    pub kib_per_s: Vec<Vec<Option<f64>>>,
}

/// The file size that outgrows a cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cliff {
    pub test: Test,
    /// The largest file before the cliff.
    pub last_fast_file_bytes: u64,
    /// The smallest file after the cliff.
    pub first_slow_file_bytes: u64,
    /// The best rate up to the cliff.
    pub before_bytes_per_s: f64,
    /// The best rate beyond the cliff.
    pub after_bytes_per_s: f64,
    /// The cliff as a sentence.
    pub sentence: String,
}

/// One child of the throughput mode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Child {
    /// Bytes transferred until this child, or the first one, was done.
    pub bytes: u64,
    /// Time for these bytes.
    pub elapsed_ns: u64,
    pub operations: u64,
}

/// One test of the throughput mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    pub test: Test,
    /// Concurrent processes (or threads).
    pub children: Vec<Child>,
    /// The time from the first request of any child to the last of all.
    pub elapsed_ns: u64,
    /// Sum of the children's rates in each repeat, bytes per second; `children` are those of the
    /// median.
    pub runs_bytes_per_s: Vec<f64>,
    /// Processor time of the process.
    pub cpu_ns: u64,
    /// One point per child's file.
    pub points: Vec<Point>,
}

/// All results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IozoneResult {
    /// The command line in its shortest form.
    pub command: String,
    /// Cells of the automatic mode, or of one size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Measured>,
    /// Tests of the throughput mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throughput: Vec<Throughput>,
    /// One surface of rates per test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub surfaces: Vec<Surface>,
    /// The file sizes that outgrow a cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cliffs: Vec<Cliff>,
    /// Whether the user ended the run early: the last cell or test has what was done until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
    /// The (first) file.
    #[serde(skip)]
    pub target: Option<TargetFacts>,
}

/// One for each test.
pub fn surfaces(cells: &[Measured]) -> Vec<Surface> {
    let mut tests: Vec<Test> = cells.iter().map(|cell| cell.test).collect();
    tests.sort_unstable();
    tests.dedup();
    let sizes = |of: fn(&Measured) -> u64| {
        let mut sizes: Vec<u64> = cells.iter().map(of).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    let (files, records) =
        (sizes(|cell| cell.cell.file_bytes), sizes(|cell| cell.cell.record_bytes));
    let rate = |test, file_bytes, record_bytes| {
        let cell = Cell { file_bytes, record_bytes };
        cells
            .iter()
            .find(|measured| measured.test == test && measured.cell == cell)
            .map(|measured| measured.rate() / 1024.0)
    };
    let surface = |test| Surface {
        test,
        file_bytes: files.clone(),
        record_bytes: records.clone(),
        kib_per_s: files
            .iter()
            .map(|file| records.iter().map(|record| rate(test, *file, *record)).collect())
            .collect(),
    };
    tests.into_iter().map(surface).collect()
}

/// A cliff is the smallest file size from which no rate, at any record size, exceeds half of the
/// best rate before it. `memory_bytes` and `direct` only name the cache.
pub fn cliffs(surfaces: &[Surface], memory_bytes: u64, direct: bool) -> Vec<Cliff> {
    surfaces.iter().filter_map(|surface| cliff(surface, memory_bytes, direct)).collect()
}

fn cliff(surface: &Surface, memory_bytes: u64, direct: bool) -> Option<Cliff> {
    let best: Vec<f64> = surface
        .kib_per_s
        .iter()
        .map(|row| row.iter().flatten().copied().fold(0.0, f64::max) * 1024.0)
        .collect();
    let after = |from: usize| best[from..].iter().copied().fold(0.0, f64::max);
    let at = (1..best.len()).find(|&from| {
        let before = best[..from].iter().copied().fold(0.0, f64::max);
        after(from) > 0.0 && after(from) <= before * HALF
    })?;
    let before = best[..at].iter().copied().fold(0.0, f64::max);
    let (last, first) = (surface.file_bytes[at - 1], surface.file_bytes[at]);
    let cache = match (direct, first) {
        (true, _) => "a cache of the device or its adapter",
        (false, size) if size >= memory_bytes / 8 => "the page cache that the memory has room for",
        (false, size) if size <= memory_bytes / 256 && !surface.test.writes() => {
            "a cache of the processor"
        }
        (false, _) if surface.test.writes() => "what the page cache holds back of writes",
        (false, _) => "a cache",
    };
    let title = surface.test.title().to_lowercase();
    let sentence = format!(
        "{title}: up to {} with files of at most {} and no more than {} from {} on: between the two sizes the file outgrows {cache}.",
        show_rate(before),
        show_size(last),
        show_rate(after(at)),
        show_size(first)
    );
    Some(Cliff {
        test: surface.test,
        last_fast_file_bytes: last,
        first_slow_file_bytes: first,
        before_bytes_per_s: before,
        after_bytes_per_s: after(at),
        sentence,
    })
}
