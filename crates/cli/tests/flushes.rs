//! Buffered writes on a throttled loop device: when their rate includes the flush, and how much
//! stayed in the page cache.

#[macro_use]
mod common;

use common::fio::{fio_is_here, jobs_of};
use common::places::{Loop, Mount, Throttle};
use common::{Ended, alone, halfpower_in, number, points};
use serde_json::Value;
use std::path::Path;

/// The device's limit in bytes per second.
const ADMITTED: u64 = 20_000_000;
const TOLERANCE: f64 = 0.15;
/// The maximum attempts of a comparison: the machine is shared.
const TRIES: u32 = 3;

/// A file system on a device throttled to [`ADMITTED`]; the throttle is removed first.
struct Slow {
    _throttle: Throttle,
    mount: Mount,
}

impl Slow {
    fn mount() -> Result<Slow, String> {
        let mount = Mount::on_loop("ext4", 256 << 20)?;
        Ok(Slow { _throttle: Throttle::set(mount.device(), &[("write_bps", ADMITTED)])?, mount })
    }
}

fn near(value: f64, truth: f64) -> bool {
    (value / truth - 1.0).abs() < TOLERANCE
}

fn settles(what: &str, mut run: impl FnMut() -> Result<(), String>) {
    let mut last = Ok(());
    for _ in 0..TRIES {
        last = run();
        if last.is_ok() {
            return;
        }
    }
    panic!("{what}: {}", last.unwrap_err());
}

/// Each writes 20 MiB, which takes a second.
const FLUSHES: [&str; 12] = [
    "--size=20m --end_fsync=1",
    "--size=20m --fsync_on_close=1",
    "--size=20m --end_fsync=1 --nrfiles=4",
    "--size=10m --end_fsync=1 --numjobs=2",
    "--size=10m --end_fsync=1 --numjobs=2 --group_reporting",
    "--size=10m --end_fsync=1 --numjobs=2 --group_reporting --filename=both --offset_increment=10m",
    "--size=10m --end_fsync=1 --loops=2",
    "--size=10m --end_fsync=1 --loops=2 --invalidate=0",
    "--size=20m --end_fsync=1 --time_based --runtime=1",
    "--size=20m --fdatasync=3 --end_fsync=1",
    "--size=20m --fsync=4",
    "--size=20m --end_fsync=1 --ioengine=libaio --iodepth=4 --rw=randwrite",
];

#[test]
fn fio_jobs_time_their_flush_as_fio_does() {
    if !fio_is_here() {
        return;
    }
    let _one = alone();
    let slow = or_skip!(Slow::mount());
    for options in FLUSHES {
        settles(options, || {
            let [ours, theirs] = [true, false].map(|ours| writes(ours, &slow.mount.at, options));
            // Jobs that write at once share the disk as it happens: the longest of them takes as
            // long as all.
            let longest = |jobs: &[[f64; 3]]| jobs.iter().map(|job| job[0]).fold(0.0, f64::max);
            let same = ours.len() == theirs.len() && near(longest(&ours), longest(&theirs));
            let counted = |jobs: &[[f64; 3]]| jobs.iter().map(|job| job[2]).collect::<Vec<_>>();
            if same && counted(&ours) == counted(&theirs) {
                Ok(())
            } else {
                Err(format!("{ours:?}, fio has {theirs:?}"))
            }
        });
    }
}

/// Returns for each job: ms, bytes per second, syncs (timed separately).
fn writes(ours: bool, directory: &Path, options: &str) -> Vec<[f64; 3]> {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    let output = common::fio::run(
        ours,
        directory,
        &format!("--name=j --rw=write --bs=1m {options} --output-format=json"),
    );
    assert!(
        output.status.success(),
        "halfpower: {ours}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let figures = |job: &Value| {
        ["/write/runtime", "/write/bw_bytes", "/sync/total_ios"].map(|at| number(job, at))
    };
    jobs_of(&output).iter().map(figures).collect()
}

#[test]
fn fio_group_lines_and_points_have_the_same_rate() {
    let _one = alone();
    let slow = or_skip!(Slow::mount());
    settles("end_fsync", || {
        let words = "fio --name=j --rw=write --bs=1m --size=20m --end_fsync=1 --output-format=normal,json --output=report";
        let ended = halfpower_in(&slow.mount.at, words);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let report = std::fs::read_to_string(slow.mount.at.join("report")).unwrap();
        std::fs::remove_file(slow.mount.at.join("report")).unwrap();
        let (text, json) = report.split_at(report.find("\n{").unwrap());
        let document: Value = serde_json::from_str(json).unwrap();
        let job = number(&document, "/jobs/0/write/bw_bytes");
        let point = number(&document, "/halfpower/jobs/0/point/throughput_bytes_per_s");
        let run = text.lines().find(|line| line.trim_start().starts_with("WRITE:")).unwrap();
        let ms: f64 = run.split_once("run=").unwrap().1.split('-').next().unwrap().parse().unwrap();
        let by_line = (20 << 20) as f64 * 1e3 / ms;
        assert!(!text.contains("page cache"), "all of it was flushed: {text}");
        let all = [job, point, by_line];
        if all.iter().all(|rate| near(*rate, ADMITTED as f64)) {
            Ok(())
        } else {
            Err(format!("{all:?}\n{text}"))
        }
    });
}

#[test]
fn fio_times_the_flush_of_a_raw_device() {
    let _one = alone();
    let device = or_skip!(Loop::make(64 << 20));
    let _throttle = or_skip!(Throttle::set(&device, &[("write_bps", ADMITTED)]));
    let directory = tempfile::tempdir().unwrap();
    settles("a raw device", || {
        let name = &device.device;
        let words = format!(
            "fio --name=j --filename={name} --destroy-data={name} --rw=write --bs=1m --size=20m --end_fsync=1 --output-format=json"
        );
        let document = halfpower_in(directory.path(), &words).good_json();
        let rate = number(&document, "/jobs/0/write/bw_bytes");
        if near(rate, ADMITTED as f64) { Ok(()) } else { Err(format!("{rate}")) }
    });
}

fn point(directory: &Path, words: &str) -> Value {
    let document = halfpower_in(
        directory,
        &format!("run --no-history --json --repeats 2 --max-repeats 2 {words}"),
    )
    .good_json();
    points(&document)[0].clone()
}

fn warnings(point: &Value) -> String {
    point["warnings"].to_string()
}

const TAKEN: &str = "in the page cache and not on a device when the last write returned";
const SERVED: &str = "came from the page cache and not from a device";

#[test]
fn a_run_that_flushes_has_one_rate() {
    let _one = alone();
    let slow = or_skip!(Slow::mount());
    let words = "--op write --request 1m --buffered --bytes 20m --size 20m --end-fdatasync .";
    settles(words, || {
        let point = point(&slow.mount.at, words);
        let rate = number(&point, "/throughput_bytes_per_s");
        assert_eq!(rate, number(&point, "/achieved/synced_bytes_per_s"), "one rate by two names");
        assert!(
            number(&point, "/achieved/returned_bytes_per_s") > 3.0 * rate,
            "the cache took it: {point:#}"
        );
        let own =
            point["runs_bytes_per_s"].as_array().unwrap().iter().map(|run| run.as_f64().unwrap());
        assert!(own.clone().count() == 2 && !warnings(&point).contains(TAKEN), "{point:#}");
        let per_s = number(&point, "/iops") * f64::from(1 << 20);
        let mut all = own.chain([rate, per_s]);
        if all.all(|rate| near(rate, ADMITTED as f64)) { Ok(()) } else { Err(format!("{point:#}")) }
    });
    let text = halfpower_in(
        &slow.mount.at,
        &format!("run --no-history --repeats 2 --max-repeats 2 {words}"),
    )
    .stdout;
    let headline = text.lines().find(|line| line.starts_with("rate")).unwrap();
    assert!(headline.contains("until stable storage"), "{text}");
    let value: f64 = headline.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(value < 25.0 && headline.contains("MiB/s"), "{text}");
}

#[test]
fn a_run_without_a_flush_warns_about_cached_data() {
    let _one = alone();
    let slow = or_skip!(Slow::mount());
    let at = &slow.mount.at;
    let words = "--op write --request 1m --buffered --bytes 20m --size 20m";
    let one = point(at, &format!("{words} ."));
    assert!(
        number(&one, "/achieved/cached_write_percent") > 50.0 && warnings(&one).contains(TAKEN),
        "{one:#}"
    );
    let text = halfpower_in(at, &format!("run --no-history {words} .")).stdout;
    let headline = text.lines().find(|line| line.starts_with("rate")).unwrap();
    assert!(
        headline.contains("until the last write returned") && text.contains("not on a device"),
        "{text}"
    );
    let sweep =
        halfpower_in(at, &format!("sweep --no-history {} .", words.replace("1m", "512k,1m")))
            .stdout;
    assert!(sweep.contains("not on a device"), "{sweep}");
    let kept = tempfile::tempdir().unwrap();
    let document = halfpower_in(at, &format!("run --no-history --json {words} .")).stdout;
    ["a.json", "b.json"]
        .iter()
        .for_each(|name| std::fs::write(kept.path().join(name), &document).unwrap());
    let compared = halfpower_in(kept.path(), "compare a.json b.json");
    assert!(compared.stdout.contains("not on a device"), "{compared:?}");
}

#[test]
fn flushed_data_causes_no_warning() {
    let _one = alone();
    let slow = or_skip!(Slow::mount());
    let at = &slow.mount.at;
    for words in [
        "--op write --request 1m --direct --bytes 8m --size 8m .",
        "--op write --request 1m --buffered --dsync --bytes 8m --size 8m .",
        "--op write --request 1m --buffered --end-fdatasync --bytes 8m --size 8m .",
        "--op read --request 1m --buffered --cache cold --bytes 8m --size 8m .",
        "--op read --request 1m --buffered --cache warm --bytes 8m --size 8m .",
    ] {
        let one = point(at, words);
        let said = warnings(&one);
        assert!(!said.contains(TAKEN) && !said.contains(SERVED), "{words}: {said}");
    }
    let read = point(at, "--op read --request 64k --buffered --runtime 300ms --size 4m .");
    assert!(
        number(&read, "/achieved/cached_read_percent") > 50.0 && warnings(&read).contains(SERVED),
        "{read:#}"
    );
}

#[test]
fn every_tools_report_warns_about_a_measured_cache() {
    let _one = alone();
    let slow = or_skip!(Slow::mount());
    let at = &slow.mount.at;
    let said = |ended: &Ended| format!("{}{}", ended.stdout, ended.stderr);
    for (words, doubt) in [
        ("fio --name=a --rw=write --bs=1m --size=20m", TAKEN),
        ("fio --name=a --rw=write --bs=1m --size=20m --output-format=json", TAKEN),
        (
            "fio --name=a --rw=write --bs=1m --size=10m --name=b --rw=write --bs=1m --size=10m",
            TAKEN,
        ),
        ("fio --name=a --rw=write --bs=1m --size=5m --numjobs=4", TAKEN),
        (
            "fio --name=a --rw=read --bs=64k --size=4m --time_based --runtime=1 --invalidate=0",
            SERVED,
        ),
        ("iozone -s 20m -r 1m -i 0 --repeats 1", TAKEN),
        ("iozone -t 2 -s 10m -r 1m -i 0 --repeats 1", TAKEN),
        ("diskspd -c20M -d1 -W0 -b1M -w100 .", TAKEN),
        ("diskspd -c20M -d1 -W0 -b1M -w100 -Rxml .", TAKEN),
        ("sqlio -kW -fsequential -b1024 -BY -LS --runtime 500ms --size 20m .", TAKEN),
    ] {
        let ended = halfpower_in(at, words);
        assert!(ended.code == Some(0) && said(&ended).contains(doubt), "{words}: {ended:?}");
        std::fs::read_dir(at)
            .unwrap()
            .map(Result::unwrap)
            .filter(|one| one.path().is_file())
            .for_each(|one| {
                std::fs::remove_file(one.path()).unwrap();
            });
    }
    for words in [
        "fio --name=a --rw=write --bs=1m --size=8m --direct=1",
        "fio --name=a --rw=write --bs=1m --size=8m --sync=1",
        "fio --name=a --rw=write --bs=1m --size=8m --end_fsync=1",
        "iozone -e -s 8m -r 1m -i 0 --repeats 1",
        "iozone -o -s 8m -r 1m -i 0 --repeats 1",
        "diskspd -c8M -d1 -W0 -b1M -w100 -Sh .",
        "sqlio -kW -fsequential -b1024 -BN -LS --runtime 500ms --size 8m .",
    ] {
        let ended = halfpower_in(at, words);
        assert!(ended.code == Some(0) && !said(&ended).contains(TAKEN), "{words}: {ended:?}");
    }
}

#[test]
fn iozone_e_includes_the_flush_in_the_time() {
    let _one = alone();
    let slow = or_skip!(Slow::mount());
    settles("-e", || {
        let ended =
            halfpower_in(&slow.mount.at, "iozone -e -s 40m -r 1m -i 0 --repeats 1 --json all.json");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let text = std::fs::read_to_string(slow.mount.at.join("all.json")).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        std::fs::remove_file(slow.mount.at.join("all.json")).unwrap();
        let own = document["iozone"]["cells"].as_array().unwrap().iter();
        let own = own.map(|cell| number(cell, "/runs_bytes_per_s/0"));
        let mut all = own
            .chain(points(&document).iter().map(|point| number(point, "/throughput_bytes_per_s")));
        if all.all(|rate| near(rate, ADMITTED as f64)) { Ok(()) } else { Err(text) }
    });
}

#[test]
fn a_tmpfs_causes_no_cache_warning() {
    let _one = alone();
    let mount = or_skip!(Mount::tmpfs("32m"));
    let one = point(&mount.at, "--op write --request 1m --buffered --bytes 8m --size 8m .");
    let said = warnings(&one);
    assert!(said.contains("memory is what was measured") && !said.contains(TAKEN), "{said}");
    let fio = halfpower_in(&mount.at, "fio --name=a --rw=write --bs=1m --size=8m");
    assert!(fio.stdout.contains("memory is what was measured"), "{fio:?}");
}

#[test]
fn a_simulated_cache_causes_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let machine = "--op write --request 64k --buffered --bytes 1m --size 16m twin:nvme";
    let one = point(directory.path(), machine);
    assert!(warnings(&one).contains(TAKEN), "{one:#}");
    let flushed = point(directory.path(), &format!("--end-fdatasync {machine}"));
    let (rate, returned) = (
        number(&flushed, "/throughput_bytes_per_s"),
        number(&flushed, "/achieved/returned_bytes_per_s"),
    );
    assert!(rate < returned && !warnings(&flushed).contains(TAKEN), "{flushed:#}");
    let fio = "fio --name=a --filename=twin:nvme --rw=write --bs=64k --size=1m";
    let rate = |words: &str| {
        let document =
            halfpower_in(directory.path(), &format!("{words} --output-format=json")).good_json();
        let point = number(&document, "/halfpower/jobs/0/point/throughput_bytes_per_s");
        (
            number(&document, "/jobs/0/write/bw_bytes"),
            point,
            document["halfpower"]["warnings"].to_string(),
        )
    };
    let (kept, flushed) = (rate(fio), rate(&format!("{fio} --end_fsync=1")));
    assert!(kept.2.contains(TAKEN) && !flushed.2.contains(TAKEN), "{kept:?} {flushed:?}");
    assert!(flushed.0 < kept.0 && near(flushed.0, flushed.1), "{kept:?} {flushed:?}");
}
