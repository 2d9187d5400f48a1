//! fio's command line, job files, reports and logs.
//!
//! [`Command`] parses the arguments, [`JobFile`] the job files; [`Plan`] gives them meaning, and
//! [`Arrangement`] assigns files. These do no I/O, so unsupported options fail before anything is
//! written. [`run`] creates the files and runs the plan on a [`machine::Machine`]; [`json()`],
//! [`text()`] and [`logs()`] report the result.

mod arrange;
mod backlog;
mod checks;
mod choices;
mod cmdprio;
mod command;
mod contested;
mod coordination;
mod debug;
mod direction;
mod error;
mod failures;
mod fio_stream;
mod flow;
mod group;
mod histlog;
mod iolog;
mod jobfile;
mod json;
mod latency;
mod logs;
mod min_rate;
mod options;
mod outcome;
mod pacing;
mod pattern;
mod pending_verify;
mod plan;
mod read_back;
mod result;
mod run;
mod state;
mod steady;
mod stream_stats;
mod surroundings;
mod table;
mod terse;
mod text;
mod translate;
mod turns;
mod value;
mod verify;

pub use arrange::{Arrangement, ClonePlan, FilePlan, Found, look};
pub use cmdprio::CommandPriority;
pub use command::{Command, Format};
pub use debug::{parsed_globals, parsed_lines, seed_lines};
pub use error::FioError;
pub use failures::{Failures, Tolerated};
pub use histlog::{HistogramLog, Interval};
pub use iolog::{Action, Entry as TraceEntry, Replay, Trace};
pub use jobfile::{At, JobFile, Section, Setting, World};
pub use json::{FIO_VERSION, json};
pub use latency::LatencyGoal;
pub use logs::{aggregate_log_paths, aggregate_logs, log_paths, logs};
pub use min_rate::{MinRates, StopReason};
pub use options::{Distribution, ExitWhat, Fallocate, FileService, Logs, Options, SyncMode, Unified, WindowValue};
pub use pattern::Fill;
pub use plan::{Job, Plan};
pub use result::{CloneResult, CloneStats, Entry, FioResult, GroupResult, JobError, JobResult};
pub use run::{check_machine, replace_missing_engines, run};
pub use state::{VerifyState, load_states, saved_states, state_path};
pub use steady::{Criterion, Steady};
pub use stream_stats::{Batches, BySide, Line, SIDES, Sum, Times};
pub use surroundings::{Counts, DiskUse, Surroundings};
pub use table::help;
pub use terse::terse;
pub use text::text;
pub use value::Amount;
pub use verify::Method;
