//! Limits of a rate, one cause at a time.

use super::{entry, facts};
use crate::case::{Case, Variant};
use crate::sampler::Entry;
use crate::verdict::limit;
use machine::{
    CpuTimes, DeviceUse, Engine, Layer, LayerKind, MachineFacts, ResourceKind, ResourceUse, Share,
    TargetFacts,
};
use results::{Bottleneck, Limit, LimitOf, Point};
use workload::{OpKind, Workload};

pub(super) const REQUEST: u32 = 65_536;

const COPY: f64 = 80e6;

pub(super) fn layer(kind: LayerKind, bytes_per_s: Option<f64>, iops: Option<f64>) -> TargetFacts {
    let layer = Layer {
        advertised_bytes_per_s: bytes_per_s,
        advertised_iops: iops,
        ..Layer::new(kind, "layer")
    };
    TargetFacts { layers: vec![layer], ..facts() }
}

pub(super) fn workload() -> Workload {
    Workload { request_bytes: REQUEST, depth: 8, engine: Engine::IoUring, ..Workload::default() }
}

pub(super) fn base(change: impl FnOnce(&mut measure::Sample)) -> Entry {
    let mut made = entry(workload(), &[1000.0]);
    change(&mut made.measured.samples[0]);
    made
}

pub(super) fn tried(variant: Variant, iops: f64) -> (Variant, Entry) {
    let changed = match variant {
        Variant::Deeper => Workload { depth: 16, ..workload() },
        Variant::Wider => Workload { threads: 2, ..workload() },
        Variant::Resized => Workload { request_bytes: REQUEST / 2, ..workload() },
        Variant::Hinted => Workload { hint: machine::Hint::Sequential, ..workload() },
    };
    (variant, entry(changed, &[iops]))
}

pub(super) fn limit_of(
    of: LimitOf,
    base: Entry,
    tried: Vec<(Variant, Entry)>,
    facts: &TargetFacts,
    peak: f64,
) -> Limit {
    let trials =
        tried.iter().enumerate().map(|(number, (variant, _))| (*variant, number + 1)).collect();
    let case = Case { of, op: base.workload.op(), base: 0, trials, other_target: None };
    let entries: Vec<Entry> =
        std::iter::once(base).chain(tried.into_iter().map(|(_, entry)| entry)).collect();
    limit_among(&case, &entries, facts, peak, |_| {})
}

pub(super) fn limit_among(
    case: &Case,
    entries: &[Entry],
    facts: &TargetFacts,
    peak: f64,
    change: impl FnOnce(&mut [Point]),
) -> Limit {
    let mut points: Vec<Point> = entries.iter().map(|entry| entry.point().clone()).collect();
    change(&mut points);
    let machine = MachineFacts { processors: 2, ..MachineFacts::default() };
    limit(case, entries, &points, facts, &machine, Some(peak), Some(COPY))
}

fn device(depth: u64) -> impl FnOnce(&mut measure::Sample) {
    move |sample| {
        sample.usage.device = Some(DeviceUse {
            busy_ns: 950_000_000,
            weighted_ns: depth * 950_000_000,
            reads: 1000,
            read_bytes: 1000 * u64::from(REQUEST),
            ..DeviceUse::default()
        });
    }
}

fn processors(machine: u64, thread: u64) -> impl FnOnce(&mut measure::Sample) {
    move |sample| {
        sample.usage.cpu = CpuTimes { machine_ns: machine, user_ns: thread, ..CpuTimes::default() }
    }
}

#[test]
fn a_trial_that_may_have_gained_decides_nothing() {
    let of = |rates: &[f64]| {
        let before = entry(workload(), &[1000.0, 900.0, 1100.0]);
        let after = entry(Workload { depth: 16, ..workload() }, rates);
        let found =
            limit_of(LimitOf::Peak, before, vec![(Variant::Deeper, after)], &facts(), 65.536e6);
        found.trials[0].outcome.clone()
    };
    let open = of(&[1300.0, 800.0, 1250.0]);
    assert!(open.contains(" to +") && open.ends_with("too uncertain to decide"), "{open}");
    assert!(of(&[1010.0, 908.0, 1109.0]).ends_with("so not latency"));
    assert!(of(&[1510.0, 1350.0, 1650.0]).ends_with("so latency was a limit"));
}

#[test]
fn each_cause_is_named_with_its_evidence() {
    let rate = 1000.0 * f64::from(REQUEST);
    let plain = || base(|_| {});
    let in_memory = TargetFacts { in_memory: true, ..facts() };
    let throttle = layer(LayerKind::Throttle, Some(rate * 1.05), None);
    let bus = layer(LayerKind::Bus, Some(rate * 1.05), None);
    let link = layer(LayerKind::Link, Some(rate * 0.95), None);
    let iops = layer(LayerKind::Throttle, None, Some(1020.0));
    let network = layer(LayerKind::Network, None, None);
    let far = layer(LayerKind::Link, Some(rate * 2.0), Some(5000.0));
    let spinning = {
        let mut facts = layer(LayerKind::Disk, None, None);
        facts.layers[0].facts.rotational = Some(true);
        facts
    };
    use Variant::{Deeper, Resized, Wider};
    type Case<'a> = (&'a str, Entry, Vec<(Variant, Entry)>, &'a TargetFacts, Bottleneck, &'a str);
    let cases: Vec<Case<'_>> = vec![
        (
            "throttle",
            plain(),
            vec![],
            &throttle,
            Bottleneck::Throttle,
            "the throttle layer: 62.5 MiB/s of the",
        ),
        ("link", plain(), vec![], &link, Bottleneck::Link, "the link layer"),
        ("bus", plain(), vec![], &bus, Bottleneck::Bus, "the bus layer"),
        (
            "iops",
            plain(),
            vec![],
            &iops,
            Bottleneck::Throttle,
            "1000 requests/s reach it, and it admits 1020",
        ),
        ("memory", plain(), vec![], &in_memory, Bottleneck::Memory, "keeps its files there"),
        (
            "processors",
            base(processors(1_900_000_000, 0)),
            vec![],
            &far,
            Bottleneck::Processor,
            "95 % of their time",
        ),
        (
            "busy and deep",
            base(device(4)),
            vec![],
            &far,
            Bottleneck::Device,
            "busy 95 % of the time with 3.8 requests",
        ),
        (
            "busy and flat",
            base(device(1)),
            vec![tried(Deeper, 1000.0)],
            &far,
            Bottleneck::Device,
            "busy 95 %",
        ),
        (
            "spinning",
            base(device(1)),
            vec![tried(Deeper, 1000.0)],
            &spinning,
            Bottleneck::Media,
            "the media: busy",
        ),
        (
            "thread",
            base(processors(950_000_000, 950_000_000)),
            vec![tried(Wider, 1900.0)],
            &far,
            Bottleneck::Thread,
            "one more thread: +90.0 %, so the thread was a limit",
        ),
        (
            "a busy thread that is not the limit",
            base(processors(950_000_000, 950_000_000)),
            vec![tried(Wider, 1005.0), tried(Deeper, 1000.0)],
            &far,
            Bottleneck::Device,
            "16 outstanding instead of 8: no change, so not latency",
        ),
        (
            "flat",
            plain(),
            vec![tried(Deeper, 1010.0)],
            &far,
            Bottleneck::Device,
            "more outstanding requests show no gain",
        ),
        (
            "network",
            plain(),
            vec![tried(Deeper, 1010.0)],
            &network,
            Bottleneck::Network,
            "the network",
        ),
        (
            "number of requests",
            plain(),
            vec![tried(Deeper, 1010.0), tried(Resized, 1005.0)],
            &far,
            Bottleneck::DeviceIops,
            "the requests per second of the device: 1000 of 64 KiB",
        ),
        (
            "bytes",
            plain(),
            vec![tried(Deeper, 1010.0), tried(Resized, 1990.0)],
            &far,
            Bottleneck::Device,
            "more outstanding requests show no gain",
        ),
        (
            "steep",
            plain(),
            vec![tried(Deeper, 1900.0)],
            &far,
            Bottleneck::Latency,
            "nothing is saturated at 62.5 MiB/s; 16 outstanding instead of 8: +90.0 %, so latency was a limit",
        ),
        ("nothing known", plain(), vec![], &far, Bottleneck::Unknown, "an unidentified cause"),
        (
            "failed",
            entry(workload(), &[]),
            vec![],
            &far,
            Bottleneck::Unknown,
            "reads were not measured",
        ),
    ];
    for (name, base, tried, facts, what, words) in cases {
        let found = limit_of(LimitOf::Peak, base, tried, facts, rate);
        assert_eq!(found.what, what, "{name}: {}", found.sentence);
        assert!(found.sentence.contains(words), "{name}: {}", found.sentence);
    }
}

#[test]
fn limits_of_a_plain_program() {
    let rate = 1000.0 * f64::from(REQUEST);
    let simple = || {
        let plain = Workload {
            request_bytes: REQUEST,
            buffering: machine::Buffering::Buffered,
            cache: machine::CacheState::Cold,
            ..Workload::default()
        };
        entry(plain, &[1000.0])
    };
    let of = |base, tried, peak| limit_of(LimitOf::Plain, base, tried, &facts(), peak).what;
    assert_eq!(of(simple(), vec![], rate * 1.05), Bottleneck::Device, "nearly the peak");
    assert_eq!(
        of(simple(), vec![tried(Variant::Hinted, 1800.0)], rate * 4.0),
        Bottleneck::ReadAhead
    );
    assert_eq!(of(simple(), vec![tried(Variant::Hinted, 1010.0)], rate * 4.0), Bottleneck::Latency);
    let busy = |process_ns: u64, whole_ns: u64, iops: f64| {
        let mut one = simple();
        let sample = &mut one.measured.samples[0];
        (sample.rate, sample.usage.process_ns) = (iops, Some(process_ns));
        sample.slice_rates.fill(iops);
        sample.usage.cpu = CpuTimes { user_ns: whole_ns, ..CpuTimes::default() };
        one
    };
    assert_eq!(
        of(busy(950_000_000, 0, 1000.0), vec![tried(Variant::Wider, 1900.0)], rate * 4.0),
        Bottleneck::Thread
    );
    // Kernel work charged to the process after the last return keeps no thread busy.
    assert_eq!(
        of(busy(300_000_000, 1_300_000_000, 1000.0), vec![], rate * 4.0),
        Bottleneck::Latency
    );
    // 65.5 of the 80 MB/s copy rate: copying takes most of the time; at half of it the calls do.
    assert_eq!(of(busy(840_000_000, 0, 1000.0), vec![], rate * 4.0), Bottleneck::Memory);
    let calls = || busy(600_000_000, 0, 400.0);
    assert_eq!(
        of(calls(), vec![], rate * 4.0),
        Bottleneck::Thread,
        "another one would have the other processor"
    );
}

#[test]
fn parts_that_count_their_own_time_decide() {
    let part = |name: &str, kind, busy_percent| ResourceUse {
        name: name.into(),
        kind,
        busy_percent,
        phases: Vec::new(),
    };
    let busy = |bus: f64, disk: f64| {
        base(move |sample| {
            sample.usage.resources = vec![
                part("bus", ResourceKind::Bus, bus),
                part("disk mechanics", ResourceKind::Media, disk),
                part("processor", ResourceKind::Processor, 12.0),
            ];
            sample.usage.resources.sort_by(|a, b| b.busy_percent.total_cmp(&a.busy_percent));
        })
    };
    let of = |base, tried| limit_of(LimitOf::Peak, base, tried, &facts(), 1e9);
    let found = of(busy(98.0, 60.0), vec![]);
    assert_eq!(found.what, Bottleneck::Bus);
    assert!(
        found
            .sentence
            .contains("the bus: busy 98 % of the time at 62.5 MiB/s (disk mechanics 60 %"),
        "{found:?}"
    );
    assert_eq!(of(busy(40.0, 95.0), vec![]).what, Bottleneck::Media);
    assert_eq!(of(busy(40.0, 80.0), vec![]).what, Bottleneck::Latency);
    assert_eq!(
        of(busy(40.0, 80.0), vec![tried(Variant::Deeper, 1000.0)]).what,
        Bottleneck::Media,
        "and flat"
    );
}

#[test]
fn a_layer_counts_only_the_bytes_through_it() {
    // Two disks on each of two buses: disks of 20 and buses of 30 MB/s.
    let all = |disks: u32, buses: u32| {
        let mut facts = layer(LayerKind::Throttle, Some(20.0), None);
        let mut part = facts.layers.remove(0);
        for (kind, count, rate) in [("disk", disks, 20.0), ("bus", buses, 30.0)] {
            let share = 1.0 / f64::from(count);
            part.share = Share { reads: share, writes: share };
            part.advertised_bytes_per_s = Some(rate);
            facts.layers.extend(
                (0..count).map(|number| Layer { name: format!("{kind} {number}"), ..part.clone() }),
            );
        }
        let found = crate::verdict::advertised(&facts, OpKind::Read).expect("a rate");
        (found.throughput_bytes_per_s, found.layer)
    };
    assert_eq!(all(1, 1), (20.0, "disk 0".into()));
    assert_eq!(all(2, 1), (30.0, "bus 0".into()), "the knee");
    assert_eq!(all(2, 2), (40.0, "disk 0".into()));
    assert_eq!(all(4, 2), (60.0, "bus 0".into()), "the knee of each");
}

#[test]
fn a_thread_without_a_processor_waits_for_one() {
    let of = |unserved, own| {
        let made = base(|sample| {
            sample.usage.unserved_ns = Some(unserved);
            sample.usage.process_ns = Some(own);
        });
        limit_of(LimitOf::Random, made, vec![tried(Variant::Deeper, 1000.0)], &facts(), 1e9)
    };
    let found = of(550_000_000, 420_000_000);
    assert_eq!(found.what, Bottleneck::Processor, "{}", found.sentence);
    assert!(
        found.sentence.contains("was runnable but not scheduled 55 % of the time, and ran 42 %"),
        "{}",
        found.sentence
    );
    assert_eq!(
        of(300_000_000, 100_000_000).what,
        Bottleneck::Device,
        "most of the time it waits for requests"
    );
    assert_eq!(
        of(630_000_000, 150_000_000).what,
        Bottleneck::Processor,
        "one at a time: the rest is the device's"
    );
}

#[test]
fn of_many_threads_some_always_wait_for_a_processor() {
    let of = |unserved: u64| {
        let many = Workload { depth: 64, engine: Engine::Threads, ..workload() };
        let mut made = entry(many, &[1000.0]);
        made.measured.samples[0].usage.unserved_ns = Some(unserved);
        limit_of(LimitOf::Random, made, vec![tried(Variant::Deeper, 1000.0)], &facts(), 1e9)
    };
    // Each waits 45 % of the time for a processor, less than it waits for its requests.
    let found = of(64 * 450_000_000);
    assert_eq!(found.what, Bottleneck::Processor, "{}", found.sentence);
    assert!(
        found.sentence.contains("29 of the 64 issuing threads were waiting"),
        "{}",
        found.sentence
    );
    assert_eq!(of(64 * 10_000_000).what, Bottleneck::Device, "{}", found.sentence);
}

#[test]
fn a_throttle_counts_requests_of_its_own() {
    // The queue behind the throttle merges: the device counts a quarter of the requests.
    let merged = || {
        base(|sample| {
            sample.usage.device = Some(DeviceUse {
                reads: 250,
                read_bytes: 1000 * u64::from(REQUEST),
                ..DeviceUse::default()
            });
        })
    };
    let throttle = layer(LayerKind::Throttle, None, Some(1000.0));
    assert_eq!(
        limit_of(LimitOf::Peak, merged(), vec![], &throttle, 1e9).what,
        Bottleneck::Throttle
    );
    // A plain program gets half of the throttle's rate, as its requests wait for each other.
    let half = layer(LayerKind::Throttle, Some(2000.0 * f64::from(REQUEST)), None);
    assert_eq!(
        limit_of(LimitOf::Plain, base(|_| {}), vec![], &half, 1e9).what,
        Bottleneck::Throttle
    );
    assert_ne!(
        limit_of(LimitOf::Peak, base(|_| {}), vec![], &half, 1e9).what,
        Bottleneck::Throttle
    );
    // A burst gives a short plain run more than the peak, which only the throttle explains.
    let rate = 1000.0 * f64::from(REQUEST);
    let burst = layer(LayerKind::Throttle, Some(rate / 1.4), None);
    assert_eq!(
        limit_of(LimitOf::Plain, base(|_| {}), vec![], &burst, rate / 1.4).what,
        Bottleneck::Throttle
    );
}

fn plain_read(ahead: bool) -> Entry {
    let plain = Workload {
        request_bytes: REQUEST,
        buffering: machine::Buffering::Buffered,
        cache: machine::CacheState::Cold,
        ..Workload::default()
    };
    let mut made = entry(plain, &[1000.0]);
    let sample = &mut made.measured.samples[0];
    sample.usage.process_ns = Some(360_000_000);
    let reads = if ahead { 500 } else { 1000 };
    let read_bytes = 1000 * u64::from(REQUEST);
    sample.usage.device =
        Some(DeviceUse { reads, read_bytes, weighted_ns: 3_000_000_000, ..DeviceUse::default() });
    made
}

fn plain_limit(base: Entry, tried: Vec<(Variant, Entry)>) -> Limit {
    limit_of(LimitOf::Plain, base, tried, &facts(), 4000.0 * f64::from(REQUEST))
}

#[test]
fn a_trial_is_explained_by_the_verdict() {
    use Variant::{Deeper, Resized, Wider};
    // One more thread gains next to an idle one: it was waiting.
    let waits = plain_limit(plain_read(false), vec![tried(Wider, 1446.0)]);
    assert_eq!(waits.what, Bottleneck::Latency, "{}", waits.sentence);
    assert!(
        waits.sentence.ends_with(
            "one more thread: +44.6 %, so latency was a limit: one thread works while another waits"
        ),
        "{}",
        waits.sentence
    );
    assert_eq!(waits.would_refute, None, "it was made");
    // The same rate at another size confirms latency, and does not make the request rate the limit.
    let deep = |tried| limit_of(LimitOf::Random, base(|_| {}), tried, &facts(), 1e9);
    let steep = deep(vec![tried(Resized, 1000.0), tried(Deeper, 1369.0)]);
    assert_eq!(steep.what, Bottleneck::Latency);
    assert!(
        steep.sentence.ends_with("16 outstanding instead of 8: +36.9 %, so latency was a limit"),
        "{}",
        steep.sentence
    );
    let outcomes: Vec<&str> = steep.trials.iter().map(|trial| trial.outcome.as_str()).collect();
    assert!(
        outcomes.iter().any(|one| one.ends_with("so their size takes next to no time")),
        "{outcomes:?}"
    );
    // The trial that tests the verdict is reported, not the first one.
    let number = deep(vec![tried(Deeper, 1000.0), tried(Resized, 1000.0)]);
    assert!(
        number.sentence.ends_with("as many requests/s, so their number is the limit"),
        "{}",
        number.sentence
    );
}

#[test]
fn a_verdict_that_its_trial_refutes_gives_way_to_the_next() {
    let flat = |variant| tried(variant, 993.0);
    let ahead = plain_limit(plain_read(true), vec![]);
    assert_eq!(ahead.what, Bottleneck::ReadAhead, "{}", ahead.sentence);
    let would = ahead.would_refute.as_deref();
    assert_eq!(
        would,
        Some("to check, give the sequential hint, or double the read-ahead: the rate should rise")
    );
    let waits =
        plain_limit(plain_read(true), vec![flat(Variant::Hinted), tried(Variant::Wider, 1900.0)]);
    assert_eq!(waits.what, Bottleneck::Latency, "{}", waits.sentence);
    let refuted = "the read-ahead of the page cache: the sequential hint: -0.7 %".to_owned();
    assert!(waits.excluded.contains(&refuted), "{:?}", waits.excluded);
    let none = plain_limit(plain_read(true), vec![flat(Variant::Hinted), flat(Variant::Wider)]);
    assert_eq!(none.what, Bottleneck::Unknown, "{}", none.sentence);
    assert!(
        none.sentence
            .ends_with("(not the read-ahead of the page cache, not the time of each request)"),
        "{}",
        none.sentence
    );
    assert!(
        none.excluded.contains(&"the time of each request: one more thread: -0.7 %".to_owned()),
        "{:?}",
        none.excluded
    );
    assert_eq!(none.would_refute, None, "without a verdict");
    // A nearly saturated device: neither read-ahead nor another thread gains anything.
    let mut busy = plain_read(true);
    busy.measured.samples[0].usage.device.as_mut().unwrap().busy_ns = 880_000_000;
    let device = plain_limit(busy, vec![flat(Variant::Hinted), flat(Variant::Wider)]);
    assert_eq!(device.what, Bottleneck::Device, "{}", device.sentence);
    assert!(
        device.sentence.contains("busy 88 % of the time with 3.0 requests in it"),
        "{}",
        device.sentence
    );
}

#[test]
fn an_undecided_verdict_names_its_experiment() {
    let unmade = limit_of(LimitOf::Peak, base(device(4)), vec![], &facts(), 1e9);
    let would = "to check, double the queue depth: the rate should stay the same";
    assert_eq!((unmade.what, unmade.would_refute.as_deref()), (Bottleneck::Device, Some(would)));
    let made = limit_of(
        LimitOf::Peak,
        base(device(4)),
        vec![tried(Variant::Deeper, 1000.0)],
        &facts(),
        1e9,
    );
    assert_eq!((made.what, made.would_refute), (Bottleneck::Device, None));
    let open = {
        let before = entry(workload(), &[1000.0, 900.0, 1100.0]);
        let after = entry(Workload { threads: 2, ..workload() }, &[1300.0, 800.0, 1250.0]);
        let mut busy = before;
        busy.measured.samples.iter_mut().for_each(processors_of);
        limit_of(LimitOf::Peak, busy, vec![(Variant::Wider, after)], &facts(), 1e9)
    };
    let would = "to check, add a thread and measure longer (--budget): the rate should rise";
    assert_eq!(
        (open.what, open.would_refute.as_deref()),
        (Bottleneck::Thread, Some(would)),
        "{}",
        open.sentence
    );
}

fn processors_of(sample: &mut measure::Sample) {
    sample.usage.cpu =
        CpuTimes { machine_ns: 950_000_000, user_ns: 950_000_000, ..CpuTimes::default() };
}
