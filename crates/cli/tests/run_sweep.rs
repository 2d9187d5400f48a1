//! `halfpower run` and `halfpower sweep` do what the options say.

#[macro_use]
mod common;

use common::{HALFPOWER, command, finish, halfpower, has_numbers, number, points, test_files};
use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use workload::{Cursor, Pattern, Sequence, Workload};

#[test]
fn exactly_the_requested_bytes_are_transferred() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    for (options, requests) in [
        ("--request 64k --bytes 4m", 64),
        ("--request 4k --bytes 1m --op write --depth 8", 256),
        ("--request 4k --bytes 1m --pattern random --threads 2", 256),
        ("--request 16k --bytes 1m --op mix --pattern zipf:1.1 --buffered", 64),
    ] {
        let document =
            halfpower(&format!("run {at} --size 8m {options} --repeats 2 --max-repeats 2 --json"))
                .good_json();
        assert_eq!(number(&document, "/points/0/repeats"), 2.0);
        assert_eq!(
            number(&document, "/points/0/achieved/requests"),
            f64::from(2 * requests),
            "{options}"
        );
        assert_eq!(
            number(&document, "/points/0/latency_ns/count"),
            f64::from(2 * requests),
            "{options}"
        );
    }
    assert!(test_files(directory.path()).is_empty());
}

#[test]
fn a_sweep_is_every_combination_in_order() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let words = "--op read,write --request 4k,64k --depth 1,4 --threads 1,2 --bytes 512k --size 8m --repeats 1 --max-repeats 1 --json";
    let document = halfpower(&format!("sweep {} {words}", directory.path().display())).good_json();
    let of = |point: &serde_json::Value| {
        let workload = &point["workload"];
        (
            workload["op"].to_string(),
            workload["threads"].as_u64(),
            workload["depth"].as_u64(),
            workload["request_bytes"].as_u64(),
        )
    };
    let grid: Vec<_> = points(&document).iter().map(of).collect();
    let mut expected = Vec::new();
    for op in ["\"read\"", "\"write\""] {
        for threads in [1, 2] {
            for depth in [1, 4] {
                for request in [4096, 65536] {
                    expected.push((op.to_string(), Some(threads), Some(depth), Some(request)));
                }
            }
        }
    }
    assert_eq!(grid, expected);
    assert!(points(&document).iter().all(has_numbers), "{document:#}");
}

#[test]
fn every_engine_and_allocation_works_on_a_directory() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    let engines = "--op read,write --engine sync,threads,io_uring,libaio,mmap --buffered";
    let states =
        "--op write --allocate written,reserved,extend,truncate --buffered --end-fdatasync";
    for (options, count) in [(engines, 10), (states, 4)] {
        let document = halfpower(&format!(
            "sweep {at} --size 4m {options} --bytes 1m --repeats 1 --max-repeats 1 --json"
        ))
        .good_json();
        assert_eq!(points(&document).len(), count);
        for point in points(&document) {
            assert!(has_numbers(point), "{point:#}");
            assert_eq!(number(point, "/achieved/bytes"), f64::from(1 << 20), "{point:#}");
        }
    }
    assert!(test_files(directory.path()).is_empty());
}

#[test]
fn rate_and_think_time_slow_a_run_down() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    let rated = halfpower(&format!(
        "run {at} --size 4m --request 4k --bytes 200k --rate 200 --repeats 1 --max-repeats 1 --json"
    ))
    .good_json();
    // 50 requests have 49 intervals of 5 ms, however fast the target is.
    assert!(number(&rated, "/points/0/iops") <= 50.0 / 0.245 * 1.01, "{rated:#}");
    let thinking = halfpower(&format!(
        "run {at} --size 4m --request 4k --bytes 80k --think 5ms --repeats 1 --max-repeats 1 --json"
    ))
    .good_json();
    assert!(number(&thinking, "/points/0/iops") <= 20.0 / 0.095 * 1.01, "{thinking:#}");
}

#[test]
fn the_terminal_shows_the_documents_numbers() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let ended = halfpower(&format!("run {} --size 4m --bytes 1m", directory.path().display()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("MiB/s") && !ended.stdout.contains('\u{1b}'), "{}", ended.stdout);
    let listed =
        halfpower(&format!("run {} --size 4m --request 4k,8k", directory.path().display()));
    listed.refused(&["--request", "2", "halfpower sweep"]);
}

#[test]
fn a_seed_determines_the_sequence() {
    let region = (0, 64 << 20);
    let fingerprint = |pattern: Pattern, seed: u64, stream: u32| {
        let workload = Workload {
            pattern,
            seed,
            read_percent: 60,
            request_bytes: 4096,
            threads: 3,
            ..Workload::default()
        };
        Sequence::new(&workload, region, stream, Cursor::Own).unwrap().fingerprint(5000)
    };
    let hot = Pattern::HotCold { hot_percent: 10, access_percent: 90 };
    let bell = Pattern::Normal { deviation_percent: 20.0, center_percent: 25.0, scattered: false };
    for pattern in [
        Pattern::Seq,
        Pattern::Random,
        Pattern::Backward,
        Pattern::Stride(8192),
        Pattern::Zipf(1.1),
        Pattern::Pareto(0.2),
        bell,
        hot,
    ] {
        for stream in 0..3 {
            assert_eq!(
                fingerprint(pattern, 7, stream),
                fingerprint(pattern, 7, stream),
                "{pattern:?}"
            );
            assert_ne!(
                fingerprint(pattern, 7, stream),
                fingerprint(pattern, 8, stream),
                "{pattern:?}"
            );
        }
        assert_ne!(fingerprint(pattern, 7, 0), fingerprint(pattern, 7, 1), "{pattern:?}");
    }
}

#[test]
fn skewed_patterns_are_measured() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    let words = format!(
        "sweep {at} --size 4m --pattern zipf:1.2,pareto:0.2,normal:20,normal:10:25 --request 4k --bytes 1m --buffered --repeats 1 --json"
    );
    let document = halfpower(&words).good_json();
    let patterns: Vec<String> = common::points(&document)
        .iter()
        .map(|point| point["workload"]["pattern"].to_string())
        .collect();
    assert_eq!(patterns.len(), 4);
    assert!(
        patterns[1].contains("pareto") && patterns[3].contains("\"center_percent\":25.0"),
        "{patterns:?}"
    );
    halfpower(&format!("run {at} --pattern pareto:2"))
        .refused(&["pareto share 2", "between 0 and 1"]);
    halfpower(&format!("run {at} --pattern normal:x")).refused(&["normal:20"]);
}

#[test]
fn runs_with_the_same_seed_are_identical() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let mut left: HashMap<u64, Vec<u64>> = HashMap::new();
    for seed in [5, 5, 6] {
        let file = directory.path().join("data");
        fs::write(&file, vec![1; 2 << 20]).unwrap();
        let name = file.to_str().unwrap();
        let words = format!(
            "run {name} --destroy-data {name} --op write --pattern random --request 4k --bytes 1m --repeats 1 --max-repeats 1 --json --seed {seed}"
        );
        let document = finish(command(HALFPOWER, words.split(' '))).good_json();
        assert_eq!(document["seed"], seed);
        left.entry(seed).or_default().push(hash(&file));
    }
    assert_eq!(left[&5][0], left[&5][1]);
    assert_ne!(left[&5][0], left[&6][0]);
}

fn hash(file: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    fs::read(file).unwrap().hash(&mut hasher);
    hasher.finish()
}

#[test]
fn a_latency_goal_finds_the_depth() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    let usual = "--size 16m --request 4k --pattern random --runtime 20ms --repeats 2 --max-repeats 2 --precision 50";
    // On any machine everything is within an hour, and nothing within a nanosecond.
    let document = halfpower(&format!("sweep {at} {usual} --p99 1h --json")).good_json();
    let goal = &document["latency_goals"][0];
    let best = goal["best"].as_u64().expect("a depth holds") as usize;
    assert!(goal["beyond"].is_null() && goal["sure"] == true, "{goal}");
    let rates: Vec<f64> =
        points(&document).iter().map(|point| number(point, "/throughput_bytes_per_s")).collect();
    let max = rates.iter().copied().fold(0.0, f64::max);
    assert!(rates[best] >= 0.99 * max, "{rates:?}");
    assert!(rates.len() > 1, "more than one depth was tried");
    let document = halfpower(&format!("sweep {at} {usual} --p99 1ns --json")).good_json();
    let goal = &document["latency_goals"][0];
    assert!(goal["best"].is_null() && goal["beyond"] == 0, "{goal}");
    assert!(goal["sentence"].as_str().unwrap().starts_with("no rate of"), "{goal}");
    let document = halfpower(&format!("sweep {at} {usual} --p99 1ns --by rate --json")).good_json();
    let goal = &document["latency_goals"][0];
    assert!(goal["best"].is_null() && goal["rate_iops"].is_null(), "{goal}");
    assert!(goal["sentence"].as_str().unwrap().starts_with("no offered rate of"), "{goal}");
    let beyond = goal["beyond"].as_u64().expect("a rate was tried") as usize;
    let rates: Vec<f64> = points(&document)
        .iter()
        .filter_map(|point| point["workload"]["rate_iops"].as_f64())
        .collect();
    assert_eq!(
        points(&document)[beyond]["workload"]["rate_iops"],
        rates.iter().copied().fold(f64::MAX, f64::min)
    );
    assert!(rates.len() > 1, "a lower rate was tried: {rates:?}");
    let refused = halfpower(&format!("sweep {at} --by rate"));
    assert!(refused.code == Some(2) && refused.stderr.contains("give --p99"), "{}", refused.stderr);
    for (words, why) in [("run", "use halfpower sweep"), ("sweep --depth 2,4", "leave --depth out")]
    {
        let refused = halfpower(&format!("{words} {at} --p99 1ms"));
        assert!(
            refused.code == Some(2) && refused.stderr.contains(why),
            "{words}: {}",
            refused.stderr
        );
    }
}

#[test]
fn options_and_values_of_other_tools_get_ours() {
    for (line, words) in [
        ("run twin:hdd-20tb --rw randread", ["--rw", "--pattern"]),
        ("run twin:hdd-20tb --bs 4k", ["--bs", "--request"]),
        ("sweep twin:hdd-20tb --qd=32", ["--qd", "--depth"]),
        ("sweep twin:hdd-20tb --depth 1-32", ["1-32", "1,2,4,8,16,32"]),
        ("sweep twin:hdd-20tb --request 4k..64k", ["4k..64k", "4k,8k,16k,32k,64k"]),
        ("sweep twin:hdd-20tb --threads 3:7", ["3:7", "3,6,7"]),
        ("run twin:hdd-20tb --depth 1e3", ["1e3", "whole number"]),
    ] {
        halfpower(line).refused(&words);
    }
}

#[test]
fn targets_that_share_a_device_are_no_stripe() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    for name in ["a", "b"] {
        std::fs::create_dir(directory.path().join(name)).unwrap();
    }
    let document =
        halfpower(&format!("run {at}/a {at}/b --size 8m --runtime 50ms --json")).good_json();
    let first = document["warnings"][0].as_str().unwrap();
    assert!(first.starts_with("both targets are on") && first.contains("share it"), "{first}");
    let one = halfpower(&format!("run {at}/a --size 8m --runtime 50ms --json")).good_json();
    assert!(!one.to_string().contains("share it"));
}

#[test]
fn presets_run_by_name_and_say_whether_a_published_bar_holds() {
    for preset in tune::PROFILES {
        let run = format!("run twin:nvme --workload {} --runtime 50ms --json", preset.name);
        let document = halfpower(&run).good_json();
        let workloads = preset.workloads(machine::Engine::IoUring).len();
        assert_eq!(document["points"].as_array().unwrap().len(), workloads, "{}", preset.name);
        assert_eq!(document["interference"].is_object(), workloads > 1, "{}", preset.name);
        assert_eq!(
            document["latency_goals"].is_array(),
            preset.p99_ns.is_some(),
            "{}",
            preset.name
        );
    }
    // The device of 1997 needs a turn of the disk for a synced write.
    for (name, holds) in [("nvme", true), ("gateway-1997", false)] {
        let document = halfpower(&format!("run twin:{name} --workload etcd --json")).good_json();
        let goal = &document["latency_goals"][0];
        let p99 = document["points"][0]["latency_ns"]["p99"].as_u64().unwrap();
        assert_eq!(p99 <= 10_000_000, holds, "{p99}");
        assert_eq!(goal["best"].is_u64(), holds, "{goal}");
        let words = if holds { "the bar is met" } else { "the bar is not met" };
        assert!(goal["sentence"].as_str().unwrap().ends_with(words), "{goal}");
    }
    halfpower("run twin:nvme --workload etcd --request 4k").refused(&["--workload", "--request"]);
    halfpower("run twin:nvme --workload ectd").refused(&["etcd"]);
}

/// Stores to mapped memory do not know O_DSYNC.
#[test]
fn durable_writes_to_mapped_memory_are_flushed_one_by_one() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let flushes = |options: &str| -> Result<usize, String> {
        let words = format!(
            "-f -o {} -e trace=msync {HALFPOWER} run {} --size 1m --engine mmap --buffered --request 4k --bytes 256k \
             --repeats 1 --max-repeats 1 {options}",
            trace.display(),
            directory.path().display()
        );
        let mut command = command("strace", words.split_whitespace());
        let child = command.spawn().map_err(|error| format!("strace: {error}"))?;
        let ended = common::ended(child);
        if ended.code != Some(0) {
            return Err(format!("strace cannot trace here: {}", ended.stderr));
        }
        let lines = fs::read_to_string(&trace).unwrap();
        Ok(lines.lines().filter(|line| line.contains("MS_SYNC") && line.ends_with("= 0")).count())
    };
    assert_eq!(or_skip!(flushes("--op write --dsync")), 64);
    assert_eq!(or_skip!(flushes("--op write")), 0);
    let reads = or_skip!(flushes("--op mix --read-percent 50 --dsync"));
    assert!((1..64).contains(&reads), "only writes are flushed: {reads}");
}

#[test]
fn a_value_in_the_place_of_a_target_gets_a_hint() {
    for (line, hint) in [
        ("sweep . --request 4k 64k", "64k: no such file, directory or device; an option takes one"),
        ("run --op read write", "a list of them has commas"),
        ("study s3://bucket/data", "only files, directories and block devices"),
        ("run ~/data", "~/data: no such file, directory or device; the shell has not replaced ~"),
        ("run . --json out.json", "write --json > out.json"),
        ("run . --json=out.json", "write --json > out.json"),
        ("stack 4k", "4k: no such file"),
        ("run . --depth -1", "-1: it is below 0"),
        ("history show abc", "'abc' for '<ID>...': it is not a whole number"),
    ] {
        halfpower(line).refused(&[hint]);
    }
}
