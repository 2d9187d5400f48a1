//! A simulated machine that behaves over hours as a sustained run has shown.

use crate::Result;
use ::sustained::{Reserve, ReserveKind, SustainPlan, SustainedResult, sustain};
use machine::{Machine, TargetSpec};
use results::Program;
use serde::Serialize;
use twin::description::{CachedFlashDrive, CloudVolume, Drive};
use twin::{Setup, Twin};

/// Larger requests are limited in bytes, others in number.
const COUNTED_BYTES: u32 = 64 << 10;
/// The check's time limit; simulation takes no real time.
const CHECK_NS: u64 = 200_000_000_000_000;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedNumber {
    pub path: String,
    pub before: f64,
    pub after: f64,
}

/// Of the run, and of its repetition on the fitted machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reproduced {
    pub name: &'static str,
    pub measured: f64,
    pub simulated: f64,
}

#[derive(Debug, Clone)]
pub struct SustainedFit {
    pub setup: Setup,
    pub numbers: Vec<FittedNumber>,
    pub reproduced: Vec<Reproduced>,
}

impl SustainedFit {
    pub fn machine_file(&self) -> Result<String> {
        Ok(toml::to_string(&self.setup.description)?)
    }
}

/// Names a machine whose drive has such a reserve.
pub fn base(result: &SustainedResult) -> Option<&'static str> {
    Some(match result.reserve?.kind {
        ReserveKind::Credit if result.settings.request_bytes <= COUNTED_BYTES => "cloud-burst",
        ReserveKind::Credit => "cloud-hdd",
        ReserveKind::Cache | ReserveKind::Unknown => "nvme-qlc",
    })
}

/// Fits a machine's write cache or credit to a run, and repeats the run on it. `None` if the rate
/// did not fall, or the drive has neither.
pub fn fit_sustained(base: &Setup, result: &SustainedResult) -> Result<Option<SustainedFit>> {
    let Some(reserve) = result.reserve else { return Ok(None) };
    let mut setup = base.clone();
    let name = setup.drive.clone();
    let Some(drive) = setup.description.drives.get_mut(&name) else { return Ok(None) };
    let changed = match drive {
        Drive::CachedFlash(drive) => flash(drive, result, &reserve),
        Drive::Cloud(volume) => cloud(volume, result, &reserve),
        _ => return Ok(None),
    };
    let source = format!("fitted to a sustained run of {}", result.target.name);
    let numbers: Vec<FittedNumber> = changed
        .into_iter()
        .map(|(key, before, after)| {
            let path = format!("drives.{name}.{key}");
            setup.description.sources.insert(path.clone(), source.clone());
            FittedNumber { path, before, after }
        })
        .collect();
    let again = repeat(&setup, result)?;
    Ok(Some(SustainedFit { reproduced: reproduced(result, &again), setup, numbers }))
}

type Changed = Vec<(&'static str, f64, f64)>;

fn set(changed: &mut Changed, key: &'static str, number: &mut f64, value: f64) {
    changed.push((key, *number, value));
    *number = value;
}

fn set_bytes(changed: &mut Changed, key: &'static str, number: &mut u64, value: f64) {
    changed.push((key, *number as f64, value.round()));
    *number = value.round() as u64;
}

fn flash(drive: &mut CachedFlashDrive, result: &SustainedResult, reserve: &Reserve) -> Changed {
    let mut all = Vec::new();
    // The flash's own cache is the one behind a memory.
    let own = result.second_reserve.as_ref().unwrap_or(reserve);
    let buffer_bytes = if result.second_reserve.is_some() { reserve.size_bytes } else { 0.0 };
    let (fast, slow) = (own.fast_bytes_per_s, own.slow_bytes_per_s);
    if buffer_bytes > 0.0 || drive.buffer_bytes > 0 {
        set_bytes(&mut all, "buffer_bytes", &mut drive.buffer_bytes, buffer_bytes);
    }
    set_bytes(&mut all, "cache_bytes", &mut drive.cache_bytes, own.size_bytes);
    // The run shows the cache at one fill only.
    drive.full_cache_bytes = None;
    set(&mut all, "cache_bytes_per_s", &mut drive.cache_bytes_per_s, fast);
    set(&mut all, "full_bytes_per_s", &mut drive.full_bytes_per_s, slow);
    if let Some(refill) = own.refill_bytes_per_s {
        set(&mut all, "cache_drain_bytes_per_s", &mut drive.cache_drain_bytes_per_s, refill);
    }
    let fastest = reserve.fast_bytes_per_s;
    if fastest > drive.link_bytes_per_s || buffer_bytes > 0.0 {
        set(&mut all, "link_bytes_per_s", &mut drive.link_bytes_per_s, fastest);
    }
    let capacity = result.target.size_bytes.max(2 * drive.cache_bytes);
    set_bytes(&mut all, "capacity_bytes", &mut drive.capacity_bytes, capacity as f64);
    all
}

/// A volume's quota: keys and numbers of its rate, burst rate and credit.
struct Quota<'a> {
    keys: [&'static str; 3],
    numbers: [&'a mut f64; 3],
    /// Bytes per unit counted.
    unit: f64,
}

impl Quota<'_> {
    fn set(self, all: &mut Changed, reserve: &Reserve, burst: f64) {
        let values = [reserve.slow_bytes_per_s, burst, reserve.size_bytes];
        for ((key, number), value) in self.keys.into_iter().zip(self.numbers).zip(values) {
            set(all, key, number, value / self.unit);
        }
    }

    fn allow(self, all: &mut Changed, bytes_per_s: f64) {
        let needed = bytes_per_s / self.unit;
        let [rate, burst, _] = self.numbers;
        if needed > *rate {
            set(all, self.keys[0], rate, needed);
            set(all, self.keys[1], burst, needed);
        }
    }
}

fn cloud(volume: &mut CloudVolume, result: &SustainedResult, reserve: &Reserve) -> Changed {
    let mut all = Vec::new();
    let fast = reserve.fast_bytes_per_s;
    let request = f64::from(result.settings.request_bytes);
    // A large request counts as several.
    let counted = request.min(volume.request_bytes as f64);
    let requests = Quota {
        keys: ["iops", "burst_iops", "credit_requests"],
        numbers: [&mut volume.iops, &mut volume.burst_iops, &mut volume.credit_requests],
        unit: counted,
    };
    let bytes = Quota {
        keys: ["bytes_per_s", "burst_bytes_per_s", "credit_bytes"],
        numbers: [&mut volume.bytes_per_s, &mut volume.burst_bytes_per_s, &mut volume.credit_bytes],
        unit: 1.0,
    };
    let in_requests = result.settings.request_bytes <= COUNTED_BYTES;
    let (last, other) = if in_requests { (requests, bytes) } else { (bytes, requests) };
    match &result.second_reserve {
        Some(second) => {
            other.set(&mut all, reserve, fast);
            last.set(&mut all, second, fast);
        }
        None => {
            last.set(&mut all, reserve, fast);
            other.allow(&mut all, fast * 2.0);
        }
    }
    // A latency that is too long for the depth would limit the rate.
    let longest_us = f64::from(result.settings.depth) * request / fast * 1e6 / 4.0;
    if volume.write_us > longest_us {
        set(&mut all, "write_us", &mut volume.write_us, longest_us);
    }
    all
}

fn repeat(setup: &Setup, result: &SustainedResult) -> Result<SustainedResult> {
    let twin = Twin::new(setup.clone());
    let target = twin.open(&TargetSpec::default())?;
    let settings = &result.settings;
    let plan = SustainPlan {
        for_ns: CHECK_NS,
        max_written: u64::MAX,
        request_bytes: settings.request_bytes,
        pattern: settings.pattern,
        depth: settings.depth,
        step_ns: step_ns(result),
        fills: Vec::new(),
        endurance_bytes: None,
        seed: 1,
    };
    let program = Program { arguments: Vec::new(), ..result.program.clone() };
    Ok(sustain(&twin, &target, &plan, program, &mut |_| true, &mut |_| {})?)
}

/// A hundredth of the fast time: short runs are repeated as finely as long ones.
fn step_ns(result: &SustainedResult) -> u64 {
    let fast_s = result.reserve.map_or(100.0, |reserve| reserve.empties_in_s);
    ((fast_s / 100.0).clamp(0.02, 1.0) * 1e9) as u64
}

fn reproduced(measured: &SustainedResult, again: &SustainedResult) -> Vec<Reproduced> {
    let mut all = Vec::new();
    for (measured, again, quantities) in [
        (measured.reserve, again.reserve, &OF_FIRST[..]),
        (measured.second_reserve, again.second_reserve, &OF_SECOND[..]),
    ] {
        let Some(measured) = measured else { continue };
        all.extend(quantities.iter().filter_map(|&(name, quantity)| {
            let simulated = again.as_ref().and_then(quantity).unwrap_or(0.0);
            Some(Reproduced { name, measured: quantity(&measured)?, simulated })
        }));
    }
    all
}

type Quantity = (&'static str, fn(&Reserve) -> Option<f64>);

const OF_FIRST: [Quantity; 5] = [
    ("fast rate, bytes/s", |one| Some(one.fast_bytes_per_s)),
    ("rate after it, bytes/s", |one| Some(one.slow_bytes_per_s)),
    ("size, bytes", |one| Some(one.size_bytes)),
    ("time to empty, s", |one| Some(one.empties_in_s)),
    ("time to refill, s", |one| one.refills_in_s),
];

const OF_SECOND: [Quantity; 4] = [
    ("lasting rate, bytes/s", |one| Some(one.slow_bytes_per_s)),
    ("size of the second, bytes", |one| Some(one.size_bytes)),
    ("time to empty the second, s", |one| Some(one.empties_in_s)),
    ("time to refill the second, s", |one| one.refills_in_s),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn run(setup: &Setup, request_bytes: u32) -> SustainedResult {
        let twin = Twin::new(setup.clone());
        let target = twin.open(&TargetSpec::default()).unwrap();
        let plan = SustainPlan {
            for_ns: CHECK_NS,
            max_written: u64::MAX,
            request_bytes,
            ..SustainPlan::default()
        };
        let program =
            Program { name: "halfpower".into(), version: String::new(), arguments: Vec::new() };
        sustain(&twin, &target, &plan, program, &mut |_| true, &mut |_| {}).unwrap()
    }

    fn fitted(truth: &Setup, request_bytes: u32) -> SustainedFit {
        let result = run(truth, request_bytes);
        let base = Setup::parse(base(&result).unwrap()).unwrap();
        let fit = fit_sustained(&base, &result).unwrap().unwrap();
        for one in &fit.reproduced {
            let off = one.simulated / one.measured - 1.0;
            // A second cache refills while the first one drains into it.
            let limit = if one.name.contains("refill the second") { 0.15 } else { 0.05 };
            assert!(off.abs() < limit, "{one:?}: {:?}", fit.numbers);
        }
        let again = twin::preset::parse("fitted.toml", &fit.machine_file().unwrap()).unwrap();
        assert_eq!(again, fit.setup.description);
        fit
    }

    #[test]
    fn a_write_cache_is_fitted() {
        let mut truth = Setup::parse("nvme-qlc").unwrap();
        if let Some(Drive::CachedFlash(drive)) = truth.description.drives.get_mut("qlc") {
            (drive.cache_bytes, drive.full_cache_bytes) = (41 << 30, None);
            (drive.cache_bytes_per_s, drive.full_bytes_per_s) = (1.1e9, 0.3e9);
            drive.cache_drain_bytes_per_s = 0.5e9;
        }
        let fit = fitted(&truth, 1 << 20);
        let Drive::CachedFlash(drive) = fit.setup.drive() else { panic!("a cache") };
        let near = |found: f64, truth: f64| assert!((found / truth - 1.0).abs() < 0.05, "{found}");
        near(drive.cache_bytes as f64, (41u64 << 30) as f64);
        near(drive.cache_bytes_per_s, 1.1e9);
        near(drive.full_bytes_per_s, 0.3e9);
        near(drive.cache_drain_bytes_per_s, 0.5e9);
    }

    #[test]
    fn a_credit_in_requests_is_fitted() {
        let mut truth = Setup::parse("cloud-burst").unwrap();
        if let Some(Drive::Cloud(volume)) = truth.description.drives.get_mut("volume") {
            (volume.iops, volume.burst_iops, volume.credit_requests) = (500.0, 2000.0, 300_000.0);
        }
        let fit = fitted(&truth, 16 << 10);
        let Drive::Cloud(volume) = fit.setup.drive() else { panic!("a credit") };
        let near = |found: f64, truth: f64| assert!((found / truth - 1.0).abs() < 0.05, "{found}");
        near(volume.iops, 500.0);
        near(volume.burst_iops, 2000.0);
        near(volume.credit_requests, 300_000.0);
    }

    #[test]
    fn two_credits_are_fitted() {
        let mut truth = Setup::parse("cloud-hdd").unwrap();
        let name = truth.drive.clone();
        if let Some(Drive::Cloud(volume)) = truth.description.drives.get_mut(&name) {
            (volume.iops, volume.burst_iops, volume.credit_requests) = (100.0, 300.0, 10_000.0);
            (volume.bytes_per_s, volume.burst_bytes_per_s) = (30e6, 400e6);
            volume.credit_bytes = 30e9;
            volume.write_us = 500.0;
        }
        let fit = fitted(&truth, 1 << 20);
        let Drive::Cloud(volume) = fit.setup.drive() else { panic!("a credit") };
        let near = |found: f64, truth: f64| assert!((found / truth - 1.0).abs() < 0.05, "{found}");
        near(volume.iops, 100.0);
        near(volume.burst_iops, 300.0);
        near(volume.credit_requests, 10_000.0);
        near(volume.bytes_per_s, 30e6);
        near(volume.credit_bytes, 30e9);
    }

    #[test]
    fn two_caches_in_a_row_are_fitted() {
        let mut truth = Setup::parse("nvme-qlc").unwrap();
        if let Some(Drive::CachedFlash(drive)) = truth.description.drives.get_mut("qlc") {
            (drive.cache_bytes, drive.full_cache_bytes) = (90 << 30, None);
            (drive.buffer_bytes, drive.link_bytes_per_s) = (12 << 30, 2.5e9);
            (drive.cache_bytes_per_s, drive.full_bytes_per_s) = (1.2e9, 0.2e9);
            drive.cache_drain_bytes_per_s = 0.5e9;
        }
        let fit = fitted(&truth, 1 << 20);
        let Drive::CachedFlash(drive) = fit.setup.drive() else { panic!("a cache") };
        let near = |found: f64, truth: f64| assert!((found / truth - 1.0).abs() < 0.05, "{found}");
        near(drive.buffer_bytes as f64, (12u64 << 30) as f64);
        near(drive.cache_bytes as f64, (90u64 << 30) as f64);
        near(drive.cache_bytes_per_s, 1.2e9);
        near(drive.full_bytes_per_s, 0.2e9);
    }
}
