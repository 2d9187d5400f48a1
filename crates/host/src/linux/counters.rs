//! Counters around a run, from files opened once and reread without allocation.

mod disturbance;
mod others;
mod perf;

pub(crate) use disturbance::{DisturbanceMeter, DisturbanceSnapshot};
pub use others::{BusyProgram, OtherPrograms, busy_programs};
pub use perf::{PerfCounter, PerfUnavailable};

use super::clock::kernel_now;
use super::facts::Roots;
use machine::{CpuTimes, DeviceUse, Error, Figure, Nanos, Result, Warning};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// On every device (Documentation/block/stat.rst).
const STAT_SECTOR_BYTES: u64 = 512;

const READ_BYTES: usize = 1024;

struct Gauge {
    file: File,
    path: PathBuf,
}

impl Gauge {
    fn open(path: PathBuf) -> Result<Self> {
        let file = File::open(&path).map_err(Error::io("cannot open", &path))?;
        Ok(Self { file, path })
    }

    fn read<'a>(&self, buffer: &'a mut [u8; READ_BYTES]) -> Result<&'a [u8]> {
        let len = self.file.read_at(buffer, 0).map_err(Error::io("cannot read", &self.path))?;
        Ok(&buffer[..len])
    }

    fn nonsense(&self) -> Error {
        let source = std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            "not the fields that this kernel file is known to have",
        );
        Error::Io { doing: "cannot understand", path: self.path.clone(), source }
    }
}

fn numbers(text: &[u8]) -> impl Iterator<Item = u64> + '_ {
    text.split(|byte| byte.is_ascii_whitespace())
        .filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

/// Process time is exact to a microsecond; machine time comes from idle clock ticks (usually 10
/// ms), refined by a version-1 `cpuacct` group.
pub struct CpuMeter {
    stat: Gauge,
    tasks: Option<Gauge>,
    processors: u64,
    tick_ns: Nanos,
}

/// From an arbitrary start: use only differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuSnapshot {
    pub at_ns: Nanos,
    /// All threads of this process.
    pub user_ns: Nanos,
    pub system_ns: Nanos,
    /// All CPUs, including I/O wait.
    pub idle_ns: Nanos,
    /// Taken by the hypervisor from all CPUs.
    pub steal_ns: Nanos,
    /// All tasks, if the kernel counts in nanoseconds.
    pub tasks_ns: Option<Nanos>,
}

/// Other programs' recent CPU use, subtracted from machine time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleBaseline {
    /// 0.02 is 20 ms per second, over all CPUs.
    pub busy_processors: f64,
    pub observed_ns: Nanos,
}

impl IdleBaseline {
    pub const NONE: IdleBaseline = IdleBaseline { busy_processors: 0.0, observed_ns: 0 };

    pub fn warning(&self) -> Option<Warning> {
        // An idle system's housekeeping uses less than a tenth of a CPU.
        (self.busy_processors > 0.1).then(|| {
            Warning::of(
                "other programs kept {} processors busy: results may understate this machine; stop them",
                [Figure::rounded(self.busy_processors, 1)],
            )
        })
    }
}

impl CpuMeter {
    pub fn open(roots: &Roots) -> Result<Self> {
        let tasks = super::facts::cgroup_v1_root(roots, "cpuacct")
            .and_then(|dir| Gauge::open(dir.join("cpuacct.usage")).ok());
        // SAFETY: sysconf has no preconditions.
        let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        let meter = Self {
            stat: Gauge::open(roots.proc.join("stat"))?,
            tasks,
            processors: processors.max(1) as u64,
            tick_ns: tick_ns(),
        };
        meter.read()?;
        Ok(meter)
    }

    pub fn read(&self) -> Result<CpuSnapshot> {
        let mut buffer = [0; READ_BYTES];
        let text = self.stat.read(&mut buffer)?;
        let at_ns = kernel_now();
        // cpu user nice system idle iowait irq softirq steal guest guest_nice, in ticks (proc(5)).
        let mut fields = [0; 8];
        let line = text
            .split(|&byte| byte == b'\n')
            .next()
            .filter(|line| line.starts_with(b"cpu "))
            .ok_or_else(|| self.stat.nonsense())?;
        for (field, number) in fields.iter_mut().zip(numbers(line)) {
            *field = number * self.tick_ns;
        }
        let tasks_ns = match &self.tasks {
            Some(gauge) => numbers(gauge.read(&mut buffer)?).next(),
            None => None,
        };
        let (user_ns, system_ns) = process_times();
        Ok(CpuSnapshot {
            at_ns,
            user_ns,
            system_ns,
            idle_ns: fields[3] + fields[4],
            steal_ns: fields[7],
            tasks_ns,
        })
    }

    /// Subtracts the baseline, but leaves at least this process's own time.
    pub fn used(
        &self,
        before: &CpuSnapshot,
        after: &CpuSnapshot,
        baseline: IdleBaseline,
    ) -> CpuTimes {
        let elapsed_ns = after.at_ns.saturating_sub(before.at_ns);
        let without_us = (baseline.busy_processors * elapsed_ns as f64).round() as Nanos;
        let user_ns = after.user_ns.saturating_sub(before.user_ns);
        let system_ns = after.system_ns.saturating_sub(before.system_ns);
        CpuTimes {
            user_ns,
            system_ns,
            machine_ns: self
                .busy_ns(before, after)
                .saturating_sub(without_us)
                .max(user_ns + system_ns),
            steal_ns: after.steal_ns.saturating_sub(before.steal_ns),
            instructions_user: None,
        }
    }

    fn busy_ns(&self, before: &CpuSnapshot, after: &CpuSnapshot) -> Nanos {
        let capacity = after.at_ns.saturating_sub(before.at_ns) * self.processors;
        let away = after.idle_ns.saturating_sub(before.idle_ns)
            + after.steal_ns.saturating_sub(before.steal_ns);
        let by_idle = capacity.saturating_sub(away);
        match (before.tasks_ns, after.tasks_ns) {
            // The task count misses interrupts on an idle CPU. Idle time includes them, but its two
            // parts (idle, iowait) are each truncated to a tick at both ends. So clamp the fine
            // count to the margin of the coarse one.
            (Some(was), Some(is)) => {
                let margin = 2 * self.tick_ns;
                is.saturating_sub(was).clamp(by_idle.saturating_sub(margin), by_idle + margin)
            }
            _ => by_idle,
        }
    }
}

pub(super) fn tick_ns() -> Nanos {
    // SAFETY: sysconf has no preconditions.
    1_000_000_000 / unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64
}

pub(super) fn process_times() -> (Nanos, Nanos) {
    // SAFETY: all-zero is a valid rusage, and it is valid for writes.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

/// Since this process's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessCounts {
    pub context_switches: u64,
    pub major_faults: u64,
    pub minor_faults: u64,
    /// All threads: user, system.
    pub cpu_ns: [u64; 2],
}

impl ProcessCounts {
    pub fn now() -> Self {
        // SAFETY: all-zero is a valid rusage, and it is valid for writes.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &mut usage);
            usage
        };
        ProcessCounts {
            context_switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
            major_faults: usage.ru_majflt as u64,
            minor_faults: usage.ru_minflt as u64,
            cpu_ns: [usage.ru_utime, usage.ru_stime]
                .map(|time| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000),
        }
    }
}

pub struct DeviceMeter {
    gauges: Vec<Gauge>,
}

/// Sums over the devices (Documentation/block/stat.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceSnapshot {
    pub devices: u64,
    /// Completed, merged, 512-byte sectors, total milliseconds.
    pub reads: [u64; 4],
    /// As `reads`.
    pub writes: [u64; 4],
    pub in_flight: u64,
    /// Sampled at the scheduler tick, which overstates many short requests.
    pub busy_ms: u64,
    pub weighted_ms: u64,
    /// As `reads` (Linux 4.18 and later).
    pub discards: [u64; 4],
    /// Completed, total milliseconds (Linux 5.5 and later).
    pub flushes: [u64; 2],
}

impl DeviceMeter {
    /// Takes kernel names (`sda1`); [`Error::Unsupported`] if counters are switched off.
    pub fn open<S: AsRef<str>>(roots: &Roots, names: &[S]) -> Result<Self> {
        let mut gauges = Vec::with_capacity(names.len());
        for name in names {
            let dir = roots.sys.join("class/block").join(name.as_ref());
            if std::fs::read_to_string(dir.join("queue/iostats"))
                .is_ok_and(|text| text.trim() == "0")
            {
                let name = name.as_ref();
                return Err(Error::Unsupported(format!(
                    "{name} does not count its requests; enable it with: echo 1 > /sys/class/block/{name}/queue/iostats"
                )));
            }
            gauges.push(Gauge::open(dir.join("stat"))?);
        }
        Ok(Self { gauges })
    }

    pub fn read(&self) -> Result<DeviceSnapshot> {
        let mut sum =
            DeviceSnapshot { devices: self.gauges.len() as u64, ..DeviceSnapshot::default() };
        for gauge in &self.gauges {
            let mut buffer = [0; READ_BYTES];
            let mut fields = [0; 17];
            let mut count = 0;
            for (field, number) in fields.iter_mut().zip(numbers(gauge.read(&mut buffer)?)) {
                *field = number;
                count += 1;
            }
            if count < 11 {
                return Err(gauge.nonsense());
            }
            for i in 0..4 {
                sum.reads[i] += fields[i];
                sum.writes[i] += fields[4 + i];
                sum.discards[i] += fields[11 + i];
            }
            sum.in_flight += fields[8];
            sum.busy_ms += fields[9];
            sum.weighted_ms += fields[10];
            sum.flushes[0] += fields[15];
            sum.flushes[1] += fields[16];
        }
        Ok(sum)
    }
}

impl DeviceSnapshot {
    pub fn since(&self, before: &DeviceSnapshot) -> DeviceUse {
        let less = |now: u64, then: u64| now.saturating_sub(then);
        let ms = |now: u64, then: u64| less(now, then) * 1_000_000;
        DeviceUse {
            reads: less(self.reads[0], before.reads[0]),
            read_bytes: less(self.reads[2], before.reads[2]) * STAT_SECTOR_BYTES,
            writes: less(self.writes[0], before.writes[0]),
            write_bytes: less(self.writes[2], before.writes[2]) * STAT_SECTOR_BYTES,
            merges: less(self.reads[1], before.reads[1]) + less(self.writes[1], before.writes[1]),
            busy_ns: ms(self.busy_ms, before.busy_ms) / self.devices.max(1),
            weighted_ns: ms(self.weighted_ms, before.weighted_ms),
            flushes: less(self.flushes[0], before.flushes[0]),
            ..DeviceUse::default()
        }
    }
}

pub struct ProcessIoMeter {
    gauge: Gauge,
}

/// Since this process's start, ended threads included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessIo {
    /// From block devices.
    pub read_bytes: u64,
    /// A buffered write counts when it dirties the cache.
    pub write_bytes: u64,
    /// Never written because a file was removed or truncated.
    pub cancelled_write_bytes: u64,
}

impl ProcessIoMeter {
    /// Fails if the kernel does not account I/O by task.
    pub fn open(roots: &Roots) -> Result<Self> {
        Ok(Self { gauge: Gauge::open(roots.proc.join("self/io"))? })
    }

    pub fn read(&self) -> Result<ProcessIo> {
        let mut buffer = [0; READ_BYTES];
        let text = self.gauge.read(&mut buffer)?;
        let mut io = ProcessIo::default();
        for line in text.split(|&byte| byte == b'\n') {
            let place = match line.iter().position(|&byte| byte == b':').map(|at| &line[..at]) {
                Some(b"read_bytes") => &mut io.read_bytes,
                Some(b"write_bytes") => &mut io.write_bytes,
                Some(b"cancelled_write_bytes") => &mut io.cancelled_write_bytes,
                _ => continue,
            };
            *place = numbers(line).next().ok_or_else(|| self.gauge.nonsense())?;
        }
        Ok(io)
    }
}

impl ProcessIo {
    /// As [`machine::Usage::block_bytes`].
    pub fn since(&self, before: &ProcessIo) -> (u64, u64) {
        (
            self.read_bytes.saturating_sub(before.read_bytes),
            self.write_bytes.saturating_sub(before.write_bytes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(tasks: bool) -> CpuMeter {
        let null = || Gauge::open("/dev/null".into()).unwrap();
        CpuMeter { stat: null(), tasks: tasks.then(null), processors: 2, tick_ns: 10_000_000 }
    }

    fn snapshot(at_ms: u64, idle_ms: u64, steal_ms: u64, tasks_ms: Option<u64>) -> CpuSnapshot {
        let ms = 1_000_000;
        CpuSnapshot {
            at_ns: at_ms * ms,
            user_ns: 0,
            system_ns: 0,
            idle_ns: idle_ms * ms,
            steal_ns: steal_ms * ms,
            tasks_ns: tasks_ms.map(|t| t * ms),
        }
    }

    #[test]
    fn busy_time_excludes_idle_and_stolen_time() {
        let meter = meter(false);
        let used = meter.used(
            &snapshot(0, 100, 0, None),
            &snapshot(1000, 1300, 100, None),
            IdleBaseline::NONE,
        );
        assert_eq!(used.machine_ns, 700_000_000, "2 processors x 1000 ms - 1200 idle - 100 stolen");
        assert_eq!(used.steal_ns, 100_000_000);
        let idle = IdleBaseline { busy_processors: 0.05, observed_ns: 1 };
        assert_eq!(
            meter
                .used(&snapshot(0, 100, 0, None), &snapshot(1000, 1300, 100, None), idle)
                .machine_ns,
            650_000_000
        );
        assert_eq!(
            meter.used(&snapshot(0, 0, 0, None), &snapshot(1000, 2000, 0, None), idle).machine_ns,
            0,
            "never negative"
        );
    }

    #[test]
    fn machine_time_is_never_below_our_own() {
        let mut after = snapshot(1000, 0, 0, None);
        after.user_ns = 300_000_000;
        let busy = IdleBaseline { busy_processors: 2.0, observed_ns: 1 };
        assert_eq!(
            meter(false).used(&snapshot(0, 0, 0, None), &after, busy).machine_ns,
            300_000_000
        );
        let reported = busy.warning().expect("others are busy").to_string();
        assert!(reported.contains("2.0 processors"), "{reported}");
        assert_eq!(IdleBaseline { busy_processors: 0.03, observed_ns: 1 }.warning(), None);
    }

    #[test]
    fn the_task_count_is_clamped_to_the_idle_margin() {
        let meter = meter(true);
        let busy = |tasks| {
            meter.busy_ns(&snapshot(0, 0, 0, Some(0)), &snapshot(1000, 1500, 0, Some(tasks)))
                / 1_000_000
        };
        assert_eq!(busy(507), 507, "inside the margin the fine count holds");
        assert_eq!(busy(300), 480, "tasks miss what interrupts took from idle processors");
        assert_eq!(busy(900), 520);
    }

    #[test]
    fn device_stat_fields_are_parsed() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { sys: dir.path().to_path_buf(), ..Roots::default() };
        for (name, first) in [("sda", 1), ("sdb", 101)] {
            let device = dir.path().join("class/block").join(name);
            std::fs::create_dir_all(&device).unwrap();
            let fields: Vec<String> = (first..first + 17).map(|n: u64| n.to_string()).collect();
            std::fs::write(device.join("stat"), fields.join(" ") + "\n").unwrap();
        }
        let read = DeviceMeter::open(&roots, &["sda", "sdb"]).unwrap().read().unwrap();
        assert_eq!(read.reads, [102, 104, 106, 108]);
        assert_eq!(read.writes, [110, 112, 114, 116]);
        assert_eq!((read.in_flight, read.busy_ms, read.weighted_ms), (118, 120, 122));
        assert_eq!((read.discards, read.flushes), ([124, 126, 128, 130], [132, 134]));
        let used = read.since(&DeviceSnapshot { devices: 2, ..DeviceSnapshot::default() });
        assert_eq!(
            (used.read_bytes, used.write_bytes, used.merges),
            (106 * 512, 114 * 512, 104 + 112)
        );
        assert_eq!(
            (used.busy_ns, used.weighted_ns),
            (60_000_000, 122_000_000),
            "busy is a mean, weighted a sum"
        );
    }

    #[test]
    fn a_device_without_counters_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { sys: dir.path().to_path_buf(), ..Roots::default() };
        let queue = dir.path().join("class/block/sda/queue");
        std::fs::create_dir_all(&queue).unwrap();
        std::fs::write(queue.join("iostats"), "0\n").unwrap();
        let Err(error) = DeviceMeter::open(&roots, &["sda"]) else {
            panic!("opened counters that do not count")
        };
        assert!(
            error.to_string().contains("echo 1 > /sys/class/block/sda/queue/iostats"),
            "{error}"
        );
    }
}
