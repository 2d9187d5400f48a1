pub(super) use super::experiment::Experiment;
pub(super) use crate::conclusion::{Change, Comparison, Conclusion};
pub(super) use crate::context::{OPS, StudyContext};
pub(super) use crate::found::{ENOUGH, Effect, Found, Reading, best, smallest, worst};
pub(super) use crate::grid::{Curve, CurveSet, FigureDesign, Grid, Rank};
pub(super) use crate::models;
pub(super) use crate::sentences::{
    UNEVEN, effect, percent, plural, reach, size, statements, times, together,
};
pub(super) use machine::units::{show_rate, show_size, show_time};
pub(super) use results::Axis;
pub(super) use workload::{OpKind, Pattern, Workload};
