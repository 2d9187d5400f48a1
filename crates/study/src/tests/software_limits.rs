//! Limits above the device, one at a time.

use super::verdict::{REQUEST, base, layer, limit_among, limit_of, tried, workload};
use super::{entry, facts};
use crate::case::{Case, Variant};
use crate::other_target::{OtherTarget, OtherTargetTrial};
use crate::sampler::Entry;
use machine::{
    Buffering, CpuTimes, DeviceUse, DirtyUse, FileSystemFacts, Layer, LayerKind, RequestTimes,
    Stage, StageTime, TargetFacts, TargetKind, ThrottleFacts, TimesSource,
};
use measure::stats::Ratio;
use results::{Bottleneck, Limit, LimitOf, Point};
use workload::{OpKind, Workload};

fn on_file_system(system: FileSystemFacts, queue_limit: u32) -> TargetFacts {
    let mut facts = layer(LayerKind::FileSystem, None, None);
    facts.layers[0].facts.file_system = Some(system);
    let mut disk = Layer::new(LayerKind::Disk, "layer");
    disk.facts.queue_limit = Some(queue_limit);
    facts.layers.push(disk);
    facts
}

fn in_device(depth: f64, busy: u64) -> impl Fn(&mut measure::Sample) {
    move |sample| {
        sample.usage.device = Some(DeviceUse {
            busy_ns: busy * 10_000_000,
            weighted_ns: (depth * 1e9) as u64,
            reads: 900,
            read_bytes: 900 * u64::from(REQUEST),
            ..DeviceUse::default()
        });
        // The thread is idle.
        sample.usage.cpu = CpuTimes::default();
    }
}

fn traced(percents: [f64; 4]) -> impl FnOnce(&mut [Point]) {
    let stages = [Stage::Submit, Stage::Queue, Stage::Device, Stage::Completion];
    let stages = stages.into_iter().zip(percents);
    let stages = stages
        .map(|(stage, percent)| StageTime { stage, mean_ns: percent * 1000.0, percent })
        .collect();
    let times = RequestTimes {
        source: TimesSource::TracePoints,
        requests: 1000,
        device_requests_per_request: None,
        stages,
    };
    move |points| {
        points[0].numbers.as_mut().expect("numbers").achieved.request_times = Some(times);
    }
}

fn among(
    base: Entry,
    others: &[(u32, f64)],
    facts: &TargetFacts,
    change: impl FnOnce(&mut [Point]),
) -> Limit {
    let others =
        others.iter().map(|&(depth, iops)| entry(Workload { depth, ..workload() }, &[iops]));
    let entries: Vec<Entry> = std::iter::once(base).chain(others).collect();
    let case = Case {
        of: LimitOf::Random,
        op: OpKind::Read,
        base: 0,
        trials: Vec::new(),
        other_target: None,
    };
    limit_among(&case, &entries, facts, 1e9, change)
}

#[test]
fn one_request_at_a_time_at_the_device_and_an_idle_thread_is_the_file_system() {
    let file = on_file_system(FileSystemFacts::default(), 256);
    let flat = || vec![tried(Variant::Deeper, 1010.0)];
    let of = |depth, busy, tried, facts: &TargetFacts| {
        limit_of(LimitOf::Peak, base(in_device(depth, busy)), tried, facts, 1e9)
    };
    let found = of(0.9, 60, flat(), &file);
    assert_eq!(found.what, Bottleneck::FileSystem, "{}", found.sentence);
    assert!(
        found.sentence.contains("of 8 outstanding 0.9 are at the device"),
        "{}",
        found.sentence
    );
    assert_eq!(
        of(0.9, 97, flat(), &file).what,
        Bottleneck::Device,
        "it serves one at a time, and is busy"
    );
    assert_eq!(of(7.5, 60, flat(), &file).what, Bottleneck::Device, "all of them are there");
    assert_eq!(
        of(0.9, 60, vec![tried(Variant::Deeper, 1900.0)], &file).what,
        Bottleneck::Latency,
        "more gain"
    );
    let device = TargetFacts { kind: TargetKind::Device, ..file };
    assert_eq!(of(0.9, 60, flat(), &device).what, Bottleneck::Device, "no file system is between");
}

#[test]
fn the_wait_stage_decides_as_a_last_resort() {
    let file = on_file_system(FileSystemFacts::default(), 256);
    let device = TargetFacts { kind: TargetKind::Device, ..file.clone() };
    let throttle =
        TargetFacts { kind: TargetKind::Device, ..layer(LayerKind::Throttle, Some(1e12), None) };
    let of = |percents, facts: &TargetFacts| {
        among(base(in_device(4.0, 60)), &[], facts, traced(percents))
    };
    assert_eq!(of([80.0, 5.0, 10.0, 5.0], &throttle).what, Bottleneck::Throttle);
    assert_eq!(
        of([80.0, 5.0, 10.0, 5.0], &device).what,
        Bottleneck::Throttle,
        "an unreported throttle"
    );
    assert_eq!(of([80.0, 5.0, 10.0, 5.0], &file).what, Bottleneck::FileSystem);
    assert_eq!(
        of([5.0, 80.0, 10.0, 5.0], &file).what,
        Bottleneck::Device,
        "the queue waits for it"
    );
    assert_eq!(of([5.0, 5.0, 10.0, 80.0], &file).what, Bottleneck::Processor);
    let at_device = of([5.0, 10.0, 80.0, 5.0], &file).what;
    assert_eq!(
        at_device,
        Bottleneck::Unknown,
        "device time cannot separate latency from saturation"
    );
}

#[test]
fn half_as_many_requests_tell_a_saturated_device_from_latency() {
    let file = on_file_system(FileSystemFacts::default(), 256);
    let of = |half: f64| among(base(in_device(7.5, 60)), &[(4, half)], &file, |_| {}).what;
    assert_eq!(of(960.0), Bottleneck::Device, "half as many do as well");
    assert_eq!(of(550.0), Bottleneck::Latency, "twice as many do nearly twice as well");
    assert_eq!(of(800.0), Bottleneck::Unknown, "between the two");
}

#[test]
fn a_queue_that_is_full_while_half_of_it_gets_half_is_the_limit() {
    let of = |queue_limit, others: &[(u32, f64)]| {
        among(
            base(in_device(3.9, 99)),
            others,
            &on_file_system(FileSystemFacts::default(), queue_limit),
            |_| {},
        )
    };
    let found = of(4, &[(2, 520.0), (16, 1000.0)]);
    assert_eq!(found.what, Bottleneck::Throttle, "{}", found.sentence);
    assert!(
        found.sentence.contains("nr_requests 4): 3.9 of 8 outstanding fit into it"),
        "{}",
        found.sentence
    );
    assert_eq!(of(4, &[(2, 950.0), (16, 1000.0)]).what, Bottleneck::Device, "two did as well");
    assert_eq!(
        of(256, &[(2, 520.0), (16, 1000.0)]).what,
        Bottleneck::Device,
        "the queue is not full"
    );
}

#[test]
fn the_same_requests_without_the_file_system_refute_it_or_name_it() {
    let file = on_file_system(FileSystemFacts::default(), 256);
    let of = |other: OtherTarget, ratio: f64| {
        let ratio =
            Ratio { median: ratio, mean: ratio, low: ratio * 0.97, high: ratio * 1.03, n_pairs: 4 };
        let other_target = Some(OtherTargetTrial { other, ratio });
        let entries =
            [base(in_device(7.5, 97)), entry(Workload { depth: 16, ..workload() }, &[1010.0])];
        let trials = vec![(Variant::Deeper, 1)];
        let case = Case { of: LimitOf::Peak, op: OpKind::Read, base: 0, trials, other_target };
        limit_among(&case, &entries, &file, 1e9, |_| {})
    };
    let found = of(OtherTarget::Device("sda".into()), 1.4);
    assert_eq!(found.what, Bottleneck::FileSystem, "{}", found.sentence);
    assert!(
        found.sentence.contains("sda itself gives 1.40 x the 62.5 MiB/s"),
        "{}",
        found.sentence
    );
    let refuted = of(OtherTarget::Device("sda".into()), 1.02);
    assert_eq!(refuted.what, Bottleneck::Device, "{}", refuted.sentence);
    let outcomes: Vec<&str> = refuted.trials.iter().map(|trial| trial.outcome.as_str()).collect();
    assert!(
        outcomes.contains(&"the same reads of sda itself: +2.0 %, so not the file system"),
        "{outcomes:?}"
    );
    let shared = of(OtherTarget::TwoFiles, 1.8);
    assert!(shared.sentence.contains("writes to two files get 1.80 x"), "{}", shared.sentence);
    assert_eq!(shared.what, Bottleneck::FileSystem);
}

fn plain_write(busy: f64, flush_s: f64, dirty_percent: Option<f64>, device_bytes: f64) -> Entry {
    let plain = Workload {
        request_bytes: REQUEST,
        read_percent: 0,
        buffering: Buffering::Buffered,
        sync_at_end: true,
        ..Workload::default()
    };
    let mut made = entry(plain, &[1000.0]);
    let sample = &mut made.measured.samples[0];
    let asked = sample.bytes_with_ramp;
    sample.usage.process_ns = Some((busy * 1e9) as u64);
    sample.usage.sync_ns = Some((flush_s * 1e9) as u64);
    sample.usage.dirty =
        dirty_percent.map(|max_percent| DirtyUse { max_percent, held_percent: max_percent / 2.0 });
    sample.usage.block_bytes = Some((0, asked));
    sample.usage.device = Some(DeviceUse {
        writes: 500,
        write_bytes: (asked as f64 * device_bytes) as u64,
        ..DeviceUse::default()
    });
    made
}

/// A device that compresses uses the flushing thread's processor, part of which a busy machine
/// gives it.
#[test]
fn a_flush_without_a_processor_is_contention() {
    let of = |unserved_s: f64| {
        let mut made = plain_write(0.9, 3.0, Some(20.0), 1.0);
        let usage = &mut made.measured.samples[0].usage;
        usage.cpu.user_ns = 1_600_000_000;
        usage.unserved_ns = Some(0);
        usage.sync_unserved_ns = Some((unserved_s * 1e9) as u64);
        limit_of(LimitOf::Plain, made, vec![], &facts(), 1e9)
    };
    let found = of(2.2);
    assert_eq!(found.what, Bottleneck::Processor, "{}", found.sentence);
    assert!(found.sentence.contains("55 % of the time"), "{}", found.sentence);
    assert_eq!(of(0.2).what, Bottleneck::Flush, "it waits for the device");
}

#[test]
fn limits_of_a_plain_write() {
    let file = on_file_system(FileSystemFacts::default(), 256);
    let journaled =
        on_file_system(FileSystemFacts { journals_data: true, ..FileSystemFacts::default() }, 256);
    let mut throttled = file.clone();
    throttled.layers.push(layer(LayerKind::Throttle, Some(1e12), None).layers[0].clone());
    let of = |base, facts: &TargetFacts| limit_of(LimitOf::Plain, base, vec![], facts, 1e9);
    let found = of(plain_write(0.1, 0.2, Some(103.0), 1.0), &file);
    assert_eq!(found.what, Bottleneck::Device, "{}", found.sentence);
    assert!(
        found.sentence.contains("the device: the writer waits for the write-back of dirty pages"),
        "{}",
        found.sentence
    );
    assert_eq!(of(plain_write(0.1, 0.2, Some(103.0), 1.0), &throttled).what, Bottleneck::Throttle);
    assert_eq!(
        of(plain_write(0.1, 3.0, Some(103.0), 1.0), &file).what,
        Bottleneck::Flush,
        "most of it comes at the end"
    );
    assert_eq!(
        of(plain_write(0.1, 0.2, Some(20.0), 1.0), &file).what,
        Bottleneck::Unknown,
        "few pages were dirty"
    );
    assert_eq!(
        of(plain_write(0.1, 0.2, None, 1.0), &file).what,
        Bottleneck::Unknown,
        "dirty pages are unknown"
    );
    assert_eq!(of(plain_write(0.1, 0.2, Some(20.0), 2.1), &journaled).what, Bottleneck::FileSystem);
    assert_eq!(
        of(plain_write(0.1, 3.0, Some(20.0), 2.1), &journaled).what,
        Bottleneck::FileSystem,
        "written twice"
    );
    assert_eq!(
        of(plain_write(0.1, 3.0, Some(20.0), 1.0), &journaled).what,
        Bottleneck::Flush,
        "and not twice"
    );
    let device = TargetFacts { kind: TargetKind::Device, ..facts() };
    assert_eq!(of(plain_write(0.1, 0.2, Some(20.0), 1.0), &device).what, Bottleneck::Unknown);
    let compressed = || {
        let mut made = plain_write(0.1, 3.0, Some(20.0), 1.0);
        made.measured.samples[0].usage.cpu.system_ns = 3_800_000_000;
        made
    };
    let mut two = compressed();
    two.workload.threads = 2;
    two.measured.samples.extend(compressed().measured.samples);
    let tried = vec![(Variant::Wider, two)];
    let mut one = compressed();
    one.measured.samples.extend(compressed().measured.samples);
    let found = limit_of(LimitOf::Plain, one, tried, &device, 1e9);
    assert_eq!(
        found.what,
        Bottleneck::Thread,
        "the process computes while it flushes: {}",
        found.sentence
    );
    assert!(
        found.would_refute.is_some_and(|one| one.contains("flushes a file of its own")),
        "writers share the flush"
    );
    let mut throttled = layer(LayerKind::Throttle, None, None);
    let limits = ThrottleFacts { write_bytes_per_s: Some(54.6e6), ..ThrottleFacts::default() };
    throttled.layers[0].facts.throttle = Some(limits);
    let found = of(plain_write(0.1, 0.2, Some(103.0), 1.0), &throttled);
    assert!(
        found.what == Bottleneck::Throttle
            && found.sentence.contains("it admits; the writer waits for the write-back"),
        "{}",
        found.sentence
    );
}

fn throttle(write_iops: u64, random_only: bool) -> ThrottleFacts {
    ThrottleFacts { write_iops: Some(write_iops as f64), random_only, ..ThrottleFacts::default() }
}

#[test]
fn plain_writes_to_a_throttled_device_are_counted_page_by_page() {
    // 62.5 MiB/s and a flush as long as the run: 8000 pages a second reach the throttle, and
    // merging leaves fewer at the device.
    let of = |write_iops: u64, kind| {
        let mut facts = TargetFacts { kind, ..layer(LayerKind::Throttle, None, None) };
        facts.layers[0].facts.throttle = Some(throttle(write_iops, false));
        limit_of(LimitOf::Plain, plain_write(0.1, 1.0, None, 1.0), vec![], &facts, 1e9)
    };
    let found = of(8000, TargetKind::Device);
    assert_eq!(found.what, Bottleneck::Throttle, "{}", found.sentence);
    assert!(
        found.sentence.contains("8000 pages/s reach the device one by one, and it admits 8000"),
        "{}",
        found.sentence
    );
    assert_eq!(of(100_000, TargetKind::Device).what, Bottleneck::Flush, "it admits far more");
    let mut model =
        TargetFacts { kind: TargetKind::Device, ..layer(LayerKind::Throttle, None, None) };
    model.layers[0].facts.throttle = Some(throttle(8000, true));
    let found = limit_of(LimitOf::Plain, plain_write(0.1, 1.0, None, 1.0), vec![], &model, 1e9);
    assert_eq!(
        found.what,
        Bottleneck::Flush,
        "a random-request limit applies only to random requests: {}",
        found.sentence
    );
    assert_eq!(
        of(8000, TargetKind::TestFile).what,
        Bottleneck::Flush,
        "a file system writes many pages at once"
    );
}
