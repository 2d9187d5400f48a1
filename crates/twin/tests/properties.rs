//! Whatever the machine and the workload: every request is done, time adds up, and nothing goes faster than the hardware.

use machine::{Allocation, Buffering, Hint, Machine};
use proptest::prelude::*;
use twin::Twin;
use twin::program::{Order, Program};

fn machines() -> impl Strategy<Value = String> {
    let drives = prop_oneof![Just("st15150w"), Just("st15150n"), Just("st34371w")];
    let gateway = (drives, 1u32..6, 1u32..4, any::<bool>(), 0usize..3, 0usize..3, 0usize..3);
    let gateway = gateway.prop_map(|(drive, disks, buses, wce, stripe, raid, cache)| {
        let stripe = ["4k", "64k", "256k"][stripe];
        let raid = if disks < 3 { "" } else { ["", ",raid=5", ",raid=5,parity=array"][raid] };
        let cache = ["", ",ramcache=4M", ",ramcache=2M,ramwrite=through"][cache];
        let wce = if wce { "on" } else { "off" };
        format!("gateway-1997,drive={drive},disks={disks},buses={},wce={wce},stripe={stripe}{raid}{cache}", buses.min(disks))
    });
    let others = prop_oneof![
        Just("nvme"),
        Just("sata-ssd"),
        Just("hdd-20tb"),
        Just("cloud"),
        Just("cloud-burst"),
        Just("virtio"),
        Just("server-2003")
    ];
    let others =
        (others, 1u32..4, 0usize..2).prop_map(|(name, disks, cache)| format!("{name},disks={disks}{}", ["", ",ramcache=4M"][cache]));
    prop_oneof![3 => gateway, 2 => others]
}

fn programs() -> impl Strategy<Value = Program> {
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
        |((sectors, depth, reads, random, start), buffering, allocation, hint, sync_at_end, think)| Program {
            read_percent: [0, 60, 100][usize::from(reads)],
            order: if random { Order::Random } else { Order::Sequential },
            request_bytes: sectors * 512,
            depth,
            start: start * 3 * 512,
            region: 24 << 20,
            bytes: u64::from(sectors) * 512 * 150,
            buffering,
            hint,
            allocation,
            sync_at_end,
            think_ns: think * 700_000,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_done_in_a_time_that_adds_up(machine in machines(), program in programs()) {
        let twin = Twin::from_name(&machine).unwrap();
        let mut volume = twin.volume(None);
        let before = twin.now();
        let outcome = program.run(&twin, &mut volume).unwrap();
        prop_assert_eq!(outcome.requests, 150);
        prop_assert_eq!(outcome.bytes, program.bytes);
        let usage = &outcome.usage;
        prop_assert_eq!(twin.now() - before, usage.elapsed_ns + usage.sync_ns.unwrap_or(0));
        prop_assert_eq!(usage.sync_ns.is_some(), program.sync_at_end);
        // One after the other on one processor: the work cannot take longer than the run on all cores.
        let cores = u64::from(twin.facts().processors);
        prop_assert!(usage.cpu.system_ns <= (volume.ran_ns() + 100_000_000) * cores);
        for part in volume.utilisation() {
            prop_assert!((0.0..=1.0).contains(&part.share), "{:?}", part);
        }
        if program.buffering.is_direct() && program.read_percent == 100 && !machine.contains("ramcache") {
            let device = usage.device.unwrap();
            prop_assert_eq!(device.read_bytes, program.bytes);
        }
        // The same again, on a machine of its own, is the same.
        let other = Twin::from_name(&machine).unwrap();
        let mut volume = other.volume(None);
        prop_assert_eq!(program.run(&other, &mut volume).unwrap(), outcome);
    }
}
