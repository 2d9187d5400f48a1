//! The verdict from a point's figures and its trials: causes are tested in order of certainty.

use super::refute::{Found, is_flat};
use super::{Ask, BUSY_PERCENT, Cause, Evidence, SAME};
use crate::trial::Variant;
use machine::units::{MIB, show_size, show_size_rounded, show_time};
use machine::{LayerKind, TargetFacts};
use results::{Bottleneck, LimitOf};
use workload::{OpKind, Pattern};

/// The generator is the limit from this percentage of its own ceiling on.
const CEILING_PERCENT: f64 = 80.0;

/// A thread this busy, in percent, waits for little else.
const THREAD_PERCENT: f64 = 85.0;

/// A request that spends more than this percentage of its time on the processor is limited by it.
const LARGER_PERCENT: f64 = 50.0;

/// From this share of the peak on, a plain program gets the device's full rate.
const NEAR_PEAK: f64 = 0.85;

/// A thread that waits this percentage of its time for a processor, and is otherwise busy, is
/// limited by the processors.
const UNSERVED_PERCENT: f64 = 25.0;

/// Requests at the device this many times the program's size are read-ahead.
const AHEAD: f64 = 2.0;

/// A device this busy, in percent, has no time for another thread's requests if these add nothing.
const NEARLY_BUSY_PERCENT: f64 = 80.0;

/// A smaller processor share, in percent, is not reported.
const IDLE_PERCENT: f64 = 1.0;

/// The first cause that holds and that no trial refutes: reported and counted limits and the
/// program's own first, then the waits typical of this kind of request.
pub(super) fn found<'b>(evidence: &Evidence<'b>) -> Found {
    let mut reported: Vec<Ask<'b>> = vec![Evidence::memory, Evidence::advertised, Evidence::admitted];
    let own: [Ask<'b>; 5] =
        [Evidence::processors, Evidence::journal, Evidence::synchronous, Evidence::dirty_pages, Evidence::throttled];
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

/// Other possible limits, each with the figure that excludes it.
pub(super) fn excluded(evidence: &Evidence<'_>, what: Bottleneck) -> Vec<String> {
    let achieved = &evidence.numbers.achieved;
    let mut all: Vec<(Bottleneck, String)> = Vec::new();
    all.extend(evidence.share_of_narrowest().filter(|(kind, _)| *kind != what));
    if evidence.processors_percent() >= IDLE_PERCENT {
        all.push((Bottleneck::Processor, format!("processors: {:.0} % busy", evidence.processors_percent())));
    }
    if evidence.thread_percent() >= IDLE_PERCENT && !evidence.machine.simulated {
        all.push((Bottleneck::Thread, format!("the thread: {:.0} % busy", evidence.thread_percent())));
    }
    if let Some(percent) = achieved.of_ceiling_percent {
        all.push((Bottleneck::Generator, format!("the generator: {percent:.0} % of its ceiling")));
    }
    // A device that is always busy is not excluded: its requests may wait for something inside it.
    if let Some(percent) = achieved.device_busy_percent.filter(|&percent| percent < BUSY_PERCENT) {
        let depth = achieved.device_mean_depth.unwrap_or(0.0);
        all.push((Bottleneck::Device, format!("the device: busy {percent:.0} % with {depth:.1} requests in it")));
    }
    let same = |kind: Bottleneck| {
        kind == what || (kind == Bottleneck::Device && matches!(what, Bottleneck::Media | Bottleneck::DeviceIops))
    };
    all.into_iter().filter(|(kind, _)| !same(*kind)).map(|(_, text)| text).collect()
}

/// A real rotating disk; a virtual disk's claim to rotate means nothing.
pub(super) fn turns(facts: &TargetFacts) -> bool {
    let virtual_disk = facts.layers.iter().any(|layer| {
        layer.kind == LayerKind::Link && ["virtio", "xen", "vmbus"].iter().any(|name| layer.name.starts_with(name))
    });
    let turns = |layer: &machine::Layer| layer.kind == LayerKind::Disk && layer.is_rotational();
    !virtual_disk && facts.layers.iter().any(turns)
}

impl Evidence<'_> {
    pub(super) fn saturated(&self) -> (Bottleneck, &'static str) {
        let any = |kind: LayerKind| self.facts.layers.iter().any(|layer| layer.kind == kind);
        let kernel = [LayerKind::Disk, LayerKind::Loop, LayerKind::Volume].into_iter().any(any);
        if any(LayerKind::Network) {
            (Bottleneck::Network, "the network, or the server behind it")
        } else if any(LayerKind::FileSystem) && !kernel {
            (Bottleneck::FileSystem, "the file system, or the program that serves it")
        } else if turns(self.facts) {
            (Bottleneck::Media, "the media")
        } else {
            (Bottleneck::Device, "the device")
        }
    }

    fn memory(&self) -> Option<Cause> {
        let why = "memory: the file system keeps its files there";
        let busy = self.processors_percent();
        self.facts
            .in_memory
            .then(|| (Bottleneck::Memory, format!("{why} ({}, {busy:.0} % of the processors busy)", self.shown())))
    }

    fn generator(&self) -> Option<Cause> {
        let percent = self.numbers.achieved.of_ceiling_percent?;
        let why =
            format!("the program that issues them: {} is {percent:.0} % of what it issues to nothing", self.shown());
        (percent >= CEILING_PERCENT).then_some((Bottleneck::Generator, why))
    }

    /// All processors, including time stolen by a hypervisor, or the control group's quota.
    fn processors(&self) -> Option<Cause> {
        // The thread waits for the final flush of a plain write.
        let part = self.share_until_return();
        let own = self.busy_processors();
        if let Some(quota) = self.machine.processor_quota.filter(|&quota| own >= quota * THREAD_PERCENT / 100.0) {
            let why =
                format!("the processor time that the control group allows: {own:.2} of {quota:.2} processors used");
            return Some((Bottleneck::Processor, format!("{why} at {}", self.shown())));
        }
        let busy = self.thread_percent() * part;
        if let Some(unserved) = self.unserved_percent().map(|unserved| unserved * part)
            && unserved >= UNSERVED_PERCENT
            && (unserved + busy >= THREAD_PERCENT || unserved >= LARGER_PERCENT)
        {
            let what = if self.threads() > 1 { "the issuing threads were" } else { "the issuing thread was" };
            let why = format!(
                "CPU contention: {what} runnable but not scheduled {unserved:.0} % of the time, and ran {busy:.0} %"
            );
            return Some((Bottleneck::Processor, format!("{why}, at {}", self.shown())));
        }
        // If as many threads wait as there are processors, no processor is free, however short each
        // wait is.
        let waiting = self.numbers.achieved.unserved_percent.map_or(0.0, |percent| percent / 100.0 * part);
        if waiting >= f64::from(self.machine.processors.max(1)) {
            let why = format!(
                "CPU contention: {waiting:.0} of the {} issuing threads were waiting for a processor on average",
                self.threads()
            );
            return Some((Bottleneck::Processor, format!("{why}, at {}", self.shown())));
        }
        let stolen = self.numbers.achieved.steal_percent / f64::from(self.machine.processors.max(1));
        let busy = (self.processors_percent() + stolen).min(100.0);
        let why = format!("the processors: {busy:.0} % of their time is used at {}", self.shown());
        (busy >= BUSY_PERCENT).then_some((Bottleneck::Processor, why))
    }

    pub(super) fn thread(&self) -> Option<Cause> {
        let busy = self.thread_percent();
        let which = if self.threads() > 1 { "the threads that issue" } else { "the one thread that issues" };
        let why = format!("{which} them: busy {busy:.0} % of the time at {}", self.shown());
        (busy >= THREAD_PERCENT).then_some((Bottleneck::Thread, why))
    }

    /// A greater depth gains: nothing is saturated.
    fn latency(&self) -> Option<Cause> {
        let why = format!("the time of each request: nothing is saturated at {}", self.shown());
        (self.flat() == Some(false)).then_some((Bottleneck::Latency, why))
    }

    /// Requests of another size come at the same rate.
    pub(super) fn device_iops(&self) -> Option<Cause> {
        let ratio = self.ratio(Variant::Resized)?;
        if (ratio.mean - 1.0).abs() > SAME || self.flat() != Some(true) || turns(self.facts) {
            return None;
        }
        let size = show_size(u64::from(self.workload.request_bytes));
        let why = format!("the requests per second of the device: {:.0} of {size}", self.numbers.iops);
        Some((Bottleneck::DeviceIops, why))
    }

    /// A device that is always busy, with requests waiting.
    fn device(&self) -> Option<Cause> {
        let achieved = &self.numbers.achieved;
        let (percent, depth) = (achieved.device_busy_percent?, achieved.device_mean_depth.unwrap_or(0.0));
        if percent < BUSY_PERCENT || self.flat() == Some(false) || (self.flat().is_none() && depth <= 1.5) {
            return None;
        }
        let (what, name) = self.saturated();
        let why = format!("{name}: busy {percent:.0} % of the time with {depth:.1} requests in it at {}", self.shown());
        Some((what, why))
    }

    /// One more thread gains although a greater depth of the one thread does not.
    fn wider(&self) -> Option<Cause> {
        let busy = self.thread_percent();
        let why =
            format!("what the kernel does in turn for one thread (busy {busy:.0} % of the time), at {}", self.shown());
        (self.gains(Variant::Wider) == Some(true)).then_some((Bottleneck::Thread, why))
    }

    /// A greater depth gains nothing, for whatever reason.
    fn flat_device(&self) -> Option<Cause> {
        let (what, name) = self.saturated();
        let busy = self.processors_percent();
        let why = format!("{name}: more requests outstanding gain nothing over {}", self.shown());
        (self.flat() == Some(true)).then(|| (what, format!("{why}, with {busy:.0} % of the processors busy")))
    }

    fn near_peak(&self) -> Option<Cause> {
        let peak = self.peak.filter(|&peak| peak > 0.0)?;
        let share = self.rate / peak;
        let (what, name) = self.saturated();
        let why = format!("{name}: {} is {:.0} % of the best that any setting gets", self.shown(), share * 100.0);
        (share >= NEAR_PEAK).then_some((what, why))
    }

    /// A device that is nearly always busy, when another thread's requests add nothing.
    fn device_by_trial(&self) -> Option<Cause> {
        let achieved = &self.numbers.achieved;
        let percent = achieved.device_busy_percent.filter(|&percent| percent >= NEARLY_BUSY_PERCENT)?;
        self.ratio(Variant::Wider).filter(is_flat)?;
        let (what, name) = self.saturated();
        let depth = achieved.device_mean_depth.unwrap_or(0.0);
        let why = format!("{name}: busy {percent:.0} % of the time with {depth:.1} requests in it at {}", self.shown());
        Some((what, why))
    }

    pub(super) fn read_ahead_by_trial(&self) -> Option<Cause> {
        let why = format!("the read-ahead of the page cache ({})", self.read_ahead_words());
        (self.gains(Variant::Hinted) == Some(true)).then_some((Bottleneck::ReadAhead, why))
    }

    fn plain_thread(&self) -> Option<Cause> {
        let busy = self.thread_percent();
        let why = format!("the one thread: busy {busy:.0} % of the time with calls and copies at {}", self.shown());
        (self.case.op == OpKind::Read && busy >= THREAD_PERCENT).then_some((Bottleneck::Thread, why))
    }

    /// A plain write spends most of its time to stable storage in the flush.
    pub(super) fn flush(&self) -> Option<Cause> {
        let plain_write = self.case.of == LimitOf::Plain && self.case.op == OpKind::Write;
        let sync = self.numbers.achieved.sync_ns.filter(|_| plain_write)?;
        let runs = f64::from(self.numbers.repeats.max(1));
        let writing = self.numbers.achieved.measured_ns as f64 / runs;
        let share = sync / (sync + writing) * 100.0;
        if share >= 50.0 {
            let whole = self.busy_processors() * 100.0;
            if whole >= THREAD_PERCENT && self.threads() == 1 {
                let why = format!(
                    "the one thread: busy {whole:.0} % of the time until everything is durable, as it is charged for the kernel's write-back; \
                     {share:.0} % of it is the flush, at {}",
                    self.shown()
                );
                return Some((Bottleneck::Thread, why));
            }
            let why = format!(
                "the flush: {share:.0} % of the time passes after the last write returned, at {}",
                self.shown()
            );
            return Some((Bottleneck::Flush, why));
        }
        let busy = self.thread_percent();
        let why =
            format!("the one thread: busy {busy:.0} % of the time until the last write returns, at {}", self.shown());
        (busy >= THREAD_PERCENT).then_some((Bottleneck::Thread, why))
    }

    /// The kernel's setting, and the request size at the device.
    fn read_ahead_words(&self) -> String {
        let bytes = self.numbers.achieved.device_request_bytes.map(show_size_rounded);
        let reported = self.read_ahead_bytes().map(show_size);
        match (reported, bytes) {
            (Some(reported), Some(bytes)) => format!("{reported}; requests of {bytes} reach the device"),
            (Some(reported), None) => reported,
            (None, Some(bytes)) => format!("requests of {bytes} reach the device"),
            (None, None) => "of unknown size".into(),
        }
    }

    fn read_ahead_bytes(&self) -> Option<u64> {
        self.facts.layers.iter().find_map(|layer| layer.facts.read_ahead_bytes)
    }

    /// Read-ahead is far too small to keep the device busy; or the requests at the device are
    /// read-ahead.
    fn read_ahead(&self) -> Option<Cause> {
        if self.case.op != OpKind::Read || self.workload.pattern != Pattern::Seq {
            return None;
        }
        let achieved = &self.numbers.achieved;
        let depth = achieved.device_mean_depth;
        let little = depth.is_some_and(|depth| depth <= 2.0)
            && self.peak.is_some()
            && self.read_ahead_bytes().is_some_and(|ahead| ahead < MIB);
        let own = f64::from(self.workload.request_bytes);
        let ahead = achieved.device_request_bytes.is_some_and(|bytes| bytes >= AHEAD * own);
        if !little && !ahead {
            return None;
        }
        let depth = depth.map_or(String::new(), |depth| format!("{depth:.1} requests in the device get "));
        let share = self.peak.map_or(String::new(), |peak| format!(", {:.0} % of its best", self.rate / peak * 100.0));
        let why =
            format!("the read-ahead of the page cache ({}): {depth}{}{share}", self.read_ahead_words(), self.shown());
        Some((Bottleneck::ReadAhead, why))
    }

    /// At depth 1 the processor, or the memory copy, takes more time than the waits.
    pub(super) fn own_work(&self) -> Option<Cause> {
        let busy = self.thread_percent().min(100.0);
        if self.workload.outstanding() != 1 || busy < LARGER_PERCENT {
            return None;
        }
        let copies = self.copy.filter(|_| !self.workload.buffering.is_direct());
        let copy = copies.map_or(0.0, |copy| self.numbers.returned_bytes_per_s() / copy * 100.0).min(busy);
        if copy >= LARGER_PERCENT {
            let why = format!("memory: copying takes {copy:.0} % of each request's time at {}", self.shown());
            return Some((Bottleneck::Memory, why));
        }
        let copy = if copy >= 1.0 { format!(" (the copy {copy:.0} %)") } else { String::new() };
        // Another thread would have its own processor.
        let alone = self.machine.processors <= 1;
        let (what, who) =
            if alone { (Bottleneck::Processor, "the processor") } else { (Bottleneck::Thread, "the one thread") };
        let why = format!(
            "{who}: calls and copies take {busy:.0} % of each request's time{copy}, {} a MiB, at {}",
            show_time(self.own_ns_per_mib()),
            self.shown()
        );
        Some((what, why))
    }

    /// Processor time of the process per MiB until the last request returned, in ns.
    fn own_ns_per_mib(&self) -> f64 {
        let busy = self.thread_percent() / 100.0 * f64::from(self.threads());
        busy * 1e9 * MIB as f64 / self.numbers.returned_bytes_per_s()
    }

    /// Depth 1, and the processor takes the smaller part of the time.
    fn one_at_a_time(&self) -> Option<Cause> {
        if self.case.op != OpKind::Read {
            return None;
        }
        let busy = self.thread_percent();
        let own = if busy >= IDLE_PERCENT {
            format!(", {:.0} % of it waiting and {busy:.0} % the processor's", 100.0 - busy)
        } else {
            String::new()
        };
        let why = format!("the time of each request{own}: one after the other gets {}", self.shown());
        Some((Bottleneck::Latency, why))
    }
}
