//! Two arms measured now, in turn, in random blocks.

use super::Arguments;
use crate::Failure;
use crate::arguments::{Cli, Command, PointArguments};
use crate::points::grid;
use crate::target::{Where, resolve};
use clap::{CommandFactory, Parser};
use machine::{Machine, TargetFacts, TargetSpec};
use measure::turns::{Arms, Limits, Stop, in_turn};
use measure::{Sample, next_run, sample};
use results::Point;
use results::compare::{Comparison, InTurn, OF_A_RUN, Series, WORTH_PERCENT, asked, of_a_run};
use std::process::Stdio;
use std::time::Instant;
use workload::Workload;

/// Length of a run, unless one is named: short, so that blocks are many.
const RUN_NS: u64 = 400_000_000;

/// The words of a command line that are options of `run` with their values, in their order.
pub(super) fn words_of_runs(words: impl Iterator<Item = String>) -> Vec<String> {
    let cli = Cli::command();
    let Some(sweep) = cli.find_subcommand("sweep") else { return Vec::new() };
    let mut kept = Vec::new();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--") else { continue };
        let name = option.split('=').next().unwrap_or(option);
        let Some(known) = sweep.get_arguments().find(|one| one.get_long() == Some(name)) else {
            // The value of another option, which may look like one of these, goes with it.
            if takes_value(&cli, name) && !option.contains('=') {
                words.next();
            }
            continue;
        };
        let has_value = known.get_action().takes_values() && !option.contains('=');
        kept.push(word);
        if has_value {
            kept.extend(words.next());
        }
    }
    kept
}

/// Whether an option of `compare` alone has a value.
fn takes_value(cli: &clap::Command, name: &str) -> bool {
    let compare = cli.find_subcommand("compare");
    compare
        .and_then(|compare| compare.get_arguments().find(|one| one.get_long() == Some(name)))
        .is_some_and(|one| one.get_action().takes_values())
}

/// The name of an option: `--depth` of `--depth=8`.
fn option_name(word: &str) -> Option<&str> {
    word.starts_with("--").then(|| word.split('=').next().unwrap_or(word))
}

/// Options of which an arm's own replaces the common one.
const EITHER: [[&str; 2]; 2] = [["--runtime", "--bytes"], ["--direct", "--buffered"]];

/// An arm's arguments: its own words, and those of both arms that it does not replace.
fn arguments_of(name: &str, own: &str, common: &[String]) -> Result<PointArguments, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{name} '{own}': {why}"));
    let own_words = shlex::split(own).ok_or_else(|| wrong("a quotation mark is not closed".into()))?;
    let mut replaced: Vec<&str> = own_words.iter().filter_map(|word| option_name(word)).collect();
    for pair in EITHER {
        if pair.iter().any(|one| replaced.contains(one)) {
            replaced.extend(pair);
        }
    }
    let mut words: Vec<String> = vec!["halfpower".into(), "sweep".into()];
    words.extend(own_words.iter().cloned());
    let mut keeps = true;
    for word in common {
        if let Some(option) = option_name(word) {
            keeps = !replaced.contains(&option);
        }
        if keeps {
            words.push(word.clone());
        }
    }
    let cli = Cli::try_parse_from(words).map_err(|error| wrong(error.to_string()))?;
    let Command::Sweep(mut arguments) = cli.command else { return Err(wrong("it is no arm".into())) };
    crate::points::check_grid(&arguments)?;
    if arguments.target.targets.is_empty() {
        return Err(wrong("it names no target; begin it with a directory, a file, a device or twin:NAME".into()));
    }
    if arguments.verify {
        return Err(wrong("--verify measures no rate; leave it out".into()));
    }
    if arguments.runtime.is_none() && arguments.bytes.is_none() {
        arguments.runtime = Some(RUN_NS);
    }
    Ok(arguments)
}

/// One arm, whatever machine it is on.
trait Arm {
    /// The workloads, in the order of the grid.
    fn workloads(&self) -> &[Workload];

    /// Whether two runs of the same workload differ.
    fn is_noisy(&self) -> bool;

    /// Runs a workload once; its value of each of [`OF_A_RUN`].
    fn run(&mut self, index: usize) -> machine::Result<[f64; OF_A_RUN.len()]>;

    /// The points of all runs.
    fn points(&self) -> Vec<Point>;
}

/// An arm on its machine.
struct OnMachine<M: Machine> {
    machine: M,
    target: M::Target,
    facts: TargetFacts,
    workloads: Vec<Workload>,
    samples: Vec<Vec<Sample>>,
}

impl<M: Machine> Arm for OnMachine<M> {
    fn workloads(&self) -> &[Workload] {
        &self.workloads
    }

    fn is_noisy(&self) -> bool {
        self.machine.capabilities().noisy
    }

    fn run(&mut self, index: usize) -> machine::Result<[f64; OF_A_RUN.len()]> {
        let workload = &self.workloads[index];
        let options = next_run(&self.machine, &self.facts, workload, &self.samples[index]);
        let sample = sample(&self.machine, &mut self.target, workload, options)?;
        let values = of_a_run(&sample);
        self.samples[index].push(sample);
        Ok(values)
    }

    fn points(&self) -> Vec<Point> {
        let each = self.workloads.iter().zip(&self.samples);
        each.map(|(workload, samples)| Point::from_samples(workload, &self.facts, samples)).collect()
    }
}

/// Both arms on their machines. Nothing is overwritten before both are checked.
///
/// # Errors
/// Arms that do not ask as many questions, or cannot be opened.
fn open(of: &[PointArguments; 2]) -> Result<[Box<dyn Arm>; 2], Failure> {
    let [(first, first_spec), (second, second_spec)] = [resolve(&of[0].target)?, resolve(&of[1].target)?];
    let asked = [workloads_on(&first, &of[0])?, workloads_on(&second, &of[1])?];
    if asked[0].len() != asked[1].len() {
        return Err(Failure::Usage(format!(
            "--a asks {} questions and --b {}: give both lists of the same length",
            asked[0].len(),
            asked[1].len()
        )));
    }
    Ok(match (first, second) {
        (Where::Host(first), Where::Host(second)) => {
            let opened = first.open_all(&[first_spec, second_spec], &mut |facts| {
                asked.iter().zip(facts).try_for_each(|(workloads, facts)| crate::points::check(workloads, facts))
            })?;
            let [a, b] = <[_; 2]>::try_from(opened)
                .map_err(|opened| Failure::Run(format!("{} of two arms were opened", opened.len())))?;
            let [first_asked, second_asked] = asked;
            [Box::new(OnMachine::new(first, a, first_asked)?), Box::new(OnMachine::new(second, b, second_asked)?)]
        }
        // A simulated arm overwrites nothing: it is opened first.
        (first, second) => {
            let [first_asked, second_asked] = asked;
            let first_is_simulated = matches!(first, Where::Twin(_));
            let open_first = || open_on(first, &first_spec, first_asked);
            let open_second = || open_on(second, &second_spec, second_asked);
            if first_is_simulated {
                [open_first()?, open_second()?]
            } else {
                let second = open_second()?;
                [open_first()?, second]
            }
        }
    })
}

/// What an arm asks, as far as it can be checked without its target.
fn workloads_on(place: &Where, arguments: &PointArguments) -> Result<Vec<Workload>, Failure> {
    fn on<M: Machine>(machine: &M, arguments: &PointArguments) -> Result<Vec<Workload>, Failure> {
        let workloads = grid(arguments, &machine.capabilities().engines);
        workloads.iter().try_for_each(|workload| workload.check(u64::MAX >> 1, 1))?;
        workloads.iter().try_for_each(|workload| machine.check_memory(&[workload.buffers()]))?;
        Ok(workloads)
    }
    match place {
        Where::Host(machine) => on(machine, arguments),
        Where::Twin(machine) => on(&**machine, arguments),
    }
}

fn open_on(place: Where, spec: &TargetSpec, workloads: Vec<Workload>) -> Result<Box<dyn Arm>, Failure> {
    fn on<M: Machine>(machine: M, spec: &TargetSpec, workloads: Vec<Workload>) -> Result<OnMachine<M>, Failure> {
        let target = machine.open_checked(spec, |facts| crate::points::check(&workloads, facts))?;
        OnMachine::new(machine, target, workloads)
    }
    Ok(match place {
        Where::Host(machine) => Box::new(on(machine, spec, workloads)?),
        Where::Twin(machine) => Box::new(on(*machine, spec, workloads)?),
    })
}

impl<M: Machine> OnMachine<M> {
    /// A target that is open, and what it is asked: once more checked, now that its size is sure.
    fn new(machine: M, target: M::Target, workloads: Vec<Workload>) -> Result<OnMachine<M>, Failure> {
        let facts = machine.target_facts(&target);
        crate::points::check(&workloads, &facts)?;
        let samples = workloads.iter().map(|_| Vec::new()).collect();
        Ok(OnMachine { machine, target, facts, workloads, samples })
    }
}

/// Both arms, in turn.
struct Both<'a> {
    arms: &'a mut [Box<dyn Arm>; 2],
    setups: [Option<&'a str>; 2],
    labels: &'a [String],
    began: Instant,
    bar: indicatif::ProgressBar,
}

impl Arms<{ OF_A_RUN.len() }> for Both<'_> {
    type Error = Failure;

    fn now(&self) -> machine::Nanos {
        self.began.elapsed().as_nanos() as u64
    }

    fn run(&mut self, arm: usize, question: usize) -> Result<[f64; OF_A_RUN.len()], Stop<Failure>> {
        if let Some(command) = self.setups[arm] {
            set_up(command, arm).map_err(Stop::All)?;
        }
        self.arms[arm].run(question).map_err(|error| match Failure::from(error) {
            Failure::Interrupted => Stop::Interrupted(Failure::Interrupted),
            Failure::Run(why) => Stop::Question(why),
            other => Stop::All(other),
        })
    }

    fn on_block(&mut self, question: usize, block: usize, passed_ns: machine::Nanos) {
        crate::progress::at(&self.bar, passed_ns, &format!("{}, block {block}", self.labels[question]));
    }
}

/// Compares two arms.
///
/// # Errors
/// Arguments of both arms.
///
/// # Errors
/// An arm that is none, or names no target.
pub(super) fn arguments([a, b]: [&str; 2]) -> Result<[PointArguments; 2], Failure> {
    let common = words_of_runs(super::words_typed());
    let common: Vec<String> = common.into_iter().filter(|word| word != "--json").collect();
    Ok([arguments_of("--a", a, &common)?, arguments_of("--b", b, &common)?])
}

/// Arms that cannot be opened or do not ask as many questions, an interrupt before anything could be said.
pub(super) fn compare(
    arguments: &Arguments,
    [a, b]: [&str; 2],
    of: &[PointArguments; 2],
) -> Result<Comparison, Failure> {
    let mut arms = open(of)?;
    let questions = arms[0].workloads().len();
    let names = [a, b].map(|name| name.trim().to_string());
    let labels: Vec<String> = (0..questions).map(|index| label(&arms, index)).collect();
    let limits = Limits {
        until: arguments.until / 100.0,
        budget_ns: arguments.budget,
        noisy: arms.iter().any(|arm| arm.is_noisy()),
        seed: of[0].target.seed,
    };
    let setups = [arguments.a_setup.as_deref(), arguments.b_setup.as_deref()];
    let bar = crate::progress::time_bar(arguments.budget);
    let mut both = Both { arms: &mut arms, setups, labels: &labels, began: Instant::now(), bar };
    let turns = in_turn(&mut both, labels.len(), limits)?;
    both.bar.finish_and_clear();
    let exact = !limits.noisy;
    let points = [arms[0].points(), arms[1].points()];
    let mut warnings: Vec<String> = Vec::new();
    for (points, name) in points.iter().zip(&names) {
        for warning in points.iter().filter_map(|point| point.numbers.as_ref()).flat_map(|numbers| &numbers.warnings) {
            let said = format!("{name}: {warning}");
            if !warnings.contains(&said) {
                warnings.push(said);
            }
        }
    }
    let open = turns.open();
    if open > 0 {
        warnings.push(format!(
            "{open} of {} questions were still open when it stopped: neither a difference nor its absence to within {} % is sure; give it more --budget",
            turns.answers.len(),
            arguments.until
        ));
    }
    let mut series = Vec::new();
    for (index, answer) in turns.answers.iter().enumerate().filter(|(_, answer)| !answer.blocks.is_empty()) {
        for (place, measure) in OF_A_RUN.into_iter().enumerate() {
            let side = |arm: usize| answer.blocks.iter().map(|block| block[arm][place]).collect();
            let mut question = asked(&points[0][index]);
            question.label.clone_from(&labels[index]);
            series.push(Series { asked: question, measure, a: side(0), b: side(1), exact });
        }
    }
    let failed = turns.answers.iter().zip(&labels).filter_map(|(answer, label)| {
        let (arm, why) = answer.failed.as_ref()?;
        Some(format!("{label}: failed on {}: {why}", names[*arm]))
    });
    let failed = failed.collect();
    let blocks = turns.answers.iter().map(|answer| answer.blocks.len()).max().unwrap_or(0) as u32;
    let worth_percent = arguments.worth.unwrap_or(WORTH_PERCENT.min(arguments.until / 2.0));
    let turns = InTurn { a: &names[0], b: &names[1], blocks, worth_percent, series: &series, failed, warnings };
    Ok(Comparison::in_turn(turns, crate::program()))
}

/// What a pair of workloads is called.
fn label(arms: &[Box<dyn Arm>; 2], index: usize) -> String {
    let [a, b] = [0, 1].map(|arm| arms[arm].workloads()[index].short());
    if a == b { a } else { format!("{a} | {b}") }
}

/// Runs a command of the user's before a run.
fn set_up(command: &str, arm: usize) -> Result<(), Failure> {
    let option = ["--a-setup", "--b-setup"][arm];
    let wrong = |why: String| Failure::Usage(format!("{option} '{command}': {why}"));
    let mut shell = std::process::Command::new("sh");
    // What it prints is no result.
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::null());
    let ended = shell.status().map_err(|error| wrong(format!("cannot be started: {error}")))?;
    if ended.success() { Ok(()) } else { Err(wrong(format!("it ended with {ended}; nothing was measured after it"))) }
}
