//! Jobs on small, missing or short files, and on whole files, work as in Debian's fio.

#[macro_use]
mod common;

use common::fio::{FIO, fio_is_here, jobs_of, run, succeeds};
use common::{HALFPOWER, alone};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the bytes read and written, and name and length of each file left.
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
        // Each program has its own format.
        .filter(|(name, _)| !name.ends_with("-verify.state"))
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
        "--size=2k --bs=512 --rw=read --ioengine=splice",
        "--size=600k --bs=200k --rw=randwrite --ioengine=splice --verify=crc32c --verify_state_save=0",
        "--size=600k --bs=200k --rw=randread --ioengine=splice --direct=1",
        "--size=64k --bs=4k --rw=write --ioengine=splice --direct=1",
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

#[test]
fn a_file_of_an_earlier_run_keeps_what_is_not_written() {
    if !fio_is_here() {
        return;
    }
    let _one = alone();
    for options in [
        "--rw=write --io_size=64k",
        "--rw=randwrite --io_size=64k",
        "--rw=write --size=64k --offset=64k",
        "--rw=write --io_size=64k --fallocate=none",
        "--rw=write --io_size=64k --fallocate=truncate",
        "--rw=write --io_size=64k --overwrite=1",
        "--rw=write --io_size=64k --create_on_open=1",
        "--rw=write:16k --io_size=64k",
        "--rw=randrw --rwmixread=0 --io_size=64k",
        "--rw=write --io_size=64k --nrfiles=2",
        "--rw=write --size=64k --ioengine=mmap",
        "--rw=write --size=64k --verify=crc32c",
        "--rw=write --size=320k --io_size=64k",
    ] {
        let [ours, theirs] = [true, false].map(|ours| {
            let directory = tempfile::tempdir().unwrap();
            let first = "--name=j --filename=x:y --size=512k --bs=16k --rw=write";
            succeeds(ours, directory.path(), &format!("{first} --buffer_pattern=0xaa"));
            let second = format!(
                "--name=j --filename=x --bs=16k --size=256k --buffer_pattern=0xbb {options}"
            );
            succeeds(ours, directory.path(), &second);
            let bytes = fs::read(directory.path().join("x")).unwrap();
            let of = |one: u8| bytes.chunks(4096).filter(|block| **block == [one; 4096]).count();
            [0xaa, 0].map(of)
        });
        assert_eq!(ours, theirs, "{options}");
    }
}

#[test]
fn a_job_that_appends_begins_at_the_end_of_the_file() {
    if !fio_is_here() {
        return;
    }
    let _one = alone();
    for options in [
        "--size=64k --bs=16k --rw=write",
        "--size=64k --bs=16k --rw=randwrite",
        "--size=64k --bs=16k --rw=write --offset=8k --verify=md5",
        "--size=64k --bs=16k --rw=randread",
        "--size=32k --bs=16k --rw=write --numjobs=2",
    ] {
        let [ours, theirs] = [true, false].map(|ours| {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("x");
            fs::write(&path, vec![3u8; 300_000]).unwrap();
            let destroy = if ours { "--destroy-data=x" } else { "" };
            let options = format!("--filename=x --file_append=1 {options} {destroy}");
            let done = done(ours, directory.path(), &options);
            let bytes = fs::read(&path).unwrap();
            // fio lays the whole file out again for reads.
            assert!(options.contains("read") || bytes[..300_000] == vec![3u8; 300_000], "{ours}");
            (done, bytes.len())
        });
        assert_eq!(ours, theirs, "{options}");
        assert_eq!(ours.1, 300_000 + (64 << 10), "{options}");
    }
    // A job that finds no file begins with one, and the next one appends to it.
    let directory = tempfile::tempdir().unwrap();
    let mut before = Vec::new();
    for bytes in [64 << 10, 128 << 10, 192 << 10] {
        succeeds(
            true,
            directory.path(),
            "--name=j --filename=x --size=64k --rw=write --file_append=1",
        );
        let now = fs::read(directory.path().join("x")).unwrap();
        assert!(now.len() == bytes && now.starts_with(&before), "{bytes}");
        assert!(now.chunks(4096).all(|part| part.iter().any(|&byte| byte != 0)), "{bytes}");
        before = now;
    }
    let unknown = run(
        true,
        directory.path(),
        "--name=j --filename=x --filesize=64k --rw=write --file_append=1",
    );
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(unknown.status.code() == Some(2) && said.contains("write size="), "{said}");
}

fn requests(ours: bool, options: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    succeeds(ours, directory.path(), &format!("--name=j {options} --write_iolog=log"));
    let log = fs::read_to_string(directory.path().join("log")).unwrap();
    let request = |line: &str| {
        // A time, then the file and what is done.
        let words: Vec<&str> = line.split(' ').collect();
        (words.len() == 5).then(|| words[1..].join(" "))
    };
    log.lines().filter_map(request).collect()
}

#[test]
fn files_of_several_sizes_are_as_large_as_those_of_fio_and_end_by_themselves() {
    if !fio_is_here() {
        return;
    }
    let _one = alone();
    for (options, in_order) in [
        ("--filesize=16k-128k --nrfiles=10 --rw=write", true),
        ("--filesize=16k-128k --nrfiles=10 --rw=write --size=400k --randseed=7", true),
        ("--filesize=16k-128k --nrfiles=5 --rw=read --loops=2", false),
        ("--filesize=16k-128k --nrfiles=5 --rw=write --file_service_type=sequential", true),
        ("--filesize=16k-128k --nrfiles=6 --rw=write --file_service_type=roundrobin:3", true),
        ("--filesize=16k-128k --nrfiles=6 --rw=read --openfiles=2", false),
        ("--filesize=16k-128k --nrfiles=4 --numjobs=3 --group_reporting --rw=write", false),
        ("--filesize=16k-128k --nrfiles=10 --rw=randread", false),
        ("--filesize=16k-128k --nrfiles=10 --rw=randwrite --file_service_type=random", false),
        ("--filesize=16k-128k --nrfiles=10 --rw=randread --file_service_type=sequential", false),
        ("--filesize=16k-128k --nrfiles=5 --rw=randwrite --norandommap --io_size=1m", false),
        ("--filesize=16k-128k --nrfiles=5 --rw=randwrite --verify=crc32c", false),
        (
            "--filesize=16k-128k --nrfiles=5 --rw=write --verify=crc32c --ioengine=libaio --iodepth=4",
            false,
        ),
        ("--filesize=16k-128k --size=50% --nrfiles=4 --rw=write", true),
        ("--filesize=1m --size=33% --offset=33% --rw=write", true),
        ("--filesize=1m --size=50% --nrfiles=2 --rw=read", true),
        ("--filesize=1m --offset=33% --size=100% --rw=write", true),
        ("--size=1m --offset=50% --rw=read", true),
        ("--size=1m --offset=50% --filename=x --numjobs=2 --group_reporting --rw=write", false),
    ] {
        let [ours, theirs] =
            [true, false].map(|ours| done(ours, tempfile::tempdir().unwrap().path(), options));
        assert_eq!(ours, theirs, "{options}");
        if in_order {
            let [ours, theirs] = [true, false].map(|ours| requests(ours, options));
            assert!(!theirs.is_empty(), "{options}");
            assert_eq!(ours, theirs, "{options}");
        }
    }
}

fn operations(ours: bool, options: &str) -> Vec<(&'static str, String)> {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("strace");
    command.args([
        "-ff",
        "-otrace",
        "-e",
        "trace=open,openat,stat,newfstatat,statx,unlink,unlinkat",
    ]);
    command.arg(if ours { HALFPOWER } else { FIO }).args(ours.then_some("fio")).arg("--name=j");
    command.args(options.split_whitespace()).current_dir(directory.path());
    let output = command.env("HALFPOWER_HISTORY", "none").output().unwrap();
    assert!(output.status.success(), "{ours}: {options}: {output:?}");
    let mut traces: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            Some((name.strip_prefix("trace.")?.parse::<u32>().ok()?, path))
        })
        .collect();
    traces.sort();
    // The first thread lays out the files.
    let texts = traces.iter().skip(1).map(|(_, path)| fs::read_to_string(path).unwrap());
    texts.flat_map(|text| text.lines().filter_map(operation).collect::<Vec<_>>()).collect()
}

/// Parses `openat(AT_FDCWD, "j.0.0", O_RDWR|O_CREAT, 0600) = 6`.
fn operation(line: &str) -> Option<(&'static str, String)> {
    let (call, rest) = line.split_once('(')?;
    let name = rest.split('"').nth(1).filter(|name| name.starts_with("j."))?;
    let what = match call {
        "open" | "openat" if line.contains("O_CREAT") => "create",
        "open" | "openat" => "open",
        "stat" | "newfstatat" | "statx" => "stat",
        _ => "delete",
    };
    Some((what, name.into()))
}

#[test]
fn whole_files_are_created_looked_at_and_deleted() {
    if !fio_is_here() {
        return;
    }
    or_skip!(Command::new("strace").arg("-V").output().map_err(|error| format!("strace: {error}")));
    let _one = alone();
    for options in [
        "--ioengine=filecreate --nrfiles=5 --filesize=4k",
        "--ioengine=filecreate --nrfiles=5 --filesize=4k --rw=write --loops=2 --openfiles=1",
        "--ioengine=filecreate --nrfiles=5 --filesize=4k --unlink=1",
        "--ioengine=filestat --nrfiles=5 --size=20k --numjobs=2",
        "--ioengine=filedelete --nrfiles=5 --filesize=4k --rw=write",
    ] {
        let [ours, theirs] =
            [true, false].map(|ours| done(ours, tempfile::tempdir().unwrap().path(), options));
        assert_eq!(ours, theirs, "{options}");
        if !options.contains("numjobs") && !options.contains("unlink") {
            let [ours, theirs] = [true, false].map(|ours| operations(ours, options));
            let passes = if options.contains("loops") { 2 } else { 1 };
            assert_eq!(ours.len(), passes * 5, "{options}: {ours:?}");
            assert_eq!(ours, theirs, "{options}");
        }
    }
}

#[test]
fn files_of_others_are_not_deleted() {
    let _one = alone();
    let directory = tempfile::tempdir().unwrap();
    let words = "--name=j --ioengine=filedelete --nrfiles=2 --filesize=4k";
    let refused = |options: &str| {
        let output = run(true, directory.path(), &format!("{words} {options}"));
        assert_eq!(output.status.code(), Some(2), "{options}: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    fs::write(directory.path().join("j.0.1"), "mine").unwrap();
    let said = refused("");
    assert!(said.contains("--destroy-data=j.0.1"), "{said}");
    // Nothing was laid out before the check.
    assert!(!directory.path().join("j.0.0").exists());
    assert_eq!(fs::read(directory.path().join("j.0.1")).unwrap(), b"mine");
    for (options, word) in [
        ("--directory=missing", "missing does not exist"),
        ("--loops=2", "only once"),
        ("--verify=md5", "transfers no data"),
        ("--fsync=1", "transfers no data"),
        ("--allow_file_create=0", "allow_file_create"),
        ("--ioengine=filestat --filename=twin:hdd-2020", "simulated"),
        ("--ioengine=cpuio", "processor"),
    ] {
        let said = refused(options);
        assert!(said.contains(word), "{options}: {said}");
    }
    succeeds(true, directory.path(), &format!("{words} --destroy-data=j.0.1"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_an_earlier_job_makes_is_there_for_a_job_that_makes_none() {
    let directory = common::places::memory_directory();
    let jobs = "--name=make --filename=f --size=64k --rw=write --allow_mounted_write=1 --stonewall --name=use --filename=f --size=64k --rw=read --allow_file_create=0 --stonewall";
    succeeds(true, directory.path(), jobs);
    let jobs = "--name=a --ioengine=filecreate --filename=g --filesize=4k --stonewall --name=b --ioengine=filestat --filename=g --filesize=4k --allow_file_create=0 --stonewall";
    succeeds(true, directory.path(), jobs);
}
