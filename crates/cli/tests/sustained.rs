//! `study --sustained` on simulated drives and on a loop device that is throttled as a burst credit
//! would.

mod common;

use common::places::{Loop, Mount, Throttle};
use common::{HALFPOWER, alone, command, ended, halfpower};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/sustained-1.json");
const MIB: u64 = 1 << 20;

fn assert_conforms(document: &Value) {
    let schema: Value = serde_json::from_str(&sustained::sustained_schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn the_stored_schema_is_current() {
    let own = sustained::sustained_schema();
    if std::env::var("UPDATE").as_deref() == Ok("1") {
        fs::write(KEPT, &own).unwrap();
    }
    let kept = fs::read_to_string(KEPT).unwrap_or_default();
    assert!(
        kept == own,
        "schema/sustained-1.json: UPDATE=1 cargo test -p halfpower --test sustained rewrites it"
    );
}

#[test]
fn a_write_cache_is_found_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().display();
    let line =
        format!("study --sustained twin:nvme-qlc --for 2h --max-written 1TiB --output {output}");
    let shown = halfpower(&line);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let first = shown.stderr.lines().next().unwrap();
    assert!(first.contains("up to 1 TiB will be written to twin:nvme-qlc"), "{first}");
    for words in ["1716 MiB/s for the first 130 GiB, then 95.3 MiB/s", "write cache of 130 GiB"] {
        assert!(shown.stdout.contains(words), "'{words}' in\n{}", shown.stdout);
    }
    let page = fs::read_to_string(directory.path().join("sustained.html")).unwrap();
    assert!(page.contains("for the first 130 GiB") && page.contains("<svg"));
    let rows = fs::read_to_string(directory.path().join("sustained.csv")).unwrap();
    assert!(rows.starts_with("from_s,") && rows.lines().count() > 50);
    let document = halfpower(&format!("{line} --json")).good_json();
    assert_conforms(&document);
    assert_eq!(document["schema"], "halfpower.sustained/1");
    assert!((document["reserve"]["size_bytes"].as_f64().unwrap() / 140e9 - 1.0).abs() < 0.01);
}

#[test]
fn a_machine_is_fitted_to_a_run() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    let run = halfpower(&format!(
        "study --sustained twin:nvme-qlc --for 2h --max-written 1TiB --output {at}"
    ));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let fit = halfpower(&format!("twin fit {at}/sustained.json --output {at}/drive.toml --json"));
    let fit = fit.good_json();
    assert_eq!(fit["kind"], "fit_sustained");
    for one in fit["reproduced"].as_array().unwrap() {
        let [measured, simulated] = ["measured", "simulated"].map(|key| one[key].as_f64().unwrap());
        assert!((simulated / measured - 1.0).abs() < 0.05, "{one}");
    }
    let shown = halfpower(&format!("twin fit {at}/sustained.json"));
    assert!(shown.stdout.contains("drives.qlc.cache_bytes"), "{}", shown.stdout);
    let show = halfpower(&format!("twin show {at}/drive.toml"));
    assert!(show.stdout.contains("fitted to a sustained run"), "{}", show.stdout);
    // A rate that did not fall has nothing to fit.
    let run =
        halfpower(&format!("study --sustained twin:nvme-qlc --max-written 3g --output {at}/short"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    halfpower(&format!("twin fit {at}/short/sustained.json")).refused(&["did not fall", "--for"]);
}

#[test]
fn it_refuses_what_it_may_not_write() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("precious");
    fs::write(&file, vec![7; 1 << 20]).unwrap();
    let output = directory.path().join("out");
    let line = format!("study --sustained {} --output {}", file.display(), output.display());
    halfpower(&line).refused(&["precious", "--destroy-data"]);
    assert_eq!(fs::read(&file).unwrap(), vec![7; 1 << 20]);
    halfpower("study --sustained twin:nvme --for 1s").refused(&["--for 1.00 s", "2s"]);
    halfpower("study --sustained twin:nvme --budget 10s").refused(&["--budget"]);
    halfpower("study twin:nvme --for 1m").refused(&["--sustained"]);
    halfpower("study --sustained twin:nvme --fill 90,50").refused(&["--fill 90,50", "ascending"]);
}

#[test]
fn it_never_writes_more_than_allowed() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("d");
    fs::create_dir(&place).unwrap();
    let line = format!(
        "study --sustained {} --for 4s --max-written 50m --output {} --json",
        place.display(),
        directory.path().join("out").display()
    );
    let document = halfpower(&line).good_json();
    assert_conforms(&document);
    assert_eq!(document["written_bytes"], 50 * MIB);
    assert_eq!(document["stopped"], "max_written");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "the test file is removed");
}

fn written(device: &str) -> u64 {
    let name = device.trim_start_matches("/dev/");
    let stat = fs::read_to_string(format!("/sys/class/block/{name}/stat")).unwrap();
    stat.split_whitespace().nth(6).unwrap().parse::<u64>().unwrap() * 512
}

fn keep_credit(
    device: &str,
    throttle: &Throttle,
    [earn, burst, full]: [f64; 3],
    done: &AtomicBool,
) {
    let (mut credit, mut at, mut before) = (full, Instant::now(), written(device));
    let mut bursts = true;
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(10));
        let now = written(device);
        let passed = std::mem::replace(&mut at, Instant::now()).elapsed().as_secs_f64();
        credit = (credit + earn * passed - (now - before) as f64).min(full);
        before = now;
        // Not at each request: the kernel's limit has slices of its own.
        let want = if bursts { credit > 0.0 } else { credit > earn * 0.5 };
        if want != bursts {
            bursts = want;
            throttle.change(if bursts { burst } else { earn } as u64);
        }
    }
}

#[test]
fn a_loop_device_with_burst_credit_shows_rate_burst_and_size() {
    let _alone = alone();
    let device = or_skip!(Loop::make(256 * MIB));
    let [earn, burst, full] = [8e6, 40e6, 128e6];
    let throttle = or_skip!(Throttle::set(&device, &[("write_bps", burst as u64)]));
    let directory = tempfile::tempdir().unwrap();
    let line = format!(
        "study --sustained {0} --destroy-data {0} --for 50s --request 256k --output {1} --json",
        device.device,
        directory.path().display()
    );
    let done = AtomicBool::new(false);
    let document = std::thread::scope(|scope| {
        scope.spawn(|| keep_credit(&device.device, &throttle, [earn, burst, full], &done));
        let child = command(HALFPOWER, line.split_whitespace()).spawn().unwrap();
        let ended = ended(child);
        done.store(true, Ordering::Relaxed);
        ended.good_json()
    });
    assert_conforms(&document);
    let reserve = &document["reserve"];
    let all = format!("{reserve:#}\n{:#}\n{:#}", document["recoveries"], document["levels"]);
    let near = |name: &str, truth: f64, within: f64| {
        let found = reserve[name].as_f64().unwrap_or_else(|| panic!("{name}: {all}"));
        assert!((found / truth - 1.0).abs() < within, "{name}: {found} and not {truth}\n{all}");
    };
    near("fast_bytes_per_s", burst, 0.1);
    near("slow_bytes_per_s", earn, 0.1);
    near("empties_in_s", full / (burst - earn), 0.15);
}

fn delays(count: u64, [least, most]: [f64; 2]) -> impl Iterator<Item = Duration> {
    (0..count).map(move |at| {
        let share = workload::rng::unit(workload::rng::hash(38, at));
        Duration::from_secs_f64(least + (most - least) * share)
    })
}

#[test]
fn a_simulated_run_killed_20_times_has_the_same_tables() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let line = |name: &str| {
        let output = directory.path().join(name);
        format!(
            "study --sustained twin:nvme-qlc --for 2h --max-written 1TiB --output {} --json",
            output.display()
        )
    };
    let whole = halfpower(&line("whole")).good_json();
    for delay in delays(20, [0.0, 0.4]) {
        let line = line("killed") + " --resume";
        let mut child = command(HALFPOWER, line.split_whitespace()).spawn().unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        ended(child);
    }
    let killed = halfpower(&(line("killed") + " --resume")).good_json();
    for key in ["points", "levels", "reserve", "recoveries", "reads", "sentences"] {
        assert_eq!(whole[key], killed[key], "{key}");
    }
}

struct Zram(u32);

impl Zram {
    fn make(size: u64, memory: u64) -> Result<Zram, String> {
        let control = "/sys/class/zram-control/hot_add";
        let number = fs::read_to_string(control).map_err(|error| format!("{control}: {error}"))?;
        let zram = Zram(number.trim().parse().map_err(|_| "zram without a number".to_owned())?);
        for (name, bytes) in [("disksize", size), ("mem_limit", memory)] {
            let file = format!("/sys/block/zram{}/{name}", zram.0);
            fs::write(&file, bytes.to_string()).map_err(|error| format!("{file}: {error}"))?;
        }
        Ok(zram)
    }

    fn device(&self) -> String {
        format!("/dev/zram{}", self.0)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        // The system may look at a device that was just written.
        for _ in 0..50 {
            if fs::write("/sys/class/zram-control/hot_remove", self.0.to_string()).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn a_device_that_fills_up_keeps_the_rates_until_then() {
    let _alone = alone();
    let zram = or_skip!(Zram::make(256 * MIB, 128 * MIB));
    let directory = tempfile::tempdir().unwrap();
    let line = format!(
        "study --sustained {0} --destroy-data {0} --for 2s --max-written 250m --output {1} --json",
        zram.device(),
        directory.path().display()
    );
    let ended = halfpower(&line);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let document = ended.json();
    assert_conforms(&document);
    assert_eq!(document["stopped"], "failed");
    assert!(document["failure"].as_str().unwrap().contains("write"), "{}", document["failure"]);
    assert!(directory.path().join("sustained.json").exists());
}

#[test]
fn a_simulated_disk_is_refused() {
    let shown = halfpower("study --sustained twin:hdd-20tb --for 1m");
    assert_eq!(shown.code, Some(2), "{}", shown.stderr);
    assert!(shown.stderr.contains("a simulated disk forgets its write cache"), "{}", shown.stderr);
}

/// Copy-on-write spreads a file that is rewritten at random places over the device.
#[test]
fn a_run_on_a_real_target_starts_over() {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("study --sustained {} --for 2s --resume", directory.path().display());
    halfpower(&line).refused(&["--resume", "leave it out"]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_btrfs_file_that_fragments_keeps_a_rate_or_says_how_it_changed() {
    let _alone = alone();
    let mount = or_skip!(Mount::on_loop("btrfs", 512 * MIB));
    let directory = tempfile::tempdir().unwrap();
    let line = format!(
        "study --sustained {} --size 96m --for 8s --max-written 700m --request 4k --pattern random --output {} --json",
        mount.at.display(),
        directory.path().display()
    );
    let document = halfpower(&line).good_json();
    assert_conforms(&document);
    // Each write of the volume's few blocks finds free space, although it never writes in place.
    let written = document["written_bytes"].as_u64().unwrap();
    assert!(written > 4 * MIB && written <= 700 * MIB, "{written}");
    let levels = document["levels"].as_array().unwrap();
    let answer = document["sentences"][0].as_str().unwrap();
    let said = match levels.len() {
        1 => ["throughout", "up and down"].iter().any(|word| answer.contains(word)),
        _ => ["then", "slid", "changed"].iter().any(|word| answer.contains(word)),
    };
    assert!(said && answer.contains("writes/s"), "{answer}\n{levels:#?}");
}

fn fake_smartctl(directory: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let program = directory.join("smartctl");
    fs::write(&program, format!("#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit 4\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn wear_is_shown_before_and_recorded() {
    let _alone = alone();
    let device = or_skip!(Loop::make(64 * MIB));
    let nvme = r#"{"json_format_version":[1,0],"device":{"protocol":"NVMe"},"model_name":"QLC 1TB","nvme_smart_health_information_log":{"percentage_used":7,"data_units_written":54810233,"temperature":36},"temperature":{"current":36}}"#;
    let sata = r#"{"json_format_version":[1,0],"device":{"protocol":"ATA"},"model_name":"SATA 1TB","logical_block_size":512,"ata_smart_attributes":{"table":[{"id":241,"name":"Total_LBAs_Written","raw":{"value":1953525168}}]},"temperature":{"current":31}}"#;
    for (text, options, told, found) in [
        (
            nvme,
            "",
            "% of the endurance of 365 TiB, of which 7 % are used",
            ["7 % of its endurance used", "25.5 TiB written"],
        ),
        (
            sata,
            "--endurance 600TB",
            "% of the endurance of 546 TiB",
            ["932 GiB written", "31 °C before and 31 °C after"],
        ),
        ("not JSON", "", "will be written", ["", ""]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fake_smartctl(directory.path(), text);
        let line = format!(
            "study --sustained {0} --destroy-data {0} --for 2s --max-written 40m --output {1} --json {options}",
            device.device,
            directory.path().join("out").display()
        );
        let mut command = command(HALFPOWER, line.split_whitespace());
        let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
        let ended = ended(command.env("PATH", path).spawn().unwrap());
        let first = ended.stderr.lines().next().unwrap_or_default().to_owned();
        let document = ended.good_json();
        assert_conforms(&document);
        assert!(first.contains(told), "{first}");
        let sentences = document["sentences"].to_string();
        for words in found {
            assert!(sentences.contains(words), "{words}: {sentences}");
        }
        let reported = document["wear"]["before"].as_array().map_or(0, Vec::len);
        assert_eq!(reported, usize::from(text.starts_with('{')), "{:#}", document["wear"]);
    }
}
