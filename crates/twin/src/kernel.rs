//! Simultaneous events are taken in the order they were scheduled, so a run is the same on every
//! machine.

use machine::Nanos;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

struct Entry<E> {
    at: Nanos,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    /// Reversed: the standard library's heap is a max-heap.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

pub struct Kernel<E> {
    heap: BinaryHeap<Entry<E>>,
    sequence: u64,
    now: Nanos,
    handled: u64,
}

impl<E> Kernel<E> {
    pub fn new(now: Nanos) -> Self {
        Kernel { heap: BinaryHeap::with_capacity(64), sequence: 0, now, handled: 0 }
    }

    pub fn now(&self) -> Nanos {
        self.now
    }

    pub fn handled(&self) -> u64 {
        self.handled
    }

    pub fn at(&mut self, at: Nanos, event: E) {
        let at = at.max(self.now);
        self.sequence += 1;
        self.heap.push(Entry { at, sequence: self.sequence, event });
    }

    pub fn take(&mut self) -> Option<E> {
        let entry = self.heap.pop()?;
        self.now = entry.at;
        self.handled += 1;
        Some(entry.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_by_time_then_by_order_of_scheduling(times in proptest::collection::vec(0u64..20, 1..200)) {
            let mut kernel = Kernel::new(0);
            for (index, &time) in times.iter().enumerate() {
                kernel.at(time, index);
            }
            let mut expected: Vec<(u64, usize)> = times.iter().copied().zip(0..).collect();
            expected.sort();
            let mut seen = Vec::new();
            while let Some(index) = kernel.take() {
                seen.push((kernel.now(), index));
            }
            prop_assert_eq!(seen, expected);
        }
    }

    #[test]
    fn the_clock_never_goes_back() {
        let mut kernel = Kernel::new(100);
        kernel.at(50, "late");
        assert_eq!(kernel.take(), Some("late"));
        assert_eq!(kernel.now(), 100);
    }
}
