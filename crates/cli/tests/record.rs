//! `record` and `profile`: programs with known requests. As root, with trace points.

mod common;

use common::{HALFPOWER, alone, can_record, command, ended, finish, number, skip, wait_until};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        skip(&format!("{program} is not installed"));
    }
    found
}

fn profile(here: &Path, script: &str) -> Value {
    let trace = here.join("t.hptrace");
    let trace = trace.to_str().unwrap();
    let mut record =
        command(HALFPOWER, ["record", "--force", "-o", trace, "--", "sh", "-c", script]);
    record.current_dir(here);
    let recorded = finish(record);
    assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
    assert!(!recorded.stderr.contains("lost"), "{}", recorded.stderr);
    finish(command(HALFPOWER, ["profile", trace, "--json"])).good_json()
}

fn file<'a>(profile: &'a Value, end: &str) -> &'a Value {
    let files = profile["files"].as_array().unwrap();
    let is_it = |file: &&Value| file["name"].as_str().unwrap().ends_with(end);
    files.iter().find(is_it).unwrap_or_else(|| panic!("no {end} in {profile:#}"))
}

fn left_instances() -> usize {
    let names = fs::read_dir("/sys/kernel/tracing/instances").unwrap();
    let is_left = |name: &str| {
        let process = name.strip_prefix("halfpower-").and_then(|rest| rest.split('-').next());
        process.is_some_and(|process| !Path::new("/proc").join(process).exists())
    };
    names.filter(|name| is_left(name.as_ref().unwrap().file_name().to_str().unwrap())).count()
}

#[test]
fn sqlite_writes_its_journal_and_its_pages() {
    if !can_record() || !has("sqlite3") {
        return;
    }
    let _alone = alone();
    let here = tempfile::tempdir().unwrap();
    let insert = "insert into t values(1);".repeat(20);
    let profile = profile(
        here.path(),
        &format!(
            "sqlite3 a.db 'pragma journal_mode=wal; pragma synchronous=full; create table t(a); {insert}' >/dev/null"
        ),
    );
    // A frame of a WAL is a header of 24 bytes and a page of 4 KiB; each commit is one sync.
    let wal = file(&profile, "/a.db-wal");
    assert_eq!(wal["role"], "log", "{wal:#}");
    assert!(number(wal, "/syncs/calls") >= 20.0, "{wal:#}");
    let size = |bytes: u64| {
        let sizes = wal["writes"]["sizes"].as_array().unwrap();
        let found = sizes.iter().find(|size| size["bytes"] == bytes);
        found.map_or(0.0, |size| number(size, "/requests"))
    };
    assert!(size(24) >= 20.0 && size(4096) >= 20.0, "{wal:#}");
    assert_eq!(number(wal, "/concurrency/max"), 1.0);
}

#[test]
fn sizes_mix_and_syncs_of_fio_are_found() {
    if !can_record() || !has("fio") {
        return;
    }
    let _alone = alone();
    let here = tempfile::tempdir().unwrap();
    // 1024 requests of 8 KiB, 70 % reads, an fdatasync after every eighth write; the file is there.
    let job = "fio --name=j --filename=data --size=8m --bs=8k --rw=randrw --rwmixread=70 --fdatasync=8 \
        --ioengine=psync --randrepeat=1 --output=fio.json --output-format=json";
    fs::write(here.path().join("data"), vec![7; 8 << 20]).unwrap();
    let profile = profile(here.path(), job);
    let report: Value =
        serde_json::from_str(&fs::read_to_string(here.path().join("fio.json")).unwrap()).unwrap();
    let job = &report["jobs"][0];
    let data = file(&profile, "/data");
    for side in ["read", "write"] {
        let asked = number(job, &format!("/{side}/total_ios"));
        let flow = &data[&format!("{side}s")];
        assert_eq!(number(flow, "/requests"), asked, "{side}: {data:#}");
        assert_eq!(number(flow, "/bytes"), number(job, &format!("/{side}/io_bytes")));
        assert_eq!(flow["sizes"][0]["bytes"], 8192);
        assert_eq!(number(flow, "/aligned"), 1.0);
        assert!(number(flow, "/sequential") < 0.1);
    }
    // fio counts the syncs that it made.
    let syncs = number(job, "/sync/lat_ns/N");
    assert!((number(data, "/syncs/calls") - syncs).abs() <= 1.0, "{syncs} {data:#}");
    assert_eq!(data["role"], "data");
    assert_eq!(number(data, "/locality/working_set_bytes"), number(&data["reads"], "/bytes"));
}

#[test]
fn threads_processes_and_io_uring_are_followed() {
    if !can_record() || !has("fio") {
        return;
    }
    let _alone = alone();
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("data"), vec![7; 4 << 20]).unwrap();
    for how in ["--thread", "--ioengine=psync", "--ioengine=io_uring --iodepth=8"] {
        let engine = if how == "--thread" { "--thread --ioengine=psync" } else { how };
        let job = format!(
            "fio --name=j --filename=data --size=4m --bs=16k --rw=randread --numjobs=2 {engine} --output=out"
        );
        let profile = profile(here.path(), &job);
        // A file that is closed at once may lose its name, but not its requests.
        let files = profile["files"].as_array().unwrap().iter();
        let sizes = files.filter_map(|file| file["reads"]["sizes"].as_array()).flatten();
        let of_job = sizes.filter(|size| size["bytes"] == 16384);
        let requests: f64 = of_job.map(|size| number(size, "/requests")).sum();
        assert_eq!(requests, 512.0, "{how}: {profile:#}");
    }
}

#[test]
fn a_killed_recorder_leaves_a_trace_and_no_instance_after_the_next_command() {
    if !can_record() {
        return;
    }
    let _alone = alone();
    let here = tempfile::tempdir().unwrap();
    let trace = here.path().join("t.hptrace");
    let words = ["record", "-o", trace.to_str().unwrap(), "--", "sleep", "20"];
    let mut child = command(HALFPOWER, words).spawn().unwrap();
    let own = format!("/sys/kernel/tracing/instances/halfpower-{}-0", child.id());
    let enabled = Path::new(&own).join("events/task/task_newtask/enable");
    wait_until("the recording runs", || {
        fs::read_to_string(&enabled).is_ok_and(|on| on.starts_with('1'))
    });
    wait_until("the trace has its header", || trace.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(Path::new(&own).exists() && left_instances() >= 1);
    finish(command(HALFPOWER, ["history", "--no-history"]));
    assert!(!Path::new(&own).exists());
}

#[test]
fn an_earlier_trace_stays_until_the_new_one_is_complete() {
    if !can_record() {
        return;
    }
    let _alone = alone();
    let here = tempfile::tempdir().unwrap();
    let trace = here.path().join("t.hptrace");
    let record = |program: &[&str]| {
        let words = ["record", "--force", "-o", "t.hptrace", "--"];
        let mut command = command(HALFPOWER, words.iter().chain(program).copied());
        command.current_dir(here.path());
        finish(command)
    };
    assert_eq!(record(&["/no/such"]).code, Some(2));
    assert!(!trace.exists(), "a refusal leaves nothing");
    assert_eq!(record(&["sh", "-c", "echo x > log"]).code, Some(0));
    let before = fs::read(&trace).unwrap();
    let program = here.path().join("program");
    fs::write(&program, "#!/bin/sh\ncmp t.hptrace before\n").unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(record(&["/no/such"]).code, Some(2));
    assert_eq!(fs::read(&trace).unwrap(), before, "a refusal keeps the earlier one");
    fs::write(here.path().join("before"), &before).unwrap();
    assert_eq!(record(&["./program"]).code, Some(0), "it finds the earlier one in place");
    assert_ne!(fs::read(&trace).unwrap(), before);
    // The trace must not replace a recorded file.
    let words = ["record", "--force", "-o", "program", "--", "./program"];
    let mut over_itself = command(HALFPOWER, words);
    over_itself.current_dir(here.path());
    finish(over_itself).refused(&["program", "is read"]);
    assert!(fs::read_to_string(&program).unwrap().starts_with("#!"));
}

#[test]
fn ctrl_c_keeps_the_trace() {
    if !can_record() {
        return;
    }
    let _alone = alone();
    let here = tempfile::tempdir().unwrap();
    let trace = here.path().join("t.hptrace");
    let trace = trace.to_str().unwrap();
    // With pauses: writes at full speed may fill the ring before the program reads it.
    let script = "while :; do echo x >> log; sleep 0.005; done";
    let mut record = command(HALFPOWER, ["record", "-o", trace, "--", "sh", "-c", script]);
    let child = record.current_dir(here.path()).spawn().unwrap();
    wait_until("the program has written", || here.path().join("log").exists());
    std::thread::sleep(std::time::Duration::from_millis(300));
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let recorded = ended(child);
    assert_eq!(recorded.code, Some(130), "{}", recorded.stderr);
    let profile = finish(command(HALFPOWER, ["profile", trace, "--json"])).good_json();
    assert_eq!(profile["doubts"], Value::Array(Vec::new()));
    assert!(number(&profile, "/requests") > 10.0, "{profile:#}");
}

#[test]
fn deletions_are_recorded_on_ext4() {
    if !can_record() {
        return;
    }
    let _alone = alone();
    let volume = match common::places::Mount::on_loop("ext4", 64 << 20) {
        Ok(volume) => volume,
        Err(why) => return skip(&why),
    };
    // The files stay open until their names were surely seen.
    let script = "exec 3>temporary 4>kept; dd if=/dev/zero bs=4k count=50 >&3 2>/dev/null; \
        dd if=/dev/zero bs=4k count=50 >&4 2>/dev/null; sleep 0.5; rm temporary";
    let profile = profile(&volume.at, script);
    assert_eq!(file(&profile, "/temporary")["deleted"], true, "{profile:#}");
    assert_eq!(file(&profile, "/kept")["deleted"], false);
}

#[test]
fn a_hostile_trace_is_an_error() {
    let here = tempfile::tempdir().unwrap();
    let name = here.path().join("t.hptrace");
    let refused = |bytes: &[u8], words: &[&str]| {
        fs::write(&name, bytes).unwrap();
        finish(command(HALFPOWER, ["profile", name.to_str().unwrap()])).refused(words);
    };
    refused(b"not a trace", &["t.hptrace", "no known trace format begins with"]);
    refused(b"HPTRACE\x07", &["version 7"]);
    refused(b"HPTRACE\x01\xff\xff\xff\xff\0\0\0\0\0\0\0\0", &["header is damaged"]);
}

#[test]
fn what_cannot_be_recorded_is_named() {
    if !can_record() {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let trace = here.path().join("t.hptrace");
    let refused = |words: &[&str], why: &[&str]| {
        let own = ["record", "-o", trace.to_str().unwrap()];
        finish(command(HALFPOWER, own.iter().chain(words))).refused(why);
    };
    refused(&["--pid", "4194303"], &["--pid 4194303", "no such process"]);
    refused(&["--cgroup", "/no/group"], &["--cgroup /no/group", "cgroup.procs"]);
    refused(&["--device", "/dev/null"], &["--device /dev/null", "not a block device"]);
    refused(&["--", "/no/such/program"], &["/no/such/program"]);
    fs::write(&trace, "precious").unwrap();
    refused(&["--", "true"], &["--force"]);
    assert_eq!(fs::read_to_string(&trace).unwrap(), "precious");
}
