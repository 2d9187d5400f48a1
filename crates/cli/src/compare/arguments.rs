use crate::arguments::{PointArguments, percent};
use clap::Args;
use machine::units::parse_time;
use measure::turns::Limits;
use results::compare::{Columns, FailIf, Meaning, WORTH_PERCENT};
use std::path::PathBuf;
use std::str::FromStr;

/// Options of `compare`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// Measure now: the target of arm A with its own options of `run`, in one word: '/mnt/ext4
    /// --depth 8'
    #[arg(
        long,
        value_name = "TARGET [OPTIONS]",
        requires = "b",
        help_heading = "Two arms, measured in turn"
    )]
    pub(super) a: Option<String>,
    /// The same for arm B
    #[arg(
        long,
        value_name = "TARGET [OPTIONS]",
        requires = "a",
        help_heading = "Two arms, measured in turn"
    )]
    pub(super) b: Option<String>,
    /// Replay this recorded application on both arms, which are targets with options of `replay`:
    /// '/mnt/ext4 --as-fast-as-possible'
    #[arg(
        long,
        value_name = "TRACE",
        requires = "a",
        conflicts_with_all = ["postmark", "metadata"],
        help_heading = "Two arms, measured in turn"
    )]
    pub(super) replay: Option<PathBuf>,
    /// Shell command to run before each run of arm A
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "a",
        help_heading = "Two arms, measured in turn"
    )]
    pub(super) a_setup: Option<String>,
    /// Shell command to run before each run of arm B
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "a",
        help_heading = "Two arms, measured in turn"
    )]
    pub(super) b_setup: Option<String>,
    /// Run PostMark in the directories (or on the simulated machines) of --a and --b: a file of its
    /// commands up to `run`, without locations
    #[arg(
        long,
        value_name = "FILE",
        requires = "a",
        conflicts_with = "metadata",
        help_heading = "Two arms, measured in turn"
    )]
    pub(super) postmark: Option<PathBuf>,
    /// Create, stat, open, rename, list and delete files in --a and --b: options of `metadata` in one
    /// word: '--files 2000 --sync file'
    #[arg(
        long,
        value_name = "OPTIONS",
        requires = "a",
        allow_hyphen_values = true,
        help_heading = "Two arms, measured in turn"
    )]
    pub(super) metadata: Option<String>,
    /// Stop when a difference is decided, or when any difference is known to be smaller than this
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "2%", help_heading = "Two arms, measured in turn")]
    pub(super) until: f64,
    /// Stop when this time is up
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "1m", help_heading = "Two arms, measured in turn")]
    pub(super) budget: u64,
    /// Columns of a CSV to compare, if their names do not identify them
    #[arg(long, value_name = "A,B", value_parser = columns, help_heading = "Comparison")]
    pub(super) columns: Option<Columns>,
    /// Measure of a CSV column, if its name does not say it: 'bandwidth=MiB/s', 'old=iops', or
    /// 'case=setting'
    #[arg(long, value_name = "COLUMN=MEASURE", value_parser = Meaning::from_str, help_heading = "Comparison")]
    pub(super) measure: Vec<Meaning>,
    /// Smallest change that matters; smaller ones do not count, even if significant [default: 2%,
    /// or half of --until]
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = "Comparison")]
    pub(super) worth: Option<f64>,
    /// End with exit code 3 if B is significantly worse: slower:5%, latency:10%, p50:, p99:, p99.9:
    /// or cpu:
    #[arg(long, value_name = "WHAT:PERCENT", value_parser = FailIf::from_str, help_heading = "Comparison")]
    pub(super) fail_if: Vec<FailIf>,
    /// Write a page with all changes, intervals and runs to this file
    #[arg(long, value_name = "FILE", help_heading = "Comparison")]
    pub(super) html: Option<PathBuf>,
    /// Write all changes to this file as CSV
    #[arg(long, value_name = "FILE", help_heading = "Comparison")]
    pub(super) csv: Option<PathBuf>,
    /// Print Markdown, for a pull request
    #[arg(long, conflicts_with = "json", help_heading = "Comparison")]
    pub(super) markdown: bool,
    #[command(flatten)]
    pub(super) workload: PointArguments,
}

impl Arguments {
    pub(super) fn limits(&self, noisy: bool, seed: u64) -> Limits {
        Limits {
            until: self.until / 100.0,
            budget_ns: self.budget,
            max_blocks: usize::MAX,
            gain_wanted: None,
            noisy,
            seed,
        }
    }

    pub(super) fn worth_percent(&self) -> f64 {
        self.worth.unwrap_or(WORTH_PERCENT.min(self.until / 2.0))
    }
}

fn columns(text: &str) -> Result<Columns, String> {
    match text.split_once(',') {
        Some((a, b)) if !a.trim().is_empty() && !b.trim().is_empty() && !b.contains(',') => {
            Ok(Columns { a: a.trim().into(), b: b.trim().into() })
        }
        _ => Err(format!("'{text}' does not name two columns; write them as OLD,NEW")),
    }
}
