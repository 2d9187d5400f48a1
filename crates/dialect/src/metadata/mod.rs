//! Metadata: what making, looking at, opening, renaming, listing and deleting files costs.
//!
//! `n` files over `d` directories by `t` threads. Each operation is a phase of its own over all files, timed apart, by all threads together; the six
//! phases are done in several rounds on new files, and the spread of the rounds gives the interval.

mod plan;
mod rates;
mod report;
mod run;

pub use plan::{MetadataPlan, Operation, PlanError};
pub use report::{sentence, table};
pub use run::{MetadataError, MetadataResult, OperationResult, run};
