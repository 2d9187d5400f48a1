//! `compare` of PostMark or operations on many files.

use super::arguments::Arguments;
use super::arms::RunHooks;
use crate::context::Context;
use crate::failure::Failure;
use crate::progress::Watch;
use crate::run_words::workload_options;
use crate::small_files::SmallFiles;
use crate::target::is_twin;
use results::OperationRate;
use results::compare::{Comparison, Measure, Turn, WholeRuns};
use std::path::PathBuf;

struct Place {
    asked: SmallFiles,
    place: PathBuf,
}

impl WholeRuns for Place {
    fn is_noisy(&self) -> bool {
        !is_twin(&self.place)
    }

    fn run(&mut self) -> machine::Result<Vec<OperationRate>> {
        self.asked.run(&self.place)
    }
}

pub(super) fn compare(
    context: &Context,
    arguments: &Arguments,
    asked: &SmallFiles,
) -> Result<Comparison, Failure> {
    let (Some(a), Some(b)) = (&arguments.a, &arguments.b) else {
        return Err(Failure::Usage(format!(
            "{}: name two directories or simulated machines with --a and --b",
            asked.name()
        )));
    };
    if let Some(result) = arguments.workload.target.targets.first() {
        return Err(Failure::Usage(format!(
            "{}: --a and --b name what is measured; leave out the results",
            result.display()
        )));
    }
    if let Some(option) = workload_options::<Arguments>().first() {
        return Err(Failure::Usage(format!(
            "{option}: {} has no such requests; leave it out",
            asked.name()
        )));
    }
    let places = [a, b].map(|place| PathBuf::from(place.trim()));
    for place in &places {
        asked.check(place)?;
    }
    let noisy = places.iter().any(|place| !is_twin(place));
    let turn = Turn {
        names: [a.trim(), b.trim()],
        limits: arguments.limits(noisy, arguments.workload.target.seed),
        worth_percent: arguments.worth_percent(),
        rate: Measure::Operations,
        keys: &[],
        more: "--budget",
    };
    let setups = [arguments.a_setup.as_deref(), arguments.b_setup.as_deref()];
    let mut hooks =
        RunHooks { setups, watch: Watch::new(context.console.time_bar(arguments.budget)) };
    let mut arms =
        places.map(|place| Box::new(Place { asked: asked.clone(), place }) as Box<dyn WholeRuns>);
    let comparison = Comparison::of_whole_runs(
        &mut arms,
        (asked.name(), turn),
        &mut hooks,
        crate::context::program(),
    )?;
    hooks.watch.end();
    Ok(comparison)
}
