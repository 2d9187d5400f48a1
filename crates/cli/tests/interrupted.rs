//! After Ctrl-C a command reports what was done, marked incomplete, and removes its files.

mod common;

use common::{Ended, HALFPOWER, alone, command, ended, number, points, wait_until};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn interrupted(directory: &Path, words: &str, input: &str) -> Ended {
    let mut command = command(HALFPOWER, words.split_whitespace());
    let mut child = command.current_dir(directory).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    wait_until("the first file", || !names(directory).is_empty());
    std::thread::sleep(Duration::from_millis(1500));
    interrupt(i32::try_from(child.id()).unwrap());
    let done = ended(child);
    // The end of the input did not end the command.
    drop(stdin);
    assert_eq!(done.code, Some(130), "{words}: {done:?}");
    done
}

/// Interrupts a process, or a process group (negative), as Ctrl-C does.
fn interrupt(process: i32) {
    // SAFETY: `kill` takes no memory.
    assert_eq!(unsafe { libc::kill(process, libc::SIGINT) }, 0);
}

fn names(directory: &Path) -> Vec<String> {
    let all = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn reported(words: &str, input: &str) -> (Value, String) {
    let directory = tempfile::tempdir().unwrap();
    let done = interrupted(directory.path(), words, input);
    assert_eq!(names(directory.path()), ["own.json"], "{words}");
    let text = fs::read_to_string(directory.path().join("own.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    common::assert_sound(&document);
    assert_eq!(document["incomplete"], true, "{words}");
    assert!(document["warnings"].to_string().contains("interrupted after"), "{document:#}");
    (document, done.stdout)
}

fn figure(report: &str, words: &str) -> f64 {
    let rest = report.split(words).nth(1).unwrap_or_else(|| panic!("no '{words}': {report}"));
    let end = rest.trim_start().split(|one: char| one != '.' && !one.is_ascii_digit()).next();
    end.unwrap().parse().unwrap_or_else(|_| panic!("no figure after '{words}': {report}"))
}

#[test]
fn a_long_run_reports_its_rate_until_then() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let words = "run . --size 16m --request 4k --rate 100 --runtime 60s --json --no-history";
    let done = interrupted(directory.path(), words, "");
    let document = done.json();
    assert_eq!(document["incomplete"], true);
    let [point] = points(&document) else { panic!("one point: {document:#}") };
    assert!(common::has_numbers(point));
    // The rate is offered: one that counted the whole minute would be a fortieth.
    let rate = number(point, "/iops");
    assert!((80.0..120.0).contains(&rate), "{rate}");
    let warnings = point["warnings"].to_string();
    assert!(warnings.contains("the figures are those until then"), "{warnings}");
    assert!(names(directory.path()).is_empty());
}

#[test]
fn diskspd_reports_its_threads_until_then() {
    let _alone = alone();
    // Threads of each target, and a pool for all.
    for threads in ["-t2 -g400", "-F2 -O4 y.dat"] {
        let words = format!("diskspd -c1M -b4K -d60 -W0 -w50 -r {threads} x.dat --json own.json");
        let (document, report) = reported(&words, "");
        let span = &document["diskspd"]["spans"][0];
        let seconds = number(span, "/elapsed_ns") / 1e9;
        assert!((0.5..30.0).contains(&seconds), "{seconds}");
        assert!((figure(&report, "actual test time:") - seconds).abs() < 0.1, "{report}");
        assert!(report.contains("halfpower: interrupted after"), "{report}");
        let requests: f64 = span["threads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| number(one, "/reads/requests") + number(one, "/writes/requests"))
            .sum();
        assert!(requests > 10.0, "{span:#}");
    }
}

#[test]
fn sqlio_reports_its_requests_until_then() {
    let _alone = alone();
    let (document, report) =
        reported("sqlio -kW -s60 -b8 -t2 -LS -fsequential --size 4m x.dat --json own.json", "");
    assert!(figure(&report, "IOs/sec:") > 10.0, "{report}");
    assert!(number(&document, "/sqlio/figures/ios_per_s") > 10.0, "{document:#}");
}

#[test]
fn the_study_of_sqlio_has_the_points_until_then() {
    let _alone = alone();
    let words =
        "sqlio --matrix -BY --runtime 400ms --size 4m --max-threads 4 x.dat --json own.json";
    let (document, report) = reported(words, "");
    let measured = points(&document).len();
    assert!((1..12).contains(&measured), "{measured} of 12 points: {report}");
    assert!(report.lines().any(|line| line.starts_with("R ran")), "{report}");
}

#[test]
fn iozone_reports_the_tests_until_then() {
    let _alone = alone();
    let table = "iozone -a -o -n 4m -g 1g -i 0 -i 1 -f x.dat --json own.json";
    let (document, report) = reported(table, "");
    assert!(report.contains("iozone test interrupted."), "{report}");
    let cell = &document["iozone"]["cells"][0];
    let kib = number(cell, "/runs_bytes_per_s/0") / 1024.0;
    let row = report.lines().find(|line| line.trim_start().starts_with("4096 ")).unwrap();
    assert!(kib > 1.0 && row.split_whitespace().count() >= 3, "{row}");
    let children = "iozone -t 2 -o -s 256m -r 4k -i 0 -F x.dat y.dat --json own.json";
    let (document, report) = reported(children, "");
    assert!(figure(&report, "initial writers \t=") > 1.0, "{report}");
    assert_eq!(points(&document).len(), 2);
}

#[test]
fn metadata_reports_the_operations_until_then() {
    let _alone = alone();
    for plan in ["--files 2000 --rounds 1000", "--files 100000000 --sync all"] {
        let directory = tempfile::tempdir().unwrap();
        let words = format!("metadata . {plan} --json --no-history");
        let document = interrupted(directory.path(), &words, "").json();
        assert_eq!(document["incomplete"], true);
        let rates = document["rates"].as_array().unwrap();
        let all = if plan.contains("rounds") { 6 } else { 1 };
        assert_eq!(rates.len(), all, "{rates:?}");
        for (rate, operation) in
            rates.iter().zip(document["metadata"]["operations"].as_array().unwrap())
        {
            let rounds = operation["elapsed_ns"].as_array().unwrap();
            let ns: f64 = rounds
                .iter()
                .chain(operation.get("unfinished_ns"))
                .map(|ns| ns.as_f64().unwrap())
                .sum();
            let count = number(rate, "/count");
            assert!(
                (number(rate, "/per_s") / (count * 1e9 / ns) - 1.0).abs() < 1e-6,
                "{operation:#}"
            );
            // Whole rounds, and at most one that was cut.
            let whole = rounds.len() as f64 * number(operation, "/count");
            assert!(
                (whole..=whole + number(operation, "/count")).contains(&count),
                "{operation:#}"
            );
        }
        assert!(names(directory.path()).is_empty());
    }
}

#[test]
fn postmark_reports_the_transactions_until_then() {
    let _alone = alone();
    let (document, report) = reported(
        "postmark --json own.json",
        "set location .\nset transactions 2000000000\nrun\nrun\n",
    );
    let run = &document["postmark"]["runs"][0];
    let done = number(run, "/interrupted_after");
    assert!(done > 10.0, "{run:#}");
    let seconds = number(run, "/phases/transactions_ns") / 1e9;
    let rate = number(run, "/rates/transactions_per_s");
    assert!((rate / (done / seconds) - 1.0).abs() < 1e-6, "{run:#}");
    assert!(report.contains("seconds of transactions"), "{report}");
    assert!(report.contains(&format!("interrupted after {done} of 2000000000 steps")), "{report}");
    assert_eq!(document["postmark"]["runs"].as_array().unwrap().len(), 1, "no second run began");
}

fn interrupted_in_command(words: &[&str], group: bool) -> Ended {
    let directory = tempfile::tempdir().unwrap();
    let child =
        command(HALFPOWER, words).current_dir(directory.path()).process_group(0).spawn().unwrap();
    let waiting = directory.path().join("waiting");
    wait_until("the command", || waiting.exists());
    let process = i32::try_from(child.id()).unwrap();
    interrupt(if group { -process } else { process });
    let began = Instant::now();
    let done = ended(child);
    assert_eq!(done.code, Some(130), "{words:?}: {done:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "the command of 60 s was ended");
    done
}

#[test]
fn fio_reports_the_sets_before_an_interrupted_command() {
    let _alone = alone();
    const WAIT: &str = "touch waiting; exec sleep 60";
    let (before, after) = (format!("--exec_prerun={WAIT}"), format!("--exec_postrun={WAIT}"));
    let first = ["fio", "--output-format=json", "--size=64k", "--rw=write", "--name=a"];
    let second = ["--name=b", "--stonewall"];
    for (words, group) in [
        ([&first[..], &second, &[&before]].concat(), false),
        ([&first[..], &second, &[&before]].concat(), true),
        ([&first[..], &[&after], &second].concat(), true),
    ] {
        let document = interrupted_in_command(&words, group).json();
        let jobs = document["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), 1, "{words:?}: {document:#}");
        assert_eq!(number(&jobs[0], "/write/io_bytes"), 65536.0);
    }
    // Nothing was measured.
    let done = interrupted_in_command(&[&first[..], &[&before]].concat(), true);
    assert!(done.stdout.is_empty(), "{done:?}");
}

#[test]
fn compare_reports_the_runs_before_an_interrupted_setup() {
    let _alone = alone();
    let arms = ["compare", "--a", ".", "--b", ".", "--size", "4m", "--runtime", "100ms"];
    // Five blocks of four runs are whole.
    let eleventh = "echo >>runs; [ $(wc -l <runs) -lt 11 ] || { touch waiting; exec sleep 60; }";
    let limits =
        ["--json", "--no-history", "--until", "0.0001%", "--budget", "1h", "--b-setup", eleventh];
    for group in [false, true] {
        let document = interrupted_in_command(&[&arms[..], &limits].concat(), group).json();
        assert_eq!(document["method"]["in_turn"]["blocks"], 5, "{document:#}");
        assert!(document["warnings"].to_string().contains("interrupted"), "{document:#}");
    }
}
