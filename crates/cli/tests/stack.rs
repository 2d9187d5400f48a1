//! `halfpower stack`: the layers under a target, advertised over achieved.

mod common;

use common::{halfpower, number};
use serde_json::Value;

fn stages(document: &Value) -> &Vec<Value> {
    assert_eq!(document["kind"], "stack");
    document["ladder"]["stages"].as_array().unwrap_or_else(|| panic!("no ladder: {document:#}"))
}

fn reads<'a>(document: &'a Value, kind: &str) -> &'a Value {
    let stage = stages(document).iter().find(|stage| stage["kind"] == kind);
    let stage = stage.unwrap_or_else(|| panic!("no {kind}: {:#}", document["ladder"]));
    stage["rates"].as_array().unwrap().iter().find(|rate| rate["op"] == "read").unwrap()
}

#[test]
fn the_bus_of_a_simulated_machine_is_the_limit() {
    let words = "stack twin:gateway-1997,disks=3";
    let document = halfpower(&format!("{words} --json")).good_json();
    assert_eq!(document["answer"]["limits"][0]["what"], "bus");
    let bus = reads(&document, "bus");
    assert_eq!(bus["narrowest"], true);
    assert!(number(bus, "/busy_percent") > 95.0 && number(bus, "/share_percent") < 95.0, "{bus:#}");
    for kind in ["processor", "memory", "page_cache", "buffered", "direct", "pci", "device"] {
        let rate = reads(&document, kind);
        assert!(number(rate, "/achieved/throughput_bytes_per_s") > 0.0, "{kind}");
        assert_eq!(rate["narrowest"], false, "{kind}");
    }
    let shown = halfpower(words).stdout;
    let marked =
        shown.lines().find(|line| line.starts_with("> bus")).unwrap_or_else(|| panic!("{shown}"));
    assert!(marked.contains('█') && marked.contains("MiB/s"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
}

#[test]
fn the_layers_of_a_directory() {
    let _one = common::alone();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let document =
        halfpower(&format!("stack {} --size 32m --budget 12s --json", directory.path().display()))
            .good_json();
    let buffered = stages(&document).iter().find(|stage| stage["kind"] == "buffered").unwrap();
    // On a busy machine a short budget may not reach the reads of data that are not cached.
    let rates = [&buffered["rates"][0], reads(&document, "memory"), reads(&document, "direct")];
    for (kind, rate) in ["buffered", "memory", "direct"].into_iter().zip(rates) {
        let achieved = &rate["achieved"];
        assert!(number(achieved, "/throughput_bytes_per_s") > 0.0, "{kind}");
        assert!(!achieved["formula"].as_str().unwrap().is_empty(), "{kind}");
    }
    let reported: Vec<&str> = buffered["settings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one[0].as_str().unwrap())
        .collect();
    assert!(
        reported.contains(&"block_bytes") && reported.contains(&"free_percent"),
        "{reported:?}"
    );
    assert!(std::fs::read_dir(directory.path()).unwrap().next().is_none(), "nothing is left");
}

#[test]
fn a_short_budget_is_refused() {
    let ended = halfpower("stack twin:nvme --budget 1s");
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("--budget 1"), "{}", ended.stderr);
}
