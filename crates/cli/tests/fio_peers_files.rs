//! Jobs on small, missing or too short files do the same as in Debian's fio.

mod common;

use common::alone;
use common::fio::{fio_is_here, jobs_of, run, succeeds};
use std::fs;
use std::path::Path;

/// Bytes read and written, and the name and length of each file that is left.
fn done(ours: bool, at: &Path, options: &str) -> ([u64; 2], Vec<(String, u64)>) {
    let output = run(ours, at, &format!("--name=j {options} --output-format=json"));
    assert!(output.status.success(), "{ours}: {options}: {output:?}");
    let job = jobs_of(&output).remove(0);
    let bytes = ["read", "write"].map(|side| job[side]["io_bytes"].as_u64().unwrap());
    let entries = fs::read_dir(at).unwrap().map(|entry| entry.unwrap());
    let mut left: Vec<_> = entries
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), entry.metadata().unwrap().len())
        })
        .collect();
    left.sort();
    (bytes, left)
}

#[test]
fn files_smaller_than_a_page_are_files() {
    if !fio_is_here() {
        return;
    }
    // Another halfpower that starts could have the file open.
    let _one = alone();
    for options in [
        "--size=1 --bs=1 --rw=write",
        "--size=1 --bs=1 --rw=randread",
        "--size=1000 --bs=300 --rw=read",
        "--filesize=1k --bs=512 --rw=randread",
        "--size=8k --nrfiles=8 --bs=512 --rw=write",
        "--size=2k --bs=512 --rw=read --ioengine=mmap",
        "--size=2k --bs=512 --rw=write --ioengine=io_uring --iodepth=4 --verify=crc32c --verify_state_save=0",
        "--size=512 --bs=512 --rw=write --ioengine=libaio --iodepth=2",
    ] {
        let [ours, theirs] =
            [true, false].map(|ours| done(ours, tempfile::tempdir().unwrap().path(), options));
        assert_eq!(ours, theirs, "{options}");
    }
}

#[test]
fn a_file_that_is_too_short_becomes_longer_if_its_data_may_be_lost() {
    if !fio_is_here() {
        return;
    }
    // Another halfpower that starts could have the file open.
    let _one = alone();
    for options in [
        "--offset=512k --size=1m --rw=read",
        "--size=2m --rw=write --io_size=4k",
        "--size=2m --rw=write --fallocate=none",
        "--size=1m --offset=2m --rw=write --bs=64k",
        "--size=1m --offset=2m --rw=randread",
        "--size=1m --offset=10 --rw=read --bs=1k",
    ] {
        let [ours, theirs] = [true, false].map(|ours| {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("x"), vec![3u8; 1 << 20]).unwrap();
            let destroy = if ours { "--destroy-data=x" } else { "" };
            done(ours, directory.path(), &format!("--filename=x {options} {destroy}"))
        });
        assert_eq!(ours, theirs, "{options}");
    }
    // Writes keep what they do not reach; reads are of data, not of a hole.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    fs::write(&path, vec![3u8; 8192]).unwrap();
    let refused = run(true, directory.path(), "--name=j --filename=x --size=16k --rw=read");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("--destroy-data=x"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), vec![3u8; 8192]);
    succeeds(
        true,
        directory.path(),
        "--name=j --filename=x --size=8k --offset=8k --rw=write --destroy-data=x",
    );
    assert_eq!(fs::read(&path).unwrap()[..8192], vec![3u8; 8192]);
    succeeds(true, directory.path(), "--name=j --filename=x --size=64k --rw=read --destroy-data=x");
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 64 << 10);
    assert!(bytes.chunks(512).all(|part| part.iter().any(|&byte| byte != part[0])));
}
