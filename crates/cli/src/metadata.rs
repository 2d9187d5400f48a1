//! `halfpower metadata`: rates of operations on many files.

use crate::arguments::choices;
use crate::clients::Clients;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::postmark::places::Simulated;
#[cfg(feature = "mpi")]
use crate::target::no_twin;
use crate::target::{check_length, is_twin};
use clap::{Args, FromArgMatches};
use host::Host;
use host::files::{HostFiles, directory_facts, remove_leftovers};
use machine::files::{FileEngine, FileError, FileSync, FileSystem};
use machine::text::printable_lines;
use machine::units::parse_size;
use results::{Began, Kind, MetadataResult, Results, measure_metadata};
use std::path::PathBuf;
use workload::metadata::{MetadataError, MetadataPlan};

/// Options of `metadata`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// Directory in which the files are created, or a simulated machine (twin:NAME); they are removed
    /// at the end
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Number of files, over all directories
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    files: u32,
    /// Number of directories [default: 10, but no more than files; 1 with --shared-directory]
    #[arg(long, value_name = "N")]
    directories: Option<u32>,
    /// Threads, which share the files
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: u32,
    /// Size of each new file; with data, the files are read, too
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "0")]
    file_bytes: u32,
    /// Rounds of create, stat, open, read, rename, list and delete; the interval comes from their
    /// spread
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,
    /// When an operation counts as complete: none (at once), file (its data is on stable storage)
    /// or all (the directory entry too)
    #[arg(long, value_parser = choices(FileSync::ALL, FileSync::name), default_value = "none")]
    sync: FileSync,
    /// How files are created and deleted
    #[arg(long, value_parser = choices(FileEngine::ALL, FileEngine::name), default_value = "syscalls")]
    engine: FileEngine,
    /// Write at most this much: a plan that writes more is refused
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_written: Option<u64>,
    /// Seed of the order in which files are visited
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Under mpirun: measure with these numbers of clients (1,2,4), or with powers of two [default:
    /// all]
    #[arg(long, alias = "hosts", value_name = "LIST|powers")]
    clients: Option<Clients>,
    /// Under mpirun: all clients work in the same directories, each on files of its own
    #[arg(long)]
    shared_directory: bool,
    /// Under mpirun: each client looks up, opens and reads the files of the client this many
    /// further on, so that its own cache does not serve it
    #[arg(long, value_name = "N", default_value_t = 0)]
    shift: u32,
    /// Print the results as JSON on standard output
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Returns the first option that needs several clients.
    fn of_several(&self) -> Option<&'static str> {
        let given = [
            (self.clients.is_some(), "--clients"),
            (self.shared_directory, "--shared-directory"),
            (self.shift > 0, "--shift"),
        ];
        given.into_iter().find(|one| one.0).map(|one| one.1)
    }
}

fn bytes(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?)
        .map_err(|_| format!("'{text}' is too large for a file here: at most 1m"))
}

impl From<MetadataError> for Failure {
    fn from(error: MetadataError) -> Self {
        match error {
            MetadataError::Interrupted => Failure::Interrupted,
            MetadataError::Plan(_)
            | MetadataError::File(
                FileError::NoLocation(_)
                | FileError::NotADirectory(_)
                | FileError::Engine { .. }
                | FileError::Refused { .. },
            ) => Failure::Usage(error.to_string()),
            error => Failure::Run(error.to_string()),
        }
    }
}

fn plan(arguments: &Arguments) -> Result<MetadataPlan, Failure> {
    let usual = if arguments.shared_directory { 1 } else { MetadataPlan::default().directories };
    let plan = MetadataPlan {
        location: arguments.directory.clone(),
        files: arguments.files,
        directories: arguments.directories.unwrap_or(usual.min(arguments.files.max(1))),
        threads: arguments.threads,
        file_bytes: arguments.file_bytes,
        rounds: arguments.rounds,
        sync: arguments.sync,
        engine: arguments.engine,
        seed: arguments.seed,
        shared_directory: arguments.shared_directory,
        shift: arguments.shift,
    };
    plan.check().map_err(MetadataError::from)?;
    Ok(plan)
}

/// Returns the plan of options in one word, for another command.
///
/// # Errors
/// An option or a value that `metadata` does not take.
pub(crate) fn plan_of(options: &str) -> Result<MetadataPlan, Failure> {
    let wrong = |why: String| Failure::Usage(format!("--metadata '{options}': {why}"));
    let words =
        shlex::split(options).ok_or_else(|| wrong("a quotation mark is not closed".into()))?;
    let command = Arguments::augment_args(clap::Command::new("metadata")).no_binary_name(true);
    let matches = command.try_get_matches_from(words).map_err(|error| wrong(error.to_string()))?;
    let arguments =
        Arguments::from_arg_matches(&matches).map_err(|error| wrong(error.to_string()))?;
    if arguments.directory.as_os_str() != "." || arguments.json {
        let why = "--a and --b name the directories; leave out DIR and --json";
        return Err(wrong(why.into()));
    }
    if let Some(option) = arguments.of_several() {
        return Err(wrong(format!("there is only one client; leave out {option}")));
    }
    plan(&arguments)
}

/// Checks the place, and what `clients` write there; removes what killed runs have left.
fn prepare(
    context: &Context,
    arguments: &Arguments,
    plan: &MetadataPlan,
    clients: u64,
) -> Result<(), Failure> {
    let files = u64::from(plan.rounds) * u64::from(plan.files) * clients;
    let bytes = files * u64::from(plan.file_bytes);
    context.writes.allow(arguments.max_written);
    context.writes.of_files([bytes; 2], &plan.location.to_string_lossy())?;
    let removed = remove_leftovers(&plan.location);
    if removed > 0 {
        let what = if removed == 1 {
            "a directory that a killed run".into()
        } else {
            format!("{removed} directories that killed runs")
        };
        context.console.tell(&format!("removed {what} left in {}", plan.location.display()));
    }
    Ok(())
}

/// Keeps the document in the history, and prints it.
fn show<T: serde::Serialize>(
    context: &Context,
    json: bool,
    document: &Results,
    (name, own): (&str, &T),
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    crate::history::keep(context, document);
    let text = if json {
        output::json(results::to_json_with(document, name, own))?
    } else {
        printable_lines(&text())
    };
    context.console.print(&text)
}

pub(crate) fn metadata(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    if let Some(option) = arguments.of_several() {
        return Err(Failure::Usage(format!(
            "{option}: there is only one client; start several (mpirun -np 4 halfpower metadata ...)"
        )));
    }
    let plan = plan(arguments)?;
    check_length(&plan.location)?;
    let program = crate::context::program();
    if is_twin(&plan.location) {
        let simulated = Simulated::new(&plan.location).map_err(MetadataError::from)?;
        let result = measure(context, &simulated.files, &plan)?;
        let (machine, target) = (&simulated.twin, simulated.facts());
        let document =
            Results::new(machine, Kind::Metadata, program, simulated.began, target, plan.seed);
        return finish(context, arguments.json, document, &result);
    }
    let host = Host::new(crate::interrupt::flag());
    let began = Began::now(&host);
    prepare(context, arguments, &plan, 1)?;
    let result = measure(context, &HostFiles::new(), &plan)?;
    let target = directory_facts(std::slice::from_ref(&plan.location))?;
    let document = Results::new(&host, Kind::Metadata, program, began, target, plan.seed);
    finish(context, arguments.json, document, &result)
}

/// Measures a plan, with its progress.
fn measure<F: FileSystem>(
    context: &Context,
    files: &F,
    plan: &MetadataPlan,
) -> Result<MetadataResult, Failure> {
    let bar = context.console.bar(phases(plan));
    let mut done = 0;
    let measured =
        measure_metadata(files, plan, crate::interrupt::flag(), &mut |round, operation| {
            let words = format!("round {} of {}: {}", round + 1, plan.rounds, operation.name());
            bar.set_message(words);
            bar.set_position(done);
            done += 1;
        });
    bar.finish_and_clear();
    Ok(measured?)
}

/// Completes the document, and shows it.
fn finish(
    context: &Context,
    json: bool,
    document: Results,
    result: &MetadataResult,
) -> Result<(), Failure> {
    let document =
        Results { rates: result.operation_rates(), warnings: result.warnings.clone(), ..document };
    let document = if result.interrupted { document.interrupted(None) } else { document };
    let text = || report::terminal::metadata(result);
    show(context, json, &document, ("metadata", result), text)?;
    if result.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

/// The number of files of each client in a first short run, which shows how many fit into the time.
#[cfg(feature = "mpi")]
const FIRST_FILES: u32 = 50;

/// The size of a study's small files in bytes.
#[cfg(feature = "mpi")]
const SMALL_FILE_BYTES: u32 = 4096;

/// Returns the plans of a study: empty files in a directory of each client, empty files in one of
/// all, and small files that other clients read.
#[cfg(feature = "mpi")]
fn plans_of_study(directory: &std::path::Path) -> [MetadataPlan; 3] {
    let own = MetadataPlan { location: directory.to_owned(), ..MetadataPlan::default() };
    let shared = MetadataPlan { directories: 1, shared_directory: true, shift: 1, ..own.clone() };
    let small = MetadataPlan { file_bytes: SMALL_FILE_BYTES, shift: 1, ..own.clone() };
    [own, shared, small]
}

/// Measures operations on files with 1, 2, 4, ... and all clients in this time in ns, and adds their
/// rates to a study. A failure is a warning: the study is complete without them.
#[cfg(feature = "mpi")]
pub(crate) fn add_to_study(
    context: &Context,
    (directory, time_ns): (&std::path::Path, machine::Nanos),
    crew: &mut dyn dialect::tasks::Crew,
    ranks: &[results::Client],
    study: &mut Results,
) {
    let order = hosts::joining_order(ranks);
    let counts = Clients::Powers.of(ranks.len()).unwrap_or_default();
    let plans = plans_of_study(directory);
    let time_ns = time_ns / plans.len() as u64;
    for plan in plans {
        let mut run = |plan: &MetadataPlan, counts: &[usize]| {
            let bar = context.console.bar(phases(plan) * counts.len() as u64);
            let mut done = 0;
            let measured =
                dialect::metadata::run(crew, plan, counts, &order, &mut |count, _, operation| {
                    bar.set_message(format!("files, clients {count}: {}", operation.name()));
                    bar.set_position(done);
                    done += 1;
                });
            bar.finish_and_clear();
            measured
        };
        let first = MetadataPlan { files: FIRST_FILES, rounds: 1, ..plan.clone() };
        let measured = run(&first, &[ranks.len()]).and_then(|first| {
            let phases = first.results.iter().flat_map(|one| &one.operations);
            let first_ns: u64 = phases.flat_map(|one| &one.elapsed_ns).sum();
            let rounds_of_all = u64::from(plan.rounds) * counts.len() as u64;
            let times = time_ns / (first_ns * rounds_of_all).max(1);
            let (min, max) = (u64::from(FIRST_FILES), u64::from(plan.files));
            let files = (min * times).clamp(min, max) as u32;
            run(&MetadataPlan { files, ..plan }, &counts)
        });
        let ended = match &measured {
            Ok(measured) => {
                add(measured, &order, ranks, study);
                measured.ended.is_some()
            }
            Err(error) => {
                study.warnings.push(format!("operations on files failed: {error}"));
                true
            }
        };
        if ended {
            return;
        }
    }
}

/// Adds rates of operations on files, and what more clients gain, to a document.
#[cfg(feature = "mpi")]
fn add(
    measured: &dialect::metadata::Measured,
    order: &[usize],
    ranks: &[results::Client],
    document: &mut Results,
) {
    let results = &measured.results;
    document.rates.extend(results.iter().flat_map(MetadataResult::operation_rates));
    let joined: Vec<results::Client> = order.iter().map(|&rank| ranks[rank].clone()).collect();
    document.operation_scaling.extend(hosts::operation_scalings(results, &joined));
    // A warning that holds for several numbers of clients is given once.
    let mut warnings: Vec<(&String, Vec<String>)> = Vec::new();
    for (warning, one) in results.iter().flat_map(|one| one.warnings.iter().map(move |w| (w, one)))
    {
        let clients = one.clients.to_string();
        match warnings.iter_mut().find(|known| known.0 == warning) {
            Some((_, numbers)) => numbers.push(clients),
            None => warnings.push((warning, vec![clients])),
        }
    }
    let files = results.first().map_or(String::new(), |one| one.plan.files_in_words());
    let what = if files.is_empty() { "files".into() } else { format!("files ({files})") };
    document.warnings.extend(warnings.iter().map(|(warning, numbers)| {
        let s = if numbers == &["1"] { "" } else { "s" };
        format!("{what} with {} client{s}: {warning}", numbers.join(", "))
    }));
    if let Some(error) = &measured.ended {
        document.warnings.push(format!("operations on files ended early: {error}"));
    }
}

/// Returns the number of phases.
fn phases(plan: &MetadataPlan) -> u64 {
    u64::from(plan.rounds) * plan.operations().count() as u64
}

/// The result with each number of clients.
#[cfg(feature = "mpi")]
#[derive(serde::Serialize)]
struct ByClients<'a> {
    results: &'a [MetadataResult],
}

/// Measures with the clients that mpirun started: all at once, or in several numbers.
#[cfg(feature = "mpi")]
pub(crate) fn by_clients(
    context: &Context,
    arguments: &Arguments,
    crew: &mut dyn dialect::tasks::Crew,
    clients: &results::Clients,
) -> Result<(), Failure> {
    let plan = plan(arguments)?;
    let ranks = &clients.ranks;
    let all = ranks.len();
    let counts = match &arguments.clients {
        Some(clients) => clients.of(all).map_err(Failure::Usage)?,
        None => vec![all],
    };
    let host = Host::new(crate::interrupt::flag());
    let began = Began::now(&host);
    no_twin(&plan.location)?;
    let target = crate::tasks::target_of(std::slice::from_ref(&plan.location))?;
    prepare(context, arguments, &plan, counts.iter().sum::<usize>() as u64)?;
    let order = hosts::joining_order(ranks);
    let bar = context.console.bar(phases(&plan) * counts.len() as u64);
    let mut done = 0;
    let measured =
        dialect::metadata::run(crew, &plan, &counts, &order, &mut |count, round, operation| {
            let rounds = plan.rounds;
            let words = format!("clients {count}, round {} of {rounds}: ", round + 1);
            bar.set_message(words + operation.name());
            bar.set_position(done);
            done += 1;
        });
    bar.finish_and_clear();
    let measured = measured?;
    let program = crate::context::program();
    let document = Results::new(&host, Kind::Metadata, program, began, target, plan.seed);
    let mut document = Results { clients: Some(clients.clone()), ..document };
    document.warnings.extend(hosts::shared_hosts(ranks));
    add(&measured, &order, ranks, &mut document);
    document.incomplete = measured.ended.is_some();
    let own = ByClients { results: &measured.results };
    show(context, arguments.json, &document, ("metadata_by_clients", &own), || {
        report::terminal::metadata_by_clients(&measured.results, &document)
    })?;
    measured.ended.map_or(Ok(()), |error| Err(error.into()))
}
