//! Experiments as data, half-power points, cost models, findings.
//!
//! [`study()`] asks a machine everything that fits the target and the time, and leaves [`Results`].

mod answer;
mod bench;
mod confirm;
mod design;
mod draw;
mod experiments;
mod findings;
mod grids;
mod limits;
mod models;
mod phases;
mod plan;
mod result;
mod scout;
mod sentences;
mod study;

pub use bench::Progress;
pub use plan::{EXPERIMENTS, Effort, Plan};
pub use result::{
    Advertised, Answer, Axis, CostModel, Experiment, Figure, Finding, HalfPower, Kind, Limit, Peak, Program, Results, SCHEMA, Series,
    ServiceModel, Value,
};
pub use study::study;
