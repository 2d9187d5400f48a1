//! Repeats until the interval is tight.

use crate::ceiling::Ceilings;
use crate::point::{Point, rate_estimate};
use crate::sample::{Options, Sample, sample};
use machine::{Error, LayerKind, Machine, Nanos, Result, TargetFacts};
use workload::Workload;

/// When enough repeats were made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeats {
    /// At least so many.
    pub least: u32,
    /// At most so many.
    pub most: u32,
    /// Enough when half the 95 % interval is within this share of the rate.
    pub tight: f64,
}

impl Repeats {
    /// Whether these samples are enough.
    pub fn enough(&self, samples: &[Sample]) -> bool {
        let made = samples.len() as u32;
        made >= self.most || (made >= self.least && half_width(samples) <= self.tight)
    }
}

/// Half the 95 % interval of the rate as a share of it; infinite where there is no interval yet.
pub fn half_width(samples: &[Sample]) -> f64 {
    rate_estimate(samples).map_or(f64::INFINITY, |estimate| estimate.relative_half_width)
}

/// Measures several workloads on one target, a round of all after a round of all, so that drift hits each alike, until each is
/// tight; `told` hears of every sample made (workload, samples so far).
///
/// # Errors
/// The user's interrupt. What else goes wrong with a workload is its point's failure and nobody else's.
pub fn measure<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    workloads: &[Workload],
    repeats: Repeats,
    mut told: impl FnMut(usize, usize),
) -> Result<Vec<Point>> {
    let repeats = if machine.capabilities().noisy { repeats } else { Repeats { least: 1, most: 1, ..repeats } };
    let facts = machine.target_facts(target);
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); workloads.len()];
    let mut failures: Vec<Option<Error>> = workloads.iter().map(|_| None).collect();
    loop {
        let mut open = false;
        for (index, workload) in workloads.iter().enumerate() {
            if failures[index].is_some() || repeats.enough(&samples[index]) {
                continue;
            }
            open = true;
            let options = next_run(machine, &facts, workload, &samples[index]);
            match sample(machine, target, workload, options) {
                Ok(one) => samples[index].push(one),
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => failures[index] = Some(error),
            }
            told(index, samples[index].len());
        }
        if !open {
            break;
        }
    }
    let mut ceilings = Ceilings::default();
    let points = workloads.iter().zip(&samples).zip(failures);
    Ok(points
        .map(|((workload, samples), failure)| match failure {
            Some(error) => Point::failed(workload.clone(), error),
            None => Point::from_samples(workload, &facts, samples).beside(ceilings.of(machine, target, workload)),
        })
        .collect())
}

/// Linux admits throttled requests in bursts this far apart; a run of whole ones holds as many as it should.
pub const THROTTLE_SLICE_NS: Nanos = 100_000_000;

/// How a run is made where a throttle admits requests in bursts: from the middle between two of them, at least `ramp_ns` after the start, to the
/// middle between two others. The first burst, which the throttle lets through without having waited for it, lies before, and the throttle's
/// last slice is over when this returns: bursts count from a run's first request only then.
pub fn of_whole_bursts<M: Machine>(machine: &M, ramp_ns: Nanos) -> Options {
    machine.pause(THROTTLE_SLICE_NS);
    let ramp_ns = ramp_ns.next_multiple_of(THROTTLE_SLICE_NS) + THROTTLE_SLICE_NS / 2;
    Options { ramp_ns, until_deadline: true, ..Options::default() }
}

/// How the next run on this target is made: after the [`ramp`], and where there is a throttle [`of_whole_bursts`].
pub(crate) fn next_run<M: Machine>(machine: &M, facts: &TargetFacts, workload: &Workload, before: &[Sample]) -> Options {
    let ramp_ns = ramp(workload, before);
    let throttled = facts.layers.iter().any(|layer| layer.kind == LayerKind::Throttle);
    let at_device = workload.buffering.is_direct() && workload.rate_iops.is_none() && workload.think_ns == 0;
    let long = matches!(workload.stop, workload::Stop::AfterNs(run) if run >= THROTTLE_SLICE_NS);
    // A simulated throttle has no such slices.
    if throttled && at_device && long && machine.capabilities().noisy {
        return of_whole_bursts(machine, ramp_ns);
    }
    Options { ramp_ns, ..Options::default() }
}

/// The ramp of the next run: what the runs before showed to be warm-up, so that latencies leave it out too.
pub fn ramp(workload: &Workload, before: &[Sample]) -> u64 {
    let workload::Stop::AfterNs(run) = workload.stop else { return 0 };
    before.iter().map(|sample| sample.warm_up_ns).max().unwrap_or(0).min(run / 2)
}
