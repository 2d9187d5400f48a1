//! The verdict on machines of known truth: it must name the component that was made the narrowest.

mod sound;

use machine::units::MIB;
use machine::{ResourceKind, TargetSpec};
use results::{Bottleneck, Limit, LimitOf, Program, Results, StageKind};
use study::{Effort, Plan};
use twin::description::{Description, Drive};
use twin::settings::Setup;
use twin::{Twin, preset};
use workload::OpKind;

fn study(twin: &Twin, only: &[&str]) -> Results {
    let only = only.iter().map(ToString::to_string).collect();
    let plan = Plan { budget_ns: 60_000_000_000, effort: Effort::Quick, only, seed: 7 };
    let program = Program { name: "test".into(), version: "0".into(), arguments: Vec::new() };
    let results = study::study(twin, &TargetSpec::default(), &plan, program, &mut |_| {});
    sound::sound(results.expect("a study"))
}

fn limit(results: &Results, of: LimitOf, op: OpKind) -> &Limit {
    let limits = &results.answer.as_ref().expect("an answer").limits;
    limits
        .iter()
        .find(|limit| limit.of == of && limit.op == op)
        .unwrap_or_else(|| panic!("no {of} {op}: {limits:?}"))
}

fn named(name: &str) -> Twin {
    Twin::from_name(name).expect("a machine")
}

fn gateway(disks: u32, buses: u32, change: impl FnOnce(&mut Description)) -> Twin {
    let mut description = preset::load("gateway-1997").expect("a preset");
    // Spread the disks over the buses, instead of filling the first one.
    description.volume.bus_disks = 1;
    change(&mut description);
    let mut setup = Setup::of(description);
    (setup.disks, setup.buses) = (disks, buses);
    Twin::new(setup)
}

fn adapter(buses: u32, bytes_per_s: f64) -> Option<twin::description::Adapter> {
    let name = "2940UW".into();
    Some(twin::description::Adapter {
        name,
        bytes_per_s,
        advertised_bytes_per_s: Some(40e6),
        buses,
    })
}

fn virtio(change: impl FnOnce(&mut Description)) -> Twin {
    let mut description = preset::load("virtio").expect("a preset");
    change(&mut description);
    Twin::new(Setup::of(description))
}

fn cloud(change: impl FnOnce(&mut twin::description::CloudVolume)) -> Twin {
    let mut description = preset::load("cloud").expect("a preset");
    let Some(Drive::Cloud(volume)) = description.drives.get_mut("volume") else {
        panic!("a cloud volume")
    };
    change(volume);
    Twin::new(Setup::of(description))
}

fn bottleneck(kind: ResourceKind) -> Bottleneck {
    match kind {
        ResourceKind::Processor => Bottleneck::Processor,
        ResourceKind::Pci => Bottleneck::Pci,
        ResourceKind::Adapter => Bottleneck::Adapter,
        ResourceKind::Bus => Bottleneck::Bus,
        ResourceKind::Link => Bottleneck::Link,
        ResourceKind::Network => Bottleneck::Network,
        ResourceKind::Media => Bottleneck::Media,
        ResourceKind::Device => Bottleneck::Device,
        ResourceKind::Throttle => Bottleneck::Throttle,
    }
}

#[test]
fn the_narrowest_part_is_named() {
    use Bottleneck::{
        Adapter, Bus, Device, Latency, Link, Media, Network, Pci, Processor, Throttle,
    };
    let slow_disk =
        |description: &mut Description| description.file_system.command_bytes = 64 * MIB;
    let cases: Vec<(&str, Twin, Bottleneck)> = vec![
        ("one disk", gateway(1, 1, |_| {}), Media),
        ("two disks on two buses", gateway(2, 2, |_| {}), Media),
        ("three disks on one bus", gateway(3, 1, |_| {}), Bus),
        ("four disks on one bus", gateway(4, 1, |_| {}), Bus),
        ("six disks on two buses", gateway(6, 2, |_| {}), Bus),
        ("a slow I/O bus", gateway(4, 4, |one| one.pci_bytes_per_s = Some(12e6)), Pci),
        (
            "one adapter for four buses",
            gateway(8, 4, |one| one.adapter = adapter(4, 20e6)),
            Adapter,
        ),
        (
            "an adapter slower than its bus",
            gateway(3, 1, |one| one.adapter = adapter(1, 8e6)),
            Adapter,
        ),
        (
            "an adapter for each two buses",
            gateway(4, 4, |one| one.adapter = adapter(2, 40e6)),
            Media,
        ),
        (
            "a slow processor",
            gateway(2, 2, |one| one.processor.request_ns_per_byte = 500.0),
            Processor,
        ),
        (
            "a quota of bytes",
            cloud(|one| {
                (one.bytes_per_s, one.burst_bytes_per_s, one.iops, one.burst_iops) =
                    (50e6, 50e6, 1e5, 1e5)
            }),
            Throttle,
        ),
        (
            "a quota of requests",
            cloud(|one| {
                (one.bytes_per_s, one.burst_bytes_per_s, one.iops, one.burst_iops) =
                    (4e9, 4e9, 200.0, 200.0);
            }),
            Throttle,
        ),
        ("a file server behind Ethernet", named("twin:nas"), Network),
        ("a SATA link", named("twin:sata-ssd"), Link),
        ("an NVMe drive's link", named("twin:nvme"), Link),
        ("platters", named("twin:hdd-20tb"), Media),
        ("what a hypervisor serves", named("twin:virtio"), Device),
        ("a cloud's volume after its burst", named("twin:cloud-burst"), Throttle),
        (
            "a long way",
            virtio(|one| {
                slow_disk(one);
                let Some(Drive::Virtio(disk)) = one.drives.get_mut("vda") else {
                    panic!("virtio has a vda")
                };
                (disk.workers, disk.read_us, disk.write_us) = (4096, 200_000.0, 200_000.0);
                (disk.read_bytes_per_s, disk.write_bytes_per_s, disk.total_bytes_per_s) =
                    (1e12, 1e12, 1e13);
                disk.total_read_bytes_per_s = None;
            }),
            Latency,
        ),
    ];
    for (name, twin, truth) in cases {
        let results = study(&twin, &["depth"]);
        let limit = limit(&results, LimitOf::Peak, OpKind::Read);
        assert_eq!(limit.what, truth, "{name}: {}", limit.sentence);
        let busy = &results.points[limit.point.expect("a point")]
            .numbers
            .as_ref()
            .expect("numbers")
            .achieved
            .resources;
        if truth != Latency {
            assert_eq!(
                bottleneck(busy[0].kind),
                truth,
                "{name}: what was the busiest is what is named"
            );
            let ladder = results.ladder.as_ref().expect("a ladder");
            let narrowest: Vec<StageKind> = ladder
                .stages
                .iter()
                .filter(|stage| {
                    stage.rates.iter().any(|rate| rate.op == OpKind::Read && rate.narrowest)
                })
                .map(|stage| stage.kind)
                .collect();
            assert_eq!(narrowest.len(), 1, "{name}: one stage is marked, not {narrowest:?}");
        }
        let deeper = limit
            .trials
            .iter()
            .find(|trial| trial.change.contains("outstanding"))
            .expect("a trial");
        let gain = deeper.iops_ratio.expect("a ratio");
        assert_eq!(gain > 1.1, truth == Latency, "{name}: {}", deeper.outcome);
    }
}

#[test]
fn a_plain_program_and_random_requests_have_limits_of_their_own() {
    let results = study(&gateway(3, 1, |_| {}), &["buffered", "depth", "random"]);
    let what = |of, op| limit(&results, of, op).what;
    assert_eq!(what(LimitOf::Peak, OpKind::Read), Bottleneck::Bus);
    assert_eq!(
        what(LimitOf::Plain, OpKind::Read),
        Bottleneck::Bus,
        "its read-ahead keeps the bus busy"
    );
    assert_eq!(
        what(LimitOf::Random, OpKind::Read),
        Bottleneck::Media,
        "each request moves the heads"
    );
    let plain: Vec<Option<u32>> = results
        .answer
        .as_ref()
        .expect("an answer")
        .limits
        .iter()
        .filter(|one| one.of == LimitOf::Plain && one.op == OpKind::Read)
        .map(|one| one.request_bytes)
        .collect();
    assert_eq!(plain, [Some(65_536), Some(4096)]);
}

#[test]
fn other_rates_have_other_limits_on_modern_machines() {
    use Bottleneck::{Device, DeviceIops, Flush, Link, Media, ReadAhead, Thread};
    const SMALL: u32 = 4096;
    const LARGE: u32 = 65_536;
    let cases = [
        (
            "nas",
            LimitOf::Random,
            OpKind::Read,
            SMALL,
            DeviceIops,
            "the server's threads take as long for 8 KiB",
        ),
        (
            "nas",
            LimitOf::Plain,
            OpKind::Read,
            LARGE,
            ReadAhead,
            "two windows do not cover the way there and back",
        ),
        (
            "nas",
            LimitOf::Plain,
            OpKind::Write,
            LARGE,
            Flush,
            "what the page cache took has still to cross",
        ),
        ("virtio", LimitOf::Plain, OpKind::Write, LARGE, Flush, "the same on a hypervisor's disk"),
        ("nvme", LimitOf::Random, OpKind::Write, SMALL, Device, "the drive's controller"),
        (
            "nvme",
            LimitOf::Plain,
            OpKind::Read,
            LARGE,
            ReadAhead,
            "two windows are too few for a fast drive",
        ),
        (
            "nvme",
            LimitOf::Plain,
            OpKind::Read,
            SMALL,
            Thread,
            "calls and copies are all that takes time",
        ),
        (
            "nvme",
            LimitOf::Plain,
            OpKind::Write,
            SMALL,
            Thread,
            "and another thread has another processor",
        ),
        (
            "sata-ssd",
            LimitOf::Plain,
            OpKind::Read,
            LARGE,
            Link,
            "two windows are enough for its link",
        ),
        ("hdd-20tb", LimitOf::Plain, OpKind::Read, LARGE, Media, "and for platters"),
        (
            "nas,readahead=32",
            LimitOf::Plain,
            OpKind::Read,
            LARGE,
            Bottleneck::Network,
            "many windows fill the network",
        ),
    ];
    let mut studied = std::collections::BTreeMap::new();
    for (name, of, op, bytes, truth, why) in cases {
        let results = studied.entry(name).or_insert_with(|| {
            study(&named(&format!("twin:{name}")), &["buffered", "depth", "random"])
        });
        let limits = &results.answer.as_ref().expect("an answer").limits;
        let found = limits
            .iter()
            .find(|one| one.of == of && one.op == op && one.request_bytes == Some(bytes));
        let found = found.unwrap_or_else(|| panic!("{name}: no {of} {op}"));
        assert_eq!(found.what, truth, "{name}, {why}: {}", found.sentence);
    }
    // No verdict contradicts its own trials.
    for (name, results) in &studied {
        for limit in &results.answer.as_ref().expect("an answer").limits {
            let ratio = |change: &str| {
                limit.trials.iter().find(|one| one.change.contains(change))?.iops_ratio
            };
            let tried = match limit.what {
                Bottleneck::Latency => ratio("outstanding").or(ratio("one more thread")),
                Bottleneck::Thread => ratio("one more thread"),
                Bottleneck::ReadAhead => ratio("hint"),
                Bottleneck::Link
                | Bottleneck::Network
                | Bottleneck::Device
                | Bottleneck::DeviceIops => {
                    ratio("outstanding").or(ratio("one more thread")).map(|ratio| 2.2 - ratio)
                }
                _ => None,
            };
            assert!(
                tried.is_none_or(|ratio| ratio >= 1.1),
                "{name}: {}: {:?}",
                limit.sentence,
                limit.trials
            );
            assert!(
                tried.is_none() || limit.would_refute.is_none(),
                "{name}: it was made: {limit:?}"
            );
        }
    }
}

fn served(cores: u32, request_us: f64, (workers, service_us): (u32, f64)) -> Twin {
    virtio(|one| {
        one.file_system.command_bytes = 64 * MIB;
        (one.processor.cores, one.processor.request_us) = (cores, request_us);
        let Some(Drive::Virtio(disk)) = one.drives.get_mut("vda") else {
            panic!("virtio has a vda")
        };
        (disk.workers, disk.read_us, disk.write_us) = (workers, service_us, service_us);
        (disk.read_bytes_per_s, disk.write_bytes_per_s, disk.total_bytes_per_s) =
            (1e12, 1e12, 1e13);
        disk.total_read_bytes_per_s = None;
    })
}

#[test]
fn the_program_or_the_number_of_requests_limits_small_ones() {
    use Bottleneck::{DeviceIops, Processor, Thread};
    let cases = [
        (
            "one thread of eight processors",
            served(8, 100.0, (64, 200.0)),
            Thread,
            "one more thread: 2.00 times",
        ),
        ("the only processor", served(1, 100.0, (64, 200.0)), Processor, "so not the thread"),
        ("two workers", served(8, 3.0, (2, 1000.0)), DeviceIops, "so their number is the limit"),
    ];
    for (name, twin, truth, says) in cases {
        let results = study(&twin, &["depth"]);
        let found = limit(&results, LimitOf::Peak, OpKind::Read);
        assert_eq!(found.what, truth, "{name}: {}", found.sentence);
        assert!(found.sentence.contains(says), "{name}: {}", found.sentence);
        assert!(found.would_refute.is_none(), "{name}: {found:?}");
    }
}

#[test]
fn a_bus_rate_is_its_rate_while_busy() {
    let results = study(&named("twin:gateway-1997,disks=4"), &["depth"]);
    let ladder = results.ladder.as_ref().expect("a ladder");
    let read = |kind| {
        let stage = ladder.stages.iter().find(|stage| stage.kind == kind).expect("a stage");
        stage.rates.iter().find(|rate| rate.op == OpKind::Read).expect("a rate of reads")
    };
    let reached = |kind| read(kind).achieved.as_ref().expect("a rate").throughput_bytes_per_s;
    // The 1997 study's figure 1: PCI advertises 133 and gives 72 MB/s to any user.
    assert!((reached(StageKind::Pci) / 75.5e6 - 1.0).abs() < 0.02, "{}", reached(StageKind::Pci));
    assert!(read(StageKind::Bus).narrowest && read(StageKind::Bus).busy_percent > Some(95.0));
    assert!(
        read(StageKind::Bus).share_percent > Some(70.0)
            && read(StageKind::Bus).share_percent < Some(95.0)
    );
    assert!(reached(StageKind::Device) > reached(StageKind::Bus), "the disks could give more");
    // Each connection costs bus phases without data, so the component has its own half-power point.
    let half = |kind| read(kind).half_power_bytes.expect("a size");
    assert!(
        half(StageKind::Bus) > 0.0 && half(StageKind::Pci) <= half(StageKind::Bus),
        "{}",
        half(StageKind::Bus)
    );
    let reported = |kind| read(kind).advertised.as_ref().expect("a rate").formula.as_str();
    assert_eq!(reported(StageKind::Pci), "the machine's description");
    assert!(
        reported(StageKind::Device).starts_with("4 x 8.39 MiB/s, "),
        "{}",
        reported(StageKind::Device)
    );
    let risky = study(&named("twin:gateway-1997,wce=on"), &["depth"]);
    let risks = &risky.ladder.as_ref().expect("a ladder").risks;
    assert!(risks.iter().any(|risk| risk.contains("write cache")), "{risks:?}");
}

#[test]
fn a_simulated_disk_separates_queue_link_media_and_device() {
    let results = study(&named("twin:gateway-1997"), &["depth"]);
    let peak = &results.answer.as_ref().expect("an answer").peaks[0];
    let achieved = &results.points[peak.point].numbers.as_ref().expect("numbers").achieved;
    let times = achieved
        .request_times
        .as_ref()
        .unwrap_or_else(|| panic!("{:?}", achieved.request_times_unknown));
    let stages: Vec<machine::Stage> = times.stages.iter().map(|one| one.stage).collect();
    use machine::Stage::{Device, Link, Media, Queue, SubmitAndCompletion};
    assert_eq!(stages, [SubmitAndCompletion, Queue, Link, Media, Device]);
    let percent =
        |stage| times.stages.iter().find(|one| one.stage == stage).expect("a stage").percent;
    assert!(
        (times.stages.iter().map(|one| one.percent).sum::<f64>() - 100.0).abs() < 0.01,
        "{times:?}"
    );
    assert!(percent(Media) > 0.0 && percent(Link) > 0.0, "{times:?}");
}

#[test]
fn advice_starts_from_a_plain_program() {
    let results = study(&named("twin:gateway-1997,disks=3"), &["buffered", "unbuffered", "depth"]);
    let answer = results.answer.as_ref().expect("an answer");
    let first = answer.findings.first().expect("plain writes are slow on this machine");
    assert!(first.from_plain, "{first:?}");
    let before = &results.points[first.points[0]].workload;
    assert!(!before.buffering.is_direct() && before.outstanding() == 1, "{}", before.short());
    let [_, after] = first.points.map(|point| results.points[point].rate().expect("a rate"));
    let peak = answer
        .peaks
        .iter()
        .find(|peak| peak.op == results.points[first.points[1]].workload.op)
        .expect("a peak");
    assert!(after >= 0.5 * peak.throughput_bytes_per_s, "at least half of the peak");
    assert!(first.cpu_ns_per_mib.is_some());
    let p99 = |point: usize| results.points[point].numbers.as_ref()?.latency_ns.settled_p99();
    let [before, after] = first.points.map(p99);
    assert_eq!(first.p99_ns, before.zip(after).map(|(before, after)| [before, after]));
    let through = answer
        .findings
        .iter()
        .position(|one| results.points[one.points[0]].workload.buffering.is_dsync());
    let plain = answer.findings.iter().rposition(|one| one.from_plain).expect("the first");
    assert!(through.is_none_or(|through| through > plain), "write-through is deliberate");
    let rule = |words: &str| {
        answer.checklist.iter().find(|one| one.rule.contains(words)).expect("a rule").state.name()
    };
    assert_eq!(rule("buses"), "broken", "three disks on one bus");
    assert_eq!(rule("align"), "not_applicable");
}

#[test]
fn the_rule_of_the_write_cache_has_the_rates_with_it_and_without() {
    let evidence = |name: &str| {
        let results = study(&named(name), &["unbuffered"]);
        let rules = results.answer.expect("an answer").checklist;
        rules.into_iter().find(|one| one.rule.contains("cache writes")).expect("a rule").evidence
    };
    let on = evidence("twin:gateway-1997,wce=on");
    assert!(on.contains(" with it, ") && on.contains("if each is synced"), "{on}");
    let off = evidence("twin:gateway-1997,wce=off");
    assert!(off.ends_with(" without it"), "{off}");
}

#[test]
fn warm_caches_never_rank_first() {
    let results = study(&named("twin:cloud"), &["memory", "buffered", "unbuffered", "random"]);
    let answer = results.answer.as_ref().expect("an answer");
    assert_eq!(answer.plain.len(), 4, "reads and writes of two sizes: {:?}", answer.plain);
    for one in &answer.plain {
        assert_eq!(one.reaches, Some(results::Goal::NinetyPercent), "{one:?}");
        assert!(one.share_of_peak.is_some_and(|share| (0.9..1.05).contains(&share)), "{one:?}");
    }
    assert!(answer.findings.iter().all(|one| one.reaches.is_none()), "nothing to change");
    let from_cache = |one: &results::Finding| {
        let before = &results.points[one.points[0]].workload;
        !before.buffering.is_direct()
            && before.op == OpKind::Read
            && before.workload.cache == machine::CacheState::Warm
    };
    let warm = answer.findings.iter().position(from_cache).expect("memory has its findings");
    let random = answer
        .findings
        .iter()
        .position(|one| one.title.contains("random"))
        .expect("as random requests");
    assert!(
        random < warm,
        "{:?}",
        answer.findings.iter().map(|one| &one.title).collect::<Vec<_>>()
    );
}
