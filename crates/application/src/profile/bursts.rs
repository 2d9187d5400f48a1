//! Seconds with writes, and their pauses.

use machine::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const PAUSE_S: u64 = 3;

/// Seconds with writes, and the pauses between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bursts {
    pub count: u64,
    pub mean_s: f64,
    /// Writes of the busiest second, against the mean of the whole recording.
    pub peak_over_mean: f64,
}

/// Takes writes in about the order of their start.
#[derive(Default)]
pub(super) struct BurstCounter {
    current: Option<Burst>,
    ended: u64,
    active_s: u64,
    writes: u64,
    peak: u64,
}

#[derive(Clone, Copy)]
struct Burst {
    first: u64,
    last: u64,
    in_last: u64,
}

impl BurstCounter {
    pub(super) fn add(&mut self, at_ns: Nanos) {
        let second = at_ns / 1_000_000_000;
        self.writes += 1;
        let burst = match self.current {
            Some(burst) if second <= burst.last => Burst { in_last: burst.in_last + 1, ..burst },
            Some(burst) if second <= burst.last + PAUSE_S => {
                Burst { last: second, in_last: 1, ..burst }
            }
            before => {
                self.ended += u64::from(before.is_some());
                self.active_s += before.map_or(0, |burst| burst.last + 1 - burst.first);
                Burst { first: second, last: second, in_last: 1 }
            }
        };
        self.peak = self.peak.max(burst.in_last);
        self.current = Some(burst);
    }

    pub(super) fn count(&self) -> u64 {
        self.ended + u64::from(self.current.is_some())
    }

    pub(super) fn bursts(&self, elapsed_ns: Nanos) -> Option<Bursts> {
        let burst = self.current?;
        let active = self.active_s + burst.last + 1 - burst.first;
        let mean = self.writes as f64 / (elapsed_ns as f64 / 1e9).max(1.0);
        Some(Bursts {
            count: self.count(),
            mean_s: active as f64 / self.count() as f64,
            peak_over_mean: self.peak as f64 / mean,
        })
    }
}
