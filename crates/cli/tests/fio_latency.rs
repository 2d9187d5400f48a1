//! `latency_target`, `max_latency` and `rate_min`: on a simulated machine, and against Debian's
//! fio.

#[macro_use]
mod common;

use common::fio::{fio_is_here, jobs_of, run};
use serde_json::Value;

fn figure(job: &Value, pointer: &str) -> f64 {
    job.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {pointer}"))
}

fn simulated(directory: &std::path::Path, options: &str) -> Value {
    let job = "--name=j --filename=twin:sata-ssd --size=1g --rw=randread --bs=4k --direct=1 --ioengine=io_uring";
    jobs_of(&run(true, directory, &format!("{job} {options} --output-format=json"))).remove(0)
}

#[test]
fn plain_jobs_confirm_the_depth_found() {
    let directory = tempfile::tempdir().unwrap();
    let search = "--iodepth=64 --latency_target=300 --latency_window=200ms --latency_percentile=99 --runtime=60 --time_based";
    let found = simulated(directory.path(), search);
    let depth = figure(&found, "/latency_depth") as u64;
    assert!((2..63).contains(&depth), "{depth}");
    assert_eq!(
        ["/latency_target", "/latency_percentile", "/latency_window"]
            .map(|name| figure(&found, name)),
        [300_000.0, 99.0, 200_000.0]
    );
    // Only the last window is reported.
    assert!(
        (199.0..=202.0).contains(&figure(&found, "/read/runtime")),
        "{}",
        found["read"]["runtime"]
    );
    let late = |depth: u64| {
        let plain = format!("--iodepth={depth} --runtime=1 --time_based --percentile_list=99");
        figure(&simulated(directory.path(), &plain), "/read/clat_ns/percentile/99.000000")
            > 300_000.0
    };
    assert_eq!([depth - 1, depth + 2].map(late), [false, true], "{depth}");
    // A search that continues reports the whole run.
    let on = simulated(directory.path(), &format!("{search} --runtime=3 --latency_run=1"));
    assert!(
        figure(&on, "/read/runtime") >= 2990.0
            && (figure(&on, "/latency_depth") - depth as f64).abs() <= 2.0
    );
}

#[test]
fn exceeding_a_limit_ends_the_job_as_in_fio() {
    if !fio_is_here() {
        return;
    }
    let job = "--name=j --size=4m --rw=randread --bs=4k --direct=0 --output-format=json";
    for (options, errors) in [
        ("--max_latency=1us", [110]),
        ("--latency_target=1us --latency_window=100ms", [110]),
        ("--max_latency=1h", [0]),
        ("--max_latency=1us --rw=write", [110]),
        ("--rate_iops_min=100000000 --time_based --runtime=20", [5]),
        ("--rate_min=1t --time_based --runtime=20 --rate_cycle=100", [5]),
        ("--rate_min=1k --time_based --runtime=4", [0]),
    ] {
        for ours in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let output = run(ours, directory.path(), &format!("{job} {options}"));
            let found: Vec<u64> =
                jobs_of(&output).iter().map(|job| job["error"].as_u64().unwrap()).collect();
            assert_eq!(found, errors, "{ours} {options}");
            assert_eq!(output.status.success(), errors == [0], "{ours} {options}");
        }
    }
}

#[test]
fn a_search_ends_as_in_fio() {
    if !fio_is_here() {
        return;
    }
    // Every depth meets the target: the result is the job's own, the maximum.
    let job = "--name=j --size=8m --rw=randread --bs=4k --ioengine=libaio --iodepth=8 --latency_target=10s --latency_window=100ms --runtime=20 --time_based --output-format=json";
    for ours in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let found = jobs_of(&run(ours, directory.path(), job)).remove(0);
        assert_eq!(
            (figure(&found, "/latency_depth"), figure(&found, "/error")),
            (8.0, 0.0),
            "{ours}"
        );
        assert!(
            (99.0..400.0).contains(&figure(&found, "/read/runtime")),
            "{ours} {}",
            found["read"]["runtime"]
        );
    }
}
