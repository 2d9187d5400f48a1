//! `halfpower fio` as a program: exit codes, report files, cleanup.

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
