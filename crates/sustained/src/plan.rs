//! The settings of a sustained run.

use machine::{Engine, Nanos};
use workload::{Pattern, Workload};

/// Of the time; the rests and reads need the remainder.
pub(crate) const FIRST_SHARE: f64 = 0.7;
/// Steps between searches for levels.
pub(crate) const LOOK_EVERY: usize = 8;
pub(crate) const FIRST_REST_S: f64 = 10.0;

#[derive(Debug, Clone, PartialEq)]
pub struct SustainPlan {
    pub for_ns: Nanos,
    pub max_written: u64,
    pub request_bytes: u32,
    /// [`Pattern::Seq`] or [`Pattern::Random`].
    pub pattern: Pattern,
    pub depth: u32,
    /// Of a step, which is one point.
    pub step_ns: Nanos,
    /// Percentages of the target to fill and measure, ascending.
    pub fills: Vec<u8>,
    /// Bytes that may be written over the drive's life, if known.
    pub endurance_bytes: Option<u64>,
    pub seed: u64,
}

impl Default for SustainPlan {
    fn default() -> Self {
        SustainPlan {
            for_ns: 600_000_000_000,
            max_written: 100 << 30,
            request_bytes: 1 << 20,
            pattern: Pattern::Seq,
            depth: 16,
            step_ns: 1_000_000_000,
            fills: Vec::new(),
            endurance_bytes: None,
            seed: 1,
        }
    }
}

impl SustainPlan {
    /// Without the offsets.
    pub fn workload(&self, engines: &[Engine]) -> Workload {
        Workload {
            read_percent: 0,
            pattern: self.pattern,
            request_bytes: self.request_bytes,
            depth: self.depth,
            engine: Engine::for_depth(self.depth, engines),
            seed: self.seed,
            ..Workload::default()
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    pub doing: &'a str,
    pub passed_s: f64,
    pub written_bytes: u64,
    pub bytes_per_s: f64,
}
