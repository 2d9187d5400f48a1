//! Two stores in a row, a disk's memory, and a saw-tooth from heat.

mod common;

use common::{GIB, SECOND, long, near, run};
use sustained::{ReserveKind, SustainPlan};
use twin::description::Drive;

#[test]
fn two_credits_are_found() {
    let mut wrong = Vec::new();
    for number in 0..8usize {
        let requests_first = number % 2 == 0;
        let fast = [240e6, 500e6][number / 2 % 2];
        let middle = fast * [0.5, 0.25][number / 4];
        let slow = middle * [0.3, 0.6, 0.15][number % 3];
        let [first_s, second_s] = [[40.0, 200.0], [90.0, 300.0], [25.0, 120.0]][number % 3];
        // The first earns the middle rate while it is spent, the second the slow one.
        let first = (fast - middle) * first_s;
        let second = (fast - slow) * first_s + (middle - slow) * (second_s - first_s);
        let result = run(
            "cloud-hdd",
            |drive| {
                let Drive::Cloud(drive) = drive else { panic!("the drive") };
                (drive.read_us, drive.write_us) = (500.0, 500.0);
                let request = drive.request_bytes as f64;
                let (requests, bytes) = if requests_first {
                    ((middle, first), (slow, second))
                } else {
                    ((slow, second), (middle, first))
                };
                (drive.iops, drive.credit_requests) = (requests.0 / request, requests.1 / request);
                (drive.bytes_per_s, drive.credit_bytes) = bytes;
                (drive.burst_iops, drive.burst_bytes_per_s) = (fast / request, fast);
            },
            &long(),
        );
        let said = result.sentences.join(" ");
        let is_steady = result.steady.as_ref().is_some_and(|steady| steady.is_steady());
        assert_eq!(said.contains("a steady state, over "), is_steady, "{number}: {said}");
        let (Some(one), Some(other)) = (result.reserve, result.second_reserve) else {
            panic!("{number}: {said}")
        };
        wrong.extend(
            [
                near("burst", one.fast_bytes_per_s, fast),
                near("middle", one.slow_bytes_per_s, middle),
                near("rate", other.slow_bytes_per_s, slow),
                near("first credit", one.size_bytes, first),
                near("second credit", other.size_bytes, second),
                near("time to empty the first", one.empties_in_s, first_s),
                near("time to empty the second", other.empties_in_s, second_s),
                near("first refill", one.refills_in_s.unwrap_or(0.0), first / middle),
                near("second refill", other.refills_in_s.unwrap_or(0.0), second / slow),
                (other.kind != ReserveKind::Credit).then(|| format!("{:?}", other.kind)),
                (!said.contains("two burst credits")).then(|| "the sentence".to_owned()),
            ]
            .into_iter()
            .flatten()
            .map(|why| format!("{number}: {why}: {said}")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn two_caches_in_a_row_are_found() {
    let mut wrong = Vec::new();
    for number in 0..8usize {
        let middle = [1.0e9, 1.5e9][number % 2];
        let fast = middle * [1.8, 2.5][number / 2 % 2];
        let slow = middle * [0.1, 0.3][number / 4];
        let memory = (fast - middle) * [6.0, 12.0, 20.0][number % 3];
        let cache = [60.0, 140.0][number / 2 % 2] * GIB;
        let result = run(
            "nvme-qlc",
            |drive| {
                let Drive::CachedFlash(drive) = drive else { panic!("the drive") };
                (drive.cache_bytes, drive.full_cache_bytes) = (cache as u64, None);
                drive.buffer_bytes = memory as u64;
                drive.link_bytes_per_s = fast;
                drive.cache_bytes_per_s = middle;
                drive.full_bytes_per_s = slow;
                drive.cache_drain_bytes_per_s = slow * 3.0;
            },
            &long(),
        );
        let said = result.sentences.join(" ");
        let (Some(one), Some(other)) = (result.reserve, result.second_reserve) else {
            panic!("{number}: {said}")
        };
        wrong.extend(
            [
                near("fast", one.fast_bytes_per_s, fast),
                near("middle", one.slow_bytes_per_s, middle),
                near("slow", other.slow_bytes_per_s, slow),
                near("memory", one.size_bytes, memory),
                near("cache", other.size_bytes, cache),
                near("time to fill the memory", one.empties_in_s, memory / (fast - middle)),
                near("time to fill the cache", other.empties_in_s, cache / middle),
                (other.kind != ReserveKind::Cache).then(|| format!("{:?}", other.kind)),
                (!said.contains("two write caches in a row")).then(|| "the sentence".to_owned()),
            ]
            .into_iter()
            .flatten()
            .map(|why| format!("{number}: {why}: {said}")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_saw_tooth_of_heat_is_found_and_not_called_steady() {
    for (number, (rise_c, time_constant_s)) in
        [(90.0, 30.0), (90.0, 60.0), (120.0, 45.0), (70.0, 30.0)].into_iter().enumerate()
    {
        let hot = |drive: &mut Drive| {
            let Drive::CachedFlash(drive) = drive else { panic!("the drive") };
            // Without a cache, only heat changes the rate.
            drive.full_bytes_per_s = drive.cache_bytes_per_s;
            let heat = drive.heat.as_mut().unwrap();
            (heat.rise_c, heat.time_constant_s) = (rise_c, time_constant_s);
        };
        let plan = SustainPlan { for_ns: 600 * SECOND, ..long() };
        let result = run("nvme-hot", hot, &plan);
        let said = result.sentences.join(" ");
        let last = result.levels.last().unwrap();
        let [low, high] = last.saw_tooth.unwrap_or_else(|| panic!("{number}: {said}"));
        assert!((low / 0.8e9 - 1.0).abs() < 0.1, "{number}: {low}: {said}");
        assert!(high > 2.0 * low, "{number}: {high}: {said}");
        assert!(!result.steady.as_ref().unwrap().is_steady(), "{number}: {said}");
        let celsius = result.slowed_by_heat_at_c.unwrap_or_else(|| panic!("{number}: {said}"));
        assert!((78.0..=82.0).contains(&celsius), "{number}: {celsius}");
        for words in ["up and down between", "each time the rate fell", "not a steady state"] {
            assert!(said.contains(words), "{number}: '{words}' in {said}");
        }
    }
}
