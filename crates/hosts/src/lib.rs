//! A [`Group`] exchanges messages over MPI (feature `mpi`) or between threads. Rank 0 is the
//! [`Leader`], the others [`follow()`]; [`merge()`] makes one run of all.

mod clock;
mod curve;
mod follow;
mod group;
mod jobs;
mod launch;
mod lead;
mod lead_time;
mod machine;
mod marker;
mod merge;
mod message;
mod model;
#[cfg(feature = "mpi")]
mod mpi;
mod patience;
mod scaling;
mod shared;
mod threads;

pub use crate::machine::{GroupMachine, GroupTarget, joining_order, shared_hosts};
#[cfg(feature = "mpi")]
pub use crate::mpi::MpiRank;
pub use clock::{Offset, RoundTrip};
pub use follow::{Perform, follow, no_jobs, say_finished};
pub use group::{Group, GroupError, receive, send};
pub use jobs::JobDone;
pub use launch::Launch;
pub use lead::{Error, Leader, OpenGroup};
pub use merge::{ClientRun, NoWindow, merge, merged_latency};
pub use message::{Failure, Hello};
pub use scaling::{operation_scalings, scalings};
pub use shared::SharedFile;
pub use threads::{ThreadRank, thread_group};
