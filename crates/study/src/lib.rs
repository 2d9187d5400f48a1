//! Experiments as data, half-power points, cost models, findings.

mod result;

pub use result::{
    Advertised, Answer, Axis, CostModel, Experiment, Figure, Finding, HalfPower, Kind, Limit, Peak, Program, Results, SCHEMA, Series, ServiceModel, Value,
};
