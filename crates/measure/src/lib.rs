//! The driver, latency histograms, statistics, repeats, validity checks.
//!
//! A [`Sample`] is one run of one workload; a [`Point`] is what several samples of the same workload say together,
//! with its interval, what was achieved, and the reasons to doubt it.

mod ceiling;
mod checks;
pub mod histogram;
mod operation;
mod point;
mod repeat;
mod sample;
mod slices;
pub mod stats;
mod stream;
mod verified;

pub use ceiling::{Ceiling, Ceilings};
pub use operation::OperationRate;
pub use point::{Achieved, CpuPerRequest, LatencySummary, Numbers, Point, WorkloadRecord};
pub use repeat::{Repeats, THROTTLE_SLICE_NS, half_width, measure, of_whole_bursts, ramp};
pub use sample::{Options, Sample, gather, sample, streams};
pub use stream::Stream;
pub use verified::{Ledger, Verification, measure_verified, read_back};
