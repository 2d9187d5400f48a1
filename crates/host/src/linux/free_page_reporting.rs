//! A guest reports free memory to its hypervisor (virtio 1.2, section 5.5.6.7), which must find
//! each page again at its next use. A page cache that grows into it fills at a fifteenth of its
//! usual rate (docs/performance.md), depending on the seconds before. So a run that fills the cache
//! first uses as much memory.

use super::facts::Roots;
use super::sys;
use machine::units::MIB;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// VIRTIO_BALLOON_F_PAGE_REPORTING of the balloon device.
const REPORTING_BIT: usize = 5;

/// Less missing memory does not affect a run.
const MIN_BYTES: u64 = 4 * MIB;

const STEP: u64 = MIB;

const LONGEST: Duration = Duration::from_secs(2);

/// After this time, a target that is slower than memory comes back is the limit itself.
const TRIAL: Duration = Duration::from_millis(100);
const SLOW_BYTES_PER_S: f64 = 200e6;

/// A pass this much faster than the last asks for another, as the kernel uses different pages.
const FASTER: f64 = 1.3;
const PASSES: u32 = 5;

/// The total speedup from which memory was the limit.
const TAKEN: f64 = 3.0;

pub(crate) fn reclaims_free_memory(roots: &Roots) -> bool {
    let driver = roots.sys.join("bus/virtio/drivers/virtio_balloon");
    let features = |device| std::fs::read(driver.join(device).join("features")).unwrap_or_default();
    files::entries(&driver).map(features).any(|bits| bits.get(REPORTING_BIT) == Some(&b'1'))
}

/// First reads what the range lacks of `wanted` bytes; returns a sentence if memory had been
/// reclaimed.
pub(crate) fn drop_cache(
    file: &File,
    (start, len): (u64, u64),
    wanted: u64,
    interrupt: &AtomicBool,
) -> Option<String> {
    let missing = wanted.min(len).saturating_sub(sys::cached_bytes(file, start, len).unwrap_or(0));
    if missing < MIN_BYTES {
        sys::drop_cache(file, start, len);
        return None;
    }
    let end = start + len;
    // Keep what is cached until the rest is there, or the rest would reuse its pages.
    let first = fill(file, (end - missing, end), interrupt);
    sys::drop_cache(file, start, len);
    let mut last = first?;
    let first = last;
    for _ in 1..PASSES {
        let again = fill(file, (end - wanted.min(len), end), interrupt);
        sys::drop_cache(file, start, len);
        let before = std::mem::replace(&mut last, again?);
        if last < before * FASTER {
            break;
        }
    }
    (last > first * TAKEN).then(|| {
        "this computer's host takes back memory that lies free (free page reporting): a page cache that grows into it is slow, so it was brought back \
         before the runs"
            .into()
    })
}

/// Bytes per second.
fn fill(file: &File, (start, end): (u64, u64), interrupt: &AtomicBool) -> Option<f64> {
    let mut buffer = vec![0u8; STEP as usize];
    let began = Instant::now();
    let mut at = start;
    let rate = |at: u64| (at - start) as f64 / began.elapsed().as_secs_f64();
    while at < end && began.elapsed() < LONGEST {
        if interrupt.load(Ordering::Relaxed)
            || began.elapsed() > TRIAL && rate(at) < SLOW_BYTES_PER_S
        {
            return None;
        }
        // Read errors are reported by the run.
        let got = file
            .read_at(&mut buffer[..(end - at).min(STEP) as usize], at)
            .ok()
            .filter(|&got| got > 0)?;
        at += got as u64;
    }
    Some(rate(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn balloon(features: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sys/bus/virtio/drivers/virtio_balloon/virtio0");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("features"), features).unwrap();
        root
    }

    #[test]
    fn the_balloon_feature_shows_free_page_reporting() {
        let reported =
            |features: &str| reclaims_free_memory(&Roots::below(balloon(features).path()));
        assert!(reported("0110010100000000000000000000000010000000\n"));
        assert!(!reported("0110000100000000000000000000000010000000\n"));
        assert!(!reported(""));
        assert!(!reclaims_free_memory(&Roots::below(tempfile::tempdir().unwrap().path())));
    }

    #[test]
    fn the_range_is_dropped_from_the_cache() {
        // On disk: an in-memory file system keeps its pages.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = directory.path().join("file");
        fs::write(&path, vec![1u8; 16 << 20]).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        let cached = match sys::cached_bytes(&file, 0, 16 << 20) {
            Ok(cached) => cached,
            Err(error) => {
                assert!(
                    std::env::var_os("HALFPOWER_REQUIRE").is_none(),
                    "cachestat is required: {error}"
                );
                return eprintln!("skipped: the kernel has no cachestat: {error}");
            }
        };
        assert_eq!(cached, 16 << 20);
        assert_eq!(sys::cached_bytes(&file, 1 << 20, 2 << 20).unwrap(), 2 << 20);
        for wanted in [0, 8 << 20, u64::MAX] {
            drop_cache(&file, (0, 16 << 20), wanted, &AtomicBool::new(false));
            assert_eq!(sys::cached_bytes(&file, 0, 16 << 20).unwrap(), 0, "{wanted}");
        }
        fill(&file, (4 << 20, 8 << 20), &AtomicBool::new(false)).unwrap();
        let cached = sys::cached_bytes(&file, 4 << 20, 4 << 20).unwrap();
        assert_eq!(cached, 4 << 20);
        assert!(fill(&file, (0, 1 << 20), &AtomicBool::new(true)).is_none());
    }
}
