//! Repeats points in turn until each is precise enough, or a limit is reached.

use crate::ceiling::Ceiling;
use crate::sample::{Options, Sample, sample};
use crate::stats::{self, Estimate, Spread};
use machine::{Error, Machine, Nanos, Result, THROTTLE_REST_NS, THROTTLE_SLICE_NS, TargetFacts};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use workload::Workload;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// If the time allows.
    pub min: u32,
    pub max: u32,
    /// Half the 95 % interval, as a fraction of the rate.
    pub precision: f64,
    /// No run starts that would end later.
    pub budget_ns: Nanos,
}

impl Repeats {
    pub fn exactly(runs: u32) -> Repeats {
        Repeats { min: runs, max: runs, ..Repeats::default() }
    }

    pub(crate) fn on<M: Machine>(self, machine: &M) -> Repeats {
        if machine.capabilities().noisy { self } else { Repeats::exactly(1) }
    }
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats { min: 3, max: 10, precision: 0.03, budget_ns: Nanos::MAX }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointStatus {
    pub runs: u32,
    /// The point failed or needs no more runs.
    pub closed: bool,
    pub weight: f64,
    pub cost_ns: Nanos,
}

pub trait Repeated {
    fn status(&self, point: usize) -> PointStatus;

    /// As a fraction of the rate; infinite without an interval.
    fn half_width(&self, point: usize) -> f64;

    /// Runs a point again. A failed run closes its point.
    ///
    /// # Errors
    /// An error that ends the whole measurement, such as the user's interrupt.
    fn run(&mut self, point: usize) -> Result<()>;

    fn now(&self) -> Nanos {
        0
    }

    fn order(&mut self, points: &[usize]) -> Vec<usize> {
        points.to_vec()
    }
}

/// In rounds, so drift affects all equally. Fails as [`Repeated::run`].
pub fn repeat(subject: &mut impl Repeated, points: &[usize], repeats: Repeats) -> Result<()> {
    let deadline = subject.now().saturating_add(repeats.budget_ns);
    let in_time = |subject: &_, status: &PointStatus| -> bool {
        Repeated::now(subject).saturating_add(status.cost_ns) <= deadline
    };
    for round in 0..repeats.min {
        for point in subject.order(points) {
            let status = subject.status(point);
            if !status.closed && status.runs <= round && in_time(subject, &status) {
                subject.run(point)?;
            }
        }
    }
    let mut open = points.to_vec();
    let mut last = None;
    loop {
        open.retain(|&point| {
            let status = subject.status(point);
            !status.closed
                && (1..repeats.max).contains(&status.runs)
                && subject.half_width(point) > repeats.precision
                && in_time(subject, &status)
        });
        // Another run helps more the wider the interval, and less the more runs there are and the
        // longer they take: it reduces the variance of a mean by variance / runs^2 (Neyman's
        // allocation, J. Royal Statistical Society 97, 1934).
        let urgency = |&point: &usize| {
            let status = subject.status(point);
            let cost = (status.cost_ns.max(1) as f64).sqrt();
            subject.half_width(point).min(2.0) * status.weight
                / (f64::from(status.runs).sqrt() * cost)
        };
        // Consecutive runs of one point see the same state of the machine and agree for that
        // reason.
        let rested = open.iter().copied().filter(|&point| open.len() == 1 || last != Some(point));
        last = rested.max_by(|a, b| urgency(a).total_cmp(&urgency(b)).then(b.cmp(a)));
        match last {
            Some(point) => subject.run(point)?,
            None => return Ok(()),
        }
    }
}

/// Drops a point for which `run` returns `false`. Fails as `run`.
pub fn rounds(points: usize, rounds: u32, run: impl FnMut(usize) -> Result<bool>) -> Result<()> {
    struct Turns<F> {
        runs: Vec<u32>,
        closed: Vec<bool>,
        run: F,
    }
    impl<F: FnMut(usize) -> Result<bool>> Repeated for Turns<F> {
        fn status(&self, point: usize) -> PointStatus {
            PointStatus {
                runs: self.runs[point],
                closed: self.closed[point],
                weight: 1.0,
                cost_ns: 0,
            }
        }

        fn half_width(&self, _point: usize) -> f64 {
            0.0
        }

        fn run(&mut self, point: usize) -> Result<()> {
            self.runs[point] += 1;
            self.closed[point] = !(self.run)(point)?;
            Ok(())
        }
    }
    let mut turns = Turns { runs: vec![0; points], closed: vec![false; points], run };
    repeat(&mut turns, &(0..points).collect::<Vec<_>>(), Repeats::exactly(rounds))
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Measured {
    pub samples: Vec<Sample>,
    pub failure: Option<String>,
    pub ceiling: Option<Ceiling>,
    /// The statistics may take longer than a run.
    #[serde(skip)]
    half_width: OnceCell<f64>,
}

impl Measured {
    /// Adds a run; one that the user ended early only if it is the first. Fails only on the user's
    /// interrupt.
    pub fn push(&mut self, run: Result<Sample>) -> Result<()> {
        self.half_width = OnceCell::new();
        match run {
            Ok(sample) if sample.usage.interrupted => {
                // Whole runs say more than a part of one.
                if self.samples.is_empty() {
                    self.samples.push(sample);
                }
                return Err(Error::Interrupted);
            }
            Ok(sample) => self.samples.push(sample),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => self.failure = Some(error.to_string()),
        }
        Ok(())
    }

    pub fn begin_again(&mut self) {
        self.samples.clear();
        self.half_width = OnceCell::new();
    }

    pub fn status(&self) -> PointStatus {
        PointStatus {
            runs: self.samples.len() as u32,
            closed: self.failure.is_some(),
            weight: 1.0,
            cost_ns: 0,
        }
    }

    pub fn half_width(&self) -> f64 {
        *self.half_width.get_or_init(|| {
            rate_estimate(&self.samples)
                .map_or(f64::INFINITY, |estimate| estimate.relative_half_width)
        })
    }
}

/// Those without a warm-up if there are two, otherwise all.
pub fn counted(samples: &[Sample]) -> Vec<&Sample> {
    let steady: Vec<&Sample> = samples.iter().filter(|sample| sample.warm_up_ns == 0).collect();
    if steady.len() >= 2 { steady } else { samples.iter().collect() }
}

/// In requests per second, weighted by time. `None` without an interval.
pub fn rate_estimate(samples: &[Sample]) -> Option<Estimate> {
    rate_estimate_beside(samples, None)
}

/// As [`stats::estimate_beside`].
pub fn rate_estimate_beside(samples: &[Sample], common: Option<Spread>) -> Option<Estimate> {
    let counted = counted(samples);
    if !ends_with_flush(&counted) {
        return stats::estimate_beside(&rates_of(&counted), common);
    }
    // With equal requests per run, the mean time of a request is total time over total requests;
    // the mean of the rates is not.
    let times: Vec<[f64; 1]> = counted.iter().map(|sample| [1e9 / sample.iops()]).collect();
    stats::estimate_beside(&times, common).and_then(|time| time.rate_of(1e9))
}

/// Then each run is a single value: slices end before the flush.
pub fn ends_with_flush(samples: &[&Sample]) -> bool {
    !samples.is_empty() && samples.iter().all(|sample| sample.usage.sync_ns.is_some())
}

/// Returns `None` with fewer than two.
pub fn rate_spread(samples: &[Sample]) -> Option<Spread> {
    stats::spread_of_runs(&rates_of(&counted(samples)))
}

/// Slices have equal width, so that each run counts by its time. A run too short for slices is a
/// single rate.
fn rates_of(samples: &[&Sample]) -> Vec<Vec<f64>> {
    let width = samples.iter().map(|sample| sample.slice_ns).max().unwrap_or(0);
    let sliced: Vec<Vec<f64>> = samples.iter().map(|sample| slices_of(sample, width)).collect();
    if !ends_with_flush(samples) && sliced.iter().all(|slices| slices.len() >= stats::MIN_SLICES) {
        return sliced;
    }
    samples.iter().map(|sample| vec![sample.iops()]).collect()
}

/// Scales slices to the run's rate: they end before the run.
fn slices_of(sample: &Sample, width: Nanos) -> Vec<f64> {
    let group = (width / sample.slice_ns.max(1)).max(1) as usize;
    let slices: Vec<f64> = sample
        .slice_rates
        .chunks_exact(group)
        .map(|wide| wide.iter().sum::<f64>() / group as f64)
        .collect();
    let mean = slices.iter().sum::<f64>() / slices.len() as f64;
    let factor = if mean > 0.0 { sample.iops() / mean } else { 1.0 };
    slices.into_iter().map(|rate| rate * factor).collect()
}

struct Workloads<'a, M, S, P> {
    machine: &'a M,
    work: &'a [(&'a Workload, TargetFacts)],
    measured: &'a mut [Measured],
    sample: S,
    on_progress: P,
}

impl<M, S, P> Repeated for Workloads<'_, M, S, P>
where
    M: Machine,
    S: FnMut(usize, Options) -> Result<Sample>,
    P: FnMut(usize, usize),
{
    fn status(&self, point: usize) -> PointStatus {
        let measured = &self.measured[point];
        let status = measured.status();
        // A point without a run reports what ended it.
        let enough = !measured.samples.is_empty() && !may_run(self.machine, self.work[point].0);
        PointStatus { closed: status.closed || enough, ..status }
    }

    fn half_width(&self, point: usize) -> f64 {
        self.measured[point].half_width()
    }

    fn run(&mut self, point: usize) -> Result<()> {
        let ((workload, facts), measured) = (&self.work[point], &mut self.measured[point]);
        let options = next_run(self.machine, facts, workload, &measured.samples);
        measured.push((self.sample)(point, options))?;
        (self.on_progress)(point, measured.samples.len());
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.machine.now()
    }
}

/// On an interrupt `measured` holds the runs before it.
pub(crate) fn repeat_workloads<M: Machine>(
    machine: &M,
    work: &[(&Workload, TargetFacts)],
    repeats: Repeats,
    sample: impl FnMut(usize, Options) -> Result<Sample>,
    on_progress: impl FnMut(usize, usize),
    measured: &mut Vec<Measured>,
) -> Result<()> {
    let repeats = repeats.on(machine);
    measured.resize_with(work.len(), Measured::default);
    let mut subject = Workloads { machine, work, measured, sample, on_progress };
    repeat(&mut subject, &(0..work.len()).collect::<Vec<_>>(), repeats)
}

pub fn may_run<M: Machine>(machine: &M, workload: &Workload) -> bool {
    let least = u64::from(workload.request_bytes) * u64::from(workload.outstanding());
    !workload.writes() || machine.may_write() >= least
}

/// For requests that a throttle admits in bursts: the run starts and ends midway between two
/// bursts, at least `ramp_ns` after the beginning. That excludes the first burst, admitted at once,
/// and the second, which may spread over half a slice.
pub fn of_whole_bursts<M: Machine>(machine: &M, ramp_ns: Nanos, idle_ns: Nanos) -> Options {
    await_throttle(machine, idle_ns);
    let ramp_ns = ramp_ns.max(1).next_multiple_of(THROTTLE_SLICE_NS) + THROTTLE_SLICE_NS / 2;
    Options { ramp_ns, until_deadline: true, ..Options::default() }
}

/// Waits for the end of a throttle's last slice: only the rest of its quota is left, and later
/// bursts would follow its timing. `idle_ns`: the time since the last request of this kind.
pub fn await_throttle<M: Machine>(machine: &M, idle_ns: Nanos) {
    machine.pause(THROTTLE_REST_NS.saturating_sub(idle_ns));
}

/// Returns the [`ramp`], or [`of_whole_bursts`]. Under a throttle without bursts it first awaits
/// the last slice's end.
pub fn next_run<M: Machine>(
    machine: &M,
    facts: &TargetFacts,
    workload: &Workload,
    before: &[Sample],
) -> Options {
    let ramp_ns = ramp(workload, before);
    let in_bursts = workload.rate_iops.is_none() && workload.think_ns == 0;
    let long = matches!(workload.stop, workload::Stop::AfterNs(run) if run >= THROTTLE_SLICE_NS);
    // A simulated throttle has no slices.
    if facts.is_throttled() && workload.buffering.is_direct() && machine.capabilities().noisy {
        if in_bursts && long {
            return of_whole_bursts(machine, ramp_ns, 0);
        }
        await_throttle(machine, 0);
    }
    Options { ramp_ns, cache_bytes: cached_before(before), ..Options::default() }
}

/// The only run if runs repeat exactly.
pub fn first_run<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    workload: &Workload,
) -> Result<Sample> {
    let options = next_run(machine, &machine.target_facts(target), workload, &[]);
    sample(machine, target, workload, options)
}

pub fn cached_before(before: &[Sample]) -> Option<u64> {
    before.iter().map(|sample| sample.bytes_with_ramp).max()
}

pub fn ramp(workload: &Workload, before: &[Sample]) -> u64 {
    let workload::Stop::AfterNs(run) = workload.stop else { return 0 };
    before.iter().map(|sample| sample.warm_up_ns).max().unwrap_or(0).min(run / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Fake {
        runs: Vec<u32>,
        width: Vec<f64>,
        /// The point and the run.
        fails: Option<(usize, u32)>,
        failed: Vec<usize>,
        order: Vec<usize>,
        clock: Nanos,
    }

    impl Fake {
        fn new(width: &[f64]) -> Fake {
            Fake { runs: vec![0; width.len()], width: width.to_vec(), ..Fake::default() }
        }

        fn repeat(&mut self, repeats: Repeats) -> Result<Vec<usize>> {
            let all: Vec<usize> = (0..self.runs.len()).collect();
            repeat(self, &all, repeats).map(|()| std::mem::take(&mut self.order))
        }
    }

    impl Repeated for Fake {
        fn status(&self, point: usize) -> PointStatus {
            PointStatus {
                runs: self.runs[point],
                closed: self.failed.contains(&point),
                weight: 1.0,
                cost_ns: 10,
            }
        }

        fn half_width(&self, point: usize) -> f64 {
            self.width[point] / f64::from(self.runs[point])
        }

        fn run(&mut self, point: usize) -> Result<()> {
            self.order.push(point);
            self.clock += 10;
            self.runs[point] += 1;
            if self.fails == Some((point, self.runs[point])) {
                self.failed.push(point);
            }
            Ok(())
        }

        fn now(&self) -> Nanos {
            self.clock
        }
    }

    const USUAL: Repeats = Repeats { min: 2, max: 5, precision: 0.1, budget_ns: Nanos::MAX };

    #[test]
    fn rounds_first_then_the_widest_interval() {
        let order = Fake::new(&[0.1, 0.5, 0.3]).repeat(USUAL).unwrap();
        // Two rounds; then 0.25 and 0.15 exceed 0.1: the wider first, each until it is precise or
        // has five runs.
        assert_eq!(order[..6], [0, 1, 2, 0, 1, 2]);
        assert_eq!(order[6], 1);
        let runs = |point| order.iter().filter(|one| **one == point).count();
        assert_eq!([runs(0), runs(1), runs(2)], [2, 5, 3]);
    }

    #[test]
    fn runs_stop_at_the_maximum_or_the_precision() {
        let mut fake = Fake::new(&[9.0, 9.0]);
        fake.repeat(USUAL).unwrap();
        assert_eq!(fake.runs, [5, 5]);
        assert!(fake.repeat(USUAL).unwrap().is_empty(), "all have what they may have");
        assert_eq!(Fake::new(&[9.0; 3]).repeat(Repeats::exactly(1)).unwrap(), [0, 1, 2]);
        let none = Fake::new(&[0.0; 2]).repeat(Repeats { min: 0, ..USUAL }).unwrap();
        assert!(none.is_empty(), "what was never run is not tightened");
    }

    #[test]
    fn no_run_exceeds_the_deadline() {
        let mut fake = Fake::new(&[9.0, 9.0]);
        let order = fake.repeat(Repeats { budget_ns: 55, ..USUAL }).unwrap();
        assert_eq!((order.len(), fake.clock), (5, 50));
    }

    #[test]
    fn a_failure_closes_only_its_point() {
        let mut fake = Fake { fails: Some((1, 1)), ..Fake::new(&[0.0, 9.0, 0.0]) };
        assert_eq!(fake.repeat(USUAL).unwrap(), [0, 1, 2, 0, 2]);
    }

    #[test]
    fn rounds_drop_finished_points() {
        let mut order = Vec::new();
        let once = |point| {
            order.push(point);
            Ok(point != 1)
        };
        rounds(3, 3, once).unwrap();
        assert_eq!(order, [0, 1, 2, 0, 2, 0, 2]);
        let error = rounds(2, 3, |_| Err(Error::Interrupted)).unwrap_err();
        assert!(matches!(error, Error::Interrupted));
    }

    #[test]
    fn an_interrupt_is_not_a_workload_failure() {
        let mut measured = Measured::default();
        assert!(matches!(measured.push(Err(Error::Interrupted)), Err(Error::Interrupted)));
        assert!(measured.failure.is_none() && !measured.status().closed);
        measured.push(Err(Error::Unsupported("no".into()))).unwrap();
        assert!(measured.status().closed && measured.half_width() == f64::INFINITY);
    }
}
