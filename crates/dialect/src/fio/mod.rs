//! fio's language: job files and options in, its JSON and logs out.
//!
//! [`Command`] understands the arguments, [`JobFile`] the job files, [`Plan`] what they mean, [`Arrangement`] which files are used; all of
//! that is pure, and whatever halfpower does not serve is an error there, before anything is written. [`run`] makes the files and
//! runs the plan on a [`machine::Machine`], and [`json()`], [`text()`] and [`logs()`] report the result.

mod arrange;
mod backlog;
mod choices;
mod command;
mod error;
mod jobfile;
mod json;
mod logs;
mod options;
mod plan;
mod recorder;
mod result;
mod run;
mod steady;
mod table;
mod terse;
mod text;
mod translate;
mod turns;
mod value;
mod verify;

pub use arrange::{Arrangement, ClonePlan, FilePlan, Found, look};
pub use command::{Command, Format};
pub use error::FioError;
pub use jobfile::{At, JobFile, Section, Setting, World};
pub use json::{FIO_VERSION, json};
pub use logs::{log_paths, logs};
pub use options::{Distribution, ExitWhat, Fallocate, FileService, FioEngine, Logs, Options, SyncMode};
pub use plan::{Job, Plan};
pub use recorder::{Batches, Line, Sum};
pub use result::{CloneResult, Entry, FioResult, GroupResult, JobError, JobResult, Recorded};
pub use run::{Counts, DiskUse, Surroundings, check_machine, replace_missing_engines, run};
pub use steady::{Criterion, Steady};
pub use table::help;
pub use terse::terse;
pub use text::text;
pub use value::Amount;
pub use verify::Method;
