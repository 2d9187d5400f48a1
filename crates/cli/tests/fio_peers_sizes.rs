//! Random requests of several sizes, compared with Debian's fio: offsets, and which are verified.

mod common;

use common::fio::{fio_is_here, jobs_of, run};
use std::collections::BTreeMap;
use std::fs;

struct Done {
    /// The offset and length of each.
    writes: Vec<(u64, u64)>,
    /// The numbers of reads and writes, and their bytes.
    counts: [u64; 2],
    bytes: [u64; 2],
    error: i64,
    said: String,
}

fn done(ours: bool, options: &str) -> Done {
    let directory = tempfile::tempdir().unwrap();
    let words =
        format!("--name=j --filename=f --size=1m --write_iolog=log {options} --output-format=json");
    let output = run(ours, directory.path(), &words);
    let job = jobs_of(&output).remove(0);
    let log = fs::read_to_string(directory.path().join("log")).unwrap();
    let number = |word: Option<&str>| word.unwrap().parse::<u64>().unwrap();
    let write = |line: &str| {
        let mut words = line.split(' ').skip(2);
        (words.next() == Some("write")).then(|| (number(words.next()), number(words.next())))
    };
    let figure = |side: &str, name: &str| job[side][name].as_u64().unwrap();
    Done {
        writes: log.lines().filter_map(write).collect(),
        counts: ["read", "write"].map(|side| figure(side, "total_ios")),
        bytes: ["read", "write"].map(|side| figure(side, "io_bytes")),
        error: job["error"].as_i64().unwrap(),
        said: format!("halfpower: {ours}: {options}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Returns the number and bytes of the remaining writes if each removes all older ones that it
/// overlaps.
fn left(writes: &[(u64, u64)]) -> [u64; 2] {
    let mut kept: BTreeMap<u64, u64> = BTreeMap::new();
    for &(offset, len) in writes {
        kept.retain(|&at, long| at + *long <= offset || offset + len <= at);
        kept.insert(offset, len);
    }
    [kept.len() as u64, kept.values().sum()]
}

#[test]
fn with_a_random_map_every_byte_is_written_once() {
    if !fio_is_here() {
        return;
    }
    for (options, bytes) in [
        ("--rw=randwrite --bsrange=4k-16k", 1 << 20),
        ("--rw=randwrite --bssplit=4k/50:16k/50 --verify=crc32c", 1 << 20),
        ("--rw=randwrite --bsrange=3k-15k --verify=md5", 1_047_552),
        ("--rw=randwrite --bsrange=4k-16k --size=1026k --ioengine=io_uring --iodepth=8", 1 << 20),
        ("--rw=randwrite --bsrange=4k-16k --size=1000k --offset=24k --verify=md5", 1_024_000),
    ] {
        for ours in [true, false] {
            let Done { mut writes, counts, bytes: moved, error, said } = done(ours, options);
            let verified = options.contains("verify");
            assert_eq!((error, moved), (0, [if verified { bytes } else { 0 }, bytes]), "{said}");
            assert_eq!(counts[1], writes.len() as u64, "{said}");
            assert_eq!(counts[0], if verified { counts[1] } else { 0 }, "{said}");
            writes.sort_unstable();
            let follows = |pair: &[(u64, u64)]| pair[0].0 + pair[0].1 == pair[1].0;
            assert!(writes.windows(2).all(follows), "{said}: {writes:?}");
        }
    }
}

#[test]
fn only_writes_that_were_not_overwritten_are_verified() {
    if !fio_is_here() {
        return;
    }
    for options in [
        "--rw=randwrite --bsrange=4k-16k --norandommap --verify=crc32c",
        "--rw=randwrite --bs=16k --blockalign=4k --verify=md5",
        "--rw=randwrite --bsrange=4k-16k --blockalign=8k --verify=crc32c",
        "--rw=randwrite --bssplit=4k/50:16k/50 --random_distribution=zipf:1.1 --verify=md5",
        "--rw=randwrite --bsrange=4k-16k --norandommap --loops=3 --verify=md5",
        "--rw=randwrite --bs=4k --norandommap --loops=3 --verify=md5",
        // Without a map, passes do not end: io_size does.
        "--rw=randwrite --bs=4k --norandommap --io_size=2m --verify=md5",
        "--rw=randwrite --bs=4k --random_distribution=zipf:1.2 --io_size=2m --verify=md5 --ioengine=libaio --iodepth=8",
    ] {
        for ours in [true, false] {
            let Done { writes, counts, bytes, error, said } = done(ours, options);
            assert_eq!((error, [counts[0], bytes[0]]), (0, left(&writes)), "{said}");
            assert_eq!(counts[1], writes.len() as u64, "{said}");
            assert!(counts[0] < counts[1] && bytes[1] >= 1 << 20, "{said}: {counts:?}");
        }
    }
}

#[test]
fn with_a_random_map_each_pass_is_verified() {
    if !fio_is_here() {
        return;
    }
    for options in [
        "--rw=randwrite --loops=2",
        "--rw=randwrite --io_size=3m",
        "--rw=write --loops=2",
        "--rw=write --io_size=3m",
        "--rw=write --loops=2 --ioengine=libaio --iodepth=4",
    ] {
        for ours in [true, false] {
            let options = format!("--bsrange=4k-16k --verify=md5 {options}");
            let Done { counts, bytes, error, said, .. } = done(ours, &options);
            assert_eq!((error, bytes, counts[0]), (0, [2 << 20; 2], counts[1]), "{said}");
        }
    }
}

#[test]
fn with_a_queueing_engine_each_pass_is_verified() {
    if !fio_is_here() {
        return;
    }
    let options = "--rw=randwrite --bsrange=4k-16k --norandommap --loops=3 --verify=md5 --ioengine=libaio --iodepth=4 --direct=1";
    for ours in [true, false] {
        let Done { writes, counts, bytes, error, said } = done(ours, options);
        let (mut passed, mut passes) = (0, vec![Vec::new()]);
        for write in writes {
            if passed >= 1 << 20 {
                passes.push(Vec::new());
                passed = 0;
            }
            passed += write.1;
            passes.last_mut().unwrap().push(write);
        }
        assert_eq!((error, passes.len()), (0, 3), "{said}");
        let kept = passes
            .iter()
            .map(|pass| left(pass))
            .fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
        assert_eq!([counts[0], bytes[0]], kept, "{said}");
    }
}

#[test]
fn unaligned_sizes_are_any_number_of_bytes() {
    if !fio_is_here() {
        return;
    }
    let (min, max) = (4096, 64 << 10);
    for options in [
        "--rw=write",
        "--rw=write --verify=md5",
        "--rw=randwrite",
        "--rw=randwrite --verify=sha1",
        "--rw=randwrite --norandommap",
        "--rw=randwrite --norandommap --verify=crc32c",
    ] {
        for ours in [true, false] {
            let given = format!("{options} --bsrange=4k-64k --bs_unaligned");
            let Done { writes, counts, bytes, error, said } = done(ours, &given);
            assert_eq!((error, counts[1]), (0, writes.len() as u64), "{said}");
            assert!(writes.iter().all(|(_, len)| (min..=max).contains(len)), "{said}: {writes:?}");
            // Requests that shrink to what the map has free are multiples of the minimum.
            let odd = writes.iter().filter(|(_, len)| len % min != 0).count();
            assert!(odd * 8 > writes.len(), "{said}: {odd} of {}", writes.len());
            // fio leaves out what has no room for the minimum at the end of a file, and the map
            // counts whole blocks of the minimum.
            let missing = if options.contains("rand") { min * counts[1] } else { min };
            let all = (1 << 20) - missing..=(1 << 20) + max;
            assert!(all.contains(&bytes[1]), "{said}: {bytes:?}");
            if options.contains("rand") {
                assert!(writes.iter().all(|(offset, _)| offset % min == 0), "{said}");
            } else {
                let follows = |pair: &[(u64, u64)]| pair[0].0 + pair[0].1 == pair[1].0;
                assert!(writes.windows(2).all(follows), "{said}: {writes:?}");
            }
            if options.contains("verify") {
                assert_eq!([counts[0], bytes[0]], left(&writes), "{said}");
            }
        }
    }
}

#[test]
fn a_limit_of_bytes_cuts_no_request() {
    if !fio_is_here() {
        return;
    }
    for options in ["--rw=write", "--rw=randwrite", "--rw=randwrite --norandommap"] {
        for ours in [true, false] {
            let options = format!("{options} --bsrange=10k-20k --bs_unaligned=1 --io_size=300k");
            let Done { writes, bytes, said, .. } = done(ours, &options);
            let last = writes.last().unwrap().1;
            assert!(writes.iter().all(|(_, len)| *len >= 10 << 10), "{said}: {writes:?}");
            assert!((0..last).contains(&(bytes[1] - (300 << 10))), "{said}: {bytes:?}, {last}");
        }
    }
}

#[test]
fn requests_of_several_sizes_leave_out_bytes() {
    if !fio_is_here() {
        return;
    }
    for ours in [true, false] {
        let Done { writes, said, .. } = done(ours, "--rw=write:8k --bsrange=4k-16k");
        let gaps = writes.windows(2).map(|pair| pair[1].0.checked_sub(pair[0].0 + pair[0].1));
        // From the end of the file they begin again.
        let all: Vec<Option<u64>> = gaps.collect();
        assert!(all.iter().all(|gap| gap.is_none_or(|gap| gap == 8192)), "{said}: {all:?}");
        assert!(all.iter().filter(|gap| gap.is_some()).count() > 20, "{said}: {all:?}");
    }
}

#[test]
fn a_number_of_requests_of_several_sizes_is_a_limit() {
    if !fio_is_here() {
        return;
    }
    for options in [
        "--rw=write",
        "--rw=randwrite --verify=md5",
        "--rw=randwrite --ioengine=libaio --iodepth=4",
    ] {
        for ours in [true, false] {
            let options = format!("{options} --bsrange=4k-16k --number_ios=20");
            let Done { counts, error, said, .. } = done(ours, &options);
            assert_eq!((error, counts[1]), (0, 20), "{said}");
        }
    }
}

/// Writes with one command, and verifies with `verify_only` in the next.
#[test]
fn another_command_verifies_writes_of_several_sizes() {
    if !fio_is_here() {
        return;
    }
    for (options, mix) in [
        ("--rw=randwrite --bsrange=4k-16k --norandommap", false),
        ("--rw=randwrite --bs=16k --blockalign=4k", false),
        ("--rw=randwrite --bssplit=4k/50:16k/50", false),
        ("--rw=write --bsrange=4k-16k --nrfiles=3", false),
        ("--rw=write --bsrange=4k-16k --loops=2", false),
        ("--rw=write --bsrange=4k-16k --io_size=1700k", false),
        ("--rw=write --bs=4k,8k", false),
        ("--rw=randrw --bsrange=4k-16k --norandommap", true),
        ("--rw=randwrite --percentage_random=40 --bs=4k --nrfiles=2", false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let words = |more: &str| {
            format!("--name=j --size=1m --verify=md5 {options} {more} --output-format=json")
        };
        run(true, directory.path(), &words("--do_verify=0 --write_iolog=log"));
        let log = fs::read_to_string(directory.path().join("log")).unwrap();
        let number = |word: &str| word.parse::<u64>().unwrap();
        let mut written: Vec<(String, u64, u64)> = Vec::new();
        for line in log.lines() {
            if let [.., name, "write", offset, len] = line.split(' ').collect::<Vec<_>>()[..] {
                let (offset, len) = (number(offset), number(len));
                written.retain(|(other, at, long)| {
                    other != name || at + long <= offset || offset + len <= *at
                });
                written.push((name.into(), offset, len));
            }
        }
        let output = run(true, directory.path(), &words("--verify_only"));
        let job = jobs_of(&output).remove(0);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(job["error"], 0, "{options}: {said}");
        // Places of one size that are written again are read as often.
        let read = job["read"]["io_bytes"].as_u64().unwrap();
        let left: u64 = written.iter().map(|(_, _, len)| len).sum();
        let again = options.contains("percentage");
        assert!(read == left || (again && read > left), "{options}: {read}, {left}: {said}");
        assert!(mix || read > 300 << 10, "{options}: {read}");
        // A change is seen.
        let (name, offset, _) = &written[written.len() / 2];
        let file = fs::OpenOptions::new().write(true).open(directory.path().join(name)).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 64], offset + 100).unwrap();
        let output = run(true, directory.path(), &words("--verify_only"));
        assert_eq!(jobs_of(&output).remove(0)["error"], 84, "{options}");
        assert!(directory.path().join(name).exists(), "{options}: a file with wrong data stays");
    }
}
