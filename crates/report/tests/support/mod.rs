//! A study of a fast virtual disk: every experiment, a failed point, a skipped experiment, doubts,
//! warnings and hostile names. A small model with a seeded disturbance makes it the same each time.

#![allow(dead_code)]

mod answer;
pub mod browser;
mod experiments;

use machine::{
    Buffering, Engine, Layer, LayerKind, MachineFacts, RequestTimes, Stage, StageTime, TargetFacts,
    TargetKind, TimesSource,
};
use results::{Achieved, CpuPerRequest, LatencySummary, Numbers, OperationRate, Point};
use results::{Kind, Program, Results, SCHEMA};
use std::collections::BTreeMap;
use workload::{Pattern, Workload};

pub const MIB: f64 = 1048576.0;

/// Returns a disturbance in -1..1 that depends on the number only.
fn disturbance(number: u64) -> f64 {
    let mut x = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 32;
    (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Returns the modelled rate in bytes per second.
pub fn modelled(workload: &Workload) -> f64 {
    let size = f64::from(workload.request_bytes);
    let outstanding = f64::from(workload.depth * workload.threads);
    let reads = workload.read_percent == 100;
    let random = if workload.pattern == Pattern::Seq { 1.0 } else { 1.35 };
    let (fixed_s, peak) =
        if reads { (78e-6 * random, 1640.0 * MIB) } else { (118e-6 * random, 905.0 * MIB) };
    let fixed_s = match workload.buffering {
        Buffering::DirectDsync | Buffering::BufferedDsync => fixed_s * 6.0,
        _ => fixed_s,
    };
    let engine = match workload.engine {
        Engine::Sync | Engine::Splice | Engine::IoUring | Engine::Null => 1.0,
        Engine::Events | Engine::Routines | Engine::Port => 0.97,
        Engine::Libaio => 0.97,
        Engine::Threads => 0.88,
        Engine::Mmap => 0.55,
    };
    let alone = size / (fixed_s + size / (2600.0 * MIB));
    // Queueing grows near the peak.
    let wanted = alone * outstanding * engine;
    let aligned = if workload.offset_bytes.is_multiple_of(4096) { 1.0 } else { 0.88 };
    let rate = wanted / (1.0 + (wanted / peak).powi(4)).powf(0.25) * aligned;
    match workload.buffering {
        Buffering::Buffered => rate.max(size / (0.9e-6 + size / (4200.0 * MIB)) * 0.28),
        _ => rate,
    }
}

pub fn point(workload: Workload, number: u64) -> Point {
    let noise = disturbance(number);
    let rate = modelled(&workload) * (1.0 + 0.02 * noise);
    let size = f64::from(workload.request_bytes);
    let iops = rate / size;
    let depth = f64::from(workload.depth * workload.threads);
    let service = depth / iops * 1e9;
    let width = 0.008 + 0.02 * disturbance(number + 7777).abs();
    let repeats = 3 + number as u32 % 4;
    let ns = |factor: f64| (service * factor) as u64;
    let buffered = !workload.buffering.is_direct();
    let process = 3_100.0 + size * if buffered { 0.118 } else { 0.011 };
    let mut warnings = Vec::new();
    if number % 41 == 40 {
        warnings.push("the hypervisor took 7 % of a processor away during the runs".to_string());
    }
    Point {
        workload: workload.clone().into(),
        error: None,
        verification: None,
        stripe: None,
        whole_bursts: false,
        numbers: Some(Numbers {
            throughput_bytes_per_s: rate,
            iops,
            interval_95: (number % 29 != 28)
                .then_some([rate * (1.0 - width), rate * (1.0 + width * 0.8)]),
            relative_half_width: (number % 29 != 28).then_some(width * 0.9),
            repeats,
            runs_bytes_per_s: (0..repeats)
                .map(|run| rate * (1.0 + 0.01 * disturbance(number * 10 + u64::from(run))))
                .collect(),
            runs: Vec::new(),
            latency_ns: LatencySummary {
                mean: service,
                min: ns(0.61),
                p50: ns(0.94),
                p90: ns(1.31),
                p99: ns(2.6),
                p999: ns(7.9),
                p9999: ns(19.0),
                p99999: ns(31.0),
                p999999: ns(44.0),
                max: ns(44.0),
                count: (iops * 2.0) as u64,
            },
            read_latency_ns: None,
            write_latency_ns: None,
            over_time: Vec::new(),
            rate_change: None,
            clients: None,
            cpu_ns_per_request: CpuPerRequest {
                user: process * 0.22,
                system: process * 0.78,
                machine: process * 1.3,
                process_interval_95: Some([process * 0.97, process * 1.04]),
            },
            achieved: Achieved {
                waits_per_request: None,
                parity_ns_per_mib: None,
                parity_percent: None,
                wait_completions: None,
                polled: None,
                measured_ns: 2_000_000_000,
                requests: (iops * 2.0) as u64,
                bytes: (rate * 2.0) as u64,
                mean_depth: depth * 0.998,
                mean_service_ns: service,
                little_error_percent: 0.02,
                device_request_bytes: Some(size.min(1280.0 * 1024.0)),
                device_mean_depth: Some(depth * 0.93),
                device_busy_percent: Some(97.5),
                device_bytes_foreign_share: Some(0.001),
                from_cache_percent: Some(0.0),
                direct: !buffered,
                busy_processors: (iops * process * 1.3 / 1e9).min(2.0),
                process_busy_percent: None,
                unserved_percent: None,
                sync_unserved_percent: None,
                dirty_percent: None,
                dirty_held_percent: None,
                disturbances: results::Disturbances::default(),
                steal_percent: 0.4,
                sync_ns: (workload.writes() && buffered).then_some(412e6),
                synced_bytes_per_s: (workload.writes() && buffered).then_some(rate),
                synced_interval_95: (workload.writes() && buffered)
                    .then_some([rate * 0.98, rate * 1.02]),
                returned_bytes_per_s: (workload.writes() && buffered).then_some(rate / 0.71),
                cached_read_percent: None,
                cached_write_percent: None,
                warm_up_ns: 40e6,
                instructions_per_request: None,
                driver_ceiling_iops: Some(4.1e6),
                no_op_ceiling_iops: (workload.engine == Engine::IoUring).then_some(2.6e6),
                of_ceiling_percent: Some(iops / 2.6e4),
                request_times: (!buffered).then(|| request_times(service)),
                request_times_unknown: None,
                resources: Vec::new(),
            },
            warnings,
            doubts: Vec::new(),
        }),
    }
}

fn request_times(service_ns: f64) -> RequestTimes {
    let stages = [
        (Stage::Submit, 0.02),
        (Stage::Queue, 0.07),
        (Stage::Device, 0.86),
        (Stage::Completion, 0.05),
    ];
    let stage =
        |(stage, share)| StageTime { stage, mean_ns: share * service_ns, percent: share * 100.0 };
    RequestTimes {
        source: TimesSource::TracePoints,
        requests: 4000,
        device_requests_per_request: None,
        stages: stages.map(stage).into(),
    }
}

pub fn workload(read: bool, request_bytes: u32, depth: u32) -> Workload {
    Workload {
        read_percent: if read { 100 } else { 0 },
        request_bytes,
        depth,
        engine: if depth > 1 { Engine::IoUring } else { Engine::Sync },
        ..Workload::default()
    }
}

pub fn study() -> Results {
    let mut points = Vec::new();
    let experiments = experiments::all(&mut points);
    let answer = answer::answer(&points, &experiments);
    Results {
        schema: SCHEMA.into(),
        program: Program {
            name: "halfpower".into(),
            version: "0.1.0".into(),
            arguments: ["study", "/srv/data", "--budget", "3m", "--output", "out"]
                .map(String::from)
                .to_vec(),
        },
        kind: Kind::Study,
        target: target(),
        machine: machine(),
        began_unix_s: 1_770_000_000,
        elapsed_ns: 182_400_000_000,
        budget_ns: Some(180_000_000_000),
        seed: 42,
        points,
        rates: Vec::new(),
        latency_goals: Vec::new(),
        seconds: Vec::new(),
        interference: None,
        incomplete: false,
        experiments,
        answer: Some(answer),
        ladder: Some(answer::ladder()),
        clients: None,
        scaling: Vec::new(),
        operation_scaling: Vec::new(),
        warnings: vec![
            "the hypervisor took up to 7 % of a processor away: rates of small requests may be low"
                .into(),
        ],
    }
}

pub fn sweep() -> Results {
    let mut points = Vec::new();
    for depth in [1, 8, 32] {
        for shift in [12, 14, 16, 18, 20] {
            points.push(point(workload(true, 1 << shift, depth), points.len() as u64));
        }
    }
    let failed = points[9].workload.workload.clone();
    points[9] = Point::failed(
        failed,
        "a read of 1048576 bytes at offset 734003200 failed: Input/output error (os error 5)",
    );
    Results {
        kind: Kind::Sweep,
        points,
        experiments: Vec::new(),
        answer: None,
        ladder: None,
        clients: None,
        scaling: Vec::new(),
        budget_ns: None,
        warnings: Vec::new(),
        ..study()
    }
}

pub fn run() -> Results {
    let mut one = point(Workload { pattern: Pattern::Random, ..workload(true, 4096, 32) }, 40);
    if let Some(numbers) = &mut one.numbers {
        numbers.warnings.push("another process read 12 MiB/s from vda meanwhile".into());
    }
    Results { kind: Kind::Run, points: vec![one], ..sweep() }
}

pub fn metadata() -> Results {
    let rate = |operation: &str, per_s: f64, timed: bool| OperationRate {
        operation: operation.into(),
        settings: "--files 10000 --directories 100".into(),
        count: 10_000,
        per_s,
        interval_95: timed.then_some([per_s * 0.96, per_s * 1.03]),
        latency_ns: timed.then(|| {
            point(workload(true, 4096, 1), 7).numbers.expect("a measured point").latency_ns
        }),
        cpu_ns: timed.then_some(4_210.0),
    };
    Results {
        kind: Kind::Metadata,
        points: Vec::new(),
        rates: vec![
            rate("create", 81_234.5, true),
            rate("stat", 912_000.0, true),
            rate("delete", 120_400.0, false),
        ],
        ..sweep()
    }
}

/// Returns figures that are hard to draw.
pub fn crowded() -> Results {
    use results::{Axis, Experiment, Figure, PeakSource, Series, Value};
    let value = |x: f64, y: f64| Value {
        x,
        y: Some(y),
        interval_95: Some([y * 0.5, y * 1.8]),
        point: Some(0),
    };
    let series = |name: &str, values: Vec<Value>| Series::new(name, values);
    let figure = |id: &str, x, y, series| Figure {
        id: id.into(),
        title: format!("A crowded figure: {id}"),
        x,
        y,
        series,
    };
    let peak = 800.0 * MIB;
    let many: Vec<Series> = (0..16)
        .map(|place| {
            let rate = |x: f64| peak * x / (x + 1000.0 * f64::from(1 << (place % 10)));
            let mut curve = series(
                &format!("depth {}", place + 1),
                (9..=22)
                    .map(|power| value(f64::from(1 << power), rate(f64::from(1 << power))))
                    .collect(),
            );
            let name = results::CurveName::from(&*curve.name);
            curve.parts = Some(name.ordered(place as u32));
            curve.half_power = Some(results::HalfPower {
                of: results::Varied::RequestBytes,
                at: curve.name.clone(),
                fixed: Some(results::Fixed::Depth(place as u32 + 1)),
                op: workload::OpKind::Read,
                peak_bytes_per_s: peak,
                peak_from: if place % 2 == 0 {
                    PeakSource::Measured
                } else {
                    PeakSource::Advertised
                },
                smallest: Some(f64::from(2048 << (place % 10))),
                crossing: Some(1000.0 * f64::from(1 << (place % 10))),
                interval_95: Some([
                    900.0 * f64::from(1 << (place % 10)),
                    1100.0 * f64::from(1 << (place % 10)),
                ]),
                at_or_below: false,
            });
            curve
        })
        .collect();
    let long: Vec<Series> = (0..9)
        .map(|place| {
            series(
                &format!(
                    "a long name that says everything about curve number {place} <b>and more</b>"
                ),
                vec![value(1.0, 5.0), value(64.0, 5.0)],
            )
        })
        .collect();
    let failed = |x: f64| Value { x, y: None, interval_95: None, point: None };
    let shifts: Vec<Value> = (0..14).map(|place| value(f64::from(place) * 4608.0, peak)).collect();
    let figures = vec![
        figure("many", Axis::RequestBytes, Axis::BytesPerS, many),
        figure("long", Axis::Depth, Axis::CpuNsPerRequest, long),
        figure("nothing", Axis::Threads, Axis::Iops, Vec::new()),
        figure(
            "one",
            Axis::RequestBytes,
            Axis::ServiceNs,
            vec![series("only", vec![value(12345.0, 78e3)])],
        ),
        figure(
            "failures",
            Axis::ChunkBytes,
            Axis::BytesPerS,
            vec![
                series("read", vec![failed(4096.0), failed(8192.0)]),
                series("write", vec![failed(4096.0)]),
            ],
        ),
        figure(
            "shifts",
            Axis::OffsetBytes,
            Axis::BytesPerS,
            vec![series("read", shifts.clone()), series("write", shifts)],
        ),
        figure(
            "time",
            Axis::TimeNs,
            Axis::BytesPerS,
            vec![series(
                "write",
                (0..300).map(|t| value(f64::from(t) * 1e8, peak / f64::from(t + 1))).collect(),
            )],
        ),
        figure(
            "members",
            Axis::Members,
            Axis::BytesPerS,
            vec![series(
                "sum",
                (1..=4).map(|n| value(f64::from(n), f64::from(n) * peak)).collect(),
            )],
        ),
        figure(
            "tiny",
            Axis::Depth,
            Axis::BytesPerS,
            vec![
                series("zero", vec![value(1.0, 0.0), value(2.0, 0.0)]),
                series("small", vec![value(1.0, 3.0)]),
            ],
        ),
        figure(
            "huge",
            Axis::Depth,
            Axis::CpuNsPerMib,
            vec![
                series("wide", vec![value(1.0, 1e-3), value(1e6, 1e12)]),
                series("none", vec![value(3.0, 0.0)]),
            ],
        ),
    ];
    let experiment = Experiment {
        id: "crowded".into(),
        title: "A title of which <nothing> should be afraid & that goes on for longer than any title that a study of ours would have".into(),
        question: "?".into(),
        sentence: "averyveryverylongwordwithoutanyspacethatwouldpushthepagesidewaysifitcould_0123456789_0123456789_0123456789".into(),
        skipped: None,
        left_out: Vec::new(),
        figures,
        memory: Vec::new(),
    };
    Results { experiments: vec![experiment], ..study() }
}

pub fn target() -> TargetFacts {
    let layer =
        |kind, name: &str, rate: Option<f64>, iops: Option<f64>, settings: &[(&str, &str)]| Layer {
            advertised_bytes_per_s: rate,
            advertised_iops: iops,
            settings: settings.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            ..Layer::new(kind, name)
        };
    TargetFacts {
        physical_block_bytes: 4096,
        block_bytes: 4096,
        devices: vec![
            "nvme0n1".into(),
            "a_device_with_a_very_long_name_that_somebody_thought_was_a_good_idea_0123456789"
                .into(),
        ],
        layers: vec![
            layer(
                LayerKind::FileSystem,
                "ext4 on /srv",
                None,
                None,
                &[("mount", "rw,noatime,errors=remount-ro"), ("block", "4096")],
            ),
            layer(
                LayerKind::Partition,
                "nvme0n1p2",
                None,
                None,
                &[("start", "1 MiB"), ("alignment_offset", "0")],
            ),
            layer(
                LayerKind::Disk,
                "nvme0n1 (SAMSUNG MZVL21T0HCLR-00BH1 with a very long model name in 2.5\" form)",
                None,
                None,
                &[
                    ("scheduler", "none"),
                    ("read_ahead_kb", "128"),
                    ("write_cache", "write back"),
                    ("max_sectors_kb", "1280"),
                    ("nr_requests", "1023"),
                ],
            ),
            layer(LayerKind::Throttle, "blkio of /system.slice", Some(2.0e9), Some(100_000.0), &[]),
            layer(LayerKind::Link, "PCIe 4.0 x4", Some(7.88e9), None, &[("max", "PCIe 4.0 x4")]),
        ],
        warnings: vec!["the device compresses: incompressible data were written".into()],
        ..TargetFacts::new(
            "/srv/data/<script>alert('x')</script> & \"quoted\"",
            TargetKind::TestFile,
            4 << 30,
        )
    }
}

pub fn machine() -> MachineFacts {
    let settings: BTreeMap<String, String> = [
        ("cpufreq.governor", "performance"),
        ("cpuidle.driver", "acpi_idle"),
        ("transparent_hugepage", "madvise"),
        ("vm.dirty_background_ratio", "10"),
        ("vm.dirty_ratio", "20"),
        ("vm.swappiness", "60"),
    ]
    .into_iter()
    .map(|(k, v)| (k.to_string(), v.to_string()))
    .collect();
    MachineFacts {
        name: "build-07".into(),
        simulated: false,
        system: "Linux 6.18.0-amd64".into(),
        processor: "AMD EPYC 9R14 96-Core Processor".into(),
        processors: 2,
        memory_bytes: 23 << 30,
        processor_quota: None,
        virtualization: Some("kvm".into()),
        settings,
    }
}

pub fn surfaces() -> Vec<report::surfaces::Surface> {
    use report::surfaces::{Cliff, Surface};
    let files: Vec<u64> = (0..14).map(|step| 65_536u64 << step).collect();
    let records: Vec<u64> = (0..13).map(|step| 4096u64 << step).collect();
    let surface = |title: &str, files: &[u64], slow_from: u64| {
        let rate = |file: u64, record: u64| {
            let noise = 1.0 + 0.05 * disturbance(file ^ record.rotate_left(7));
            let cached = if file >= slow_from { 0.35 } else { 1.0 };
            (record <= file)
                .then(|| 5200.0 * MIB * cached * noise * record as f64 / (record as f64 + 24_000.0))
        };
        Surface {
            title: title.into(),
            rows: files.to_vec(),
            columns: records.clone(),
            bytes_per_s: files.iter().map(|file| records.iter().map(|record| rate(*file, *record)).collect()).collect(),
            spread_percent: files.iter().map(|_| records.iter().map(|_| Some(2.5)).collect()).collect(),
            cliff: files.iter().position(|file| *file == slow_from).map(|first_slow_row| Cliff {
                first_slow_row,
                sentence: "reader: up to 5.1 GiB/s with files of at most 32 MiB: between the two sizes the file outgrows a cache.".into(),
            }),
        }
    };
    vec![
        surface("Reader", &files, 64 << 20),
        surface("Writer", &files, u64::MAX),
        surface("Random read", &files[5..6], u64::MAX),
    ]
}
