//! The number of requests under way.

use machine::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Beyond it, the earliest to end is left out.
const MAX_FOLLOWED: usize = 1 << 16;

/// Requests under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Concurrency {
    /// Mean number of requests under way while there is at least one.
    pub mean: f64,
    pub max: u64,
    /// Time with at least one request under way, in nanoseconds.
    pub busy_ns: Nanos,
}

/// Takes requests in the order of their start.
#[derive(Default)]
pub(super) struct Occupancy {
    ends: BinaryHeap<Reverse<Nanos>>,
    busy_until: Nanos,
    busy_ns: Nanos,
    spent_ns: Nanos,
    max: u64,
}

impl Occupancy {
    pub(super) fn add(&mut self, start: Nanos, duration: Nanos) {
        let end = start.saturating_add(duration);
        while self.ends.peek().is_some_and(|&Reverse(end)| end <= start) {
            self.ends.pop();
        }
        if self.ends.len() == MAX_FOLLOWED {
            self.ends.pop();
        }
        self.ends.push(Reverse(end));
        self.max = self.max.max(self.ends.len() as u64);
        self.spent_ns = self.spent_ns.saturating_add(duration);
        let from = start.max(self.busy_until);
        self.busy_ns = self.busy_ns.saturating_add(end.saturating_sub(from));
        self.busy_until = self.busy_until.max(end);
    }

    pub(super) fn concurrency(&self) -> Option<Concurrency> {
        (self.busy_ns > 0).then(|| Concurrency {
            mean: self.spent_ns as f64 / self.busy_ns as f64,
            max: self.max,
            busy_ns: self.busy_ns,
        })
    }
}
