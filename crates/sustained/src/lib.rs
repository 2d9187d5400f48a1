//! [`sustain()`] writes past caches and credit until the lasting rate is known; [`pts`] runs SNIA's
//! performance tests.

mod after;
mod document;
mod falls;
mod fills;
mod judge;
mod level;
mod log;
mod look;
mod plan;
pub mod pts;
mod reserve;
mod run;
mod saw_tooth;
mod sentences;
mod series;
mod side;
mod steady;
mod sustain;
mod unseen;
mod writer;

pub use document::{
    FillResult, ReadsDuring, Recovery, SUSTAINED_SCHEMA, StopReason, SustainSettings,
    SustainedResult, Unseen, WearChange, sustained_schema,
};
pub use level::{Level, levels};
pub use look::{Look, LookLimits, look};
pub use machine::units::show_span as span;
pub use plan::{Progress, SustainPlan};
pub use reserve::{Reserve, ReserveKind, Reserves, reserves};
pub use sentences::sentences;
pub use series::{Series, SeriesPoint};
pub use steady::{MAX_RANGE_PERCENT, MAX_SLOPE_PERCENT, SteadyCheck, WINDOW, steady_state};
pub use sustain::sustain;
