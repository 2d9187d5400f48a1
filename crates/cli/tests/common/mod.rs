//! What the tests of the program share: running it, and places to run it on. Everything made here goes when it is dropped, on a panic too.

#![allow(dead_code)]

#[path = "../../../report/tests/support/browser.rs"]
pub mod browser;
pub mod fio;
pub mod places;

use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The program.
pub const HALFPOWER: &str = env!("CARGO_BIN_EXE_halfpower");

/// Tells that a test cannot be made here; a failure where everything is required.
pub fn skip(why: &str) {
    assert_ne!(std::env::var("HALFPOWER_REQUIRE").as_deref(), Ok("all"), "required, and not possible here: {why}");
    eprintln!("skipped: {why}");
}

/// The value, or an early return from the test that says what is missing.
#[macro_export]
macro_rules! or_skip {
    ($made:expr) => {
        match $made {
            Ok(made) => made,
            Err(why) => return $crate::common::skip(&why),
        }
    };
}

/// One test at a time: two that measure disturb one another.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the program left.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; none where a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Standard output as one JSON document and nothing else.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("standard output is no JSON document: {error}\n{self:?}"))
    }

    /// Ended well, with a document.
    pub fn good_json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.json()
    }

    /// Refused, as bad input is: exit code 2, nothing on standard output, and a sentence with all these words in it.
    pub fn refused(&self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "bad input ends with 2: {self:?}");
        assert!(self.stdout.is_empty(), "nothing was measured: {self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "the message names '{word}':\n{}", self.stderr);
        }
    }
}

/// The program with its output caught.
pub fn command<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    // The tests leave no trace in the history of who runs them.
    command
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("HALFPOWER_HISTORY", "none")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a program to its end.
pub fn finish(mut command: Command) -> Ended {
    ended(command.spawn().unwrap())
}

/// Waits for a program's end.
pub fn ended(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// Runs `halfpower`; words are divided at blanks.
pub fn halfpower(words: &str) -> Ended {
    finish(command(HALFPOWER, words.split_whitespace()))
}

/// Runs `halfpower` in a directory.
pub fn halfpower_in(directory: &Path, words: &str) -> Ended {
    let mut command = command(HALFPOWER, words.split_whitespace());
    command.current_dir(directory);
    finish(command)
}

/// Waits until something is so, at most 20 s.
pub fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !so() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Files that halfpower made in a directory, by name.
pub fn test_files(directory: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("halfpower-") && name.ends_with(".tmp")).collect()
}

/// A float of a document, by its JSON pointer.
pub fn number(document: &Value, pointer: &str) -> f64 {
    document
        .pointer(pointer)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no number at {pointer} in {document:#}"))
}

/// The points of a document.
pub fn points(document: &Value) -> &[Value] {
    document["points"].as_array().unwrap()
}

/// A point with an error has no numbers, one without has them all.
pub fn has_numbers(point: &Value) -> bool {
    let fields = ["throughput_bytes_per_s", "iops", "latency_ns", "cpu_ns_per_request", "repeats", "achieved"];
    let there = fields.map(|field| point.get(field).is_some());
    assert!(there.iter().all(|one| *one == there[0]), "all numbers or none: {point:#}");
    assert_ne!(there[0], point.get("error").is_some(), "numbers or an error: {point:#}");
    there[0]
}
