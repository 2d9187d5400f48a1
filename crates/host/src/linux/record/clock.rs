//! The monotonic clock takes twice as long as the processor's time stamp. If the kernel keeps time
//! by this, so do the events, which are converted afterwards.

use crate::linux::trace_instance::TraceInstance;
use machine::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::fs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    ticks: u64,
    at: Nanos,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TraceClock {
    /// The first pair and the last; `None` if the events have the monotonic clock already.
    pairs: Option<[Pair; 2]>,
}

/// Closer pairs give an inaccurate rate.
const MIN_APART_NS: Nanos = 20_000_000;

impl TraceClock {
    pub(super) fn monotonic_clock() -> TraceClock {
        TraceClock { pairs: None }
    }

    pub(super) fn choose(instance: &TraceInstance) -> TraceClock {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let by_ticks = fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc");
        let offered = fs::read_to_string(instance.path("trace_clock"))
            .is_ok_and(|names| names.split_whitespace().any(|name| name == NAME));
        let start = if by_ticks && offered { Pair::now() } else { None };
        let pairs = start.map(|first| {
            std::thread::sleep(std::time::Duration::from_nanos(MIN_APART_NS));
            [first, Pair::now().unwrap_or(first)]
        });
        TraceClock { pairs }
    }

    /// The instance must have no events yet.
    pub(super) fn set(self, instance: &TraceInstance) -> std::io::Result<()> {
        if self.pairs.is_some() { instance.set("trace_clock", NAME) } else { Ok(()) }
    }

    pub(super) fn look(&mut self) {
        if let (Some(pairs), Some(now)) = (&mut self.pairs, Pair::now()) {
            pairs[1] = now;
        }
    }

    pub(super) fn monotonic(&self, time: u64) -> Nanos {
        let Some([first, last]) = self.pairs else { return time };
        if last.ticks == first.ticks {
            return last.at;
        }
        let rate = (last.at - first.at) as f64 / (last.ticks - first.ticks) as f64;
        // From the last one on, or back: the error of the rate stays small.
        let since = time.wrapping_sub(last.ticks) as i64;
        last.at.saturating_add_signed((since as f64 * rate) as i64)
    }
}

const NAME: &str = "x86-tsc";

impl Pair {
    #[cfg(target_arch = "x86_64")]
    fn now() -> Option<Pair> {
        // SAFETY: every processor of this architecture has the instruction, and the kernel, which
        // keeps time by it, lets programs use it.
        let ticks = || unsafe { std::arch::x86_64::_rdtsc() };
        // The shortest reading is the most exact: interrupts lengthen it.
        let read = |_| {
            let before = ticks();
            let time = clock_gettime(ClockId::Monotonic);
            let after = ticks();
            (after - before, before / 2 + after / 2, time)
        };
        let (_, ticks, time) = (0..5).map(read).min_by_key(|(length, ..)| *length)?;
        Some(Pair { ticks, at: time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos })
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn now() -> Option<Pair> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_converted_by_the_last_pair() {
        let none = TraceClock { pairs: None };
        assert_eq!(none.monotonic(7), 7);
        let pairs = [Pair { ticks: 1000, at: 500 }, Pair { ticks: 3_001_000, at: 1_000_500 }];
        let clock = TraceClock { pairs: Some(pairs) };
        assert_eq!(clock.monotonic(3_001_000), 1_000_500);
        assert_eq!(clock.monotonic(2_701_000), 900_500);
        assert_eq!(clock.monotonic(3_301_000), 1_100_500);
    }

    #[test]
    fn the_time_stamp_is_the_monotonic_clock_after_conversion() {
        let Some(first) = Pair::now() else { return };
        std::thread::sleep(std::time::Duration::from_millis(50));
        let Some(last) = Pair::now() else { return };
        let clock = TraceClock { pairs: Some([first, last]) };
        std::thread::sleep(std::time::Duration::from_millis(20));
        let Some(later) = Pair::now() else { return };
        let off = clock.monotonic(later.ticks).abs_diff(later.at);
        // 20 ms at a rate that is known to a part in ten thousand.
        assert!(off < 20_000, "{off} ns");
    }
}
