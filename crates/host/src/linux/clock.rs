//! The time-stamp counter if it is invariant and agrees with the kernel's clock, else
//! `clock_gettime`.

use crate::session::Time;
use machine::Nanos;
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    base_ticks: u64,
    base_ns: Nanos,
    /// Nanoseconds per tick times 2^32; 0 without a counter.
    factor: u64,
}

/// Its ends are accurate to about 15 ns (see [`together`]), so 60 ppm.
const CALIBRATION_NS: Nanos = 500_000;

const TRIES: usize = 8;

static CLOCK: OnceLock<Clock> = OnceLock::new();

static FIRST: OnceLock<(u64, Nanos)> = OnceLock::new();

impl Clock {
    pub(crate) fn begin() {
        FIRST.get_or_init(together);
    }

    pub(crate) fn get() -> Clock {
        *CLOCK.get_or_init(Clock::calibrate)
    }

    pub(crate) fn start(&self) -> Nanos {
        self.base_ns
    }

    pub(crate) fn source(&self) -> &'static str {
        if self.factor == 0 { "clock_gettime" } else { "tsc" }
    }

    fn calibrate() -> Clock {
        let (base_ticks, base_ns) = *FIRST.get_or_init(together);
        let plain = Clock { base_ticks, base_ns, factor: 0 };
        if !counter_is_invariant() {
            return plain;
        }
        while kernel_now() < base_ns + CALIBRATION_NS {
            std::hint::spin_loop();
        }
        let (end_ticks, end_ns) = together();
        let passed_ticks = end_ticks.wrapping_sub(base_ticks);
        if passed_ticks == 0 {
            return plain;
        }
        let factor = ((u128::from(end_ns - base_ns)) << 32) / u128::from(passed_ticks);
        Clock { base_ticks, base_ns, factor: u64::try_from(factor).unwrap_or(0) }
    }
}

impl Time for Clock {
    #[inline(always)]
    fn now(self) -> Nanos {
        if self.factor == 0 {
            return kernel_now();
        }
        let passed = ticks().wrapping_sub(self.base_ticks);
        self.base_ns + ((u128::from(passed) * u128::from(self.factor)) >> 32) as u64
    }

    /// Spins at the end, because a sleep ends late.
    fn pass(self, for_ns: Nanos) {
        const SPIN_NS: Nanos = 60_000;
        let end = self.now() + for_ns;
        if for_ns > SPIN_NS {
            std::thread::sleep(std::time::Duration::from_nanos(for_ns - SPIN_NS));
        }
        while self.now() < end {
            std::hint::spin_loop();
        }
    }
}

/// The closest of several pairs: interrupts come between.
fn together() -> (u64, Nanos) {
    let once = |_| {
        let before = ticks();
        let now = kernel_now();
        let apart = ticks().wrapping_sub(before);
        (apart, before.wrapping_add(apart / 2), now)
    };
    let (_, ticks, now) = (0..TRIES)
        .map(once)
        .min_by_key(|tried| tried.0)
        .unwrap_or_else(|| (0, ticks(), kernel_now()));
    (ticks, now)
}

pub(crate) fn kernel_now() -> Nanos {
    read(libc::CLOCK_MONOTONIC)
}

pub(crate) fn boot_now() -> Nanos {
    read(libc::CLOCK_BOOTTIME)
}

fn read(clock: libc::clockid_t) -> Nanos {
    // The C library's call: rustix reads the vdso itself, which crashes under valgrind.
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; every supported Linux has both clocks.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ticks() -> u64 {
    // SAFETY: rdtsc exists on every x86_64.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

#[cfg(target_arch = "x86_64")]
fn counter_is_invariant() -> bool {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flagged = flags
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.contains(" constant_tsc") && line.contains(" nonstop_tsc"));
    let source =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .unwrap_or_default();
    flagged && matches!(source.trim(), "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page")
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_invariant() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_kernel_and_never_goes_back() {
        let clock = Clock::get();
        // Bracketed by kernel readings, so a pause of this thread does not matter.
        let read = || (kernel_now(), clock.now(), kernel_now());
        let (first_before, start, first_after) = read();
        let mut last = start;
        while kernel_now() < first_after + 20_000_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        let (end_before, end, end_after) = read();
        let passed = (end - start) as f64;
        let (min, max) = ((end_before - first_after) as f64, (end_after - first_before) as f64);
        assert!(
            passed >= min * 0.995 && passed <= max * 1.005,
            "{passed} ns, and {min} to {max} by the kernel"
        );
    }
}
