//! Small files as in mail, news and web servers: a [`machine::files::FileSystem`] executes the
//! [`Generator`]'s operations.

mod generator;
mod mt19937;
mod plan;
mod pool;

pub use generator::{FileOp, Generator, Phase, SmallFileCounts, Start, Step};
pub use machine::files::FileId;
pub use mt19937::Mt19937;
pub use plan::{Location, MAX, PlanError, SmallFilePlan};
