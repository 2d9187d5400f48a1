//! SQLIO (Microsoft, "SQLIO Disk Subsystem Benchmark Tool" 1.5), and the published study
//! ([`matrix`]).

mod help;
pub mod matrix;
mod options;
mod plan;
mod report;
mod run;

pub use help::HELP;
pub use options::{
    Access, Caching, DEFAULT_FILE, FileLine, Kind, MAX_THREADS, Multi, Options, parse,
    parse_parameters,
};
pub use plan::{FileJob, files, raw_device};
pub use report::{Figures, LatencyFigures, before, figures, report};
pub use run::{SqlioResult, jobs, run};
pub(crate) use run::{check_writable, shares};
