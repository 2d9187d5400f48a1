//! `halfpower metadata`.

mod by_clients;
mod simulated;

use crate::arguments::choices;
use crate::clients::Clients;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::postmark::places::Simulated;
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

#[cfg(feature = "mpi")]
pub(crate) use by_clients::{add_to_study, by_clients};
pub(crate) use simulated::add_to_simulated_study;

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
    /// Directories below each directory, 2 or more: they form a tree then [default: they are next to
    /// each other]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    branch: u32,
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
    /// Under mpirun, or on a simulated server: measure with these numbers of clients (1,2,4), or with
    /// powers of two [default: all]
    #[arg(long, alias = "hosts", value_name = "LIST|powers")]
    clients: Option<Clients>,
    /// With several clients: all work in the same directories, each on files of its own
    #[arg(long)]
    shared_directory: bool,
    /// With several clients: each looks up, opens and reads the files of the client this many
    /// further on, so that its own cache does not serve it
    #[arg(long, value_name = "N", default_value_t = 0)]
    shift: u32,
    /// Print the results as JSON on standard output
    #[arg(long)]
    json: bool,
}

impl Arguments {
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
        branch: arguments.branch,
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
    let plan = plan(arguments)?;
    check_length(&plan.location)?;
    if let Some(server) = simulated::Server::at(&plan.location)? {
        return server.metadata(context, arguments, &plan);
    }
    if let Some(option) = arguments.of_several() {
        return Err(Failure::Usage(format!(
            "{option}: there is only one client; start several (mpirun -np 4 halfpower metadata ..., or twin:nas,clients=4)"
        )));
    }
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

fn phases(plan: &MetadataPlan) -> u64 {
    u64::from(plan.rounds) * plan.operations().count() as u64
}
