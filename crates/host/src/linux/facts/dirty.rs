//! Dirty pages, and from how many on the kernel holds those who write.

use super::{Roots, text};
use machine::DirtyUse;
use std::sync::Mutex;

/// Writers are held from so many percent on: the dirty pages swing around the number.
const HELD_PERCENT: f64 = 95.0;

/// Sees how many pages are dirty while a run writes.
pub(crate) struct DirtyWatch {
    roots: Roots,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    looks: u32,
    held: u32,
    most: f64,
}

impl DirtyWatch {
    pub(crate) fn new(roots: Roots) -> DirtyWatch {
        DirtyWatch { roots, seen: Mutex::default() }
    }

    /// Looks now; a system that does not tell has no dirty pages to be seen.
    pub(crate) fn look(&self) {
        let Some(percent) = dirty_percent(&self.roots) else { return };
        let Ok(mut seen) = self.seen.lock() else { return };
        seen.looks += 1;
        seen.held += u32::from(percent >= HELD_PERCENT);
        seen.most = seen.most.max(percent);
    }

    /// What was seen so far, with one last look.
    pub(crate) fn so_far(&self) -> Option<DirtyUse> {
        self.look();
        let seen = self.seen.lock().ok().filter(|seen| seen.looks > 0)?;
        let held_percent = f64::from(seen.held) / f64::from(seen.looks) * 100.0;
        Some(DirtyUse { most_percent: seen.most, held_percent })
    }
}

/// The system's dirty pages in percent of where `balance_dirty_pages` begins to hold writers: halfway between the threshold at which
/// write-back starts and the one that is never passed (the "freerun" ceiling of mm/page-writeback.c).
fn dirty_percent(roots: &Roots) -> Option<f64> {
    of_vmstat(&text(roots.proc.join("vmstat"))?)
}

/// The same of the text of `/proc/vmstat`, which counts pages.
fn of_vmstat(vmstat: &str) -> Option<f64> {
    let count = |name: &str| {
        vmstat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
    };
    let dirty = count("nr_dirty")?.saturating_add(count("nr_writeback")?) as f64;
    let held_from = count("nr_dirty_threshold")?.saturating_add(count("nr_dirty_background_threshold")?) as f64 / 2.0;
    (held_from > 0.0).then(|| dirty / held_from * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_held_halfway_between_the_two_thresholds() {
        let vmstat = |dirty: u64| {
            format!(
                "nr_free_pages 7\nnr_dirty {dirty}\nnr_writeback 100\nnr_writeback_temp 9000\nnr_dirty_threshold 1000\n\
                 nr_dirty_background_threshold 500\n"
            )
        };
        assert_eq!(of_vmstat(&vmstat(275)), Some(50.0));
        assert_eq!(of_vmstat(&vmstat(800)), Some(120.0));
        assert_eq!(of_vmstat("nr_dirty 5\nnr_writeback 1\n"), None, "thresholds that are not told");
        assert_eq!(
            of_vmstat("nr_dirty 5\nnr_writeback 1\nnr_dirty_threshold 0\nnr_dirty_background_threshold 0\n"),
            None
        );
        assert!(dirty_percent(&Roots::default()).is_some_and(|percent| (0.0..1000.0).contains(&percent)));
    }

    #[test]
    fn the_most_of_a_run_is_kept_though_it_ends_with_few() {
        let proc = tempfile::tempdir().unwrap();
        let watch = DirtyWatch::new(Roots { proc: proc.path().to_path_buf(), ..Roots::default() });
        assert_eq!(watch.so_far(), None, "nothing is told");
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
        assert_eq!(watch.so_far(), Some(DirtyUse { most_percent: 120.0, held_percent: 50.0 }));
    }
}
