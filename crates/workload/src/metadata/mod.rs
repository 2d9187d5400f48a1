//! Metadata operations: create, stat, open, rename, list and delete files.
//!
//! Each operation is a separately timed phase in which all threads process all files. Several
//! rounds on new files give an interval.

mod plan;
mod run;

pub use plan::{MetadataPlan, Operation, PlanError};
pub use run::{MetadataError, run};
