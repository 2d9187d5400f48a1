//! `halfpower stack`.

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{self, colour, width};
use crate::target::{TargetArguments, on_machine, resolve};
use clap::Args;
use machine::units::parse_time;
use machine::{Machine, TargetSpec};
use results::{Kind, Results};
use study::{Effort, Plan};

const MEASURED: [&str; 4] = ["memory", "buffered", "unbuffered", "depth"];

/// Options of `stack`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    #[command(flatten, next_help_heading = "Target")]
    target: TargetArguments,
    /// Time for the measurements
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "20s")]
    budget: u64,
    /// Print the results as JSON on standard output
    #[arg(long)]
    json: bool,
}

pub(crate) fn stack(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    crate::studies::check_budget(arguments.budget)?;
    let plan = Plan {
        budget_ns: arguments.budget,
        effort: Effort::Quick,
        only: MEASURED.map(str::to_owned).to_vec(),
        seed: arguments.target.seed,
    };
    context.writes.plan_for(true, plan.budget_ns);
    let (place, spec) = resolve(context, &arguments.target)?;
    let results = on_machine!(place, |machine| stack_on(context, &machine, &spec, &plan))?;
    if arguments.json {
        return context.console.print(&output::json(results::to_json(&results))?);
    }
    context.console.print(&report::terminal::ladder(&results, width(), colour()))
}

fn stack_on<M: Machine>(
    context: &Context,
    machine: &M,
    spec: &TargetSpec,
    plan: &Plan,
) -> Result<Results, Failure> {
    let results = crate::studies::study_on(context, machine, spec, plan)?;
    Ok(Results { kind: Kind::Stack, ..results })
}
