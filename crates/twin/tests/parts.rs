//! Several files and parts in one run: what is shared and what is private.

mod plain;

use machine::{
    Access, Allocation, Buffering, CacheState, Engine, Error, Hint, Machine, OnFailure, Op, Part,
    PartUsage, Result, RunOptions, RunUsage, Scheduling, Stability, Start, TargetSpec,
};
use plain::{Plain, direct, open};
use twin::{Target, Twin};

/// The limit of the preset `cloud`.
const IOPS: f64 = 3000.0;

fn buffered() -> Access {
    Access { buffering: Buffering::Buffered, hint: Hint::Random, ..direct() }
}

fn file(twin: &Twin, name: &str, size: u64) -> Result<Target> {
    twin.open(&TargetSpec { places: vec![name.into()], size: Some(size), ..TargetSpec::default() })
}

fn run(
    twin: &Twin,
    parts: &mut [(&Target, Access, Plain)],
    on_failure: OnFailure,
) -> Result<RunUsage> {
    let mut parts: Vec<Part<'_, Target, Plain>> = parts
        .iter_mut()
        .map(|(target, access, source)| Part::new(*target, access, std::slice::from_mut(source)))
        .collect();
    twin.run(&mut parts, RunOptions { on_failure, ..RunOptions::default() })
}

fn parts(twin: &Twin, parts: &mut [(&Target, Access, Plain)]) -> Vec<PartUsage> {
    run(twin, parts, OnFailure::EndRun)
        .unwrap()
        .parts
        .into_iter()
        .map(|part| part.unwrap())
        .collect()
}

fn seconds(part: &PartUsage) -> f64 {
    part.elapsed_ns as f64 * 1e-9
}

fn near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.02, "{value}, expected {expected}");
}

#[test]
fn two_files_share_one_disk_but_not_two() {
    let twin = Twin::from_name("cloud,disks=2").unwrap();
    let (mut a, mut b) = (
        file(&twin, "twin:cloud#a", 1 << 30).unwrap(),
        file(&twin, "twin:cloud#b", 1 << 30).unwrap(),
    );
    let read = || Plain::new(Op::Read, 4096, 6000, 64);
    twin.restripe(&mut a, &[0], 65536).unwrap();
    for (disk, share) in [(1, 1.0), (0, 0.5)] {
        twin.restripe(&mut b, &[disk], 65536).unwrap();
        let used = parts(&twin, &mut [(&a, direct(), read()), (&b, direct(), read())]);
        used.iter().for_each(|part| near(6000.0 / seconds(part), share * IOPS));
        // Each part counts only its own disk; the other's requests appear only on a shared disk.
        let reads: Vec<u64> = used.iter().map(|part| part.device.unwrap().reads).collect();
        assert_eq!(reads, if disk == 1 { [6000, 6000] } else { [12_000, 12_000] });
    }
    // A stripe over both counts both.
    let volume = twin.volume();
    near(
        12_000.0
            / seconds(
                &parts(&twin, &mut [(&volume, direct(), Plain::new(Op::Read, 4096, 12_000, 128))])
                    [0],
            ),
        6000.0,
    );
}

#[test]
fn a_direct_and_a_buffered_part_share_one_disks_rate() {
    let twin = Twin::from_name("cloud").unwrap();
    let (a, b) = (
        file(&twin, "twin:cloud#a", 64 << 20).unwrap(),
        file(&twin, "twin:cloud#b", 64 << 20).unwrap(),
    );
    let read = || Plain::new(Op::Read, 4096, 6000, 16);
    let used = parts(&twin, &mut [(&a, direct(), read()), (&b, buffered(), read())]);
    used.iter().for_each(|part| near(6000.0 / seconds(part), IOPS / 2.0));
    // The first file is cached; the second is not.
    let warm = Access { cache: CacheState::AsIs, ..buffered() };
    let again =
        run(&twin, &mut [(&a, warm.clone(), read()), (&b, warm, read())], OnFailure::EndRun)
            .unwrap();
    assert_eq!(again.block_bytes, Some((6000 * 4096, 0)));
}

#[test]
fn a_blocking_and_an_asynchronous_part_run_side_by_side() {
    let twin = Twin::from_name("nvme").unwrap();
    let (a, b) =
        (file(&twin, "twin:nvme", 1 << 30).unwrap(), file(&twin, "twin:nvme", 1 << 30).unwrap());
    let mut both = [
        (&a, Access { engine: Engine::Sync, ..direct() }, Plain::new(Op::Read, 4096, 500, 8)),
        (&b, direct(), Plain::new(Op::Read, 4096, 4000, 8)),
    ];
    let used = parts(&twin, &mut both);
    assert_eq!((both[0].2.max, both[1].2.max), (1, 8));
    // Neither limits the other. Eight requests come from one flash page at once, and their thread
    // handles them in turn: 8 x 3 us on top of one 83 us read.
    let ratio = used[1].elapsed_ns as f64 / used[0].elapsed_ns as f64;
    assert!((ratio / (1.0 + 7.0 * 3.04 / 83.0) - 1.0).abs() < 0.06, "{ratio}");
    assert!(used.iter().all(|part| part.device.unwrap().reads == 4500));
}

#[test]
fn a_source_names_the_targets_of_its_part() {
    let twin = Twin::from_name("cloud,disks=2").unwrap();
    let (mut a, mut b) = (
        file(&twin, "twin:cloud#a", 1 << 30).unwrap(),
        file(&twin, "twin:cloud#b", 1 << 30).unwrap(),
    );
    twin.restripe(&mut a, &[0], 65536).unwrap();
    twin.restripe(&mut b, &[1], 65536).unwrap();
    let mut source = [Plain { targets: 2, ..Plain::new(Op::Read, 4096, 12_000, 128) }];
    let targets = |targets: Vec<_>, sources| Part {
        targets,
        access: direct(),
        buffering: Vec::new(),
        sources,
        scheduling: Scheduling::default(),
    };
    let usage = twin.run(&mut [targets(vec![&a, &b], &mut source)], RunOptions::default()).unwrap();
    near(12_000.0 / seconds(usage.parts[0].as_ref().unwrap()), 2.0 * IOPS);
    let mut wrong = [Plain { targets: 3, ..Plain::new(Op::Read, 4096, 9, 1) }];
    let error = twin
        .run(&mut [targets(vec![&a, &b], &mut wrong)], RunOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("target 2") && error.contains("from 0"), "{error}");
}

#[test]
fn each_file_is_extended_by_itself() {
    let twin = Twin::from_name("cloud").unwrap();
    let (a, b) = (
        file(&twin, "twin:cloud#a", 64 << 20).unwrap(),
        file(&twin, "twin:cloud#b", 64 << 20).unwrap(),
    );
    let extend = Access { allocation: Allocation::Extend, ..direct() };
    let write = || Plain::new(Op::Write, 4096, 500, 8);
    let alone = parts(&twin, &mut [(&a, extend.clone(), write())])[0].elapsed_ns;
    let used = parts(&twin, &mut [(&a, extend.clone(), write()), (&b, extend, write())]);
    // One write at a time in each, both files at once: a write takes 0.7 ms plus 4096 bytes at 800
    // MB/s, plus CPU time.
    used.iter().for_each(|part| near(part.elapsed_ns as f64, alone as f64));
    near(alone as f64 / 500.0, 700_000.0 + 4096.0 / 0.8 + 3000.0);
    let used = parts(&twin, &mut [(&b, direct(), write()), (&a, direct(), write())]);
    assert!(used.iter().all(|part| part.elapsed_ns < alone), "{used:?}");
}

#[test]
fn each_file_has_its_own_cache_state() {
    let twin = Twin::from_name("nvme").unwrap();
    let (a, b) = (
        file(&twin, "twin:nvme#a", 4 << 20).unwrap(),
        file(&twin, "twin:nvme#b", 4 << 20).unwrap(),
    );
    let same = file(&twin, "twin:nvme#a", 4 << 20).unwrap();
    let bytes = |target: &Target, cache| {
        let mut source = [Plain::new(Op::Read, 4096, 1024, 1)];
        let usage = twin.run_one(target, &Access { cache, ..buffered() }, &mut source).unwrap();
        usage.block_bytes.unwrap().0
    };
    assert_eq!(bytes(&a, CacheState::Cold), 4 << 20);
    assert_eq!(bytes(&b, CacheState::Cold), 4 << 20);
    assert_eq!(bytes(&same, CacheState::AsIs), 0, "two targets of one name are one file");
    assert_eq!(
        (bytes(&b, CacheState::AsIs), bytes(&b, CacheState::Cold), bytes(&b, CacheState::AsIs)),
        (0, 4 << 20, 0)
    );
    assert_eq!(bytes(&a, CacheState::AsIs), 0);
    // A removed file leaves the caches.
    drop((a, same));
    let again = file(&twin, "twin:nvme#a", 4 << 20).unwrap();
    assert_eq!(bytes(&again, CacheState::AsIs), 4 << 20);
}

#[test]
fn files_are_allocated_until_the_volume_is_full() {
    let (twin, volume) = open("gateway-1997,disks=2");
    let size = twin.target_facts(&volume).size_bytes;
    let half = size / 2 / 131_072 * 131_072;
    let a = file(&twin, "twin:gateway-1997,disks=2#a", half).unwrap();
    assert_eq!(twin.target_facts(&a).name, "twin:gateway-1997,disks=2#a");
    let b = file(&twin, "twin:gateway-1997,disks=2#b", half).unwrap();
    let full = file(&twin, "twin:gateway-1997,disks=2#c", half).err().unwrap();
    assert!(full.is_usage() && full.to_string().contains("smaller size"), "{full}");
    let other = file(&twin, "twin:gateway-1997,disks=2#a", 1 << 20).err().unwrap();
    assert!(other.is_usage() && other.to_string().contains("same size"), "{other}");
    // The outer file is faster: its tracks are longer.
    let read = || Plain::new(Op::Read, 65536, 400, 4);
    let time = |target: &Target| parts(&twin, &mut [(target, direct(), read())])[0].elapsed_ns;
    assert!(time(&a) < time(&b) && time(&a) == time(&volume));
    drop(a);
    let c = file(&twin, "twin:gateway-1997,disks=2#c", half).unwrap();
    assert!(time(&c) < time(&b));
    // The default size is a quarter of the free space.
    drop(b);
    let spec =
        TargetSpec { places: vec!["twin:gateway-1997,disks=2#d".into()], ..TargetSpec::default() };
    let d = twin.target_facts(&twin.open(&spec).unwrap()).size_bytes;
    near(d as f64, half as f64 / 4.0);
}

#[test]
fn a_sync_waits_only_for_its_own_file() {
    let twin = Twin::from_name("cloud").unwrap();
    let (a, b) = (
        file(&twin, "twin:cloud#a", 1 << 30).unwrap(),
        file(&twin, "twin:cloud#b", 1 << 30).unwrap(),
    );
    let syncs = Plain { sync: Some((1, Stability::Data)), ..Plain::new(Op::Write, 4096, 20, 1) };
    // The other part writes a hundred times as much, and runs longer than all syncs take.
    let writes = Plain::new(Op::Write, 65536, 4000, 1);
    let mut both =
        [(&a, buffered(), syncs), (&b, Access { sync_at_end: true, ..buffered() }, writes)];
    let used = parts(&twin, &mut both);
    assert_eq!(both[0].2.syncs.len(), 20);
    assert!(used[0].sync_ns.is_none() && used[1].sync_ns.is_some());
    let all = |part: &PartUsage| part.elapsed_ns + part.sync_ns.unwrap_or(0);
    assert!(2 * all(&used[0]) < all(&used[1]), "{used:?}");
    assert_eq!(used[1].device.unwrap().write_bytes, 4000 * 65536 + 20 * 4096);
}

#[test]
fn a_part_that_fails_ends_the_run_or_itself() {
    let twin = Twin::from_name("nvme").unwrap();
    let (a, b) = (
        file(&twin, "twin:nvme#a", 1 << 20).unwrap(),
        file(&twin, "twin:nvme#b", 1 << 20).unwrap(),
    );
    let good = || Plain::new(Op::Read, 4096, 100, 4);
    let off = || Plain { start: 100, ..Plain::new(Op::Read, 4096, 100, 4) };
    let mapped = || Access { engine: Engine::Mmap, ..direct() };
    for (access, source) in [(direct(), off()), (mapped(), good())] {
        let mut both = [(&a, access.clone(), source.clone()), (&b, direct(), good())];
        assert!(matches!(run(&twin, &mut both, OnFailure::EndRun), Err(Error::Refused { .. })));
        let mut both = [(&a, access, source), (&b, direct(), good())];
        let usage = run(&twin, &mut both, OnFailure::EndPart).unwrap();
        assert!(matches!(usage.parts[0], Err(Error::Refused { .. })) && usage.parts[1].is_ok());
        assert_eq!(both[1].2.done, 100);
    }
    let other = Twin::from_name("nvme").unwrap();
    let error = other.run_one(&a, &direct(), &mut [good()]).unwrap_err();
    assert!(error.to_string().contains("another machine"), "{error}");
}

#[test]
fn a_run_starts_at_the_requested_time() {
    let (twin, volume) = open("nvme");
    let mut source = [Plain::new(Op::Read, 4096, 4, 1)];
    let start = |at| RunOptions { start: Start::At(at), ..RunOptions::default() };
    let mut part =
        |at| twin.run(&mut [Part::new(&volume, &direct(), &mut source)], start(at)).unwrap().began;
    assert_eq!(part(5_000_000_000), 5_000_000_000);
    assert!(part(1) > 5_000_000_000, "a time that has passed is now");
}
