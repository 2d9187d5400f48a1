//! Statistics of measurements: intervals, steady state, lines through points, half-power points.
//!
//! Everything here is a pure function of its arguments.

mod distribution;
mod interval;

pub use distribution::{normal_quantile, student_cdf, student_quantile};
pub use interval::{Estimate, estimate_runs, estimate_values};
