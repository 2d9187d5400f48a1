//! Every command stores its result in the history, which never fails a measurement.

mod common;

use common::places::Mount;
use common::{Ended, HALFPOWER, command, ended, finish, wait_until};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

struct History {
    directory: tempfile::TempDir,
}

impl History {
    fn new() -> History {
        History { directory: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("history.sqlite")
    }

    fn prepared(&self, words: &str) -> std::process::Command {
        let mut command = command(HALFPOWER, words.split_whitespace());
        command.env("HALFPOWER_HISTORY", self.file());
        command
    }

    fn run(&self, words: &str) -> Ended {
        finish(self.prepared(words))
    }

    fn good(&self, words: &str) -> String {
        let ended = self.run(words);
        assert_eq!(ended.code, Some(0), "{words}: {ended:?}");
        ended.stdout
    }

    fn entries(&self) -> Vec<Value> {
        serde_json::from_str(&self.good("history --json")).unwrap()
    }
}

const RUN: &str = "run twin:nvme --pattern random --request 4k";

#[test]
fn sustained_writes_and_pts_are_shown_compared_and_drawn() {
    let history = History::new();
    let at = history.directory.path().display();
    for drive in ["nvme-qlc", "nvme"] {
        let name = format!("twin:{drive}");
        history.good(&format!(
            "study --sustained {name} --for 2h --max-written 1TiB --output {at}/{drive}"
        ));
        history.good(&format!("pts iops {name} --scale 20000 --output {at}/{drive}"));
    }
    let kinds: Vec<Value> = history.entries().iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds, ["pts", "sustained", "pts", "sustained"]);
    // Ids count from 1: sustained and pts of each drive.
    assert!(history.good("history show 1").contains("write cache of 130 GiB"));
    let page = format!("{at}/entry.html");
    history.good(&format!("history show 2 --html {page}"));
    assert!(fs::read_to_string(&page).unwrap().contains("Test conditions"));
    // A file, its directory and an entry are the same side.
    let between = |a: &str, b: &str| -> Value {
        serde_json::from_str(&history.good(&format!("compare {a} {b} --json"))).unwrap()
    };
    let of_entries = between("1", "3");
    let files = between(&format!("{at}/nvme-qlc"), &format!("{at}/nvme/sustained.json"));
    for (key, names) in [("a", "twin:nvme-qlc"), ("b", "twin:nvme")] {
        assert!(files[key].as_str().unwrap().contains(names), "{}", files[key]);
    }
    assert_eq!(of_entries["differences"], files["differences"]);
    let at_the_end = files["differences"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| {
            one["measure"] == "throughput" && one["label"].as_str().unwrap().ends_with("at the end")
        })
        .unwrap();
    assert!(at_the_end["change_percent"].as_f64().unwrap() > 100.0, "{at_the_end}");
    let iops = between("2", "4");
    let differences = iops["differences"].as_array().unwrap();
    let cells = differences.iter().filter(|one| one["measure"] == "iops").count();
    assert_eq!(cells, 56, "7 mixes of 8 sizes");
    assert_eq!(differences[0]["runs_a"].as_array().unwrap().len(), 5, "rounds of the window");
    // report makes the page again.
    let told = history.good(&format!("report {at}/nvme-qlc/pts-iops.json --output {at}/again"));
    assert!(told.contains("Report: "), "{told}");
    assert!(fs::read_to_string(format!("{at}/again/report.html")).unwrap().contains("<svg"));
    assert!(history.good(&format!("report {at}/nvme-qlc")).contains("write cache of 130 GiB"));
    let refused = history.run(&format!("report {at}/nvme-qlc/sustained.json --check"));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    fs::write(format!("{at}/damaged.json"), r#"{"schema": "halfpower.pts/1", "steps": 7}"#)
        .unwrap();
    let refused = history.run(&format!("report {at}/damaged.json"));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("damaged.json: this document cannot be read"), "{refused:?}");
    let trend = history.good("history trend twin:nvme-qlc --measure throughput");
    assert!(trend.contains("at the end"), "{trend}");
}

#[test]
fn every_command_stores_its_result_unless_disabled() {
    let history = History::new();
    let place = history.directory.path().join("files");
    fs::create_dir(&place).unwrap();
    let at = place.display();
    history.good(RUN);
    history.good("sweep twin:nvme --request 4k,64k");
    history.good(&format!("metadata {at} --files 20 --rounds 2"));
    history.good(&format!("iozone -s 64k -r 4k -i 0 -f {at}/io.tmp"));
    history.good(&format!("fio --name=j --directory={at} --size=64k --rw=write --bs=4k"));
    history.good("compare --a twin:nvme --b twin:virtio");
    history
        .good("tune twin:gateway-1997 --op write --request 8k --bytes 512k --yes --knob depth=8");
    history.good(&format!("{RUN} --no-history"));
    history.good(&format!("iozone -s 64k -r 4k -i 0 -f {at}/io.tmp --no-history"));
    let elsewhere = history.directory.path().join("other.sqlite");
    history.good(&format!("{RUN} --history {}", elsewhere.display()));
    assert!(elsewhere.exists());
    let kinds: Vec<String> = history
        .entries()
        .iter()
        .rev()
        .map(|one| one["kind"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(kinds, ["run", "sweep", "metadata", "sweep", "run", "compare", "tune"]);
    assert!(history.good("compare 6 --markdown").contains("slower than twin:nvme"));
    // Entries without points are shown by their own reports and cannot be compared.
    for (id, words) in
        [(6, "slower than twin:nvme"), (7, "Worth keeping: depth of the workload: 8")]
    {
        assert!(history.good(&format!("history show {id}")).contains(words), "entry {id}");
        history.run(&format!("compare 1 {id}")).refused(&["holds no points"]);
    }
}

#[test]
fn an_entry_is_shown_exported_compared_and_removed() {
    let history = History::new();
    let document: Value = serde_json::from_str(&history.good(&format!("{RUN} --json"))).unwrap();
    history.good(&format!("{RUN} --depth 8"));
    let ids: Vec<i64> =
        history.entries().iter().rev().map(|one| one["id"].as_i64().unwrap()).collect();
    let [first, second] = ids[..] else { panic!("two entries: {ids:?}") };
    let kept: Value =
        serde_json::from_str(&history.good(&format!("history show {first} --json"))).unwrap();
    assert_eq!(kept, document);
    assert!(history.good(&format!("history show {first}")).contains("MiB/s"));
    assert!(history.good("history").contains("twin:nvme"));
    let lines = history.good("history export");
    assert_eq!(
        lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["entry"]["id"].as_i64())
            .collect::<Vec<_>>(),
        [Some(first), Some(second)]
    );
    let table = history.good("history export --format csv");
    assert!(
        table.starts_with("entry,began_unix_s,kind,target,machine,op,")
            && table.lines().count() == 3,
        "{table}"
    );
    history.run("history export --format parquet").refused(&["--output"]);
    let file = history.directory.path().join("all.parquet");
    let parquet =
        history.run(&format!("history export --format parquet --output {}", file.display()));
    if cfg!(feature = "parquet") {
        assert_eq!(parquet.code, Some(0), "{parquet:?}");
        let bytes = fs::read(&file).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{} bytes", bytes.len());
    } else {
        parquet.refused(&["--features parquet"]);
        assert!(!file.exists());
    }
    let text = history.directory.path().join("all.csv");
    history.good(&format!("history export --format csv --output {}", text.display()));
    assert_eq!(fs::read_to_string(text).unwrap(), table);
    let same = history.good(&format!("compare {first} {first}"));
    assert!(same.contains("No difference between"), "{same}");
    let different = history.run(&format!("compare {first} {second}"));
    assert!(
        different.stdout.contains("no question in common"),
        "another depth is another question: {different:?}"
    );
    assert!(history.good(&format!("history prune {first}")).contains("1 entry removed"));
    history.run(&format!("history show {first}")).refused(&["no entry"]);
    history.run("history prune").refused(&["--keep"]);
    history.good("history prune --keep 0");
    assert_eq!(history.entries().len(), 0);
}

#[test]
fn a_trend_has_a_line_and_a_page() {
    let history = History::new();
    for _ in 0..3 {
        history.good(RUN);
    }
    let page = history.directory.path().join("trend.html");
    let text = history.good(&format!("history trend twin:nvme --html {}", page.display()));
    assert!(text.contains("███") && text.contains("3 readings"), "{text}");
    assert!(fs::read_to_string(page).unwrap().contains("<svg class=\"trend\""));
    history.run("history trend /nowhere").refused(&["/nowhere", "halfpower history"]);
}

#[test]
fn a_check_detects_a_slower_target() {
    let history = History::new();
    history.run("check twin:nvme").refused(&["no history"]);
    history.good("sweep twin:nvme --op read,write --pattern seq,random --request 4k,64k");
    let same = history.run("check twin:nvme");
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(same.stdout.contains("No difference between now and entry 1"), "{}", same.stdout);
    let checked = history.run("check twin:nvme --json").good_json();
    let rates = checked["differences"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["measure"] == "throughput");
    assert_eq!(rates.count(), 4, "one of each kind");
    // A slower machine than the baseline's.
    let slower = history.run("check twin:virtio --baseline 1 --size 1g");
    assert_eq!(slower.code, Some(3), "{slower:?}");
    assert!(slower.stderr.contains("slower:10%"), "{}", slower.stderr);
    assert_eq!(history.entries()[0]["kind"], "check");
    history.run("check twin:virtio").refused(&["twin:virtio", "no study or sweep"]);
    // The machine is listed with what else changed.
    assert!(slower.stdout.contains("Also changed since entry 1"), "{}", slower.stdout);
    // And the size that was given.
    assert!(slower.stdout.contains(", this check 1.00 GiB: to a cache"), "{}", slower.stdout);
    assert!(!same.stdout.contains("this check"), "{}", same.stdout);
}

#[test]
fn a_run_never_becomes_the_baseline_and_a_set_one_stays() {
    let history = History::new();
    let sweep = "sweep twin:nvme --pattern random --request 4k,64k --bytes 4m";
    history.good(sweep);
    history.good("run twin:nvme --request 64k --bytes 4m");
    let against = |line: &str| {
        let said = history.good(line);
        (1..9).find(|id| said.contains(&format!("entry {id}"))).expect("an entry")
    };
    assert_eq!(against("check twin:nvme"), 1, "not the run, entry 2");
    history.good(sweep);
    assert_eq!(against("check twin:nvme"), 4, "the newest sweep");
    let set = history.good("check twin:nvme --set-baseline=1");
    assert!(set.contains("entry 1 from now on"), "{set}");
    assert_eq!(history.entries().len(), 5, "a baseline is set without measuring");
    assert_eq!(against("check twin:nvme"), 1);
    assert_eq!(against("check twin:nvme --baseline 2"), 2, "this time only");
    assert_eq!(against("check twin:nvme"), 1);
    history.run("check twin:nvme --set-baseline=99").refused(&["99"]);
    history.good("history prune 1");
    assert_eq!(against("check twin:nvme"), 4, "a removed baseline counts no longer");
    history.good("check twin:nvme --set-baseline");
    history.good(sweep);
    assert_eq!(against("check twin:nvme"), 4);
}

#[test]
fn several_targets_are_checked_one_by_one_in_a_line_each() {
    let history = History::new();
    for target in ["twin:nvme", "twin:virtio"] {
        history.good(&format!("sweep {target} --request 64k --bytes 4m"));
    }
    let said = history.good("check --each --quiet twin:nvme twin:virtio");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].starts_with("twin:nvme: ok: No difference"), "{said}");
    assert!(lines[1].starts_with("twin:virtio: ok: No difference"), "{said}");
    history.run("check --each twin:nvme twin:nas").refused(&["twin:nas"]);
}

#[test]
fn a_check_of_this_machine_measures_reads_and_its_own_test_file() {
    let _one = common::alone();
    let history = History::new();
    let place = history.directory.path().join("files");
    fs::create_dir(&place).unwrap();
    let at = place.display();
    history.good(&format!(
        "sweep {at} --op read,write --size 4m --request 4k --runtime 100ms --repeats 2 --max-repeats 2"
    ));
    // An unreachable limit, because this machine may be busy.
    let checked = history.run(&format!("check {at} --slower 1000% --budget 5s"));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(
        checked.stdout.contains("read") && checked.stdout.contains("write"),
        "{}",
        checked.stdout
    );
    assert!(common::test_files(&place).is_empty());
}

#[test]
fn an_unwritable_history_does_not_fail_a_measurement() {
    let directory = tempfile::tempdir().unwrap();
    let foreign = directory.path().join("notes.txt");
    fs::write(&foreign, "these are notes, longer than the header of a database, and a user wrote them: they stay as they are, all of them").unwrap();
    let before = fs::read(&foreign).unwrap();
    for place in
        [Path::new("/proc/no/such/place/history.sqlite"), &foreign, Path::new("/dev/full/x")]
    {
        let mut run = command(HALFPOWER, RUN.split(' '));
        run.env("HALFPOWER_HISTORY", place);
        let run = finish(run);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(
            run.stdout.contains("MiB/s") && run.stderr.contains("not in the history"),
            "{run:?}"
        );
    }
    assert_eq!(fs::read(&foreign).unwrap(), before);
}

#[test]
fn a_full_disk_does_not_fail_a_measurement() {
    for size in ["4k", "12k", "40k", "72k"] {
        let small = or_skip!(Mount::tmpfs(size));
        let file = small.at.join("history.sqlite");
        let mut kept = 0;
        // Fill the disk with entries.
        for _ in 0..4 {
            let mut run = command(HALFPOWER, RUN.split(' '));
            let run = finish({
                run.env("HALFPOWER_HISTORY", &file);
                run
            });
            assert_eq!(run.code, Some(0), "{size}: {run:?}");
            assert!(run.stdout.contains("MiB/s"), "{size}: {run:?}");
            kept += usize::from(!run.stderr.contains("not in the history"));
        }
        assert!(kept < 4, "{size}: it was never full");
    }
}

#[test]
fn killed_writers_leave_a_history_that_opens() {
    let history = History::new();
    history.good(RUN);
    let mut finished = 1;
    for round in 0..50 {
        let mut two = [history.prepared(RUN), history.prepared(RUN)]
            .map(|mut command| command.spawn().unwrap());
        let wal = history.directory.path().join("history.sqlite-wal");
        // Kill at different times, sometimes in the middle of a write.
        if round % 2 == 0 {
            wait_until("a writer", || wal.exists() || two[0].try_wait().unwrap().is_some());
        } else {
            std::thread::sleep(std::time::Duration::from_millis(round % 10 * 3));
        }
        two[0].kill().unwrap();
        let [killed, other] = two;
        finished += usize::from(ended(killed).code == Some(0));
        let other = ended(other);
        assert_eq!(other.code, Some(0), "{other:?}");
        assert!(!other.stderr.contains("not in the history"), "{other:?}");
        finished += 1;
    }
    let entries = history.good("history --json --max 1000");
    let kept = serde_json::from_str::<Vec<Value>>(&entries).unwrap().len();
    assert!(kept >= finished, "{kept} of {finished} finished runs are kept");
}

#[test]
fn without_a_home_results_go_to_the_state_directory() {
    let place = tempfile::tempdir().unwrap();
    let state = place.path().join("state");
    let in_state = |home: Option<&str>, words: &str| {
        let mut command = command(HALFPOWER, words.split_whitespace());
        command.current_dir(place.path()).env("HALFPOWER_STATE", &state);
        for name in ["HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "HALFPOWER_HISTORY"] {
            command.env_remove(name);
        }
        command.envs(home.map(|home| ("HOME", home)));
        finish(command)
    };
    for (number, home) in [None, Some(""), Some("relative")].into_iter().enumerate() {
        let run = in_state(home, RUN);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{home:?}");
        let listed = in_state(home, "history --json");
        let entries: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
        assert_eq!(entries.len(), number + 1, "{home:?}");
    }
    assert!(state.join("history.sqlite").is_file());
    assert!(!place.path().join("relative").exists());
    let unwritable = in_state(Some("/proc/none"), RUN);
    assert_eq!(unwritable.code, Some(0));
    assert!(unwritable.stderr.contains("not in the history"), "{}", unwritable.stderr);
}

/// Root always has a state directory; another user needs a home for it.
#[test]
fn a_user_without_a_home_is_warned_that_nothing_is_kept() {
    if !host::knobs::may_set() {
        return common::skip("only root can become another user");
    }
    // Another user may not read the build's directory.
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("halfpower");
    fs::copy(HALFPOWER, &program).unwrap();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path(), open).unwrap();
    for (words, code) in [(RUN, 0), ("history", 2)] {
        let mut command = command(program.to_str().unwrap(), words.split_whitespace());
        for name in
            ["HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "HALFPOWER_HISTORY", "HALFPOWER_STATE"]
        {
            command.env_remove(name);
        }
        command.uid(65534).gid(65534);
        let ended = finish(command);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.contains("HOME is not set"), "{}", ended.stderr);
        assert!(ended.stderr.contains("--history"), "{}", ended.stderr);
    }
}

#[test]
fn a_check_of_a_preset_compares_with_its_first_run() {
    let history = History::new();
    history.run("check twin:nvme --workload log").refused(&["no history"]);
    history.good(RUN);
    history.run("check twin:nvme --workload log").refused(&["--workload log", "holds no run"]);
    history.good("run twin:nvme --workload log --runtime 50ms");
    history.good("run twin:nvme --workload log --runtime 50ms");
    let checked = history.good("check twin:nvme --workload log");
    assert!(checked.contains("entry 2"), "{checked}");
    let other = history.good("check twin:nvme --workload log --baseline 3");
    assert!(other.contains("entry 3"), "{other}");
    history
        .run("check twin:nvme --workload log --baseline 1")
        .refused(&["entry 1", "holds no run"]);
    history.good("run twin:nvme --workload etcd --runtime 50ms");
    let bar = history.good("check twin:nvme --workload etcd");
    assert!(bar.contains("the bar is met"), "{bar}");
}

#[test]
fn the_list_shows_the_best_rate_and_what_the_user_wrote() {
    let history = History::new();
    history.good("sweep twin:nvme --pattern random --request 4k --depth 1,32");
    history.good(RUN);
    let document: Value = serde_json::from_str(&history.good("history show 1 --json")).unwrap();
    let points = document["points"].as_array().unwrap();
    let rate = |point: &Value| point["throughput_bytes_per_s"].as_f64().unwrap();
    let best = points.iter().max_by(|a, b| rate(a).total_cmp(&rate(b))).unwrap();
    let entry = &history.entries()[1];
    assert_eq!(entry["best_bytes_per_s"].as_f64().unwrap(), rate(best));
    assert_eq!(entry["best_p99_ns"].as_f64(), best["latency_ns"]["p99"].as_f64());
    assert_eq!((&entry["note"], &entry["tags"]), (&Value::Null, &Value::Array(Vec::new())));

    history.good("history note 1 before the new firmware");
    history.good("history tag 1 nightly rack-7");
    history.good("history tag 1 nightly");
    let listed = history.good("history");
    assert!(listed.contains("[nightly] [rack-7]"), "{listed}");
    let tagged: Vec<Value> =
        serde_json::from_str(&history.good("history --tag nightly --json")).unwrap();
    assert_eq!(tagged.len(), 1);
    assert_eq!(tagged[0]["note"], "before the new firmware");
    assert_eq!(tagged[0]["tags"], serde_json::json!(["nightly", "rack-7"]));

    history.good("history tag 1 nightly --remove");
    history.good("history note 1");
    let entry = &history.entries()[1];
    assert_eq!((&entry["note"], &entry["tags"]), (&Value::Null, &serde_json::json!(["rack-7"])));
    history.run("history note 9 x").refused(&["no entry 9"]);
    history.run("history tag 9 x").refused(&["no entry 9"]);
    let mut sentence = history.prepared("history tag 1");
    sentence.arg("two words");
    finish(sentence).refused(&["'two words'", "one word"]);
    // Notes and tags go with their entry.
    history.good("history prune 1");
    assert_eq!(history.entries().len(), 1);
}

#[test]
fn an_entry_becomes_a_page() {
    let history = History::new();
    history.good(RUN);
    let page = history.directory.path().join("page.html");
    history.good(&format!("history show 1 --html {}", page.display()));
    let text = fs::read_to_string(&page).unwrap();
    assert!(
        text.starts_with("<!doctype html>") || text.starts_with("<!DOCTYPE html>"),
        "{text:.99}"
    );
    assert!(text.contains("twin:nvme"), "{text:.99}");
    fs::write(&page, "mine").unwrap();
    history.run(&format!("history show 1 --html {}", page.display())).refused(&["--html"]);
    history.run("history show 9 --html other.html").refused(&["no entry 9"]);
}

#[test]
fn several_entries_are_compared_with_what_changed_between_them() {
    let history = History::new();
    let machine = history.directory.path().join("disk.toml");
    let target = format!("twin:{}", machine.display());
    for (system, link) in [("Linux 6.1", 7.0e9), ("Linux 6.1", 7.0e9), ("Linux 6.9", 3.0e9)] {
        let text = format!(
            "name = \"disk\"\nbase = \"nvme\"\nsystem = \"{system}\"\n[drives.ssd]\nlink_bytes_per_s = {link:e}\n"
        );
        fs::write(&machine, text).unwrap();
        history.good(&format!("sweep {target} --op read --request 4k,1m --depth 32"));
    }
    history.good("run twin:virtio --request 16k");
    let page = history.directory.path().join("entries.html");
    history.good(&format!("history show 3 1 2 --html {}", page.display()));
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg class=\"trend\"").count(), 4, "two questions, two measures");
    assert_eq!(page.matches("<circle").count(), 12, "three entries each");
    let changed = "Changed before entry 3";
    assert!(page.contains(changed) && page.contains("Linux 6.1 -&gt; Linux 6.9"), "{page}");
    assert!(!page.contains("Changed before entry 2"));
    // The first two have a level; the third is of another machine.
    let levels = page.split("class=\"levels\" d=\"").skip(1);
    let levels: Vec<&str> = levels.filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(levels.len(), 4);
    for level in levels {
        assert_eq!(level.matches('M').count(), 2, "{level}");
    }
    assert!(page.contains("MiB&#x2f;s") && page.contains("p99"), "{page}");
    let text = history.good("history show 1 3");
    assert!(text.contains(changed) && text.contains("(-57.2 %, beyond both intervals)"), "{text}");
    let same = history.good("history show 1 2");
    assert!(same.contains("Nothing else changed") && same.contains("(+0.0 %, within"), "{same}");
    let two = history.good("history show 1 2 --json");
    assert_eq!(two.matches("\"schema\": \"halfpower.results/1\"").count(), 2);
    history.run("history show 1 4").refused(&["entries 1, 4", "no workload"]);
    history.run("history show 1 99").refused(&["99"]);
}

#[test]
fn a_month_of_checks_finds_every_regression_of_five_percent() {
    const NIGHTS: usize = 30;
    const UPDATED: usize = 10;
    let is_slow = |night: usize| [5..8, 15..18, 24..27].iter().any(|one| one.contains(&night));
    let history = History::new();
    let machine = history.directory.path().join("disk.toml");
    let target = format!("twin:{}", machine.display());
    let set = |night: usize, share: f64| {
        let drift = 1.0 + 0.01 * (night as f64 / NIGHTS as f64 * std::f64::consts::TAU).sin();
        let system = if night < UPDATED { "Linux 6.1" } else { "Linux 6.9" };
        let link = 3.0e9 * drift * share;
        let text = format!(
            "name = \"disk\"\nbase = \"nvme\"\nsystem = \"{system}\"\n[drives.ssd]\nlink_bytes_per_s = {link:e}\n"
        );
        fs::write(&machine, text).unwrap();
    };
    set(0, 1.0);
    history.good(&format!("sweep {target} --pattern seq,random --request 4k,1m --depth 32"));
    let mut alarms = Vec::new();
    for night in 0..NIGHTS {
        // Whoever measures by day changes no baseline.
        set(night, 0.5);
        history.good(&format!("run {target} --request 1m --depth 32 --bytes 64m"));
        set(night, if is_slow(night) { 0.95 } else { 1.0 });
        let checked = history.run(&format!("check {target} --slower 3%"));
        assert!(matches!(checked.code, Some(0 | 3)), "night {night}: {checked:?}");
        if checked.code == Some(3) {
            alarms.push(night);
        }
        let updated = checked.stdout.contains("Linux 6.1 -> Linux 6.9");
        assert_eq!(updated, night >= UPDATED, "night {night}: {}", checked.stdout);
    }
    assert_eq!(alarms, (0..NIGHTS).filter(|night| is_slow(*night)).collect::<Vec<_>>());
}

#[test]
fn the_list_shows_the_peak_of_a_study_and_not_its_page_cache() {
    let history = History::new();
    history.good("study twin:gateway-1997 --quick --only memory,buffered,unbuffered,depth");
    let document: Value = serde_json::from_str(&history.good("history show 1 --json")).unwrap();
    let rates = |of: &Value| -> Vec<f64> {
        let all = of.as_array().unwrap().iter();
        all.filter_map(|one| one["throughput_bytes_per_s"].as_f64()).collect()
    };
    let peak = rates(&document["answer"]["peaks"]).into_iter().fold(0.0, f64::max);
    let cached = rates(&document["points"]).into_iter().fold(0.0, f64::max);
    assert!(cached > peak * 5.0, "{cached} {peak}");
    assert_eq!(history.entries()[0]["best_bytes_per_s"].as_f64().unwrap(), peak);

    // Its points that it measured again are in no other entry.
    history.good("run twin:gateway-1997 --request 64k");
    history.good("run twin:gateway-1997 --request 64k --depth 3");
    let both = history.good("history show 1 2");
    assert_eq!(both.matches("at first").count(), both.matches("p99").count() * 2, "{both}");
    history.run("history show 1 3").refused(&["entries 1, 3", "no workload"]);
}
