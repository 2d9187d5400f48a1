//! Every kind of access is either performed or refused with a reason and a hint.

mod plain;

use machine::{
    Access, Allocation, Buffering, CacheState, Engine, Error, Hint, Machine, Op, Part, RunOptions,
    Stability, TargetSpec,
};
use plain::{Plain, direct, open, run};
use twin::Twin;

fn refused(access: &Access, source: Plain) -> String {
    let (twin, volume) = open("gateway-1997");
    let error = twin.run_one(&volume, access, &mut [source]).unwrap_err();
    assert!(error.is_usage(), "{error}");
    // The target stays usable.
    twin.run_one(&volume, &direct(), &mut [Plain::new(Op::Read, 4096, 4, 1)]).unwrap();
    error.to_string()
}

#[test]
fn unsupported_access_is_refused_with_a_hint() {
    let plain = Plain::new(Op::Read, 4096, 8, 1);
    let said = refused(&Access { engine: Engine::Mmap, ..direct() }, plain.clone());
    assert!(said.contains("mmap") && said.contains("io_uring"), "{said}");
    let said = refused(&Access { engine: Engine::Null, ..direct() }, plain.clone());
    assert!(said.contains("null"), "{said}");
    let (twin, volume) = open("gateway-1997");
    let counted = RunOptions { count_instructions: true, ..RunOptions::default() };
    let mut source = plain.clone();
    let mut parts = [Part::new(&volume, &direct(), std::slice::from_mut(&mut source))];
    let said = twin.run(&mut parts, counted).unwrap_err().to_string();
    assert!(said.contains("instructions") && said.contains("processor time"), "{said}");
    let said = refused(&direct(), Plain { checks: true, ..plain.clone() });
    assert!(said.contains("keeps no data"), "{said}");
    for wrong in [Plain { start: 100, ..plain.clone() }, Plain::new(Op::Write, 1000, 8, 1)] {
        let said = refused(&direct(), wrong);
        assert!(said.contains("512"), "{said}");
    }
    // Buffered I/O needs no alignment.
    let buffered = Access { buffering: Buffering::Buffered, ..direct() };
    run("gateway-1997", &buffered, &Plain { start: 100, ..Plain::new(Op::Write, 1000, 8, 1) });
    let (twin, mut volume) = open("gateway-1997,disks=3");
    let wrong: [(&[u32], u64, &str); 4] = [
        (&[], 65536, "without members"),
        (&[3], 65536, "member 3"),
        (&[0, 1, 0], 65536, "again"),
        (&[0, 1], 1000, "512"),
    ];
    for (members, chunk, word) in wrong {
        let error = twin.restripe(&mut volume, members, chunk).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(word), "{error}");
    }
    let error = twin.open(&TargetSpec { destroy: vec!["x".into()], ..TargetSpec::default() });
    assert!(matches!(error, Err(Error::Refused { .. })));
}

#[test]
fn a_blocking_engine_has_one_request_at_a_time_and_others_as_many_as_asked() {
    for machine in ["gateway-1997", "nvme", "cloud", "virtio"] {
        for (engine, max) in
            [(Engine::Sync, 1), (Engine::Threads, 1), (Engine::IoUring, 8), (Engine::Libaio, 8)]
        {
            let (_, source) =
                run(machine, &Access { engine, ..direct() }, &Plain::new(Op::Read, 4096, 64, 8));
            assert_eq!(source.max, max, "{machine} {engine}");
        }
        // For the machine, N threads equal one thread at depth N.
        let (twin, volume) = open(machine);
        let part = |n: u64| Plain { start: n << 20, ..Plain::new(Op::Read, 4096, 64, 1) };
        let mut threads: Vec<Plain> = (0..8).map(part).collect();
        let usage = twin
            .run_one(&volume, &Access { engine: Engine::Threads, ..direct() }, &mut threads)
            .unwrap();
        let alone = run(machine, &direct(), &Plain::new(Op::Read, 4096, 64, 1)).0;
        assert!(threads.iter().all(|thread| thread.done == 64));
        assert!(
            usage.elapsed_ns > alone.elapsed_ns && usage.device.unwrap().reads == 512,
            "{machine}"
        );
    }
}

#[test]
fn durability_costs_match_the_access() {
    for machine in ["gateway-1997,wce=on", "hdd-20tb", "virtio"] {
        let write = Plain::new(Op::Write, 4096, 100, 1);
        let time = |buffering, metadata_sync| {
            let (usage, _) = run(machine, &Access { buffering, metadata_sync, ..direct() }, &write);
            (usage.elapsed_ns, usage.device.unwrap().write_bytes)
        };
        let (plain, durable, with_log) = (
            time(Buffering::Direct, false),
            time(Buffering::DirectDsync, false),
            time(Buffering::DirectDsync, true),
        );
        assert!(
            durable.0 > plain.0 && with_log.0 > durable.0,
            "{machine}: {plain:?} {durable:?} {with_log:?}"
        );
        assert_eq!(
            (durable.1, with_log.1),
            (100 * 4096, 200 * 4096),
            "{machine}: O_SYNC writes the log as well"
        );
        let through = time(Buffering::BufferedDsync, false);
        assert!(through.0 > time(Buffering::Buffered, false).0, "{machine}");
        assert_eq!(time(Buffering::BufferedDsync, true).1, 200 * 4096, "{machine}");
        // O_SYNC has no effect if writes are not synchronous.
        assert_eq!(time(Buffering::Direct, true), plain, "{machine}");
    }
}

#[test]
fn syncs_bring_data_and_for_a_file_its_log() {
    for machine in ["gateway-1997", "hdd-20tb", "nvme", "virtio", "cloud"] {
        let access = Access { buffering: Buffering::Buffered, ..direct() };
        let synced =
            |sync| run(machine, &access, &Plain { sync, ..Plain::new(Op::Write, 4096, 40, 1) }).0;
        let (data, file) =
            (synced(Some((10, Stability::Data))), synced(Some((10, Stability::File))));
        assert_eq!(data.device.unwrap().write_bytes, 40 * 4096, "{machine}");
        assert_eq!(file.device.unwrap().write_bytes, (40 + 4) * 4096, "{machine}");
        assert!(
            file.elapsed_ns > data.elapsed_ns && data.elapsed_ns > synced(None).elapsed_ns,
            "{machine}"
        );
        assert!(data.sync_ns.is_none());
        let (at_end, _) = run(
            machine,
            &Access { sync_at_end: true, ..access.clone() },
            &Plain::new(Op::Write, 4096, 40, 1),
        );
        assert!(
            at_end.sync_ns.unwrap() > 0 && at_end.device.unwrap().write_bytes == 40 * 4096,
            "{machine}"
        );
    }
}

#[test]
fn cache_states_and_hints() {
    let buffered = |cache, hint| Access {
        buffering: Buffering::Buffered,
        cache,
        hint,
        region: (0, 4 << 20),
        ..direct()
    };
    let read = Plain::new(Op::Read, 16 << 10, 256, 1);
    for machine in ["gateway-1997", "nvme"] {
        let (twin, volume) = open(machine);
        let device_reads = |cache| {
            let usage =
                twin.run_one(&volume, &buffered(cache, Hint::None), &mut [read.clone()]).unwrap();
            usage.device.unwrap().read_bytes
        };
        assert!(device_reads(CacheState::Cold) >= 4 << 20, "{machine}");
        assert_eq!(device_reads(CacheState::AsIs), 0, "{machine}: what was read is there");
        assert!(device_reads(CacheState::Cold) >= 4 << 20, "{machine}");
        let (twin, fresh) = open(machine);
        let warm = twin
            .run_one(&fresh, &buffered(CacheState::Warm, Hint::None), &mut [read.clone()])
            .unwrap();
        assert_eq!(warm.device.unwrap().read_bytes, 0, "{machine}");
    }
    // A random hint disables read-ahead: the reader waits for every unit.
    let time = |hint| run("nvme", &buffered(CacheState::Cold, hint), &read).0.elapsed_ns;
    assert!(time(Hint::Random) > time(Hint::None) && time(Hint::Sequential) <= time(Hint::None));
}

#[test]
fn allocations() {
    let write = Plain::new(Op::Write, 16 << 10, 200, 8);
    let time =
        |allocation| run("gateway-1997", &Access { allocation, ..direct() }, &write).0.elapsed_ns;
    let written = time(Allocation::Written);
    assert_eq!(time(Allocation::Reserved), written, "its final size is given: nothing is extended");
    assert!(time(Allocation::Extend) > 2 * written && time(Allocation::Truncate) > 2 * written);
}

#[test]
fn members_keep_their_state_and_their_size() {
    let twin = Twin::from_name("cloud-burst,disks=2").unwrap();
    let mut volume =
        twin.open(&TargetSpec { size: Some(8 << 30), ..TargetSpec::default() }).unwrap();
    assert_eq!(twin.target_facts(&volume).size_bytes, 8 << 30);
    twin.restripe(&mut volume, &[1], 65536).unwrap();
    let facts = twin.target_facts(&volume);
    assert_eq!(
        (facts.size_bytes, facts.members, facts.devices),
        (4 << 30, 1, vec!["volume-1".to_owned()])
    );
    // Member 1 spends all its credit; member 0 keeps its own.
    let mut rate = |members: &[u32], requests: u64| {
        twin.restripe(&mut volume, members, 65536).unwrap();
        let mut source = Plain::new(Op::Read, 512, requests, 32);
        let usage = twin.run_one(&volume, &direct(), std::slice::from_mut(&mut source)).unwrap();
        requests as f64 * 1e9 / usage.elapsed_ns as f64
    };
    rate(&[1], 6_050_000);
    let (other, spent) = (rate(&[0], 5000), rate(&[1], 5000));
    assert!(other > 2900.0 && spent < 1000.0, "{other} {spent}");
}

#[test]
fn stable_storage_between_requests() {
    for (machine, slow) in [("gateway-1997,disks=2", 1_000_000), ("virtio,disks=2", 500_000)] {
        let (twin, volume) = open(machine);
        let access = Access { buffering: Buffering::Buffered, ..direct() };
        let sync = Some((4, Stability::File));
        let source = |start| Plain { start, sync, ..Plain::new(Op::Write, 4096, 40, 1) };
        let mut sources = [source(0), source(1 << 30)];
        let usage = twin.run_one(&volume, &access, &mut sources).unwrap();
        for source in &sources {
            assert_eq!(source.syncs.len(), 10, "{machine}");
            assert!(source.syncs.iter().all(|&time| time > slow), "{machine}: {:?}", source.syncs);
        }
        // Each write reached a device once: no sync rewrites earlier data. Each fsync, but not
        // fdatasync, also writes the log.
        assert_eq!(usage.device.unwrap().write_bytes, (80 + 20) * 4096, "{machine}");
    }
}
