//! Whole runs on this computer, in small files.

mod mounted;

use dialect::iozone::{IozoneResult, Test, parse, run};
use host::Host;
use machine::{Error, Machine};
use mounted::Mounted;
use std::path::Path;
use std::sync::atomic::AtomicBool;

static NEVER: AtomicBool = AtomicBool::new(false);

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

fn ran(line: &str) -> (Result<IozoneResult, Error>, String) {
    let options = parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>()).unwrap();
    let mut out = Vec::new();
    let result = run(&Host::new(&NEVER), &options, 0, &mut out);
    (result, String::from_utf8(out).unwrap())
}

#[test]
fn what_the_original_mounts_anew_begins_uncached() {
    // Read-ahead brings what is not asked for yet, so only the cached run has nothing of its
    // device. The counter is that of the whole process, in which other tests run: the file is large
    // next to what they read.
    let here = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = here.path().join("io.tmp");
    let line = format!("-i 0 -i 1 -s 32m -r 64k -+n --repeats 1 -f {}", file.display());
    let from_cache = |line: &str| {
        let result = ran(line).0.unwrap();
        let read = result.cells.iter().find(|cell| cell.test == Test::Read).unwrap();
        (read.point.numbers.as_ref().unwrap().achieved.from_cache_percent, result.warnings)
    };
    let (cached, _) = from_cache(&line);
    let (uncached, warnings) = from_cache(&format!("{line} -U {}", here.path().display()));
    assert!(warnings.iter().any(|warning| warning.contains("stays mounted (-U)")), "{warnings:?}");
    if let (Some(cached), Some(uncached)) = (cached, uncached) {
        assert!(cached > 99.0 && uncached < 1.0, "{cached} and {uncached} % from the cache");
    }
}

#[test]
fn every_test_is_measured_and_nothing_is_left() {
    let here = tempfile::tempdir().unwrap();
    let tests: String =
        (0..=12).filter(|test| *test != 8).map(|test| format!(" -i {test}")).collect();
    let (result, text) = ran(&format!(
        "-a -n 64k -g 128k -q 8k -f {} --repeats 2{tests}",
        here.path().join("io.tmp").display()
    ));
    let result = result.unwrap();
    assert_eq!(result.cells.len(), 4 * 21);
    for measured in &result.cells {
        let numbers = measured.point.numbers.as_ref().unwrap();
        assert_eq!(numbers.repeats, 2);
        // Every pass moves the whole file, whatever its order.
        assert_eq!(numbers.achieved.bytes, 2 * measured.cell.file_bytes, "{:?}", measured.test);
        assert!(measured.rate() > 0.0 && measured.spread_percent().is_some());
    }
    // As readers of the original find its rows: numbers and nothing else.
    let row = |line: &&str| {
        !line.trim().is_empty()
            && line.split_whitespace().all(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let rows: Vec<&str> = text.lines().filter(row).collect();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[0].split_whitespace().count(), 2 + 21);
    assert_eq!(entries(here.path()), 0);
}

#[test]
fn processes_side_by_side_and_files_kept() {
    let here = tempfile::tempdir().unwrap();
    let names = ["a", "b", "c"].map(|name| here.path().join(name).display().to_string()).join(" ");
    let (result, text) =
        ran(&format!("-t 3 -s 1m -r 64k -i 0 -i 1 -i 8 -x -w --repeats 1 -F {names}"));
    let result = result.unwrap();
    assert_eq!(
        result.throughput.iter().map(|one| one.test).collect::<Vec<_>>(),
        [Test::Write, Test::Rewrite, Test::Read, Test::Reread, Test::Mixed]
    );
    for one in &result.throughput {
        assert_eq!(
            one.children.iter().map(|child| (child.bytes, child.operations)).collect::<Vec<_>>(),
            [(1 << 20, 16); 3]
        );
        assert_eq!(one.points.len(), 3);
    }
    let ops = |index: usize| result.throughput[4].points[index].workload.op.name();
    assert_eq!((ops(0), ops(1)), ("read", "write"));
    assert_eq!(text.matches("Children see throughput for").count(), 5);
    assert_eq!(entries(here.path()), 3);
    assert_eq!(std::fs::metadata(here.path().join("a")).unwrap().len(), 1 << 20);
}

#[test]
fn a_pattern_is_written_and_found_again() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("v");
    let (result, _) =
        ran(&format!("-s 256k -r 16k -i 0 -i 1 -i 2 -V 165 -w -f {}", file.display()));
    result.unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), vec![165; 256 << 10]);
    // Bytes that the user has written since are the user's.
    std::fs::write(&file, vec![165; 256 << 10]).unwrap();
    let (result, _) = ran(&format!("-s 256k -r 16k -i 0 -V 165 -f {}", file.display()));
    assert!(result.unwrap_err().is_usage(), "what was there is not overwritten");
    assert_eq!(std::fs::read(&file).unwrap(), vec![165; 256 << 10]);
}

#[test]
fn what_is_the_users_is_read_and_written_only_when_it_is_named_again() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("mine");
    std::fs::write(&file, vec![7; 128 << 10]).unwrap();
    let (result, _) = ran(&format!("-s 128k -r 4k -i 1 -i 3 -i 5 -f {}", file.display()));
    assert_eq!(result.unwrap().cells.len(), 4);
    assert_eq!(std::fs::read(&file).unwrap(), vec![7; 128 << 10]);
    let (result, text) = ran(&format!("-s 128k -r 4k -i 0 -f {}", file.display()));
    let error = result.unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("--destroy-data"), "{error}");
    assert!(!text.contains("kB  reclen"), "refused before anything is done");
    let (result, _) = ran(&format!("-s 128k -r 4k -i 0 -f {0} --destroy-data {0}", file.display()));
    result.unwrap();
    assert_ne!(std::fs::read(&file).unwrap(), vec![7; 128 << 10]);
    assert_eq!(entries(here.path()), 1);
}

#[test]
fn a_disk_that_fills_up_in_mid_run() {
    let Some(small) = Mounted::tmpfs("1536k") else { return };
    let here = small.path();
    // Each file by itself would fit.
    let names = ["a", "b"].map(|name| here.join(name).display().to_string()).join(" ");
    let (result, text) = ran(&format!("-t 2 -s 1m -r 64k -i 0 -i 1 -F {names}"));
    let error = result.unwrap_err();
    assert!(!error.is_usage() && matches!(error, Error::Request { .. }), "{error}");
    assert!(!text.contains("test complete"));
    assert_eq!(entries(here), 0);
}

#[test]
fn an_interrupt_ends_with_the_figures_until_then_and_leaves_no_file() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let here = tempfile::tempdir().unwrap();
    let options = parse(&[
        "-t".into(),
        "2".into(),
        "-s".into(),
        "1m".into(),
        "-r".into(),
        "4k".into(),
        "-J".into(),
        "100".into(),
        "-f".into(),
        here.path().display().to_string(),
    ])
    .unwrap();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(700));
            STOP.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        run(&Host::new(&STOP), &options, 0, &mut std::io::sink())
    });
    let result = result.unwrap();
    assert!(result.interrupted, "{result:?}");
    // A write each 100 ms, and two processes.
    let children = &result.throughput[0].children;
    assert!(children.iter().all(|child| (1..=8).contains(&child.operations)), "{children:?}");
    assert_eq!(entries(here.path()), 0);
}

fn list(here: &Path, lines: &[&str]) -> String {
    let path = here.join("clients");
    let lines: Vec<String> =
        lines.iter().map(|line| line.replace("{here}", &here.display().to_string())).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    path.display().to_string()
}

#[test]
fn clients_that_are_this_computer_work_in_their_directories() {
    let here = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        std::fs::create_dir(here.path().join(name)).unwrap();
    }
    let own = Host::new(&NEVER).facts().name;
    let lines = [
        "# two on one disk, one on the other",
        "localhost {here}/a /usr/bin/iozone",
        "127.0.0.1\t{here}/a  /usr/bin/iozone",
        "",
        &format!("{own} {{here}}/b iozone own.tmp"),
        "elsewhere {here}/none iozone",
    ];
    let clients = list(here.path(), &lines);
    let (result, text) =
        ran(&format!("-+m {clients} -+h this -t 3 -i 0 -i 1 -s 64k -r 4k -w -C --repeats 1"));
    let result = result.unwrap();
    assert!(result.throughput.iter().all(|one| one.children.len() == 3 && one.points.len() == 3));
    for name in ["a/iozone.DUMMY.0", "a/iozone.DUMMY.1", "b/own.tmp"] {
        assert_eq!(std::fs::metadata(here.path().join(name)).unwrap().len(), 64 << 10, "{name}");
    }
    for said in [
        "Network distribution mode enabled.",
        "Throughput test with 3 processes",
        "Child[2] xfer count",
        "Max throughput",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(
        !text.contains("Parent sees"),
        "as in the original, which has no parent on one computer with its clients: {text}"
    );
    let (_, alone) =
        ran(&format!("-t 1 -i 0 -s 64k -r 4k --repeats 1 -f {}/x", here.path().display()));
    assert!(alone.contains("Parent sees"), "{alone}");
}

#[test]
fn clients_elsewhere_and_lists_that_are_none_are_refused_before_anything_is_made() {
    let here = tempfile::tempdir().unwrap();
    let two = &["localhost {here} iozone", "node17 {here} iozone"][..];
    for (lines, count, said) in [
        (two, 2, "the client node17 of -+m: halfpower runs on one computer"),
        (two, 3, "-t 3: "),
        (&["10.0.0.7 {here} iozone"], 1, "10.0.0.7"),
        (&["localhost {here}/none iozone"], 1, "none: the client localhost has no such directory"),
        (&["localhost {here}"], 1, "line 1: localhost"),
        (&["# none"], 1, "it has 0 clients"),
    ] {
        let clients = list(here.path(), lines);
        let (result, text) = ran(&format!("-+m {clients} -t {count} -i 0 -s 64k"));
        let error = result.unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(said), "{error}");
        assert_eq!((text.as_str(), entries(here.path())), ("", 1), "{said}");
    }
    let (result, _) = ran(&format!("-+m {}/no-list -t 1 -i 0 -s 64k", here.path().display()));
    assert!(result.unwrap_err().to_string().contains("no-list"));
}

#[test]
fn children_have_files_named_after_the_test_file() {
    let here = tempfile::tempdir().unwrap();
    let base = here.path().join("io.tmp");
    ran(&format!("-t 2 -i 0 -s 64k -w --repeats 1 -f {}", base.display())).0.unwrap();
    for child in 0..2 {
        assert!(here.path().join(format!("io.tmp.DUMMY.{child}")).is_file());
    }
}

#[test]
fn a_rest_lies_between_tests_and_some_of_the_mixed_processes_read() {
    let here = tempfile::tempdir().unwrap();
    let line =
        format!("-t 4 -i 0 -i 8 -+n -+p 75 -+r -s 64k --repeats 1 -f {}", here.path().display());
    let began = std::time::Instant::now();
    let (result, text) = ran(&line);
    let quick = began.elapsed();
    let mixed = result.unwrap().throughput.pop().unwrap();
    let reads: Vec<u8> = mixed.points.iter().map(|point| point.workload.read_percent).collect();
    assert_eq!(reads, [100, 100, 100, 0]);
    for said in ["Percent read in mix test is 75", "Read & Write sync mode active."] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let began = std::time::Instant::now();
    let (result, text) = ran(&format!("{line} -+q 1"));
    let one = &result.unwrap().throughput[0];
    assert!(
        began.elapsed() > quick.max(std::time::Duration::from_secs(2)),
        "two tests, a second before each"
    );
    assert!(
        one.elapsed_ns < 1_000_000_000,
        "the rest does not belong to a test: {} ns",
        one.elapsed_ns
    );
    assert!(text.contains("Delay 1 seconds between tests enabled."), "{text}");
}
