//! `--resume`: the state directory keeps a command's runs until it has finished.

use crate::console::Console;
use crate::context::Context;
use crate::failure::Failure;
use crate::progress::Watch;
use files::{Directory, Input};
use host::knobs::journal::{STATE_VARIABLE, state_directory};
use machine::units::show_time;
use measure::{Begun, Journal, JournalLine, Opened, Resumable, RunLine, WriteLine};
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use workload::rng;

const DIRECTORY: &str = "unfinished";

const SUFFIX: &str = ".jsonl";

/// A week's study of a large machine has less.
const KEPT_RUNS: Input = Input::new("kept runs", 4 << 30).rewritten();

const KEPT_FOR_S: u64 = 30 * 86_400;

/// Options that do not change what is measured; whether they take a value.
const OF_OUTPUT: [(&str, bool); 14] = [
    ("--resume", false),
    ("--json", false),
    ("--details", false),
    ("--markdown", false),
    ("--force", false),
    ("--no-history", false),
    ("--live", false),
    ("--history", true),
    ("--output", true),
    ("--openmetrics", true),
    ("--html", true),
    ("--csv", true),
    ("--units", true),
    ("--progress", true),
];

fn settings(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words;
    while let Some(word) = words.next() {
        let (name, has_value) =
            word.split_once('=').map_or((&*word, false), |(name, _)| (name, true));
        match OF_OUTPUT.iter().find(|(option, _)| *option == name) {
            Some((_, takes_value)) if *takes_value && !has_value => drop(words.next()),
            Some(_) => {}
            None => kept.push(word),
        }
    }
    kept
}

fn own_settings() -> Vec<String> {
    settings(std::env::args_os().skip(2).map(|word| word.to_string_lossy().into_owned()))
}

fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(1, |sum, byte| rng::hash(sum, u64::from(byte)))
}

struct Writer {
    console: Console,
    directory: PathBuf,
    name: OsString,
    begun: Begun,
    waiting: String,
    file: Option<File>,
    failed: bool,
}

impl Writer {
    fn write(&mut self, line: &JournalLine) {
        let Ok(text) = serde_json::to_string(line) else { return };
        if self.failed {
            return;
        }
        if matches!(line, JournalLine::Opened(_)) && self.file.is_none() {
            self.waiting = text + "\n";
            return;
        }
        if let Err(error) = self.append(&text) {
            self.failed = true;
            self.console.tell(&format!(
                "{}: runs from now on cannot be kept for --resume: {error}",
                self.directory.join(&self.name).display()
            ));
        }
    }

    fn append(&mut self, text: &str) -> io::Result<()> {
        if self.file.is_none() {
            let (directory, _) = Directory::make(&self.directory, files::PRIVATE)?;
            let file = directory.create(&self.name, 0o600)?;
            // Held until the end of the process: others see that it is in use.
            file.try_lock().map_err(io::Error::from)?;
            let begun = serde_json::to_string(&JournalLine::Begun(self.begun.clone()))?;
            self.file = Some(file);
            let first = format!("{begun}\n{}", self.waiting);
            self.append_all(first.as_bytes())?;
        }
        // One call, so that a killed process leaves at most one incomplete line, at the end.
        self.append_all(format!("{text}\n").as_bytes())
    }

    fn append_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes))
    }
}

struct Left {
    name: OsString,
    file: File,
    begun: Begun,
    opened: Option<Opened>,
    runs: Vec<RunLine>,
    /// Counts whole lines; the last may be incomplete.
    bytes: u64,
}

impl Left {
    /// `None` if a process still writes the runs, or none can be used.
    fn read(directory: &Directory, name: &OsStr) -> Option<Left> {
        let file = directory.open_to_append(name).ok()?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
        }
        let text = KEPT_RUNS.bounded(directory.open_regular(name).ok()?).all().ok()?;
        let (mut begun, mut opened, mut runs, mut bytes) = (None, None, Vec::new(), 0);
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            // The last line of a killed process may be incomplete.
            let parsed = line.strip_suffix(b"\n").map(serde_json::from_slice::<JournalLine>);
            match parsed {
                Some(Ok(JournalLine::Begun(one))) => begun = Some(one),
                Some(Ok(JournalLine::Opened(one))) => opened = Some(*one),
                Some(Ok(JournalLine::Run(one))) => runs.push(one),
                Some(Err(_)) | None => break,
            }
            bytes += line.len() as u64;
        }
        let begun = begun.filter(|_| !runs.is_empty())?;
        Some(Left { name: name.to_owned(), file, begun, opened, runs, bytes })
    }

    fn said(&self, command: &str) -> String {
        let age_s = crate::history::now_unix_s().saturating_sub(self.begun.unix_s);
        format!(
            "{} of the {command} that began {} ago",
            counted(self.runs.len()),
            show_time(age_s as f64 * 1e9)
        )
    }
}

fn counted(runs: usize) -> String {
    if runs == 1 { "1 run".into() } else { format!("{runs} runs") }
}

pub(crate) struct Unfinished {
    journal: Arc<Journal>,
    writer: Arc<Mutex<Writer>>,
    command: &'static str,
    prefix: String,
    resumed: Option<(Begun, Vec<String>)>,
}

impl Unfinished {
    pub(crate) fn begin(
        context: &Context,
        command: &'static str,
        targets: &[PathBuf],
        resume: bool,
    ) -> Result<Unfinished, Failure> {
        let settings = own_settings();
        let place = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let places: Vec<PathBuf> = targets.iter().map(place).collect();
        let of_targets = format!(
            "{command}-{:016x}-",
            hash(
                places
                    .iter()
                    .flat_map(|place| [place.as_os_str().as_encoded_bytes(), b"\0"])
                    .flatten()
                    .copied()
            )
        );
        let words = settings.iter().flat_map(|word| [word.as_bytes(), b"\0"]).flatten().copied();
        let prefix = format!("{of_targets}{:016x}-", hash(words));
        let Some(directory) = state_directory().map(|state| state.join(DIRECTORY)) else {
            if resume {
                return Err(Failure::Usage(format!(
                    "--resume: no runs were kept, because HOME is not set to an absolute path; set {STATE_VARIABLE} to a directory"
                )));
            }
            return Ok(Unfinished::nowhere(context, command));
        };
        let unix_s = crate::history::now_unix_s();
        let begun = Begun { version: env!("CARGO_PKG_VERSION").into(), settings, unix_s };
        let left = newest(&directory, [&prefix, &of_targets], resume);
        let own_name = format!("{prefix}{unix_s}-{}{SUFFIX}", std::process::id());
        let console = &context.console;
        let mut writer = Writer {
            console: console.clone(),
            directory: directory.clone(),
            name: own_name.into(),
            begun,
            waiting: String::new(),
            file: None,
            failed: false,
        };
        let Some(left) = left else {
            if resume {
                return Err(Failure::Usage(format!(
                    "--resume: {} holds no runs of an interrupted {command} of {}; leave --resume out",
                    directory.display(),
                    shown(targets)
                )));
            }
            return Ok(Unfinished::with(command, prefix, writer, None, (None, Vec::new())));
        };
        if !resume {
            console
                .tell(&format!("starting over; --resume would go on with {}", left.said(command)));
            return Ok(Unfinished::with(command, prefix, writer, None, (None, Vec::new())));
        }
        console.tell(&format!("going on with {}", left.said(command)));
        let mut differences = Vec::new();
        if left.begun.settings != writer.begun.settings {
            differences.push(format!(
                "the interrupted command had other settings: {command} {}; only runs of the same workloads are taken from it",
                left.begun.settings.join(" ")
            ));
        }
        if left.begun.version != writer.begun.version {
            differences.push(format!(
                "halfpower {} made the earlier runs, and this is {}",
                left.begun.version, writer.begun.version
            ));
        }
        differences.iter().for_each(|one| console.tell(&format!("warning: {one}")));
        left.file.set_len(left.bytes).map_err(|error| {
            Failure::Run(format!("cannot write {}: {error}", directory.join(&left.name).display()))
        })?;
        (writer.name, writer.file, writer.begun) = (left.name, Some(left.file), left.begun.clone());
        let resumed = Some((left.begun, differences));
        Ok(Unfinished::with(command, prefix, writer, resumed, (left.opened, left.runs)))
    }

    fn with(
        command: &'static str,
        prefix: String,
        writer: Writer,
        resumed: Option<(Begun, Vec<String>)>,
        (opened, runs): (Option<Opened>, Vec<RunLine>),
    ) -> Unfinished {
        let writer = Arc::new(Mutex::new(writer));
        let own = Arc::clone(&writer);
        let write: WriteLine =
            Box::new(move |line| own.lock().unwrap_or_else(PoisonError::into_inner).write(line));
        let journal = Arc::new(Journal::new(opened, runs, write));
        Unfinished { journal, writer, command, prefix, resumed }
    }

    pub(crate) fn nowhere(context: &Context, command: &'static str) -> Unfinished {
        let begun = Begun { version: String::new(), settings: Vec::new(), unix_s: 0 };
        let writer = Writer {
            console: context.console.clone(),
            directory: PathBuf::new(),
            name: OsString::new(),
            begun,
            waiting: String::new(),
            file: None,
            failed: true,
        };
        Unfinished::with(command, String::new(), writer, None, (None, Vec::new()))
    }

    pub(crate) fn machine<M>(&self, machine: M) -> Resumable<M> {
        Resumable::new(machine, Arc::clone(&self.journal))
    }

    pub(crate) fn watch(&self, context: &Context, budget_ns: u64) -> Watch {
        Watch::new(context.console.time_bar(budget_ns)).over(Arc::clone(&self.journal))
    }

    pub(crate) fn began_unix_s(&self) -> Option<u64> {
        self.resumed.as_ref().map(|(begun, _)| begun.unix_s)
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        let Some((_, differences)) = &self.resumed else { return Vec::new() };
        let mut all = vec![format!(
            "the {} was interrupted and resumed: --resume took the runs before",
            self.command
        )];
        all.extend(differences.iter().cloned());
        all.extend(self.journal.changes());
        if self.journal.pending() > 0 {
            all.push(format!(
                "{} of the interrupted command did not fit its settings and {} left out",
                counted(self.journal.pending()),
                if self.journal.pending() == 1 { "was" } else { "were" }
            ));
        }
        all
    }

    pub(crate) fn end<T>(self, result: &Result<T, Failure>) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.file.is_none() {
            return;
        }
        let Ok(directory) = Directory::held(&writer.directory) else { return };
        match result {
            Ok(_) | Err(Failure::Printed(_)) => {
                let _ = directory.remove(&writer.name);
                // A complete result replaces interrupted ones of the same settings.
                for name in names(&directory, &self.prefix) {
                    if directory.open_to_append(&name).is_ok_and(|file| file.try_lock().is_ok()) {
                        let _ = directory.remove(&name);
                    }
                }
            }
            Err(_) if writer.failed || self.journal.written() == 0 => {}
            Err(_) => writer.console.tell(&format!(
                "the runs are kept: the same command with --resume goes on ({} new)",
                self.journal.written()
            )),
        }
    }
}

fn shown(targets: &[PathBuf]) -> String {
    let all: Vec<String> = targets.iter().map(|target| target.display().to_string()).collect();
    all.join(", ")
}

fn names(directory: &Directory, prefix: &str) -> Vec<OsString> {
    let fits = |name: &OsString| {
        name.to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(SUFFIX))
    };
    directory.names().unwrap_or_default().into_iter().filter(fits).collect()
}

/// Prefers the first prefix; `any` allows the other. Removes old runs.
fn newest(directory: &Path, [own, other]: [&str; 2], any: bool) -> Option<Left> {
    let directory = Directory::held(directory).ok()?;
    let age_s = |name: &OsStr| {
        let modified = directory.look(name).ok()?.modified().ok()?;
        Some(modified.elapsed().map_or(0, |age| age.as_secs()))
    };
    for name in names(&directory, "") {
        if age_s(&name).is_some_and(|age| age > KEPT_FOR_S) {
            let _ = directory.remove(&name);
        }
    }
    let of = |prefix: &str| {
        let mut all = names(&directory, prefix);
        all.sort_by_key(|name| age_s(name));
        all.iter().find_map(|name| Left::read(&directory, name))
    };
    of(own).or_else(|| if any { of(other) } else { None })
}

pub(crate) fn refuse_twin(resume: bool) -> Result<(), Failure> {
    if resume {
        let why = "a simulated machine takes seconds, and its runs are not kept";
        return Err(Failure::Usage(format!("--resume: {why}; leave --resume out")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::settings;

    #[test]
    fn settings_are_what_is_measured() {
        let words = |line: &str| settings(line.split(' ').map(str::to_owned));
        let plain = words(". --depth 1,2 --op write");
        for line in [
            ". --json --depth 1,2 --op write --resume",
            ". --output dir --depth 1,2 --op write --history=h",
            "--openmetrics file . --depth 1,2 --progress lines --op write --no-history",
        ] {
            assert_eq!(words(line), plain, "{line}");
        }
        assert_ne!(words(". --depth 1,4 --op write"), plain);
    }
}
