//! Writes at full speed until the lasting rate is known, then rests and writes again.

use crate::document::{StopReason, SustainedResult, WearChange};
use crate::plan::{FIRST_SHARE, Progress, SustainPlan};
use crate::run::Run;
use crate::sentences::sentences;
use crate::series::Series;
use crate::writer::{Writer, check_writable};
use machine::{Error, Machine, Result};
use results::Program;

/// `on_step` is called after each step and each second of a rest, and `false` ends the run. `keep`
/// gets the result every 30 s. Fails if the target is unwritable or the first request fails; later
/// failures or an interrupt end the run with its points so far.
pub fn sustain<M: Machine>(
    machine: &M,
    target: &M::Target,
    plan: &SustainPlan,
    program: Program,
    on_step: &mut dyn FnMut(Progress<'_>) -> bool,
    keep: &mut dyn FnMut(&SustainedResult),
) -> Result<SustainedResult> {
    let writer = Writer::new(machine, target, plan.max_written);
    check_writable(&writer.facts)?;
    let workload = plan.workload(&machine.capabilities().engines);
    measure::check(&workload, &writer.facts)?;
    let before = machine.wear(target);
    let mut run =
        Run { plan, workload, writer, program, on_step, series: Series::default(), rested: false };
    let mut recoveries = Vec::new();
    let mut reads = None;
    let mut fills = Vec::new();
    let share = 1.0 / (plan.fills.len() + 1) as f64;
    let ended = run.first(share * FIRST_SHARE, keep).and_then(|stopped| {
        run.after(share, &mut recoveries, &mut reads)?;
        run.fills(&recoveries, &mut fills)?;
        Ok(stopped)
    });
    if run.series.points().is_empty() {
        ended?;
        return Err(Error::Interrupted);
    }
    // The rates until then are as good as without the failure.
    let (stopped, failure) = match ended {
        Ok(stopped) => (stopped, None),
        Err(Error::Interrupted) => (StopReason::Interrupted, None),
        Err(error) => (StopReason::Failed, Some(error.to_string())),
    };
    let after = machine.wear(target);
    let wear = WearChange::of(before, after, plan.endurance_bytes, None);
    let mut of_run = run.result(stopped, recoveries, reads);
    of_run.unseen.extend(crate::fills::unseen(plan, &of_run, &fills));
    let result = SustainedResult { failure, fills, wear, ..of_run };
    Ok(SustainedResult { sentences: sentences(&result), ..result })
}
