//! Results report rates that change during a measurement, and when. A steady throttle or a loaded
//! machine must not look like a change.

mod common;

use common::places::{Loop, Throttle};
use common::{Ended, HALFPOWER, alone, command, ended, halfpower, points};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// The higher of the two limits of a device, in bytes per second.
const FAST: u64 = 8_000_000;
const SLOW: u64 = 800_000;

fn while_it_changes(words: &str, throttle: &Throttle, after: Duration, limit: u64) -> Ended {
    let child = command(HALFPOWER, words.split_whitespace()).spawn().unwrap();
    std::thread::sleep(after);
    throttle.change(limit);
    ended(child)
}

fn phases(point: &Value) -> Vec<f64> {
    let phases = point["rate_change"]["phases"]
        .as_array()
        .unwrap_or_else(|| panic!("no change of the rate: {point:#}"));
    phases.iter().map(|phase| phase["throughput_bytes_per_s"].as_f64().unwrap()).collect()
}

fn warns(point: &Value, words: &str) -> bool {
    let warnings = point["warnings"].as_array().unwrap();
    warnings.iter().any(|warning| warning.as_str().unwrap().contains(words))
}

fn near(rate: f64, limit: u64) -> bool {
    (rate / limit as f64 - 1.0).abs() < 0.25
}

#[test]
fn a_limit_that_drops_during_a_run_shows_both_rates_and_the_time() {
    let _alone = alone();
    let device = or_skip!(Loop::make(512 * MIB));
    for (runs, length, after_s) in
        [(10, "700ms", 4.0), (4, "1500ms", 3.3), (2, "3s", 4.5), (2, "3s", 3.6), (1, "6s", 3.0)]
    {
        let throttle = or_skip!(Throttle::set(&device, &[("read_bps", FAST)]));
        let line = format!(
            "run {} --op read --request 16k --depth 16 --runtime {length} --repeats {runs} --max-repeats {runs} --json",
            device.device
        );
        let document =
            while_it_changes(&line, &throttle, Duration::from_secs_f64(after_s), SLOW).good_json();
        let point = &points(&document)[0];
        let found = phases(point);
        assert_eq!(found.len(), 2, "{runs} runs of {length}: {:#}", point["rate_change"]);
        assert!(near(found[0], FAST) && near(found[1], SLOW), "{runs} runs of {length}: {found:?}");
        let from_s = point["rate_change"]["phases"][1]["from_s"].as_f64().unwrap();
        assert!((from_s - after_s).abs() < 1.0, "{runs} runs of {length}: from {from_s} s on");
        let bytes = point["rate_change"]["phases"][1]["after_bytes"].as_f64().unwrap();
        assert!(
            bytes > 0.4 * after_s * FAST as f64 && bytes < 1.1 * after_s * FAST as f64,
            "after {bytes} bytes"
        );
        assert!(warns(point, "the rate changed"), "{point:#}");
    }
}

#[test]
fn the_terminal_and_tool_reports_show_the_change() {
    let _alone = alone();
    let device = or_skip!(Loop::make(512 * MIB));
    let name = &device.device;
    for line in [
        format!(
            "run {name} --op read --request 16k --depth 16 --runtime 700ms --repeats 7 --max-repeats 7"
        ),
        format!(
            "fio --name=a --filename={name} --rw=read --bs=16k --iodepth=16 --ioengine=libaio --direct=1 --time_based --runtime=6"
        ),
        format!("sqlio -kR -fsequential -b16 -o16 -s6 -BN {name}"),
        format!("diskspd -d6 -W0 -b16K -o16 -Sh {name}"),
        format!("iozone -i 1 -r 64k -s 16m -I -w -f {name}"),
    ] {
        let throttle = or_skip!(Throttle::set(&device, &[("read_bps", FAST)]));
        let after = if line.starts_with("iozone") { 1.5 } else { 3.0 };
        let ended = while_it_changes(&line, &throttle, Duration::from_secs_f64(after), SLOW * 2);
        let text = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.code, Some(0), "{line}: {text}");
        assert!(text.contains("the rate changed"), "{line}: {text}");
    }
}

#[test]
fn a_check_ignores_a_difference_explained_by_a_change() {
    let _alone = alone();
    let device = or_skip!(Loop::make(128 * MIB));
    let directory = tempfile::tempdir().unwrap();
    let history = directory.path().join("history");
    let throttle = or_skip!(Throttle::set(&device, &[("read_bps", FAST)]));
    let with_history = |words: String| {
        let mut command = command(HALFPOWER, words.split_whitespace());
        command.env("HALFPOWER_HISTORY", &history);
        command
    };
    let run = format!(
        "run {} --op read --request 16k --depth 16 --runtime 1s --repeats 3 --max-repeats 3",
        device.device
    );
    assert_eq!(common::finish(with_history(run)).code, Some(0));
    let check = with_history(format!("check {} --baseline 1 --budget 9s --json", device.device))
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    throttle.change(SLOW);
    let checked = ended(check);
    assert_eq!(checked.code, Some(0), "it fell while it was checked: {checked:?}");
    let document = checked.json();
    assert_eq!(document["differences"][0]["verdict"], "changing", "{document:#}");
    assert!(checked.stdout.contains("the rate changed"), "{document:#}");
}

#[test]
fn a_steady_throttle_shows_no_change() {
    let _alone = alone();
    let device = or_skip!(Loop::make(64 * MIB));
    let _throttle = or_skip!(Throttle::set(&device, &[("read_bps", FAST)]));
    for (runs, length) in [(3, "300ms"), (8, "400ms"), (1, "3s")] {
        let line = format!(
            "run {} --op read --request 16k --depth 16 --runtime {length} --repeats {runs} --max-repeats {runs} --json",
            device.device
        );
        let document = halfpower(&line).good_json();
        let point = &points(&document)[0];
        assert!(
            point.get("rate_change").is_none(),
            "{runs} runs of {length}: {:#}",
            point["rate_change"]
        );
    }
}

struct Busy(Vec<std::process::Child>);

impl Busy {
    fn start(count: usize) -> Busy {
        let one = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        Busy((0..count).map(|_| one()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_loaded_machine_is_contention_not_a_pause() {
    let _alone = alone();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let _busy = Busy::start(2 * processors);
    let directory = common::places::memory_directory();
    let line = format!(
        "run {} --size 16m --buffered --op read --request 4k --runtime 500ms --repeats 4 --max-repeats 4 --json",
        directory.path().display()
    );
    let document = halfpower(&line).good_json();
    let point = &points(&document)[0];
    assert!(warns(point, "CPU contention: other programs kept its threads waiting"), "{point:#}");
    assert!(!warns(point, "stopped"), "{point:#}");
}
