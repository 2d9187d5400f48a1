//! SNIA's Solid State Storage Performance Test Specification 2.0.2. The next step of [`run()`]
//! follows from the plan and the steps done, so a killed run continues from its document.

mod document;
mod estimate;
mod plan;
mod results;
mod run;
mod tests;

pub use document::{
    Conditions, MatrixCell, PTS_SCHEMA, PhaseResult, PtsResult, PtsStep, pts_schema,
};
pub use estimate::{Estimate, PhaseEstimate, estimate};
pub use plan::{Cell, HistogramCells, Measured, Phase, PhaseKind, PtsPlan, Purge, Until};
pub use results::{histogram_steps, phase_results, pts_sentences, steady_round};
pub use run::{PtsProgress, run};
pub use tests::{PtsOptions, PtsTest, SMALLEST_SCALED, WAITS_S, plan};
