//! One file that all clients write, and IOR, mdtest and operations on files under mpirun.

use crate::common::places::memory_directory;
use crate::common::{HALFPOWER, alone, halfpower_in, number, places, points, test_files};
use crate::or_skip;
use crate::over_mpi::{clients, document, launch, mpi_is_here, process_of};
use std::fs;
use std::path::Path;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

const PACED: &str = "--buffered --request 4k --rate 300 --runtime 300ms --repeats 2 --max-repeats 2 --progress none --json";

#[test]
fn all_clients_write_one_file_and_read_what_others_wrote() {
    or_skip!(mpi_is_here());
    let _alone = alone();
    let directory = memory_directory();
    for more in ["", "--interleaved", "--pattern random"] {
        let words =
            format!("sweep f --shared-file --op write,read --size 3m --shift 1 {more} {PACED}");
        let document = document(&clients(directory.path(), 3, &words));
        assert_eq!(points(&document).len(), 2, "{more}");
        assert_eq!(document["target"]["size_bytes"], 3 << 20);
        for point in points(&document) {
            let iops = number(point, "/iops");
            assert!((iops / 900.0 - 1.0).abs() < 0.1, "{iops} {more}");
        }
        assert!(names(directory.path()).is_empty(), "{more}");
    }
}

#[test]
fn an_existing_file_is_written_by_all_only_if_it_is_named() {
    or_skip!(mpi_is_here());
    let _alone = alone();
    let directory = memory_directory();
    let file = directory.path().join("mine");
    fs::write(&file, vec![7; 1 << 20]).unwrap();
    let words = format!("run mine --shared-file --op write {PACED}");
    clients(directory.path(), 3, &words).refused(&["mine", "--destroy-data"]);
    assert!(fs::read(&file).unwrap().iter().all(|&byte| byte == 7));
    let document = document(&clients(directory.path(), 3, &format!("{words} --destroy-data mine")));
    assert_eq!(points(&document)[0]["clients"]["each"].as_array().unwrap().len(), 3);
    assert!(fs::read(&file).unwrap().iter().any(|&byte| byte != 7));
    assert_eq!(names(directory.path()), ["mine"], "it is the user's");
}

#[test]
fn no_other_run_writes_the_file_of_a_group() {
    or_skip!(mpi_is_here());
    let _alone = alone();
    let directory = memory_directory();
    fs::write(directory.path().join("f"), vec![7; 1 << 20]).unwrap();
    let words = "run f --shared-file --op write --destroy-data f --buffered --request 4k --rate 300 --runtime 3s --repeats 1 --max-repeats 1 --progress none";
    let group = launch(directory.path(), &[(2, &[], HALFPOWER)], words).spawn().unwrap();
    let other = "run f --op write --destroy-data f --buffered --request 4k --rate 100 --runtime 100ms --repeats 1 --max-repeats 1";
    crate::common::wait_until("the group writes the file", || {
        fs::read(directory.path().join("f")).unwrap().iter().any(|&byte| byte != 7)
    });
    let ended = halfpower_in(directory.path(), other);
    assert!(ended.stderr.contains("in use") || ended.stderr.contains("another run"), "{ended:?}");
    assert_eq!(crate::common::ended(group).code, Some(0));
    assert_eq!(halfpower_in(directory.path(), other).code, Some(0), "then it may");
}

#[test]
fn ior_and_mdtest_run_as_ranks() {
    or_skip!(mpi_is_here());
    let _alone = alone();
    let directory = memory_directory();
    let ior = "ior -w -W -r -R -C -e -g -t 47008 -b 47008 -s 20 -o f -O summaryFormat=JSON";
    let ended = clients(directory.path(), 4, ior);
    let text = &ended.stdout;
    let document: serde_json::Value = serde_json::from_str(text).unwrap();
    let rows = document["tests"][0]["Results"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{text}");
    assert_eq!(document["tests"][0]["Options"]["tasks"], 4);
    assert!(!text.contains("wrong data"), "{text}");
    assert!(names(directory.path()).is_empty());
    let mdtest = "mdtest -n 30 -F -w 3901 -e 3901 -X -N 1 -u -i 2 -d .";
    let ended = clients(directory.path(), 3, mdtest);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("launched with 3 total task(s) on 1 node(s)"));
    assert!(ended.stdout.contains("3 tasks, 90 files"), "{}", ended.stdout);
    assert!(names(directory.path()).is_empty());
    clients(directory.path(), 2, "ior --tasks 2 -o f").refused(&["--tasks", "mpirun"]);
    clients(directory.path(), 2, "ior -N 3 -o f").refused(&["-N 3"]);
    assert!(test_files(directory.path()).is_empty() && names(directory.path()).is_empty());
}

#[test]
fn a_study_of_a_directory_has_operations_on_files() {
    or_skip!(mpi_is_here());
    let _alone = alone();
    let (directory, output) = (memory_directory(), memory_directory());
    let study = format!(
        "study . --quick --budget 12s --size 4m --output {} --progress none --json",
        output.path().display()
    );
    let json = document(&clients(directory.path(), 2, &study));
    assert_eq!(json["budget_ns"], 12_000_000_000_u64);
    let rates = json["rates"].as_array().unwrap();
    assert_eq!(rates.len(), 2 * (6 + 6 + 6 + 7), "own, shared, a tree, and small files");
    let scaling = json["operation_scaling"].as_array().unwrap();
    let of = |files: &str| scaling.iter().filter(|one| one["files"] == files).count();
    // With one client, stat, open and read are of its own files: they are not compared.
    assert_eq!((scaling.len(), of("in a shared directory"), of("4 KiB")), (6 + 4 + 6 + 4, 4, 4));
    assert_eq!(of("in a tree of 31 directories"), 6);
    assert_eq!(scaling[0]["operation"], "create");
    let page = fs::read_to_string(output.path().join("report.html")).unwrap();
    assert!(page.contains("Operations on files") && page.contains("create: "));
    assert!(names(directory.path()).is_empty());
}

#[test]
fn ctrl_c_in_a_study_s_operations_on_files_keeps_its_points() {
    or_skip!(mpi_is_here());
    let _alone = alone();
    let (directory, output) = (memory_directory(), memory_directory());
    let study = format!(
        "study . --quick --budget 12s --size 4m --output {} --progress none",
        output.path().display()
    );
    let mpirun = launch(directory.path(), &[(2, &[], HALFPOWER)], &study).spawn().unwrap();
    let has_files = || names(directory.path()).iter().any(|name| name.ends_with(".files"));
    // At the end of a study that takes longer than planned if the computer is busy.
    let patience = std::time::Duration::from_secs(60);
    crate::common::wait_at_most(patience, "the study works on files", has_files);
    // mpirun passes the exit code of rank 0 on; interrupted itself, it would have its own.
    let first = process_of(mpirun.id(), "0").unwrap().to_string();
    places::tool("kill", &["-INT", &first]).unwrap();
    let ended = crate::common::ended(mpirun);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    let json = fs::read_to_string(output.path().join("results.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["incomplete"], true);
    assert!(points(&json).len() > 10, "the points of the study stay");
    let warnings = json["warnings"].to_string();
    assert!(warnings.contains("it ended early: interrupted"), "{warnings}");
    assert!(names(directory.path()).is_empty());
}

#[test]
fn operations_on_files_are_measured_with_several_numbers_of_clients() {
    or_skip!(mpi_is_here());
    let _alone = alone();
    let directory = memory_directory();
    let words = "metadata . --files 300 --rounds 2 --clients powers --progress none";
    let json = document(&clients(directory.path(), 3, &format!("{words} --json")));
    let rates = json["rates"].as_array().unwrap();
    assert_eq!(rates.len(), 18, "6 operations with 1, 2 and 3 clients");
    let created = |clients: &str| {
        let of = |rate: &&serde_json::Value| {
            rate["operation"] == "create" && rate["settings"].as_str().unwrap().ends_with(clients)
        };
        rates.iter().find(of).unwrap()["count"].as_u64().unwrap()
    };
    assert_eq!((created("--threads 1"), created("--clients 3")), (600, 1800));
    let scaling = json["operation_scaling"].as_array().unwrap();
    assert_eq!(scaling.len(), 6);
    assert_eq!(scaling[0]["steps"].as_array().unwrap().len(), 3);
    let reported = memory_directory();
    fs::write(reported.path().join("results.json"), json.to_string()).unwrap();
    let report = halfpower_in(reported.path(), "report results.json");
    let page = fs::read_to_string(reported.path().join("report.html")).unwrap();
    for text in [&report.stdout, &page] {
        assert!(text.contains("create: ") && text.contains("half of the peak of "), "{text}");
    }
    assert_eq!(json["metadata_by_clients"]["results"].as_array().unwrap().len(), 3);
    assert_eq!(json["clients"]["ranks"].as_array().unwrap().len(), 3);
    let text = clients(directory.path(), 2, "metadata . --files 300 --rounds 2 --progress none");
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    assert!(text.stdout.contains("Each client: 300 files"), "{}", text.stdout);
    let shared = "--files 100 --rounds 1 --shared-directory --shift 1 --file-bytes 4k";
    let words = format!("metadata . {shared} --clients 2,3 --progress none");
    let json = document(&clients(directory.path(), 3, &format!("{words} --json")));
    assert_eq!(json["rates"].as_array().unwrap().len(), 14, "7 operations with 2 and 3 clients");
    let scaling = json["operation_scaling"].as_array().unwrap();
    let read = scaling.iter().find(|one| one["operation"] == "read").unwrap();
    assert_eq!(
        (&read["files"], &read["by_another_client"]),
        (&"4 KiB, in a shared directory".into(), &true.into())
    );
    let text = clients(directory.path(), 3, &words).stdout;
    for words in
        ["over 1 shared directory", "read (4 KiB, in a shared directory, by another client)"]
    {
        assert!(text.contains(words), "{text}");
    }
    for option in ["--shared-directory", "--shift 1"] {
        let alone = halfpower_in(directory.path(), &format!("metadata . {option}"));
        alone.refused(&[option.split(' ').next().unwrap(), "mpirun -np 4"]);
    }
    clients(directory.path(), 2, "metadata missing").refused(&["missing", "make it first"]);
    clients(directory.path(), 2, "metadata . --clients 4").refused(&["--clients 4", "only 2"]);
    assert!(names(directory.path()).is_empty());
}
