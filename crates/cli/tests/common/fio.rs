//! Runs the same options in halfpower and in Debian's fio.

use super::HALFPOWER;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

pub const FIO: &str = "/usr/bin/fio";

pub fn fio_is_here() -> bool {
    let here = Path::new(FIO).exists();
    if !here {
        super::skip("fio is not installed: apt-get install fio");
    }
    here
}

pub fn run(ours: bool, directory: &Path, arguments: &str) -> Output {
    let mut command = if ours { Command::new(HALFPOWER) } else { Command::new(FIO) };
    command.args(ours.then_some("fio")).args(arguments.split_whitespace()).current_dir(directory);
    command.env("HALFPOWER_HISTORY", "none").output().unwrap()
}

pub fn succeeds(ours: bool, directory: &Path, arguments: &str) -> String {
    let output = run(ours, directory, arguments);
    let who = if ours { "halfpower" } else { "fio" };
    assert!(
        output.status.success(),
        "{who} {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

pub fn jobs_of(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let begin = text
        .find('{')
        .unwrap_or_else(|| panic!("no document: {}", String::from_utf8_lossy(&output.stderr)));
    let document: Value = serde_json::from_str(&text[begin..]).unwrap();
    document["jobs"].as_array().unwrap().clone()
}
