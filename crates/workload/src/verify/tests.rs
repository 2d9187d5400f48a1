//! Injected faults get the right names, without false alarms.

use super::*;
use crate::rng::SplitMix64;
use proptest::prelude::*;

const BASE: u64 = 1_000_000;
const BLOCKS: u64 = 16;

struct Device {
    verifier: Verifier,
    request: u64,
    bytes: Vec<u8>,
}

impl Device {
    fn new(request: u32) -> Self {
        let workload = Workload {
            request_bytes: request,
            offset_bytes: BASE % 4096,
            read_percent: 0,
            ..Workload::default()
        };
        let region = (BASE - BASE % 4096, BASE % 4096 + BLOCKS * u64::from(request) + 100);
        let verifier = Verifier::new(&workload, region, 77).unwrap();
        assert_eq!(verifier.area(), (BASE, BLOCKS * u64::from(request), request));
        let mut bytes = vec![0; (BLOCKS * u64::from(request)) as usize];
        machine::fill_random(5, &mut bytes);
        Device { verifier, request: u64::from(request), bytes }
    }

    fn offset(&self, block: u64) -> u64 {
        BASE + block * self.request
    }

    fn block(&mut self, block: u64) -> &mut [u8] {
        let at = (block * self.request) as usize;
        &mut self.bytes[at..at + self.request as usize]
    }

    fn begin(&self, block: u64) -> (u32, Vec<u8>) {
        let mut buffer = vec![0; self.request as usize];
        let generation = self.verifier.fill(self.offset(block), &mut buffer);
        (generation, buffer)
    }

    fn write(&mut self, block: u64) -> Vec<u8> {
        let (generation, data) = self.begin(block);
        self.block(block).copy_from_slice(&data);
        self.verifier.wrote(self.offset(block), generation, true);
        data
    }

    fn lose(&self, block: u64) {
        let (generation, _) = self.begin(block);
        self.verifier.wrote(self.offset(block), generation, true);
    }

    fn check(&self, block: u64) -> (u64, Vec<Fault>) {
        let mut faults = Vec::new();
        let at = (block * self.request) as usize;
        let expected = self.verifier.expected(self.offset(block));
        let data = &self.bytes[at..at + self.request as usize];
        let verified = self.verifier.check(self.offset(block), data, expected, &mut faults);
        (verified, faults)
    }

    fn faults(&self) -> Vec<Fault> {
        (0..BLOCKS).flat_map(|block| self.check(block).1).collect()
    }

    fn fault(&self) -> Fault {
        let faults = self.faults();
        assert_eq!(faults.len(), 1, "{faults:#?}");
        faults[0].clone()
    }

    fn all_written(request: u32, times: u32) -> Self {
        let mut device = Device::new(request);
        for block in (0..times).flat_map(|_| 0..BLOCKS) {
            device.write(block);
        }
        device
    }
}

#[test]
fn sound_data_pass_and_unwritten_blocks_cannot_be_verified() {
    let mut device = Device::new(4096);
    for block in [0, 3, 3, 15] {
        device.write(block);
    }
    for block in 0..BLOCKS {
        let (verified, faults) = device.check(block);
        assert_eq!(faults, []);
        assert_eq!(verified, if [0, 3, 15].contains(&block) { 4096 } else { 0 });
    }
    let mut written = Vec::new();
    let mut at = device.verifier.next_written(0);
    while let Some(offset) = at {
        written.push((offset - BASE) / 4096);
        at = device.verifier.next_written(offset + 1);
    }
    assert_eq!(written, [0, 3, 15]);
}

#[test]
fn a_flipped_bit_is_located() {
    for request in [512u32, 4096] {
        let mut device = Device::all_written(request, 2);
        for bit in (0..request * 8).step_by(7) {
            device.block(4)[bit as usize / 8] ^= 1 << (bit % 8);
            let fault = device.fault();
            let unit = u64::from(bit / 4096) * 512;
            assert_eq!(
                (fault.kind, fault.offset, fault.bytes),
                (FaultKind::Flipped, device.offset(4) + unit, 512),
                "bit {bit}"
            );
            assert_eq!(fault.found, Found::Bits { first_bit: bit % 4096, bits: 1, generation: 2 });
            device.block(4)[bit as usize / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(device.faults(), []);
    }
}

#[test]
fn a_lost_write_shows_the_older_generation() {
    let device = Device::all_written(4096, 3);
    device.lose(9);
    let fault = device.fault();
    assert_eq!((fault.kind, fault.offset, fault.bytes), (FaultKind::Lost, device.offset(9), 4096));
    assert_eq!(fault.found, Found::Generation(3));
    let sentence = fault.to_string();
    assert_eq!(
        sentence,
        "lost block at offset 1036864 (4 KiB): it still has generation 3, generation 4 was written"
    );
}

#[test]
fn a_first_write_that_never_arrived_is_lost_or_stale() {
    let mut device = Device::new(4096);
    device.lose(2);
    assert_eq!((device.fault().kind, device.fault().found), (FaultKind::Lost, Found::Unknown));
    assert!(device.fault().to_string().contains("random data as a new file is filled with"));
    device.block(2).fill(0);
    assert_eq!((device.fault().kind, device.fault().found), (FaultKind::Lost, Found::Zeros));
    assert_eq!(device.fault().bytes, 4096, "eight units are reported as one");
    // Random data that neither a fill nor an expected generation explains are foreign.
    device.block(2).fill(7);
    assert_eq!((device.fault().kind, device.fault().found), (FaultKind::Foreign, Found::Unknown));
    device.lose(2);
    device.block(2).fill(0);
    assert_eq!((device.fault().kind, device.fault().found), (FaultKind::Foreign, Found::Zeros));
    let mut device = Device::new(4096);
    device.lose(2);
    // An earlier run of the same workload wrote the same offset.
    let workload = Workload { request_bytes: 4096, ..Workload::default() };
    let earlier = Verifier::new(&workload, (BASE, 1 << 20), 76).unwrap();
    earlier.fill(device.offset(2), device.block(2));
    let fault = device.fault();
    assert_eq!((fault.kind, fault.found), (FaultKind::Stale, Found::Seed(earlier.seed)));
    // Before the first write, the earlier run's block is not a fault.
    let mut fresh = Device::new(4096);
    earlier.fill(fresh.offset(5), fresh.block(5));
    assert_eq!(fresh.check(5), (0, vec![]));
}

#[test]
fn initial_data_are_recognised_and_logged() {
    let mut bytes = Vec::new();
    let mut log = Vec::new();
    for fill_seed in [None, Some(5), Some(6)] {
        let mut device = Device::new(4096);
        machine::filled(5, BASE, &mut device.bytes);
        device.verifier = device.verifier.filled_with(fill_seed);
        log.clear();
        let mut writes = Log::create(&mut log, &device.verifier).unwrap();
        let (generation, _) = device.begin(2);
        writes.begun(device.offset(2), generation).unwrap();
        device.verifier.wrote(device.offset(2), generation, true);
        writes.ended(device.offset(2), generation, true).unwrap();
        // Without a known fill seed, any random data pass as the initial data.
        let kind = if fill_seed == Some(6) { FaultKind::Foreign } else { FaultKind::Lost };
        assert_eq!(device.fault().kind, kind, "{fill_seed:?}");
        device.verifier = Verifier::resume(log.as_slice()).unwrap().0;
        assert_eq!(device.fault().kind, kind, "by the log, {fill_seed:?}");
        device.lose(2);
        let kind = if fill_seed == Some(5) { FaultKind::Lost } else { FaultKind::Foreign };
        assert_eq!(device.fault().kind, kind, "two writes were lost, {fill_seed:?}");
        bytes.push(device.fault().bytes);
    }
    assert_eq!(bytes, [4096; 3]);
}

#[test]
fn a_log_of_the_first_version_is_read() {
    let (_, log) = killed_run(1, 40);
    let mut first = log.clone();
    first[8] = 1;
    first.drain(44..52);
    let sum = crc32c::crc32c(&first[..44]);
    first[44..48].copy_from_slice(&sum.to_le_bytes());
    let (old, new) =
        (Verifier::resume(first.as_slice()).unwrap(), Verifier::resume(log.as_slice()).unwrap());
    assert_eq!((old.0.area(), old.1), (new.0.area(), new.1));
    for block in 0..BLOCKS {
        let offset = BASE + block * 1024;
        assert_eq!(old.0.expected(offset), new.0.expected(offset));
    }
}

#[test]
fn a_misdirected_write_is_found_at_both_offsets() {
    for target_written in [true, false] {
        let mut device = Device::new(4096);
        device.write(3);
        if target_written {
            device.write(11);
        }
        let (generation, data) = device.begin(3);
        device.block(11).copy_from_slice(&data);
        device.verifier.wrote(device.offset(3), generation, true);
        let faults = device.faults();
        assert_eq!(faults.len(), 2, "{faults:#?}");
        assert_eq!((faults[0].kind, faults[0].offset), (FaultKind::Lost, device.offset(3)));
        assert_eq!(
            (faults[1].kind, faults[1].offset, faults[1].bytes),
            (FaultKind::Misdirected, device.offset(11), 4096)
        );
        assert_eq!(faults[1].found, Found::Offset { offset: device.offset(3), generation: 2 });
    }
}

#[test]
fn a_block_of_two_generations_is_torn_at_sectors_and_inside_one() {
    for cut in [8usize, 100, 504, 512, 700, 2048, 3584, 4000, 4088] {
        for new_first in [true, false] {
            let mut device = Device::all_written(4096, 1);
            let old = device.block(6).to_vec();
            let new = device.write(6);
            let (head, tail) = if new_first { (&new, &old) } else { (&old, &new) };
            device.block(6)[..cut].copy_from_slice(&head[..cut]);
            device.block(6)[cut..].copy_from_slice(&tail[cut..]);
            let faults = device.faults();
            assert!(!faults.is_empty());
            assert!(
                faults.iter().all(|fault| fault.kind == FaultKind::Torn),
                "cut {cut}: {faults:#?}"
            );
            let seam = faults.iter().find(|fault| matches!(fault.found, Found::Seam { .. }));
            assert_eq!(seam.is_some(), cut % 512 != 0, "cut {cut}: {faults:#?}");
            if let Some(seam) = seam {
                let (before, after) = if new_first { (2, 1) } else { (1, 2) };
                assert_eq!(seam.kind, FaultKind::Torn);
                assert_eq!(seam.offset, device.offset(6) + (cut / 512 * 512) as u64);
                match seam.found {
                    // The headers share 24 bytes, and the head may match a byte or two more by
                    // chance.
                    Found::Seam { before: b, after: a, at } => {
                        assert_eq!((b, a), (before, after));
                        let last = if cut % 512 < 32 { 34 } else { cut % 512 + 2 };
                        assert!((cut % 512..=last).contains(&(at as usize)), "{at} for {cut}");
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_first_write_that_arrived_in_part_is_torn() {
    for zeros in [true, false] {
        // Within a sector: after its header, which is largely zeros.
        for cut in
            (8..4096).step_by(8).filter(|cut| cut % 512 == 0 || (64..=472).contains(&(cut % 512)))
        {
            for new_first in [true, false] {
                let mut device = Device::new(4096);
                if zeros {
                    device.bytes.fill(0);
                }
                let old = device.block(6).to_vec();
                let new = device.write(6);
                let (head, tail) = if new_first { (&new, &old) } else { (&old, &new) };
                device.block(6)[..cut].copy_from_slice(&head[..cut]);
                device.block(6)[cut..].copy_from_slice(&tail[cut..]);
                let faults = device.faults();
                assert!(!faults.is_empty(), "{cut}");
                assert!(
                    faults.iter().all(|fault| fault.kind == FaultKind::Torn),
                    "cut {cut}, {new_first}: {faults:#?}"
                );
            }
        }
    }
}

/// Too old to be tried, or from before the run.
#[test]
fn a_sector_of_two_distant_generations_is_torn() {
    for cut in [64usize, 100, 256, 400, 472] {
        for new_first in [true, false] {
            let mut device = Device::all_written(512, 1);
            let old = device.block(6).to_vec();
            let new = (0..40).map(|_| device.write(6)).last().unwrap();
            let (head, tail) = if new_first { (&new, &old) } else { (&old, &new) };
            device.block(6)[..cut].copy_from_slice(&head[..cut]);
            device.block(6)[cut..].copy_from_slice(&tail[cut..]);
            let fault = device.fault();
            assert_eq!(fault.kind, FaultKind::Torn, "cut {cut}, {new_first}: {fault:?}");
        }
    }
}

#[test]
fn a_generation_that_was_never_issued_is_foreign() {
    let mut device = Device::all_written(512, 1);
    let label = Label { seed: device.verifier.seed, offset: device.offset(1), generation: 9 };
    label.write(device.block(1));
    let fault = device.fault();
    assert_eq!((fault.kind, fault.found), (FaultKind::Foreign, Found::Generation(9)));
    assert!(fault.to_string().contains("generation 9, which was never written"), "{fault}");
}

#[test]
fn overlapping_writes_may_end_in_either_order_and_the_next_one_settles_it() {
    let mut device = Device::all_written(4096, 1);
    let (_, second) = device.begin(0);
    let (_, third) = device.begin(0);
    for (generation, data) in [(2, &second), (3, &third)] {
        device.block(0).copy_from_slice(data);
        device.verifier.wrote(device.offset(0), generation, true);
    }
    for data in [&second, &third] {
        device.block(0).copy_from_slice(data);
        assert_eq!(device.faults(), []);
    }
    let first = Label { seed: device.verifier.seed, offset: device.offset(0), generation: 1 };
    first.write(&mut device.block(0)[..512]);
    assert_eq!(device.fault().kind, FaultKind::Torn, "the generation before both is wrong");
    device.write(0);
    device.block(0).copy_from_slice(&third);
    assert_eq!(device.fault().kind, FaultKind::Lost);
}

#[test]
fn a_failed_write_leaves_either_generation_or_bytes_that_are_not_judged() {
    let mut device = Device::all_written(4096, 2);
    let (generation, data) = device.begin(7);
    let first = device.block(7).to_vec();
    device.verifier.wrote(device.offset(7), generation, false);
    assert_eq!(device.check(7), (4096, vec![]));
    device.block(7).copy_from_slice(&data);
    assert_eq!(device.check(7), (4096, vec![]));
    device.block(7)[..512].fill(9);
    assert_eq!(device.check(7), (4096 - 512, vec![]), "what is damaged is not judged");
    let older = Label { seed: device.verifier.seed, offset: device.offset(7), generation: 1 };
    older.write(&mut device.block(7)[..512]);
    assert_eq!(device.fault().kind, FaultKind::Torn, "an older generation is wrong all the same");
    device.block(7).copy_from_slice(&first);
    device.write(7);
    device.lose(7);
    assert_eq!(device.fault().kind, FaultKind::Lost);
}

#[test]
fn a_read_during_a_write_may_see_parts_of_both() {
    let mut device = Device::all_written(4096, 1);
    let issued = device.verifier.expected(device.offset(0));
    let new = device.write(0);
    let mut mixed = device.block(0).to_vec();
    for (generation, range) in [(1u32, 0..700usize), (2, 700..4096)] {
        for unit in 0..8 {
            let mut image = [0; 512];
            Label { seed: device.verifier.seed, offset: device.offset(0) + unit * 512, generation }
                .write(&mut image);
            for byte in range.clone().filter(|byte| byte / 512 == unit as usize) {
                mixed[byte] = image[byte % 512];
            }
        }
    }
    let mut faults = Vec::new();
    assert_eq!(device.verifier.check(device.offset(0), &mixed, issued, &mut faults), 4096);
    assert_eq!(faults, [], "the write began after the read was issued");
    let issued = device.verifier.expected(device.offset(0));
    device.verifier.check(device.offset(0), &mixed, issued, &mut faults);
    assert_eq!(faults.len(), 2, "the same data after the write are torn");
    assert_eq!(new.len(), 4096);
}

fn killed_run(seed: u64, steps: u32) -> (Device, Vec<u8>) {
    let mut random = SplitMix64::new(seed);
    let mut device = Device::new(1024);
    let mut bytes = Vec::new();
    let mut log = Log::create(&mut bytes, &device.verifier).unwrap();
    let mut in_flight: Vec<(u64, u32, Vec<u8>)> = Vec::new();
    for _ in 0..steps {
        if in_flight.len() < 4 && random.below(2) == 0 {
            let block = random.below(BLOCKS);
            let (generation, data) = device.begin(block);
            log.begun(device.offset(block), generation).unwrap();
            in_flight.push((block, generation, data));
        } else if !in_flight.is_empty() {
            let (block, generation, data) =
                in_flight.swap_remove(random.below(in_flight.len() as u64) as usize);
            device.block(block).copy_from_slice(&data);
            device.verifier.wrote(device.offset(block), generation, true);
            log.ended(device.offset(block), generation, true).unwrap();
        }
    }

    // The kill: some sectors of the writes in flight arrive.
    for (block, _, data) in in_flight {
        for unit in 0..2usize {
            if random.below(2) == 0 {
                device.block(block)[unit * 512..][..512]
                    .copy_from_slice(&data[unit * 512..][..512]);
            }
        }
    }
    (device, bytes)
}

proptest! {
    #[test]
    fn after_a_kill_nothing_sound_is_called_wrong_and_a_flip_is_found(seed: u64, steps in 0u32..200, cut in 0usize..16) {
        let (mut device, log) = killed_run(seed, steps);
        let written = (0..BLOCKS).filter(|&b| device.verifier.expected(device.offset(b)).newest > 0).count();
        let (resumed, how) = Verifier::resume(log.as_slice()).unwrap();
        prop_assert_eq!(how, Resumed { records: (log.len() as u64 - 56) / 16, cut_bytes: 0 });
        device.verifier = resumed;
        prop_assert_eq!(device.faults(), vec![]);

        // Verification continues with a new log, and again after another kill.
        let mut second = Vec::new();
        let mut new_log = Log::create(&mut second, &device.verifier).unwrap();
        let (generation, data) = device.begin(0);
        new_log.begun(device.offset(0), generation).unwrap();
        device.block(0).copy_from_slice(&data);
        device.verifier.wrote(device.offset(0), generation, true);
        new_log.ended(device.offset(0), generation, true).unwrap();
        for block in 0..BLOCKS {
            let before = device.verifier.expected(device.offset(block));
            let again = Verifier::resume(second.as_slice()).unwrap().0.expected(device.offset(block));
            prop_assert_eq!(before, again, "the log says what the verifier knows");
        }
        prop_assert!(written == 0 || device.verifier.next_written(0).is_some());
        prop_assert_eq!(device.faults(), vec![]);
        device.block(0)[(seed % 1024) as usize] ^= 4;
        prop_assert_eq!(device.fault().kind, FaultKind::Flipped);

        // A log with a truncated last record still has every issued write.
        let shorter = &log[..log.len().saturating_sub(cut).max(56)];
        prop_assert!(Verifier::resume(shorter).is_ok());
    }

    #[test]
    fn no_log_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), flip in 0usize..2000) {
        let _ = Verifier::resume(bytes.as_slice());
        let (_, mut log) = killed_run(1, 60);
        let at = flip % log.len();
        log[at] ^= 0x10;
        let result = Verifier::resume(log.as_slice());
        prop_assert_eq!(result.is_ok(), at >= log.len() - 16, "only the very last record may be cut off, byte {}", at);
    }
}

#[test]
fn a_lost_write_is_found_after_a_kill() {
    let mut device = Device::new(4096);
    let mut bytes = Vec::new();
    let mut log = Log::create(&mut bytes, &device.verifier).unwrap();
    for block in [1, 1, 2] {
        let (generation, data) = device.begin(block);
        log.begun(device.offset(block), generation).unwrap();
        if (block, generation) != (1, 2) {
            device.block(block).copy_from_slice(&data);
        }
        device.verifier.wrote(device.offset(block), generation, true);
        log.ended(device.offset(block), generation, true).unwrap();
    }
    device.verifier = Verifier::resume(bytes.as_slice()).unwrap().0;
    assert_eq!((device.fault().kind, device.fault().offset), (FaultKind::Lost, device.offset(1)));
}

#[test]
fn invalid_logs_are_refused() {
    let words = |bytes: &[u8]| Verifier::resume(bytes).unwrap_err().to_string();
    assert!(words(b"").contains("not a verification log"));
    assert!(words(b"SQLite format 3").contains("not a verification log"));
    let (_, mut log) = killed_run(1, 10);
    assert!(words(&log[..20]).contains("cut off"));
    assert!(words(&log[..50]).contains("cut off"));
    log[8] = 3;
    assert!(words(&log).contains("version 3"));
}

#[test]
fn too_many_blocks_and_odd_requests_are_refused() {
    let workload = |request| Workload { request_bytes: request, ..Workload::default() };
    assert!(
        Verifier::new(&workload(512), (0, 1 << 40), 1)
            .unwrap_err()
            .to_string()
            .contains("2147483648 blocks")
    );
    assert!(
        Verifier::new(&workload(1000), (0, 1 << 20), 1).unwrap_err().to_string().contains("1000 B")
    );
}

#[test]
fn units_are_incompressible() {
    let mut device = Device::new(4096);
    (0..BLOCKS).for_each(|block| drop(device.write(block)));
    let compressed = lz4_flex::block::compress(&device.bytes).len();
    assert!(
        compressed as f64 > 0.94 * device.bytes.len() as f64,
        "{compressed} of {}",
        device.bytes.len()
    );
}
