//! `halfpower metadata`: rates of operations on many files.

use crate::arguments::choices;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use clap::{Args, FromArgMatches};
use host::Host;
use host::files::{HostFiles, directory_facts, remove_leftovers};
use machine::files::{FileEngine, FileError, FileSync};
use machine::text::printable_lines;
use machine::units::parse_size;
use results::{Began, Kind, Results, measure_metadata};
use std::path::PathBuf;
use workload::metadata::{MetadataError, MetadataPlan, Operation};

/// Options of `metadata`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// Directory in which the files are created; they are removed at the end
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Number of files, over all directories
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    files: u32,
    /// Number of directories [default: 10, but no more than files]
    #[arg(long, value_name = "N")]
    directories: Option<u32>,
    /// Threads, which share the files
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: u32,
    /// Size of each new file
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "0")]
    file_bytes: u32,
    /// Rounds of create, stat, open, rename, list and delete; the interval comes from their spread
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
    /// Print the results as JSON on standard output
    #[arg(long)]
    json: bool,
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
    let usual = MetadataPlan::default();
    let plan = MetadataPlan {
        location: arguments.directory.clone(),
        files: arguments.files,
        directories: arguments.directories.unwrap_or(usual.directories.min(arguments.files.max(1))),
        threads: arguments.threads,
        file_bytes: arguments.file_bytes,
        rounds: arguments.rounds,
        sync: arguments.sync,
        engine: arguments.engine,
        seed: arguments.seed,
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
        return Err(wrong("--a and --b name the directories; leave out DIR and --json".into()));
    }
    plan(&arguments)
}

pub(crate) fn metadata(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let plan = plan(arguments)?;
    crate::target::no_twin(&plan.location)?;
    let bytes = u64::from(plan.rounds) * u64::from(plan.files) * u64::from(plan.file_bytes);
    context.writes.allow(arguments.max_written);
    context.writes.of_files([bytes; 2], &plan.location.to_string_lossy())?;
    let interrupt = crate::interrupt::flag();
    let host = Host::new(interrupt);
    let began = Began::now(&host);
    let removed = remove_leftovers(&plan.location);
    if removed > 0 {
        let what = if removed == 1 {
            "a directory that a killed run".into()
        } else {
            format!("{removed} directories that killed runs")
        };
        context.console.tell(&format!("removed {what} left in {}", plan.location.display()));
    }
    let bar = context.console.bar(u64::from(plan.rounds) * Operation::ALL.len() as u64);
    let measured =
        measure_metadata(&HostFiles::new(), &plan, interrupt, &mut |round, operation| {
            bar.set_message(format!(
                "round {} of {}: {}",
                round + 1,
                plan.rounds,
                operation.name()
            ));
            bar.set_position(u64::from(round) * Operation::ALL.len() as u64 + operation as u64);
        });
    bar.finish_and_clear();
    let result = measured?;
    let target = directory_facts(std::slice::from_ref(&result.plan.location))?;
    let document = Results::new(
        &host,
        Kind::Metadata,
        crate::context::program(),
        began,
        target,
        result.plan.seed,
    );
    let document =
        Results { rates: result.operation_rates(), warnings: result.warnings.clone(), ..document };
    let document = if result.interrupted { document.interrupted(None) } else { document };
    crate::history::keep(context, &document);
    let text = if arguments.json {
        output::json(results::to_json_with(&document, "metadata", &result))?
    } else {
        printable_lines(&report::terminal::metadata(&result))
    };
    context.console.print(&text)?;
    if result.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}
