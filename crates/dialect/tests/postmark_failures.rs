//! Failures on a real file system: a clear message, no file left, a failed run.

mod mounted;

use dialect::postmark::{Outcome, Session};
use host::files::HostFiles;
use mounted::Mounted;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn said(lines: &[String], interrupt: &AtomicBool) -> (String, u8, Outcome) {
    let files = HostFiles::new();
    let mut session = Session::new(&files, interrupt);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut outcome = Outcome::Continue;
    for line in lines {
        outcome = session.line(line, &mut out, &mut err).unwrap();
    }
    let has_report = String::from_utf8(out).unwrap().contains("Time:");
    if outcome == Outcome::Interrupted {
        let [run] = session.results() else { panic!("one result: {:?}", session.results()) };
        assert!(run.interrupted_after > Some(0) && has_report, "what was done until then");
    } else {
        assert!(session.results().is_empty(), "a failed run has no result");
        assert!(!has_report, "a failed run has no report");
    }
    (String::from_utf8(err).unwrap(), session.exit_code(), outcome)
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

#[test]
fn locations_that_cannot_be() {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("plain"), "").unwrap();
    let never = AtomicBool::new(false);
    for (name, words) in [
        ("nowhere", "does not exist: make the directory first"),
        ("plain", "is not a directory"),
        ("plain/below", "is not a directory"),
    ] {
        // A good location before the bad one is left as it was.
        let lines = [
            format!("set location {}", here.path().display()),
            format!("set location +{}", here.path().join(name).display()),
            "run".into(),
        ];
        let (err, code, _) = said(&lines, &never);
        assert!(
            err.starts_with("Error: the location '") && err.contains(name) && err.contains(words),
            "{err}"
        );
        assert_eq!((code, entries(here.path())), (2, 1), "a misuse, and nothing was made");
    }
}

#[test]
fn an_interrupt_in_the_middle() {
    let here = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let lines = [
        format!("set location {}", here.path().display()),
        "set threads 2".into(),
        "set transactions 100000000".into(),
        "run".into(),
    ];
    let (err, code, outcome) = std::thread::scope(|scope| {
        scope.spawn(|| {
            // The transactions begin when all 500 files have been created.
            let files = || {
                let own = std::fs::read_dir(here.path()).unwrap().flatten().next();
                own.and_then(|own| std::fs::read_dir(own.path()).ok()).map_or(0, Iterator::count)
            };
            let began = Instant::now();
            while files() < 400 && began.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
        });
        said(&lines, &stop)
    });
    assert!(err.contains("interrupted; the files of the run were removed"), "{err}");
    assert_eq!((code, outcome, entries(here.path())), (1, Outcome::Interrupted, 0));
}

#[test]
fn a_disk_that_fills_up_in_mid_run() {
    let Some(small) = Mounted::tmpfs("1m") else { return };
    let here = small.path();
    for engine in ["stdio", "syscalls"] {
        let lines = [
            format!("set location {}", here.display()),
            "set threads 2".into(),
            format!("set engine {engine}"),
            "set subdirectories 3".into(),
            "run".into(),
        ];
        let (err, code, outcome) = said(&lines, &AtomicBool::new(false));
        assert!(
            err.starts_with("Error: no space left to ")
                && err.contains(&here.display().to_string()),
            "{err}"
        );
        assert!(err.contains("free some, or lower the number or the size of the files"), "{err}");
        assert_eq!((code, outcome, entries(here)), (1, Outcome::Continue, 0));
    }
}
