//! The study on a machine whose runs differ: what it says is as sure as it says, although where it measures depends on what it saw.

mod noisy;

use machine::{Engine, Machine, TargetSpec};
use measure::Repeats;
use noisy::{Noisy, disk};
use results::{LimitOf, PeakSource, Point, Program, Results, Varied};
use std::collections::BTreeMap;
use study::{Effort, Plan};
use twin::Twin;
use workload::{OpKind, Stop, Workload};

/// Standard deviation of a run's rate, as a share of it.
const SPREAD: f64 = 0.2;

fn study(machine: &impl Machine, seed: u64, budget_s: u64, effort: Effort) -> Results {
    let plan = Plan { budget_ns: budget_s * 1_000_000_000, effort, only: Vec::new(), seed };
    let program = Program { name: "test".into(), version: "0".into(), arguments: Vec::new() };
    study::study(machine, &TargetSpec::default(), &plan, program, &mut |_| {}).expect("a study")
}

/// What is known of the machine: rates without noise, in bytes per second.
#[derive(Default)]
struct Truth {
    rates: BTreeMap<String, f64>,
}

impl Truth {
    fn rate(&mut self, workload: &Workload) -> f64 {
        // The long-run rate: what a short run leaves out at either end is an error of the study.
        let long = match workload.stop {
            Stop::AfterNs(_) => Stop::AfterNs(10_000_000_000),
            Stop::AfterBytes(_) => workload.stop,
        };
        let workload = &Workload { stop: long, ..workload.clone() };
        let name = workload.options();
        *self.rates.entry(name).or_insert_with(|| {
            let twin: Twin = disk();
            let mut target = twin.open(&TargetSpec::default()).expect("a target");
            let one = std::slice::from_ref(workload);
            let points =
                results::measure_points(&twin, &mut target, one, Repeats::exactly(1), |_, _| {}).expect("a run");
            points[0].rate().expect("a rate")
        })
    }

    /// The size at which single requests reach this rate: each takes a fixed time and a time for each byte.
    fn size_with(&mut self, op: OpKind, rate: f64) -> f64 {
        let read_percent = if op == OpKind::Write { 0 } else { 100 };
        let [small, large] = [65_536u32, 1 << 20].map(|request_bytes| {
            let stop = Stop::AfterNs(10_000_000_000);
            let one = Workload { request_bytes, read_percent, engine: Engine::Sync, stop, ..Workload::default() };
            (f64::from(request_bytes), f64::from(request_bytes) / self.rate(&one))
        });
        let byte = (large.1 - small.1) / (large.0 - small.0);
        let fixed = small.1 - byte * small.0;
        rate * fixed / (1.0 - rate * byte)
    }
}

/// How many intervals hold the truth, how wide they are and how far the estimates are from it.
#[derive(Debug, Default, Clone)]
struct Score {
    held: usize,
    widths: Vec<f64>,
    errors: Vec<f64>,
    signed: Vec<f64>,
}

impl Score {
    fn add(&mut self, value: f64, interval: Option<[f64; 2]>, truth: f64) {
        let [low, high] = interval.unwrap_or([0.0, f64::MAX]);
        self.held += usize::from((low..=high).contains(&truth));
        self.widths.push((high - low) / 2.0 / value);
        self.signed.push(value / truth - 1.0);
        self.errors.push((value / truth - 1.0).abs());
    }

    fn add_point(&mut self, point: &Point, truth: f64) {
        let numbers = point.numbers.as_ref().expect("it was measured");
        self.add(numbers.throughput_bytes_per_s, numbers.interval_95, truth);
    }

    fn coverage(&self) -> f64 {
        self.held as f64 / self.widths.len().max(1) as f64
    }

    /// The median half width and the median error.
    fn medians(&self) -> [f64; 2] {
        [&self.widths, &self.errors].map(|all| {
            let mut all = all.clone();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or(f64::MAX)
        })
    }
}

/// The scores of studies with so many seeds.
#[derive(Debug, Default)]
struct Scores {
    points: Score,
    peaks: Score,
    /// Against the best that any point has in truth.
    best: Score,
    halves: Score,
    /// Half-power sizes of single requests that were not found.
    missing: usize,
    verdicts: BTreeMap<String, usize>,
}

impl Scores {
    fn of(seeds: std::ops::Range<u64>, budget_s: u64, effort: Effort) -> Scores {
        let (mut scores, mut truth) = (Scores::default(), Truth::default());
        for seed in seeds {
            let results = study(&Noisy::new(disk(), seed, SPREAD, false), seed, budget_s, effort);
            scores.add(&results, &mut truth);
        }
        println!("peaks signed {:.3?}", scores.peaks.signed);
        println!(
            "points signed mean {:.4}",
            scores.points.signed.iter().sum::<f64>() / scores.points.signed.len() as f64
        );
        println!(
            "{effort:?} in {budget_s} s: points {:.3} of {}; peaks {:.3} {:.3?}; best {:.3} {:.3?}; half {:.3} {:.3?}, {} missing; {:?}",
            scores.points.coverage(),
            scores.points.widths.len(),
            scores.peaks.coverage(),
            scores.peaks.medians(),
            scores.best.coverage(),
            scores.best.medians(),
            scores.halves.coverage(),
            scores.halves.medians(),
            scores.missing,
            scores.verdicts
        );
        scores
    }

    fn add(&mut self, results: &Results, truth: &mut Truth) {
        let direct: Vec<&Point> = results
            .points
            .iter()
            .filter(|point| point.numbers.is_some() && point.workload.buffering.is_direct())
            .collect();
        for point in &direct {
            self.points.add_point(point, truth.rate(&point.workload));
        }
        let answer = results.answer.as_ref().expect("an answer");
        for peak in &answer.peaks {
            let point = &results.points[peak.point];
            self.peaks.add_point(point, truth.rate(&point.workload));
            let of_op = direct.iter().filter(|point| point.workload.op == peak.op);
            let best = of_op.map(|point| truth.rate(&point.workload)).fold(0.0, f64::max);
            self.best.add(peak.throughput_bytes_per_s, peak.interval_95, best);
            let half = answer.half_power.iter().find(|half| {
                (half.of, half.op, half.peak_from) == (Varied::RequestBytes, peak.op, PeakSource::Measured)
                    && half.at == "depth 1"
            });
            match half.and_then(|half| Some((half.crossing?, half.interval_95))) {
                Some((crossing, interval)) => self.halves.add(crossing, interval, truth.size_with(peak.op, best / 2.0)),
                None => self.missing += 1,
            }
        }
        for limit in answer.limits.iter().filter(|limit| limit.of == LimitOf::Peak) {
            *self.verdicts.entry(format!("{} {}", limit.op, limit.what)).or_default() += 1;
        }
    }
}

#[test]
fn a_default_study() {
    let scores = Scores::of(101..117, 180, Effort::Normal);
    assert!((0.93..=0.97).contains(&scores.points.coverage()));
}

#[test]
fn a_quick_study() {
    let scores = Scores::of(101..117, 60, Effort::Quick);
    assert!((0.93..=0.97).contains(&scores.points.coverage()));
}
