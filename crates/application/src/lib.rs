//! A recorded application: its profile, and its replay on a machine.

mod latency;
pub mod profile;
pub mod replay;
pub mod stack_distance;
pub mod verdict;

pub use latency::Latency;
