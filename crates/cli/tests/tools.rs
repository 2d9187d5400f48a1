//! The program with other tools' command lines: exit codes, what goes where, the document beside the report.

use std::path::Path;
use std::process::{Command, Output};

fn halfpower(directory: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_halfpower")).args(line.split_whitespace()).current_dir(directory).output().unwrap()
}

fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The document beside a report; its points are those that every command of halfpower reads.
fn document(path: &Path, tool: &str, points: usize) -> serde_json::Value {
    let read = store::read(path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.points.len(), points);
    assert!(read.points.iter().all(|point| point.numbers.is_some()));
    let value: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(value[tool].is_object(), "the tool's own results");
    value
}

#[test]
fn iozone() {
    let here = tempfile::tempdir().unwrap();
    let done = halfpower(here.path(), "iozone -a -n 64k -g 128k -q 8k -i 0 -i 1 --repeats 2 -R -b sheet.xls --json all.json");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    assert!(text.contains("iozone test complete.") && text.contains("\"Re-Reader report\""), "{text}");
    assert_eq!(entries(here.path()), ["all.json", "sheet.xls"]);
    let value = document(&here.path().join("all.json"), "iozone", 4 * 4);
    assert_eq!(value["iozone"]["surfaces"][0]["kib_per_s"].as_array().unwrap().len(), 2);
}

#[test]
fn sqlio() {
    let here = tempfile::tempdir().unwrap();
    let done = halfpower(here.path(), "sqlio -kW -frandom -t2 -o4 -b4 -BY -LS --seconds 200ms --size 4m . --json one.json");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    assert!(text.starts_with("sqlio v1.5.SG\n") && text.contains("\nIOs/sec:"), "{text}");
    assert_eq!(entries(here.path()), ["one.json"]);
    document(&here.path().join("one.json"), "sqlio", 1);
    let done = halfpower(here.path(), "sqlio --matrix -BY --seconds 10ms --size 4m --most-threads 1 --align 512,4k . --json two.json");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success() && text.contains("oper     thr       orig        new    diff%"), "{text}");
    document(&here.path().join("two.json"), "sqlio_matrix", 8);
    assert_eq!(entries(here.path()), ["one.json", "two.json"]);
}

#[test]
fn diskspd() {
    let here = tempfile::tempdir().unwrap();
    let done = halfpower(here.path(), "diskspd -c1M -d1 -W0 -b4K -r -w50 -o4 -L . --json one.json");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    assert!(text.contains("Results for timespan 1:") && text.contains("Total latency distribution:"), "{text}");
    document(&here.path().join("one.json"), "diskspd", 1);
    assert_eq!(entries(here.path()), ["one.json"]);
    let done = halfpower(here.path(), "diskspd -c1M -d1 -W0 -Rxml .");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success() && text.starts_with("<Results>") && text.ends_with("</Results>\n"), "{text}");
    assert_eq!(entries(here.path()), ["one.json"]);
}

#[test]
fn usage_is_2_and_a_failed_run_is_1() {
    let here = tempfile::tempdir().unwrap();
    for line in [
        "iozone -i 99",
        "iozone -s 64 --json no/where.json",
        "iozone -f no/such/place",
        "sqlio -kX",
        "sqlio -frandom none.dat",
        "sqlio --matrix --json . --size 1m .",
        "diskspd -d1 none.dat",
        "diskspd -p none.dat",
    ] {
        let done = halfpower(here.path(), line);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{line}: {said}");
        assert!(said.starts_with("halfpower: ") && said.lines().count() == 1, "{line}: {said}");
        assert!(entries(here.path()).is_empty(), "{line}");
    }
    // A reader that takes nothing: the run fails, and its files go.
    for line in ["iozone -s 64 -i 0", "sqlio -kW --seconds 50ms -BY new.dat"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let done = Command::new(env!("CARGO_BIN_EXE_halfpower"))
            .args(line.split_whitespace())
            .current_dir(here.path())
            .stdout(full)
            .output()
            .unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{line}: {said}");
        assert!(entries(here.path()).is_empty(), "{line}");
    }
    for tool in ["iozone", "sqlio", "diskspd"] {
        let done = halfpower(here.path(), &format!("{tool} --help"));
        assert!(done.status.success() && String::from_utf8(done.stdout).unwrap().contains("--destroy-data"));
    }
}
