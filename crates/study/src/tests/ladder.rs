//! The ladder on targets with known layers.

use super::verdict::{REQUEST, workload};
use super::{entry, facts};
use crate::checklist::checklist;
use crate::command::Command;
use crate::context::StudyContext;
use crate::experiments::Trial;
use crate::experiments::{ALL, buffered};
use crate::found::{Found, PeakRates};
use crate::grid::{Grid, Rank};
use crate::ladder::ladder;
use crate::sampler::Entry;
use machine::{
    Buffering, Layer, LayerKind, MachineFacts, PartitionFacts, Share, TargetFacts, TargetSpec,
};
use results::{
    Answer, Bottleneck, Ladder, Limit, LimitOf, Method, Point, RuleState, Stage, StageKind,
    StageRate,
};
use workload::{OpKind, Workload};

fn layer(
    kind: LayerKind,
    name: &str,
    rate: Option<(f64, &str)>,
    settings: &[(&str, &str)],
) -> Layer {
    Layer {
        advertised_bytes_per_s: rate.map(|one| one.0),
        advertised_formula: rate.map(|one| one.1.to_owned()),
        settings: settings
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        ..Layer::new(kind, name)
    }
}

fn warned(mut layer: Layer, warning: &str) -> Layer {
    layer.facts.warnings.push(warning.into());
    layer
}

fn on_layers() -> TargetFacts {
    TargetFacts {
        layers: vec![
            layer(
                LayerKind::FileSystem,
                "ext4 on /",
                None,
                &[("journal", "yes"), ("mount", "rw"), ("compress", "no")],
            ),
            warned(
                layer(LayerKind::Partition, "sda1", None, &[("start_bytes", "1048576")]),
                "sda1 starts at 1 MiB, which is wrong",
            ),
            layer(LayerKind::Volume, "tank (ZFS pool)", None, &[("state", "online")]),
            layer(
                LayerKind::Disk,
                "sda (a disk)",
                None,
                &[("fua", "1"), ("namespace", "1"), ("service", "a cloud's")],
            ),
            warned(
                layer(
                    LayerKind::Link,
                    "SATA 6 Gbit/s",
                    Some((600e6, "SATA: 6 Gbit/s x 8/10")),
                    &[("port", "ata1"), ("hw_sata_spd_limit", "6.0 Gbps")],
                ),
                "the SATA link of ata1 is slow",
            ),
            layer(LayerKind::Link, "virtio", None, &[("driver", "virtio_blk")]),
            layer(
                LayerKind::Network,
                "nfs4 to server:/x",
                None,
                &[("vers", "4.2"), ("nconnect", "4")],
            ),
        ],
        ..facts()
    }
}

fn made(facts: TargetFacts, what: Option<Bottleneck>) -> (Ladder, Answer) {
    let buffered = Workload {
        read_percent: 0,
        buffering: Buffering::Buffered,
        sync_at_end: true,
        depth: 1,
        request_bytes: REQUEST,
        ..Workload::default()
    };
    let entries =
        [entry(workload(), &[1000.0, 1000.0, 1000.0]), entry(buffered, &[2000.0, 1900.0, 2100.0])];
    of_entries(facts, &entries, what)
}

fn of_entries(facts: TargetFacts, entries: &[Entry], what: Option<Bottleneck>) -> (Ladder, Answer) {
    concluded(facts, entries, (OpKind::Read, 0), what)
}

fn concluded(
    facts: TargetFacts,
    entries: &[Entry],
    peak: (OpKind, usize),
    what: Option<Bottleneck>,
) -> (Ladder, Answer) {
    let points: Vec<Point> = entries.iter().map(|entry| entry.point().clone()).collect();
    let setting = StudyContext { facts, ..super::setting() };
    let memory = Ok(Vec::new());
    let trials = [of_buffered(entries)];
    let found = || Found {
        setting: &setting,
        grids: trials.iter().map(|trial| &trial.grid).collect(),
        entries,
        points: &points,
        measured: PeakRates::default(),
        advertised: PeakRates::default(),
        memory: &memory,
        long_writes: crate::long_writes::NOT_YET,
    };
    let machine = MachineFacts::default();
    let command = Command::new(
        &TargetSpec { places: vec!["/data".into()], ..TargetSpec::default() },
        &setting.facts,
    );
    let best = crate::confirm::BestRates { peaks: &[peak], bursts: &[], random_bursts: &[] };
    let (experiments, mut answer, _) =
        crate::answer::answer(found(), &trials, &best, &[], &machine, &command, true);
    answer.limits.extend(what.map(|what| Limit {
        of: LimitOf::Peak,
        op: OpKind::Read,
        request_bytes: None,
        point: Some(0),
        what,
        sentence: String::new(),
        excluded: Vec::new(),
        trials: Vec::new(),
        would_refute: None,
        throughput_bytes_per_s: None,
        cause: None,
        plain_write: None,
        exclusions: Vec::new(),
        refutation: None,
    }));
    answer.checklist = checklist(&found(), &answer.limits);
    (ladder(&found(), &experiments, &answer, &machine), answer)
}

fn of_buffered(entries: &[Entry]) -> Trial {
    let mut grid = Grid::default();
    let plain =
        |workload: &Workload| workload.sync_at_end && workload.buffering == Buffering::Buffered;
    for (point, entry) in entries.iter().enumerate().filter(|(_, one)| plain(&one.workload)) {
        for (curve, synced) in [(buffered::RETURNED, false), (buffered::SYNCED, true)] {
            let workload = entry.workload.clone();
            let cell = grid.add(curve, workload.request_bytes, workload, Rank::Core);
            (cell.point, cell.synced) = (Some(point), synced);
        }
    }
    let experiment = ALL.iter().find(|one| one.id == "buffered").expect("an experiment");
    Trial { experiment, grid }
}

fn stage<'a>(ladder: &'a Ladder, name: &str) -> &'a Stage {
    ladder
        .stages
        .iter()
        .find(|stage| stage.name == name)
        .unwrap_or_else(|| panic!("no {name}: {ladder:#?}"))
}

fn read(stage: &Stage) -> &StageRate {
    stage
        .rates
        .iter()
        .find(|rate| rate.op == OpKind::Read)
        .unwrap_or_else(|| panic!("no rate: {stage:#?}"))
}

#[test]
fn every_stage_is_there_with_the_settings_that_matter() {
    let (ladder, _) = made(on_layers(), None);
    let names =
        |stage: &Stage| stage.settings.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(
        names(stage(&ladder, "ext4 on /")),
        ["journal", "compress"],
        "once, and not all options of the mount"
    );
    assert_eq!(names(stage(&ladder, "tank (ZFS pool)")), ["state"]);
    assert_eq!(names(stage(&ladder, "sda (a disk)")), ["service", "fua", "namespace"]);
    assert_eq!(names(stage(&ladder, "SATA 6 Gbit/s")), ["hw_sata_spd_limit", "port"]);
    assert_eq!(names(stage(&ladder, "virtio")), ["driver"]);
    assert_eq!(names(stage(&ladder, "nfs4 to server:/x")), ["vers", "nconnect"]);
    let bare =
        TargetFacts { layers: vec![layer(LayerKind::Volume, "RAM cache", None, &[])], ..facts() };
    assert!(
        stage(&made(bare, None).0, "RAM cache").settings.is_empty(),
        "it is there all the same"
    );
}

#[test]
fn a_buffered_rate_above_the_peak_is_a_doubt() {
    let direct = Workload { read_percent: 0, ..workload() };
    let buffered = Workload {
        buffering: Buffering::Buffered,
        sync_at_end: true,
        depth: 1,
        request_bytes: REQUEST,
        ..direct.clone()
    };
    let doubts = |iops: [f64; 3]| {
        let entries =
            [entry(direct.clone(), &[1000.0, 1010.0, 990.0]), entry(buffered.clone(), &iops)];
        concluded(facts(), &entries, (OpKind::Write, 0), None).1.doubts
    };
    let faster = doubts([5000.0, 4990.0, 5010.0]).join("; ");
    assert!(faster.contains("buffered writes reached 156 MiB/s at another time"), "{faster}");
    assert!(doubts([2000.0, 1800.0, 2400.0]).iter().all(|doubt| !doubt.contains("another time")));
}

#[test]
fn a_lower_file_system_is_a_stage_of_its_own() {
    let mut facts = on_layers();
    facts
        .layers
        .insert(1, layer(LayerKind::FileSystem, "xfs on /below", None, &[("sunit", "256")]));
    let (ladder, _) = made(facts, None);
    assert_eq!(stage(&ladder, "xfs on /below").kind, StageKind::FileSystem);
}

#[test]
fn a_warning_is_shown_at_its_stage() {
    let (ladder, _) = made(on_layers(), None);
    let warned = |name| stage(&ladder, name).warnings.len();
    assert_eq!(
        (warned("sda1"), warned("sda (a disk)"), warned("SATA 6 Gbit/s"), warned("virtio")),
        (1, 0, 1, 0)
    );
}

#[test]
fn throughput_at_the_peak_is_a_lower_bound() {
    let rate = 1000.0 * f64::from(REQUEST);
    let (ladder, _) = made(on_layers(), Some(Bottleneck::Device));
    for name in ["sda1", "tank (ZFS pool)", "SATA 6 Gbit/s", "virtio", "nfs4 to server:/x"] {
        let reached = read(stage(&ladder, name)).achieved.as_ref().expect("what passed through");
        assert!(
            (reached.throughput_bytes_per_s / rate - 1.0).abs() < 0.01 && reached.at_least,
            "{name}: {reached:?}"
        );
    }
    let device = read(stage(&ladder, "sda (a disk)"));
    assert!(
        device.narrowest && !device.achieved.as_ref().expect("a rate").at_least,
        "the limit gives no more"
    );
    let link = read(stage(&ladder, "SATA 6 Gbit/s")).advertised.as_ref().expect("a rate");
    assert_eq!(link.formula, "SATA: 6 Gbit/s x 8/10");
    let mut shared = on_layers();
    shared.layers[4].share = Share { reads: 0.5, writes: 1.0 };
    let link =
        read(stage(&made(shared, None).0, "SATA 6 Gbit/s")).advertised.clone().expect("a rate");
    assert_eq!(link.throughput_bytes_per_s, 1200e6);
    assert!(
        link.formula.starts_with("SATA: 6 Gbit/s x 8/10 = ")
            && link.formula.ends_with("/ 0.500 of the bytes")
    );
}

#[test]
fn the_file_system_and_the_network_are_marked_as_the_limit() {
    let marked = |what| {
        let (ladder, _) = made(on_layers(), Some(what));
        let marked =
            ladder.stages.iter().filter(|stage| stage.rates.iter().any(|rate| rate.narrowest));
        marked.map(|stage| (stage.kind, stage.name.clone())).collect::<Vec<_>>()
    };
    assert_eq!(marked(Bottleneck::FileSystem), [(StageKind::Direct, "ext4 on /".to_owned())]);
    assert_eq!(marked(Bottleneck::Network), [(StageKind::Network, "nfs4 to server:/x".to_owned())]);
    // No reads went through the page cache: the stage is marked without a rate.
    let refused = TargetFacts { direct: false, ..on_layers() };
    let (ladder, _) = made(refused, Some(Bottleneck::FileSystem));
    let buffered =
        ladder.stages.iter().find(|stage| stage.kind == StageKind::Buffered).expect("a stage");
    assert!(read(buffered).narrowest && read(buffered).achieved.is_none(), "{buffered:#?}");
}

#[test]
fn writes_to_stable_storage_have_an_interval() {
    let (ladder, _) = made(on_layers(), None);
    let buffered =
        ladder.stages.iter().find(|stage| stage.kind == StageKind::Buffered).expect("a stage");
    let write =
        buffered.rates.iter().find(|rate| rate.op == OpKind::Write).expect("a rate of writes");
    let reached = write.achieved.as_ref().expect("a rate");
    let [low, high] = reached.interval_95.expect("three runs give one");
    // A second of writing and a second of flushing.
    let rate = 1000.0 * f64::from(REQUEST);
    assert!(low < rate && rate < high && high < rate * 1.3, "{reached:?}");
    assert!((reached.throughput_bytes_per_s / rate - 1.0).abs() < 0.01, "{reached:?}");
}

#[test]
fn the_page_cache_is_rated_without_the_flush() {
    let (ladder, _) = made(on_layers(), None);
    let cache = ladder.stages.iter().find(|one| one.kind == StageKind::PageCache).expect("a stage");
    let write = cache.rates.iter().find(|rate| rate.op == OpKind::Write).expect("a rate");
    let reached = write.achieved.as_ref().expect("a rate");
    assert!((reached.throughput_bytes_per_s / (2000.0 * f64::from(REQUEST)) - 1.0).abs() < 0.01);
    assert_eq!(reached.how, Some(Method::UntilReturn { faster_than_memory: true }));
}

#[test]
fn the_file_system_below_a_loop_device_is_not_the_program_s() {
    let below = layer(LayerKind::FileSystem, "tmpfs on /dev/shm", None, &[]);
    let facts = TargetFacts {
        layers: vec![layer(LayerKind::Loop, "loop0", None, &[]), below],
        name: "/dev/loop0".into(),
        ..facts()
    };
    let (ladder, _) = made(facts, None);
    assert_eq!(stage(&ladder, "tmpfs on /dev/shm").kind, StageKind::FileSystem);
    let direct = ladder.stages.iter().find(|one| one.kind == StageKind::Direct).expect("a stage");
    assert_eq!(direct.name, "/dev/loop0");
}

#[test]
fn a_partition_off_the_stripe_breaks_the_rule() {
    let rule = |stripe_bytes: Option<u64>| {
        let mut partition = Layer::new(LayerKind::Partition, "md0p1");
        let begins =
            PartitionFacts { start_bytes: 1 << 20, physical_block_bytes: Some(4096), stripe_bytes };
        partition.facts.partition = Some(begins);
        let (_, answer) = made(TargetFacts { layers: vec![partition], ..facts() }, None);
        let rule = answer
            .checklist
            .into_iter()
            .find(|rule| rule.rule == "align partitions")
            .expect("a rule");
        (rule.state, rule.evidence)
    };
    let (state, evidence) = rule(Some(1_572_864));
    assert_eq!(state, RuleState::Broken);
    assert_eq!(evidence, "md0p1 starts at 1 MiB, which is not a multiple of the 1.5 MiB stripe");
    assert_eq!(rule(Some(1 << 20)).0, RuleState::Held);
    assert_eq!(rule(None), (RuleState::Held, "md0p1 starts at 1 MiB".to_owned()));
}
