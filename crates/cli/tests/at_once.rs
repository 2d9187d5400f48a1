//! Workloads one at a time and concurrently: `run --each` and `run --beside`.

mod common;

use common::places::memory_directory;
use common::{halfpower, has_numbers, number, points};
use serde_json::Value;
use std::fs;

fn workloads(document: &Value) -> &[Value] {
    document["interference"]["workloads"].as_array().expect("they ran at once")
}

#[test]
fn a_scan_random_reads_and_a_log_share_one_simulated_disk() {
    let target = "twin:gateway-1997 --size 100m --runtime 5s";
    let scan = "--request 64k --depth 3";
    let alone = halfpower(&format!("run {target} {scan} --json")).good_json();
    let words = [
        "--beside",
        "--pattern random --request 8k",
        "--beside",
        "--op write --request 4k --dsync",
    ];
    let mut command = common::command(
        common::HALFPOWER,
        format!("run {target} {scan} --json").split_whitespace(),
    );
    command.args(words);
    let at_once = common::finish(command).good_json();
    assert_eq!(points(&at_once).len(), 3);
    assert_eq!(
        number(&points(&at_once)[0], "/throughput_bytes_per_s"),
        number(&points(&alone)[0], "/throughput_bytes_per_s"),
        "the first has its point to itself"
    );
    let mut rates = 0.0;
    for (place, one) in workloads(&at_once).iter().enumerate() {
        assert_eq!(number(one, "/point"), place as f64);
        let point = &points(&at_once)[place];
        assert!(
            number(one, "/throughput_bytes_per_s") < number(point, "/throughput_bytes_per_s"),
            "{one:#}"
        );
        assert!(number(one, "/latency_ns/p99") > number(point, "/latency_ns/p99"), "{one:#}");
        rates += number(one, "/throughput_bytes_per_s");
    }
    let together = number(&at_once, "/interference/throughput_bytes_per_s");
    assert!(
        (together / rates - 1.0).abs() < 1e-9,
        "all at once are the sum: {together} of {rates}"
    );
    let said = at_once["interference"]["sentence"].as_str().unwrap();
    assert!(
        said.contains("times that by itself") && said.contains("of the sum of each by itself"),
        "{said}"
    );
}

#[test]
fn each_target_has_its_own_result() {
    let directory = memory_directory();
    let names: Vec<String> = (0..3)
        .map(|index| directory.path().join(format!("{index}")).display().to_string())
        .collect();
    for name in &names {
        fs::write(name, vec![3; 4 << 20]).unwrap();
    }
    let run = halfpower(&format!(
        "run {} --each --buffered --request 64k --runtime 50ms --repeats 3 --max-repeats 3 --json",
        names.join(" ")
    ))
    .good_json();
    assert!(points(&run).len() == 3 && points(&run).iter().all(has_numbers));
    for (one, name) in workloads(&run).iter().zip(&names) {
        assert_eq!(one["target"].as_str(), Some(name.as_str()));
        assert_eq!(number(one, "/throughput_ratio/n_pairs"), 3.0, "round by round");
        assert!(number(one, "/p99_ratio/low") <= number(one, "/p99_ratio/mean"));
    }
    assert!(number(&run, "/interference/process_ns_per_mib") > 0.0);
    let shown = halfpower(&format!(
        "run {} --each --buffered --runtime 20ms --repeats 2 --max-repeats 2",
        names.join(" ")
    ));
    assert!(shown.code == Some(0) && shown.stdout.contains("all at once give"), "{shown:?}");
}

#[test]
fn incompatible_options_are_refused() {
    let directory = memory_directory();
    let file = directory.path().join("file");
    fs::write(&file, vec![3; 4 << 20]).unwrap();
    let file = file.display().to_string();
    for (words, named) in [
        (vec!["run", &file, "--each"], "name several"),
        (vec!["run", &file, &file, "--each", "--chunk", "4k"], "each target separately"),
        (vec!["run", &file, "--beside", "--request 4k", "--bytes", "1m"], "--runtime"),
        (vec!["run", &file, "--beside", "--request 4k --runtime 2s"], "belongs to the whole run"),
        (vec!["run", &file, "--beside", "--request 4k other"], "a target belongs to the whole run"),
        (vec!["run", &file, "--beside", "--request 4k,8k"], "one value"),
        (vec!["run", &file, "--beside", "--op wite"], "wite"),
        (vec!["run", &file, "--beside", "--op write"], "only read"),
        (vec!["sweep", &file, "--beside", "--op read"], "halfpower run"),
        (vec!["tune", &file, "--beside", "--op read"], "halfpower run"),
    ] {
        common::finish(common::command(common::HALFPOWER, words)).refused(&[named]);
    }
    assert_eq!(fs::read(&file).unwrap(), vec![3; 4 << 20], "nothing was written");
}
