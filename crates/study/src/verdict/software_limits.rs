//! Limits above the device, by stage timings and queue counters.

use super::evidence::{BUSY_PERCENT, Evidence, Named};
use crate::case::GAIN;
use crate::other_target::{OtherTarget, OtherTargetTrial};
use machine::{Layer, LayerKind, Stage, TargetKind, TimesSource};
use results::{Bottleneck, Cause, LimitOf, PlainWrite, Point, WriteBackWait};
use workload::{OpKind, Workload};

/// Requests wait in a stage that takes this much of their time.
const WAIT_PERCENT: f64 = 50.0;

/// Mean depth per device of single requests, with room for foreign ones.
const ONE: f64 = 1.3;

/// Requests in the program per one at the device, if they are held back on the way.
const HELD: f64 = 4.0;

/// The percentage of the kernel's limit around which dirty pages oscillate.
const DIRTY_PERCENT: f64 = 95.0;

/// Extra bytes at the device per byte written, with data journaling.
const JOURNAL_SHARE: f64 = 0.5;

/// Half of the requests suffice if they reach this share of the rate.
const FLAT_SHARE: f64 = 0.75;

/// Nothing is saturated if twice the requests give this many times the rate.
const STEEP: f64 = 1.6;

/// Mean depth over the length of a full queue.
const FULL: std::ops::RangeInclusive<f64> = 0.75..=1.1;

/// The page cache absorbs a write that returns this many times as fast as it reaches stable
/// storage.
const SHORT: f64 = 1.5;

struct PlainWriteWaits {
    wait: WriteBackWait,
    /// Of the total time, flush included.
    flush_percent: f64,
}

impl PlainWriteWaits {
    fn held(&self) -> bool {
        self.wait.dirty_percent >= DIRTY_PERCENT && self.flush_percent < WAIT_PERCENT
    }
}

impl Evidence<'_> {
    fn stage_percent(&self, stage: Stage) -> Option<f64> {
        let times = self.numbers.achieved.request_times.as_ref()?;
        let traced = times.source == TimesSource::TracePoints;
        times.stages.iter().find(|one| traced && one.stage == stage).map(|one| one.percent)
    }

    fn file_system(&self) -> Option<&Layer> {
        let file = !matches!(self.facts.kind, TargetKind::Device | TargetKind::Simulated);
        self.facts.layers.iter().find(|layer| layer.kind == LayerKind::FileSystem).filter(|_| file)
    }

    pub(super) fn journal(&self) -> Option<Named> {
        let layer = self.file_system().filter(|_| self.case.op == OpKind::Write)?;
        let journals = layer.facts.file_system.as_ref()?.journals_data;
        let more = self
            .numbers
            .achieved
            .device_bytes_foreign_share
            .filter(|&share| journals && share >= JOURNAL_SHARE)?;
        let cause =
            Cause::DataJournal { layer: layer.name.clone(), device_bytes_per_byte: 1.0 + more };
        Some((Bottleneck::FileSystem, cause))
    }

    pub(super) fn synchronous(&self) -> Option<Named> {
        let layer = self.file_system().filter(|_| self.case.op == OpKind::Write)?;
        let saturated =
            self.numbers.achieved.device_busy_percent.is_some_and(|busy| busy >= BUSY_PERCENT)
                && self.workload.outstanding() > 1;
        if !layer.facts.file_system.as_ref()?.synchronous
            || self.thread_percent() >= WAIT_PERCENT
            || saturated
        {
            return None;
        }
        Some((Bottleneck::Flush, Cause::SyncMount { layer: layer.name.clone() }))
    }

    pub(super) fn file_system_by_trial(&self) -> Option<Named> {
        let OtherTargetTrial { other, ratio } = self.case.other_target.as_ref()?;
        let layer = self.file_system().filter(|_| ratio.mean >= GAIN && ratio.low > 1.0)?;
        let (layer, ratio) = (layer.name.clone(), ratio.mean);
        let cause = match other {
            OtherTarget::Device(device) => {
                Cause::FasterBelow { layer, device: device.clone(), ratio }
            }
            OtherTarget::TwoFiles => Cause::FasterOnTwoFiles { layer, ratio },
        };
        Some((Bottleneck::FileSystem, cause))
    }

    pub(super) fn held_above(&self) -> Option<Named> {
        let achieved = &self.numbers.achieved;
        if self.thread_percent() >= WAIT_PERCENT || self.processors_percent() >= BUSY_PERCENT {
            return None;
        }
        let submit = self.stage_percent(Stage::Submit).filter(|&percent| percent >= WAIT_PERCENT);
        let members = f64::from(self.facts.members.max(1));
        let few = achieved.device_mean_depth.filter(|&at_device| {
            let whole = achieved.device_request_bytes.is_some_and(|bytes| bytes > 0.0);
            whole
                && at_device <= ONE * members
                && f64::from(self.workload.outstanding()) >= HELD * members
        });
        // Little's law: requests that are not at the device wait above it. A busy device that
        // serves one at a time looks the same, hence the second condition.
        let idle = achieved.device_busy_percent.is_some_and(|busy| busy < BUSY_PERCENT);
        if submit.is_none() && (few.is_none() || !idle) {
            return None;
        }
        let named = |what, layer: Option<&Layer>| {
            let layer = layer.map(|layer| layer.name.clone());
            let outstanding = self.workload.outstanding();
            (
                what,
                Cause::HeldAbove {
                    layer,
                    submit_percent: submit,
                    outstanding,
                    device_mean_depth: few,
                },
            )
        };
        if let Some(throttle) =
            self.facts.layers.iter().find(|layer| layer.kind == LayerKind::Throttle)
        {
            return Some(named(Bottleneck::Throttle, Some(throttle)));
        }
        if let Some(layer) = self.file_system() {
            return Some(named(Bottleneck::FileSystem, Some(layer)));
        }
        submit.map(|_| named(Bottleneck::Throttle, None))
    }

    pub(super) fn full_queue(&self) -> Option<Named> {
        let held = |layer: &Layer| layer.facts.queue_limit;
        let queue =
            self.facts.layers.iter().filter(|layer| layer.kind != LayerKind::Loop).find_map(held);
        let queue =
            queue.or_else(|| self.facts.layers.iter().find_map(held)).filter(|&queue| queue > 0)?;
        let (outstanding, device_mean_depth) =
            (self.workload.outstanding(), self.numbers.achieved.device_mean_depth?);
        let full = FULL.contains(&(device_mean_depth / f64::from(queue)));
        if !full || outstanding <= queue || self.facts.members > 1 || self.less_sufficed(queue)? {
            return None;
        }
        Some((
            Bottleneck::Throttle,
            Cause::FullQueue { nr_requests: queue, device_mean_depth, outstanding },
        ))
    }

    fn less_sufficed(&self, outstanding: u32) -> Option<bool> {
        let best = self.best_of(|one| one.outstanding() <= outstanding / 2)?;
        Some(best >= self.rate * FLAT_SHARE)
    }

    pub(super) fn half_as_many(&self) -> Option<f64> {
        let own = self.workload.outstanding();
        self.best_of(|one| one.outstanding() < own && one.outstanding() * 2 >= own)
    }

    fn best_of(&self, test: impl Fn(&Workload) -> bool) -> Option<f64> {
        let own = self.workload;
        let alike = self.points.iter().filter(|point| {
            let one = &point.workload;
            one.read_percent == own.read_percent
                && one.pattern == own.pattern
                && one.buffering == own.buffering
                && one.request_bytes == own.request_bytes
                && one.allocation == own.allocation
                && one.region_bytes == own.region_bytes
                && one.reap == own.reap
                && test(one)
        });
        alike.filter_map(Point::rate).max_by(f64::total_cmp)
    }

    pub(super) fn by_stage(&self) -> Option<Named> {
        let waits = |stage| self.stage_percent(stage).filter(|&percent| percent >= WAIT_PERCENT);
        if let Some(percent) = waits(Stage::Queue) {
            return Some((self.saturated(), Cause::InQueue { percent }));
        }
        if let Some(percent) = waits(Stage::Completion) {
            let busy = self.thread_percent() >= WAIT_PERCENT;
            let what = if busy { Bottleneck::Thread } else { Bottleneck::Processor };
            return Some((what, Cause::AfterDevice { percent }));
        }
        let half = self.half_as_many().filter(|&half| half * STEEP <= self.rate)?;
        Some((Bottleneck::Latency, Cause::HalfAsMany { percent: half / self.rate * 100.0 }))
    }

    pub(super) fn served(&self) -> Option<Named> {
        let what = self.saturated();
        let served = matches!(what, Bottleneck::Network | Bottleneck::FileSystem)
            && self.facts.devices.is_empty();
        let (threads_busy_percent, processors_busy_percent) =
            (self.thread_percent(), self.processors_percent());
        let idle = threads_busy_percent < WAIT_PERCENT && processors_busy_percent < BUSY_PERCENT;
        (served && idle)
            .then_some((what, Cause::Served { threads_busy_percent, processors_busy_percent }))
    }

    /// At the kernel's limit the writer continues at the speed of write-back.
    pub(super) fn dirty_pages(&self) -> Option<Named> {
        let waits = self.plain_write_waits()?;
        if !waits.held() || waits.wait.idle_percent < WAIT_PERCENT {
            return None;
        }
        let throttle = self.facts.layers.iter().find(|layer| layer.kind == LayerKind::Throttle);
        let what = if throttle.is_some() { Bottleneck::Throttle } else { self.saturated() };
        let throttle = throttle.map(|layer| layer.name.clone());
        Some((what, Cause::DirtyPages { throttle, wait: waits.wait }))
    }

    pub(super) fn plain_write(&self, cause: &Cause) -> Option<PlainWrite> {
        let waits = self.plain_write_waits()?;
        let wait = waits.wait;
        if wait.dirty_percent >= DIRTY_PERCENT {
            let said = matches!(cause, Cause::DirtyPages { .. });
            return (waits.held() && !said).then_some(PlainWrite::Held { wait });
        }
        let returned_bytes_per_s = self.numbers.returned_bytes_per_s();
        let absorbed =
            PlainWrite::Absorbed { returned_bytes_per_s, dirty_percent: wait.dirty_percent };
        (returned_bytes_per_s >= self.rate * SHORT).then_some(absorbed)
    }

    fn plain_write_waits(&self) -> Option<PlainWriteWaits> {
        if self.case.of != LimitOf::Plain || self.case.op != OpKind::Write {
            return None;
        }
        let achieved = &self.numbers.achieved;
        let (dirty_percent, flush) = (achieved.dirty_percent?, achieved.sync_ns?);
        let writing = achieved.measured_ns as f64 / f64::from(self.numbers.repeats.max(1));
        let idle = (1.0 - self.thread_percent() / 100.0).max(0.0);
        let percent = |part: f64| part / (flush + writing).max(1.0) * 100.0;
        let wait = WriteBackWait {
            dirty_percent,
            held_percent: achieved.dirty_held_percent.unwrap_or(0.0),
            idle_percent: percent(flush + writing * idle),
        };
        Some(PlainWriteWaits { wait, flush_percent: percent(flush) })
    }
}
