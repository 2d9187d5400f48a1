//! The same job works as in Debian's fio, request by request: files, offsets, syncs and times.

mod common;

use common::fio::{FIO, fio_is_here, jobs_of, run, succeeds};
use common::{HALFPOWER, alone};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// A call: its name, the file, and the offset (0 for a sync).
type Call = (String, String, u64);

fn calls(ours: bool, options: &str) -> Vec<Call> {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let mut command = Command::new("strace");
    command.args(["-ff", "-y", "-s0", "-otrace", "-e"]);
    command.arg("trace=pwrite64,pread64,fsync,fdatasync,sync_file_range");
    command.arg(if ours { HALFPOWER } else { FIO }).args(ours.then_some("fio"));
    command.args(["--name=j", "--ioengine=psync", "--fallocate=truncate", "--bs=4k"]);
    command.args(options.split_whitespace()).current_dir(at).env("HALFPOWER_HISTORY", "none");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{ours}: {options}: {output:?}");
    let entries = || fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path());
    // A file that had no name when it was opened is shown by its number.
    let names: HashMap<String, String> = entries()
        .map(|path| (format!("#{}", fs::metadata(&path).unwrap().ino()), name_of(&path)))
        .collect();
    let mut all = Vec::new();
    for path in entries() {
        if path.file_name().unwrap().to_string_lossy().starts_with("trace") {
            // The other threads prepare the files.
            let text = fs::read_to_string(path).unwrap();
            let own = text.lines().filter_map(|line| call(line, &names));
            all.extend(own.skip_while(|(name, ..)| name != "pwrite64"));
        }
    }
    all
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Parses `pwrite64(6</tmp/x/j.0.0>, ""..., 4096, 8192) = 4096`.
fn call(line: &str, names: &HashMap<String, String>) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (path, rest) = rest.split_once('<')?.1.split_once('>')?;
    let rest = rest.trim_start_matches("(deleted)");
    let file = name_of(Path::new(path));
    let file = names.get(&file).cloned().unwrap_or(file);
    let offset = match name {
        "pwrite64" | "pread64" => rest.split_once(')')?.0.rsplit(", ").next()?.parse().ok()?,
        _ => 0,
    };
    // The range and the flags of a sync.
    let name = match name {
        "sync_file_range" => format!("{name}{}", rest.split_once(')')?.0),
        name => name.into(),
    };
    file.starts_with("j.").then_some((name, file, offset))
}

#[test]
fn syncs_are_of_the_same_file_as_in_fio() {
    if !fio_is_here() {
        return;
    }
    or_skip!(Command::new("strace").arg("-V").output().map_err(|error| format!("strace: {error}")));
    for options in [
        "--rw=write --nrfiles=3 --size=48k --fdatasync=1",
        "--rw=write --nrfiles=3 --size=48k --fdatasync=2",
        "--rw=write --nrfiles=3 --size=48k --fsync=4 --end_fsync=1",
        "--rw=write --nrfiles=2 --size=64k --fsync=1",
        "--rw=write --nrfiles=8 --size=256k --fdatasync=1 --io_size=200k",
        "--rw=write --nrfiles=3 --size=48k --fsync=2 --file_service_type=sequential",
        "--rw=write --nrfiles=3 --size=96k --fsync=3 --file_service_type=roundrobin:4",
        "--rw=write --nrfiles=1 --size=48k --fsync=3 --fdatasync=2",
        // A rest that is too short for a request.
        "--rw=write --size=50000 --fdatasync=1",
        "--rw=write --size=50000 --fsync=4",
        "--rw=write --nrfiles=2 --size=50000 --fsync=1",
        "--rw=write --filesize=50000 --fdatasync=2",
        "--rw=write --size=100k --io_size=50000 --fdatasync=1",
        "--rw=write --size=50000 --number_ios=3 --fdatasync=1",
        // Ranges.
        "--rw=write --size=64k --sync_file_range=write:3",
        "--rw=write --size=64k --sync_file_range=wait_before,write,wait_after:2 --end_fsync=1",
        "--rw=write --size=64k --sync_file_range=wait_after",
        "--rw=write --nrfiles=3 --size=96k --sync_file_range=write:2",
        "--rw=write --nrfiles=2 --size=96k --sync_file_range=wait_before,write:4 --fsync=6",
        "--rw=write --size=64k --sync_file_range=write:2 --fdatasync=4",
    ] {
        let [ours, theirs] = [true, false].map(|ours| calls(ours, options));
        assert_eq!(ours, theirs, "{options}");
    }
}

/// Returns each request's offset and length in order, from the job's log.
fn places(ours: bool, at: &Path, options: &str) -> Vec<(u64, u64)> {
    succeeds(ours, at, &format!("--name=j --bs=4k --write_iolog=log {options}"));
    let log = fs::read_to_string(at.join("log")).unwrap();
    fs::remove_file(at.join("log")).unwrap();
    let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok());
    let place = |line: &str| {
        let mut words = line.split(' ').skip(2);
        let does = words.next()?;
        ["read", "write"]
            .contains(&does)
            .then(|| Some((number(words.next())?, number(words.next())?)))?
    };
    log.lines().filter_map(place).collect()
}

fn same_places(bytes: usize, all: &[&str]) {
    for options in all {
        let [ours, theirs] = [true, false].map(|ours| {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("f"), vec![1u8; bytes]).unwrap();
            places(ours, directory.path(), &format!("--filename=f {options}"))
        });
        assert!(!ours.is_empty(), "{options}");
        assert_eq!(ours, theirs, "{options}");
    }
}

#[test]
fn percentages_of_a_file_begin_and_end_with_a_block() {
    if !fio_is_here() {
        return;
    }
    same_places(
        100_001,
        &[
            "--rw=read --offset=33%",
            "--rw=read --offset=33% --size=33%",
            "--rw=read --size=33%",
            "--rw=read --offset=33% --bs=512",
            "--rw=read --offset=33% --size=33% --direct=1",
            "--rw=read --offset=33% --offset_align=512",
            "--rw=read --offset=50% --size=60%",
            "--rw=read --offset=10% --offset_increment=1000",
            "--rw=read --offset=1001 --size=33%",
        ],
    );
}

#[test]
fn strided_zones_go_on_to_the_end_of_the_file() {
    if !fio_is_here() {
        return;
    }
    same_places(
        1 << 20,
        &[
            "--rw=read --size=256k --zonemode=strided --zonesize=64k --zoneskip=192k",
            "--rw=read --size=128k --zonemode=strided --zonesize=8k --zoneskip=56k",
            "--rw=read --size=512k --zonemode=strided --zonesize=64k --zoneskip=192k --offset=64k",
            "--rw=read --size=64k --zonemode=strided --zonesize=16k --zoneskip=48k --io_size=500k",
        ],
    );
    // Random offsets: the same zones in the same order.
    let options =
        "--filename=f --rw=randread --size=256k --zonemode=strided --zonesize=64k --zoneskip=192k";
    let zones = |ours: bool| -> Vec<u64> {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("f"), vec![1u8; 1 << 20]).unwrap();
        let places = places(ours, directory.path(), options);
        places.iter().map(|(offset, _)| offset >> 16).collect()
    };
    assert_eq!(zones(true), zones(false));
}

fn requests(ours: bool, options: &str) -> Vec<(String, u64)> {
    let directory = tempfile::tempdir().unwrap();
    let words = format!("--name=a --bs=4k --size=256k --write_iolog=log {options}");
    run(ours, directory.path(), &words);
    let log = fs::read_to_string(directory.path().join("log")).unwrap();
    let request = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let place = words.iter().position(|word| ["read", "write"].contains(word))?;
        let file = words[place - 1].rsplit('.').next()?.to_owned();
        Some((file, words[place + 1].parse::<u64>().ok()? / 4096))
    };
    log.lines().filter_map(request).collect()
}

#[test]
fn several_files_have_the_order_of_fio() {
    if !fio_is_here() {
        return;
    }
    let zones = "--zonemode=strided --zonesize=16k --zonerange=16k --zoneskip=16k";
    for options in [
        format!("--rw=read --nrfiles=2 {zones}"),
        format!("--rw=read --nrfiles=3 {zones}"),
        format!("--rw=read --nrfiles=2 {zones} --zonesize=32k"),
        format!("--rw=read --nrfiles=2 {zones} --zonesize=8k"),
        format!("--rw=read --nrfiles=2 {zones} --file_service_type=sequential"),
        format!("--rw=write --nrfiles=2 {zones} --fsync=3"),
        format!("--rw=read --nrfiles=2 {zones} --openfiles=2"),
        "--rw=randread --nrfiles=2 --percentage_random=0".into(),
        "--rw=read --nrfiles=4 --openfiles=1".into(),
        "--rw=read --nrfiles=4 --openfiles=2".into(),
        // Requests that leave out bytes begin again at the end of a file, until the size is reached.
        "--rw=read:8k --nrfiles=3 --file_service_type=sequential".into(),
        "--rw=write:4k --nrfiles=3".into(),
        "--rw=write:4k --nrfiles=3 --size=1020k".into(),
        "--rw=write:12k --loops=2".into(),
        // With time_based, files in order wait for the end of the pass.
        "--rw=read --nrfiles=3 --filesize=16k-64k --time_based --runtime=600ms --rate_iops=150"
            .into(),
    ] {
        let mut all = [true, false].map(|ours| requests(ours, &options));
        if options.contains("time_based") {
            all.iter_mut().for_each(|one| one.truncate(70));
        }
        let [ours, theirs] = all;
        assert_eq!(ours, theirs, "{options}");
    }
    // Random places: the same zones and files in the same order.
    let random = format!("--rw=randread --nrfiles=2 {zones}");
    let zones = |ours: bool| -> Vec<(String, u64)> {
        requests(ours, &random).into_iter().map(|(file, block)| (file, block / 4)).collect()
    };
    assert_eq!(zones(true), zones(false));
    let files = |ours: bool, options: &str| -> Vec<String> {
        requests(ours, options).into_iter().take(60).map(|(file, _)| file).collect()
    };
    for options in [
        "--rw=randread --nrfiles=4 --openfiles=2",
        // With time_based, a file at random begins again by itself.
        "--rw=randread --nrfiles=3 --filesize=16k-64k --time_based --runtime=600ms --rate_iops=150",
    ] {
        assert_eq!(files(true, options), files(false, options), "{options}");
    }
}

/// How many requests of each file follow one another at the same offset.
fn repeats(requests: &[(String, u64)]) -> HashMap<String, Vec<usize>> {
    let mut places: HashMap<String, Vec<u64>> = HashMap::new();
    for (file, block) in requests {
        places.entry(file.clone()).or_default().push(*block);
    }
    let runs = |blocks: Vec<u64>| blocks.chunk_by(|a, b| a == b).map(<[u64]>::len).collect();
    places.into_iter().map(|(file, blocks)| (file, runs(blocks))).collect()
}

#[test]
fn requests_stay_at_a_random_offset_as_in_fio() {
    if !fio_is_here() {
        return;
    }
    for options in [
        "--rw=randread:3",
        "--rw=randwrite:4 --io_size=512k",
        "--rw=randread:2 --loops=2",
        "--rw=randwrite:4 --loops=2 --nrfiles=2 --filesize=1m --size=300001",
        "--rw=randread:5 --nrfiles=2",
        "--rw=randwrite:4 --nrfiles=3 --size=250k",
        "--rw=randread:8 --size=8m --io_size=70k --norandommap",
        "--rw=randread:3 --ioengine=io_uring --iodepth=4",
        // Each direction has its own place.
        "--rw=randrw:8 --rwmixread=100",
        // Without a number, and in order, it changes nothing.
        "--rw=randread",
        "--rw=write:4k",
    ] {
        let options = format!("--rw_sequencer=identical {options}");
        let [ours, theirs] = [true, false].map(|ours| repeats(&requests(ours, &options)));
        assert!(!ours.is_empty());
        assert_eq!(ours, theirs, "{options}");
    }
    // With a map, a second pass takes other places than the first, and a third begins again.
    for (loops, places) in [(2, 64), (3, 64)] {
        let options = format!("--rw_sequencer=identical --rw=randread:2 --loops={loops}");
        for ours in [true, false] {
            let all = requests(ours, &options);
            let blocks: HashSet<u64> = all.iter().map(|(_, block)| *block).collect();
            assert_eq!((all.len(), blocks.len()), (64 * loops, places), "{ours}: {options}");
        }
    }
}

/// Files in order end by themselves, whatever the sizes of requests, and the others go on.
#[test]
fn requests_of_several_sizes_write_each_file_once() {
    if !fio_is_here() {
        return;
    }
    for options in ["", "--file_service_type=sequential", "--loops=2", "--verify=md5"] {
        for ours in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let words = format!(
                "--name=a --rw=write --bsrange=4k-16k --nrfiles=3 --filesize=128k --write_iolog=log {options}"
            );
            run(ours, directory.path(), &words);
            let log = fs::read_to_string(directory.path().join("log")).unwrap();
            let passes = if options == "--loops=2" { 2 } else { 1 };
            let mut ends: HashMap<String, u64> = HashMap::new();
            for line in log.lines() {
                if let [.., name, "write", offset, len] = line.split(' ').collect::<Vec<_>>()[..] {
                    let end = ends.entry(name.into()).or_default();
                    let offset: u64 = offset.parse().unwrap();
                    assert_eq!(offset, *end % (128 << 10), "{ours} {options}");
                    *end += len.parse::<u64>().unwrap();
                }
            }
            assert_eq!(ends.len(), 3);
            let whole = |end: &u64| *end == passes * (128 << 10);
            assert!(ends.values().all(whole), "{ours} {options}: {ends:?}");
        }
    }
}

/// Returns requests per second and ms of both directions.
fn rates(ours: bool, options: &str) -> [(f64, u64); 2] {
    let directory = tempfile::tempdir().unwrap();
    let words = format!("--name=j --filename=f --size=1m --bs=4k {options} --output-format=json");
    let job = jobs_of(&run(ours, directory.path(), &words)).remove(0);
    ["read", "write"]
        .map(|side| (job[side]["iops"].as_f64().unwrap(), job[side]["runtime"].as_u64().unwrap()))
}

#[test]
fn a_run_by_the_clock_has_its_length() {
    if !fio_is_here() {
        return;
    }
    let _one = alone();
    for options in [
        "--rw=read --rate_iops=1 --time_based --runtime=2",
        "--rw=read --thinktime=700ms --time_based --runtime=1",
        "--rw=read --thinktime=400ms --number_ios=3",
        "--rw=read --thinktime=500ms --thinktime_blocks=2 --time_based --runtime=1",
        // A job waits for its turn to find that no whole request is left.
        "--rw=write --size=10k --rate_iops=2",
        "--rw=randwrite --size=10k --rate_iops=2 --loops=2",
        "--rw=write --size=10k --rate_iops=1 --runtime=1500ms",
        "--rw=write --size=12k --rate_iops=2",
        // Rates count bytes: a larger request takes longer.
        "--rw=write --bs=8k --bsrange=8k-8k --rate=16k --size=32k",
    ] {
        let [ours, theirs] = [true, false].map(|ours| rates(ours, options)[0]);
        // Sleeps end late on a busy computer, and fio may make a request at the very end.
        let requests = (ours.0 - theirs.0).abs() * theirs.1 as f64 / 1000.0;
        assert!(
            requests < 1.1 && ours.1.abs_diff(theirs.1) < 150,
            "{options}: {ours:?}, fio {theirs:?}"
        );
    }
}

#[test]
fn a_write_that_is_verified_after_each_pass_has_its_own_time() {
    if !fio_is_here() {
        return;
    }
    let _one = alone();
    let options = "--rw=write --verify=crc32c --time_based --runtime=2";
    for ours in [true, false] {
        let [(_, read), (_, write)] = rates(ours, &format!("{options} --ioengine=libaio"));
        // The directions share the time of the run.
        assert!((1900..2400).contains(&(read + write)), "ours {ours}: {read} and {write} ms");
        assert!(read > 50 && write > 50, "ours {ours}: {read} and {write} ms");
        // A blocking engine writes until the time is over.
        let [(_, read), (_, write)] = rates(ours, options);
        assert!(read == 0 && write > 1900, "ours {ours}: {read} and {write} ms");
    }
}

/// `rate_iops` is the rate of requests of the minimum size; larger ones take longer.
#[test]
fn requests_of_several_sizes_have_a_rate_of_bytes() {
    if !fio_is_here() {
        return;
    }
    let _one = alone();
    for options in [
        "--rw=write --bsrange=4k-16k --rate_iops=64",
        "--rw=randread --bssplit=4k/50:16k/50 --rate_iops=64",
        "--rw=randread --bsrange=4k-16k --rate=256k",
        "--rw=randrw --bsrange=4k-16k --rate=128k,128k",
    ] {
        for ours in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            let words = format!("--name=j --size=512k {options} --output-format=json --filename=f");
            let job = jobs_of(&run(ours, directory.path(), &words)).remove(0);
            let figure =
                |name: &str| ["read", "write"].map(|side| job[side][name].as_u64().unwrap());
            let (bytes, ms) = (figure("io_bytes"), figure("runtime"));
            let rate: u64 = (0..2).map(|side| bytes[side] * 1000 / ms[side].max(1)).sum();
            // The last request takes no time.
            assert!((250 << 10..290 << 10).contains(&rate), "{ours} {options}: {rate} bytes/s");
        }
    }
}

#[test]
fn each_direction_of_a_mix_has_its_own_rate() {
    if !fio_is_here() {
        return;
    }
    let _one = alone();
    for options in [
        "--rw=randrw --rate_iops=90,10 --time_based --runtime=2",
        "--rw=rw --rate_iops=30,60 --time_based --runtime=2 --ioengine=libaio --iodepth=4",
        "--rw=rw --rate=200k,40k --bs=4k,8k --time_based --runtime=2",
        "--rw=randrw --rate_iops=20,20 --thinktime=8ms --time_based --runtime=2",
        "--rw=read --rate_iops=10 --thinktime=50ms --rate_ignore_thinktime=1 --time_based --runtime=2",
        "--rw=read --rate_iops=10 --thinktime=200ms --rate_ignore_thinktime=1 --time_based --runtime=2",
    ] {
        let [ours, theirs] = [true, false].map(|ours| rates(ours, options));
        for side in 0..2 {
            let (own, other) = (ours[side].0, theirs[side].0);
            assert!(
                (own - other).abs() <= 0.05 * other + 1.5,
                "{options}: {ours:?}, fio {theirs:?}"
            );
        }
    }
}

#[test]
fn options_are_reported_under_fios_names() {
    if !fio_is_here() {
        return;
    }
    let options = "--nr_files=1 --io_limit=8k --fileoffset=0 --readwrite=read --blocksize=4k --blockalign=4k \
         --allrandrepeat=1 --iodepth_batch_submit=1 --iodepth_batch_complete=1 --fsync_on_close=1 --timeout=5 --ratecycle=500 \
         --wait_for_previous=1 --thread=1";
    let named = |ours: bool| {
        let directory = tempfile::tempdir().unwrap();
        let words = format!("--name=j --filename=f --size=64k {options} --output-format=json");
        jobs_of(&run(ours, directory.path(), &words)).remove(0)["job options"].clone()
    };
    let (ours, theirs) = (named(true), named(false));
    for (name, value) in theirs.as_object().unwrap() {
        assert_eq!(&ours[name], value, "{name}: {ours}");
    }
    // Besides fio's, only those that readers look up.
    let more = ["iodepth", "numjobs", "ioengine"];
    for (name, _) in ours.as_object().unwrap() {
        assert!(more.contains(&name.as_str()) || theirs.get(name).is_some(), "{name}: {theirs}");
    }
}

#[test]
fn laid_out_files_stay_for_the_next_command() {
    if !fio_is_here() {
        return;
    }
    let names = |at: &Path| {
        let mut all: Vec<String> = fs::read_dir(at)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        all.sort();
        all
    };
    for (options, left) in [
        ("--filename=x --rw=write", &["x"][..]),
        ("--nrfiles=2 --rw=read", &["j.0.0", "j.0.1"]),
        ("--filename=x --rw=randrw", &["x"]),
        ("--filename=x --rw=write --unlink=1", &[]),
        ("--filename=x --rw=write --ioengine=null", &[]),
    ] {
        for ours in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            succeeds(ours, directory.path(), &format!("--name=j --size=64k {options}"));
            assert_eq!(names(directory.path()), left, "{ours}: {options}");
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    succeeds(true, at, "--name=a --filename=x --size=64k --rw=write");
    // Read without a size, then written again, larger.
    succeeds(true, at, "--name=b --filename=x --rw=randread");
    succeeds(true, at, "--name=c --filename=x --size=128k --rw=write");
    assert_eq!(fs::metadata(at.join("x")).unwrap().len(), 128 << 10);
    succeeds(true, at, "--name=d --filename=y --size=64k --rw=write --cleanup");
    assert_eq!(names(at), ["x"], "--cleanup removes what the run laid out");
    // A file that was changed since belongs to its user.
    fs::write(at.join("x"), vec![7u8; 128 << 10]).unwrap();
    let refused = run(true, at, "--name=c --filename=x --size=128k --rw=write");
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(fs::read(at.join("x")).unwrap(), vec![7u8; 128 << 10]);
}

#[test]
fn a_bad_block_that_is_read_again_is_one_bad_block() {
    let directory = tempfile::tempdir().unwrap();
    let common = "--name=v --filename=data --size=64k --bs=4k --verify=crc32c";
    succeeds(true, directory.path(), &format!("{common} --rw=write --do_verify=0"));
    let path = directory.path().join("data");
    let mut bytes = fs::read(&path).unwrap();
    bytes[9000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let loops = format!("{common} --rw=read --loops=5");
    let failed = run(true, directory.path(), &loops);
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(
        !failed.status.success() && said.contains("verify: the block of 4 KiB at byte 8192"),
        "{said}"
    );
    // As in fio, each failed check counts as an error.
    let tolerated = format!("{loops} --continue_on_error=verify --output-format=json");
    let job = jobs_of(&run(true, directory.path(), &tolerated)).remove(0);
    assert_eq!(job["total_err"], 5, "{job}");
}

#[test]
fn files_are_drawn_as_often_as_in_fio() {
    if !fio_is_here() {
        return;
    }
    for options in [
        "--file_service_type=zipf:1.2",
        "--file_service_type=pareto:0.2",
        "--file_service_type=gauss:20",
        "--file_service_type=normal",
        "--file_service_type=random",
        "--file_service_type=random:4",
    ] {
        for mode in ["read", "randread"] {
            // The shares of the files, in order: fio begins with any file.
            let shares = |ours: bool| -> Vec<f64> {
                let directory = tempfile::tempdir().unwrap();
                let words = format!(
                    "--name=j --nrfiles=4 --size=16m --bs=4k --io_size=1m --rw={mode} {options} --write_iolog=log"
                );
                succeeds(ours, directory.path(), &words);
                let log = fs::read_to_string(directory.path().join("log")).unwrap();
                let of = |file: usize| {
                    let name = format!("j.0.{file} read ");
                    log.lines().filter(|line| line.contains(&name)).count() as f64 / 256.0
                };
                let mut shares: Vec<f64> = (0..4).map(of).collect();
                shares.sort_by(f64::total_cmp);
                shares
            };
            let [ours, theirs] = [true, false].map(shares);
            assert!((ours.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{ours:?}");
            for (own, other) in ours.iter().zip(&theirs) {
                assert!((own - other).abs() < 0.13, "{mode} {options}: {ours:?}, fio {theirs:?}");
            }
        }
    }
}

#[test]
fn normal_draws_are_as_wide_as_those_of_fio() {
    if !fio_is_here() {
        return;
    }
    let of = |ours: bool, options: &str| {
        let directory = tempfile::tempdir().unwrap();
        let common = "--name=j --bs=4k --rw=randread --norandommap --write_iolog=log";
        succeeds(ours, directory.path(), &format!("{common} {options}"));
        fs::read_to_string(directory.path().join("log")).unwrap()
    };
    for deviation in [1, 20, 50] {
        let service = format!("--file_service_type=normal:{deviation} --nrfiles=100 --size=4m");
        let [ours, theirs] = [true, false].map(|ours| {
            let log = of(ours, &format!("{service} --io_size=8m"));
            let reads = log.lines().filter(|line| line.contains(" read "));
            let file = |line: &str| line.split(' ').nth(1)?.rsplit('.').next()?.parse::<f64>().ok();
            let files: Vec<f64> = reads.filter_map(file).collect();
            let mean = files.iter().sum::<f64>() / files.len() as f64;
            let squares = files.iter().map(|file| (file - mean).powi(2)).sum::<f64>();
            (squares / files.len() as f64).sqrt()
        });
        assert!((ours / theirs - 1.0).abs() < 0.1, "files, {deviation}: {ours}, fio {theirs}");
        let distribution = format!("--random_distribution=normal:{deviation} --size=16m");
        let [ours, theirs] = [true, false].map(|ours| {
            let log = of(ours, &format!("{distribution} --io_size=32m"));
            let offset = |line: &str| line.split(' ').nth(3).map(str::to_owned);
            let reads = log.lines().filter(|line| line.contains(" read ")).filter_map(offset);
            reads.collect::<HashSet<_>>().len() as f64
        });
        assert!((ours / theirs - 1.0).abs() < 0.1, "places, {deviation}: {ours}, fio {theirs}");
    }
}

#[test]
fn random_requests_take_turns_between_files_as_in_fio() {
    if !fio_is_here() {
        return;
    }
    for options in [
        "--rw=randread --size=1m",
        "--rw=randread --size=1m --file_service_type=roundrobin:4",
        "--rw=randwrite --size=1m --norandommap",
        "--rw=randrw --size=1m --ioengine=libaio --iodepth=8 --direct=1",
        "--rw=randread --size=4m --io_size=1m --file_service_type=roundrobin:3",
        "--rw=randread --size=1m --loops=2",
        "--rw=randread --size=1m --file_service_type=sequential",
    ] {
        // The file of each request, in order.
        let requests = |ours: bool| -> Vec<(String, u64)> {
            let directory = tempfile::tempdir().unwrap();
            let at = directory.path();
            let words = format!("--name=j --nrfiles=4 --bs=4k --write_iolog=log {options}");
            succeeds(ours, at, &words);
            let log = fs::read_to_string(at.join("log")).unwrap();
            let request = |line: &str| {
                let words: Vec<&str> = line.split(' ').skip(1).collect();
                ["read", "write"]
                    .contains(words.get(1)?)
                    .then(|| (words[0].to_string(), words[2].parse().unwrap()))
            };
            log.lines().filter_map(request).collect()
        };
        let [ours, theirs] = [true, false].map(requests);
        let files = |all: &[(String, u64)]| all.iter().map(|one| one.0.clone()).collect::<Vec<_>>();
        assert_eq!(files(&ours), files(&theirs), "{options}");
        let places = |all: &[(String, u64)]| all.iter().collect::<HashSet<_>>().len();
        if !options.contains("norandommap") {
            assert_eq!(places(&ours), places(&theirs), "each place once: {options}");
        }
    }
}

#[test]
fn arguments_that_fio_takes_are_taken() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let job = "--name=j --filename=f --size=64k --bs=4k";
    let short = run(true, at, &format!("{job} --numjob=2 --group_rep --output-f=json"));
    assert_eq!(jobs_of(&short)[0]["job options"]["numjobs"], "2");
    let refused = run(true, at, &format!("{job} --iode=2"));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("iodepth_batch"), "{said}");
    for (arguments, word) in [
        ("--enghelp", "io_uring"),
        ("--enghelp=libaio", "libaio"),
        ("--cmdhelp=rw", "readwrite"),
        ("--cmdhelp", "buffer_compress_percentage"),
        (&*format!("{job} --buffer_compress_percentage=57% --showcmd"), "--filename=f"),
    ] {
        assert!(succeeds(true, at, arguments).contains(word), "{arguments}");
    }
    for arguments in ["--enghelp=x", "--cmdhelp=x", "--client=x", "--idle-prof=core"] {
        assert_eq!(run(true, at, arguments).status.code(), Some(2), "{arguments}");
    }
    succeeds(true, at, &format!("{job} --rw=write --buffer_compress_percentage=57%"));
    succeeds(true, at, &format!("{job} --rw=read --ioengine=mmap --direct=1"));
    let idle = succeeds(true, at, &format!("{job} --rw=read --idle-prof=system --loops=50"));
    let shown = idle.lines().skip_while(|line| *line != "CPU idleness:").nth(1);
    let percent = shown.and_then(|line| line.strip_prefix("  system: ")?.strip_suffix('%'));
    let percent: f64 = percent.unwrap_or_else(|| panic!("{idle}")).parse().unwrap();
    assert!((0.0..=100.0).contains(&percent), "{percent}");
    // The same names as fio's, without its unit of work.
    let names = |ours: bool| {
        let words = format!("{job} --rw=read --idle-prof=percpu --thread --output-format=json");
        let text = succeeds(ours, at, &words);
        let report: serde_json::Value =
            serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
        let names = report["cpu_idleness"].as_object().unwrap().keys().cloned();
        names.filter(|name| !name.starts_with("unit_")).collect::<Vec<_>>()
    };
    if fio_is_here() {
        assert_eq!(names(true), names(false));
    }
    let text = succeeds(true, at, &format!("{job} --rw=read --idle-prof=percpu"));
    assert!(text.contains("  percpu: "), "{text}");
}

#[test]
fn a_size_beyond_the_device_is_the_devices() {
    if !fio_is_here() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    fs::write(&image, vec![1u8; 1 << 20]).unwrap();
    let made = Command::new("losetup").args(["-f", "--show"]).arg(&image).output();
    let device = made.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    let device = or_skip!(device.map_err(|error| format!("losetup: {error}")));
    if device.is_empty() {
        return common::skip("no loop device: this needs root");
    }
    let bytes = |options: &str| {
        [true, false].map(|ours| {
            let words = format!(
                "--name=j --filename={device} --bs=4k --rw=read {options} --output-format=json"
            );
            let output = run(ours, directory.path(), &words);
            let read =
                output.status.success().then(|| jobs_of(&output)[0]["read"]["io_bytes"].as_u64());
            (read, String::from_utf8_lossy(&output.stderr).into_owned())
        })
    };
    let all = ["--size=2m", "--size=2m --offset=512k", "--size=2m --io_size=3m"].map(bytes);
    let freed = Command::new("losetup").args(["-d", &device]).status().unwrap();
    assert!(freed.success());
    for ([ours, theirs], size) in all.into_iter().zip([1 << 20, 512 << 10, 3 << 20]) {
        assert_eq!((ours.0, theirs.0), (Some(Some(size)), Some(Some(size))), "{}", ours.1);
    }
}

/// Kinds of jobs that a random comparison with fio found to differ.
#[test]
fn jobs_move_as_much_as_in_fio() {
    if !fio_is_here() {
        return;
    }
    for options in [
        "--rw=write --bs=8k,,4k --size=256k",
        "--rw=write --bsrange=4k-4k --bs=8k --size=256k",
        "--rw=write --bssplit=16k --bs=8k --size=256k",
        // Gaps.
        "--rw=write:8 --size=149796",
        "--rw=write:8 --size=1m --nrfiles=7",
        "--rw=write:4k --size=8m --nrfiles=10 --bs=256k",
        "--rw=read:4k --size=1m --offset=64k",
        "--rw=read:-64k --bs=3k --size=1m",
        "--rw=read:-8k --bs=6k --size=300000",
        // A file that is longer than the size.
        "--rw=read --filesize=1m --size=777777",
        "--rw=randread --filesize=1m --size=777777",
        "--rw=write --filesize=1m --size=777777",
        // All passes together are rounded up.
        "--rw=read --size=100000 --io_size=12345 --loops=3",
        "--rw=write --size=64k --io_size=50k --loops=3",
        "--rw=randread --size=64k --io_size=10k --loops=3 --norandommap",
        "--rw=read --size=192k --io_size=50k --loops=3 --nrfiles=3",
        // Each direction has its own places, and a mix of one direction none.
        "--rw=rw --nrfiles=7 --size=1m",
        "--rw=rw --filename=a:b --filesize=100000",
        "--rw=rw --nrfiles=3 --size=1m --bs=64k",
        "--rw=rw --rwmixread=100 --bs=256k --size=777777",
        "--rw=rw --rwmixread=0 --bs=256k --size=777777 --loops=3",
    ] {
        let [ours, theirs] = [true, false].map(|ours| {
            let directory = tempfile::tempdir().unwrap();
            let words = format!("--name=j --bs=4k {options} --output-format=json");
            let job = jobs_of(&run(ours, directory.path(), &words)).remove(0);
            ["total_ios", "io_bytes"].map(|what| {
                ["read", "write"].iter().map(|side| job[side][what].as_u64().unwrap()).sum::<u64>()
            })
        });
        assert_eq!(ours, theirs, "{options}");
    }
}

#[test]
fn states_are_numbered_over_all_jobs_as_in_fio() {
    if !fio_is_here() {
        return;
    }
    for ours in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let words = "--name=a --size=16k --name=b --rw=write --size=16k --verify=crc32c";
        succeeds(ours, directory.path(), words);
        let state = directory.path().join("local-b-1-verify.state");
        assert!(state.exists(), "halfpower: {ours}");
    }
}

#[test]
fn files_without_reserved_space_grow_as_in_fio() {
    if !fio_is_here() {
        return;
    }
    for options in [
        "--fallocate=none --size=100000 --bs=64k",
        "--fallocate=none --size=1m --io_size=64k",
        "--fallocate=none --size=1m --io_size=96k --nrfiles=3",
        "--fallocate=none --size=64k --rw=randwrite --verify=crc32c",
        "--fallocate=none --size=1m --number_ios=5 --ioengine=libaio --iodepth=4",
        "--create_on_open=1 --size=1m --io_size=64k",
        "--fallocate=keep --size=1m --io_size=64k",
        "--fallocate=keep --size=200000 --bs=64k --nrfiles=2",
        "--fallocate=keep --size=64k --rw=randwrite --verify=crc32c",
        "--fallocate=keep --create_on_open=1 --size=1m --io_size=64k",
        "--fallocate=keep --size=1m --number_ios=5 --ioengine=libaio --iodepth=4",
        // These have their length from the beginning.
        "--fallocate=truncate --size=1m --io_size=64k",
        "--fallocate=native --size=1m --io_size=64k",
        "--fallocate=none --size=1m --io_size=64k --overwrite=1",
        "--fallocate=keep --size=1m --io_size=64k --overwrite=1",
    ] {
        let [ours, theirs] = [true, false].map(|ours| {
            let directory = tempfile::tempdir().unwrap();
            succeeds(ours, directory.path(), &format!("--name=j --rw=write --bs=4k {options}"));
            let files = fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap());
            // `keep` reserves blocks beyond the end; a few more may hold metadata.
            let size = |file: &fs::Metadata| {
                let beyond = file.blocks() * 512 > file.len() + 16_384;
                (file.len(), options.contains("keep").then_some(beyond))
            };
            let files = files.map(|file| (file.file_name(), size(&file.metadata().unwrap())));
            let mut files: Vec<_> =
                files.filter(|(name, _)| name.to_string_lossy().starts_with("j.")).collect();
            files.sort();
            files
        });
        assert_eq!(ours, theirs, "{options}");
    }
}

#[test]
fn a_file_of_an_earlier_run_keeps_its_length() {
    if !fio_is_here() {
        return;
    }
    for ours in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        for more in ["", "--number_ios=1 --fallocate=none", "--number_ios=1 --create_on_open=1"] {
            let words = format!("--name=j --filename=f --rw=write --bs=4k --size=64k {more}");
            succeeds(ours, directory.path(), &words);
            let length = fs::metadata(directory.path().join("f")).unwrap().len();
            assert_eq!(length, 65_536, "halfpower: {ours}: {more}");
        }
    }
}

#[test]
fn data_that_were_not_read_back_are_not_verified() {
    let said = |options: &str| {
        let directory = tempfile::tempdir().unwrap();
        let words = format!("--name=j --rw=write --bs=4k --size=777777 --verify=crc32c {options}");
        let output = run(true, directory.path(), &words);
        assert!(output.status.success(), "{output:?}");
        [output.stdout, output.stderr].concat()
    };
    let warns = |options: &str| {
        String::from_utf8(said(options)).unwrap().contains("no data were read back")
    };
    assert!(warns("--time_based --runtime=1 --rate=2m"));
    assert!(!warns("") && !warns("--do_verify=0"));
    assert!(!warns("--time_based --runtime=1 --rate=2m --verify_backlog=16"));
}
