//! The same job on the same throttled device gives the same rates and latencies as Debian's fio.

#[macro_use]
mod common;

use common::HALFPOWER;
use common::places::{Loop, Throttle};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The device's limit in requests per second.
const ADMITTED: u64 = 400;

fn fio() -> Result<&'static Path, String> {
    let fio = Path::new("/usr/bin/fio");
    if fio.exists() { Ok(fio) } else { Err("fio is not installed: apt-get install fio".into()) }
}

fn outcome(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    // fio leaves verification states in its working directory.
    command.env("HALFPOWER_HISTORY", "none").current_dir(std::env::temp_dir());
    if program == Path::new(HALFPOWER) {
        command.arg("fio");
    }
    command.args(arguments).output().unwrap()
}

fn document(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let begin = text
        .find('{')
        .unwrap_or_else(|| panic!("no document: {}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(&text[begin..]).unwrap()
}

fn figure(document: &Value, path: &str) -> f64 {
    document
        .pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("{path} is not in {document:#}"))
}

fn within(what: &str, ours: f64, theirs: f64, share: f64) {
    assert!(
        (ours / theirs - 1.0).abs() <= share,
        "{what}: {ours} and fio's {theirs} differ by more than {} %",
        share * 100.0
    );
}

#[test]
fn rates_and_latencies_match_debians_fio() {
    let fio = or_skip!(fio());
    let slow = or_skip!(Loop::make(64 << 20));
    let _throttle =
        or_skip!(Throttle::set(&slow, &[("read_iops", ADMITTED), ("write_iops", ADMITTED)]));
    let directory = tempfile::tempdir().unwrap();
    let jobs = directory.path().join("jobs.fio");
    let text = format!(
        "[global]\nfilename={}\nsize=32m\nbs=4k\ndirect=1\ntime_based\nruntime=4\n\
         [random reads]\nrw=randread\nioengine=libaio\niodepth=8\n\
         [writes]\nstonewall\nrw=write\nioengine=psync\n",
        slow.device
    );
    fs::write(&jobs, text).unwrap();
    let words = ["--output-format=json", jobs.to_str().unwrap()];
    let theirs = outcome(fio, &words);
    let ours = outcome(
        Path::new(HALFPOWER),
        &[words[0], &format!("--destroy-data={}", slow.device), words[1]],
    );
    for output in [&theirs, &ours] {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let (theirs, ours) = (document(&theirs), document(&ours));
    for (job, side) in [(0, "read"), (1, "write")] {
        let pair = |field: &str| {
            let path = format!("/jobs/{job}/{side}/{field}");
            (figure(&ours, &path), figure(&theirs, &path))
        };
        for (field, share) in [("iops", 0.03), ("bw_bytes", 0.03), ("lat_ns/mean", 0.05)] {
            let (ours, theirs) = pair(field);
            within(&format!("{side} {field}"), ours, theirs, share);
        }
        // The throttle is the limit, not the file under the device.
        let (rate, _) = pair("iops");
        within("the admitted rate", rate, ADMITTED as f64, 0.05);
        assert_eq!(
            ours.pointer(&format!("/jobs/{job}/jobname")),
            theirs.pointer(&format!("/jobs/{job}/jobname"))
        );
        assert_eq!(
            ours.pointer(&format!("/jobs/{job}/groupid")),
            theirs.pointer(&format!("/jobs/{job}/groupid"))
        );
    }
    let names = |document: &Value| -> Vec<String> {
        document["jobs"][0].as_object().unwrap().keys().cloned().collect()
    };
    let absent: Vec<String> =
        names(&theirs).into_iter().filter(|name| !names(&ours).contains(name)).collect();
    assert_eq!(absent, Vec::<String>::new(), "fields of fio's that are not in halfpower's report");
}

#[test]
fn a_job_continues_after_ignored_errors() {
    let fio = or_skip!(fio());
    let device = or_skip!(Loop::make(8 << 20));
    // The device is longer than its file, so reads beyond it fail. Writes would extend the file.
    let below = fs::File::options().write(true).open(&device.file).unwrap();
    below.set_len(4 << 20).unwrap();
    for engine in [["--ioengine=psync", "--iodepth=1"], ["--ioengine=libaio", "--iodepth=4"]] {
        for kinds in ["none", "read", "io", "all", "verify"] {
            let name = format!("--filename={}", device.device);
            let goes_on = format!("--continue_on_error={kinds}");
            let job = [
                "--name=a",
                &name,
                "--size=8m",
                "--rw=read",
                "--bs=64k",
                "--direct=1",
                engine[0],
                engine[1],
                &goes_on,
            ];
            let format = "--output-format=json";
            let theirs = outcome(fio, &[&job[..], &[format]].concat());
            let ours = outcome(Path::new(HALFPOWER), &[&job[..], &[format]].concat());
            assert_eq!(ours.status.code(), theirs.status.code(), "{job:?}");
            let (theirs, ours) = (document(&theirs), document(&ours));
            // For a job that ends at its first error, fio also counts the requests in flight.
            let went_on = theirs
                .pointer("/jobs/0/total_err")
                .and_then(Value::as_u64)
                .is_some_and(|errors| errors > 0);
            let mut fields = vec![
                "error".to_owned(),
                "total_err".into(),
                "first_error".into(),
                "read/io_bytes".into(),
            ];
            if went_on {
                fields.push("read/total_ios".into());
            }
            for field in fields {
                let [ours, theirs] =
                    [&ours, &theirs].map(|one| one.pointer(&format!("/jobs/0/{field}")));
                assert_eq!(ours, theirs, "{field} of {job:?}");
            }
        }
    }
}

const COUNTED: &str = "\
[global]\nsize=4m\n\
[files]\nnrfiles=4\nrw=read\nbs=16k\n\
[turns]\nstonewall\nfilename=t1:t2\nrw=randread\nbs=16k\nsize=2m\n\
[split]\nstonewall\nrw=write\nbssplit=4k/50:64k/30:16k/\n\
[range]\nstonewall\nrw=write\nbsrange=4k-32k\n\
[two sizes]\nstonewall\nrw=read\nbs=8k,64k\n\
[verify]\nstonewall\nrw=randwrite\nbs=8k\nverify=crc32c\n\
[pareto]\nstonewall\nrw=randread\nrandom_distribution=pareto:0.2\n\
[normal]\nstonewall\nrw=randread\nrandom_distribution=normal:10\n\
[nothing]\nstonewall\nioengine=null\nrw=randread\niodepth=8\n\
[places]\nstonewall\nrw=randread\nbs=4k\nba=512\n\
[loops]\nstonewall\nrw=read\nbs=4k\nloops=3\nsize=1m\n\
[passes]\nstonewall\nfilename=p1:p2\nrw=write\nbs=4k\nloops=3\nsize=64k\nverify=md5\nioengine=libaio\niodepth=8\n\
[uneven]\nstonewall\nrw=randread\nbsrange=1k-4k\nsize=20000\n\
[strided]\nstonewall\nrw=read\nbs=16k\nzonemode=strided\nzonesize=64k\nzoneskip=192k\nsize=1m\n\
[zones]\nstonewall\nrw=randread\nbs=4k\nnorandommap\nrandom_distribution=zoned:50/5:30/15:20/\nsize=1m\n\
[several]\nstonewall\nrw=write\nnrfiles=4\nbsrange=4k-16k\nsize=1m\n\
[untimed]\nstonewall\nrw=read\ntime_based\nsize=256k\n\
[batches]\nstonewall\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=16\niodepth_batch_submit=8\niodepth_batch_complete_min=8\niodepth_batch_complete_max=16\n\
[rates]\nstonewall\nrw=randrw\nbs=4k\nrate_iops=300,100\nrwmixread=75\nruntime=2\ntime_based\n\
[steady]\nstonewall\nrw=randread\nbs=4k\nrate_iops=500\nruntime=20\ntime_based\nsteadystate=iops:10%\nsteadystate_duration=3\n";

#[test]
fn counts_match_debians_fio() {
    let fio = or_skip!(fio());
    let run = |program: &Path, first: &[&str]| -> Value {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("jobs.fio"), COUNTED).unwrap();
        let mut command = Command::new(program);
        let output = command
            .env("HALFPOWER_HISTORY", "none")
            .args(first)
            .args(["--output-format=json", "jobs.fio"])
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let theirs = run(fio, &[]);
    let ours = run(Path::new(env!("CARGO_BIN_EXE_halfpower")), &["fio"]);
    let names: Vec<&str> = theirs["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["jobname"].as_str().unwrap())
        .collect();
    for (place, name) in names.iter().enumerate() {
        let pair = |field: &str| {
            let path = format!("/jobs/{place}/{field}");
            (figure(&ours, &path), figure(&theirs, &path))
        };
        match *name {
            "rates" => {
                for (field, wanted) in [("read/iops", 300.0), ("write/iops", 100.0)] {
                    let (ours, theirs) = pair(field);
                    within(&format!("{name}: {field}"), ours, theirs, 0.05);
                    within(&format!("{name}: {field}"), ours, wanted, 0.05);
                }
            }
            "steady" => {
                assert_eq!(pair("steadystate/attained"), (1.0, 1.0));
                assert_eq!(pair("steadystate/duration"), (3.0, 3.0));
                let (ours, theirs) = pair("steadystate/data/iops_mean");
                within("steady", ours, theirs, 0.05);
            }
            // Each program draws sizes from its own generator.
            "split" | "range" => {
                assert_eq!(pair("write/io_bytes"), (4_194_304.0, 4_194_304.0), "{name}")
            }
            "uneven" => assert_eq!(pair("read/io_bytes"), (19_456.0, 19_456.0), "{name}"),
            "several" => assert_eq!(pair("write/io_bytes"), (1_048_576.0, 1_048_576.0), "{name}"),
            _ => {
                for field in
                    ["read/total_ios", "read/io_bytes", "write/total_ios", "write/io_bytes"]
                {
                    let (ours, theirs) = pair(field);
                    assert_eq!(ours, theirs, "{name}: {field}");
                }
            }
        }
        if *name == "batches" {
            // fio also counts its attempts to submit nothing, and its batches depend on how many
            // requests completed at once; most have eight.
            let (ours, theirs) = pair("iodepth_submit/8");
            let something = 100.0 - pair("iodepth_submit/0").1;
            assert!(
                ours == 100.0 && theirs > 0.5 * something,
                "eight at a time: {ours} and {theirs} of {something} %"
            );
        }
    }
}

#[test]
fn passes_match_debians_fio() {
    let fio = or_skip!(fio());
    let directory = tempfile::tempdir().unwrap();
    let (mine, own) = (directory.path().join("ours"), directory.path().join("theirs"));
    for mode in ["write", "write:4k", "write:48k", "randwrite", "read"] {
        for more in ["", "--verify=crc32c"] {
            for (io_size, loops) in
                [("256k", 2), ("1m", 1), ("1m", 2), ("2560k", 1), ("2560k", 2), ("3m", 4)]
            {
                // fio verifies only once, however many passes are requested, and so it does after
                // passes without an end.
                if !more.is_empty() && (mode == "read" || (mode == "write:48k" && loops > 1)) {
                    continue;
                }
                let run = |program: &Path, file: &Path| -> [f64; 3] {
                    let text = format!(
                        "--name=j --filename={} --size=1m --bs=16k --rw={mode} --io_size={io_size} --loops={loops} --output-format=json {more}",
                        file.display()
                    );
                    let output = outcome(program, &text.split_whitespace().collect::<Vec<_>>());
                    assert!(
                        output.status.success(),
                        "{text}: {}",
                        String::from_utf8_lossy(&output.stderr)
                    );
                    ["write/total_ios", "write/io_bytes", "read/total_ios"]
                        .map(|field| figure(&document(&output), &format!("/jobs/0/{field}")))
                };
                let (ours, theirs) = (run(Path::new(HALFPOWER), &mine), run(fio, &own));
                assert_eq!(ours, theirs, "rw={mode} {more} io_size={io_size} loops={loops}");
            }
        }
    }
}
