//! The model beyond the calibration points: numbers from the 1997 study's text, and typical modern
//! devices.

use machine::{Allocation, Buffering, Engine, Hint, Machine, Op};
use predict::{Outcome, run, workload};
use twin::{Setup, Twin, preset};
use workload::{Pattern, Stop, Workload};

const MIB: f64 = 1024.0 * 1024.0;

fn run_on(machine: &str, asked: &Workload) -> Outcome {
    let twin = Twin::from_name(machine).unwrap();
    run(&twin, &twin.volume(), asked).unwrap()
}

fn rate(settings: &str, op: Op, kib: u32, depth: u32) -> f64 {
    run_on(&format!("gateway-1997,{settings}"), &workload(op, kib << 10, depth)).bytes_per_s() / MIB
}

fn changed(name: &str, changes: &[(&str, &str)]) -> Twin {
    let mut text = preset::text(name).unwrap().to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    Twin::new(Setup::of(preset::parse(name, &text).unwrap()))
}

#[test]
fn an_ultra_wide_bus_saturates_at_30_reading_and_20_writing() {
    let read = rate("drive=st34371w,disks=4", Op::Read, 64, 8);
    assert!((28.0..32.0).contains(&read), "{read}");
    let write = rate("drive=st34371w,disks=4,wce=on", Op::Write, 64, 8);
    assert!((19.0..23.0).contains(&write), "{write}");
    // Three disks saturate a bus.
    let (three, four) = (rate("disks=3", Op::Read, 64, 8), rate("disks=4", Op::Read, 64, 8));
    assert!((four / three - 1.0).abs() < 0.05 && (15.0..17.0).contains(&four), "{three} {four}");
}

#[test]
fn pci_carries_72_and_the_processor_saturates_at_16_with_2_kib() {
    let pci = rate("drive=st34371w,disks=12,buses=4", Op::Read, 64, 24);
    assert!((69.0..73.0).contains(&pci), "{pci}");
    let mut asked = workload(Op::Read, 2048, 64);
    asked.stop = Stop::AfterBytes(32 << 20);
    let twin = Twin::from_name("gateway-1997,drive=st34371w,disks=12,buses=4,stripe=2k").unwrap();
    let volume = twin.volume();
    let outcome = run(&twin, &volume, &asked).unwrap();
    assert_eq!(volume.utilisation()[0].resource, "processor");
    assert!(
        (14.0..19.0).contains(&(outcome.bytes_per_s() / MIB)),
        "{}",
        outcome.bytes_per_s() / MIB
    );
}

#[test]
fn extending_takes_one_write_at_a_time_whatever_the_depth() {
    let mut asked = workload(Op::Write, 16 << 10, 1);
    let one = run_on("gateway-1997,drive=st34371w", &asked).bytes_per_s();
    asked.depth = 8;
    let deep = run_on("gateway-1997,drive=st34371w", &asked).bytes_per_s();
    asked.allocation = Allocation::Extend;
    let extending = run_on("gateway-1997,drive=st34371w", &asked).bytes_per_s();
    assert!(deep > 4.0 * one && (extending / one - 1.0).abs() < 0.02, "{one} {deep} {extending}");
}

#[test]
fn write_through_costs_nearly_ten_times() {
    let mut asked = workload(Op::Write, 8 << 10, 1);
    (asked.buffering, asked.sync_at_end, asked.stop) =
        (Buffering::Buffered, true, Stop::AfterBytes(16 << 20));
    let cached = run_on("gateway-1997,drive=st34371w,wce=on", &asked).bytes_per_s();
    (asked.buffering, asked.sync_at_end) = (Buffering::BufferedDsync, false);
    let through = run_on("gateway-1997,drive=st34371w,wce=on", &asked).bytes_per_s();
    assert!(through / MIB < 1.0 && cached / through > 8.0, "{cached} {through}");
}

#[test]
fn truncating_first_spares_the_pre_read() {
    let mut asked = Workload { engine: Engine::Sync, ..workload(Op::Write, 2 << 10, 1) };
    (asked.buffering, asked.hint, asked.sync_at_end) =
        (Buffering::Buffered, Hint::Sequential, true);
    let existing = run_on("gateway-1997,drive=st34371w", &asked).bytes_per_s() / MIB;
    asked.allocation = Allocation::Truncate;
    let truncated = run_on("gateway-1997,drive=st34371w", &asked).bytes_per_s() / MIB;
    assert!((3.4..4.1).contains(&truncated) && existing < 2.6, "{existing} {truncated}");
}

#[test]
fn the_sequential_hint_gives_writes_a_tenth_and_reads_nothing() {
    let at = |op: Op, hint: Hint| {
        let mut asked = workload(op, 16 << 10, 1);
        (asked.buffering, asked.hint, asked.sync_at_end) =
            (Buffering::Buffered, hint, op == Op::Write);
        run_on("gateway-1997,drive=st34371w", &asked).bytes_per_s()
    };
    let gain = at(Op::Write, Hint::Sequential) / at(Op::Write, Hint::None);
    assert!((1.05..1.15).contains(&gain), "{gain}");
    let gain = at(Op::Read, Hint::Sequential) / at(Op::Read, Hint::None);
    assert!((0.99..1.01).contains(&gain), "{gain}");
}

#[test]
fn a_ram_cache_is_seven_to_nine_times_faster_up_to_its_size() {
    let write = |machine: &str, file: u64, record: u32| {
        let mut asked = workload(Op::Write, record, 1);
        (asked.region_bytes, asked.stop) = (Some(file), Stop::AfterBytes(file));
        run_on(machine, &asked).bytes_per_s() / MIB
    };
    let gain = |file: u64, record: u32| {
        write("server-2003,ramcache=256M", file, record) / write("server-2003", file, record)
    };
    for file in [8u64 << 20, 32 << 20, 128 << 20] {
        for record in [4u32 << 20, 8 << 20] {
            let gain = gain(file, record);
            assert!((7.0..10.0).contains(&gain), "{file} {record}: {gain}");
        }
    }
    let beyond = gain(512 << 20, 4 << 20);
    assert!(beyond < 2.5, "the cliff: {beyond}");
}

#[test]
fn writes_slow_down_when_the_ssd_write_cache_is_full() {
    let twin = changed("nvme", &[("cache_bytes = 114000000000", "cache_bytes = 2000000000")]);
    let volume = twin.volume();
    let mut asked = workload(Op::Write, 1 << 20, 8);
    (asked.region_bytes, asked.stop) = (Some(64 << 30), Stop::AfterBytes(1 << 30));
    let fresh = run(&twin, &volume, &asked).unwrap().bytes_per_s();
    asked.stop = Stop::AfterBytes(4 << 30);
    run(&twin, &volume, &asked).unwrap();
    let full = run(&twin, &volume, &asked).unwrap().bytes_per_s();
    assert!(fresh > 4.8e9 && (1.8e9..2.2e9).contains(&full), "{fresh} {full}");
    // Random writes leave blocks half stale, so garbage collection takes most of the remaining
    // rate.
    (asked.pattern, asked.request_bytes, asked.stop) =
        (Pattern::Random, 4096, Stop::AfterBytes(1 << 30));
    let collecting = run(&twin, &volume, &asked).unwrap().bytes_per_s();
    assert!(collecting < full / 3.0, "{collecting}");
    // An idle drive drains its cache.
    twin.pause(60_000_000_000);
    (asked.pattern, asked.request_bytes) = (Pattern::Seq, 1 << 20);
    let rested = run(&twin, &volume, &asked).unwrap().bytes_per_s();
    assert!(rested > 4.8e9, "{rested}");
}

#[test]
fn a_batched_ring_shares_its_notification() {
    let cheap =
        ("request_us = 3.0\nrequest_ns_per_byte = 0.01", "request_us = 0\nrequest_ns_per_byte = 0");
    let (one, batched) = (
        ("workers = 2", "workers = 1"),
        ("batched = false\nworkers = 2", "batched = true\nworkers = 1"),
    );
    let cycle_us = |change: (&str, &str), depth: u32| {
        let twin = changed("virtio", &[cheap, change]);
        let mut asked = workload(Op::Read, 4096, depth);
        asked.stop = Stop::AfterBytes(40 << 20);
        f64::from(depth) * 1e6 / run(&twin, &twin.volume(), &asked).unwrap().iops()
    };
    // Worker time plus its copy; the round trip takes 21 us.
    let service = 58.0 + 4096.0 / 240e6 * 1e6;
    for depth in [1u32, 4, 32] {
        // A batch returns as a whole: there, one after the other, and back.
        let expected = 21.0 + service * f64::from(depth);
        assert!(
            (cycle_us(batched, depth) / expected - 1.0).abs() < 0.01,
            "{depth}: {} {expected}",
            cycle_us(batched, depth)
        );
        // Individually: with several requests the worker never idles.
        let expected = (21.0 + service).max(service * f64::from(depth));
        assert!(
            (cycle_us(one, depth) / expected - 1.0).abs() < 0.01,
            "{depth}: {} {expected}",
            cycle_us(one, depth)
        );
    }
}

#[test]
fn a_network_volume_is_limited_by_its_link() {
    let mut asked = workload(Op::Read, 4096, 1);
    asked.stop = Stop::AfterBytes(16 << 20);
    // Median path time plus server time, plus the skew's contribution to the mean.
    let mean_us = run_on("nas", &asked).latency_ns as f64 * 1e-3;
    let expected = 120.0 * (0.35f64 * 0.35 / 2.0).exp() + 60.0 + 4096.0 / 1.17e9 * 1e6;
    assert!((mean_us / expected - 1.0).abs() < 0.04, "{mean_us} {expected}");
    (asked.request_bytes, asked.depth, asked.stop) = (1 << 20, 16, Stop::AfterBytes(512 << 20));
    let twin = Twin::from_name("nas").unwrap();
    let volume = twin.volume();
    let rate = run(&twin, &volume, &asked).unwrap().bytes_per_s();
    assert!((0.97..1.0).contains(&(rate / 1.17e9)), "{rate}");
    assert_eq!(volume.utilisation()[0].resource, "network");
}

#[test]
fn burst_credit_runs_out_and_comes_back() {
    let twin = changed("cloud-burst", &[("credit_requests = 5400000", "credit_requests = 20000")]);
    let volume = twin.volume();
    let mut asked = workload(Op::Read, 4096, 32);
    (asked.pattern, asked.region_bytes, asked.stop) =
        (Pattern::Random, Some(1 << 30), Stop::AfterBytes(4096 * 10_000));
    let burst = run(&twin, &volume, &asked).unwrap().iops();
    assert!((2900.0..3100.0).contains(&burst), "{burst}");
    asked.stop = Stop::AfterBytes(4096 * 30_000);
    run(&twin, &volume, &asked).unwrap();
    asked.stop = Stop::AfterBytes(4096 * 5_000);
    let exhausted = run(&twin, &volume, &asked).unwrap().iops();
    assert!((290.0..310.0).contains(&exhausted), "{exhausted}");
    twin.pause(3600 * 1_000_000_000);
    let rested = run(&twin, &volume, &asked).unwrap().iops();
    assert!(rested > 2900.0, "{rested}");
}

#[test]
fn runs_repeat_exactly() {
    for machine in [
        "gateway-1997,disks=3",
        "nvme",
        "sata-ssd",
        "hdd-20tb",
        "cloud",
        "virtio",
        "nas",
        "server-2003,ramcache=16M",
    ] {
        let mut asked = workload(Op::Read, 16 << 10, 4);
        (asked.pattern, asked.read_percent, asked.stop) =
            (Pattern::Random, 70, Stop::AfterBytes(8 << 20));
        let (first, second) = (run_on(machine, &asked), run_on(machine, &asked));
        assert_eq!(first, second, "{machine}");
        assert_eq!(first.bytes, 8 << 20, "{machine}");
    }
}

#[test]
fn a_workload_stops_at_the_end_of_the_target() {
    let twin = Twin::from_name("gateway-1997").unwrap();
    let volume = twin.file(None, Some(1 << 20)).unwrap();
    assert_eq!(twin.target_facts(&volume).size_bytes, 1 << 20);
    let error = run(
        &twin,
        &volume,
        &Workload {
            region_bytes: None,
            region_start_bytes: 1 << 20,
            ..workload(Op::Read, 64 << 10, 1)
        },
    );
    assert!(error.is_err());
}
