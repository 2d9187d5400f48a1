//! The rules of test files: names, sizes and contents.

use crate::session::Time;
use machine::mark::is_mark;
use machine::{Error, Nanos, Result, fill_random, fill_seed, units};
use std::sync::atomic::{AtomicBool, Ordering};

const PREFIX: &str = "halfpower-";

const AUTO_MIN: u64 = machine::MIN_FILLED_BYTES;
const AUTO_MAX: u64 = 2 * units::GIB;

/// Divides the free bytes.
const FREE_SHARE: u64 = 4;

const LARGER: &str = "give at least one request, such as 4 KiB";

pub(crate) const STEP: usize = machine::FILL_STEP as usize;

pub(crate) fn name(mark: &str, suffix: &str) -> String {
    format!("{PREFIX}{mark}{suffix}")
}

pub(crate) fn is_our_name(name: &str, suffix: &str, inode: u64) -> bool {
    name.strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(suffix))
        .is_some_and(|mark| is_mark(mark, inode))
}

/// By default a quarter of the free space, at most 2 GiB. `shown` is the directory, for errors.
pub(crate) fn size(asked: Option<u64>, free: Option<u64>, shown: &str) -> Result<u64> {
    let show_free = |free: u64| units::show_size_rounded(free as f64);
    match (asked, free) {
        (Some(0), _) => Err(Error::refused("0 B", "no request fits in it", LARGER)),
        (Some(size), Some(free)) if size > free => {
            let (size, free) = (units::show_size(size), show_free(free));
            let why = format!("a test file of {size} does not fit in the {free} of free space");
            Err(Error::Full {
                what: shown.into(),
                why,
                hint: "free some space or give a smaller --size".into(),
            })
        }
        (Some(size), _) => Ok(size),
        (None, None) => Err(Error::refused(
            shown,
            "the file system does not report how much space is free",
            "give --size",
        )),
        (None, Some(free)) => {
            let max = (free / FREE_SHARE).min(AUTO_MAX) / units::MIB * units::MIB;
            if max < units::MIB {
                let why = format!(
                    "only {} are free, and a test file uses at most a quarter of that",
                    show_free(free)
                );
                return Err(Error::refused(shown, why, "free some space or give --size"));
            }
            Ok(max)
        }
    }
}

pub(crate) fn region(asked: Option<u64>, there: u64, shown: &str) -> Result<u64> {
    match asked {
        Some(0) => {
            Err(Error::refused(format!("{shown}: --size 0 B"), "no request fits in it", LARGER))
        }
        Some(size) if size > there => Err(Error::refused(
            shown,
            format!(
                "--size {} is more than its {}",
                units::show_size(size),
                units::show_size(there)
            ),
            "give a smaller size, or none",
        )),
        asked => Ok(asked.unwrap_or(there)),
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Fill<'a> {
    /// Of an existing target: its data before this byte stay.
    pub(crate) from: u64,
    /// `None`: as much as `within_ns` allows, between minimum and maximum.
    pub(crate) size: Option<u64>,
    pub(crate) within_ns: Nanos,
    pub(crate) seed: u64,
    pub(crate) interrupt: &'a AtomicBool,
}

impl Fill<'_> {
    /// Ends at `max` or, without a size, at the time limit but not below the minimum.
    pub(crate) fn write(
        &self,
        max: u64,
        buffer: &mut [u8],
        time: impl Time,
        mut write: impl FnMut(&[u8], u64) -> Result<()>,
    ) -> Result<u64> {
        let start = time.now();
        let from = self.from.min(max);
        let step = buffer.len() as u64;
        // The data depend on where the whole step begins.
        let mut written = from / step * step;
        while written < max {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let there = written.saturating_sub(from);
            if self.size.is_none() && there >= AUTO_MIN && time.now() - start > self.within_ns {
                break;
            }
            let now = step.min(max - written);
            fill_random(fill_seed(self.seed, written), &mut buffer[..now as usize]);
            let kept = from.saturating_sub(written);
            write(&buffer[kept as usize..now as usize], written + kept)?;
            written += now;
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::mark::mark;

    #[test]
    fn a_mark_belongs_to_one_file() {
        let own = name(&mark(77, 1234), ".tmp");
        assert!(is_our_name(&own, ".tmp", 1234));
        assert!(!is_our_name(&own, ".tmp", 1235), "a copy has another number");
        assert!(!is_our_name(&own, ".files", 1234));
        for name in [
            "halfpower-1-2.tmp",
            "halfpower-mine.tmp",
            "halfpower-2024-11.tmp",
            "halfpower-.tmp",
            "notes",
        ] {
            assert!(!is_our_name(name, ".tmp", 1234), "{name}");
        }
    }

    #[test]
    fn sizes_are_bounded_by_free_space() {
        assert_eq!(size(Some(8192), Some(8192), "d").unwrap(), 8192);
        assert_eq!(size(None, Some(100 * units::MIB), "d").unwrap(), 25 * units::MIB);
        assert_eq!(size(None, Some(1 << 50), "d").unwrap(), AUTO_MAX);
        for (asked, free) in
            [(Some(0), None), (Some(9000), Some(8192)), (None, None), (None, Some(units::MIB))]
        {
            assert!(size(asked, free, "d").unwrap_err().is_usage(), "{asked:?} {free:?}");
        }
        assert_eq!(size(Some(1), Some(8192), "d").unwrap(), 1);
        assert_eq!(region(None, 9000, "f").unwrap(), 9000);
        assert_eq!(region(Some(1), 9000, "f").unwrap(), 1);
        assert!(region(Some(9001), 9000, "f").unwrap_err().to_string().contains("more than its"));
    }
}
