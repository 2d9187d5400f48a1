//! Pure functions.

mod change;
mod change_points;
mod distribution;
mod fit;
mod half;
mod interval;
mod phases;
mod ratio;
mod sequence;
mod series;
mod spread;
mod steady;

pub use change::{Change, Level, holm};
pub use change_points::{ChangePoint, change_points};
pub use distribution::{normal_quantile, student_cdf, student_quantile};
pub use fit::{Coefficient, FitError, FitPoint, Knee, LineFit, fit_line};
pub use half::{HalfPower, Point, Reached, half_power, smoothed};
pub use interval::{
    Estimate, MIN_SLICES, estimate_beside, estimate_runs, estimate_values, spread_of_runs,
};
pub use phases::{Course, Phase, phases};
pub(crate) use phases::{FEW_FACTOR, MIN_TESTED, best_step};
pub use ratio::{Ratio, ratio_interval, ratio_of_estimates};
pub use sequence::{MIN_BLOCKS, change_at_any_time};
pub(crate) use series::mean;
pub use series::median;
pub use spread::Spread;
pub use steady::{MIN_TO_JUDGE, Steadiness, Verdict, judge, warm_up};
