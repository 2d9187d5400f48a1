//! The same work on many hosts at once.
//!
//! A [`Group`] is a number of ranks that exchange messages: over MPI with the feature `mpi`, or
//! threads of one process. Rank 0 is the [`Leader`], the others [`follow`]. Each rank measures its
//! own computer with the usual runner; [`merge()`] makes one run of all ranks' runs.

mod clock;
mod curve;
mod document;
mod follow;
mod group;
mod jobs;
mod launch;
mod lead;
mod link;
mod marker;
mod measure_group;
mod merge;
mod message;
mod model;
#[cfg(feature = "mpi")]
mod mpi;
mod scaling;
mod threads;

#[cfg(feature = "mpi")]
pub use crate::mpi::MpiRank;
pub use clock::{Offset, RoundTrip};
pub use document::{
    ClientNumbers, HOSTS_SCHEMA, HostsPoint, HostsResult, HostsRun, ModelForm, Scaling,
    ScalingLimit, ScalingModel, ScalingPrediction, ScalingStep,
};
pub use follow::{Perform, follow, no_jobs};
pub use group::{Group, GroupError, receive, send};
pub use jobs::JobDone;
pub use launch::Launch;
pub use lead::{Error, Leader, OpenGroup};
pub use measure_group::{GroupMeasurement, GroupProgress, jain, joining_order, measure_group};
pub use merge::{ClientRun, Merged, NoWindow, merge, merged_latency};
pub use message::{Client, Failure, Hello};
pub use scaling::scalings;
pub use threads::{ThreadRank, thread_group};

impl HostsResult {
    /// The document as JSON.
    ///
    /// # Errors
    /// A number that JSON cannot hold.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// The schema of the document.
    pub fn schema() -> String {
        let schema = schemars::schema_for!(HostsResult);
        serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
    }
}
