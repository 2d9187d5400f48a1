//! The first line says how much a command writes, and `--max-written` limits it.

mod common;

use common::places::{Loop, Throttle};
use common::{HALFPOWER, alone, command, finish, halfpower};
use serde_json::Value;
use std::fs;
use std::path::Path;

const MIB: u64 = 1 << 20;

fn written(device: &str) -> u64 {
    let name = device.trim_start_matches("/dev/");
    let stat = fs::read_to_string(format!("/sys/class/block/{name}/stat")).unwrap();
    stat.split_whitespace().nth(6).unwrap().parse::<u64>().unwrap() * 512
}

fn first_line(stderr: &str) -> &str {
    stderr.lines().next().unwrap_or_default()
}

fn place(directory: &tempfile::TempDir) -> std::path::PathBuf {
    let place = directory.path().join("d");
    fs::create_dir(&place).unwrap();
    place
}

#[test]
fn the_first_line_says_how_much() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let at = place(&directory);
    let at = at.display();
    let mine = directory.path().join("mine");
    fs::write(&mine, vec![7; 1 << 20]).unwrap();
    let mine = mine.display();
    for (line, words) in [
        (
            format!("run {at} --size 4m --op write --bytes 4m --json"),
            "16.0 MiB to 44.0 MiB will be written to",
        ),
        (
            format!("run {at} --size 4m --op write --runtime 50ms --json"),
            "4.00 MiB, then all that fits into 500 ms of runs will be written to",
        ),
        (
            format!("run {at} --size 4m --op read --runtime 50ms --json"),
            "4.00 MiB will be written to",
        ),
        (
            format!("sweep {at} --size 4m --op write --request 4k,64k --bytes 1m --json"),
            "10.0 MiB to 24.0 MiB will be written to",
        ),
        (
            format!("metadata {at} --files 64 --file-bytes 1k --rounds 2"),
            "128 KiB will be written to",
        ),
        (
            format!("fio --name=a --filename={mine} --destroy-data={mine} --rw=write --size=1m"),
            "what the options ask for will be written to",
        ),
    ] {
        let ended = halfpower(&line);
        assert_eq!(ended.code, Some(0), "{line}: {}", ended.stderr);
        let first = first_line(&ended.stderr);
        assert!(first.contains(words), "{line}:\n{}", ended.stderr);
    }
    // Scripts expect nothing of fio on standard error.
    let ended = halfpower(&format!("fio --name=a --directory={at} --rw=write --size=2m"));
    assert_eq!(ended.stderr, "", "{}", ended.stderr);
    // What is only read is not written.
    let file = directory.path().join("there");
    fs::write(&file, vec![7; 1 << 20]).unwrap();
    let ended = halfpower(&format!("run {} --op read --runtime 50ms --json", file.display()));
    assert!(!ended.stderr.contains("will be written"), "{}", ended.stderr);
}

#[test]
fn more_than_allowed_is_refused_before_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let at = place(&directory);
    for line in [
        "--size 64m --op write --bytes 64m",
        "--size 64m --op read",
        "--size 8m --op write --bytes 8m",
    ] {
        halfpower(&format!("run {} {line} --max-written 10m", at.display()))
            .refused(&["--max-written 10 MiB", "writes"]);
        assert_eq!(fs::read_dir(&at).unwrap().count(), 0, "{line}");
    }
    halfpower(&format!("metadata {} --files 1000 --file-bytes 64k --max-written 1m", at.display()))
        .refused(&["--max-written"]);
    halfpower(&format!("fio --max-written x --name=a --directory={} --rw=write", at.display()))
        .refused(&["--max-written x"]);
}

#[test]
fn runs_end_at_the_limit() {
    let _alone = alone();
    let device = or_skip!(Loop::make(64 * MIB));
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().display();
    let name = &device.device;
    let destroy = format!("{name} --destroy-data {name}");
    for (line, most, codes) in [
        (
            format!("run {destroy} --size 8m --op write --runtime 2s --max-written 24m --json"),
            24,
            [0, 1],
        ),
        (
            format!(
                "sweep {destroy} --size 8m --op write --request 4k,64k,1m --runtime 1s --max-written 24m --json"
            ),
            24,
            [1, 1],
        ),
        (
            format!(
                "study {destroy} --size 16m --quick --budget 8s --max-written 512m --output {output} --json"
            ),
            512,
            [0, 0],
        ),
        (
            format!(
                "fio --max-written 10m --name=a --filename={name} --destroy-data={name} --rw=write --size=32m --bs=1m --direct=1"
            ),
            10,
            [1, 1],
        ),
    ] {
        let before = written(name);
        let ended = halfpower(&line);
        assert!(
            codes.contains(&ended.code.unwrap_or(-1)),
            "{line}: {:?} {}",
            ended.code,
            ended.stderr
        );
        let all = written(name) - before;
        assert!(all <= most * MIB, "{line}: {all} bytes");
        // How much a study writes depends on the machine.
        let least = if most > 100 { 0 } else { most * MIB / 2 };
        assert!(all >= least, "{line}: only {all} bytes");
    }
    let study: Value = serde_json::from_str(
        &fs::read_to_string(Path::new(directory.path()).join("results.json")).unwrap(),
    )
    .unwrap();
    assert!(!study["answer"].is_null(), "a study with a limit answers");
}

#[test]
fn a_study_that_reaches_the_limit_says_so_first() {
    let _alone = alone();
    let device = or_skip!(Loop::make(64 * MIB));
    // At a known rate, so that the limit is reached in the middle on any machine.
    let _throttle =
        or_skip!(Throttle::set(&device, &[("write_bps", 40 * MIB), ("read_bps", 400 * MIB)]));
    let directory = tempfile::tempdir().unwrap();
    let name = &device.device;
    let limit = 60;
    let before = written(name);
    let ended = halfpower(&format!(
        "study {name} --destroy-data {name} --size 16m --quick --budget 12s --max-written {limit}m --output {}",
        directory.path().display()
    ));
    let all = written(name) - before;
    assert!(all <= limit * MIB && all > limit * MIB / 2, "{all} bytes: {}", ended.stderr);
    let words = "--max-written 60 MiB";
    let text = fs::read_to_string(directory.path().join("results.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let warnings = document["warnings"].to_string();
    assert!(warnings.contains("--max-written 60 MiB was reached"), "{warnings}");
    let in_text = ended.stdout.contains(words) || ended.stderr.contains(words);
    assert!(in_text, "{}\n{}", ended.stdout, ended.stderr);
    match ended.code {
        Some(0) => {
            let first = document["answer"]["doubts"][0].as_str().unwrap();
            assert!(first.contains(words) && first.contains("left out"), "{first}");
        }
        code => {
            assert_eq!(code, Some(1), "{}", ended.stderr);
            assert_eq!(document["incomplete"], true);
            assert!(ended.stderr.contains("the rest was not measured"), "{}", ended.stderr);
        }
    }
}

#[test]
fn a_resumed_command_counts_the_bytes_before() {
    let _alone = alone();
    let device = or_skip!(Loop::make(64 * MIB));
    let _throttle = or_skip!(Throttle::set(&device, &[("write_bps", 20 * MIB)]));
    let state = tempfile::tempdir().unwrap();
    let name = &device.device;
    let limit = 24;
    let line = format!(
        "sweep {name} --destroy-data {name} --size 8m --op write --request 64k,256k,1m --runtime 300ms --repeats 4 --max-written {limit}m --json"
    );
    let run = |line: &str| {
        let mut command = command(HALFPOWER, line.split_whitespace());
        command.env("HALFPOWER_STATE", state.path());
        finish(command)
    };
    let before = written(name);
    let stopped = run(&line);
    assert_eq!(stopped.code, Some(1), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("--resume goes on"), "{}", stopped.stderr);
    let resumed = run(&format!("{line} --resume"));
    assert_eq!(resumed.code, Some(1), "{}", resumed.stderr);
    let all = written(name) - before;
    // The target of 8 MiB is filled again.
    assert!(all <= (limit + 8) * MIB, "{all} bytes: {}", resumed.stderr);
}
