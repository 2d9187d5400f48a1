//! Sizes, rates and times of simulated drives, found from the run only.

mod common;

use common::{GIB, SECOND, drive, long, near, run};
use sustained::{ReserveKind, StopReason, SustainPlan};
use twin::description::Drive;

#[test]
fn write_caches_are_found() {
    let mut wrong = Vec::new();
    for number in 0..16usize {
        let size = [6.0, 14.0, 38.0, 90.0][number % 4] * GIB;
        let fast = [1.2e9, 1.7e9, 0.5e9, 1.5e9][(number / 2) % 4];
        let slow = fast * [0.06, 0.2, 0.4, 0.7][(number / 4) % 4];
        let drain = fast * [0.05, 0.12, 0.3][number % 3];
        let plan = long();
        let result = run(
            "nvme-qlc",
            |drive| {
                let Drive::CachedFlash(drive) = drive else { panic!("the drive") };
                (drive.cache_bytes, drive.full_cache_bytes) = (size as u64, None);
                drive.cache_bytes_per_s = fast;
                drive.full_bytes_per_s = slow;
                drive.cache_drain_bytes_per_s = drain;
            },
            &plan,
        );
        let found = result.reserve.unwrap_or_else(|| panic!("{number}: {:?}", result.sentences));
        assert_eq!(result.stopped, StopReason::Settled, "{number}");
        wrong.extend(
            [
                near("size", found.size_bytes, size),
                near("fast", found.fast_bytes_per_s, fast),
                near("slow", found.slow_bytes_per_s, slow),
                near("refill", found.refill_bytes_per_s.unwrap_or(0.0), drain),
                near("time", found.empties_in_s, size / fast),
                near("time to refill", found.refills_in_s.unwrap_or(0.0), size / drain),
                (found.kind != ReserveKind::Cache).then(|| format!("{:?}", found.kind)),
            ]
            .into_iter()
            .flatten()
            .map(|why| format!("{number}: {why}: {}", result.sentences.join(" "))),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn credits_are_found() {
    let mut wrong = Vec::new();
    for number in 0..14usize {
        let in_requests = number % 2 == 1;
        let unit = if in_requests { 16384.0 } else { 1.0 };
        let earn = if in_requests {
            [100.0, 300.0, 1000.0][number % 3]
        } else {
            [20e6, 60e6][number / 2 % 2]
        };
        let burst = earn * [3.0, 1.6, 10.0, 5.0][number % 4];
        let empties_s = [90.0, 300.0, 1200.0, 45.0][(number / 3) % 4];
        let credit = (burst - earn) * empties_s;
        let plan =
            SustainPlan { request_bytes: if in_requests { 16384 } else { 1 << 20 }, ..long() };
        let result = run(
            "cloud-hdd",
            |drive| {
                let Drive::Cloud(drive) = drive else { panic!("the drive") };
                (drive.read_us, drive.write_us) = (500.0, 500.0);
                if in_requests {
                    (drive.iops, drive.burst_iops, drive.credit_requests) = (earn, burst, credit);
                    drive.burst_bytes_per_s = 1e9;
                    drive.bytes_per_s = 1e9;
                } else {
                    (drive.iops, drive.burst_iops) = (1e5, 1e5);
                    drive.bytes_per_s = earn;
                    drive.burst_bytes_per_s = burst;
                    drive.credit_bytes = credit;
                }
            },
            &plan,
        );
        let found = result.reserve.unwrap_or_else(|| panic!("{number}: {:?}", result.sentences));
        wrong.extend(
            [
                near("credit", found.size_bytes, credit * unit),
                near("burst", found.fast_bytes_per_s, burst * unit),
                near("rate", found.slow_bytes_per_s, earn * unit),
                near("time to empty", found.empties_in_s, empties_s),
                near("time to refill", found.refills_in_s.unwrap_or(0.0), credit / earn),
                (found.kind != ReserveKind::Credit).then(|| format!("{:?}", found.kind)),
            ]
            .into_iter()
            .flatten()
            .map(|why| format!("{number}: {why}: {}", result.sentences.join(" "))),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_fuller_drive_has_a_smaller_cache() {
    let plan = SustainPlan { for_ns: 172_800 * SECOND, fills: vec![50, 100], ..long() };
    let result = run("nvme-qlc", |_| {}, &plan);
    let [half, full] = &result.fills[..] else { panic!("{:?}", result.sentences) };
    let Drive::CachedFlash(truth) = drive("nvme-qlc") else { panic!("the drive") };
    let (empty, least) = (truth.cache_bytes as f64, truth.full_cache_bytes.unwrap() as f64);
    for (fill, percent, truth) in [(half, 50, (empty + least) / 2.0), (full, 100, least)] {
        assert_eq!(fill.percent, percent);
        let reserve = fill.reserve.unwrap_or_else(|| panic!("{percent}: {:?}", fill.levels));
        assert!((reserve.size_bytes / truth - 1.0).abs() < 0.02, "{percent} %: {reserve:?}");
        assert!((reserve.fast_bytes_per_s / 1.8e9 - 1.0).abs() < 0.05, "{percent} %: {reserve:?}");
        assert!((reserve.slow_bytes_per_s / 100e6 - 1.0).abs() < 0.05, "{percent} %: {reserve:?}");
        assert!(fill.settled, "{percent} %");
    }
    assert!((result.reserve.unwrap().size_bytes / 140e9 - 1.0).abs() < 0.05);
    let said = result.sentences.join(" ");
    for words in ["With 50 % of the target filled", "With all of the target filled"] {
        assert!(said.contains(words), "{said}");
    }
    // Without the time for it, nothing is claimed.
    let plan = SustainPlan { for_ns: 1200 * SECOND, fills: vec![100], ..long() };
    let result = run("nvme-qlc", |_| {}, &plan);
    assert!(result.fills.is_empty(), "{:?}", result.fills);
    let missing = |one: &sustained::Unseen| one.what.contains("100 %");
    assert!(result.unseen.iter().any(missing), "{:?}", result.unseen);
}

#[test]
fn heat_is_named_as_the_cause() {
    let result = run("nvme-hot", |_| {}, &SustainPlan { max_written: 1 << 40, ..long() });
    let celsius = result.slowed_by_heat_at_c.unwrap_or_else(|| panic!("{:?}", result.sentences));
    assert!((77.0..=83.0).contains(&celsius), "{celsius}");
    assert!(result.sentences.iter().any(|one| one.contains("heat is the likely cause")));
    // A cool drive falls at the end of its cache.
    let cool = |drive: &mut Drive| {
        let Drive::CachedFlash(drive) = drive else { panic!("the drive") };
        drive.heat.as_mut().unwrap().rise_c = 20.0;
    };
    let result = run("nvme-hot", cool, &SustainPlan { max_written: 1 << 40, ..long() });
    let size = result.reserve.unwrap().size_bytes;
    assert!((size / 114e9 - 1.0).abs() < 0.05, "{size}");
    assert_eq!(result.slowed_by_heat_at_c, None, "{:?}", result.sentences);
}

#[test]
fn limits_hold_and_say_what_was_not_seen() {
    let plan = SustainPlan { max_written: 7 << 30, ..long() };
    let result = run("nvme-qlc", |_| {}, &plan);
    assert_eq!(result.stopped, StopReason::MaxWritten);
    assert!(result.reserve.is_none() && result.sentences[0].contains("no fall within 7.00 GiB"));
    let unseen = &result.unseen[0];
    assert!((unseen.needs_bytes.unwrap() / 1e12 - 1.0).abs() < 0.01, "{unseen:?}");
    // A volume that reports its credit says when it ends.
    let plan = SustainPlan { for_ns: 60 * SECOND, request_bytes: 16384, ..long() };
    let result = run("cloud-burst", |_| {}, &plan);
    let unseen = &result.unseen[0];
    assert!(unseen.needs_s.unwrap() > 2000.0 && unseen.what.contains("credit"), "{unseen:?}");
    assert!(result.took_s <= 61.0, "{}", result.took_s);
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let plan = SustainPlan { for_ns: 120 * SECOND, ..long() };
    let once = || run("nvme-qlc", |_| {}, &plan);
    assert_eq!(once(), once());
}
