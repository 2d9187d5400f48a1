//! The `halfpower` program: parses, calls, prints.

mod arguments;
mod directory;
mod fio;
mod interrupt;
mod metadata;
mod output;
mod points;
mod postmark;
mod progress;
mod studies;
mod target;
mod tools;
mod twin;
mod verify;

use arguments::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

/// What ends a command early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The caller should have known better: exit code 2.
    Usage(String),
    /// A measurement or an output failed: exit code 1.
    Run(String),
    /// Ctrl-C: exit code 130, as shells have it.
    Interrupted,
    /// The command has told all itself: the exit code alone.
    Told(u8),
}

impl From<machine::Error> for Failure {
    fn from(error: machine::Error) -> Self {
        match error {
            machine::Error::Interrupted => Failure::Interrupted,
            error if error.is_usage() => Failure::Usage(error.to_string()),
            error => Failure::Run(error.to_string()),
        }
    }
}

impl From<workload::Error> for Failure {
    fn from(error: workload::Error) -> Self {
        Failure::from(machine::Error::from(error))
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Study(arguments) => studies::study(&arguments),
        Command::Report(arguments) => studies::report(&arguments),
        Command::Run(arguments) => points::run(&arguments),
        Command::Sweep(arguments) => points::sweep(&arguments),
        Command::Verify(arguments) => verify::verify(&arguments),
        Command::Iozone(arguments) => tools::iozone(&arguments.words),
        Command::Sqlio(arguments) => tools::sqlio(&arguments.words),
        Command::Diskspd(arguments) => tools::diskspd(&arguments.words),
        Command::Fio(arguments) => fio::fio(&arguments.words),
        Command::Postmark(arguments) => postmark::postmark(&arguments),
        Command::Metadata(arguments) => metadata::metadata(&arguments),
        Command::Twin(arguments) => twin::twin(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => {
            eprintln!("halfpower: {message}");
            ExitCode::from(2)
        }
        Err(Failure::Run(message)) => {
            eprintln!("halfpower: {message}");
            ExitCode::from(1)
        }
        Err(Failure::Told(code)) => ExitCode::from(code),
        Err(Failure::Interrupted) => {
            eprintln!("halfpower: interrupted; test files were removed");
            ExitCode::from(130)
        }
    }
}
