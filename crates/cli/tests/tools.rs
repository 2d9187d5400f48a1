//! Other tools' command lines: exit codes, output streams, the document next to the report.

mod common;

use common::places::Mount;
use std::path::Path;
use std::process::{Command, Output};

fn halfpower(directory: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_halfpower"))
        .env("HALFPOWER_HISTORY", "none")
        .args(line.split_whitespace())
        .current_dir(directory)
        .output()
        .unwrap()
}

fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn document(path: &Path, tool: &str, points: usize) -> serde_json::Value {
    let read = results::read(path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.points.len(), points);
    assert!(read.points.iter().all(|point| point.numbers.is_some()));
    let value: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(value[tool].is_object(), "the tool's own results");
    value
}

#[test]
fn iozone() {
    let here = tempfile::tempdir().unwrap();
    let done = halfpower(
        here.path(),
        "iozone -a -n 64k -g 128k -q 8k -i 0 -i 1 --repeats 2 -R -b sheet.xls --json all.json",
    );
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    assert!(
        text.contains("iozone test complete.") && text.contains("\"Re-Reader report\""),
        "{text}"
    );
    assert_eq!(entries(here.path()), ["all.json", "sheet.xls"]);
    let value = document(&here.path().join("all.json"), "iozone", 4 * 4);
    assert_eq!(value["iozone"]["surfaces"][0]["kib_per_s"].as_array().unwrap().len(), 2);
}

#[test]
fn iozone_prints_its_version_and_machine() {
    let here = tempfile::tempdir().unwrap();
    let said = |line: &str| {
        let done = halfpower(here.path(), line);
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    assert!(said("iozone -v").contains("Version $Revision: 3."));
    assert!(said("iozone -a -h").contains("Usage: halfpower iozone"));
    assert!(said("iozone -M -s 64k -r 64k -i 0 --repeats 1").contains("\tMachine = Linux"));
}

fn replaces_its_own_outputs(here: &Path) {
    let jobs = "fio --name=j --size=64k --bs=4k --rw=write --verify=crc32c";
    let lines = [
        format!("{jobs} --output=normal.txt"),
        format!("{jobs} --output=terse.txt --output-format=terse"),
        format!("{jobs} --output=both.txt --output-format=normal,json"),
        format!("{jobs} --write_lat_log=lat --write_bw_log=bw --log_prio=1"),
        format!("{jobs} --write_hist_log=hist --log_hist_msec=1 --write_iolog=trace"),
        format!("{jobs} --verify_state_save=1"),
        "iozone -s 64k -r 8k -i 0 --repeats 1 -R -b sheet.xls".into(),
        "iozone -s 64k -r 8k -i 0 --repeats 1 -Q".into(),
    ];
    for line in &lines {
        for run in ["first", "second"] {
            let done = halfpower(here, line);
            assert!(
                done.status.success(),
                "{run} {line}: {}",
                String::from_utf8_lossy(&done.stderr)
            );
        }
    }
    for (name, line) in [("trace", 4), ("sheet.xls", 6), ("wol.dat", 7), ("lat_lat.1.log", 3)] {
        std::fs::write(here.join(name), "1, 2, 3").unwrap();
        let done = halfpower(here, &lines[line]);
        let reported = String::from_utf8(done.stderr).unwrap();
        assert!(
            done.status.code() == Some(2)
                && reported.contains(name)
                && reported.contains("--force"),
            "{name}: {reported}"
        );
        assert_eq!(std::fs::read_to_string(here.join(name)).unwrap(), "1, 2, 3");
        assert!(halfpower(here, &format!("{} --force", lines[line])).status.success(), "{name}");
    }
}

#[test]
fn a_run_replaces_its_own_outputs() {
    replaces_its_own_outputs(tempfile::tempdir().unwrap().path());
}

#[test]
fn a_run_replaces_its_own_outputs_without_extended_attributes() {
    replaces_its_own_outputs(&or_skip!(Mount::with(&["-t", "ramfs", "halfpower-test"])).at);
}

#[test]
fn sqlio() {
    let here = tempfile::tempdir().unwrap();
    let done = halfpower(
        here.path(),
        "sqlio -kW -frandom -t2 -o4 -b4 -BY -LS --runtime 200ms --size 4m . --json one.json",
    );
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    assert!(text.starts_with("sqlio v1.5.SG\n") && text.contains("\nIOs/sec:"), "{text}");
    assert_eq!(entries(here.path()), ["one.json"]);
    document(&here.path().join("one.json"), "sqlio", 1);
    let done = halfpower(
        here.path(),
        "sqlio --matrix -BY --runtime 10ms --size 4m --max-threads 1 --align 512,4k . --json two.json",
    );
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(
        done.status.success() && text.contains("oper     thr       orig        new    diff%"),
        "{text}"
    );
    document(&here.path().join("two.json"), "sqlio_matrix", 8);
    assert_eq!(entries(here.path()), ["one.json", "two.json"]);
}

/// Checks the published matrix (KB/s): 21 to 37 MB/s from 16 MB on, 164 to 280 with a RAM cache,
/// and 32 to 41 for a file of twice the cache.
#[test]
fn iozones_buffered_writes_run_at_memory_speed_below_the_ram_cache() {
    let here = tempfile::tempdir().unwrap();
    let matrix = |machine: &str| -> Vec<(u64, f64)> {
        let words = "iozone -Ra -i 0 -+n -n 4m -g 512m -y 4m -q 4m -f";
        let done = halfpower(here.path(), &format!("{words} twin:{machine}"));
        let text = String::from_utf8(done.stdout).unwrap();
        let quoted = text.lines().filter(|line| line.starts_with('"'));
        let rows = quoted.map(|line| line.replace('"', "")).filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        });
        let rows: Vec<(u64, f64)> = rows.collect();
        assert_eq!(rows.len(), 8, "{text}");
        rows
    };
    let (without, with) = (matrix("laptop-xp"), matrix("laptop-xp,ramcache=256m"));
    assert!((60_000.0..100_000.0).contains(&without[0].1), "published 70,011: {without:?}");
    for ((kb, without), (_, with)) in without.into_iter().zip(with).skip(2) {
        assert!((20_000.0..40_000.0).contains(&without), "{kb} KB: {without}");
        if kb <= 256 << 10 {
            assert!((164_000.0..280_000.0).contains(&with), "{kb} KB: {with}");
        } else {
            assert!((30_000.0..60_000.0).contains(&with), "the cliff: {with}");
        }
    }
}

#[test]
fn sqlios_study_of_the_published_volume_has_the_published_gains() {
    let here = tempfile::tempdir().unwrap();
    let study = "sqlio --matrix --runtime 5s twin:server-raid10,start=31.5k twin:server-raid10,start=64k --json two.json";
    let done = halfpower(here.path(), study);
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    for column in ["A IOPS", "A MiB/s", "B MiB/s", "A p50", "B p50"] {
        assert!(
            text.lines().any(|line| line.starts_with("op ") && line.contains(column)),
            "{text}"
        );
    }
    let text = std::fs::read_to_string(here.path().join("two.json")).unwrap();
    let comparison: results::compare::Comparison = serde_json::from_str(&text).unwrap();
    let mean = |kind: &str| {
        let of = |one: &&results::compare::Summary| one.kind.as_deref() == Some(kind);
        comparison.summaries.iter().find(of).unwrap().mean_percent
    };
    for (kind, published) in [
        ("random reads", 22.7),
        ("random writes", 16.5),
        ("sequential reads", 5.8),
        ("sequential writes", 8.0),
    ] {
        let gain = mean(kind);
        assert!((gain - published).abs() < 5.0, "{kind}: {gain}, published {published}");
    }
    assert!(mean("random reads") > mean("sequential reads"), "random more than sequential");
    let validated = halfpower(here.path(), "twin validate --json");
    let validated: serde_json::Value = serde_json::from_slice(&validated.stdout).unwrap();
    let gains = validated["alignment"].as_array().unwrap();
    let reads = gains.iter().filter(|one| one["op"] == "read" && one["random"] == false);
    let reads: Vec<f64> = reads.map(|one| one["simulated"].as_f64().unwrap()).collect();
    let validated = reads.iter().sum::<f64>() / reads.len() as f64;
    let commanded = mean("sequential reads");
    assert!((commanded - validated).abs() < 1.0, "one study: {commanded} and {validated}");
}

/// Checks the published alignment: one file starts 31.5 KiB into a row of chunks, the other at a
/// row.
#[test]
fn sqlios_study_on_two_targets() {
    let here = tempfile::tempdir().unwrap();
    let machine = "twin:gateway-1997,disks=4,stripe=64k";
    let done = halfpower(
        here.path(),
        &format!(
            "sqlio --matrix --runtime 2s --max-threads 4 {machine},start=31.5k {machine} --json two.json"
        ),
    );
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    let head: Vec<&str> =
        text.lines().find(|line| line.starts_with("op ")).unwrap().split_whitespace().collect();
    assert_eq!(head[..7], ["op", "pattern", "threads", "A", "IOPS", "B", "IOPS"], "{text}");
    let text = std::fs::read_to_string(here.path().join("two.json")).unwrap();
    let comparison: results::compare::Comparison = serde_json::from_str(&text).unwrap();
    assert_eq!(comparison.of(results::compare::Measure::Iops).count(), 2 * 2 * 3);
    for kind in ["random reads", "random writes", "sequential reads", "sequential writes"] {
        let of_kind =
            comparison.summaries.iter().find(|one| one.kind.as_deref() == Some(kind)).unwrap();
        assert!(
            of_kind.mean_percent > 2.0,
            "{kind}: chunks in whole, {:.1} %",
            of_kind.mean_percent
        );
    }
    // The document can be shown in other formats.
    let done = halfpower(here.path(), "compare two.json --markdown --html page.html");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success() && text.contains("| read | random | 1 |"), "{text}");
    assert!(
        std::fs::read_to_string(here.path().join("page.html"))
            .unwrap()
            .contains("<svg class=\"changes\"")
    );
    assert_eq!(halfpower(here.path(), "compare two.json --worth 5%").status.code(), Some(2));
    // In two directories: the temporary files are removed, whatever the result.
    let places = ["a", "b"].map(|name| here.path().join(name));
    places.iter().for_each(|place| std::fs::create_dir(place).unwrap());
    let done = halfpower(
        here.path(),
        "sqlio --matrix -BY --runtime 10ms --size 4m --max-threads 1 --repeats 10 a b",
    );
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    assert!(text.contains("5 blocks of four runs in turn"), "{text}");
    assert!(places.iter().all(|place| entries(place).is_empty()));
}

#[test]
fn diskspd() {
    let here = tempfile::tempdir().unwrap();
    let done = halfpower(here.path(), "diskspd -c1M -d1 -W0 -b4K -r -w50 -o4 -L . --json one.json");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    assert!(
        text.contains("Results for timespan 1:") && text.contains("Total latency distribution:"),
        "{text}"
    );
    document(&here.path().join("one.json"), "diskspd", 1);
    assert_eq!(entries(here.path()), ["one.json"]);
    let done = halfpower(here.path(), "diskspd -c1M -d1 -W0 -Rxml .");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(
        done.status.success() && text.starts_with("<Results>") && text.ends_with("</Results>\n"),
        "{text}"
    );
    assert_eq!(entries(here.path()), ["one.json"]);
    for (line, begins) in [
        ("diskspd -Rp -c1M -F2 -O4 a b", "\nCommand Line: diskspd "),
        ("diskspd -Rpxml -c1M -F2 -O4 a b", "<Profile>"),
    ] {
        let done = halfpower(here.path(), line);
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(
            done.status.success() && text.starts_with(begins) && !text.contains("Results for"),
            "{text}"
        );
        assert_eq!(entries(here.path()), ["one.json"], "nothing is run or made");
    }
}

#[test]
fn usage_is_2_and_a_failed_run_is_1() {
    let here = tempfile::tempdir().unwrap();
    for line in [
        "iozone -i 99",
        "iozone -s 64 --json no/where.json",
        "iozone -f no/such/place",
        "sqlio -kX",
        "sqlio -frandom none.dat",
        "sqlio --matrix --json . --size 1m .",
        "sqlio --matrix -BY --size 8m . no/such/place",
        "diskspd -d1 none.dat",
        "diskspd -p none.dat",
    ] {
        let done = halfpower(here.path(), line);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{line}: {said}");
        assert!(said.starts_with("halfpower: ") && said.lines().count() == 1, "{line}: {said}");
        assert!(entries(here.path()).is_empty(), "{line}");
    }
    // The names of drives on Windows are not names of files.
    for line in ["diskspd -c64K -d1 #1", "diskspd -c64K d:", "sqlio -kW --size 1m #1"] {
        let done = halfpower(here.path(), line);
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(2) && said.contains("/dev/sdb"), "{line}: {said}");
        assert!(entries(here.path()).is_empty(), "{line}");
    }
    // Output to a closed pipe: the run fails and removes its files.
    for line in ["iozone -s 64 -i 0", "sqlio -kW --runtime 50ms -BY new.dat"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let done = Command::new(env!("CARGO_BIN_EXE_halfpower"))
            .env("HALFPOWER_HISTORY", "none")
            .args(line.split_whitespace())
            .current_dir(here.path())
            .stdout(full)
            .output()
            .unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{line}: {said}");
        assert!(entries(here.path()).is_empty(), "{line}");
    }
    for tool in ["iozone", "sqlio", "diskspd"] {
        let done = halfpower(here.path(), &format!("{tool} --help"));
        assert!(
            done.status.success()
                && String::from_utf8(done.stdout).unwrap().contains("--destroy-data")
        );
    }
}

#[test]
fn a_simulated_machine_only_serves_files() {
    let here = tempfile::tempdir().unwrap();
    let done = halfpower(
        here.path(),
        "iozone -f twin:gateway-1997 -s 1m -r 64k -i 0 -i 1 -I --repeats 1 --json one.json --html one.html",
    );
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(
        done.status.success() && text.contains("iozone test complete."),
        "{text}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let value = document(&here.path().join("one.json"), "iozone", 4);
    assert_eq!(
        (&value["target"]["kind"], &value["machine"]["simulated"]),
        (&"simulated".into(), &true.into())
    );
    assert_eq!(entries(here.path()), ["one.html", "one.json"]);
    for (tool, line) in [
        (
            "sqlio",
            "sqlio -kR -frandom -b8 -o1 --runtime 2 --size 64m twin:gateway-1997 --json one.json",
        ),
        ("diskspd", "diskspd -b64K -d2 -W0 -c64M -t1 -o1 -Sh twin:gateway-1997 --json one.json"),
    ] {
        let done = halfpower(here.path(), line);
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(document(&here.path().join("one.json"), tool, 1)["target"]["kind"], "simulated");
    }
    let done = halfpower(
        here.path(),
        "fio --name=a --filename=twin:gateway-1997 --size=16m --rw=read --bs=64k --direct=1 --numjobs=2 --output-format=json --json=one.json",
    );
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let value: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        (&value["jobs"][1]["read"]["total_ios"], value["disk_util"].as_array().map(Vec::len)),
        (&256.into(), Some(0))
    );
    // Virtual time makes runs reproducible.
    let again = halfpower(
        here.path(),
        "fio --name=a --filename=twin:gateway-1997 --size=16m --rw=read --bs=64k --direct=1 --numjobs=2 --output-format=json",
    );
    let again: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["jobs"][0]["read"]["bw_bytes"], value["jobs"][0]["read"]["bw_bytes"]);
    // Jobs with different engines, buffering and files run together.
    let done = halfpower(
        here.path(),
        "fio --size=4m --name=log --filename=twin:gateway-1997#log --rw=write --bs=64k --ioengine=psync \
         --name=db --filename=twin:gateway-1997#db --rw=randread --bs=8k --ioengine=libaio --iodepth=8 --direct=1 \
         --output-format=json",
    );
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let both: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let requests = |job: usize, op: &str| both["jobs"][job][op]["total_ios"].as_u64();
    assert_eq!((requests(0, "write"), requests(1, "read")), (Some(64), Some(512)));
    for line in [
        "iozone -f twin:gateway-1997 -t 2 -s 1m -i 0 -i 1",
        "sqlio -kR -frandom --runtime 1 --size 8m twin:gateway-1997#a twin:gateway-1997#b",
    ] {
        let done = halfpower(here.path(), line);
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }
    for (line, why) in [
        ("iozone -f twin:gateway-1997 -s 1m -V 7 -i 0 -i 1", "no data that could be verified"),
        ("iozone -f twin:nowhere -s 1m", "nowhere"),
        (
            "sqlio -kR -frandom --runtime 1 --size 8m twin:gateway-1997 other.dat",
            "must be the only target",
        ),
        ("sqlio -kR -frandom -a1 --runtime 1 --size 8m twin:gateway-1997", "bound to processors"),
        (
            "fio --name=a --filename=twin:gateway-1997 --size=1m --rw=write --verify=crc32c",
            "holds no data",
        ),
        ("metadata twin:gateway-1997 --threads 2", "--threads 1"),
        ("metadata twin:gateway-1997 --sync file", "--sync none"),
    ] {
        let done = halfpower(here.path(), line);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(why), "{line}: {said}");
    }
    for (commands, why) in [
        ("set location twin:nowhere", "gateway-1997"),
        ("set location twin:gateway-1997#a", "leave out what follows"),
        ("set location twin:gateway-1997\nset location +.", "the only location"),
        ("set location twin:gateway-1997\nset threads 2", "set threads 1"),
        ("set location twin:gateway-1997\nset sync file", "set sync none"),
        (
            "set location twin:gateway-1997\nset number 5\nset transactions 5\nrun\nset location .",
            "another machine",
        ),
    ] {
        let session = here.path().join("session.pmrc");
        std::fs::write(&session, format!("{commands}\nrun\n")).unwrap();
        let done = halfpower(here.path(), "postmark session.pmrc");
        let said = String::from_utf8_lossy(&done.stdout).into_owned()
            + &String::from_utf8_lossy(&done.stderr);
        assert!(said.contains(why) && done.status.code() == Some(2), "{commands}: {said}");
    }
}

#[test]
fn every_dialects_document_obeys_the_schema_and_makes_a_report() {
    let schema: serde_json::Value = serde_json::from_str(
        &std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../schema/results-1.json"
        ))
        .unwrap(),
    )
    .unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for (name, line, shows) in [
        (
            "iozone",
            "iozone -a -n 64k -g 128k -q 16k -i 0 -i 1 --repeats 2 --json iozone.json",
            "4 KiB",
        ),
        (
            "sqlio",
            "sqlio -kR -frandom -t2 -b8 -BY --runtime 50ms --size 4m . --json sqlio.json",
            "8 KiB",
        ),
        ("diskspd", "diskspd -c1M -d1 -W0 -b4K -r -o2 . --json diskspd.json", "4 KiB"),
        (
            "fio",
            "fio --name=a --size=1m --rw=randrw --bssplit=4k/50:64k/50 --verify=crc32c --bs=4k --json=fio.json",
            "4 KiB",
        ),
        (
            "sizes",
            "fio --name=a --size=1m --rw=randread --bssplit=4k/50:64k/50 --json=sizes.json",
            "64 KiB",
        ),
        ("postmark", "postmark session.pmrc --json postmark.json", "create"),
        ("metadata", "metadata . --files 50 --json", "create"),
    ] {
        let here = tempfile::tempdir().unwrap();
        std::fs::write(
            here.path().join("session.pmrc"),
            "set number 20\nset transactions 20\nrun\n",
        )
        .unwrap();
        let done = halfpower(here.path(), line);
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        let file = here.path().join(format!("{name}.json"));
        if name == "metadata" {
            std::fs::write(&file, &done.stdout).unwrap();
        }
        let value: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let wrong: Vec<String> = schema
            .iter_errors(&value)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        let made = halfpower(here.path(), &format!("report {name}.json --output out"));
        let shown = String::from_utf8_lossy(&made.stdout).into_owned();
        assert!(made.status.success(), "{name}: {}", String::from_utf8_lossy(&made.stderr));
        assert!(shown.contains(shows), "{name}: {shown}");
        let page = std::fs::read_to_string(here.path().join("out/report.html")).unwrap();
        assert!(page.contains("</html>") && page.contains(shows), "{name}");
        assert_eq!(here.path().join("out/surfaces.html").exists(), name == "iozone");
    }
}
