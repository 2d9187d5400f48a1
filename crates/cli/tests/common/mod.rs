//! Runs the program and provides targets, all removed when dropped, even after a panic.

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

pub const HALFPOWER: &str = env!("CARGO_BIN_EXE_halfpower");

pub fn skip(why: &str) {
    assert_ne!(
        std::env::var("HALFPOWER_REQUIRE").as_deref(),
        Ok("all"),
        "required, and not possible here: {why}"
    );
    eprintln!("skipped: {why}");
}

#[macro_export]
macro_rules! or_skip {
    ($made:expr) => {
        match $made {
            Ok(made) => made,
            Err(why) => return $crate::common::skip(&why),
        }
    };
}

pub fn can_record() -> bool {
    use std::os::unix::fs::MetadataExt;
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let permitted = is_root && Path::new("/sys/kernel/tracing/instances").is_dir();
    if !permitted {
        skip("recording needs root and tracefs");
    }
    permitted
}

/// Serialises tests that measure, because they disturb each other.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub struct Ended {
    /// `None` if a signal ended the program.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn json(&self) -> Value {
        let document = serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("standard output is not a JSON document: {error}\n{self:?}")
        });
        assert_sound(&document);
        document
    }

    pub fn good_json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.json()
    }

    pub fn refused(&self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "bad input ends with 2: {self:?}");
        assert!(self.stdout.is_empty(), "nothing was measured: {self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "the message names '{word}':\n{}", self.stderr);
        }
    }
}

pub fn assert_sound(document: &Value) {
    if document["schema"] != results::SCHEMA {
        return;
    }
    let results: results::Results =
        serde_json::from_value(document.clone()).expect("a document of results");
    let broken: Vec<String> =
        results::rules::check(&results).iter().map(ToString::to_string).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

pub fn command<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    // Keep the tests out of the user's history.
    command
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("HALFPOWER_HISTORY", "none")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub fn finish(mut command: Command) -> Ended {
    ended(command.spawn().unwrap())
}

pub fn ended(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

pub fn halfpower(words: &str) -> Ended {
    finish(command(HALFPOWER, words.split_whitespace()))
}

pub fn halfpower_in(directory: &Path, words: &str) -> Ended {
    let mut command = command(HALFPOWER, words.split_whitespace());
    command.current_dir(directory);
    finish(command)
}

pub fn wait_until(what: &str, so: impl FnMut() -> bool) {
    wait_at_most(Duration::from_secs(20), what, so);
}

pub fn wait_at_most(time: Duration, what: &str, mut so: impl FnMut() -> bool) {
    let until = Instant::now() + time;
    while !so() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn test_files(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("halfpower-") && name.ends_with(".tmp")).collect()
}

pub fn number(document: &Value, pointer: &str) -> f64 {
    document
        .pointer(pointer)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no number at {pointer} in {document:#}"))
}

pub fn points(document: &Value) -> &[Value] {
    document["points"].as_array().unwrap()
}

pub fn has_numbers(point: &Value) -> bool {
    let fields = [
        "throughput_bytes_per_s",
        "iops",
        "latency_ns",
        "cpu_ns_per_request",
        "repeats",
        "achieved",
    ];
    let there = fields.map(|field| point.get(field).is_some());
    assert!(there.iter().all(|one| *one == there[0]), "all numbers or none: {point:#}");
    assert_ne!(there[0], point.get("error").is_some(), "numbers or an error: {point:#}");
    there[0]
}
