//! IOR's options: on the command line, as directives (`-O name=value`), in scripts.

use super::table::ROWS;
use crate::parse::{no_nul, refuse, shortened};
use crate::rows::OptionKind::Value;
use crate::rows::{Form, OptionKind, Own, Row, put, set_own};
use files::Input;
use machine::units::MIB;
use machine::{Error, Result};
use std::path::{Path, PathBuf};

pub(super) const MAX_TRANSFER: u64 = 1 << 30;

/// In one process.
pub const MAX_TASKS_HERE: u32 = 1024;

const SCRIPT: Input = Input::new("a script of IOR", 1 << 20);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    #[default]
    Text,
    Json,
    Csv,
}

/// One test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `-o`; with one file per task the tasks use these in turn.
    pub test_files: Vec<PathBuf>,
    /// `-b`: contiguous bytes of a task.
    pub block_bytes: u64,
    /// `-t`
    pub transfer_bytes: u64,
    /// `-s`
    pub segments: u64,
    /// `-i`
    pub repetitions: u32,
    /// `-w`, `-r`, `-W`, `-R`
    pub write: bool,
    pub read: bool,
    pub check_write: bool,
    pub check_read: bool,
    /// `-F`
    pub per_task: bool,
    /// `-C`: read what another task wrote.
    pub reorder: bool,
    /// `-Z`: read what a random other task wrote.
    pub reorder_random: bool,
    /// `-X`
    pub reorder_seed: i64,
    /// `-Q`
    pub task_offset: u64,
    /// `-z`
    pub random: bool,
    /// `-e`
    pub fsync: bool,
    /// `-Y`
    pub fsync_each: bool,
    /// `-k`, `-K`
    pub keep: bool,
    pub keep_with_error: bool,
    /// `-E`
    pub existing: bool,
    /// `-m`: one file per repetition.
    pub multi_file: bool,
    /// `-g`
    pub barriers: bool,
    /// `--posix.odirect`
    pub direct: bool,
    /// `-D`
    pub deadline_s: Option<u64>,
    /// Every task goes on to the fastest's number of transfers.
    pub wear_out: bool,
    /// Each task's transfers in an earlier test.
    pub wear_out_iterations: Option<u64>,
    /// Keeps `wear_out_iterations` between tests.
    pub status_file: Option<PathBuf>,
    /// `-G`: seed of the data.
    pub signature: Option<u64>,
    /// `-d`
    pub delay_s: u64,
    /// `-q`
    pub quit_on_error: bool,
    /// `-N`
    pub tasks: Option<u32>,
    /// `-T`
    pub max_minutes: u64,
    /// `-u`
    pub unique_directory: bool,
    /// `-v`, counted.
    pub verbose: u32,
    /// `-A`
    pub reference: i64,
    /// `-j`
    pub outlier_s: u64,
    pub format: Format,
    /// For the results, instead of standard output.
    pub summary_file: Option<PathBuf>,
    pub dry_run: bool,
}

impl Tests {
    /// Of all tasks, without a deadline.
    pub fn written_bytes(&self, tasks: u32) -> u64 {
        let written = |test: &Options| {
            let each = test.block_bytes.saturating_mul(test.segments);
            let tasks = test.tasks.unwrap_or(tasks);
            each.saturating_mul(tasks.into()).saturating_mul(test.repetitions.into())
        };
        let writes = self.tests.iter().filter(|test| test.write && !test.dry_run);
        writes.map(written).fold(0, u64::saturating_add)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            test_files: vec!["testFile".into()],
            block_bytes: MIB,
            transfer_bytes: 256 << 10,
            segments: 1,
            repetitions: 1,
            write: false,
            read: false,
            check_write: false,
            check_read: false,
            per_task: false,
            reorder: false,
            reorder_random: false,
            reorder_seed: 0,
            task_offset: 1,
            random: false,
            fsync: false,
            fsync_each: false,
            keep: false,
            keep_with_error: false,
            existing: false,
            multi_file: false,
            barriers: false,
            direct: false,
            deadline_s: None,
            wear_out: false,
            wear_out_iterations: None,
            status_file: None,
            signature: None,
            delay_s: 0,
            quit_on_error: false,
            tasks: None,
            max_minutes: 0,
            unique_directory: false,
            verbose: 0,
            reference: 0,
            outlier_s: 0,
            format: Format::Text,
            summary_file: None,
            dry_run: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tests {
    /// Never empty.
    pub tests: Vec<Options>,
    /// Tasks as threads of this process; 0: one, or those that mpirun starts.
    pub tasks_here: u32,
    pub json: Option<PathBuf>,
    pub command: String,
    /// Files that may be overwritten.
    pub destroy: Vec<PathBuf>,
    pub force: bool,
}

static OWN: &[Own<Tests>] = &[
    Row::new("json", (), Value(|o, text| put(&mut o.json, Ok(Some(text.into()))))),
    Row::new("tasks", (), Value(|o, text| put(&mut o.tasks_here, tasks_here("--tasks", text)))),
    Row::new(
        "destroy-data",
        (),
        Value(|o, text| {
            o.destroy.push(text.into());
            Ok(())
        }),
    ),
];

pub(crate) fn tasks_here(option: &str, text: &str) -> Result<u32> {
    crate::parse::number(option, text, 1, MAX_TASKS_HERE.into()).map(|count| count as u32)
}

pub(super) fn hint() -> &'static str {
    "see halfpower ior --help"
}

/// Without a value, a flag is on.
fn set(
    options: &mut Options,
    row: &Row<Options, String>,
    words: &str,
    value: Option<&str>,
) -> Result<()> {
    let failed = |why: String| Error::refused(shortened(words), why, hint());
    let needed = || value.ok_or_else(|| failed("its value is missing".into()));
    let on = |value: Option<&str>| match value.map(str::trim) {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(other) => Err(failed(format!("'{}' is neither 0 nor 1", shortened(other)))),
    };
    match &row.takes {
        OptionKind::Value(set) => set(options, needed()?).map_err(failed),
        OptionKind::Flag(set) | OptionKind::Switch(set) => {
            set(options, on(value)?);
            Ok(())
        }
        OptionKind::Text(set) => {
            set(options, needed()?.into());
            Ok(())
        }
        OptionKind::OnlyValues(values, hint) => {
            let value = needed()?;
            if values.iter().any(|one| one.eq_ignore_ascii_case(value)) {
                return Ok(());
            }
            refuse(shortened(words), format!("only {} is supported", values.join(", ")), hint)
        }
        OptionKind::OnlyZero(hint) => match on(value)? {
            false => Ok(()),
            true => refuse(shortened(words), "it is not supported", hint),
        },
        OptionKind::Ignored(Form::Flag | Form::Switch) => on(value).map(drop),
        OptionKind::Ignored(_) => needed().map(drop),
        OptionKind::Refused(hint) => refuse(shortened(words), "it is not supported", hint),
    }
}

fn takes_value(row: &Row<Options, String>) -> bool {
    !matches!(
        row.takes,
        OptionKind::Flag(_)
            | OptionKind::Switch(_)
            | OptionKind::OnlyZero(_)
            | OptionKind::Refused(_)
            | OptionKind::Ignored(Form::Flag | Form::Switch)
    )
}

/// Case matters only in names of one letter.
fn find(name: &str) -> Option<&'static Row<Options, String>> {
    let is_short = name.chars().count() == 1;
    ROWS.iter().find(|row| {
        row.names().any(
            |known| {
                if is_short { known == name } else { known.eq_ignore_ascii_case(name) }
            },
        )
    })
}

fn unknown<T>(words: &str) -> Result<T> {
    refuse(shortened(words), "unknown option", hint())
}

fn directive(options: &mut Options, words: &str) -> Result<()> {
    let (name, value) =
        words.split_once('=').map_or((words, None), |(name, value)| (name, Some(value.trim())));
    match find(name.trim()) {
        Some(row) => set(options, row, words, value),
        None => unknown(words),
    }
}

impl Tests {
    /// Also finds files that tasks make with a test file's name.
    fn uses(&self, path: &Path) -> bool {
        let name = path.as_os_str().as_encoded_bytes();
        let is = |file: &PathBuf| {
            let rest = name.strip_prefix(file.as_os_str().as_encoded_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
        };
        self.tests.iter().any(|test| test.test_files.iter().any(is))
    }

    fn script(&mut self, options: &mut Options, path: &str) -> Result<()> {
        let failed = |line: usize, why: String| {
            Error::refused(format!("-f {path}, line {line}"), why, hint())
        };
        let text = SCRIPT
            .text(path.as_ref())
            .map_err(|error| Error::refused(format!("-f {path}"), error.to_string(), hint()))?;
        let mut begun = false;
        let mut changed = false;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            let is = |words: &str| line.eq_ignore_ascii_case(words);
            match line {
                "" => {}
                _ if is("ior start") => begun = true,
                _ if !begun => {
                    return Err(failed(number, "a script begins with IOR START".into()));
                }
                _ if is("ior stop") => break,
                _ if is("run") => {
                    self.tests.push(options.clone());
                    changed = false;
                }
                line => {
                    directive(options, line).map_err(|error| failed(number, error.to_string()))?;
                    changed = true;
                }
            }
        }
        if changed {
            self.tests.push(options.clone());
        }
        if self.tests.is_empty() {
            return refuse(
                format!("-f {path}"),
                "it runs no test",
                "end the settings of each with RUN",
            );
        }
        Ok(())
    }

    fn short(
        &mut self,
        options: &mut Options,
        cluster: &str,
        words: &mut std::slice::Iter<'_, String>,
    ) -> Result<()> {
        let mut rest = cluster.chars();
        while let Some(letter) = rest.next() {
            let name = letter.to_string();
            let option = format!("-{letter}");
            let glued = rest.as_str();
            let Some(row) = find(&name) else {
                // A script and directives only hold settings.
                if letter != 'f' && letter != 'O' {
                    let of =
                        if cluster.len() > 1 { format!(" (of -{cluster})") } else { String::new() };
                    return unknown(&(option + &of));
                }
                let value = match glued {
                    "" => words.next().map(String::as_str),
                    glued => Some(glued.trim_start_matches('=')),
                };
                let Some(value) = value.filter(|value| !value.is_empty()) else {
                    return refuse(option, "its value is missing", hint());
                };
                if letter == 'f' {
                    return self.script(options, value);
                }
                return value.split(',').try_for_each(|one| directive(options, one));
            };
            if !takes_value(row) {
                set(options, row, &option, None)?;
                continue;
            }
            let value = match glued {
                "" => words.next().map(String::as_str),
                glued => Some(glued.trim_start_matches('=')),
            };
            let shown = format!("{option} {}", value.unwrap_or_default());
            return set(options, row, shown.trim_end(), value);
        }
        Ok(())
    }
}

/// Without the program's name.
pub fn parse(words: &[String]) -> Result<Tests> {
    no_nul(words)?;
    let mut all = Tests::default();
    let mut options = Options::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            let Some(row) = find(name).filter(|_| name.chars().count() > 1) else {
                set_own(OWN, &mut all, long, || words.next().map(String::as_str))?;
                continue;
            };
            let glued = long.split_once('=').map(|(_, value)| value);
            let value = match glued {
                None if takes_value(row) => words.next().map(String::as_str),
                glued => glued,
            };
            set(&mut options, row, word, value)?;
        } else if let Some(cluster) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            all.short(&mut options, cluster, &mut words)?;
        } else {
            return refuse(
                shortened(word),
                "it belongs to no option",
                "the test file is named with -o",
            );
        }
    }
    if all.tests.is_empty() {
        all.tests.push(options);
    }
    all.tests.iter_mut().try_for_each(Options::finish)?;
    if let Some(stray) = all.destroy.iter().find(|named| !all.uses(named)) {
        let what = format!("--destroy-data {}", shortened(&stray.to_string_lossy()));
        return refuse(
            what,
            "it is not a file of this test",
            "name it with -o, too, or leave it out",
        );
    }
    Ok(all)
}

impl Options {
    fn finish(&mut self) -> Result<()> {
        if !(self.write || self.read || self.check_write || self.check_read) {
            (self.write, self.read) = (true, true);
        }
        let (block, transfer) = (self.block_bytes, self.transfer_bytes);
        if !block.is_multiple_of(transfer) {
            return refuse(
                format!("-b {block}"),
                format!("it is not a multiple of the transfers of {transfer} bytes"),
                "give a multiple of -t",
            );
        }
        if self.direct && !transfer.is_multiple_of(512) {
            return refuse(
                format!("-t {transfer}"),
                "direct I/O takes multiples of 512 bytes",
                "give one, or leave out --posix.odirect",
            );
        }
        if self.unique_directory && !self.per_task {
            return refuse(
                "-u",
                "one file has no directory for each task",
                "add -F, or leave out -u",
            );
        }
        if self.test_files.len() > 1 && !self.per_task {
            return refuse(
                "-o",
                "several files are for one file per task",
                "add -F, or name one file",
            );
        }
        if self.wear_out && self.deadline_s.is_none() {
            return refuse(
                "stoneWallingWearOut",
                "without a deadline no task stops early",
                "add -D SECONDS, or leave it out",
            );
        }
        self.check_size(1)?;
        Ok(())
    }

    pub(super) fn check_size(&self, tasks: u64) -> Result<()> {
        let tasks = if self.per_task { 1 } else { tasks };
        let bytes =
            self.block_bytes.checked_mul(self.segments).and_then(|one| one.checked_mul(tasks));
        match bytes.filter(|&bytes| i64::try_from(bytes).is_ok()) {
            Some(_) => Ok(()),
            None => refuse(
                format!("-s {}", self.segments),
                "a file cannot be that large",
                "give fewer segments or smaller blocks",
            ),
        }
    }

    pub fn file(&self, task: u64, repetition: u32) -> PathBuf {
        let base = &self.test_files[task as usize % self.test_files.len()];
        let mut name = base.as_os_str().to_owned();
        if self.per_task {
            let own = format!(".{task:08}");
            if self.unique_directory {
                let file = base.file_name().unwrap_or_default();
                let mut inner = base.with_file_name(&own[1..]).join(file).into_os_string();
                inner.push(&own);
                name = inner;
            } else {
                name.push(own);
            }
        }
        if self.multi_file {
            name.push(format!(".{repetition}"));
        }
        name.into()
    }
}
