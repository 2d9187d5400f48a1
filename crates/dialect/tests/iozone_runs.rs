//! Whole runs on this computer, in small files: what is done, what is left, what goes wrong.

mod mounted;

use dialect::iozone::{IozoneResult, Test, parse, run};
use host::Host;
use machine::Error;
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
    // Read-ahead brings what is not asked for yet, so only the cached run has nothing of its device.
    let here = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = here.path().join("io.tmp");
    let line = format!("-i 0 -i 1 -s 1m -r 64k -+n --repeats 1 -f {}", file.display());
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
    let tests: String = (0..=12).filter(|test| *test != 8).map(|test| format!(" -i {test}")).collect();
    let (result, text) =
        ran(&format!("-a -n 64k -g 128k -q 8k -f {} --repeats 2{tests}", here.path().join("io.tmp").display()));
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
        !line.trim().is_empty() && line.split_whitespace().all(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
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
    let (result, text) = ran(&format!("-t 3 -s 1m -r 64k -i 0 -i 1 -i 8 -x -w --repeats 1 -F {names}"));
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
    let (result, _) = ran(&format!("-s 256k -r 16k -i 0 -i 1 -i 2 -V 165 -w -f {}", file.display()));
    result.unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), vec![165; 256 << 10]);
    // What the user has written since is the user's.
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
    // Each file alone would fit.
    let names = ["a", "b"].map(|name| here.join(name).display().to_string()).join(" ");
    let (result, text) = ran(&format!("-t 2 -s 1m -r 64k -i 0 -i 1 -F {names}"));
    let error = result.unwrap_err();
    assert!(!error.is_usage() && matches!(error, Error::Request { .. }), "{error}");
    assert!(!text.contains("test complete"));
    assert_eq!(entries(here), 0);
}

#[test]
fn an_interrupt_leaves_nothing() {
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
    assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
    assert_eq!(entries(here.path()), 0);
}
