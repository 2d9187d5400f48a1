//! Requests are known at their end and written by their start.

use apptrace::Request;
use machine::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Requests held back: 12 MB.
const MAX_HELD: usize = 1 << 17;

struct Held {
    key: Reverse<(Nanos, u64)>,
    request: Request,
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.key == other.key
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

#[derive(Default)]
pub(super) struct Order {
    heap: BinaryHeap<Held>,
    count: u64,
}

impl Order {
    pub(super) fn add(&mut self, request: Request) {
        self.count += 1;
        self.heap.push(Held { key: Reverse((request.at_ns, self.count)), request });
    }

    pub(super) fn next(&mut self, horizon: Nanos) -> Option<Request> {
        let Reverse((at, _)) = self.heap.peek()?.key;
        (at < horizon || self.heap.len() > MAX_HELD)
            .then(|| self.heap.pop())?
            .map(|held| held.request)
    }
}
