//! `halfpower tune`: plans change nothing, improvements are found, settings are always restored.

mod common;

use common::places::{Loop, Mount, Throttle};
use common::{HALFPOWER, command, ended, finish, halfpower_in, number, wait_until};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/tune-1.json");

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&serde_json::from_str(&tune::tuning_schema()).unwrap()).unwrap()
}

fn assert_obeys(document: &Value) {
    let errors: Vec<String> =
        validator().iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn the_stored_schema_is_current() {
    let own = tune::tuning_schema();
    if std::env::var("UPDATE").as_deref() == Ok("1") {
        fs::write(KEPT, &own).unwrap();
    }
    let kept = fs::read_to_string(KEPT).unwrap_or_default();
    assert!(
        kept == own,
        "schema/tune-1.json: UPDATE=1 cargo test -p halfpower --test tune rewrites it"
    );
}

struct Place {
    device: Loop,
    state: tempfile::TempDir,
    before: String,
}

impl Place {
    fn make(read_ahead_kb: u32) -> Result<Place, String> {
        let device = Loop::make(16 << 20)?;
        let mut place =
            Place { device, state: tempfile::tempdir().unwrap(), before: String::new() };
        let before = place.read_ahead();
        place.set_read_ahead(&read_ahead_kb.to_string())?;
        place.before = before;
        Ok(place)
    }

    fn file(&self) -> PathBuf {
        let name = self.device.device.trim_start_matches("/dev/");
        Path::new("/sys/class/block").join(name).join("queue/read_ahead_kb")
    }

    fn read_ahead(&self) -> String {
        fs::read_to_string(self.file()).unwrap().trim().into()
    }

    fn set_read_ahead(&self, value: &str) -> Result<(), String> {
        fs::write(self.file(), value).map_err(|error| format!("{}: {error}", self.file().display()))
    }

    fn journal(&self) -> PathBuf {
        self.state.path().join("tune.journal")
    }

    fn halfpower(&self, words: &str) -> Command {
        let words = words
            .split_whitespace()
            .map(|word| if word == "DEVICE" { &self.device.device } else { word });
        let mut command = command(HALFPOWER, words);
        command.env("HALFPOWER_STATE", self.state.path());
        command
    }

    fn endless(&self, seed: u64) -> Child {
        let words = format!(
            "tune DEVICE --yes --knob read_ahead_kb=132 --request 64k --runtime 10ms --until 0.0001% --budget 1h --seed {seed}"
        );
        self.halfpower(&words).spawn().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.set_read_ahead(&self.before);
    }
}

#[test]
fn a_plan_changes_nothing() {
    let place = or_skip!(Place::make(4));
    let ended = finish(place.halfpower("tune DEVICE --buffered --request 4k"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for words in ["Plan for", "read_ahead_kb", "Nothing was touched", "--yes", "write_cache"] {
        assert!(ended.stdout.contains(words), "'{words}' is in\n{}", ended.stdout);
    }
    assert!(
        place.read_ahead() == "4" && fs::read_dir(place.state.path()).unwrap().next().is_none()
    );
    let document =
        finish(place.halfpower("tune DEVICE --buffered --request 4k --json")).good_json();
    assert_obeys(&document);
    let knobs: Vec<&str> = document["plan"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["knob"].as_str().unwrap())
        .collect();
    for knob in ["read_ahead_kb", "buffering", "request", "hint"] {
        assert!(knobs.contains(&knob), "{knob} is in {knobs:?}");
    }
    assert!(!knobs.contains(&"write_cache"), "it matters only to writes");
    assert!(document["tried"].as_array().unwrap().is_empty());
    // A directory gets no test file either.
    let directory = tempfile::tempdir().unwrap();
    let planned =
        finish(place.halfpower(&format!("tune {} --profile mail", directory.path().display())));
    assert_eq!(planned.code, Some(0), "{}", planned.stderr);
    assert!(fs::read_dir(directory.path()).unwrap().next().is_none());
}

#[test]
fn risky_values_are_planned_only_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let plan = |more: &str| {
        let words = format!("tune {} --op write --json {more}", directory.path().display());
        finish(command(HALFPOWER, words.split_whitespace())).good_json()
    };
    let steps = |document: &Value, knob: &str| {
        document["plan"].as_array().unwrap().iter().filter(|step| step["knob"] == knob).count()
    };
    let usual = plan("");
    assert_eq!(steps(&usual, "buffering"), 0);
    let left = usual["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["knob"] == "buffering")
        .unwrap();
    assert!(left["why"].as_str().unwrap().contains("--knob buffering"), "{left}");
    let named = plan("--knob buffering");
    assert_eq!((steps(&named, "buffering"), named["plan"].as_array().unwrap().len()), (1, 1));
    assert!(named["plan"][0]["risk"].is_string());
}

/// Uses a read-ahead of 4 KiB, with which the device reads single blocks of 4 KiB; with 128 KiB it
/// reads 32 at a time.
#[test]
fn a_small_read_ahead_is_found_and_restored() {
    let _one = common::alone();
    let place = or_skip!(Place::make(4));
    let out = place.state.path().join("tune.json");
    let words = format!(
        "tune DEVICE --yes --knob read_ahead_kb=128,4 --buffered --request 4k --bytes 4m --budget 3m --json --output {}",
        out.display()
    );
    let document = finish(place.halfpower(&words)).good_json();
    assert_eq!(place.read_ahead(), "4", "it is as it was");
    assert!(!place.journal().exists());
    assert_obeys(&document);
    assert_eq!(
        document,
        serde_json::from_str::<Value>(&fs::read_to_string(&out).unwrap()).unwrap()
    );
    let tried = document["tried"].as_array().unwrap();
    assert_eq!(tried.len(), 1, "the current value is not an alternative: {document:#}");
    for one in [&tried[0], &document["combination"]] {
        assert_eq!(
            (one["outcome"].as_str(), one["to"].as_str()),
            (Some("helps"), Some("128")),
            "{one:#}"
        );
        let rate = &one["differences"][0];
        assert!(
            rate["change_percent"].as_f64() > Some(0.0) && rate["measure"] == "throughput",
            "{rate:#}"
        );
    }
    let keep = document["keep"][0]["line"].as_str().unwrap();
    assert!(keep.contains("ATTR{queue/read_ahead_kb}=\"128\""), "{keep}");
    let prove = document["prove"][0].as_str().unwrap();
    assert!(prove.starts_with("halfpower compare --a "), "{prove}");
    // The printed command measures the same again, and restores the knob.
    let repeat = prove.replacen("halfpower", &format!("'{HALFPOWER}'"), 1);
    let ended = finish(command("sh", ["-c", &repeat]));
    assert_eq!(ended.code, Some(0), "{repeat}\n{}", ended.stderr);
    assert!(ended.stdout.contains("faster"), "{repeat}\n{}", ended.stdout);
    assert_eq!(place.read_ahead(), "4");
}

/// A kernel that shows `nr_requests` 128 may hold fewer tags (6.18 does).
#[test]
fn a_restored_queue_has_the_tags_it_shows() {
    let _one = common::alone();
    let place = or_skip!(Place::make(128));
    let debug = or_skip!(common::places::Mount::with(&["-t", "debugfs", "nodev"]));
    let name = place.device.device.trim_start_matches("/dev/").to_owned();
    let tags = || {
        let text = fs::read_to_string(debug.at.join(format!("block/{name}/hctx0/tags"))).unwrap();
        text.lines().find_map(|line| line.strip_prefix("depth=")).unwrap().parse::<u32>().unwrap()
    };
    let all = tags();
    let queue = Path::new("/sys/class/block").join(&name).join("queue");
    fs::write(queue.join("nr_requests"), "4").unwrap();
    assert_eq!(tags(), 4);
    fs::write(queue.join("scheduler"), "mq-deadline").unwrap();
    let words = "tune DEVICE --yes --knob scheduler=none --request 4k --runtime 10ms --until 100% --budget 1s --json";
    finish(place.halfpower(words)).good_json();
    assert!(fs::read_to_string(queue.join("scheduler")).unwrap().contains("[mq-deadline]"));
    assert_eq!(tags(), all);
}

#[test]
fn any_command_restores_settings_after_a_kill() {
    let _one = common::alone();
    let place = or_skip!(Place::make(128));
    let mut caught = 0;
    // A linear congruential generator (Numerical Recipes) chooses the times.
    let mut seed: u32 = 12;
    for moment in 0..20 {
        let mut child = place.endless(moment);
        wait_until("the journal", || place.journal().exists());
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        std::thread::sleep(Duration::from_millis(u64::from(seed >> 24)));
        child.kill().unwrap();
        child.wait().unwrap();
        caught += u32::from(place.read_ahead() == "132");
        let next = finish(place.halfpower("twin list"));
        assert_eq!(
            (next.code, place.read_ahead().as_str()),
            (Some(0), "128"),
            "moment {moment}: {}",
            next.stderr
        );
        assert!(!place.journal().exists(), "moment {moment}: {}", next.stderr);
    }
    assert!(caught > 0, "no kill came while the setting was changed");
}

#[test]
fn an_interrupt_restores_settings_and_running_tunes_are_untouched() {
    let _one = common::alone();
    let place = or_skip!(Place::make(128));
    let child = place.endless(1);
    wait_until("the setting", || place.read_ahead() == "132");
    let other = finish(place.halfpower("twin list"));
    assert!(
        other.code == Some(0) && other.stderr.is_empty() && place.journal().exists(),
        "{other:?}"
    );
    let second = "tune DEVICE --yes --knob read_ahead_kb=64 --request 64k --runtime 10ms";
    finish(place.halfpower(second)).refused(&["another halfpower tune is running"]);
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let stopped = ended(child);
    assert_eq!(stopped.code, Some(130), "{stopped:?}");
    assert!(place.read_ahead() == "128" && !place.journal().exists(), "{stopped:?}");
}

#[test]
fn a_value_changed_by_another_process_is_kept_and_reported() {
    let _one = common::alone();
    let place = or_skip!(Place::make(128));
    let mut child = place.endless(2);
    wait_until("the setting", || place.read_ahead() == "132");
    child.kill().unwrap();
    child.wait().unwrap();
    place.set_read_ahead("64").unwrap();
    let next = finish(place.halfpower("twin list"));
    assert_eq!(next.code, Some(0));
    for word in ["read_ahead_kb", "64", "128", "another process"] {
        assert!(next.stderr.contains(word), "'{word}' is in\n{}", next.stderr);
    }
    assert!(place.read_ahead() == "64" && !place.journal().exists());
    let silent = finish(place.halfpower("twin list"));
    assert!(silent.stderr.is_empty(), "{}", silent.stderr);
}

fn options_of(mount: &Mount) -> String {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().rfind(|line| line.split(' ').nth(4) == Some(mount.name())).unwrap();
    line.split(' ').skip(4).collect::<Vec<_>>().join(" ")
}

#[test]
fn mount_options_are_set_by_remount_and_restored() {
    let _one = common::alone();
    let mount = or_skip!(Mount::on_loop("ext4", 32 << 20));
    or_skip!(common::places::tool("mount", &["-o", "remount,nodev,nosuid,noatime", mount.name()]));
    let state = tempfile::tempdir().unwrap();
    let before = options_of(&mount);
    assert!(
        before.contains("nodev") && before.contains("noatime") && !before.contains("commit="),
        "{before}"
    );
    let words = format!(
        "tune {} --op write --buffered --request 64k --bytes 256k --size 2m --knob atime=relatime --knob commit=30 --knob discard=discard \
         --until 100% --budget 1s --yes --json",
        mount.name()
    );
    let mut tune = command(HALFPOWER, words.split_whitespace());
    tune.env("HALFPOWER_STATE", state.path());
    let document = finish(tune).good_json();
    let tried = document["tried"].as_array().unwrap();
    assert_eq!(tried.len(), 3);
    // Each value is read back after setting it; an ineffective one counts as failed.
    assert!(tried.iter().all(|one| one["failed"].is_null()), "{document:#}");
    assert_eq!(options_of(&mount), before);
    assert!(common::test_files(&mount.at).is_empty());
}

#[test]
fn the_chunk_of_a_stripe_is_changed_by_recreating_it() {
    let _one = common::alone();
    let state = tempfile::tempdir().unwrap();
    // Two directories of one file system would not form a stripe.
    let mounts = [or_skip!(Mount::tmpfs("32m")), or_skip!(Mount::tmpfs("32m"))];
    let places = mounts.each_ref().map(|mount| PathBuf::from(mount.name()));
    let tune = |more: &str| {
        let at = places.each_ref().map(|place| place.display().to_string()).join(" ");
        let words = format!(
            "tune {at} --buffered --op write --request 64k --size 4m --runtime 20ms --json {more}"
        );
        let mut command = command(HALFPOWER, words.split_whitespace());
        command.env("HALFPOWER_STATE", state.path());
        finish(command).good_json()
    };
    let planned = tune("--knob stripe_unit");
    let values: Vec<&str> = planned["plan"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["to"].as_str().unwrap())
        .collect();
    assert_eq!(
        (values, planned["plan"][0]["from"].as_str()),
        (vec!["16k", "256k", "1m"], Some("64k"))
    );
    let document = tune("--knob stripe_unit=16k --until 100% --budget 1s --yes");
    assert_obeys(&document);
    let tried = &document["tried"][0];
    assert!(tried["failed"].is_null() && tried["blocks"].as_u64() >= Some(5), "{tried:#}");
    let lines: Vec<&str> = tried["keep"]
        .as_array()
        .unwrap()
        .iter()
        .map(|keep| keep["line"].as_str().unwrap())
        .collect();
    for words in [
        "--chunk=16K DEVICE1 DEVICE2",
        "mkfs.ext4 -b 4096 -E stride=4,stripe_width=8",
        "su=16k,sw=2",
    ] {
        assert!(lines.iter().any(|line| line.contains(words)), "'{words}' is in {lines:?}");
    }
    assert!(places.iter().all(|place| common::test_files(place).is_empty()));
}

#[test]
fn a_simulated_machine_is_tuned_by_its_settings() {
    let words = "tune twin:gateway-1997 --op write --request 8k --bytes 2m --yes --json --knob wce --knob disks=2 --knob depth=8";
    let document = finish(command(HALFPOWER, words.split_whitespace())).good_json();
    assert_obeys(&document);
    let outcome = |knob: &str, to: &str| {
        let tried = document["tried"].as_array().unwrap();
        let one = tried.iter().find(|one| one["knob"] == knob && one["to"] == to);
        one.unwrap_or_else(|| panic!("{knob}={to} was tried: {document:#}"))["outcome"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        outcome("wce", "on"),
        "helps",
        "a write cache makes small writes one at a time faster"
    );
    assert_eq!(outcome("depth", "8"), "helps");
    let aligned = "tune twin:gateway-1997,disks=4,start=31.5k --request 8k --depth 4 --pattern random --runtime 2s --yes --json --knob start";
    let aligned = finish(command(HALFPOWER, aligned.split_whitespace())).good_json();
    assert_eq!(aligned["tried"][0]["outcome"], "helps", "fewer requests of two disks: {aligned:#}");
    let again = finish(command(HALFPOWER, words.split_whitespace())).good_json();
    assert_eq!(document["tried"], again["tried"], "virtual time gives the same every time");
    let prove = document["prove"][0].as_str().unwrap();
    assert!(prove.contains("twin:gateway-1997,") && prove.contains("wce=on"), "{prove}");
}

fn commits() -> String {
    let mut text =
        String::from("7 1.000000 openat(AT_FDCWD, \"/var/wal\", O_WRONLY) = 3 <0.000010>\n");
    for commit in 0..200_u32 {
        let at = 10_000 + commit * 10_000;
        writeln!(
            text,
            "7 1.{at:06} pwrite64(3, \"\"..., 8192, {}) = 8192 <0.000020>",
            commit * 8192
        )
        .unwrap();
        writeln!(text, "7 1.{:06} fdatasync(3) = 0 <0.008000>", at + 100).unwrap();
    }
    text
}

#[test]
fn a_recorded_application_is_tuned_on_a_simulated_machine() {
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("app"), commits()).unwrap();
    let words = "tune twin:gateway-1997 --replay app --replay-options --as-fast-as-possible";
    let plan = halfpower_in(here.path(), &format!("{words} --json")).good_json();
    assert_obeys(&plan);
    let knobs: Vec<&str> =
        plan["plan"].as_array().unwrap().iter().filter_map(|one| one["knob"].as_str()).collect();
    assert!(knobs.contains(&"wce") && !knobs.contains(&"depth"), "{knobs:?}");
    assert_eq!(plan["workloads"][0], "--replay app (--as-fast-as-possible)");
    let tuned = format!("{words} --yes --knob wce --history h.sqlite");
    let document = halfpower_in(here.path(), &format!("{tuned} --json")).good_json();
    assert_obeys(&document);
    let tried = &document["tried"][0];
    assert_eq!(tried["outcome"], "helps", "a write cache makes commits faster: {document:#}");
    let measures: Vec<&str> = tried["differences"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["measure"].as_str())
        .collect();
    assert_eq!(measures, ["iops", "latency_p50", "latency_p99"], "{tried:#}");
    assert_eq!(tried["differences"][2]["label"], "app, log-sync");
    // The command that measures it again says the same.
    let prove = document["prove"][0].as_str().unwrap().strip_prefix("halfpower ").unwrap();
    let arms = shlex::split(prove).unwrap();
    let mut compare = command(HALFPOWER, arms.iter().map(String::as_str).chain(["--json"]));
    compare.current_dir(here.path());
    let again = finish(compare).good_json();
    let time = &again["differences"][0];
    assert_eq!((&time["measure"], &time["verdict"]), (&"duration".into(), &"better".into()));
    let listed = halfpower_in(here.path(), "history --history h.sqlite");
    assert!(listed.stdout.contains("tune"), "{}", listed.stdout);
    // The recorded pauses hide the gain of a faster disk, and the plan does not change.
    let kept = halfpower_in(here.path(), "tune twin:gateway-1997 --replay app --json").good_json();
    assert_eq!(kept["plan"], plan["plan"]);
}

/// Throttles to 500 requests per second: 600 reads of 4 KiB in a row take 1.2 s with a read-ahead
/// of 4 KiB, and a thirty-second of that with 128 KiB.
#[test]
fn the_read_ahead_of_a_recorded_application_is_found_and_restored() {
    let _one = common::alone();
    let place = or_skip!(Place::make(4));
    let _throttle = or_skip!(Throttle::set(&place.device, &[("read_iops", 500)]));
    let app = place.state.path().join("app");
    let (app, writes) = (app.to_str().unwrap(), place.state.path().join("writes"));
    let mut text = String::from("7 1.0 openat(AT_FDCWD, \"/var/data\", O_RDONLY) = 3 <0.000010>\n");
    for read in 0..600_u32 {
        let (at, offset) = (10_000 + read * 1000, read * 4096);
        writeln!(text, "7 1.{at:06} pread64(3, \"\"..., 4096, {offset}) = 4096 <0.000900>")
            .unwrap();
    }
    fs::write(app, text).unwrap();
    let words = format!(
        "tune DEVICE --replay {app} --replay-options --as-fast-as-possible --knob read_ahead_kb=128 --yes --json"
    );
    let document = finish(place.halfpower(&words)).good_json();
    assert_obeys(&document);
    assert_eq!(place.read_ahead(), "4", "it is as it was");
    let tried = &document["tried"][0];
    assert_eq!(tried["outcome"], "helps", "{document:#}");
    let rate = number(&tried["differences"][0], "/a");
    assert!((rate / 500.0 - 1.0).abs() < 0.1, "{rate} requests/s: {document:#}");
    assert!(number(&tried["differences"][0], "/b") > 4.0 * rate, "{document:#}");
    // A trace that writes needs the device named again, before anything is set.
    fs::write(&writes, commits()).unwrap();
    let words = format!("tune DEVICE --replay {} --yes", writes.display());
    finish(place.halfpower(&words)).refused(&[&place.device.device, "--destroy-data"]);
    assert!(!place.journal().exists());
}

#[test]
fn what_a_replay_cannot_take_is_refused() {
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("app"), commits()).unwrap();
    let refused = |words: &str, why: &[&str]| {
        halfpower_in(here.path(), &format!("tune twin:nvme --replay {words}")).refused(why);
    };
    refused("app --depth 8", &["--depth", "--replay-options"]);
    refused("app --size 1g", &["--size", "recorded sizes"]);
    refused("app --knob depth=8", &["--knob depth"]);
    refused("app --replay-options '--repeats=3'", &["--repeats"]);
    refused("app --replay-options /data", &["/data", "outside"]);
    refused("none", &["none"]);
    refused("app --postmark x", &["--postmark"]);
}

#[test]
fn invalid_options_are_refused() {
    let refused = |words: &str, why: &[&str]| {
        finish(command(HALFPOWER, words.split_whitespace())).refused(why)
    };
    refused("tune twin:nvme --knob readahed", &["readahed", "depth"]);
    refused("tune twin:nvme --knob disks=", &["NAME=VALUE"]);
    refused("tune twin:nvme --profile mail --op read", &["--workload", "--op"]);
    refused("tune twin:nvme --profile mial", &["mail"]);
    refused("tune twin:nvme --verify", &["--verify"]);
    refused("tune /nowhere/at/all --yes", &["/nowhere/at/all"]);
    refused("tune twin:nvme --knob stripe --yes", &["nothing to try"]);
}

#[test]
fn an_unknown_knob_is_refused_before_a_test_file_is_filled() {
    let directory = tempfile::tempdir().unwrap();
    let line = "ulimit -f 16; exec \"$0\" tune . --size 64m --yes --knob nope";
    let mut limited = common::command("sh", ["-c", line, common::HALFPOWER]);
    limited.current_dir(&directory);
    common::finish(limited).refused(&["--knob nope", "no such knob"]);
    assert!(common::test_files(directory.path()).is_empty());
}
