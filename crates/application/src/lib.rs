//! A recorded application: the profile of its requests, and their replay on a machine.

mod latency;
pub mod profile;
pub mod replay;
pub mod stack_distance;
pub mod verdict;

pub use latency::Latency;
