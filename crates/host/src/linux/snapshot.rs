//! The counters around a run: taken just before its first request and just after its last.

use super::clock::{Clock, boot_now, kernel_now};
use super::counters::{
    CpuMeter, CpuSnapshot, DeviceMeter, DeviceSnapshot, DisturbanceMeter, DisturbanceSnapshot, IdleBaseline,
    OtherPrograms, PerfCounter, ProcessIo, ProcessIoMeter,
};
use super::facts::Roots;
use super::target::HostTarget;
use crate::pause::{Gaps, PAUSE_NS, percent};
use crate::session::Time;
use machine::{DeviceUse, Disturbance, Nanos, Part, Pause, RunUsage};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// More disagreement than this between the time-stamp counter and the kernel's clock is told.
const CLOCK_TOLERANCE: f64 = 0.002;

/// For how long at least the other programs are watched: several ticks of the processor's clock. They are watched again and again, for
/// what begins in the middle of a study takes its processors, too.
const LEAST_WATCH_NS: Nanos = 100_000_000;

/// The meters that belong to the machine and not to a run. One that cannot be read is absent, and so are its figures.
pub(crate) struct MachineMeters {
    cpu: Option<CpuMeter>,
    io: Option<ProcessIoMeter>,
    disturbance: DisturbanceMeter,
    /// The other programs; absent until a thread has read them, for nobody should wait for that.
    others: Arc<Mutex<Option<Watched>>>,
}

/// The other programs when they were read last, and what they used until then.
struct Watched {
    last: OtherPrograms,
    baseline: IdleBaseline,
}

impl MachineMeters {
    pub(crate) fn open() -> MachineMeters {
        let roots = Roots::default();
        let others = Arc::new(Mutex::new(None));
        let to_fill = others.clone();
        // Without a thread nothing is known of others.
        let _ = std::thread::Builder::new().spawn(move || {
            let last = OtherPrograms::now(&Roots::default());
            *to_fill.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Watched { last, baseline: IdleBaseline::NONE });
        });
        MachineMeters {
            cpu: CpuMeter::open(&roots).ok(),
            io: ProcessIoMeter::open(&roots).ok(),
            disturbance: DisturbanceMeter::open(&roots),
            others,
        }
    }

    /// What the other programs used lately; nothing as long as they were not watched for long enough.
    fn baseline(&self) -> IdleBaseline {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watched) = others.as_mut() else { return IdleBaseline::NONE };
        if watched.last.age_ns() >= LEAST_WATCH_NS {
            let now = OtherPrograms::now(&Roots::default());
            *watched = Watched { baseline: now.since(&watched.last), last: now };
        }
        watched.baseline
    }
}

/// The meters of one run.
pub(crate) struct Meters<'a> {
    clock: Clock,
    machine: &'a MachineMeters,
    /// Of each part, where its devices count.
    devices: Vec<Option<Arc<DeviceMeter>>>,
    count: Option<PerfCounter>,
}

/// What tells who had the time in which this process did not run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moment {
    kernel_at: Nanos,
    /// The kernel's clock that goes on while the computer is suspended.
    boot_at: Nanos,
    /// How long the calling thread has waited for a processor so far.
    waited_ns: Option<Nanos>,
}

impl Moment {
    pub(crate) fn now() -> Moment {
        Moment { kernel_at: kernel_now(), boot_at: boot_now(), waited_ns: waited_ns() }
    }
}

/// The time between two moments in which this process did not run, and who had it: gaps in which none of its threads looked at the clock.
/// `steal_ns`: what the hypervisor took meanwhile; `held_ns`: for how long a processor quota held it.
pub(crate) fn pause(before: &Moment, after: &Moment, gaps: Gaps, steal_ns: Nanos, held_ns: Nanos) -> Option<Pause> {
    let passed = |of: fn(&Moment) -> Nanos| of(after).saturating_sub(of(before));
    let suspended = passed(|moment| moment.boot_at).saturating_sub(passed(|moment| moment.kernel_at));
    if suspended >= PAUSE_NS {
        let ns = suspended.max(gaps.longest_ns);
        let percent = percent(ns, passed(|moment| moment.boot_at));
        return Some(Pause { ns, times: 1, percent, cause: "the computer was suspended" });
    }
    let run_ns = passed(|moment| moment.kernel_at);
    let waited = after.waited_ns.zip(before.waited_ns).map_or(0, |(after, before)| after.saturating_sub(before));
    if gaps.longest_ns == 0 {
        let ns = gaps.stopped_ns(waited.max(held_ns) + steal_ns, run_ns)?;
        return Some(Pause { ns, times: gaps.count, percent: percent(ns, run_ns), cause: STOPPED });
    }
    let paused_ns = gaps.longest_ns;
    let cause = if steal_ns >= paused_ns / 2 {
        "the hypervisor gave this computer no processor"
    } else if held_ns >= paused_ns / 2 {
        "the processor quota of the control group left this program no processor"
    } else if waited >= paused_ns / 2 {
        "other programs left this one no processor"
    } else {
        STOPPED
    };
    Some(Pause { ns: paused_ns, times: 1, percent: percent(paused_ns, run_ns), cause })
}

/// The cause if no other program had the time: a signal, a debugger or a freezer.
const STOPPED: &str = "the program was stopped";

/// What the meters showed at one moment.
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
    /// Processor time of this process so far.
    pub(crate) fn process_ns(&self) -> Option<Nanos> {
        self.cpu.as_ref().map(|cpu| cpu.user_ns + cpu.system_ns)
    }
}

impl<'a> Meters<'a> {
    /// Opens the processor's counters where asked; they count threads that start from now on.
    pub(crate) fn new<S>(
        clock: Clock,
        machine: &'a MachineMeters,
        parts: &[Part<'_, HostTarget, S>],
        count_instructions: bool,
    ) -> Meters<'a> {
        // The first run must not be in it where that can be had without waiting.
        machine.baseline();
        // Kernel instructions are left alone: a hypervisor may count them wrong, and each counter slows the run.
        let mut count = if count_instructions { PerfCounter::try_open().ok() } else { None };
        if let Some(counter) = &mut count {
            counter.start();
        }
        Meters { clock, machine, devices: parts.iter().map(|part| device_meter(&part.targets)).collect(), count }
    }

    /// What the meters show now.
    pub(crate) fn take(&mut self) -> Snapshot {
        Snapshot {
            at: self.clock.now(),
            moment: Moment::now(),
            cpu: self.machine.cpu.as_ref().and_then(|meter| meter.read().ok()),
            devices: self.devices.iter().map(|meter| meter.as_ref().and_then(|meter| meter.read().ok())).collect(),
            io: self.machine.io.as_ref().and_then(|meter| meter.read().ok()),
            disturbance: self.machine.disturbance.read(),
            instructions: self.count.as_mut().and_then(PerfCounter::read),
        }
    }

    /// What was used between two moments, by the whole run and (returned) by the devices of each part.
    pub(crate) fn between(&self, before: &Snapshot, after: &Snapshot, usage: &mut RunUsage) -> Vec<Option<DeviceUse>> {
        let baseline = self.machine.baseline();
        if let (Some(meter), Some(before), Some(after)) = (&self.machine.cpu, &before.cpu, &after.cpu) {
            usage.cpu = meter.used(before, after, baseline);
        }
        usage.block_bytes = before.io.zip(after.io).map(|(before, after)| after.since(&before));
        usage.cpu.instructions_user =
            before.instructions.zip(after.instructions).map(|(before, after)| after.saturating_sub(before));
        usage.warnings.extend(baseline.warning());
        usage.disturbance = Disturbance {
            quota: after.disturbance.quota_since(&before.disturbance),
            pressure: after.disturbance.pressure_since(&before.disturbance),
            others_processors: baseline.busy_processors,
        };
        let (ours, kernel) = (after.at - before.at, after.moment.kernel_at - before.moment.kernel_at);
        let (ours, kernel) = (ours as f64, kernel as f64);
        if kernel > 1e7 && (ours / kernel - 1.0).abs() > CLOCK_TOLERANCE {
            usage.warnings.push(format!(
                "the clock jumped: the time-stamp counter and the kernel differ by {:.2} %",
                (ours / kernel - 1.0) * 100.0
            ));
        }
        let devices = before.devices.iter().zip(&after.devices);
        devices.map(|(before, after)| before.zip(*after).map(|(before, after)| after.since(&before))).collect()
    }
}

impl Snapshot {
    /// What our clock showed when the kernel's monotonic clock showed `at`, between this moment and `after`: both clocks were read at both.
    pub(crate) fn clock_at(&self, after: &Snapshot, at: Nanos) -> Nanos {
        let kernel = after.moment.kernel_at.saturating_sub(self.moment.kernel_at).max(1);
        let since = at as i128 - i128::from(self.moment.kernel_at);
        let ours = i128::from(after.at.saturating_sub(self.at));
        (i128::from(self.at) + since * ours / i128::from(kernel)) as Nanos
    }

    /// The time until `after` in which this process did not run ([`pause`]).
    pub(crate) fn pause_until(&self, after: &Snapshot, gaps: Gaps, usage: &RunUsage) -> Option<Pause> {
        let held_ns = usage.disturbance.quota.map_or(0, |quota| quota.throttled_ns);
        pause(&self.moment, &after.moment, gaps, usage.cpu.steal_ns, held_ns)
    }
}

/// How long the calling thread has waited for a processor: the second number of its schedstat (proc(5)).
pub(crate) fn waited_ns() -> Option<Nanos> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The counters of the devices under all of these targets.
fn device_meter(targets: &[&HostTarget]) -> Option<Arc<DeviceMeter>> {
    if let [only] = targets {
        return only.meter();
    }
    let names: BTreeSet<&String> = targets.iter().flat_map(|target| &target.facts().devices).collect();
    DeviceMeter::open(&Roots::default(), &names.into_iter().collect::<Vec<_>>()).ok().map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    /// A moment on clocks of the test's own: how long the computer ran, was suspended, and how long this thread waited.
    fn moment(ran_s: u64, suspended_s: u64, waited_s: u64) -> Moment {
        Moment {
            kernel_at: ran_s * SECOND,
            boot_at: (ran_s + suspended_s) * SECOND,
            waited_ns: Some(waited_s * SECOND),
        }
    }

    #[test]
    fn a_suspended_computer_is_told_by_the_clock_that_goes_on() {
        let none = Gaps::default();
        let suspended = pause(&moment(100, 7, 1), &moment(104, 12, 1), none, 0, 0).unwrap();
        assert_eq!((suspended.ns, suspended.cause), (5 * SECOND, "the computer was suspended"));
        assert_eq!(pause(&moment(100, 7, 1), &moment(104, 7, 1), none, 0, 0), None, "suspended only before the run");
        let slept = Moment { boot_at: 104 * SECOND + PAUSE_NS - 1, ..moment(104, 0, 0) };
        assert_eq!(pause(&moment(100, 0, 0), &slept, none, 0, 0), None, "the clocks are not read at once");
    }

    #[test]
    fn who_had_the_time_of_a_pause_is_told() {
        let long = Gaps { longest_ns: 5 * SECOND, sum_ns: 5 * SECOND, count: 1 };
        let cause = |steal_ns: Nanos, waited_s: u64, held_s: u64| {
            let after = moment(110, 0, 3 + waited_s);
            pause(&moment(100, 0, 3), &after, long, steal_ns, held_s * SECOND).unwrap().cause
        };
        assert_eq!(cause(0, 0, 0), "the program was stopped");
        assert_eq!(cause(4 * SECOND, 0, 0), "the hypervisor gave this computer no processor");
        assert_eq!(cause(SECOND, 4, 0), "other programs left this one no processor");
        assert_eq!(cause(0, 4, 4), "the processor quota of the control group left this program no processor");
        let unknown = Moment { waited_ns: None, ..moment(110, 0, 0) };
        assert_eq!(pause(&moment(100, 0, 0), &unknown, long, 0, 0).unwrap().cause, "the program was stopped");
    }

    #[test]
    fn short_stops_that_nobody_else_had_the_time_of_are_a_pause() {
        let short = Gaps { longest_ns: 0, sum_ns: 4 * SECOND, count: 250 };
        let paused = |waited_s: u64, steal_ns: Nanos, held_ns: Nanos| {
            pause(&moment(100, 0, 0), &moment(110, 0, waited_s), short, steal_ns, held_ns)
        };
        let stopped = paused(0, 0, 0).unwrap();
        assert_eq!(stopped.to_string(), "the program was stopped 250 times, for 40 % of the run (4.00 s)");
        assert_eq!(paused(4, 0, 0), None, "other programs had the time: that is contention");
        assert_eq!(
            (paused(0, 4 * SECOND, 0), paused(0, 0, 4 * SECOND)),
            (None, None),
            "a hypervisor or a quota had it"
        );
        assert_eq!(paused(1, 0, 0).unwrap().ns, 3 * SECOND);
    }
}
