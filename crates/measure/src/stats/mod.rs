//! Statistics of measurements: intervals, steady state, lines through points, half-power points.
//!
//! Everything here is a pure function of its arguments.

mod distribution;
mod interval;
mod series;
mod steady;

pub use distribution::{normal_quantile, student_cdf, student_quantile};
pub use interval::{Estimate, MIN_SLICES, estimate_runs, estimate_values};
pub use steady::{MIN_TO_JUDGE, Steadiness, Verdict, judge, warm_up};
