//! mdtest's options as table rows.

use crate::ior::tasks_here;
use crate::parse::{no_nul, number_of, refuse, shortened};
use crate::rows::OptionKind::{Flag, Ignored, OnlyValues, Refused, Value};
use crate::rows::{Form, OptionKind, Own, Row, put, set_own};
use machine::{Error, Result};
use std::path::PathBuf;

const MAX_DIRECTORIES: u64 = 1 << 22;

/// These tests are about names, not data.
const MAX_BYTES: u64 = 1 << 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub command: String,
    /// `-d`; the tasks use them in turn.
    pub directories: Vec<PathBuf>,
    /// `-n`: of a task.
    pub items: Option<u64>,
    /// `-I`
    pub per_directory: Option<u64>,
    /// `-z`, `-b`
    pub depth: u32,
    pub branch: u32,
    /// `-L`
    pub leaf_only: bool,
    /// `-u`
    pub unique: bool,
    /// `-F` excludes directories, `-D` files.
    pub files: bool,
    pub folders: bool,
    /// `-C`, `-T`, `-E`, `-r`
    pub create: bool,
    pub stat: bool,
    pub read: bool,
    pub remove: bool,
    /// `-i`
    pub iterations: u32,
    /// `-w`, `-e`
    pub write_bytes: u64,
    pub read_bytes: u64,
    /// `-y`: each file; `-Y`: the file system at the end of a phase.
    pub sync: bool,
    pub sync_phase: bool,
    /// `-N`
    pub stride: u64,
    /// `-R`
    pub random: Option<u64>,
    /// `-X`
    pub verify: bool,
    /// `-W`
    pub deadline_s: Option<u64>,
    /// `-x`
    pub status_file: Option<PathBuf>,
    /// `-P`: rates and times; `-Z`: times.
    pub both: bool,
    pub times: bool,
    /// `-p`
    pub delay_s: u64,
    pub verbose: u32,
    /// Tasks as threads of this process; 0: one, or those that mpirun starts.
    pub tasks_here: u32,
    pub json: Option<PathBuf>,
    pub force: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            command: String::new(),
            directories: vec![".".into()],
            items: None,
            per_directory: None,
            depth: 0,
            branch: 1,
            leaf_only: false,
            unique: false,
            files: true,
            folders: true,
            create: false,
            stat: false,
            read: false,
            remove: false,
            iterations: 1,
            write_bytes: 0,
            read_bytes: 0,
            sync: false,
            sync_phase: false,
            stride: 0,
            random: None,
            verify: false,
            deadline_s: None,
            status_file: None,
            both: false,
            times: false,
            delay_s: 0,
            verbose: 0,
            tasks_here: 0,
            json: None,
            force: false,
        }
    }
}

const HINT: &str = "see halfpower mdtest --help";

fn number(words: &str, text: &str, min: u64, max: u64) -> Result<u64> {
    number_of(&format!("{words} {text}"), text, min, max)
}

static ROWS: &[Row<Options, Error>] = &[
    Row::new(
        "a",
        (),
        OnlyValues(&["POSIX"], "halfpower uses files through POSIX calls: give -a POSIX"),
    ),
    Row::new(
        "b",
        (),
        Value(|o, v| put(&mut o.branch, number("-b", v, 1, 1 << 20).map(|n| n as u32))),
    ),
    Row::new("B", (), Refused("leave it out: every phase begins for all tasks at the same time")),
    Row::new("c", (), Refused("leave it out: each task creates its own items")),
    Row::new("C", (), Flag(|o, on| o.create = on)),
    Row::new(
        "d",
        (),
        Value(|o, v| {
            if v.split('@').any(str::is_empty) {
                return refuse("-d", "a name is empty", "give one");
            }
            o.directories = v.split('@').map(PathBuf::from).collect();
            Ok(())
        }),
    ),
    Row::new("D", (), Flag(|o, _| o.files = false)),
    Row::new("e", (), Value(|o, v| put(&mut o.read_bytes, number("-e", v, 0, MAX_BYTES)))),
    Row::new("E", (), Flag(|o, on| o.read = on)),
    Row::new("f l s", (), Refused("leave it out, and start mdtest once for each number of tasks")),
    Row::new("F", (), Flag(|o, _| o.folders = false)),
    Row::new("G", (), Ignored(Form::Text)),
    Row::new(
        "i",
        (),
        Value(|o, v| put(&mut o.iterations, number("-i", v, 1, 100_000).map(|n| n as u32))),
    ),
    Row::new(
        "I",
        (),
        Value(|o, v| put(&mut o.per_directory, number("-I", v, 1, 1 << 40).map(Some))),
    ),
    Row::new("k", (), Refused("leave it out: items are made in the directories of the tree")),
    Row::new("L", (), Flag(|o, on| o.leaf_only = on)),
    Row::new("n", (), Value(|o, v| put(&mut o.items, number("-n", v, 1, 1 << 40).map(Some)))),
    Row::new("N", (), Value(|o, v| put(&mut o.stride, number("-N", v, 0, 1 << 20)))),
    Row::new("p", (), Value(|o, v| put(&mut o.delay_s, number("-p", v, 0, 86_400)))),
    Row::new("P", (), Flag(|o, on| o.both = on)),
    Row::new("r", (), Flag(|o, on| o.remove = on)),
    Row::new("S", (), Refused("leave it out; halfpower ior has tasks that share a file")),
    // The time to make the tree is always reported.
    Row::new("t", (), Ignored(Form::Flag)),
    Row::new("T", (), Flag(|o, on| o.stat = on)),
    Row::new("u", (), Flag(|o, on| o.unique = on)),
    Row::new("v", (), Flag(|o, _| o.verbose += 1)),
    Row::new("V", (), Value(|o, v| put(&mut o.verbose, number("-V", v, 0, 10).map(|n| n as u32)))),
    Row::new("w", (), Value(|o, v| put(&mut o.write_bytes, number("-w", v, 0, MAX_BYTES)))),
    Row::new(
        "W",
        (),
        Value(|o, v| {
            let seconds = number("-W", v, 0, 604_800)?;
            o.deadline_s = (seconds > 0).then_some(seconds);
            Ok(())
        }),
    ),
    Row::new(
        "x",
        (),
        Value(|o, v| {
            o.status_file = Some(v.into());
            Ok(())
        }),
    ),
    Row::new("X", (), Flag(|o, on| o.verify = on)),
    Row::new("y", (), Flag(|o, on| o.sync = on)),
    Row::new("Y", (), Flag(|o, on| o.sync_phase = on)),
    Row::new("z", (), Value(|o, v| put(&mut o.depth, number("-z", v, 0, 64).map(|n| n as u32)))),
    Row::new("Z", (), Flag(|o, on| o.times = on)),
];

static OWN: &[Own<Options>] = &[
    Row::new("json", (), Value(|o, text| put(&mut o.json, Ok(Some(text.into()))))),
    Row::new("tasks", (), Value(|o, text| put(&mut o.tasks_here, tasks_here("--tasks", text)))),
];

impl Options {
    fn cluster(&mut self, word: &str, words: &mut std::slice::Iter<'_, String>) -> Result<()> {
        let mut rest = word.chars();
        while let Some(letter) = rest.next() {
            let option = format!("-{letter}");
            // Its seed follows without a blank.
            if letter == 'R' {
                let digits: String = rest.as_str().trim_start_matches('=').into();
                let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
                self.random =
                    Some(if digits.is_empty() { 0 } else { number("-R", digits, 0, u64::MAX)? });
                let skipped = rest.as_str().len() - rest.as_str().trim_start_matches('=').len();
                rest = rest.as_str()[skipped + digits.len()..].chars();
                continue;
            }
            let row = ROWS.iter().find(|row| row.names().any(|name| name == &option[1..]));
            let Some(row) = row else {
                return refuse(
                    shortened(&format!("-{word}")),
                    format!("{option} is unknown"),
                    HINT,
                );
            };
            let mut value = || {
                let glued = rest.as_str().trim_start_matches('=');
                let value =
                    if glued.is_empty() { words.next().map(String::as_str) } else { Some(glued) };
                value
                    .filter(|value| !value.is_empty())
                    .ok_or_else(|| Error::refused(&option, "its value is missing", HINT))
            };
            match &row.takes {
                OptionKind::Flag(set) | OptionKind::Switch(set) => set(self, true),
                OptionKind::Ignored(Form::Flag | Form::Switch) => {}
                OptionKind::Value(set) => return set(self, value()?),
                OptionKind::Text(set) => {
                    set(self, value()?.into());
                    return Ok(());
                }
                OptionKind::OnlyValues(only, hint) => {
                    let value = value()?;
                    if only.iter().any(|one| one.eq_ignore_ascii_case(value)) {
                        return Ok(());
                    }
                    let why = format!("only {} is supported", only.join(", "));
                    return refuse(format!("{option} {}", shortened(value)), why, hint);
                }
                OptionKind::Ignored(_) => return value().map(drop),
                OptionKind::OnlyZero(hint) | OptionKind::Refused(hint) => {
                    return refuse(option, "it is not supported", hint);
                }
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Options> {
        if !(self.create || self.stat || self.read || self.remove) {
            (self.create, self.stat, self.read, self.remove) = (true, true, true, true);
        }
        if !self.files && !self.folders {
            return refuse("-F and -D", "together they leave nothing", "leave out one of them");
        }
        let Some(directories) = self.tree() else {
            return refuse(
                format!("-z {} -b {}", self.depth, self.branch),
                format!("the tree has more than {MAX_DIRECTORIES} directories"),
                "give a smaller depth or branching factor",
            );
        };
        let holding = self.holding(directories);
        match (self.items, self.per_directory) {
            (None, None) => {
                return refuse(
                    "mdtest",
                    "the number of items is missing",
                    "give -n N, or -I N for each directory",
                );
            }
            (Some(items), Some(each)) if each.saturating_mul(holding) < items => {
                return refuse(
                    format!("-n {items} -I {each}"),
                    format!("{holding} directories hold only {}", each.saturating_mul(holding)),
                    "give a larger -I, -z or -b, or leave out -I",
                );
            }
            _ => {}
        }
        if self.verify && self.read_bytes > self.write_bytes && self.create {
            return refuse(
                "-X",
                format!(
                    "{} of the {} bytes that are read were not written",
                    self.read_bytes - self.write_bytes,
                    self.read_bytes
                ),
                "give -w the size of -e or more",
            );
        }
        Ok(self)
    }

    /// `None`: too many directories.
    fn tree(&self) -> Option<u64> {
        let mut level = 1u64;
        let mut all = 1u64;
        for _ in 0..self.depth {
            level = level.checked_mul(self.branch.into())?;
            all = all.checked_add(level).filter(|&all| all <= MAX_DIRECTORIES)?;
        }
        Some(all)
    }

    /// Of all iterations without a deadline.
    pub fn written_bytes(&self, tasks: u32) -> u64 {
        let (items, _) = self.shares();
        let files = if self.create && self.files { items } else { 0 };
        let all = files.saturating_mul(tasks.into()).saturating_mul(self.iterations.into());
        all.saturating_mul(self.write_bytes)
    }

    /// Directories that hold items.
    fn holding(&self, all: u64) -> u64 {
        if self.leaf_only {
            u64::from(self.branch).saturating_pow(self.depth).min(all)
        } else {
            all
        }
    }

    /// The options that affect the rates, but not the directory.
    pub fn settings(&self, tasks: u32) -> String {
        let mut words = vec![format!("--tasks {tasks}")];
        let (items, _) = self.shares();
        words.push(format!("-n {items}"));
        let mut add = |differs: bool, word: String| {
            if differs {
                words.push(word);
            }
        };
        add(self.depth > 0, format!("-z {} -b {}", self.depth, self.branch));
        add(self.leaf_only, "-L".into());
        add(self.unique, "-u".into());
        add(self.write_bytes > 0, format!("-w {}", self.write_bytes));
        add(self.read_bytes > 0, format!("-e {}", self.read_bytes));
        add(self.sync, "-y".into());
        add(self.sync_phase, "-Y".into());
        add(self.stride > 0, format!("-N {}", self.stride));
        add(self.random.is_some(), "-R".into());
        words.join(" ")
    }

    /// Items per task and per directory.
    pub(super) fn shares(&self) -> (u64, u64) {
        let holding = self.holding(self.tree().unwrap_or(1));
        match (self.items, self.per_directory) {
            (Some(items), Some(each)) => (items, each),
            (Some(items), None) => (items, items.div_ceil(holding)),
            (None, each) => {
                let each = each.unwrap_or(1);
                (each.saturating_mul(holding), each)
            }
        }
    }
}

/// Without the program's name.
pub fn parse(words: &[String]) -> Result<Options> {
    no_nul(words)?;
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            set_own(OWN, &mut options, long, || words.next().map(String::as_str))?;
        } else if let Some(cluster) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            options.cluster(cluster, &mut words)?;
        } else {
            return refuse(
                shortened(word),
                "it belongs to no option",
                "the directory is named with -d",
            );
        }
    }
    options.finish()
}
