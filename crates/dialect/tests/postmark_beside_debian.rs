//! Debian's PostMark gives the same text and counts for the same lines.

use dialect::postmark::Session;
use host::files::HostFiles;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

/// Returns `None`, with a message, if the program is neither installed nor required.
fn original() -> Option<PathBuf> {
    let found = ["/usr/bin/postmark", "/usr/games/postmark"]
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists());
    if found.is_none() {
        assert_ne!(
            std::env::var("HALFPOWER_REQUIRE").as_deref(),
            Ok("all"),
            "postmark is not installed: apt-get install postmark"
        );
        eprintln!("skipped: postmark is not installed (apt-get install postmark)");
    }
    found
}

fn original_text(program: &Path, directory: &Path, script: &str) -> String {
    let mut child = Command::new(program)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

fn our_text(directory: &Path, script: &str) -> String {
    let never = AtomicBool::new(false);
    let files = HostFiles::new();
    let mut session = Session::new(&files, &never);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    session.begin(&mut out).unwrap();
    session.line(&format!("set location {}", directory.display()), &mut out, &mut err).unwrap();
    for line in script.lines() {
        out.extend(b"pm>");
        session.line(line, &mut out, &mut err).unwrap();
    }
    out.extend(b"pm>");
    without_our_section(&String::from_utf8(out).unwrap())
}

fn without_our_section(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("\nHalfpower:\n") {
        kept.push_str(&rest[..start]);
        rest = &rest[start..];
        rest = &rest[rest.find("pm>").unwrap_or(rest.len())..];
    }
    kept + rest
}

fn terse_fields(line: &str) -> Option<Vec<f64>> {
    let fields: Vec<f64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
    (fields.len() == 13 && line.split(' ').count() == 13).then_some(fields)
}

fn terse_bytes(text: &str) -> Vec<f64> {
    text.lines().filter_map(terse_fields).flat_map(|f| [f[11] * f[0], f[12] * f[0]]).collect()
}

fn normalised(text: &str) -> String {
    let line = |line: &str| {
        if let Some(f) = terse_fields(line) {
            // Rate times seconds is a count, which is what must agree.
            let over_total = [3, 8].map(|i| (f[i] * f[0]).round());
            let over_mix = [2, 5, 6, 7, 10].map(|i| (f[i] * f[1]).round());
            return format!("terse {over_total:?} {over_mix:?}");
        }
        match (line.find(" seconds "), line.find('(')) {
            (Some(at), Some(rate)) => format!("\t_{} _", &line[at..rate]),
            (Some(at), None) => format!("\t_{}", &line[at..]),
            (None, Some(rate)) if line.ends_with("per second)") => format!("{}_", &line[..rate]),
            _ => line.to_string(),
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn assert_same(script: &str) {
    let Some(program) = original() else { return };
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (theirs_text, ours_text) =
        (original_text(&program, theirs.path(), script), our_text(ours.path(), script));
    let ours_text = ours_text.replace(
        &format!("Working directory: \n\t{} (weight=1)", ours.path().display()),
        "Working directory: HERE",
    );
    let theirs_text = theirs_text.replace(&theirs.path().display().to_string(), "HERE");
    assert_eq!(normalised(&ours_text), normalised(&theirs_text), "after\n{script}");
    let (ours_bytes, theirs_bytes) = (terse_bytes(&ours_text), terse_bytes(&theirs_text));
    for (ours, theirs) in ours_bytes.iter().zip(&theirs_bytes) {
        // A rate is rounded to 24 bits or to a hundredth, then comes times the seconds.
        let rounding = theirs * f64::from(f32::EPSILON) + 2.0;
        assert!((ours - theirs).abs() <= rounding, "{ours} bytes against {theirs} after\n{script}");
    }
    assert_eq!(std::fs::read_dir(ours.path()).unwrap().count(), 0);
}

#[test]
fn defaults_in_both_reports() {
    assert_same("show\nrun\nset report terse\nrun\nset buffering false\nrun\nshow\n");
}

#[test]
fn the_published_run() {
    assert_same(
        "set number 10000\nset transactions 20000\nset subdirectories 5\nset size 500 100000\nset read 4096\nset write 4096\nrun\nset report terse\nrun\n",
    );
}

#[test]
fn biases_and_odd_settings() {
    assert_same(
        "set size 10 20\nset number 5\nset transactions 25\nrun\nset bias create -1\nrun\nset bias read -1\nrun\nset bias create 10\nrun\nset bias read 10\n\
         set report terse\nrun\nset size 10 11\nset bias read 0\nrun\nset size 10\nset transactions 19\nrun\nset size 1048576\nset number 1\nset bias create -1\n\
         set bias read -1\nset report verbose\nrun\nset subdirectories 3\nrun\n",
    );
}

/// Small pools fill up or run empty: the order of every draw shows.
#[test]
fn many_small_pools() {
    let mut script = String::from("set size 100 3000\n");
    let mut x: u32 = 12345;
    let mut draw = |below: u32| {
        x = x.wrapping_mul(1_103_515_245).wrapping_add(12345);
        (x >> 16) % below
    };
    for _ in 0..150 {
        let settings = [
            format!("set seed {}", draw(10000) + 1),
            format!("set number {}", draw(40) + 1),
            format!("set transactions {}", draw(200) + 10),
            format!("set bias read {}", draw(12) as i32 - 1),
            format!("set bias create {}", draw(12) as i32 - 1),
            format!("set subdirectories {}", draw(4) + 1),
            format!("set report {}", if draw(2) == 0 { "terse" } else { "verbose" }),
        ];
        script += &settings.join("\n");
        script += "\nrun\n";
    }
    assert_same(&script);
}

#[test]
fn lines_that_both_refuse() {
    assert_same(
        "\n# comment\nsho\nSHOW\n show\nset foo\nset\nset number -3\nset size\nset bias read 11\nset report foo\nset buffering FALSE\nset size 1024 1048577\nshow\nset size 1k 1048576\nshow\nset subdirectories 1\nset bias read -1\nset read 1000000\nset number 1k\nshow\n",
    );
}
