//! `halfpower replay`: the requests of a trace, asked again.

mod common;

use common::places::{Loop, Throttle};
use common::{HALFPOWER, alone, command, finish, halfpower, halfpower_in, number, test_files};
use std::fmt::Write;
use std::fs;

/// Returns a trace of one thread that reads 4 KiB 100 times, 4 ms each, with pauses of 6 ms.
fn strace() -> String {
    let mut text = String::from(
        "7 1700000000.000000 openat(AT_FDCWD, \"/var/data\", O_RDONLY|O_DIRECT) = 3 <0.000010>\n",
    );
    for read in 0..100 {
        let (at, offset) = (1000 + read * 10_000, read % 64 * 8192);
        writeln!(
            text,
            "7 1700000000.{at:06} pread64(3, \"\"..., 4096, {offset}) = 4096 <0.004000>"
        )
        .unwrap();
    }
    text
}

#[test]
fn a_replay_on_a_simulated_machine_conforms_to_its_schema() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("app"), strace()).unwrap();
    let ended = halfpower_in(directory.path(), "replay app twin:cloud --repeats 2 --json");
    let document = ended.good_json();
    let schema = serde_json::from_str(&application::replay::schema()).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&document), "{document}");
    assert_eq!(number(&document, "/requests"), 100.0);
    assert_eq!(document["format"], "strace");
    // 99 pauses of 6 ms, and 100 reads of some 610 us.
    let elapsed = number(&document, "/elapsed_s/mean");
    assert!((0.64..0.67).contains(&elapsed), "{elapsed}");
    let fast = halfpower_in(directory.path(), "replay app twin:cloud --as-fast-as-possible --json");
    let fast = number(&fast.good_json(), "/elapsed_s/mean");
    assert!((0.05..0.08).contains(&fast), "{fast}");
    let double = halfpower_in(directory.path(), "replay app twin:cloud --scale 2x --json");
    let double = number(&double.good_json(), "/elapsed_s/mean");
    assert!((double - fast - 0.297).abs() < 0.005, "{double}");
}

#[test]
fn a_replay_leaves_nothing_and_touches_no_original() {
    let _one = alone();
    let directory = tempfile::tempdir().unwrap();
    let original = directory.path().join("data");
    fs::write(&original, "original").unwrap();
    let text = format!(
        "1 1.000000 openat(AT_FDCWD, \"{0}\", O_RDWR) = 3 <0.000010>\n\
         1 1.001000 pwrite64(3, \"\"..., 8192, 0) = 8192 <0.000100>\n\
         1 1.002000 fdatasync(3) = 0 <0.000100>\n\
         1 1.003000 pread64(3, \"\"..., 8192, 0) = 8192 <0.000100>\n",
        original.display()
    );
    fs::write(directory.path().join("app"), text).unwrap();
    let ended = halfpower_in(directory.path(), "replay app . --repeats 1");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for word in ["other-write", "other-sync", "other-read", "times the recorded"] {
        assert!(ended.stdout.contains(word), "{word}: {}", ended.stdout);
    }
    assert_eq!(fs::read_to_string(&original).unwrap(), "original");
    assert!(test_files(directory.path()).is_empty());
    // A file that was there is only overwritten if it is named again.
    halfpower_in(directory.path(), "replay app data --repeats 1").refused(&["data"]);
    assert_eq!(fs::read_to_string(&original).unwrap(), "original");
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let write = |text: &str| fs::write(directory.path().join("app"), text).unwrap();
    write("nothing known");
    halfpower_in(directory.path(), "replay app").refused(&["app", "no known trace format"]);
    write("1,r,0,4096\n2,x,0,4096\n");
    halfpower_in(directory.path(), "replay app").refused(&["app", "line 2", "'x'"]);
    write("1 1.0 close(3) = 0 <0.1>\n");
    halfpower_in(directory.path(), "replay app").refused(&["app", "no request"]);
    halfpower("replay /nonexistent/trace").refused(&["/nonexistent/trace"]);
    write(&strace());
    halfpower_in(directory.path(), "replay app --scale 0").refused(&["'0' is not a factor"]);
    let planned = halfpower_in(directory.path(), "replay app --dry-run");
    assert!(planned.stdout.contains("100 requests of 1 thread on 1 file"), "{planned:?}");
}

/// Throttles to 100 requests per second: 300 reads in a row take 3 s.
#[test]
fn a_replay_on_a_throttled_device_takes_the_known_time() {
    let _one = alone();
    let device = or_skip!(Loop::make(64 << 20));
    let _throttle = or_skip!(Throttle::set(&device, &[("read_iops", 100)]));
    let directory = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for read in 0..300 {
        let (at, offset) = (read * 10_000_000_u64, read % 500 * 65536);
        writeln!(text, "{at},r,{offset},4096").unwrap();
    }
    fs::write(directory.path().join("app"), text).unwrap();
    let name = &device.device;
    let line = format!("replay app {name} --destroy-data {name} --as-fast-as-possible --json");
    let document = halfpower_in(directory.path(), &line).good_json();
    let elapsed = number(&document, "/elapsed_s/mean");
    assert!((elapsed / 3.0 - 1.0).abs() < 0.05, "{elapsed} s instead of 3 s");
    // At the recorded times too.
    let line = format!("replay app {name} --destroy-data {name} --repeats 1 --json");
    let document = halfpower_in(directory.path(), &line).good_json();
    let elapsed = number(&document, "/elapsed_s/mean");
    assert!((elapsed / 3.0 - 1.0).abs() < 0.05, "{elapsed} s instead of 3 s");
}

#[test]
fn two_arms_are_compared_by_replays() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    fs::write(here.join("app"), strace()).unwrap();
    let compare = |b: &str, more: &[&str]| {
        let words = ["compare", "--replay", "app", "--a", "twin:cloud", "--b", b];
        let mut compare = command(HALFPOWER, words.iter().chain(more));
        compare.current_dir(here);
        finish(compare)
    };
    let faster = compare("twin:cloud --as-fast-as-possible", &["--json"]).good_json();
    let of = |measure: &str, label: &str| {
        let all = faster["differences"].as_array().unwrap();
        let is_it = |one: &&serde_json::Value| one["measure"] == measure && one["label"] == label;
        all.iter().find(is_it).unwrap_or_else(|| panic!("no {measure} of {label}: {faster:#}"))
    };
    // 0.66 s with the pauses, 0.06 s without.
    let time = of("duration", "app");
    assert!((-93.0..-88.0).contains(&number(time, "/change_percent")), "{time:#}");
    assert_eq!(time["verdict"], "better");
    assert!(number(of("latency_p99", "data-read"), "/change_percent").abs() < 20.0);
    let slower = ["--a", "twin:cloud --as-fast-as-possible", "--b", "twin:cloud"];
    let words = ["compare", "--replay", "app", "--fail-if", "slower:5%"];
    let mut failing = command(HALFPOWER, words.iter().chain(&slower));
    failing.current_dir(here);
    assert_eq!(finish(failing).code, Some(3));
    compare("twin:cloud --repeats 3", &[]).refused(&["--b", "--repeats"]);
    compare("twin:cloud", &["--depth", "8"]).refused(&["--depth", "--a"]);
    compare("twin:cloud --nothing", &[]).refused(&["--nothing"]);
}

#[test]
fn a_check_repeats_the_first_replay() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    fs::write(here.join("app"), strace()).unwrap();
    let check = "check twin:cloud --replay app --history h.sqlite";
    halfpower_in(here, check).refused(&["h.sqlite", "no history yet"]);
    halfpower_in(here, "replay app twin:cloud --scale 2x --history h.sqlite --json").good_json();
    let same = halfpower_in(here, &format!("{check} --json")).good_json();
    let time = &same["differences"][0];
    assert_eq!(
        (time["measure"].as_str(), number(time, "/change_percent")),
        (Some("duration"), 0.0)
    );
    // Pauses were halved in the first replay, so they are now: 0.36 s.
    assert!((0.3e9..0.4e9).contains(&number(time, "/b")), "{time:#}");
    // Another trace has no replay; an entry of another kind is no baseline.
    fs::write(here.join("other"), strace().replace("4096, 8192) = 4096", "4096, 8192) = 512"))
        .unwrap();
    let other = "check twin:cloud --replay other --history h.sqlite";
    halfpower_in(here, other).refused(&["no replay of other"]);
    let shown = halfpower_in(here, "history --history h.sqlite --kind replay");
    assert!(shown.stdout.contains("replay"), "{}", shown.stdout);
    // The first two replays, of the first command and of the first check.
    let compared = halfpower_in(here, "history --history h.sqlite show 1 2");
    for words in ["whole replay", "total time", "data-read", "p99"] {
        assert!(compared.stdout.contains(words), "{words}: {compared:?}");
    }
    let trend = halfpower_in(here, "history --history h.sqlite trend twin:cloud --measure time");
    assert!(trend.stdout.contains("whole replay"), "{trend:?}");
}
