//! Traces of other tools: `halfpower trace convert`, and the commands that read any of them.

mod common;

use common::{halfpower_in, number};
use std::fs;
use std::path::Path;
use std::process::Command;

const STRACE: &str = r#"9 5.000000 openat(AT_FDCWD, "/d/my log", O_WRONLY|O_CREAT|O_TRUNC) = 3 <0.000020>
9 5.001000 write(3, "ab"..., 8192) = 8192 <0.000100>
9 5.002000 fdatasync(3) = 0 <0.001000>
9 5.004000 write(3, "ab"..., 8192) = 8192 <0.000100>
9 5.005000 fdatasync(3) = 0 <0.001000>
9 5.007000 pread64(4</d/data>, "", 4096, 8192) = 4096 <0.000300>
"#;

fn convert(directory: &Path, from: &str, to: &str) -> String {
    let ended = halfpower_in(directory, &format!("--force trace convert {from} --to {to} -o out"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    fs::read_to_string(directory.join("out")).unwrap_or_default()
}

#[test]
fn a_trace_converts_to_other_formats_and_stays_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("app"), STRACE).unwrap();
    let log = convert(at, "app", "fio-log");
    assert!(log.starts_with("fio version 3 iolog\n0 /d/my_log add\n"), "{log}");
    for line in
        ["0 /d/my_log write 0 8192", "1000 /d/my_log datasync 0 0", "6000 /d/data read 8192 4096"]
    {
        assert!(log.contains(line), "{line}: {log}");
    }
    let ended = halfpower_in(at, "trace convert app -o app.hptrace");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(convert(at, "app.hptrace", "fio-log"), log);
    // A file that is there is not replaced.
    fs::write(at.join("mine"), "mine").unwrap();
    halfpower_in(at, "trace convert app -o mine").refused(&["mine"]);
    assert_eq!(fs::read_to_string(at.join("mine")).unwrap(), "mine");
    fs::write(at.join("bad"), "1,r,0\n").unwrap();
    halfpower_in(at, "trace convert bad -o new").refused(&["bad", "line 1", "3 fields"]);
    assert!(!at.join("new").exists());
}

#[test]
fn a_fitted_job_resembles_the_application_and_runs() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("app"), STRACE).unwrap();
    let job = convert(at, "app", "fio-job");
    for line in ["[log]", "rw=write", "bs=8192", "fdatasync=1", "[other]", "bs=4096"] {
        assert!(job.lines().any(|one| one == line), "{line}: {job}");
    }
    // Both our fio and Debian's take it.
    let parsed = halfpower_in(at, "fio --parse-only out");
    assert_eq!(parsed.code, Some(0), "{parsed:?}");
    if common::fio::fio_is_here() {
        let theirs = Command::new("fio").args(["--parse-only", "out"]).current_dir(at).output();
        assert!(theirs.unwrap().status.success());
    } else {
        common::skip("fio is not installed");
    }
}

#[test]
fn a_real_recording_of_strace_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let traced = Command::new("strace")
        .args(["-f", "-ttt", "-T", "-y", "-o", "app", "dd", "if=/dev/zero", "of=file", "bs=8k"])
        .args(["count=20", "oflag=dsync", "conv=fdatasync"])
        .current_dir(at)
        .output();
    match traced {
        Ok(output) if output.status.success() => {}
        other => return common::skip(&format!("strace does not trace here: {other:?}")),
    }
    let document = halfpower_in(at, "replay app twin:cloud --repeats 1 --json").good_json();
    let log = document["classes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["role"] == "log" && one["op"] == "write");
    let log = log.unwrap_or_else(|| panic!("{document}"));
    assert_eq!((number(log, "/requests"), number(log, "/bytes")), (20.0, 163_840.0));
}

#[test]
fn commands_on_traces_read_every_format() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let msr =
        "128166372003061629,hm,1,Read,8192,4096,1331\n128166372003071629,hm,1,Write,0,4096,7\n";
    fs::write(at.join("msr"), msr).unwrap();
    fs::write(at.join("app"), STRACE).unwrap();
    let cache = halfpower_in(at, "twin cache msr --json").good_json();
    assert_eq!(number(&cache, "/trace/requests"), 2.0);
    let cache = halfpower_in(at, "twin cache app --json").good_json();
    assert_eq!(number(&cache, "/trace/requests"), 3.0);
    // Of an application, whose requests need not be whole sectors.
    fs::write(at.join("odd"), "0,read,100,832\n1000,write,1000000,1\n").unwrap();
    let cache = halfpower_in(at, "twin cache odd --json").good_json();
    assert_eq!(number(&cache, "/trace/bytes"), 833.0);
    assert_eq!(number(&cache, "/without_cache/bytes"), 1024.0 + 512.0);
}

#[test]
fn a_trace_in_a_pipe_is_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("app"), STRACE).unwrap();
    assert_eq!(halfpower_in(at, "trace convert app -o app.hptrace").code, Some(0));
    for trace in ["app", "app.hptrace"] {
        let program = env!("CARGO_BIN_EXE_halfpower");
        let script = format!("'{program}' profile <(cat {trace}) --json");
        let output = Command::new("bash").args(["-c", &script]).current_dir(at).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let profile: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{trace}: {error}: {said}"));
        // The open too.
        assert_eq!(number(&profile, "/requests"), 6.0, "{trace}");
    }
}
