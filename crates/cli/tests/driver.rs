//! The load generator against known truths: kernel limits, its own ceiling, its memory. `bench/`
//! tests its cost.

mod common;

use common::places::{Loop, Throttle, memory_directory};
use common::{HALFPOWER, alone, command, halfpower, number, points, skip};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Linux admits throttled requests in slices of 100 ms; a run of 2 s that starts late by a quarter
/// of one has this error.
const TOLERANCE: f64 = 0.03;

/// The number of runs, of which the median counts: one that is late by half a slice gets a burst of
/// 5 %.
const RUNS: usize = 3;

fn point(words: &str) -> Value {
    let run = halfpower(words).good_json();
    points(&run)[0].clone()
}

fn rate(point: &Value) -> f64 {
    number(point, "/throughput_bytes_per_s")
}

fn is_near(is: f64, should: f64, tolerance: f64) -> bool {
    (is / should - 1.0).abs() <= tolerance
}

fn assert_near(what: &str, is: f64, should: f64, tolerance: f64) {
    assert!(is_near(is, should, tolerance), "{what}: {is:.0}, and {should:.0} is the truth");
}

#[test]
fn throttled_devices_are_as_fast_as_their_limits() {
    let _one = alone();
    let device = or_skip!(Loop::make(256 << 20));
    let limits = [
        ("read_bps", 20_000_000),
        ("read_iops", 2000),
        ("write_bps", 10_000_000),
        ("write_iops", 1000),
    ];
    let _throttle = or_skip!(Throttle::set(&device, &limits));
    let at = &device.device;
    // Small requests meet the IOPS limit, large ones the throughput limit.
    for (op, request, wanted) in [
        ("read", "4k", 2000.0 * 4096.0),
        ("read", "256k", 20e6),
        ("write", "4k", 1000.0 * 4096.0),
        ("write", "128k", 10e6),
    ] {
        let engines = [
            "io_uring --depth 8",
            "threads --depth 4",
            "libaio --depth 8",
            "sync --depth 1 --threads 2",
        ];
        // There are few large requests, so two engines are enough.
        for engine in &engines[..if request == "4k" { 4 } else { 2 }] {
            let what = format!("{op} {request} {engine}");
            let words = format!(
                "run {at} --destroy-data {at} --op {op} --pattern random --request {request} --engine {engine} --runtime 2 --repeats 1 \
                 --max-repeats 1 --json"
            );
            let mut point = point(&words);
            if !is_near(rate(&point), wanted, TOLERANCE) {
                let mut runs = vec![point];
                runs.extend((1..RUNS).map(|_| self::point(&words)));
                runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
                point = runs.swap_remove(RUNS / 2);
            }
            assert_near(&what, rate(&point), wanted, TOLERANCE);
            assert!(
                number(&point, "/achieved/little_error_percent") <= 1.0,
                "Little's law, {what}: {point:#}"
            );
            let outstanding =
                if engine.starts_with("sync") { 2.0 } else { number(&point, "/workload/depth") };
            assert_near(
                &format!("depth of {what}"),
                number(&point, "/achieved/mean_depth"),
                outstanding,
                0.05,
            );
            assert!(
                number(&point, "/achieved/of_ceiling_percent") < 5.0,
                "the driver is not the limit of {what}: {point:#}"
            );
        }
    }
}

/// Returns the percentage of a run's request time per stage, from trace points; `None` if others
/// interfered.
fn stages(words: &str) -> Option<Vec<(String, f64)>> {
    let point = point(words);
    let times = &point["achieved"]["request_times"];
    let stages = times["stages"].as_array().unwrap_or_else(|| panic!("no stages: {point:#}"));
    let stage = |one: &Value| (one["stage"].as_str().unwrap().to_owned(), number(one, "/percent"));
    (times["source"] == "trace_points").then(|| stages.iter().map(stage).collect())
}

#[test]
fn a_run_reports_the_time_per_stage() {
    let _one = alone();
    let device = or_skip!(Loop::make(64 << 20));
    if !Path::new("/sys/kernel/tracing/instances").is_dir() {
        return skip("no trace instances: mount -t tracefs nodev /sys/kernel/tracing");
    }
    let words = |request| {
        let at = &device.device;
        format!(
            "run {at} --pattern random --request {request} --depth 8 --runtime 0.2 --repeats 1 --max-repeats 1 --json"
        )
    };
    let names = ["submit", "queue", "device", "completion"];
    let seen =
        (0..RUNS).find_map(|_| stages(&words("4k"))).expect("only this test reads the device");
    assert_eq!(seen.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names);
    assert!((seen.iter().map(|(_, share)| share).sum::<f64>() - 100.0).abs() < 0.01, "{seen:?}");
    assert!(
        seen.iter().all(
            |(name, share)| (0.0..=100.0).contains(share) && (name != "device" || *share > 1.0)
        ),
        "{seen:?}"
    );
    // A throttle holds requests before they enter the block layer.
    let _throttle = or_skip!(Throttle::set(&device, &[("read_iops", 200)]));
    let held =
        (0..RUNS).find_map(|_| stages(&words("4k"))).expect("only this test reads the device");
    assert!(held[0].1 > 80.0, "{held:?}");
}

#[test]
fn every_result_reports_the_share_of_the_generators_ceiling() {
    let _one = alone();
    let directory = memory_directory();
    let at = directory.path().display();
    for engine in [
        "sync --depth 1",
        "threads --depth 4",
        "io_uring --depth 8",
        "libaio --depth 8",
        "mmap --depth 1",
    ] {
        let point = point(&format!(
            "run {at} --size 16m --buffered --op mix --pattern random --request 4k --engine {engine} --runtime 0.1 --repeats 1 --json"
        ));
        let achieved = &point["achieved"];
        let generator = number(achieved, "/driver_ceiling_iops");
        let lowest = achieved["no_op_ceiling_iops"].as_f64().unwrap_or(generator).min(generator);
        assert_eq!(
            achieved["no_op_ceiling_iops"].is_number(),
            engine.starts_with("io_uring"),
            "{engine}: {achieved:#}"
        );
        assert_near(
            "share of the ceiling",
            number(achieved, "/of_ceiling_percent"),
            number(&point, "/iops") / lowest * 100.0,
            1e-9,
        );
    }
}

#[test]
fn the_null_engine_measures_only_the_generator() {
    let _one = alone();
    let directory = memory_directory();
    let file = directory.path().join("file");
    std::fs::write(&file, vec![3; 1 << 20]).unwrap();
    let file = file.to_str().unwrap();
    let point = point(&format!(
        "run {file} --destroy-data {file} --op write --request 4k --depth 16 --engine null --buffered --runtime 0.05 --json"
    ));
    assert!(point["warnings"].to_string().contains("the engine null does no I/O"), "{point:#}");
    let twin = halfpower("run twin:nvme --engine null --depth 2 --json");
    assert_eq!(twin.code, Some(1));
    assert!(
        twin.json()
            .to_string()
            .contains("nothing of a simulated machine is this computer's own ceiling"),
        "{twin:?}"
    );
}

/// Returns the peak resident memory, without pages of the program and libraries: those belong to
/// the page cache, and an unoptimised program has many.
fn peak_resident(status: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
    };
    Some(bytes("VmHWM:")?.saturating_sub(bytes("RssFile:")?))
}

#[test]
fn memory_stays_small_at_every_depth() {
    let _one = alone();
    let device = or_skip!(Loop::make(64 << 20));
    for depth in [1u64, 32, 1024] {
        let words = format!(
            "run {} --pattern random --request 4k --engine io_uring --depth {depth} --runtime 0.3 --repeats 1 --json",
            device.device
        );
        let mut child =
            command(HALFPOWER, words.split_whitespace()).stdout(Stdio::null()).spawn().unwrap();
        // Read the kernel's peak while the process exists; rusage would include this test's memory
        // before exec.
        let (status, mut resident) = (format!("/proc/{}/status", child.id()), 0);
        let ended = loop {
            resident = peak_resident(&status).unwrap_or(resident);
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(ended.success() && resident > 512 << 10, "{ended}: {resident}");
        let max = (6 << 20) + depth * 4096;
        assert!(
            resident <= max,
            "depth {depth}: {resident} bytes resident, and {max} are the bound"
        );
    }
}
