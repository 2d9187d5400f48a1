//! mdtest's language, and whole runs on this computer with several tasks.

mod crew;
mod words;

use crew::{Several, files};
use dialect::mdtest::{Kind, MdtestResult, Operation, Options, Surroundings, parse, run};
use dialect::reading::read_report;
use dialect::tasks::Error;
use results::compare::Measure;
use std::fs;
use std::path::Path;
use words::words;

fn options(line: &str) -> Options {
    parse(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn ran(tasks: usize, line: &str) -> (Result<MdtestResult, Error>, String) {
    let files = files();
    let mut crew = Several::new(&files, tasks);
    let mut out = Vec::new();
    let around = Surroundings { space: &host::file_system_space, now: &|| 1_700_000_000 };
    let result = run(&mut crew, &options(line), &around, &mut out);
    (result, String::from_utf8(out).unwrap())
}

fn good(tasks: usize, line: &str) -> (MdtestResult, String) {
    let (result, text) = ran(tasks, line);
    (result.unwrap_or_else(|error| panic!("{line}: {error}")), text)
}

/// Counts files and directories.
fn count(directory: &Path) -> [usize; 2] {
    let mut all = [0, 0];
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            let inner = count(&entry.path());
            all = [all[0] + inner[0], all[1] + inner[1] + 1];
        } else {
            all[0] += 1;
        }
    }
    all
}

#[test]
fn options_glued_apart_and_together() {
    let expected = options("-n 10 -F -C -T -w 3901 -e 3901 -z 1 -b 2 -L -R -y");
    for line in
        ["-n10 -FCTLyR -w3901 -e=3901 -z1 -b2", "-FCT -n=10 -Ly -w 3901 -e 3901 -z 1 -b 2 -R"]
    {
        assert_eq!(options(line), expected, "{line}");
    }
    assert_eq!(options("-n 1 -R15F").random, Some(15));
    assert!(!options("-n 1 -R15F").folders);
    let usual = options("-n 5");
    assert!(
        usual.create && usual.stat && usual.read && usual.remove && usual.files && usual.folders
    );
    let io500 = options(
        "-n 1000000 -u -L -F -P -N 1 -d /d/mdtest-easy -x /d/mdtest-easy.stonewall -C -Y -W 300 -a POSIX",
    );
    assert!(io500.create && !io500.stat && io500.unique && io500.both && io500.sync_phase);
    assert_eq!((io500.deadline_s, io500.stride), (Some(300), 1));
    let hard = options(
        "-n 1000000 -t -w 3901 -e 3901 -P -G=-1 -N 1 -F -d /d/mdtest-hard -x /d/x -X -E -a POSIX",
    );
    assert!(hard.read && hard.verify && !hard.create);
}

#[test]
fn what_is_not_supported_is_refused_with_its_word_and_what_to_write() {
    for (line, says) in [
        ("", "-n N"),
        ("-n", "its value is missing"),
        ("-n 0", "-n 0"),
        ("-n 1 -F -D", "-F and -D"),
        ("-n 1 -a HDFS", "POSIX"),
        ("-n 1 -S", "halfpower ior"),
        ("-n 1 -f 2", "number of tasks"),
        ("-n 1 -z 30 -b 10", "-z 30 -b 10"),
        ("-n 100 -I 10", "-n 100 -I 10"),
        ("-n 1 -X -w 10 -e 20", "-X"),
        ("-n 1 -j", "-j is unknown"),
        ("-n 1 x", "-d"),
        ("-n 1 -d a@@b", "-d"),
        ("-n 1 --bogus", "halfpower's own are"),
    ] {
        let error = parse(&words(line)).err().unwrap_or_else(|| panic!("{line} is taken"));
        assert!(error.is_usage() && error.to_string().contains(says), "{line}: {error}");
    }
}

#[test]
fn every_operation_is_measured_and_nothing_is_left() {
    let here = tempfile::tempdir().unwrap();
    let (result, text) = good(
        3,
        &format!("-n 8 -z 2 -b 2 -w 100 -e 100 -X -i 2 -R -N 1 -d {}", here.path().display()),
    );
    assert_eq!(result.directories, 7);
    let of = |kind, operation| {
        let phases = result.of(kind, operation);
        assert_eq!(phases.len(), 2, "{kind:?} {operation:?}");
        phases.iter().map(|phase| phase.count).sum::<u64>()
    };
    for operation in Operation::ALL {
        assert_eq!(of(Some(Kind::File), operation), 2 * 24);
    }
    assert_eq!(of(Some(Kind::Directory), Operation::Stat), 2 * 24);
    assert_eq!(of(None, Operation::Create), 2 * 7);
    assert_eq!(result.wrong_items, 0);
    // This crew works one after the other.
    let unequal = |text: &&String| text.contains(" began ") || text.contains(" is slow");
    let others: Vec<&String> = result.warnings.iter().filter(|text| !unequal(text)).collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(count(here.path()), [0, 0]);
    // It reads back as mdtest's.
    let side = read_report("x", &text).unwrap();
    let labels: Vec<&str> = side.asked.iter().map(|one| one.label.as_str()).collect();
    assert_eq!(side.asked.len(), 9, "{labels:?}");
    let creation = side.asked.iter().find(|one| one.label.contains("File creation")).unwrap();
    let read = creation.readings.iter().find(|one| one.measure == Measure::Operations).unwrap();
    let rates = result.operation_rates("");
    let own = rates.iter().find(|rate| rate.operation == "create").unwrap();
    assert!((read.value / own.per_s - 1.0).abs() < 1e-3, "{} {}", read.value, own.per_s);
    assert!(own.interval_95.is_some() && own.count == 48);
}

#[test]
fn phases_of_several_commands_use_the_same_names() {
    let here = tempfile::tempdir().unwrap();
    let status = here.path().join("status");
    let line = |does: &str| {
        format!(
            "-n 6 -u -L -F -N 1 -z 1 -b 3 -d {0} -x {1} {does}",
            here.path().display(),
            status.display()
        )
    };
    good(2, &line("-C"));
    assert_eq!(count(here.path()), [12 + 1, 1 + 2 * 4]);
    assert!(
        here.path().join("test-dir.0-0/mdtest_tree.1.0/mdtest_tree.1.3/file.mdtest.1.5").exists()
    );
    assert_eq!(fs::read_to_string(&status).unwrap().trim(), "6");
    let (again, _) = ran(2, &line("-C"));
    let error = again.unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("-r instead of -C"), "{error}");
    for does in ["-T", "-E", "-r"] {
        let (result, _) = good(2, &line(does));
        assert_eq!(result.phases[0].count, 12, "{does}");
    }
    assert_eq!(count(here.path()), [1, 0], "only the status file");
}

#[test]
fn after_the_deadline_all_tasks_reach_the_fastest() {
    let here = tempfile::tempdir().unwrap();
    let status = here.path().join("status");
    let line =
        format!("-n 100000000 -F -y -W 1 -C -x {} -d {}", status.display(), here.path().display());
    let (result, text) = good(2, &line);
    let phase = result.of(Some(Kind::File), Operation::Create)[0];
    let [fewest, most] = phase.stonewall.unwrap();
    assert!(fewest > 0 && phase.count == 2 * most);
    assert_eq!(count(here.path())[0], 2 * most as usize + 1);
    assert!(text.contains(&format!("items min: {fewest} max: {most}")), "{text}");
    good(2, &line.replace("-W 1 -C", "-r"));
    assert_eq!(count(here.path()), [1, 0]);
}

#[test]
fn a_failed_phase_names_the_item_and_keeps_the_others() {
    let here = tempfile::tempdir().unwrap();
    // Another program's file has a name of the test.
    let line = format!("-n 5 -F -C -z 1 -b 1 -d {}", here.path().display());
    let (made, _) = good(1, &line);
    assert_eq!(made.phases.len(), 2);
    let stray = here.path().join("test-dir.0-0/mdtest_tree.0/file.mdtest.0.1");
    fs::remove_file(&stray).unwrap();
    let (failed, _) = ran(1, &line.replace("-C", "-T"));
    let error = failed.unwrap_err();
    assert!(!error.is_usage() && error.to_string().contains("file.mdtest.0.1"), "{error}");
    assert_eq!(count(here.path())[0], 4, "a stat removes nothing");
    let missing = ran(1, "-n 1 -d /no/such/directory").0.unwrap_err();
    assert!(
        missing.is_usage() && missing.to_string().contains("make the directory above it"),
        "{missing}"
    );
}

#[test]
fn a_missing_directory_is_made_and_goes_again() {
    let here = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| here.path().join(name));
    let line = format!("-n 5 -d {}@{}", one.display(), other.display());
    let (made, _) = good(2, &line);
    assert_eq!(made.phases.len(), 9);
    assert_eq!(count(here.path()), [0, 0]);
    // What is left for the next command stays.
    good(2, &format!("{line} -C"));
    assert!(one.is_dir() && other.is_dir());
    let (refused, _) = ran(1, &format!("-n 5 -T -d {}", here.path().join("none").display()));
    assert!(refused.unwrap_err().is_usage());
}
