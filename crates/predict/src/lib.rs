//! What simulated machines are for: the published figures beside the simulation, machines fitted to measurements, what a change would
//! do, and what a cache would do for a trace.
//!
//! A prediction is a [`workload::Workload`] on a [`twin::Twin`], asked by the same streams that measure real machines.

mod error;
pub mod fit;
mod run;
pub mod stack_distance;
pub mod trace;
pub mod validate;
pub mod whatif;

pub use error::{Error, Result};
pub use run::{Outcome, run, workload};
