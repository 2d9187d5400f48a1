use crate::conclusion::Conclusion;
use crate::context::StudyContext;
use crate::found::Found;
use crate::grid::{Cell, CurveSet, Grid};

pub(crate) struct Experiment {
    /// In the document and for `--only`.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) question: &'static str,
    pub(crate) curves: &'static [&'static CurveSet],
    pub(crate) grid: fn(&StudyContext) -> Grid,
    pub(crate) conclude: fn(&Found<'_>) -> Conclusion,
    /// Adds a size between the two around each half-power point.
    pub(crate) refines: bool,
    pub(crate) counts_instructions: fn(&Cell) -> bool,
    pub(crate) needs_memory: bool,
}

impl Experiment {
    pub(super) const fn new(
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
