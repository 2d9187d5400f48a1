//! Loads that change over time, and latency over time.

mod common;

use common::{halfpower, halfpower_in, number, points};
use serde_json::Value;

const TWIN: &str = "run twin:gateway-1997 --pattern random --request 8k";

/// Returns the only point's intervals: from, to and offered rate, the count of latencies, and what
/// was not issued.
fn intervals(document: &Value) -> Vec<(f64, f64, Option<f64>, u64, u64)> {
    let all = points(document)[0]["over_time"].as_array().expect("a result over time");
    let of = |one: &Value| {
        (
            number(one, "/from_ns") / 1e9,
            number(one, "/until_ns") / 1e9,
            one["offered_iops"].as_f64(),
            one.pointer("/latency_ns/count").and_then(Value::as_u64).unwrap_or(0),
            one["not_issued"].as_u64().unwrap_or(0),
        )
    };
    all.iter().map(of).collect()
}

#[test]
fn each_step_of_a_load_has_its_requests() {
    let document = halfpower(&format!("{TWIN} --load 20:10s,0:5s,50:4s --json")).good_json();
    let expected = [
        (0.0, 10.0, Some(20.0), 200, 0),
        (10.0, 15.0, Some(0.0), 0, 0),
        (15.0, 19.0, Some(50.0), 200, 0),
    ];
    assert_eq!(intervals(&document), expected);
    assert_eq!(number(&document, "/points/0/latency_ns/count"), 400.0);
    // Requests of several threads add up to the same schedule.
    let threads = format!("{TWIN} --threads 4 --load 20:10s,0:5s,50:4s --json");
    let counts: Vec<u64> =
        intervals(&halfpower(&threads).good_json()).iter().map(|one| one.3).collect();
    assert_eq!(counts, [200, 0, 200]);
}

#[test]
fn a_backlog_delays_the_next_step() {
    // The disk serves some 75 random reads a second.
    let load = format!("{TWIN} --load 40:5s,400:1s,40:15s --json");
    let document = halfpower(&load).good_json();
    let p50 =
        |step: usize| number(&document, &format!("/points/0/over_time/{step}/latency_ns/p50"));
    assert!(p50(0) < 50e6, "{} ns", p50(0));
    assert!(p50(2) > 1e9, "requests wait for those before: {} ns", p50(2));
    assert_eq!(number(&document, "/points/0/over_time/0/iops"), 40.0);
    let done = number(&document, "/points/0/over_time/1/iops");
    assert!((50.0..120.0).contains(&done), "{done}");
    let warnings = points(&document)[0]["warnings"].to_string();
    assert!(
        warnings.contains("of the 400 requests per second of the load completed"),
        "{warnings}"
    );

    let document = halfpower(&format!("{TWIN} --load 40:5s,400:5s --json")).good_json();
    let [(.., first, 0), (.., count, left)] = intervals(&document)[..] else {
        panic!("two steps, and the first is served: {document:#}")
    };
    assert_eq!((first, count + left), (200, 2000), "each request is issued or counted as not");
    assert!(left > 1000);
    let warnings = points(&document)[0]["warnings"].to_string();
    assert!(warnings.contains("have no latency, so it is understated"), "{warnings}");
}

#[test]
fn a_file_holds_the_steps_and_the_report_shows_them() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("loads.csv"), "rate,time\n20,10s\n50,4s # more\n").unwrap();
    let shown = halfpower_in(directory.path(), &format!("{TWIN} --load @loads.csv"));
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let line = |text: &str| shown.stdout.lines().any(|line| line.starts_with(text));
    assert!(line("latency over time, 1 run"), "{}", shown.stdout);
    assert!(line("10.0 s  14.0 s       50      50"), "{}", shown.stdout);
    let json = halfpower_in(directory.path(), &format!("{TWIN} --load @loads.csv --json"));
    std::fs::write(at("result.json"), &json.stdout).unwrap();
    let report = halfpower_in(directory.path(), "report result.json --output page");
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    assert!(
        std::fs::read_to_string(at("page/report.html"))
            .unwrap()
            .contains("latency over time, 1 run")
    );
    let checked = halfpower_in(directory.path(), "report --check result.json");
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
    for (load, why) in [
        ("@none.csv", "none.csv: No such file"),
        ("@result.json", "result.json: line 1: '{' is not RATE,TIME"),
        ("100,1s", "'100' is not RATE:TIME, as in 1000:30s"),
        ("0:1s", "a load of pauses only"),
        ("5:1s --rate 5", "cannot be used with"),
        ("5:1s --runtime 5s", "cannot be used with"),
        ("5:1s --latency-every 1us", "at most 1000 intervals"),
        ("5:1s --depth 4 --reap auto", "it learns at the start of a run"),
    ] {
        let refused = halfpower_in(directory.path(), &format!("{TWIN} --load {load}"));
        assert_eq!(refused.code, Some(2), "{load}: {}", refused.stderr);
        assert!(refused.stderr.contains(why), "{load}: {}", refused.stderr);
    }
}

#[test]
fn windows_hold_all_requests_of_a_run() {
    let words = format!("{TWIN} --runtime 10s --latency-every 4s --json");
    let document = halfpower(&words).good_json();
    let all = intervals(&document);
    let spans: Vec<_> = all.iter().map(|one| (one.0, one.1, one.2)).collect();
    assert_eq!(spans, [(0.0, 4.0, None), (4.0, 8.0, None), (8.0, 10.0, None)]);
    let sum: u64 = all.iter().map(|one| one.3).sum();
    assert_eq!(sum as f64, number(&document, "/points/0/latency_ns/count"));
    // Keeping the windows changes no request.
    let plain = halfpower(&format!("{TWIN} --runtime 10s --json")).good_json();
    assert_eq!(number(&plain, "/points/0/latency_ns/count"), sum as f64);
    let mean = "/points/0/latency_ns/mean";
    assert_eq!(number(&plain, mean), number(&document, mean));
    assert!(points(&plain)[0].get("over_time").is_none());
}
