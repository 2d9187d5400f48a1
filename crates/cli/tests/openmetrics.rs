//! `--openmetrics`: files for node_exporter's textfile collector, read by Prometheus' own parsers.

mod common;

use common::{HALFPOWER, command, finish, halfpower, skip};
use report::openmetrics::OpenMetrics;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The parsers of Debian's python3-prometheus-client. The collector uses the second, which knows
/// less.
const PARSERS: &str = "
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as collector
text = open(sys.argv[1]).read()
samples = lambda parse: [[s.name, s.labels, s.value] for f in parse(text) for s in f.samples]
ours = samples(openmetrics)
assert ours == samples(collector)
print(json.dumps(ours))
";

fn parsed(file: &Path) -> Option<Vec<(String, Value, f64)>> {
    const PYTHON: &str = "/usr/bin/python3";
    let known = Command::new(PYTHON).args(["-c", "import prometheus_client"]).output();
    if !known.is_ok_and(|output| output.status.success()) {
        skip("no python3-prometheus-client");
        return None;
    }
    let output = Command::new(PYTHON).args(["-c", PARSERS]).arg(file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn value(samples: &[(String, Value, f64)], name: &str) -> f64 {
    let mut found = samples.iter().filter(|sample| sample.0 == name);
    let one = found.next().unwrap_or_else(|| panic!("no {name}: {samples:?}"));
    assert!(found.next().is_none(), "several {name}: {samples:?}");
    one.2
}

#[test]
fn every_point_of_a_run_is_exported() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("run.prom");
    // Characters that the format escapes.
    let target = place.path().join("a\\b\"c");
    fs::create_dir(&target).unwrap();
    let run = |words: &str| {
        let mut run = command(HALFPOWER, ["run"]);
        run.arg(&target).args(words.split(' ')).arg("--openmetrics").arg(&file);
        finish(run).good_json()
    };
    run("--size 1m --bytes 64k --repeats 1 --json");
    // The next night replaces the file.
    let document = run("--workload log --size 1m --runtime 50ms --json");
    let Some(samples) = parsed(&file) else { return };
    let point = &document["points"][0];
    for (name, expected) in [
        (
            "halfpower_throughput_bytes_per_second",
            point["throughput_bytes_per_s"].as_f64().unwrap(),
        ),
        ("halfpower_requests_per_second", point["iops"].as_f64().unwrap()),
        ("halfpower_latency_p99_seconds", point["latency_ns"]["p99"].as_f64().unwrap() / 1e9),
        ("halfpower_points_measured", 1.0),
        ("halfpower_points_failed", 0.0),
    ] {
        let is = value(&samples, name);
        assert!((is / expected.max(1e-12) - 1.0).abs() < 1e-9 || is == expected, "{name} {is}");
    }
    for (name, labels, _) in &samples {
        assert_eq!(labels["target"], target.to_str().unwrap(), "{name}");
        assert!(OpenMetrics::names().contains(name), "{name}");
    }
    let labels = &samples[0].1;
    assert_eq!((&labels["op"], &labels["request_bytes"]), (&"write".into(), &"4096".into()));
}

#[test]
fn checks_studies_and_grids_are_exported() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let with = |words: &str, name: &str| {
        let mut run = command(HALFPOWER, words.split(' '));
        run.env("HALFPOWER_HISTORY", path("history.sqlite")).current_dir(place.path());
        run.arg("--openmetrics").arg(path(name));
        let ended = finish(run);
        assert_eq!(ended.code, Some(0), "{words}: {ended:?}");
        parsed(&path(name))
    };
    let Some(study) = with("study twin:nvme --quick", "study.prom") else { return };
    let rates = |samples: &[(String, Value, f64)]| {
        samples.iter().filter(|one| one.0 == "halfpower_throughput_bytes_per_second").count()
    };
    assert_eq!(rates(&study), 2, "the peaks of reads and writes");
    let check = with("check twin:nvme", "check.prom").unwrap();
    assert_eq!(value(&check, "halfpower_check_slower"), 0.0);
    let changes: Vec<f64> = check
        .iter()
        .filter(|one| one.0 == "halfpower_check_change_ratio")
        .map(|one| one.2)
        .collect();
    assert_eq!(changes.len(), rates(&check));
    assert!(changes.iter().all(|change| (0.9..1.1).contains(change)), "{changes:?}");
    // Points that differ in a setting without a label of its own are samples of their own.
    let sweep = with("sweep twin:nvme --offset 0,4k --depth 4,8 --reap 1,2", "sweep.prom").unwrap();
    // The simulated processor cannot wait for two completions.
    assert_eq!(rates(&sweep), 4);
    assert_eq!(value(&sweep, "halfpower_points_failed"), 4.0);
    let etcd = with("run twin:gateway-1997 --workload etcd", "etcd.prom").unwrap();
    assert_eq!(value(&etcd, "halfpower_latency_goal_met"), 0.0);
    let both = with("run twin:nvme --workload backup", "backup.prom").unwrap();
    assert_eq!(rates(&both), 2);
}

#[test]
fn metrics_never_replace_a_file_of_the_user() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("own.prom");
    fs::write(&file, "mine\n").unwrap();
    let name = file.display();
    halfpower(&format!("run twin:nvme --openmetrics {name}")).refused(&["--openmetrics"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n");
    halfpower(&format!("tune twin:nvme --openmetrics {name}.new")).refused(&["--openmetrics"]);
    assert!(!place.path().join("own.prom.new").exists());
}
