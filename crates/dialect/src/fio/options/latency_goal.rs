//! `latency_target` and `max_latency`.

use super::value::Reason;
use machine::Nanos;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyGoal {
    /// From issue to completion; 0: no target.
    pub target_ns: Nanos,
    pub window_ns: Nanos,
    /// Requests of a window that must meet the target.
    pub percent: f64,
    /// `latency_run`: searches until the job ends.
    pub goes_on: bool,
    /// Of reads and writes; a slower request fails the job. 0: no limit.
    pub max_ns: [Nanos; 2],
}

impl Default for LatencyGoal {
    fn default() -> Self {
        LatencyGoal { target_ns: 0, window_ns: 0, percent: 100.0, goes_on: false, max_ns: [0; 2] }
    }
}

impl LatencyGoal {
    pub(crate) fn set_percent(&mut self, text: &str) -> Result<(), Reason> {
        self.percent = match text.parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => percent,
            _ => return Err("it is not a number from 0 to 100; write 99.9".into()),
        };
        Ok(())
    }

    pub fn searches(&self) -> bool {
        self.target_ns > 0
    }
}
