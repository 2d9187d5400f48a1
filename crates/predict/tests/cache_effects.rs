//! Published effects on a 2003 server: a write-back RAM cache on the IOzone write matrix and on
//! PostMark, and partition alignment on SQLIO's matrix.

use machine::{CacheState, Op};
use predict::trace::{CacheGain, Pace, Record, Replay, cache_gains, parse};
use predict::validate::alignment::{gains, mean};
use predict::{run, workload};
use twin::{Setup, Twin};
use workload::{OpKind, Pattern, Stop, Workload};

const MIB: u64 = 1 << 20;

/// Returns MiB/s.
fn written(machine: &str, file: u64, record: u64) -> f64 {
    let twin = Twin::from_name(machine).unwrap();
    let mut asked = workload(Op::Write, record as u32, 1);
    (asked.region_bytes, asked.stop) = (Some(file), Stop::AfterBytes(file));
    run(&twin, &twin.volume(), &asked).unwrap().bytes_per_s() / MIB as f64
}

/// Returns the published matrix: files of 4 to 512 MiB, records of 4, 8 and 16 MiB.
fn matrix() -> impl Iterator<Item = (u64, u64)> {
    let files = (2..10).map(|power| (1 << power) * MIB);
    files
        .flat_map(|file| [4, 8, 16].map(|record| (file, record * MIB)))
        .filter(|(file, record)| record <= file)
}

#[test]
fn the_iozone_write_matrix_is_seven_to_nine_times_as_fast_below_the_cache_and_falls_beyond() {
    let mut table = Vec::new();
    for (file, record) in matrix() {
        let (without, with) = (
            written("server-2003", file, record),
            written("server-2003,ramcache=256M", file, record),
        );
        table.push((file / MIB, record / MIB, without, with, with / without));
    }
    assert_eq!(table.len(), 21);
    // A long file gains only the data left in the cache at the end.
    let long = 1 << 30;
    let (without, with) = (
        written("server-2003", long, 4 * MIB),
        written("server-2003,ramcache=256M", long, 4 * MIB),
    );
    assert!((1.0..1.4).contains(&(with / without)), "{without} {with}");
    for &(file, record, without, with, gain) in &table {
        let place = format!(
            "{file} MiB in records of {record} MiB: {without:.1} without, {with:.1} with, {gain:.2} times\n{table:.1?}"
        );
        // Published: 21 to 35 MB/s without and 205 to 250 with, from 16 MiB on.
        assert!((20.0..35.0).contains(&without), "{place}");
        match file {
            0..=256 => {
                assert!((7.0..=10.0).contains(&gain) && (205.0..250.0).contains(&with), "{place}")
            }
            _ => assert!((1.0..2.5).contains(&gain), "the cliff: {place}"),
        }
    }
}

/// The swap volume follows the first one on the same disk: pages go out in 64 KB clusters, come
/// back one by one, and memory serves them while they fit.
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
    let gain = |region: u64, op: Op| {
        swap("server-2003,ramcache=256M", region, op) / swap("server-2003", region, op)
    };
    for region in [16 * MIB, 64 * MIB, 128 * MIB] {
        let out = gain(region, Op::Write);
        assert!(out >= 7.0, "{} MiB out: {out}", region / MIB);
        let back = gain(region, Op::Read);
        assert!(back > 10.0, "{} MiB back: {back}", region / MIB);
    }
    for region in [1 << 30, 2 << 30] {
        // Cached data cost nothing, and the rest costs as much as without a cache. At twice the
        // cache size the gain is 2; published are 1.2 to 1.6.
        let rest = 1.0 - (256 * MIB) as f64 / region as f64;
        for op in [Op::Write, Op::Read] {
            let gain = gain(region, op);
            assert!((0.99..1.05 / rest).contains(&gain), "{} MiB, {op:?}: {gain}", region / MIB);
        }
    }
}

fn postmark() -> Vec<Record> {
    let mut text = String::new();
    for (index, line) in
        include_str!("data/postmark.txt").lines().filter(|line| !line.starts_with('#')).enumerate()
    {
        let (op, rest) = line.split_at(1);
        let (block, blocks) = rest.split_once(' ').unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap() * 4096;
        text += &format!("{index},{op},{},{}\n", number(block), number(blocks));
    }
    parse(&text).unwrap()
}

/// The published gain, on the published machine, is a bar of `twin validate`.
#[test]
fn the_blocks_of_postmark_gain_with_the_size_of_the_cache() {
    let records = postmark();
    assert_eq!(records.len(), 18_052);
    let setup = Setup::parse("server-2003").unwrap();
    let run = |depth: u32| -> (Replay, Vec<CacheGain>) {
        cache_gains(&setup, &records, Pace::Outstanding(depth), &[64 * MIB, 256 * MIB, 512 * MIB])
            .unwrap()
    };
    for depth in [1, 4, 32] {
        let (base, gains) = run(depth);
        assert_eq!(base.requests, 18_052);
        let [small, published, large] = &gains[..] else { panic!("{gains:?}") };
        // A burst of lazy writes each second leaves little to merge, and reads wait for it.
        assert!((1.2..2.0).contains(&published.write_back), "depth {depth}: {gains:?}");
        assert!(
            small.write_back < published.write_back && published.write_back < large.write_back,
            "depth {depth}: {gains:?}"
        );
        // Little is re-read: the gain comes from writes in address order.
        assert!(
            gains.iter().all(|gain| (0.99..1.5).contains(&gain.write_through)),
            "depth {depth}: {gains:?}"
        );
    }
    assert_eq!(run(4), run(4), "the same on every run");
}

#[test]
fn random_blocks_gain_more_from_an_aligned_partition_than_sequential_ones() {
    let gains = gains().unwrap();
    assert_eq!(gains.len(), 4 * 9);
    let ((random, random_here), (sequential, sequential_here)) =
        (mean(&gains, |gain| gain.random), mean(&gains, |gain| !gain.random));
    let by_op =
        |op: OpKind, random: bool| mean(&gains, |gain| (gain.op, gain.random) == (op, random));
    let each = [
        (OpKind::Read, true),
        (OpKind::Read, false),
        (OpKind::Write, true),
        (OpKind::Write, false),
    ]
    .map(|(op, random)| by_op(op, random));
    let said = format!("random {random_here:.1} %, sequential {sequential_here:.1} %, {each:.1?}");
    println!("{said}");
    assert!(random_here > 1.5 * sequential_here && sequential_here > 0.0, "{said}");
    // Published: 19.6 % of random and 6.9 % of sequential blocks, 13.2 % on average.
    assert!((random - 19.6).abs() < 0.1 && (sequential - 6.9).abs() < 0.1);
    assert!((random_here - random).abs() < 5.0, "{said}");
    assert!((sequential_here - sequential).abs() < 5.0, "{said}");
    assert!(((random_here + sequential_here) / 2.0 - 13.2).abs() < 5.0, "{said}");
    assert!(
        each.iter().all(|(published, here)| (published - here).abs() < 5.0),
        "reads and writes apart: {said}"
    );
}
