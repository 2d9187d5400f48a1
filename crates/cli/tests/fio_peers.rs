//! The same options as in Debian's fio: same files, same work, same lines. Nothing is timed.

mod common;

use common::HALFPOWER;
use common::fio::{FIO, fio_is_here, jobs_of, run, succeeds};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn each_program_verifies_what_the_other_wrote() {
    if !fio_is_here() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    for method in [
        "crc32c",
        "crc32c-intel",
        "crc64",
        "crc32",
        "crc16",
        "crc7",
        "md5",
        "sha1",
        "sha256",
        "sha512",
        "sha3-224",
        "sha3-256",
        "sha3-384",
        "sha3-512",
        "xxhash",
        "meta",
        "meta --verify_pattern=0x010203",
        "crc32c --verify_interval=1k",
        "pattern --verify_pattern=0xdeadbeef",
        // A pattern without verify verifies, too.
        "",
    ] {
        let verify = match method {
            "" => "--verify_pattern=0xdeadbeef".into(),
            method => format!("--verify={method}"),
        };
        let common = format!("--name=v --filename=data --size=64k --bs=4k {verify}");
        for (writer, reader) in [(true, false), (false, true)] {
            succeeds(writer, at, &format!("{common} --rw=randwrite --do_verify=0"));
            succeeds(reader, at, &format!("{common} --rw=read"));
            // Every checksum covers the last byte of a block, except the header's own.
            let mut bytes = fs::read(at.join("data")).unwrap();
            let changed = if method == "meta" { 8192 + 20 } else { 8192 + 4095 };
            bytes[changed] ^= 1;
            fs::write(at.join("data"), bytes).unwrap();
            for ours in [true, false] {
                let failed = run(ours, at, &format!("{common} --rw=read --output-format=json"));
                assert!(
                    !failed.status.success(),
                    "{method}: a changed byte is found (halfpower: {ours})"
                );
            }
            fs::remove_file(at.join("data")).unwrap();
        }
    }
}

#[test]
fn jobs_of_fixed_size_do_the_same_work() {
    if !fio_is_here() {
        return;
    }
    for options in [
        "--rw=read:8k",
        "--rw=write:12k",
        "--rw=randread:4",
        "--rw=randread --percentage_random=0",
        "--rw=write --number_ios=5",
        "--rw=randread --number_ios=7 --loops=3",
        "--rw=write --bs=4k-16k",
        "--rw=read --timeout=60 --nr_files=2 --size=32k",
        "--rw=read --thinktime=1000 --thinktime_blocks=8 --ioengine=libaio --iodepth=4",
        "--rw=randwrite --refill_buffers --gtod_reduce=1 --clocksource=clock_gettime --disable_slat=1 --group_reporting",
        "--rw=write --create_on_open=1 --unlink=1",
        "--rw=randwrite --verify=crc32c --verify_backlog=3 --ioengine=io_uring --iodepth=4",
        "--rw=write --verify=md5 --verify_backlog=4k --verify_fatal=1 --verify_dump=1",
        "--rw=read --offset=16k --size=0",
        "--rw=trim --ioengine=null",
        "--rw=randtrim --bs=8k --ioengine=null",
        "--rw=randtrimwrite --ioengine=null",
        "--rw=read --ioengine=libaio --iodepth=4",
        "--rw=randwrite --ioengine=io_uring --iodepth=4 --disable_slat=1",
        "--rw=read --bs=8k-32k",
        "--rw=write --bs=32k-8k",
        "--rw=write --bs=4k-8k,16k-32k",
        "--rw=trim --ioengine=null --bs=8k-32k",
        "--rw=read --bs=4k,8k --bs_is_seq_rand=1",
        "--rw=rw:8k --rwmixread=100",
        "--rw=read:-8k",
        "--rw=write:-12k",
        "--rw=write --filename=data --nrfiles=4",
        "--rw=write --nr_files=3 --file_service_type=random:4 --size=96k",
        "--rw=write --iodepth=4 --iodepth_batch_submit=99 --ioengine=libaio",
        "--rw=write --fsync=2 --fdatasync=3",
        "--rw=write --fdatasync=2",
        "--rw=write --verify=null",
        "--rw=write --create_only=1",
        "--rw=randrw --rate_iops=200,400",
        "--rw=randwrite --ignore_error=EIO,ENOSPC",
        "--rw=read --disable_clat=1 --ioengine=libaio",
        "--rw=read --disable_lat=1",
        "--rw=write --gtod_reduce=1 --fsync=4",
        "--rw=write --atomic=1",
    ] {
        let figures = |ours: bool| -> Vec<u64> {
            let directory = tempfile::tempdir().unwrap();
            if options.contains("size=0") {
                fs::write(directory.path().join("data"), vec![1u8; 64 << 10]).unwrap();
            }
            let file = if options.contains("nr_files") || options.contains("--filename") {
                ""
            } else {
                "--filename=data"
            };
            let arguments =
                format!("--name=j {file} --size=64k --bs=4k {options} --output-format=json");
            let document: Value =
                serde_json::from_str(&succeeds(ours, directory.path(), &arguments)).unwrap();
            let sides = ["read", "write", "trim"];
            // Latencies of verification reads are not split in two here.
            let fields = ["total_ios", "io_bytes", "clat_ns/N", "lat_ns/N", "slat_ns/N"];
            let fields = if options.contains("verify") { &fields[..2] } else { &fields[..] };
            let of_sides = sides
                .iter()
                .flat_map(|side| fields.iter().map(move |field| format!("{side}/{field}")));
            of_sides
                .chain(["sync/total_ios", "sync/lat_ns/N"].map(String::from))
                .map(|field| {
                    document.pointer(&format!("/jobs/0/{field}")).and_then(Value::as_u64).unwrap()
                })
                .collect()
        };
        assert_eq!(figures(true), figures(false), "{options}");
    }
}

#[test]
fn flags_of_engines_take_no_value_from_the_next_argument() {
    if !fio_is_here() {
        return;
    }
    for flag in ["--ioengine=io_uring --registerfiles", "--ioengine=libaio --userspace_reap"] {
        let depth = |ours: bool| {
            let directory = tempfile::tempdir().unwrap();
            let words =
                format!("--name=j --size=64k --bs=4k {flag} --iodepth=4 --output-format=json");
            jobs_of(&run(ours, directory.path(), &words))[0]["job options"]["iodepth"].clone()
        };
        assert_eq!((depth(true), depth(false)), ("4".into(), "4".into()), "{flag}");
    }
    for wrong in ["--nowait --iodepth=4", "--clocksource=bogus", "--verify_async=x"] {
        for ours in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let output =
                run(ours, directory.path(), &format!("--name=j --size=64k --bs=4k {wrong}"));
            assert!(!output.status.success(), "{wrong} (halfpower: {ours})");
        }
    }
}

#[test]
fn files_of_a_job_have_fios_length() {
    if !fio_is_here() {
        return;
    }
    for options in [
        "--rw=write --nrfiles=3",
        "--rw=read --nrfiles=3 --size=100k",
        "--rw=write --create_only=1",
    ] {
        let lengths = |ours: bool| {
            let directory = tempfile::tempdir().unwrap();
            succeeds(ours, directory.path(), &format!("--name=j --size=64k --bs=4k {options}"));
            let mut files: Vec<(String, u64)> = fs::read_dir(directory.path())
                .unwrap()
                .map(|file| file.unwrap())
                .map(|file| {
                    (
                        file.file_name().to_string_lossy().into_owned(),
                        file.metadata().unwrap().len(),
                    )
                })
                .collect();
            files.sort();
            files
        };
        assert_eq!(lengths(true), lengths(false), "{options}");
    }
    // Each program verifies the files that the other wrote.
    for (writer, reader) in [(true, false), (false, true)] {
        let directory = tempfile::tempdir().unwrap();
        let common = "--name=j --size=64k --bs=4k --nrfiles=3 --verify=md5";
        succeeds(writer, directory.path(), &format!("{common} --rw=write --do_verify=0"));
        succeeds(reader, directory.path(), &format!("{common} --rw=write --verify_only"));
    }
}

#[test]
fn both_directions_of_a_mix_with_holes_cover_the_file() {
    if !fio_is_here() {
        return;
    }
    for ours in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let words = "--name=j --filename=f --size=64k --bs=4k --rw=rw:8k --write_iolog=log";
        succeeds(ours, directory.path(), words);
        let log = fs::read_to_string(directory.path().join("log")).unwrap();
        let of = |action: &str| -> Vec<u64> {
            let lines = log.lines().filter(|line| line.contains(&format!(" {action} ")));
            lines
                .map(|line| line.split(' ').nth(3).unwrap().parse::<u64>().unwrap() / 4096)
                .collect()
        };
        let (reads, writes) = (of("read"), of("write"));
        let whole = [0, 3, 6, 9, 12, 15];
        assert!(
            reads.len() == 6 || writes.len() == 6,
            "halfpower: {ours}: one ends: {reads:?} {writes:?}"
        );
        assert!(
            whole.starts_with(&reads) && whole.starts_with(&writes),
            "halfpower: {ours}: {reads:?} {writes:?}"
        );
    }
}

#[test]
fn traces_record_trims() {
    if !fio_is_here() {
        return;
    }
    let actions = |ours: bool| -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let words =
            "--name=j --filename=f --size=64k --bs=4k --rw=trim --ioengine=null --write_iolog=log";
        succeeds(ours, directory.path(), words);
        let log = fs::read_to_string(directory.path().join("log")).unwrap();
        let words =
            |line: &str| line.split(' ').skip(1).map(String::from).collect::<Vec<_>>().join(" ");
        log.lines().filter(|line| line.contains(" trim ")).map(words).collect()
    };
    let (ours, theirs) = (actions(true), actions(false));
    assert!(ours.len() == 16 && ours == theirs, "{ours:?} {theirs:?}");
    // The trace can also be replayed.
    let directory = tempfile::tempdir().unwrap();
    let trace = "fio version 3 iolog\n0 f add\n0 f open\n0 f write 0 65536\n1 f trim 0 32768\n2 f read 32768 4096\n";
    fs::write(directory.path().join("log"), trace).unwrap();
    let output = run(true, directory.path(), "--name=j --read_iolog=log --output-format=json");
    let job = jobs_of(&output).remove(0);
    assert_eq!(
        ["read", "write", "trim"].map(|side| job[side]["io_bytes"].as_u64().unwrap()),
        [4096, 65536, 32768],
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn verification_reads_match_fio() {
    if !fio_is_here() {
        return;
    }
    for ours in [true, false] {
        let of = |options: &str| {
            let directory = tempfile::tempdir().unwrap();
            let words = "--name=j --filename=f --size=256k --bs=4k --rw=randwrite --verify=md5 --write_iolog=log";
            let words = format!("{words} {options} --output-format=json");
            let job = jobs_of(&run(ours, directory.path(), &words)).remove(0);
            let log = fs::read_to_string(directory.path().join("log")).unwrap();
            let writes = log.lines().filter(|line| line.contains(" write "));
            let mut places: Vec<&str> =
                writes.map(|line| line.split(' ').nth(3).unwrap()).collect();
            places.sort_unstable();
            places.dedup();
            (job["error"].as_i64(), job["read"]["total_ios"].as_u64().unwrap(), places.len() as u64)
        };
        // Nothing runs after the time limit.
        for timed in ["--time_based --runtime=1 --rate_iops=40", "--runtime=1 --rate_iops=40"] {
            assert_eq!(of(timed).1, 0, "halfpower: {ours}: {timed}");
        }
        // An offset that was written twice is read once.
        for repeats in
            ["--norandommap", "--random_distribution=zipf:1.2", "--norandommap --verify_backlog=32"]
        {
            let (error, reads, places) = of(repeats);
            let once = if repeats.contains("backlog") {
                reads > places && reads < 64
            } else {
                reads == places
            };
            assert!(
                error == Some(0) && once && places < 64,
                "halfpower: {ours}: {repeats}: {reads} {places}"
            );
        }
    }
}

#[test]
fn a_job_whose_file_does_not_fit_does_not_stop_others() {
    // As in fio, which would fill the file system first.
    let jobs = "[global]\nbs=64k\n[a]\nfilename=a\nsize=100t\nrw=read\n[b]\nfilename=b\nsize=128k\nrw=write\n\
                [c]\nstonewall\nfilename=c\nsize=64k\nrw=read\n[d]\nstonewall\nfilename=a\nsize=100t\nrw=read\n";
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("jobs"), jobs).unwrap();
    let output = run(true, directory.path(), "jobs --output-format=json");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1)
            && said.contains("job 'a'")
            && said.contains("does not fit"),
        "{said}"
    );
    let bytes = |job: &Value| ["read", "write"].map(|side| job[side]["io_bytes"].as_u64().unwrap());
    let reported: Vec<_> =
        jobs_of(&output).iter().map(|job| (job["error"].as_i64().unwrap(), bytes(job))).collect();
    assert_eq!(reported, [(28, [0, 0]), (0, [0, 128 << 10]), (0, [64 << 10, 0]), (28, [0, 0])]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn the_next_job_sees_the_size_of_a_laid_out_file() {
    if !fio_is_here() {
        return;
    }
    let words = "--name=w --filename=f --size=64k --rw=write --name=r --stonewall --filename=f --rw=read --bs=8k";
    let reported = |ours: bool| -> Vec<[u64; 2]> {
        let directory = tempfile::tempdir().unwrap();
        let jobs = jobs_of(&run(ours, directory.path(), &format!("{words} --output-format=json")));
        jobs.iter()
            .map(|job| ["read", "write"].map(|side| job[side]["total_ios"].as_u64().unwrap()))
            .collect()
    };
    assert_eq!(reported(true), [[0, 16], [8, 0]]);
    assert_eq!(reported(true), reported(false));
}

#[test]
fn the_verification_state_is_saved_unless_disabled() {
    if !fio_is_here() {
        return;
    }
    let write = "--name=j --filename=f --size=64k --bs=4k --rw=write --verify=md5";
    for (options, saved) in [("", true), ("--verify_state_save=0", false)] {
        for ours in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let state = directory.path().join("local-j-0-verify.state");
            succeeds(ours, directory.path(), &format!("{write} {options}"));
            assert_eq!(state.exists(), saved, "halfpower: {ours}: {options}");
            if saved {
                succeeds(
                    ours,
                    directory.path(),
                    &format!("{write} --verify_only --verify_state_load=1"),
                );
            }
        }
    }
    // Another user's file of this name is kept and is not an error.
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("local-j-0-verify.state");
    fs::write(&state, "precious").unwrap();
    succeeds(true, directory.path(), write);
    assert_eq!(fs::read_to_string(&state).unwrap(), "precious");
}

#[test]
fn a_job_file_may_come_from_standard_input() {
    if !fio_is_here() {
        return;
    }
    for ours in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let jobs = directory.path().join("jobs");
        fs::write(&jobs, "[j]\nfilename=f\nbs=$pagesize\nsize=4*$pagesize\nrw=read\n").unwrap();
        let mut command = if ours { Command::new(HALFPOWER) } else { Command::new(FIO) };
        command
            .args(ours.then_some("fio"))
            .args(["--output-format=json", "-"])
            .current_dir(directory.path());
        command.stdin(fs::File::open(&jobs).unwrap()).env("HALFPOWER_HISTORY", "none");
        let job = jobs_of(&command.output().unwrap()).remove(0);
        assert_eq!(job["read"]["total_ios"], 4, "halfpower: {ours}");
    }
}

#[test]
fn terse_lines_have_the_same_fields() {
    if !fio_is_here() {
        return;
    }
    for version in 2..=5 {
        let lines = |ours: bool| -> Vec<Vec<String>> {
            let directory = tempfile::tempdir().unwrap();
            let options = "--name=j --description=d --filename=data --size=64k --bs=4k --rw=randread --minimal";
            let text =
                succeeds(ours, directory.path(), &format!("{options} --terse-version={version}"));
            text.lines().map(|line| line.split(';').map(String::from).collect()).collect()
        };
        let (ours, theirs) = (lines(true), lines(false));
        assert_eq!(ours.len(), theirs.len(), "version {version}");
        let counts = |lines: &[Vec<String>]| lines.iter().map(Vec::len).collect::<Vec<_>>();
        // A file system without a device has no disk at the end of either line, or a disk in both.
        let disks =
            |lines: &[Vec<String>]| (counts(lines)[0] - if version == 2 { 0 } else { 1 }) % 9;
        assert_eq!(disks(&ours), disks(&theirs), "version {version}: {ours:?}\n{theirs:?}");
        let first = if version == 2 { 0 } else { 1 };
        for field in [0, 1 + first, 2 + first, 3 + first, 4 + first] {
            assert_eq!(ours[0][field], theirs[0][field], "version {version}, field {field}");
        }
        let names = |line: &[String]| line.iter().filter(|field| field.contains("%=")).count();
        assert_eq!(names(&ours[0]), names(&theirs[0]), "version {version}: percentiles");
    }
}

#[test]
fn unified_directions_have_the_same_fields() {
    if !fio_is_here() {
        return;
    }
    for unified in ["mixed", "both"] {
        let reported = |ours: bool| -> (Vec<String>, Vec<Value>, usize) {
            let directory = tempfile::tempdir().unwrap();
            let options =
                "--name=j --filename=data --size=64k --bs=4k --rw=randrw --ioengine=libaio";
            let options = format!(
                "{options} --slat_percentiles=1 --lat_percentiles=1 --unified_rw_reporting={unified}"
            );
            let json = succeeds(ours, directory.path(), &format!("{options} --output-format=json"));
            let document: Value = serde_json::from_str(&json).unwrap();
            let job = &document["jobs"][0];
            let sections = ["read", "write", "trim", "sync", "mixed"]
                .into_iter()
                .filter(|name| job[name].is_object());
            let figures = ["total_ios", "io_bytes"].map(|name| job["mixed"][name].clone());
            let counts =
                ["slat_ns", "clat_ns", "lat_ns"].map(|name| job["mixed"][name]["N"].clone());
            let line = succeeds(ours, directory.path(), &format!("{options} --minimal"));
            // The number of disks at the end, with nine fields each, may differ.
            let fields = line.trim_end().split(';').count() % 9;
            (
                sections.map(String::from).collect(),
                figures.into_iter().chain(counts).collect(),
                fields,
            )
        };
        assert_eq!(reported(true), reported(false), "{unified}");
    }
}

#[test]
fn the_report_has_the_lines_that_scripts_look_for() {
    if !fio_is_here() {
        return;
    }
    let report = |ours: bool| {
        let directory = tempfile::tempdir().unwrap();
        let options =
            "--name=j --filename=data --size=256k --bs=4k --rw=randrw --output-format=normal,json";
        succeeds(ours, directory.path(), options)
    };
    let (ours, theirs) = (report(true), report(false));
    for line in [
        "j: (groupid=0, jobs=1): err= 0: pid=",
        "  read: IOPS=",
        ", BW=",
        "  write: IOPS=",
        "    clat percentiles (",
        "     |  1.00th=[",
        "99.99th=[",
        "  cpu          : usr=",
        "  IO depths    : 1=100.0%",
        "     issued rwts: total=",
        "Run status group 0 (all jobs):",
        "   READ: bw=",
        "  WRITE: bw=",
        "{\n  \"fio version\"",
    ] {
        assert!(theirs.contains(line), "fio has no line {line:?}: {theirs}");
        assert!(ours.contains(line), "halfpower has no line {line:?}: {ours}");
    }
    let total = |text: &str| {
        text.lines().find(|line| line.contains("issued rwts")).unwrap().trim().to_string()
    };
    assert!(total(&ours).ends_with("short=0,0,0,0 dropped=0,0,0,0"));
    // Requests of both directions add up to the size.
    let sum = |text: &str| -> u64 {
        let list = total(text);
        let list = list.split("total=").nth(1).unwrap().split(' ').next().unwrap();
        list.split(',').take(2).map(|count| count.parse::<u64>().unwrap()).sum()
    };
    assert_eq!((sum(&ours), sum(&theirs)), (64, 64));
}

#[test]
fn both_programs_ignore_the_same_errors() {
    if !fio_is_here() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let common = "--name=v --filename=data --size=64k --bs=4k --verify=crc32c";
    succeeds(false, at, &format!("{common} --rw=write --do_verify=0"));
    let mut data = fs::read(at.join("data")).unwrap();
    for byte in [8300, 18300] {
        data[byte] ^= 1;
    }
    fs::write(at.join("data"), data).unwrap();
    let reported = |ours: bool, tolerated: &str| {
        let arguments =
            format!("{common} --rw=read --continue_on_error={tolerated} --output-format=json");
        let output = run(ours, at, &arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        let document: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
        let job = document["jobs"][0].clone();
        let figures = ["error", "total_err", "first_error"].map(|field| job[field].clone());
        (output.status.success(), figures, job["read"]["total_ios"].clone())
    };
    for tolerated in ["verify", "all", "1"] {
        let (ours, theirs) = (reported(true, tolerated), reported(false, tolerated));
        assert_eq!(ours, theirs, "{tolerated}");
        assert!(ours.0 && ours.1 == [84, 2, 84].map(Value::from), "{tolerated}: {ours:?}");
    }
    for tolerated in ["none", "read", "io"] {
        let (ours, theirs) = (reported(true, tolerated), reported(false, tolerated));
        assert_eq!((ours.0, &ours.1[0]), (theirs.0, &theirs.1[0]), "{tolerated}");
        assert!(!ours.0 && ours.1[0] == 84, "{tolerated}: {ours:?}");
    }
}

#[test]
fn endless_files_are_used_as_in_fio() {
    if !fio_is_here() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for (words, side) in [
        ("--filename=/dev/null --rw=write", "write"),
        ("--filename=/dev/zero --rw=randread", "read"),
        ("--filename=/dev/zero --rw=write --ioengine=libaio --iodepth=4", "write"),
        ("--filename=/dev/zero --rw=read --ioengine=io_uring --iodepth=4", "read"),
    ] {
        let words = format!("--name=j --size=1m --bs=4k --output-format=json {words}");
        let of = |ours| {
            let document: Value =
                serde_json::from_str(&succeeds(ours, directory.path(), &words)).unwrap();
            ["total_ios", "io_bytes"]
                .map(|field| document["jobs"][0][side][field].as_u64().unwrap())
        };
        assert_eq!((of(true), of(false)), ([256, 1 << 20], [256, 1 << 20]), "{words}");
    }
    // The file is empty.
    for ours in [true, false] {
        let read = run(
            ours,
            directory.path(),
            "--name=j --filename=/dev/null --rw=read --size=1m --bs=4k",
        );
        assert!(!read.status.success(), "{ours}: {read:?}");
    }
    let sizeless = run(true, directory.path(), "--name=j --filename=/dev/null --rw=write --bs=4k");
    let said = String::from_utf8_lossy(&sizeless.stderr);
    assert!(
        sizeless.status.code() == Some(2) && said.contains("/dev/null has no size of its own"),
        "{said}"
    );
}

fn logged_priority(ours: bool, directory: &Path, options: &str) -> String {
    let words = format!(
        "--name=j --filename=f --size=16k --bs=4k --rw=write --write_lat_log=log {options}"
    );
    let said = succeeds(ours, directory, &words);
    let log = fs::read_to_string(directory.join("log_lat.1.log"))
        .unwrap_or_else(|error| panic!("{error}: {said}"));
    for file in fs::read_dir(directory).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    log.lines().next().unwrap().rsplit(", ").next().unwrap().to_string()
}

#[test]
fn requests_have_the_priority_of_the_job() {
    if !fio_is_here() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for options in [
        "",
        "--prio=5",
        "--prioclass=3",
        "--prio=2 --log_prio=1",
        "--prioclass=3 --prio=4 --log_prio=1",
    ] {
        let of = |ours| logged_priority(ours, directory.path(), options);
        assert_eq!(of(true), of(false), "{options}");
    }
    // Read the priority of the running threads from the kernel.
    let mut command = Command::new(HALFPOWER);
    command.args([
        "fio",
        "--name=j",
        "--size=1m",
        "--rw=randread",
        "--time_based",
        "--runtime=20",
        "--prioclass=3",
    ]);
    command.arg("--nice=7").env("HALFPOWER_HISTORY", "none").current_dir(directory.path());
    let mut running = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let threads = format!("/proc/{}/task", running.id());
    let served = |thread: &Path| -> bool {
        let number = thread.file_name().unwrap().to_string_lossy().into_owned();
        let reported = Command::new("ionice").args(["-p", &number]).output().unwrap();
        let status = fs::read_to_string(thread.join("stat")).unwrap_or_default();
        // After the name, which may contain blanks: state, then 15 numbers, then the nice value.
        let nice = status
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().nth(16).map(String::from));
        String::from_utf8_lossy(&reported.stdout).trim() == "idle" && nice.as_deref() == Some("7")
    };
    let seen = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        fs::read_dir(&threads).unwrap().any(|thread| served(&thread.unwrap().path()))
    });
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(seen, "no thread with priority 7 whose requests are idle");
}

#[test]
fn pauses_follow_a_time_or_a_number_of_requests() {
    if !fio_is_here() {
        return;
    }
    for (options, pauses) in [
        ("--size=64k --thinktime_iotime=20s", 0..=0),
        ("--size=64k --thinktime_iotime=20s --thinktime_blocks=8", 1..=1),
        (
            "--size=64k --thinktime_iotime=20s --thinktime_blocks=4 --ioengine=libaio --iodepth=2",
            3..=3,
        ),
        ("--size=64k --thinktime_iotime=300ms --time_based --runtime=1400ms", 2..=3),
        (
            "--size=64k --thinktime_iotime=300ms --thinktime_blocks=9999999 --time_based --runtime=1400ms",
            2..=3,
        ),
    ] {
        for ours in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let job =
                "--name=j --filename=data --rw=read --bs=4k --thinktime=200ms --write_lat_log=log";
            succeeds(ours, directory.path(), &format!("{job} {options}"));
            let log = fs::read_to_string(directory.path().join("log_lat.1.log")).unwrap();
            let ended_ms: Vec<u64> =
                log.lines().map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
            // Log times are whole milliseconds.
            let found = ended_ms.windows(2).filter(|pair| pair[1] - pair[0] >= 198).count();
            assert!(pauses.contains(&found), "halfpower: {ours}: {options}: {found} pauses");
            assert!(
                ended_ms.len() >= 16,
                "halfpower: {ours}: {options}: {} requests",
                ended_ms.len()
            );
        }
    }
}
