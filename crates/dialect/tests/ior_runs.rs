//! Whole runs of IOR on this computer, with several tasks.

mod crew;
mod words;

use crew::{Several, files};
use dialect::ior::{Direction, IorResult, Surroundings, parse, run};
use dialect::reading::read_report;
use dialect::tasks::Error;
use results::compare::Measure;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use words::words;

fn ran(tasks: usize, line: &str) -> (Result<IorResult, Error>, String) {
    let files = files();
    let mut crew = Several::new(&files, tasks);
    let mut tests = parse(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
    tests.command = format!("ior {line}");
    let target = host::files::directory_facts(&[]).unwrap();
    let around = Surroundings {
        machine: "Linux here".into(),
        target,
        space: &host::file_system_space,
        doubt: &host::zeros_in_file,
        now: &|| 1_700_000_000,
    };
    let mut out = Vec::new();
    let result = run(&mut crew, &tests, &around, &mut out);
    (result, String::from_utf8(out).unwrap())
}

fn good(tasks: usize, line: &str) -> (IorResult, String) {
    let (result, text) = ran(tasks, line);
    (result.unwrap_or_else(|error| panic!("{line}: {error}")), text)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_shared_file_is_written_once_by_all_and_read_by_others() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("f");
    let line = format!("-w -W -r -R -C -e -t 4k -b 16k -s 3 -i 2 -z -o {}", file.display());
    let (result, text) = good(4, &line);
    let test = &result.tests[0];
    assert_eq!(test.wrong_transfers, Some(0));
    assert_eq!(test.phases.len(), 4);
    for phase in &test.phases {
        assert_eq!((phase.bytes, phase.transfers), ((4 * 48) << 10, 48));
        assert_eq!(phase.latency.count, 48);
        assert!(phase.total_ns >= phase.transfer_ns && phase.by_task.len() == 4);
    }
    // This crew works one after the other.
    let unequal = |text: &&String| text.contains(" began ") || text.contains(" is slow");
    let others: Vec<&String> = result.warnings.iter().filter(|text| !unequal(text)).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(names(here.path()).is_empty(), "removed");
    for part in ["Max Write: ", "Max Read: ", "Summary of all tests:", "access    bw(MiB/s)"] {
        assert!(text.contains(part), "{text}");
    }
    let points = &test.points;
    assert_eq!(points.len(), 2);
    assert_eq!(points[0].numbers.as_ref().unwrap().repeats, 2);
}

#[test]
fn a_kept_file_has_the_same_bytes_however_it_was_written() {
    let here = tempfile::tempdir().unwrap();
    let name = |name: &str| here.path().join(name).display().to_string();
    good(3, &format!("-w -k -G 5 -t 4k -b 4k -s 6 -o {}", name("strided")));
    good(1, &format!("-w -k -G 5 -t 8k -b 72k -z -o {}", name("one")));
    let (strided, one) = (fs::read(name("strided")).unwrap(), fs::read(name("one")).unwrap());
    assert_eq!(strided.len(), 72 << 10);
    assert!(strided == one, "the data depends on its place and the signature only");
    // Another command checks it, with tasks that did not write it.
    let (checked, _) = good(2, &format!("-r -R -k -G 5 -t 4k -b 36k -o {}", name("strided")));
    assert_eq!(checked.wrong_transfers(), 0);
    let (other, text) = good(2, &format!("-R -k -G 6 -t 4k -b 36k -o {}", name("strided")));
    assert_eq!(other.wrong_transfers(), 18, "another signature");
    assert!(text.contains("WARNING: -R: task 1 (h1) read wrong data in 9 of 9"), "{text}");
    // And a later one removes it.
    good(2, &format!("-r -t 4k -b 36k -o {}", name("strided")));
    assert_eq!(names(here.path()).len(), 1, "only the other file is left");
}

#[test]
fn a_damaged_byte_is_found() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("f");
    let line = |does: &str| format!("{does} -k -t 47008 -b 47008 -s 5 -o {}", file.display());
    good(2, &line("-w"));
    let mut data = fs::read(&file).unwrap();
    data[7 * 47008 + 11] ^= 1;
    fs::write(&file, data).unwrap();
    assert_eq!(good(2, &line("-R")).0.wrong_transfers(), 1);
}

#[test]
fn each_task_has_its_file_and_reads_anothers() {
    let here = tempfile::tempdir().unwrap();
    let base = here.path().join("f").display().to_string();
    let (result, _) = good(3, &format!("-w -r -R -F -C -k -t 4k -b 8k -s 2 -m -i 2 -o {base}"));
    assert_eq!(result.wrong_transfers(), 0, "the data has its task's number");
    let left = names(here.path());
    assert_eq!(left.len(), 6, "{left:?}");
    assert!(left.contains(&"f.00000002.1".to_owned()));
    let one = |task| fs::read(here.path().join(format!("f.0000000{task}.0"))).unwrap();
    assert!(one(0).len() == 16 << 10 && one(0) != one(1));
    let (unique, _) = good(2, &format!("-w -r -F -u -t 4k -b 8k -o {base}x"));
    assert_eq!(unique.tests[0].phases.len(), 2);
    assert_eq!(names(here.path()).len(), 6, "its directories are removed");
}

#[test]
fn a_deadline_ends_a_phase_and_wear_out_makes_all_equal() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("f").display().to_string();
    let status = here.path().join("status");
    // No task reaches its 4 TiB; fsync after each transfer keeps the file small.
    let line = format!(
        "-w -k -D 1 -F -Y -t 4k -b 4t -O stoneWallingWearOut=1,stoneWallingStatusFile={} -o {file}",
        status.display()
    );
    let (result, text) = good(2, &line);
    let phase = &result.tests[0].phases[0];
    let wall = phase.stonewall.unwrap();
    assert!(wall.after_ns >= 1_000_000_000 && wall.most >= wall.fewest && wall.fewest > 0);
    assert_eq!(phase.transfers, 2 * wall.most, "all reach the fastest one");
    assert!(text.contains(&format!("stonewalling pairs accessed min: {}", wall.fewest)), "{text}");
    assert_eq!(fs::read_to_string(&status).unwrap().trim(), wall.most.to_string());
    for task in 0..2 {
        let bytes = fs::metadata(format!("{file}.0000000{task}")).unwrap().len();
        assert_eq!(bytes, wall.most * 4096);
    }
    let read =
        format!("-r -R -F -C -t 4k -b 4t -O stoneWallingStatusFile={} -o {file}", status.display());
    let (result, _) = good(2, &read);
    assert_eq!(result.tests[0].phases[0].transfers, 2 * wall.most);
    assert_eq!(result.wrong_transfers(), 0);
    assert_eq!(names(here.path()), ["status"], "without -k the files are removed");
}

#[test]
fn the_results_read_back_as_iors() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("f");
    let line = format!("-t 4k -b 16k -i 2 -D 100 -O summaryFormat=JSON -o {}", file.display());
    let (result, text) = good(2, &line);
    let side = read_report("x", &text).unwrap();
    assert_eq!(side.asked.len(), 2, "{side:#?}");
    for (case, direction) in side.asked.iter().zip([Direction::Write, Direction::Read]) {
        let rates = case.readings.iter().find(|one| one.measure == Measure::Throughput).unwrap();
        let own: Vec<f64> = (result.tests[0].phases.iter())
            .filter(|phase| phase.direction == direction)
            .map(|phase| phase.bytes_per_s())
            .collect();
        assert_eq!(rates.runs.len(), 2);
        for (read, own) in rates.runs.iter().zip(own) {
            assert!((read / own - 1.0).abs() < 1e-6);
        }
        assert!(case.keys.iter().any(|(name, value)| name == "xfersize" && value == "4096 bytes"));
    }
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    for key in ["Version", "Began", "Command line", "Machine", "tests", "summary", "Finished"] {
        assert!(!document[key].is_null(), "{key}");
    }
    let test = &document["tests"][0];
    for key in
        ["Path", "Capacity", "Used Capacity", "Inodes", "Used Inodes", "Parameters", "Options"]
    {
        assert!(!test[key].is_null(), "{key}");
    }
    let parameters = &test["Parameters"];
    assert_eq!(
        (&parameters["repetitions"], &parameters["platform"]),
        (&2.into(), &"here(Linux)".into())
    );
    assert_eq!(test["Results"].as_array().unwrap().len(), 4, "one after the other, as in IOR 4");
    let row = &test["Results"][0];
    for key in [
        "access",
        "bwMiB",
        "blockKiB",
        "xferKiB",
        "iops",
        "latency",
        "openTime",
        "wrRdTime",
        "closeTime",
        "totalTime",
    ] {
        assert!(!row[key].is_null(), "{key}");
    }
    let (_, csv) = good(1, &format!("-t 4k -b 16k -O summaryFormat=CSV -o {}", file.display()));
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn nothing_of_the_users_is_written_and_errors_say_what_helps() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("mine");
    fs::write(&file, vec![7; 8192]).unwrap();
    let shown = file.display();
    let (refused, _) = ran(2, &format!("-w -t 4k -b 4k -o {shown}"));
    let error = refused.unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("--destroy-data"), "{error}");
    // It may be read, and stays.
    good(2, &format!("-r -t 4k -b 4k -o {shown}"));
    assert_eq!(fs::read(&file).unwrap(), vec![7; 8192]);
    let (short, _) = ran(2, &format!("-r -t 4k -b 64k -o {shown}"));
    let error = short.unwrap_err().to_string();
    assert!(error.contains("the file ends here"), "{error}");
    let inode = fs::metadata(&file).unwrap().ino();
    good(2, &format!("-w -t 4k -b 4k -o {shown} --destroy-data {shown}"));
    assert_eq!(fs::metadata(&file).unwrap().ino(), inode, "overwritten in place, not removed");
    assert_ne!(fs::read(&file).unwrap(), vec![7; 8192]);
    let (large, _) = ran(2, &format!("-w -t 1m -b 1t -s 100 -o {}/new", here.path().display()));
    let error = large.unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("nothing was written"), "{error}");
    let (many, _) = ran(2, &format!("-N 3 -o {}/new", here.path().display()));
    assert!(many.unwrap_err().to_string().contains("-N 3"));
    let (nowhere, _) = ran(1, "-w -o /no/such/directory/f");
    assert!(nowhere.unwrap_err().to_string().contains("/no/such/directory"));
    assert_eq!(names(here.path()), ["mine"]);
}

#[test]
fn a_failed_write_leaves_nothing() {
    let here = tempfile::tempdir().unwrap();
    let base = here.path().join("f").display().to_string();
    // The second task's file belongs to the user.
    fs::write(format!("{base}.00000001"), "mine").unwrap();
    let (failed, _) = ran(2, &format!("-w -F -t 4k -b 4k -o {base}"));
    assert!(failed.unwrap_err().is_usage());
    assert_eq!(names(here.path()), ["f.00000001"]);
}
