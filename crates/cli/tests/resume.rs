//! Killed or interrupted commands lose at most the current run, and `--resume` goes on.

mod common;

use common::{Ended, HALFPOWER, alone, command, ended, finish, test_files, wait_at_most};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use workload::rng::SplitMix64;

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("data")).unwrap();
        Place { root }
    }

    fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(HALFPOWER, words);
        command.current_dir(&self.root).env("HALFPOWER_STATE", self.root.path().join("state"));
        command
    }

    fn run(&self, words: &[&str]) -> Ended {
        finish(self.command(words))
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(self.root.path().join("state/unfinished"))
            .map(|all| all.map(|one| one.unwrap().path()).collect())
            .unwrap_or_default()
    }

    fn kept(&self) -> Vec<Value> {
        let text: String =
            self.files().iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let lines = whole.map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        lines.filter_map(|line| line.get("run").cloned()).collect()
    }

    /// Returns `None` if the command has already finished.
    fn stopped(&self, words: &[&str], signal: i32, after_runs: usize) -> Option<Ended> {
        let child = self.command(words).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        // A full pipe would block the command.
        let reader = std::thread::spawn(move || ended(child));
        // A study of 8 s takes longer on a machine with many other programs.
        let limit = std::time::Duration::from_secs(120);
        wait_at_most(limit, "kept runs", || {
            reader.is_finished() || self.kept_lines() > after_runs + 1
        });
        if reader.is_finished() {
            assert_eq!(reader.join().unwrap().code, Some(0));
            return None;
        }
        // SAFETY: `kill` takes no memory.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
        let stopped = reader.join().unwrap();
        // It may have finished at that moment, and kept nothing for that reason.
        (stopped.code != Some(0)).then_some(stopped)
    }

    /// Counts lines without parsing: the last may be incomplete.
    fn kept_lines(&self) -> usize {
        let of = |file: &PathBuf| fs::read(file).map_or(0, |text| bytes(&text, b'\n'));
        self.files().iter().map(of).sum()
    }
}

fn bytes(text: &[u8], of: u8) -> usize {
    text.iter().filter(|&&byte| byte == of).count()
}

const SWEEP: &str = "sweep data --size 32m --request 4k,64k --depth 1,4 --runtime 60ms --repeats 4 --max-repeats 4 --json";

const STUDY: &str = "study data --size 32m --budget 8s --quick --output out --json";

const COMPARE: &str = "compare --a data --b data --size 32m --request 4k,16k --runtime 60ms --until 90% --budget 3s --json";

const TUNE: &str = "tune data --size 32m --yes --knob engine --knob request=16k --depth 4 --runtime 60ms --budget 4s --json";

fn workloads(document: &Value) -> Vec<Value> {
    let point = |point: &Value| point["workload"].clone();
    document["points"].as_array().unwrap().iter().map(point).collect()
}

fn has_all(document: &Value, kept: &[Value]) {
    let rates: Vec<f64> = document["points"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|point| point["runs_bytes_per_s"].as_array().unwrap())
        .map(|rate| rate.as_f64().unwrap())
        .collect();
    for run in kept {
        let result = &run["result"];
        // Points leave out a warm-up that was seen.
        if result["warm_up_ns"] != 0 {
            continue;
        }
        let size = result["bytes"].as_f64().unwrap() / result["requests"].as_f64().unwrap();
        let rate = result["rate"].as_f64().unwrap() * size;
        assert!(rates.iter().any(|one| (one / rate - 1.0).abs() < 1e-9), "{rate} in {rates:?}");
    }
}

/// Returns `None` if the command has already finished: on a busy machine a study has few runs.
fn stop_and_resume(line: &str, signal: i32, after_runs: usize) -> Option<Value> {
    let place = Place::new();
    let words: Vec<&str> = line.split_whitespace().collect();
    let what = format!("{line}: signal {signal} after {after_runs} runs");
    let stopped = place.stopped(&words, signal, after_runs)?;
    let kept = place.kept();
    assert!(kept.len() >= after_runs, "{what}: {} runs: {stopped:?}", kept.len());
    if signal == libc::SIGKILL {
        assert_eq!(stopped.code, None, "{what}");
    } else {
        assert_eq!(stopped.code, Some(130), "{what}: {stopped:?}");
        assert!(stopped.stderr.contains("--resume goes on"), "{what}: {}", stopped.stderr);
        assert_eq!(test_files(&place.data()), [""; 0], "{what}");
    }
    let resumed = place.run(&[&words[..], &["--resume"]].concat());
    assert_eq!(resumed.code, Some(0), "{what}: {}", resumed.stderr);
    assert!(resumed.stderr.contains("going on with"), "{what}: {}", resumed.stderr);
    let document = resumed.json();
    let warnings = document["warnings"].to_string();
    assert!(warnings.contains("interrupted and resumed"), "{what}: {warnings}");
    if !line.starts_with("study") {
        // The runs of a study depend on the time; those of others do not.
        assert!(!warnings.contains("did not fit"), "{what}: {warnings}");
    }
    if line.starts_with("sweep") {
        has_all(&document, &kept);
    }
    assert_eq!(test_files(&place.data()), [""; 0], "{what}: the killed run's file is removed");
    assert!(place.files().is_empty(), "{what}: complete results need no kept runs");
    Some(document)
}

#[test]
fn runs_of_another_file_of_the_same_name_are_not_continued() {
    let _alone = alone();
    let place = Place::new();
    let file = place.root.path().join("file");
    fs::write(&file, vec![7; 4 << 20]).unwrap();
    let words = ["sweep", "file", "--request", "4k,64k", "--runtime", "200ms", "--repeats", "9"];
    place.stopped(&words, libc::SIGTERM, 1).expect("it was stopped");
    let resume = [&words[..], &["--resume"]].concat();
    fs::write(place.root.path().join("other"), vec![0; 4 << 20]).unwrap();
    fs::rename(&file, place.root.path().join("was")).unwrap();
    fs::rename(place.root.path().join("other"), &file).unwrap();
    place.run(&resume).refused(&["another file or device has this name now", "--resume"]);
    fs::rename(place.root.path().join("was"), &file).unwrap();
    let resumed = place.run(&resume);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert!(resumed.stderr.contains("going on with"), "{}", resumed.stderr);
}

#[test]
fn a_killed_sweep_ends_with_the_same_points() {
    let _alone = alone();
    let place = Place::new();
    let whole = place.run(&SWEEP.split_whitespace().collect::<Vec<_>>()).good_json();
    for (signal, after_runs) in [(libc::SIGKILL, 5), (libc::SIGINT, 9), (libc::SIGTERM, 1)] {
        let document = stop_and_resume(SWEEP, signal, after_runs).expect("it was stopped");
        assert_eq!(workloads(&document), workloads(&whole));
        let repeats = document["points"].as_array().unwrap().iter().map(|point| &point["repeats"]);
        assert!(repeats.into_iter().all(|count| count.as_u64() <= Some(4)), "{document:#}");
    }
}

#[test]
fn a_killed_study_ends_with_an_answer() {
    let _alone = alone();
    let document = stop_and_resume(STUDY, libc::SIGKILL, 8).expect("it was stopped");
    assert_eq!(document["kind"], "study");
    assert!(document["answer"]["peaks"].as_array().is_some_and(|peaks| !peaks.is_empty()));
}

#[test]
fn an_interrupted_comparison_and_tuning_go_on() {
    let _alone = alone();
    for line in [COMPARE, TUNE] {
        for (signal, after_runs) in [(libc::SIGINT, 3), (libc::SIGKILL, 6)] {
            stop_and_resume(line, signal, after_runs).expect("it was stopped");
        }
    }
}

#[test]
#[ignore = "takes ten minutes: 50 times at random"]
fn fifty_commands_stopped_at_random_lose_nothing() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(35);
    eprintln!("SEED={seed}");
    let mut random = SplitMix64::new(seed);
    let mut stops = 0;
    for number in 0..100 {
        if stops == 50 {
            return;
        }
        let (line, most) = [(SWEEP, 14), (STUDY, 30), (COMPARE, 12), (TUNE, 12)][number % 4];
        let signal = if random.next_u64() >> 63 == 1 { libc::SIGKILL } else { libc::SIGINT };
        let after_runs = 1 + (random.next_u64() % most) as usize;
        eprintln!("{number}: {line}, signal {signal}, after {after_runs} runs");
        stops += usize::from(stop_and_resume(line, signal, after_runs).is_some());
    }
    panic!("only {stops} commands could be stopped");
}

fn killed_sweep() -> Place {
    let place = Place::new();
    let words: Vec<&str> = SWEEP.split_whitespace().collect();
    place.stopped(&words, libc::SIGKILL, 3).expect("it was stopped");
    place
}

#[test]
fn differences_are_reported() {
    let _alone = alone();
    let place = killed_sweep();
    let other = SWEEP.replace("--depth 1,4", "--depth 1,2");
    let words: Vec<&str> = other.split_whitespace().chain(["--resume"]).collect();
    let document = place.run(&words).good_json();
    let warnings = document["warnings"].to_string();
    assert!(warnings.contains("other settings: sweep data") && warnings.contains("--depth 1,4"));
    let depths = workloads(&document).iter().map(|one| one["depth"].as_u64()).collect::<Vec<_>>();
    assert_eq!(depths, [1, 1, 2, 2].map(Some));
}

#[test]
fn another_size_is_refused() {
    let _alone = alone();
    let place = killed_sweep();
    let other = SWEEP.replace("--size 32m", "--size 16m");
    let words: Vec<&str> = other.split_whitespace().chain(["--resume"]).collect();
    let refused = place.run(&words);
    refused.refused(&["--resume: ", "data: it has 16 MiB now", "had 32 MiB", "leave --resume out"]);
    assert!(!place.kept().is_empty(), "nothing is lost");
}

#[test]
fn a_line_that_a_kill_cut_is_dropped() {
    let _alone = alone();
    let place = killed_sweep();
    let [file] = &place.files()[..] else { panic!("one file") };
    let text = fs::read_to_string(file).unwrap();
    let last = text.trim_end().rfind('\n').unwrap();
    fs::write(file, &text[..last + 40]).unwrap();
    let words: Vec<&str> = SWEEP.split_whitespace().chain(["--resume"]).collect();
    let document = place.run(&words).good_json();
    assert_eq!(workloads(&document).len(), 4);
}

#[test]
fn a_new_start_keeps_the_old_runs_until_it_has_finished() {
    let _alone = alone();
    let place = killed_sweep();
    let words: Vec<&str> = SWEEP.split_whitespace().collect();
    let again = place.stopped(&words, libc::SIGKILL, 8).expect("it was stopped");
    assert!(again.stderr.contains("starting over; --resume would go on with"), "{again:?}");
    assert_eq!(place.files().len(), 2);
    place.run(&words).good_json();
    assert!(place.files().is_empty());
}

#[test]
fn resuming_nothing_is_refused() {
    let place = Place::new();
    place.run(&["sweep", "data", "--resume"]).refused(&["no runs", "leave --resume out"]);
    place.run(&["tune", "data", "--resume"]).refused(&["--resume", "add --yes"]);
    place.run(&["run", "twin:nvme", "--resume"]).refused(&["--resume", "simulated"]);
    place.run(&["run", "data", "--resume", "--verify"]).refused(&["--resume", "--verify"]);
    let mut homeless = place.command(&["study", "data", "--resume"]);
    homeless.env_remove("HALFPOWER_STATE").env_remove("HOME").env_remove("XDG_STATE_HOME");
    let refused = finish(homeless);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(test_files(Path::new(&place.data())).is_empty());
}
