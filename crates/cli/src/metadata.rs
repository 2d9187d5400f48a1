//! `halfpower metadata`: rates of operations on many files.

use crate::Failure;
use crate::arguments::word;
use crate::directory::{Began, Work, document};
use clap::Args;
use dialect::metadata::{MetadataError, MetadataPlan, MetadataResult, Operation, run, table};
use host::Host;
use host::files::{HostFiles, remove_leftovers};
use machine::Machine;
use machine::files::{FileEngine, FileError, FileSync};
use machine::units::parse_size;
use std::io::{self, Write};
use std::path::PathBuf;
use study::Kind;

/// What the command line says.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// Where directories and files are made, and removed in the end
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Files, over all directories
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    files: u32,
    /// Directories that they are spread over [default: 10, or 1 for each file]
    #[arg(long, value_name = "D")]
    directories: Option<u32>,
    /// Threads that share the files
    #[arg(long, value_name = "T", default_value_t = 1)]
    threads: u32,
    /// Bytes written into each new file
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "0")]
    file_bytes: u32,
    /// Rounds of create, stat, open, rename, list and delete; their spread makes the interval
    #[arg(long, value_name = "R", default_value_t = 3)]
    rounds: u32,
    /// What is on stable storage when it counts: none, file (its data) or all (its directory's entry too)
    #[arg(long, value_parser = sync, default_value = "none")]
    sync: FileSync,
    /// How files are made and deleted: stdio, syscalls or io_uring
    #[arg(long, value_parser = engine, default_value = "syscalls")]
    engine: FileEngine,
    /// Seeds the order in which files are visited
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the results as JSON on standard output
    #[arg(long)]
    json: bool,
}

fn bytes(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?).map_err(|_| format!("'{text}' is too large for a file whose metadata is measured: at most 1m"))
}

fn sync(text: &str) -> Result<FileSync, String> {
    word(text, &FileSync::ALL.map(|sync| (sync.name(), sync)))
}

fn engine(text: &str) -> Result<FileEngine, String> {
    word(text, &FileEngine::ALL.map(|engine| (engine.name(), engine)))
}

impl From<MetadataError> for Failure {
    fn from(error: MetadataError) -> Self {
        match error {
            MetadataError::Interrupted => Failure::Interrupted,
            MetadataError::Plan(_)
            | MetadataError::File(FileError::NoLocation(_) | FileError::NotADirectory(_) | FileError::Engine { .. }) => {
                Failure::Usage(error.to_string())
            }
            error => Failure::Run(error.to_string()),
        }
    }
}

/// Measures.
pub(crate) fn metadata(arguments: &Arguments) -> Result<(), Failure> {
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
    crate::target::no_twin(&plan.location)?;
    let interrupt = crate::interrupt::flag();
    let host = Host::new(interrupt);
    let began = Began::now(host.now());
    let removed = remove_leftovers(&plan.location);
    if removed > 0 {
        let what = if removed == 1 { "a directory that a killed run".into() } else { format!("{removed} directories that killed runs") };
        eprintln!("halfpower: removed {what} left in {}", plan.location.display());
    }
    let bar = crate::progress::bar(u64::from(plan.rounds) * Operation::ALL.len() as u64);
    let measured = run(&HostFiles::new(), &plan, interrupt, &mut |round, operation| {
        bar.set_message(format!("round {} of {}: {}", round + 1, plan.rounds, operation.name()));
        bar.set_position(u64::from(round) * Operation::ALL.len() as u64 + operation as u64);
    });
    bar.finish_and_clear();
    let result = measured?;
    let text = if arguments.json { format!("{:#}\n", in_full(&host, began, &result)?) } else { table(&result) };
    let mut out = io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::Run(format!("cannot print: {error}")))
}

fn in_full(host: &Host, began: Began, result: &MetadataResult) -> Result<serde_json::Value, Failure> {
    let work = Work {
        kind: Kind::Metadata,
        directories: std::slice::from_ref(&result.plan.location),
        rates: result.operation_rates(),
        warnings: result.warnings.clone(),
        seed: result.plan.seed,
    };
    document(host, began, work, "metadata", result)
}
