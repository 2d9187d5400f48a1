//! Request priorities, compared with Debian's fio: shares, reports, and the kernel's view.

mod common;

use common::fio::{FIO, fio_is_here, succeeds};
use common::{HALFPOWER, skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Requests by direction and priority, from the job's log and from its report; and the fields of a
/// report entry.
type Priorities = (BTreeMap<(u64, String), u64>, BTreeMap<(u64, String), u64>, Vec<String>);

fn priorities(ours: bool, options: &str) -> Priorities {
    let directory = tempfile::tempdir().unwrap();
    let words = "--name=j --size=8m --bs=4k --rw=randrw --direct=1 --iodepth=4 --write_lat_log=log --log_prio=1";
    let text = succeeds(ours, directory.path(), &format!("{words} {options} --output-format=json"));
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut logged = BTreeMap::new();
    for line in fs::read_to_string(directory.path().join("log_clat.1.log")).unwrap().lines() {
        let words: Vec<&str> = line.split(", ").collect();
        *logged.entry((words[2].parse().unwrap(), words[4].to_string())).or_default() += 1;
    }
    let (mut reported, mut fields) = (BTreeMap::new(), Vec::new());
    for (side, name) in [(0, "read"), (1, "write")] {
        for entry in document["jobs"][0][name]["prios"].as_array().unwrap() {
            let number = |name: &str| entry[name].as_u64().unwrap();
            let latency = entry.get("lat_ns").or(entry.get("clat_ns")).unwrap();
            let bits = number("prioclass") << 13 | number("prio");
            reported.insert((side, format!("{bits:#06x}")), latency["N"].as_u64().unwrap());
            fields = entry.as_object().unwrap().keys().cloned().collect();
        }
    }
    (logged, reported, fields)
}

#[test]
fn priorities_have_the_requested_shares() {
    if !fio_is_here() {
        return;
    }
    let by_size = "--cmdprio_bssplit=4k/20/2/3:4k/40/1/0,4k/10 --cmdprio_class=2 --cmdprio=5 --prio=6 --prioclass=2";
    for (options, shares) in [
        (
            "--ioengine=libaio --cmdprio_percentage=30",
            vec![((0, "0x2000"), 30), ((1, "0x2000"), 30)],
        ),
        (
            "--ioengine=io_uring --cmdprio_percentage=20,60 --cmdprio_class=2 --cmdprio=7",
            vec![((0, "0x4007"), 20), ((1, "0x4007"), 60)],
        ),
        (
            &format!("--ioengine=io_uring {by_size} --lat_percentiles=1"),
            vec![
                ((0, "0x4003"), 20),
                ((0, "0x2000"), 40),
                ((0, "0x4006"), 40),
                ((1, "0x4005"), 10),
            ],
        ),
    ] {
        let mut both = Vec::new();
        for ours in [true, false] {
            let (logged, reported, fields) = priorities(ours, options);
            assert_eq!(logged, reported, "halfpower: {ours}: {options}");
            for ((side, bits), share) in &shares {
                let of_side: u64 =
                    logged.iter().filter(|((of, _), _)| of == side).map(|(_, count)| count).sum();
                let is = logged[&(*side, bits.to_string())] as f64 * 100.0 / of_side as f64;
                assert!(
                    (is - f64::from(*share)).abs() < 7.0,
                    "halfpower: {ours}: {options}: {bits} {is} %"
                );
            }
            both.push((logged.into_keys().collect::<Vec<_>>(), fields));
        }
        assert_eq!(both[0], both[1], "{options}");
    }
}

#[test]
fn the_kernel_sees_the_priority_of_each_request() {
    if !fio_is_here() {
        return;
    }
    // Without these capabilities the kernel refuses requests of the first class, which proves that
    // it saw the priority.
    let setpriv = ["--bounding-set=-sys_admin,-sys_nice", "--inh-caps=-sys_admin,-sys_nice"];
    if !Command::new("setpriv")
        .args(setpriv)
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        return skip("setpriv gives no capability away here");
    }
    for engine in ["libaio", "io_uring"] {
        for (percent, error) in [("0", 0), ("100", 1)] {
            for program in [&[HALFPOWER, "fio"][..], &[FIO]] {
                let directory = tempfile::tempdir().unwrap();
                let words = "--name=j --size=64k --bs=4k --rw=write --direct=1 --output-format=json --output=out";
                let mut command = Command::new("setpriv");
                command
                    .args(setpriv)
                    .args(program)
                    .args(words.split(' '))
                    .current_dir(directory.path());
                command
                    .arg(format!("--ioengine={engine}"))
                    .arg(format!("--cmdprio_percentage={percent}"));
                command.env("HALFPOWER_HISTORY", "none").output().unwrap();
                let text = fs::read_to_string(directory.path().join("out")).unwrap();
                let document: Value =
                    serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
                assert_eq!(
                    document["jobs"][0]["error"], error,
                    "{program:?} {engine} {percent} %: {text}"
                );
            }
        }
    }
}
