//! SQLIO's published study on two targets in turn.

use super::arms::{Unopened, open};
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::progress::Watch;
use crate::target::machine_of;
use crate::unfinished::Unfinished;
use dialect::sqlio::{Options, matrix};
use machine::{Nanos, TargetSpec};
use measure::turns::Limits;
use results::Output;
use results::compare::{Comparison, Conduct, Measure, Turn};

const KEYS: [&str; 4] = ["op", "pattern", "request", "threads"];

struct Progress(Watch);

impl Conduct for Progress {
    type Error = Failure;

    fn now(&self) -> Nanos {
        self.0.now()
    }

    fn on_block(&mut self, question: &str, block: usize, passed_ns: Nanos) {
        self.0.at(passed_ns, &format!("{question}, block {block}"));
    }
}

fn arm(context: &Context, spec: &TargetSpec, options: &Options) -> Result<Unopened, Failure> {
    let place = machine_of(context, &[&spec.places[0]])?;
    let workloads = matrix::workloads(options, &place.engines())
        .into_iter()
        .map(|(_, workload)| workload)
        .collect();
    Ok(Unopened { place, spec: spec.clone(), workloads })
}

pub(crate) fn compare(
    context: &Context,
    options: &Options,
    json: Option<&Output>,
) -> Result<(), Failure> {
    let began_unix_s = crate::history::now_unix_s();
    let specs = matrix::two_targets(options)?;
    let unfinished = Unfinished::nowhere(context, "sqlio");
    let mut arms =
        open([arm(context, &specs[0], options)?, arm(context, &specs[1], options)?], &unfinished)?;
    let noisy = arms.iter().any(|arm| arm.is_noisy());
    let in_turn = matrix::in_turn(options, noisy)?;
    let names = specs.each_ref().map(|spec| spec.places[0].display().to_string());
    let turn = Turn {
        names: [&names[0], &names[1]],
        limits: Limits {
            until: matrix::DECIDED,
            budget_ns: Nanos::MAX,
            max_blocks: in_turn.max_blocks,
            gain_wanted: None,
            noisy,
            seed: options.seed.unwrap_or(1),
        },
        worth_percent: matrix::DECIDED * 100.0 / 2.0,
        rate: Measure::Iops,
        keys: &KEYS,
        more: "--repeats or --runtime",
    };
    let mut progress = Progress(Watch::new(context.console.time_bar(in_turn.min_ns)));
    let comparison =
        Comparison::of_arms(&mut arms, turn, &mut progress, crate::context::program())?;
    progress.0.end();
    // Keep a file that was created under a given name, as other runs do.
    arms.iter_mut().for_each(|arm| arm.keep_files());
    crate::history::keep_comparison(context, &comparison, &arms, began_unix_s);
    let saved = match json {
        Some(file) => output::save(file, &output::json(comparison.to_json())?),
        None => Ok(()),
    };
    context.console.print(&report::compare::terminal(
        &comparison,
        output::width(),
        output::colour(),
    ))?;
    saved?;
    super::not_interrupted()?;
    if comparison.differences.is_empty() {
        return Err(Failure::Run("no point could be measured on both".into()));
    }
    Ok(())
}
