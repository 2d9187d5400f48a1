//! `halfpower postmark`: PostMark's language from a file, at a prompt or through a pipe.

use crate::Failure;
use crate::directory::{Began, Work, document, write};
use clap::Args;
use dialect::postmark::{Outcome, PROMPT, PostmarkResult, Session};
use host::Host;
use host::files::HostFiles;
use machine::Machine;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use serde::Serialize;
use std::io::{self, BufRead, IsTerminal, Read, Stdin, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use study::Kind;
use workload::smallfile::Location;

/// What the command line says.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// Commands to obey before the prompt comes [default: .pmrc, if there is one]
    file: Option<PathBuf>,
    /// Write the results of all complete runs there
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Commands that are obeyed at the start where no file is named.
const START_FILE: &str = ".pmrc";

/// A line at the prompt that is longer is not read to its end.
const LONGEST_LINE: u64 = 64 << 10;

/// Entries of the history that are kept.
const HISTORY: usize = 1000;

/// Runs the session.
pub(crate) fn postmark(arguments: &Arguments) -> Result<(), Failure> {
    crate::tools::check_json(arguments.json.as_deref())?;
    let interrupt = crate::interrupt::flag();
    let host = Host::new(interrupt);
    let files = HostFiles::new();
    let mut talk = Talk {
        session: Session::new(&files, interrupt),
        began: Began::now(host.now()),
        host,
        json: arguments.json.as_deref(),
        written: 0,
        interrupt,
    };
    let ended = talk.hold(arguments.file.as_deref())?;
    if let (Some(path), 0) = (talk.json, talk.written) {
        eprintln!("halfpower: {} was not written: no run was completed", path.display());
    }
    match (ended, talk.session.exit_code()) {
        (Outcome::Interrupted, _) => Err(Failure::Told(130)),
        (_, 0) => Ok(()),
        (_, code) => Err(Failure::Told(code)),
    }
}

/// A session and all around it.
struct Talk<'a> {
    session: Session<'a, HostFiles>,
    host: Host,
    began: Began,
    json: Option<&'a Path>,
    /// Runs that are in the document on disk.
    written: usize,
    interrupt: &'static AtomicBool,
}

fn unprintable(error: io::Error) -> Failure {
    Failure::Run(format!("cannot print: {error}"))
}

impl Talk<'_> {
    /// From the banner to the last line.
    fn hold(&mut self, file: Option<&Path>) -> Result<Outcome, Failure> {
        self.session.begin(&mut io::stdout()).map_err(unprintable)?;
        let start = file.or_else(|| Some(Path::new(START_FILE)).filter(|path| path.exists()));
        let mut outcome = Outcome::Continue;
        if let Some(start) = start {
            outcome = self.session.load_file(start, &mut io::stdout(), &mut io::stderr()).map_err(unprintable)?;
            self.keep()?;
        }
        match outcome {
            Outcome::Continue if edits_lines() => self.edited(),
            Outcome::Continue => self.plain(),
            ended => Ok(ended),
        }
    }

    /// One line at the prompt.
    fn line(&mut self, line: &str) -> Result<Outcome, Failure> {
        let outcome = self.session.line(line, &mut io::stdout(), &mut io::stderr()).map_err(unprintable)?;
        self.keep()?;
        Ok(outcome)
    }

    /// Lines from a pipe, or from a terminal that cannot edit: the prompt goes out before each, as the original's does.
    fn plain(&mut self) -> Result<Outcome, Failure> {
        let waiting = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            // Nothing runs while a line is waited for, and nothing else would end the waiting.
            let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&waiting));
        }
        loop {
            write!(io::stdout(), "{PROMPT}").and_then(|()| io::stdout().flush()).map_err(unprintable)?;
            waiting.store(true, Ordering::SeqCst);
            if self.interrupt.load(Ordering::SeqCst) {
                return Ok(Outcome::Interrupted);
            }
            let line = next_line(&io::stdin());
            waiting.store(false, Ordering::SeqCst);
            let Some(line) = line.map_err(|error| Failure::Run(format!("cannot read commands: {error}")))? else {
                return Ok(Outcome::Continue);
            };
            match self.line(&line)? {
                Outcome::Continue => {}
                ended => return Ok(ended),
            }
        }
    }

    /// Lines from somebody at a terminal, who edits them and has earlier ones at hand. An interrupted run leads back to the prompt.
    fn edited(&mut self) -> Result<Outcome, Failure> {
        let unreadable = |error: ReadlineError| Failure::Run(format!("cannot read commands from the terminal: {error}"));
        let config = rustyline::Config::builder().auto_add_history(true).max_history_size(HISTORY).map_err(unreadable)?.build();
        let mut editor = DefaultEditor::with_config(config).map_err(unreadable)?;
        let history = history_file();
        if let Some(path) = &history {
            // The first session has none.
            let _ = editor.load_history(path);
        }
        let ended = self.conversation(&mut editor);
        if let Some(path) = &history {
            // A comfort, not a result: a home that cannot be written is no failure.
            let _ = path.parent().map(std::fs::create_dir_all);
            let _ = editor.save_history(path);
        }
        ended.map_err(|error| match error {
            Ended::Failed(failure) => failure,
            Ended::Unreadable(error) => unreadable(error),
        })
    }

    fn conversation(&mut self, editor: &mut DefaultEditor) -> Result<Outcome, Ended> {
        loop {
            let typed = match editor.readline(PROMPT) {
                Ok(typed) => typed,
                // Ctrl-C gives up the line.
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(Outcome::Continue),
                Err(error) => return Err(Ended::Unreadable(error)),
            };
            if self.interrupt.load(Ordering::SeqCst) {
                return Ok(Outcome::Interrupted);
            }
            // Pasted text may be several lines.
            for line in typed.split('\n') {
                match self.line(line).map_err(Ended::Failed)? {
                    Outcome::Continue => {}
                    Outcome::Quit => return Ok(Outcome::Quit),
                    Outcome::Interrupted => {
                        self.interrupt.store(false, Ordering::SeqCst);
                        break;
                    }
                }
            }
        }
    }

    /// Brings the document on disk up to date, so that it has every complete run whatever comes after.
    fn keep(&mut self) -> Result<(), Failure> {
        let runs = self.session.results();
        let (Some(path), true) = (self.json, runs.len() > self.written) else { return Ok(()) };
        let directories = places(runs);
        let mut warnings: Vec<String> = Vec::new();
        for warning in runs.iter().flat_map(|run| &run.warnings) {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        let mut rates = Vec::new();
        for run in runs {
            let mut of_run = run.operation_rates();
            if directories.len() > 1 {
                of_run.iter_mut().for_each(|rate| rate.settings = joined(&location(&run.plan.locations), &rate.settings));
            }
            rates.extend(of_run);
        }
        let work = Work {
            kind: Kind::Postmark,
            directories: &directories,
            rates,
            warnings,
            seed: runs.last().map_or(0, |run| run.plan.seed.into()),
        };
        let value = document(&self.host, self.began, work, "postmark", &Runs { runs })?;
        write(path, &value)?;
        self.written = runs.len();
        Ok(())
    }
}

/// The runs as they stand in the document.
#[derive(Serialize)]
struct Runs<'a> {
    runs: &'a [PostmarkResult],
}

/// Why a conversation broke off.
enum Ended {
    Failed(Failure),
    Unreadable(ReadlineError),
}

/// The directories of all runs, each once.
fn places(runs: &[PostmarkResult]) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    for run in runs {
        let here = [PathBuf::from(".")];
        let named: Vec<PathBuf> = run.plan.locations.iter().map(|location| location.path.clone()).collect();
        for place in if named.is_empty() { &here[..] } else { &named } {
            if !places.contains(place) {
                places.push(place.clone());
            }
        }
    }
    places
}

/// The commands that name a run's locations.
fn location(locations: &[Location]) -> String {
    let sign = |place: usize| if place > 0 { "+" } else { "" };
    let commands = locations.iter().enumerate();
    let commands: Vec<String> =
        commands.map(|(place, one)| format!("set location {}{} {}", sign(place), one.path.display(), one.weight)).collect();
    commands.join("; ")
}

/// Two lists of commands as one.
fn joined(first: &str, second: &str) -> String {
    [first, second].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("; ")
}

/// Somebody is at a terminal on which lines can be edited.
fn edits_lines() -> bool {
    let able = std::env::var("TERM").is_ok_and(|name| !matches!(name.as_str(), "" | "dumb" | "emacs" | "cons25"));
    able && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The next line without its end; none after the last. What a very long line has too much is thrown away.
fn next_line(stdin: &Stdin) -> io::Result<Option<String>> {
    let mut input = stdin.lock();
    let mut line = Vec::new();
    if (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && line.len() as u64 == LONGEST_LINE {
        input.skip_until(b'\n')?;
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

/// Where earlier lines are kept: in the user's directory for state, if there is one.
fn history_file() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("halfpower/postmark_history"))
}
