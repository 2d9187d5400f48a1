use super::Client;
use crate::parse::{NotServed, no_nul, number, number_of, refuse, refuse_option, shortened};
use crate::rows::OptionKind::{Flag, Value};
use crate::rows::{Own, Row, put, set_own};
use machine::Result;
use machine::units::{GIB, KIB, MIB, show_size};
use std::path::PathBuf;
use workload::{MAX_DEPTH, MAX_REQUEST_BYTES};

/// Of the throughput mode.
pub const MAX_CHILDREN: u32 = 1024;
/// 1 PiB.
const MAX_FILE: u64 = 1 << 50;
/// The pattern of `-+d`.
const DIAGNOSTIC: u8 = 0xa5;
/// The highest test number; the first is 0.
pub const LAST_TEST: u8 = 12;

/// Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    pub typed: Option<String>,
    /// `-a`
    pub auto: bool,
    /// `-z`: small records with large files too (`-A` is `-a -z`).
    pub all_records: bool,
    /// `-s`: sizes.
    pub files: Vec<u64>,
    /// `-n`, `-g`
    pub file_range: (Option<u64>, Option<u64>),
    /// `-r`: sizes.
    pub records: Vec<u64>,
    /// `-y`, `-q`
    pub record_range: (Option<u64>, Option<u64>),
    /// `-i`, in order; empty: 0 to 7.
    pub tests: Vec<u8>,
    /// `-f`: the test file, or a directory for it.
    pub file: Option<PathBuf>,
    /// `-F`
    pub process_files: Vec<PathBuf>,
    /// `-I`
    pub direct: bool,
    /// `-o`: writes complete on stable storage; timestamps are not flushed.
    pub sync: bool,
    /// `-+r`: the same, and reads return only stable data, which has no effect on Linux.
    pub read_sync: bool,
    /// `-+D`: the same as `-o`.
    pub dsync: bool,
    /// `-e`: part of the time.
    pub flush: bool,
    /// `-c`: include closing the file, which takes microseconds locally and is not timed
    /// separately.
    pub close: bool,
    /// `-t`
    pub children: Vec<u32>,
    /// `-l`, `-u`
    pub child_range: (Option<u32>, Option<u32>),
    /// `-T`: only changes the report; processes are always threads.
    pub threads: bool,
    /// `-H`, `-k`: depth; true for `-k`, which saves a copy in the original.
    pub asynchronous: Option<(bool, u32)>,
    /// `-B`
    pub mmap: bool,
    /// `-G`: writes to mapped memory wait for stable storage.
    pub mmap_sync: bool,
    /// `-D`: start writing mapped memory after each write; no effect on Linux since 2.6.19.
    pub mmap_async: bool,
    /// `-W`: test files are always locked.
    pub lock: bool,
    /// `-O`: per second.
    pub operations: bool,
    /// `-N`: per operation.
    pub microseconds: bool,
    /// `-R`
    pub excel: bool,
    pub force: bool,
    /// `-b`: the tables of `-R`.
    pub excel_file: Option<PathBuf>,
    /// `-M`: in the report.
    pub machine: bool,
    /// `-w`
    pub keep: bool,
    /// `-x`: the first to finish does not stop others.
    pub no_stonewall: bool,
    /// `-V`: writes carry this pattern and reads verify it.
    pub verify: Option<u8>,
    /// `-p`: empty the processor's cache before each test.
    pub purge: bool,
    /// `-U`: the original remounts it, for an empty page cache.
    pub uncached: Option<PathBuf>,
    /// `-S`: of the processor, for `-p`.
    pub cache_bytes: Option<u64>,
    /// `-L`
    pub line_bytes: Option<u64>,
    /// `-j`: in records.
    pub stride: Option<u32>,
    /// `-J`
    pub think_ms: Option<u32>,
    /// `-P`: first processor of the processes.
    pub bind: Option<u32>,
    /// `-Q`
    pub latency_files: bool,
    /// `-+u`
    pub cpu: bool,
    /// `-E`: the default tests include 9 to 12.
    pub extensions: bool,
    /// `-C`
    pub each_child: bool,
    /// `-+n`
    pub no_retests: bool,
    /// `-+p`: readers in the mixed test; `None`: every other process.
    pub readers_percent: Option<u32>,
    /// `-+q`
    pub rest_s: Option<u32>,
    /// `-+m`
    pub client_list: Option<PathBuf>,
    /// Its clients ([`Options::with_clients`]).
    pub clients: Vec<Client>,
    pub json: Option<PathBuf>,
    pub html: Option<PathBuf>,
    /// `--repeats`; default: three, or one if a test takes over a second.
    pub repeats: Option<u32>,
    pub seed: Option<u64>,
    pub destroy: Vec<PathBuf>,
    pub destroy_signed: bool,
}

/// In kilobytes without a suffix; returns bytes.
fn size(words: &str, text: &str, min: u64, max: u64) -> Result<u64> {
    let what = || shortened(words);
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "k" | "K" | "kB" | "KB" | "kb" => KIB,
        "m" | "M" | "MB" | "mb" => MIB,
        "g" | "G" | "GB" | "gb" => GIB,
        _ => {
            return refuse(
                what(),
                "its unit is unknown",
                "write kilobytes, or a number with k, m or g",
            );
        }
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return refuse(
            what(),
            "it is not a size",
            "write kilobytes, or a number with k, m or g, such as 64k",
        );
    }
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    match bytes {
        Some(bytes) if (min..=max).contains(&bytes) => Ok(bytes),
        _ => refuse(
            what(),
            format!("it is not between {} and {}", show_size(min), show_size(max)),
            "choose a size between them",
        ),
    }
}

struct Words<'a> {
    words: std::slice::Iter<'a, String>,
    word: &'a str,
    /// Rest of a cluster such as `-Rac`.
    cluster: &'a str,
}

impl<'a> Words<'a> {
    fn value(&mut self, option: &str) -> Result<&'a str> {
        let glued = std::mem::take(&mut self.cluster);
        if !glued.is_empty() {
            return Ok(glued);
        }
        match self.words.next() {
            Some(word) => Ok(word),
            None => refuse(option, "its value is missing", "give it after the option"),
        }
    }

    fn spelled(&mut self, option: &str) -> Result<(String, &'a str)> {
        let gap = if self.cluster.is_empty() { " " } else { "" };
        let value = self.value(option)?;
        Ok((format!("{option}{gap}{value}"), value))
    }

    fn number(&mut self, option: &str, min: u64, max: u64) -> Result<u64> {
        let (words, value) = self.spelled(option)?;
        number_of(&words, value, min, max)
    }

    fn size(&mut self, option: &str, min: u64, max: u64) -> Result<u64> {
        let (words, value) = self.spelled(option)?;
        size(&words, value, min, max)
    }

    fn path(&mut self, option: &str) -> Result<PathBuf> {
        match self.value(option)? {
            "" => refuse(option, "the name is empty", "give one"),
            text => Ok(text.into()),
        }
    }
}

const HELP_HINT: &str = "see halfpower iozone --help";

const NOT_SERVED: [NotServed; 22] = [
    (
        "K",
        "reads at the start of the file between the others are not supported",
        "leave it out; -i 2 has random reads, and halfpower run --beside a second load at once",
    ),
    (
        "X",
        "the order of requests comes from the test",
        "leave it out, or give a trace to halfpower fio with read_iolog",
    ),
    (
        "Y",
        "the order of requests comes from the test",
        "leave it out, or give a trace to halfpower fio with read_iolog",
    ),
    (
        "Z",
        "a file is accessed through calls or through mapped memory, not both in one test",
        "run once with -B and once without; halfpower run --beside '--engine mmap' runs both at once",
    ),
    ("d", "the processes begin together", "leave it out"),
    ("h", "it prints the help", "write it as a word of its own: halfpower iozone -h"),
    ("m", "each process has a buffer for each request that is outstanding", "leave it out"),
    ("v", "it prints the version", "write it as a word of its own: halfpower iozone -v"),
    ("+B", "the mix of test 8 goes to random places", "leave it out"),
    ("+J", "pauses are never in a rate", "leave it out"),
    ("+N", "a test file is written over where it is, never made shorter", "leave it out"),
    ("+O", "a rate of operations is not served", "use halfpower run --rate"),
    ("+S", "data comes from --seed", "use --seed"),
    ("+T", "each result has its own times in the JSON", "leave it out"),
    ("+V", "a file shared by processes is not served", "leave it out"),
    ("+X", "short-circuit tests are IOzone's own", "leave it out"),
    ("+b", "bursts are not served", "use -J for a pause between requests"),
    ("+k", "each process has a file as large as -s says", "leave it out"),
    ("+l", "locks on records are not served", "leave it out"),
    ("+L", "locks on records are not served", "leave it out"),
    ("+t", "the network is not measured", "leave it out"),
    ("+w", "data that repeats is not served", "use halfpower run with its options for data"),
];

static OWN: &[Own<Options>] = &[
    Row::new("json", (), Value(|o, text| put(&mut o.json, Ok(Some(text.into()))))),
    Row::new("html", (), Value(|o, text| put(&mut o.html, Ok(Some(text.into()))))),
    Row::new(
        "repeats",
        (),
        Value(|o, text| {
            put(&mut o.repeats, number("--repeats", text, 1, 1000).map(|n| Some(n as u32)))
        }),
    ),
    Row::new(
        "seed",
        (),
        Value(|o, text| put(&mut o.seed, number("--seed", text, 0, u64::MAX).map(Some))),
    ),
    Row::new(
        "destroy-data",
        (),
        Value(|o, text| {
            o.destroy.push(text.into());
            Ok(())
        }),
    ),
    Row::new("destroy-signature", (), Flag(|o, on| o.destroy_signed = on)),
];

/// Without the program's name.
pub fn parse(arguments: &[String]) -> Result<Options> {
    no_nul(arguments)?;
    let mut options = Options::default();
    let mut words = Words { words: arguments.iter(), word: "", cluster: "" };
    while let Some(word) = words.words.next() {
        if let Some(long) = word.strip_prefix("--") {
            set_own(OWN, &mut options, long, || words.words.next().map(String::as_str))?;
            continue;
        }
        match word.strip_prefix('-') {
            Some(cluster) if !cluster.is_empty() => (words.word, words.cluster) = (word, cluster),
            _ => {
                return refuse(
                    shortened(word),
                    "options begin with -",
                    "name the test file with -f",
                );
            }
        }
        while let Some(letter) = words.cluster.chars().next() {
            words.cluster = &words.cluster[letter.len_utf8()..];
            options.short(letter, &mut words)?;
        }
    }
    options.check()?;
    Ok(options)
}

impl Options {
    fn short(&mut self, letter: char, words: &mut Words<'_>) -> Result<()> {
        let option = format!("-{letter}");
        let record = |words: &mut Words<'_>| words.size(&option, KIB, u64::from(MAX_REQUEST_BYTES));
        let file = |words: &mut Words<'_>| words.size(&option, KIB, MAX_FILE);
        let children = |words: &mut Words<'_>| {
            words.number(&option, 1, u64::from(MAX_CHILDREN)).map(|n| n as u32)
        };
        match letter {
            'a' => self.auto = true,
            'A' => (self.auto, self.all_records) = (true, true),
            'z' => self.all_records = true,
            's' => self.files.push(file(words)?),
            'n' => self.file_range.0 = Some(file(words)?),
            'g' => self.file_range.1 = Some(file(words)?),
            'r' => self.records.push(record(words)?),
            'y' => self.record_range.0 = Some(record(words)?),
            'q' => self.record_range.1 = Some(record(words)?),
            'i' => self.tests.push(words.number(&option, 0, u64::from(LAST_TEST))? as u8),
            'f' => self.file = Some(words.path(&option)?),
            'F' => self.process_files(words)?,
            'I' => self.direct = true,
            'o' => self.sync = true,
            'e' => self.flush = true,
            'c' => self.close = true,
            't' => self.children.push(children(words)?),
            'l' => self.child_range.0 = Some(children(words)?),
            'u' => self.child_range.1 = Some(children(words)?),
            'T' => self.threads = true,
            'H' | 'k' => {
                self.asynchronous =
                    Some((letter == 'k', words.number(&option, 1, u64::from(MAX_DEPTH))? as u32))
            }
            'B' => self.mmap = true,
            'G' => self.mmap_sync = true,
            'D' => self.mmap_async = true,
            'W' => self.lock = true,
            'O' => self.operations = true,
            'N' => self.microseconds = true,
            'R' => self.excel = true,
            'b' => self.excel_file = Some(words.path(&option)?),
            'w' => self.keep = true,
            'x' => self.no_stonewall = true,
            'V' => self.verify = Some(words.number(&option, 0, 255)? as u8),
            'p' => self.purge = true,
            'S' => self.cache_bytes = Some(words.size(&option, KIB, 64 * GIB)?),
            'L' => self.line_bytes = Some(words.number(&option, 1, 65_536)?),
            'j' => self.stride = Some(words.number(&option, 1, 1 << 20)? as u32),
            'J' => self.think_ms = Some(words.number(&option, 0, 3_600_000)? as u32),
            'P' => self.bind = Some(words.number(&option, 0, 65_535)? as u32),
            'Q' => self.latency_files = true,
            'M' => self.machine = true,
            'C' => self.each_child = true,
            'E' => self.extensions = true,
            'U' => self.uncached = Some(words.path(&option)?),
            '+' => match words.value("-+")? {
                "u" => self.cpu = true,
                "n" => self.no_retests = true,
                "D" => self.dsync = true,
                // Every byte read is verified, against our own pattern without -V.
                "d" => self.verify = Some(self.verify.unwrap_or(DIAGNOSTIC)),
                "r" => self.read_sync = true,
                "p" => self.readers_percent = Some(words.number("-+p", 1, 100)? as u32),
                "q" => self.rest_s = Some(words.number("-+q", 0, 86_400)? as u32),
                "m" => self.client_list = Some(words.path("-+m")?),
                // The name under which remote clients reach this computer.
                "h" => drop(words.value("-+h")?),
                other => {
                    return refuse_option(
                        &format!("-+{other}"),
                        &format!("+{other}"),
                        &NOT_SERVED,
                        HELP_HINT,
                    );
                }
            },
            _ => {
                // In an argument such as -Q1 a letter without a value is followed by another
                // option.
                let words = if words.word == option {
                    option
                } else {
                    format!("{option} (of {})", words.word)
                };
                return refuse_option(&words, &letter.to_string(), &NOT_SERVED, HELP_HINT);
            }
        }
        Ok(())
    }

    fn process_files(&mut self, words: &mut Words<'_>) -> Result<()> {
        self.process_files = vec![words.path("-F")?];
        while let Some(word) = words.words.as_slice().first().filter(|word| !word.starts_with('-'))
        {
            if word.is_empty() {
                return refuse("-F", "a name is empty", "give one");
            }
            self.process_files.push(word.into());
            words.words.next();
        }
        Ok(())
    }

    pub fn throughput(&self) -> bool {
        !self.children.is_empty() || self.child_range != (None, None)
    }

    /// 0 without the throughput mode.
    pub(super) fn max_children(&self) -> usize {
        let counts =
            self.children.iter().copied().chain(self.child_range.1).chain(self.child_range.0);
        counts.max().unwrap_or(0) as usize
    }

    fn check(&self) -> Result<()> {
        let above = |name: &str, (low, high): (Option<u64>, Option<u64>)| match (low, high) {
            (Some(low), Some(high)) if low > high => refuse(
                name,
                format!("{} is above {}", show_size(low), show_size(high)),
                "give the smaller one first",
            ),
            _ => Ok(()),
        };
        above("-n and -g", self.file_range)?;
        above("-y and -q", self.record_range)?;
        if let (Some(low), Some(high)) = self.child_range
            && low > high
        {
            return refuse(
                "-l and -u",
                format!("{low} is above {high}"),
                "give the smaller one with -l",
            );
        }
        if self.operations && self.microseconds {
            return refuse("-O and -N", "a figure is in one unit", "leave out one of the two");
        }
        if self.mmap
            && (self.direct
                || self.sync
                || self.read_sync
                || self.dsync
                || self.asynchronous.is_some())
        {
            return refuse(
                "-B",
                "mapped memory is the page cache and knows neither -I, -o, -+r, -+D, -H nor -k",
                "leave out one of them",
            );
        }
        if self.tests.contains(&8) && !self.throughput() {
            return refuse("-i 8", "the mix needs several processes", "add -t 2 or more");
        }
        if self.latency_files && self.throughput() {
            return refuse(
                "-Q",
                "latency files are written for one process",
                "leave out -t, -l and -u",
            );
        }
        if self.html.is_some() && self.throughput() {
            return refuse(
                "--html",
                "the throughput mode has no rates over file and record sizes",
                "leave out --html, or -t, -l and -u",
            );
        }
        if self.auto && self.throughput() {
            return refuse(
                "-a",
                "the throughput mode has one file size and one record size",
                "leave out -a, or -t",
            );
        }
        if self.client_list.is_some() && !self.throughput() {
            return refuse(
                "-+m",
                "clients are for the throughput mode",
                "add -t N, at most the number of clients",
            );
        }
        let max = self.max_children();
        if !self.process_files.is_empty() && (self.process_files.len() < max || !self.throughput())
        {
            let why = format!("{} files for {max} processes", self.process_files.len());
            return refuse("-F", why, "name one file for each process of -t or -u");
        }
        let smallest_file = self.files.iter().min();
        if let (Some(file), Some(record)) = (smallest_file, self.records.iter().max())
            && record > file
            && self.files.len() == 1
        {
            return refuse(
                format!("-r {}", show_size(*record)),
                format!("it is larger than the file of {}", show_size(*file)),
                "use a smaller record or a larger file",
            );
        }
        if (self.mmap_sync || self.mmap_async) && !self.mmap {
            let option = if self.mmap_sync { "-G" } else { "-D" };
            return refuse(option, "it flushes mapped memory", "add -B, or use -o without -B");
        }
        if let Some(pattern) = self.verify
            && self.mmap
        {
            return refuse(
                format!("-V {pattern}"),
                "data is checked through calls, not through mapped memory",
                "leave out -B",
            );
        }
        Ok(())
    }
}
