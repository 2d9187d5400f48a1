//! fio's dialect. [`Plan`] and [`Arrangement`] do no I/O, so unsupported options fail before
//! anything is written.

mod options;
mod plan;
mod report;
mod run;

pub use options::cmdprio::CommandPriority;
pub use options::command::{Command, Format, IdleProfile, command_line};
pub use options::criterion::Criterion;
pub use options::error::FioError;
pub use options::job_options::Options;
pub use options::jobfile::{At, JobFile, Section, Setting, World};
pub use options::kinds::{
    Distribution, ExitWhat, Fallocate, FileService, Logs, SyncMode, Unified, WindowValue,
    engine_names, parse_engine,
};
pub use options::latency_goal::LatencyGoal;
pub use options::method::Method;
pub use options::min_rates::MinRates;
pub use options::pattern::Fill;
pub use options::table::{help, option_help};
pub use options::tolerated::Tolerated;
pub use options::trace::{Action, Entry as TraceEntry, Replay, Trace};
pub use options::value::Amount;
pub use plan::arrange::{Arrangement, ClonePlan, FilePlan, Found, Lengthens, look};
pub use plan::jobs::{Job, Plan};
pub use plan::state::{VerifyState, asked_states, load_states};
pub use report::debug::{parsed_globals, parsed_lines, seed_lines};
pub use report::json::{FIO_VERSION, json};
pub use report::logs::{aggregate_log_paths, aggregate_logs, log_paths, logs};
pub use report::states::saved_states;
pub use report::terse::terse;
pub use report::text::text;
pub use run::execute::{AroundSets, RunSettings, check_machine, replace_missing_engines, run};
pub use run::failures::{Failures, JobError};
pub use run::histogram_log::{HistogramLog, Interval};
pub use run::min_rate::StopReason;
pub use run::result::{CloneResult, CloneStats, Entry, FioResult, GroupResult, JobResult};
pub use run::status::Status;
pub use run::steady::Steady;
pub use run::stream_stats::{Batches, BySide, Line, SIDES, Sum, Times};
pub use run::system_stats::{Counts, DiskUse, SystemStats};
