//! Uses of simulated machines. A prediction is a [`workload::Workload`] on a [`twin::Twin`], driven
//! by the same streams that measure real machines.

mod error;
pub mod fit;
pub mod outlook;
pub mod plan;
mod run;
pub mod sustained;
pub mod trace;
pub mod validate;
pub mod whatif;

pub use application::stack_distance;

pub use error::{Error, Result};
pub use run::{Outcome, run, workload};
