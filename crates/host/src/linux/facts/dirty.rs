//! Dirty pages, and from how many on the kernel holds those who write.

use super::{Roots, text};

/// The system's dirty pages in percent of where `balance_dirty_pages` begins to hold writers: halfway between the threshold at which
/// write-back starts and the one that is never passed (the "freerun" ceiling of mm/page-writeback.c).
pub(crate) fn dirty_percent(roots: &Roots) -> Option<f64> {
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
}
