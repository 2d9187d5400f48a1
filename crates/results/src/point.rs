mod latency;
mod numbers;

pub use latency::LatencySummary;
pub use numbers::{Numbers, RunNumbers};

use crate::checks;
use machine::units::MIB;
use machine::{Allocation, CacheState, Machine, TargetFacts, TargetKind, Warning};
use measure::{Ceiling, Measured, Repeats, RunSamples, Runner, Sample, Verification};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::{OpKind, Workload};

const SETTLED_RUNS: u32 = 3;

/// One workload with its figures, or the reason for its failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// The workload as requested.
    pub workload: WorkloadRecord,
    /// Figures of the workload; absent if the point failed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Numbers>,
    /// Why the point failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Result of the verification of data, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// The stripe, if it was changed for this point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe: Option<StripeRecord>,
    /// Each run starts and ends between two bursts of a throttle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole_bursts: bool,
}

/// The members that served a point, and their chunk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct StripeRecord {
    pub members: Vec<u32>,
    pub chunk_bytes: u64,
}

/// A workload with its operation by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadRecord {
    pub op: OpKind,
    #[serde(flatten)]
    pub workload: Workload,
}

impl From<Workload> for WorkloadRecord {
    fn from(workload: Workload) -> Self {
        WorkloadRecord { op: workload.op(), workload }
    }
}

impl Point {
    /// The rate is the target's: not a cache's, a part's, or that of a short run whose requests a
    /// throttle admitted in advance. Such rates of an operation have one peak.
    pub fn measures_target(&self, facts: &TargetFacts) -> bool {
        let workload = &self.workload;
        let whole =
            self.stripe.as_ref().is_none_or(|one| one.members.len() as u32 == facts.members)
                && workload.allocation == Allocation::Written
                && workload.engine.does_io()
                && workload.think_ns == 0
                && workload.rate_iops.is_none()
                && workload.load.is_empty();
        if facts.in_memory || !whole {
            return whole && !workload.sync_at_end;
        }
        let of_bursts =
            !facts.is_throttled() || facts.kind == TargetKind::Simulated || self.whole_bursts;
        workload.region_bytes.is_none() && of_bursts && self.reaches_device()
    }

    /// The device serves requests, or has the data at the end.
    pub fn reaches_device(&self) -> bool {
        let workload = &self.workload;
        let cached = self.numbers.as_ref().and_then(|numbers| numbers.achieved.cached_read_percent);
        workload.buffering.is_direct()
            || match workload.op {
                OpKind::Read => {
                    workload.cache == CacheState::Cold
                        && cached.is_none_or(|percent| percent <= checks::CACHED_PERCENT)
                }
                _ => workload.sync_at_end || workload.buffering.is_dsync(),
            }
    }

    /// One run suffices if runs repeat exactly.
    pub fn is_settled(&self, facts: &TargetFacts) -> bool {
        let enough = if facts.kind == TargetKind::Simulated { 1 } else { SETTLED_RUNS };
        self.numbers.as_ref().is_some_and(|numbers| numbers.repeats >= enough)
    }

    pub fn cpu_ns_per_mib(&self) -> Option<f64> {
        let per_request = self.numbers.as_ref()?.cpu_ns_per_request.process();
        Some(per_request * MIB as f64 / f64::from(self.workload.request_bytes))
    }
}

impl std::ops::Deref for WorkloadRecord {
    type Target = Workload;

    fn deref(&self) -> &Workload {
        &self.workload
    }
}

impl Point {
    pub fn failed(workload: Workload, error: impl ToString) -> Point {
        Point {
            workload: workload.into(),
            numbers: None,
            error: Some(error.to_string()),
            verification: None,
            stripe: None,
            whole_bursts: false,
        }
    }

    pub fn of(workload: &Workload, facts: &TargetFacts, measured: &Measured) -> Point {
        match &measured.failure {
            Some(error) => Point::failed(workload.clone(), error),
            None => {
                Point::from_samples(workload, facts, &measured.samples).beside(measured.ceiling)
            }
        }
    }

    #[must_use]
    pub fn verified(mut self, found: Verification) -> Point {
        if let Some(numbers) = &mut self.numbers {
            numbers.warn(checks::little_judged(&found));
        }
        Point { verification: Some(found), ..self }
    }

    /// Without runs, the point is failed.
    pub fn from_samples(workload: &Workload, facts: &TargetFacts, samples: &[Sample]) -> Point {
        if samples.is_empty() {
            return Point::failed(workload.clone(), "it was not run");
        }
        Point {
            workload: workload.clone().into(),
            numbers: Some(Numbers::from_samples(workload, facts, samples)),
            error: None,
            verification: None,
            stripe: None,
            whole_bursts: false,
        }
    }

    /// Warns if the rate came close to the driver's ceiling.
    pub fn beside(mut self, ceiling: Option<Ceiling>) -> Point {
        if let (Some(numbers), Some(ceiling)) = (&mut self.numbers, ceiling) {
            let percent = numbers.iops / ceiling.lowest_iops() * 100.0;
            numbers.achieved.driver_ceiling_iops = Some(ceiling.generator_iops);
            numbers.achieved.no_op_ceiling_iops = ceiling.no_op_iops;
            numbers.achieved.of_ceiling_percent = Some(percent);
            numbers.warn(checks::near_ceiling(&self.workload, percent, ceiling.lowest_iops()));
        }
        self
    }

    /// Finds where requests' time goes, from trace points if available.
    ///
    /// # Errors
    /// Only the user's interrupt.
    pub fn trace<M: Machine>(
        &mut self,
        machine: &M,
        target: &mut M::Target,
        workload: &Workload,
    ) -> machine::Result<()> {
        let Some(numbers) = &mut self.numbers else { return Ok(()) };
        let times = measure::traced_times(machine, target, workload, numbers.iops)?;
        if let Some(times) = times {
            numbers.achieved.set_request_times(times);
        }
        Ok(())
    }

    /// `read`, `write` or `mix 70 %`.
    pub fn operation(&self) -> String {
        match self.workload.op {
            OpKind::Mix => format!("mix {} %", self.workload.read_percent),
            op => op.name().into(),
        }
    }

    /// Cache and durability settings in a word or two.
    pub fn mode(&self) -> String {
        let workload = &self.workload;
        let mut text = workload.buffering.name().replace('_', " ");
        if workload.cache != CacheState::AsIs {
            text = format!("{text} {}", workload.cache.name());
        }
        if workload.writes() && workload.allocation != Allocation::Written {
            text = format!("{text} {}", workload.allocation.name());
        }
        text
    }

    /// When buffered writes' counted time ends; `None` for other workloads.
    pub fn written_until(&self) -> Option<&'static str> {
        let numbers = self.numbers.as_ref()?;
        let workload = &self.workload;
        let returns_early =
            workload.writes() && !workload.buffering.is_direct() && !workload.buffering.is_dsync();
        match numbers.achieved.returned_bytes_per_s {
            Some(_) if workload.writes() => Some("until stable storage"),
            None if returns_early => Some("until the last write returned"),
            _ => None,
        }
    }

    pub fn rate(&self) -> Option<f64> {
        self.numbers.as_ref().map(|numbers| numbers.throughput_bytes_per_s)
    }
}

/// Merges warnings that differ only in figures, with the number of points.
pub fn folded_warnings<'a>(points: impl Iterator<Item = &'a Point>) -> Vec<String> {
    let numbers = points.filter_map(|point| point.numbers.as_ref());
    let all: Vec<Warning> = numbers.flat_map(Numbers::doubts).collect();
    let shown = |(warning, count): &(Warning, usize)| match count {
        1 => warning.to_string(),
        count => format!("{warning} (at {count} points)"),
    };
    Warning::merged(&all).iter().map(shown).collect()
}

/// All on one target.
pub fn points_of(workloads: &[Workload], samples: &RunSamples) -> Vec<Point> {
    let facts = &samples.facts[0];
    workloads
        .iter()
        .zip(&samples.parts)
        .map(|(workload, measured)| Point::of(workload, facts, measured))
        .collect()
}

/// Measures workloads in turn on one target; failures, except the user's interrupt, become the
/// point's error.
pub fn measure_points<M: Machine>(
    runner: &mut Runner<'_, M>,
    workloads: &[Workload],
    repeats: Repeats,
    on_run: impl FnMut(usize, usize),
) -> machine::Result<Vec<Point>> {
    Ok(points_of(workloads, &runner.in_turn(workloads, repeats, on_run)?))
}

#[cfg(test)]
mod tests;
