//! Stripe sets on loop devices: RAID 5 survives the loss of any member.

mod common;

use common::places::{Loop, Throttle, memory_directory};
use common::{halfpower, number, points};
use std::fs;
use std::path::Path;

const MEMBER: u64 = 4 << 20;

fn names(set: &[Loop]) -> String {
    set.iter().map(|member| member.device.as_str()).collect::<Vec<_>>().join(" ")
}

fn verified(log: &Path, set: &[Loop], options: &str) -> Option<i32> {
    let ended = halfpower(&format!(
        "verify {} --raid 5 --chunk 16k {} {options} --json",
        log.display(),
        names(set)
    ));
    let found = ended.json();
    assert_eq!(number(&found, "/checked_bytes"), (MEMBER * (set.len() as u64 - 1)) as f64);
    ended.code
}

#[test]
fn a_raid_5_set_survives_any_lost_member_and_its_rebuild() {
    let set: Result<Vec<Loop>, String> = (0..4).map(|_| Loop::make(MEMBER)).collect();
    let set = or_skip!(set);
    let directory = memory_directory();
    let destroy: String =
        set.iter().map(|member| format!(" --destroy-data {}", member.device)).collect();
    let write = |log: &Path, options: &str| {
        let run = halfpower(&format!(
            "run {} {destroy} --raid 5 --chunk 16k --op write --pattern random --request 12k --depth 8 --threads 2 --bytes 24m \
             --repeats 1 --max-repeats 1 --verify --verify-log {} --json {options}",
            names(&set),
            log.display()
        ))
        .good_json();
        let point = &points(&run)[0];
        assert_eq!(point["verification"]["faults"], serde_json::json!({}));
        assert!(number(point, "/achieved/parity_ns_per_mib") > 0.0, "{point:#}");
        run
    };
    let log = directory.path().join("whole");
    let run = write(&log, "");
    assert_eq!(run["target"]["raid5"], serde_json::json!({ "rebuild": false }));
    assert_eq!(number(&run, "/target/size_bytes"), (3 * MEMBER) as f64);
    for (member, lost) in set.iter().enumerate() {
        assert_eq!(
            verified(&log, &set, &format!("--failed {member}")),
            Some(0),
            "without member {member}"
        );
        fs::write(&lost.device, vec![0xa5; MEMBER as usize]).unwrap();
        assert_eq!(verified(&log, &set, ""), Some(1), "what was overwritten is missed");
        assert_eq!(
            verified(&log, &set, &format!("--failed {member}")),
            Some(0),
            "and not asked for"
        );
        let rebuild = halfpower(&format!(
            "run {} --raid 5 --chunk 16k --failed {member} --rebuild --destroy-data {} --op write --request 64k --depth 4 \
             --bytes {MEMBER} --repeats 1 --max-repeats 1 --json",
            names(&set),
            lost.device
        ))
        .good_json();
        assert_eq!(number(&rebuild, "/target/size_bytes"), MEMBER as f64);
        assert_eq!(verified(&log, &set, ""), Some(0), "it holds again what it held");
    }
    // Data written while a member is missing.
    let log = directory.path().join("degraded");
    write(&log, "--failed 1");
    for lost in [0, 2, 3] {
        assert_eq!(
            verified(&log, &set, &format!("--failed {lost}")),
            Some(1),
            "member 1 has none of it"
        );
    }
    assert_eq!(verified(&log, &set, "--failed 1"), Some(0));
}

/// Checks that a request's own reads give the lost data: three survivors of 10 MiB/s give 30, and
/// 20 if each were read twice.
#[test]
fn survivors_are_read_once() {
    const LIMIT: u64 = 10 << 20;
    let set: Result<Vec<Loop>, String> = (0..4).map(|_| Loop::make(8 << 20)).collect();
    let set = or_skip!(set);
    let limit = |member: &Loop| Throttle::set(member, &[("read_bps", LIMIT)]);
    let throttles: Result<Vec<Throttle>, String> = set.iter().map(limit).collect();
    let _throttles = or_skip!(throttles);
    let run = halfpower(&format!(
        "run {} --raid 5 --chunk 64k --failed 1 --request 192k --depth 8 --runtime 2s --repeats 1 --max-repeats 1 --json",
        names(&set)
    ))
    .good_json();
    let share = number(&points(&run)[0], "/throughput_bytes_per_s") / (3 * LIMIT) as f64;
    assert!((0.85..1.15).contains(&share), "{share} of the survivors' rate");
}

#[test]
fn parity_time_is_reported_if_parity_is_computed() {
    let directory = memory_directory();
    let files: Vec<String> = (0..3)
        .map(|index| directory.path().join(format!("{index}")).display().to_string())
        .collect();
    for file in &files {
        fs::write(file, vec![7; MEMBER as usize]).unwrap();
    }
    let destroy: String = files.iter().map(|file| format!(" --destroy-data {file}")).collect();
    let run = |options: &str| {
        let words = format!(
            "run {} {destroy} --buffered --request 64k --bytes 4m --repeats 1 --max-repeats 1 --json {options}",
            files.join(" ")
        );
        halfpower(&words).good_json()
    };
    let parity =
        |run: &serde_json::Value| points(run)[0]["achieved"]["parity_ns_per_mib"].is_number();
    assert!(parity(&run("--raid 5 --op write")));
    assert!(parity(&run("--raid 5 --failed 0")), "a failed member's data are computed");
    assert!(!parity(&run("--raid 5")));
    assert!(!parity(&run("--raid 0 --op write")));
}

#[test]
fn invalid_sets_are_refused() {
    let directory = memory_directory();
    let files: Vec<String> = (0..3)
        .map(|index| directory.path().join(format!("{index}")).display().to_string())
        .collect();
    for file in &files {
        fs::write(file, vec![7; MEMBER as usize]).unwrap();
    }
    let (two, three) = (files[..2].join(" "), files.join(" "));
    for (words, named) in [
        (format!("run --raid 5 {two}"), "at least 3 members"),
        (format!("run --raid 5 --failed 3 {three}"), "the first is 0"),
        (format!("run --raid 0 --failed 1 {three}"), "--raid 5"),
        (format!("run --raid 5 --rebuild {three}"), "--failed"),
        (format!("run --raid 6 {three}"), "possible values: 0, 5"),
        ("run --raid 5 twin:gateway-1997".to_owned(), "raid=5"),
    ] {
        halfpower(&words).refused(&[named]);
    }
    for file in &files {
        assert!(fs::read(file).unwrap().iter().all(|&byte| byte == 7), "{file} is as it was");
    }
}
