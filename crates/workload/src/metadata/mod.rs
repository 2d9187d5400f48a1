//! Metadata: making, looking at, opening, renaming, listing and deleting files.
//!
//! `n` files over `d` directories by `t` threads. Each operation is a phase of its own over all files, timed apart, by all threads together; the six
//! phases are done in several rounds on new files, so that the spread of the rounds gives an interval.

mod plan;
mod run;

pub use plan::{MetadataPlan, Operation, PlanError};
pub use run::{MetadataError, run};
