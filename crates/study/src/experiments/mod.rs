//! The experiments. Each has its own folder; to add one, add a folder and a line in [`ALL`].

pub(crate) mod alignment;
mod allocation;
pub(crate) mod buffered;
mod completions;
mod cost;
mod depth;
mod device_cache;
pub(crate) mod location;
mod memory;
mod random;
mod streams;
mod stripe;
mod unbuffered;

use crate::context::StudyContext;
use crate::found::{Conclusion, Found};
use crate::grid::{Cell, CurveSet, Grid};

mod prelude {
    pub(super) use super::Experiment;
    pub(super) use crate::context::{OPS, StudyContext};
    pub(super) use crate::findings::{Change, Comparison};
    pub(super) use crate::found::{
        Conclusion, ENOUGH, Effect, Found, Reading, best, smallest, worst,
    };
    pub(super) use crate::grid::{Curve, CurveSet, FigureDesign, Grid, Rank};
    pub(super) use crate::models;
    pub(super) use crate::sentences::{
        UNEVEN, effect, percent, plural, reach, size, statements, times, together,
    };
    pub(super) use machine::units::{show_rate, show_size, show_time};
    pub(super) use results::Axis;
    pub(super) use workload::{OpKind, Pattern, Workload};
}

pub(crate) struct Experiment {
    /// Its name in the document and for `--only`.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) question: &'static str,
    /// In the order of the report.
    pub(crate) curves: &'static [&'static CurveSet],
    pub(crate) grid: fn(&StudyContext) -> Grid,
    pub(crate) conclude: fn(&Found<'_>) -> Conclusion,
    /// Whether to add a size between the two around each half-power point.
    pub(crate) refines: bool,
    pub(crate) counts_instructions: fn(&Cell) -> bool,
    pub(crate) needs_memory: bool,
}

impl Experiment {
    const fn new(
        id: &'static str,
        title: &'static str,
        question: &'static str,
        curves: &'static [&'static CurveSet],
        grid: fn(&StudyContext) -> Grid,
        conclude: fn(&Found<'_>) -> Conclusion,
    ) -> Experiment {
        let (refines, needs_memory) = (false, false);
        Experiment {
            id,
            title,
            question,
            curves,
            grid,
            conclude,
            refines,
            counts_instructions: |_| false,
            needs_memory,
        }
    }
}

pub(crate) static ALL: [&Experiment; 13] = [
    &memory::EXPERIMENT,
    &buffered::EXPERIMENT,
    &unbuffered::EXPERIMENT,
    &cost::EXPERIMENT,
    &depth::EXPERIMENT,
    &random::EXPERIMENT,
    &completions::EXPERIMENT,
    &allocation::EXPERIMENT,
    &alignment::EXPERIMENT,
    &streams::EXPERIMENT,
    &location::EXPERIMENT,
    &stripe::EXPERIMENT,
    &device_cache::EXPERIMENT,
];

/// The names of the experiments, in the order of the report.
pub fn experiment_ids() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|experiment| experiment.id)
}
