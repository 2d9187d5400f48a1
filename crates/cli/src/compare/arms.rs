//! Measures two arms in turn, in random blocks.

use super::Arguments;
use crate::Failure;
use crate::arguments::{Cli, Command, PointArguments};
use crate::points::grid;
use crate::progress::Watch;
use crate::target::{Where, resolve};
use clap::{CommandFactory, Parser};
use machine::{Machine, Nanos, TargetSpec};
use measure::turns::Limits;
use results::compare::{Arm, Comparison, Conduct, Measure, OnMachine, Turn, WORTH_PERCENT};
use std::process::Stdio;
use workload::Workload;

/// Default length of a run: short, to get many blocks.
const RUN_NS: u64 = 400_000_000;

/// The options of `run` on a command line, with their values, in order.
pub(super) fn words_of_runs(words: impl Iterator<Item = String>) -> Vec<String> {
    let cli = Cli::command();
    let Some(sweep) = cli.find_subcommand("sweep") else { return Vec::new() };
    let mut kept = Vec::new();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--") else { continue };
        let name = option.split('=').next().unwrap_or(option);
        let Some(known) = sweep.get_arguments().find(|one| one.get_long() == Some(name)) else {
            // Skip the value of another option, which may look like one of these.
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

/// Whether an option that only `compare` has takes a value.
fn takes_value(cli: &clap::Command, name: &str) -> bool {
    let compare = cli.find_subcommand("compare");
    compare
        .and_then(|compare| compare.get_arguments().find(|one| one.get_long() == Some(name)))
        .is_some_and(|one| one.get_action().takes_values())
}

/// The name of an option: `--depth` for `--depth=8`.
fn option_name(word: &str) -> Option<&str> {
    word.starts_with("--").then(|| word.split('=').next().unwrap_or(word))
}

/// Options that exclude each other: an arm's own replaces the common one.
const EITHER: [[&str; 2]; 2] = [["--runtime", "--bytes"], ["--direct", "--buffered"]];

/// Parses an arm: its own options, then the common ones that it does not replace.
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
    let Command::Sweep(mut arguments) = cli.command else { return Err(wrong("it is not a valid arm".into())) };
    crate::points::check_grid(&arguments)?;
    if arguments.target.targets.is_empty() {
        return Err(wrong("it names no target; begin it with a directory, a file, a device or twin:NAME".into()));
    }
    if arguments.verify {
        return Err(wrong("--verify measures no rate; leave it out".into()));
    }
    crate::beside::refuse(&arguments)?;
    if arguments.runtime.is_none() && arguments.bytes.is_none() {
        arguments.runtime = Some(RUN_NS);
    }
    Ok(arguments)
}

/// Opens both arms. Overwrites nothing before both pass the checks.
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
            [Box::new(arm(first, a, first_asked)?), Box::new(arm(second, b, second_asked)?)]
        }
        // Open a simulated arm first: it overwrites nothing.
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

/// The workloads of an arm, checked as far as possible without its target.
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
        arm(machine, target, workloads)
    }
    Ok(match place {
        Where::Host(machine) => Box::new(on(machine, spec, workloads)?),
        Where::Twin(machine) => Box::new(on(*machine, spec, workloads)?),
    })
}

/// Combines an open target with its workloads, checked again now that its size is known.
fn arm<M: Machine>(machine: M, target: M::Target, workloads: Vec<Workload>) -> Result<OnMachine<M>, Failure> {
    crate::points::check(&workloads, &machine.target_facts(&target))?;
    Ok(OnMachine::new(machine, target, workloads))
}

/// Progress, clock and the setup commands of each run.
struct RunHooks<'a> {
    setups: [Option<&'a str>; 2],
    watch: Watch,
}

impl Conduct for RunHooks<'_> {
    type Error = Failure;

    fn now(&self) -> Nanos {
        self.watch.now()
    }

    fn before_run(&mut self, arm: usize) -> Result<(), Failure> {
        self.setups[arm].map_or(Ok(()), |command| set_up(command, arm))
    }

    fn on_block(&mut self, question: &str, block: usize, passed_ns: Nanos) {
        self.watch.at(passed_ns, &format!("{question}, block {block}"));
    }
}

pub(super) fn arguments([a, b]: [&str; 2]) -> Result<[PointArguments; 2], Failure> {
    let common = words_of_runs(super::words_typed());
    let common: Vec<String> = common.into_iter().filter(|word| word != "--json").collect();
    Ok([arguments_of("--a", a, &common)?, arguments_of("--b", b, &common)?])
}

pub(super) fn compare(
    arguments: &Arguments,
    [a, b]: [&str; 2],
    of: &[PointArguments; 2],
) -> Result<Comparison, Failure> {
    let began_unix_s = crate::history::now_unix_s();
    let mut arms = open(of)?;
    let turn = Turn {
        names: [a.trim(), b.trim()],
        limits: Limits {
            until: arguments.until / 100.0,
            budget_ns: arguments.budget,
            most_blocks: usize::MAX,
            gain_wanted: None,
            noisy: arms.iter().any(|arm| arm.is_noisy()),
            seed: of[0].target.seed,
        },
        worth_percent: arguments.worth.unwrap_or(WORTH_PERCENT.min(arguments.until / 2.0)),
        rate: Measure::Throughput,
        keys: &[],
        more: "--budget",
    };
    let setups = [arguments.a_setup.as_deref(), arguments.b_setup.as_deref()];
    let mut hooks = RunHooks { setups, watch: Watch::new(arguments.budget) };
    let comparison = Comparison::of_arms(&mut arms, turn, &mut hooks, crate::program())?;
    hooks.watch.end();
    crate::history::keep_comparison(&comparison, &arms, began_unix_s);
    Ok(comparison)
}

fn set_up(command: &str, arm: usize) -> Result<(), Failure> {
    let option = ["--a-setup", "--b-setup"][arm];
    let wrong = |why: String| Failure::Usage(format!("{option} '{command}': {why}"));
    let mut shell = std::process::Command::new("sh");
    // Its output is not part of the result.
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::null());
    let ended = shell.status().map_err(|error| wrong(format!("cannot be started: {error}")))?;
    if ended.success() { Ok(()) } else { Err(wrong(format!("it ended with {ended}; nothing was measured after it"))) }
}
