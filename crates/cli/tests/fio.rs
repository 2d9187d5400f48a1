//! `halfpower fio` as a program: exit codes, report files, cleanup.

#[macro_use]
mod common;

use common::places::Loop;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn fio(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_halfpower"))
        .env("HALFPOWER_HISTORY", "none")
        .arg("fio")
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn usage_errors_exit_with_2_and_write_nothing() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("mine"), vec![7; 1 << 20]).unwrap();
    fs::write(directory.path().join("bad.fio"), "[a]\nsize=1m\nrw=write\nverify=nil\n").unwrap();
    for (arguments, why) in [
        (&["bad.fio"][..], "bad.fio line 4: option verify=nil"),
        (&["none.fio"], "none.fio"),
        (&["--name=a", "--size=-1"], "negative"),
        (&["--name=a", "--filename=mine", "--rw=write"], "--destroy-data=mine"),
        (&["--name=a", "--size=1m", "--readonly", "--rw=write"], "--readonly"),
        (&["--name=a", "--size=1m", "--iodepth=9", "--warnings-fatal"], "iodepth=9"),
        (&["--name=a", "--size=1m", "--output=no/such/place"], "make it first"),
        (&["--name=a", "--filename=mine", "--output=mine"], "it is measured"),
        (&["--name=a", "--size=1m", "--output-format=xml"], "normal, terse, json or json+"),
        (&[], "no job is defined"),
    ] {
        let output = fio(directory.path(), arguments);
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {reported}");
        assert!(reported.contains(why), "{arguments:?}: {reported}");
        assert_eq!(files(directory.path()), ["bad.fio", "mine"], "{arguments:?}");
    }
    assert!(fs::read(directory.path().join("mine")).unwrap().iter().all(|&byte| byte == 7));
}

#[test]
fn a_running_job_reports_at_each_interval() {
    let directory = tempfile::tempdir().unwrap();
    let job = [
        "--name=a",
        "--size=256k",
        "--rw=randread",
        "--rate_iops=50",
        "--time_based",
        "--runtime=3",
        "--output-format=json",
    ];
    let counts = |text: &str| -> Vec<u64> {
        let documents = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
        documents
            .map(|one| one.unwrap()["jobs"][0]["read"]["total_ios"].as_u64().unwrap())
            .collect()
    };
    let output = fio(directory.path(), &[&job[..], &["--status-interval=1"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = counts(&String::from_utf8(output.stdout).unwrap());
    assert!(found.len() >= 3 && found.is_sorted() && found[0] < 150, "{found:?}");
    assert_eq!(found.last(), Some(&150));
    // A file holds them all, and readers take the last report of a run.
    let named = ["--status-interval=1", "--output=report.json"];
    assert!(fio(directory.path(), &[&job[..], &named].concat()).status.success());
    let text = fs::read_to_string(directory.path().join("report.json")).unwrap();
    assert_eq!((counts(&text).len() >= 2, counts(&text).last()), (true, Some(&150)));
    for (arguments, why) in [
        (&["--status-interval=0"][..], "--status-interval=0: it is not a time above 0"),
        (&["--status-interval=often"], "--status-interval=often"),
        (&["--status-interval=1", "--filename=twin:gateway-1997"], "virtual time"),
    ] {
        let output = fio(directory.path(), &[&job[..], arguments].concat());
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {reported}");
        assert!(reported.contains(why), "{arguments:?}: {reported}");
    }
}

#[test]
fn reports_go_to_the_named_files() {
    let directory = tempfile::tempdir().unwrap();
    let job = [
        "--name=a",
        "--size=256k",
        "--rw=randread",
        "--write_iops_log=",
        "--output-format=json",
        "--output=fio.json",
        "--json=own.json",
    ];
    let output = fio(directory.path(), &job);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    assert_eq!(files(directory.path()), ["a.0.0", "a_iops.1.log", "fio.json", "own.json"]);
    let read = |name: &str| {
        serde_json::from_slice::<serde_json::Value>(&fs::read(directory.path().join(name)).unwrap())
            .unwrap()
    };
    assert_eq!(read("fio.json")["jobs"][0]["read"]["total_ios"], 64);
    assert_eq!(
        (&read("own.json")["kind"], &read("own.json")["points"][0]["achieved"]["requests"]),
        (&"run".into(), &64.into())
    );

    let output = fio(directory.path(), &["--name=b", "--size=64k", "--rw=write"]);
    let reported = String::from_utf8(output.stdout).unwrap();
    assert!(
        reported.starts_with("\nb: (groupid=0, jobs=1): err= 0:")
            && reported.contains("write: IOPS="),
        "{reported}"
    );
    assert!(reported.contains("  write 4 KiB, psync x 1, buffered\n"), "{reported}");
    assert_eq!(fs::metadata(directory.path().join("b.0.0")).unwrap().len(), 64 << 10);

    let version = fio(directory.path(), &["--version"]);
    assert!(String::from_utf8(version.stdout).unwrap().starts_with("fio-3."));
}

#[test]
fn a_failed_run_exits_with_1_and_removes_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let output = fio(directory.path(), &["--name=a", "--size=64k", "--ramp_time=30"]);
    let reported = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(reported.contains("within its ramp_time"), "{reported}");
    assert!(files(directory.path()).is_empty());
}

#[test]
fn ctrl_c_reports_what_was_done() {
    let directory = tempfile::tempdir().unwrap();
    let job = [
        "fio",
        "--size=1m",
        "--runtime=60",
        "--time_based",
        "--output-format=json",
        "--output=fio.json",
        "--json=own.json",
        "--name=a",
        "--rw=randread",
        "--name=b",
        "--rw=randwrite",
        "--numjobs=2",
        "--name=later",
        "--stonewall",
    ];
    let mut child = Command::new(env!("CARGO_BIN_EXE_halfpower"))
        .env("HALFPOWER_HISTORY", "none")
        .args(job)
        .current_dir(directory.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let began = std::time::Instant::now();
    let has_all =
        || files(directory.path()).iter().filter(|name| name.ends_with(".0")).count() >= 4;
    while !has_all() && began.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::thread::sleep(std::time::Duration::from_secs(1));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let code = child.wait().unwrap().code();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    let last = "halfpower: interrupted; test files were removed";
    assert_eq!((code, said.lines().last()), (Some(130), Some(last)), "{said}");
    let read = |name: &str| {
        serde_json::from_slice::<serde_json::Value>(&fs::read(directory.path().join(name)).unwrap())
            .unwrap()
    };
    let jobs = read("fio.json")["jobs"].as_array().unwrap().clone();
    let rate = |job: &serde_json::Value, side: &str| {
        let part = &job[side];
        assert!(
            part["runtime"].as_u64().unwrap() < 30_000,
            "not that of the job's runtime: {part}"
        );
        part["iops"].as_f64().unwrap()
    };
    assert!(rate(&jobs[0], "read") > 10.0, "{}", jobs[0]["read"]);
    assert!(jobs[1..3].iter().all(|job| rate(job, "write") > 10.0), "{}", jobs[1]["write"]);
    let own = read("own.json");
    assert_eq!(own["incomplete"], true);
    let points = own["points"].as_array().unwrap();
    assert!(points.iter().all(|point| point["error"] == "it has not ended"), "{points:?}");
    assert_eq!(files(directory.path()), ["fio.json", "own.json"]);
}

#[test]
fn a_job_runs_with_the_scheduler_that_it_asks_for() {
    let device = or_skip!(Loop::make(16 << 20));
    let directory = tempfile::tempdir().unwrap();
    let name = device.device.trim_start_matches("/dev/");
    let setting = Path::new("/sys/class/block").join(name).join("queue/scheduler");
    let chosen = || {
        let text = fs::read_to_string(&setting).unwrap();
        let names = text.split_whitespace().find(|name| name.starts_with('['));
        names.unwrap_or_default().trim_matches(['[', ']']).to_owned()
    };
    assert_eq!(chosen(), "none");
    let target = format!("--filename={}", device.device);
    let job = |scheduler: &'static str, more: &[&'static str]| {
        let mut words = vec![scheduler, "--rw=randread", "--size=1m", "--bs=4k", "--direct=1"];
        words.extend_from_slice(more);
        words
    };
    let started = |words: &[&str]| {
        let mut command = Command::new(common::HALFPOWER);
        command.arg("fio").arg(&target).args(words).current_dir(directory.path());
        command.env("HALFPOWER_HISTORY", "none").env("HALFPOWER_STATE", directory.path());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let timed = ["--time_based", "--runtime=2", "--rate_iops=100"];
    let first = job("--ioscheduler=mq-deadline", &timed);
    let second = job("--ioscheduler=kyber", &timed);
    let words: Vec<&str> =
        [&["--name=a"], &first[..], &["--name=b", "--stonewall"], &second[..]].concat();
    let mut child = started(&words);
    for wanted in ["mq-deadline", "kyber"] {
        common::wait_until(wanted, || chosen() == wanted);
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(chosen(), "none", "restored");
    // A killed job's scheduler is restored by the next command.
    let words: Vec<&str> = [&["--name=a"], &first[..]].concat();
    let mut child = started(&words);
    common::wait_until("mq-deadline", || chosen() == "mq-deadline");
    child.kill().unwrap();
    child.wait().unwrap();
    let words: Vec<&str> = [&["--name=a"], &job("--ioscheduler=none", &[])[..]].concat();
    assert!(started(&words).wait().unwrap().success());
    assert_eq!(chosen(), "none");
    let both: Vec<&str> = [&["--name=a"], &first[..], &["--name=b"], &second[..]].concat();
    for (words, why) in [
        (both, "another job sets mq-deadline on the same device at the same time"),
        ([&["--name=a"], &job("--ioscheduler=cfq", &[])[..]].concat(), "offers none, "),
    ] {
        let output = started(&words).wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(why), "{said}");
        assert_eq!(chosen(), "none");
    }
}

#[test]
fn commands_run_before_and_after_a_job() {
    let directory = tempfile::tempdir().unwrap();
    let command = |text: &str| format!("--exec_{text}");
    let (before, after) = (
        command("prerun=echo before; ls a.0.0; echo wrong >&2"),
        command("postrun=ls -s a.0.0; exit 3"),
    );
    let jobs = |before: &str, after: &str| {
        let words = ["--name=a", "--rw=write", "--size=64k", before, after];
        fio(directory.path(), &[&words[..], &["--name=b", "--stonewall", "--size=4k"]].concat())
    };
    let output = jobs(&before, &after);
    let (reported, said) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{said}");
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(read("a.prerun.txt"), "before\na.0.0\nwrong\n");
    assert!(read("a.postrun.txt").ends_with(" a.0.0\n"));
    assert!(reported.contains("exec_postrun ended with exit status: 3"), "{reported}");
    // A command that fails before its set fails the jobs of that set only.
    let output = jobs("--exec_prerun=false", "--end_fsync=0");
    let (reported, said) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("exec_prerun ended with exit status: 1"), "{said}");
    assert!(reported.contains("b: ") && reported.contains("read: "), "{reported}");
    // An output of a command is an output: it replaces only halfpower's own files.
    fs::write(directory.path().join("a.prerun.txt"), "mine").unwrap();
    let output = jobs(&before, &after);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(read("a.prerun.txt"), "mine");
}
