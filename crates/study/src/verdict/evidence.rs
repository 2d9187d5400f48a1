//! A case, its points and its target.

use crate::case::{Case, GAIN, Variant};
use crate::sampler::Entry;
use machine::{MachineFacts, TargetFacts};
use measure::stats::Ratio;
use results::{Bottleneck, Cause, DEEPER_GAIN, Numbers, Point};
use workload::Workload;

pub(super) const BUSY_PERCENT: f64 = 90.0;

pub(super) struct Evidence<'a> {
    pub(super) case: &'a Case,
    pub(super) entries: &'a [Entry],
    pub(super) points: &'a [Point],
    pub(super) workload: &'a Workload,
    pub(super) numbers: &'a Numbers,
    pub(super) facts: &'a TargetFacts,
    pub(super) machine: &'a MachineFacts,
    /// In bytes per second; for a plain write, to stable storage.
    pub(super) rate: f64,
    pub(super) peak: Option<f64>,
    pub(super) copy: Option<f64>,
}

pub(super) type Named = (Bottleneck, Cause);

pub(super) type Ask<'b> = for<'a> fn(&'a Evidence<'b>) -> Option<Named>;

pub(super) fn gains(ratio: &Ratio) -> bool {
    ratio.mean >= GAIN && ratio.low > 1.0
}

pub(super) fn is_flat(ratio: &Ratio) -> bool {
    !gains(ratio) && ratio.high <= GAIN
}

impl Evidence<'_> {
    pub(super) fn ratio(&self, variant: Variant) -> Option<Ratio> {
        self.case.ratio(variant, self.entries)
    }

    pub(super) fn gains(&self, variant: Variant) -> Option<bool> {
        self.ratio(variant).as_ref().map(gains)
    }

    /// More depth gains nothing: if doubling the depth to here did not, the next doubling will not.
    pub(super) fn flat(&self) -> Option<bool> {
        let trial = self.ratio(Variant::Deeper);
        let by_trial = trial.as_ref().and_then(|ratio| match gains(ratio) {
            true => Some(false),
            false => is_flat(ratio).then_some(true),
        });
        // A trial that allows the gain of requests that only wait leaves it open, whatever other
        // points suggest.
        if by_trial.is_none() && trial.is_some_and(|ratio| ratio.high >= DEEPER_GAIN) {
            return None;
        }
        let by_more = || Some(self.more_elsewhere()? < self.rate * GAIN);
        by_trial
            .or_else(by_more)
            .or_else(|| (self.half_as_many()? * GAIN >= self.rate).then_some(true))
    }

    pub(super) fn more_elsewhere(&self) -> Option<f64> {
        let outstanding =
            |one: &Workload| u64::from(one.outstanding()) * u64::from(one.request_bytes);
        let own = outstanding(self.workload);
        let alike = self.points.iter().filter(|point| {
            point.workload.read_percent == self.workload.read_percent
                && point.workload.pattern == self.workload.pattern
                && point.workload.buffering == self.workload.buffering
                && outstanding(&point.workload) >= 2 * own
        });
        alike.filter_map(Point::rate).max_by(f64::total_cmp)
    }

    /// Excludes the final flush, in which the kernel's write-back is charged to the process.
    pub(super) fn thread_percent(&self) -> f64 {
        let whole = || self.busy_processors() * 100.0;
        self.numbers.achieved.process_busy_percent.unwrap_or_else(whole) / f64::from(self.threads())
    }

    /// Includes the final flush of a plain write.
    pub(super) fn busy_processors(&self) -> f64 {
        self.numbers.cpu_ns_per_request.process() * self.numbers.iops / 1e9
    }

    pub(super) fn unserved_percent(&self) -> Option<f64> {
        self.numbers.achieved.unserved_percent.map(|percent| percent / f64::from(self.threads()))
    }

    /// Of the time to stable storage; 1 without a flush.
    pub(super) fn share_until_return(&self) -> f64 {
        let writing =
            self.numbers.achieved.measured_ns as f64 / f64::from(self.numbers.repeats.max(1));
        let flush = self.numbers.achieved.sync_ns.unwrap_or(0.0);
        if writing > 0.0 { writing / (writing + flush) } else { 1.0 }
    }

    pub(super) fn threads(&self) -> u32 {
        (self.workload.threads * self.workload.engine.workers(self.workload.depth)).max(1)
    }

    pub(super) fn processors_percent(&self) -> f64 {
        self.numbers.achieved.busy_processors / f64::from(self.machine.processors.max(1)) * 100.0
    }
}
