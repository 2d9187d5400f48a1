//! `pts`: plans, simulated drives, a throttled loop device, killed runs.

mod common;

use common::places::{Loop, Throttle};
use common::{HALFPOWER, alone, command, ended, halfpower};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/pts-1.json");
const MIB: u64 = 1 << 20;

fn assert_conforms(document: &Value) {
    let schema: Value = serde_json::from_str(&sustained::pts::pts_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn the_stored_schema_is_current() {
    let own = sustained::pts::pts_schema();
    if std::env::var("UPDATE").as_deref() == Ok("1") {
        fs::write(KEPT, &own).unwrap();
    }
    let kept = fs::read_to_string(KEPT).unwrap_or_default();
    assert!(
        kept == own,
        "schema/pts-1.json: UPDATE=1 cargo test -p halfpower --test pts rewrites it"
    );
}

#[test]
fn the_plan_of_a_4_tb_drive_has_hours_and_bytes() {
    let line = "pts iops --dry-run --capacity 4TB --assume-rate 1GB";
    let text = halfpower(line);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    for words in ["nvme format", "hdparm", "Preconditioning", "5 to 25", "4.7 h to 23 h"] {
        assert!(text.stdout.contains(words), "'{words}' in\n{}", text.stdout);
    }
    let plan = halfpower(&format!("{line} --json")).good_json();
    let phases = plan["estimate"]["phases"].as_array().unwrap();
    // Twice 4 TB at 1 GB/s, then 5 to 25 rounds of 56 minutes, half of whose requests are writes.
    let near = |value: &Value, truth: f64| {
        let value = value.as_f64().unwrap();
        assert!((value / truth - 1.0).abs() < 1e-3, "{value} and not {truth}");
    };
    near(&phases[1]["seconds"][0], 8000.0);
    near(&phases[1]["max_written_bytes"], 8e12);
    near(&phases[2]["seconds"][0], 5.0 * 56.0 * 60.0);
    near(&phases[2]["seconds"][1], 25.0 * 56.0 * 60.0);
    near(&phases[2]["max_written_bytes"], 25.0 * 8.0 * 60.0 * 3.5 * 1e9);
    assert_eq!(phases[2]["cells"], 56);
    let cells = plan["plan"]["phases"][2]["cells"].as_array().unwrap();
    let tracking = plan["plan"]["phases"][2]["tracking"].as_u64().unwrap() as usize;
    assert_eq!(
        (&cells[tracking]["read_percent"], &cells[tracking]["block_bytes"]),
        (&0.into(), &4096.into())
    );
    for test in ["throughput", "latency", "wsat", "hir", "xsr", "dirth"] {
        let plan = halfpower(&format!("pts {test} --dry-run --capacity 4TB --json")).good_json();
        assert!(plan["estimate"]["seconds"][1].as_f64().unwrap() > 3600.0, "{test}");
    }
}

#[test]
fn every_test_of_a_simulated_drive_reports_its_tables() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().display();
    for (test, words) in [
        ("iops", "Random mixes and sizes: IOPS"),
        ("throughput", "sequential writes of 1 MiB"),
        ("latency", "Maximum latency"),
        ("wsat", "Random 4 KiB writes start"),
        ("hir", "Idle times"),
        ("xsr", "Sequential writes end"),
        ("dirth", "Response time histograms"),
    ] {
        let line = format!("pts {test} twin:nvme-qlc --scale 20000 --output {output}");
        let shown = halfpower(&line);
        assert_eq!(shown.code, Some(0), "{test}: {}", shown.stderr);
        assert!(shown.stdout.contains(words), "{test}: '{words}' in\n{}", shown.stdout);
        assert!(shown.stdout.contains("Not to the specification"), "{test}");
        assert!(
            shown.stderr.starts_with("halfpower: ") && shown.stderr.contains("will be written")
        );
        let text = fs::read_to_string(directory.path().join(format!("pts-{test}.json"))).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_conforms(&document);
        assert_eq!(document["complete"], true, "{test}");
        let page = fs::read_to_string(directory.path().join(format!("pts-{test}.html"))).unwrap();
        for words in ["Not to the specification", "Test conditions", "<svg", "2.0.2"] {
            assert!(page.contains(words), "{test}: '{words}'");
        }
    }
}

#[test]
fn bad_commands_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("precious");
    fs::write(&file, vec![7; 32 << 20]).unwrap();
    let output = directory.path().join("out");
    halfpower(&format!("pts iops {} --output {}", file.display(), output.display()))
        .refused(&["precious", "--destroy-data"]);
    assert!(fs::read(&file).unwrap().iter().all(|byte| *byte == 7));
    halfpower(&format!("pts iops {}", directory.path().display())).refused(&["--size"]);
    halfpower("pts iops twin:nvme --capacity 4TB").refused(&["--dry-run"]);
    halfpower("pts iops twin:nvme --scale 0.5").refused(&["0.5"]);
    halfpower(&format!("pts iops twin:nvme --resume --output {}", output.display()))
        .refused(&["--resume", "no iops test"]);
}

fn document(directory: &Path, test: &str) -> Value {
    let text = fs::read_to_string(directory.join(format!("pts-{test}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn tables(document: &Value) -> String {
    format!("{:#}", document["phases"])
}

fn delays(count: u64, max: Duration) -> impl Iterator<Item = Duration> {
    (0..count).map(move |at| max.mul_f64(workload::rng::unit(workload::rng::hash(11, at))))
}

#[test]
fn a_simulated_test_killed_20_times_has_the_same_tables() {
    let _alone = alone();
    let [whole, killed] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let line = |output: &Path| {
        format!("pts dirth twin:nvme-qlc --scale 3000 --output {}", output.display())
    };
    assert_eq!(halfpower(&line(whole.path())).code, Some(0));
    let mut resumed = 0;
    for delay in delays(20, Duration::from_millis(900)) {
        let there = killed.path().join("pts-dirth.json").exists();
        let resume = if there { " --resume" } else { "" };
        resumed += u32::from(there);
        let mut child =
            command(HALFPOWER, (line(killed.path()) + resume).split_whitespace()).spawn().unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        ended(child);
    }
    assert!(resumed > 5, "only {resumed} runs were resumed");
    let last = halfpower(&(line(killed.path()) + " --resume"));
    assert_eq!(last.code, Some(0), "{}", last.stderr);
    let [whole, killed] = [whole, killed].map(|at| document(at.path(), "dirth"));
    assert_eq!(tables(&whole), tables(&killed));
    assert_eq!(whole["steps"], killed["steps"]);
}

/// Limits requests per second, which decides all cells: the tables are known by hand.
#[test]
fn a_throttled_loop_device_killed_20_times_keeps_its_steps_and_its_tables() {
    let _alone = alone();
    let device = or_skip!(Loop::make(64 * MIB));
    let limit = 2000;
    let _throttle =
        or_skip!(Throttle::set(&device, &[("read_iops", limit), ("write_iops", limit)]));
    let directory = tempfile::tempdir().unwrap();
    let line = format!(
        "pts throughput {0} --destroy-data {0} --threads 2 --depth 16 --scale 200 --output {1}",
        device.device,
        directory.path().display()
    );
    let (mut kept, mut resumed): (Vec<Value>, u32) = (Vec::new(), 0);
    for delay in delays(20, Duration::from_millis(1200)) {
        let there = directory.path().join("pts-throughput.json").exists();
        let resume = if there { " --resume" } else { "" };
        resumed += u32::from(there);
        let mut child =
            command(HALFPOWER, (line.clone() + resume).split_whitespace()).spawn().unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        ended(child);
        if directory.path().join("pts-throughput.json").exists() {
            let steps = document(directory.path(), "throughput")["steps"].clone();
            let steps = steps.as_array().unwrap().clone();
            assert!(steps.starts_with(&kept), "a killed run loses no step that was kept");
            kept = steps;
        }
    }
    assert!(resumed > 5 && !kept.is_empty(), "{resumed} runs were resumed");
    halfpower(&line).refused(&["not complete", "--resume"]);
    let last = halfpower(&(line.clone() + " --resume --json"));
    let found = last.good_json();
    assert_conforms(&found);
    assert!(found["steps"].as_array().unwrap().starts_with(&kept));
    assert!(found["interruptions"].as_u64().unwrap() >= 5, "{}", found["interruptions"]);
    assert_eq!(found["complete"], true);
    // A request of 1 MiB may count as several.
    let matrix = found["phases"][1]["matrix"].as_array().unwrap();
    assert_eq!(matrix.len(), 2);
    for cell in matrix {
        let iops = cell["iops"].as_f64().unwrap();
        assert!((iops / limit as f64 - 1.0).abs() < 0.15, "{iops}: {cell:#}");
    }
    let sentences = found["sentences"].to_string();
    assert!(sentences.contains("interrupted and continued"), "{sentences}");
}

#[test]
fn bytes_allowed_are_never_exceeded() {
    let _alone = alone();
    let device = or_skip!(Loop::make(64 * MIB));
    let directory = tempfile::tempdir().unwrap();
    let line = format!(
        "pts iops {0} --destroy-data {0} --scale 1000 --max-written 100m --output {1}",
        device.device,
        directory.path().display()
    );
    let stopped = halfpower(&line);
    assert_eq!(stopped.code, Some(1), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("--max-written") && stopped.stderr.contains("--resume"));
    let found = document(directory.path(), "iops");
    assert!(found["written_bytes"].as_u64().unwrap() <= 100 * MIB);
    assert_eq!(found["complete"], false);
}
