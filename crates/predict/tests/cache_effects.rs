//! The published effects on a server of 2003: a volume RAM cache with lazy writes on the IOzone write matrix and on PostMark, and a
//! partition's start on SQLIO's matrix.

use machine::{CacheState, Op};
use predict::trace::{CacheGain, Pace, Record, Replay, cache_gains, parse};
use predict::{run, workload};
use twin::{Setup, Twin};
use workload::{Pattern, Stop, Workload};

const MIB: u64 = 1 << 20;

/// MiB/s of a file of this size written once in records of this size.
fn written(machine: &str, file: u64, record: u64) -> f64 {
    let twin = Twin::from_name(machine).unwrap();
    let mut asked = workload(Op::Write, record as u32, 1);
    (asked.region_bytes, asked.stop) = (Some(file), Stop::AfterBytes(file));
    run(&twin, &twin.volume(), &asked).unwrap().bytes_per_s() / MIB as f64
}

/// The published matrix: files of 4 to 512 MiB, records of 4, 8 and 16 MiB.
fn matrix() -> impl Iterator<Item = (u64, u64)> {
    let files = (2..10).map(|power| (1 << power) * MIB);
    files.flat_map(|file| [4, 8, 16].map(|record| (file, record * MIB))).filter(|(file, record)| record <= file)
}

#[test]
fn the_iozone_write_matrix_is_seven_to_nine_times_as_fast_below_the_cache_and_falls_beyond() {
    let mut table = Vec::new();
    for (file, record) in matrix() {
        let (without, with) =
            (written("server-2003", file, record), written("server-2003,ramcache=256M", file, record));
        table.push((file / MIB, record / MIB, without, with, with / without));
    }
    assert_eq!(table.len(), 21);
    // What is left in the cache at the end is all that a long file gains.
    let long = 1 << 30;
    let (without, with) = (written("server-2003", long, 4 * MIB), written("server-2003,ramcache=256M", long, 4 * MIB));
    assert!((1.0..1.4).contains(&(with / without)), "{without} {with}");
    for &(file, record, without, with, gain) in &table {
        let place = format!(
            "{file} MiB in records of {record} MiB: {without:.1} without, {with:.1} with, {gain:.2} times\n{table:.1?}"
        );
        // Published: 21 to 35 MB/s without and 205 to 250 with, from 16 MiB on.
        assert!((20.0..35.0).contains(&without), "{place}");
        match file {
            0..=256 => assert!((7.0..=10.0).contains(&gain) && (205.0..250.0).contains(&with), "{place}"),
            _ => assert!((1.0..2.5).contains(&gain), "the cliff: {place}"),
        }
    }
}

/// The second case: the volume that the system swaps to, behind the first one on the same disk. What is put out in clusters of 64 KB and
/// fetched again page by page is served from memory while it fits.
#[test]
fn a_swap_volume_gains_while_it_fits_and_is_never_slower() {
    let swap = |machine: &str, region: u64, op: Op| {
        let twin = Twin::from_name(machine).unwrap();
        let before = twin.file(Some("data"), Some(20 << 30)).unwrap();
        let file = twin.file(Some("swap"), Some(2 << 30)).unwrap();
        let mut out = workload(Op::Write, 64 << 10, 1);
        (out.region_bytes, out.stop) = (Some(region), Stop::AfterBytes(region));
        let written = run(&twin, &file, &out).unwrap();
        let fetch = Workload {
            pattern: Pattern::Random,
            cache: CacheState::AsIs,
            stop: Stop::AfterBytes(8 * MIB),
            ..workload(Op::Read, 4096, 4)
        };
        let fetched = run(&twin, &file, &Workload { region_bytes: Some(region), ..fetch }).unwrap();
        drop(before);
        if op == Op::Write { written.bytes_per_s() } else { fetched.bytes_per_s() }
    };
    let gain = |region: u64, op: Op| swap("server-2003,ramcache=256M", region, op) / swap("server-2003", region, op);
    for region in [16 * MIB, 64 * MIB, 128 * MIB] {
        let out = gain(region, Op::Write);
        assert!(out >= 7.0, "{} MiB out: {out}", region / MIB);
        let back = gain(region, Op::Read);
        assert!(back > 10.0, "{} MiB back: {back}", region / MIB);
    }
    for region in [1 << 30, 2 << 30] {
        // What the cache holds costs nothing, and the rest as much as without it. At twice its size that is 2: published are 1.2 to 1.6.
        let rest = 1.0 - (256 * MIB) as f64 / region as f64;
        for op in [Op::Write, Op::Read] {
            let gain = gain(region, op);
            assert!((0.99..1.05 / rest).contains(&gain), "{} MiB, {op:?}: {gain}", region / MIB);
        }
    }
}

/// The trace as it was recorded.
fn postmark() -> Vec<Record> {
    let mut text = String::new();
    for (index, line) in include_str!("data/postmark.txt").lines().filter(|line| !line.starts_with('#')).enumerate() {
        let (op, rest) = line.split_at(1);
        let (block, blocks) = rest.split_once(' ').unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap() * 4096;
        text += &format!("{index},{op},{},{}\n", number(block), number(blocks));
    }
    parse(&text).unwrap()
}

#[test]
fn postmark_gains_about_two_times() {
    let records = postmark();
    assert_eq!(records.len(), 18_052);
    let setup = Setup::parse("server-2003").unwrap();
    let run = |depth: u32| -> (Replay, Vec<CacheGain>) {
        cache_gains(&setup, &records, Pace::Outstanding(depth), &[64 * MIB, 256 * MIB, 512 * MIB]).unwrap()
    };
    for depth in [1, 4, 32] {
        let (base, gains) = run(depth);
        assert_eq!(base.requests, 18_052);
        let [small, published, large] = &gains[..] else { panic!("{gains:?}") };
        // 386 s became 196 s.
        assert!((1.5..2.5).contains(&published.write_back), "depth {depth}: {gains:?}");
        assert!(
            small.write_back < published.write_back && published.write_back < large.write_back,
            "depth {depth}: {gains:?}"
        );
        // Little is read again: what pays is that writes wait and go out in order.
        assert!(gains.iter().all(|gain| (0.99..1.5).contains(&gain.write_through)), "depth {depth}: {gains:?}");
    }
    assert_eq!(run(4), run(4), "the same on every run");
}

/// What a partition gains, in percent, that begins with a chunk and not at sector 63: SQLIO's blocks of 8 KB in one file, four
/// outstanding for each of so many threads, which go through the file together: the published rates hold up to 256 threads. The published
/// tables are of a RAID 10 with stripes of 64 KB, which are 32 KB on each of its two pairs, and of a file of 80 GB, where these disks hold 70.
fn alignment_gain(op: Op, pattern: Pattern, threads: u32) -> f64 {
    let rate = |start: &str| {
        let twin = Twin::from_name(&format!("server-2003,disks=4,raid=10,stripe=32k,start={start}")).unwrap();
        let file = twin.file(None, Some(64 << 30)).unwrap();
        let asked = workload(op, 8192, 4 * threads);
        let asked = Workload { pattern, region_bytes: None, stop: Stop::AfterBytes(24 * MIB), ..asked };
        run(&twin, &file, &asked).unwrap().iops()
    };
    (rate("64k") / rate("32256") - 1.0) * 100.0
}

#[test]
fn random_blocks_gain_more_from_an_aligned_partition_than_sequential_ones() {
    let mean = |pattern: Pattern| {
        let gains: Vec<f64> = [Op::Read, Op::Write]
            .into_iter()
            .flat_map(|op| [1, 4, 16, 64].map(|threads| alignment_gain(op, pattern, threads)))
            .collect();
        gains.iter().sum::<f64>() / gains.len() as f64
    };
    let (random, sequential) = (mean(Pattern::Random), mean(Pattern::Seq));
    let said = format!("random {random:.1} %, sequential {sequential:.1} %");
    assert!(random > 1.5 * sequential && sequential > 0.0, "{said}");
    // Published: 19.6 % of random and 6.9 % of sequential blocks, 13.2 % on average.
    assert!((random - 19.6).abs() < 5.0, "{said}");
    assert!((sequential - 6.9).abs() < 5.0, "{said}");
    assert!(((random + sequential) / 2.0 - 13.2).abs() < 5.0, "{said}");
}
