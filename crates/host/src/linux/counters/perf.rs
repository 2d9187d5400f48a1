//! The CPU's hardware counters, through `perf_event_open(2)`.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};

/// The measurement is complete without the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PerfUnavailable {
    #[error(
        "processor counters are not allowed here (kernel.perf_event_paranoid); run as root or lower it with: sysctl kernel.perf_event_paranoid=1"
    )]
    NotAllowed,
    #[error("this kernel, or the container around this process, has no perf events")]
    NoKernelSupport,
    #[error("this processor, or the virtual machine around it, does not count instructions")]
    NoCounter,
    #[error("every processor counter is in use by another program; stop the other profiler")]
    Taken,
    #[error("perf_event_open failed with error {0}")]
    Other(i32),
}

/// `struct perf_event_attr` in its first published size, which every kernel accepts.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

const TYPE_HARDWARE: u32 = 0;
const HARDWARE_INSTRUCTIONS: u64 = 1;
const FORMAT_TOTAL_TIME_ENABLED: u64 = 1;
const FORMAT_TOTAL_TIME_RUNNING: u64 = 2;
const FLAG_DISABLED: u64 = 1;
const FLAG_INHERIT: u64 = 1 << 1;
const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const FLAG_EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const OPEN_CLOEXEC: libc::c_ulong = 8;
const IOCTL_ENABLE: libc::c_ulong = 0x2400;
const IOCTL_DISABLE: libc::c_ulong = 0x2401;

/// User-space instructions of this thread and its later ones. Slows context switches: do not report
/// the rate.
#[derive(Debug)]
pub struct PerfCounter {
    file: File,
    start: Reading,
}

#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    count: u64,
    enabled_ns: u64,
    running_ns: u64,
}

impl PerfCounter {
    /// Stopped, at zero.
    pub fn try_open() -> Result<Self, PerfUnavailable> {
        let attributes = Attributes {
            kind: TYPE_HARDWARE,
            size: size_of::<Attributes>() as u32,
            config: HARDWARE_INSTRUCTIONS,
            sample_period: 0,
            sample_type: 0,
            read_format: FORMAT_TOTAL_TIME_ENABLED | FORMAT_TOTAL_TIME_RUNNING,
            flags: FLAG_DISABLED | FLAG_INHERIT | FLAG_EXCLUDE_HYPERVISOR | FLAG_EXCLUDE_KERNEL,
            wakeup_events: 0,
            breakpoint_type: 0,
            breakpoint_address: 0,
        };
        let (this_thread, any_processor, no_group): (libc::pid_t, libc::c_int, libc::c_int) =
            (0, -1, -1);
        // SAFETY: the structure has the `size` that it states and outlives the call.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &attributes as *const Attributes,
                this_thread,
                any_processor,
                no_group,
                OPEN_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(reason(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)));
        }
        // SAFETY: the kernel returned this descriptor; we own it.
        let mut counter =
            Self { file: unsafe { File::from_raw_fd(fd as i32) }, start: Reading::default() };
        // Some virtual machines open the counter but never schedule it: reject one that counts
        // nothing in a loop.
        counter.start();
        std::hint::black_box((0..1000u32).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
        if counter.read().is_none_or(|count| count == 0) {
            return Err(PerfUnavailable::NoCounter);
        }
        counter.stop();
        Ok(counter)
    }

    /// Starts from zero.
    pub fn start(&mut self) {
        // Not by a reset: that keeps the counts of threads that have ended.
        self.start = self.raw().unwrap_or_default();
        self.control(IOCTL_ENABLE);
    }

    pub fn stop(&mut self) {
        self.control(IOCTL_DISABLE);
    }

    /// Scales the count up if multiplexed; `None` if it never ran.
    pub fn read(&mut self) -> Option<u64> {
        let now = self.raw()?;
        scaled(
            now.count - self.start.count,
            now.enabled_ns - self.start.enabled_ns,
            now.running_ns - self.start.running_ns,
        )
    }

    fn raw(&mut self) -> Option<Reading> {
        let mut bytes = [0; 24];
        self.file.read_exact(&mut bytes).ok()?;
        let field =
            |i: usize| u64::from_ne_bytes(bytes[i * 8..i * 8 + 8].try_into().expect("eight bytes"));
        Some(Reading { count: field(0), enabled_ns: field(1), running_ns: field(2) })
    }

    fn control(&self, request: libc::c_ulong) {
        // SAFETY: these requests take no pointer. They cannot fail on a perf event descriptor.
        unsafe { libc::ioctl(self.file.as_raw_fd(), request as _, 0) };
    }
}

fn scaled(count: u64, enabled_ns: u64, running_ns: u64) -> Option<u64> {
    match running_ns {
        0 => None,
        running if running >= enabled_ns => Some(count),
        running => Some((u128::from(count) * u128::from(enabled_ns) / u128::from(running)) as u64),
    }
}

fn reason(errno: i32) -> PerfUnavailable {
    match errno {
        libc::EACCES | libc::EPERM => PerfUnavailable::NotAllowed,
        libc::ENOSYS => PerfUnavailable::NoKernelSupport,
        libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL => PerfUnavailable::NoCounter,
        libc::EBUSY | libc::EMFILE => PerfUnavailable::Taken,
        other => PerfUnavailable::Other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_reason() {
        assert_eq!(reason(libc::EACCES), PerfUnavailable::NotAllowed);
        assert_eq!(reason(libc::ENOSYS), PerfUnavailable::NoKernelSupport);
        assert_eq!(reason(libc::ENOENT), PerfUnavailable::NoCounter);
        assert!(reason(libc::EACCES).to_string().contains("perf_event_paranoid"));
        assert!(reason(77).to_string().contains("77"));
    }

    #[test]
    fn a_shared_counter_is_scaled() {
        assert_eq!(scaled(100, 10, 10), Some(100));
        assert_eq!(scaled(100, 10, 5), Some(200));
        assert_eq!(scaled(0, 10, 0), None);
    }

    #[test]
    fn counts_this_thread_and_threads_started_later() {
        let mut counter = match PerfCounter::try_open() {
            Ok(counter) => counter,
            Err(reason) => {
                // Missing hardware or kernel support cannot be fixed; a refused permission can.
                let lacking =
                    matches!(reason, PerfUnavailable::NoCounter | PerfUnavailable::NoKernelSupport);
                let required = std::env::var("HALFPOWER_REQUIRE").as_deref() == Ok("all");
                assert!(lacking || !required, "required, and counters can be had here: {reason}");
                return eprintln!("skipped: {reason}");
            }
        };
        let work = || {
            std::hint::black_box((0..3_000_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)))
        };
        counter.start();
        work();
        let alone = counter.read().unwrap();
        assert!(alone >= 3_000_000, "{alone} instructions in a loop of three million turns");
        counter.start();
        std::thread::scope(|scope| {
            scope.spawn(work);
            scope.spawn(work);
        });
        counter.stop();
        let both = counter.read().unwrap();
        assert!(both >= 2 * alone - alone / 4, "{both} by two threads, {alone} by one");
        work();
        assert_eq!(counter.read(), Some(both), "stopped");
    }
}
