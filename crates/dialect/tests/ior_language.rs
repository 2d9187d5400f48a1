//! IOR's options on the command line, as directives and in scripts.

mod words;

use dialect::ior::{Format, Options, Tests, parse};
use proptest::prelude::*;
use std::path::PathBuf;
use words::words;

fn tests(line: &str) -> Tests {
    parse(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn one(line: &str) -> Options {
    let tests = tests(line).tests;
    assert_eq!(tests.len(), 1, "{line}");
    tests.into_iter().next().unwrap()
}

#[test]
fn the_same_option_in_all_its_forms() {
    let expected = one("-w -t 2m -b 16m -s 4 -F -C -e -k -i 3 -o /x/y -v -v");
    for line in [
        "-wFCek -t2m -b16m -s4 -i3 -o/x/y -vv",
        "-w -t=2m -b=16m -s=4 -FCek -i=3 -o=/x/y -vv",
        "--writeFile --transferSize 2m --blockSize=16m --segmentCount 4 --filePerProc --reorderTasks --fsync --keepFile --repetitions=3 --testFile /x/y --verbose=2",
        "-O writeFile=1,transferSize=2M,blocksize=16M,segmentCount=4,FILEPERPROC=1 -C -e -k -i 3 -o /x/y -O verbose=2",
    ] {
        assert_eq!(one(line), expected, "{line}");
    }
}

#[test]
fn without_a_phase_it_writes_and_reads() {
    let usual = one("");
    assert!(usual.write && usual.read && !usual.check_write);
    assert_eq!((usual.block_bytes, usual.transfer_bytes, usual.segments), (1 << 20, 256 << 10, 1));
    let read = one("-r");
    assert!(read.read && !read.write);
    assert!(one("-R").check_read && !one("-W").read);
}

/// The commands of IO500's four IOR phases.
#[test]
fn io500s_phases() {
    let easy = "-C -Q 1 -g -G 1234 -k -e -o /d/ior-easy/ior_file_easy -t 1m -b 9920000m -F";
    let write = one(&format!(
        "{easy} -w -D 300 -a POSIX -O stoneWallingStatusFile=/d/easy.stonewall -O stoneWallingWearOut=1"
    ));
    assert!(write.wear_out && write.barriers && write.per_task);
    assert_eq!(write.deadline_s, Some(300));
    assert_eq!(write.status_file, Some("/d/easy.stonewall".into()));
    let read = one(&format!("{easy} -r -R -a POSIX -O stoneWallingStatusFile=/d/easy.stonewall"));
    assert!(read.read && read.check_read && read.reorder && read.task_offset == 1);
    let hard = one(
        "-C -Q 1 -g -G 27 -k -e -o /d/ior-hard/file -t 47008 -b 47008 -s 10000000 -w -D 300 -a POSIX -O stoneWallingWearOut=1",
    );
    assert_eq!((hard.block_bytes, hard.transfer_bytes, hard.segments), (47008, 47008, 10_000_000));
}

#[test]
fn other_forms_of_results() {
    assert_eq!(one("-O summaryFormat=JSON").format, Format::Json);
    assert_eq!(one("-O summaryFormat=csv,summaryFile=x.csv").format, Format::Csv);
    let own = tests("--tasks 4 --json x.json --destroy-data f -o f");
    assert_eq!(
        (own.tasks_here, own.json, own.destroy),
        (4, Some("x.json".into()), vec!["f".into()])
    );
}

#[test]
fn a_script_runs_several_tests() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    std::fs::write(
        &script,
        "# two tests\nIOR START\n  api=POSIX\n  testFile = a\n  transferSize=64k # small\n  blockSize=1m\nRUN\n transfersize=128K\n writeFile=1\nrun\nIOR STOP\nnonsense\n",
    )
    .unwrap();
    let all = tests(&format!("-k -f {}", script.display())).tests;
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].test_files, [PathBuf::from("a")]);
    assert_eq!((all[0].transfer_bytes, all[1].transfer_bytes), (64 << 10, 128 << 10));
    assert!(all[0].keep && all[0].read && !all[1].read && all[1].write);
    for (text, says) in [
        ("transferSize=1k\n", "line 1"),
        ("IOR START\nbogus=1\nRUN\n", "line 2: bogus=1"),
        ("IOR START\nIOR STOP\n", "it runs no test"),
    ] {
        std::fs::write(&script, text).unwrap();
        let error = parse(&words(&format!("-f {}", script.display()))).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    let error = parse(&words("-f /no/such/script")).unwrap_err();
    assert!(error.is_usage(), "{error}");
}

#[test]
fn what_is_not_supported_is_refused_with_its_word_and_what_to_write() {
    for (line, says) in [
        ("-a MPIIO", "POSIX"),
        ("-c", "every task makes its own transfers"),
        ("-M 80%", "--posix.odirect"),
        ("-t 3 -b 10", "-b 10"),
        ("-t 0", "-t 0"),
        ("-t 1x", "-t 1x"),
        ("-b 1.5m", "-b 1.5m"),
        ("-t", "its value is missing"),
        ("-y", "-y: unknown option"),
        ("--bogus", "unknown option"),
        ("-O collective=1", "collective=1"),
        ("-O keepFile=2", "neither 0 nor 1"),
        ("-O summaryFormat=xml", "default, JSON or CSV"),
        ("--posix.odirect -t 47008 -b 47008", "512"),
        ("-u", "add -F"),
        ("-o a@b", "add -F"),
        ("-O stoneWallingWearOut=1", "-D SECONDS"),
        ("-O lustreStripeCount=4", "lfs setstripe"),
        ("file", "-o"),
        ("-s 1000000000000000 -b 1g", "-s"),
        ("--tasks 0", "--tasks 0"),
        ("-o f --destroy-data g", "--destroy-data g"),
    ] {
        let error = parse(&words(line)).err().unwrap_or_else(|| panic!("{line} is taken"));
        let text = error.to_string();
        assert!(error.is_usage() && text.contains(says), "{line}: {text}");
    }
}

#[test]
fn names_of_files() {
    let shown = |line: &str, task| one(line).file(task, 2).display().to_string();
    assert_eq!(shown("-o d/f", 3), "d/f");
    assert_eq!(shown("-o d/f -F", 3), "d/f.00000003");
    assert_eq!(shown("-o d/f -F -m", 3), "d/f.00000003.2");
    assert_eq!(shown("-o d/f -F -u", 3), "d/00000003/f.00000003");
    assert_eq!(shown("-o a/f@b/f -F", 3), "b/f.00000003");
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(line in prop::collection::vec("-{0,2}[a-zA-Z=.,@0-9]{0,12}|[\\PC]{0,8}", 0..6)) {
        let _ = parse(&line);
        let _ = dialect::mdtest::parse(&line);
    }
}
