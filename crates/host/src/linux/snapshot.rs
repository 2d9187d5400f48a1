//! Counters just before a run's first request and just after its last.

use super::clock::{Clock, boot_now, kernel_now};
use super::counters::{
    CpuMeter, CpuSnapshot, DeviceMeter, DeviceSnapshot, DisturbanceMeter, DisturbanceSnapshot,
    IdleBaseline, OtherPrograms, PerfCounter, ProcessIo, ProcessIoMeter,
};
use super::facts::Roots;
use super::target::HostTarget;
use crate::pause::{Gaps, PAUSE_NS, percent};
use crate::session::Time;
use machine::{DeviceUse, Disturbance, Figure, Nanos, Part, Pause, PauseCause, RunUsage, Warning};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

const CLOCK_TOLERANCE: f64 = 0.002;

/// Several scheduler ticks. The watch repeats, for programs that start during a study.
const MIN_WATCH_NS: Nanos = 100_000_000;

pub(crate) struct MachineMeters {
    cpu: Option<CpuMeter>,
    io: Option<ProcessIoMeter>,
    disturbance: DisturbanceMeter,
    others: Arc<Mutex<Others>>,
}

struct Others {
    /// `None` until a background thread has read them.
    watched: Option<Watched>,
    own_processes: Vec<u32>,
}

struct Watched {
    last: OtherPrograms,
    baseline: IdleBaseline,
}

impl MachineMeters {
    pub(crate) fn open() -> MachineMeters {
        let roots = Roots::default();
        let own_processes = vec![std::process::id()];
        let others = Arc::new(Mutex::new(Others { watched: None, own_processes }));
        let to_fill = others.clone();
        // Without a thread, the other programs stay unknown.
        let _ = std::thread::Builder::new().spawn(move || {
            let last = OtherPrograms::now(&Roots::default(), &[std::process::id()]);
            to_fill.lock().unwrap_or_else(PoisonError::into_inner).watched =
                Some(Watched { last, baseline: IdleBaseline::NONE });
        });
        MachineMeters {
            cpu: CpuMeter::open(&roots).ok(),
            io: ProcessIoMeter::open(&roots).ok(),
            disturbance: DisturbanceMeter::open(&roots),
            others,
        }
    }

    pub(crate) fn add_own_processes(&self, processes: &[u32]) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.own_processes.extend_from_slice(processes);
    }

    fn baseline(&self) -> IdleBaseline {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let Others { watched: Some(watched), own_processes } = &mut *others else {
            return IdleBaseline::NONE;
        };
        if watched.last.age_ns() >= MIN_WATCH_NS {
            let now = OtherPrograms::now(&Roots::default(), own_processes);
            *watched = Watched { baseline: now.since(&watched.last), last: now };
        }
        watched.baseline
    }
}

pub(crate) struct Meters<'a> {
    clock: Clock,
    machine: &'a MachineMeters,
    devices: Vec<Option<Arc<DeviceMeter>>>,
    count: Option<PerfCounter>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moment {
    kernel_at: Nanos,
    /// On a clock that continues while the computer is suspended.
    boot_at: Nanos,
    waited_ns: Option<Nanos>,
}

impl Moment {
    pub(crate) fn now() -> Moment {
        Moment { kernel_at: kernel_now(), boot_at: boot_now(), waited_ns: waited_ns() }
    }
}

/// `gaps`: no thread read the clock; `steal_ns`: taken by the hypervisor; `held_ns`: throttled by a
/// quota.
pub(crate) fn pause(
    before: &Moment,
    after: &Moment,
    gaps: Gaps,
    steal_ns: Nanos,
    held_ns: Nanos,
) -> Option<Pause> {
    let passed = |of: fn(&Moment) -> Nanos| of(after).saturating_sub(of(before));
    let suspended =
        passed(|moment| moment.boot_at).saturating_sub(passed(|moment| moment.kernel_at));
    if suspended >= PAUSE_NS {
        let ns = suspended.max(gaps.longest_ns);
        let percent = percent(ns, passed(|moment| moment.boot_at));
        return Some(Pause { ns, times: 1, percent, cause: PauseCause::Suspended });
    }
    let run_ns = passed(|moment| moment.kernel_at);
    let waited = after
        .waited_ns
        .zip(before.waited_ns)
        .map_or(0, |(after, before)| after.saturating_sub(before));
    if gaps.longest_ns == 0 {
        let ns = gaps.stopped_ns(waited.max(held_ns) + steal_ns, run_ns)?;
        return Some(Pause {
            ns,
            times: gaps.count,
            percent: percent(ns, run_ns),
            cause: PauseCause::Stopped,
        });
    }
    let paused_ns = gaps.longest_ns;
    let cause = if steal_ns >= paused_ns / 2 {
        PauseCause::Hypervisor
    } else if held_ns >= paused_ns / 2 {
        PauseCause::Quota
    } else if waited >= paused_ns / 2 {
        PauseCause::OtherPrograms
    } else {
        PauseCause::Stopped
    };
    Some(Pause { ns: paused_ns, times: 1, percent: percent(paused_ns, run_ns), cause })
}

pub(crate) struct Snapshot {
    at: Nanos,
    moment: Moment,
    cpu: Option<CpuSnapshot>,
    devices: Vec<Option<DeviceSnapshot>>,
    io: Option<ProcessIo>,
    disturbance: DisturbanceSnapshot,
    instructions: Option<u64>,
}

impl Snapshot {
    pub(crate) fn process_ns(&self) -> Option<Nanos> {
        self.cpu.as_ref().map(|cpu| cpu.user_ns + cpu.system_ns)
    }
}

impl<'a> Meters<'a> {
    pub(crate) fn new<S>(
        clock: Clock,
        machine: &'a MachineMeters,
        parts: &[Part<'_, HostTarget, S>],
        count_instructions: bool,
    ) -> Meters<'a> {
        // Take a baseline before the first run, if that needs no wait.
        machine.baseline();
        // Kernel instructions are not counted: a hypervisor may count them wrong, and each counter
        // slows the run.
        let mut count = if count_instructions { PerfCounter::try_open().ok() } else { None };
        if let Some(counter) = &mut count {
            counter.start();
        }
        Meters {
            clock,
            machine,
            devices: parts.iter().map(|part| device_meter(&part.targets)).collect(),
            count,
        }
    }

    pub(crate) fn take(&mut self) -> Snapshot {
        Snapshot {
            at: self.clock.now(),
            moment: Moment::now(),
            cpu: self.machine.cpu.as_ref().and_then(|meter| meter.read().ok()),
            devices: self
                .devices
                .iter()
                .map(|meter| meter.as_ref().and_then(|meter| meter.read().ok()))
                .collect(),
            io: self.machine.io.as_ref().and_then(|meter| meter.read().ok()),
            disturbance: self.machine.disturbance.read(),
            instructions: self.count.as_mut().and_then(PerfCounter::read),
        }
    }

    /// Returns the device use by part.
    pub(crate) fn between(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        usage: &mut RunUsage,
    ) -> Vec<Option<DeviceUse>> {
        let baseline = self.machine.baseline();
        if let (Some(meter), Some(before), Some(after)) =
            (&self.machine.cpu, &before.cpu, &after.cpu)
        {
            usage.cpu = meter.used(before, after, baseline);
        }
        usage.block_bytes = before.io.zip(after.io).map(|(before, after)| after.since(&before));
        usage.cpu.instructions_user = before
            .instructions
            .zip(after.instructions)
            .map(|(before, after)| after.saturating_sub(before));
        usage.warnings.extend(baseline.warning());
        usage.disturbance = Disturbance {
            quota: after.disturbance.quota_since(&before.disturbance),
            pressure: after.disturbance.pressure_since(&before.disturbance),
            others_processors: baseline.busy_processors,
        };
        let (ours, kernel) =
            (after.at - before.at, after.moment.kernel_at - before.moment.kernel_at);
        let (ours, kernel) = (ours as f64, kernel as f64);
        if kernel > 1e7 && (ours / kernel - 1.0).abs() > CLOCK_TOLERANCE {
            usage.warnings.push(Warning::of(
                "the clock jumped: the time-stamp counter and the kernel differ by {} %",
                [Figure::rounded((ours / kernel - 1.0) * 100.0, 2)],
            ));
        }
        let devices = before.devices.iter().zip(&after.devices);
        devices
            .map(|(before, after)| before.zip(*after).map(|(before, after)| after.since(&before)))
            .collect()
    }
}

impl Snapshot {
    /// `at` is the kernel's monotonic time.
    pub(crate) fn clock_at(&self, after: &Snapshot, at: Nanos) -> Nanos {
        let kernel = after.moment.kernel_at.saturating_sub(self.moment.kernel_at).max(1);
        let since = at as i128 - i128::from(self.moment.kernel_at);
        let ours = i128::from(after.at.saturating_sub(self.at));
        (i128::from(self.at) + since * ours / i128::from(kernel)) as Nanos
    }

    pub(crate) fn pause_until(
        &self,
        after: &Snapshot,
        gaps: Gaps,
        usage: &RunUsage,
    ) -> Option<Pause> {
        let held_ns = usage.disturbance.quota.map_or(0, |quota| quota.throttled_ns);
        pause(&self.moment, &after.moment, gaps, usage.cpu.steal_ns, held_ns)
    }
}

/// The second field of schedstat (proc(5)).
pub(crate) fn waited_ns() -> Option<Nanos> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn device_meter(targets: &[&HostTarget]) -> Option<Arc<DeviceMeter>> {
    if let [only] = targets {
        return only.meter();
    }
    let names: BTreeSet<&String> =
        targets.iter().flat_map(|target| &target.facts().devices).collect();
    DeviceMeter::open(&Roots::default(), &names.into_iter().collect::<Vec<_>>()).ok().map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn moment(ran_s: u64, suspended_s: u64, waited_s: u64) -> Moment {
        Moment {
            kernel_at: ran_s * SECOND,
            boot_at: (ran_s + suspended_s) * SECOND,
            waited_ns: Some(waited_s * SECOND),
        }
    }

    #[test]
    fn suspension_is_detected_by_the_boot_clock() {
        let none = Gaps::default();
        let suspended = pause(&moment(100, 7, 1), &moment(104, 12, 1), none, 0, 0).unwrap();
        assert_eq!((suspended.ns, suspended.cause), (5 * SECOND, PauseCause::Suspended));
        assert_eq!(
            pause(&moment(100, 7, 1), &moment(104, 7, 1), none, 0, 0),
            None,
            "suspended only before the run"
        );
        let slept = Moment { boot_at: 104 * SECOND + PAUSE_NS - 1, ..moment(104, 0, 0) };
        assert_eq!(
            pause(&moment(100, 0, 0), &slept, none, 0, 0),
            None,
            "the clocks are not read at once"
        );
    }

    #[test]
    fn the_cause_of_a_pause_is_reported() {
        let long = Gaps { longest_ns: 5 * SECOND, sum_ns: 5 * SECOND, count: 1 };
        let cause = |steal_ns: Nanos, waited_s: u64, held_s: u64| {
            let after = moment(110, 0, 3 + waited_s);
            pause(&moment(100, 0, 3), &after, long, steal_ns, held_s * SECOND).unwrap().cause
        };
        assert_eq!(cause(0, 0, 0), PauseCause::Stopped);
        assert_eq!(cause(4 * SECOND, 0, 0), PauseCause::Hypervisor);
        assert_eq!(cause(SECOND, 4, 0), PauseCause::OtherPrograms);
        assert_eq!(cause(0, 4, 4), PauseCause::Quota);
        let unknown = Moment { waited_ns: None, ..moment(110, 0, 0) };
        assert_eq!(
            pause(&moment(100, 0, 0), &unknown, long, 0, 0).unwrap().cause,
            PauseCause::Stopped
        );
    }

    #[test]
    fn unexplained_short_stops_are_a_pause() {
        let short = Gaps { longest_ns: 0, sum_ns: 4 * SECOND, count: 250 };
        let paused = |waited_s: u64, steal_ns: Nanos, held_ns: Nanos| {
            pause(&moment(100, 0, 0), &moment(110, 0, waited_s), short, steal_ns, held_ns)
        };
        let stopped = paused(0, 0, 0).unwrap();
        assert_eq!(
            stopped.to_string(),
            "the program was stopped 250 times, for 40 % of the run (4.00 s)"
        );
        assert_eq!(paused(4, 0, 0), None, "other programs had the time: that is contention");
        assert_eq!(
            (paused(0, 4 * SECOND, 0), paused(0, 0, 4 * SECOND)),
            (None, None),
            "a hypervisor or a quota had it"
        );
        assert_eq!(paused(1, 0, 0).unwrap().ns, 3 * SECOND);
    }
}
