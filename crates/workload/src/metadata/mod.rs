//! Metadata operations: create, stat, open, rename, list and delete files.
//!
//! `n` files in `d` directories by `t` threads. Each operation is a separately timed phase in which
//! all threads process all files. The six phases run in several rounds on new files; the spread of
//! the rounds gives an interval.

mod plan;
mod run;

pub use plan::{MetadataPlan, Operation, PlanError};
pub use run::{MetadataError, run};
