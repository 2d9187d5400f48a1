//! Parses one line of the command language.

use machine::files::{FileEngine, FileSync};
use std::fmt;
use std::path::PathBuf;
use workload::smallfile::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReportStyle {
    #[default]
    Verbose,
    /// One line of 13 numbers.
    Terse,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocationEdit {
    Replace(PathBuf, u32),
    Add(PathBuf, u32),
    Remove(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    SetSize(u32, u32),
    SetNumber(u32),
    SetSeed(u32),
    SetTransactions(u32),
    SetLocation(LocationEdit),
    SetSubdirectories(u32),
    /// Bytes per read call.
    SetRead(u32),
    /// Bytes per write call.
    SetWrite(u32),
    /// `true`: C's standard I/O, otherwise system calls.
    SetBuffering(bool),
    /// Reads per ten transactions; `None` disables reads and appends.
    SetBiasRead(Option<u8>),
    /// Creations per ten transactions; `None` disables creations and deletions.
    SetBiasCreate(Option<u8>),
    SetReport(ReportStyle),
    SetThreads(u32),
    SetSync(FileSync),
    SetEngine(FileEngine),
    /// Appended to a file, or printed.
    Run(Option<String>),
    Load(String),
    /// Appended to a file, or printed.
    Show(Option<String>),
    Help(String),
    Quit,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Complaint {
    #[error("Eh?")]
    Unknown,
    #[error("Error: {what}: '{}'", shortened(.given))]
    Argument {
        /// The reason and the expected value.
        what: String,
        given: String,
    },
    #[error(
        "Error: '!' starts no shell here, because what a shell does would be measured with the files: use another terminal"
    )]
    Shell,
}

const SHOWN: usize = 80;

fn shortened(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { '?' } else { c });
    let mut short: String = clean.take(SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push_str("...");
    }
    short
}

type Parser = fn(&str) -> Result<Command, String>;

/// The first name that is a prefix of the line wins.
const TABLE: [(&str, &str, Parser); 20] = [
    ("set size", "Sets low and high bounds of files", size),
    ("set number", "Sets number of simultaneous files", |a| {
        count(a, "invalid number of files", MAX / 2).map(Command::SetNumber)
    }),
    ("set seed", "Sets seed for random number generator", |a| {
        count(a, "invalid seed for random numbers", MAX).map(Command::SetSeed)
    }),
    ("set transactions", "Sets number of transactions", |a| {
        count(a, "no transactions specified", MAX).map(Command::SetTransactions)
    }),
    ("set location", "Sets location of working files", location),
    ("set subdirectories", "Sets number of subdirectories", |a| {
        count(a, "invalid number of subdirectories", MAX).map(Command::SetSubdirectories)
    }),
    ("set read", "Sets read block size", |a| {
        count(a, "invalid read block size", MAX).map(Command::SetRead)
    }),
    ("set write", "Sets write block size", |a| {
        count(a, "invalid write block size", MAX).map(Command::SetWrite)
    }),
    ("set buffering", "Sets usage of buffered I/O", buffering),
    ("set bias read", "Sets the chance of choosing read over append", |a| {
        bias(a).map(Command::SetBiasRead)
    }),
    ("set bias create", "Sets the chance of choosing create over delete", |a| {
        bias(a).map(Command::SetBiasCreate)
    }),
    ("set report", "Choose verbose or terse report format", report_style),
    ("set threads", "Sets number of threads that share the files", |a| {
        count(a, "invalid number of threads", THREADS).map(Command::SetThreads)
    }),
    ("set sync", "Choose what is on stable storage when it counts: none, file or all", |a| {
        named(a, FileSync::ALL.map(|s| (s.name(), s))).map(Command::SetSync)
    }),
    ("set engine", "Choose how files are read and written: stdio, syscalls or io_uring", |a| {
        named(a, FileEngine::ALL.map(|e| (e.name(), e))).map(Command::SetEngine)
    }),
    ("run", "Runs one iteration of benchmark", |a| Ok(Command::Run(file(a)))),
    ("load", "Read configuration file", |a| {
        file(a).map(Command::Load).ok_or_else(|| "no configuration file specified".into())
    }),
    ("show", "Displays current configuration", |a| Ok(Command::Show(file(a)))),
    ("help", "Prints out available commands", |a| Ok(Command::Help(a.to_string()))),
    ("quit", "Exit program", |_| Ok(Command::Quit)),
];

const THREADS: u32 = 1024;

/// A full name, one separator, then the argument. `?` and `exit` only work at the prompt.
pub fn parse(line: &str, at_prompt: bool) -> Result<Command, Complaint> {
    let line = line.trim_end();
    if line.starts_with('!') {
        return Err(Complaint::Shell);
    }
    if line.contains('\0') {
        return Err(Complaint::Argument {
            what: "a line cannot have a NUL in it".into(),
            given: line.into(),
        });
    }
    let aliases = [("?", "help"), ("exit", "quit")];
    let alias = aliases.iter().find(|(alias, _)| at_prompt && line.starts_with(alias));
    let (typed, name) = alias.copied().unwrap_or(("", ""));
    let found = TABLE.iter().find(|(command, ..)| {
        if name.is_empty() { line.starts_with(command) } else { name == *command }
    });
    let Some((command, _, parser)) = found else { return Err(Complaint::Unknown) };
    let mut rest = line[if name.is_empty() { command.len() } else { typed.len() }..].chars();
    rest.next();
    let argument = rest.as_str();
    parser(argument).map_err(|what| Complaint::Argument { what, given: argument.to_string() })
}

pub(super) fn help(prefix: &str) -> String {
    let lines = |prefix: &str| {
        TABLE
            .iter()
            .filter(|(name, ..)| name.starts_with(prefix))
            .map(|(name, help, _)| format!("{name} - {help}\n"))
            .collect()
    };
    let some: String = lines(prefix);
    if some.is_empty() { lines("") } else { some }
}

/// Like C's atoi, but saturates.
fn atoi(text: &str) -> i64 {
    let text = text.trim_start();
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let value = digits.bytes().take_while(u8::is_ascii_digit).fold(0i64, |value, digit| {
        value.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    if negative { -value } else { value }
}

fn count(argument: &str, complaint: &str, max: u32) -> Result<u32, String> {
    within(atoi(argument), 1, max)
        .ok_or_else(|| format!("{complaint}: write a number from 1 to {max}"))
}

fn within(value: i64, min: u32, max: u32) -> Option<u32> {
    u32::try_from(value).ok().filter(|value| (min..=max).contains(value))
}

fn size(argument: &str) -> Result<Command, String> {
    let mut words = argument.split_whitespace();
    let wrong = || {
        format!(
            "no file size low or high bounds specified: write one or two numbers from 1 to {MAX}"
        )
    };
    let low = within(words.next().map_or(0, atoi), 1, MAX).ok_or_else(wrong)?;
    let high = words.next().map_or(0, atoi);
    if high > i64::from(MAX) {
        return Err(wrong());
    }
    Ok(Command::SetSize(low, within(high, low, MAX).unwrap_or(low)))
}

/// `PATH_MAX` without its NUL.
const MAX_PATH_BYTES: usize = 4095;

fn location(argument: &str) -> Result<Command, String> {
    let argument = argument.trim_start();
    let (sign, rest) = match argument.chars().next() {
        Some(sign @ ('+' | '-')) => (Some(sign), &argument[1..]),
        _ => (None, argument),
    };
    let mut words = rest.split_whitespace();
    let path = words.next().ok_or("no directory name specified: write one after the command")?;
    if path.len() > MAX_PATH_BYTES {
        return Err(format!("a directory's name has at most {MAX_PATH_BYTES} bytes"));
    }
    let path = PathBuf::from(path);
    let weight = match words.next() {
        Some(word) if sign != Some('-') => within(atoi(word), 1, MAX).ok_or_else(|| {
            format!("invalid weight: write a number from 1 to {MAX} after the directory")
        })?,
        _ => 1,
    };
    Ok(Command::SetLocation(match sign {
        Some('+') => LocationEdit::Add(path, weight),
        Some('-') => LocationEdit::Remove(path),
        _ => LocationEdit::Replace(path, weight),
    }))
}

fn buffering(argument: &str) -> Result<Command, String> {
    match argument {
        "true" => Ok(Command::SetBuffering(true)),
        "false" => Ok(Command::SetBuffering(false)),
        _ => Err("no buffering mode (true/false) specified".into()),
    }
}

fn bias(argument: &str) -> Result<Option<u8>, String> {
    let wrong = "no bias specified (0-10 for greater chance,-1 to disable)";
    match atoi(argument) {
        -1 => Ok(None),
        value if !argument.is_empty() => {
            within(value, 0, 10).map(|value| Some(value as u8)).ok_or_else(|| wrong.into())
        }
        _ => Err(wrong.into()),
    }
}

fn report_style(argument: &str) -> Result<Command, String> {
    match argument {
        "verbose" => Ok(Command::SetReport(ReportStyle::Verbose)),
        "terse" => Ok(Command::SetReport(ReportStyle::Terse)),
        _ => Err("either 'verbose' or 'terse' required".into()),
    }
}

fn named<T, const N: usize>(argument: &str, choices: [(&str, T); N]) -> Result<T, String> {
    let names = choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    choices
        .into_iter()
        .find(|(name, _)| *name == argument)
        .map(|(_, value)| value)
        .ok_or_else(|| format!("one of {names} required"))
}

fn file(argument: &str) -> Option<String> {
    (!argument.is_empty()).then(|| argument.to_string())
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bias = |bias: &Option<u8>| bias.map_or(-1, i32::from);
        match self {
            Command::SetSize(low, high) => write!(f, "set size {low} {high}"),
            Command::SetNumber(n) => write!(f, "set number {n}"),
            Command::SetSeed(n) => write!(f, "set seed {n}"),
            Command::SetTransactions(n) => write!(f, "set transactions {n}"),
            Command::SetLocation(LocationEdit::Replace(path, weight)) => {
                write!(f, "set location {} {weight}", path.display())
            }
            Command::SetLocation(LocationEdit::Add(path, weight)) => {
                write!(f, "set location +{} {weight}", path.display())
            }
            Command::SetLocation(LocationEdit::Remove(path)) => {
                write!(f, "set location -{}", path.display())
            }
            Command::SetSubdirectories(n) => write!(f, "set subdirectories {n}"),
            Command::SetRead(n) => write!(f, "set read {n}"),
            Command::SetWrite(n) => write!(f, "set write {n}"),
            Command::SetBuffering(on) => write!(f, "set buffering {on}"),
            Command::SetBiasRead(b) => write!(f, "set bias read {}", bias(b)),
            Command::SetBiasCreate(b) => write!(f, "set bias create {}", bias(b)),
            Command::SetReport(ReportStyle::Verbose) => f.write_str("set report verbose"),
            Command::SetReport(ReportStyle::Terse) => f.write_str("set report terse"),
            Command::SetThreads(n) => write!(f, "set threads {n}"),
            Command::SetSync(sync) => write!(f, "set sync {}", sync.name()),
            Command::SetEngine(engine) => write!(f, "set engine {}", engine.name()),
            Command::Run(None) => f.write_str("run"),
            Command::Run(Some(file)) => write!(f, "run {file}"),
            Command::Load(file) => write!(f, "load {file}"),
            Command::Show(None) => f.write_str("show"),
            Command::Show(Some(file)) => write!(f, "show {file}"),
            Command::Help(prefix) => write!(f, "help {prefix}"),
            Command::Quit => f.write_str("quit"),
        }
    }
}
