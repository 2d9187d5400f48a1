//! `halfpower study` on typical targets, and on devices of a known, throttled speed.

mod common;

use common::places::{Loop, Mount, Throttle};
use common::{halfpower, halfpower_in, has_numbers, number, points, test_files};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

const MIB: u64 = 1 << 20;

fn assert_answered(ended: &common::Ended, out: &Path, writes: bool) -> Value {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("MiB/s") && ended.stdout.contains("report.html"),
        "{}",
        ended.stdout
    );
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("<svg") && report.contains("</html>") && report.len() < 2 << 20);
    let document: Value =
        serde_json::from_str(&fs::read_to_string(out.join("results.json")).unwrap()).unwrap();
    common::assert_sound(&document);
    let answer = &document["answer"];
    let peaks: Vec<&str> = answer["peaks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|peak| peak["op"].as_str().unwrap())
        .collect();
    assert_eq!(peaks, if writes { vec!["read", "write"] } else { vec!["read"] });
    for (index, _) in peaks.iter().enumerate() {
        assert!(number(answer, &format!("/peaks/{index}/throughput_bytes_per_s")) > 0.0);
        assert!(!answer["limits"][index]["sentence"].as_str().unwrap().is_empty());
    }
    assert!(points(&document).iter().filter(|point| has_numbers(point)).count() > 10);
    document
}

fn study_directory(target: &Path) -> Value {
    let out = tempfile::tempdir().unwrap();
    let ended = halfpower(&format!(
        "study {} --budget 8s --quick --output {}",
        target.display(),
        out.path().display()
    ));
    let document = assert_answered(&ended, out.path(), true);
    assert!(test_files(target).is_empty(), "no file is left in the target");
    document
}

#[test]
fn studies_the_current_directory() {
    let _one = common::alone();
    // In the build directory, which is on the project's disk.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let ended = halfpower_in(directory.path(), "study --budget 8s --quick");
    assert_answered(&ended, &directory.path().join("halfpower-out"), true);
    let left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["halfpower-out"], "only the report is left");
}

#[test]
fn studies_a_tmpfs_an_xfs_and_a_btrfs() {
    let _one = common::alone();
    let tmpfs = or_skip!(Mount::tmpfs("512m"));
    let document = study_directory(&tmpfs.at);
    assert_eq!(
        document["answer"]["limits"][0]["what"], "memory",
        "{:#}",
        document["answer"]["limits"]
    );
    for kind in ["xfs", "btrfs"] {
        let mount = or_skip!(Mount::on_loop(kind, 512 * MIB));
        let document = study_directory(&mount.at);
        let layers: Vec<&str> = document["target"]["layers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert!(layers.iter().any(|name| name.contains(kind)), "{layers:?}");
        assert!(layers.iter().any(|name| name.contains("loop")), "{layers:?}");
        // Btrfs accepts direct reads smaller than its sectors and serves them from the page cache.
        let min = if kind == "btrfs" { 4096 } else { 512 };
        assert_eq!(document["target"]["direct_align_bytes"], min, "{kind}");
    }
}

#[test]
fn studies_a_writable_device() {
    let _one = common::alone();
    let device = or_skip!(Loop::make(256 * MIB));
    let out = tempfile::tempdir().unwrap();
    let name = &device.device;
    let ended = halfpower(&format!(
        "study {name} --destroy-data {name} --budget 8s --quick --output {}",
        out.path().display()
    ));
    let document = assert_answered(&ended, out.path(), true);
    assert_eq!(document["target"]["kind"], "device");
}

fn study_throttled(device: &Loop) -> Value {
    let out = tempfile::tempdir().unwrap();
    let name = &device.device;
    let ended = halfpower(&format!(
        "study {name} --destroy-data {name} --quick --output {}",
        out.path().display()
    ));
    assert_answered(&ended, out.path(), true)["answer"].clone()
}

fn assert_near(what: &str, is: f64, should: f64, tolerance: f64) {
    let off = is / should - 1.0;
    assert!(
        off.abs() <= tolerance,
        "{what} is {is:.4e} and should be {should:.4e}: {:+.1} %",
        off * 100.0
    );
}

#[test]
fn studies_a_device_throttled_by_bytes() {
    let _one = common::alone();
    let device = or_skip!(Loop::make(256 * MIB));
    let throttle =
        or_skip!(Throttle::set(&device, &[("read_bps", 20_000_000), ("write_bps", 10_000_000)]));
    let answer = study_throttled(&device);
    drop(throttle);
    for (index, op, rate) in [(0, "read", 20e6), (1, "write", 10e6)] {
        let peak = number(&answer, &format!("/peaks/{index}/throughput_bytes_per_s"));
        // The kernel sometimes admits an extra slice, worth a tenth of a second; such runs differ,
        // which widens the interval.
        let interval =
            [0, 1].map(|end| number(&answer, &format!("/peaks/{index}/interval_95/{end}")));
        if !(interval[0]..=interval[1]).contains(&rate) {
            assert_near(op, peak, rate, 0.05);
        }
        assert_near(op, peak, rate, 0.15);
        let limit = &answer["limits"][index];
        assert_eq!(
            (limit["op"].as_str(), limit["what"].as_str()),
            (Some(op), Some("throttle")),
            "{limit:#}"
        );
        assert!(
            limit["sentence"].as_str().unwrap().contains("limited by the throttle"),
            "{limit:#}"
        );
    }
}

#[test]
fn studies_a_device_throttled_by_requests() {
    let _one = common::alone();
    const ADMITTED: f64 = 500.0;
    const LARGEST: f64 = 262_144.0;
    let device = or_skip!(Loop::make(256 * MIB));
    // Without a limit, the size at which the kernel splits a request depends on how its memory is
    // scattered.
    let of_queue = device.device.replace("/dev/", "/sys/block/") + "/queue/max_sectors_kb";
    fs::write(of_queue, (LARGEST / 1024.0).to_string()).unwrap();
    let throttle = or_skip!(Throttle::set(
        &device,
        &[("read_iops", ADMITTED as u64), ("write_iops", ADMITTED as u64)]
    ));
    let answer = study_throttled(&device);
    drop(throttle);
    let service = answer["service_times"].as_array().unwrap();
    for op in ["read", "write"] {
        let model = service
            .iter()
            .find(|model| model["mode"] == format!("direct {op}"))
            .unwrap_or_else(|| panic!("no model: {service:#?}"));
        assert_near(
            &format!("fixed time of a {op} in ns"),
            number(model, "/fixed_ns"),
            1e9 / ADMITTED,
            0.05,
        );
    }
    // Each request takes 1/500 s until the kernel splits it, so half of the peak is at half of the
    // largest request.
    for (index, op) in [(0, "read"), (1, "write")] {
        let peak = number(&answer, &format!("/peaks/{index}/throughput_bytes_per_s"));
        assert_near(&format!("peak of a {op}"), peak, ADMITTED * LARGEST, 0.05);
        let half = answer["half_power"].as_array().unwrap().iter().find(|half| {
            half["of"] == "request_bytes"
                && half["at"] == "depth 1"
                && half["op"] == op
                && half["peak_from"] == "measured"
        });
        let half = half.unwrap_or_else(|| {
            panic!("no half-power size of {op} at depth 1: {:#}", answer["half_power"])
        });
        assert_near(
            &format!("half-power size of a {op}"),
            number(half, "/crossing"),
            LARGEST / 2.0,
            0.05,
        );
    }
}

#[test]
fn a_stripe_of_two_throttled_devices_is_twice_as_fast() {
    let _one = common::alone();
    let devices = [or_skip!(Loop::make(128 * MIB)), or_skip!(Loop::make(128 * MIB))];
    let _throttles = [
        or_skip!(Throttle::set(&devices[0], &[("read_bps", 20_000_000)])),
        or_skip!(Throttle::set(&devices[1], &[("read_bps", 20_000_000)])),
    ];
    let words = format!(
        "sweep {} {} --request 1m --depth 8 --runtime 2 --json",
        devices[0].device, devices[1].device
    );
    let document = halfpower(&words).good_json();
    assert_eq!(
        (document["target"]["kind"].as_str(), document["target"]["members"].as_u64()),
        (Some("stripe"), Some(2))
    );
    let rate = number(&document, "/points/0/throughput_bytes_per_s");
    assert!((38e6..=42e6).contains(&rate), "two devices of 20 MB/s each give {rate:.4e} bytes/s");
}

#[test]
fn an_interrupt_keeps_the_points_measured_so_far() {
    let _one = common::alone();
    let here = tempfile::tempdir().unwrap();
    let out = here.path().join("out");
    let at = here.path().display().to_string();
    let interrupted = |words: &str, after: Duration| {
        let child = common::command(common::HALFPOWER, words.split(' ')).spawn().unwrap();
        std::thread::sleep(after);
        // SAFETY: a signal to a child that was not waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
        let ended = common::ended(child);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert!(test_files(here.path()).is_empty());
        ended
    };
    let of_study = format!("study {at} --size 16m --budget 3m --output {}", out.display());
    let shown = interrupted(&of_study, Duration::from_secs(12));
    let document: Value =
        serde_json::from_str(&fs::read_to_string(out.join("results.json")).unwrap()).unwrap();
    assert!(shown.stdout.contains("interrupted after"), "{}", shown.stdout);
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains("interrupted after"));
    let of_sweep = format!("sweep {at} --size 1m --request 4k,8k,16k --runtime 2s --json");
    let swept = interrupted(&of_sweep, Duration::from_secs(5));
    for document in [document, serde_json::from_str(&swept.stdout).unwrap()] {
        assert_eq!(document["incomplete"], true);
        assert!(document["answer"].is_null());
        assert!(points(&document).iter().any(has_numbers), "{document:#}");
    }
}
