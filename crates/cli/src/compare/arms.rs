//! Two arms measured now, in turn, in random blocks.

use super::Arguments;
use crate::Failure;
use crate::arguments::{Cli, Command, PointArguments};
use crate::points::grid;
use crate::target::{Where, resolve};
use clap::{CommandFactory, Parser};
use machine::{Machine, TargetFacts, TargetSpec};
use measure::stats::{LEAST_BLOCKS, change_at_any_time, holm};
use measure::{Sample, next_run, sample};
use results::compare::{Comparison, InTurn, Measure, Series, WORTH_PERCENT, asked};
use results::{Point, RunNumbers};
use std::process::Stdio;
use std::time::Instant;
use workload::Workload;
use workload::rng::SplitMix64;

/// Length of a run, unless one is named: short, so that blocks are many.
const RUN_NS: u64 = 400_000_000;

/// What is compared of each run.
const MEASURES: [Measure; 5] =
    [Measure::Throughput, Measure::LatencyP50, Measure::LatencyP99, Measure::LatencyP999, Measure::Cpu];

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

    /// Runs a workload once; its value of each of [`MEASURES`].
    fn run(&mut self, index: usize) -> machine::Result<[f64; MEASURES.len()]>;

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

    fn run(&mut self, index: usize) -> machine::Result<[f64; MEASURES.len()]> {
        let workload = &self.workloads[index];
        let options = next_run(&self.machine, &self.facts, workload, &self.samples[index]);
        let sample = sample(&self.machine, &mut self.target, workload, options)?;
        let run = RunNumbers::of(&sample);
        let values = [
            sample.iops() * sample.bytes as f64 / sample.requests.max(1) as f64,
            run.latency_p50_ns as f64,
            run.latency_p99_ns as f64,
            run.latency_p999_ns as f64,
            run.cpu_ns_per_request,
        ];
        self.samples[index].push(sample);
        Ok(values)
    }

    fn points(&self) -> Vec<Point> {
        let each = self.workloads.iter().zip(&self.samples);
        each.map(|(workload, samples)| Point::from_samples(workload, &self.facts, samples)).collect()
    }
}

fn open(arguments: &PointArguments) -> Result<Box<dyn Arm>, Failure> {
    let (place, spec) = resolve(&arguments.target)?;
    Ok(match place {
        Where::Host(machine) => Box::new(open_on(machine, &spec, arguments)?),
        Where::Twin(machine) => Box::new(open_on(*machine, &spec, arguments)?),
    })
}

fn open_on<M: Machine>(machine: M, spec: &TargetSpec, arguments: &PointArguments) -> Result<OnMachine<M>, Failure> {
    let workloads = grid(arguments, &machine.capabilities().engines);
    workloads.iter().try_for_each(|workload| workload.check(u64::MAX >> 1, 1))?;
    workloads.iter().try_for_each(|workload| machine.check_memory(&[workload.buffers()]))?;
    let target = machine.open(spec)?;
    let facts = machine.target_facts(&target);
    crate::points::check(&workloads, &facts)?;
    let samples = workloads.iter().map(|_| Vec::new()).collect();
    Ok(OnMachine { machine, target, facts, workloads, samples })
}

/// What both arms have told of one pair of workloads.
struct Pair {
    label: String,
    blocks: Vec<[[[f64; 2]; MEASURES.len()]; 2]>,
    failed: Option<String>,
    closed: bool,
}

/// Compares two arms.
///
/// # Errors
/// Arms that cannot be opened or do not ask as many questions, an interrupt before anything could be said.
pub(super) fn compare(arguments: &Arguments, [a, b]: [&str; 2]) -> Result<Comparison, Failure> {
    let common = words_of_runs(super::words_typed());
    let common: Vec<String> = common.into_iter().filter(|word| word != "--json").collect();
    let of = [arguments_of("--a", a, &common)?, arguments_of("--b", b, &common)?];
    let mut arms = [open(&of[0])?, open(&of[1])?];
    let counts = [arms[0].workloads().len(), arms[1].workloads().len()];
    if counts[0] != counts[1] {
        return Err(Failure::Usage(format!(
            "--a asks {} questions and --b {}: give both lists of the same length",
            counts[0], counts[1]
        )));
    }
    let names = [a, b].map(|name| name.trim().to_string());
    let pairs = measured(arguments, &mut arms, &names, of[0].target.seed)?;
    let exact = arms.iter().all(|arm| !arm.is_noisy());
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
    let open = pairs.iter().filter(|pair| !pair.closed).count();
    if open > 0 {
        warnings.push(format!(
            "{open} of {} questions were still open when it stopped: neither a difference nor its absence to within {} % is sure; give it more --budget",
            pairs.len(),
            arguments.until
        ));
    }
    let mut series = Vec::new();
    for (index, pair) in pairs.iter().enumerate().filter(|(_, pair)| !pair.blocks.is_empty()) {
        for (place, measure) in MEASURES.into_iter().enumerate() {
            let side = |arm: usize| pair.blocks.iter().map(|block| block[arm][place]).collect();
            let mut question = asked(&points[0][index]);
            question.label.clone_from(&pair.label);
            series.push(Series { asked: question, measure, a: side(0), b: side(1), exact });
        }
    }
    let failed = pairs.iter().filter_map(|pair| pair.failed.clone()).collect();
    let blocks = pairs.iter().map(|pair| pair.blocks.len()).max().unwrap_or(0) as u32;
    let worth_percent = arguments.worth.unwrap_or(WORTH_PERCENT.min(arguments.until / 2.0));
    let turns = InTurn { a: &names[0], b: &names[1], blocks, worth_percent, series: &series, failed, warnings };
    Ok(Comparison::in_turn(turns, crate::program()))
}

/// Runs blocks of all open pairs until each is decided or the time is up.
fn measured(
    arguments: &Arguments,
    arms: &mut [Box<dyn Arm>; 2],
    names: &[String; 2],
    seed: u64,
) -> Result<Vec<Pair>, Failure> {
    let label = |index: usize| {
        let [a, b] = [0, 1].map(|arm| arms[arm].workloads()[index].short());
        if a == b { a } else { format!("{a} | {b}") }
    };
    let mut pairs: Vec<Pair> = (0..arms[0].workloads().len())
        .map(|index| Pair { label: label(index), blocks: Vec::new(), failed: None, closed: false })
        .collect();
    let setups = [arguments.a_setup.as_deref(), arguments.b_setup.as_deref()];
    let noisy = arms.iter().any(|arm| arm.is_noisy());
    let mut order = SplitMix64::new(seed);
    let began = Instant::now();
    let bar = crate::progress::time_bar(arguments.budget);
    let mut longest = 0;
    'blocks: loop {
        for pair in 0..pairs.len() {
            let passed = began.elapsed().as_nanos() as u64;
            if pairs[pair].closed {
                continue;
            }
            let enough = pairs.iter().all(|pair| pair.closed || pair.blocks.len() >= LEAST_BLOCKS);
            if enough && passed.saturating_add(longest) > arguments.budget {
                break 'blocks;
            }
            crate::progress::at(
                &bar,
                passed,
                &format!("{}, block {}", pairs[pair].label, pairs[pair].blocks.len() + 1),
            );
            // ABBA or BAAB: a drift through the block cancels out, and neither arm is always first.
            let first = usize::from(order.next_u64() >> 63 == 1);
            match block(arms, setups, pair, first) {
                Ok(block) => pairs[pair].blocks.push(block),
                Err((_, Failure::Interrupted)) if enough && !pairs[pair].blocks.is_empty() => break 'blocks,
                Err((_, Failure::Interrupted)) => return Err(Failure::Interrupted),
                Err((_, Failure::Usage(why))) => return Err(Failure::Usage(why)),
                Err((arm, why)) => {
                    let why = match why {
                        Failure::Run(why) => why,
                        _ => "it failed".into(),
                    };
                    pairs[pair].failed = Some(format!("{}: failed on {}: {why}", pairs[pair].label, names[arm]));
                    pairs[pair].closed = true;
                }
            }
            longest = longest.max(began.elapsed().as_nanos() as u64 - passed);
        }
        close(&mut pairs, arguments.until, noisy);
        if pairs.iter().all(|pair| pair.closed) {
            break;
        }
    }
    bar.finish_and_clear();
    Ok(pairs)
}

/// One block: two runs of each arm.
fn block(
    arms: &mut [Box<dyn Arm>; 2],
    setups: [Option<&str>; 2],
    index: usize,
    first: usize,
) -> Result<[[[f64; 2]; MEASURES.len()]; 2], (usize, Failure)> {
    let mut values = [[[0.0; 2]; MEASURES.len()]; 2];
    let second = 1 - first;
    for (arm, turn) in [(first, 0), (second, 0), (second, 1), (first, 1)] {
        if let Some(command) = setups[arm] {
            set_up(command, arm).map_err(|failure| (arm, failure))?;
        }
        let run = arms[arm].run(index).map_err(|error| (arm, Failure::from(error)))?;
        for (series, value) in values[arm].iter_mut().zip(run) {
            series[turn] = value;
        }
    }
    Ok(values)
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

/// Closes the pairs whose question is decided: a difference is beyond chance after having looked at all of them, or none larger than
/// `until` percent can be there.
fn close(pairs: &mut [Pair], until: f64, noisy: bool) {
    if !noisy {
        pairs.iter_mut().for_each(|pair| pair.closed = true);
        return;
    }
    let rate = |pair: &Pair| {
        let log = |values: [f64; 2]| (values[0].ln() + values[1].ln()) / 2.0;
        let logs: Vec<f64> = pair.blocks.iter().map(|block| log(block[1][0]) - log(block[0][0])).collect();
        if logs.len() < LEAST_BLOCKS { None } else { change_at_any_time(&logs) }
    };
    let changes: Vec<_> = pairs.iter().map(rate).collect();
    let adjusted = holm(&changes.iter().map(|change| change.map_or(1.0, |change| change.p)).collect::<Vec<f64>>());
    for ((pair, change), p) in pairs.iter_mut().zip(changes).zip(adjusted) {
        let narrow = change.is_some_and(|change| (change.high - change.low) / 2.0 <= until / 100.0);
        pair.closed |= change.is_some() && (p < 0.05 || narrow);
    }
}
