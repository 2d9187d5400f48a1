//! Each experiment has a folder and a line in [`ALL`].

pub(crate) mod alignment;
mod allocation;
pub(crate) mod buffered;
mod clients;
mod completions;
mod cost;
mod depth;
mod device_cache;
mod experiment;
pub(crate) mod location;
mod long_writes;
mod memory;
mod prelude;
mod random;
mod streams;
mod stripe;
mod unbuffered;

pub(crate) use experiment::Experiment;

use crate::context::StudyContext;
use crate::grid::{Grid, Rank};
use crate::plan::{Effort, Plan};

pub(crate) static ALL: [&Experiment; 15] = [
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
    &clients::EXPERIMENT,
    &location::EXPERIMENT,
    &stripe::EXPERIMENT,
    &device_cache::EXPERIMENT,
    &long_writes::EXPERIMENT,
];

/// In the order of the report.
pub fn experiment_ids() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|experiment| experiment.id)
}

pub(crate) struct Trial {
    pub(crate) experiment: &'static Experiment,
    pub(crate) grid: Grid,
}

pub(crate) fn wanted(setting: &StudyContext, plan: &Plan) -> Vec<Trial> {
    let max = match plan.effort {
        Effort::Quick => Rank::Core,
        Effort::Normal => Rank::Usual,
        Effort::Full => Rank::Rich,
    };
    let trial = |experiment: &&'static Experiment| {
        let mut grid = (experiment.grid)(setting);
        if plan.wants(experiment.id) {
            grid.cells.retain(|cell| cell.rank <= max);
        } else {
            grid = Grid { notes: grid.notes, ..Grid::skipped("not selected (--only)") };
        }
        Trial { experiment, grid }
    };
    ALL.iter().map(trial).collect()
}
