use crate::clients::Clients;
use crate::context::Context;
use crate::load::LoadArguments;
use crate::sustained::SustainedArguments;
use crate::target::TargetArguments;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, FromArgMatches};
use files::Input;
use machine::units::{self, Units, parse_size, parse_time};
use machine::{Allocation, CacheState, Engine, Hint, Memory, Reap};
use results::SearchBy;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use workload::{LoadStep, Pattern, parse_load, parse_load_file, size_option};

/// The command line of another tool, parsed by that tool's own parser.
#[derive(Args, Clone)]
pub(crate) struct ToolArguments {
    /// The tool's own options; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub(crate) words: Vec<String>,
}

/// The units of what is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ShownUnits {
    /// MiB/s and GiB
    Binary,
    /// MB/s and GB
    Si,
}

impl ShownUnits {
    fn units(self) -> Units {
        match self {
            ShownUnits::Binary => Units::Binary,
            ShownUnits::Si => Units::Si,
        }
    }

    /// The units last as long as the returned value.
    pub(crate) fn choose(self, context: &Context) -> units::ShownUnits {
        context.console.show_in(self.units());
        units::show_in(self.units())
    }
}

/// Options of `study`.
#[derive(Args, Clone)]
pub(crate) struct StudyArguments {
    #[command(flatten, next_help_heading = "Target")]
    pub(crate) target: TargetArguments,
    /// Time for the whole study [default: 3m; 1m with --quick, 20m with --full]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) budget: Option<u64>,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    #[command(flatten)]
    pub(crate) sustained: SustainedArguments,
    /// Measure only the corners of each grid
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,
    /// Measure every point of each grid
    #[arg(long)]
    pub(crate) full: bool,
    /// Run only these experiments
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PossibleValuesParser::new(study::experiment_ids()), hide_short_help = true)]
    pub(crate) only: Vec<String>,
    /// Go on with the last interrupted study of the target: its runs are kept until a study has
    /// finished
    #[arg(long)]
    pub(crate) resume: bool,
    /// Directory for report.html, results.json and the tables
    #[arg(long, value_name = "DIR", default_value = "halfpower-out")]
    pub(crate) output: PathBuf,
    /// Print every experiment's tables and the evidence before the answer
    #[arg(long, conflicts_with = "json")]
    pub(crate) details: bool,
    /// Units of rates and capacities; request sizes stay in KiB and MiB
    #[arg(long, value_enum, default_value = "binary")]
    pub(crate) units: ShownUnits,
    /// Also write the results to this file for node_exporter's textfile collector (OpenMetrics)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) openmetrics: Option<PathBuf>,
    /// Print the results as JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `report`.
#[derive(Args, Clone)]
pub(crate) struct ReportArguments {
    /// A results.json that study, sweep or run wrote, its directory, or a report of another tool
    pub(crate) results: PathBuf,
    /// Directory for report.html and the tables [default: the directory of the results]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Write nothing: list figures that contradict each other, and exit with 1 if there are any
    #[arg(long, conflicts_with = "output")]
    pub(crate) check: bool,
    /// Print every experiment's tables and the evidence before the answer
    #[arg(long, conflicts_with = "check")]
    pub(crate) details: bool,
    /// Units of rates and capacities; request sizes stay in KiB and MiB
    #[arg(long, value_enum, default_value = "binary")]
    pub(crate) units: ShownUnits,
}

/// Workloads. `sweep` measures every combination of the lists, `run` takes one value of each.
#[derive(Args, Clone)]
#[command(next_help_heading = "Workload")]
pub(crate) struct PointArguments {
    /// The workloads of a typical program, instead of the options below; several run by themselves,
    /// then all at once. docs/presets.md has their sizes and sources
    #[arg(
        long,
        alias = "profile",
        value_name = "NAME",
        value_parser = PossibleValuesParser::new(tune::PROFILES.map(|profile| profile.name)),
        conflicts_with_all = [
            "op", "read_percent", "pattern", "request", "depth", "threads", "engine", "direct", "buffered", "dsync",
            "allocate", "offset", "hint", "cache", "limit", "rate", "load", "latency_every", "reap", "think", "end_fdatasync", "verify",
        ],
    )]
    pub(crate) workload: Option<String>,
    /// Operation
    #[arg(long, value_delimiter = ',', value_parser = ["read", "write", "mix"], default_value = "read")]
    pub(crate) op: Vec<String>,
    /// Percentage of reads in a mix [default: 70]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=99), hide_short_help = true)]
    pub(crate) read_percent: Option<u8>,
    /// Order of the requests: seq, together, random, backward, stride:SIZE, columns:BLOCKS, zipf:THETA,
    /// pareto:H, normal:DEVIATION%[:CENTER%] or hotcold:HOT%:ACCESS%
    #[arg(long, value_delimiter = ',', value_parser = Pattern::from_str, default_value = "seq")]
    pub(crate) pattern: Vec<Pattern>,
    /// Request size
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = request, default_value = "64k")]
    pub(crate) request: Vec<u32>,
    /// Requests that each thread keeps outstanding
    #[arg(long, value_delimiter = ',', value_parser = count, default_value = "1")]
    pub(crate) depth: Vec<u32>,
    /// Threads, each with its own stream of requests
    #[arg(long, value_delimiter = ',', value_parser = count, default_value = "1")]
    pub(crate) threads: Vec<u32>,
    /// I/O engine; null does no I/O and measures only the generator [default: sync at depth 1,
    /// io_uring beyond]
    #[arg(long, value_delimiter = ',', value_parser = choices(Engine::ALL, Engine::name))]
    pub(crate) engine: Vec<Engine>,
    /// Bypass the page cache (O_DIRECT) [default]
    #[arg(long)]
    pub(crate) direct: bool,
    /// Use the page cache
    #[arg(long)]
    pub(crate) buffered: bool,
    /// Each write is on stable storage before it completes (O_DSYNC)
    #[arg(long)]
    pub(crate) dsync: bool,
    /// State of the file's space before it is written
    #[arg(long, value_delimiter = ',', value_parser = choices(Allocation::ALL, Allocation::name), default_value = "written", hide_short_help = true)]
    pub(crate) allocate: Vec<Allocation>,
    /// Shift every request by this much
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size, default_value = "0", hide_short_help = true)]
    pub(crate) offset: Vec<u64>,
    /// Use only the part of the target that begins here
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0", hide_short_help = true)]
    pub(crate) region_start: u64,
    /// Use only this much of the target [default: up to its end]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    pub(crate) region: Option<u64>,
    /// Access advice for the page cache (posix_fadvise)
    #[arg(long, value_delimiter = ',', value_parser = choices(Hint::ALL, Hint::name), default_value = "none", hide_short_help = true)]
    pub(crate) hint: Vec<Hint>,
    /// Memory of the buffers: ordinary pages as most programs use, or huge pages for large buffers
    #[arg(long, value_delimiter = ',', value_parser = choices(Memory::ALL, Memory::name), default_value = "huge", hide_short_help = true)]
    pub(crate) memory: Vec<Memory>,
    /// State of the page cache before a run; cold drops only this file's pages
    #[arg(long, value_delimiter = ',', value_parser = choices(CacheState::ALL, CacheState::name), default_value = "as_is", hide_short_help = true)]
    pub(crate) cache: Vec<CacheState>,
    /// Length of a run [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "bytes")]
    pub(crate) runtime: Option<u64>,
    /// End each run after this much data instead of after a time
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    pub(crate) bytes: Option<u64>,
    /// Transfer at most this much in a run, even if time is left
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    pub(crate) limit: Option<u64>,
    /// Issue this many requests per second over all threads, on schedule; latency counts from the
    /// scheduled time
    #[arg(long, value_name = "IOPS")]
    pub(crate) rate: Option<f64>,
    /// A rate that changes over time, as in 1000:30s,5000:60s, or @FILE with a line RATE,TIME for
    /// each step; the result has the rate and the latency of each step
    #[arg(long, value_name = "IOPS:TIME,...", value_parser = load, conflicts_with_all = ["rate", "runtime", "bytes"])]
    pub(crate) load: Option<Load>,
    /// Latency over time: also report the rate and the latency of each window of this length
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) latency_every: Option<u64>,
    /// Wait for this many completions before the next requests are issued, once one is there for at
    /// most 100 us; poll: poll for 100 us before it sleeps; auto learns what pays
    #[arg(
        long,
        value_name = "N|poll|auto",
        value_delimiter = ',',
        default_value = "1",
        hide_short_help = true
    )]
    pub(crate) reap: Vec<Reap>,
    /// Pause between a completion and the request that replaces it
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "0", hide_short_help = true)]
    pub(crate) think: u64,
    /// Include a final fdatasync in the measured time
    #[arg(long, hide_short_help = true)]
    pub(crate) end_fdatasync: bool,
    /// Percentage of each written block that compresses away
    #[arg(long, value_name = "PERCENT", default_value_t = 0, hide_short_help = true)]
    pub(crate) compressible: u8,
    /// Percentage of written blocks that repeat an earlier one
    #[arg(long, value_name = "PERCENT", default_value_t = 0, hide_short_help = true)]
    pub(crate) duplicate: u8,
    /// Check that the data read back is the data written: during the run, and all of it at the end
    /// (run only)
    #[arg(long, conflicts_with_all = ["load", "latency_every"], hide_short_help = true)]
    pub(crate) verify: bool,
    /// Record every write in this new file before it is issued, so that `halfpower verify` can
    /// check a killed run
    #[arg(long, value_name = "FILE", requires = "verify", hide_short_help = true)]
    pub(crate) verify_log: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Target")]
    pub(crate) target: TargetArguments,
    /// run: do not stripe: run the workload on each target by itself, then on all at once
    #[arg(long, conflicts_with_all = ["beside", "verify", "p99", "load", "latency_every"], help_heading = "At once", hide_short_help = true)]
    pub(crate) each: bool,
    /// run: options of another workload on the same target, as '--op write --dsync --request 4k':
    /// each runs by itself, then all at once
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, conflicts_with_all = ["verify", "p99", "load", "latency_every"], help_heading = "At once", hide_short_help = true)]
    pub(crate) beside: Vec<String>,
    /// Under mpirun, and on twin:nas,clients=N: measure with these numbers of clients (1,2,4), or with
    /// powers of two and all [default: all]; docs/hosts.md
    #[arg(long, alias = "hosts", value_name = "LIST|powers", value_parser = Clients::from_str, help_heading = "At once", hide_short_help = true)]
    pub(crate) clients: Option<Clients>,
    /// Under mpirun: also keep the results in this file, even if a host fails
    #[arg(long, value_name = "FILE", help_heading = "At once", hide_short_help = true)]
    pub(crate) save: Option<PathBuf>,
    /// Under mpirun: all clients use one file, each its own part of it
    #[arg(long, help_heading = "At once", hide_short_help = true)]
    pub(crate) shared_file: bool,
    /// With --shared-file: the clients take turns request by request, instead of a part each
    #[arg(long, requires = "shared_file", help_heading = "At once", hide_short_help = true)]
    pub(crate) interleaved: bool,
    /// With --shared-file: each client reads the part of the client N further, which another has
    /// written
    #[arg(
        long,
        value_name = "N",
        requires = "shared_file",
        help_heading = "At once",
        hide_short_help = true
    )]
    pub(crate) shift: Option<usize>,
    /// run: print rate, latency percentiles and depth of every second on standard error, and draw
    /// them in the report
    #[arg(long, conflicts_with_all = ["each", "beside", "verify", "p99"], help_heading = "Precision and output")]
    pub(crate) live: bool,
    /// Run each point at least N times
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        help_heading = "Precision and output",
        hide_short_help = true
    )]
    pub(crate) repeats: u32,
    /// sweep: find the best rate whose 99th percentile of the latency is within this time; see --by
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with_all = ["rate", "load", "verify"], help_heading = "Precision and output", hide_short_help = true)]
    pub(crate) p99: Option<u64>,
    /// sweep --p99: search by depth (requests outstanding), or by rate (requests per second on
    /// schedule; latency counts from the scheduled time, and --depth is the maximum in flight)
    #[arg(long, value_parser = choices(SearchBy::ALL, SearchBy::name), default_value = "depth", help_heading = "Precision and output", hide_short_help = true)]
    pub(crate) by: SearchBy,
    /// Run each point at most N times, until it reaches --precision
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        help_heading = "Precision and output",
        hide_short_help = true
    )]
    pub(crate) max_repeats: u32,
    /// Precision to reach: half the 95 % confidence interval, as a percentage of the rate
    #[arg(long, value_name = "PERCENT", value_parser = precision, default_value = "3", help_heading = "Precision and output", hide_short_help = true)]
    pub(crate) precision: f64,
    /// Go on with the last interrupted command of this name on the target: its runs are kept until
    /// one has finished
    #[arg(long, conflicts_with_all = ["verify", "each", "beside"], help_heading = "Precision and output")]
    pub(crate) resume: bool,
    /// Units of rates and capacities; request sizes stay in KiB and MiB
    #[arg(long, value_enum, default_value = "binary", help_heading = "Precision and output")]
    pub(crate) units: ShownUnits,
    /// Also write the results to this file for node_exporter's textfile collector (OpenMetrics)
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Precision and output",
        hide_short_help = true
    )]
    pub(crate) openmetrics: Option<PathBuf>,
    /// Print the results as JSON on standard output
    #[arg(long, help_heading = "Precision and output")]
    pub(crate) json: bool,
}

impl PointArguments {
    pub(crate) fn profile(&self) -> Option<&'static tune::Profile> {
        self.workload.as_deref().and_then(tune::Profile::named)
    }

    pub(crate) fn command(name: &str) -> clap::Command {
        Self::augment_args(
            clap::Command::new("halfpower")
                .bin_name(format!("halfpower {name}"))
                .max_term_width(120),
        )
    }

    pub(crate) fn parse(
        name: &str,
        words: impl IntoIterator<Item = String>,
    ) -> Result<PointArguments, clap::Error> {
        let matches = Self::command(name).no_binary_name(true).try_get_matches_from(words)?;
        Self::from_arg_matches(&matches)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Load(pub(crate) Vec<LoadStep>);

/// A load with all the steps allowed is far smaller.
const LOAD_FILE: Input = Input::new("a load", 1 << 20);

fn load(text: &str) -> Result<Load, String> {
    let Some(path) = text.strip_prefix('@') else { return parse_load(text).map(Load) };
    let bytes = LOAD_FILE.read(Path::new(path)).map_err(|why| format!("{path}: {why}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{path}: it is not text"))?;
    parse_load_file(&text).map(Load).map_err(|why| format!("{path}: {why}"))
}

pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 100.0 => Ok(value),
        _ => Err(format!("'{text}' is not a percentage above 0 and up to 100; write it as 2%")),
    }
}

fn count(text: &str) -> Result<u32, String> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    number(text).ok_or_else(|| match range(text, number) {
        Some([low, high]) => {
            not_a_range(text, doubled(low.into(), high.into()), |one| one.to_string())
        }
        None => format!("'{text}' is not a whole number"),
    })
}

fn request(text: &str) -> Result<u32, String> {
    let size = parse_size(text).map_err(|why| match range(text, |end| parse_size(end).ok()) {
        Some([low, high]) => not_a_range(text, doubled(low, high), size_option),
        None => why,
    })?;
    u32::try_from(size).map_err(|_| format!("'{text}' is too large for one request: at most 1 GiB"))
}

fn range<T: PartialOrd>(text: &str, end: impl Fn(&str) -> Option<T>) -> Option<[T; 2]> {
    let (low, high) = ["..", "-", ":"].iter().find_map(|between| text.split_once(between))?;
    let (low, high) = end(low).zip(end(high))?;
    (low <= high).then_some([low, high])
}

fn doubled(low: u64, high: u64) -> Vec<u64> {
    let steps = std::iter::successors(Some(low.max(1)), |one| one.checked_mul(2));
    steps.take_while(|&one| one < high).chain([high]).collect()
}

fn not_a_range(text: &str, values: Vec<u64>, show: impl Fn(u64) -> String) -> String {
    let list: Vec<String> = values.into_iter().map(show).collect();
    format!(
        "'{text}': halfpower takes lists, not ranges; write {} (sweep) or one of these",
        list.join(",")
    )
}

pub(crate) fn choices<T, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.map(name)).try_map(move |chosen| {
        all.into_iter()
            .find(|one| name(*one) == chosen)
            .ok_or_else(|| format!("'{chosen}' is unknown"))
    })
}

fn precision(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent.ok_or_else(|| "a precision is above 0 and at most 100 %, such as 3".into())
}
