//! For any machine and workload: every request completes, times add up, and nothing is faster than
//! the hardware.

use machine::{Allocation, Buffering, CacheState, Engine, Hint, Machine};
use predict::run;
use proptest::prelude::*;
use twin::Twin;
use workload::{Pattern, Stop, Workload};

const VOLUMES: [&str; 9] = [
    "",
    ",start=12k",
    ",raid=5",
    ",raid=5,parity=array,start=12k",
    ",raid=5,failed=1",
    ",raid=5,parity=array,failed=0,rebuild=on",
    ",raid=1",
    ",raid=1,failed=2,rebuild=on",
    ",raid=10,failed=2,rebuild=on",
];
const REGION: u64 = 24 << 20;
const REQUESTS: u64 = 150;

fn machines() -> impl Strategy<Value = String> {
    let drives = prop_oneof![Just("st15150w"), Just("st15150n"), Just("st34371w")];
    let gateway =
        (drives, 1u32..6, 1u32..4, any::<bool>(), 0usize..3, 0usize..VOLUMES.len(), 0usize..3);
    let gateway = gateway.prop_map(|(drive, disks, buses, wce, stripe, raid, cache)| {
        let stripe = ["4k", "64k", "256k"][stripe];
        let raid = if disks < 3 || (disks != 4 && VOLUMES[raid].contains("raid=10")) { "" } else { VOLUMES[raid] };
        let cache = ["", ",ramcache=4M", ",ramcache=2M,ramwrite=through"][cache];
        let wce = if wce { "on" } else { "off" };
        format!(
            "gateway-1997,drive={drive},disks={disks},buses={},wce={wce},stripe={stripe}{raid}{cache}",
            buses.min(disks)
        )
    });
    let others = prop_oneof![
        Just("nvme"),
        Just("sata-ssd"),
        Just("hdd-20tb"),
        Just("cloud"),
        Just("cloud-burst"),
        Just("virtio"),
        Just("nas"),
        Just("server-2003")
    ];
    let others = (others, 1u32..4, 0usize..2).prop_map(|(name, disks, cache)| {
        format!("{name},disks={disks}{}", ["", ",ramcache=4M"][cache])
    });
    prop_oneof![3 => gateway, 2 => others]
}

fn workloads() -> impl Strategy<Value = Workload> {
    let buffering = prop_oneof![
        3 => Just(Buffering::Direct),
        3 => Just(Buffering::Buffered),
        1 => Just(Buffering::DirectDsync),
        1 => Just(Buffering::BufferedDsync)
    ];
    let allocation = prop_oneof![3 => Just(Allocation::Written), 1 => Just(Allocation::Extend), 1 => Just(Allocation::Truncate), 1 => Just(Allocation::Reserved)];
    let hint = prop_oneof![Just(Hint::None), Just(Hint::Sequential), Just(Hint::Random)];
    let sizes = (1u32..600, 1u32..20, 0u8..3, any::<bool>(), 0u64..40);
    (sizes, buffering, allocation, hint, any::<bool>(), 0u64..3).prop_map(
        |(
            (sectors, depth, reads, random, start),
            buffering,
            allocation,
            hint,
            sync_at_end,
            think,
        )| Workload {
            read_percent: [0, 60, 100][usize::from(reads)],
            pattern: if random { Pattern::Random } else { Pattern::Seq },
            request_bytes: sectors * 512,
            depth,
            engine: Engine::IoUring,
            cache: CacheState::Cold,
            region_start_bytes: start * 3 * 512,
            region_bytes: Some(REGION),
            stop: Stop::AfterBytes(u64::from(sectors) * 512 * REQUESTS),
            buffering,
            hint,
            // A file that starts empty has nothing to read.
            allocation: if reads == 0 { allocation } else { Allocation::Written },
            sync_at_end,
            think_ns: think * 700_000,
            ..Workload::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_completes_and_times_add_up(machine in machines(), asked in workloads()) {
        let twin = Twin::from_name(&machine).unwrap();
        let volume = twin.volume();
        let before = twin.now();
        let outcome = run(&twin, &volume, &asked).unwrap();
        // A second pass would find its space written, or its data cached.
        let once = !asked.buffering.is_direct() || (asked.writes() && asked.allocation != Allocation::Written);
        let pass = if once { REGION / u64::from(asked.request_bytes) } else { REQUESTS };
        prop_assert_eq!(outcome.requests, pass.min(REQUESTS));
        prop_assert_eq!(outcome.bytes, outcome.requests * u64::from(asked.request_bytes));
        let usage = &outcome.usage;
        prop_assert_eq!(twin.now() - before, usage.elapsed_ns + usage.sync_ns.unwrap_or(0));
        prop_assert_eq!(usage.sync_ns.is_some(), asked.sync_at_end);
        // The run cannot be shorter than the CPU work spread over all cores.
        let cores = u64::from(twin.facts().processors);
        prop_assert!(usage.cpu.system_ns <= (volume.ran_ns() + 100_000_000) * cores);
        for part in volume.utilisation() {
            prop_assert!((0.0..=1.0).contains(&part.share), "{:?}", part);
        }
        if asked.buffering.is_direct() && asked.read_percent == 100 && !machine.contains("ramcache") && !machine.contains("failed") {
            let device = usage.device.unwrap();
            prop_assert_eq!(device.read_bytes, outcome.bytes);
        }
        // Another machine with the same settings repeats the run exactly.
        let other = Twin::from_name(&machine).unwrap();
        let volume = other.volume();
        prop_assert_eq!(run(&other, &volume, &asked).unwrap(), outcome);
    }
}
