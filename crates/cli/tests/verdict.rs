//! `profile --study`: finds known limits, and what would help.

mod common;

use common::places::{Mount, Throttle};
use common::{HALFPOWER, alone, command, finish, halfpower_in, number, skip};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;

fn reader(us: u64, pause_us: u64) -> String {
    let mut text = String::from(
        "7 1700000000.000000 openat(AT_FDCWD, \"/var/data\", O_RDONLY|O_DIRECT) = 3 <0.000010>\n",
    );
    for read in 0..400_u64 {
        let at = 1000 + read * (us + pause_us);
        let offset = (read * 7919) % 1000 * 8192;
        let (second, micros) = (1_700_000_000 + at / 1_000_000, at % 1_000_000);
        writeln!(
            text,
            "7 {second}.{micros:06} pread64(3, \"\"..., 4096, {offset}) = 4096 <0.{us:06}>"
        )
        .unwrap();
    }
    text
}

fn flow<'a>(profile: &'a Value, role: &str, op: &str) -> &'a Value {
    let flows = profile["verdict"]["flows"].as_array().unwrap();
    let is_it = |flow: &&Value| flow["role"] == role && flow["op"] == op;
    flows.iter().find(is_it).unwrap_or_else(|| panic!("no {role} {op} in {profile:#}"))
}

fn advice<'a>(flow: &'a Value, kind: &str) -> Option<&'a Value> {
    flow["advice"].as_array().unwrap().iter().find(|one| one["change"]["kind"] == kind)
}

#[test]
fn one_read_at_a_time_waits_for_the_latency_and_more_would_help() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    // A read of this volume takes some 610 us.
    fs::write(here.join("app"), reader(610, 10)).unwrap();
    let profile = halfpower_in(here, "profile app --study twin:cloud --json").good_json();
    let schema = serde_json::from_str(&application::profile::schema()).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&profile), "{profile:#}");
    let reads = flow(&profile, "data", "read");
    assert_eq!(reads["limit"]["what"], "latency", "{reads:#}");
    assert_eq!(reads["limit"]["cause"]["kind"], "one_at_a_time");
    let share = number(reads, "/share/ratio");
    assert!((0.9..1.1).contains(&share), "{reads:#}");
    // This volume admits 3000 requests/s.
    let of_best = number(reads, "/share_of_best/ratio") / (1e6 / 610.0 / 3000.0);
    assert!((0.9..1.1).contains(&of_best), "{reads:#}");
    let deeper = advice(reads, "deeper").unwrap_or_else(|| panic!("{reads:#}"));
    let (gain, deep) = (number(deeper, "/gain/ratio"), number(deeper, "/change/outstanding"));
    assert!(gain > 1.5 && gain <= deep * 1.1, "{deeper:#}");
    // The reader waits all the time, so that the program gains about as much.
    assert!((number(deeper, "/program_gain/ratio") / gain - 1.0).abs() < 0.3, "{deeper:#}");
    // The predicted gain is that of the measured workload itself.
    let run = |depth: f64| {
        let words = format!(
            "run twin:cloud --pattern random --request 4k --depth {depth} --runtime 1s --json"
        );
        number(&halfpower_in(here, &words).good_json(), "/points/0/iops")
    };
    let measured = run(deep) / run(1.0);
    assert!((gain / measured - 1.0).abs() < 0.1, "{gain} {measured}");
    let text = halfpower_in(here, "profile app --study twin:cloud").stdout;
    assert!(text.contains("effective_io_concurrency"), "{text}");
}

#[test]
fn a_program_that_rarely_waits_is_its_own_limit() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("app"), reader(610, 9_000)).unwrap();
    let words = "profile app --study twin:cloud --json";
    let profile = halfpower_in(directory.path(), words).good_json();
    let reads = flow(&profile, "data", "read");
    assert_eq!(reads["limit"]["what"], "program", "{reads:#}");
    assert_eq!(reads["advice"].as_array().unwrap().len(), 0);
}

#[test]
fn a_saved_study_and_the_history_are_used() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    fs::write(here.join("app"), reader(610, 10)).unwrap();
    let words = "study twin:cloud --quick --output out --history h.sqlite --json";
    let study = halfpower_in(here, words).good_json();
    let saved = halfpower_in(here, "profile app --study out --json").good_json();
    assert_eq!(saved["verdict"]["study"], "study");
    assert_eq!(saved["verdict"]["studied_unix_s"], study["began_unix_s"]);
    let stored =
        halfpower_in(here, "profile app --study twin:cloud --history h.sqlite --json").good_json();
    assert_eq!(stored["verdict"], saved["verdict"]);
    assert_eq!(flow(&saved, "data", "read")["limit"]["what"], "latency", "{saved:#}");
    let now = "profile app --study twin:cloud --now --history h.sqlite --json";
    assert_eq!(halfpower_in(here, now).good_json()["verdict"]["study"], "sweep");
    // A file that is no study.
    halfpower_in(here, "profile app --study app").refused(&["app", "--study"]);
    halfpower_in(here, "profile app --now").refused(&["--study"]);
    // The recorded directory is not here.
    fs::write(here.join("moved"), reader(610, 10).replace("/var/data", "/nowhere/x")).unwrap();
    halfpower_in(here, "profile moved --study").refused(&["--study", "directory"]);
}

fn recorded(at: &Path, traces: &Path, script: &str) -> Value {
    let trace = traces.join("t.hptrace");
    let trace = trace.to_str().unwrap();
    let mut record =
        command(HALFPOWER, ["record", "--force", "-o", trace, "--", "sh", "-c", script]);
    record.current_dir(at);
    let done = finish(record);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let words = ["profile", trace, "--study", at.to_str().unwrap(), "--now", "--budget", "6s"];
    let options = ["--json", "--no-history"];
    finish(command(HALFPOWER, words.into_iter().chain(options))).good_json()
}

fn volume() -> Option<Mount> {
    if !Path::new("/sys/kernel/tracing/instances").is_dir() {
        skip("recording needs root and tracefs");
        return None;
    }
    Mount::on_loop("ext4", 512 << 20).map_err(|why| skip(&why)).ok()
}

fn throttle(volume: &Mount, limits: &[(&str, u64)]) -> Option<Throttle> {
    Throttle::set(volume.device(), limits).map_err(|why| skip(&why)).ok()
}

#[test]
fn a_log_waits_for_its_flushes() {
    let _alone = alone();
    let traces = tempfile::tempdir().unwrap();
    let Some(volume) = volume() else { return };
    let script = "dd if=/dev/zero of=app.log bs=8k count=400 oflag=dsync 2>/dev/null";
    let profile = recorded(&volume.at, traces.path(), script);
    let log = flow(&profile, "log", "write");
    assert_eq!(log["limit"]["what"], "flush", "{log:#}");
    assert_eq!(log["limit"]["cause"]["kind"], "flush_each");
    assert!((number(log, "/shape/request_bytes") - 8192.0).abs() < 1.0);
    assert_eq!(log["shape"]["durable"], true);
    assert!(log["same"].is_object(), "{log:#}");
}

#[test]
fn a_log_on_a_throttle_is_limited_by_the_throttle() {
    let _alone = alone();
    let traces = tempfile::tempdir().unwrap();
    let Some(volume) = volume() else { return };
    // The space is there, so that each commit is one write of the device.
    let prepare = "dd if=/dev/zero of=app.log bs=1M count=8 2>/dev/null; sync";
    assert!(sh(&volume.at, prepare));
    let Some(_limit) = throttle(&volume, &[("write_iops", 100)]) else { return };
    let script =
        "dd if=/dev/zero of=app.log bs=8k count=300 oflag=direct,dsync conv=notrunc 2>/dev/null";
    let profile = recorded(&volume.at, traces.path(), script);
    let log = flow(&profile, "log", "write");
    assert_eq!(log["limit"]["what"], "throttle", "{log:#}");
    let share = number(log, "/share/ratio");
    assert!((0.7..1.4).contains(&share), "{log:#}");
    // Eight times as much in a write of eight times the size: a throttle of requests admits that.
    let group = advice(log, "group_commit").unwrap_or_else(|| panic!("{log:#}"));
    assert!((5.0..10.0).contains(&number(group, "/gain/ratio")), "{group:#}");
}

fn sh(at: &Path, script: &str) -> bool {
    std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(at)
        .status()
        .unwrap()
        .success()
}

#[test]
fn a_scan_on_a_throttle_is_limited_by_the_throttle() {
    let _alone = alone();
    let traces = tempfile::tempdir().unwrap();
    let Some(volume) = volume() else { return };
    assert!(sh(&volume.at, "dd if=/dev/zero of=data bs=1M count=40 2>/dev/null; sync"));
    fs::write("/proc/sys/vm/drop_caches", "1").unwrap();
    let Some(_limit) = throttle(&volume, &[("read_bps", 20 << 20)]) else { return };
    let script = "dd if=data of=/dev/null bs=64k 2>/dev/null";
    let profile = recorded(&volume.at, traces.path(), script);
    let scan = flow(&profile, "scan", "read");
    assert_eq!(scan["limit"]["what"], "throttle", "{scan:#}");
    let rate = number(scan, "/throughput_bytes_per_s") / f64::from(20 << 20);
    assert!((0.7..1.5).contains(&rate), "{scan:#}");
}

#[test]
fn a_cached_reader_waits_for_no_device() {
    let _alone = alone();
    let traces = tempfile::tempdir().unwrap();
    let Some(volume) = volume() else { return };
    assert!(sh(
        &volume.at,
        "dd if=/dev/zero of=data bs=1M count=64 2>/dev/null; sync; cat data >/dev/null"
    ));
    let script = "for i in 1 2 3 4 5 6; do dd if=data of=/dev/null bs=64k 2>/dev/null; done";
    let profile = recorded(&volume.at, traces.path(), script);
    let reads = &profile["verdict"]["flows"][0];
    assert_eq!(reads["op"], "read", "{reads:#}");
    let what = reads["limit"]["what"].as_str().unwrap();
    // If the shell's own work takes most of the time, that is the limit.
    assert!(what == "memory" || number(reads, "/busy_share") < 0.2, "{reads:#}");
    assert_eq!(reads["advice"].as_array().unwrap().len(), 0);
}

#[test]
fn reading_the_same_again_from_the_device_needs_a_larger_cache() {
    let _alone = alone();
    let traces = tempfile::tempdir().unwrap();
    let Some(volume) = volume() else { return };
    assert!(sh(&volume.at, "dd if=/dev/zero of=data bs=1M count=16 2>/dev/null; sync"));
    // Every read of 4 KiB comes from the device, each block five times.
    let fio = "fio --name=j --filename=data --size=16m --bs=4k --rw=randread --direct=1 --loops=5 \
        --ioengine=psync --output=/dev/null";
    if !sh(&volume.at, "fio --version >/dev/null") {
        return skip("fio is not installed");
    }
    let profile = recorded(&volume.at, traces.path(), fio);
    let reads = flow(&profile, "data", "read");
    assert_eq!(reads["limit"]["what"], "cache_size", "{reads:#}");
    let cache = advice(reads, "cache").unwrap_or_else(|| panic!("{reads:#}"));
    let bytes = number(cache, "/change/bytes") / f64::from(16 << 20);
    assert!((0.8..1.05).contains(&bytes), "{cache:#}");
    let gain = number(cache, "/gain/ratio");
    assert!((2.0..6.0).contains(&gain), "{cache:#}");
}
