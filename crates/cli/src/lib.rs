//! The `halfpower` program; a library, so that its parser can be fuzzed.

mod arguments;
mod check;
mod clients;
mod commands;
mod compare;
mod completer;
mod concurrent;
mod console;
mod context;
mod documents;
mod failure;
mod fio;
mod history;
mod imported;
mod interrupt;
mod live;
mod load;
mod many_hosts;
mod metadata;
mod other_tools;
mod output;
mod plan;
mod points;
mod postmark;
mod profile;
mod progress;
mod pts;
mod record;
mod replay;
mod run_words;
mod setup_command;
mod shell;
mod small_files;
mod stack;
mod studies;
mod sustained;
mod target;
mod tasks;
mod terminal;
mod tools;
mod trace;
mod tune;
mod twin;
mod unfinished;
mod verify;
mod written;

use clap::{CommandFactory, Parser};
use commands::Cli;
pub use commands::workloads;
use console::Console;
use context::Context;
use failure::Failure;
use machine::text::PrintableWriter;
use std::io::Write;
use std::process::ExitCode;

/// With less, the program moves to a thread: the parser uses up to 250 KiB.
const SMALL_STACK: u64 = 1 << 20;

/// The usual limit on Linux.
const STACK_BYTES: usize = 8 << 20;

pub fn main() -> ExitCode {
    if !has_memory(FIRST_MEMORY) {
        return ExitCode::from(2);
    }
    interrupt::survive_file_limit();
    let Some(limit) = host::stack_limit().filter(|bytes| *bytes < SMALL_STACK) else {
        return run();
    };
    match std::thread::Builder::new().name("main".into()).stack_size(STACK_BYTES).spawn(run) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(error) => {
            let limit = machine::units::show_size(limit);
            Console::default().tell(&format!(
                "the stack may have only {limit} (ulimit -s), and no thread with a larger one can be started: {error}; raise the limit"
            ));
            ExitCode::from(2)
        }
    }
}

/// The first allocation may take this much address space.
const FIRST_MEMORY: usize = 1 << 20;

const NEEDED_MEMORY: usize = 8 << 20;

/// A small allocation that fails later would abort.
fn has_memory(bytes: usize) -> bool {
    let has = Vec::<u8>::new().try_reserve_exact(bytes).is_ok();
    if !has {
        let _ = std::io::stderr().write_all(
            b"halfpower: 8 MiB of memory are not available; raise the limit (ulimit -v, ulimit -d) or free some\n",
        );
    }
    has
}

fn run() -> ExitCode {
    if !has_memory(NEEDED_MEMORY) {
        return ExitCode::from(2);
    }
    shell::complete(Cli::command);
    let launch = many_hosts::launch();
    let leads = launch.as_ref().is_none_or(|launch| launch.leads());
    let console = if leads { Console::default() } else { Console::silent() };
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Rank 0 says it for all.
        Err(error) if !leads => {
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
        // An error repeats the arguments, which may hold unprintable characters.
        Err(error) if error.use_stderr() => {
            let hint = other_tools::hint(&error, &mut Cli::command(), std::env::args_os().skip(1));
            let message = hint.unwrap_or_else(|| other_tools::plain(&error.render().to_string()));
            let _ = write!(PrintableWriter(std::io::stderr()), "{message}");
            return ExitCode::from(2);
        }
        // Help and version.
        Err(error) => error.exit(),
    };
    let context = &Context::new(console.clone(), cli.force, cli.no_history, cli.history.clone());
    interrupt::report_to(&console);
    host::watch_cleanup(interrupt::flag, move |message| console.tell(message));
    // Every command restores the settings that a killed `tune` left changed.
    host::knobs::journal::recover().iter().for_each(|sentence| context.console.tell(sentence));
    host::record::remove_stale();
    let result = match &launch {
        Some(launch) => many_hosts::run(context, cli, launch),
        None => cli.run(context),
    };
    let cleanup = host::cleanup();
    for (path, why) in &cleanup.left {
        context.console.tell(&format!("cannot remove {}: {why}", path.display()));
    }
    // The limit on written bytes ends runs as the user does.
    let result = match (result, context.writes.limited()) {
        (Err(Failure::Interrupted | Failure::Printed(130)), Some(limited)) => Err(limited),
        (result, _) => result,
    };
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
    context.console.tell(&message);
    ExitCode::from(code)
}
