//! The command line.

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use machine::units::{parse_size, parse_time};
use machine::{Allocation, CacheState, Engine, Hint};
use std::path::PathBuf;
use workload::Pattern;

/// How fast storage really goes, why it is not faster, and what to change.
#[derive(Parser)]
#[command(name = "halfpower", version, max_term_width = 120)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// The main job: every experiment that fits the target and the time, one answer
    Study(StudyArguments),
    /// One workload, one result
    Run(PointArguments),
    /// A grid of workloads, one table: the options take lists, and every combination is measured
    Sweep(PointArguments),
    /// Read back what `run --verify --verify-log LOG` wrote, even if it was killed, and check it
    Verify(crate::verify::Arguments),
    /// Make the report again from results.json
    Report(ReportArguments),
    /// File size against record size, in the language of IOzone
    #[command(disable_help_flag = true)]
    Iozone(ToolArguments),
    /// Random and sequential requests as a database makes them, in the language of SQLIO; and the alignment study
    #[command(disable_help_flag = true)]
    Sqlio(ToolArguments),
    /// Loads of many kinds on files and devices, in the language of diskspd
    #[command(disable_help_flag = true)]
    Diskspd(ToolArguments),
    /// Jobs and job files, in the language of fio
    #[command(disable_help_flag = true)]
    Fio(ToolArguments),
    /// Small files as mail and web servers use them, in the language of PostMark: from FILE, at a prompt or through a pipe
    Postmark(crate::postmark::Arguments),
    /// What making, opening, renaming, listing and deleting many files costs
    Metadata(crate::metadata::Arguments),
    /// Simulated machines: what there is, how well they match, what a change would do
    Twin(crate::twin::Arguments),
}

/// The words of another tool's command line, which reads them itself.
#[derive(Args, Clone)]
pub(crate) struct ToolArguments {
    /// As the tool takes them; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub(crate) words: Vec<String>,
}

/// What a study is asked to do.
#[derive(Args, Clone)]
pub(crate) struct StudyArguments {
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    /// Time for all of it [default: 3m; with --quick 50s, with --full 20m]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) budget: Option<u64>,
    /// The corners of every grid alone
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// Every point of every grid
    #[arg(long)]
    pub(crate) full: bool,
    /// These experiments alone: memory, buffered, unbuffered, cost, depth, random, allocation, alignment, streams, location,
    /// stripe, device_cache
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PossibleValuesParser::new(study::EXPERIMENTS))]
    pub(crate) only: Vec<String>,
    /// Directory for report.html, results.json and the tables
    #[arg(long, value_name = "DIR", default_value = "halfpower-out")]
    pub(crate) output: PathBuf,
    /// Print the results as JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// Results to be shown again.
#[derive(Args, Clone)]
pub(crate) struct ReportArguments {
    /// A results.json that study, sweep or run wrote
    pub(crate) results: PathBuf,
    /// Directory for report.html and the tables [default: beside the results]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// A size that may be left to halfpower.
#[derive(Clone, Copy)]
pub(crate) struct AutoSize(pub(crate) Option<u64>);

/// What is measured.
#[derive(Args, Clone)]
pub(crate) struct TargetArguments {
    /// A directory (a test file is made in it), a file, a block device, several of them (a stripe), or twin:NAME [default: .]
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    /// Bytes of the test file, or of the part of a file or device to use
    #[arg(long, value_name = "SIZE|auto", value_parser = auto_size, default_value = "auto")]
    pub(crate) size: AutoSize,
    /// Overwrite this existing file or device, which is also the target
    #[arg(long, value_name = "NAME")]
    pub(crate) destroy_data: Vec<PathBuf>,
    /// Overwrite it even if it bears a file system or a partition table
    #[arg(long)]
    pub(crate) destroy_signature: bool,
    /// Chunk of the stripe over several targets, or over the disks of a simulated machine [default: 64k, or as the machine is described]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) chunk: Option<u64>,
    /// Seeds everything random: the same seed is the same sequence of requests
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Workloads. `sweep` measures every combination of the lists, `run` takes one value of each.
#[derive(Args, Clone)]
pub(crate) struct PointArguments {
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    /// read, write or mix
    #[arg(long, value_delimiter = ',', value_parser = ["read", "write", "mix"], default_value = "read")]
    pub(crate) op: Vec<String>,
    /// Percent of the requests of a mix that read
    #[arg(long, value_name = "PERCENT", default_value_t = 70, value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) read_percent: u8,
    /// seq, random, backward, stride:SIZE, zipf:THETA, pareto:H, normal:DEVIATION%[:CENTER%] or hotcold:HOT%:ACCESS%
    #[arg(long, value_delimiter = ',', value_parser = pattern, default_value = "seq")]
    pub(crate) pattern: Vec<Pattern>,
    /// Request size
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = request, default_value = "64k")]
    pub(crate) request: Vec<u32>,
    /// Requests that each thread keeps outstanding
    #[arg(long, value_delimiter = ',', default_value = "1")]
    pub(crate) depth: Vec<u32>,
    /// Streams, each on a thread of its own
    #[arg(long, value_delimiter = ',', default_value = "1")]
    pub(crate) threads: Vec<u32>,
    /// sync, threads, io_uring, libaio, mmap, or null (no I/O: the generator alone) [default: sync at depth 1, io_uring beyond]
    #[arg(long, value_delimiter = ',', value_parser = engine)]
    pub(crate) engine: Vec<Engine>,
    /// Past the page cache (O_DIRECT) [default]
    #[arg(long)]
    pub(crate) direct: bool,
    /// Through the page cache
    #[arg(long)]
    pub(crate) buffered: bool,
    /// Each write on stable storage before it counts (O_DSYNC)
    #[arg(long)]
    pub(crate) dsync: bool,
    /// State of the file's space before a write: written, reserved, extend or truncate
    #[arg(long, value_delimiter = ',', value_parser = allocation, default_value = "written")]
    pub(crate) allocate: Vec<Allocation>,
    /// Shift of every request
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size, default_value = "0")]
    pub(crate) offset: Vec<u64>,
    /// What the page cache is told: none, sequential or random
    #[arg(long, value_delimiter = ',', value_parser = hint, default_value = "none")]
    pub(crate) hint: Vec<Hint>,
    /// State of the page cache before a run: as-is, cold (dropped for this file alone) or warm
    #[arg(long, value_delimiter = ',', value_parser = cache, default_value = "as-is")]
    pub(crate) cache: Vec<CacheState>,
    /// Length of a run [default: 1]
    #[arg(long, value_name = "SECONDS", value_parser = parse_time, conflicts_with = "bytes")]
    pub(crate) seconds: Option<u64>,
    /// Bytes of a run instead of a time
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) bytes: Option<u64>,
    /// Requests per second over all threads, issued by the clock; latency counts from the intended time
    #[arg(long, value_name = "IOPS")]
    pub(crate) rate: Option<f64>,
    /// Pause between a completion and the next request in its place
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "0")]
    pub(crate) think: u64,
    /// Time the way to stable storage after the last write (fdatasync), too
    #[arg(long)]
    pub(crate) fsync: bool,
    /// Percent of each written block that compresses away
    #[arg(long, value_name = "PERCENT", default_value_t = 0)]
    pub(crate) compressible: u8,
    /// Percent of the written blocks that repeat an earlier one
    #[arg(long, value_name = "PERCENT", default_value_t = 0)]
    pub(crate) duplicate: u8,
    /// Write blocks that describe themselves, check what is read, and read back everything at the end (run only)
    #[arg(long)]
    pub(crate) verify: bool,
    /// Note every write in this new file before it is made, so that `halfpower verify` can check a run that was killed
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub(crate) verify_log: Option<PathBuf>,
    /// Fewest runs of a point
    #[arg(long, default_value_t = 3)]
    pub(crate) repeats: u32,
    /// Most runs of a point: it is repeated until it is tight
    #[arg(long, default_value_t = 10)]
    pub(crate) most_repeats: u32,
    /// Tight: half the 95 % interval in percent of the rate
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0)]
    pub(crate) tight: f64,
    /// Print the results as JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

fn auto_size(text: &str) -> Result<AutoSize, String> {
    if text == "auto" { Ok(AutoSize(None)) } else { parse_size(text).map(|size| AutoSize(Some(size))) }
}

fn request(text: &str) -> Result<u32, String> {
    let size = parse_size(text)?;
    u32::try_from(size).map_err(|_| format!("'{text}' is too large for one request: at most 1 GiB"))
}

/// One of a few words.
pub(crate) fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    words.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = words.iter().map(|(name, _)| *name).collect();
        format!("'{text}' is unknown; it is one of {}", names.join(", "))
    })
}

fn engine(text: &str) -> Result<Engine, String> {
    word(text, &Engine::ALL.map(|engine| (engine.name(), engine)))
}

fn allocation(text: &str) -> Result<Allocation, String> {
    use Allocation::{Extend, Reserved, Truncate, Written};
    word(text, &[Written, Reserved, Extend, Truncate].map(|state| (state.name(), state)))
}

fn hint(text: &str) -> Result<Hint, String> {
    word(text, &[("none", Hint::None), ("sequential", Hint::Sequential), ("random", Hint::Random)])
}

fn cache(text: &str) -> Result<CacheState, String> {
    word(text, &[("as-is", CacheState::AsIs), ("cold", CacheState::Cold), ("warm", CacheState::Warm)])
}

pub(crate) fn pattern(text: &str) -> Result<Pattern, String> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default();
    let values: Vec<&str> = parts.collect();
    let percent = |text: &str| text.trim_end_matches('%').parse::<u8>().map_err(|_| format!("'{text}' is not a whole percentage"));
    let real = |text: &str| text.trim_end_matches('%').parse::<f64>().map_err(|_| format!("'{text}' is not a percentage; write normal:20"));
    match (name, values.as_slice()) {
        ("seq", []) => Ok(Pattern::Seq),
        ("random", []) => Ok(Pattern::Random),
        ("backward", []) => Ok(Pattern::Backward),
        ("stride", [bytes]) => parse_size(bytes).map(Pattern::Stride),
        ("zipf", []) => Ok(Pattern::Zipf(1.1)),
        ("zipf", [theta]) => theta.parse().map(Pattern::Zipf).map_err(|_| format!("'{theta}' is not a number; write zipf:1.1")),
        ("pareto", []) => Ok(Pattern::Pareto(0.2)),
        ("pareto", [h]) => h.parse().map(Pattern::Pareto).map_err(|_| format!("'{h}' is not a number; write pareto:0.2")),
        ("normal", [deviation]) => Ok(Pattern::Normal { deviation_percent: real(deviation)?, center_percent: 50.0 }),
        ("normal", [deviation, center]) => Ok(Pattern::Normal { deviation_percent: real(deviation)?, center_percent: real(center)? }),
        ("hotcold", [hot, access]) => Ok(Pattern::HotCold { hot_percent: percent(hot)?, access_percent: percent(access)? }),
        _ => Err(format!(
            "'{text}' is unknown; it is one of seq, random, backward, stride:1M, zipf:1.1, pareto:0.2, normal:20, hotcold:10:90"
        )),
    }
}
