//! What limits a peak, each cause alone.

use super::{entry, facts};
use crate::limits::limit;
use machine::{CpuTimes, DeviceUse, Engine, Layer, LayerKind, MachineFacts, TargetFacts};
use results::{Bottleneck, Limit, Peak, Point};
use std::collections::BTreeMap;
use workload::{OpKind, Workload};

const REQUEST: u32 = 65_536;

fn layer(kind: LayerKind, bytes_per_s: Option<f64>, iops: Option<f64>) -> TargetFacts {
    let layer = Layer {
        kind,
        name: "layer".into(),
        advertised_bytes_per_s: bytes_per_s,
        advertised_iops: iops,
        settings: BTreeMap::new(),
    };
    TargetFacts { layers: vec![layer], ..facts() }
}

/// Reads of 64 KiB by one thread, 8 outstanding, 1000 of them a second; changed as a case has it.
fn point(change: impl FnOnce(&mut measure::Sample)) -> Point {
    let workload = Workload { request_bytes: REQUEST, depth: 8, engine: Engine::IoUring, ..Workload::default() };
    let mut made = entry(workload, &[1000.0]);
    change(&mut made.measured.samples[0]);
    made.point().clone()
}

/// What limits the first of these points.
fn limit_of(points: &[Point], facts: &TargetFacts) -> Limit {
    let rate = points[0].rate().unwrap_or(0.0);
    let peak = Peak {
        op: OpKind::Read,
        throughput_bytes_per_s: rate,
        interval_95: None,
        point: 0,
        settings: String::new(),
        advertised: None,
    };
    limit(&peak, points, facts, &MachineFacts { processors: 2, ..MachineFacts::default() })
}

fn deeper(iops: f64) -> Point {
    let workload = Workload { request_bytes: REQUEST, depth: 16, engine: Engine::IoUring, ..Workload::default() };
    entry(workload, &[iops]).point().clone()
}

#[test]
fn each_cause_is_named_with_its_evidence() {
    let rate = 1000.0 * f64::from(REQUEST);
    let plain = || point(|_| {});
    let busy = |device_depth: u64| {
        point(move |sample| {
            sample.usage.device = Some(DeviceUse {
                busy_ns: 950_000_000,
                weighted_ns: device_depth * 950_000_000,
                reads: 1000,
                read_bytes: 1000 * u64::from(REQUEST),
                ..DeviceUse::default()
            });
        })
    };
    let processors = |machine: u64, thread: u64| {
        point(move |sample| {
            sample.usage.cpu = CpuTimes { machine_ns: machine, user_ns: thread, ..CpuTimes::default() };
        })
    };
    let in_memory = TargetFacts { in_memory: true, ..facts() };
    let throttle = layer(LayerKind::Throttle, Some(rate * 1.05), None);
    let link = layer(LayerKind::Link, Some(rate * 0.95), None);
    let iops = layer(LayerKind::Throttle, None, Some(1020.0));
    let far = layer(LayerKind::Link, Some(rate * 2.0), Some(5000.0));
    let cases: [(&str, Vec<Point>, &TargetFacts, Bottleneck, &str); 11] = [
        (
            "throttle",
            vec![plain()],
            &throttle,
            Bottleneck::Throttle,
            "limited by the device: 62.5 MiB/s is what layer admits",
        ),
        ("link", vec![plain()], &link, Bottleneck::Link, "what layer admits"),
        ("iops", vec![plain()], &iops, Bottleneck::Throttle, "1000 requests/s reach it, and layer admits 1020"),
        ("memory", vec![plain()], &in_memory, Bottleneck::Memory, "keeps its files in memory"),
        ("processors", vec![processors(1_900_000_000, 0)], &far, Bottleneck::Processor, "95 % of their time"),
        ("busy and deep", vec![busy(4)], &far, Bottleneck::Device, "busy 95 % of the time with 3.8 requests in it"),
        ("busy and flat", vec![busy(1), deeper(1000.0)], &far, Bottleneck::Device, "busy 95 %"),
        ("thread", vec![processors(950_000_000, 950_000_000)], &far, Bottleneck::Processor, "the one thread"),
        (
            "flat",
            vec![plain(), deeper(1010.0)],
            &far,
            Bottleneck::Device,
            "doubling the requests outstanding gains nothing",
        ),
        ("steep", vec![plain(), deeper(1900.0)], &far, Bottleneck::Latency, "nothing is saturated at 62.5 MiB/s"),
        (
            "unknown",
            vec![Point::failed(Workload::default(), "it failed")],
            &far,
            Bottleneck::Unknown,
            "nothing was measured",
        ),
    ];
    for (name, points, facts, what, words) in cases {
        let found = limit_of(&points, facts);
        assert_eq!(found.what, what, "{name}: {}", found.sentence);
        assert!(found.sentence.contains(words), "{name}: {}", found.sentence);
    }
}

#[test]
fn a_stripe_of_real_devices_has_the_sum_of_their_rates_and_a_simulated_one_what_it_says() {
    let of_one = |members, kind| TargetFacts { members, kind, ..layer(LayerKind::Link, Some(100.0), None) };
    let advertised = |facts| crate::limits::advertised(&facts, OpKind::Read).expect("a rate").throughput_bytes_per_s;
    assert_eq!(advertised(of_one(3, machine::TargetKind::Stripe)), 300.0);
    assert_eq!(advertised(of_one(3, machine::TargetKind::Simulated)), 100.0);
}
