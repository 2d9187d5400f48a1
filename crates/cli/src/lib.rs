//! The `halfpower` program: parses, calls, prints. A library, so that its parser can be fuzzed.

mod arguments;
mod beside;
mod check;
mod compare;
mod console;
mod fio;
mod history;
mod interrupt;
mod metadata;
mod output;
mod points;
mod postmark;
mod predictions;
mod progress;
mod stack;
mod studies;
mod target;
mod tools;
mod tune;
mod twin;
mod verify;

use arguments::{Cli, Command};
use clap::Parser;
use machine::text::PrintableWriter;
use results::Program;
use std::io::Write;
use std::process::ExitCode;
use workload::Workload;

/// Reasons to end a command early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is invalid or was refused: exit code 2.
    Usage(String),
    /// A measurement or an output failed: exit code 1.
    Run(String),
    /// Ctrl-C: exit code 130, the shell convention.
    Interrupted,
    /// The command has already printed the reason; this is its exit code.
    Printed(u8),
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

pub(crate) fn program() -> Program {
    Program {
        name: "halfpower".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        arguments: std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect(),
    }
}

/// Parses the workloads of a `run` or `sweep` command line.
///
/// # Errors
/// The message that the program would print for any other command line.
pub fn workloads(words: &[String]) -> Result<Vec<Workload>, String> {
    let cli = Cli::try_parse_from(words).map_err(|error| error.render().to_string())?;
    let (Command::Run(arguments) | Command::Sweep(arguments)) = cli.command else {
        return Err("this command has no workloads".into());
    };
    points::check_grid(&arguments).map_err(|failure| format!("{failure:?}"))?;
    Ok(points::grid(&arguments, &machine::Engine::ALL))
}

/// Under this stack limit the program moves to a thread: the command-line parser uses up to 250
/// KiB.
const SMALL_STACK: u64 = 1 << 20;

/// Stack of that thread: the usual limit on Linux.
const STACK_BYTES: usize = 8 << 20;

pub fn main() -> ExitCode {
    interrupt::survive_file_limit();
    let Some(limit) = host::stack_limit().filter(|bytes| *bytes < SMALL_STACK) else { return run() };
    match std::thread::Builder::new().name("main".into()).stack_size(STACK_BYTES).spawn(run) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(error) => {
            let limit = machine::units::show_size(limit);
            console::tell(&format!(
                "the stack may have only {limit} (ulimit -s), and no thread with a larger one can be started: {error}; raise the limit"
            ));
            ExitCode::from(2)
        }
    }
}

/// Memory that any command needs.
const NEEDED_MEMORY: usize = 8 << 20;

fn run() -> ExitCode {
    // A small allocation could fail later and abort the program.
    if Vec::<u8>::new().try_reserve_exact(NEEDED_MEMORY).is_err() {
        let needed = machine::units::show_size(NEEDED_MEMORY as u64);
        console::tell(&format!(
            "{needed} of memory are not available; raise the limit (ulimit -v, ulimit -d) or free some"
        ));
        return ExitCode::from(2);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // An error repeats the arguments, which may hold unprintable characters.
        Err(error) if error.use_stderr() => {
            let _ = write!(PrintableWriter(std::io::stderr()), "{}", error.render());
            return ExitCode::from(2);
        }
        // Help and version.
        Err(error) => error.exit(),
    };
    if cli.force {
        output::force();
    }
    history::choose(cli.no_history, cli.history);
    host::watch_cleanup(interrupt::flag, console::tell);
    // Every command restores the settings that a killed `tune` left changed.
    host::knobs::journal::recover().iter().for_each(|sentence| console::tell(sentence));
    let result = match cli.command {
        Command::Study(arguments) => studies::study(&arguments),
        Command::Stack(arguments) => stack::stack(&arguments),
        Command::Report(arguments) => studies::report(&arguments),
        Command::Run(arguments) => points::run(&arguments),
        Command::Sweep(arguments) => points::sweep(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Tune(arguments) => tune::tune(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::History(arguments) => history::history(&arguments),
        Command::Verify(arguments) => verify::verify(&arguments),
        Command::Iozone(arguments) => tools::iozone(&arguments.words),
        Command::Sqlio(arguments) => tools::sqlio(&arguments.words),
        Command::Diskspd(arguments) => tools::diskspd(&arguments.words),
        Command::Fio(arguments) => fio::fio(&arguments.words),
        Command::Postmark(arguments) => postmark::postmark(&arguments),
        Command::Metadata(arguments) => metadata::metadata(&arguments),
        Command::Twin(arguments) => twin::twin(&arguments),
    };
    let cleanup = host::cleanup();
    for (path, why) in &cleanup.left {
        console::tell(&format!("cannot remove {}: {why}", path.display()));
    }
    let (message, code) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Printed(code)) => return ExitCode::from(code),
        Err(Failure::Usage(message)) => (message, 2),
        Err(Failure::Run(message)) => (message, 1),
        Err(Failure::Interrupted) if cleanup.removed > 0 && cleanup.left.is_empty() => {
            ("interrupted; test files were removed".into(), 130)
        }
        Err(Failure::Interrupted) => ("interrupted".into(), 130),
    };
    console::tell(&message);
    ExitCode::from(code)
}
