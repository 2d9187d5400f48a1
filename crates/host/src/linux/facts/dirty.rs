//! Dirty pages, and the point from which the kernel throttles writers.

use super::{Roots, text};
use machine::DirtyUse;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Mutex;

/// Writers count as throttled from here: dirty pages oscillate around the limit.
const HELD_PERCENT: f64 = 95.0;

/// A CPU counts up to this many pages locally (mm/vmstat.c).
const UNCOUNTED_PAGES: f64 = 125.0;

const UNCOUNTED_SHARE: f64 = 0.02;

pub(crate) struct DirtyWatch {
    roots: Roots,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    looks: u32,
    held: u32,
    max: f64,
}

impl DirtyWatch {
    pub(crate) fn new(roots: Roots) -> DirtyWatch {
        DirtyWatch { roots, seen: Mutex::default() }
    }

    pub(crate) fn look(&self) {
        let Some(percent) = dirty_percent(&self.roots) else { return };
        let Ok(mut seen) = self.seen.lock() else { return };
        seen.looks += 1;
        seen.held += u32::from(percent >= HELD_PERCENT);
        seen.max = seen.max.max(percent);
    }

    pub(crate) fn so_far(&self) -> Option<DirtyUse> {
        self.look();
        let seen = self.seen.lock().ok().filter(|seen| seen.looks > 0)?;
        let held_percent = f64::from(seen.held) / f64::from(seen.looks) * 100.0;
        Some(DirtyUse { max_percent: seen.max, held_percent })
    }
}

/// At 100 % `balance_dirty_pages` starts to throttle: halfway between both thresholds ("freerun",
/// mm/page-writeback.c).
fn dirty_percent(roots: &Roots) -> Option<f64> {
    let read = || Pages::of(&text(roots.proc.join("vmstat"))?);
    let reported = read()?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let exact =
        processors * UNCOUNTED_PAGES <= reported.held_from * UNCOUNTED_SHARE || !refresh(roots);
    Some(if exact { reported } else { read()? }.percent())
}

fn refresh(roots: &Roots) -> bool {
    let file = OpenOptions::new().write(true).open(roots.proc.join("sys/vm/stat_refresh"));
    file.and_then(|mut file| file.write_all(b"1")).is_ok()
}

struct Pages {
    dirty: f64,
    held_from: f64,
}

impl Pages {
    fn of(vmstat: &str) -> Option<Pages> {
        let count = |name: &str| {
            vmstat.lines().find_map(|line| {
                line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok()
            })
        };
        let dirty = count("nr_dirty")?.saturating_add(count("nr_writeback")?) as f64;
        let held_from = count("nr_dirty_threshold")?
            .saturating_add(count("nr_dirty_background_threshold")?) as f64
            / 2.0;
        (held_from > 0.0).then_some(Pages { dirty, held_from })
    }

    fn percent(&self) -> f64 {
        self.dirty / self.held_from * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_throttled_halfway_between_the_thresholds() {
        let vmstat = |dirty: u64| {
            format!(
                "nr_free_pages 7\nnr_dirty {dirty}\nnr_writeback 100\nnr_writeback_temp 9000\nnr_dirty_threshold 1000\n\
                 nr_dirty_background_threshold 500\n"
            )
        };
        let percent = |text: &str| Pages::of(text).map(|pages| pages.percent());
        assert_eq!(percent(&vmstat(275)), Some(50.0));
        assert_eq!(percent(&vmstat(800)), Some(120.0));
        assert_eq!(
            percent("nr_dirty 5\nnr_writeback 1\n"),
            None,
            "thresholds that are not reported"
        );
        assert_eq!(
            percent(
                "nr_dirty 5\nnr_writeback 1\nnr_dirty_threshold 0\nnr_dirty_background_threshold 0\n"
            ),
            None
        );
        assert!(
            dirty_percent(&Roots::default())
                .is_some_and(|percent| (0.0..1000.0).contains(&percent))
        );
    }

    #[test]
    fn the_maximum_of_a_run_is_kept() {
        let proc = tempfile::tempdir().unwrap();
        let watch = DirtyWatch::new(Roots { proc: proc.path().to_path_buf(), ..Roots::default() });
        assert_eq!(watch.so_far(), None, "nothing is reported");
        let dirty = |pages: u64| {
            let text = format!(
                "nr_dirty {pages}\nnr_writeback 0\nnr_dirty_threshold 1000\nnr_dirty_background_threshold 500\n"
            );
            std::fs::write(proc.path().join("vmstat"), text).unwrap();
        };
        for pages in [0, 750, 900] {
            dirty(pages);
            watch.look();
        }
        dirty(75);
        assert_eq!(watch.so_far(), Some(DirtyUse { max_percent: 120.0, held_percent: 50.0 }));
    }
    #[test]
    fn per_cpu_counts_are_flushed_if_the_limit_is_low() {
        let proc = tempfile::tempdir().unwrap();
        let roots = Roots { proc: proc.path().to_path_buf(), ..Roots::default() };
        let added = proc.path().join("sys/vm/stat_refresh");
        let look = |threshold: u64| {
            let text = format!(
                "nr_dirty 100\nnr_writeback 0\nnr_dirty_threshold {threshold}\nnr_dirty_background_threshold {threshold}\n"
            );
            std::fs::write(proc.path().join("vmstat"), text).unwrap();
            dirty_percent(&roots)
        };
        assert_eq!(
            (look(200), added.exists()),
            (Some(50.0), false),
            "without permission the count is not refreshed"
        );
        std::fs::create_dir_all(added.parent().unwrap()).unwrap();
        std::fs::write(&added, "").unwrap();
        let asked = || std::fs::read_to_string(&added).unwrap();
        assert!(look(1_000_000_000).is_some_and(|percent| percent < 0.1) && asked().is_empty());
        assert_eq!((look(200), asked().as_str()), (Some(50.0), "1"));
    }
}
