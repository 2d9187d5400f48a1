//! Small files as mail, news and web servers use them: which files are made, read, appended to and deleted, in which order.
//!
//! [`Generator`] decides what is done, from a [`SmallFilePlan`] and its seed alone; a [`machine::files::FileSystem`] does it.

mod generator;
mod mt19937;
mod plan;
mod pool;

pub use generator::{FileOp, Generator, Phase, SmallFileCounts, Start, Step};
pub use machine::files::FileId;
pub use mt19937::Mt19937;
pub use plan::{Location, MOST, PlanError, SmallFilePlan};
