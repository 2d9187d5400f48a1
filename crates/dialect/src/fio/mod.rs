//! fio's language: job files and options in, its JSON and logs out.
//!
//! [`Command`] understands the arguments, [`JobFile`] the job files, [`Plan`] what they mean, [`Arrangement`] which files are used; all of
//! that is pure, and whatever halfpower does not serve is an error there, before anything is written. [`Laid`] makes the files, [`run`]
//! runs the plan on a [`machine::Machine`], and [`json()`], [`text()`] and [`logs()`] tell the result.

mod arrange;
mod choices;
mod command;
mod error;
mod jobfile;
mod json;
mod layout;
mod logs;
mod options;
mod plan;
mod recorder;
mod refused;
mod result;
mod run;
mod settings;
mod steady;
mod text;
mod translate;
mod value;
mod verify;
mod xxh64;

pub use arrange::{Arrangement, ClonePlan, FilePlan, Found, Origin};
pub use command::{Command, Format};
pub use error::FioError;
pub use jobfile::{At, JobFile, Section, Setting, World};
pub use json::{FIO_VERSION, json};
pub use layout::{Laid, look};
pub use logs::logs;
pub use options::{Distribution, Fallocate, FioEngine, Logs, Options, SyncMode};
pub use plan::{Job, Plan};
pub use recorder::{Batches, Line, Sum};
pub use result::{CloneResult, Entry, FioResult, GroupResult, JobResult, Recorded};
pub use run::{Counts, DiskUse, Surroundings, check_machine, run};
pub use steady::{Criterion, Steady};
pub use text::text;
pub use value::Amount;
pub use verify::Method;
