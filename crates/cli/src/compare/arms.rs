//! Measures two arms in turn, in random blocks.

use super::arguments::Arguments;
use crate::arguments::PointArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::points::{TURN_RUN_NS, grid, target_of};
use crate::progress::Watch;
use crate::run_words::{words_of_runs, words_typed};
use crate::setup_command::{self, Ended};
use crate::target::{Where, is_twin};
use crate::unfinished::Unfinished;
use machine::{Machine, Nanos, TargetSpec};
use measure::turns::Stop;
use measure::{Arrangement, Repeats, RequestPart, RunRequest, Runner};
use results::compare::{Arm, Comparison, Conduct, Measure, OnMachine, Turn};
use std::process::Stdio;
use twin::Twin;
use workload::Workload;

fn option_name(word: &str) -> Option<&str> {
    word.starts_with("--").then(|| word.split('=').next().unwrap_or(word))
}

/// An arm's own option replaces a common one of its pair.
const EITHER: [[&str; 2]; 2] = [["--runtime", "--bytes"], ["--direct", "--buffered"]];

fn arguments_of(name: &str, own: &str, common: &[String]) -> Result<PointArguments, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{name} '{own}': {why}"));
    let own_words =
        shlex::split(own).ok_or_else(|| wrong("a quotation mark is not closed".into()))?;
    let mut replaced: Vec<&str> = own_words.iter().filter_map(|word| option_name(word)).collect();
    for pair in EITHER {
        if pair.iter().any(|one| replaced.contains(one)) {
            replaced.extend(pair);
        }
    }
    let mut words = own_words.clone();
    let mut keeps = true;
    for word in common {
        if let Some(option) = option_name(word) {
            keeps = !replaced.contains(&option);
        }
        if keeps {
            words.push(word.clone());
        }
    }
    let mut arguments =
        PointArguments::parse("sweep", words).map_err(|error| wrong(error.to_string()))?;
    crate::points::check_grid(&arguments)?;
    if arguments.target.targets.is_empty() {
        return Err(wrong(
            "it names no target; begin it with a directory, a file, a device or twin:NAME".into(),
        ));
    }
    if arguments.verify {
        return Err(wrong("--verify measures no rate; leave it out".into()));
    }
    crate::concurrent::refuse(&arguments)?;
    crate::points::no_metrics(&arguments)?;
    crate::live::refuse(arguments.live, "compare")?;
    // Runs of a simulated machine repeat exactly, so they are as long as those of `run`.
    let simulated = arguments.target.targets.iter().any(|name| is_twin(name));
    if arguments.runtime.is_none() && arguments.bytes.is_none() && !simulated {
        arguments.runtime = Some(TURN_RUN_NS);
    }
    Ok(arguments)
}

pub(super) struct Unopened {
    pub(super) place: Where,
    pub(super) spec: TargetSpec,
    pub(super) workloads: Vec<Workload>,
}

impl Unopened {
    fn of(context: &Context, arguments: &PointArguments) -> Result<Unopened, Failure> {
        let (place, spec) = target_of(context, arguments)?;
        Ok(Unopened { workloads: grid(arguments, &place.engines()), place, spec })
    }

    fn check(&self) -> machine::Result<()> {
        match &self.place {
            Where::Host(machine) => request(&[self]).check(machine),
            Where::Twin(machine) => request(&[self]).check(&**machine),
        }
    }

    fn open(self, unfinished: &Unfinished) -> Result<Box<dyn Arm>, Failure> {
        let request = request(&[&self]);
        match self.place {
            Where::Host(machine) => {
                let machine = unfinished.machine(machine);
                let target = Runner::open(&machine, &request)?.into_targets().remove(0);
                Ok(Box::new(OnMachine::new(machine, target, self.workloads)))
            }
            Where::Twin(machine) => {
                let target = Runner::open(&*machine, &request)?.into_targets().remove(0);
                let spec = self.spec;
                let name = spec.places[0].to_string_lossy().into_owned();
                let renew = move || {
                    let machine = Twin::from_name(&name)?;
                    let target = machine.open(&spec)?;
                    Ok((machine, target))
                };
                let arm = OnMachine::new(*machine, target, self.workloads);
                Ok(Box::new(arm.exact(Box::new(renew))))
            }
        }
    }
}

fn request(arms: &[&Unopened]) -> RunRequest {
    let parts = arms.iter().enumerate().flat_map(|(target, arm)| {
        arm.workloads.iter().map(move |workload| RequestPart { target, workload: workload.clone() })
    });
    RunRequest {
        targets: arms.iter().map(|arm| arm.spec.clone()).collect(),
        parts: parts.collect(),
        arrangement: Arrangement::InTurn,
        repeats: Repeats::default(),
    }
}

/// Overwrites nothing before both arms pass the checks.
pub(super) fn open(
    [first, second]: [Unopened; 2],
    unfinished: &Unfinished,
) -> Result<[Box<dyn Arm>; 2], Failure> {
    first.check()?;
    second.check()?;
    if first.workloads.len() != second.workloads.len() {
        return Err(Failure::Usage(format!(
            "--a asks {} questions and --b {}: give both lists of the same length",
            first.workloads.len(),
            second.workloads.len()
        )));
    }
    let both = request(&[&first, &second]);
    match (first, second) {
        (
            Unopened { place: Where::Host(a), workloads, .. },
            Unopened { place: Where::Host(b), workloads: others, .. },
        ) => {
            let [a, b] = [a, b].map(|machine| unfinished.machine(machine));
            let mut targets = Runner::open(&a, &both)?.into_targets();
            let second = targets.remove(1);
            Ok([
                Box::new(OnMachine::new(a, targets.remove(0), workloads)),
                Box::new(OnMachine::new(b, second, others)),
            ])
        }
        // Open a simulated arm first: it overwrites nothing.
        (first @ Unopened { place: Where::Twin(_), .. }, second) => {
            Ok([first.open(unfinished)?, second.open(unfinished)?])
        }
        (first, second) => {
            let second = second.open(unfinished)?;
            Ok([first.open(unfinished)?, second])
        }
    }
}

pub(super) struct RunHooks<'a> {
    pub(super) setups: [Option<&'a str>; 2],
    pub(super) watch: Watch,
}

impl Conduct for RunHooks<'_> {
    type Error = Failure;

    fn now(&self) -> Nanos {
        self.watch.now()
    }

    fn before_run(&mut self, arm: usize) -> Result<(), Stop<Failure>> {
        set_up(self.setups, arm)
    }

    fn on_block(&mut self, question: &str, block: usize, passed_ns: Nanos) {
        self.watch.at(passed_ns, &format!("{question}, block {block}"));
    }
}

pub(super) fn arguments([a, b]: [&str; 2]) -> Result<[PointArguments; 2], Failure> {
    let common = words_of_runs::<Arguments>(words_typed());
    let common: Vec<String> = common.into_iter().filter(|word| word != "--json").collect();
    Ok([arguments_of("--a", a, &common)?, arguments_of("--b", b, &common)?])
}

pub(super) fn compare(
    context: &Context,
    arguments: &Arguments,
    [a, b]: [&str; 2],
    of: &[PointArguments; 2],
    unfinished: &Unfinished,
) -> Result<Comparison, Failure> {
    let began_unix_s = unfinished.began_unix_s().unwrap_or_else(crate::history::now_unix_s);
    let unopened = [Unopened::of(context, &of[0])?, Unopened::of(context, &of[1])?];
    let writes = unopened.iter().flat_map(|arm| &arm.workloads).any(Workload::writes);
    context.writes.plan_for(writes, arguments.budget);
    let mut arms = open(unopened, unfinished)?;
    let turn = Turn {
        names: [a.trim(), b.trim()],
        limits: arguments.limits(arms.iter().any(|arm| arm.is_noisy()), of[0].target.seed),
        worth_percent: arguments.worth_percent(),
        rate: Measure::Throughput,
        keys: &[],
        more: "--budget",
    };
    let setups = [arguments.a_setup.as_deref(), arguments.b_setup.as_deref()];
    let mut hooks = RunHooks { setups, watch: unfinished.watch(context, arguments.budget) };
    let mut comparison =
        Comparison::of_arms(&mut arms, turn, &mut hooks, crate::context::program())?;
    hooks.watch.end();
    comparison.warnings.extend(unfinished.warnings());
    crate::history::keep_comparison(context, &comparison, &arms, began_unix_s);
    Ok(comparison)
}

pub(super) fn set_up(setups: [Option<&str>; 2], arm: usize) -> Result<(), Stop<Failure>> {
    let Some(command) = setups[arm] else { return Ok(()) };
    let option = ["--a-setup", "--b-setup"][arm];
    let wrong = |why: String| Stop::All(Failure::Usage(format!("{option} '{command}': {why}")));
    // Its output is not part of the result.
    match setup_command::run(command, [Stdio::null(), Stdio::inherit()]) {
        Ok(Ended::Success) => Ok(()),
        Ok(Ended::Failed(status)) => {
            Err(wrong(format!("it ended with {status}; nothing was measured after it")))
        }
        Ok(Ended::Interrupted) => Err(Stop::Interrupted(Failure::Interrupted)),
        Err(error) => Err(wrong(format!("cannot be started: {error}"))),
    }
}
