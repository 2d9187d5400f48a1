//! `halfpower compare`: results of every kind, and two arms in turn.

mod common;

use common::{HALFPOWER, command, ended, finish, halfpower, wait_until};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dialect/tests/data");
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/compare-1.json");

fn compare(words: &[&str]) -> common::Ended {
    finish(command(HALFPOWER, ["compare"].iter().chain(words)))
}

fn file(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

fn simulated(directory: &Path, name: &str, words: &str) -> String {
    let ended = halfpower(&format!("{words} --json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    file(directory, name, &ended.stdout)
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(
        &serde_json::from_str(&results::compare::comparison_schema()).unwrap(),
    )
    .unwrap()
}

#[test]
fn the_stored_schema_is_current() {
    let own = results::compare::comparison_schema();
    if std::env::var("UPDATE").as_deref() == Ok("1") {
        fs::write(KEPT, &own).unwrap();
    }
    let kept = fs::read_to_string(KEPT).unwrap_or_default();
    assert!(
        kept == own,
        "schema/compare-1.json: UPDATE=1 cargo test -p halfpower --test compare rewrites it"
    );
}

#[test]
fn a_directory_names_the_results_in_it() {
    let here = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| here.path().join(name));
    for (directory, machine) in [(&a, "nvme"), (&b, "virtio")] {
        fs::create_dir(directory).unwrap();
        simulated(directory, "results.json", &format!("run twin:{machine} --bytes 16m"));
    }
    let [a, b] = [a, b].map(|path| path.to_string_lossy().into_owned());
    assert_eq!(compare(&[&a, &b]).code, Some(0));
    let report = halfpower(&format!("report {a}"));
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    assert!(Path::new(&a).join("report.html").is_file());
}

#[test]
fn the_published_alignment_study_prints_its_table_and_conclusions() {
    let ended = compare(&[&format!("{DATA}/sqlio_partition_alignment.csv")]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "64KB offset is 12.9 % faster than 31.5KB offset in the geometric mean over 36 points",
        "random reads +22.4 %",
        "random writes +16.4 %",
        "sequential reads +5.7 %",
        "sequential writes +7.9 %",
        "R ran 1 400.45 589.11 +47.1 %",
        "W seq 256 7711 8650 +12.2 %",
        "random reads ████",
    ] {
        assert!(text.contains(words), "'{words}' is in\n{}", ended.stdout);
    }
    let unit = compare(&[&format!("{DATA}/sqlio_allocation_unit.csv")]);
    assert!(
        unit.stdout.starts_with("No difference between 64KB unit and 4KB unit: -0.4 %"),
        "{}",
        unit.stdout
    );
}

#[test]
fn two_documents_of_simulated_machines_are_compared_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let a =
        simulated(at, "a.json", "sweep twin:nvme --pattern random --request 4k,64k --depth 1,8");
    let b = simulated(
        at,
        "b.json",
        "sweep twin:virtio --pattern random --request 4k,64k,1m --depth 1,8",
    );
    let page = at.join("page.html");
    let table = at.join("table.csv");
    let ended = compare(&[
        &a,
        &b,
        "--json",
        "--html",
        page.to_str().unwrap(),
        "--csv",
        table.to_str().unwrap(),
    ]);
    let document = ended.good_json();
    let errors: Vec<String> =
        validator().iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let differences = document["differences"].as_array().unwrap();
    let rates: Vec<&Value> =
        differences.iter().filter(|one| one["measure"] == "throughput").collect();
    assert_eq!(rates.len(), 4);
    assert_eq!(document["only_b"].as_array().unwrap().len(), 2, "only one of them asks for 1 MiB");
    for measure in ["latency_p50", "latency_p99", "latency_p999"] {
        assert_eq!(
            differences.iter().filter(|one| one["measure"] == measure).count(),
            4,
            "{measure}"
        );
    }
    for one in rates {
        let exact = one["change_percent"].as_f64().unwrap();
        assert_eq!(
            one["interval_95_percent"][0].as_f64(),
            Some(exact),
            "the same comes again every time"
        );
        assert_eq!(one["verdict"], if exact > 0.0 { "better" } else { "worse" });
    }
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg class=\"changes\"") && page.contains("</html>"));
    let table = fs::read_to_string(table).unwrap();
    assert_eq!(table.lines().count(), differences.len() + 1);
    let same = compare(&[&a, &a]);
    assert!(same.stdout.contains("No difference between"), "{}", same.stdout);
}

#[test]
fn a_threshold_exits_with_3() {
    let directory = tempfile::tempdir().unwrap();
    let table = "case,iops\nx,100\nx,101\nx,99\n";
    let a = file(directory.path(), "a.csv", table);
    let b = file(directory.path(), "b.csv", "case,iops\nx,80\nx,81\nx,79\n");
    let failed = compare(&[&a, &b, "--fail-if", "slower:5%"]);
    assert_eq!(failed.code, Some(3), "{failed:?}");
    assert!(failed.stderr.contains("--fail-if slower:5%: x: IOPS -20.0 %"), "{}", failed.stderr);
    for (first, second, limit) in
        [(&a, &b, "slower:30%"), (&b, &a, "slower:5%"), (&a, &b, "p99:5%")]
    {
        assert_eq!(
            compare(&[first, second, "--fail-if", limit]).code,
            Some(0),
            "{first} {second} {limit}"
        );
    }
    compare(&[&a, &b, "--fail-if", "quick:5%"]).refused(&["slower:5%"]);
}

#[test]
fn markdown_escapes_names() {
    let directory = tempfile::tempdir().unwrap();
    let a = file(directory.path(), "a|<b>.csv", "case,iops\nx|y,100\nx|y,101\n");
    let b = file(directory.path(), "b.csv", "case,iops\nx|y,100\nx|y,102\n");
    let ended = compare(&[&a, &b, "--markdown"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("### a\\|\\<b\\>.csv → b.csv"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("| x\\|y |") && ended.stdout.contains("<details>"),
        "{}",
        ended.stdout
    );
}

#[test]
fn incomparable_results_are_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let text = file(directory.path(), "notes.txt", "nothing of the kind");
    let table = file(directory.path(), "a.csv", "case,iops\nx,1\n");
    let other = file(directory.path(), "b.csv", "case,iops\ny,1\n");
    compare(&[]).refused(&["two results", "--a"]);
    compare(&[&table]).refused(&["one side"]);
    compare(&[&text, &table]).refused(&["notes.txt", "not a report"]);
    compare(&[&table, "/nowhere/at/all"]).refused(&["/nowhere/at/all"]);
    compare(&[&table, &other, "--op", "read"]).refused(&["--op", "--a"]);
    compare(&["--a", "twin:nvme"]).refused(&["--b"]);
    compare(&["--a", "twin:nvme --depth", "--b", "twin:nvme"]).refused(&["--a", "--depth"]);
    compare(&["--a", "twin:nvme --depth 1,2", "--b", "twin:nvme"]).refused(&["2 questions", "1"]);
    let nothing = compare(&[&table, &other]);
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(nothing.stdout.contains("no question in common"), "{}", nothing.stdout);
}

#[test]
fn two_arms_of_simulated_machines() {
    let document = compare(&[
        "--a",
        "twin:nvme",
        "--b",
        "twin:nvme --depth 8",
        "--pattern",
        "random",
        "--request=4k",
        "--json",
    ])
    .good_json();
    let rate = &document["differences"][0];
    assert_eq!(
        (rate["measure"].as_str(), rate["verdict"].as_str()),
        (Some("throughput"), Some("better"))
    );
    assert!(rate["change_percent"].as_f64() > Some(300.0), "eight at once: {rate:#}");
    assert_eq!(document["method"]["in_turn"]["blocks"], 1, "the same comes again every time");
}

#[test]
fn two_arms_of_this_machine_with_setup_commands() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display().to_string();
    let turns = directory.path().join("turns");
    let (a, b) = (format!("'{at}'"), format!("'{at}' --think 20ms"));
    let setup = |name: &str| format!("echo {name} >> '{}'", turns.display());
    let (first, second) = (setup("a"), setup("b"));
    let arms = ["--a", a.as_str(), "--b", b.as_str(), "--size", "4m"];
    let setups = ["--a-setup", first.as_str(), "--b-setup", second.as_str()];
    let limits = ["--runtime", "100ms", "--budget", "20s", "--json"];
    let document = compare(&[&arms[..], &setups, &limits].concat()).good_json();
    let rate = &document["differences"][0];
    assert_eq!(rate["verdict"], "worse", "20 ms of thinking after each request: {rate:#}");
    let blocks = document["method"]["in_turn"]["blocks"].as_u64().unwrap() as usize;
    assert!(blocks >= 4);
    let order = fs::read_to_string(&turns).unwrap().split_whitespace().collect::<String>();
    assert_eq!(order.len(), 4 * blocks);
    let of_block = |block: &[u8]| matches!(block, b"abba" | b"baab");
    assert!(order.as_bytes().chunks(4).all(of_block), "{order}");
    assert!(common::test_files(directory.path()).is_empty());
    let failing = compare(&[&arms[..], &["--a-setup", "exit 7", "--budget", "5s"]].concat());
    failing.refused(&["--a-setup", "exit 7", "7"]);
}

#[test]
fn an_interrupt_shows_the_results_so_far() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let turns = directory.path().join("turns");
    let arm = format!("'{}'", directory.path().display());
    let setup = format!("echo x >> '{}'", turns.display());
    let words = [
        "compare",
        "--a",
        &arm,
        "--b",
        &arm,
        "--a-setup",
        &setup,
        "--size",
        "1m",
        "--runtime",
        "10ms",
    ];
    let endless = ["--until", "0.0001%", "--budget", "1h"];
    let child = command(HALFPOWER, words.iter().chain(&endless)).spawn().unwrap();
    // A block has two runs of A: after twelve there is a sixth block, and five give an interval.
    wait_until("six blocks", || {
        fs::read_to_string(&turns).is_ok_and(|text| text.lines().count() >= 12)
    });
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let stopped = ended(child);
    assert_eq!(stopped.code, Some(130), "{stopped:?}");
    for words in ["interrupted: what was measured until then", "blocks of four runs in turn"] {
        assert!(stopped.stdout.contains(words), "'{words}' is in\n{}", stopped.stdout);
    }
    assert!(common::test_files(directory.path()).is_empty());
}

#[test]
fn reports_of_other_tools() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let both = |name: &str, text: &str, slower: &str| {
        [file(at, &format!("a-{name}"), text), file(at, &format!("b-{name}"), slower)]
    };
    let fio = |iops: u32| {
        format!(
            r#"{{"fio version":"fio-3.33","global options":{{"bs":"4k"}},"jobs":[{{"jobname":"j","job options":{{"rw":"randread","iodepth":"8"}},
            "usr_cpu":10.0,"sys_cpu":20.0,"read":{{"iops":{iops}.5,"bw_bytes":{},"lat_ns":{{"mean":80000.0}},
            "clat_ns":{{"mean":79000.0,"percentile":{{"50.000000":70000,"99.000000":200000,"99.900000":400000}}}}}},
            "write":{{"iops":0.0}}}}]}}"#,
            iops * 4096
        )
    };
    let sqlio = |ios: &str| {
        format!(
            "4 threads writing for 30 secs to file testfile.dat\n\tusing 8KB random IOs\n\tenabling multiple I/Os per thread with 1 outstanding\n\
             CUMULATIVE DATA:\nthroughput metrics:\nIOs/sec:   {ios}\nMBs/sec:     3.29\nlatency metrics:\nAvg_Latency(ms): 9\n"
        )
    };
    let postmark = |seconds: u32, rate: u32| {
        format!(
            "Time:\n\t{seconds} seconds total\n\t10 seconds of transactions ({rate} per second)\n\nFiles:\n\t764 created (38 per second)\n\
             \t\tCreation alone: 500 files (50 per second)\n\t\tMixed with transactions: 264 files (26 per second)\n\t243 read (24 per second)\n\
             \t764 deleted (38 per second)\n\t\tMixed with transactions: 236 files (23 per second)\n\nData:\n\t1.36 megabytes read (69.63 kilobytes per second)\n"
        )
    };
    let iozone = |rate: u32| {
        let head = "              kB  reclen    write  rewrite    read    reread";
        format!(
            "\tIozone: Performance Test of File I/O\n\tOutput is in kBytes/sec\n{head}\n{:>16}{:>8}{rate:>9}{:>9}{:>9}{:>9}\n\niozone test complete.\n",
            64, 4, 3612, 4612, 5612
        )
    };
    let diskspd = |count: u32| {
        format!(
            "<Results><Profile><TimeSpans><TimeSpan><Targets><Target><BlockSize>4096</BlockSize><Random>4096</Random><WriteRatio>0</WriteRatio>\
             <RequestCount>8</RequestCount><ThreadsPerFile>2</ThreadsPerFile></Target></Targets></TimeSpan></TimeSpans></Profile><TimeSpan>\
             <TestTimeSeconds>2.00</TestTimeSeconds><Latency><AverageTotalMilliseconds>0.2</AverageTotalMilliseconds><Bucket><Percentile>99</Percentile>\
             <TotalMilliseconds>0.6</TotalMilliseconds></Bucket></Latency><Thread><Id>0</Id><Target><BytesCount>{}</BytesCount><IOCount>{count}</IOCount>\
             </Target></Thread></TimeSpan></Results>",
            count * 4096
        )
    };
    // Tool, both files, number of questions, first change in percent.
    let cases = [
        ("fio.json", both("fio.json", &fio(1000), &fio(900)), 1, -10.0),
        ("sqlio.txt", both("sqlio.txt", &sqlio("400.00"), &sqlio("300.00")), 1, -25.0),
        ("postmark.txt", both("postmark.txt", &postmark(20, 50), &postmark(16, 60)), 9, -20.0),
        ("iozone.txt", both("iozone.txt", &iozone(2000), &iozone(3000)), 4, 50.0),
        ("diskspd.xml", both("diskspd.xml", &diskspd(1000), &diskspd(2000)), 1, 100.0),
    ];
    for (name, [a, b], questions, change) in cases {
        let document = compare(&[&a, &b, "--json"]).good_json();
        let differences = document["differences"].as_array().unwrap();
        let asked: std::collections::HashSet<&str> =
            differences.iter().map(|one| one["question"].as_str().unwrap()).collect();
        assert_eq!(asked.len(), questions, "{name}: {asked:?}");
        let first = differences[0]["change_percent"].as_f64().unwrap();
        assert!((first - change).abs() < 0.2, "{name}: {first}");
        assert_eq!(differences[0]["verdict"], "untold", "{name}: one run a side");
    }
    // The same report three times counts as three runs.
    let [a, b] = both(
        "many.txt",
        &["400", "404", "396"].map(&sqlio).concat(),
        &["300", "303", "297"].map(&sqlio).concat(),
    );
    let many = compare(&[&a, &b, "--json"]).good_json();
    assert_eq!(
        (
            many["differences"][0]["verdict"].as_str(),
            many["differences"][0]["runs_a"].as_array().unwrap().len()
        ),
        (Some("worse"), 3)
    );
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(sqlio("350").encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let windows = at.join("windows.txt");
    fs::write(&windows, utf16).unwrap();
    assert_eq!(
        compare(&[&a, windows.to_str().unwrap()]).code,
        Some(0),
        "as a Windows shell writes it"
    );
    let cut = file(at, "cut.json", "{\"fio version\":\"fio-3.33\",\"jobs\":[");
    compare(&[&cut, &a]).refused(&["cut.json", "fio"]);
}

#[test]
fn debians_fio_results_are_compared() {
    let _one = common::alone();
    let there =
        command("fio", ["--version"]).spawn().map(drop).map_err(|error| format!("fio: {error}"));
    or_skip!(there);
    let directory = tempfile::tempdir().unwrap();
    let run = |name: &str| -> PathBuf {
        let out = directory.path().join(name);
        let words = [
            "--name=j".to_string(),
            format!("--directory={}", directory.path().display()),
            "--size=1m".into(),
            "--rw=randread".into(),
            "--bs=4k".into(),
            "--output-format=json".into(),
            format!("--output={}", out.display()),
        ];
        let ended = finish(command("fio", words));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        out
    };
    let (a, b) = (run("a.json"), run("b.json"));
    let document = compare(&[a.to_str().unwrap(), b.to_str().unwrap(), "--json"]).good_json();
    let measures: Vec<&str> = document["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["measure"].as_str().unwrap())
        .collect();
    for measure in ["iops", "throughput", "latency_p50", "latency_p99"] {
        assert!(measures.contains(&measure), "{measure} in {measures:?}");
    }
}

const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dialect/tests/data/recordings");

#[test]
fn reports_of_other_tools_are_compared_imported_and_made_pages() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let history = at.join("history.sqlite");
    let with_history = |words: &str| {
        let mut command = command(HALFPOWER, words.split_whitespace());
        command.env("HALFPOWER_HISTORY", &history);
        finish(command)
    };
    // A CSV of a tool is that tool's, not a table of unknown columns.
    let elbencho = format!("{RECORDINGS}/elbencho-3.csv");
    let same = compare(&[&elbencho, &elbencho]);
    assert!(same.code == Some(0) && same.stdout.contains("No difference"), "{same:?}");
    let [json, text] = ["json", "txt"].map(|end| format!("{RECORDINGS}/fio-2.1.{end}"));
    let imported = with_history(&format!("history import {json} {text} --target {}", at.display()));
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let list: Value =
        serde_json::from_str(&with_history("history --kind import --json").stdout).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(list[0]["target"], fs::canonicalize(at).unwrap().to_str().unwrap());
    let shown = with_history("history show 1");
    assert!(shown.stdout.contains("152 us") && shown.stdout.contains("fio-2.1.json"), "{shown:?}");
    let compared = with_history("compare 1 1");
    assert!(compared.stdout.contains("+0.0 % in IOPS"), "{compared:?}");
    let trend = with_history(&format!("history trend {} --measure p99", at.display()));
    assert!(trend.code == Some(0) && trend.stdout.contains("290"), "{trend:?}");
    // Damaged: nothing is stored.
    let damaged =
        file(at, "bad.txt", &fs::read_to_string(&text).unwrap().replace("avg=151.75", "avg=?"));
    let refused = with_history(&format!("history import {json} {damaged}"));
    assert!(refused.code == Some(2) && refused.stderr.contains("line 9"), "{refused:?}");
    let unknown = file(at, "notes.txt", "nothing\n");
    let refused = with_history(&format!("history import {unknown}"));
    assert!(refused.code == Some(2) && refused.stderr.contains("sysbench"), "{refused:?}");
    let list: Value = serde_json::from_str(&with_history("history --json").stdout).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 2);
    let mine = file(
        at,
        "sysbench.txt",
        &fs::read_to_string(format!("{RECORDINGS}/sysbench-1.0.20.txt")).unwrap(),
    );
    let report = halfpower(&format!("report {mine}"));
    assert!(report.code == Some(0) && report.stdout.contains("random r/w"), "{report:?}");
    let page = fs::read_to_string(at.join("report.html")).unwrap();
    assert!(page.contains("<svg class=\"bars\"") && page.contains("</html>"));
    assert_eq!(halfpower(&format!("report {mine} --check")).code, Some(2));
}
