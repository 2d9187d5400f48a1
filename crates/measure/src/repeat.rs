//! The one loop that repeats: points in turn, until each is precise enough or the time or the number of runs is used up.

use crate::ceiling::{Ceiling, Ceilings};
use crate::sample::{Options, Sample, sample};
use crate::stats::{self, Estimate, Spread};
use machine::{Error, Machine, Nanos, Result, THROTTLE_REST_NS, THROTTLE_SLICE_NS, TargetFacts};
use std::cell::OnceCell;
use workload::Workload;

/// How often a point is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeats {
    /// At least so many runs, as far as the time allows.
    pub least: u32,
    /// At most so many.
    pub most: u32,
    /// Enough when half the 95 % interval is within this share of the rate.
    pub precision: f64,
    /// No run begins that would end after this point in time on the machine's clock.
    pub until: Nanos,
}

impl Repeats {
    /// So many runs of each point.
    pub fn exactly(runs: u32) -> Repeats {
        Repeats { least: runs, most: runs, ..Repeats::default() }
    }
}

impl Default for Repeats {
    /// From 3 to 10 runs, to within 3 %, however long that takes.
    fn default() -> Repeats {
        Repeats { least: 3, most: 10, precision: 0.03, until: Nanos::MAX }
    }
}

/// What [`repeat`] has to know of a point before it decides about another run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// Runs so far.
    pub runs: u32,
    /// It has failed, or has all the runs that it wants: it is not run again.
    pub closed: bool,
    /// How much its precision matters beside that of the others.
    pub weight: f64,
    /// Time that another run is expected to take.
    pub cost_ns: Nanos,
}

/// Points measured in turn on one machine.
pub trait Repeated {
    /// How far a point is.
    fn standing(&self, point: usize) -> Standing;

    /// Half the 95 % interval of a point's rate as a share of the rate; infinite where there is no interval yet.
    fn half_width(&self, point: usize) -> f64;

    /// Runs a point once more. A run that fails closes its point; the others go on.
    ///
    /// # Errors
    /// What ends the whole measurement, for example the user's interrupt.
    fn run(&mut self, point: usize) -> Result<()>;

    /// Now, on the machine's clock.
    fn now(&self) -> Nanos {
        0
    }

    /// The order of a round.
    fn order(&mut self, points: &[usize]) -> Vec<usize> {
        points.to_vec()
    }
}

/// Measures points in turn. First come rounds: every point once, then every point again, so drift affects all of them equally. When each
/// has its least number of runs, the point that another run helps most is next, until all are precise, or have their greatest number
/// of runs, or the time is up.
///
/// # Errors
/// What [`Repeated::run`] returns.
pub fn repeat(subject: &mut impl Repeated, points: &[usize], repeats: Repeats) -> Result<()> {
    let in_time = |subject: &_, standing: &Standing| -> bool {
        Repeated::now(subject).saturating_add(standing.cost_ns) <= repeats.until
    };
    for round in 0..repeats.least {
        for point in subject.order(points) {
            let standing = subject.standing(point);
            if !standing.closed && standing.runs <= round && in_time(subject, &standing) {
                subject.run(point)?;
            }
        }
    }
    let mut open = points.to_vec();
    let mut last = None;
    loop {
        open.retain(|&point| {
            let standing = subject.standing(point);
            !standing.closed
                && (1..repeats.most).contains(&standing.runs)
                && subject.half_width(point) > repeats.precision
                && in_time(subject, &standing)
        });
        // The wider the interval the more another run helps, and the less the more runs there were and the longer it takes: the variance of a
        // mean falls by variance / runs^2 with another run (Neyman's allocation, J. Royal Statistical Society 97, 1934).
        let urgency = |&point: &usize| {
            let standing = subject.standing(point);
            let cost = (standing.cost_ns.max(1) as f64).sqrt();
            subject.half_width(point).min(2.0) * standing.weight / (f64::from(standing.runs).sqrt() * cost)
        };
        // Two runs one after the other would see the machine at the same time, and agree for that.
        let rested = open.iter().copied().filter(|&point| open.len() == 1 || last != Some(point));
        last = rested.max_by(|a, b| urgency(a).total_cmp(&urgency(b)).then(b.cmp(a)));
        match last {
            Some(point) => subject.run(point)?,
            None => return Ok(()),
        }
    }
}

/// Calls `run` with each of `points` in turn, round after round: `rounds` times each, or until it says `false` of a point.
///
/// # Errors
/// What `run` returns.
pub fn rounds(points: usize, rounds: u32, run: impl FnMut(usize) -> Result<bool>) -> Result<()> {
    struct Turns<F> {
        runs: Vec<u32>,
        closed: Vec<bool>,
        run: F,
    }
    impl<F: FnMut(usize) -> Result<bool>> Repeated for Turns<F> {
        fn standing(&self, point: usize) -> Standing {
            Standing { runs: self.runs[point], closed: self.closed[point], weight: 1.0, cost_ns: 0 }
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

/// What was measured of one workload.
#[derive(Debug, Default)]
pub struct Measured {
    /// Its runs, in the order they were made.
    pub samples: Vec<Sample>,
    /// Why it could not be measured; no run follows.
    pub failure: Option<Error>,
    /// What the driver alone would reach.
    pub ceiling: Option<Ceiling>,
    /// Computed once asked for: the statistics cost more than some runs.
    half_width: OnceCell<f64>,
}

impl Measured {
    /// Adds how a run ended.
    ///
    /// # Errors
    /// The user's interrupt: it is no failure of the workload.
    pub fn push(&mut self, run: Result<Sample>) -> Result<()> {
        self.half_width = OnceCell::new();
        match run {
            Ok(sample) => self.samples.push(sample),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => self.failure = Some(error),
        }
        Ok(())
    }

    /// Leaves its runs out, as if they had not been made.
    pub fn begin_again(&mut self) {
        self.samples.clear();
        self.half_width = OnceCell::new();
    }

    /// How far the workload is.
    pub fn standing(&self) -> Standing {
        Standing { runs: self.samples.len() as u32, closed: self.failure.is_some(), weight: 1.0, cost_ns: 0 }
    }

    /// Half the 95 % interval of the rate as a share of it; infinite where there is no interval yet.
    pub fn half_width(&self) -> f64 {
        *self
            .half_width
            .get_or_init(|| rate_estimate(&self.samples).map_or(f64::INFINITY, |estimate| estimate.relative_half_width))
    }
}

/// The runs that a rate and its latencies are made of. A run that shows a warm-up is followed by runs that leave it out from their
/// start, latencies too ([`ramp`]); once there are two without one, only those count.
pub fn counted(samples: &[Sample]) -> Vec<&Sample> {
    let steady: Vec<&Sample> = samples.iter().filter(|sample| sample.warm_up_ns == 0).collect();
    if steady.len() >= 2 { steady } else { samples.iter().collect() }
}

/// The rate of some runs in requests per second with its interval: the mean of the runs' rates, each for its time. `None` where there
/// is no interval.
pub fn rate_estimate(samples: &[Sample]) -> Option<Estimate> {
    rate_estimate_beside(samples, None)
}

/// The same of a point that is one of many, whose runs have this spread in common ([`stats::estimate_beside`]).
pub fn rate_estimate_beside(samples: &[Sample], common: Option<Spread>) -> Option<Estimate> {
    let counted = counted(samples);
    if !ends_with_flush(&counted) {
        return stats::estimate_beside(&rates_of(&counted), common);
    }
    // The mean time of a request is all time over all requests if runs have as many; the mean of the rates is not.
    let times: Vec<[f64; 1]> = counted.iter().map(|sample| [1e9 / sample.iops()]).collect();
    stats::estimate_beside(&times, common).and_then(|time| time.rate_of(1e9))
}

/// Whether the rate of these runs counts their flush: then a run is one value, for its slices end before it.
pub fn ends_with_flush(samples: &[&Sample]) -> bool {
    !samples.is_empty() && samples.iter().all(|sample| sample.usage.sync_ns.is_some())
}

/// How far the rates of some runs are apart; `None` where there are fewer than two.
pub fn rate_spread(samples: &[Sample]) -> Option<Spread> {
    stats::spread_of_runs(&rates_of(&counted(samples)))
}

/// The rates of runs, slice by slice, in slices of one width: a run counts by its time, and so by the number of its slices. A slow run, which
/// leaves more slices empty and has wider ones for that, would count for half of a fast one otherwise. Slices give an interval only where there are
/// enough, and runs in bytes may be shorter than one: then a run is a single rate.
fn rates_of(samples: &[&Sample]) -> Vec<Vec<f64>> {
    let width = samples.iter().map(|sample| sample.slice_ns).max().unwrap_or(0);
    let sliced: Vec<Vec<f64>> = samples.iter().map(|sample| slices_of(sample, width)).collect();
    if !ends_with_flush(samples) && sliced.iter().all(|slices| slices.len() >= stats::MIN_SLICES) {
        return sliced;
    }
    samples.iter().map(|sample| vec![sample.iops()]).collect()
}

/// The slices of a run, made this wide and scaled to its rate: slices end with the last whole one, and a rate until the deadline before it.
fn slices_of(sample: &Sample, width: Nanos) -> Vec<f64> {
    let group = (width / sample.slice_ns.max(1)).max(1) as usize;
    let slices: Vec<f64> =
        sample.slice_rates.chunks_exact(group).map(|wide| wide.iter().sum::<f64>() / group as f64).collect();
    let mean = slices.iter().sum::<f64>() / slices.len() as f64;
    let factor = if mean > 0.0 { sample.iops() / mean } else { 1.0 };
    slices.into_iter().map(|rate| rate * factor).collect()
}

/// Workloads measured in turn on one target.
struct Workloads<'a, M: Machine, S, P> {
    machine: &'a M,
    target: &'a mut M::Target,
    facts: &'a TargetFacts,
    workloads: &'a [Workload],
    measured: Vec<Measured>,
    sample: S,
    on_progress: P,
}

impl<M, S, P> Repeated for Workloads<'_, M, S, P>
where
    M: Machine,
    S: FnMut(&mut M::Target, &Workload, Options) -> Result<Sample>,
    P: FnMut(usize, usize),
{
    fn standing(&self, point: usize) -> Standing {
        self.measured[point].standing()
    }

    fn half_width(&self, point: usize) -> f64 {
        self.measured[point].half_width()
    }

    fn run(&mut self, point: usize) -> Result<()> {
        let (workload, measured) = (&self.workloads[point], &mut self.measured[point]);
        let options = next_run(self.machine, self.facts, workload, &measured.samples);
        measured.push((self.sample)(self.target, workload, options))?;
        (self.on_progress)(point, measured.samples.len());
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.machine.now()
    }
}

/// Measures workloads in turn, each run made by `sample`. Where runs do not differ there is one of each.
///
/// # Errors
/// The user's interrupt.
pub(crate) fn repeat_workloads<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    workloads: &[Workload],
    repeats: Repeats,
    sample: impl FnMut(&mut M::Target, &Workload, Options) -> Result<Sample>,
    on_progress: impl FnMut(usize, usize),
) -> Result<Vec<Measured>> {
    let repeats = if machine.capabilities().noisy { repeats } else { Repeats::exactly(1) };
    let facts = &machine.target_facts(target);
    let measured = workloads.iter().map(|_| Measured::default()).collect();
    let mut subject = Workloads { machine, target, facts, workloads, measured, sample, on_progress };
    repeat(&mut subject, &(0..workloads.len()).collect::<Vec<_>>(), repeats)?;
    Ok(subject.measured)
}

/// Measures several workloads on one target in turn ([`repeat`]); `on_progress` gets each run as it ends (workload, its runs so far).
///
/// # Errors
/// The user's interrupt. What else goes wrong with a workload is its own failure.
pub fn measure<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    workloads: &[Workload],
    repeats: Repeats,
    on_progress: impl FnMut(usize, usize),
) -> Result<Vec<Measured>> {
    let once = |target: &mut M::Target, workload: &Workload, options| sample(machine, target, workload, options);
    let mut all = repeat_workloads(machine, target, workloads, repeats, once, on_progress)?;
    let mut ceilings = Ceilings::default();
    for (workload, measured) in workloads.iter().zip(&mut all).filter(|(_, measured)| measured.failure.is_none()) {
        measured.ceiling = ceilings.of(machine, target, workload);
    }
    Ok(all)
}

/// How a run is made where a throttle admits requests in bursts: from the middle between two of them, at least `ramp_ns` after the start, to the
/// middle between two others. The first burst, which the throttle lets through without having waited for it, lies before, and so does the second:
/// a first burst that takes more than half a slice, as one on a busy computer does, would count as one too many.
///
/// `idle_ns` is how long the target has had no request of this kind. The throttle's last slice is over when this returns: only then do bursts count
/// from a run's first request. In an old slice they come at its times, which may be the ends of the window, and one too many counts.
pub fn of_whole_bursts<M: Machine>(machine: &M, ramp_ns: Nanos, idle_ns: Nanos) -> Options {
    await_throttle(machine, idle_ns);
    let ramp_ns = ramp_ns.max(1).next_multiple_of(THROTTLE_SLICE_NS) + THROTTLE_SLICE_NS / 2;
    Options { ramp_ns, until_deadline: true, ..Options::default() }
}

/// Waits until the throttle's last slice is over; `idle_ns` is how long the target has had no request of the kind that follows. In an old slice
/// the first requests get what is left of it: more, or less, than the limit.
pub fn await_throttle<M: Machine>(machine: &M, idle_ns: Nanos) {
    machine.pause(THROTTLE_REST_NS.saturating_sub(idle_ns));
}

/// How the next run on this target is made: after the [`ramp`], and where there is a throttle after its last slice, [`of_whole_bursts`] where the
/// run is made of those.
pub fn next_run<M: Machine>(machine: &M, facts: &TargetFacts, workload: &Workload, before: &[Sample]) -> Options {
    let ramp_ns = ramp(workload, before);
    let in_bursts = workload.rate_iops.is_none() && workload.think_ns == 0;
    let long = matches!(workload.stop, workload::Stop::AfterNs(run) if run >= THROTTLE_SLICE_NS);
    // A simulated throttle has no such slices.
    if facts.is_throttled() && workload.buffering.is_direct() && machine.capabilities().noisy {
        if in_bursts && long {
            return of_whole_bursts(machine, ramp_ns, 0);
        }
        await_throttle(machine, 0);
    }
    Options { ramp_ns, cache_bytes: cached_before(before), ..Options::default() }
}

/// The most bytes that runs before moved.
pub fn cached_before(before: &[Sample]) -> Option<u64> {
    before.iter().map(|sample| sample.bytes_with_ramp).max()
}

/// The ramp of the next run: what the runs before showed to be warm-up, so that latencies leave it out too.
pub fn ramp(workload: &Workload, before: &[Sample]) -> u64 {
    let workload::Stop::AfterNs(run) = workload.stop else { return 0 };
    before.iter().map(|sample| sample.warm_up_ns).max().unwrap_or(0).min(run / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points whose intervals narrow with every run, on a clock that a run moves by its cost.
    #[derive(Default)]
    struct Fake {
        runs: Vec<u32>,
        /// Half width after one run.
        width: Vec<f64>,
        /// Fails in this run of this point.
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
        fn standing(&self, point: usize) -> Standing {
            Standing { runs: self.runs[point], closed: self.failed.contains(&point), weight: 1.0, cost_ns: 10 }
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

    const USUAL: Repeats = Repeats { least: 2, most: 5, precision: 0.1, until: Nanos::MAX };

    #[test]
    fn rounds_come_first_then_the_least_certain_until_all_are_precise() {
        let order = Fake::new(&[0.1, 0.5, 0.3]).repeat(USUAL).unwrap();
        // Two rounds; then 0.25 and 0.15 are wider than 0.1: the wider first, each until it is precise or has five runs.
        assert_eq!(order[..6], [0, 1, 2, 0, 1, 2]);
        assert_eq!(order[6], 1);
        let runs = |point| order.iter().filter(|one| **one == point).count();
        assert_eq!([runs(0), runs(1), runs(2)], [2, 5, 3]);
    }

    #[test]
    fn nothing_runs_more_often_than_it_may_or_than_it_needs() {
        let mut fake = Fake::new(&[9.0, 9.0]);
        fake.repeat(USUAL).unwrap();
        assert_eq!(fake.runs, [5, 5]);
        assert!(fake.repeat(USUAL).unwrap().is_empty(), "all have what they may have");
        assert_eq!(Fake::new(&[9.0; 3]).repeat(Repeats::exactly(1)).unwrap(), [0, 1, 2]);
        let none = Fake::new(&[0.0; 2]).repeat(Repeats { least: 0, ..USUAL }).unwrap();
        assert!(none.is_empty(), "what was never run is not tightened");
    }

    #[test]
    fn no_run_begins_that_would_end_too_late() {
        let mut fake = Fake::new(&[9.0, 9.0]);
        let order = fake.repeat(Repeats { until: 55, ..USUAL }).unwrap();
        assert_eq!((order.len(), fake.clock), (5, 50));
    }

    #[test]
    fn a_failure_ends_its_own_point_alone() {
        let mut fake = Fake { fails: Some((1, 1)), ..Fake::new(&[0.0, 9.0, 0.0]) };
        assert_eq!(fake.repeat(USUAL).unwrap(), [0, 1, 2, 0, 2]);
    }

    #[test]
    fn closures_take_turns_until_they_have_enough() {
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
    fn an_interrupt_is_no_failure_of_a_workload() {
        let mut measured = Measured::default();
        assert!(matches!(measured.push(Err(Error::Interrupted)), Err(Error::Interrupted)));
        assert!(measured.failure.is_none() && !measured.standing().closed);
        measured.push(Err(Error::Unsupported("no".into()))).unwrap();
        assert!(measured.standing().closed && measured.half_width() == f64::INFINITY);
    }
}
