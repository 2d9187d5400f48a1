//! `rate_min` and `rate_iops_min`.

use machine::Nanos;

/// Of reads and of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinRates {
    /// Per second.
    pub bytes: [Option<u64>; 2],
    /// Per second; ignored with `rate_min`.
    pub requests: [Option<u64>; 2],
    /// Minimum time of a measurement.
    pub cycle_ns: Nanos,
}

impl Default for MinRates {
    fn default() -> Self {
        MinRates { bytes: [None; 2], requests: [None; 2], cycle_ns: 1_000_000_000 }
    }
}

impl MinRates {
    pub fn any(&self) -> bool {
        self.bytes != [None; 2] || self.requests != [None; 2]
    }
}
