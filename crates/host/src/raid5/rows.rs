//! Row locks: concurrent updates of one row's parity would corrupt it.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows with the same mark wait for each other unnecessarily, which is rare.
const MARKS: usize = 4096;

#[derive(Debug)]
pub(crate) struct BusyRows(Box<[AtomicBool]>);

impl Default for BusyRows {
    fn default() -> Self {
        BusyRows((0..MARKS).map(|_| AtomicBool::new(false)).collect())
    }
}

impl BusyRows {
    fn marks(&self, rows: &Range<u64>) -> impl Iterator<Item = &AtomicBool> {
        let count = (rows.end - rows.start).min(MARKS as u64);
        (rows.start..rows.start + count).map(|row| &self.0[row as usize % MARKS])
    }

    /// All rows or none: a waiting request holds none, so deadlock is impossible.
    pub(crate) fn take(&self, rows: &Range<u64>) -> bool {
        for (taken, mark) in self.marks(rows).enumerate() {
            if mark.swap(true, Ordering::Acquire) {
                self.marks(rows).take(taken).for_each(|mark| mark.store(false, Ordering::Release));
                return false;
            }
        }
        true
    }

    pub(crate) fn give_back(&self, rows: &Range<u64>) {
        self.marks(rows).for_each(|mark| mark.store(false, Ordering::Release));
    }

    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|mark| mark.store(false, Ordering::Release));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_locked_all_or_none() {
        let rows = BusyRows::default();
        assert!(rows.take(&(3..6)));
        assert!(!rows.take(&(1..4)) && !rows.take(&(5..9)));
        assert!(rows.take(&(1..3)), "a refused request left nothing taken");
        rows.give_back(&(3..6));
        assert!(rows.take(&(3..9)));
        rows.clear();
        // More rows than marks: lock all of them once.
        assert!(rows.take(&(10..10 + 2 * MARKS as u64)) && !rows.take(&(0..1)));
        rows.give_back(&(10..10 + 2 * MARKS as u64));
        assert!(rows.take(&(0..1)));
    }
}
