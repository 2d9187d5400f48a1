//! The counters around a run: taken just before its first request and just after its last.

use super::clock::kernel_now;
use super::counters::{CpuMeter, CpuSnapshot, DeviceMeter, DeviceSnapshot, IdleBaseline, PerfCounter, ProcessIo, ProcessIoMeter};
use super::facts::Roots;
use super::target::HostTarget;
use super::{Host, clock::Clock};
use machine::{Nanos, Usage};
use std::sync::OnceLock;
use std::time::Duration;

/// More disagreement than this between the time-stamp counter and the kernel's clock is told.
const CLOCK_TOLERANCE: f64 = 0.002;

/// How long the idle machine is watched, once, after the first run: before it, it would keep the user waiting.
const BASELINE_WATCH: Duration = Duration::from_millis(300);

/// The meters that belong to the machine and not to a run. One that cannot be read is absent, and so are its figures.
pub(crate) struct MachineMeters {
    cpu: Option<CpuMeter>,
    io: Option<ProcessIoMeter>,
    baseline: OnceLock<IdleBaseline>,
}

impl MachineMeters {
    pub(crate) fn open() -> MachineMeters {
        let roots = Roots::default();
        MachineMeters { cpu: CpuMeter::open(&roots).ok(), io: ProcessIoMeter::open(&roots).ok(), baseline: OnceLock::new() }
    }

    fn baseline(&self) -> IdleBaseline {
        *self
            .baseline
            .get_or_init(|| self.cpu.as_ref().and_then(|cpu| cpu.idle_baseline(BASELINE_WATCH).ok()).unwrap_or(IdleBaseline::NONE))
    }
}

/// The meters of one run.
pub(crate) struct Meters<'a> {
    clock: Clock,
    machine: &'a MachineMeters,
    device: Option<&'a DeviceMeter>,
    count: Option<PerfCounter>,
}

/// What the meters showed at one moment.
pub(crate) struct Snapshot {
    at: Nanos,
    kernel_at: Nanos,
    cpu: Option<CpuSnapshot>,
    device: Option<DeviceSnapshot>,
    io: Option<ProcessIo>,
    instructions: Option<u64>,
}

impl<'a> Meters<'a> {
    /// Opens the processor's counters where asked; they count threads that start from now on.
    pub(crate) fn new(host: &'a Host, target: &'a HostTarget, count_instructions: bool) -> Meters<'a> {
        // Kernel instructions are left alone: a hypervisor may count them wrong, and each counter slows the run.
        let mut count = if count_instructions { PerfCounter::try_open().ok() } else { None };
        if let Some(counter) = &mut count {
            counter.start();
        }
        Meters { clock: host.clock(), machine: &host.meters, device: target.meter(), count }
    }

    /// What the meters show now.
    pub(crate) fn take(&mut self) -> Snapshot {
        Snapshot {
            at: self.clock.now(),
            kernel_at: kernel_now(),
            cpu: self.machine.cpu.as_ref().and_then(|meter| meter.read().ok()),
            device: self.device.and_then(|meter| meter.read().ok()),
            io: self.machine.io.as_ref().and_then(|meter| meter.read().ok()),
            instructions: self.count.as_mut().and_then(PerfCounter::read),
        }
    }

    /// What was used between two moments; the times of the run are the caller's to add.
    pub(crate) fn between(&self, before: &Snapshot, after: &Snapshot) -> Usage {
        let mut usage = Usage::default();
        let baseline = self.machine.baseline();
        if let (Some(meter), Some(before), Some(after)) = (&self.machine.cpu, &before.cpu, &after.cpu) {
            usage.cpu = meter.used(before, after, baseline);
        }
        usage.device = before.device.zip(after.device).map(|(before, after)| after.since(&before));
        usage.block_bytes = before.io.zip(after.io).map(|(before, after)| after.since(&before));
        usage.cpu.instructions_user = before.instructions.zip(after.instructions).map(|(before, after)| after.saturating_sub(before));
        usage.warnings.extend(baseline.warning());
        let (told, kernel) = ((after.at - before.at) as f64, (after.kernel_at - before.kernel_at) as f64);
        if kernel > 1e7 && (told / kernel - 1.0).abs() > CLOCK_TOLERANCE {
            usage
                .warnings
                .push(format!("the clock jumped: the time-stamp counter and the kernel differ by {:.2} %", (told / kernel - 1.0) * 100.0));
        }
        usage
    }
}
