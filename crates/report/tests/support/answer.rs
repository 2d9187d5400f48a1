//! The answer of the synthetic study.

use super::experiments::{best, find, gain};
use machine::{Allocation, Engine};
use results::{
    Advertised, Advertises, Answer, Bottleneck, Cause, CheckChange, CostMode, CostModel, CostScope,
    ExcludedBy, Exclusion, Expected, Experiment, Finding, FindingStep, Goal, HalfPower, Ladder,
    Limit, LimitChange, LimitOf, LimitTrial, Meaning, Peak, PlainRate, Point, Reached, Refutation,
    Rule, RuleState, ServiceMode, ServiceModel, Stage, StageKind, StageRate,
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
            burst: None,
        }
    };
    let throttle =
        Advertised { layer: "blkio of /system.slice".into(), throughput_bytes_per_s: 2.0e9 };
    let half_power: Vec<HalfPower> = experiments
        .iter()
        .filter(|e| e.id == "depth")
        .flat_map(|e| &e.figures)
        .flat_map(|f| &f.series)
        .filter_map(|s| s.half_power.clone())
        .take(13)
        .collect();
    Answer {
        doubts: vec![
            "the hypervisor took up to 7 % of a processor away: rates of small requests may be low"
                .into(),
        ],
        peak_doubts: Vec::new(),
        peaks: vec![peak(OpKind::Read, read, Some(throttle)), peak(OpKind::Write, write, None)],
        plain: vec![
            plain(OpKind::Read, 65_536, 0.94),
            plain(OpKind::Read, 4096, 0.31),
            plain(OpKind::Write, 65_536, 0.42),
        ],
        limits: limits(),
        half_power,
        costs: vec![
            cost(CostMode::BufferedRead, 4030.0, 0.153),
            cost(CostMode::DirectRead, 4030.0, 0.0143),
        ],
        service_times: vec![
            service(ServiceMode::DirectRead, 78e3, 2.72e9),
            service(ServiceMode::SameBlock, 31e3, 6.8e9),
        ],
        long_writes: None,
        findings: findings(points),
        predictions: Vec::new(),
        random_bursts: Vec::new(),
        unproven: vec![
            "Tell the page cache that you read sequentially (1.2 times, 0.9 to 1.5)".into(),
        ],
        uncertain_gains: Vec::new(),
        checklist: vec![
            Rule {
                rule: "keep several requests outstanding".into(),
                state: RuleState::Held,
                evidence: "64 KiB reads: 625 MiB/s one at a time, 1672 MiB/s at best".into(),
            },
            Rule {
                rule: "preallocate files".into(),
                state: RuleState::Broken,
                evidence: "writes of 64 KiB: 441 MiB/s as the file grows, 450 MiB/s in place"
                    .into(),
            },
            Rule {
                rule: "enough buses and links".into(),
                state: RuleState::NotApplicable,
                evidence: "not measured here".into(),
            },
        ],
        left_out: vec![
            "streams above 16 and requests above 4 MiB: the budget of 3 min ended first".into(),
        ],
    }
}

fn plain(op: OpKind, request_bytes: u32, share: f64) -> PlainRate {
    let mib = (1u64 << 20) as f64;
    let rate = share * if op == OpKind::Write { 923.0 } else { 1672.0 } * mib;
    PlainRate {
        op,
        request_bytes,
        throughput_bytes_per_s: rate,
        interval_95: Some([rate * 0.97, rate * 1.03]),
        share_of_peak: Some(share),
        reaches: (share >= 0.9).then_some(Goal::NinetyPercent),
        point: 0,
    }
}

fn limits() -> Vec<Limit> {
    let peak = |op, what, mib: f64, cause| {
        let throughput_bytes_per_s = Some(mib * f64::from(1 << 20));
        Limit { throughput_bytes_per_s, cause: Some(cause), ..limit(LimitOf::Peak, op, what, "") }
    };
    let device = Cause::BusyDevice { busy_percent: 98.0, mean_depth: 29.8 };
    let read = peak(OpKind::Read, Bottleneck::Device, 1672.0, device);
    let deeper = LimitChange::Deeper { from: 32, to: 64 };
    let deeper = LimitTrial { tests_verdict: true, ..trial(deeper, 1.004, Meaning::NotLatency) };
    let refutation =
        Refutation { change: CheckChange::DoubleDepth, expected: Expected::Gain, longer: false };
    let write = peak(OpKind::Write, Bottleneck::Latency, 900.0, Cause::NothingSaturated);
    // Documents of an earlier version have no values.
    let old = |of, what, sentence| Limit {
        exclusions: Vec::new(),
        excluded: vec!["processors: 34 % busy".into()],
        ..limit(of, OpKind::Read, what, sentence)
    };
    vec![
        Limit { trials: vec![deeper], ..read }.with_sentences(),
        Limit { refutation: Some(refutation), ..write }.with_sentences(),
        old(
            LimitOf::Plain,
            Bottleneck::ReadAhead,
            "plain reads of 64 KiB are limited by the read-ahead",
        ),
        unknown(),
        old(
            LimitOf::Random,
            Bottleneck::DeviceIops,
            "random reads of 64 KiB are limited by their number",
        ),
    ]
}

fn limit(of: LimitOf, op: OpKind, what: Bottleneck, sentence: &str) -> Limit {
    let by = ExcludedBy::Use { percent: 34.0, mean_depth: None };
    Limit {
        of,
        op,
        request_bytes: Some(65_536),
        point: Some(0),
        throughput_bytes_per_s: None,
        what,
        cause: None,
        plain_write: None,
        sentence: sentence.into(),
        excluded: Vec::new(),
        exclusions: vec![Exclusion { what: Bottleneck::Processor, by }],
        trials: Vec::new(),
        would_refute: None,
        refutation: None,
    }
}

fn trial(change: LimitChange, ratio: f64, meaning: Meaning) -> LimitTrial {
    LimitTrial {
        change: String::new(),
        changed: Some(change),
        before: 0,
        after: Some(1),
        iops_ratio: Some(ratio),
        iops_ratio_interval_95: Some([ratio - 0.013, ratio + 0.017]),
        outcome: String::new(),
        meaning: Some(meaning),
        tests_verdict: false,
    }
}

fn unknown() -> Limit {
    let mut limit = limit(LimitOf::Plain, OpKind::Write, Bottleneck::Unknown, "");
    limit.throughput_bytes_per_s = Some(412.0 * f64::from(1 << 20));
    limit.cause = Some(Cause::Unidentified { refuted: vec![Bottleneck::Latency] });
    limit.trials = vec![trial(LimitChange::Wider, 0.993, Meaning::NotThread)];
    let by = ExcludedBy::Trial { change: LimitChange::Wider, iops_ratio: 0.993 };
    limit.exclusions.push(Exclusion { what: Bottleneck::Latency, by });
    limit.with_sentences()
}

pub fn ladder() -> Ladder {
    let mib = (1u64 << 20) as f64;
    let formula = |kind| match kind {
        StageKind::Link => "PCIe 4.0 x4: 16 GT/s x 4 lanes x 128/130".to_owned(),
        StageKind::Direct => "the narrowest below: nvme0n1".to_owned(),
        _ => "one copy in memory".to_owned(),
    };
    let stage = |kind, name: &str, advertised: Option<f64>, achieved: f64, busy: Option<f64>| {
        let advertised = advertised
            .map(|rate| Advertises { throughput_bytes_per_s: rate * mib, formula: formula(kind) });
        let reached = Reached {
            throughput_bytes_per_s: achieved * mib,
            interval_95: Some([achieved * mib * 0.98, achieved * mib * 1.02]),
            point: None,
            formula: "measured".into(),
            how: None,
            at_least: kind == StageKind::Link,
        };
        let rate = StageRate {
            op: OpKind::Read,
            share_percent: advertised
                .as_ref()
                .map(|one| achieved * mib / one.throughput_bytes_per_s * 100.0),
            advertised,
            achieved: Some(reached),
            busy_percent: busy,
            half_power_bytes: busy.is_none().then_some(24_576.0),
            narrowest: busy.is_some_and(|busy| busy > 90.0),
        };
        Stage {
            kind,
            name: name.into(),
            rates: vec![rate],
            settings: vec![("scheduler".into(), "none".into())],
            warnings: Vec::new(),
        }
    };
    Ladder {
        stages: vec![
            stage(StageKind::Generator, "halfpower", None, 16_000.0, None),
            stage(StageKind::Memory, "copy", None, 10_200.0, None),
            stage(StageKind::PageCache, "data that are there", Some(10_200.0), 6_100.0, None),
            stage(StageKind::Direct, "ext4 on /srv", Some(1_900.0), 1_672.0, None),
            stage(StageKind::Device, "nvme0n1", None, 1_672.0, Some(98.0)),
            stage(StageKind::Link, "PCIe 4.0 x4", Some(7_512.0), 1_672.0, None),
        ],
        risks: vec!["nvme0n1 has a write cache that a loss of power may empty".into()],
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
        sizes_bytes: None,
        fixed_ns: fixed,
        fixed_ns_interval_95: [fixed * 0.97, fixed * 1.03],
        rate_bytes_per_s: Some(rate),
        rate_interval_95: Some([rate * 0.96, rate * 1.05]),
        rms_residual: 0.021,
        max_residual: 0.064,
        knee_bytes: Some(1_310_720.0),
    }
}

fn steps(points: &[Point], from: usize, to: usize) -> Vec<FindingStep> {
    let one = gain(points, from, to).sqrt();
    let step = |change: &str, cpu, p99| FindingStep {
        change: change.into(),
        point: to,
        gain: one,
        gain_interval_95: Some([one * 0.97, one * 1.03]),
        cpu_ns_per_mib: Some(cpu),
        p99_ns: Some(p99),
    };
    vec![step("past the page cache", 96e3, 400_000), step("32 outstanding", 95e3, 1_900_000)]
}

fn findings(points: &[Point]) -> Vec<Finding> {
    let finding = |title: &str, from: usize, to: usize, setting: &str| {
        let gain = gain(points, from, to);
        Finding {
            steps: steps(points, from, to),
            title: title.into(),
            gain,
            gain_interval_95: Some([gain * 0.95, gain * 1.06]),
            evidence: Finding::rates([&points[from], &points[to]]).expect("rates").full,
            setting: setting.into(),
            check: format!(
                "halfpower compare /srv/data '{}' '{}'",
                points[from].workload.options(),
                points[to].workload.options()
            ),
            points: [from, to],
            cpu_ns_per_mib: Some([310e3, 95e3]),
            p99_ns: Some([410_000, 1_900_000]),
            from_plain: false,
            reaches: None,
        }
    };
    let shallow = find(points, |w| {
        w.request_bytes == 16384
            && w.depth == 1
            && w.engine == Engine::Sync
            && w.read_percent == 100
    });
    let deep = find(points, |w| w.request_bytes == 16384 && w.depth == 32 && w.read_percent == 100);
    let grown = find(points, |w| w.allocation == Allocation::Extend && w.request_bytes == 65536);
    let written = find(points, |w| w.depth == 8 && w.read_percent == 0 && w.request_bytes == 65536);
    let small = find(points, |w| w.request_bytes == 65536 && w.depth == 1 && w.read_percent == 100);
    let large =
        find(points, |w| w.request_bytes == 1 << 20 && w.depth == 1 && w.read_percent == 100);
    vec![
        finding(
            "Keep 32 reads outstanding instead of one",
            shallow,
            deep,
            "io_uring or libaio with 32 requests in flight",
        ),
        finding(
            "Preallocate and overwrite instead of extending",
            grown,
            written,
            "fallocate, then write every block once before it matters",
        ),
        finding("Ask for 1 MiB at a time", small, large, "1 MiB requests"),
        finding("Use larger writes", small, large, "1 MiB requests"),
    ]
}
