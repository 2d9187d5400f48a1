//! `halfpower plan`: a trace on simulated volumes.

mod common;

use common::{halfpower_in, number};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Returns a trace of 16 threads that read 8 KiB 250 times each without a pause: 6,000 reads per
/// second at 2.7 ms.
fn busy() -> String {
    let mut text = String::new();
    for thread in 1..=16 {
        for read in 0..250_u64 {
            let at = read * 2_700 + thread;
            let (offset, file) = ((read * 37 + thread) % 1000 * 8192, "/var/data");
            writeln!(
                text,
                "{thread} 1.{at:06} pread64(3<{file}>, \"\"..., 8192, {offset}) = 8192 <0.002700>"
            )
            .unwrap();
        }
    }
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_by_key(|line| line.split(' ').nth(1).map(str::to_owned));
    lines.join("\n") + "\n"
}

fn planned(directory: &Path, words: &str) -> Value {
    halfpower_in(directory, &format!("plan app {words} --json")).good_json()
}

fn elapsed(document: &Value, index: usize) -> f64 {
    number(document, &format!("/predictions/{index}/elapsed_s"))
}

#[test]
fn enough_iops_are_found_and_more_do_not_help() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("app"), busy()).unwrap();
    // 4,000 buffered cold reads of 8 KiB, most of them of their own blocks.
    let document = planned(at, "--on gp3,size=500g,twin:nvme");
    let schema = serde_json::from_str(&predict::plan::schema()).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&document), "{document}");
    let names: Vec<&str> = document["predictions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert!(names[0].contains("3000 IOPS") && names[names.len() - 1].contains("nvme"), "{names:?}");
    for one in document["predictions"].as_array().unwrap() {
        assert_eq!(one["source"].is_string(), one["size_gib"].is_number(), "{one}");
    }
    let text = halfpower_in(at, "plan app --on gp3,size=500g,twin:nvme");
    assert!(text.stdout.contains("Limits: AWS"), "{text:?}");
    assert!(text.stdout.contains("--recorded-on"), "{text:?}");
    // Nothing takes 100 % less time.
    let far = halfpower_in(at, "plan app --on twin:nvme,twin:gateway-1997");
    assert!(far.stdout.contains("nvme is ") && far.stdout.contains(" times as fast as"), "{far:?}");
}

#[test]
fn a_quota_is_the_limit_and_the_cheapest_keeps_the_goal() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("app"), busy()).unwrap();
    let mine = "[slow]\nabout = \"slow\"\nsource = \"a contract of 2026\"\ngib = [1, 100]\nrequest_bytes = 262144\niops = { min = 300, max = 300 }\nbytes_per_s = { min = 1e9, max = 1e9 }\nread_us = 500\nwrite_us = 500\n\n[fast]\nabout = \"fast\"\nsource = \"a contract of 2026\"\ngib = [1, 100]\nrequest_bytes = 262144\niops = { min = 3000, max = 3000 }\nbytes_per_s = { min = 1e9, max = 1e9 }\nread_us = 500\nwrite_us = 500\n";
    fs::write(at.join("mine.toml"), mine).unwrap();
    fs::write(at.join("prices.toml"), "[slow]\ngib = 0.01\n[fast]\ngib = 0.1\niops = 0.001\n")
        .unwrap();
    let words = "--catalogue mine.toml --on slow,size=10g,fast,size=10g --prices prices.toml";
    let document = planned(at, words);
    let ratio = elapsed(&document, 0) / elapsed(&document, 1);
    assert!((7.0..11.0).contains(&ratio), "{ratio}: {document}");
    assert_eq!(document["predictions"][0]["limit"]["name"], "volume quota", "{document}");
    assert!((number(&document, "/predictions/0/price_per_month") - 0.1).abs() < 1e-9);
    assert!((number(&document, "/predictions/1/price_per_month") - 4.0).abs() < 1e-9);
    let cheapest = |document: &Value| {
        let said = document["sentences"].as_array().unwrap().iter().filter_map(Value::as_str);
        said.filter(|one| one.starts_with("The cheapest")).map(str::to_owned).collect::<String>()
    };
    assert!(cheapest(&document).contains("slow"), "{document}");
    let document = planned(at, &format!("{words} --p99 data-read=20ms --recorded-on cloud"));
    assert_eq!(document["predictions"][0]["meets_goals"], false);
    assert!(cheapest(&document).contains("fast"), "{document}");
    assert!(document["model_error_percent"].is_number());
    let off = &document["model_p99_errors"][0];
    assert!(off["role"] == "data" && off["percent"].is_number(), "{document}");
    let sentences = document["sentences"].to_string();
    assert!(sentences.contains("time is off by") && sentences.contains("p99 of data-read"));
}

#[test]
fn a_plan_that_makes_no_sense_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("app"), "1,r,0,4096\n").unwrap();
    fs::write(at.join("bad.toml"), "[gp3]\ngib = -1\n").unwrap();
    for (words, expected) in [
        ("--on gp9", "gp9"),
        ("--on gp3,size=1g,iops=9000", "at most 3000"),
        ("--on gp3 --p99 wal=2ms", "log-sync=2ms"),
        ("--on gp3 --prices bad.toml", "must not be negative"),
        ("--on gp3 --prices none.toml", "none.toml"),
        ("--on gp3 --catalogue bad.toml", "bad.toml"),
    ] {
        halfpower_in(at, &format!("plan app {words}")).refused(&[expected]);
    }
}
