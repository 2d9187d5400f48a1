//! PostMark and operations on many files as arms of `compare` and as the workload of `tune`.

mod common;

use common::{halfpower_in, number};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn published(directory: &Path) {
    let commands = "# the published run\nset number 10000\nset transactions 20000\nset subdirectories 5\n\
        set size 500 100000\nset read 4096\nset write 4096\nrun\nquit\n";
    fs::write(directory.join("published.txt"), commands).unwrap();
}

fn small(directory: &Path) {
    let commands = "set number 50\nset transactions 100\nset size 500 2000\nrun\n";
    fs::write(directory.join("small.txt"), commands).unwrap();
}

fn difference<'a>(document: &'a Value, measure: &str) -> &'a Value {
    let all = document["differences"].as_array().unwrap();
    all.iter().find(|one| one["measure"] == measure).expect("a difference")
}

#[test]
fn a_ram_cache_halves_the_published_time_of_postmark() {
    let here = tempfile::tempdir().unwrap();
    published(here.path());
    let arms =
        "compare --postmark published.txt --a twin:laptop-xp --b twin:laptop-xp,ramcache=256m";
    let document = halfpower_in(here.path(), &format!("{arms} --json")).good_json();
    let time = difference(&document, "duration");
    // Published: 386 s without the cache, 196 s with it.
    let [without, with] = ["/a", "/b"].map(|side| number(time, side) * 1e-9);
    assert!((without / 386.0 - 1.0).abs() < 0.2, "{without} s");
    assert!((with / 196.0 - 1.0).abs() < 0.2, "{with} s");
    assert_eq!(time["verdict"], "better");
    let operations = document["differences"].as_array().unwrap();
    let kinds = operations.iter().filter(|one| one["measure"] == "operations").count();
    assert_eq!(kinds, 7, "each operation of the report");
    // Access times cost something, and no more than the published tuning gained in all.
    let tuned =
        "compare --postmark published.txt --a twin:laptop-xp,lastaccess=on --b twin:laptop-xp";
    let document = halfpower_in(here.path(), &format!("{tuned} --json")).good_json();
    let change = number(difference(&document, "duration"), "/change_percent");
    let all = (159.0 / 181.0 - 1.0) * 100.0;
    assert!(change < 0.0 && change > all, "{change} %, published in all: {all} %");
}

#[test]
fn tune_tries_the_knobs_of_a_simulated_windows_on_postmark() {
    let here = tempfile::tempdir().unwrap();
    small(here.path());
    let plan =
        halfpower_in(here.path(), "tune twin:laptop-xp --postmark small.txt --json").good_json();
    let knobs: Vec<&str> =
        plan["plan"].as_array().unwrap().iter().filter_map(|one| one["knob"].as_str()).collect();
    for knob in ["ramcache", "memory", "lastaccess", "wce"] {
        assert!(knobs.contains(&knob), "{knobs:?}");
    }
    assert!(!knobs.contains(&"request"), "PostMark decides its own requests: {knobs:?}");
    assert!(plan["tried"].as_array().unwrap().is_empty());
    // More than the cache lets wait for the disk.
    let commands = "set number 1000\nset transactions 2000\nset size 500 100000\nrun\n";
    fs::write(here.path().join("large.txt"), commands).unwrap();
    let words =
        "tune twin:laptop-xp --postmark large.txt --yes --knob lastaccess --knob ramcache=64m";
    let tuned = halfpower_in(here.path(), &format!("{words} --json")).good_json();
    let outcome = |knob: &str| {
        let tried = tuned["tried"].as_array().unwrap();
        tried.iter().find(|one| one["knob"] == knob).expect("a trial")["outcome"].clone()
    };
    assert_eq!(outcome("ramcache"), "helps", "{tuned}");
    assert_ne!(outcome("lastaccess"), "helps");
    let prove = tuned["prove"][0].as_str().unwrap().strip_prefix("halfpower ").unwrap().to_owned();
    assert!(prove.contains("--postmark large.txt") && prove.contains("ramcache=64m"), "{prove}");
    let again = halfpower_in(here.path(), &prove.replace('\'', ""));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
}

#[test]
fn directories_are_arms_and_keep_nothing() {
    let here = tempfile::tempdir().unwrap();
    small(here.path());
    for name in ["one", "two"] {
        fs::create_dir(here.path().join(name)).unwrap();
    }
    for what in ["--postmark small.txt", "--metadata=--files=40"] {
        let words = format!("compare {what} --a one --b two --budget 100ms --until 50% --json");
        let document = halfpower_in(here.path(), &words).good_json();
        let all = document["differences"].as_array().unwrap();
        let runs = all[0]["runs_a"].as_array().unwrap().len();
        assert!(runs >= 4 && runs.is_multiple_of(2), "{what}: {runs} runs");
        assert!(all.iter().any(|one| one["measure"] == "operations"), "{document}");
        for name in ["one", "two"] {
            let left = fs::read_dir(here.path().join(name)).unwrap().count();
            assert_eq!(left, 0, "{what} left files in {name}");
        }
    }
}

#[test]
fn mistakes_are_named_before_anything_runs() {
    let here = tempfile::tempdir().unwrap();
    small(here.path());
    fs::write(here.path().join("wrong.txt"), "set number many\nrun\n").unwrap();
    fs::write(here.path().join("loads.txt"), "load small.txt\nrun\n").unwrap();
    for (words, expected) in [
        ("compare --postmark small.txt --a nowhere --b twin:laptop-xp", ["nowhere", "directory"]),
        ("compare --postmark small.txt --a twin:laptop-xp#f --b twin:nvme", ["#f", "leave out"]),
        ("compare --postmark small.txt --a twin:xp --b twin:nvme", ["xp", "laptop-xp"]),
        ("compare --postmark wrong.txt --a twin:nas --b twin:nvme", ["line 1", "many"]),
        ("compare --postmark loads.txt --a twin:nas --b twin:nvme", ["line 1", "load"]),
        ("compare --postmark none.txt --a twin:nas --b twin:nvme", ["none.txt", "No such"]),
        (
            "compare --postmark small.txt --depth 8 --a twin:nas --b twin:nvme",
            ["--depth", "PostMark"],
        ),
        ("compare --metadata=--fils --a twin:nas --b twin:nvme", ["--metadata", "--fils"]),
        ("tune twin:laptop-xp --postmark small.txt --knob depth", ["depth", "knob of the machine"]),
        ("tune twin:laptop-xp --postmark small.txt --request 4k", ["--request", "PostMark"]),
    ] {
        halfpower_in(here.path(), words).refused(&expected);
    }
}

#[test]
fn windows_engines_are_refused_where_they_are_not() {
    let here = tempfile::tempdir().unwrap();
    for target in [".", "twin:nvme"] {
        let words = format!("run {target} --engine port --depth 2 --size 16m");
        halfpower_in(here.path(), &words).refused(&["engine port", "twin:gateway-1997", "threads"]);
    }
    let words = "sweep twin:gateway-1997 --engine threads,routines,port --depth 3 --request 8k --bytes 1m --json";
    let swept = halfpower_in(here.path(), words).good_json();
    assert_eq!(common::points(&swept).len(), 3);
}
