//! Whole runs on a file system in memory whose operations move its clock: texts, counts and times
//! are exact.

#[path = "../../workload/tests/memory/mod.rs"]
mod memory;

use dialect::postmark::{Config, PostmarkResult, RunError, Session, classic, extra, run, terse};
use machine::files::{FileEngine, FileSync};
use memory::MemoryFiles;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use workload::smallfile::SmallFilePlan;

static NEVER: AtomicBool = AtomicBool::new(false);

fn ran(config: &Config) -> PostmarkResult {
    let files = MemoryFiles::new(1_000_000);
    let result = run(&files, config, &NEVER, &mut std::io::sink()).unwrap();
    assert_eq!(files.left(), 0, "files are left");
    result
}

#[test]
fn the_defaults_give_the_originals_page() {
    let files = MemoryFiles::new(1_000_000);
    let mut session = Session::new(&files, &NEVER);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    session.begin(&mut out).unwrap();
    session.line("run", &mut out, &mut err).unwrap();
    assert!(err.is_empty());
    let text = String::from_utf8(out).unwrap();
    // Every operation takes a millisecond: 500 creations, 1000 operations in transactions, 528
    // deletions.
    let page = "PostMark v1.51 : 8/14/01\nCreating files...Done\nPerforming transactions..........Done\nDeleting files...Done\nTime:\n\t2 seconds total\n\
        \t1 seconds of transactions (500 per second)\n\nFiles:\n\t764 created (382 per second)\n\t\tCreation alone: 500 files (500 per second)\n\
        \t\tMixed with transactions: 264 files (264 per second)\n\t243 read (243 per second)\n\t257 appended (257 per second)\n\t764 deleted (382 per second)\n\
        \t\tDeletion alone: 528 files (528 per second)\n\t\tMixed with transactions: 236 files (236 per second)\n\nData:\n\
        \t1.36 megabytes read (698.62 kilobytes per second)\n\t4.45 megabytes written (2.22 megabytes per second)\n";
    let (classic_part, ours) = text.split_at(page.len());
    assert_eq!(classic_part, page);
    insta::assert_snapshot!(ours);
    for word in [
        "seconds total",
        "seconds of",
        "created",
        "read",
        "appended",
        "deleted",
        "alone",
        "Mixed",
        "transactions",
        "megabytes",
        "per second",
    ] {
        assert!(
            !ours.replace("threads", "").contains(word),
            "a reader of the original's report could trip over {word:?}"
        );
    }
}

#[test]
fn the_terse_line_has_the_originals_13_fields() {
    let line = terse(&ran(&Config::default()));
    assert_eq!(
        line,
        "2 1 500.00 382.00 500.00 264.00 243.00 257.00 382.00 528.00 236.00 715385.00 2331034.00\n"
    );
}

/// Published figures (of file-system settings and a volume RAM cache on Windows NT).
#[test]
fn the_published_runs_come_out() {
    let plan = SmallFilePlan {
        number: 10_000,
        transactions: 10_000,
        low_bytes: 500,
        high_bytes: 100_000,
        subdirectories: 5,
        ..SmallFilePlan::default()
    };
    let mut config = Config { plan, ..Config::default() };
    for (transactions, lines) in [
        (
            10_000,
            [
                "\t15047 created",
                "\t4945 read",
                "\t5055 appended",
                "\t257.93 megabytes read",
                "\t826.79 megabytes written",
            ],
        ),
        (
            20_000,
            [
                "\t20092 created",
                "\t9935 read",
                "\t10064 appended",
                "\t548.25 megabytes read",
                "\t1158.00 megabytes written",
            ],
        ),
    ] {
        config.plan.transactions = transactions;
        let text = classic(&ran(&config));
        for line in lines {
            assert!(text.contains(&format!("\n{line} (")), "{line:?} in\n{text}");
        }
    }
}

#[test]
fn threads_engines_and_durability_change_no_count() {
    let one = ran(&Config::default());
    for threads in [2, 3, 16] {
        let config = Config {
            threads,
            sync: FileSync::All,
            engine: FileEngine::Syscalls,
            ..Config::default()
        };
        let result = ran(&config);
        assert_eq!(result.counts, one.counts);
        assert_eq!(
            (result.classic_read_bytes, result.classic_written_bytes),
            (one.classic_read_bytes, one.classic_written_bytes)
        );
        let operations: u64 = result.latency.values().map(|latency| latency.count).sum();
        assert_eq!(operations, one.latency.values().map(|latency| latency.count).sum::<u64>());
    }
}

#[test]
fn sub_second_times_and_the_interval_are_those_of_the_clock() {
    let result = ran(&Config::default());
    assert_eq!(result.phases.create_ns, 500_000_000);
    assert_eq!(result.phases.transactions_ns, 1_000_000_000);
    assert_eq!(result.phases.delete_ns, 528_000_000);
    assert_eq!(result.rates.transactions_per_s, 500.0);
    let interval = result.transactions_interval.unwrap();
    assert!(
        (interval.low_per_s - 500.0).abs() < 1e-6 && (interval.high_per_s - 500.0).abs() < 1e-6,
        "{interval:?}"
    );
    assert_eq!(result.latency["read"].count, 243);
    assert_eq!(result.latency["read"].max_ns, 1_000_000);
}

#[test]
fn a_result_comes_back_from_json() {
    let result = ran(&Config::default());
    let json = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<PostmarkResult>(&json).unwrap(), result);
    assert!(extra(&result).contains("Engine stdio, sync none, threads 1"));
}

/// Printed by PostMark 1.53 after the same commands.
#[test]
fn running_out_of_files_is_told_and_nothing_is_reported() {
    let files = MemoryFiles::new(1000);
    let mut session = Session::new(&files, &NEVER);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    for line in ["set number 5", "set transactions 200", "set bias create 0", "run"] {
        session.line(line, &mut out, &mut err).unwrap();
    }
    let expected = "Creating files...Done\nPerforming transactions.out of files!\nFor this workload, either increase the number of files or\n\
        decrease the number of transactions.\nDeleting files...Done\n";
    assert_eq!((String::from_utf8(out).unwrap().as_str(), err.len()), (expected, 0));
    assert_eq!((session.exit_code(), session.results().len(), files.left()), (1, 0, 0));
}

#[test]
fn an_error_in_any_phase_stops_every_thread_and_leaves_nothing() {
    for (fail_at, threads) in [(1, 1), (300, 1), (900, 4), (1999, 2)] {
        let files = MemoryFiles::new(1000).failing_at(fail_at);
        let error =
            run(&files, &Config { threads, ..Config::default() }, &NEVER, &mut std::io::sink())
                .unwrap_err();
        assert!(matches!(error, RunError::File(_)), "{error}");
        assert!(error.to_string().contains("no space left"), "{error}");
        assert_eq!(files.left(), 0);
    }
}

#[test]
fn an_interrupt_ends_the_run_and_is_a_failure() {
    let stop = AtomicBool::new(false);
    let files = MemoryFiles::new(1000);
    let mut session = Session::new(&files, &stop);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    stop.store(true, Ordering::Relaxed);
    assert_eq!(
        session.line("run", &mut out, &mut err).unwrap(),
        dialect::postmark::Outcome::Interrupted
    );
    assert!(String::from_utf8(err).unwrap().contains("interrupted"));
    assert_eq!((session.exit_code(), files.left()), (1, 0));
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_command() {
    let files = MemoryFiles::new(1000);
    let directory = tempfile::tempdir().unwrap();
    let text = "set number 7\r\nset seed 3\r\n";
    let wide = |join: fn(u16) -> [u8; 2]| {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(join).collect::<Vec<u8>>()
    };
    for bytes in
        [format!("\u{feff}{text}").into_bytes(), wide(u16::to_le_bytes), wide(u16::to_be_bytes)]
    {
        let path = directory.path().join("commands");
        std::fs::write(&path, bytes).unwrap();
        let mut session = Session::new(&files, &NEVER);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        session.load_file(&path, &mut out, &mut err).unwrap();
        let said = String::from_utf8(out).unwrap();
        assert!(!said.contains("Eh?") && err.is_empty() && session.exit_code() == 0, "{said}");
        assert_eq!((session.config().plan.number, session.config().plan.seed), (7, 3));
    }
}

#[test]
fn files_of_commands() {
    let here = tempfile::tempdir().unwrap();
    let path = |name: &str| here.path().join(name);
    std::fs::write(path("inner"), "set seed 9\nquit\nset seed 10\n").unwrap();
    let outer = format!(
        "set number 7\n\n# a comment\nexit\nload {}\nset number 8\n",
        path("inner").display()
    );
    std::fs::write(path("outer"), outer).unwrap();
    std::fs::write(path("endless"), format!("load {}\n", path("endless").display())).unwrap();
    let files = MemoryFiles::new(1000);
    let mut session = Session::new(&files, &NEVER);
    let mut load = |name: &str| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let outcome = session.load_file(&path(name), &mut out, &mut err).unwrap();
        (
            outcome,
            String::from_utf8(out).unwrap(),
            String::from_utf8(err).unwrap(),
            session.config().plan.clone(),
            session.exit_code(),
        )
    };
    let (outcome, out, err, plan, code) = load("outer");
    let reading =
        |name: &str| format!("Reading configuration from file '{}'\n", path(name).display());
    assert_eq!(
        (outcome, out),
        (
            dialect::postmark::Outcome::Quit,
            reading("outer") + "Eh?\nEh?\nEh?\n" + &reading("inner")
        )
    );
    assert_eq!(
        (plan.number, plan.seed, err.as_str(), code),
        (7, 9, "", 2),
        "`exit` is not a command in a file"
    );
    let endless = load("endless").2;
    assert!(endless.contains("would load itself") && endless.lines().count() == 1, "{endless}");
    assert!(load("nowhere").2.contains("cannot read configuration file"));
}

#[test]
fn texts_go_to_files_appended() {
    let here = tempfile::tempdir().unwrap();
    let target = here.path().join("report");
    std::fs::write(&target, "before\n").unwrap();
    let files = MemoryFiles::new(1_000_000);
    let mut session = Session::new(&files, &NEVER).forced(true);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    for line in [
        "set report terse".to_string(),
        format!("run {}", target.display()),
        format!("show {}", Path::new("/nowhere/at/all").display()),
    ] {
        session.line(&line, &mut out, &mut err).unwrap();
    }
    let written = std::fs::read_to_string(&target).unwrap();
    assert!(written.starts_with("before\n2 1 500.00 "), "{written}");
    assert!(
        String::from_utf8(err)
            .unwrap()
            .starts_with("Error: Cannot direct output to file '/nowhere/at/all'")
    );
    assert!(
        String::from_utf8(out)
            .unwrap()
            .contains("Deleting files...Done\nCurrent configuration is:"),
        "what cannot be written to the file is printed"
    );
}

#[test]
fn a_run_in_which_the_program_was_stopped_is_left_out_and_repeated() {
    let config = Config::default();
    let undisturbed = ran(&config);
    let files = MemoryFiles::new(1_000_000).pausing(1);
    let mut out = Vec::new();
    let result = run(&files, &config, &NEVER, &mut out).unwrap();
    assert_eq!((files.watched_runs(), files.left()), (2, 0));
    assert_eq!(result.rates, undisturbed.rates);
    assert_eq!(
        result.warnings[0],
        "a run was left out and repeated: the program was stopped for 1.0 s"
    );
    let out = String::from_utf8(out).unwrap();
    assert_eq!(
        out.matches("Creating files...Done").count(),
        1,
        "the progress is printed once: {out}"
    );
    let always = MemoryFiles::new(1_000_000).pausing(u64::MAX);
    let result = run(&always, &config, &NEVER, &mut std::io::sink()).unwrap();
    assert!(result.warnings[0].ends_with("do not trust it"), "{:?}", result.warnings);
}
