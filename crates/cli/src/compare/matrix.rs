//! Runs SQLIO's published study on two targets in turn.

use crate::Failure;
use crate::output::{self, print};
use crate::progress::Watch;
use crate::target::{Where, machine_of, on_machine};
use dialect::sqlio::{Options, matrix};
use machine::{Machine, Nanos, TargetFacts, TargetSpec};
use measure::turns::Limits;
use results::Output;
use results::compare::{Arm, Comparison, Conduct, Measure, OnMachine, Turn};

/// The parameters that identify a point of the study.
const KEYS: [&str; 3] = ["op", "pattern", "threads"];

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

/// Opens both targets. On a real machine it fills neither before both pass the checks.
fn open_both(specs: &[TargetSpec; 2], options: &Options) -> Result<[Box<dyn Arm>; 2], Failure> {
    let [a, b] = specs.each_ref().map(|spec| machine_of(&[&spec.places[0]]));
    let (a, b) = match (a?, b?) {
        (Where::Host(a), Where::Host(b)) => {
            let check =
                &mut |facts: &[TargetFacts]| facts.iter().try_for_each(|facts| matrix::check(&a, options, facts));
            let targets = a.open_all(specs, check)?;
            let arms = [a, b].into_iter().zip(targets).map(|(machine, target)| arm(machine, target, options));
            let arms: Vec<Box<dyn Arm>> = arms.collect();
            return arms.try_into().map_err(|_| Failure::Run("two targets were not opened".into()));
        }
        other => other,
    };
    Ok([open(a, &specs[0], options)?, open(b, &specs[1], options)?])
}

fn open(place: Where, spec: &TargetSpec, options: &Options) -> Result<Box<dyn Arm>, Failure> {
    on_machine!(place, |machine| {
        let target = machine.open_checked(spec, |facts| matrix::check(&machine, options, facts))?;
        Ok(arm(machine, target, options))
    })
}

fn arm<M: Machine + 'static>(machine: M, target: M::Target, options: &Options) -> Box<dyn Arm> {
    let engines = machine.capabilities().engines;
    let workloads = matrix::workloads(options, &engines).into_iter().map(|(_, workload)| workload).collect();
    Box::new(OnMachine::new(machine, target, workloads))
}

/// Measures the study on two targets and prints the table of their differences.
pub(crate) fn compare(options: &Options, json: Option<&Output>) -> Result<(), Failure> {
    let began_unix_s = crate::history::now_unix_s();
    let specs = matrix::two_targets(options)?;
    let mut arms = open_both(&specs, options)?;
    let noisy = arms.iter().any(|arm| arm.is_noisy());
    let in_turn = matrix::in_turn(options, noisy)?;
    let names = specs.each_ref().map(|spec| spec.places[0].display().to_string());
    let turn = Turn {
        names: [&names[0], &names[1]],
        limits: Limits {
            until: matrix::DECIDED,
            budget_ns: Nanos::MAX,
            most_blocks: in_turn.most_blocks,
            gain_wanted: None,
            noisy,
            seed: options.seed.unwrap_or(1),
        },
        worth_percent: matrix::DECIDED * 100.0 / 2.0,
        rate: Measure::Iops,
        keys: &KEYS,
        more: "--repeats or --runtime",
    };
    let mut progress = Progress(Watch::new(in_turn.least_ns));
    let comparison = Comparison::of_arms(&mut arms, turn, &mut progress, crate::program())?;
    progress.0.end();
    // Keep a file that was created under a given name, as other runs do.
    arms.iter_mut().for_each(|arm| arm.keep_files());
    crate::history::keep_comparison(&comparison, &arms, began_unix_s);
    let saved = match json {
        Some(file) => output::save(file, &output::json(comparison.to_json())?),
        None => Ok(()),
    };
    print(&report::compare::terminal(&comparison, output::width(), output::colour()))?;
    saved?;
    super::not_interrupted()?;
    if comparison.differences.is_empty() {
        return Err(Failure::Run("no point could be measured on both".into()));
    }
    Ok(())
}
