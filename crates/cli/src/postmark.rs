//! `halfpower postmark`.

pub(crate) mod places;

use crate::console::cannot_print;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use clap::Args;
use dialect::postmark::{Config, Outcome, PROMPT, PostmarkResult, Session};
use files::{Directory, PRIVATE, is_trusted, parent};
use host::Host;
use host::files::directory_facts;
use machine::text::PrintableWriter;
use places::Places;
use results::{Began, Kind, Output, Results};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use serde::Serialize;
use std::io::{self, BufRead, IsTerminal, Read, Stdin, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use workload::smallfile::Location;

/// Options of `postmark`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// File of commands to run before the prompt [default: .pmrc, if it exists]
    file: Option<PathBuf>,
    /// Write at most this much in a run: one that writes more is refused
    #[arg(long, value_name = "SIZE", value_parser = machine::units::parse_size)]
    max_written: Option<u64>,
    /// Write the results of all complete runs to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const START_FILE: &str = ".pmrc";

const MAX_LINE_BYTES: u64 = 64 << 10;

const HISTORY: usize = 1000;

pub(crate) fn postmark(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let commands = arguments.file.as_deref().unwrap_or(Path::new(START_FILE));
    let json = output::optional(context, "--json", arguments.json.as_deref(), &[commands])?;
    context.writes.allow(arguments.max_written);
    let interrupt = crate::interrupt::flag();
    let host = Host::new(interrupt);
    let files = Places::new();
    let mut runner = SessionRunner {
        context,
        files: &files,
        session: Session::new(&files, interrupt)
            .forced(context.force)
            .checked(|config| check(context, config)),
        began: Began::now(&host),
        host,
        json: json.as_ref(),
        runs_on_disk: 0,
        interrupt,
    };
    let ended = runner.run(arguments.file.as_deref());
    // Save the completed runs, however the session ended.
    if let Ok(Some(document)) = runner.document() {
        crate::history::keep(context, &document);
    }
    let ended = ended?;
    if let (Some(json), 0) = (runner.json, runner.runs_on_disk) {
        context
            .console
            .tell(&format!("{} was not written: no run was completed", json.path().display()));
    }
    match (ended, runner.session.exit_code()) {
        (Outcome::Interrupted, _) => Err(Failure::Printed(130)),
        (_, 0) => Ok(()),
        (_, code) => Err(Failure::Printed(code)),
    }
}

fn check(context: &Context, config: &Config) -> Result<(), String> {
    let places = config.plan.locations.iter().map(|one| one.path.to_string_lossy());
    let places: Vec<_> = places.collect();
    let place = if places.is_empty() { ".".into() } else { places.join(", ") };
    context.writes.of_tool(config.written_bytes(), &place).map_err(|failure| match failure {
        Failure::Usage(why) | Failure::Run(why) => why,
        Failure::Interrupted | Failure::Printed(_) => "interrupted".into(),
    })
}

struct SessionRunner<'a> {
    context: &'a Context,
    session: Session<'a, Places>,
    files: &'a Places,
    host: Host,
    began: Began,
    json: Option<&'a Output>,
    runs_on_disk: usize,
    interrupt: &'static AtomicBool,
}

impl SessionRunner<'_> {
    fn run(&mut self, file: Option<&Path>) -> Result<Outcome, Failure> {
        self.session.begin(&mut self.context.console.report()).map_err(cannot_print)?;
        let start = match file {
            Some(file) => Some(file),
            None => start_file()?,
        };
        let mut outcome = Outcome::Continue;
        if let Some(start) = start {
            outcome = self
                .session
                .load_file(
                    start,
                    &mut self.context.console.report(),
                    &mut PrintableWriter(io::stderr()),
                )
                .map_err(cannot_print)?;
            self.keep()?;
        }
        match outcome {
            Outcome::Continue if edits_lines() => self.edited(),
            Outcome::Continue => self.plain(),
            ended => Ok(ended),
        }
    }

    fn line(&mut self, line: &str) -> Result<Outcome, Failure> {
        let outcome = self
            .session
            .line(line, &mut self.context.console.report(), &mut PrintableWriter(io::stderr()))
            .map_err(cannot_print)?;
        self.keep()?;
        Ok(outcome)
    }

    /// Prints the prompt before each line, as the original does.
    fn plain(&mut self) -> Result<Outcome, Failure> {
        let waiting = Arc::new(AtomicBool::new(false));
        for &signal in crate::interrupt::signals() {
            // While the program waits for a line nothing else would handle the signal.
            let _ =
                signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&waiting));
        }
        loop {
            write!(self.context.console.report(), "{PROMPT}")
                .and_then(|()| self.context.console.report().flush())
                .map_err(cannot_print)?;
            waiting.store(true, Ordering::SeqCst);
            if self.interrupt.load(Ordering::SeqCst) {
                return Ok(Outcome::Interrupted);
            }
            let line = next_line(&io::stdin());
            waiting.store(false, Ordering::SeqCst);
            let Some(line) =
                line.map_err(|error| Failure::Run(format!("cannot read commands: {error}")))?
            else {
                // A signal may have come between the prompt and the wait for a line.
                let interrupted = self.interrupt.load(Ordering::SeqCst);
                return Ok(if interrupted { Outcome::Interrupted } else { Outcome::Continue });
            };
            match self.line(&line)? {
                Outcome::Continue => {}
                ended => return Ok(ended),
            }
        }
    }

    /// Returns to the prompt after an interrupted run.
    fn edited(&mut self) -> Result<Outcome, Failure> {
        let unreadable = |error: ReadlineError| {
            Failure::Run(format!("cannot read commands from the terminal: {error}"))
        };
        let config = rustyline::Config::builder()
            .auto_add_history(true)
            .max_history_size(HISTORY)
            .map_err(unreadable)?
            .build();
        let mut editor = DefaultEditor::with_config(config).map_err(unreadable)?;
        let history = history_file().filter(|path| is_usable(path));
        if let Some(path) = &history {
            // The first session has no history file.
            let _ = editor.load_history(path);
        }
        let ended = self.conversation(&mut editor);
        if let Some(path) = &history {
            // The history is a convenience: ignore a failure to save it.
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
                // Ctrl-C discards the line.
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(Outcome::Continue),
                Err(error) => return Err(Ended::Unreadable(error)),
            };
            if self.interrupt.load(Ordering::SeqCst) {
                return Ok(Outcome::Interrupted);
            }
            // Pasted text may hold several lines.
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

    /// A later failure must lose no complete run.
    fn keep(&mut self) -> Result<(), Failure> {
        let runs = self.session.results();
        let (Some(json), true) = (self.json, runs.len() > self.runs_on_disk) else { return Ok(()) };
        let Some(document) = self.document()? else { return Ok(()) };
        output::save(
            json,
            &output::json(results::to_json_with(&document, "postmark", &Runs { runs }))?,
        )?;
        self.runs_on_disk = runs.len();
        Ok(())
    }

    fn document(&self) -> Result<Option<Results>, Failure> {
        let runs = self.session.results();
        if runs.is_empty() {
            return Ok(None);
        }
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
                of_run.iter_mut().for_each(|rate| {
                    rate.settings = joined(&location(&run.plan.locations), &rate.settings)
                });
            }
            rates.extend(of_run);
        }
        let seed = runs.last().map_or(0, |run| run.plan.seed.into());
        let document = if let Some(one) = self.files.simulated() {
            Results::new(
                &one.twin,
                Kind::Postmark,
                crate::context::program(),
                one.began,
                one.facts(),
                seed,
            )
        } else {
            let target = directory_facts(&directories)?;
            Results::new(
                &self.host,
                Kind::Postmark,
                crate::context::program(),
                self.began,
                target,
                seed,
            )
        };
        let document = Results { rates, warnings, ..document };
        let interrupted = runs.iter().any(|run| run.interrupted_after.is_some());
        Ok(Some(if interrupted { document.interrupted(None) } else { document }))
    }
}

#[derive(Serialize)]
struct Runs<'a> {
    runs: &'a [PostmarkResult],
}

enum Ended {
    Failed(Failure),
    Unreadable(ReadlineError),
}

fn places(runs: &[PostmarkResult]) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    for run in runs {
        let here = [PathBuf::from(".")];
        let named: Vec<PathBuf> =
            run.plan.locations.iter().map(|location| location.path.clone()).collect();
        for place in if named.is_empty() { &here[..] } else { &named } {
            if !places.contains(place) {
                places.push(place.clone());
            }
        }
    }
    places
}

fn location(locations: &[Location]) -> String {
    let sign = |place: usize| if place > 0 { "+" } else { "" };
    let commands = locations.iter().enumerate();
    let commands: Vec<String> = commands
        .map(|(place, one)| {
            format!("set location {}{} {}", sign(place), one.path.display(), one.weight)
        })
        .collect();
    commands.join("; ")
}

fn joined(first: &str, second: &str) -> String {
    [first, second].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("; ")
}

fn edits_lines() -> bool {
    let able = std::env::var("TERM")
        .is_ok_and(|name| !matches!(name.as_str(), "" | "dumb" | "emacs" | "cons25"));
    able && io::stdin().is_terminal() && io::stdout().is_terminal()
}

fn next_line(stdin: &Stdin) -> io::Result<Option<String>> {
    let mut input = stdin.lock();
    let mut line = Vec::new();
    if (&mut input).take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && line.len() as u64 == MAX_LINE_BYTES {
        input.skip_until(b'\n')?;
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

fn start_file() -> Result<Option<&'static Path>, Failure> {
    let path = Path::new(START_FILE);
    match std::fs::metadata(path) {
        Ok(metadata) if !is_trusted(&metadata) => {
            let uid = metadata.uid();
            Err(Failure::Usage(format!(
                "{START_FILE}: another user (uid {uid}) wrote these commands; name the file to run them as root"
            )))
        }
        found => Ok(found.is_ok().then_some(path)),
    }
}

fn is_usable(path: &Path) -> bool {
    let (Ok((directory, _)), Some(name)) =
        (Directory::make(parent(path), PRIVATE), path.file_name())
    else {
        return false;
    };
    match directory.look(name) {
        Ok(metadata) => metadata.is_file() && is_trusted(&metadata),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn history_file() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state =
        named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("halfpower/postmark_history"))
}
