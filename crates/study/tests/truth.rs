//! The study on machines of known truth: it must find the numbers of the description by measuring.

mod sound;

use machine::units::{KIB, MIB};
use machine::{Machine, TargetSpec};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use results::{HalfPower, Limit, LimitOf, Program, Results};
use study::{Effort, Plan};
use twin::description::{Description, Drive, ZoneLaw};
use twin::settings::Setup;
use twin::{Twin, preset};

fn study(twin: &Twin, effort: Effort, only: &[&str]) -> Results {
    let plan = Plan {
        budget_ns: 60_000_000_000,
        effort,
        only: only.iter().map(ToString::to_string).collect(),
        seed: 7,
    };
    let program = Program { name: "test".into(), version: "0".into(), arguments: Vec::new() };
    let results = study::study(twin, &TargetSpec::default(), &plan, program, &mut |_| {});
    sound::sound(results.expect("a study"))
}

fn near(what: &str, found: f64, truth: f64, tolerance: f64) -> Result<(), TestCaseError> {
    prop_assert!(
        (found / truth - 1.0).abs() <= tolerance,
        "{}: found {}, in truth {}",
        what,
        found,
        truth
    );
    Ok(())
}

/// Runs few cases, because a whole study takes time.
fn few(cases: u32) -> ProptestConfig {
    // Fixed seeds, so a tolerance does not fail on some days.
    let rng_seed = RngSeed::Fixed(1997);
    ProptestConfig {
        cases,
        rng_seed,
        max_shrink_iters: 30,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[derive(Debug, Clone)]
struct Behind {
    request_us: f64,
    request_ns_per_byte: f64,
    cores: u32,
    notify_us: f64,
    workers: u32,
    fixed_us: f64,
    rate: f64,
    total: f64,
}

impl Behind {
    fn description(&self) -> Description {
        let mut machine = preset::load("virtio").expect("a preset");
        let processor = &mut machine.processor;
        (processor.request_us, processor.request_ns_per_byte, processor.cores) =
            (self.request_us, self.request_ns_per_byte, self.cores);
        machine.file_system.command_bytes = 64 * MIB;
        let Some(Drive::Virtio(disk)) = machine.drives.get_mut("vda") else {
            panic!("virtio has a vda")
        };
        (disk.notify_us, disk.workers) = (self.notify_us, self.workers);
        (disk.read_us, disk.write_us) = (self.fixed_us, self.fixed_us);
        (disk.read_bytes_per_s, disk.write_bytes_per_s, disk.total_bytes_per_s) =
            (self.rate, self.rate, self.total);
        machine
    }

    fn twin(&self) -> Twin {
        Twin::new(Setup::of(self.description()))
    }

    fn cpu_ns(&self, bytes: f64) -> f64 {
        self.request_us * 1e3 + self.request_ns_per_byte * bytes
    }

    fn fixed_ns(&self) -> f64 {
        (self.request_us + self.notify_us + self.fixed_us) * 1e3
    }

    fn ns_per_byte(&self) -> f64 {
        self.request_ns_per_byte + 1e9 / self.rate
    }

    /// Returns bytes per second.
    fn throughput(&self, bytes: f64, depth: f64) -> f64 {
        self.throughput_of(bytes, depth, 1)
    }

    fn throughput_of(&self, bytes: f64, depth: f64, threads: u32) -> f64 {
        let one = self.fixed_ns() + self.ns_per_byte() * bytes;
        let workers = f64::from(self.workers) / (self.fixed_us * 1e3 + 1e9 / self.rate * bytes);
        // Each thread issues requests on one processor at a time.
        let processor = f64::from(threads.min(self.cores)) / self.cpu_ns(bytes);
        let requests = (depth / one).min(workers).min(processor).min(self.total / 1e9 / bytes);
        requests * 1e9 * bytes
    }

    fn peak(&self, results: &Results) -> f64 {
        let reads = results.points.iter().filter(|point| {
            point.workload.op.name() == "read" && point.workload.buffering.is_direct()
        });
        // The limit of the peak reports what gains over it.
        let of_peak = |limit: &&Limit| limit.of == LimitOf::Peak && limit.op.name() == "read";
        let answer = results.answer.as_ref().expect("an answer");
        let tried: Vec<usize> = answer
            .limits
            .iter()
            .filter(of_peak)
            .flat_map(|limit| &limit.trials)
            .filter_map(|trial| trial.after)
            .collect();
        reads
            .filter(|point| {
                !tried.iter().any(|&index| std::ptr::eq(*point, &results.points[index]))
            })
            .map(|point| {
                self.throughput_of(
                    f64::from(point.workload.request_bytes),
                    f64::from(point.workload.outstanding()),
                    point.workload.threads,
                )
            })
            .fold(0.0, f64::max)
    }
}

prop_compose! {
    fn behind()(
        request_us in 1.0f64..200.0,
        request_ns_per_byte in 0.001f64..2.0,
        cores in 1u32..9,
        notify_us in 1.0f64..300.0,
        workers in 1u32..9,
        fixed_us in 5.0f64..5000.0,
        rate in 5e6f64..2e9,
        share in 1.05f64..6.0,
    ) -> Behind {
        Behind { request_us, request_ns_per_byte, cores, notify_us, workers, fixed_us, rate, total: rate * share }
    }
}

fn half<'a>(results: &'a Results, of: &str, at: &str) -> Option<&'a HalfPower> {
    let all = &results.answer.as_ref().expect("an answer").half_power;
    all.iter().find(|one| {
        one.of.name() == of
            && one.at == at
            && one.op.name() == "read"
            && one.peak_from.name() == "measured"
    })
}

proptest! {
    #![proptest_config(few(24))]

    #[test]
    fn service_time_and_peak(machine in behind()) {
        let results = study(&machine.twin(), Effort::Quick, &["unbuffered", "depth"]);
        let answer = results.answer.as_ref().unwrap();
        for mode in ["direct read", "direct write"] {
            let model = answer.service_times.iter().find(|model| model.mode.name() == mode).unwrap();
            near("fixed time", model.fixed_ns, machine.fixed_ns(), 0.01)?;
            near("rate", model.rate_bytes_per_s.unwrap(), 1e9 / machine.ns_per_byte(), 0.01)?;
        }
        let peak = answer.peaks.iter().find(|peak| peak.op.name() == "read").unwrap();
        near("peak", peak.throughput_bytes_per_s, machine.peak(&results), 0.05)?;
    }

    #[test]
    fn half_power(machine in behind()) {
        let results = study(&machine.twin(), Effort::Normal, &["depth"]);
        let peak = results.answer.as_ref().unwrap().peaks.iter().find(|peak| peak.op.name() == "read").unwrap().throughput_bytes_per_s;
        // size / (fixed + size x slope) = peak / 2
        let truth = machine.fixed_ns() / (2e9 / peak - machine.ns_per_byte());
        let found = half(&results, "request_bytes", "depth 1").unwrap();
        if truth > 0.0 && (1024.0..8e6).contains(&truth) {
            // Compare the rate, not the size: if depth 1 hardly gets there the curve is flat.
            near("rate at half power", machine.throughput(found.crossing.unwrap(), 1.0), peak / 2.0, 0.005)?;
            prop_assert!(found.smallest.unwrap() >= truth * 0.97);
        } else if truth < 0.0 {
            prop_assert!(found.smallest.is_none(), "one request at a time never gets half of {}: {:?}", peak, found);
        }
        for (size, name) in [(4 * KIB, "4 KiB requests"), (64 * KIB, "64 KiB requests"), (MIB, "1 MiB requests")] {
            let at = |depth: f64| machine.throughput(size as f64, depth) / peak;
            let depths = [1.0, 3.0, 8.0, 32.0, 128.0];
            if depths.iter().any(|&depth| (0.45..0.55).contains(&at(depth))) {
                // Too close to half: the rounding of a run decides the side.
                continue;
            }
            let truth = depths.into_iter().find(|&depth| at(depth) >= 0.5);
            let found = half(&results, "depth", name).unwrap();
            prop_assert_eq!(found.smallest, truth, "{}", name);
        }
    }

    #[test]
    fn cost_models(machine in behind(), buffered in (1.0f64..100.0, 0.05f64..10.0), written in (1.0f64..100.0, 0.05f64..10.0)) {
        let mut description = machine.description();
        let processor = &mut description.processor;
        (processor.buffered_read_us, processor.buffered_read_ns_per_byte, processor.large_read_ns_per_byte) = (buffered.0, buffered.1, 0.0);
        (processor.buffered_write_us, processor.buffered_write_ns_per_byte, processor.large_write_ns_per_byte) = (written.0, written.1, 0.0);
        let mut setup = Setup::of(description);
        // No write-back during the run.
        setup.temporary = true;
        let results = study(&Twin::new(setup), Effort::Quick, &["cost"]);
        let direct = (machine.request_us, machine.request_ns_per_byte);
        for (mode, (us, ns_per_byte)) in [("direct read", direct), ("direct write", direct), ("buffered read", buffered), ("buffered write", written)] {
            let costs = &results.answer.as_ref().unwrap().costs;
            let model = costs.iter().find(|model| model.mode.name() == mode && model.whose.name() == "process").unwrap();
            // Bytes are negligible in the smallest request, and almost everything in the largest.
            near(mode, model.ns_per_request, us * 1e3, 0.02 + 5.0 / (us * 1e3))?;
            near(mode, model.ns_per_byte, ns_per_byte, 0.02)?;
        }
    }

    #[test]
    fn a_cap_on_bytes(cap in 20e6f64..400e6, latency in 200.0f64..900.0) {
        let mut description = preset::load("cloud").unwrap();
        let Some(Drive::Cloud(volume)) = description.drives.get_mut("volume") else { panic!("a cloud volume") };
        (volume.bytes_per_s, volume.burst_bytes_per_s, volume.read_us, volume.write_us) = (cap, cap, latency, latency);
        (volume.iops, volume.burst_iops) = (100_000.0, 100_000.0);
        let results = study(&Twin::new(Setup::of(description)), Effort::Quick, &["depth"]);
        for op in ["read", "write"] {
            limited(&results, op, "throttle", cap, 0.03)?;
        }
    }

    #[test]
    fn a_cap_on_requests(cap in 100.0f64..900.0) {
        let mut description = preset::load("cloud").unwrap();
        description.file_system.command_bytes = 262_144;
        let Some(Drive::Cloud(volume)) = description.drives.get_mut("volume") else { panic!("a cloud volume") };
        (volume.bytes_per_s, volume.burst_bytes_per_s, volume.request_bytes) = (1e9, 1e9, 262_144);
        (volume.iops, volume.burst_iops) = (cap, cap);
        let results = study(&Twin::new(Setup::of(description)), Effort::Quick, &["depth"]);
        limited(&results, "read", "throttle", cap * 262_144.0, 0.03)?;
    }

    #[test]
    fn the_processor(machine in behind(), slow in 2.0f64..8.0) {
        let machine = Behind { cores: 1, workers: 8, request_ns_per_byte: slow * 1e9 / machine.rate, ..machine };
        let results = study(&machine.twin(), Effort::Quick, &["depth"]);
        // Of a run's few large requests, those count whose work started in the warm-up.
        limited(&results, "read", "processor", machine.peak(&results), 0.05)?;
    }

    #[test]
    fn a_bus_or_its_disks(share in 0.2f64..0.8, disks in 2u32..5) {
        let mut description = preset::load("gateway-1997").unwrap();
        let Some(Drive::Disk(disk)) = description.drives.get_mut("st34371w") else { panic!("a disk") };
        let zone = disk.zones[0].1;
        disk.zones = vec![(5000, zone)];
        let outer = zone as f64 * 512.0 * disk.rpm / 60.0;
        let media = outer / (1.0 + disk.track_skew_ms * 1e-3 * disk.rpm / 60.0);
        let bus = description.buses.get_mut("ultra-wide").unwrap();
        let rate = share * media * f64::from(disks);
        (bus.advertised_bytes_per_s, bus.in_bytes_per_s, bus.out_bytes_per_s) = (rate, rate, rate);
        let mut setup = Setup::of(description);
        (setup.disks, setup.buses, setup.wce) = (disks, 1, true);
        setup.drive = "st34371w".into();
        let results = study(&Twin::new(setup), Effort::Quick, &["depth"]);
        limited(&results, "read", "bus", rate, 0.10)?;
    }

}

proptest! {
    #![proptest_config(few(8))]

    /// The rate of the tracks includes the skews between them.
    #[test]
    fn a_disk(rpm in 4000.0f64..15_000.0, sectors in 80u64..2000, heads in 2u64..12, skew in 0.05f64..0.3) {
        let mut description = preset::load("hdd-20tb").unwrap();
        let revolution_ms = 60e3 / rpm;
        let Some(Drive::Disk(disk)) = description.drives.get_mut("exos") else { panic!("a disk") };
        (disk.rpm, disk.heads, disk.cache.write_bytes) = (rpm, heads, 2 * MIB);
        disk.zone_law = Some(ZoneLaw { cylinders: 20_000, outer_sectors: sectors, inner_sectors: sectors, outer_percent: 50.0, inner_zones: 1 });
        (disk.track_skew_ms, disk.cylinder_skew_ms) = (skew * revolution_ms, (skew + 0.1) * revolution_ms);
        (disk.head_switch_ms, disk.write_head_switch_ms) = (disk.track_skew_ms * 0.5, disk.track_skew_ms * 0.5);
        disk.seek = vec![(1, disk.cylinder_skew_ms * 0.5), (20_000, 20.0)];
        disk.write_settle_ms = 0.0;
        let heads = heads as f64;
        let bytes = heads * sectors as f64 * 512.0;
        let truth = bytes / ((heads + (heads - 1.0) * skew + skew + 0.1) * revolution_ms * 1e-3);
        let results = study(&Twin::new(Setup::of(description)), Effort::Quick, &["depth"]);
        limited(&results, "read", "media", truth, 0.06)?;
    }
}

fn limited(
    results: &Results,
    op: &str,
    what: &str,
    rate: f64,
    tolerance: f64,
) -> Result<(), TestCaseError> {
    let answer = results.answer.as_ref().unwrap();
    let limit = answer.limits.iter().find(|limit| limit.op.name() == op).unwrap();
    prop_assert_eq!(limit.what.name(), what, "{}", limit.sentence);
    near(
        "peak",
        answer.peaks.iter().find(|peak| peak.op.name() == op).unwrap().throughput_bytes_per_s,
        rate,
        tolerance,
    )
}

/// The fixed time is a revolution, except for writes that catch the gap between two tracks.
#[test]
fn writes_without_a_write_cache_cost_a_revolution() {
    for rpm in [3600.0, 5400.0, 7200.0] {
        let mut description = preset::load("gateway-1997").unwrap();
        description.file_system.command_bytes = 2 * MIB;
        let Some(Drive::Disk(disk)) = description.drives.get_mut("st34371w") else {
            panic!("a disk")
        };
        disk.rpm = rpm;
        let mut setup = Setup::of(description);
        (setup.drive, setup.wce) = ("st34371w".into(), false);
        let twin = Twin::new(setup);
        let results = study(&twin, Effort::Quick, &["unbuffered"]);
        let models = &results.answer.as_ref().unwrap().service_times;
        let model = models.iter().find(|model| model.mode.name() == "direct write").unwrap();
        let revolution = 60e9 / rpm;
        assert!(
            (model.fixed_ns / revolution - 1.0).abs() < 0.05,
            "{rpm} rpm: {} of {revolution}",
            model.fixed_ns
        );
        assert!(!twin.capabilities().noisy);
    }
}

/// Prefetched data follow one law and fetched data another: a single line would miss points by 30
/// %.
#[test]
fn service_times_of_the_drives_of_1997_fit_regime_by_regime() {
    // Table 3 of the study: the prefetch hit at size zero, and the rate of the bus.
    for (drive, fixed_ms, bus_bytes_per_s) in [("st15150w", 0.5, 18e6), ("st34371w", 0.3, 35e6)] {
        let twin = Twin::from_name(&format!("gateway-1997,drive={drive}")).unwrap();
        let results = study(&twin, Effort::Normal, &["unbuffered", "device_cache"]);
        let models = &results.answer.as_ref().unwrap().service_times;
        for model in models {
            assert!(model.rms_residual < 0.1, "{drive}: {model:?}");
        }
        let hits = models
            .iter()
            .find(|model| model.mode.name() == "the next block after a pause")
            .unwrap();
        let [min, max] = hits.sizes_bytes.unwrap();
        assert!(min <= 2048.0 && (8192.0..=131_072.0).contains(&max), "{drive}: {hits:?}");
        assert!((hits.fixed_ns / (fixed_ms * 1e6) - 1.0).abs() < 0.1, "{drive}: {hits:?}");
        assert!(
            (hits.rate_bytes_per_s.unwrap() / bus_bytes_per_s - 1.0).abs() < 0.1,
            "{drive}: {hits:?}"
        );
    }
}
