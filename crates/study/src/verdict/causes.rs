//! Causes of a limit, tested in order of certainty.

use super::evidence::{Ask, BUSY_PERCENT, Evidence, Named, is_flat};
use super::refute::Found;
use crate::case::{SAME, Variant};
use machine::LayerKind;
use machine::units::MIB;
use results::{Bottleneck, Cause, ExcludedBy, Exclusion, LimitOf, ReadAhead};
use workload::{OpKind, Pattern};

/// Of the generator's own ceiling.
const CEILING_PERCENT: f64 = 80.0;

/// A thread this busy waits for little else.
const THREAD_PERCENT: f64 = 85.0;

const LARGER_PERCENT: f64 = 50.0;

/// From this share of the peak a plain program gets the device's full rate.
const NEAR_PEAK: f64 = 0.85;

/// Time in which an otherwise busy thread waits for a processor.
const UNSERVED_PERCENT: f64 = 25.0;

/// This many times the program's size at the device is read-ahead.
const AHEAD: f64 = 2.0;

/// A device this busy is the limit if another thread's requests add nothing.
const NEARLY_BUSY_PERCENT: f64 = 80.0;

/// Smaller percentages are not reported.
const IDLE_PERCENT: f64 = 1.0;

/// Reported and counted limits come before typical waits.
pub(super) fn found<'b>(evidence: &Evidence<'b>) -> Found {
    let mut reported: Vec<Ask<'b>> =
        vec![Evidence::memory, Evidence::advertised, Evidence::admitted];
    let own: [Ask<'b>; 5] = [
        Evidence::processors,
        Evidence::journal,
        Evidence::synchronous,
        Evidence::dirty_pages,
        Evidence::throttled,
    ];
    // The generator's ceiling comes before the processors it uses, unless a second thread shows
    // that it is not the limit.
    if evidence.refuted(Bottleneck::Generator).is_none() {
        reported.push(Evidence::generator);
    }
    reported.extend(own);
    let plain: [Ask<'b>; 8] = [
        Evidence::near_peak,
        Evidence::read_ahead_by_trial,
        Evidence::plain_thread,
        Evidence::flush,
        Evidence::own_work,
        Evidence::read_ahead,
        Evidence::one_at_a_time,
        Evidence::device_by_trial,
    ];
    let others: [Ask<'b>; 10] = [
        Evidence::thread,
        Evidence::file_system_by_trial,
        Evidence::full_queue,
        Evidence::latency,
        Evidence::held_above,
        Evidence::device_iops,
        Evidence::device,
        Evidence::wider,
        Evidence::flat_device,
        Evidence::by_stage,
    ];
    if evidence.case.of == LimitOf::Plain {
        evidence.first(&reported, &plain)
    } else {
        let mut asks = others.to_vec();
        asks.push(Evidence::served);
        evidence.first(&reported, &asks)
    }
}

pub(super) fn excluded(evidence: &Evidence<'_>, what: Bottleneck) -> Vec<Exclusion> {
    let achieved = &evidence.numbers.achieved;
    let mut all: Vec<Exclusion> = evidence.share_of_narrowest().into_iter().collect();
    let mut used = |what, percent, mean_depth| {
        all.push(Exclusion { what, by: ExcludedBy::Use { percent, mean_depth } });
    };
    if evidence.processors_percent() >= IDLE_PERCENT {
        used(Bottleneck::Processor, evidence.processors_percent(), None);
    }
    if evidence.thread_percent() >= IDLE_PERCENT && !evidence.machine.simulated {
        used(Bottleneck::Thread, evidence.thread_percent(), None);
    }
    if let Some(percent) = achieved.of_ceiling_percent {
        used(Bottleneck::Generator, percent, None);
    }
    // A device that is always busy is not excluded: its requests may wait for something inside it.
    if let Some(percent) = achieved.device_busy_percent.filter(|&percent| percent < BUSY_PERCENT) {
        used(Bottleneck::Device, percent, Some(achieved.device_mean_depth.unwrap_or(0.0)));
    }
    all.retain(|one| {
        let inside = one.what == Bottleneck::Device
            && matches!(what, Bottleneck::Media | Bottleneck::DeviceIops);
        one.what != what && !inside
    });
    all
}

impl Evidence<'_> {
    pub(super) fn saturated(&self) -> Bottleneck {
        let any = |kind: LayerKind| self.facts.layers.iter().any(|layer| layer.kind == kind);
        let kernel = [LayerKind::Disk, LayerKind::Loop, LayerKind::Volume].into_iter().any(any);
        if any(LayerKind::Network) {
            Bottleneck::Network
        } else if any(LayerKind::FileSystem) && !kernel {
            Bottleneck::FileSystem
        } else if self.facts.is_rotating() {
            Bottleneck::Media
        } else {
            Bottleneck::Device
        }
    }

    fn memory(&self) -> Option<Named> {
        let cause = Cause::InMemory { processors_busy_percent: self.processors_percent() };
        self.facts.in_memory.then_some((Bottleneck::Memory, cause))
    }

    fn generator(&self) -> Option<Named> {
        let percent = self
            .numbers
            .achieved
            .of_ceiling_percent
            .filter(|&percent| percent >= CEILING_PERCENT)?;
        Some((Bottleneck::Generator, Cause::Generator { of_ceiling_percent: percent }))
    }

    fn processors(&self) -> Option<Named> {
        // The thread waits for the final flush of a plain write; a compressing device uses its
        // processor for that.
        let part = self.share_until_return();
        let flushing = self
            .numbers
            .achieved
            .sync_unserved_percent
            .map_or(0.0, |percent| percent * (1.0 - part) / f64::from(self.threads()));
        let used_processors = self.busy_processors();
        let of_quota = |quota: &f64| used_processors >= quota * THREAD_PERCENT / 100.0;
        if let Some(allowed_processors) = self.machine.processor_quota.filter(of_quota) {
            return Some((
                Bottleneck::Processor,
                Cause::ProcessorQuota { used_processors, allowed_processors },
            ));
        }
        let threads = self.threads();
        let busy_percent = if threads == 1 && part < 1.0 {
            self.busy_processors() * 100.0
        } else {
            self.thread_percent() * part
        };
        if let Some(unserved_percent) =
            self.unserved_percent().map(|unserved| unserved * part + flushing)
            && unserved_percent >= UNSERVED_PERCENT
            && (unserved_percent + busy_percent >= THREAD_PERCENT
                || unserved_percent >= LARGER_PERCENT)
        {
            return Some((
                Bottleneck::Processor,
                Cause::Contention { threads, unserved_percent, busy_percent },
            ));
        }
        // If as many threads wait as there are processors, no processor is free, however short each
        // wait is.
        let waiting_threads =
            self.numbers.achieved.unserved_percent.map_or(0.0, |percent| percent / 100.0 * part);
        if waiting_threads >= f64::from(self.machine.processors.max(1)) {
            return Some((
                Bottleneck::Processor,
                Cause::ContentionOfMany { threads, waiting_threads },
            ));
        }
        let stolen =
            self.numbers.achieved.steal_percent / f64::from(self.machine.processors.max(1));
        let busy_percent = (self.processors_percent() + stolen).min(100.0);
        (busy_percent >= BUSY_PERCENT)
            .then_some((Bottleneck::Processor, Cause::Processors { busy_percent }))
    }

    pub(super) fn thread(&self) -> Option<Named> {
        let (threads, busy_percent) = (self.threads(), self.thread_percent());
        (busy_percent >= THREAD_PERCENT)
            .then_some((Bottleneck::Thread, Cause::Thread { threads, busy_percent }))
    }

    fn latency(&self) -> Option<Named> {
        (self.flat() == Some(false)).then_some((Bottleneck::Latency, Cause::NothingSaturated))
    }

    pub(super) fn device_iops(&self) -> Option<Named> {
        let ratio = self.ratio(Variant::Resized)?;
        if (ratio.mean - 1.0).abs() > SAME || self.flat() != Some(true) || self.facts.is_rotating()
        {
            return None;
        }
        let cause =
            Cause::DeviceRequests { iops: self.numbers.iops, part: None, others: Vec::new() };
        Some((Bottleneck::DeviceIops, cause))
    }

    fn device(&self) -> Option<Named> {
        let (busy, depth) = self.busy_device(BUSY_PERCENT)?;
        let waits = self.flat() != Some(false) && (self.flat().is_some() || depth > 1.5);
        waits.then_some(busy)
    }

    /// Also returns the device's mean depth; `min` is in percent.
    fn busy_device(&self, min: f64) -> Option<(Named, f64)> {
        let achieved = &self.numbers.achieved;
        let busy_percent = achieved.device_busy_percent.filter(|&percent| percent >= min)?;
        let mean_depth = achieved.device_mean_depth.unwrap_or(0.0);
        Some(((self.saturated(), Cause::BusyDevice { busy_percent, mean_depth }), mean_depth))
    }

    fn wider(&self) -> Option<Named> {
        let cause = Cause::SerialKernel { thread_busy_percent: self.thread_percent() };
        (self.gains(Variant::Wider) == Some(true)).then_some((Bottleneck::Thread, cause))
    }

    fn flat_device(&self) -> Option<Named> {
        let cause =
            Cause::DeeperGainsNothing { processors_busy_percent: self.processors_percent() };
        (self.flat() == Some(true)).then(|| (self.saturated(), cause))
    }

    fn of_peak(&self) -> Option<f64> {
        self.peak.filter(|&peak| peak > 0.0).map(|peak| self.rate / peak)
    }

    fn near_peak(&self) -> Option<Named> {
        let share = self.of_peak().filter(|&share| share >= NEAR_PEAK)?;
        Some((self.saturated(), Cause::NearPeak { percent_of_peak: share * 100.0 }))
    }

    fn device_by_trial(&self) -> Option<Named> {
        self.ratio(Variant::Wider).filter(is_flat)?;
        self.busy_device(NEARLY_BUSY_PERCENT).map(|(busy, _)| busy)
    }

    pub(super) fn read_ahead_by_trial(&self) -> Option<Named> {
        let cause = Cause::ReadAheadByTrial { read_ahead: self.read_ahead_sizes() };
        (self.gains(Variant::Hinted) == Some(true)).then_some((Bottleneck::ReadAhead, cause))
    }

    fn plain_thread(&self) -> Option<Named> {
        let busy_percent = self.thread_percent();
        (self.case.op == OpKind::Read && busy_percent >= THREAD_PERCENT)
            .then_some((Bottleneck::Thread, Cause::PlainThread { busy_percent }))
    }

    pub(super) fn flush(&self) -> Option<Named> {
        let plain_write = self.case.of == LimitOf::Plain && self.case.op == OpKind::Write;
        let sync = self.numbers.achieved.sync_ns.filter(|_| plain_write)?;
        let runs = f64::from(self.numbers.repeats.max(1));
        let writing = self.numbers.achieved.measured_ns as f64 / runs;
        let flush_percent = sync / (sync + writing) * 100.0;
        if flush_percent >= 50.0 {
            let busy_percent = self.busy_processors() * 100.0;
            let charged = busy_percent >= THREAD_PERCENT && self.threads() == 1;
            return Some(if charged {
                (Bottleneck::Thread, Cause::FlushingThread { busy_percent, flush_percent })
            } else {
                (Bottleneck::Flush, Cause::Flush { flush_percent })
            });
        }
        let busy_percent = self.thread_percent();
        (busy_percent >= THREAD_PERCENT)
            .then_some((Bottleneck::Thread, Cause::WritingThread { busy_percent }))
    }

    pub(super) fn read_ahead_sizes(&self) -> ReadAhead {
        ReadAhead {
            setting_bytes: self.facts.layers.iter().find_map(|layer| layer.facts.read_ahead_bytes),
            device_request_bytes: self.numbers.achieved.device_request_bytes,
        }
    }

    fn read_ahead(&self) -> Option<Named> {
        if self.case.op != OpKind::Read || self.workload.pattern != Pattern::Seq {
            return None;
        }
        let read_ahead = self.read_ahead_sizes();
        let device_mean_depth = self.numbers.achieved.device_mean_depth;
        let little = device_mean_depth.is_some_and(|depth| depth <= 2.0)
            && self.peak.is_some()
            && read_ahead.setting_bytes.is_some_and(|ahead| ahead < MIB);
        let own = f64::from(self.workload.request_bytes);
        if !little && read_ahead.device_request_bytes.is_none_or(|bytes| bytes < AHEAD * own) {
            return None;
        }
        let percent_of_peak = self.of_peak().map(|share| share * 100.0);
        Some((
            Bottleneck::ReadAhead,
            Cause::ReadAheadAtDevice { read_ahead, device_mean_depth, percent_of_peak },
        ))
    }

    pub(super) fn own_work(&self) -> Option<Named> {
        let percent = self.thread_percent().min(100.0);
        if self.workload.outstanding() != 1 || percent < LARGER_PERCENT {
            return None;
        }
        let copies = self.copy.filter(|_| !self.workload.buffering.is_direct());
        let copy_percent = copies
            .map_or(0.0, |copy| self.numbers.returned_bytes_per_s() / copy * 100.0)
            .min(percent);
        if copy_percent >= LARGER_PERCENT {
            return Some((Bottleneck::Memory, Cause::Copying { percent: copy_percent }));
        }
        // Another thread would have its own processor.
        let alone = self.machine.processors <= 1;
        let what = if alone { Bottleneck::Processor } else { Bottleneck::Thread };
        Some((
            what,
            Cause::OwnWork { percent, copy_percent, cpu_ns_per_mib: self.own_ns_per_mib() },
        ))
    }

    /// Until the last request returned.
    fn own_ns_per_mib(&self) -> f64 {
        let busy = self.thread_percent() / 100.0 * f64::from(self.threads());
        busy * 1e9 * MIB as f64 / self.numbers.returned_bytes_per_s()
    }

    fn one_at_a_time(&self) -> Option<Named> {
        let busy_percent = Some(self.thread_percent()).filter(|&busy| busy >= IDLE_PERCENT);
        (self.case.op == OpKind::Read)
            .then_some((Bottleneck::Latency, Cause::OneAtATime { busy_percent }))
    }
}
