//! Small-file workloads as in mail, news and web servers: [`Generator`] derives the operations from
//! a [`SmallFilePlan`], a [`machine::files::FileSystem`] executes them.

mod generator;
mod mt19937;
mod plan;
mod pool;

pub use generator::{FileOp, Generator, Phase, SmallFileCounts, Start, Step};
pub use machine::files::FileId;
pub use mt19937::Mt19937;
pub use plan::{Location, MAX, PlanError, SmallFilePlan};
