//! How jobs end, compared with Debian's fio: on a full file system, and if the file refuses
//! requests.

#[macro_use]
mod common;

use common::fio::{fio_is_here, jobs_of, run};
use common::places::Mount;
use std::fs;
use std::path::Path;

/// Returns each job's error, requests and bytes written, in an emptied directory.
fn written(ours: bool, directory: &Path, options: &str) -> Vec<[u64; 3]> {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let output = run(ours, directory, &format!("--name=j --bs=4k {options} --output-format=json"));
    let figures = |job: &serde_json::Value| {
        ["/error", "/write/total_ios", "/write/io_bytes"]
            .map(|name| job.pointer(name).unwrap().as_u64().unwrap())
    };
    jobs_of(&output).iter().map(figures).collect()
}

#[test]
fn a_job_that_fills_its_file_system_succeeds() {
    if !fio_is_here() {
        return;
    }
    for mount in [or_skip!(Mount::tmpfs("4m")), or_skip!(Mount::on_loop("ext4", 16 << 20))] {
        for options in [
            "--rw=write --fill_device=1",
            "--rw=write --fill_fs=1 --size=1m",
            "--rw=write --fill_device=1 --bs=64k",
            "--rw=write --fill_device=1 --size=100m --verify=crc32c --verify_state_save=0",
            "--rw=write --fill_device=1 --io_size=1m",
        ] {
            let [ours, theirs] = [true, false].map(|ours| written(ours, &mount.at, options));
            assert_eq!(ours, theirs, "{options} in {}", mount.name());
            assert!(ours[0][0] == 0 && ours[0][2] >= 1 << 20, "{options}: {ours:?}");
        }
    }
    let mount = or_skip!(Mount::tmpfs("4m"));
    let deep = "--rw=write --fill_device=1 --ioengine=io_uring --iodepth=4";
    // The number of requests in flight at the first failure is random.
    let [ours, theirs] = [true, false].map(|ours| written(ours, &mount.at, deep)[0][2]);
    assert_eq!((ours, theirs), (4 << 20, 4 << 20));
}

#[test]
fn a_file_that_does_not_fit_is_reported_as_in_fio() {
    if !fio_is_here() {
        return;
    }
    let mount = or_skip!(Mount::tmpfs("4m"));
    for (options, errors) in [
        ("--rw=write --size=16m", vec![28]),
        ("--rw=read --size=16m", vec![28]),
        ("--rw=write --size=16m --name=b --stonewall --rw=write --size=16m", vec![28, 28]),
    ] {
        for ours in [true, false] {
            let jobs = written(ours, &mount.at, options);
            let is: Vec<u64> = jobs.iter().map(|job| job[0]).collect();
            assert_eq!(is, errors, "halfpower: {ours}: {options}");
        }
    }
    let output = run(true, &mount.at, "--name=z --rw=read --size=16m");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("does not fit"), "{said}");
}

#[test]
fn requests_that_the_device_refuses_end_the_command_before_it_makes_files() {
    if !fio_is_here() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let refused = "--size=8000 --direct=1 --bs=1000";
    for (options, errors) in [
        (format!("--rw=write {refused}"), vec![22]),
        (format!("--rw=write --size=64k --name=b --rw=write {refused}"), vec![0, 22]),
        (
            format!(
                "--rw=write {refused} --name=b --stonewall --rw=write --size=64k --direct=0 --bs=4k"
            ),
            vec![22, 0],
        ),
    ] {
        // fio lays the files out, then reports EINVAL for the job.
        let is: Vec<u64> =
            written(false, directory.path(), &options).iter().map(|job| job[0]).collect();
        assert_eq!(is, errors, "{options}");
        let fresh = tempfile::tempdir().unwrap();
        let output = run(true, fresh.path(), &format!("--name=z {options}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.contains("1000 B with direct I/O"),
            "{options}: {said}"
        );
        assert_eq!(std::fs::read_dir(fresh.path()).unwrap().count(), 0, "{options}");
    }
}
