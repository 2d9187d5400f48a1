//! The answer of the synthetic study.

use super::experiments::{best, find, gain};
use machine::{Allocation, Engine};
use results::{
    Advertised, Answer, Bottleneck, CostMode, CostModel, CostScope, Experiment, Finding, HalfPower, Limit, Peak, Point,
    ServiceMode, ServiceModel,
};
use workload::OpKind;

pub fn answer(points: &[Point], experiments: &[Experiment]) -> Answer {
    let read = best(points, true);
    let write = best(points, false);
    let peak = |op: OpKind, point: usize, advertised: Option<Advertised>| {
        let numbers = points[point].numbers.as_ref().expect("the best point was measured");
        Peak {
            op,
            throughput_bytes_per_s: numbers.throughput_bytes_per_s,
            interval_95: numbers.interval_95,
            point,
            settings: points[point].workload.options(),
            advertised,
        }
    };
    let throttle = Advertised { layer: "blkio of /system.slice".into(), throughput_bytes_per_s: 2.0e9 };
    let half_power: Vec<HalfPower> = experiments
        .iter()
        .filter(|e| e.id == "depth")
        .flat_map(|e| &e.figures)
        .flat_map(|f| &f.series)
        .filter_map(|s| s.half_power.clone())
        .take(13)
        .collect();
    Answer {
        doubts: vec!["the hypervisor took up to 7 % of a processor away: rates of small requests may be low".into()],
        peaks: vec![peak(OpKind::Read, read, Some(throttle)), peak(OpKind::Write, write, None)],
        limits: vec![
            Limit {
                op: OpKind::Read,
                what: Bottleneck::Device,
                sentence: "The device limits reading: it is busy 98 % of the time at 29.8 requests in flight, and four times the depth adds 0.4 %."
                    .into(),
            },
            Limit {
                op: OpKind::Write,
                what: Bottleneck::Latency,
                sentence: "Latency limits writing: 118 us of each request do not depend on its size, and the device is busy 61 % of the time.".into(),
            },
        ],
        half_power,
        costs: vec![cost(CostMode::BufferedRead, 4030.0, 0.153), cost(CostMode::DirectRead, 4030.0, 0.0143)],
        service_times: vec![service(ServiceMode::DirectRead, 78e3, 2.72e9), service(ServiceMode::SameBlock, 31e3, 6.8e9)],
        findings: findings(points),
        left_out: vec!["streams above 16 and requests above 4 MiB: the budget of 3 min ended first".into()],
    }
}

fn cost(mode: CostMode, request: f64, byte: f64) -> CostModel {
    CostModel {
        mode,
        whose: CostScope::Machine,
        ns_per_request: request,
        ns_per_request_interval_95: [request * 0.93, request * 1.06],
        ns_per_byte: byte,
        ns_per_byte_interval_95: [byte * 0.98, byte * 1.02],
        rms_residual: 0.031,
        instructions_per_request: Some(2210.0),
        instructions_per_byte: Some(0.02),
    }
}

fn service(mode: ServiceMode, fixed: f64, rate: f64) -> ServiceModel {
    ServiceModel {
        mode,
        fixed_ns: fixed,
        fixed_ns_interval_95: [fixed * 0.97, fixed * 1.03],
        rate_bytes_per_s: Some(rate),
        rate_interval_95: Some([rate * 0.96, rate * 1.05]),
        rms_residual: 0.021,
        max_residual: 0.064,
        knee_bytes: Some(1_310_720.0),
    }
}

fn findings(points: &[Point]) -> Vec<Finding> {
    let finding = |title: &str, from: usize, to: usize, setting: &str, evidence: &str| {
        let gain = gain(points, from, to);
        Finding {
            title: title.into(),
            gain,
            gain_interval_95: Some([gain * 0.95, gain * 1.06]),
            evidence: evidence.into(),
            setting: setting.into(),
            check: format!(
                "halfpower compare /srv/data '{}' '{}'",
                points[from].workload.options(),
                points[to].workload.options()
            ),
            points: [from, to],
        }
    };
    let shallow =
        find(points, |w| w.request_bytes == 16384 && w.depth == 1 && w.engine == Engine::Sync && w.read_percent == 100);
    let deep = find(points, |w| w.request_bytes == 16384 && w.depth == 32 && w.read_percent == 100);
    let grown = find(points, |w| w.allocation == Allocation::Extend && w.request_bytes == 65536);
    let written = find(points, |w| w.depth == 8 && w.read_percent == 0 && w.request_bytes == 65536);
    let small = find(points, |w| w.request_bytes == 65536 && w.depth == 1 && w.read_percent == 100);
    let large = find(points, |w| w.request_bytes == 1 << 20 && w.depth == 1 && w.read_percent == 100);
    vec![
        finding(
            "Keep 32 reads outstanding instead of one",
            shallow,
            deep,
            "io_uring or libaio with 32 requests in flight",
            "16 KiB reads: 185 MiB/s one at a time, 1640 MiB/s with 32 outstanding.",
        ),
        finding(
            "Preallocate and overwrite instead of extending",
            grown,
            written,
            "fallocate, then write every block once before it matters",
            "64 KiB writes at depth 8: 441 MiB/s into a growing file, 900 MiB/s into one written before.",
        ),
        finding(
            "Ask for 1 MiB at a time",
            small,
            large,
            "1 MiB requests",
            "Synchronous reads: 625 MiB/s with 64 KiB, 1483 MiB/s with 1 MiB requests.",
        ),
        finding(
            "Use larger writes",
            small,
            large,
            "1 MiB requests",
            "A fourth finding that the answer does not lead with.",
        ),
    ]
}
