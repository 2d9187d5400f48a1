//! `halfpower verify`: finds and names deliberate damage, and checks a killed run.

mod common;

use common::places::memory_directory;
use common::{
    HALFPOWER, alone, command, ended, finish, halfpower, number, points, skip, wait_until,
};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

const SIZE: u64 = 16 << 20;

/// Returns a file that a verifying run wrote once over, and its log.
fn written(directory: &Path, name: &str) -> (String, String) {
    let (file, log) = (directory.join(name), directory.join(format!("{name}.log")));
    fs::File::create(&file).unwrap().set_len(SIZE).unwrap();
    let (file, log) = (file.to_str().unwrap().to_owned(), log.to_str().unwrap().to_owned());
    let run = halfpower(&format!(
        "run {file} --destroy-data {file} --op write --pattern random --request 4k --depth 8 --buffered --bytes 16m --repeats 1 \
         --max-repeats 1 --verify --verify-log {log} --json"
    ))
    .good_json();
    let point = &points(&run)[0];
    assert_eq!(
        number(point, "/verification/checked_bytes"),
        SIZE as f64,
        "everything written is read back"
    );
    assert_eq!(point["verification"]["faults"], serde_json::json!({}));
    assert!(point["warnings"].to_string().contains("does not measure the target"), "{point:#}");
    (file, log)
}

/// Runs `verify`; returns the exit code, faults by kind, and the first fault in words.
fn verified(file: &str, log: &str) -> (Option<i32>, serde_json::Value, String) {
    let ended = halfpower(&format!("verify {log} {file} --json"));
    let document = ended.json();
    assert_eq!(document["schema"], "halfpower.verification/1");
    (ended.code, document["faults"].clone(), document["first_faults"].to_string())
}

#[test]
fn damage_is_found_and_named() {
    let directory = memory_directory();
    let (file, log) = written(directory.path(), "own");
    let (other, _) = written(directory.path(), "other");
    assert_eq!(verified(&file, &log).0, Some(0));
    let (own, other) = (
        OpenOptions::new().read(true).write(true).open(&file).unwrap(),
        fs::File::open(&other).unwrap(),
    );
    let block = |from: &fs::File, offset: u64| {
        let mut bytes = vec![0; 4096];
        from.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    };
    let whole = fs::read(&file).unwrap();
    let mut flipped = block(&own, 4096 * 1000);
    flipped[700] ^= 0x10;
    // The damage and the expected fault.
    for (at, bytes, kind, words) in [
        (4096 * 1000, flipped, "flipped", "flipped block at offset 4096512 (512 B): 1 bit differs"),
        (4096 * 10, block(&own, 4096 * 20), "misdirected", "generation 1 of offset 81920 is here"),
        (4096 * 30, block(&other, 4096 * 30), "stale", "a block of another run"),
        (4096 * 40, vec![0; 4096], "lost", "zeros, generation 1 was written"),
        (4096 * 50, vec![7; 4096], "foreign", "does not describe itself"),
    ] {
        own.write_all_at(&bytes, at).unwrap();
        let (code, faults, reported) = verified(&file, &log);
        assert_eq!(code, Some(1), "{kind}");
        assert_eq!(faults, serde_json::json!({ kind: 1 }), "{reported}");
        assert!(reported.contains(words), "{reported}");
        own.write_all_at(&whole, 0).unwrap();
    }
    assert_eq!(verified(&file, &log).0, Some(0));
}

#[test]
fn a_killed_run_is_verified_from_its_log() {
    let directory = memory_directory();
    let (file, log) = (directory.path().join("file"), directory.path().join("log"));
    fs::File::create(&file).unwrap().set_len(SIZE).unwrap();
    let (file, log) = (file.to_str().unwrap(), log.to_str().unwrap());
    let words = format!(
        "run {file} --destroy-data {file} --op mix --pattern random --request 8k --depth 16 --buffered --engine io_uring --runtime 60 \
         --verify --verify-log {log}"
    );
    let mut child = command(HALFPOWER, words.split_whitespace()).spawn().unwrap();
    wait_until("the log to grow", || fs::metadata(log).is_ok_and(|log| log.len() > 100_000));
    child.kill().unwrap();
    child.wait().unwrap();
    let (code, faults, reported) = verified(file, log);
    assert_eq!((code, &faults), (Some(0), &serde_json::json!({})), "{reported}");
    // A write that the log records as complete, but which is missing.
    OpenOptions::new()
        .write(true)
        .open(file)
        .unwrap()
        .write_all_at(&vec![0; SIZE as usize], 0)
        .unwrap();
    let (code, faults, _) = verified(file, log);
    assert_eq!(code, Some(1));
    assert!(faults["lost"].as_u64() > Some(0), "{faults}");
}

#[test]
fn unverifiable_targets_are_refused() {
    let directory = memory_directory();
    let at = directory.path().display();
    let (file, log) = written(directory.path(), "file");
    for (words, said) in [
        (
            format!("run {at} --buffered --op read --verify"),
            ["reads only with verification", "use write or mix"],
        ),
        (
            format!("run {at} --buffered --op write --verify --allocate extend"),
            ["the allocation extend", "use the allocation written"],
        ),
        (
            format!("run {at} --buffered --op write --verify --engine null --depth 2"),
            ["the engine null", "use another engine"],
        ),
        (
            format!("run {at} --buffered --op write --verify --compressible 50"),
            ["50 % compressible with verification", "leave out"],
        ),
        (format!("sweep {at} --buffered --op write --verify"), ["--verify", "use halfpower run"]),
        (
            format!(
                "run {file} --destroy-data {file} --buffered --op write --verify --verify-log {log}"
            ),
            [log.as_str(), "name a new file"],
        ),
        (format!("verify {file} {file}"), [file.as_str(), "not"]),
        (
            format!("verify {log} {log}"),
            ["wrote up to byte 16777216", "name the target that it wrote"],
        ),
        (format!("verify {log} twin:nvme"), ["stores no data", "name the file"]),
    ] {
        halfpower(&words).refused(&said);
    }
    let missing = finish(command(HALFPOWER, ["run", ".", "--verify-log", "x"]));
    missing.refused(&["--verify"]);
}

/// bench/verify_alarms.py runs 2,000 of these.
#[test]
fn intact_data_passes_and_damage_is_found() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/verify_alarms.py");
    let _alone = alone();
    let mut command = Command::new("python3");
    command
        .args([script, "--program", HALFPOWER, "--runs", "100"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ended = match command.spawn() {
        Ok(child) => ended(child),
        Err(error) => return skip(&format!("python3: {error}")),
    };
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("0 alarms, 0 by the log"), "{}", ended.stdout);
}
