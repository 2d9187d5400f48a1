//! Limits above the device: the file system, anything that holds requests before the block layer,
//! the block layer's queue, and dirty pages. Stage timings of a request and the devices' queue
//! counters show where requests wait.

use super::{BUSY_PERCENT, Cause, Evidence, GAIN};
use crate::other_target::{OtherTarget, OtherTargetTrial};
use machine::units::show_rate;
use machine::{Layer, LayerKind, Stage, TargetKind, TimesSource};
use results::{Bottleneck, LimitOf, Point};
use workload::{OpKind, Workload};

/// Requests wait in the stage that takes more than this percentage of their time.
const WAIT_PERCENT: f64 = 50.0;

/// A mean queue of at most this per device means one at a time, with some room for foreign
/// requests.
const ONE: f64 = 1.3;

/// This many outstanding in the program per request at the device means they are held back on the
/// way.
const HELD: f64 = 4.0;

/// Dirty pages in percent of the kernel's throttling limit: they oscillate around it.
const DIRTY_PERCENT: f64 = 95.0;

/// With data journaling at least this many extra bytes reach the device per byte written.
const JOURNAL_SHARE: f64 = 0.5;

/// A device with half of the requests is as fast if it gets this share of the rate.
const FLAT_SHARE: f64 = 0.75;

/// If twice the requests get this many times the rate, nothing is saturated.
const STEEP: f64 = 1.6;

/// A queue is full if the mean depth at the device is within this ratio of its length.
const FULL: std::ops::RangeInclusive<f64> = 0.75..=1.1;

/// The page cache absorbs a plain write if its rate until the last return is this many times the
/// rate to stable storage.
const SHORT: f64 = 1.5;

struct PlainWriteWaits {
    /// Maximum dirty pages, in percent of the throttling limit.
    dirty: f64,
    /// Share of the total time, flush included, spent in the flush, in percent.
    flush_percent: f64,
    /// Share of the same time in which its thread was idle.
    idle_percent: f64,
}

impl Evidence<'_> {
    /// Share of a request's time in a stage, in percent, if trace points report stages.
    fn stage_percent(&self, stage: Stage) -> Option<f64> {
        let times = self.numbers.achieved.request_times.as_ref()?;
        let traced = times.source == TimesSource::TracePoints;
        times.stages.iter().find(|one| traced && one.stage == stage).map(|one| one.percent)
    }

    /// The file system between program and device; `None` on a block device and on a simulated
    /// machine.
    fn file_system(&self) -> Option<&Layer> {
        let file = !matches!(self.facts.kind, TargetKind::Device | TargetKind::Simulated);
        self.facts.layers.iter().find(|layer| layer.kind == LayerKind::FileSystem).filter(|_| file)
    }

    /// The file system also journals the data.
    pub(super) fn journal(&self) -> Option<Cause> {
        let layer = self.file_system().filter(|_| self.case.op == OpKind::Write)?;
        let journals = layer.facts.file_system?.journals_data;
        let more =
            self.numbers.achieved.device_bytes_foreign_share.filter(|&share| journals && share >= JOURNAL_SHARE)?;
        let why = format!(
            "the journal of {} (data=journal): {:.1} bytes reach the device for each that the program writes, at {}",
            layer.name,
            1.0 + more,
            self.shown()
        );
        Some((Bottleneck::FileSystem, why))
    }

    /// The file system is mounted with synchronous writes.
    pub(super) fn synchronous(&self) -> Option<Cause> {
        let layer = self.file_system().filter(|_| self.case.op == OpKind::Write)?;
        let saturated = self.numbers.achieved.device_busy_percent.is_some_and(|busy| busy >= BUSY_PERCENT)
            && self.workload.outstanding() > 1;
        if !layer.facts.file_system?.synchronous || self.thread_percent() >= WAIT_PERCENT || saturated {
            return None;
        }
        let why = format!(
            "the flush of each write: {} is mounted with -o sync, so each returns from stable storage, at {}",
            layer.name,
            self.shown()
        );
        Some((Bottleneck::Flush, why))
    }

    /// The same requests are faster without the file system, or on two files.
    pub(super) fn file_system_by_trial(&self) -> Option<Cause> {
        let OtherTargetTrial { other, ratio } = self.case.other_target.as_ref()?;
        let layer = self.file_system().filter(|_| ratio.mean >= GAIN && ratio.low > 1.0)?;
        let shown = self.shown();
        let why = match other {
            OtherTarget::Device(device) => {
                format!("the file system ({}): {device} itself gives {:.2} x the {shown}", layer.name, ratio.mean)
            }
            OtherTarget::TwoFiles => {
                format!(
                    "the file system ({}): writes to two files get {:.2} x the {shown} of one",
                    layer.name, ratio.mean
                )
            }
        };
        Some((Bottleneck::FileSystem, why))
    }

    /// Many requests are outstanding, but almost none is in the block layer or at a device:
    /// something above holds them back.
    pub(super) fn held_above(&self) -> Option<Cause> {
        let achieved = &self.numbers.achieved;
        if self.thread_percent() >= WAIT_PERCENT || self.processors_percent() >= BUSY_PERCENT {
            return None;
        }
        let submit = self.stage_percent(Stage::Submit).filter(|&percent| percent >= WAIT_PERCENT);
        let members = f64::from(self.facts.members.max(1));
        let few = achieved.device_mean_depth.filter(|&at_device| {
            let whole = achieved.device_request_bytes.is_some_and(|bytes| bytes > 0.0);
            whole && at_device <= ONE * members && f64::from(self.workload.outstanding()) >= HELD * members
        });
        let evidence = match (submit, few) {
            (Some(submit), _) => format!("{submit:.0} % of a request's time passes before the block layer receives it"),
            // Little's law: requests that are not at the device wait above it. A busy device that
            // serves one at a time looks the same, hence the second condition.
            (None, Some(at_device)) if achieved.device_busy_percent.is_some_and(|busy| busy < BUSY_PERCENT) => {
                format!("of {} outstanding {at_device:.1} are at the device", self.workload.outstanding())
            }
            _ => return None,
        };
        let shown = self.shown();
        if let Some(throttle) = self.facts.layers.iter().find(|layer| layer.kind == LayerKind::Throttle) {
            return Some((Bottleneck::Throttle, format!("the throttle {}: {evidence}, at {shown}", throttle.name)));
        }
        if let Some(layer) = self.file_system() {
            let why = format!("the file system ({}): {evidence}, and the thread is idle, at {shown}", layer.name);
            return Some((Bottleneck::FileSystem, why));
        }
        let why = format!("an unreported throttle: {evidence}, and the thread is idle, at {shown}");
        submit.map(|_| (Bottleneck::Throttle, why))
    }

    /// The device's queue is full, more requests wait for a slot, and half as many got less.
    pub(super) fn full_queue(&self) -> Option<Cause> {
        let held = |layer: &Layer| layer.facts.queue_limit;
        let queue = self.facts.layers.iter().filter(|layer| layer.kind != LayerKind::Loop).find_map(held);
        let queue = queue.or_else(|| self.facts.layers.iter().find_map(held)).filter(|&queue| queue > 0)?;
        let at_device = self.numbers.achieved.device_mean_depth?;
        let full = FULL.contains(&(at_device / f64::from(queue)));
        if !full || self.workload.outstanding() <= queue || self.facts.members > 1 || self.less_sufficed(queue)? {
            return None;
        }
        let why = format!(
            "the length of the device's queue (nr_requests {queue}): {at_device:.1} of {} outstanding fit into it, at {}",
            self.workload.outstanding(),
            self.shown()
        );
        Some((Bottleneck::Throttle, why))
    }

    /// Whether a point with at most half of this depth is about as fast; `None` without such a
    /// point.
    fn less_sufficed(&self, outstanding: u32) -> Option<bool> {
        let best = self.best_of(|one| one.outstanding() <= outstanding / 2)?;
        Some(best >= self.rate * FLAT_SHARE)
    }

    /// The best rate at a smaller depth, down to half; `None` without such a point.
    pub(super) fn half_as_many(&self) -> Option<f64> {
        let own = self.workload.outstanding();
        self.best_of(|one| one.outstanding() < own && one.outstanding() * 2 >= own)
    }

    /// The best rate of the points that differ only in depth and pass a test.
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

    /// The fallback: the stage in which requests spend their time, and the rate at half the depth.
    pub(super) fn by_stage(&self) -> Option<Cause> {
        let shown = self.shown();
        if let Some(percent) = self.stage_percent(Stage::Queue).filter(|&percent| percent >= WAIT_PERCENT) {
            let (what, name) = self.saturated();
            let why =
                format!("{name}: {percent:.0} % of a request's time passes in the block layer's queue, at {shown}");
            return Some((what, why));
        }
        if let Some(percent) = self.stage_percent(Stage::Completion).filter(|&percent| percent >= WAIT_PERCENT) {
            let why = format!("{percent:.0} % of a request's time passes after the device completes it, at {shown}");
            return Some(if self.thread_percent() >= WAIT_PERCENT {
                (Bottleneck::Thread, format!("the one thread that issues them: {why}"))
            } else {
                (Bottleneck::Processor, format!("the processor: {why}"))
            });
        }
        let half = self.half_as_many().filter(|&half| half * STEEP <= self.rate)?;
        let share = half / self.rate * 100.0;
        let why = format!("the time of each request: half as many outstanding get {share:.0} % of {shown}");
        Some((Bottleneck::Latency, why))
    }

    /// No device below counts its requests, and the program's side is idle: it waits for the
    /// server.
    pub(super) fn served(&self) -> Option<Cause> {
        let (what, name) = self.saturated();
        let served = matches!(what, Bottleneck::Network | Bottleneck::FileSystem) && self.facts.devices.is_empty();
        let (thread, processors) = (self.thread_percent(), self.processors_percent());
        if !served || thread >= WAIT_PERCENT || processors >= BUSY_PERCENT {
            return None;
        }
        let why = format!(
            "{name}: the threads that issue them are busy {thread:.0} % of the time and the processors {processors:.0} %, at {}",
            self.shown()
        );
        Some((what, why))
    }

    /// A plain writer has reached the dirty limit and continues at the speed of write-back.
    pub(super) fn dirty_pages(&self) -> Option<Cause> {
        let waits = self.plain_write_waits()?;
        if waits.dirty < DIRTY_PERCENT || waits.flush_percent >= WAIT_PERCENT || waits.idle_percent < WAIT_PERCENT {
            return None;
        }
        let throttle = self.facts.layers.iter().find(|layer| layer.kind == LayerKind::Throttle);
        let (what, name) = match throttle {
            Some(layer) => (Bottleneck::Throttle, format!("the throttle {}", layer.name)),
            None => (self.saturated().0, self.saturated().1.to_owned()),
        };
        Some((what, format!("{name}: {}, at {}", self.held(&waits), self.shown())))
    }

    fn held(&self, waits: &PlainWriteWaits) -> String {
        let held = self.numbers.achieved.dirty_held_percent.unwrap_or(0.0);
        format!(
            "the writer waits for the write-back of dirty pages ({:.0} % of the kernel's throttling limit, reached for {held:.0} % of the time; \
             the writer is idle {:.0} % of it)",
            waits.dirty, waits.idle_percent
        )
    }

    /// How a limit below affects a plain write: by throttling at the dirty limit or, for a shorter
    /// write, the consequence for a longer one. `None` if unknown, or if `why` already says it.
    pub(super) fn sustained(&self, why: &str) -> Option<String> {
        let waits = self.plain_write_waits()?;
        let until_return = self.numbers.returned_bytes_per_s();
        if waits.dirty >= DIRTY_PERCENT {
            let held = self.held(&waits);
            return (waits.flush_percent < WAIT_PERCENT && !why.contains(&held)).then_some(held);
        }
        if until_return < self.rate * SHORT {
            return None;
        }
        Some(format!(
            "the page cache takes {} until the last write returns, for at most {:.0} % of the dirty pages that hold a writer are there: \
             longer writes are held to the {} below",
            show_rate(until_return),
            waits.dirty,
            self.shown()
        ))
    }

    /// The waits of a plain write; `None` for another case, or if the system does not report them.
    fn plain_write_waits(&self) -> Option<PlainWriteWaits> {
        if self.case.of != LimitOf::Plain || self.case.op != OpKind::Write {
            return None;
        }
        let achieved = &self.numbers.achieved;
        let (dirty, flush) = (achieved.dirty_percent?, achieved.sync_ns?);
        let writing = achieved.measured_ns as f64 / f64::from(self.numbers.repeats.max(1));
        let idle = (1.0 - self.thread_percent() / 100.0).max(0.0);
        let percent = |part: f64| part / (flush + writing).max(1.0) * 100.0;
        Some(PlainWriteWaits { dirty, flush_percent: percent(flush), idle_percent: percent(flush + writing * idle) })
    }
}
