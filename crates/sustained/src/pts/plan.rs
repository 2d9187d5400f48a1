//! A test as data.

use super::tests::PtsTest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One access pattern of a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    pub read_percent: u8,
    pub block_bytes: u32,
    /// Requests go to random places; otherwise in sequence.
    pub random: bool,
    pub threads: u32,
    /// Outstanding requests of each thread.
    pub depth: u32,
    pub seconds: f64,
    /// Idle time after the cell, in seconds.
    #[serde(default)]
    pub wait_s: f64,
}

/// The quantity that a test reports and tracks for steady state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// Requests per second.
    Iops,
    /// Bytes per second.
    Throughput,
    /// Mean latency.
    Latency,
}

/// How the target is brought into the state of a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purge {
    /// The whole space of the target is discarded.
    Discard,
    /// The user has purged the drive with its own command.
    ByUser,
}

/// When a phase of rounds ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// The phase ends in steady state, or after `max_rounds` rounds.
    Steady {
        max_rounds: u32,
        /// Only one of this many rounds counts for steady state, beginning with the first.
        #[serde(default = "one")]
        every: u32,
    },
    /// The phase ends after this many rounds.
    Rounds(u32),
    /// The phase ends after `bytes` bytes are written, in steady state, or after `max_rounds`
    /// rounds.
    Written {
        bytes: u64,
        max_rounds: u32,
        /// Only one of this many rounds counts for steady state, beginning with the first.
        #[serde(default = "one")]
        every: u32,
    },
}

fn one() -> u32 {
    1
}

impl Until {
    pub fn max_rounds(self) -> u32 {
        match self {
            Until::Steady { max_rounds, .. } | Until::Written { max_rounds, .. } => max_rounds,
            Until::Rounds(rounds) => rounds,
        }
    }

    /// How many rounds apart those are that count for steady state.
    pub fn every(self) -> u32 {
        match self {
            Until::Steady { every, .. } | Until::Written { every, .. } => every.max(1),
            Until::Rounds(_) => 1,
        }
    }
}

/// A phase of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    pub title: String,
    #[serde(flatten)]
    pub kind: PhaseKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum PhaseKind {
    Purge,
    /// Writes all of the target in sequence, several times.
    Fill {
        block_bytes: u32,
        times: u32,
    },
    /// Rounds of cells.
    Rounds {
        cells: Vec<Cell>,
        /// Index of the cell that decides about steady state.
        tracking: usize,
        /// Further cells that must be steady too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        also_tracking: Vec<usize>,
        measured: Measured,
        until: Until,
    },
    /// Cells of an earlier phase, each for a longer time.
    Histograms {
        of_phase: usize,
        which: HistogramCells,
        seconds: f64,
        /// Length of the writes before each cell in seconds, with as many requests outstanding.
        #[serde(default)]
        writes_before_s: f64,
    },
}

/// The cells whose response times get a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistogramCells {
    /// The cell with this index.
    Cell(usize),
    /// Up to three cells with reads: the fastest with a mean latency below this, one with the
    /// fewest requests outstanding, and the one whose rate is nearest to half way between.
    Points { max_mean_latency_ns: f64 },
}

/// A test of a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtsPlan {
    pub test: PtsTest,
    /// Divisor of times and space; 1 is the specification.
    pub scale: f64,
    /// Bytes of the target that are used.
    pub active_bytes: u64,
    /// Alignment of requests; smaller blocks are left out.
    pub align_bytes: u32,
    pub purge: Purge,
    pub seed: u64,
    pub phases: Vec<Phase>,
    /// Parts of the test that the target does not support.
    pub left_out: Vec<String>,
}

impl PtsPlan {
    pub fn to_specification(&self) -> bool {
        self.scale == 1.0
    }
}
