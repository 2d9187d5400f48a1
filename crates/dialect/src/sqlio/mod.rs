//! SQLIO: random and sequential requests like those of a database (Microsoft, "SQLIO Disk Subsystem
//! Benchmark Tool" 1.5).
//!
//! The options, the parameter file and the text report match SQLIO 1.5. Additions: sub-millisecond
//! latencies, processor cost and warnings as points in JSON, and the published study of partition
//! alignment in one command ([`matrix`]), with intervals that show which differences are
//! significant.

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
