//! Limits above the device: the file system, what holds requests before the block layer has them, the block layer's queue, and dirty
//! pages. The stages of a request and the devices' own count of requests say where they wait.

use super::{BUSY_PERCENT, Cause, Evidence, GAIN};
use crate::beside::{Beside, Other};
use machine::units::show_rate;
use machine::{Layer, LayerKind, Stage, TargetKind, TimesSource};
use results::{Bottleneck, LimitOf, Point};
use workload::{OpKind, Workload};

/// A stage in which requests spend more of their time than this, in percent, is where they wait.
const MOST_PERCENT: f64 = 50.0;

/// So few requests at each device are one at a time, with a little room for others' requests.
const ONE: f64 = 1.3;

/// So many outstanding at the program for each one at a device are held back on the way.
const HELD: f64 = 4.0;

/// Dirty pages in percent of where the kernel holds writers: they swing around it.
const DIRTY_PERCENT: f64 = 95.0;

/// A journal that takes the data, too, lets at least so many more bytes reach the device for each that was asked, beside the one.
const JOURNAL_SHARE: f64 = 0.5;

/// A device is as fast with half of the requests if it gets this share of the rate.
const FLAT_SHARE: f64 = 0.75;

/// Twice the requests that get so many times the rate come to no saturated part.
const STEEP: f64 = 1.6;

/// How near the mean depth at the device is to the length of the queue where the queue is full.
const FULL: std::ops::RangeInclusive<f64> = 0.75..=1.1;

/// A plain write gets so many times its rate to stable storage until its last return where the page cache takes it.
const SHORT: f64 = 1.5;

/// What a plain write waited for.
struct PlainWriteWaits {
    /// The most dirty pages, in percent of where writers are held.
    dirty: f64,
    /// Share of its time, the flush included, that the flush took, in percent.
    flush_percent: f64,
    /// Share of the same time in which its thread did nothing.
    idle_percent: f64,
}

impl Evidence<'_> {
    /// Share of a request's time in a stage, in percent, where trace points tell the stages apart.
    fn stage_percent(&self, stage: Stage) -> Option<f64> {
        let times = self.numbers.achieved.request_times.as_ref()?;
        let traced = times.source == TimesSource::TracePoints;
        times.stages.iter().find(|one| traced && one.stage == stage).map(|one| one.percent)
    }

    /// The file system between the program and the device; none on a block device and on a simulated machine.
    fn file_system(&self) -> Option<&Layer> {
        let file = !matches!(self.facts.kind, TargetKind::Device | TargetKind::Simulated);
        self.facts.layers.iter().find(|layer| layer.kind == LayerKind::FileSystem).filter(|_| file)
    }

    /// The file system writes the data into its journal, too.
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

    /// The file system is mounted so that each write waits until it is on stable storage.
    pub(super) fn synchronous(&self) -> Option<Cause> {
        let layer = self.file_system().filter(|_| self.case.op == OpKind::Write)?;
        let saturated = self.numbers.achieved.device_busy_percent.is_some_and(|busy| busy >= BUSY_PERCENT)
            && self.workload.outstanding() > 1;
        if !layer.facts.file_system?.synchronous || self.thread_percent() >= MOST_PERCENT || saturated {
            return None;
        }
        let why = format!(
            "the flush of each write: {} is mounted with -o sync, so each returns from stable storage, at {}",
            layer.name,
            self.shown()
        );
        Some((Bottleneck::Flush, why))
    }

    /// The same requests are faster without the file system, or to two files.
    pub(super) fn file_system_by_trial(&self) -> Option<Cause> {
        let Beside { other, ratio } = self.case.beside.as_ref()?;
        let layer = self.file_system().filter(|_| ratio.mean >= GAIN && ratio.low > 1.0)?;
        let shown = self.shown();
        let why = match other {
            Other::Device(device) => {
                format!("the file system ({}): {device} itself gives {:.2} x the {shown}", layer.name, ratio.mean)
            }
            Other::TwoFiles => {
                format!(
                    "the file system ({}): writes to two files get {:.2} x the {shown} of one",
                    layer.name, ratio.mean
                )
            }
        };
        Some((Bottleneck::FileSystem, why))
    }

    /// Many requests are outstanding, and next to none is in the block layer or at a device: the way there holds them back.
    pub(super) fn held_above(&self) -> Option<Cause> {
        let achieved = &self.numbers.achieved;
        if self.thread_percent() >= MOST_PERCENT || self.processors_percent() >= BUSY_PERCENT {
            return None;
        }
        let submit = self.stage_percent(Stage::Submit).filter(|&percent| percent >= MOST_PERCENT);
        let members = f64::from(self.facts.members.max(1));
        let few = achieved.device_mean_depth.filter(|&at_device| {
            let whole = achieved.device_request_bytes.is_some_and(|bytes| bytes > 0.0);
            whole && at_device <= ONE * members && f64::from(self.workload.outstanding()) >= HELD * members
        });
        let evidence = match (submit, few) {
            (Some(submit), _) => format!("{submit:.0} % of a request's time passes before the block layer has it"),
            // Little's law: what is not at the device waits above it. That alone does not tell a device of one request
            // at a time, which is busy then.
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
        let why = format!("a throttle that is not told: {evidence}, and the thread is idle, at {shown}");
        submit.map(|_| (Bottleneck::Throttle, why))
    }

    /// As many requests are at the device as its queue holds, more wait for a place, and half as many got less.
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
            "the length of the device's queue (nr_requests {queue}): {at_device:.1} of {} outstanding have a place in it, at {}",
            self.workload.outstanding(),
            self.shown()
        );
        Some((Bottleneck::Throttle, why))
    }

    /// Whether a point with at most half of so many requests outstanding is about as fast; none where there is no such point.
    fn less_sufficed(&self, outstanding: u32) -> Option<bool> {
        let best = self.best_of(|one| one.outstanding() <= outstanding / 2)?;
        Some(best >= self.rate * FLAT_SHARE)
    }

    /// The best rate with fewer requests outstanding, but at least half as many; none where there is no such point.
    pub(super) fn half_as_many(&self) -> Option<f64> {
        let own = self.workload.outstanding();
        self.best_of(|one| one.outstanding() < own && one.outstanding() * 2 >= own)
    }

    /// The best rate of the points that differ in depth alone and pass a test.
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

    /// Nothing else is known: where requests spend their time says what they wait for, and what half as many of them get.
    pub(super) fn by_stage(&self) -> Option<Cause> {
        let shown = self.shown();
        if let Some(percent) = self.stage_percent(Stage::Queue).filter(|&percent| percent >= MOST_PERCENT) {
            let (what, name) = self.saturated();
            let why =
                format!("{name}: {percent:.0} % of a request's time passes in the block layer's queue, at {shown}");
            return Some((what, why));
        }
        if let Some(percent) = self.stage_percent(Stage::Completion).filter(|&percent| percent >= MOST_PERCENT) {
            let why = format!("{percent:.0} % of a request's time passes after the device has done it, at {shown}");
            return Some(if self.thread_percent() >= MOST_PERCENT {
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

    /// No device below counts its requests, and the program's side is idle: what it waits for is whoever serves it.
    pub(super) fn served(&self) -> Option<Cause> {
        let (what, name) = self.saturated();
        let served = matches!(what, Bottleneck::Network | Bottleneck::FileSystem) && self.facts.devices.is_empty();
        let (thread, processors) = (self.thread_percent(), self.processors_percent());
        if !served || thread >= MOST_PERCENT || processors >= BUSY_PERCENT {
            return None;
        }
        let why = format!(
            "{name}: the threads that issue them are busy {thread:.0} % of the time and the processors {processors:.0} %, at {}",
            self.shown()
        );
        Some((what, why))
    }

    /// A plain writer has filled the dirty pages that it may have, and from then on writes as fast as they are written back.
    pub(super) fn dirty_pages(&self) -> Option<Cause> {
        let waits = self.plain_write_waits()?;
        if waits.dirty < DIRTY_PERCENT || waits.flush_percent >= MOST_PERCENT || waits.idle_percent < MOST_PERCENT {
            return None;
        }
        let throttle = self.facts.layers.iter().find(|layer| layer.kind == LayerKind::Throttle);
        let (what, name) = match throttle {
            Some(layer) => (Bottleneck::Throttle, format!("the throttle {}", layer.name)),
            None => (self.saturated().0, self.saturated().1.to_owned()),
        };
        Some((what, format!("{name}: {}, at {}", self.held(&waits), self.shown())))
    }

    /// How the write-back of dirty pages holds a writer.
    fn held(&self, waits: &PlainWriteWaits) -> String {
        let held = self.numbers.achieved.dirty_held_percent.unwrap_or(0.0);
        format!(
            "the writer waits for the write-back of dirty pages ({:.0} % of where the kernel holds writers, so for {held:.0} % of the time; \
             the writer is idle {:.0} % of it)",
            waits.dirty, waits.idle_percent
        )
    }

    /// How a limit below reaches a plain write: by pages that wait to be written back; or, where the write was too short for that, what it says of
    /// a longer one. None where that is not told, or `why` has said it.
    pub(super) fn sustained(&self, why: &str) -> Option<String> {
        let waits = self.plain_write_waits()?;
        let until_return = self.numbers.returned_bytes_per_s();
        if waits.dirty >= DIRTY_PERCENT {
            let held = self.held(&waits);
            return (waits.flush_percent < MOST_PERCENT && !why.contains(&held)).then_some(held);
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

    /// What a plain write waited for; none of another case, or where the system does not tell.
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
