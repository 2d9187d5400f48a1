//! The command line.

use super::Client;
use crate::parse::{NotServed, no_nul, number, number_of, refuse, refuse_option, shortened};
use machine::Result;
use machine::units::{GIB, KIB, MIB, show_size};
use std::path::PathBuf;
use workload::{MAX_DEPTH, MAX_REQUEST_BYTES};

/// The most processes or threads of the throughput mode.
pub const MAX_CHILDREN: u32 = 1024;
/// The largest file: 1 PiB is more than a test will ever fill.
const MAX_FILE: u64 = 1 << 50;
/// The pattern of `-+d`.
const DIAGNOSTIC: u8 = 0xa5;
/// Tests are numbered from 0 to this.
pub const LAST_TEST: u8 = 12;

/// What the command line asks for. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// `-a`: every file size with every record size.
    pub auto: bool,
    /// `-z`: small records with large files too (`-A` is `-a -z`).
    pub all_records: bool,
    /// `-s`: file sizes.
    pub files: Vec<u64>,
    /// `-n`, `-g`: the smallest and the largest file of the automatic mode.
    pub file_range: (Option<u64>, Option<u64>),
    /// `-r`: record sizes.
    pub records: Vec<u64>,
    /// `-y`, `-q`: the smallest and the largest record of the automatic mode.
    pub record_range: (Option<u64>, Option<u64>),
    /// `-i`: tests by number, in order; none: 0 to 7.
    pub tests: Vec<u8>,
    /// `-f`: the test file, or the directory to make it in.
    pub file: Option<PathBuf>,
    /// `-F`: the files of the throughput mode, one a process.
    pub process_files: Vec<PathBuf>,
    /// `-I`: past the page cache.
    pub direct: bool,
    /// `-o`: each write on stable storage before it counts. The times of the file are not forced out with it, as with `-+D`.
    pub sync: bool,
    /// `-+r`: the same, for reads too: what they read is on stable storage first. On Linux that asks no more of them.
    pub read_sync: bool,
    /// `-+D`: the same.
    pub dsync: bool,
    /// `-e`: the way to stable storage counts.
    pub flush: bool,
    /// `-c`: closing counts. It takes microseconds on a local file system and is not timed apart from the last request.
    pub close: bool,
    /// `-t`: throughput mode with so many processes; several: one after another.
    pub children: Vec<u32>,
    /// `-l`, `-u`: throughput mode with every number of processes from the first to the second.
    pub child_range: (Option<u32>, Option<u32>),
    /// `-T`: threads and not processes. Here they are always threads; it changes the words of the report.
    pub threads: bool,
    /// `-H`, `-k`: asynchronous requests to this depth; true for `-k`, which in the original differs by a copy.
    pub asynchronous: Option<(bool, u32)>,
    /// `-B`: through mapped memory.
    pub mmap: bool,
    /// `-O`: operations per second.
    pub operations: bool,
    /// `-N`: microseconds an operation.
    pub microseconds: bool,
    /// `-R`: tables for a spreadsheet.
    pub excel: bool,
    /// Outputs replace files that halfpower did not make: its own `--force`.
    pub force: bool,
    /// `-b`: the same as a spreadsheet file.
    pub excel_file: Option<PathBuf>,
    /// `-M`: the report names the machine.
    pub machine: bool,
    /// `-w`: the test files stay.
    pub keep: bool,
    /// `-x`: processes that are done do not stop the others.
    pub no_stonewall: bool,
    /// `-V`: writes carry this pattern and reads check it.
    pub verify: Option<u8>,
    /// `-p`: the processor's cache is emptied before each test.
    pub purge: bool,
    /// `-U`: the mount point that the original unmounts and mounts again, so that each test begins with nothing of its file in the page cache.
    pub uncached: Option<PathBuf>,
    /// `-S`: bytes of the processor's cache, for `-p`.
    pub cache_bytes: Option<u64>,
    /// `-L`: bytes of a line of it.
    pub line_bytes: Option<u64>,
    /// `-j`: records from one strided read to the next.
    pub stride: Option<u32>,
    /// `-J`: milliseconds between requests.
    pub think_ms: Option<u32>,
    /// `-P`: processes are bound to processors, from this one on.
    pub bind: Option<u32>,
    /// `-Q`: offset and latency of each request go to files.
    pub latency_files: bool,
    /// `-+u`: processor use is reported.
    pub cpu: bool,
    /// `-E`: where no test is named, 9 to 12 too.
    pub extensions: bool,
    /// `-C`: what each process did is reported.
    pub each_child: bool,
    /// `-+n`: no test is made a second time (rewrite, reread).
    pub no_retests: bool,
    /// `-+p`: percent of the processes of the mixed test that read; none: every other one.
    pub readers_percent: Option<u32>,
    /// `-+q`: seconds between tests.
    pub rest_s: Option<u32>,
    /// `-+m`: the list of the throughput mode's clients.
    pub client_list: Option<PathBuf>,
    /// What that list has ([`Options::with_clients`]).
    pub clients: Vec<Client>,
    /// `--json`: all of it as JSON in this file.
    pub json: Option<PathBuf>,
    /// `--html`: the rates over file and record sizes as surfaces, in a page.
    pub html: Option<PathBuf>,
    /// `--repeats`: runs of each test. Without it three, but a test that took more than a second is not repeated.
    pub repeats: Option<u32>,
    /// `--seed`: seeds the order of random tests and the data.
    pub seed: Option<u64>,
    /// `--destroy-data`: existing files or devices that may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// `--destroy-signature`: even if they bear a file system.
    pub destroy_signed: bool,
}

/// Kilobytes, or with `k`, `m`, `g` what it says, in bytes.
fn size(words: &str, text: &str, least: u64, most: u64) -> Result<u64> {
    let what = || shortened(words);
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "k" | "K" | "kB" | "KB" | "kb" => KIB,
        "m" | "M" | "MB" | "mb" => MIB,
        "g" | "G" | "GB" | "gb" => GIB,
        _ => return refuse(what(), "its unit is unknown", "write kilobytes, or a number with k, m or g"),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return refuse(what(), "it is not a size", "write kilobytes, or a number with k, m or g, such as 64k");
    }
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    match bytes {
        Some(bytes) if (least..=most).contains(&bytes) => Ok(bytes),
        _ => refuse(
            what(),
            format!("it is not between {} and {}", show_size(least), show_size(most)),
            "choose a size between them",
        ),
    }
}

/// The words of the command line, one option after another.
struct Words<'a> {
    words: std::slice::Iter<'a, String>,
    /// The word that is read.
    word: &'a str,
    /// What is left of a word such as `-Rac`.
    cluster: &'a str,
}

impl<'a> Words<'a> {
    /// The value of an option: the rest of its word, or the next word.
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

    /// The option with its value as their user wrote them, and the value.
    fn spelled(&mut self, option: &str) -> Result<(String, &'a str)> {
        let gap = if self.cluster.is_empty() { " " } else { "" };
        let value = self.value(option)?;
        Ok((format!("{option}{gap}{value}"), value))
    }

    fn number(&mut self, option: &str, least: u64, most: u64) -> Result<u64> {
        let (words, value) = self.spelled(option)?;
        number_of(&words, value, least, most)
    }

    fn size(&mut self, option: &str, least: u64, most: u64) -> Result<u64> {
        let (words, value) = self.spelled(option)?;
        size(&words, value, least, most)
    }

    fn path(&mut self, option: &str) -> Result<PathBuf> {
        match self.value(option)? {
            "" => refuse(option, "the name is empty", "give one"),
            text => Ok(text.into()),
        }
    }
}

const HELP_HINT: &str = "see halfpower iozone --help";

/// What IOzone knows and halfpower does not serve.
const NOT_SERVED: [NotServed; 25] = [
    ("D", "mapped memory is brought to stable storage at the end alone", "leave it out; -e includes that in the time"),
    ("G", "mapped memory is brought to stable storage at the end alone", "leave it out; -e includes that in the time"),
    ("K", "jitter in the order of reads is not served", "leave it out"),
    ("W", "locks on the file while it is used are not served", "leave it out"),
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
    ("Z", "a file is reached through calls or through mapped memory", "use -B, or leave it out"),
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

/// Reads the words after the program's name.
///
/// # Errors
/// An unknown or unsupported option, a value that makes no sense; each names the word.
pub fn parse(arguments: &[String]) -> Result<Options> {
    no_nul(arguments)?;
    let mut options = Options::default();
    let mut words = Words { words: arguments.iter(), word: "", cluster: "" };
    while let Some(word) = words.words.next() {
        if let Some(long) = word.strip_prefix("--") {
            options.long(long, &mut words)?;
            continue;
        }
        match word.strip_prefix('-') {
            Some(cluster) if !cluster.is_empty() => (words.word, words.cluster) = (word, cluster),
            _ => return refuse(shortened(word), "options begin with -", "name the test file with -f"),
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
    fn long(&mut self, name: &str, words: &mut Words<'_>) -> Result<()> {
        let (name, glued) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
        let option = format!("--{}", shortened(name));
        if name == "destroy-signature" && glued.is_none() {
            self.destroy_signed = true;
            return Ok(());
        }
        if !["json", "html", "repeats", "seed", "destroy-data"].contains(&name) {
            return refuse(
                option,
                "there is no such option",
                "halfpower's own are --json, --html, --repeats, --seed, --destroy-data and --destroy-signature",
            );
        }
        let value = match glued {
            Some(value) => value,
            None => words.value(&option)?,
        };
        match name {
            _ if value.is_empty() => return refuse(option, "its value is empty", "give one"),
            "json" => self.json = Some(value.into()),
            "html" => self.html = Some(value.into()),
            "repeats" => self.repeats = Some(number(&option, value, 1, 1000)? as u32),
            "seed" => self.seed = Some(number(&option, value, 0, u64::MAX)?),
            _ => self.destroy.push(value.into()),
        }
        Ok(())
    }

    fn short(&mut self, letter: char, words: &mut Words<'_>) -> Result<()> {
        let option = format!("-{letter}");
        let record = |words: &mut Words<'_>| words.size(&option, KIB, u64::from(MAX_REQUEST_BYTES));
        let file = |words: &mut Words<'_>| words.size(&option, KIB, MAX_FILE);
        let children = |words: &mut Words<'_>| words.number(&option, 1, u64::from(MAX_CHILDREN)).map(|n| n as u32);
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
                self.asynchronous = Some((letter == 'k', words.number(&option, 1, u64::from(MAX_DEPTH))? as u32))
            }
            'B' => self.mmap = true,
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
                // Every byte of every read is checked, against a pattern of our own where -V names none.
                "d" => self.verify = Some(self.verify.unwrap_or(DIAGNOSTIC)),
                "r" => self.read_sync = true,
                "p" => self.readers_percent = Some(words.number("-+p", 1, 100)? as u32),
                "q" => self.rest_s = Some(words.number("-+q", 0, 86_400)? as u32),
                "m" => self.client_list = Some(words.path("-+m")?),
                // The name under which clients of other computers find this one.
                "h" => drop(words.value("-+h")?),
                other => {
                    return refuse_option(&format!("-+{other}"), &format!("+{other}"), &NOT_SERVED, HELP_HINT);
                }
            },
            _ => {
                // In a word such as -Q1 what follows a letter that takes no value is an option of its own.
                let words = if words.word == option { option } else { format!("{option} (of {})", words.word) };
                return refuse_option(&words, &letter.to_string(), &NOT_SERVED, HELP_HINT);
            }
        }
        Ok(())
    }

    /// `-F` takes every word up to the next option.
    fn process_files(&mut self, words: &mut Words<'_>) -> Result<()> {
        self.process_files = vec![words.path("-F")?];
        while let Some(word) = words.words.as_slice().first().filter(|word| !word.starts_with('-')) {
            if word.is_empty() {
                return refuse("-F", "a name is empty", "give one");
            }
            self.process_files.push(word.into());
            words.words.next();
        }
        Ok(())
    }

    /// Whether the throughput mode is asked for.
    pub fn throughput(&self) -> bool {
        !self.children.is_empty() || self.child_range != (None, None)
    }

    /// The most processes that run side by side; 0 without the throughput mode.
    pub(super) fn most_children(&self) -> usize {
        let counts = self.children.iter().copied().chain(self.child_range.1).chain(self.child_range.0);
        counts.max().unwrap_or(0) as usize
    }

    fn check(&self) -> Result<()> {
        let above = |name: &str, (low, high): (Option<u64>, Option<u64>)| match (low, high) {
            (Some(low), Some(high)) if low > high => {
                refuse(name, format!("{} is above {}", show_size(low), show_size(high)), "give the smaller one first")
            }
            _ => Ok(()),
        };
        above("-n and -g", self.file_range)?;
        above("-y and -q", self.record_range)?;
        if let (Some(low), Some(high)) = self.child_range
            && low > high
        {
            return refuse("-l and -u", format!("{low} is above {high}"), "give the smaller one with -l");
        }
        if self.operations && self.microseconds {
            return refuse("-O and -N", "a figure is in one unit", "leave out one of the two");
        }
        if self.mmap && (self.direct || self.sync || self.read_sync || self.dsync || self.asynchronous.is_some()) {
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
            return refuse("-Q", "latency files are written for one process", "leave out -t, -l and -u");
        }
        if self.html.is_some() && self.throughput() {
            return refuse(
                "--html",
                "the throughput mode has no rates over file and record sizes",
                "leave out --html, or -t, -l and -u",
            );
        }
        if self.auto && self.throughput() {
            return refuse("-a", "the throughput mode has one file size and one record size", "leave out -a, or -t");
        }
        if self.client_list.is_some() && !self.throughput() {
            return refuse(
                "-+m",
                "clients are for the throughput mode",
                "add -t N, as many as there are clients at the most",
            );
        }
        let most = self.most_children();
        if !self.process_files.is_empty() && (self.process_files.len() < most || !self.throughput()) {
            let why = format!("{} files for {most} processes", self.process_files.len());
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
