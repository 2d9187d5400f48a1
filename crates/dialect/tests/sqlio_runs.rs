//! Whole runs on this computer, short and in small files.

mod mounted;

use dialect::sqlio::{Options, SqlioResult, matrix, parse, run};
use host::Host;
use machine::Error;
use mounted::Mounted;
use std::path::Path;
use std::sync::atomic::AtomicBool;

static NEVER: AtomicBool = AtomicBool::new(false);

fn options(line: &str) -> Options {
    parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>()).unwrap()
}

fn ran(line: &str) -> (Result<SqlioResult, Error>, String) {
    let mut out = Vec::new();
    let result = run(&Host::new(&NEVER), &options(line), &mut out);
    (result, String::from_utf8(out).unwrap())
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

#[test]
fn a_file_is_made_written_kept_and_then_only_read() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("testfile.dat");
    let line = format!("-kW -t2 -f8 -i4 -b4 -o2 -LS -BY --runtime 100ms {}", file.display());
    let (result, text) = ran(&line);
    let result = result.unwrap();
    assert!(
        result.figures.ios_per_s > 0.0
            && text.contains("using 4KB IOs over 32KB stripes with 4 IOs per run"),
        "{text}"
    );
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 8 * 4 * 4096, "the size of the pattern");
    assert_eq!(result.points[0].workload.op.name(), "write");
    ran(&line).0.expect("what it made it may write");
    let before = std::fs::read(&file).unwrap();
    // From here on it is the user's.
    std::fs::write(&file, &before).unwrap();
    let error = ran(&line).0.unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("--destroy-data"), "{error}");
    ran(&format!("-kR -frandom -b4 -BY --runtime 100ms {}", file.display())).0.unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), before);
    ran(&format!("{line} --destroy-data {}", file.display())).0.unwrap();
    assert_ne!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn files_of_a_parameter_file_side_by_side() {
    let here = tempfile::tempdir().unwrap();
    let parameters = here.path().join("param.txt");
    std::fs::write(
        &parameters,
        format!("# two files\n{0}/a 2 0x1 1\n{0}/b 1 0x0 2\n", here.path().display()),
    )
    .unwrap();
    let (result, text) =
        ran(&format!("-kW -frandom -b4 -BY --runtime 100ms -F{}", parameters.display()));
    let result = result.unwrap();
    assert_eq!(
        result.points.iter().map(|point| point.workload.threads).collect::<Vec<_>>(),
        [2, 1]
    );
    assert!(
        text.contains("3 threads writing for 0.1 secs to files ")
            && text.contains("using specified size: 2 MB for file: "),
        "{text}"
    );
    let sum: f64 = result
        .points
        .iter()
        .map(|point| point.numbers.as_ref().unwrap().achieved.requests as f64)
        .sum();
    assert!(sum > 2.0);
    assert_eq!(std::fs::metadata(here.path().join("b")).unwrap().len(), 2 << 20);
}

#[test]
fn the_study_on_a_directory_leaves_nothing() {
    let here = tempfile::tempdir().unwrap();
    let options = options(&format!(
        "--matrix -BY --size 4m --runtime 10ms --max-threads 2 --align 31.5k,64k {}",
        here.path().display()
    ));
    let host = Host::new(&NEVER);
    let mut runner = matrix::open(&host, &[matrix::target(&options).unwrap()], &options).unwrap();
    let mut reported = 0;
    let result = matrix::run(&mut runner, &options, |_, of, _| {
        assert_eq!(of, 16);
        reported += 1;
    })
    .unwrap();
    runner.keep(|_| true);
    drop(runner);
    assert!(reported >= 32, "each point at least twice");
    assert_eq!(
        (result.entries.len(), result.differences.len(), result.sentences.len()),
        (16, 8, 1)
    );
    assert!(result.entries.iter().all(|entry| entry.runs_ios_per_s.len() >= 2));
    assert_eq!(entries(here.path()), 0);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let here = tempfile::tempdir().unwrap();
    let there = here.path().display();
    for (line, said) in [
        (format!("-frandom {there}/none"), "has no size"),
        (format!("-frandom --size 1m {there}/no/where"), "make it first"),
        (format!("-F{there}/none.txt"), "none.txt"),
        (format!("-kW --size 1m -frandom {there} --destroy-data /dev/null"), "/dev/null"),
        (format!("-t64 -f8 -BY {there}"), "8 columns for 64 streams"),
        (format!("-p63 --size 1m -BY -frandom {there}"), "processors 63"),
    ] {
        let error = ran(&line).0.unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(said), "{line}: {error}");
        assert_eq!(entries(here.path()), 0, "{line}");
    }
}

#[test]
fn a_disk_that_is_full_leaves_no_file() {
    let Some(small) = Mounted::tmpfs("1m") else { return };
    let (result, _) = ran(&format!(
        "-kW -frandom -b4 -BY --runtime 100ms --size 4m {}/a",
        small.path().display()
    ));
    let error = result.unwrap_err();
    assert!(error.to_string().contains("4 MiB does not fit"), "{error}");
    assert_eq!(entries(small.path()), 0);
    // Two files, each of which would fit by itself: the second fills up while it is made.
    let parameters = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        parameters.path(),
        format!("{0}/a 1 0 1\n{0}/b 1 0 1\n", small.path().display()),
    )
    .unwrap();
    let (result, _) =
        ran(&format!("-kW -frandom -b4 -BY --runtime 100ms -F{}", parameters.path().display()));
    assert!(result.is_err());
    assert_eq!(entries(small.path()), 0);
}
