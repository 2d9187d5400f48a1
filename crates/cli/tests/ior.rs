//! `halfpower ior` and `halfpower mdtest` with one task, and with several as threads.

mod common;

use common::places::memory_directory;
use common::{Ended, alone, halfpower, halfpower_in};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn good(ended: &Ended) -> &str {
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    &ended.stdout
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn document(directory: &Path, name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(directory.join(name)).unwrap()).unwrap()
}

#[test]
fn tasks_as_threads_write_one_file_and_read_each_others_part() {
    let _alone = alone();
    let directory = memory_directory();
    let ended = halfpower_in(
        directory.path(),
        "ior --tasks 4 -w -W -r -R -C -g -e -t 64k -b 256k -s 3 -i 3 -o f --json own.json",
    );
    let text = good(&ended);
    assert!(text.contains("tasks               : 4"), "{text}");
    assert!(text.contains("Transfers with wrong data: 0"), "{text}");
    assert_eq!(names(directory.path()), ["own.json"]);
    let own = document(directory.path(), "own.json");
    assert_eq!(own["ior"]["tests"][0]["phases"].as_array().unwrap().len(), 6);
    assert_eq!(own["points"].as_array().unwrap().len(), 2);
    let point = &own["points"][0];
    assert_eq!(point["repeats"], 3, "{point:#}");
    assert!(point["interval_95"].is_array());
    // halfpower's own document is complete.
    good(&halfpower_in(directory.path(), "report --check own.json"));
}

#[test]
fn reads_of_holes_are_doubted() {
    let _alone = alone();
    let directory = memory_directory();
    let path = directory.path().join("f");
    for (content, doubted) in [(vec![0; 1 << 20], true), (vec![7; 1 << 20], false)] {
        fs::write(&path, content).unwrap();
        let ended = halfpower_in(directory.path(), "ior --tasks 2 -r -t 64k -b 512k -o f");
        let text = good(&ended);
        assert_eq!(text.contains("100 % of f reads as zeros"), doubted, "{text}");
    }
}

#[test]
fn the_six_phases_of_io500_run_one_after_the_other() {
    let _alone = alone();
    let directory = memory_directory();
    for name in ["easy", "hard", "md-easy", "md-hard"] {
        fs::create_dir(directory.path().join(name)).unwrap();
    }
    let easy = "ior --tasks 3 -C -Q 1 -g -G 271 -k -e -o easy/file -O stoneWallingStatusFile=easy.wall -t 64k -b 4g -F";
    let hard = "ior --tasks 3 -C -Q 1 -g -G 271 -k -e -o hard/file -O stoneWallingStatusFile=hard.wall -t 47008 -b 47008 -s 100000";
    let limits = "-w -D 1 -O stoneWallingWearOut=1 -Y";
    let md_easy = "mdtest --tasks 3 -n 100000 -u -L -F -P -N 1 -d md-easy -x md-easy.wall";
    let md_hard =
        "mdtest --tasks 3 -n 100000 -t -w 3901 -e 3901 -P -N 1 -F -d md-hard -x md-hard.wall";
    let run = |words: String| good(&halfpower_in(directory.path(), &words)).to_owned();
    for (name, ior) in [("easy", easy), ("hard", hard)] {
        let written = run(format!("{ior} {limits}"));
        assert!(written.contains("stonewalling pairs accessed min"), "{written}");
        let read = run(format!("{ior} -r -R"));
        assert!(read.contains("Transfers with wrong data: 0"), "{name}: {read}");
        let pairs: u64 = fs::read_to_string(directory.path().join(format!("{name}.wall")))
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let bytes: u64 = (fs::read_dir(directory.path().join(name)).unwrap())
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        let transfer = if name == "easy" { 64 << 10 } else { 47008 };
        assert_eq!(bytes, 3 * pairs * transfer, "{name}");
    }
    for (name, mdtest) in [("md-easy", md_easy), ("md-hard", md_hard)] {
        let created = run(format!("{mdtest} -C -y -W 1"));
        assert!(created.contains("SUMMARY rate") && created.contains("SUMMARY time"), "{created}");
        run(format!("{mdtest} -T"));
        run(format!("{mdtest} -E -X"));
        run(format!("{mdtest} -r"));
        assert!(names(&directory.path().join(name)).is_empty(), "{name}");
    }
    // Their reports compare.
    let json = |name: &str| {
        let text = run("ior -t 64k -b 1m -i 2 -O summaryFormat=JSON -o x".into());
        fs::write(directory.path().join(name), text).unwrap();
    };
    json("a.json");
    json("b.json");
    run("compare a.json b.json".into());
}

#[test]
fn refusals_change_nothing() {
    let directory = memory_directory();
    fs::write(directory.path().join("mine"), "precious").unwrap();
    let at = |words: &str| halfpower_in(directory.path(), words);
    at("ior -w -o mine").refused(&["mine", "--destroy-data"]);
    at("ior -a HDF5").refused(&["-a HDF5", "POSIX"]);
    at("ior -o twin:nvme").refused(&["twin:nvme"]);
    at("ior -N 2").refused(&["-N 2", "--tasks"]);
    at("mdtest").refused(&["-n N"]);
    at("ior -w -b 1m -i 2 --max-written 1m").refused(&["--max-written 1 MiB", "2.00 MiB"]);
    at("mdtest -n 2 -F -w 1048576 --max-written 1m").refused(&["--max-written 1 MiB", "2.00 MiB"]);
    at("mdtest -n 1 -d missing/one").refused(&["missing/one", "make the directory above it"]);
    good(&at("mdtest -n 2 -d made"));
    at("mdtest -n 1 --json mine").refused(&["mine", "--force"]);
    assert_eq!(names(directory.path()), ["mine"]);
    assert_eq!(fs::read(directory.path().join("mine")).unwrap(), b"precious");
    for (tool, words) in [("ior", "-C  -Q N"), ("mdtest", "-N N")] {
        assert!(good(&halfpower(&format!("{tool} --help"))).contains(words));
    }
}

#[test]
fn wrong_data_is_an_error_and_a_reason() {
    let _alone = alone();
    let directory = memory_directory();
    let at = |words: &str| halfpower_in(directory.path(), words);
    good(&at("ior -w -k -t 4k -b 64k -o f"));
    let path = directory.path().join("f");
    let mut data = fs::read(&path).unwrap();
    data[20_000] ^= 0x10;
    fs::write(&path, data).unwrap();
    let ended = at("ior -R -k -t 4k -b 64k -o f");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("1 transfers returned other data"), "{}", ended.stderr);
    assert!(ended.stdout.contains("WARNING: -R: task 0"), "{}", ended.stdout);
}

#[test]
fn mdtests_document_has_rates_with_intervals() {
    let _alone = alone();
    let directory = memory_directory();
    let at = |words: &str| halfpower_in(directory.path(), words);
    let ended = at("mdtest --tasks 2 -n 50 -i 3 -w 10 -e 10 -X --json own.json");
    let text = good(&ended);
    assert!(text.contains("File creation") && text.contains("Directory removal"), "{text}");
    let own = document(directory.path(), "own.json");
    let rates = own["rates"].as_array().unwrap();
    assert_eq!(rates.len(), 7, "{rates:#?}");
    assert!(rates.iter().all(|rate| rate["interval_95"].is_array() && rate["count"] == 300));
    good(&at("report --check own.json"));
    assert_eq!(names(directory.path()), ["own.json"]);
}

#[test]
fn an_item_that_became_a_pipe_is_an_error() {
    let _alone = alone();
    let directory = memory_directory();
    let at = |words: &str| halfpower_in(directory.path(), words);
    good(&at("mdtest -C -F -n 3 -w 4"));
    let item = directory.path().join("test-dir.0-0/mdtest_tree.0/file.mdtest.0.1");
    fs::remove_file(&item).unwrap();
    assert!(Command::new("mkfifo").arg(&item).status().unwrap().success());
    let ended = at("mdtest -E -F -n 3 -e 4");
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stderr.contains("1 items did not have the size"), "{}", ended.stderr);
}
