//! Options of the whole program.

use crate::console::Console;
use crate::failure::Failure;
use crate::written::Writes;
use host::knobs::journal::{STATE_VARIABLE, state_directory};
use results::Program;
use std::fmt;
use std::path::PathBuf;

/// Replaces `--history`; `none` disables the history.
pub(crate) const HISTORY_VARIABLE: &str = "HALFPOWER_HISTORY";

#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) force: bool,
    history: HistoryChoice,
    pub(crate) console: Console,
    pub(crate) writes: Writes,
}

#[derive(Debug, Clone, Default)]
enum HistoryChoice {
    #[default]
    Usual,
    Nowhere,
    File(PathBuf),
}

impl Context {
    pub(crate) fn new(
        console: Console,
        force: bool,
        no_history: bool,
        history: Option<PathBuf>,
    ) -> Context {
        let writes = Writes::new(console.clone());
        let history_choice = HistoryChoice::default();
        let mut context = Context { force, history: history_choice, console, writes };
        context.choose_history(no_history, history);
        context
    }

    /// The first choice counts: another tool's arguments may hold the options again.
    fn choose_history(&mut self, no_history: bool, file: Option<PathBuf>) {
        if matches!(self.history, HistoryChoice::Usual) {
            self.history = match (no_history, file) {
                (true, _) => HistoryChoice::Nowhere,
                (_, Some(file)) => HistoryChoice::File(file),
                _ => HistoryChoice::Usual,
            };
        }
    }

    pub(crate) fn take_ours(&mut self, words: &[String]) -> Result<Vec<String>, Failure> {
        let mut rest = Vec::with_capacity(words.len());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match (word.as_str(), word.strip_prefix("--history=")) {
                ("--force", _) => self.force = true,
                ("--no-history", _) => self.choose_history(true, None),
                // `progress::mode` has read it.
                ("--max-written", _) => {
                    let size = words.next().map_or("", String::as_str);
                    self.writes.allow(Some(max_written(size)?));
                }
                (word, _) if word.starts_with("--max-written=") => {
                    self.writes.allow(Some(max_written(&word["--max-written=".len()..])?));
                }
                ("--progress", _) => drop(words.next()),
                (word, _) if word.starts_with("--progress=") => {}
                ("--history", _) => self.choose_history(false, words.next().map(PathBuf::from)),
                (_, Some(file)) => self.choose_history(false, Some(PathBuf::from(file))),
                _ => rest.push(word.clone()),
            }
        }
        Ok(rest)
    }

    pub(crate) fn history_file(&self) -> Result<PathBuf, NoHistory> {
        match &self.history {
            HistoryChoice::Nowhere => return Err(NoHistory::Disabled),
            HistoryChoice::File(path) => return Ok(path.clone()),
            HistoryChoice::Usual => {}
        }
        match std::env::var_os(HISTORY_VARIABLE) {
            Some(name) if name == "none" => return Err(NoHistory::Disabled),
            Some(name) if !name.is_empty() => return Ok(PathBuf::from(name)),
            _ => {}
        }
        let named =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data = named("XDG_DATA_HOME")
            .or_else(|| named("HOME").map(|home| home.join(".local/share")))
            .map(|data| data.join("halfpower"));
        let directory = data.or_else(state_directory).ok_or(NoHistory::NoPlace)?;
        Ok(directory.join("history.sqlite"))
    }
}

fn max_written(size: &str) -> Result<u64, Failure> {
    machine::units::parse_size(size)
        .map_err(|why| Failure::Usage(format!("--max-written {size}: {why}")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoHistory {
    Disabled,
    NoPlace,
}

impl fmt::Display for NoHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoHistory::Disabled => {
                write!(f, "--no-history or {HISTORY_VARIABLE}=none turned it off; leave that out")
            }
            NoHistory::NoPlace => write!(
                f,
                "HOME is not set to an absolute path; name a file with --history, or a directory with {STATE_VARIABLE}"
            ),
        }
    }
}

pub(crate) fn program() -> Program {
    Program {
        name: "halfpower".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        arguments: std::env::args_os()
            .skip(1)
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::Planned;
    use machine::units::{Units, show_in, show_rate};
    use machine::{TargetFacts, TargetKind};
    use measure::PlannedWrites;

    fn context() -> Context {
        Context::new(Console::silent(), false, true, None)
    }

    #[test]
    fn contexts_do_not_share_state() {
        let (limited, free) = (context(), context());
        limited.writes.allow(Some(1 << 20));
        let runs = PlannedWrites { min_bytes: 2 << 20, max_bytes: 2 << 20, timed_ns: 0 };
        limited.writes.plan(Planned::Runs(runs));
        let target = TargetFacts::new("t", TargetKind::Device, 4 << 20);
        let opening = |context: &Context| {
            context.writes.allowance().opening(std::slice::from_ref(&target), 0)
        };
        assert!(opening(&limited).is_err(), "2 MiB are more than its limit");
        opening(&free).expect("no limit and no plan");
        assert!(limited.writes.allowance().take(1 << 20) && !limited.writes.allowance().take(1));
        assert!(limited.writes.limited().is_some() && limited.writes.note().is_some());
        assert!(free.writes.allowance().take(8 << 20));
        assert!(free.writes.limited().is_none() && free.writes.note().is_none());

        let (mine, other) = (limited.console.bar(4), free.console.bar(4));
        mine.set_position(1);
        other.set_position(3);
        assert_eq!([mine.share(), other.share()], [Some(0.25), Some(0.75)]);
        drop(mine);
        assert_eq!(other.share(), Some(0.75), "the end of a bar removes only its own");
    }

    #[test]
    fn units_belong_to_the_command_that_chose_them() {
        let si = show_in(Units::Si);
        assert_eq!(show_rate(2e6), "2 MB/s");
        let elsewhere = std::thread::spawn(|| show_rate(2e6)).join().expect("a thread");
        assert_eq!(elsewhere, "1.91 MiB/s");
        {
            let _binary = show_in(Units::Binary);
            assert_eq!(show_rate(2e6), "1.91 MiB/s");
        }
        assert_eq!(show_rate(2e6), "2 MB/s");
        drop(si);
        assert_eq!(show_rate(2e6), "1.91 MiB/s");
    }
}
