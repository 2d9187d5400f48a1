//! Each metadata operation is a timed phase over all files; several rounds give an interval.

mod plan;
mod run;

pub use plan::{ClientFiles, MetadataPlan, Operation, PlanError};
pub use run::{MetadataError, PhaseTimes, Session, run};
